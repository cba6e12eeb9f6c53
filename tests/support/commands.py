"""The command as a person meets it, where it does what it was told, and where it refuses."""

from __future__ import annotations

from tests.page import run_command


def done(*flags: str, code: int = 0, **environment: str) -> str:
    """Run the command, which must complain of nothing; return what it said."""
    ended = run_command(*flags, **environment)
    assert (ended.returncode, ended.stderr) == (code, ""), ended
    return ended.stdout


def refused(*flags: str, **environment: str) -> str:
    """Run the command, which must refuse in one sentence; return the sentence."""
    ended = run_command(*flags, **environment)
    assert (ended.returncode, ended.stdout, len(ended.stderr.strip().splitlines())) == (2, "", 1), ended
    assert ended.stderr.startswith("aivista: ")
    return ended.stderr
