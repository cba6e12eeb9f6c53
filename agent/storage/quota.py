"""How much a visitor may keep: the bytes and the pictures of all their conversations, the trash among them.

The operator may keep as much as the disk holds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.errors import ErrorCode, RequestRefused
from agent.settings import OPERATOR

if TYPE_CHECKING:
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore

# From this share on the person is told.
NEARLY_FULL = 0.8


@dataclass(frozen=True)
class Quota:
    """What each visitor may keep at most, and what they do."""

    records: ConversationStore
    blobs: ImageStore
    most_bytes: int
    most_pictures: int

    async def check(self, owner: str, *, new_bytes: int = 0, new_pictures: int = 0) -> float:
        """Return the share of their quota that the owner has used with what is to come; 0 for the operator.

        Raises RequestRefused(VISITOR_QUOTA_USED_UP) where there is no room for it.
        """
        if owner == OPERATOR:
            return 0.0
        from agent.storage.quota_rows import counted

        rows = await self.records.read(lambda connection: counted(connection, owner))
        kept_bytes = rows.size_bytes + await asyncio.to_thread(self.blobs.blob_bytes, rows.signatures)
        used = max((kept_bytes + new_bytes) / self.most_bytes, (rows.pictures + new_pictures) / self.most_pictures)
        if used > 1:
            raise RequestRefused(
                ErrorCode.VISITOR_QUOTA_USED_UP,
                megabytes=-(-kept_bytes >> 20),
                pictures=rows.pictures,
                most_megabytes=self.most_bytes >> 20,
                most_pictures=self.most_pictures,
            )
        return used
