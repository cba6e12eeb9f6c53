"""JPEG: segments up to the pixels, each at most 64 KB (ITU T.81, B.1).

A recipe stands in an APP1 segment of XMP (at most 65,502 bytes of packet: XMP specification, part 3, 1.1.3), and as
`parameters` in EXIF's user comment, where other programs look. A recipe that does not fit is shortened, and says so.
"""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.imaging.provenance import exif, xmp
from agent.imaging.provenance.recipe import MAX_PARTS, Carried, Malformed, Recipe, parameters_text, shortened, to_json

SIGNATURE = b"\xff\xd8\xff"

_APP0, _APP1, _APP2, _APP11, _APP14 = 0xE0, 0xE1, 0xE2, 0xEB, 0xEE
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
# Any number of FF may stand before a marker; the pixels have none.
_FILL, _PIXELS = 0xFF, 0
# Frames, tables and scans; the rest is said about the picture, not needed to decode it.
_DECODING = frozenset({_PIXELS, *range(0xC0, 0xD8), _START_OF_SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
# Within a scan FF 00 is a byte of pixels, and FF D0 to FF D7 only counts.
_NEXT_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_JFIF, _ICC, _ADOBE = b"JFIF\0", b"ICC_PROFILE\0", b"Adobe"
_JFIF_BYTES = 14
_MAX_PACKET_BYTES = 65_502
# Characters of a text and items of a list, tried one after the other.
_SHORTER = ((8000, 8), (4000, 8), (1000, 4), (200, 0))


@dataclass(frozen=True)
class _Segment:
    """`start` is its FF, `body` follows marker and length, `end` is where the next one may begin."""

    marker: int
    start: int
    body: bytes
    end: int

    @property
    def is_exif(self) -> bool:
        return self.marker == _APP1 and self.body.startswith(exif.HEADER)

    @property
    def is_xmp(self) -> bool:
        return self.marker == _APP1 and self.body.startswith(_XMP)


def carried(data: bytes) -> Carried:
    """Return what the file carries; see `PictureFormat`."""
    found = Carried()
    with contextlib.suppress(Malformed):
        for segment in _head(data):
            if segment.is_exif and not found.parameters:
                found = replace(found, parameters=exif.look(segment.body).comment)
            elif segment.is_xmp and not found.xmp:
                found = replace(found, xmp=segment.body.removeprefix(_XMP))
            elif segment.marker == _APP11 and segment.body[:2] == b"JP" and b"c2pa" in segment.body[:80]:
                found = replace(found, has_credentials=True)
    return found


def embedded(data: bytes, recipe: Recipe) -> bytes:
    """Return the file with the recipe; see `PictureFormat`. EXIF of another program stays in place of ours."""
    segments = list(_head(data))
    block = next((segment for segment in segments if segment.is_exif), None)
    known = exif.look(block.body) if block else exif.Exif()
    packet = next((segment for segment in segments if segment.is_xmp), None)
    replaced = {segment.start for segment in (packet, None if known.is_foreign else block) if segment}
    parts = [] if known.is_foreign else [_exif(exif.written(known.orientation, parameters_text(recipe)))]
    parts.append(_segment(_APP1, _XMP + _packet(packet.body.removeprefix(_XMP) if packet else b"", recipe)))
    leading = 0
    while leading < len(segments) and (segments[leading].marker == _APP0 or segments[leading].is_exif):
        leading += 1
    kept = [data[one.start : one.end] if one.start not in replaced else b"" for one in segments]
    rest = memoryview(data)[segments[-1].end if segments else 2 :]
    return b"".join((SIGNATURE[:2], *kept[:leading], *parts, *kept[leading:], rest))


def _packet(existing: bytes, recipe: Recipe) -> bytes:
    """Return the packet with as much of the recipe as one segment holds. Raises Malformed when it holds none."""
    for told in (recipe, *(shortened(recipe, *limits) for limits in _SHORTER)):
        packet = xmp.written(existing, told, to_json(told))
        if len(packet) <= _MAX_PACKET_BYTES:
            return packet
    raise Malformed("no room for a recipe")


def cleaned(data: bytes) -> bytes:
    """Return the file with pixels, colours and orientation alone; see `PictureFormat`.

    What follows the picture's end, such as a second picture, is left out as well.
    """
    parts, turned = [SIGNATURE[:2]], None
    for segment in _all(data):
        if segment.marker in _DECODING:
            parts.append(data[segment.start : segment.end])
        elif segment.marker == _APP0 and segment.body.startswith(_JFIF) and len(segment.body) >= _JFIF_BYTES:
            # The last two bytes are the size of a preview, which would follow them.
            parts.append(_segment(_APP0, segment.body[: _JFIF_BYTES - 2] + bytes(2)))
        elif segment.marker == _APP2 and segment.body.startswith(_ICC):
            parts.append(data[segment.start : segment.end])
        elif segment.marker == _APP14 and segment.body.startswith(_ADOBE):
            parts.append(_segment(_APP14, segment.body[:12]))
        elif segment.is_exif and turned is None:
            turned = _exif(exif.written(exif.look(segment.body).orientation, ""))
            parts.append(turned)
    return b"".join((*parts, b"\xff\xd9"))


def _head(data: bytes) -> Iterator[_Segment]:
    """Yield the segments before the first scan. Raises Malformed where they break, or when no scan follows."""
    for segment in _all(data):
        if segment.marker == _START_OF_SCAN:
            return
        yield segment


def _all(data: bytes) -> Iterator[_Segment]:
    """Yield every segment up to the end of the image, and the pixels after each scan's head as one without a marker.

    Raises Malformed where they break.
    """
    place, has_scan = 2, False
    if not data.startswith(SIGNATURE):
        raise Malformed("no JPEG")
    for _ in range(MAX_PARTS):
        marker = _marker_at(data, place)
        if has_scan and marker in (None, _END_OF_IMAGE):
            # Without its end, too, a picture is shown.
            return
        if marker is None or marker == _END_OF_IMAGE:
            raise Malformed("no pixels")
        if marker == _FILL:
            place += 1
            continue
        segment = _segment_at(data, place, marker)
        yield segment
        place = segment.end
        if marker == _START_OF_SCAN:
            has_scan = True
            following = _NEXT_MARKER.search(data, place)
            end = following.start() if following else len(data)
            yield _Segment(_PIXELS, place, b"", end)
            place = end
    raise Malformed("too many segments")


def _marker_at(data: bytes, place: int) -> int | None:
    if place + 1 >= len(data):
        return None
    if data[place] != 0xFF:
        raise Malformed("no marker")
    return data[place + 1]


def _segment_at(data: bytes, place: int, marker: int) -> _Segment:
    if marker in _WITHOUT_LENGTH:
        return _Segment(marker, place, b"", place + 2)
    length = int.from_bytes(data[place + 2 : place + 4], "big")
    end = place + 2 + length
    if length < 2 or end > len(data):
        raise Malformed("a segment is cut off")
    return _Segment(marker, place, data[place + 4 : end], end)


def _exif(block: bytes) -> bytes:
    return _segment(_APP1, exif.HEADER + block) if block else b""


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body
