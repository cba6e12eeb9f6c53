"""The quota of a visitor: the bytes and pictures of all their conversations, including the trash.

The operator has no quota.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, bindparam, cast, func, select, union

from agent.errors import ErrorCode, RequestRefused
from agent.settings import OPERATOR
from agent.storage.database import Database
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS, WORKSPACE_FILES

if TYPE_CHECKING:
    from agent.storage.images import ImageStore

# From this share on, the user is warned.
NEARLY_FULL = 0.8

_C, _T, _P, _F = CONVERSATIONS.c, TURNS.c, PICTURES.c, WORKSPACE_FILES.c
_OF_OWNER = select(_C.id).where(_C.owner == bindparam("whose")).scalar_subquery()


def _bytes(column: Column[Any]) -> ColumnElement[int]:
    return func.coalesce(func.length(cast(column, LargeBinary)), 0)


def _stated(details: Column[Any], place: str) -> ColumnElement[int]:
    return func.coalesce(func.json_extract(details, place), 0)


def _more_masks(details: Column[Any]) -> ColumnElement[int]:
    one = func.json_each(details, "$.more_masks").table_valued("value")
    size = func.sum(func.json_extract(one.c.value, "$.mask.size_bytes"))
    return func.coalesce(select(size).select_from(one).scalar_subquery(), 0)


def _sum(first: ColumnElement[int], *others: ColumnElement[int]) -> ColumnElement[int]:
    return func.coalesce(func.sum(sum(others, first)), 0)


_PICTURES = select(
    func.count().label("pictures"),
    _sum(
        *(_stated(_P.details, "$.image.size_bytes"), _stated(_P.details, "$.original.size_bytes")),
        *(_bytes(column) for column in (_P.details, _P.answer, _P.receipt)),
    ).label("size_bytes"),
).where(_P.owner == bindparam("whose"))
_TURNS = select(
    _sum(
        _stated(_T.details, "$.mask.size_bytes"),
        _more_masks(_T.details),
        *(_bytes(column) for column in (_T.text, _T.messages, _T.components, _T.details)),
    )
).where(_T.conversation_id.in_(_OF_OWNER))
_FILES = select(func.coalesce(func.sum(_F.size_bytes), 0)).where(_F.conversation_id.in_(_OF_OWNER))


def _signatures(messages: Column[Any], is_own: ColumnElement[bool]) -> Any:
    named = func.json_tree(messages).table_valued("key", "value")
    return (
        select(named.c.value)
        .select_from(messages.table.join(named, named.c.key == "signature_digest"))
        .where(is_own, messages.contains('"signature_digest":'))
    )


_BLOBS = union(
    _signatures(_T.messages, _T.conversation_id.in_(_OF_OWNER)), _signatures(_P.answer, _P.owner == bindparam("whose"))
)


@dataclass(frozen=True)
class Quota:
    """The quota of each visitor, and its use."""

    database: Database
    blobs: ImageStore
    most_bytes: int
    most_pictures: int

    async def check(self, owner: str, *, new_bytes: int = 0, new_pictures: int = 0) -> float:
        """Return the share of the quota that the owner uses, including what is to come; 0 for the operator.

        Raises RequestRefused(VISITOR_QUOTA_USED_UP) when it does not fit.
        """
        if owner == OPERATOR:
            return 0.0
        whose = {"whose": owner}

        def count(on: Connection) -> tuple[int, int, list[str]]:
            pictures = on.execute(_PICTURES, whose).one()
            rows: int = sum(on.execute(statement, whose).scalar_one() for statement in (_TURNS, _FILES))
            return pictures.pictures, pictures.size_bytes + rows, list(on.scalars(_BLOBS, whose))

        kept_pictures, row_bytes, signatures = await self.database.read(count)
        kept_bytes = row_bytes + await asyncio.to_thread(self.blobs.blob_bytes, signatures)
        used = max((kept_bytes + new_bytes) / self.most_bytes, (kept_pictures + new_pictures) / self.most_pictures)
        if used > 1:
            raise RequestRefused(
                ErrorCode.VISITOR_QUOTA_USED_UP,
                megabytes=-(-kept_bytes >> 20),
                pictures=kept_pictures,
                most_megabytes=self.most_bytes >> 20,
                most_pictures=self.most_pictures,
            )
        return used
