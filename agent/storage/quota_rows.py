"""What the rows of an owner's conversations take, the trash among them, counted by the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, bindparam, cast, func, select, true, union

from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS, WORKSPACE_FILES

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


def _digests(signatures: Column[Any], is_own: ColumnElement[bool]) -> Any:
    place = func.json_each(signatures).table_valued("value")
    return (
        select(func.json_extract(place.c.value, "$.digest"))
        .select_from(signatures.table.join(place, true()))
        .where(is_own)
    )


_BLOBS = union(
    _digests(_T.signatures, _T.conversation_id.in_(_OF_OWNER)), _digests(_P.signatures, _P.owner == bindparam("whose"))
)


class Counted(NamedTuple):
    """How many pictures an owner has, what they and the rows take in bytes, and the large signatures by digest."""

    pictures: int
    size_bytes: int
    signatures: Sequence[str]


def counted(connection: Connection, owner: str) -> Counted:
    """Return what an owner keeps."""
    whose = {"whose": owner}
    pictures = connection.execute(_PICTURES, whose).one()
    rows: int = sum(connection.execute(statement, whose).scalar_one() for statement in (_TURNS, _FILES))
    return Counted(pictures.pictures, pictures.size_bytes + rows, connection.scalars(_BLOBS, whose).all())
