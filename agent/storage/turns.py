"""The turns of conversations: begun, finished and changed on record, and whose turn it is.

One goes at a time in a conversation, in the order they were sent, over all processes of a home. A turn that need not
wait is begun at once. One that must wait stands in `turn_queue`; the turns of one process go in the order that process
has them in, under its lowest place. A process that died holds up nobody: its places are taken away, and its turn is
closed as interrupted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, case, delete, func, insert, or_, select, update

from agent.cancellation import shielded
from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import InterruptedNote, SmartCanvas
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.storage.conversation_cache import VERSION, Change, ConversationCache
from agent.storage.database import Database
from agent.storage.journal import forget_answers, lose_calls, reserved_handles, turns_with_old_answers
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
# Named otherwise than the columns: SQLAlchemy keeps those names for what it writes.
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
        # Moments alone would not do: two writes may come to the disk in another order than they were made.
        indexed_at=None,
    )
    .returning(_C.version, _C.title)
)
# A deleted conversation takes what was on its way to it, but nothing new.
_LEAD_ON = TOUCH.where(_C.deleted_at.is_(None)).values(head=bindparam("new_head"))
_CALL_IT = TOUCH.values(title=case((_C.is_named, _C.title), else_=bindparam("new_title")))
_HEAD = select(_C.head).where(_THIS, _C.deleted_at.is_(None))
_STATE_OF = select(_T.state).where(_THIS_TURN)
# Never what another process runs now: it was taken for dead, or took the turn up.
_IS_MINE = or_(~_IS_RUNNING, _T.runner == bindparam("mine"))
_FINISH = update(TURNS).where(_THIS_TURN, _IS_MINE).values(reserved_usd=0.0, is_stop_requested=False)
_AMEND = update(TURNS).where(_THIS_TURN)
_TAKE_UP = update(TURNS).where(_THIS_TURN).values(state=TurnState.RUNNING.value, is_stop_requested=False)
_ONE_TURN = select(*TURN_COLUMNS).where(_THIS_TURN)
_REQUESTED = select(_T.id).where(_HERE, _T.request_id == bindparam("request"))
_NEXT = TURNS.alias("next")
_IS_OVER = or_(
    _T.state.in_((TurnState.DONE.value, TurnState.STOPPED.value)),
    # Only the newest turn of a branch may go on, whether the branch is shown or not.
    select(_NEXT.c.id).where(_NEXT.c.conversation_id == _T.conversation_id, _NEXT.c.parent == _T.id).exists(),
)
_MAY_GO_ON = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)), ~_IS_OVER)
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
    .where(_THIS_TURN)
    .values(state=TurnState.INTERRUPTED.value, components=bindparam("shown"), reserved_usd=0.0, is_stop_requested=False)
)
_REQUEST_STOP = update(TURNS).where(_HERE, _IS_RUNNING, _T.runner != bindparam("mine")).values(is_stop_requested=True)
_SEND_HOME = delete(TURN_QUEUE).where(_Q.conversation_id == bindparam("key"), _Q.runner != bindparam("mine"))
_RESUMABLE = (
    select(_T.conversation_id, _T.id, _T.runner, _T.started_at)
    .select_from(TURNS.join(CONVERSATIONS, and_(_C.id == _T.conversation_id, _C.head == _T.id)))
    .where(_T.state == TurnState.INTERRUPTED.value, _T.started_at >= bindparam("since"), _C.deleted_at.is_(None))
    .order_by(_T.started_at)
)
# A turn in such a state asks for nothing any more; a failed or waiting one may go on.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})
# What turns that are over no longer need is let go of together: each by itself would cost every turn a statement.
_TOGETHER = 32


class ConversationBusy(Exception):
    """Another turn of the conversation goes first, in this process or another one."""


class ConversationChanged(Exception):
    """The conversation is not as it was when the turn was prepared: it is to be prepared again."""


class TurnKnown(Exception):
    """The turn has begun already: its request came once before, or somebody else has taken it up."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self.turn_id = turn_id


class RunningTurn(NamedTuple):
    """A turn that is on record as running, and the sign of life of the process that runs, or ran, it."""

    conversation_id: str
    turn_id: str
    runner: str
    started_at: datetime


class QueuePlace(NamedTuple):
    """A place in the queue, none where no more may wait, and how many go before it.

    `same_request` is true where the very same request waits in another process already: then no place was taken.
    """

    id: int | None
    ahead: int
    same_request: bool = False


class _Waiting(NamedTuple):
    id: int
    runner: str
    request_id: str | None


class TurnStore:
    """The turns of every conversation of a home, and the queue of each.

    `process` is this process's sign of life, and tells of others by theirs; `turns_to_stop` reads which of this one's
    somebody has stopped. A call of one of `free_models` that a dead process made cost nothing.
    """

    def __init__(
        self, db: Database, cache: ConversationCache, process: ProcessLock, free_models: Collection[str] = ()
    ) -> None:
        self._db = db
        self._cache = cache
        self._mine = process.name
        self._is_alive = process.is_alive
        self._free_models = free_models
        # Turns that are over and whose answers and checkpoints are still there.
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
        """Record the turn and its uploads together; it is the newest of the branch that is shown from now on.

        It follows its `parent`: another one than the newest shown turn makes a new branch. Its first words become the
        title of an untitled conversation. `prepared_at` is the version of the conversation that it was prepared for,
        `place` its place in the queue, if it had to wait. Raises ConversationBusy, ConversationChanged, TurnKnown, and
        RequestRefused(CONVERSATION_NOT_FOUND) for a deleted one.
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
            if any(upload["handle"] in reserved_handles(on, conversation_id) for upload in uploads):
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
        """Put on record that this process has a turn go on that rests, as given, where it is the newest that is shown.

        Raises as `begin` does; TurnKnown where it rests no more, or somebody else was first.
        """
        key = {"key": conversation_id}
        this = {**key, "turn": turn.id}

        def take_up(on: Connection) -> Change | Exception:
            if on.scalar(_STATE_OF, this) != turn.state.value:
                return TurnKnown(turn.id)
            if not self._take(on, conversation_id, place):
                return ConversationBusy()
            # Read once more: another turn of a process that died may have been closed.
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
        """Write what begins a turn, or raise what keeps it from beginning.

        The work returns that, and does not raise it: dead turns that were closed meanwhile stay closed.
        """

        def remember(outcome: Change | Exception) -> None:
            if isinstance(outcome, Change):
                self._cache.apply(conversation_id, outcome)

        outcome = await self._db.write(work, remember)
        if isinstance(outcome, Exception):
            raise outcome

    async def finish(self, conversation_id: str, turn: Turn) -> None:
        """Record all of the turn as it is now: messages, components, state, usage, price.

        A turn on record as running is this process's from now on. Raises RequestRefused when the turn is gone, or is
        run by another process now.
        """
        now, new_title = datetime.now(UTC), subject_title(turn)
        values = {"key": conversation_id, "turn": turn.id, "mine": self._mine, "runner": self._mine}
        values |= turn_row(turn)

        def finish(on: Connection) -> Change:
            # The title is that of the conversation now, unless the person gave it one.
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
        """Change what a turn shows and cost, as it is at that very moment; None leaves it. Its messages stay.

        `change` is called in the transaction, perhaps more than once.
        """
        this = {"key": conversation_id, "turn": turn_id}

        def amend(on: Connection) -> Change | None:
            row = on.execute(_ONE_TURN, this).one_or_none()
            changed = change(turn_of(row)) if row is not None else None
            if changed is None:
                return None
            now = datetime.now(UTC)
            version, title = touched(on, TOUCH, {"key": conversation_id, "now": now, "new_title": ""})
            on.execute(_AMEND, {**this, **changed_turn(changed)})
            return Change(version, {"title": title, "updated_at": now}, turn=changed)

        await self._db.write(amend, lambda amended: self._cache.apply(conversation_id, amended))

    async def forget_steps(self) -> None:
        """Let go of the answers and checkpoints of every turn that neither runs nor may go on."""

        def find(on: Connection) -> set[str]:
            there = set(on.scalars(select(CHECKPOINT_TABLES[0].c.thread_id).distinct()))
            over = there - set(on.scalars(_MAY_GO_ON, {"these": list(there)})) if there else there
            return over.union(turns_with_old_answers(on))

        if over := await self._db.read(find):
            await self._db.write(lambda on: _forget_steps(on, over))

    # The queue

    async def join_queue(self, conversation_id: str, request_id: str | None, limit: int) -> QueuePlace:
        """Take the last place in a conversation's queue, where fewer than `limit` turns of all processes wait."""

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
            # Nobody would give it up, and everybody would wait behind it.
            await self._db.durably(self._leave_again(joining))
            raise

    async def _leave_again(self, joining: asyncio.Task[QueuePlace]) -> None:
        await asyncio.wait([joining])
        is_there = not joining.cancelled() and joining.exception() is None
        if is_there and (place := joining.result().id) is not None:
            await self.leave_queue(place)

    async def leave_queue(self, place: int) -> None:
        """Give a place up; one that was given up already is nobody's."""
        await self._db.write(lambda on: on.execute(_LEAVE, {"place": place}).close())

    async def ahead(self, conversation_id: str, place: int) -> int | None:
        """Return how many turns of other processes go before this one's; None when its place was taken away: it was
        stopped by another process."""

        def ahead(on: Connection) -> int | None:
            waiting = self._waiting(on, conversation_id)
            own = [one.id for one in waiting if one.runner == self._mine]
            if place not in own:
                return None
            running = [one for one in self._running(on, conversation_id) if one.runner != self._mine]
            return sum(one.id < own[0] for one in waiting) + len(running)

        return await self._db.write(ahead)

    def _take(self, connection: Connection, conversation_id: str, place: int | None) -> bool:
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
        """Return whether a turn runs or waits in the conversation in another process; to be called while writing."""
        there = [*self._running(connection, conversation_id), *self._waiting(connection, conversation_id)]
        return any(one.runner != self._mine for one in there)

    async def is_running(self, conversation_id: str) -> bool:
        """Whether any process that is there has a turn of the conversation at work."""
        running = await self._db.read(lambda on: _turns(on, _RUNNING_HERE, key=conversation_id))
        return any(self._is_alive(one.runner) for one in running)

    async def request_stop(self, conversation_id: str, turn_id: str | None = None) -> bool:
        """Have other processes stop what runs or waits in the conversation, or that turn alone; return whether there
        was anything."""
        values = {"key": conversation_id, "mine": self._mine}

        def request_stop(on: Connection) -> bool:
            running = [one for one in self._running(on, conversation_id) if one.runner != self._mine]
            running = [one for one in running if turn_id in (None, one.turn_id)]
            if running:
                on.execute(_REQUEST_STOP, values)
            waiting = on.execute(_SEND_HOME, values).rowcount if turn_id is None else 0
            return bool(running or waiting)

        return await self._db.write(request_stop)

    # What dead processes left

    async def close_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns that a dead process left running; they are now interrupted and show what they had made.

        Their calls that were on their way are `unknown` now.
        """

        def close(on: Connection) -> tuple[RunningTurn, ...]:
            dead = [one for one in _turns(on, _RUNNING) if not self._is_alive(one.runner)]
            for one in dead:
                self._interrupt(on, one)
            return tuple(dead)

        # To close one, others have to wait: not before there is any.
        running = await self._db.read(lambda on: _turns(on, _RUNNING))
        closed = () if all(self._is_alive(one.runner) for one in running) else await self._db.write(close)
        self._closed += closed
        return closed

    async def newly_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns of processes that have died since this was asked the last time; they are closed now."""
        await self.close_abandoned()
        closed, self._closed = self._closed, ()
        return closed

    async def resumable(self, since: datetime) -> tuple[RunningTurn, ...]:
        """Return the interrupted turns that nothing came after and that nobody has taken up, the oldest first."""
        return tuple(await self._db.read(lambda on: _turns(on, _RESUMABLE, since=since)))

    # Inside

    def _running(
        self, connection: Connection, conversation_id: str, *, is_mine_over: bool = False
    ) -> list[RunningTurn]:
        """Return what runs in a conversation: one turn, or none. What a dead process left is closed."""
        found = []
        for one in _turns(connection, _RUNNING_HERE, key=conversation_id):
            is_over = is_mine_over if one.runner == self._mine else not self._is_alive(one.runner)
            if is_over:
                self._interrupt(connection, one)
            else:
                found.append(one)
        return found

    def _waiting(self, connection: Connection, conversation_id: str) -> list[_Waiting]:
        """Return the places in a conversation's queue, the first one first. Those of dead processes are taken away."""
        found = []
        for row in connection.execute(_WAITING_HERE, {"key": conversation_id}).all():
            if row.runner == self._mine or self._is_alive(row.runner):
                found.append(_Waiting(*row))
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
    """Return the version of the conversation after the statement, and its title.

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
