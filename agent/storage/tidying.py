"""What goes by itself, as with `aivista gc`: once a day what was deleted more than 30 days ago, and at each look
archives that nobody fetched for a day.

A clock that jumps ahead must not empty the trash: what goes was due already when it was tidied before, at least a day
earlier. So the clock would have to be wrong both times.
"""

from __future__ import annotations

import logging
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.errors import AivistaError, StorageFailure
from agent.storage.housekeeping import ARCHIVES_KEPT, Housekeeping
from agent.storage.housekeeping_files import archives, removed
from agent.storage.housekeeping_values import SweepReport

EVERY = timedelta(days=1)
_MARK = "tidied"
# Requests of MCP clients, as they were kept before conversations knew theirs.
_ONCE_KEPT = "mcp_requests"

_log = logging.getLogger(__name__)


def tidy_if_due(home: Path, now: datetime) -> SweepReport | None:
    """Sweep the home if that was not done within a day; return what was removed. Blocks.

    The first time, and when the clock was set back since, only the time is noted. Archives of more than a day go each
    time: they are copies, and can be made again if the clock was wrong. What cannot be done is logged.
    """
    _remove_old_archives(home, now)
    shutil.rmtree(home / _ONCE_KEPT, ignore_errors=True)
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


def _remove_old_archives(home: Path, now: datetime) -> None:
    before_s = (now - ARCHIVES_KEPT).timestamp()
    try:
        problems = [removed(one.path) for one in archives(home) if one.written_at_s < before_s]
    except StorageFailure as failure:
        problems = [str(failure)]
    for problem in filter(None, problems):
        _log.warning("%s", problem)


def _noted(mark: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(mark.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


def _note(mark: Path, now: datetime) -> None:
    mark.touch(mode=0o600)
    os.utime(mark, (now.timestamp(), now.timestamp()))
