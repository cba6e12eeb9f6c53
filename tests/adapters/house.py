"""What keeps a home in order: the sweep and the check, the daily round, backups, and the sign of a living process."""

from __future__ import annotations

from agent import Backups, CheckProblem, Housekeeping
from agent.storage.backups import Backup
from agent.storage.tidying import tidy_if_due
