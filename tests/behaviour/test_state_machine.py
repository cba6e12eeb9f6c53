"""Whatever people do one after the other, nothing of theirs is lost, counted twice, or anybody else's.

A model in Python, some dictionaries, is held against the studio after every step: conversations and their branches,
pictures and what each was made from, the gallery, the trash, what was spent, and what another start finds.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from pydantic import SecretStr

from agent import (
    Conversation,
    PaintingStarted,
    Settings,
    Studio,
    TurnDone,
    TurnEvent,
    TurnRequest,
    TurnSettings,
    TurnStopped,
)
from tests.adapters.records import faults_in, pictures_in_gallery
from tests.support.gemini import KEY, SMALL, on_gemini, paint
from tests.support.scenes import png
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, Text

T = TypeVar("T")

OWNERS = ("local", "visitor-a-0123456789abcdef0123456789")
WORDS = st.sampled_from(["a red fox", "一只狐狸", "<b>a fox</b>", "fox\n🦊"])


@dataclass
class Expected:
    """What a conversation holds: pictures by handle with what each was made from, and turns by id with their parent."""

    id: str
    owner: str
    pictures: dict[str, tuple[str, ...]] = field(default_factory=dict)
    turns: dict[str, str | None] = field(default_factory=dict)
    shown: str | None = None
    price_usd: float = 0.0

    def branch(self) -> list[str]:
        """Return the turns from the first to the one that is shown last."""
        found, at = [], self.shown
        while at is not None:
            found.append(at)
            at = self.turns[at]
        return found[::-1]


class PeopleAtWork(RuleBasedStateMachine):
    """Two owners, any number of conversations, one studio that is started again now and then."""

    conversations = Bundle("conversations")
    deleted = Bundle("deleted")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="aivista-state-"))
        self.home = self.folder / "home"
        self.kept: dict[str, Expected] = {}
        self.trash: dict[str, Expected] = {}
        self.first_day = date.today()
        self.spent_usd = dict.fromkeys(OWNERS, 0.0)
        self.server = GeminiServer().__enter__()
        self.runner = asyncio.Runner()
        self.studio = self.start()

    def start(self) -> Studio:
        made = Studio(on_gemini(Settings(home=self.home, retry_budget_s=0), self.server.url))
        return self.wait(made.__aenter__())

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        try:
            self.wait(self.studio.__aexit__(None, None, None))
            assert faults_in(self.home) == ()
            assert (self.server.violations, self.server.remaining) == ([], 0)
        finally:
            self.runner.close()
            self.server.__exit__(None, None, None)
            shutil.rmtree(self.folder)

    # ---- what people do

    async def turn(self, one: Expected, text: str, **more: Any) -> list[TurnEvent]:
        request = TurnRequest(text=text, settings=TurnSettings(review="off", **more.pop("settings", {})), **more)
        events = [event async for event in self.studio.run_turn(one.id, request, owner=one.owner, key=SecretStr(KEY))]
        conversation = await self.studio.conversations.get(one.id, one.owner)
        made = conversation.turns[-1]
        one.turns[made.id], one.shown = made.parent, made.id
        one.price_usd += made.price_usd
        self.spent_usd[one.owner] += made.price_usd
        return events

    def made(self, conversation: Conversation, one: Expected) -> list[str]:
        return [picture.handle for picture in conversation.all_pictures if picture.handle not in one.pictures]

    @initialize(target=conversations)
    def begin_with_one(self) -> str:
        return self.new(OWNERS[0])

    @rule(target=conversations, owner=st.sampled_from(OWNERS))
    def begin(self, owner: str) -> str:
        return self.new(owner)

    def new(self, owner: str) -> str:
        made = self.wait(self.studio.conversations.create(owner))
        self.kept[made.id] = Expected(made.id, owner)
        return made.id

    @rule(key=conversations, words=WORDS)
    def talk(self, key: str, words: str) -> None:
        one = self.kept[key]
        self.server.on_text(Text("A fox is red."))
        assert isinstance(self.wait(self.turn(one, words))[-1], TurnDone)

    @rule(key=conversations, words=WORDS, count=st.integers(1, 2))
    def draw(self, key: str, words: str, count: int) -> None:
        one = self.kept[key]
        self.server.on_text(paint(words, action="text_to_image"))
        self.server.on_image(*[SMALL] * count)
        events = self.wait(self.turn(one, words, settings={"number_of_images": count}))
        assert isinstance(events[-1], TurnDone), events[-1]
        for handle in self.new_handles(one, count):
            one.pictures[handle] = ()

    @rule(key=conversations, colour=st.sampled_from(["red", "green", "blue"]))
    def upload(self, key: str, colour: str) -> None:
        one = self.kept[key]
        self.server.on_text(Text("I see it."))
        assert isinstance(self.wait(self.turn(one, "look", images=[png(64, 36, colour)]))[-1], TurnDone)
        [handle] = self.new_handles(one, 1)
        one.pictures[handle] = ()

    @rule(key=conversations, data=st.data())
    def edit(self, key: str, data: st.DataObject) -> None:
        one = self.kept[key]
        if not one.pictures:
            return
        base = data.draw(st.sampled_from(sorted(one.pictures)))
        self.server.on_text(paint("with a hat", handles=[base], action="edit_existing"))
        self.server.on_image(SMALL)
        events = self.wait(self.turn(one, "give it a hat", editing=base))
        assert isinstance(events[-1], TurnDone), events[-1]
        [handle] = self.new_handles(one, 1)
        one.pictures[handle] = (base,)

    @rule(key=conversations, data=st.data())
    def say_otherwise(self, key: str, data: st.DataObject) -> None:
        one = self.kept[key]
        if not one.shown:
            return
        before = data.draw(st.sampled_from(one.branch()))
        self.server.on_text(Text("Otherwise, then."))
        events = self.wait(self.turn(one, "or rather not", instead_of=before))
        assert isinstance(events[-1], TurnDone), events[-1]
        assert one.turns[one.shown] == one.turns[before], "it stands beside the other"

    @rule(key=conversations, data=st.data())
    def show_another_branch(self, key: str, data: st.DataObject) -> None:
        one = self.kept[key]
        if not one.turns:
            return
        # In the order in which they were made: their names are others each time.
        chosen = data.draw(st.sampled_from(list(one.turns)))
        shown = self.wait(self.studio.conversations.switch_branch(one.id, chosen, one.owner))
        assert chosen in [turn.id for turn in shown.turns]
        one.shown = shown.turns[-1].id

    @rule(key=conversations)
    def stop(self, key: str) -> None:
        one = self.kept[key]
        self.server.on_text(paint("a fox that nobody waits for", action="text_to_image"))
        self.server.on_image(Hold(SMALL))

        async def stopped() -> list[TurnEvent]:
            events: list[TurnEvent] = []
            request = TurnRequest(text="draw a fox", settings=TurnSettings(review="off"))
            stopping = None
            async for event in self.studio.run_turn(one.id, request, owner=one.owner, key=SecretStr(KEY)):
                events.append(event)
                if isinstance(event, PaintingStarted) and stopping is None:
                    stopping = asyncio.create_task(self.studio.cancel(one.id, one.owner))
            assert stopping is not None
            await stopping
            return events

        events = self.wait(stopped())
        assert isinstance(events[-1], TurnStopped), events[-1]
        self.server.release()
        self.wait(self.late(one))

    async def late(self, one: Expected) -> None:
        """Take the picture that comes after Stop: it was paid for."""

        async def late() -> Conversation | None:
            conversation = await self.studio.conversations.get(one.id, one.owner)
            new = [picture for picture in conversation.all_pictures if picture.handle not in one.pictures]
            paid = [picture.receipt.price_usd for picture in new if picture.receipt is not None]
            return conversation if paid and conversation.turns[-1].price_usd >= sum(paid) else None

        conversation = await until(late)
        assert conversation is not None
        [handle] = self.made(conversation, one)
        turn = conversation.turns[-1]
        one.pictures[handle] = ()
        one.turns[turn.id], one.shown = turn.parent, turn.id
        one.price_usd += turn.price_usd
        self.spent_usd[one.owner] += turn.price_usd

    @rule(key=consumes(conversations), target=deleted)
    def delete(self, key: str) -> str:
        one = self.trash[key] = self.kept.pop(key)
        self.wait(self.studio.conversations.delete(key, one.owner))
        return key

    @rule(key=consumes(deleted), target=conversations)
    def bring_back(self, key: str) -> str:
        one = self.kept[key] = self.trash.pop(key)
        self.wait(self.studio.conversations.undelete(key, one.owner))
        return key

    @rule(key=consumes(deleted))
    def delete_for_good(self, key: str) -> None:
        one = self.trash.pop(key)
        self.wait(self.studio.conversations.delete_forever(key, one.owner))

    @rule(target=conversations, key=conversations)
    def take_along(self, key: str) -> Any:
        """Export a conversation and import it: all of it is there once more, and nothing is paid."""
        one = self.kept[key]

        async def copied() -> list[str]:
            exported = await self.studio.archive.export_conversation(key, one.owner)
            try:
                report = await self.studio.archive.import_archive(exported.path, one.owner)
            finally:
                exported.remove()
            return [info.id for info in report.conversations]

        [copy] = self.wait(copied())
        there = self.wait(self.studio.conversations.get(copy, one.owner))
        names = {old: new.id for old, new in zip(one.branch(), there.turns, strict=True)}
        assert len(one.turns) >= len(names)
        made = Expected(copy, one.owner, dict(one.pictures), {}, there.turns[-1].id if there.turns else None)
        made.turns = {turn.id: turn.parent for turn in there.turns}
        made.price_usd = one.price_usd
        self.kept[copy] = made
        # Turns of other branches have names that only the archive knows.
        return multiple(copy) if len(names) == len(one.turns) else self.set_aside(made)

    def set_aside(self, one: Expected) -> Any:
        self.wait(self.studio.conversations.delete(one.id, one.owner))
        self.wait(self.studio.conversations.delete_forever(one.id, one.owner))
        del self.kept[one.id]
        return multiple()

    @rule()
    def start_again(self) -> None:
        self.wait(self.studio.__aexit__(None, None, None))
        self.studio = self.start()

    def new_handles(self, one: Expected, count: int) -> list[str]:
        conversation = self.wait(self.studio.conversations.get(one.id, one.owner))
        found = self.made(conversation, one)
        assert len(found) == count, (found, one.pictures)
        return found

    # ---- what must be so after each of it

    @invariant()
    def every_conversation_is_as_expected(self) -> None:
        for one in self.kept.values():
            conversation = self.wait(self.studio.conversations.get(one.id, one.owner))
            assert {picture.handle: picture.parents for picture in conversation.all_pictures} == one.pictures
            assert [turn.id for turn in conversation.turns] == one.branch()
            spent = self.wait(self.studio.spend.conversation(one.id, one.owner))
            assert spent.price_usd == pytest.approx(one.price_usd)

    @invariant()
    def the_gallery_holds_the_pictures_and_the_list_the_conversations_of_each_owner_alone(self) -> None:
        for owner in OWNERS:
            own = [one for one in self.kept.values() if one.owner == owner]
            pictures = sorted((one.id, handle) for one in own for handle in one.pictures)
            assert self.wait(pictures_in_gallery(self.studio, owner)) == pictures
            listed = self.wait(self.studio.conversations.list(owner, 100))
            assert {info.id for info in listed} <= {one.id for one in own}
            assert {one.id for one in own if one.turns} <= {info.id for info in listed}
            gone = self.wait(self.studio.conversations.trash(owner, 100))
            assert {info.id for info in gone} <= {one.id for one in self.trash.values() if one.owner == owner}

    @invariant()
    def what_was_spent_stays_spent(self) -> None:
        # Midnight may come in between.
        days = {self.first_day, date.today()}
        for owner in OWNERS:
            spent_usd = sum(self.wait(self.studio.spend.day(owner, day)).price_usd for day in days)
            assert spent_usd == pytest.approx(self.spent_usd[owner])


# Shrinking takes minutes and is left out: of steps that fail Hypothesis tells each.
TestPeopleAtWork = PeopleAtWork.TestCase
TestPeopleAtWork.settings = settings(
    max_examples=20,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
