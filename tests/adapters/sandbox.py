"""Scripts that run apart from everything."""

from __future__ import annotations

from agent.sandbox.process import Spoken
from agent.sandbox.reply import read_reply
from agent.sandbox.run import Ending, Protection, Run, ScriptError
from agent.sandbox.runner import MAX_CODE_BYTES, MAX_INPUT_CHARACTERS, Sandbox

__all__ = [
    "MAX_CODE_BYTES",
    "MAX_INPUT_CHARACTERS",
    "Ending",
    "Protection",
    "Run",
    "Sandbox",
    "ScriptError",
    "Spoken",
    "read_reply",
]
