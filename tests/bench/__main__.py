"""`python -m tests.bench` measures everything; `--write docs/benchmarks.md` puts the figures into the page."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.measuring import options

# Each in a process of its own: what one leaves behind in memory is no part of another.
SUBJECTS = ("turns", "first_page", "smoothness", "prices", "styles", "adjustments", "masking", "large_homes")

if __name__ == "__main__":
    options().parse_args()
    for subject in SUBJECTS:
        subprocess.run([sys.executable, "-m", f"tests.bench.{subject}", *sys.argv[1:]], check=True)
