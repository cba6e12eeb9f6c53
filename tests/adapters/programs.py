"""The programs around a studio: its command, and what a page's visitor is known by."""

from __future__ import annotations

from webui.cli import main, read_flags
from webui.health import ALIVE
from webui.sessions import COOKIE

__all__ = ["ALIVE", "COOKIE", "main", "read_flags"]
