"""The handle and the place that a picture gets in its conversation, given inside of the transaction that records it.

Pictures of one request are reserved theirs before the first is asked for, in the order of the request (`calls.handle`,
`calls.position`), so that they are numbered in that order whichever comes first. What was reserved for a picture that
never came is free again when its turn is over; where later pictures have higher numbers by then, it stays unused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, func, select, union_all

from agent.pictures import allot_handle
from agent.storage.tables import CALLS, PICTURES

_P, _C = PICTURES.c, CALLS.c
_PICTURE_HERE = _P.conversation_id == bindparam("key")
_RESERVED_HERE = and_(_C.conversation_id == bindparam("key"), _C.handle.is_not(None))
_RESERVED_HANDLES = select(_C.handle).where(_RESERVED_HERE)
_TAKEN = union_all(select(_P.handle).where(_PICTURE_HERE), _RESERVED_HANDLES)
_LAST = union_all(
    select(func.max(_P.position)).where(_PICTURE_HERE), select(func.max(_C.position)).where(_RESERVED_HERE)
)
_RESERVED = select(_C.handle, _C.position).where(
    _C.turn_id == bindparam("turn"), _C.name == bindparam("call"), _C.handle.is_not(None)
)


class PictureSlot(NamedTuple):
    """A handle of a conversation, and a place among its pictures."""

    handle: str
    position: int


def next_slots(
    connection: Connection, conversation_id: str, bases: Sequence[str | None], wished: str = ""
) -> list[PictureSlot]:
    """Return the next free slots, one for each base: of the family of the picture that is edited, or a new number.

    A single one has the `wished` handle where that is free.
    """
    key = {"key": conversation_id}
    taken = list(connection.scalars(_TAKEN, key))
    position = max((one for one in connection.scalars(_LAST, key) if one is not None), default=0)
    slots = []
    for base in bases:
        position += 1
        handle = wished if wished and wished not in taken else allot_handle(taken, base=base)
        taken.append(handle)
        slots.append(PictureSlot(handle, position))
    return slots


def reserved_handles(connection: Connection, conversation_id: str) -> set[str]:
    """Return the handles of pictures that are on their way."""
    return set(connection.scalars(_RESERVED_HANDLES, {"key": conversation_id}))


def reserved_slot(connection: Connection, turn_id: str, call: str) -> PictureSlot | None:
    """Return the slot that was reserved for the picture of a paid call."""
    row = connection.execute(_RESERVED, {"turn": turn_id, "call": call}).one_or_none()
    return PictureSlot(row.handle, row.position) if row is not None else None
