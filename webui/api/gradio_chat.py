"""The one public endpoint of the page, `/chat`: a turn streamed as JSON to scripts that use gradio_client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from agent import (
    AivistaError,
    Conversation,
    Decision,
    ErrorCode,
    ErrorInfo,
    LiveTurn,
    Picture,
    PictureReady,
    PlanReady,
    RequestRefused,
    Studio,
    ThoughtLog,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnState,
    TurnStopped,
)
from webui.api.outcomes import outcome_of, text_of
from webui.features.composer import ChosenSettings, Composer
from webui.features.thread.steps import step_sentence
from webui.features.thread.stream import batches
from webui.http.root_path import public_url
from webui.http.sessions import PageRequest, Sessions, Visitor
from webui.screen import Screen
from webui.words import Words

_log = logging.getLogger(__name__)

_DECISIONS = {"run": Decision(run=True), "drop": Decision(run=False)}


def add_chat_endpoint(screen: Screen, composer: Composer, concurrency_limit: int) -> None:
    """Add `/chat` to the page that is being laid out; its inputs are the composer's, by name."""
    # An invisible component is not drawn, and the page loads nothing for it.
    trigger, answer = gr.Button("chat", visible=False), gr.JSON(label="answer", visible=False)
    decided, opened = (gr.Textbox("", label=name, visible=False) for name in ("decision", "conversation"))

    async def chat(
        request: gr.Request,
        message: dict[str, Any],
        text_model: str = "flash",
        image_model: str = "auto",
        allow_search: bool = False,
        search_policy: str = "llm_only",
        aspect_ratio: str = "auto",
        resolution: str = "auto",
        number_of_images: str = "auto",
        review: str = "on",
        confirm: bool = False,
        negative_prompt: str = "",
        reference_mode: str = "auto",
        reference_count: str = "auto",
        decision: str = "",
        conversation: str = "",
    ) -> AsyncIterator[dict[str, Any]]:
        """Say something to the studio and stream what happens.

        Each answer is {"conversation", "text", "status", "pictures", "plan", "error", "done"}; send its `conversation`
        along to go on with it. A picture is {"handle", "url", "width", "height"}. With `confirm` a turn rests with its
        `plan`, a list of what would be painted: call again with its `conversation` and `decision` "run" or "drop".
        """
        script = _script_of(screen.sessions, request, conversation)
        base_url = public_url(request.request) if request.request else ""
        with report_failures(script.visitor.words):
            chosen = ChosenSettings(
                text_model=text_model,
                image_model=image_model,
                allow_search=allow_search,
                search_policy=search_policy,
                aspect_ratio=aspect_ratio,
                resolution=resolution,
                number_of_images=number_of_images,
                review=review,
                confirm=confirm,
                negative_prompt=negative_prompt,
                reference_mode=reference_mode,
                reference_count=reference_count,
            )
            turn = _ChatTurn(screen.studio(), screen.sessions, script, base_url)
            async for state in turn.run(message, chosen, decision):
                yield state

    trigger.click(
        chat,
        None,
        answer,
        inputs_kwargs={"message": composer.message, **composer.settings, "decision": decided, "conversation": opened},
        api_name="chat",
        concurrency_limit=concurrency_limit,
        show_progress="hidden",
        show_progress_on=[],
    )


@contextmanager
def report_failures(words: Words) -> Iterator[None]:
    """Log errors of Gradio's events completely, and show one sentence to the user: Gradio alone shows nothing."""
    try:
        yield
    except Exception as error:
        _log.exception("an event of the page failed")
        info = error.info if isinstance(error, AivistaError) else ErrorInfo(code=ErrorCode.INTERNAL)
        raise gr.Error(words.error(info), print_exception=False) from None


@dataclass(frozen=True)
class _Script:
    """A script and its conversation.

    Where visitors can come, a script without cookies has its cookie in the name of its conversation (`cookie`): the id
    alone, which appears in URLs, opens nothing there.
    """

    visitor: Visitor
    conversation_id: str
    cookie: str = ""


def _script_of(sessions: Sessions, request: PageRequest, conversation: str | None) -> _Script:
    """Return the script that asks to continue a conversation, as named by its last answer."""
    visitor = sessions.visitor(request)
    # JSON can hold half of a surrogate pair: no name has one, and no answer can repeat it.
    conversation = (conversation or "").encode("utf-8", "replace").decode()
    if visitor.token is not None or not sessions.is_shared:
        return _Script(visitor, conversation)
    conversation_id, _, brought = conversation.partition(":")
    cookie = brought if sessions.read(brought) else sessions.new_cookie()
    return _Script(sessions.visitor_of(cookie, visitor.words), conversation_id, cookie)


@dataclass(frozen=True)
class _ChatTurn:
    """A turn for a script. A picture's URL is signed for a day; `plan` is set while the turn waits for a decision;
    `error` is null, or `{"code", "message", "can_retry", "charged"}`. The last answer has `done` true."""

    studio: Studio
    sessions: Sessions
    script: _Script
    base_url: str

    async def run(
        self, message: dict[str, Any] | None, chosen: ChosenSettings, decision: str
    ) -> AsyncIterator[dict[str, Any]]:
        """Stream one turn, in a new conversation unless one is given. With a decision, resume the waiting plan."""
        visitor, place = self.script.visitor, self.script.conversation_id
        try:
            conversation = (
                await self.studio.conversations.get(place, visitor.owner)
                if place
                else await self.studio.conversations.create(visitor.owner)
            )
            live, events = await self._start(conversation, message or {}, chosen, decision)
        except RequestRefused as error:
            yield self._answer(place, error=self._error(error.info), done=True)
            return
        async for batch in batches(live.follow(live.before)):
            events += [event for _, event in batch]
            if not live.is_done:
                yield self._state(conversation.id, events)
        outcome = await outcome_of(self.studio, live, visitor.words, live.before)
        yield self._state(conversation.id, events, outcome.pictures, done=True)

    async def _start(
        self, conversation: Conversation, message: dict[str, Any], chosen: ChosenSettings, decision: str
    ) -> tuple[LiveTurn, list[TurnEvent]]:
        """Return the turn, and its events so far. Raises RequestRefused when no plan waits for the decision."""
        turns, owner = self.studio.turns, self.script.visitor.owner
        key = self.sessions.key(self.script.visitor)
        if not decision:
            request = TurnRequest(
                text=str(message.get("text") or ""),
                images=[Path(str(file)) for file in message.get("files") or []],
                settings=chosen.turn_settings(),
            )
            return turns.start(conversation.id, request, owner=owner, key=key), []
        waiting = next((one for one in reversed(conversation.turns) if one.state is TurnState.WAITING), None)
        if waiting is None or decision not in _DECISIONS:
            raise RequestRefused(ErrorCode.PLAN_GONE)
        before = await turns.on_record(conversation.id, waiting.id, owner)
        live = turns.decide(conversation.id, waiting.id, _DECISIONS[decision], owner=owner, key=key)
        return live, list(before)

    def _state(
        self,
        conversation_id: str,
        events: Sequence[TurnEvent],
        pictures: Sequence[Picture] | None = None,
        *,
        done: bool = False,
    ) -> dict[str, Any]:
        words, ending = self.script.visitor.words, events[-1] if done else None
        step = next((event for event in reversed(events) if isinstance(event, ThoughtLog)), None)
        status = step_sentence(words, step) if step is not None else ""
        if isinstance(ending, TurnStopped):
            status = words("stopped.text")
        plans = next((event.plans for event in reversed(events) if isinstance(event, PlanReady)), ())
        if pictures is None:
            pictures = [event.picture for event in events if isinstance(event, PictureReady)]
        return self._answer(
            conversation_id,
            text=text_of(events, words),
            status=status,
            pictures=[self._picture(conversation_id, one) for one in pictures],
            plan=[plan.model_dump(mode="json") for plan in plans] if isinstance(ending, TurnPaused) else None,
            error=self._error(ending.error) if isinstance(ending, TurnFailed) else None,
            done=done,
        )

    def _picture(self, conversation_id: str, picture: Picture) -> dict[str, Any]:
        name = picture.handle.lstrip("#")
        query = self.sessions.link_query(self.script.visitor.owner, conversation_id, name)
        url = f"{self.base_url}/media/{conversation_id}/{name}?{query}"
        return {"handle": picture.handle, "url": url, "width": picture.image.width, "height": picture.image.height}

    def _answer(self, conversation_id: str, **fields: Any) -> dict[str, Any]:
        # The name by which the script continues its conversation.
        has_cookie = bool(self.script.cookie and conversation_id)
        name = f"{conversation_id}:{self.script.cookie}" if has_cookie else conversation_id
        nothing: dict[str, Any] = {"text": "", "status": "", "pictures": [], "plan": None, "error": None}
        return {"conversation": name, **nothing, **fields}

    def _error(self, info: ErrorInfo) -> dict[str, Any]:
        message = self.script.visitor.words.error(info)
        return {"code": info.code.value, "message": message, "can_retry": info.can_retry, "charged": info.charged.value}
