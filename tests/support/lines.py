"""Children of a test and the lines they print: one that does not come is an error that says what the child wrote."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from tests.support.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.support.warm_start import WarmCommand


def read_line(child: subprocess.Popen[str] | WarmCommand, errors: IO[str], patience_s: float = PATIENCE_S) -> str:
    """Return the next line that a child prints. One that ends instead, or prints none and is killed for it, raises
    RuntimeError with what it wrote to `errors`."""
    assert child.stdout is not None
    killing = threading.Timer(patience_s, child.kill)
    killing.start()
    try:
        said = child.stdout.readline()
    finally:
        killing.cancel()
    if not said:
        errors.seek(0)
        code = child.wait(patience_s)
        raise RuntimeError(f"it ended (exit code {code}) or said nothing for {patience_s:g} s: {errors.read()}")
    return said.strip()


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Run a child for as long as the block lasts; give it and the file with what it writes to its standard error.

    A file, not a pipe: a pipe nobody reads fills up and stops the child.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, **options) as child,
    ):
        try:
            yield child, errors
        finally:
            child.kill()
