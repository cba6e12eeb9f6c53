"""The one public endpoint, `/chat`: a turn streamed as JSON to scripts that use gradio_client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import (
    AgentMessage,
    AskBack,
    Conversation,
    Decision,
    ErrorCode,
    ErrorInfo,
    Picture,
    PlanCard,
    RequestRefused,
    SmartCanvas,
    TargetNote,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnState,
    TurnStopped,
)
from webui.live import LiveTurn, advance_all, resumed
from webui.pacing import batches
from webui.panels.composer import Chosen
from webui.questions import question_sentence, target_sentence
from webui.screen import Screen
from webui.sessions import PageRequest, Sessions, Visitor
from webui.step_lines import step_sentence
from webui.streams import refusals_told, turn_of
from webui.words import Words

_DECISIONS = {"run": Decision(run=True), "drop": Decision(run=False)}


@dataclass(frozen=True)
class Said:
    """What a script says: a message with settings, or what it decided about the plan that waits in a conversation."""

    message: dict[str, Any] | None
    chosen: Chosen
    conversation_id: str
    decision: str = ""


@dataclass(frozen=True)
class Script:
    """A script, and which conversation it goes on with.

    One that keeps no cookie has it in the name of its conversation where others come as well: the id alone, which
    stands in addresses, opens nothing there.
    """

    visitor: Visitor
    conversation_id: str
    cookie: str = ""

    def told(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return an answer with the name by which the script shall go on with its conversation."""
        if not self.cookie or not answer["conversation"]:
            return answer
        return {**answer, "conversation": f"{answer['conversation']}:{self.cookie}"}


def script_of(sessions: Sessions, request: PageRequest, conversation: str | None) -> Script:
    """Return which script asks to go on with a conversation, as its last answer named it."""
    visitor = sessions.visitor(request)
    # JSON can hold half of a character: no name has one, and no answer can repeat it.
    conversation = (conversation or "").encode("utf-8", "replace").decode()
    if visitor.token is not None or not sessions.is_shared:
        return Script(visitor, conversation)
    conversation_id, _, brought = conversation.partition(":")
    cookie = brought if sessions.read(brought) else sessions.new_cookie()
    return Script(sessions.bearer(sessions.read(cookie), visitor.words), conversation_id, cookie)


@dataclass(frozen=True)
class ChatEndpoint:
    """Runs a turn for a script.

    Every answer is `{"conversation", "text", "status", "pictures", "plan", "error", "done"}`; the last has `done` true.
    Each picture is `{"handle", "url", "width", "height"}`, its URL signed for a day. `plan` is what would be painted
    when the turn rests for a decision, else null. `error` is null, or `{"code", "message", "can_retry", "charged"}`.
    """

    screen: Screen

    async def chat(self, visitor: Visitor, base_url: str, said: Said) -> AsyncIterator[dict[str, Any]]:
        """Stream one turn; without a conversation a new one begins. With a decision the plan that waits is meant."""
        try:
            conversation = await self._conversation(visitor, said.conversation_id)
            live, events = self._begin(visitor, conversation, said)
        except RequestRefused as error:
            yield _answer(said.conversation_id, error=_error(visitor, error.info), is_done=True)
            return
        async for batch in batches(refusals_told(events)):
            live = advance_all(live, batch)
            pictures = live.pictures if live.ending is None else await self._kept(visitor, conversation.id, live)
            yield self._state(visitor, base_url, conversation.id, live, pictures)

    async def _conversation(self, visitor: Visitor, conversation_id: str) -> Conversation:
        studio = self.screen.studio()
        if conversation_id:
            return await studio.conversations.get(conversation_id, visitor.owner)
        return await studio.conversations.create(visitor.owner)

    def _begin(
        self, visitor: Visitor, conversation: Conversation, said: Said
    ) -> tuple[LiveTurn, AsyncIterator[TurnEvent]]:
        """Return the turn as it is shown and its events. Raises RequestRefused when no plan waits for the decision."""
        studio, key = self.screen.studio(), self.screen.sessions.key(visitor)
        if said.decision:
            decision = _DECISIONS.get(said.decision)
            waiting = next((one for one in reversed(conversation.turns) if one.state is TurnState.WAITING), None)
            if decision is None or waiting is None:
                raise RequestRefused(ErrorCode.PLAN_GONE)
            events = studio.decide(conversation.id, waiting.id, decision, owner=visitor.owner, key=key)
            return resumed(waiting), events
        message = said.message or {}
        request = TurnRequest(
            text=str(message.get("text") or ""),
            images=[Path(str(file)) for file in message.get("files") or []],
            settings=said.chosen.turn_settings(),
        )
        return LiveTurn(request.text), studio.run_turn(conversation.id, request, owner=visitor.owner, key=key)

    async def _kept(self, visitor: Visitor, conversation_id: str, live: LiveTurn) -> Sequence[Picture]:
        """Return the pictures that the turn ended with: without those that a review sent back for a better one."""
        turn = turn_of(await self.screen.conversation(visitor, conversation_id), live.turn_id)
        canvases = [one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas)]
        earlier = {handle for canvas in canvases for handle in canvas.earlier}
        return [picture for picture in live.pictures if picture.handle not in earlier]

    def _state(
        self, visitor: Visitor, base_url: str, conversation_id: str, live: LiveTurn, made: Sequence[Picture]
    ) -> dict[str, Any]:
        pictures = [
            {
                "handle": picture.handle,
                "url": self._url(visitor, base_url, conversation_id, picture.handle.lstrip("#")),
                "width": picture.image.width,
                "height": picture.image.height,
            }
            for picture in made
        ]
        error = _error(visitor, live.ending.error) if isinstance(live.ending, TurnFailed) else None
        status = step_sentence(visitor.words, live.step) if live.step else ""
        if isinstance(live.ending, TurnStopped):
            status = visitor.words("stopped.text")
        text = _text(visitor.words, live)
        is_done = live.ending is not None
        return _answer(conversation_id, text, status, pictures, error, plan=_plan(live), is_done=is_done)

    def _url(self, visitor: Visitor, base_url: str, conversation_id: str, name: str) -> str:
        query = self.screen.sessions.link_query(visitor.owner, conversation_id, name)
        return f"{base_url}/media/{conversation_id}/{name}?{query}"


def _answer(
    conversation_id: str,
    text: str = "",
    status: str = "",
    pictures: list[dict[str, Any]] | None = None,
    error: dict[str, Any] | None = None,
    *,
    plan: list[dict[str, Any]] | None = None,
    is_done: bool,
) -> dict[str, Any]:
    return {
        "conversation": conversation_id,
        "text": text,
        "status": status,
        "pictures": pictures or [],
        "plan": plan,
        "error": error,
        "done": is_done,
    }


def _text(words: Words, live: LiveTurn) -> str:
    """Return the agent's words so far, what it asks back included."""
    said = []
    for block in live.blocks:
        if isinstance(block, AgentMessage):
            said.append(block.text)
        elif isinstance(block, AskBack):
            said.append(question_sentence(words, block.question, block.subject))
        elif isinstance(block, TargetNote):
            said.append(target_sentence(words, block.change))
    return "\n\n".join(said)


def _plan(live: LiveTurn) -> list[dict[str, Any]] | None:
    """Return what would be painted, while the turn rests for a decision about it."""
    if not isinstance(live.ending, TurnPaused):
        return None
    cards = (block for block in live.blocks if isinstance(block, PlanCard))
    return [plan.model_dump(mode="json") for card in cards for plan in card.plans]


def _error(visitor: Visitor, info: ErrorInfo) -> dict[str, Any]:
    said = visitor.words.error(info)
    return {"code": info.code.value, "message": said, "can_retry": info.can_retry, "charged": info.charged.value}
