"""Pictures and blobs below a home: private, whole or refused, and never at a path made of outside text."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image

from agent import ErrorCode, ImageOrigin, ImagePart, RequestRefused, StorageFailure
from tests.adapters.records import ImageStore
from tests.support.cases import each_case
from tests.support.children import full_disk
from tests.support.pixels import encoded
from tests.support.refusals import refusal

DATA = b"\x89PNG not really" * 100


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def stored_file(home: Path, part: ImagePart) -> Path:
    (path,) = (home / "pictures" / part.digest[:2]).glob(f"{part.digest}.[a-z]*")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


async def test_only_their_user_may_read_folders_and_files(home: Path) -> None:
    store = ImageStore(home)
    await asyncio.gather(*(store.write(DATA, "image/png", ImageOrigin.UPLOADED) for _ in range(8)))
    await store.write_blob(DATA)
    assert len(files_below(home)) == 2, "the same picture is one file"
    folders = {home.parent, home} | {path.parent for path in files_below(home)}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files_below(home)} == {0o600}


async def test_a_damaged_picture_is_refused_by_its_handle_and_mended_by_sending_it_again(home: Path) -> None:
    store = ImageStore(home)
    part = (await store.write(DATA, "image/png", ImageOrigin.UPLOADED)).model_copy(update={"handle": "#7"})
    for damage in (b"", DATA[:-1], DATA.replace(b"n", b"m")):
        stored_file(home, part).write_bytes(damage)
        with pytest.raises(RequestRefused, match="#7") as refused:
            await ImageStore(home).read(part)
        assert refused.value.code is ErrorCode.PICTURE_FILE_MISSING
        await store.write(DATA, "image/png", ImageOrigin.UPLOADED)
        assert await ImageStore(home).read(part) == DATA
        blob = await store.write_blob(DATA)
        (home / "blobs" / blob[:2] / blob).write_bytes(damage)
        with pytest.raises(StorageFailure, match=blob[:8]):
            await ImageStore(home).read_blob(blob)


async def test_a_missing_picture_is_refused_and_one_whose_type_was_mended_is_found(home: Path) -> None:
    store = ImageStore(home)
    part = await store.write(DATA, "image/png", ImageOrigin.GENERATED)
    assert await store.read(part.model_copy(update={"mime_type": "image/jpeg"})) == DATA
    strange = await store.write(DATA[1:], "image/../../x", ImageOrigin.UPLOADED)
    assert stored_file(home, strange).name == f"{strange.digest}.bin"
    stored_file(home, part).unlink()
    for handle, code in ((None, ErrorCode.PICTURE_GONE), ("#7", ErrorCode.PICTURE_FILE_MISSING)):
        named = part.model_copy(update={"handle": handle})
        for attempt in (store.read(named), store.thumbnail(part.digest, 64, *([handle] if handle else []))):
            with pytest.raises(RequestRefused) as refused:
                await attempt
            assert refused.value.code is code
            assert part.digest[:8] not in refused.value.info.message


@pytest.mark.parametrize("digest", ["../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "", "a" * 64 + "/.."])
async def test_a_path_is_never_built_from_outside_text(home: Path, digest: str) -> None:
    store = ImageStore(home)
    part = ImagePart(digest=digest, md5="", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    for attempt in (store.read(part), store.thumbnail(digest, 64)):
        with pytest.raises(RequestRefused):
            await attempt
    with pytest.raises(StorageFailure):
        await store.read_blob(digest)


@each_case(("mode", "kind"), [("RGB", "JPEG"), ("RGBA", "PNG"), ("P", "PNG"), ("L", "WEBP"), ("1", "PNG")])
async def test_a_thumbnail_keeps_the_shape_is_made_once_and_only_of_a_picture(home: Path, mode: str, kind: str) -> None:
    store, none = ImageStore(home), await ImageStore(home).write(DATA, "image/png", ImageOrigin.UPLOADED)
    image = Image.new(mode, (400, 200), (255, 0, 0, 100) if mode == "RGBA" else "red")
    part = await store.write(encoded(image, kind), f"image/{kind.lower()}", ImageOrigin.UPLOADED)
    data = await store.thumbnail(part.digest, 100)
    with Image.open(io.BytesIO(data)) as small:
        assert (small.format, small.size) == ("WEBP", (100, 50))
        assert small.has_transparency_data == (mode == "RGBA")
    stored_file(home, part).unlink()
    assert await store.thumbnail(part.digest, 100) == data
    assert await refusal(store.thumbnail(none.digest, 64)) is ErrorCode.PICTURE_UNREADABLE
    for edge_px in (0, -1, 15, 2049, 10**9):
        with pytest.raises(ValueError, match="px"):
            await store.thumbnail(part.digest, edge_px)


async def test_a_full_disk_is_told_and_nothing_is_left_half_written(home: Path) -> None:
    store = ImageStore(home)
    small = await store.write(b"small", "image/png", ImageOrigin.UPLOADED)
    with full_disk(100_000):
        for write in (store.write(b"x" * 200_000, "image/png", ImageOrigin.UPLOADED), store.write_blob(b"y" * 200_000)):
            assert await refusal(write, StorageFailure) is ErrorCode.DISK_FULL
    assert await store.read(small) == b"small"
    assert [path.read_bytes() for path in files_below(home)] == [b"small"]
