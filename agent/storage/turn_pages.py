"""A page of the turns of the branch that is shown: only those turns and their pictures are read.

Plain blocking calls for the database's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy import BindParameter, Connection, and_, bindparam, or_, select

from agent.conversation import Turn, TurnsPage
from agent.errors import ErrorCode, RequestRefused
from agent.events import ActionPanel, SmartCanvas, TargetNote
from agent.storage.rows import PICTURE_COLUMNS, TURN_COLUMNS, picture_of, turn_of
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.trees import shown

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_HEAD = select(_C.head).where(_C.id == bindparam("key"), _C.owner == bindparam("whose"), _C.deleted_at.is_(None))
_PARENTS = select(_T.id, _T.parent).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_THESE: BindParameter[str] = bindparam("these", expanding=True)
_TURNS = select(*TURN_COLUMNS).where(_T.conversation_id == bindparam("key"), _T.id.in_(_THESE))
_PICTURES = (
    select(*PICTURE_COLUMNS)
    .where(
        and_(_P.conversation_id == bindparam("key"), _P.deleted_at.is_(None)),
        or_(_P.turn_id.in_(_THESE), _P.handle.in_(bindparam("named", expanding=True))),
    )
    .order_by(_P.position)
)


def turns_page(
    connection: Connection,
    conversation_id: str,
    owner: str,
    before: str | None,
    limit: int,
    read_blob: Callable[[str], bytes],
) -> TurnsPage:
    """Return the last turns of the owner's conversation, or the last ones before a turn.

    Raises RequestRefused: CONVERSATION_NOT_FOUND, TURN_NOT_FOUND for a `before` that is not shown.
    """
    key = {"key": conversation_id}
    own = connection.execute(_HEAD, {**key, "whose": owner}).one_or_none()
    if own is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    branch = shown(own.head, {row.id: row.parent for row in connection.execute(_PARENTS, key)})
    if before is not None and before not in branch.path:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    end = len(branch.path) if before is None else branch.path.index(before)
    ids = branch.path[max(0, end - limit) : end]
    if not ids:
        return TurnsPage()
    read = connection.execute(_TURNS, {**key, "these": list(ids)})
    by_id = {row.turn_id: turn_of(row, read_blob) for row in read}
    turns = tuple(by_id[one] for one in ids)
    named = sorted({handle for turn in turns for handle in _named(turn)})
    pictures = connection.execute(_PICTURES, {**key, "these": list(ids), "named": named})
    return TurnsPage(
        turns=turns,
        pictures=tuple(map(picture_of, pictures)),
        forks={one: branch.forks[one] for one in ids if one in branch.forks},
        earlier=ids[0] if end > limit else None,
    )


def _named(turn: Turn) -> Iterator[str]:
    """Yield the handles of the pictures that a turn shows, whichever turn they came with."""
    yield from (turn.editing or "", *turn.references, *turn.roles, *(one.handle for one in turn.more_masks))
    for component in turn.components:
        match component:
            case SmartCanvas():
                yield from (*component.handles, *component.earlier)
            case ActionPanel():
                yield component.handle
            case TargetNote():
                yield from (component.change.handle, component.change.before)
            case _:
                pass
