"""A turn on the page: sent, said by a panel, followed, decided about, retried."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import (
    AivistaError,
    ConsentCard,
    Conversation,
    Decision,
    ErrorCode,
    ErrorInfo,
    PlanCard,
    RequestRefused,
    Turn,
    TurnRequest,
    TurnState,
)
from webui import notices
from webui.features.viewer.actions import PanelPress, pressed_sentence
from webui.live import LiveTurn, resumed
from webui.mask_wires import WireRefusal, read_painted
from webui.panels.composer import Chosen
from webui.plan_answers import after, decision_to_run, read_run
from webui.render import Block
from webui.screen import PAINTED, THREAD, Screen, Updates
from webui.sessions import Visitor
from webui.shell.actions import Composed
from webui.spend import shown_maximum
from webui.streams import TurnEnds, turn_of
from webui.tabs import Returned, Tab, Underway


@dataclass(frozen=True)
class Turns:
    """Runs turns for the tabs of the page."""

    screen: Screen

    async def send(self, visitor: Visitor, tab: Tab, message: dict[str, Any] | None, place: Composed) -> Updates:
        """Send what the composer and the painter hold.

        Words that were said to an older state of the conversation are held back, because they would change a picture
        that the person has not seen.
        """
        text = str((message or {}).get("text") or "")
        files = tuple(str(file) for file in (message or {}).get("files") or [])
        sent = Returned(text, files, place.mask, place.expand)
        # By the words alone: the painter's fields are emptied a moment before the composer is.
        is_echo = tab.is_echo(Returned(text, files), time.monotonic())
        if tab.is_repeated(place.request) if place.request else is_echo:
            return {}
        try:
            painted = read_painted(place.mask, place.expand, place.editing)
            if isinstance(painted, WireRefusal):
                conversation = await self.screen.conversation(visitor, place.conversation)
                said = visitor.words(painted.key, handle=painted.handle, marked=painted.marked)
                tab.returned = Returned(text, files)
                return self._refused(visitor, conversation, said)
            newer = None
            if place.seen and not painted.editing:
                newer = await self._newer(visitor, place.conversation, place.seen)
            if newer is not None:
                tab.returned = sent
                refused = self._refused(visitor, newer, visitor.words("sending.gone_on"))
                return {**refused, "top": await self.screen.top(visitor, newer)}
            request = TurnRequest(
                text=text,
                images=[Path(file) for file in files],
                mask=painted.masks,
                expand=painted.expand,
                settings=place.chosen.turn_settings(),
                editing=painted.editing or None,
                references=place.references,
                roles=place.given_roles,
                maximum_usd=shown_maximum(tab, place.chosen),
            )
            begun = await self._run(visitor, tab, place.conversation, request, sent)
        except Exception:
            # The page has emptied the box when the press was taken: until the turn has begun, it comes back.
            tab.returned = sent
            raise
        return {**begun, **({PAINTED: {"mask": "", "expand": ""}} if sent.unused else {})}

    async def say(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation_id: str,
        text: str,
        handle: str,
        chosen: Chosen,
        images: Sequence[tuple[str, bytes]] = (),
    ) -> Updates:
        """Send a sentence that the page says for the person, with a picture marked or with `images` of ours; the
        composer stays as it is."""
        if not text or tab.is_echo(Returned(f"{handle} {text}"), time.monotonic()):
            return {}
        request = TurnRequest(text=text, images=images, settings=chosen.turn_settings(), editing=handle or None)
        return await self._run(visitor, tab, conversation_id, request, None)

    async def paint_again(
        self, visitor: Visitor, tab: Tab, conversation_id: str, press: PanelPress, chosen: Chosen
    ) -> Updates:
        """Paint a picture once more beside it, from the same request: with nothing changed, or with the difference that
        is stated. One that no such request made is asked for in words."""
        words, studio, request = visitor.words, self.screen.studio(), None
        difference = words("panel.vary_difference") if press.action == "vary" else ""
        if not self.screen.is_sketch(visitor):
            try:
                request = await studio.turns.repeated(
                    conversation_id, press.handle, visitor.owner, difference=difference
                )
            except AivistaError as error:
                conversation = await self.screen.conversation(visitor, conversation_id)
                return self._refused(visitor, conversation, words.error(error.info))
        if request is None:
            said = pressed_sentence(words, press)
            return await self.say(visitor, tab, conversation_id, said, press.handle, chosen)
        if tab.is_echo(Returned(f"{press.action} {press.handle}"), time.monotonic()):
            return {}
        return await self._run(visitor, tab, conversation_id, request, None)

    async def retry(self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str) -> Updates:
        """Let a turn that failed or was cut off go on; the studio sends it again where it cannot."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        turn = turn_of(conversation, turn_id)
        if conversation is None or turn is None or tab.is_echo(Returned(f"retry {turn_id}"), time.monotonic()):
            return {}
        turns, key = self.screen.studio().turns, self.screen.sessions.key(visitor)

        async def start() -> Underway:
            return await turns.retry(conversation.id, turn.id, owner=visitor.owner, key=key)

        # One that the conversation has left behind stays where it is, and its words are said once more below.
        rests = turn.state in (TurnState.FAILED, TurnState.INTERRUPTED) and conversation.turns[-1].id == turn.id
        live = resumed(turn) if rests else LiveTurn(turn.text, resumed(turn).named)
        return await TurnEnds(self.screen).begin(visitor, tab, conversation, live, start)

    async def run_plan(self, visitor: Visitor, tab: Tab, conversation_id: str, argument: str) -> Updates:
        """Run a plan that waits, with what the person changed in it."""
        run = read_run(argument)
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        if run is None:
            return self._refused(visitor, conversation, visitor.words("plan.unreadable"))
        card = _waiting(turn_of(conversation, run.turn))
        offers = self.screen.offers(visitor)
        try:
            decision = decision_to_run(visitor.words, run, card.plans if isinstance(card, PlanCard) else (), offers)
        except RequestRefused as error:
            return self._refused(visitor, conversation, visitor.words.error(error.info))
        return await self._decide(visitor, tab, conversation, run.turn, decision)

    async def decide(
        self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str, *, is_allowed: bool
    ) -> Updates:
        """Let calls run that wait for the person, or have the agent go on without them; or drop a plan that waits."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        return await self._decide(visitor, tab, conversation, turn_id, Decision(run=is_allowed))

    async def begin(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation: Conversation,
        request: TurnRequest,
        sent: Returned | None = None,
        live: LiveTurn | None = None,
    ) -> Updates:
        """Start the turn of a request, shown as `live` at first, and return what the page shows then."""
        turns, key = self.screen.studio().turns, self.screen.sessions.key(visitor)

        async def start() -> Underway:
            return turns.start(conversation.id, request, owner=visitor.owner, key=key)

        live = live or LiveTurn(request.text, request.marked)
        return await TurnEnds(self.screen).begin(visitor, tab, conversation, live, start, sent)

    async def _run(
        self, visitor: Visitor, tab: Tab, conversation_id: str, request: TurnRequest, sent: Returned | None
    ) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            conversation = await self.screen.studio().conversations.create(visitor.owner)
        return await self.begin(visitor, tab, conversation, request, sent)

    async def _decide(
        self, visitor: Visitor, tab: Tab, conversation: Conversation, turn_id: str, decision: Decision
    ) -> Updates:
        turn = turn_of(conversation, turn_id)
        card = _waiting(turn)
        if turn is None or card is None:
            gone = visitor.words.error(ErrorInfo(code=ErrorCode.PLAN_GONE))
            return self._refused(visitor, conversation, gone)
        if tab.is_echo(Returned(f"decide {turn_id}"), time.monotonic()):
            return {}
        turns, key = self.screen.studio().turns, self.screen.sessions.key(visitor)

        async def start() -> Underway:
            return turns.decide(conversation.id, turn_id, decision, owner=visitor.owner, key=key)

        live = resumed(turn, self._decided(visitor, card, decision))
        return await TurnEnds(self.screen).begin(visitor, tab, conversation, live, start)

    def _decided(self, visitor: Visitor, card: PlanCard | ConsentCard, decision: Decision) -> PlanCard | ConsentCard:
        if isinstance(card, ConsentCard):
            return card.model_copy(update={"state": "allowed" if decision.run else "refused"})
        plans = after(card.plans, decision, self.screen.offers(visitor))
        return PlanCard(plans=plans, state="run" if decision.run else "dropped")

    async def _newer(self, visitor: Visitor, conversation_id: str, seen: str) -> Conversation | None:
        """Return the conversation where it has a newest turn at rest that this tab does not show."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None or not conversation.turns or self.screen.at_work(conversation):
            return None
        return conversation if conversation.turns[-1].id != seen else None

    def _refused(self, visitor: Visitor, conversation: Conversation | None, sentence: str) -> Updates:
        """Return the thread with the reason why what was asked for was not carried out."""
        more = [Block("assistant", notices.refused(visitor.words, sentence))]
        return {THREAD: self.screen.thread(visitor, conversation, more=more, is_answer=True)}


def _waiting(turn: Turn | None) -> PlanCard | ConsentCard | None:
    """Return the plan or the calls that wait for the person in a turn, if any do."""
    if turn is None or turn.state is not TurnState.WAITING:
        return None
    cards = (one for one in turn.components if isinstance(one, PlanCard | ConsentCard))
    return next((one for one in cards if one.state == "pending"), None)
