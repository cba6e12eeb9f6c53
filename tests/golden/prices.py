"""The bundled models at the prices of one day, so that what is on record stays true when prices change."""

from __future__ import annotations

import re
from datetime import date
from importlib import resources
from pathlib import Path

DAY = date(2026, 11, 26)
_PRICES = re.compile(r"^ +\{ since = (\d{4}-\d\d-\d\d), .*\},\n", re.MULTILINE)


def models_of_the_day(folder: Path) -> Path:
    """Write the catalogue without the prices that come after the day; return its file."""
    bundled = resources.files("agent.providers").joinpath("catalogue.toml").read_text(encoding="utf-8")
    path = folder / "models.toml"
    path.write_text(_PRICES.sub(lambda one: one[0] if date.fromisoformat(one[1]) <= DAY else "", bundled), "utf-8")
    return path
