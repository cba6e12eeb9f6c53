"""The tools of the planner: typed functions, declared to the model by their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeAlias, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model

from agent.conversation import Conversation
from agent.errors import ErrorCode, ToolArgumentError
from agent.fetching.page_reader import PageReader
from agent.messages import ImageOrigin, ImagePart, ToolCallPart, ToolResultPart
from agent.providers.base import PictureBytes, ToolDeclaration
from agent.sandbox.runner import Sandbox
from agent.storage.cache import ByteCache
from agent.storage.workspace import Workspace
from agent.tools.trust import Trust

P = ParamSpec("P")


@dataclass(frozen=True)
class ToolContext:
    """The objects that a tool may use: those of this conversation only.

    `conversation` is the state before the turn, `uploads` are the uploads of the turn. `images` reads pictures in the
    form that is sent to models, `originals` in their stored form. `trust` says whether external content is in the
    model's context, and which addresses may be read without a click.
    """

    conversation: Conversation
    images: PictureBytes
    originals: PictureBytes
    cache: ByteCache
    trust: Trust
    workspace: Workspace
    fetcher: PageReader
    sandbox: Sandbox
    uploads: tuple[ImagePart, ...] = ()


@dataclass(frozen=True)
class ToolAnswer:
    """The result of a tool call: JSON content for the model, and pictures sent beside it.

    `target` is the handle of the picture that the user's next message will change, if the tool chose one. `source`
    names an origin outside the studio (an address, a server's name): then the content is marked as untrusted, and
    everything after it is tainted. `error` in the content says in one sentence what failed, so that the model can
    correct its call.
    """

    content: Mapping[str, JsonValue]
    images: tuple[ImagePart, ...] = ()
    source: str = ""
    target: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the tool failed."""
        return "error" in self.content


def failed(sentence: str) -> ToolAnswer:
    """Return the answer of a failed tool; the sentence lets the model correct its call."""
    return ToolAnswer({"error": sentence})


def foreign_picture(context: ToolContext, image: ImagePart) -> str:
    """Return the `source` for a picture with external content, else an empty string.

    These are uploads, and pictures of another branch, where unknown external content may have been read.
    """
    is_elsewhere = any(one.handle == image.handle for one in context.conversation.elsewhere)
    return f"picture:{image.handle}" if image.origin is ImageOrigin.UPLOADED or is_elsewhere else ""


Arguments = Mapping[str, JsonValue]

Reason = Literal["foreign_address", "overwrites", "deletes", "may_change_something", "was_changed", "costs_money"]
"""Why a call waits for the user; the page has a sentence for each under `consent.<reason>`."""

Rule = Callable[[Arguments, ToolContext], Awaitable[Reason | None]]


@dataclass(frozen=True)
class Tool:
    """A tool and the function that runs it.

    `answer` raises AivistaError with a sentence that lets the model correct its call. `rule` returns why a call waits
    for the user's click, or None. `most_a_turn` is the maximum number of calls per turn, if limited. `server` is the
    MCP server of the tool, if any, and `own_name` its name there. A tool with `is_offered` False is not offered to the
    model, but a call of it is still answered.
    """

    declaration: ToolDeclaration
    answer: Callable[[Arguments, ToolContext], Awaitable[ToolAnswer]]
    rule: Rule | None = None
    most_a_turn: int | None = None
    server: str = ""
    own_name: str = ""
    is_offered: bool = True

    @property
    def name(self) -> str:
        """The name by which the model calls the tool."""
        return self.declaration.name


_Work: TypeAlias = Callable[Concatenate[ToolContext, P], Awaitable[ToolAnswer]]


def tool(*, rule: Rule | None = None, most_a_turn: int | None = None) -> Callable[[_Work[P]], Tool]:
    """Turn a function into a tool, with its name, its docstring as the description, and the schema of its arguments.

    Each argument except the context is `Annotated` with its description, or with a Pydantic `Field`. The rule is called
    only with valid arguments.
    """

    def declared(work: _Work[P]) -> Tool:
        name = getattr(work, "__name__", "")
        model = _arguments_of(work, name)
        declaration = ToolDeclaration(name=name, description=_paragraphs(work), parameters=_schema_of(model))

        async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
            call = cast(Callable[..., Awaitable[ToolAnswer]], work)
            return await call(context, **dict(_checked(model, name, arguments)))

        async def checked_rule(arguments: Arguments, context: ToolContext) -> Reason | None:
            given = _checked(model, name, arguments)
            return await rule(given.model_dump(), context) if rule is not None else None

        return Tool(declaration, answer, checked_rule if rule is not None else None, most_a_turn)

    return declared


def _arguments_of(work: Callable[..., object], name: str) -> type[BaseModel]:
    hints = get_type_hints(work, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(work).parameters.values())[1:]:
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_described(hints[parameter.name]), default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _checked(model: type[BaseModel], name: str, arguments: Arguments) -> BaseModel:
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        problems = ((".".join(map(str, one["loc"])) or "arguments", one["msg"]) for one in error.errors()[:5])
        problem = "; ".join(f"{place}: {message}" for place, message in problems)
        raise ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name=name, problem=problem) from None


def error_result(call: ToolCallPart, sentence: str) -> ToolResultPart:
    """Return the result of a failed call, with a sentence that lets the model correct it."""
    return ToolResultPart(name=call.name, call_id=call.call_id, content={"error": sentence}, is_error=True)


def _paragraphs(work: Callable[..., object]) -> str:
    """Return the docstring with the line breaks inside its paragraphs removed."""
    paragraphs = inspect.cleandoc(work.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _described(annotation: Any) -> Any:
    """Return the annotation with a plain string in it turned into the field's description."""
    metadata = getattr(annotation, "__metadata__", ())
    sentence = next((one for one in metadata if isinstance(one, str)), None)
    if sentence is None:
        return annotation
    others = tuple(one for one in metadata if not isinstance(one, str))
    return Annotated[(annotation.__origin__, *others, Field(description=sentence))]


def _schema_of(arguments: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the schema of the arguments for providers: without Pydantic's titles or additional properties."""
    schema = _plain(arguments.model_json_schema())
    return {"type": "object", "properties": {}, **schema, "additionalProperties": False}


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(one) for key, one in schema.items() if not (key == "title" and isinstance(one, str))}
