"""A picture file as a list of blocks: PNG, JPEG and WebP are only split and joined, and no pixel is decoded.

PNG consists of chunks with a length, a name and a checksum (W3C PNG, third edition, 5); JPEG of segments of at most
64 KB before its scans (ITU T.81, B.1); WebP of RIFF chunks padded to an even length (RFC 9649, 2).

All containers have the same methods; all but `made` raise Malformed. `split` yields every block, in a damaged file
those before the damage; `join` returns the file made of these blocks; `place` returns the index at which to insert a
recipe; `made` returns a new block with this value; `bare` returns the part of a pixel block that a clean copy keeps.
`has_texts` says that recipe and `parameters` are in separate texts, not in the EXIF comment; `most` limits how many
EXIF and XMP blocks we replace (None: all).
"""

from __future__ import annotations

import contextlib
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal, TypeAlias

from agent.imaging.provenance.foreign import KEYWORDS
from agent.imaging.provenance.recipe import is_ours
from agent.imaging.provenance.xmp import MAX_PACKET_BYTES

# No normal file has this many blocks; the limit stops a hostile file from using up CPU time.
_MAX_BLOCKS = 50_000


class Malformed(ValueError):
    """The structure of the file is invalid, or the file is truncated."""


class Kind(Enum):
    """The kind of a block. A clean copy keeps `PIXELS`, which include colour data, and the orientation of `EXIF`."""

    PIXELS = auto()
    RECIPE = auto()
    XMP = auto()
    EXIF = auto()
    PARAMETERS = auto()
    TEXT = auto()
    CREDENTIALS = auto()
    OTHER = auto()
    TAIL = auto()  # data after the picture's end


@dataclass(frozen=True)
class Block:
    """A part of a file: its raw bytes, and its content for the kinds that are read.

    `value` is the content of a recipe, an XMP packet or an EXIF block; `text` is the text of `parameters` or of another
    program, and `keyword` its name. `value` and `text` are empty when a text chunk is damaged or too long.
    """

    kind: Kind
    raw: bytes | memoryview
    value: bytes = b""
    text: str = ""
    keyword: str = ""


_PNG_NAMES = {Kind.RECIPE: b"aivista", Kind.PARAMETERS: b"parameters", Kind.XMP: b"XML:com.adobe.xmp"}
_PNG_KINDS = dict.fromkeys(KEYWORDS, Kind.TEXT) | {name.decode(): kind for kind, name in _PNG_NAMES.items()}
_MAX_KEYWORD_BYTES = 79
# Colours, transparency, the shape of a pixel and the frames of an animation; all critical chunks are kept as well.
_PNG_KEPT = frozenset(
    b"tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI mDCv cLLi bKGD hIST pHYs sPLT acTL fcTL fdAT".split()
)


class _Container:
    """What most containers have in common."""

    has_texts = False
    most: int | None = None
    max_packet_bytes = sys.maxsize

    def join(self, blocks: Sequence[Block]) -> bytes:
        return b"".join(block.raw for block in blocks)

    def bare(self, block: Block) -> bytes | memoryview:
        return block.raw


class _Png(_Container):
    """The PNG container, with the recipe right before the pixels.

    Readers that stop at the pixels find it there, and content credentials (`caBX`), which come first, keep their
    position.
    """

    signature = b"\x89PNG\r\n\x1a\n"
    has_texts = True

    def split(self, data: bytes) -> Iterator[Block]:
        view, place = memoryview(data), len(self.signature)
        if not data.startswith(self.signature) or data[place + 4 : place + 8] != b"IHDR":
            raise Malformed("no PNG")
        yield Block(Kind.PIXELS, view[:place])
        for _ in range(_MAX_BLOCKS):
            name, end = data[place + 4 : place + 8], place + 12 + int.from_bytes(data[place : place + 4], "big")
            if end > len(data) or not (name.isalpha() and name.isascii()):
                raise Malformed("a chunk is cut off")
            yield self._block(name, view[place:end])
            if name == b"IEND":
                yield Block(Kind.TAIL, view[end:])
                return
            place = end
        raise Malformed("too many chunks")

    def _block(self, name: bytes, raw: memoryview) -> Block:
        if name in (b"tEXt", b"zTXt", b"iTXt"):
            return self._text(name, raw)
        if name == b"eXIf":
            return Block(Kind.EXIF, raw, bytes(raw[8:-4]))
        if name == b"caBX":
            return Block(Kind.CREDENTIALS, raw)
        # A capital first letter marks a critical chunk, which a decoder needs.
        return Block(Kind.PIXELS if name in _PNG_KEPT or name[:1].isupper() else Kind.OTHER, raw)

    def _text(self, name: bytes, raw: memoryview) -> Block:
        keyword = bytes(raw[8:-4][: _MAX_KEYWORD_BYTES + 1]).partition(b"\0")[0].decode("latin-1")
        kind = _PNG_KINDS.get(keyword)
        if kind is None:
            return Block(Kind.OTHER, raw)
        value = b""
        if len(raw) <= MAX_PACKET_BYTES and zlib.crc32(raw[4:-4]) == int.from_bytes(raw[-4:], "big"):
            value = _text_of_chunk(name, bytes(raw[8 + len(keyword) + 1 : -4]))
        if kind in (Kind.RECIPE, Kind.XMP):
            return Block(kind, raw, value)
        text = value.decode("utf-8" if name == b"iTXt" else "latin-1", "replace")
        return Block(kind, raw, text=text, keyword=keyword)

    def place(self, blocks: Sequence[Block]) -> int:
        for number, block in enumerate(blocks):
            if block.kind is Kind.PIXELS and block.raw[4:8] in (b"IDAT", b"fcTL"):
                return number
        raise Malformed("no pixels")

    def made(self, kind: Kind, value: bytes) -> Block:
        if kind is Kind.EXIF:
            name, body = b"eXIf", value
        elif kind is Kind.PARAMETERS and value.isascii():
            # Other programs write tEXt, and some of their readers know no other chunk type.
            name, body = b"tEXt", _PNG_NAMES[kind] + b"\0" + value
        else:
            name, body = b"iTXt", _PNG_NAMES[kind] + bytes(5) + value
        raw = struct.pack(">I", len(body)) + name + body
        return Block(kind, raw + struct.pack(">I", zlib.crc32(raw[4:])))


def _text_of_chunk(name: bytes, body: bytes) -> bytes:
    """Return the text of a PNG chunk from its body after the keyword; empty when damaged or over 2 MB decompressed."""
    if name == b"tEXt":
        return body
    if name == b"zTXt":
        flags, rest = b"\1" + body[:1], body[1:]
    else:
        flags, rest = body[:2], body[2:]
        # A language and a translated keyword come before the text.
        _, first, rest = rest.partition(b"\0")
        _, second, rest = rest.partition(b"\0")
        if not first or not second:
            return b""
    if flags != b"\1\0":
        return rest if flags == b"\0\0" else b""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(rest, MAX_PACKET_BYTES)
    except zlib.error:
        return b""
    return text if unpacker.eof else b""


_APP0, _APP1, _APP2, _APP11, _APP14, _SCAN, _END = 0xE0, 0xE1, 0xE2, 0xEB, 0xEE, 0xDA, 0xD9
# Any number of FF bytes may precede a marker. Pixel data have no marker; 0 stands for them.
_FILL, _SCANNED = 0xFF, 0
# Frames, tables and scans; all other segments are metadata that decoding does not need.
_DECODING = frozenset({_SCANNED, *range(0xC0, 0xD8), _SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})
# Within a scan, FF 00 is a data byte, and FF D0 to FF D7 are restart markers.
_NEXT_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_APP1_HEADS = {Kind.EXIF: b"Exif\0\0", Kind.XMP: b"http://ns.adobe.com/xap/1.0/\0"}
_JFIF_BYTES, _ADOBE_BYTES = 14, 12


class _Jpeg(_Container):
    """The JPEG container, with the recipe in an XMP segment.

    Its packet has at most 65,502 bytes (XMP specification, part 3, 1.1.3). Everything from the first scan on is one
    block, including a second picture after the end.
    """

    signature = b"\xff\xd8\xff"
    most = 1
    max_packet_bytes = 65_502

    def split(self, data: bytes) -> Iterator[Block]:
        if not data.startswith(self.signature):
            raise Malformed("no JPEG")
        done = 2
        yield Block(Kind.PIXELS, data[:done])
        for marker, start, end in self._segments(data, done):
            if marker == _SCAN:
                yield Block(Kind.PIXELS, memoryview(data)[done:])
                return
            yield self._block(marker, data[start:end])
            done = end

    def _segments(self, data: bytes | memoryview, place: int) -> Iterator[tuple[int, int, int]]:
        """Yield marker, start and end of each segment up to the image's end; a scan's pixel data are one segment."""
        has_scan = False
        for _ in range(_MAX_BLOCKS):
            if place + 1 < len(data) and data[place] != 0xFF:
                raise Malformed("no marker")
            marker = data[place + 1] if place + 1 < len(data) else _END
            if marker == _END:
                # Decoders show a picture even if its end marker is missing.
                if has_scan:
                    return
                raise Malformed("no pixels")
            if marker == _FILL:
                place += 1
                continue
            length = 0 if marker in _WITHOUT_LENGTH else int.from_bytes(data[place + 2 : place + 4], "big")
            end = place + 2 + length
            if end > len(data) or (length < 2 and marker not in _WITHOUT_LENGTH):
                raise Malformed("a segment is cut off")
            yield marker, place, end
            place = end
            if marker == _SCAN:
                has_scan = True
                following = _NEXT_MARKER.search(data, place)
                place = following.start() if following else len(data)
                yield _SCANNED, end, place
        raise Malformed("too many segments")

    def _block(self, marker: int, raw: bytes) -> Block:
        body = raw[4:]
        if marker == _APP1:
            for kind, head in _APP1_HEADS.items():
                if body.startswith(head):
                    return Block(kind, raw, body.removeprefix(head))
        if marker == _APP11 and body[:2] == b"JP" and b"c2pa" in body[:80]:
            return Block(Kind.CREDENTIALS, raw)
        is_kept = (
            marker in _DECODING
            or (marker == _APP0 and body.startswith(b"JFIF\0") and len(body) >= _JFIF_BYTES)
            or (marker == _APP2 and body.startswith(b"ICC_PROFILE\0"))
            or (marker == _APP14 and body.startswith(b"Adobe"))
        )
        return Block(Kind.PIXELS if is_kept else Kind.OTHER, raw)

    def place(self, blocks: Sequence[Block]) -> int:
        # The loop ends because the last block is the pixels.
        place = 1
        while blocks[place].kind is Kind.EXIF or blocks[place].raw[:2] == bytes((0xFF, _APP0)):
            place += 1
        return place

    def made(self, kind: Kind, value: bytes) -> Block:
        return Block(kind, _segment(_APP1, _APP1_HEADS[kind] + value))

    def bare(self, block: Block) -> bytes | memoryview:
        raw = block.raw
        if isinstance(raw, memoryview):
            # This block contains everything from the first scan on.
            kept = (raw[start:end] for marker, start, end in self._segments(raw, 0) if marker in _DECODING)
            return b"".join((*kept, b"\xff\xd9"))
        if raw[1] == _APP0:
            # The last two bytes are the size of a preview, which would follow; set them to 0.
            return _segment(_APP0, raw[4 : 4 + _JFIF_BYTES - 2] + bytes(2))
        return _segment(_APP14, raw[4 : 4 + _ADOBE_BYTES]) if raw[1] == _APP14 else raw


def _segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


_EXTENDED, _LOSSY, _LOSSLESS, _FRAME = b"VP8X", b"VP8 ", b"VP8L", b"ANMF"
_WEBP_NAMES = {Kind.EXIF: b"EXIF", Kind.XMP: b"XMP ", Kind.CREDENTIALS: b"C2PA"}
_WEBP_PIXELS = (_EXTENDED, b"ICCP", b"ANIM", _FRAME, b"ALPH", _LOSSY, _LOSSLESS)
_WEBP_KINDS = dict.fromkeys(_WEBP_PIXELS, Kind.PIXELS) | {name: kind for kind, name in _WEBP_NAMES.items()}
_FLAGS = {Kind.EXIF: 0x08, Kind.XMP: 0x04}
_ALPHA_FLAG = 0x10


class _WebP(_Container):
    """The WebP container, with the recipe after the pixels.

    The extended header, whose flags announce XMP and EXIF, is added or removed as needed. Blocks have no padding,
    because some programs omit it at the end of the file.
    """

    signature = b"RIFF"

    def split(self, data: bytes) -> Iterator[Block]:
        view, place, end = memoryview(data), 12, 8 + int.from_bytes(data[4:8], "little")
        if not data.startswith(self.signature) or data[8:12] != b"WEBP" or end > len(data):
            raise Malformed("no WebP")
        for _ in range(_MAX_BLOCKS):
            if place >= end:
                yield Block(Kind.TAIL, view[end:])
                return
            stop = place + 8 + int.from_bytes(data[place + 4 : place + 8], "little")
            if stop > end:
                raise Malformed("a chunk is cut off")
            name = data[place : place + 4]
            # The extended header is valid only as the first chunk.
            kind = _WEBP_KINDS.get(name, Kind.OTHER) if name != _EXTENDED or place == 12 else Kind.OTHER
            yield Block(kind, view[place:stop], data[place + 8 : stop] if kind in _FLAGS else b"")
            place = stop + stop % 2
        raise Malformed("too many chunks")

    def join(self, blocks: Sequence[Block]) -> bytes:
        chunks = [one for one in blocks if one.kind is not Kind.TAIL and one.raw[:4] != _EXTENDED]
        if not any(one.raw[:4] in (_LOSSY, _LOSSLESS, _FRAME) for one in chunks):
            raise Malformed("no pixels")
        headers = [one for one in blocks if one.kind is Kind.PIXELS and one.raw[:4] == _EXTENDED]
        header = bytes(headers[0].raw[8:]) if headers else self._plain_header(chunks)
        if len(header) != 10:
            raise Malformed("no header")
        kinds = {one.kind for one in chunks}
        flags = header[0] & ~sum(_FLAGS.values()) | sum(_FLAGS[kind] for kind in kinds & set(_FLAGS))
        header = bytes([flags]) + header[1:]
        parts = [one.raw for one in chunks]
        # A file with only the picture needs no extended header.
        if len(parts) > 1 or header != self._plain_header(chunks):
            parts.insert(0, _riff(_EXTENDED, header))
        body = b"".join((b"WEBP", *(piece for part in parts for piece in (part, bytes(len(part) % 2)))))
        return _riff(self.signature, body) + b"".join(one.raw for one in blocks if one.kind is Kind.TAIL)

    def _plain_header(self, chunks: Iterable[Block]) -> bytes:
        """Return the extended header of the only picture in the file, from its pixel chunk (RFC 9649, 2.5, 2.6)."""
        pixels = next((one.raw for one in chunks if one.raw[:4] in (_LOSSY, _LOSSLESS)), b"")
        body, flags, width, height = bytes(pixels[8:18]), 0, 0, 0
        if pixels[:4] == _LOSSY and len(body) == 10 and body[3:6] == b"\x9d\x01\x2a":
            width, height = (int.from_bytes(body[at : at + 2], "little") & 0x3FFF for at in (6, 8))
        elif pixels[:4] == _LOSSLESS and len(body) >= 5 and body[:1] == b"\x2f":
            bits = int.from_bytes(body[1:5], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
            flags = _ALPHA_FLAG if bits >> 28 & 1 else 0
        if not width or not height:
            raise Malformed("no pixels")
        return bytes((flags, 0, 0, 0)) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")

    def place(self, blocks: Sequence[Block]) -> int:
        numbers = [number for number, one in enumerate(blocks) if one.kind is Kind.EXIF][:1]
        return 1 + max(numbers + [number for number, one in enumerate(blocks) if one.kind is Kind.PIXELS], default=-1)

    def made(self, kind: Kind, value: bytes) -> Block:
        return Block(kind, _riff(_WEBP_NAMES[kind], value))


def _riff(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body


Container: TypeAlias = _Png | _Jpeg | _WebP

CONTAINERS: dict[str, Container] = {"image/png": _Png(), "image/jpeg": _Jpeg(), "image/webp": _WebP()}
"""The containers by the declared type of a file."""


# EXIF is parsed by hand: Pillow drops each entry that it cannot read, with a warning, so the data of another program
# would look empty and be replaced. Nothing else here needs Pillow.
_ORIENTATION, _EXIF_TABLE, _USER_COMMENT, _EXIF_VERSION = 0x0112, 0x8769, 0x9286, 0x9000
_SHORT, _LONG, _UNDEFINED = 3, 4, 7
_MAX_ENTRIES = 500
_MAX_EXIF_BYTES = 1 << 20
_MAX_COMMENT_BYTES = 400_000
_UNICODE, _ASCII, _UNSAID = b"UNICODE\0", b"ASCII\0\0\0", bytes(8)
_ORDERS: dict[bytes, Literal["little", "big"]] = {b"II*\0": "little", b"MM\0*": "big"}


@dataclass(frozen=True)
class Exif:
    """The content of an EXIF block: orientation, the comment of a user or program, and whether there is more.

    The orientation is 1 to 8, and 1 when it is not given.
    """

    orientation: int = 1
    comment: str = ""
    says_more: bool = False

    @property
    def is_foreign(self) -> bool:
        """Whether the block has anything other than the orientation and our own comment."""
        return self.says_more or bool(self.comment and not is_ours(self.comment))


def read_exif(block: bytes) -> Exif:
    """Return the content of a block, with or without its `Exif` header; `says_more` is set when it is unreadable.

    A block is TIFF: a byte order, then tables with twelve bytes per entry; offsets are relative to its start.
    """
    tiff = block.removeprefix(b"Exif\0\0")
    order = _ORDERS.get(tiff[:4])
    if order is None or len(tiff) > _MAX_EXIF_BYTES:
        return Exif(says_more=True)

    def number(place: int, length: int) -> int:
        if place + length > len(tiff):
            raise IndexError("beyond the block")
        return int.from_bytes(tiff[place : place + length], order)

    def table(place: int) -> dict[int, int]:
        """Return the offset of each tag's entry."""
        count = min(number(place, 2), _MAX_ENTRIES)
        return {number(entry, 2): entry for entry in range(place + 2, place + 2 + 12 * count, 12)}

    comment = ""
    try:
        first = number(4, 4)
        tags = table(first)
        more = bool(tags.keys() - {_ORIENTATION, _EXIF_TABLE}) or number(first + 2 + 12 * number(first, 2), 4) != 0
        orientation = number(tags[_ORIENTATION] + 8, 2) if _ORIENTATION in tags else 1
        inner = table(number(tags[_EXIF_TABLE] + 8, 4)) if _EXIF_TABLE in tags else {}
        more = more or bool(inner.keys() - {_USER_COMMENT, _EXIF_VERSION})
    except IndexError:
        return Exif(says_more=True)
    # A comment outside the block is ignored; the rest still counts.
    with contextlib.suppress(KeyError, IndexError):
        length, place = (number(inner[_USER_COMMENT] + at, 4) for at in (4, 8))
        if length > 4 and place + length <= len(tiff):
            comment = _comment(tiff[place : place + min(length, _MAX_COMMENT_BYTES)], order)
    return Exif(orientation if 1 <= orientation <= 8 else 1, comment, more)


def _comment(value: bytes, order: Literal["little", "big"]) -> str:
    code, text = value[:8], value[8:]
    if code == _UNICODE:
        # The standard does not define the byte order, and programs differ: use a byte order mark, else the position of
        # the zero bytes of Latin text.
        zeros_first, zeros_last = text[:200:2].count(0), text[1:200:2].count(0)
        is_big = zeros_first > zeros_last if zeros_first != zeros_last else order == "big"
        has_mark = text[:2] in (b"\xff\xfe", b"\xfe\xff")
        return text.decode("utf-16" if has_mark else "utf-16-be" if is_big else "utf-16-le", "replace").rstrip("\0")
    if code not in (_ASCII, _UNSAID):
        text = value if value[:1].isalnum() else b""
    return text.decode("utf-8", "replace").rstrip("\0")


def exif_of(orientation: int, comment: str) -> bytes:
    """Return a block, without its header, with the orientation unless it is 1 and the comment unless it is empty.

    The result is empty when the block would have neither. The comment is UTF-16, as EXIF requires, in the byte order of
    the block, from which readers infer it.
    """
    entries = []
    if orientation != 1:
        entries.append(struct.pack(">HHIHH", _ORIENTATION, _SHORT, 1, orientation, 0))
    if not entries and not comment:
        return b""
    inner = b""
    if comment:
        place = 8 + 2 + 12 * (len(entries) + 1) + 4
        entries.append(struct.pack(">HHII", _EXIF_TABLE, _LONG, 1, place))
        value = _UNICODE + comment.encode("utf-16-be", "replace")
        version = struct.pack(">HHI4s", _EXIF_VERSION, _UNDEFINED, 4, b"0232")
        entry = struct.pack(">HHII", _USER_COMMENT, _UNDEFINED, len(value), place + 2 + 2 * 12 + 4)
        inner = struct.pack(">H", 2) + version + entry + bytes(4) + value
    return b"MM\0*" + struct.pack(">IH", 8, len(entries)) + b"".join(entries) + bytes(4) + inner
