"""The MCP tools: their arguments, work and results. The calling model reads the docstrings and descriptions.

A result has text, previews and links for people, and the HTTP API's models with a `uri` as data.
"""

from __future__ import annotations

import asyncio
import base64
import io
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import getdoc
from typing import Annotated, Any, Literal, Self, TypeAlias, get_type_hints

import anyio
from mcp_types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent, Tool, ToolAnnotations
from PIL import Image, ImageDraw
from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, WithJsonSchema, model_validator

from agent import (
    MAX_NEGATIVE_CHARACTERS,
    MAX_REFERENCE_COUNT,
    AivistaError,
    Ask,
    Asked,
    Decision,
    LiveTurn,
    Mask,
    Picture,
    PictureReady,
    Plan,
    PlanEdit,
    Receipt,
    ReferenceMode,
    Review,
    Studio,
    ThoughtLog,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnSettings,
    TurnStopped,
    Value,
    take_in_image,
)
from webui.api.auth import Caller
from webui.api.models import Conversations, PictureFacts, find_conversations, picture_facts
from webui.api.outcomes import Outcome, outcome_of
from webui.features.thread.steps import step_sentence
from webui.spend import cap_sentence, price
from webui.words import load_words

PICTURE_URI = "aivista://conversations/{conversation_id}/pictures/{handle}"
URI = re.compile(r"aivista://conversations/([0-9A-Za-z_-]{1,64})/pictures/([0-9]{1,6}[a-z]{0,3})(/receipt)?")
# Models and programs read this first, and do not say their language.
WORDS = load_words("en")
_PREVIEW_PX = 768
_MOST_CHARACTERS = 28 << 20
_DATA_URL = re.compile(r"\s*data:image/[a-z0-9.+-]{1,40}(?:;[a-z0-9=._-]{1,40})*;base64,", re.IGNORECASE)
_UPLOAD = "upload:1"
_ONLY_PAINTED = "The agent wanted to paint instead of answering. Nothing was painted."


# The arguments of the tools


def _decoded(written: object) -> object:
    """Return the bytes of a base64 text or data URL; pydantic words the errors."""
    if not isinstance(written, str):
        raise ValueError("it must be a picture as base64")
    if len(written) > _MOST_CHARACTERS:
        raise ValueError("the picture is larger than 20 MB")
    try:
        return base64.b64decode("".join(_DATA_URL.sub("", written, count=1).split()), validate=True)
    except ValueError:
        raise ValueError("it is not base64") from None


PictureBytes: TypeAlias = Annotated[
    bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})
]
ConversationId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Handle: TypeAlias = Annotated[str, StringConstraints(pattern=r"^#?[0-9]{1,6}[a-zA-Z]{0,3}$")]
Prompt: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
PositivePercent: TypeAlias = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]

_NEW_WITHOUT = "The conversation to go on in; without one a new conversation is begun, and its id is in the answer."
_HANDLE = "The picture's short name in its conversation, such as #3 or #3b."


class _Repeatable(Asked):
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="A name of your own for this call. The same one again brings the same pictures and "
        "costs nothing: give one when you may have to repeat a call.",
    )


class _Painting(_Repeatable):
    model: Literal["auto", "flash", "pro"] = Field(
        default="auto", description="The image model: fast (flash), best (pro), or the agent's choice."
    )
    confirm: bool = Field(
        default=False, description="Paint nothing yet: the plan and its price come back, to be decided with `decide`."
    )
    budget_usd: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The most that this call may cost, in US dollars."
    )

    def settings(self) -> TurnSettings:
        return TurnSettings(image_model=self.model, confirm=self.confirm, budget_usd=self.budget_usd)


class _WholePicture(_Painting):
    aspect_ratio: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}:[0-9]{1,2}$")] | None = Field(
        default=None, description="Width to height, such as 16:9. Left out, the agent chooses."
    )
    size: Annotated[str, StringConstraints(min_length=1, max_length=8)] | None = Field(
        default=None, description="Left out, the agent chooses."
    )
    count: int | None = Field(default=None, ge=1, le=4, description="How many pictures.")
    allow_search: bool = Field(default=False, description="The agent may search the web for facts.")
    negative_prompt: Annotated[str, StringConstraints(max_length=MAX_NEGATIVE_CHARACTERS)] | None = Field(
        default=None, description="What the picture must not show, in a few words. Left out, the agent chooses."
    )
    reference_mode: ReferenceMode | None = Field(
        default=None,
        description="Which pictures of the conversation the image model is shown. Left out, the agent chooses.",
    )
    reference_count: int | None = Field(
        default=None, ge=1, le=MAX_REFERENCE_COUNT, description="How many pictures LAST_N shows."
    )

    def settings(self) -> TurnSettings:
        chosen = {
            "aspect_ratio": self.aspect_ratio,
            "resolution": self.size,
            "number_of_images": self.count,
            "allow_search": self.allow_search,
            "negative_prompt": (self.negative_prompt or "").strip() or None,
            "reference_mode": self.reference_mode,
            "reference_count": self.reference_count,
        }
        return super().settings().model_copy(update=chosen)


class _Target(Asked):
    conversation_id: ConversationId | None = Field(default=None, description=_NEW_WITHOUT)
    handle: Handle | None = Field(default=None, description=f"{_HANDLE} It needs the conversation_id.")
    picture: PictureBytes | None = Field(
        default=None,
        description="Instead of a handle: a picture of your own as base64 (PNG, JPEG, WebP, at most 20 MB).",
    )

    @model_validator(mode="after")
    def _is_one_picture(self) -> Self:
        if (self.handle is None) == (self.picture is None):
            raise ValueError("name the picture by its handle, or send it as `picture`: one of the two")
        if self.handle is not None and self.conversation_id is None:
            raise ValueError("a handle belongs to a conversation: give its conversation_id")
        return self

    @property
    def images(self) -> tuple[bytes, ...]:
        return (self.picture,) if self.picture is not None else ()


class _Generate(_WholePicture):
    wish: Prompt = Field(description="What the picture shall show, in the person's own words.")
    conversation_id: ConversationId | None = Field(default=None, description=_NEW_WITHOUT)
    references: Annotated[tuple[Handle, ...], Field(max_length=14)] = Field(
        default=(), description="Handles of pictures of the conversation that the image model shall be shown."
    )


class _Edit(_Target, _WholePicture):
    wish: Prompt = Field(description="What shall change, in the person's own words.")


class Box(Asked):
    """A rectangle of a picture, in percent of its width and height from its top left corner."""

    left: Percent
    top: Percent
    width: PositivePercent
    height: PositivePercent

    @model_validator(mode="after")
    def _is_inside(self) -> Self:
        if self.left + self.width > 100 or self.top + self.height > 100:
            raise ValueError("the box reaches beyond the picture: left and width, and top and height, add up to 100")
        return self


class _MaskedEdit(_Target, _Painting):
    wish: Prompt = Field(description="What shall be there instead, in the person's own words.")
    mask: PictureBytes | None = Field(
        default=None, description="A base64 PNG of the picture's shape: white may change, black stays."
    )
    box: Box | None = Field(
        default=None, description="Instead of a mask: the rectangle that may change, in percent from the top left."
    )
    feather_px: int | None = Field(
        default=None, ge=0, le=1000, description="How wide the mask's soft edge is, in pixels of a picture 1024 wide."
    )

    @model_validator(mode="after")
    def _is_one_area(self) -> Self:
        if (self.mask is None) == (self.box is None):
            raise ValueError("say what may change with a mask or with a box: one of the two")
        return self


class _Describe(_Repeatable):
    conversation_id: ConversationId
    handle: Handle = Field(description=_HANDLE)
    question: Annotated[str, StringConstraints(max_length=4000)] = Field(
        default="", description="What you want to know of it; left out, it is described as a whole."
    )


class _Decide(Asked):
    conversation_id: ConversationId
    turn_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    run: bool = Field(description="true: paint the plan, or let the tools be called; false: drop it, nothing is paid.")
    edits: Annotated[tuple[PlanEdit, ...], Field(max_length=4)] = Field(
        default=(), description="Changes of the plan before it runs, one for each `call` that is changed."
    )


class _ListPictures(Asked):
    conversation_id: ConversationId
    limit: int = Field(default=20, ge=1, le=100, description="The newest so many.")


class _GetPicture(Asked):
    conversation_id: ConversationId
    handle: Handle = Field(description=_HANDLE)
    edge_px: Literal[512, 1024, 2048] = Field(
        default=1024, description="The longer edge of the preview; the original is the linked resource."
    )


class _ListConversations(Asked):
    query: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="Only those that hold all of these words."
    )
    limit: int = Field(default=20, ge=1, le=50)


class _Nothing(Asked):
    pass


# The results of the tools

TurnState = Literal["done", "needs_decision", "at_work", "stopped", "failed"]


# Models read this schema: it has only the fields of a receipt that they need.
_BRIEF = (
    PlainSerializer(lambda value: value.model_dump(mode="json", exclude_defaults=True)),
    WithJsonSchema({"type": "object"}),
)


class PictureResult(PictureFacts):
    """A picture of a conversation; an upload has no receipt. `uri` leads to its bytes."""

    receipt: Annotated[Receipt, *_BRIEF] | None = Field(default=None, description="Asked against got.")
    review: Annotated[Review, *_BRIEF] | None = Field(default=None, description="What was asked for, and what is seen.")
    uri: str
    receipt_uri: str | None


class TurnResult(Value):
    """The outcome of a turn, or what it waits for; `next` says what to do then."""

    state: TurnState
    conversation_id: str
    turn_id: str
    text: str = Field(description="The agent's words, or the sentence of what went wrong.")
    pictures: tuple[PictureResult, ...] = ()
    plans: tuple[Plan, ...] = ()
    asks: tuple[Ask, ...] = ()
    next: str = ""
    price_usd: float = 0.0
    seconds: float = 0.0


class PictureList(Value):
    """The newest pictures of a conversation, oldest first; `total` counts all of the current branch."""

    conversation_id: str
    total: int
    pictures: tuple[PictureResult, ...]


class OnePicture(Value):
    """A picture of a conversation."""

    conversation_id: str
    picture: PictureResult


class NewConversation(Value):
    """A conversation that was created."""

    conversation_id: str


# The table of tools


@dataclass(frozen=True)
class Call:
    """A call of a tool: the caller, and a function that reports progress to the client."""

    studio: Studio
    caller: Caller
    report: Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class ServerTool:
    """A tool of this server."""

    title: str
    answer: type[Value]
    annotations: ToolAnnotations
    run: Callable[[Call, Any], Awaitable[CallToolResult]]

    @property
    def arguments(self) -> type[Asked]:
        """The model of the tool's arguments."""
        model: type[Asked] = get_type_hints(self.run)["asked"]
        return model

    @property
    def is_turn(self) -> bool:
        """Whether it begins or resumes a turn, which has a limit of its own."""
        return self.answer is TurnResult

    def declaration(self, sizes: Sequence[str]) -> Tool:
        """Return the tool as a client reads it; `sizes` are those that the models accept."""
        schema = _schema(self.arguments, "validation")
        if sizes and (size := schema["properties"].get("size")) is not None:
            *others, last = sizes
            listed = f"{', '.join(others)} or {last}" if others else last
            size["description"] = f"{listed}, as the model offers. {size['description']}"
        return Tool(
            name=self.run.__name__,
            title=self.title,
            description=" ".join((getdoc(self.run) or "").split()),
            input_schema=schema,
            output_schema=_schema(self.answer, "serialization"),
            annotations=self.annotations,
        )


def _schema(model: type[Value], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """Return the schema without pydantic's titles and our docstrings: clients pass it to models."""
    schema = model.model_json_schema(mode=mode)
    for one in (schema, *schema.get("$defs", {}).values()):
        one.pop("description", None)
    found: dict[str, Any] = _untitled(schema)
    return found


def _untitled(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A field may be named `title`: then it is a schema, not a text.
    return {key: _untitled(one) for key, one in schema.items() if key != "title" or not isinstance(one, str)}


_hints = partial(ToolAnnotations, read_only_hint=False, destructive_hint=False, idempotent_hint=False)
# A turn adds to a conversation and removes nothing. Its agent may read the web and cost money: a repeated call paints
# again, unless it has the same request_id.
_PAINTS = _hints(open_world_hint=True)
# The user consents to another tool's call, which may delete something.
_CONSENTS = _hints(destructive_hint=True, open_world_hint=True)
_READS = _hints(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_ADDS = _hints(open_world_hint=False)

TOOLS: dict[str, ServerTool] = {}
_Run: TypeAlias = Callable[[Call, Any], Awaitable[CallToolResult]]


def _tool(title: str, answer: type[Value], annotations: ToolAnnotations) -> Callable[[_Run], _Run]:
    def add(run: _Run) -> _Run:
        TOOLS[run.__name__] = ServerTool(title, answer, annotations, run)
        return run

    return add


@_tool("Paint pictures", TurnResult, _PAINTS)
async def generate(call: Call, asked: _Generate) -> CallToolResult:
    """Have the studio's agent paint pictures by a wish in words. It may answer with a question, or with a plan that
    waits for `decide`. Answers with previews; the originals are linked resources."""
    return await _painted(call, asked, references=asked.references)


@_tool("Change a picture", TurnResult, _PAINTS)
async def edit(call: Call, asked: _Edit) -> CallToolResult:
    """Change a picture as a whole, by words. The picture it is made from stays as it is; the new one gets a handle of
    its own. To hold everything outside of an area still, use `masked_edit`."""
    return await _painted(call, asked, images=asked.images, editing=asked.handle)


@_tool("Change a part of a picture", TurnResult, _PAINTS)
async def masked_edit(call: Call, asked: _MaskedEdit) -> CallToolResult:
    """Change only a part of a picture: the white of a mask, or a box in percent. Every pixel outside of it stays
    exactly what it was; how many were checked is in the answer."""
    mask = asked.mask or b""
    if asked.box is not None:
        mask = await asyncio.to_thread(_mask_of, asked.box, await _size(call, asked))
    area = Mask(mask, asked.handle or _UPLOAD, asked.feather_px)
    return await _painted(call, asked, images=asked.images, mask=area)


@_tool("Look at a picture", TurnResult, _PAINTS)
async def describe(call: Call, asked: _Describe) -> CallToolResult:
    """Have the studio's text model look at a picture and describe it, or answer a question about it. It costs one or
    two calls of the text model, and is kept in the conversation."""
    studio, owner, key = call.studio, call.caller.owner, call.caller.key
    conversation = await studio.conversations.get(asked.conversation_id, owner)
    handle = conversation.picture(asked.handle).handle
    question = asked.question.strip() or "Describe what it shows."
    request = TurnRequest(
        text=f"Look at picture {handle} with view_image, then answer in words only, without a new picture: {question}",
        # With confirm, a picture that is planned nevertheless is not paid for.
        settings=TurnSettings(confirm=True, review="off"),
        references=(handle,),
        request_id=asked.request_id,
    )
    outcome = await _followed(call, studio.turns.start(conversation.id, request, owner=owner, key=key))
    if outcome.plans:
        drop = studio.turns.decide(conversation.id, outcome.turn_id, Decision(run=False), owner=owner, key=key)
        ending = (await _followed(call, drop, drop.before)).ending
        outcome = replace(outcome, ending=ending, plans=(), text=outcome.text or _ONLY_PAINTED)
    return await turn_result(studio, owner, outcome)


@_tool("Decide about a plan", TurnResult, _CONSENTS)
async def decide(call: Call, asked: _Decide) -> CallToolResult:
    """Run or drop the plan that a turn waits with, with changes perhaps; or let the tool calls run that it asks about,
    or not. Ask the person first: this is their consent, to what is paid and to what a tool may do."""
    owner, decision = call.caller.owner, Decision(run=asked.run, edits=asked.edits)
    await call.studio.conversations.get(asked.conversation_id, owner)
    live = call.studio.turns.decide(asked.conversation_id, asked.turn_id, decision, owner=owner, key=call.caller.key)
    outcome = await _followed(call, live, live.before)
    return await turn_result(call.studio, owner, replace(outcome, turn_id=outcome.turn_id or asked.turn_id))


@_tool("List pictures", PictureList, _READS)
async def list_pictures(call: Call, asked: _ListPictures) -> CallToolResult:
    """List the newest pictures of a conversation: handles, sizes, receipts, links to the originals."""
    conversation = await call.studio.conversations.get(asked.conversation_id, call.caller.owner)
    newest = conversation.pictures[-asked.limit :]
    answer = PictureList(
        conversation_id=conversation.id,
        total=len(conversation.pictures),
        pictures=tuple(picture_result(conversation.id, one) for one in newest),
    )
    lines = [f"{picture_line(one)}{f'. {one.alt}' if one.alt else ''}" for one in newest]
    links = [picture_link(conversation.id, one) for one in newest]
    return tool_result(answer, "\n".join(lines) or "This conversation has no pictures yet.", links)


@_tool("Get a picture", OnePicture, _READS)
async def get_picture(call: Call, asked: _GetPicture) -> CallToolResult:
    """Get a preview of a picture, its receipt (asked against got), and the link to the original."""
    conversation = await call.studio.conversations.get(asked.conversation_id, call.caller.owner)
    picture = conversation.picture(asked.handle)
    answer = OnePicture(conversation_id=conversation.id, picture=picture_result(conversation.id, picture))
    blocks = await picture_blocks(call.studio, call.caller.owner, conversation.id, picture, asked.edge_px)
    return tool_result(answer, "\n\n".join(filter(None, (picture_line(picture), picture.alt))), blocks)


@_tool("List conversations", Conversations, _READS)
async def list_conversations(call: Call, asked: _ListConversations) -> CallToolResult:
    """List the conversations of the studio, the newest first, or those that hold certain words."""
    answer = await find_conversations(call.studio, call.caller.owner, asked.query, asked.limit)
    lines = [f"{one.id}: {one.title or 'Untitled'} ({one.picture_count} pictures)" for one in answer.conversations]
    return tool_result(answer, "\n".join(lines) or "There is no such conversation yet.")


@_tool("Begin a conversation", NewConversation, _ADDS)
async def new_conversation(call: Call, asked: _Nothing) -> CallToolResult:
    """Begin an empty conversation and get its id. `generate` begins one by itself where none is named."""
    conversation = await call.studio.conversations.create(call.caller.owner)
    answer = NewConversation(conversation_id=conversation.id)
    return tool_result(answer, f"The conversation {conversation.id} is there.")


async def _painted(call: Call, asked: _Generate | _Edit | _MaskedEdit, **chosen: Any) -> CallToolResult:
    """Run a turn in the given conversation, in a new one, or in the one that the same request created."""
    studio, owner, place = call.studio, call.caller.owner, asked.conversation_id
    if place is None:
        # Clients of the HTTP API may use the same numbers as request ids.
        name = f"mcp:{asked.request_id}" if asked.request_id is not None else None
        place = (await studio.conversations.create(owner, name)).id
    else:
        await studio.conversations.get(place, owner)
    request = TurnRequest(text=asked.wish, settings=asked.settings(), request_id=asked.request_id, **chosen)
    live = studio.turns.start(place, request, owner=owner, key=call.caller.key)
    return await turn_result(studio, owner, await _followed(call, live))


async def _followed(call: Call, live: LiveTurn, after: int = 0) -> Outcome:
    """Return the outcome of a turn, reporting each of its steps. Cancelling the call stops the turn."""
    try:
        async for _, event in live.follow(after):
            if isinstance(event, ThoughtLog):
                await call.report(step_sentence(WORDS, event))
            elif isinstance(event, PictureReady):
                await call.report(f"Picture {event.picture.handle} is there.")
    except asyncio.CancelledError:
        # The call's scope is cancelled: anything awaited in it now would be cancelled at once.
        with anyio.CancelScope(shield=True):
            await live.stop()
        raise
    return await outcome_of(call.studio, live, WORDS, after)


async def _size(call: Call, asked: _MaskedEdit) -> tuple[int, int]:
    if asked.picture is not None:
        taken = await take_in_image(asked.picture, "Picture 1")
        return taken.width, taken.height
    conversation = await call.studio.conversations.get(asked.conversation_id or "", call.caller.owner)
    image = conversation.picture(asked.handle or "").image
    return image.width or 1, image.height or 1


def _mask_of(box: Box, size: tuple[int, int]) -> bytes:
    """Return a PNG of this size that is white inside the box, which has at least one pixel each way."""
    width, height = size
    left, top = (min(round(at * side / 100), side - 1) for at, side in ((box.left, width), (box.top, height)))
    right = max(left + 1, round((box.left + box.width) * width / 100))
    lower = max(top + 1, round((box.top + box.height) * height / 100))
    mask = Image.new("L", size, 0)
    # Pillow draws the last pixel of a rectangle as well.
    ImageDraw.Draw(mask).rectangle((left, top, right - 1, lower - 1), fill=255)
    out = io.BytesIO()
    mask.save(out, "PNG")
    return out.getvalue()


# The contents of results


def picture_uri(conversation_id: str, handle: str) -> str:
    """Return the address of a picture as a resource; that of its receipt is below it."""
    return PICTURE_URI.format(conversation_id=conversation_id, handle=handle.lstrip("#"))


def picture_result(conversation_id: str, picture: Picture) -> PictureResult:
    """Return a picture as data."""
    uri = picture_uri(conversation_id, picture.handle)
    receipt_uri = f"{uri}/receipt" if picture.receipt is not None else None
    return PictureResult(**picture_facts(picture), uri=uri, receipt_uri=receipt_uri)


def tool_result(
    answer: Value, text: str, blocks: Sequence[ContentBlock] = (), *, is_error: bool = False
) -> CallToolResult:
    """Return a tool's result: text and content blocks, and the structured data."""
    data = answer.model_dump(mode="json")
    return CallToolResult(content=[TextContent(text=text), *blocks], structured_content=data, is_error=is_error)


def refusal(sentence: str) -> CallToolResult:
    """Return the result of a failed call."""
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


async def turn_result(studio: Studio, owner: str, outcome: Outcome) -> CallToolResult:
    """Return the result of a turn that has ended, or waits."""
    place, ending = outcome.conversation_id, outcome.ending
    state, sentence, then = _state(outcome)
    failed = [f"One picture could not be made: {WORDS.error(info)}" for info in outcome.failures]
    text = "\n\n".join(part for part in (outcome.text, sentence, *failed) if part)
    needs_decision = state == "needs_decision"
    answer = TurnResult(
        state=state,
        conversation_id=place,
        turn_id=outcome.turn_id,
        text=text,
        pictures=tuple(picture_result(place, one) for one in outcome.pictures),
        plans=outcome.plans if needs_decision else (),
        asks=outcome.asks if needs_decision else (),
        next=then,
        price_usd=ending.price_usd if isinstance(ending, TurnDone) else 0.0,
        seconds=ending.seconds if isinstance(ending, TurnDone) else 0.0,
    )
    lines = [text, *map(picture_line, outcome.pictures), then, "" if state == "failed" else f"Conversation: {place}"]
    blocks = [block for one in outcome.pictures for block in await picture_blocks(studio, owner, place, one)]
    text = "\n\n".join(line for line in lines if line)
    return tool_result(answer, text, blocks, is_error=state in ("failed", "stopped"))


async def picture_blocks(
    studio: Studio, owner: str, conversation_id: str, picture: Picture, edge_px: int = _PREVIEW_PX
) -> list[ContentBlock]:
    """Return a preview of a picture and the link to its original; the link alone when its file is missing."""
    look: ContentBlock
    try:
        small, mime_type = await studio.thumbnail(conversation_id, picture.handle, edge_px, owner)
        look = ImageContent(data=base64.b64encode(small).decode("ascii"), mime_type=mime_type)
    except AivistaError as error:
        look = TextContent(text=f"{picture.handle}: {WORDS.error(error.info)}")
    return [look, picture_link(conversation_id, picture)]


def picture_link(conversation_id: str, picture: Picture) -> ResourceLink:
    """Return the link to a picture's original."""
    return ResourceLink(
        uri=picture_uri(conversation_id, picture.handle),
        name=picture.handle,
        title=f"Picture {picture.handle}, as it was made",
        description=picture.alt or None,
        mime_type=picture.image.mime_type,
        size=picture.image.size_bytes,
    )


def picture_line(picture: Picture) -> str:
    """Return a picture in one line: handle, size, model, price, and what was not delivered as asked."""
    image, receipt, edit = picture.image, picture.receipt, picture.edit
    parts = [f"{image.width} × {image.height} px" if image.width and image.height else image.mime_type]
    if receipt is not None:
        parts += [receipt.model_label or receipt.model, price(WORDS, receipt.price_usd)]
        parts += [WORDS(f"receipt.short_{one}") for one in receipt.shortfalls]
    else:
        parts.append(image.origin.value)
    if edit is not None:
        parts += [WORDS(f"notice.{notice.code}") for notice in edit.notices]
        if edit.verdict != "good":
            parts.append(f"the edit is {edit.verdict}")
    return f"{picture.handle}: {', '.join(parts)}"


def _state(outcome: Outcome) -> tuple[TurnState, str, str]:
    """Return the state of the turn, a sentence about it, and what to do next."""
    match outcome.ending:
        case TurnPaused() if outcome.plans or outcome.asks:
            caps = dict.fromkeys(cap_sentence(WORDS, cap) for plan in outcome.plans for cap in plan.caps)
            asks = [
                f"The tool {ask.tool} {WORDS(f'consent.{ask.reason}')} Its arguments: {ask.arguments}"
                for ask in outcome.asks
            ]
            then = (
                "Ask the person, unless they have decided already. Then call decide with "
                f"conversation_id={outcome.conversation_id}, turn_id={outcome.turn_id} and run=true or run=false."
            )
            lines = ["The studio waits for a decision.", *map(_plan, outcome.plans), *caps, *asks]
            return "needs_decision", "\n".join(lines), then
        case TurnPaused():
            then = "Call again with the same request_id in a while, or with another one to begin anew."
            return "at_work", "This request is at work elsewhere, or was interrupted.", then
        case TurnStopped():
            then = "To have it done after all, call again with another request_id or none."
            return "stopped", "The turn was stopped; what was made before is kept.", then
        case TurnFailed(error=info):
            return "failed", WORDS.error(info), ""
        case _:
            return "done", "", ""


def _plan(plan: Plan) -> str:
    cost = f"{'about ' if plan.price_usd > 0 else ''}{price(WORDS, plan.price_usd)}"
    model = f"{plan.number_of_images} × {plan.model_label or plan.model}"
    parts = [model, plan.aspect_ratio, plan.resolution or "", cost]
    notices = [WORDS(f"notice.{code}") for code in plan.notices]
    return " ".join([f"Plan {plan.call} ({', '.join(part for part in parts if part)}): {plan.prompt}", *notices])
