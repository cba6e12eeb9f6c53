"""The records below a home."""

from __future__ import annotations

from pathlib import Path

from agent.storage.housekeeping import Housekeeping


def faults_in(home: Path) -> tuple[object, ...]:
    """Return what `aivista check` finds wrong."""
    return tuple(Housekeeping(home).check().findings)
