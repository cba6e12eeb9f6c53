"""Python children in which something fails for real: files that may not grow, a death without goodbye."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parent.parent.parent

_LIMIT = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
"""


def run_child(code: str, *arguments: str, max_file_bytes: int | None = None) -> subprocess.CompletedProcess[str]:
    """Return what a Python child printed; no file of its can grow beyond `max_file_bytes`, as on a full disk."""
    start = _LIMIT.format(limit=max_file_bytes) if max_file_bytes is not None else ""
    command = [sys.executable, "-X", "utf8", "-c", start + code, *arguments]
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=60, check=False)
