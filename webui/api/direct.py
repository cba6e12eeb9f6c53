"""Direct mode: the caller sends the whole context with each call, and gets the stream of the next turn.

Played as it comes, a context would upload its pictures anew each time, and would lose what only a conversation has:
thought signatures, facts, handles, receipts, lineage. So the first context becomes a conversation: each message of the
user is a turn, each picture an upload with a handle. When a turn has ended there, the digest of what the caller will
send next (the context, the user's message, the answer as it was streamed) is remembered for that conversation. A call
that repeats exactly this continues there; old pictures are placeholders and are recalled as in any conversation,
because it is one.

Each digest is used once: of two calls with the same context, the second gets a conversation of its own, made from what
it sent. A turn that failed or was stopped gives its digest back, and the next try replaces it. A context that differs
by a letter, or is older than the process, becomes a new conversation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from cachetools import LRUCache
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from agent import (
    AivistaError,
    Asked,
    ContextMessage,
    LiveTurn,
    RequestRefused,
    TurnDone,
    TurnPaused,
    TurnRequest,
    TurnSettings,
)
from webui.api.calls import Call, TurnCall, data_of
from webui.api.events import DOCUMENTED, Streams
from webui.api.outcomes import outcome_of, text_of
from webui.api.problems import RefusalCode, Refused

router = APIRouter(prefix="/api/v1", tags=["direct mode"])

_MOST_MESSAGES = 400
_MOST_PLACES = 2000


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


@dataclass(frozen=True)
class ContextEnd:
    """Where a turn can follow in a conversation: after the turn `newest`, or in place of it when that one failed."""

    conversation_id: str
    newest: str | None
    is_instead: bool = False


@dataclass
class Contexts:
    """The known ends of contexts; the oldest are forgotten first."""

    _places: LRUCache[tuple[str, str], ContextEnd] = field(default_factory=lambda: LRUCache(_MOST_PLACES))

    def take(self, owner: str, digest: str) -> ContextEnd | None:
        """Return the end that a context leads to. From now on it belongs to this call alone."""
        found = self._places.get((owner, digest))
        if found is not None:
            for name in [name for name, place in self._places.items() if place is found]:
                del self._places[name]
        return found

    def keep(self, owner: str, digests: Iterable[str], place: ContextEnd) -> None:
        """Remember the end for these contexts."""
        for digest in digests:
            self._places[owner, digest] = place


@router.post("/chat", response_class=StreamingResponse, responses=DOCUMENTED)
async def chat(call: TurnCall, request: Request, body: ChatBody) -> StreamingResponse:
    """Run the turn that follows a context and stream what happens, as in conversation mode.

    Words of the answer come as `text`; send all of them, joined, as the next `assistant` message, and the conversation
    goes on with all it has. Its id is in `started`: pictures, receipts, decisions and cancelling go by that.
    """
    contexts: Contexts = request.app.state.contexts
    messages = [
        _message(one.role, one.content) if isinstance(one, RoleMessage) else _message(*one) for one in body.messages
    ]
    if not messages[0].is_person or not messages[-1].is_person:
        raise Refused(RefusalCode.CONTEXT_ORDER)
    *context, asked = messages
    lines = list(map(_fingerprint, messages))
    digest = _digest(lines[:-1])
    # In conversation mode a request id is unique within its conversation; here it is qualified.
    request_id = f"chat:{body.request_id}" if body.request_id is not None else None
    place = await _place(call, contexts, context, digest=digest, request_id=request_id)
    turn = TurnRequest(
        text=asked.text,
        images=[data for _, data in asked.pictures],
        settings=body.settings,
        request_id=request_id,
        instead_of=place.newest if place.is_instead else None,
    )

    async def remember(live: LiveTurn) -> None:
        """Remember what the caller will send next, or allow the same context again."""
        if live.turn_id is None or isinstance(live.last, TurnPaused):
            return
        if not isinstance(live.last, TurnDone):
            contexts.keep(call.owner, [digest], ContextEnd(live.conversation_id, live.turn_id, is_instead=True))
            return
        # The answer's text, with its pictures or without.
        outcome = await outcome_of(call.studio, live, call.words)
        text = text_of(live.events, call.words, separator="")
        answers = ([one.image.digest for one in made] for made in ((), outcome.pictures, outcome.attempts))
        digests = [_digest([*lines, _line_of(False, text, answer)]) for answer in answers]
        contexts.keep(call.owner, digests, ContextEnd(live.conversation_id, live.turn_id))

    try:
        live = call.studio.turns.start(place.conversation_id, turn, owner=call.owner, key=call.key)
        live.when_ended.append(remember)
        return await Streams(call, place.conversation_id).begun(live, 0)
    except AivistaError:
        contexts.keep(call.owner, [digest], place)
        raise


async def _place(
    call: Call, contexts: Contexts, context: Sequence[ContextMessage], *, digest: str, request_id: str | None
) -> ContextEnd:
    """Return where the turn follows: at the known end of the context, else in a new conversation made from it."""
    if request_id is not None:
        known = await call.studio.turns.conversation_of_request(request_id, call.owner)
        if known is not None:
            return ContextEnd(known, None)
    place = contexts.take(call.owner, digest)
    if place is not None and await _stands(call, place):
        return place
    if not context:
        return ContextEnd((await call.studio.conversations.create(call.owner, request_id)).id, None)
    conversation = await call.studio.archive.take_context(context, call.owner)
    return ContextEnd(conversation.id, conversation.turns[-1].id)


async def _stands(call: Call, place: ContextEnd) -> bool:
    """Return whether the conversation still ends as the context says: nobody has continued it since."""
    try:
        conversation = await call.studio.conversations.get(place.conversation_id, call.owner)
    except RequestRefused:
        return False
    newest = conversation.turns[-1].id if conversation.turns else None
    return newest == place.newest and not call.studio.turns.is_running(place.conversation_id, call.owner)


def _message(role: Role, content: str | Sequence[Content]) -> ContextMessage:
    is_person = role != "assistant"
    if isinstance(content, str):
        return ContextMessage(is_person, content)
    words = "\n".join(one.text for one in content if isinstance(one, TextContent))
    pictures = tuple(("", data_of(one.image_url.url)) for one in content if isinstance(one, ImageContent))
    return ContextMessage(is_person, words, pictures)


def _fingerprint(message: ContextMessage) -> str:
    return _line_of(message.is_person, message.text, [hashlib.sha256(data).hexdigest() for _, data in message.pictures])


def _line_of(is_person: bool, text: str, picture_digests: Sequence[str]) -> str:
    """Return the identity of a message: spacing makes no difference, and pictures count by content."""
    return json.dumps([is_person, " ".join(text.split()), list(picture_digests)])


def _digest(lines: Sequence[str]) -> str:
    """Return the digest of a context whose messages are these lines."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
