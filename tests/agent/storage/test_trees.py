"""A conversation's tree: what is shown, what stands beside it, and what lies below a turn."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.conversation import Conversation
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.trees import newest_below, path_to, shown
from tests.support.histories import begun_turn, finished, picture

# A, B and C in a line; D said instead of B, and E after it; F said instead of A.
TREE = {"A": None, "B": "A", "C": "B", "D": "A", "E": "D", "F": None}


def test_the_branch_that_is_shown_leads_from_the_first_turn_to_the_head() -> None:
    assert shown("C", TREE).path == ("A", "B", "C")
    assert shown("E", TREE).path == ("A", "D", "E")
    assert shown("F", TREE).path == ("F",)
    assert shown(None, {}) == ((), {})


def test_each_shown_turn_that_has_others_beside_it_names_them_all_the_oldest_first() -> None:
    assert shown("C", TREE).forks == {"A": ("A", "F"), "B": ("B", "D")}
    assert shown("F", TREE).forks == {"F": ("A", "F")}


def test_a_head_inside_its_branch_shows_the_branch_to_its_newest_turn() -> None:
    assert shown("B", TREE).path == ("A", "B", "C")
    assert shown("A", TREE).path == ("A", "D", "E")


def test_without_a_head_or_with_one_that_is_gone_the_newest_turn_is_shown() -> None:
    assert shown(None, TREE).path == shown("gone", TREE).path == ("F",)


def test_a_turn_whose_parent_is_gone_begins_its_branch() -> None:
    assert path_to("C", {"B": "gone", "C": "B"}) == ("B", "C")


def test_turns_that_name_one_another_as_parents_end_somewhere() -> None:
    assert path_to("B", {"A": "B", "B": "A"}) == ("A", "B")


def test_the_newest_turn_below_one_is_itself_when_nothing_followed() -> None:
    assert [newest_below(one, TREE) for one in TREE] == ["E", "C", "C", "E", "E", "F"]


# A simple model, and the store beside it.


class Model:
    """Turns with their parents and pictures, as a person would draw them on paper."""

    def __init__(self) -> None:
        self.parents: dict[str, str | None] = {}
        self.made_in: dict[str, str] = {}
        self.head: str | None = None

    def path(self) -> list[str]:
        at, path = self.head, list[str]()
        while at is not None:
            path.insert(0, at)
            at = self.parents[at]
        return path

    def below(self, turn_id: str) -> set[str]:
        found = {turn_id}
        while more := {one for one, parent in self.parents.items() if parent in found} - found:
            found |= more
        return found

    def say(self, instead_of: str | None) -> tuple[str, str | None]:
        name = f"t{len(self.parents)}"
        parent = self.parents[instead_of] if instead_of else self.head
        self.parents[name], self.head = parent, name
        return name, parent

    def switch(self, turn_id: str) -> None:
        if turn_id not in self.path():
            self.head = max(self.below(turn_id), key=lambda one: int(one[1:]))

    def paint(self, turn_id: str) -> str:
        handle = f"#{len(self.made_in) + 1}"
        self.made_in[handle] = turn_id
        return handle

    def agrees(self, kept: Conversation) -> None:
        path = self.path()
        beside = {one: [other for other in self.parents if self.parents[other] == self.parents[one]] for one in path}
        assert [turn.id for turn in kept.turns] == path
        assert [turn.parent for turn in kept.turns] == [self.parents[one] for one in path]
        assert kept.forks == {one: tuple(others) for one, others in beside.items() if len(others) > 1}
        assert [one.handle for one in kept.pictures] == [h for h, turn in self.made_in.items() if turn in path]
        assert [one.handle for one in kept.elsewhere] == [h for h, turn in self.made_in.items() if turn not in path]


STEPS = st.lists(
    st.tuples(st.sampled_from(("say", "instead", "switch", "paint", "finish", "mark")), st.integers(0, 30)), max_size=25
)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_whatever_is_said_otherwise_and_switched_the_store_agrees_with_the_drawing(
    steps: list[tuple[str, int]],
) -> None:
    asyncio.run(_agree(steps))


async def _agree(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, model = Path(folder), Model()
        store = ConversationStore(home, ImageStore(home))
        await store.open()
        conversation = await store.create("local")
        for kind, number in steps:
            await _step(store, conversation.id, model, kind, number)
            model.agrees(await store.get(conversation.id, "local"))
        remembered = await store.get(conversation.id, "local")
        await store.aclose()
        fresh = ConversationStore(home, ImageStore(home))
        await fresh.open()
        read = await fresh.get(conversation.id, "local")
        resting = await fresh.may_go_on(list(model.parents))
        await fresh.aclose()
    states = {turn.id: turn.state for turn in remembered.turns}
    assert [turn.model_copy(update={"state": states[turn.id], "components": ()}) for turn in read.turns] == [
        turn.model_copy(update={"components": ()}) for turn in remembered.turns
    ]
    # A turn that was left running is closed at the next start, which is a change.
    aside = {"turns": (), "version": 0}
    assert read.model_copy(update=aside) == remembered.model_copy(update=aside)
    assert all(model.below(one) == {one} for one in resting), "only the newest turn of a branch may go on"


async def _step(store: ConversationStore, conversation_id: str, model: Model, kind: str, number: int) -> None:
    turns, handles = list(model.parents), list(model.made_in)
    if kind == "say" or not turns:
        name, parent = model.say(None)
        await store.begin_turn(conversation_id, begun_turn(name, parent=parent))
        return
    turn_id, path = turns[number % len(turns)], model.path()
    if kind == "instead":
        name, parent = model.say(path[number % len(path)])
        uploads = [picture(model.paint(name), name, is_generated=False)] if number % 2 else []
        await store.begin_turn(conversation_id, begun_turn(name, parent=parent), uploads)
    elif kind == "switch":
        model.switch(turn_id)
        await store.switch_branch(conversation_id, turn_id, "local")
    elif kind == "paint":
        await store.add_picture(conversation_id, picture(model.paint(turn_id), turn_id, signature=b"s"))
    elif kind == "finish":
        await store.finish_turn(
            conversation_id, finished(begun_turn(turn_id, parent=model.parents[turn_id]), signature=b"s")
        )
    elif handles:
        await store.mark_picture(conversation_id, handles[number % len(handles)], number % 2 == 0)
