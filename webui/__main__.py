"""`python -m webui` is the command `aivista`."""

from __future__ import annotations

import sys

from webui.cli import main

if __name__ == "__main__":
    sys.exit(main())
