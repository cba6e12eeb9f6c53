"""What a tool of the planner is: a typed function, declared to the model by its signature and its docstring."""

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
    """What a tool may reach: this conversation alone.

    `conversation` is as it was before the turn, `uploads` came with it. `images` gives pictures as models are sent
    them, `originals` as they are. `trust` is what of outside the model has before it, and which addresses may be read
    without a click.
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
    """What a tool found: JSON for the model, and pictures beside it.

    `target` is the handle of the picture that the person's next words shall change, where the tool chose one.
    `source` names where it came from when that is outside of the studio (an address, a server's name): then it is
    framed as untrusted, and what follows is tainted. `error` says in one sentence what did not work, for the model to
    mend.
    """

    content: Mapping[str, JsonValue]
    images: tuple[ImagePart, ...] = ()
    source: str = ""
    target: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the tool could not do it."""
        return "error" in self.content


def failed(sentence: str) -> ToolAnswer:
    """Return the answer of a tool that could not do it; the sentence is for the model to mend its call."""
    return ToolAnswer({"error": sentence})


def foreign_picture(context: ToolContext, image: ImagePart) -> str:
    """Return a picture as a source when what it shows came from outside: an upload, or, as nobody knows what was read
    there, a picture of another branch; or nothing."""
    is_elsewhere = any(one.handle == image.handle for one in context.conversation.elsewhere)
    is_foreign = image.origin is ImageOrigin.UPLOADED or is_elsewhere
    return f"picture:{image.handle}" if is_foreign else ""


Arguments = Mapping[str, JsonValue]


Reason = Literal["foreign_address", "overwrites", "deletes", "may_change_something", "was_changed", "costs_money"]
"""Why a call waits for the person; the page has a sentence for each under `consent.<reason>`."""

Rule = Callable[[Arguments, ToolContext], Awaitable[Reason | None]]


@dataclass(frozen=True)
class Tool:
    """A tool and how to run it.

    `answer` raises AivistaError with a sentence that the model can mend. `rule` says of a call why it waits for the
    person's click, or None. `most_a_turn` is how often it can be called in one turn, if that is limited.
    `server` is the MCP server it belongs to, if it is one's, and `own_name` its name there. One that is not
    `is_offered` is answered when it is called all the same.
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
        """The name the model calls."""
        return self.declaration.name


_Work: TypeAlias = Callable[Concatenate[ToolContext, P], Awaitable[ToolAnswer]]


def tool(*, rule: Rule | None = None, most_a_turn: int | None = None) -> Callable[[_Work[P]], Tool]:
    """Make a function a tool: its name, the docstring as what it is for, and the schema of its arguments.

    Each argument but the context is `Annotated` with its description, or with a pydantic `Field`. The rule is asked
    with arguments that fit.
    """

    def declared(work: _Work[P]) -> Tool:
        name = getattr(work, "__name__", "")
        model = _arguments_of(work, name)
        declaration = ToolDeclaration(name=name, description=_paragraphs(work), parameters=_schema_of(model))

        async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
            given = _checked(model, name, arguments)
            found: Any = work
            return cast(ToolAnswer, await found(context, **{one: getattr(given, one) for one in model.model_fields}))

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
        problem = "; ".join(_problem(one["loc"], one["msg"]) for one in error.errors()[:5])
        raise ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name=name, problem=problem) from None


def error_result(call: ToolCallPart, sentence: str) -> ToolResultPart:
    """Return the answer to a call that could not be done, for the model to mend."""
    return ToolResultPart(name=call.name, call_id=call.call_id, content={"error": sentence}, is_error=True)


def _paragraphs(work: Callable[..., object]) -> str:
    """Return the docstring as paragraphs without line breaks in them."""
    paragraphs = inspect.cleandoc(work.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _described(annotation: Any) -> Any:
    """Return the annotation with a bare sentence in it as the field's description."""
    metadata = getattr(annotation, "__metadata__", ())
    sentence = next((one for one in metadata if isinstance(one, str)), None)
    if sentence is None:
        return annotation
    others = tuple(one for one in metadata if not isinstance(one, str))
    return Annotated[(annotation.__origin__, *others, Field(description=sentence))]


def _schema_of(arguments: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the schema without pydantic's titles and with nothing but the keywords that the providers know."""
    schema = _plain(arguments.model_json_schema())
    return {"type": "object", "properties": {}, **schema, "additionalProperties": False}


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(one) for key, one in schema.items() if not (key == "title" and isinstance(one, str))}


def _problem(place: tuple[int | str, ...], said: str) -> str:
    return f"{'.'.join(map(str, place)) or 'arguments'}: {said}"
