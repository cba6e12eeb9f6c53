"""Scripts that run apart from everything."""

from __future__ import annotations

from pathlib import Path

from agent import ScriptEnding, ScriptError, ScriptResult, sandbox
from agent.sandbox.process import Spoken
from agent.sandbox.reply import read_reply
from agent.sandbox.run import Protection
from agent.sandbox.runner import MAX_CODE_BYTES, MAX_INPUT_CHARACTERS, Sandbox

# Where the script lies that is run in the sandbox.
FOLDER = Path(next(iter(sandbox.__path__)))
