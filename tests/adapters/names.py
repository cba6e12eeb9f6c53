"""What files of a conversation may be called."""

from __future__ import annotations

from agent.storage.workspace_names import checked_name

__all__ = ["checked_name"]
