"""Why an archive is not taken in, or cannot be made: one sentence each, naming a file where there is one."""

from __future__ import annotations

from agent.errors import ErrorCode, RequestRefused

_SHOWN_CHARACTERS = 60


def unreadable(detail: str = "") -> RequestRefused:
    """Return the refusal of what is no archive of ours, or is broken as a whole."""
    return RequestRefused(ErrorCode.ARCHIVE_UNREADABLE, provider_detail=detail[:200])


def unsafe(name: str) -> RequestRefused:
    """Return the refusal of an archive that holds a file of this name."""
    return RequestRefused(ErrorCode.ARCHIVE_UNSAFE, name=shown(name))


def archive_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal of an archive, or of a file in it, that is larger than may be."""
    return RequestRefused(ErrorCode.ARCHIVE_TOO_LARGE, limit=_megabytes(limit_bytes))


def damaged(name: str, detail: str = "") -> RequestRefused:
    """Return the refusal of an archive in which this file is missing, too many, or not what the manifest says."""
    return RequestRefused(ErrorCode.ARCHIVE_DAMAGED, name=shown(name), provider_detail=detail[:200])


def inconsistent(name: str, detail: str) -> RequestRefused:
    """Return the refusal of an archive in which this file does not hold what the format asks for."""
    return RequestRefused(ErrorCode.ARCHIVE_INCONSISTENT, name=shown(name), provider_detail=detail[:200])


def not_a_picture(name: str) -> RequestRefused:
    """Return the refusal of an archive in which this file is no picture that can be read."""
    return RequestRefused(ErrorCode.ARCHIVE_PICTURE_UNREADABLE, name=shown(name))


def export_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal to make an archive that could not be taken in again."""
    return RequestRefused(ErrorCode.EXPORT_TOO_LARGE, limit=_megabytes(limit_bytes))


def shown(name: str) -> str:
    """Return a name from an archive fit for a sentence."""
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[: _SHOWN_CHARACTERS - 1] + "…"


def _megabytes(size_bytes: int) -> int:
    return size_bytes >> 20
