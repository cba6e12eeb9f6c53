from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent.conversation import WholeConversation
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ImageOrigin
from tests.agent.archive.shelf import FILES, as_from_outside, digests, kept_turns, place, with_plain_ids
from tests.agent.archive.values import PNGS, whole_conversations
from tests.support.histories import NOW

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
