"""A turn on the page: sent, said by a panel, followed, decided about, retried."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from agent import (
    AivistaError,
    ConsentCard,
    Conversation,
    Decision,
    ErrorCode,
    ErrorInfo,
    PlanCard,
    ReferenceRole,
    RequestRefused,
    Turn,
    TurnRequest,
    TurnState,
)
from webui import notices
from webui.action_panels import PanelPress, pressed_sentence
from webui.live import LiveTurn, resumed
from webui.mask_wires import WireRefusal, read_painted
from webui.panels.chat import to_messages
from webui.panels.composer import Chosen
from webui.plan_answers import after, decision_to_run, read_run
from webui.render import Block, Card, render_conversation
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.spend import shown_maximum
from webui.streams import Stream, Streams, turn_of
from webui.tabs import Returned, Tab


@dataclass(frozen=True)
class Fields:
    """What the painter's two hidden fields hold, unread."""

    mask: str = ""
    expand: str = ""


UNPAINTED = Fields()


@dataclass(frozen=True)
class Sent(Returned):
    """What Send took out of the composer and of the painter."""

    fields: Fields = UNPAINTED

    @property
    def unused(self) -> Returned | None:
        """The mask or the expansion: the agent asked back, and the next message is about the same part."""
        return Sent("", (), self.fields) if self.fields != UNPAINTED else None


@dataclass(frozen=True)
class Turns:
    """Runs turns for the tabs of the page."""

    screen: Screen

    async def send(
        self,
        visitor: Visitor,
        tab: Tab,
        message: dict[str, Any] | None,
        chosen: Chosen,
        conversation_id: str,
        editing: str,
        references: tuple[str, ...],
        fields: Fields = UNPAINTED,
        roles: Mapping[str, ReferenceRole] | None = None,
        request_id: str | None = None,
        seen: str = "",
    ) -> AsyncIterator[Updates]:
        """Send what the composer and the painter hold, and stream the turn into the thread. `request_id` is the
        press's, as the page tells it, and `seen` the newest turn that the page shows: words that were said to an older
        state of the conversation are held back, because they would change a picture that the person has not seen."""
        text = str((message or {}).get("text") or "")
        files = tuple(str(file) for file in (message or {}).get("files") or [])
        sent = Sent(text, files, fields)
        # By the words alone: the painter's fields are emptied a moment before the composer is.
        is_echo = tab.is_echo(Returned(text, files), time.monotonic())
        if tab.is_repeated(request_id) if request_id else is_echo:
            yield {self.screen.panels.chat.thread: gr.skip()}
            return
        has_begun = False
        try:
            painted = read_painted(fields.mask, fields.expand, editing)
            if isinstance(painted, WireRefusal):
                conversation = await self.screen.conversation(visitor, conversation_id)
                said = visitor.words(painted.key, handle=painted.handle, marked=painted.marked)
                tab.returned = Returned(text, files)
                yield self._refused(visitor, conversation, said)
                return
            newer = await self._newer(visitor, tab, conversation_id, seen) if seen and not painted.editing else None
            if newer is not None:
                said = visitor.words("sending.gone_on")
                tab.returned = sent
                yield {
                    **self._refused(visitor, newer, said),
                    self.screen.panels.chat.top: await self.screen.top(visitor, newer),
                }
                return
            if fields != UNPAINTED:
                yield self.screen.unpainted()
            request = TurnRequest(
                text=text,
                images=[Path(file) for file in files],
                mask=painted.masks,
                expand=painted.expand,
                settings=chosen.turn_settings(),
                editing=painted.editing or None,
                references=references,
                roles=roles or {},
                maximum_usd=shown_maximum(tab, chosen),
            )
            async for updates in self._run(visitor, tab, conversation_id, request, sent):
                has_begun = True
                yield updates
        except Exception:
            # The page has emptied the box when the press was taken: until the turn stands in the thread, it comes back.
            tab.returned = tab.returned if has_begun else sent
            raise

    async def say(
        self,
        visitor: Visitor,
        tab: Tab,
        conversation_id: str,
        text: str,
        handle: str,
        chosen: Chosen,
        images: Sequence[tuple[str, bytes]] = (),
    ) -> AsyncIterator[Updates]:
        """Send a sentence that the page says for the person, with a picture marked or with `images` of ours; the
        composer stays as it is."""
        if not text or tab.is_echo(Returned(f"{handle} {text}"), time.monotonic()):
            return
        request = TurnRequest(text=text, images=images, settings=chosen.turn_settings(), editing=handle or None)
        async for updates in self._run(visitor, tab, conversation_id, request, None):
            yield updates

    async def paint_again(
        self, visitor: Visitor, tab: Tab, conversation_id: str, press: PanelPress, chosen: Chosen
    ) -> AsyncIterator[Updates]:
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
                yield self._refused(visitor, conversation, words.error(error.info))
                return
        if request is None:
            said = pressed_sentence(words, press)
            async for updates in self.say(visitor, tab, conversation_id, said, press.handle, chosen):
                yield updates
        elif not tab.is_echo(Returned(f"{press.action} {press.handle}"), time.monotonic()):
            async for updates in self._run(visitor, tab, conversation_id, request, None):
                yield updates

    async def retry(self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str) -> AsyncIterator[Updates]:
        """Let a turn that failed or was cut off go on; the studio sends it again where it cannot."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        turn = turn_of(conversation, turn_id)
        if conversation is None or turn is None or tab.is_echo(Returned(f"retry {turn_id}"), time.monotonic()):
            return
        key = self.screen.sessions.key(visitor)
        events = self.screen.studio().retry(conversation.id, turn.id, owner=visitor.owner, key=key)
        # One that the conversation has left behind stays where it is, and its words are said once more below.
        rests = turn.state in (TurnState.FAILED, TurnState.INTERRUPTED) and conversation.turns[-1].id == turn.id
        live = resumed(turn) if rests else LiveTurn(turn.text, resumed(turn).named)
        async for updates in Streams(self.screen).show(visitor, tab, Stream(conversation, live, events)):
            yield updates

    async def run_plan(self, visitor: Visitor, tab: Tab, conversation_id: str, argument: str) -> AsyncIterator[Updates]:
        """Run a plan that waits, with what the person changed in it."""
        run = read_run(argument)
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return
        if run is None:
            yield self._refused(visitor, conversation, visitor.words("plan.unreadable"))
            return
        card = _waiting(turn_of(conversation, run.turn))
        offers = self.screen.offers(visitor)
        try:
            decision = decision_to_run(visitor.words, run, card.plans if isinstance(card, PlanCard) else (), offers)
        except RequestRefused as error:
            yield self._refused(visitor, conversation, visitor.words.error(error.info))
            return
        async for updates in self._decide(visitor, tab, conversation, run.turn, decision):
            yield updates

    async def drop_plan(self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str) -> AsyncIterator[Updates]:
        """Drop a plan that waits: nothing is painted."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is not None:
            async for updates in self._decide(visitor, tab, conversation, turn_id, Decision(run=False)):
                yield updates

    async def consent(
        self, visitor: Visitor, tab: Tab, conversation_id: str, turn_id: str, *, is_allowed: bool
    ) -> AsyncIterator[Updates]:
        """Let calls run that wait for the person, or have the agent go on without them."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is not None:
            async for updates in self._decide(visitor, tab, conversation, turn_id, Decision(run=is_allowed)):
                yield updates

    def is_at_work(self, conversation: Conversation) -> bool:
        """Whether a turn of the conversation is at work, or was when the conversation was read.

        One that ended meanwhile is followed, too: its end has not been shown.
        """
        return _running(conversation) is not None or self.screen.studio().turns.is_running(
            conversation.id, conversation.owner
        )

    async def follow(self, visitor: Visitor, tab: Tab, conversation: Conversation) -> AsyncIterator[Updates]:
        """Go on showing a turn that was at work when the page was loaded."""
        turn = _running(conversation)
        live = replace(resumed(turn), beside=conversation.forks.get(turn.id, ())) if turn else LiveTurn("")
        events = self.screen.studio().attach(conversation.id, visitor.owner)
        async for updates in Streams(self.screen).show(visitor, tab, Stream(conversation, live, events)):
            yield updates

    async def _run(
        self, visitor: Visitor, tab: Tab, conversation_id: str, request: TurnRequest, sent: Returned | None
    ) -> AsyncIterator[Updates]:
        studio = self.screen.studio()
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            conversation = await studio.conversations.create(visitor.owner)
        live = LiveTurn(request.text, request.marked)
        key = self.screen.sessions.key(visitor)
        events = studio.run_turn(conversation.id, request, owner=visitor.owner, key=key)
        async for updates in Streams(self.screen).show(visitor, tab, Stream(conversation, live, events, sent)):
            yield updates

    async def _decide(
        self, visitor: Visitor, tab: Tab, conversation: Conversation, turn_id: str, decision: Decision
    ) -> AsyncIterator[Updates]:
        turn = turn_of(conversation, turn_id)
        card = _waiting(turn)
        if turn is None or card is None:
            gone = visitor.words.error(ErrorInfo(code=ErrorCode.PLAN_GONE))
            yield self._refused(visitor, conversation, gone)
            return
        if tab.is_echo(Returned(f"decide {turn_id}"), time.monotonic()):
            return
        live = resumed(turn, self._decided(visitor, card, decision))
        key = self.screen.sessions.key(visitor)
        events = self.screen.studio().decide(conversation.id, turn.id, decision, owner=visitor.owner, key=key)
        async for updates in Streams(self.screen).show(visitor, tab, Stream(conversation, live, events)):
            yield updates

    def _decided(self, visitor: Visitor, card: PlanCard | ConsentCard, decision: Decision) -> PlanCard | ConsentCard:
        if isinstance(card, ConsentCard):
            return card.model_copy(update={"state": "allowed" if decision.run else "refused"})
        plans = after(card.plans, decision, self.screen.offers(visitor))
        return PlanCard(plans=plans, state="run" if decision.run else "dropped")

    async def _newer(self, visitor: Visitor, tab: Tab, conversation_id: str, seen: str) -> Conversation | None:
        """Return the conversation where it has a newest turn at rest that this tab does not show."""
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None or not conversation.turns or self.is_at_work(conversation):
            return None
        newest = conversation.turns[-1].id
        return conversation if newest != seen and newest not in tab.shown_turns else None

    def _refused(self, visitor: Visitor, conversation: Conversation | None, sentence: str) -> Updates:
        """Return the thread with the reason why what was asked for was not carried out."""
        blocks: list[Block] = []
        if conversation is not None:
            view = self.screen.view(visitor, conversation.id)
            blocks += render_conversation(view, conversation, without=self.screen.running_turn(conversation))
        blocks.append(Card("assistant", notices.refused(visitor.words, sentence)))
        return {self.screen.panels.chat.thread: to_messages(blocks)}


def give_back(tab: Tab, message: dict[str, Any] | None) -> Any:
    """Return the composer's value after a failure: what was sent, unless something new has been typed meanwhile."""
    returned, tab.returned = tab.returned, None
    is_free = not message or not (message.get("text") or message.get("files")) or _still_holds(message, returned)
    has_any = returned is not None and bool(returned.text or returned.files)
    return gr.update(value=returned.value) if returned is not None and has_any and is_free else gr.skip()


def paint_back(tab: Tab, mask: str, expand: str) -> tuple[Any, Any]:
    """Return the painter's two fields after a failure: what was sent, unless something was painted meanwhile.

    To be called before `give_back`, which forgets what was sent.
    """
    sent = tab.returned
    if not isinstance(sent, Sent):
        return gr.skip(), gr.skip()
    is_free = (mask or "") in ("", sent.fields.mask) and (expand or "") in ("", sent.fields.expand)
    if not is_free:
        return gr.skip(), gr.skip()
    return sent.fields.mask, sent.fields.expand


def _still_holds(message: dict[str, Any], returned: Returned | None) -> bool:
    """Whether the composer holds what was sent: a page that is busy asks before it has emptied it."""
    files = tuple(str(file) for file in message.get("files") or [])
    text = str(message.get("text") or "")
    return returned is not None and (text, files) == (returned.text, tuple(map(str, returned.files)))


def words_of_turn(conversation: Conversation | None, turn_id: str) -> str:
    """Return the words a turn was sent with, to edit them."""
    turn = turn_of(conversation, turn_id)
    return turn.text if turn else ""


def _running(conversation: Conversation) -> Turn | None:
    """Return the newest turn that was at work when the conversation was read, if any was."""
    return next((turn for turn in reversed(conversation.turns) if turn.state is TurnState.RUNNING), None)


def _waiting(turn: Turn | None) -> PlanCard | ConsentCard | None:
    """Return the plan or the calls that wait for the person in a turn, if any do."""
    if turn is None or turn.state is not TurnState.WAITING:
        return None
    cards = (one for one in turn.components if isinstance(one, PlanCard | ConsentCard))
    return next((one for one in cards if one.state == "pending"), None)
