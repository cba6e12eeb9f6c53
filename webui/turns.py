"""Turns of the page: how each begins, and what the page shows when it begins and ends. In between, the thread
follows it by a stream (`webui.features.thread`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, assert_never

from pydantic import SecretStr

from agent import (
    AivistaError,
    ConsentCard,
    Conversation,
    Decision,
    ErrorCode,
    ErrorInfo,
    LiveTurn,
    ModelRole,
    PlanCard,
    RequestRefused,
    Step,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnState,
    TurnStopped,
)
from webui.features.composer import ChosenSettings
from webui.features.thread.live import Ending, ShownTurn, advance, advance_all, resumed
from webui.features.thread.plans import RunPlan, after, decision_to_run
from webui.features.thread.render import Article, Block, article, render_live
from webui.features.thread.steps import failure
from webui.features.viewer import PanelPress, pressed_sentence
from webui.features.viewer.painter import PainterRefusal, read_painted
from webui.screen import LISTED, OVER, THREAD, Updates
from webui.shell.actions import ComposerState, Context
from webui.shell.templates import render
from webui.spend import shown_maximum
from webui.view import View
from webui.whole_json import read_value

# A turn is recorded within a few milliseconds, unless the database is very slow.
_FIRST_S = 2.0


@dataclass(frozen=True)
class Turns:
    """Starts turns in the conversation of the page, and shows their ends."""

    at: Context

    async def send(self, message: dict[str, Any] | None, sent: ComposerState) -> Updates:
        """Send what the composer and the painter hold. One press of Send is one turn, however often it arrives.

        A message is held back when the conversation has a newer turn than the page shows: it would change a picture
        that the user has not seen.
        """
        at, conversation = self.at, await self.at.conversation()
        painted = read_painted(sent.mask, sent.expand, sent.editing)
        if isinstance(painted, PainterRefusal):
            sentence = at.words(painted.key, handle=painted.handle, marked=painted.marked)
            return {**self._refused(conversation, sentence), OVER: {sent.request: "refused"}}
        if conversation is not None and not painted.editing and self._has_gone_on(conversation, sent.seen):
            refused = self._refused(conversation, at.words("sending.gone_on"))
            top = await at.screen.top(at.visitor, conversation)
            return {**refused, "top": top, OVER: {sent.request: "failed"}}
        request = TurnRequest(
            text=str((message or {}).get("text") or ""),
            images=[Path(str(file)) for file in (message or {}).get("files") or []],
            mask=painted.masks,
            expand=painted.expand,
            settings=sent.chosen.turn_settings(),
            editing=painted.editing or None,
            references=sent.references,
            roles=sent.given_roles,
            maximum_usd=shown_maximum(sent.price, sent.chosen),
            request_id=sent.request or None,
        )
        if conversation is None:
            conversation = await at.screen.studio().conversations.create(at.visitor.owner, sent.begun or None)
        return await self.begin(conversation, request)

    async def say(
        self,
        text: str,
        handle: str = "",
        chosen: ChosenSettings | None = None,
        images: Sequence[tuple[str, bytes]] = (),
        conversation: Conversation | None = None,
    ) -> Updates:
        """Send a sentence on behalf of the user, with a picture marked or with `images` of ours. The composer stays
        as it is."""
        if not text:
            return {}
        settings = (chosen or self.at.state.chosen).turn_settings()
        request = TurnRequest(text=text, images=images, settings=settings, editing=handle or None)
        conversation = conversation or await self.at.conversation()
        if conversation is None:
            conversation = await self.at.screen.studio().conversations.create(self.at.visitor.owner)
        return await self.begin(conversation, request)

    async def paint_again(self, press: PanelPress) -> Updates:
        """Paint a picture again beside it, from the same request: unchanged, or with the stated difference. A
        picture that no such request made is asked for in words."""
        at, request, conversation = self.at, None, await self.at.conversation()
        difference = at.words("panel.vary_difference") if press.action == "vary" else ""
        if conversation is not None and not at.screen.is_sketch(at.visitor):
            turns = at.screen.studio().turns
            try:
                request = await turns.repeated(conversation.id, press.handle, at.visitor.owner, difference=difference)
            except AivistaError as error:
                return self._refused(conversation, at.words.error(error.info))
        if conversation is None or request is None:
            return await self.say(pressed_sentence(at.words, press), press.handle)
        return await self.begin(conversation, request)

    async def retry(self, turn_id: str) -> Updates:
        """Resume a failed or interrupted turn; the studio sends it again where it cannot be resumed."""
        conversation = await self.at.conversation()
        turn = conversation.turn(turn_id) if conversation is not None else None
        if conversation is None or turn is None:
            return {}
        # A turn that the conversation has left behind stays where it is, and its text is sent again below.
        rests = turn.state in (TurnState.FAILED, TurnState.INTERRUPTED) and conversation.turns[-1].id == turn.id
        live = resumed(turn) if rests else ShownTurn(turn.text, resumed(turn).named)

        async def start() -> LiveTurn:
            return await self.at.screen.studio().turns.retry(
                conversation.id, turn.id, owner=self.at.visitor.owner, key=self._key
            )

        return await self._begin(conversation, live, start)

    async def run_plan(self, argument: str) -> Updates:
        """Run a waiting plan, with the user's changes."""
        run, words, conversation = read_value(RunPlan, argument), self.at.words, await self.at.conversation()
        if conversation is None:
            return {}
        if run is None:
            return self._refused(conversation, words("plan.unreadable"))
        card = _waiting(conversation.turn(run.turn))
        offers = self.at.screen.offers(self.at.visitor)
        try:
            decision = decision_to_run(words, run, card.plans if isinstance(card, PlanCard) else (), offers)
        except RequestRefused as error:
            return self._refused(conversation, words.error(error.info))
        return await self._decide(conversation, run.turn, decision)

    async def decide(self, turn_id: str, *, is_allowed: bool) -> Updates:
        """Allow or refuse waiting tool calls; refusing a plan drops it."""
        conversation = await self.at.conversation()
        return await self._decide(conversation, turn_id, Decision(run=is_allowed)) if conversation is not None else {}

    async def begin(self, conversation: Conversation, request: TurnRequest, live: ShownTurn | None = None) -> Updates:
        """Start the turn of a request, shown as `live` at first, and return what the page shows then."""

        async def start() -> LiveTurn:
            turns = self.at.screen.studio().turns
            return turns.start(conversation.id, request, owner=self.at.visitor.owner, key=self._key)

        live = live or ShownTurn(request.text, request.marked)
        return await self._begin(conversation, live, start, request.request_id)

    async def end(self, turn_id: str, kept: Sequence[str]) -> Updates:
        """Return what the page shows once a turn has ended, whoever started it, and which of the requests that the
        page `kept` came to nothing: a turn that ends before it is recorded reports that to nobody."""
        turns, owner = self.at.screen.studio().turns, self.at.visitor.owner
        lost = {one: "failed" for one in kept if await turns.conversation_of_request(one, owner) is None}
        updates = await self._end(turn_id)
        return {**updates, OVER: lost | updates.get(OVER, {})}

    async def _end(self, turn_id: str) -> Updates:
        at, conversation_id = self.at, self.at.state.conversation
        turns, owner = at.screen.studio().turns, at.visitor.owner
        if not turn_id:
            # The thread already says what became of it.
            frame = await at.screen.frame(at.visitor, await at.conversation())
            return {**frame, LISTED: {"ended": "failed"}}
        told = turns.find(conversation_id, turn_id, owner)
        try:
            # For a turn that was resumed, only the events since then.
            events = told.events[told.before :] if told else await turns.on_record(conversation_id, turn_id, owner)
        except RequestRefused:
            return {THREAD: at.screen.thread(at.visitor, await at.conversation())}
        return await self._ended(conversation_id, advance_all(ShownTurn("", turn_id=turn_id), events))

    async def _begin(
        self,
        conversation: Conversation,
        live: ShownTurn,
        start: Callable[[], Awaitable[LiveTurn]],
        request_id: str | None = None,
    ) -> Updates:
        screen, visitor = self.at.screen, self.at.visitor
        ahead = 0 if live.turn_id else screen.studio().turns.count(conversation.id, visitor.owner)
        failure: ErrorInfo | None = None
        try:
            told = await start()
            # A turn that fails before it is recorded may be over before it can be followed.
            async with asyncio.timeout(None if ahead else _FIRST_S):
                first = None if ahead else await told.first()
            failure = first.error if isinstance(first, TurnFailed) else None
        except AivistaError as error:
            failure = error.info
        except TimeoutError:
            pass
        if failure is not None:
            failed = advance(live, TurnFailed(error=failure))
            return await self._ended(conversation.id, failed, request_id, is_answer=True)
        if ahead:
            live = replace(live, step=ThoughtLog(step=Step.WAITING, parameters={"count": ahead}))
        updates = {THREAD: screen.thread(visitor, conversation, live=live, is_answer=True), "welcome": ""}
        # A conversation with a title is already shown with the cost of all its branches; a new one has just got its
        # title.
        if not conversation.title:
            now = await screen.conversation(visitor, conversation.id) or conversation
            updates["top"] = await screen.top(visitor, now)
        return updates

    async def _ended(
        self, conversation_id: str, live: ShownTurn, request_id: str | None = None, *, is_answer: bool = False
    ) -> Updates:
        screen, visitor, ending = self.at.screen, self.at.visitor, live.ending
        conversation = await screen.conversation(visitor, conversation_id)
        turn = conversation.turn(live.turn_id) if conversation is not None else None
        request_id = request_id or (turn.request_id if turn is not None else None)
        is_another, how = bool(live.pictures) or live.has_gone_back, "used"
        # A turn that was stopped while it waited is not recorded: its text goes back into the composer.
        if isinstance(ending, TurnFailed) or not live.is_on_record:
            how = "failed"
        elif isinstance(ending, TurnDone) and not is_another:
            how = "unused"
        learnt = screen.clear_key_failure(visitor, self._answered(turn, live))
        if isinstance(ending, TurnFailed):
            learnt |= screen.record_key_failure(visitor, ending.error, ending.node)
        newest = (conversation.edit_target or "") if conversation and is_another else ""
        more = _unrecorded(screen.view(visitor, conversation_id), turn, live)
        return {
            **await screen.frame(visitor, conversation),
            LISTED: {"ended": _how(ending), "newest": newest},
            **learnt,
            "welcome": "",
            # At the end of a turn the next message may have been sent already; it stays until its own answer comes.
            THREAD: screen.thread(visitor, conversation, more=more, is_answer=is_answer),
            OVER: {request_id: how} if request_id else {},
        }

    async def _decide(self, conversation: Conversation, turn_id: str, decision: Decision) -> Updates:
        turn = conversation.turn(turn_id)
        card = _waiting(turn)
        if turn is None or card is None:
            return self._refused(conversation, self.at.words.error(ErrorInfo(code=ErrorCode.PLAN_GONE)))

        async def start() -> LiveTurn:
            turns = self.at.screen.studio().turns
            return turns.decide(conversation.id, turn_id, decision, owner=self.at.visitor.owner, key=self._key)

        return await self._begin(conversation, resumed(turn, self._decided(card, decision)), start)

    def _decided(self, card: PlanCard | ConsentCard, decision: Decision) -> PlanCard | ConsentCard:
        if isinstance(card, ConsentCard):
            return card.model_copy(update={"state": "allowed" if decision.run else "refused"})
        plans = after(card.plans, decision, self.at.screen.offers(self.at.visitor))
        return PlanCard(plans=plans, state="run" if decision.run else "dropped")

    def _has_gone_on(self, conversation: Conversation, seen: str) -> bool:
        """Whether the conversation's newest turn has ended, and is another than the page's newest, if it told one."""
        is_another = bool(seen and conversation.turns) and conversation.turns[-1].id != seen
        return is_another and not self.at.screen.at_work(conversation)

    def _refused(self, conversation: Conversation | None, sentence: str) -> Updates:
        """Return the thread with the reason why a request was refused."""
        more = article("", [Block(render("thread/refused.html", self.at.words, sentence=sentence))])
        return {THREAD: self.at.screen.thread(self.at.visitor, conversation, more=more, is_answer=True)}

    def _answered(self, turn: Turn | None, live: ShownTurn) -> set[str]:
        """Return the ids of the models that answered in a turn, as far as its events tell."""
        answered = {one.receipt.model for one in live.pictures if one.receipt is not None}
        has_said_something = turn is not None and turn.usage.output_tokens + turn.usage.thought_tokens > 0
        has_painter_failed = isinstance(live.ending, TurnFailed) and live.ending.node == "executor"
        if turn is not None and has_said_something and (isinstance(live.ending, TurnDone) or has_painter_failed):
            catalogue = self.at.screen.studio().catalogue
            answered.add(catalogue.keyed(ModelRole(turn.settings.text_model)).id)
        return answered

    @property
    def _key(self) -> SecretStr | None:
        return self.at.screen.sessions.key(self.at.visitor)


def _how(ending: Ending | None) -> str:
    match ending:
        case TurnFailed():
            return "failed"
        case TurnPaused():
            return "waiting"
        case TurnStopped():
            return "stopped"
        case TurnDone() | None:
            return "done"
        case _:
            assert_never(ending)


def _unrecorded(view: View, turn: Turn | None, live: ShownTurn) -> Article | None:
    """Return how a turn ended that was not recorded; `turn` is what the records have of it."""
    if turn is None:
        return render_live(view, live, 0)
    if isinstance(live.ending, TurnFailed) and turn.state is not TurnState.FAILED:
        return article("", [Block(failure(view, live.ending.error, "", live.ending.rewordings))])
    return None


def _waiting(turn: Turn | None) -> PlanCard | ConsentCard | None:
    """Return the plan or the tool calls that wait for the user in a turn, if there are any."""
    if turn is None or turn.state is not TurnState.WAITING:
        return None
    cards = (one for one in turn.components if isinstance(one, PlanCard | ConsentCard))
    return next((one for one in cards if one.state == "pending"), None)
