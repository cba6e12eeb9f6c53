"""What of an archive only its first home could make good of."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.components import Component, InterruptedNote, PlanCard, SearchNote, StoppedNote
from agent.conversation import Turn, TurnState, WholeConversation
from agent.messages import GroundingPart
from agent.plans import Plan
from tests.adapters.archives import Archive
from tests.adapters.records import ConversationStore
from tests.agent.archive.shelf import contents, place
from tests.support.histories import NOW, SOURCE, begun_turn, finished

PLAN = Plan(call=0, prompt="a fox", model="pro", model_label="Pro", aspect_ratio="1:1")


def conversation_of(turn: Turn) -> WholeConversation:
    return WholeConversation(title="", created_at=NOW, updated_at=NOW, head=turn.id, turns=(turn,))


async def imported(tmp_path: Path, turn: Turn) -> Turn:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    [key] = await here.keep(conversation_of(turn))
    exported = await here.archive.export_conversation(key, "local")
    state = contents(exported.path)["conversations/0001/conversation.json"]
    assert f'"state": "{turn.state.value}"'.encode() in state, "it is exported as it is"
    store = ConversationStore(there.home, there.images)
    await store.open()
    try:
        report = await Archive(store, there.images, there.home).import_archive(exported.path, "local")
        return (await store.whole(report.conversations[0].id, "local")).turns[0]
    finally:
        await store.aclose()


@pytest.mark.parametrize("state", [TurnState.RUNNING, TurnState.WAITING, TurnState.INTERRUPTED])
async def test_a_turn_that_could_go_on_at_home_has_stopped(tmp_path: Path, state: TurnState) -> None:
    shown: tuple[Component, ...] = (PlanCard(plans=(PLAN,)), InterruptedNote(may_have_been_charged=2))
    turn = await imported(tmp_path, begun_turn().model_copy(update={"state": state, "components": shown}))
    assert turn.state is TurnState.STOPPED
    assert turn.components == (PlanCard(plans=(PLAN,), state="dropped"), StoppedNote())


@pytest.mark.parametrize("state", [TurnState.DONE, TurnState.STOPPED, TurnState.FAILED])
async def test_a_turn_that_is_over_stays_as_it_was(tmp_path: Path, state: TurnState) -> None:
    shown: tuple[Component, ...] = (PlanCard(plans=(PLAN,), state="run"),)
    turn = await imported(tmp_path, begun_turn().model_copy(update={"state": state, "components": shown}))
    assert (turn.state, turn.components) == (state, shown)


async def test_html_of_a_search_is_not_shown_from_an_archive_and_its_sources_are(tmp_path: Path) -> None:
    turn = begun_turn().model_copy(
        update={
            "state": TurnState.DONE,
            "components": (SearchNote(sources=(SOURCE,), suggestions_html="<meta http-equiv=refresh>"),),
        }
    )
    assert (await imported(tmp_path, turn)).components == (SearchNote(sources=(SOURCE,)),)


async def test_the_history_of_a_search_stays_to_the_letter(tmp_path: Path) -> None:
    turn = finished(begun_turn()).model_copy(update={"components": (), "references": (), "editing": None})
    grounded = turn.messages[1].parts[0]
    kept = turn.model_copy(update={"messages": turn.messages[1:2]})
    assert isinstance(grounded, GroundingPart)
    assert (await imported(tmp_path, kept)).messages[0].parts[0] == grounded
