"""WebP: a RIFF container of chunks, each padded to an even length (RFC 9649, section 2).

A recipe stands in the chunk of XMP, and as `parameters` in that of EXIF, where other programs look. A file without
the extended header gets one: the chunks of the pixels stay as they are.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.imaging.provenance import exif, xmp
from agent.imaging.provenance.recipe import MAX_PARTS, Carried, Malformed, Recipe, parameters_text, to_json

SIGNATURE = b"RIFF"

_HEADER, _EXIF, _XMP, _CREDENTIALS = b"VP8X", b"EXIF", b"XMP ", b"C2PA"
_LOSSY, _LOSSLESS = b"VP8 ", b"VP8L"
_PIXELS = frozenset({_HEADER, b"ICCP", b"ANIM", b"ANMF", b"ALPH", _LOSSY, _LOSSLESS})
_ALPHA_FLAG, _EXIF_FLAG, _XMP_FLAG = 0x10, 0x08, 0x04
_HEADER_BYTES = 10
_MAX_BLOCK_BYTES = xmp.MAX_PACKET_BYTES


@dataclass(frozen=True)
class _Chunk:
    kind: bytes
    start: int
    length: int

    def body(self, data: bytes) -> bytes:
        return data[self.start + 8 : self.start + 8 + self.length]


def carried(data: bytes) -> Carried:
    """Return what the file carries; see `PictureFormat`."""
    found = Carried()
    with contextlib.suppress(Malformed):
        for chunk in _chunks(data):
            if chunk.length > _MAX_BLOCK_BYTES:
                continue
            if chunk.kind == _EXIF and not found.parameters:
                found = replace(found, parameters=exif.look(chunk.body(data)).comment)
            elif chunk.kind == _XMP and not found.xmp:
                found = replace(found, xmp=chunk.body(data))
            elif chunk.kind == _CREDENTIALS:
                found = replace(found, has_credentials=True)
    return found


def embedded(data: bytes, recipe: Recipe) -> bytes:
    """Return the file with the recipe; see `PictureFormat`. EXIF of another program stays in place of ours."""
    chunks = list(_chunks(data))
    header = _header(chunks, data)
    block = next((chunk for chunk in chunks if chunk.kind == _EXIF), None)
    packet = next((chunk for chunk in chunks if chunk.kind == _XMP), None)
    known = exif.look(block.body(data)) if block else exif.Exif()
    replaced = (_HEADER, _XMP) if known.is_foreign else (_HEADER, _XMP, _EXIF)
    ours = b"" if known.is_foreign else exif.written(known.orientation, parameters_text(recipe))
    told = xmp.written(packet.body(data) if packet else b"", recipe, to_json(recipe))
    flags = _XMP_FLAG | (_EXIF_FLAG if ours or known.is_foreign else 0) | header[0] & ~(_XMP_FLAG | _EXIF_FLAG)
    place = max(number for number, chunk in enumerate(chunks) if chunk.kind in _PIXELS or chunk is block) + 1
    parts = [_chunk(chunk.kind, chunk.body(data)) if chunk.kind not in replaced else b"" for chunk in chunks]
    added = (_chunk(_EXIF, ours) if ours else b"", _chunk(_XMP, told))
    return _file(bytes([flags]) + header[1:], (*parts[:place], *added, *parts[place:])) + data[_end(data) :]


def cleaned(data: bytes) -> bytes:
    """Return the file with pixels, colours and orientation alone; see `PictureFormat`."""
    chunks = list(_chunks(data))
    header = _header(chunks, data)
    turned = next((exif.look(chunk.body(data)).orientation for chunk in chunks if chunk.kind == _EXIF), 1)
    block = exif.written(turned, "")
    flags = (_EXIF_FLAG if block else 0) | header[0] & ~(_XMP_FLAG | _EXIF_FLAG)
    parts = [_chunk(one.kind, one.body(data)) for one in chunks if one.kind in _PIXELS and one.kind != _HEADER]
    if block:
        parts.append(_chunk(_EXIF, block))
    header = bytes([flags]) + header[1:]
    if len(parts) == 1 and header == _plain_header(chunks, data):
        # Nothing is left that the extended header would announce.
        return _file(b"", parts)
    return _file(header, parts)


def _chunks(data: bytes) -> Iterator[_Chunk]:
    """Yield every chunk. Raises Malformed where the list breaks."""
    end, place = _end(data), 12
    for _ in range(MAX_PARTS):
        if place >= end:
            return
        length = int.from_bytes(data[place + 4 : place + 8], "little")
        # The padding of the last chunk is forgotten by some programs.
        if place + 8 + length > end:
            raise Malformed("a chunk is cut off")
        yield _Chunk(data[place : place + 4], place, length)
        place += 8 + length + length % 2
    raise Malformed("too many chunks")


def _end(data: bytes) -> int:
    end = 8 + int.from_bytes(data[4:8], "little")
    if not data.startswith(SIGNATURE) or data[8:12] != b"WEBP" or end > len(data):
        raise Malformed("no WebP")
    return end


def _header(chunks: list[_Chunk], data: bytes) -> bytes:
    """Return the ten bytes of the extended header: the file's own, or those that say what its pixels are.

    Raises Malformed when the file begins with neither.
    """
    if not chunks or chunks[0].kind != _HEADER:
        return _plain_header(chunks, data)
    header = chunks[0].body(data)
    if len(header) != _HEADER_BYTES or len(chunks) == 1:
        raise Malformed("no pixels")
    return header


def _plain_header(chunks: list[_Chunk], data: bytes) -> bytes:
    """Return the extended header of the only picture in the file, as its pixels tell it (RFC 9649, 2.5 and 2.6)."""
    pixels = next((chunk for chunk in chunks if chunk.kind in (_LOSSY, _LOSSLESS)), None)
    body = data[pixels.start + 8 : pixels.start + 18] if pixels else b""
    if pixels is not None and pixels.kind == _LOSSY and len(body) == 10 and body[3:6] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (6, 8))
        flags = 0
    elif pixels is not None and pixels.kind == _LOSSLESS and len(body) >= 5 and body[:1] == b"\x2f":
        bits = int.from_bytes(body[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        flags = _ALPHA_FLAG if bits >> 28 & 1 else 0
    else:
        raise Malformed("no pixels")
    if not width or not height:
        raise Malformed("no pixels")
    return bytes((flags, 0, 0, 0)) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def _file(header: bytes, parts: Sequence[bytes]) -> bytes:
    body = b"".join((b"WEBP", _chunk(_HEADER, header) if header else b"", *parts))
    return SIGNATURE + struct.pack("<I", len(body)) + body


def _chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)
