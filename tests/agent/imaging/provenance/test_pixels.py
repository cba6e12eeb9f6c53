from __future__ import annotations

import pytest
from PIL import Image

from agent import ErrorCode, RequestRefused
from tests.adapters.recipes import pixels_digest
from tests.agent.imaging.provenance.samples import JPEGS, PNGS, SRGB, png_chunk, scene
from tests.support.cases import each_case
from tests.support.pixels import encoded


def test_the_same_pixels_have_the_same_digest_whatever_the_file_and_others_another() -> None:
    clear, indexed, picture = scene("RGBA"), scene().convert("P"), scene()
    packed = {"compress_level": 0, "icc_profile": SRGB}
    files = encoded(clear, "PNG"), encoded(clear, "PNG", **packed), encoded(clear, "WEBP", lossless=True, exact=True)
    assert len({pixels_digest(data) for data in files}) == 1
    assert pixels_digest(encoded(indexed, "PNG")) == pixels_digest(encoded(indexed.convert("RGB"), "PNG"))
    other, tall, last_row = picture.copy(), Image.new("L", (3, 1000)), Image.new("L", (3, 1000))
    other.putpixel((47, 31), (1, 2, 3))
    last_row.putpixel((2, 999), 1)
    flat = Image.frombytes("RGB", (32, 48), picture.tobytes())
    deep, deeper = (Image.frombytes("I;16", (2, 1), data) for data in (b"\1\0\2\0", b"\1\0\3\0"))
    digests = {pixels_digest(encoded(one, "PNG")) for one in (picture, other, flat, deep, deeper, tall, last_row)}
    assert [len(digest) for digest in digests] == [64] * 7


HUGE = PNGS["png"][:8] + png_chunk(b"IHDR", b"\0\0\xff\xff\0\0\xff\xff\x08\0\0\0\0") + PNGS["png"][33:]


@each_case("data", [b"", b"no picture", PNGS["png"][:60], JPEGS["jpeg"][:200], HUGE])
def test_what_cannot_be_decoded_is_refused(data: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        pixels_digest(data)
    assert caught.value.code is ErrorCode.PICTURE_UNREADABLE
