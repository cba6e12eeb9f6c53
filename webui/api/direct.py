"""Direct mode: the caller sends the whole context with each call, and gets the stream of the next turn.

How a context becomes a conversation, and is recognized when it comes again, is told in `webui.api.contexts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from agent import (
    AivistaError,
    Asked,
    ContextMessage,
    LiveTurn,
    Picture,
    RequestRefused,
    TurnDone,
    TurnPaused,
    TurnRequest,
    TurnSettings,
)
from webui.api.calls import Call, TurnCall
from webui.api.contexts import Place, digest_of, digest_of_lines, line_of, picture_bytes, sha256_of
from webui.api.events import DOCUMENTED, Streams
from webui.api.outcomes import outcome_of, text_of
from webui.api.problems import RefusalCode, Refused
from webui.api.uploads import data_of

router = APIRouter(prefix="/api/v1", tags=["direct mode"])

_MOST_MESSAGES = 400


class TextContent(Asked):
    """Words."""

    type: Literal["text"] = "text"
    text: str


class ImageAddress(Asked):
    """A picture as a data URL. Any other address is refused: nothing is fetched."""

    url: str
    detail: str = ""


class ImageContent(Asked):
    """A picture."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageAddress


Content: TypeAlias = Annotated[TextContent | ImageContent, Field(discriminator="type")]
Role: TypeAlias = Literal["human", "user", "assistant"]
Contents: TypeAlias = str | Annotated[tuple[Content, ...], Field(max_length=100)]


class RoleMessage(Asked):
    """A message as OpenAI's clients write it; `user` is the person, as `human` is."""

    role: Role
    content: Contents


Message: TypeAlias = tuple[Role, Contents] | RoleMessage


class ChatBody(Asked):
    """The whole context, oldest first; the last message is the person's, and is the turn that is asked for.
    Each is `["human", "…"]` or `{"role": "user", "content": "…"}`.

    The same `request_id` twice runs once.
    """

    messages: Annotated[tuple[Message, ...], Field(min_length=1, max_length=_MOST_MESSAGES)]
    settings: TurnSettings = TurnSettings()
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


@router.post("/chat", response_class=StreamingResponse, responses=DOCUMENTED)
async def chat(call: TurnCall, body: ChatBody) -> StreamingResponse:
    """Run the turn that follows a context and stream what happens, as in conversation mode.

    Words of the answer come as `text`; send all of them, joined, as the next `assistant` message, and the conversation
    goes on with all it has. Its id is in `started`: pictures, receipts, decisions and cancelling go by that.
    """
    messages = [
        _message(one.role, one.content) if isinstance(one, RoleMessage) else _message(*one) for one in body.messages
    ]
    if not messages[0].is_person or not messages[-1].is_person:
        raise Refused(RefusalCode.CONTEXT_ORDER)
    *context, asked = messages
    # In conversation mode a request is known in its conversation alone: its ids are none of these.
    request_id = f"chat:{body.request_id}" if body.request_id is not None else None
    place = await _place(call, context, request_id)
    request = TurnRequest(
        text=asked.text,
        images=picture_bytes(asked),
        settings=body.settings,
        request_id=request_id,
        instead_of=place.newest if place.is_instead else None,
    )
    streams = Streams(call, place.conversation_id)
    try:
        live = call.studio.turns.start(place.conversation_id, request, owner=call.owner, key=call.key)
        live.when_ended.append(lambda live: _ended(call, messages, live))
        await streams.begun(live)
    except AivistaError:
        call.api.contexts.keep(call.owner, [digest_of(context)], place)
        raise
    return streams.answer(live, 0)


async def _place(call: Call, context: Sequence[ContextMessage], request_id: str | None) -> Place:
    """Return where the turn follows: where the context was known to end, else in a new conversation of it."""
    if request_id is not None:
        known = await call.studio.turns.conversation_of_request(request_id, call.owner)
        if known is not None:
            return Place(known, None)
    place = call.api.contexts.take(call.owner, digest_of(context))
    if place is not None and await _stands(call, place):
        return place
    if not context:
        return Place((await call.studio.conversations.create(call.owner, request_id)).id, None)
    conversation = await call.studio.archive.take_context(context, call.owner)
    return Place(conversation.id, conversation.turns[-1].id)


async def _stands(call: Call, place: Place) -> bool:
    """Return whether the conversation is still as the context tells it: nobody has gone on in it since."""
    try:
        conversation = await call.studio.conversations.get(place.conversation_id, call.owner)
    except RequestRefused:
        return False
    newest = conversation.turns[-1].id if conversation.turns else None
    return newest == place.newest and not call.studio.turns.is_running(place.conversation_id, call.owner)


async def _ended(call: Call, messages: Sequence[ContextMessage], live: LiveTurn) -> None:
    """Remember what the caller will send next, or that the same may come again."""
    if live.turn_id is None or isinstance(live.last, TurnPaused):
        return
    if not isinstance(live.last, TurnDone):
        place = Place(live.conversation_id, live.turn_id, is_instead=True)
        call.api.contexts.keep(call.owner, [digest_of(messages[:-1])], place)
        return
    # The answer in words, with its pictures or without.
    outcome = await outcome_of(call.studio, live, call.words)
    text = text_of(live.events, call.words, separator="")
    before = [line_of(one.is_person, one.text, map(sha256_of, picture_bytes(one))) for one in messages]
    answers = ((), outcome.pictures, outcome.attempts)
    digests = [digest_of_lines([*before, line_of(False, text, _digests(pictures))]) for pictures in answers]
    call.api.contexts.keep(call.owner, digests, Place(live.conversation_id, live.turn_id))


def _digests(pictures: Iterable[Picture]) -> list[str]:
    return [picture.image.digest for picture in pictures]


def _message(role: Role, content: str | Sequence[Content]) -> ContextMessage:
    is_person = role != "assistant"
    if isinstance(content, str):
        return ContextMessage(is_person, content)
    words = "\n".join(one.text for one in content if isinstance(one, TextContent))
    pictures = tuple(("", data_of(one.image_url.url)) for one in content if isinstance(one, ImageContent))
    return ContextMessage(is_person, words, pictures)
