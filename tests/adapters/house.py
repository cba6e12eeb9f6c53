"""What keeps a home in order: the sweep and the check, the daily round, backups, and the sign of a living process."""

from __future__ import annotations

from agent.storage.backups import Backup, Backups
from agent.storage.housekeeping import Housekeeping
from agent.storage.housekeeping_values import Trouble
from agent.storage.tidying import tidy_if_due

__all__ = ["Backup", "Backups", "Housekeeping", "Trouble", "tidy_if_due"]
