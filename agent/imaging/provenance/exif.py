"""The little of EXIF that matters here: which way up a picture is, and the comment of the person or program.

A block is TIFF: a byte order, then tables of twelve bytes an entry; offsets count from its start.
"""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass
from typing import Literal

from agent.imaging.provenance.recipe import is_ours

HEADER = b"Exif\0\0"

_ORIENTATION, _EXIF_TABLE, _USER_COMMENT, _EXIF_VERSION = 0x0112, 0x8769, 0x9286, 0x9000
_SHORT, _LONG, _UNDEFINED = 3, 4, 7
_MAX_ENTRIES = 500
_MAX_BLOCK_BYTES = 1 << 20
_MAX_COMMENT_BYTES = 400_000
_UNICODE, _ASCII, _UNSAID = b"UNICODE\0", b"ASCII\0\0\0", bytes(8)
_ORDERS: dict[bytes, Literal["little", "big"]] = {b"II*\0": "little", b"MM\0*": "big"}


@dataclass(frozen=True)
class Exif:
    """What a block says: the orientation (1 to 8, 1 where it says none), the comment, and whether there is more."""

    orientation: int = 1
    comment: str = ""
    says_more: bool = False

    @property
    def is_foreign(self) -> bool:
        """Whether it holds anything that is neither ours nor the orientation."""
        return self.says_more or bool(self.comment and not is_ours(self.comment))


def look(block: bytes) -> Exif:
    """Return what a block says, with or without its `Exif` header; of one that cannot be read, that there is more."""
    tiff = block.removeprefix(HEADER)
    order = _ORDERS.get(tiff[:4])
    if order is None or len(tiff) > _MAX_BLOCK_BYTES:
        return Exif(says_more=True)
    try:
        return _looked(_Tiff(tiff, order))
    except IndexError:
        return Exif(says_more=True)


def written(orientation: int, comment: str) -> bytes:
    """Return a block, without its header, that says the orientation unless it is 1, and the comment unless it is empty;
    nothing when there is neither.

    The comment is in UTF-16, as EXIF has it, in the byte order of the block: its readers know no other sign of it.
    """
    entries = []
    if orientation != 1:
        entries.append(struct.pack(">HHIHH", _ORIENTATION, _SHORT, 1, orientation, 0))
    if not entries and not comment:
        return b""
    table_bytes = 2 + 12 * (len(entries) + bool(comment)) + 4
    if comment:
        entries.append(struct.pack(">HHII", _EXIF_TABLE, _LONG, 1, 8 + table_bytes))
    block = b"MM\0*" + struct.pack(">IH", 8, len(entries)) + b"".join(entries) + bytes(4)
    if not comment:
        return block
    value = _UNICODE + comment.encode("utf-16-be", "replace")
    version = struct.pack(">HHI4s", _EXIF_VERSION, _UNDEFINED, 4, b"0232")
    place = len(block) + 2 + 2 * 12 + 4
    told = struct.pack(">HHII", _USER_COMMENT, _UNDEFINED, len(value), place)
    return block + struct.pack(">H", 2) + version + told + bytes(4) + value


@dataclass(frozen=True)
class _Tiff:
    data: bytes
    order: Literal["little", "big"]

    def number(self, place: int, length: int) -> int:
        if place < 0 or place + length > len(self.data):
            raise IndexError("beyond the block")
        return int.from_bytes(self.data[place : place + length], self.order)

    def table(self, place: int) -> dict[int, int]:
        """Return where each tag's entry begins."""
        count = min(self.number(place, 2), _MAX_ENTRIES)
        return {self.number(entry, 2): entry for entry in range(place + 2, place + 2 + 12 * count, 12)}

    def follower(self, place: int) -> int:
        return self.number(place + 2 + 12 * self.number(place, 2), 4)


def _looked(tiff: _Tiff) -> Exif:
    first = tiff.number(4, 4)
    tags = tiff.table(first)
    more = bool(set(tags) - {_ORIENTATION, _EXIF_TABLE}) or tiff.follower(first) != 0
    orientation = tiff.number(tags[_ORIENTATION] + 8, 2) if _ORIENTATION in tags else 1
    comment = ""
    if _EXIF_TABLE in tags:
        inner = tiff.table(tiff.number(tags[_EXIF_TABLE] + 8, 4))
        more = more or bool(set(inner) - {_USER_COMMENT, _EXIF_VERSION})
        if _USER_COMMENT in inner:
            # A comment beyond its block says nothing, and the rest still counts.
            with contextlib.suppress(IndexError):
                comment = _comment(tiff, inner[_USER_COMMENT])
    return Exif(orientation if 1 <= orientation <= 8 else 1, comment, more)


def _comment(tiff: _Tiff, entry: int) -> str:
    length, place = tiff.number(entry + 4, 4), tiff.number(entry + 8, 4)
    if length <= 4 or place + length > len(tiff.data):
        raise IndexError("beyond the block")
    value = tiff.data[place : place + min(length, _MAX_COMMENT_BYTES)]
    code, text = value[:8], value[8:]
    if code == _UNICODE:
        return text.decode(_utf_16(text, tiff.order), "replace").rstrip("\0")
    if code in (_ASCII, _UNSAID):
        return text.decode("utf-8", "replace").rstrip("\0")
    return value.decode("utf-8", "replace").rstrip("\0") if value[:1].isalnum() else ""


def _utf_16(text: bytes, order: Literal["little", "big"]) -> str:
    # The standard does not say which end comes first, and programs differ: a mark, or where the zeros of Latin are.
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros_first, zeros_last = text[:200:2].count(0), text[1:200:2].count(0)
    if zeros_first != zeros_last:
        return "utf-16-be" if zeros_first > zeros_last else "utf-16-le"
    return "utf-16-be" if order == "big" else "utf-16-le"
