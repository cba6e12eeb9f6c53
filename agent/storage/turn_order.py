"""Whose turn it is in a conversation: one at a time, in the order they were sent, over all processes of a home.

A turn that need not wait is begun at once. One that must wait stands in `turn_queue`; the turns of one process go in
the order that process has them in, under its lowest place. A process that died holds up nobody: its places are taken
away, and its turn is closed as interrupted. Plain blocking calls for the database's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, delete, insert, select, update

from agent.conversation import TurnState
from agent.events import InterruptedNote, SmartCanvas
from agent.messages import ImageOrigin
from agent.storage.journal import lose_calls
from agent.storage.rows import COMPONENTS
from agent.storage.tables import CONVERSATIONS, PICTURES, TURN_QUEUE, TURNS

_C, _T, _P, _Q = CONVERSATIONS.c, TURNS.c, PICTURES.c, TURN_QUEUE.c
_HERE = _T.conversation_id == bindparam("key")
_IS_RUNNING = _T.state == TurnState.RUNNING.value
_RUNNING = select(_T.conversation_id, _T.id, _T.runner, _T.started_at).where(_IS_RUNNING)
_RUNNING_HERE = _RUNNING.where(_HERE)
_WAITING_HERE = select(_Q.id, _Q.runner, _Q.request_id).where(_Q.conversation_id == bindparam("key")).order_by(_Q.id)
_JOIN = insert(TURN_QUEUE).returning(_Q.id)
_LEAVE = delete(TURN_QUEUE).where(_Q.id == bindparam("place"))
_MADE_IN = (
    select(_P.handle)
    .where(
        _P.conversation_id == bindparam("key"), _P.turn_id == bindparam("turn"), _P.origin != ImageOrigin.UPLOADED.value
    )
    .order_by(_P.position)
)
_INTERRUPT = (
    update(TURNS)
    .where(_HERE, _T.id == bindparam("turn"))
    .values(state=TurnState.INTERRUPTED.value, components=bindparam("shown"), reserved_usd=0.0, is_stop_requested=False)
)
_CHANGED = update(CONVERSATIONS).where(_C.id == bindparam("key")).values(version=_C.version + 1)
_REQUEST_STOP = update(TURNS).where(_HERE, _IS_RUNNING, _T.runner != bindparam("mine")).values(is_stop_requested=True)
_SEND_HOME = delete(TURN_QUEUE).where(_Q.conversation_id == bindparam("key"), _Q.runner != bindparam("mine"))
_RESUMABLE = (
    select(_T.conversation_id, _T.id, _T.runner, _T.started_at)
    .select_from(TURNS.join(CONVERSATIONS, and_(_C.id == _T.conversation_id, _C.head == _T.id)))
    .where(_T.state == TurnState.INTERRUPTED.value, _T.started_at >= bindparam("since"), _C.deleted_at.is_(None))
    .order_by(_T.started_at)
)


class RunningTurn(NamedTuple):
    """A turn that is on record as running, and the sign of life of the process that runs, or ran, it."""

    conversation_id: str
    turn_id: str
    runner: str
    started_at: datetime


class Place(NamedTuple):
    """A place in the queue, none where no more may wait, and how many go before it.

    `same_request` is true where the very same request waits in another process already: then no place was taken.
    """

    id: int | None
    ahead: int
    same_request: bool = False


class TurnOrder:
    """The queue of every conversation. `mine` is this process's sign of life; `is_alive` tells of others by theirs.

    A call of one of `free_models` that a dead process made cost nothing.
    """

    def __init__(self, mine: str, is_alive: Callable[[str], bool], free_models: Collection[str] = ()) -> None:
        self._mine = mine
        self._is_alive = is_alive
        self._free_models = free_models

    def join(self, connection: Connection, conversation_id: str, request_id: str | None, limit: int) -> Place:
        """Take the last place in a conversation's queue, where fewer than `limit` turns wait."""
        waiting = self._waiting(connection, conversation_id)
        running = self._running(connection, conversation_id)
        ahead = len(waiting) + len(running)
        if request_id is not None and any(one.request_id == request_id for one in waiting):
            return Place(None, ahead, same_request=True)
        if len(waiting) >= limit:
            return Place(None, ahead)
        row = {"conversation_id": conversation_id, "runner": self._mine, "request_id": request_id}
        return Place(connection.execute(_JOIN, row).scalar_one(), ahead)

    def leave(self, connection: Connection, place: int) -> None:
        """Give a place up."""
        connection.execute(_LEAVE, {"place": place})

    def ahead(self, connection: Connection, conversation_id: str, place: int) -> int | None:
        """Return how many turns of other processes go before this one's; None when its place was taken away: it was
        stopped elsewhere."""
        waiting = self._waiting(connection, conversation_id)
        own = [one.id for one in waiting if one.runner == self._mine]
        if place not in own:
            return None
        running = [one for one in self._running(connection, conversation_id) if one.runner != self._mine]
        return sum(one.id < own[0] for one in waiting) + len(running)

    def take(self, connection: Connection, conversation_id: str, place: int | None) -> bool:
        """Return whether it is this process's turn in the conversation; its place in the queue is given up then.

        To be called in the transaction that begins the turn, by the first turn of this process's in the conversation: a
        turn that is on record as running in this process is none any more.
        """
        if self._running(connection, conversation_id, is_mine_over=True):
            return False
        waiting = self._waiting(connection, conversation_id)
        others = [one.id for one in waiting if one.runner != self._mine]
        own = [one.id for one in waiting if one.runner == self._mine]
        if others and (not own or others[0] < own[0]):
            return False
        if place is not None:
            connection.execute(_LEAVE, {"place": place})
        return True

    def is_busy_elsewhere(self, connection: Connection, conversation_id: str) -> bool:
        """Return whether a turn runs or waits in the conversation in another process."""
        running = self._running(connection, conversation_id)
        waiting = self._waiting(connection, conversation_id)
        return any(runner != self._mine for runner in [*(one.runner for one in running), *(w.runner for w in waiting)])

    def has_abandoned(self, connection: Connection) -> bool:
        """Return whether a dead process left a turn running: to close one, others have to wait."""
        return not all(self._is_alive(one.runner) for one in _turns(connection, _RUNNING))

    def close_abandoned(self, connection: Connection) -> tuple[RunningTurn, ...]:
        """Return the turns that dead processes left running; they are interrupted now and show what they had made.

        Their calls that were on their way are `unknown` now.
        """
        dead = [one for one in _turns(connection, _RUNNING) if not self._is_alive(one.runner)]
        for one in dead:
            _interrupt(connection, one, self._free_models)
        return tuple(dead)

    def resumable(self, connection: Connection, since: datetime) -> tuple[RunningTurn, ...]:
        """Return the interrupted turns that nothing came after and that nobody has taken up, the oldest first."""
        return tuple(_turns(connection, _RESUMABLE, since=since))

    def is_running(self, connection: Connection, conversation_id: str) -> bool:
        """Return whether a process that is there runs a turn of the conversation."""
        running = _turns(connection, _RUNNING_HERE, key=conversation_id)
        return any(self._is_alive(one.runner) for one in running)

    # Stopping

    def request_stop(self, connection: Connection, conversation_id: str, turn_id: str | None) -> bool:
        """Ask other processes to stop what runs in the conversation, and take what waits there out of the queue; or ask
        that turn alone to be stopped. Return whether there was anything."""
        values = {"key": conversation_id, "mine": self._mine}
        running = [one for one in self._running(connection, conversation_id) if one.runner != self._mine]
        running = [one for one in running if turn_id in (None, one.turn_id)]
        if running:
            connection.execute(_REQUEST_STOP, values)
        waiting = connection.execute(_SEND_HOME, values).rowcount if turn_id is None else 0
        return bool(running or waiting)

    # Inside

    def _running(
        self, connection: Connection, conversation_id: str, *, is_mine_over: bool = False
    ) -> list[RunningTurn]:
        """Return what runs in a conversation: one turn, or none. What a dead process left is closed."""
        found = []
        for one in _turns(connection, _RUNNING_HERE, key=conversation_id):
            is_over = is_mine_over if one.runner == self._mine else not self._is_alive(one.runner)
            if is_over:
                _interrupt(connection, one, self._free_models)
            else:
                found.append(one)
        return found

    def _waiting(self, connection: Connection, conversation_id: str) -> list[_Waiting]:
        """Return the places in a conversation's queue, the first one first. Those of dead processes are taken away."""
        found = []
        for row in connection.execute(_WAITING_HERE, {"key": conversation_id}).all():
            if row.runner == self._mine or self._is_alive(row.runner):
                found.append(_Waiting(row.id, row.runner, row.request_id))
            else:
                connection.execute(_LEAVE, {"place": row.id})
        return found


def _interrupt(connection: Connection, turn: RunningTurn, free_models: Collection[str]) -> None:
    key = {"key": turn.conversation_id, "turn": turn.turn_id}
    handles = tuple(connection.scalars(_MADE_IN, key))
    canvas = (SmartCanvas(handles=handles),) if handles else ()
    note = InterruptedNote(may_have_been_charged=lose_calls(connection, turn.turn_id, free_models))
    connection.execute(_INTERRUPT, {**key, "shown": COMPONENTS.dump_json((*canvas, note)).decode()})
    connection.execute(_CHANGED, {"key": turn.conversation_id})


class _Waiting(NamedTuple):
    id: int
    runner: str
    request_id: str | None


def _turns(connection: Connection, statement: Select[*tuple[Any, ...]], **values: object) -> list[RunningTurn]:
    return [RunningTurn(*row) for row in connection.execute(statement, values)]
