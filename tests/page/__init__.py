"""The page as its own process, started as a person starts it, or with its imports done."""

from __future__ import annotations

from tests.page.process import PageProcess, clean_environment, free_port, run_command

__all__ = ["PageProcess", "clean_environment", "free_port", "run_command"]
