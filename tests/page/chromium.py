"""The Chromium that drives the page."""

from __future__ import annotations

import os
import shutil

# The first is the same engine without a window's parts: a test takes about half the time.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the Chromium of `AIVISTA_CHROMIUM`, else the system's, else None for Playwright's own."""
    return os.environ.get("AIVISTA_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
