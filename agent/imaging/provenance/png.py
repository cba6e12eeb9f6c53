"""PNG: a list of chunks, each with a length, a name and a checksum (W3C PNG, third edition, section 5).

A recipe stands in three: `aivista` (JSON), `parameters` (what other programs read) and XMP. They go right before the
pixels: readers that stop there find them, and content credentials (`caBX`), which come first, stay where they were.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.imaging.provenance import exif, xmp
from agent.imaging.provenance.foreign import KEYWORDS
from agent.imaging.provenance.recipe import MAX_PARTS, Carried, Malformed, Recipe, is_ours, parameters_text, to_json

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_RECIPE, _PARAMETERS, _XMP = "aivista", "parameters", "XML:com.adobe.xmp"
_TEXTS = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_FIRST_OF_PIXELS = frozenset({b"IDAT", b"fcTL"})
_MAX_KEYWORD_BYTES = 79
_MAX_TEXT_BYTES = xmp.MAX_PACKET_BYTES
# Colours, transparency, the shape of a pixel and the frames of an animation; whatever is critical stays as well.
_KEPT = frozenset(b"tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI mDCv cLLi bKGD hIST pHYs sPLT acTL fcTL fdAT".split())


@dataclass(frozen=True)
class _Chunk:
    kind: bytes
    start: int
    end: int

    def body(self, data: bytes) -> bytes:
        return data[self.start + 8 : self.end - 4]

    def is_whole(self, data: bytes) -> bool:
        """Return whether the checksum is right."""
        told = int.from_bytes(data[self.end - 4 : self.end], "big")
        return zlib.crc32(memoryview(data)[self.start + 4 : self.end - 4]) == told


@dataclass(frozen=True)
class _Text:
    keyword: str
    value: bytes
    is_utf_8: bool

    @property
    def text(self) -> str:
        return self.value.decode("utf-8" if self.is_utf_8 else "latin-1", "replace")


def carried(data: bytes) -> Carried:
    """Return what the file carries; see `PictureFormat`. Compressed texts are unpacked up to 2 MB."""
    found = Carried()
    with contextlib.suppress(Malformed):
        for chunk in _chunks(data):
            if chunk.kind == b"caBX":
                found = replace(found, has_credentials=True)
            elif chunk.kind in _TEXTS and (text := _text_of(chunk, data)) is not None:
                found = _with(found, text)
    return found


def _with(found: Carried, text: _Text) -> Carried:
    """Return what was found with this text; the first of each name counts."""
    if text.keyword == _RECIPE and not found.recipe:
        return replace(found, recipe=text.value)
    if text.keyword == _XMP and not found.xmp:
        return replace(found, xmp=text.value)
    if text.keyword == _PARAMETERS and not found.parameters:
        return replace(found, parameters=text.text)
    if text.keyword in KEYWORDS and text.keyword not in found.texts:
        return replace(found, texts={**found.texts, text.keyword: text.text})
    return found


def embedded(data: bytes, recipe: Recipe) -> bytes:
    """Return the file with the recipe; see `PictureFormat`. `parameters` of another program stay in place of ours."""
    chunks = list(_chunks(data))
    place = next((number for number, chunk in enumerate(chunks) if chunk.kind in _FIRST_OF_PIXELS), None)
    if place is None:
        raise Malformed("no pixels")
    texts = [_text_of(chunk, data) if chunk.kind in _TEXTS else None for chunk in chunks]
    packet = next((text.value for text in texts if text and text.keyword == _XMP), b"")
    has_parameters = any(text and text.keyword == _PARAMETERS and not _is_replaced(text) for text in texts)
    view = memoryview(data)
    kept = [
        b"" if text and _is_replaced(text) else view[chunk.start : chunk.end]
        for chunk, text in zip(chunks, texts, strict=True)
    ]
    added = _parts(recipe, packet, "" if has_parameters else parameters_text(recipe))
    return b"".join((SIGNATURE, *kept[:place], *added, *kept[place:], view[chunks[-1].end :]))


def _is_replaced(text: _Text) -> bool:
    return text.keyword in (_RECIPE, _XMP) or (text.keyword == _PARAMETERS and is_ours(text.text))


def _parts(recipe: Recipe, packet: bytes, parameters: str) -> Iterator[bytes]:
    text = to_json(recipe)
    if parameters.isascii() and parameters:
        # As other programs write it; some of their readers know no other kind.
        yield _chunk(b"tEXt", _PARAMETERS.encode() + b"\0" + parameters.encode())
    elif parameters:
        yield _international(_PARAMETERS, parameters.encode())
    yield _international(_RECIPE, text.encode())
    yield _international(_XMP, xmp.written(packet, recipe, text))


def cleaned(data: bytes) -> bytes:
    """Return the file with pixels, colours and orientation alone; see `PictureFormat`."""
    parts = [SIGNATURE]
    for chunk in _chunks(data):
        # A capital letter first: a decoder cannot do without the chunk.
        if chunk.kind in _KEPT or chunk.kind[:1].isupper():
            parts.append(data[chunk.start : chunk.end])
        elif chunk.kind == b"eXIf" and (block := exif.written(exif.look(chunk.body(data)).orientation, "")):
            parts.append(_chunk(b"eXIf", block))
    return b"".join(parts)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """Yield every chunk up to the end's. Raises Malformed where the list breaks."""
    place = len(SIGNATURE)
    if not data.startswith(SIGNATURE) or data[place + 4 : place + 8] != b"IHDR":
        raise Malformed("no PNG")
    for _ in range(MAX_PARTS):
        length = int.from_bytes(data[place : place + 4], "big")
        kind, end = data[place + 4 : place + 8], place + 12 + length
        if end > len(data) or not (kind.isalpha() and kind.isascii()):
            raise Malformed("a chunk is cut off")
        yield _Chunk(kind, place, end)
        if kind == b"IEND":
            return
        place = end
    raise Malformed("too many chunks")


def _text_of(chunk: _Chunk, data: bytes) -> _Text | None:
    """Return what a text chunk says whose name is known here, or None; nothing when it is damaged or too long."""
    head = data[chunk.start + 8 : min(chunk.start + 8 + _MAX_KEYWORD_BYTES + 1, chunk.end - 4)]
    keyword = head.partition(b"\0")[0].decode("latin-1")
    if keyword not in (_RECIPE, _XMP, _PARAMETERS, *KEYWORDS):
        return None
    is_sound = chunk.end - chunk.start <= _MAX_TEXT_BYTES and chunk.is_whole(data)
    value = _value(chunk.kind, chunk.body(data)[len(keyword) + 1 :]) if is_sound else None
    return _Text(keyword, value or b"", chunk.kind == b"iTXt")


def _value(kind: bytes, body: bytes) -> bytes | None:
    if kind == b"tEXt":
        return body
    if kind == b"zTXt":
        return _unpacked(body[1:]) if body[:1] == b"\0" else None
    flags, rest = body[:2], body[2:]
    # A language and a translated keyword come before the text.
    _, first, rest = rest.partition(b"\0")
    _, second, rest = rest.partition(b"\0")
    if not first or not second or flags not in (b"\0\0", b"\1\0"):
        return None
    return rest if flags == b"\0\0" else _unpacked(rest)


def _unpacked(packed: bytes) -> bytes | None:
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(packed, _MAX_TEXT_BYTES)
    except zlib.error:
        return None
    return text if unpacker.eof else None


def _international(keyword: str, text: bytes) -> bytes:
    return _chunk(b"iTXt", keyword.encode() + bytes(5) + text)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
