"""What kind of picture some bytes are, by how they begin."""

from __future__ import annotations

MIME_OF_SUFFIX = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "avif": "image/avif",
}
_AVIF = frozenset({b"avif", b"avis"})
_HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})


def suffix_of(data: bytes) -> str | None:
    """Return the suffix of a picture's file without the dot, None for what begins like no picture we know."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return _suffix_of_brands(data) if data[4:8] == b"ftyp" else None


def _suffix_of_brands(data: bytes) -> str | None:
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12], *(data[at : at + 4] for at in range(16, end, 4))}
    return "avif" if brands & _AVIF else "heic" if brands & _HEIC else None
