from __future__ import annotations

import io

import pytest
from PIL import Image

from agent import ErrorCode, RequestRefused
from tests.adapters.recipes import clean, embed, has_credentials, read_recipe
from tests.agent.imaging.provenance.samples import (
    FILES,
    JPEGS,
    PNGS,
    WEBPS,
    every_frame,
    jpeg_segment,
    png_chunk,
    png_chunks,
    recipe,
    scene,
    webp_chunks,
    webp_of,
    with_chunks,
)
from tests.support.cases import each_case
from tests.support.pixels import encoded

TRACES = ("quokka", "Photorealistic", "aivista", "Aivista", "parameters", "xmpmeta", "短尾", "Rottnest", "Gemini")


def traces(data: bytes) -> list[str]:
    codes = ("utf-8", "utf-16-le", "utf-16-be")
    return [word for word in (*TRACES, "secret place") if any(word.encode(code) in data for code in codes)]


def orientation(data: bytes) -> int:
    with Image.open(io.BytesIO(data)) as picture:
        return int(picture.getexif().get(0x0112, 1))


@each_case("name", FILES)
def test_a_clean_copy_has_no_trace_of_the_recipe_and_the_same_pixels(name: str) -> None:
    mime_type, data = FILES[name]
    told = embed(data, mime_type, recipe())
    assert traces(told)
    bare = clean(told, mime_type)
    assert traces(bare) == []
    assert read_recipe(bare) is None
    assert every_frame(bare) == every_frame(data)
    assert bare == clean(data, mime_type)
    assert len(bare) <= len(data)
    assert orientation(bare) == orientation(data)


@each_case("orientation_told", range(1, 9))
@each_case("form", ["PNG", "JPEG", "WEBP"])
def test_of_a_cameras_exif_only_the_way_up_stays(form: str, orientation_told: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation_told
    exif[0x010F] = "secret place"
    exif.get_ifd(0x8825)[2] = (48.0, 12.0, 30.5)
    exif.get_ifd(0x8769)[0x9286] = b"ASCII\0\0\0secret place"
    data = encoded(scene(), form, exif=exif.tobytes(), icc_profile=None)
    bare = clean(data, f"image/{form.lower()}")
    assert traces(data)
    assert traces(bare) == []
    assert orientation(bare) == orientation_told
    with Image.open(io.BytesIO(bare)) as picture:
        assert set(picture.getexif()) == ({0x0112} if orientation_told != 1 else set())
    assert every_frame(bare) == every_frame(data)


def test_a_png_loses_every_text_its_time_and_its_credentials() -> None:
    chunks = {
        b"tEXt": b"Comment\0secret place",
        b"zTXt": b"prompt\0\0secret place",
        b"iTXt": b"XML:com.adobe.xmp\0\0\0\0\0secret place",
        b"tIME": bytes(7),
        b"caBX": b"jumb secret place",
        b"prVt": b"secret place",
    }
    dirty = with_chunks(PNGS["png with profile"], *map(png_chunk, chunks, chunks.values())) + b"secret place"
    bare = clean(dirty, "image/png")
    assert bare == PNGS["png with profile"]
    assert [kind for kind, _ in png_chunks(bare)] == [b"IHDR", b"iCCP", b"pHYs", b"IDAT", b"IEND"]


def test_a_jpeg_loses_every_remark_its_preview_and_its_credentials_and_gets_an_end_if_it_has_none() -> None:
    data = JPEGS["jpeg with profile"]
    remarks = {
        0xE0: b"JFIF\0\1\1\0\0\1\0\1\2\1secret",
        0xFE: b"secret place",
        0xED: b"Photoshop 3.0\0secret place",
        0xEB: b"JP\0\1\0\0\0\1\0\0\0\x40jumb\0\0\0\x1ejumdc2pa secret place",
        0xE2: b"FPXR\0secret place",
        0xE1: b"http://ns.adobe.com/xmp/extension/\0secret place",
    }
    scan = data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)
    within = data[20:scan] + jpeg_segment(0xFE, b"secret place") + data[scan:]
    dirty = data[:2] + b"".join(map(jpeg_segment, remarks, remarks.values())) + within + b"secret place" + data
    assert every_frame(dirty)[0][:3] == every_frame(data)[0][:3]
    bare = clean(dirty, "image/jpeg")
    assert (traces(bare), has_credentials(bare)) == ([], False)
    assert bare == data
    assert clean(JPEGS["jpeg"][:-2], "image/jpeg") == JPEGS["jpeg"]


def test_a_webp_loses_what_is_not_its_pixels_and_its_extended_header() -> None:
    data = WEBPS["webp with profile"]
    dirty = webp_of(*webp_chunks(data), (b"C2PA", b"secret place"), (b"note", b"secret place")) + b"secret place"
    assert clean(dirty, "image/webp") == data
    plain = WEBPS["lossy webp"]
    assert [kind for kind, _ in webp_chunks(clean(embed(plain, "image/webp", recipe()), "image/webp"))] == [b"VP8 "]


@each_case("kind", ["gif", "avif", "heic", "png", "jpeg", "webp"])
@each_case("data", [b"", b"GIF89a", PNGS["png"][:-20], JPEGS["jpeg"][:100], WEBPS["lossy webp"][:-9]])
def test_what_cannot_be_taken_apart_is_never_called_clean(kind: str, data: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        clean(data, f"image/{kind}")
    assert caught.value.code is ErrorCode.PICTURE_UNREADABLE
