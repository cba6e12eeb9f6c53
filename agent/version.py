"""Which version of the program runs."""

from __future__ import annotations

from importlib import metadata


def program_version() -> str:
    """Return the version that is installed; sources that run where they lie may have none."""
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"
