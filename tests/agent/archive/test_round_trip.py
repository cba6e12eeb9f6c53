from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent import (
    Component,
    ErrorCode,
    GroundingPart,
    ImageOrigin,
    InterruptedNote,
    Plan,
    PlanCard,
    RequestRefused,
    SearchNote,
    StoppedNote,
    Turn,
    TurnState,
    WholeConversation,
)
from tests.adapters.archives import Archive
from tests.adapters.records import ConversationStore, ImageStore
from tests.agent.archive.shelf import FILES, as_from_outside, contents, digests, kept_turns, place, with_plain_ids
from tests.agent.archive.values import PNGS, whole_conversations
from tests.support.cases import each_case
from tests.support.histories import NOW, SOURCE, begun_turn, finished

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]
# Values this large take minutes to be made smaller; what differs is told by pytest.
RELAXED = settings(max_examples=25, suppress_health_check=SLOW_IS_FINE, phases=[Phase.explicit, Phase.generate])


async def taken_over(wholes: Iterable[WholeConversation], folder: Path) -> list[WholeConversation]:
    """Return the conversations as they stand in another home after an export and an import."""
    here, there = place(folder / "here"), place(folder / "there")
    await here.keep(*wholes)
    exported = await here.archive.export_library("local")
    report = await there.archive.import_archive(exported.path, "local")
    assert [one.id for one in report.conversations] == list(there.shelf.kept)
    for whole in there.shelf.kept.values():
        for one in whole.pictures:
            assert await there.images.read(one.image) in PNGS
    return list(there.shelf.kept.values())


# A conversation with everything that one can hold has a long name.
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@RELAXED
@given(wholes=st.lists(whole_conversations(), max_size=2))
def test_whatever_is_exported_is_the_same_after_an_import(wholes: list[WholeConversation]) -> None:
    wholes = [one.model_copy(update={"created_at": NOW.replace(minute=at)}) for at, one in enumerate(wholes)]
    with tempfile.TemporaryDirectory() as folder:
        taken = asyncio.run(taken_over(wholes, Path(folder)))
    assert [with_plain_ids(one) for one in taken] == [with_plain_ids(as_from_outside(one)) for one in wholes]


async def test_files_that_could_be_packed_to_nothing_are_no_bomb_to_whoever_takes_them_in(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    wholes = []
    for number in range(8):
        contents_of = [bytes([number, at]) + bytes((1 << 20) - 2) for at in range(10)]
        files = [
            FILES[0].model_copy(update={"name": f"{at}.bin", "content": data}) for at, data in enumerate(contents_of)
        ]
        wholes.append(kept_turns(str(number), b"small").model_copy(update={"files": tuple(files)}))
    await here.keep(*wholes)
    exported = await here.archive.export_library("local")
    await there.archive.import_archive(exported.path, "local")
    assert [len(one.files) for one in there.shelf.kept.values()] == [10] * 8


async def test_a_picture_that_is_gone_is_told_and_never_leads_to_somebody_elses(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    whole = kept_turns()
    [key] = await here.keep(whole)
    lost = whole.pictures[1].image
    [file] = (here.home / "pictures").rglob(f"{lost.digest}*")
    data = file.read_bytes()
    file.unlink()
    exported = await here.archive.export_conversation(key, "local")
    await there.images.write(data, "image/png", ImageOrigin.UPLOADED)
    report = await there.archive.import_archive(exported.path, "local")
    [after] = there.shelf.kept.values()
    assert (report.picture_count, report.lost_count) == (len(digests(whole)) - 1, 1)
    assert after.pictures[1].image.handle == lost.handle
    assert after.pictures[0] == whole.pictures[0].model_copy(update={"turn_id": after.turns[0].id})
    with pytest.raises(RequestRefused) as refused:
        await there.images.read(after.pictures[1].image)
    assert refused.value.code is ErrorCode.PICTURE_FILE_MISSING


@asynccontextmanager
async def records(home: Path) -> AsyncIterator[tuple[ConversationStore, Archive]]:
    """Open the real records of a home, with the archive over them."""
    images = ImageStore(home)
    store = ConversationStore(home, images)
    await store.open()
    for data in PNGS:
        await images.write(data, "image/png", ImageOrigin.GENERATED)
    try:
        yield store, Archive(store, images, home)
    finally:
        await store.aclose()


async def test_the_real_records_give_and_take_all_that_a_conversation_holds(tmp_path: Path) -> None:
    async with records(tmp_path / "here") as (store, archive):
        await store.add_whole("local", kept_turns())
        before = [await store.whole(info.id, "local") for info in await store.list("local")]
        exported = await archive.export_library("local")
    async with records(tmp_path / "there") as (store, archive):
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        after = await store.whole(taken.id, "local")
        shown = await store.get(taken.id, "local")
    assert [with_plain_ids(after)] == [with_plain_ids(as_from_outside(one)) for one in before]
    kept = kept_turns()
    turns = tuple(turn.model_copy(update={"is_imported": True}) for turn in kept.turns)
    assert [with_plain_ids(one) for one in before] == [with_plain_ids(kept.model_copy(update={"turns": turns}))]
    assert [picture.handle for picture in shown.pictures] == ["#1", "#2", "#4"]
    assert [picture.handle for picture in shown.elsewhere] == ["#3"]


async def test_a_tag_is_spelled_as_its_new_owner_spells_it(tmp_path: Path) -> None:
    async with records(tmp_path) as (store, archive):
        whole = kept_turns()
        first = await store.add_whole("local", whole.model_copy(update={"tags": {"#2": ("poster",)}}))
        exported = await archive.export_conversation((await store.add_whole("ann", whole)).id, "ann")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert (await store.whole(taken.id, "local")).tags == {"#1": ("狐",), "#4": ("for the wall", "poster")}
        assert (await store.whole(first.id, "local")).tags == {"#2": ("poster",)}


async def as_imported(folder: Path, turn: Turn) -> Turn:
    """Return the turn as it is after it was taken in from an archive, which has it as it was."""
    here = place(folder / f"here {turn.state}")
    [key] = await here.keep(WholeConversation(title="", created_at=NOW, updated_at=NOW, head=turn.id, turns=(turn,)))
    exported = await here.archive.export_conversation(key, "local")
    state = contents(exported.path)["conversations/0001/conversation.json"]
    assert f'"state": "{turn.state.value}"'.encode() in state, "it is exported as it is"
    async with records(folder / f"there {turn.state}") as (store, archive):
        report = await archive.import_archive(exported.path, "local")
        return (await store.whole(report.conversations[0].id, "local")).turns[0]


@each_case("state", TurnState)
async def test_a_turn_that_could_go_on_at_home_has_stopped_others_stay(tmp_path: Path, state: TurnState) -> None:
    plan = Plan(call=0, prompt="a fox", model="pro", model_label="Pro", aspect_ratio="1:1")
    waits = state in (TurnState.RUNNING, TurnState.WAITING, TurnState.INTERRUPTED)
    card, note = PlanCard(plans=(plan,)), InterruptedNote(may_have_been_charged=2)
    ran = card.model_copy(update={"state": "run"})
    shown: tuple[Component, ...] = (card, note) if waits else (ran,)
    turn = await as_imported(tmp_path, begun_turn().model_copy(update={"state": state, "components": shown}))
    assert turn.state is (TurnState.STOPPED if waits else state)
    dropped = card.model_copy(update={"state": "dropped"})
    assert turn.components == ((dropped, StoppedNote()) if waits else shown)


async def test_html_of_a_search_is_not_shown_from_an_archive_and_its_sources_and_history_are(tmp_path: Path) -> None:
    note = SearchNote(sources=(SOURCE,), suggestions_html="<meta http-equiv=refresh>")
    turn = finished(begun_turn())
    grounded = turn.messages[1].parts[0]
    assert isinstance(grounded, GroundingPart)
    update = {"components": (note,), "references": (), "editing": None, "messages": turn.messages[1:2]}
    taken = await as_imported(tmp_path, turn.model_copy(update=update))
    assert taken.components == (SearchNote(sources=(SOURCE,)),)
    assert taken.messages[0].parts[0] == grounded
