"""The version of the running program."""

from __future__ import annotations

from importlib import metadata


def program_version() -> str:
    """Return the installed version; when the program runs from its sources, there may be none."""
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"
