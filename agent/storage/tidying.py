"""Once a day, what was deleted more than 30 days ago goes for good, as with `aivista gc`.

A clock that jumps ahead must not empty the trash: what goes was due already when it was tidied before, at least a day
earlier. So the clock would have to be wrong both times.
"""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.errors import AivistaError
from agent.storage.housekeeping import Housekeeping
from agent.storage.housekeeping_values import SweepReport

EVERY = timedelta(days=1)
_MARK = "tidied"

_log = logging.getLogger(__name__)


def tidy_if_due(home: Path, now: datetime) -> SweepReport | None:
    """Sweep the home if that was not done within a day; return what was removed. Blocks.

    The first time, and when the clock was set back since, only the time is noted. What cannot be done is logged.
    """
    mark = home / _MARK
    try:
        before = _noted(mark)
        if before is not None and before <= now < before + EVERY:
            return None
        report = None if before is None else Housekeeping(home, now=lambda: min(before, now)).sweep()
        _note(mark, now)
    except (AivistaError, OSError) as error:
        _log.warning("what was deleted long ago could not be removed: %s", error)
        return None
    for problem in report.problems if report is not None else ():
        _log.warning("%s", problem)
    return report


def _noted(mark: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


def _note(mark: Path, now: datetime) -> None:
    mark.touch(mode=0o600)
    os.utime(mark, (now.timestamp(), now.timestamp()))
