"""Aivista without a screen: conversations, turns and pictures behind one door, `Studio`."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from agent.proxies import mend_proxies

if TYPE_CHECKING:
    from agent.settings import Settings, TurnSettings
    from agent.studio import StoredPicture, Studio, TurnRequest

__all__ = ["Settings", "StoredPicture", "Studio", "TurnRequest", "TurnSettings"]

# Here, because whoever reads the proxies may be imported next.
for _sentence in mend_proxies(os.environ):
    logging.getLogger(__name__).warning("aivista: %s", _sentence)


def __getattr__(name: str) -> object:
    """Load the door when it is first asked for: the leaves below it stay cheap to import."""
    if name in {"Settings", "TurnSettings"}:
        from agent import settings

        return getattr(settings, name)
    if name in __all__:
        from agent import studio

        return getattr(studio, name)
    raise AttributeError(f"module 'agent' has no attribute {name!r}")
