"""Modules of earlier versions whose names have moved: checkpoints and scripts may still refer to the old modules.

Names of the public package `agent` never move. The next release removes these aliases, once no checkpoint uses them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED: dict[str, tuple[str, ...]] = {
    "agent.components": ("agent.events",),
    "agent.error_codes": ("agent.errors",),
    "agent.handles": ("agent.pictures",),
    "agent.picture_limits": ("agent.pictures",),
    "agent.plans": ("agent.events", "agent.requests"),
    "agent.reviews": ("agent.pictures",),
    "agent.storage.gallery_values": ("agent.library",),
    "agent.storage.style_values": ("agent.library",),
}
"""Maps each old module to the modules that now contain its names."""

_is_unsaid = ContextVar("_is_unsaid", default=False)


def modules_before(module: str) -> tuple[str, ...]:
    """Return the old modules of which a module now contains at least some names."""
    return tuple(old for old, homes in MOVED.items() if module in homes)


@contextmanager
def unsaid() -> Iterator[None]:
    """Suppress the warning for names from old modules within the block."""
    token = _is_unsaid.set(True)
    try:
        yield
    finally:
        _is_unsaid.reset(token)


def keep_old_modules() -> None:
    """Make the old modules importable: a name from one of them warns and returns the current object."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


class _Finder(MetaPathFinder, Loader):
    """Finds and creates the old modules."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__

        def moved(name: str) -> Any:
            home = next((one for one in map(import_module, MOVED[old]) if hasattr(one, name)), None)
            if home is None or name.startswith("__"):
                raise AttributeError(f"module {old!r} has no attribute {name!r}")
            if not _is_unsaid.get():
                warnings.warn(f"{old}.{name} is {home.__name__}.{name} now", DeprecationWarning, stacklevel=2)
            return getattr(home, name)

        module.__dict__["__getattr__"] = moved
