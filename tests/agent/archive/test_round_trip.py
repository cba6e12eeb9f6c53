from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent.conversation import WholeConversation
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ImageOrigin, PromptMessage, SignedPart
from agent.pictures import EditRecord
from tests.adapters.archives import images_in, with_images
from tests.agent.archive.shelf import FILES, as_from_outside, contents, digests, kept_turns, place, with_plain_ids
from tests.agent.archive.values import PARTS, PNGS, part_of, whole_conversations
from tests.support.histories import LARGE_SIGNATURE, NOW

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


def parts_of(messages: Iterable[PromptMessage]) -> list[object]:
    return [part for message in messages for part in message.parts]


async def test_every_message_comes_back_to_the_letter_with_its_signatures_whole(tmp_path: Path) -> None:
    before = kept_turns()
    [after] = await taken_over([before], tmp_path)
    assert [turn.messages for turn in after.turns] == [turn.messages for turn in before.turns]
    assert [one.answer for one in after.pictures] == [one.answer for one in before.pictures]
    signed = [part for part in parts_of(after.turns[2].messages) if isinstance(part, SignedPart)]
    assert [part.thought_signature for part in signed].count(LARGE_SIGNATURE) == 2


async def test_branches_come_back_with_the_one_that_is_shown(tmp_path: Path) -> None:
    [after] = await taken_over([kept_turns()], tmp_path)
    first, other, shown = after.turns
    assert (first.parent, other.parent, shown.parent, after.head) == (None, first.id, first.id, shown.id)
    assert [one.turn_id for one in after.pictures] == [first.id, first.id, other.id, shown.id]


async def test_turns_never_keep_an_id_that_an_archive_gave_them(tmp_path: Path) -> None:
    [after] = await taken_over([kept_turns()], tmp_path)
    assert not {turn.id for turn in after.turns} & {"a", "b", "c"}


async def test_what_keeps_a_request_from_being_paid_twice_stays_at_home(tmp_path: Path) -> None:
    before = kept_turns()
    named = tuple(turn.model_copy(update={"request_id": "asked-once-7351"}) for turn in before.turns)
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    [key] = await here.keep(before.model_copy(update={"turns": named}))
    exported = await here.archive.export_conversation(key, "local")
    assert not any(b"asked-once-7351" in data for data in contents(exported.path).values())
    await there.archive.import_archive(exported.path, "local")
    [after] = there.shelf.kept.values()
    assert [turn.request_id for turn in after.turns] == [None, None, None]


async def test_a_large_signature_is_one_file_however_often_it_stands(tmp_path: Path) -> None:
    here = place(tmp_path)
    [key] = await here.keep(kept_turns())
    exported = await here.archive.export_conversation(key, "local")
    names = [name for name in contents(exported.path) if name.startswith("blobs/")]
    assert names == [f"blobs/{hashlib.sha256(LARGE_SIGNATURE).hexdigest()}"]


async def test_every_file_that_any_value_refers_to_is_in_the_archive_once(tmp_path: Path) -> None:
    here = place(tmp_path)
    images = [part_of(data) for data in PNGS]
    edit = EditRecord(
        kind="mask",
        verdict="unsure",
        reason="same_picture",
        **dict(zip(("base", "mask", "raw", "grown_mask", "before"), images, strict=False)),
    )
    before = kept_turns()
    turn = before.turns[0].model_copy(update={"mask": images[5]})
    edited = before.pictures[1].model_copy(update={"edit": edit})
    before = before.model_copy(
        update={"turns": (turn, *before.turns[1:]), "pictures": (before.pictures[0], edited, *before.pictures[2:])}
    )
    [key] = await here.keep(before)
    exported = await here.archive.export_conversation(key, "local")
    files = contents(exported.path)
    assert {name for name in files if name.startswith("pictures/")} == {f"pictures/{one.digest}.png" for one in images}
    assert {files[f"pictures/{one.digest}.png"] for one in images} == set(PNGS)


async def test_files_of_a_workspace_are_in_the_archive_by_their_digests_and_come_back_as_they_were(
    tmp_path: Path,
) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    twin = FILES[0].model_copy(update={"name": "twin.md"})
    await here.keep(kept_turns(), kept_turns().model_copy(update={"files": (*FILES, twin)}))
    exported = await here.archive.export_library("local")
    kept = {name: data for name, data in contents(exported.path).items() if name.startswith("files/")}
    assert kept == {f"files/{hashlib.sha256(one.content).hexdigest()}": one.content for one in FILES}
    await there.archive.import_archive(exported.path, "local")
    marked = tuple(one.model_copy(update={"is_untrusted": True}) for one in (*FILES, twin))
    assert sorted((one.files for one in there.shelf.kept.values()), key=len) == [marked[:-1], marked]


async def test_stars_tags_and_a_title_of_ones_own_come_back(tmp_path: Path) -> None:
    [after] = await taken_over([kept_turns()], tmp_path)
    assert (after.starred, after.is_named) == (("#2", "#4"), True)
    assert after.tags == {"#1": ("狐",), "#4": ("Poster", "for the wall")}


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


async def test_a_picture_that_is_gone_is_told_and_the_rest_is_taken_over(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    whole = kept_turns()
    [key] = await here.keep(whole)
    lost = whole.pictures[1].image
    [file] = (here.home / "pictures").rglob(f"{lost.digest}*")
    file.unlink()
    exported = await here.archive.export_conversation(key, "local")
    report = await there.archive.import_archive(exported.path, "local")
    [after] = there.shelf.kept.values()
    assert (report.picture_count, report.lost_count) == (len(digests(whole)) - 1, 1)
    assert after.pictures[1].image.handle == lost.handle
    assert after.pictures[0] == whole.pictures[0].model_copy(update={"turn_id": after.turns[0].id})


async def test_a_picture_said_to_be_lost_never_leads_to_somebody_elses(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    whole = kept_turns()
    [key] = await here.keep(whole)
    lost = whole.pictures[1].image
    [file] = (here.home / "pictures").rglob(f"{lost.digest}*")
    data = file.read_bytes()
    file.unlink()
    exported = await here.archive.export_conversation(key, "local")
    await there.images.write(data, "image/png", ImageOrigin.UPLOADED)
    await there.archive.import_archive(exported.path, "local")
    [after] = there.shelf.kept.values()
    with pytest.raises(RequestRefused) as refused:
        await there.images.read(after.pictures[1].image)
    assert refused.value.code is ErrorCode.PICTURE_FILE_MISSING


@given(value=whole_conversations())
@settings(max_examples=15, suppress_health_check=SLOW_IS_FINE)
def test_a_reference_is_found_wherever_it_stands(value: WholeConversation) -> None:
    found = {image.digest for image in images_in(value)}
    assert found == {part.digest for part in PARTS if part.digest in value.model_dump_json()}
    elsewhere = with_images(value, lambda image: image.model_copy(update={"digest": "0" * 64}))
    assert not any(part.digest in elsewhere.model_dump_json() for part in PARTS)
    assert with_images(value, lambda image: image) is value
