"""The turns of conversations: begin, finish and change them on record, and queue those that must wait.

In a conversation one turn runs at a time, in the order of sending, across all processes of a home. A turn that need not
wait begins at once. One that must wait has an entry in `turn_queue`; the turns of one process run in that process's own
order, under its lowest entry. A dead process blocks nobody: its entries are removed, and its turn is closed as
interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, delete, func, insert, or_, select, update

from agent.cancellation import shielded
from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import InterruptedNote, SmartCanvas
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.storage.conversation_cache import VERSION, Change, ConversationCache
from agent.storage.database import Database
from agent.storage.journal import IS_OVER, forget_answers, lose_calls, reserved_handles, turns_with_old_answers
from agent.storage.process_lock import ProcessLock
from agent.storage.rows import COMPONENTS, TURN_COLUMNS, changed_turn, picture_row, turn_of, turn_row
from agent.storage.tables import CHECKPOINT_TABLES, CONVERSATIONS, PICTURES, TURN_QUEUE, TURNS
from agent.storage.titles import subject_title, title_of

_C, _T, _P, _Q = CONVERSATIONS.c, TURNS.c, PICTURES.c, TURN_QUEUE.c
_THIS = _C.id == bindparam("key")
_HERE = _T.conversation_id == bindparam("key")
_THIS_TURN = and_(_HERE, _T.id == bindparam("turn"))
_IS_RUNNING = _T.state == TurnState.RUNNING.value
_NEXT_POSITION = (
    select(func.coalesce(func.max(_T.position), -1) + 1)
    .where(_T.conversation_id == bindparam("within"))
    .scalar_subquery()
)
_ADD_TURN = insert(TURNS).values(position=_NEXT_POSITION)
# Bind names differ from the column names, which SQLAlchemy reserves for the written values.
ADD_PICTURE = insert(PICTURES).values(owner=select(_C.owner).where(_C.id == bindparam("within")).scalar_subquery())
LAST_POSITION = select(func.max(_P.position)).where(_P.conversation_id == bindparam("key"))
CHANGED = update(CONVERSATIONS).where(_THIS).values(version=_C.version + 1).returning(_C.version)
TOUCH = (
    update(CONVERSATIONS)
    .where(_THIS)
    .values(
        version=_C.version + 1,
        updated_at=bindparam("now"),
        title=func.coalesce(func.nullif(_C.title, ""), bindparam("new_title")),
        # Comparing times would not be enough: two writes may reach the disk in another order than they were made.
        indexed_at=None,
    )
    .returning(_C.version, _C.title)
)
# A deleted conversation accepts what was under way, but no new turn.
_LEAD_ON = TOUCH.where(_C.deleted_at.is_(None)).values(head=bindparam("new_head"))
_CALL_IT = TOUCH.values(title=case((_C.is_named, _C.title), else_=bindparam("new_title")))
_HEAD = select(_C.head).where(_THIS, _C.deleted_at.is_(None))
_STATE_OF = select(_T.state).where(_THIS_TURN)
# Never a turn that another process runs now: that process took this one for dead, or resumed the turn.
_IS_MINE = or_(~_IS_RUNNING, _T.runner == bindparam("mine"))
_FINISH = update(TURNS).where(_THIS_TURN, _IS_MINE).values(reserved_usd=0.0, is_stop_requested=False)
_AMEND = update(TURNS).where(_THIS_TURN)
_TAKE_UP = update(TURNS).where(_THIS_TURN).values(state=TurnState.RUNNING.value, is_stop_requested=False)
ONE_TURN = select(*TURN_COLUMNS).where(_THIS_TURN)
_REQUESTED = select(_T.id).where(_HERE, _T.request_id == bindparam("request"))
_MAY_GO_ON = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)), ~IS_OVER)
# The fields of `RunningTurn`.
_RUN = (_T.conversation_id, _T.id, _T.runner)
_RUNNING = select(*_RUN).where(_IS_RUNNING)
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
    .where(_THIS_TURN)
    .values(state=TurnState.INTERRUPTED.value, components=bindparam("shown"), reserved_usd=0.0, is_stop_requested=False)
)
_REQUEST_STOP = update(TURNS).where(_HERE, _IS_RUNNING, _T.runner != bindparam("mine")).values(is_stop_requested=True)
_SEND_HOME = delete(TURN_QUEUE).where(_Q.conversation_id == bindparam("key"), _Q.runner != bindparam("mine"))
_RESUMABLE = (
    select(*_RUN)
    .select_from(TURNS.join(CONVERSATIONS, and_(_C.id == _T.conversation_id, _C.head == _T.id)))
    .where(_T.state == TurnState.INTERRUPTED.value, _T.started_at >= bindparam("since"), _C.deleted_at.is_(None))
    .order_by(_T.started_at)
)
# A turn in one of these states never resumes; a failed or waiting one may.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})
# Data that ended turns no longer need is deleted in batches: each alone would cost every turn a statement.
_TOGETHER = 32


class ConversationBusy(Exception):
    """Another turn of the conversation comes first, in this process or another one."""


class ConversationChanged(Exception):
    """The conversation has changed since the turn was prepared: prepare it again."""


class TurnKnown(Exception):
    """The turn has begun already: the same request came before, or another process resumed it."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self.turn_id = turn_id


class RunningTurn(NamedTuple):
    """A turn recorded as running, and the lock file name of the process that runs, or ran, it."""

    conversation_id: str
    turn_id: str
    runner: str


class QueuePlace(NamedTuple):
    """An entry in the queue, None when the queue is full, and the number of turns ahead.

    `same_request` is true when the same request already waits: then there is no new entry.
    """

    id: int | None
    ahead: int
    same_request: bool = False


class TurnStore:
    """The turns and the queue of every conversation of a home.

    `process` is this process's lock file, and tells whether other processes live. A call to one of `free_models` that a
    dead process left unfinished cost nothing.
    """

    def __init__(
        self, db: Database, cache: ConversationCache, process: ProcessLock, free_models: Collection[str] = ()
    ) -> None:
        self._db = db
        self._cache = cache
        self._mine = process.name
        self._is_alive = process.is_alive
        self._free_models = free_models
        # Ended turns whose answers and checkpoints are not deleted yet.
        self._over: list[str] = []
        self._closed: tuple[RunningTurn, ...] = ()

    # On record

    async def begin(
        self,
        conversation_id: str,
        turn: Turn,
        pictures: Sequence[Picture] = (),
        *,
        prepared_at: int | None = None,
        place: int | None = None,
    ) -> None:
        """Record the turn with its uploads; it becomes the newest turn of the shown branch.

        It follows its `parent`; a parent other than the newest shown turn starts a new branch. Its first words become
        the title of an untitled conversation. `prepared_at` is the version of the conversation for which it was
        prepared, `place` its queue entry, if it had to wait. Raises ConversationBusy, ConversationChanged, TurnKnown,
        and RequestRefused(CONVERSATION_NOT_FOUND) for a deleted one.
        """
        key, now = {"key": conversation_id}, datetime.now(UTC)
        row = {"id": turn.id, "runner": self._mine, "request_id": turn.request_id, "parent": turn.parent}
        row |= {"conversation_id": conversation_id, "within": conversation_id, **turn_row(turn)}
        uploads = [picture_row(conversation_id, picture) for picture in pictures]

        def begin(on: Connection) -> Change | Exception:
            if turn.request_id is not None:
                known = on.scalar(_REQUESTED, {**key, "request": turn.request_id})
                if known is not None:
                    return TurnKnown(known)
            if not self._take(on, conversation_id, place):
                return ConversationBusy()
            if prepared_at is not None and on.scalar(VERSION, key) not in (prepared_at, None):
                return ConversationChanged()
            handles = [one["handle"] for one in uploads]
            if handles and not reserved_handles(on, conversation_id).isdisjoint(handles):
                return ConversationChanged()
            lead_on = {**key, "now": now, "new_title": title_of(turn.text), "new_head": turn.id}
            version, title = touched(on, _LEAD_ON, lead_on)
            on.execute(_ADD_TURN, row)
            if uploads:
                last = on.scalar(LAST_POSITION, key) or 0
                more = [{**one, "within": conversation_id, "position": last + n} for n, one in enumerate(uploads, 1)]
                on.execute(ADD_PICTURE, more)
            return Change(version, {"title": title, "updated_at": now}, begun=turn, pictures=tuple(pictures))

        await self._start(conversation_id, begin)

    async def take_up(self, conversation_id: str, turn: Turn, *, place: int | None = None) -> None:
        """Record that this process resumes a turn, if it has the given state and is the newest shown turn.

        Raises as `begin` does; TurnKnown when its state has changed, so another process was first.
        """
        key = {"key": conversation_id}
        this = {**key, "turn": turn.id}

        def take_up(on: Connection) -> Change | Exception:
            if on.scalar(_STATE_OF, this) != turn.state.value:
                return TurnKnown(turn.id)
            if not self._take(on, conversation_id, place):
                return ConversationBusy()
            # Read again: `_take` may just have closed another turn of a dead process.
            head = on.execute(_HEAD, key).one_or_none()
            if head is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            if head.head not in (turn.id, None):
                return ConversationChanged()
            on.execute(_TAKE_UP, {**this, "runner": self._mine})
            running = turn.model_copy(update={"state": TurnState.RUNNING})
            return Change(on.execute(CHANGED, key).scalar_one(), turn=running)

        await self._start(conversation_id, take_up)

    async def _start(self, conversation_id: str, work: Callable[[Connection], Change | Exception]) -> None:
        """Write the start of a turn, or raise what prevents it.

        The work returns the exception instead of raising it, so that dead turns closed in the same transaction stay
        closed.
        """

        def remember(outcome: Change | Exception) -> None:
            if isinstance(outcome, Change):
                self._cache.apply(conversation_id, outcome)

        outcome = await self._db.write(work, remember)
        if isinstance(outcome, Exception):
            raise outcome

    async def finish(self, conversation_id: str, turn: Turn) -> None:
        """Record the whole turn as it is now: messages, components, state, usage, price.

        If it is recorded as running, this process becomes its runner. Raises RequestRefused when the turn is gone, or
        another process runs it now.
        """
        now, new_title = datetime.now(UTC), subject_title(turn)
        values = {"key": conversation_id, "turn": turn.id, "mine": self._mine, "runner": self._mine}
        values |= turn_row(turn)

        def finish(on: Connection) -> Change:
            # The turn's title becomes the conversation's, unless the user gave one.
            to_touch = {"key": conversation_id, "now": now, "new_title": new_title}
            version, title = touched(on, _CALL_IT if new_title else TOUCH, to_touch)
            if not on.execute(_FINISH, values).rowcount:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            if turn.state in _OVER:
                self._over.append(turn.id)
            if len(self._over) >= _TOGETHER:
                _forget_steps(on, self._over)
                self._over = []
            return Change(version, {"title": title, "updated_at": now}, turn=turn)

        await self._db.write(finish, lambda change: self._cache.apply(conversation_id, change))

    async def amend(self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None]) -> None:
        """Change what a turn shows and costs, from its current record; None changes nothing. Its messages stay.

        `change` is called in the transaction, perhaps more than once.
        """
        this = {"key": conversation_id, "turn": turn_id}

        def amend(on: Connection) -> Change | None:
            row = on.execute(ONE_TURN, this).one_or_none()
            changed = change(turn_of(row)) if row is not None else None
            if changed is None:
                return None
            now = datetime.now(UTC)
            version, title = touched(on, TOUCH, {"key": conversation_id, "now": now, "new_title": ""})
            on.execute(_AMEND, {**this, **changed_turn(changed)})
            return Change(version, {"title": title, "updated_at": now}, turn=changed)

        await self._db.write(amend, lambda amended: self._cache.apply(conversation_id, amended))

    async def forget_steps(self) -> None:
        """Delete the answers and checkpoints of every turn that neither runs nor may resume."""

        def find(on: Connection) -> set[str]:
            there = set(on.scalars(select(CHECKPOINT_TABLES[0].c.thread_id).distinct()))
            # Usually there are none, and no index finds turns by their ids alone.
            over = there.difference(on.scalars(_MAY_GO_ON, {"these": list(there)})) if there else there
            return over.union(turns_with_old_answers(on))

        if over := await self._db.read(find):
            await self._db.write(lambda on: _forget_steps(on, over))

    # The queue

    async def join_queue(self, conversation_id: str, request_id: str | None, limit: int) -> QueuePlace:
        """Join the end of a conversation's queue, if fewer than `limit` turns of all processes wait."""

        def join(on: Connection) -> QueuePlace:
            waiting = self._waiting(on, conversation_id)
            ahead = len(waiting) + len(self._running(on, conversation_id))
            if request_id is not None and any(one.request_id == request_id for one in waiting):
                return QueuePlace(None, ahead, same_request=True)
            if len(waiting) >= limit:
                return QueuePlace(None, ahead)
            row = {"conversation_id": conversation_id, "runner": self._mine, "request_id": request_id}
            return QueuePlace(on.execute(_JOIN, row).scalar_one(), ahead)

        joining = asyncio.create_task(self._db.write(join))
        try:
            return await shielded(joining)
        except asyncio.CancelledError:
            # Otherwise nobody would remove the entry, and all others would wait behind it.
            await self._db.durably(self._leave_again(joining))
            raise

    async def _leave_again(self, joining: asyncio.Task[QueuePlace]) -> None:
        await asyncio.wait([joining])
        is_there = not joining.cancelled() and joining.exception() is None
        if is_there and (place := joining.result().id) is not None:
            await self.leave_queue(place)

    async def leave_queue(self, place: int) -> None:
        """Remove a queue entry; one that is already gone is ignored."""
        await self._db.write(lambda on: on.execute(_LEAVE, {"place": place}).close())

    async def ahead(self, conversation_id: str, place: int) -> int | None:
        """Return how many turns of other processes come before this process's; None when the entry was removed.

        The entry is removed when another process stops the turn.
        """

        def ahead(on: Connection) -> int | None:
            waiting = self._waiting(on, conversation_id)
            own = [one.id for one in waiting if one.runner == self._mine]
            if place not in own:
                return None
            running = [one for one in self._running(on, conversation_id) if one.runner != self._mine]
            return sum(one.id < own[0] for one in waiting) + len(running)

        return await self._db.write(ahead)

    def _take(self, connection: Connection, conversation_id: str, place: int | None) -> bool:
        """Return whether this process may start a turn in the conversation now; if so, remove its queue entry.

        Call it in the transaction that begins the turn, for the first turn of this process in the conversation: a turn
        recorded as running in this process is taken for ended.
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
        """Return whether another process runs or queues a turn in the conversation; call it while writing."""
        there = [*self._running(connection, conversation_id), *self._waiting(connection, conversation_id)]
        return any(one.runner != self._mine for one in there)

    async def is_running(self, conversation_id: str) -> bool:
        """Whether a living process runs a turn of the conversation."""
        running = await self._db.read(lambda on: _turns(on, _RUNNING_HERE, key=conversation_id))
        return any(self._is_alive(one.runner) for one in running)

    async def request_stop(self, conversation_id: str, turn_id: str | None = None) -> bool:
        """Ask other processes to stop what runs or waits in the conversation; return whether there was anything.

        With `turn_id`, only that running turn is stopped.
        """
        values = {"key": conversation_id, "mine": self._mine}

        def request_stop(on: Connection) -> bool:
            running = [one for one in self._running(on, conversation_id) if one.runner != self._mine]
            running = [one for one in running if turn_id in (None, one.turn_id)]
            if running:
                on.execute(_REQUEST_STOP, values)
            waiting = on.execute(_SEND_HOME, values).rowcount if turn_id is None else 0
            return bool(running or waiting)

        return await self._db.write(request_stop)

    # Turns of dead processes

    async def close_abandoned(self) -> None:
        """Mark the turns that a dead process left running as interrupted, with the pictures they made.

        Their calls that were under way become `unknown`.
        """

        def close(on: Connection) -> tuple[RunningTurn, ...]:
            dead = [one for one in _turns(on, _RUNNING) if not self._is_alive(one.runner)]
            for one in dead:
                self._interrupt(on, one)
            return tuple(dead)

        # Closing takes the write lock: only do it when there is a turn to close.
        running = await self._db.read(lambda on: _turns(on, _RUNNING))
        if not all(self._is_alive(one.runner) for one in running):
            self._closed += await self._db.write(close)

    async def newly_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns of processes that died since the last call; they are closed now."""
        await self.close_abandoned()
        closed, self._closed = self._closed, ()
        return closed

    async def resumable(self, since: datetime) -> tuple[RunningTurn, ...]:
        """Return the interrupted turns that are the newest of their conversation, the oldest first."""
        return tuple(await self._db.read(lambda on: _turns(on, _RESUMABLE, since=since)))

    # Internal

    def _running(
        self, connection: Connection, conversation_id: str, *, is_mine_over: bool = False
    ) -> list[RunningTurn]:
        """Return the running turn of a conversation, or none. Turns that a dead process left are closed."""
        found = []
        for one in _turns(connection, _RUNNING_HERE, key=conversation_id):
            is_over = is_mine_over if one.runner == self._mine else not self._is_alive(one.runner)
            if is_over:
                self._interrupt(connection, one)
            else:
                found.append(one)
        return found

    def _waiting(self, connection: Connection, conversation_id: str) -> list[Row[*tuple[Any, ...]]]:
        """Return a conversation's queue entries (id, runner, request_id), first in line first.

        Entries of dead processes are removed.
        """
        found = []
        for row in connection.execute(_WAITING_HERE, {"key": conversation_id}).all():
            if row.runner == self._mine or self._is_alive(row.runner):
                found.append(row)
            else:
                connection.execute(_LEAVE, {"place": row.id})
        return found

    def _interrupt(self, connection: Connection, turn: RunningTurn) -> None:
        key = {"key": turn.conversation_id, "turn": turn.turn_id}
        handles = tuple(connection.scalars(_MADE_IN, key))
        canvas = (SmartCanvas(handles=handles),) if handles else ()
        note = InterruptedNote(may_have_been_charged=lose_calls(connection, turn.turn_id, self._free_models))
        connection.execute(_INTERRUPT, {**key, "shown": COMPONENTS.dump_json((*canvas, note)).decode()})
        connection.execute(CHANGED, {"key": turn.conversation_id})


def touched(connection: Connection, statement: Any, values: dict[str, Any]) -> tuple[int, str]:
    """Execute the statement; return the conversation's new version and its title.

    Raises RequestRefused(CONVERSATION_NOT_FOUND).
    """
    row = connection.execute(statement, values).one_or_none()
    if row is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return row.version, row.title


def _forget_steps(connection: Connection, turn_ids: Collection[str]) -> None:
    forget_answers(connection, turn_ids)
    for checkpoints in CHECKPOINT_TABLES:
        connection.execute(delete(checkpoints).where(checkpoints.c.thread_id.in_(turn_ids)))


def _turns(connection: Connection, statement: Select[*tuple[Any, ...]], **values: object) -> list[RunningTurn]:
    return [RunningTurn(*row) for row in connection.execute(statement, values)]
