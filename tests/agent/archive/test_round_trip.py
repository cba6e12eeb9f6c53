"""Archives taken to another home: all is the same there, nobody else's is in them, and little memory is needed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import stat
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel

from agent import (
    Component,
    ErrorCode,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    InterruptedNote,
    OriginalFile,
    Plan,
    PlanCard,
    SearchNote,
    StoppedNote,
    StorageFailure,
    Turn,
    TurnState,
    WholeConversation,
    WorkspaceFile,
)
from tests.adapters.archives import Archive, ArchivedConversation, ArchivedWorkspaceFile, ArchiveLimits, Manifest
from tests.adapters.records import ImageStore, Records
from tests.agent.archive.shelf import (
    FILES,
    MemoryShelf,
    archive_of,
    as_from_outside,
    contents,
    digests,
    kept_turns,
    place,
    with_plain_ids,
)
from tests.agent.archive.values import PNGS, part_of, whole_conversations
from tests.support.cases import each_case
from tests.support.children import full_disk
from tests.support.galleries import png
from tests.support.histories import LARGE_SIGNATURE, NOW, SOURCE, begun_turn, finished, keep_signatures
from tests.support.refusals import refusal

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


async def test_a_lost_picture_is_told_and_never_leads_to_somebody_elses_and_signatures_come_along(
    tmp_path: Path,
) -> None:
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
    assert await there.images.signature(hashlib.sha256(LARGE_SIGNATURE).hexdigest()) is not None
    assert await refusal(there.images.read(after.pictures[1].image)) is ErrorCode.PICTURE_FILE_MISSING


@asynccontextmanager
async def records(home: Path) -> AsyncIterator[tuple[Records, Archive]]:
    """Open the real records of a home, with the archive over them."""
    images = ImageStore(home)
    store = Records(home, images)
    await store.open()
    for data in PNGS:
        await images.write(data, "image/png", ImageOrigin.GENERATED)
    await keep_signatures(images)
    try:
        yield store, Archive(store.conversations, images, home)
    finally:
        await store.aclose()


async def test_the_real_records_give_and_take_all_that_a_conversation_holds(tmp_path: Path) -> None:
    async with records(tmp_path / "here") as (store, archive):
        await store.conversations.add_whole("local", kept_turns())
        before = [await store.conversations.whole(info.id, "local") for info in await store.conversations.list("local")]
        exported = await archive.export_library("local")
    async with records(tmp_path / "there") as (store, archive):
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        after = await store.conversations.whole(taken.id, "local")
        shown = await store.conversations.get(taken.id, "local")
    assert [with_plain_ids(after)] == [with_plain_ids(as_from_outside(one)) for one in before]
    kept = kept_turns()
    turns = tuple(turn.model_copy(update={"is_imported": True}) for turn in kept.turns)
    assert [with_plain_ids(one) for one in before] == [with_plain_ids(kept.model_copy(update={"turns": turns}))]
    assert [picture.handle for picture in shown.pictures] == ["#1", "#2", "#4"]
    assert [picture.handle for picture in shown.elsewhere] == ["#3"]


async def test_a_tag_is_spelled_as_its_new_owner_spells_it(tmp_path: Path) -> None:
    async with records(tmp_path) as (store, archive):
        whole = kept_turns()
        first = await store.conversations.add_whole("local", whole.model_copy(update={"tags": {"#2": ("poster",)}}))
        exported = await archive.export_conversation((await store.conversations.add_whole("ann", whole)).id, "ann")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        tags = (await store.conversations.whole(taken.id, "local")).tags
        assert tags == {"#1": ("狐",), "#4": ("for the wall", "poster")}
        assert (await store.conversations.whole(first.id, "local")).tags == {"#2": ("poster",)}


async def as_imported(folder: Path, turn: Turn) -> Turn:
    """Return the turn as it is after it was taken in from an archive, which has it as it was."""
    here = place(folder / f"here {turn.state}")
    [key] = await here.keep(WholeConversation(title="", created_at=NOW, updated_at=NOW, head=turn.id, turns=(turn,)))
    exported = await here.archive.export_conversation(key, "local")
    state = contents(exported.path)["conversations/0001/conversation.json"]
    assert f'"state": "{turn.state.value}"'.encode() in state, "it is exported as it is"
    async with records(folder / f"there {turn.state}") as (store, archive):
        report = await archive.import_archive(exported.path, "local")
        return (await store.conversations.whole(report.conversations[0].id, "local")).turns[0]


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


async def test_what_must_stay_at_home_is_not_told(tmp_path: Path) -> None:
    here = place(tmp_path)
    whole = kept_turns()
    update = {"request_id": "a-request", "maximum_usd": 0.5, "is_imported": True}
    file = OriginalFile(digest="0f" * 32, mime_type="image/jpeg", size_bytes=7)
    first = whole.pictures[0].model_copy(update={"original": file})
    turns = tuple(turn.model_copy(update=update) for turn in whole.turns)
    [key] = await here.keep(whole.model_copy(update={"turns": turns, "pictures": (first, *whole.pictures[1:])}))
    told = contents((await here.archive.export_conversation(key, "local")).path)["conversations/0001/conversation.json"]
    turn, picture = (json.loads(told)[name][0] for name in ("turns", "pictures"))
    assert turn.keys() == Turn.model_fields.keys() - update.keys()
    assert picture["original"] == {**file.model_dump(), "digest": ""}
    assert (b"a-request" in told, file.digest.encode() in told) == (False, False)


@each_case(
    ("value", "archived", "stays_at_home", "of_the_archive"),
    [
        (WorkspaceFile, ArchivedWorkspaceFile, {"content"}, {"digest", "size_bytes"}),
        (WholeConversation, ArchivedConversation, set(), set()),
    ],
)
def test_an_archive_holds_every_field_but_those_that_must_stay_at_home(
    value: type[BaseModel], archived: type[BaseModel], stays_at_home: set[str], of_the_archive: set[str]
) -> None:
    assert archived.model_fields.keys() - of_the_archive == value.model_fields.keys() - stays_at_home


# Of several conversations


async def test_a_library_holds_every_conversation_the_oldest_first_also_beyond_a_page_of_the_list(
    tmp_path: Path,
) -> None:
    here, there, full = place(tmp_path / "here"), place(tmp_path / "there"), place(tmp_path / "full")
    newer = kept_turns("newer").model_copy(update={"created_at": NOW + timedelta(days=1)})
    await here.keep(newer, kept_turns("older"))
    report = await there.archive.import_archive((await here.archive.export_library("local")).path, "local")
    taken = [(one.title, one.turn_count, one.picture_count) for one in report.conversations]
    assert taken == [("older", 3, 4), ("newer", 3, 4)]
    assert report.picture_count == len(digests(newer))
    empty = kept_turns().model_copy(update={"turns": (), "pictures": (), "head": None})
    await full.keep(*(empty.model_copy(update={"title": str(number)}) for number in range(450)))
    many = contents((await full.archive.export_library("local")).path)
    told = Manifest.model_validate_json(many["manifest.json"]).conversations
    assert {one.title for one in told} == {str(number) for number in range(450)}


async def test_two_exports_of_the_same_are_the_same_bytes_and_two_imports_of_one_stand_side_by_side(
    tmp_path: Path,
) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    await here.keep(kept_turns("one"), kept_turns("two"))
    exported, again = await here.archive.export_library("local"), await here.archive.export_library("local")
    assert exported.path.read_bytes() == again.path.read_bytes()
    [key] = await there.keep(kept_turns())
    exported = await there.archive.export_conversation(key, "local", language="zh-CN")
    files = there.files()
    for _ in range(2):
        await there.archive.import_archive(exported.path, "local")
    _, one, other = there.shelf.kept.values()
    assert not {turn.id for turn in one.turns} & {turn.id for turn in other.turns}
    assert with_plain_ids(one) == with_plain_ids(other)
    assert there.files() == files
    with zipfile.ZipFile(exported.path) as archive:
        entries = archive.infolist()
    # What is stored is no bomb to whoever takes it in, however it could be packed.
    kinds = {(re.sub(r"/.*", "", one.filename.rpartition(".")[2]), one.compress_type) for one in entries}
    stored = {(one, zipfile.ZIP_STORED) for one in ("png", "blobs", "files")}
    assert kinds == stored | {(one, zipfile.ZIP_DEFLATED) for one in ("json", "md", "html")}
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {stat.S_IMODE(entry.external_attr >> 16) for entry in entries} == {0o600}


async def test_nobody_elses_conversations_are_exported_and_a_home_that_cannot_be_written_is_told(
    tmp_path: Path,
) -> None:
    here = place(tmp_path)
    [key] = await here.keep(kept_turns())
    assert await refusal(here.archive.export_conversation(key, "somebody else")) is ErrorCode.CONVERSATION_NOT_FOUND
    exported = await here.archive.export_library("somebody else")
    assert (exported.name, sorted(contents(exported.path))) == ("aivista-library.zip", ["index.html", "manifest.json"])
    assert (await here.archive.import_archive(exported.path, "local")).conversations == ()
    exported.remove()
    (tmp_path / "exports").rmdir()
    (tmp_path / "exports").write_text("in the way")
    with pytest.raises(StorageFailure) as failure:
        await here.archive.export_library("local")
    assert str(tmp_path) not in str(failure.value)


async def test_an_archive_is_its_users_alone_and_goes_when_it_is_removed_or_with_a_later_export(tmp_path: Path) -> None:
    here = place(tmp_path / "home")
    [key] = await here.keep(kept_turns("Draw: a/b  “fox” ../.. 狐狸, please, and more words"))
    exported = await here.archive.export_conversation(key, "local")
    assert exported.path.parent == here.home / "exports"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (exported.path, exported.path.parent)] == [0o600, 0o700]
    assert exported.size_bytes == exported.path.stat().st_size
    assert exported.name == "aivista-Draw-a-b-fox-狐狸-please-2026-11-20.zip"
    exported.remove()
    exported.remove()
    assert not any(name.startswith("exports") for name in here.files())
    old, new = await here.archive.export_library("local"), await here.archive.export_library("local")
    long_ago_s = time.time() - 2 * 86_400
    os.utime(old.path, (long_ago_s, long_ago_s))
    await here.archive.export_library("local")
    assert (old.path.exists(), new.path.exists()) == (False, True)


async def test_what_could_not_be_taken_in_again_is_not_exported_and_leaves_nothing(tmp_path: Path) -> None:
    for limits in (
        ArchiveLimits(archive_bytes=20_000),
        ArchiveLimits(files=5),
        ArchiveLimits(json_bytes=1000),
        ArchiveLimits(file_bytes=100),
    ):
        here = place(tmp_path, limits)
        await here.keep(kept_turns())
        assert await refusal(here.archive.export_library("local")) is ErrorCode.EXPORT_TOO_LARGE
        assert not any(name.startswith("exports") for name in here.files())


async def test_one_file_in_too_many_workspaces_is_not_exported_either(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here", ArchiveLimits(ratio=4, ratio_from_bytes=2000)), place(tmp_path / "there")
    file = FILES[0].model_copy(update={"content": bytes(1000)})
    whole = kept_turns(signature=b"s").model_copy(update={"files": (file,)})
    await here.keep(*[whole] * 4)
    exported = await here.archive.export_library("local")
    assert len((await there.archive.import_archive(exported.path, "local")).conversations) == 4
    await here.keep(whole)
    assert await refusal(here.archive.export_library("local")) is ErrorCode.EXPORT_TOO_LARGE


async def test_a_full_disk_is_told_and_nothing_is_left_half_written(tmp_path: Path) -> None:
    here = place(tmp_path)
    await here.keep(kept_turns())
    with full_disk(30_000), pytest.raises(StorageFailure) as failed:
        await here.archive.export_library("local")
    assert failed.value.code is ErrorCode.DISK_FULL
    assert not any(name.startswith("exports") for name in here.files())


@dataclass
class Folder:
    """Pictures in a folder; the image store remembers 32 MB of what it has just written."""

    path: Path

    async def read(self, image: ImagePart) -> bytes:
        return await asyncio.to_thread((self.path / image.digest).read_bytes)

    async def write(self, data: bytes, mime_type: str, origin: ImageOrigin) -> ImagePart:
        part = part_of(data)
        await asyncio.to_thread((self.path / part.digest).write_bytes, data)
        return part


async def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    sizes, peaks = list[int](), list[int]()
    for count in (2, 14):
        here, there, images = MemoryShelf(), MemoryShelf(), Folder(tmp_path / str(count))
        images.path.mkdir()
        whole = kept_turns(signature=b"small")
        for number in range(-len(PNGS), count):
            noise = Image.frombytes("RGB", (700, 700), random.Random(number).randbytes(1_470_000))
            part = await images.write(PNGS[number] if number < 0 else png(noise), "image/png", ImageOrigin.GENERATED)
            pictures = (*whole.pictures, whole.pictures[0].model_copy(update={"handle": "#9", "image": part}))
            await here.add_whole("local", whole.model_copy(update={"pictures": pictures}))
        tracemalloc.start()
        try:
            exported = await archive_of(here, images, images.path).export_library("local")
            await archive_of(there, images, images.path).import_archive(exported.path, "local")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len(there.kept) == count + len(PNGS)
        sizes.append(exported.size_bytes)
    assert sizes[1] - sizes[0] > 12 * 1_400_000
    assert peaks[1] - peaks[0] < 4_000_000
