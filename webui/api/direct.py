"""Direct mode: the caller sends the whole context with each call, and gets the stream of the next turn.

How a context becomes a conversation, and is recognized when it comes again, is told in `webui.api.contexts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from agent import (
    AivistaError,
    Asked,
    ContextMessage,
    LiveTurn,
    PictureReady,
    RequestRefused,
    SmartCanvas,
    TurnDone,
    TurnPaused,
    TurnRequest,
    TurnSettings,
)
from webui.api.contexts import Place, digest_of, digest_of_lines, line_of, picture_bytes, sha256_of
from webui.api.door import Caller, Door, TheDoor, ThePayer
from webui.api.problems import RefusalCode, Refused
from webui.api.streams import DOCUMENTED, Streams
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
async def chat(door: TheDoor, caller: ThePayer, body: ChatBody) -> StreamingResponse:
    """Run the turn that follows a context and stream what happens, as in conversation mode.

    Words of the answer come as `text`; send all of them, joined, as the next `assistant` message, and the conversation
    goes on with all it has. Its id is in `started`: pictures, receipts, decisions and cancelling go by that.
    """
    told = [
        _told(message.role, message.content) if isinstance(message, RoleMessage) else _told(*message)
        for message in body.messages
    ]
    if not told[0].is_person or not told[-1].is_person:
        raise Refused(RefusalCode.CONTEXT_ORDER)
    call = _Call(door, caller, tuple(told[:-1]), told[-1])
    return await call.answer(body)


@dataclass(frozen=True)
class _Call:
    """One call: the context that it repeats, and what the person says now."""

    door: Door
    caller: Caller
    context: tuple[ContextMessage, ...]
    said: ContextMessage

    async def answer(self, body: ChatBody) -> StreamingResponse:
        contexts, owner = self.door.contexts, self.caller.owner
        # In conversation mode a request is known in its conversation alone: its ids are none of these.
        name = f"chat:{body.request_id}" if body.request_id is not None else None
        known = await self.door.studio().turns.conversation_of_request(name, owner) if name is not None else None
        place = Place(known, None) if known is not None else await self._place(name)
        request = TurnRequest(
            text=self.said.text,
            images=picture_bytes(self.said),
            settings=body.settings,
            request_id=name,
            instead_of=place.newest if place.is_instead else None,
        )
        streams = Streams(self.door, self.caller, place.conversation_id)
        turns = self.door.studio().turns
        try:
            live = turns.start(place.conversation_id, request, owner=owner, key=self.caller.key)
            live.when_ended.append(self._ended)
            await streams.begun(live)
        except AivistaError:
            contexts.keep(owner, [digest_of(self.context)], place)
            raise
        return streams.answer(live, 0)

    async def _place(self, name: str | None) -> Place:
        """Return where the turn follows: where the context was known to end, else in a new conversation of it."""
        studio, owner = self.door.studio(), self.caller.owner
        place = self.door.contexts.take(owner, digest_of(self.context))
        if place is not None and await self._stands(place):
            return place
        if not self.context:
            return Place((await studio.conversations.create(owner, name)).id, None)
        conversation = await studio.archive.take_context(self.context, owner)
        return Place(conversation.id, conversation.turns[-1].id)

    async def _stands(self, place: Place) -> bool:
        """Return whether the conversation is still as the context tells it: nobody has gone on in it since."""
        studio, owner = self.door.studio(), self.caller.owner
        try:
            conversation = await studio.conversations.get(place.conversation_id, owner)
        except RequestRefused:
            return False
        newest = conversation.turns[-1].id if conversation.turns else None
        return newest == place.newest and not studio.turns.is_running(place.conversation_id, owner)

    async def _ended(self, live: LiveTurn) -> None:
        """Remember what the caller will send next, or that the same may come again."""
        if live.turn_id is None or isinstance(live.last, TurnPaused):
            return
        contexts, owner = self.door.contexts, self.caller.owner
        if isinstance(live.last, TurnDone):
            place = Place(live.conversation_id, live.turn_id)
            contexts.keep(owner, await self._next(live, live.turn_id), place)
        else:
            place = Place(live.conversation_id, live.turn_id, is_instead=True)
            contexts.keep(owner, [digest_of(self.context)], place)

    async def _next(self, live: LiveTurn, turn_id: str) -> set[str]:
        """Return the digests of the contexts that may follow: the answer in words, with its pictures or without."""
        streams = Streams(self.door, self.caller, live.conversation_id)
        text = await streams.words_of(live.events)
        made = {
            event.picture.handle: event.picture.image.digest for event in live.events if isinstance(event, PictureReady)
        }
        turn = await streams.turn(turn_id)
        canvases = [one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas)]
        shown = [made[handle] for one in canvases for handle in one.handles if handle in made]
        told = (*self.context, self.said)
        before = [line_of(one.is_person, one.text, map(sha256_of, picture_bytes(one))) for one in told]
        return {
            digest_of_lines([*before, line_of(False, text, pictures)]) for pictures in ([], shown, list(made.values()))
        }


def _told(role: Role, content: str | Sequence[Content]) -> ContextMessage:
    is_person = role != "assistant"
    if isinstance(content, str):
        return ContextMessage(is_person, content)
    words = "\n".join(one.text for one in content if isinstance(one, TextContent))
    return ContextMessage(is_person, words, tuple(_pictures(content)))


def _pictures(content: Sequence[Content]) -> Iterator[tuple[str, bytes]]:
    for one in content:
        if isinstance(one, ImageContent):
            yield "", data_of(one.image_url.url)
