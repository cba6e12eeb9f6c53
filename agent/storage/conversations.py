"""The records of conversations: turns, pictures and receipts, written as they happen.

Statements are made once: SQLAlchemy then takes their SQL from its cache, which is most of what a call costs. Whatever
changes what a `Conversation` holds gives that conversation its next version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, and_, bindparam, case, func, insert, or_, select, update

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import PromptMessage, Value
from agent.pictures import DriftRecord, EditRecord, Picture, Review
from agent.storage.journal import forget_answers, next_slots, reserved_handles, reserved_slot
from agent.storage.kept import VERSION, KeptConversations
from agent.storage.rows import (
    PICTURE_COLUMNS,
    TURN_COLUMNS,
    answer_of,
    changed_details,
    changed_turn,
    picture_of,
    picture_row,
    turn_of,
    turn_row,
)
from agent.storage.signatures import large_signatures
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.titles import subject_title, title_of
from agent.storage.turn_order import Place

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_THIS = _C.id == bindparam("key")
_THIS_TURN = and_(_T.conversation_id == bindparam("key"), _T.id == bindparam("turn"))
_THIS_PICTURE = and_(_P.conversation_id == bindparam("key"), _P.handle == bindparam("name"))
_NEXT_POSITION = (
    select(func.coalesce(func.max(_T.position), -1) + 1)
    .where(_T.conversation_id == bindparam("within"))
    .scalar_subquery()
)
_ADD_TURN = insert(TURNS).values(position=_NEXT_POSITION)
_ADD_PICTURE = insert(PICTURES).values(owner=select(_C.owner).where(_C.id == bindparam("within")).scalar_subquery())
_NEXT_VERSION = {"version": _C.version + 1}
_CHANGED = update(CONVERSATIONS).where(_THIS).values(_NEXT_VERSION).returning(_C.version)
_TOUCH = (
    update(CONVERSATIONS)
    .where(_THIS)
    .values(
        **_NEXT_VERSION,
        updated_at=bindparam("now"),
        title=func.coalesce(func.nullif(_C.title, ""), bindparam("new_title")),
        # Moments alone would not do: two writes may come to the disk in another order than they were made.
        indexed_at=None,
    )
    .returning(_C.version, _C.title)
)
# A deleted conversation takes what was on its way to it, but nothing new.
_LEAD_ON = _TOUCH.where(_C.deleted_at.is_(None)).values(head=bindparam("new_head"))
_CALL_IT = _TOUCH.values(title=case((_C.is_named, _C.title), else_=bindparam("new_title")))
_HEAD = select(_C.head).where(_THIS, _C.deleted_at.is_(None))
_STATE_OF = select(_T.state).where(_THIS_TURN)
# Never what another process runs now: it was taken for dead, or took the turn up.
_IS_MINE = or_(_T.state != TurnState.RUNNING.value, _T.runner == bindparam("mine"))
_FINISH = update(TURNS).where(_THIS_TURN, _IS_MINE).values(reserved_usd=0.0, is_stop_requested=False)
_AMEND = update(TURNS).where(_THIS_TURN)
_TAKE_UP = update(TURNS).where(_THIS_TURN).values(state=TurnState.RUNNING.value, is_stop_requested=False)
_REPLACE_PICTURE = update(PICTURES).where(_THIS_PICTURE, _P.digest == bindparam("content"))
_DETAILS = select(_P.details).where(_THIS_PICTURE)
_SET_DETAILS = update(PICTURES).where(_THIS_PICTURE).values(details=bindparam("new_details"), is_indexed=False)
_ONE_TURN = select(*TURN_COLUMNS).where(_THIS_TURN)
_BROUGHT_BY = select(*PICTURE_COLUMNS).where(
    _P.conversation_id == bindparam("key"), _P.turn_id == bindparam("turn"), _P.call == bindparam("by"), _P.call != ""
)
_LAST_POSITION = select(func.max(_P.position)).where(_P.conversation_id == bindparam("key"))
_ANSWER = select(_P.answer, _P.signatures).where(_THIS_PICTURE)
_REQUESTED = select(_T.id).where(_T.conversation_id == bindparam("key"), _T.request_id == bindparam("request"))
_NEXT = TURNS.alias("next")
_IS_OVER = or_(
    _T.state.in_((TurnState.DONE.value, TurnState.STOPPED.value)),
    # Only the newest turn of a branch may go on, whether the branch is shown or not.
    select(_NEXT.c.id).where(_NEXT.c.conversation_id == _T.conversation_id, _NEXT.c.parent == _T.id).exists(),
)
_MAY_GO_ON = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)), ~_IS_OVER)
# A turn in such a state asks for nothing any more; a failed or waiting one may go on.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})
# Answers of turns that are over are let go of together: each by itself would cost every turn a statement.
_TOGETHER = 32

T = TypeVar("T")


class ConversationBusy(Exception):
    """Another turn of the conversation goes first, in this process or another one."""


class ConversationChanged(Exception):
    """The conversation is not as it was when the turn was prepared: it is to be prepared again."""


class TurnKnown(Exception):
    """The turn has begun already: its request came once before, or somebody else has taken it up."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self.turn_id = turn_id


class Written(NamedTuple):
    """The conversation's version after a write, and its title."""

    version: int
    title: str


class ConversationStore(KeptConversations):
    """Conversations below `<home>/aivista.db`, with their turns and pictures as they come."""

    # Turns

    async def begin_turn(
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
        messages, places = await self._keep_signatures(turn.messages)
        key, now, title = {"key": conversation_id}, datetime.now(UTC), title_of(turn.text)
        row = {"id": turn.id, "runner": self._process.name, "request_id": turn.request_id, "parent": turn.parent}
        row |= {"conversation_id": conversation_id, "within": conversation_id, **turn_row(turn, messages, places)}
        uploads = [picture_row(conversation_id, picture, None, ()) for picture in pictures]

        def begin(on: Connection) -> Written | Exception:
            # What keeps it from beginning is returned, not raised: dead turns that were closed meanwhile stay closed.
            if turn.request_id is not None:
                known = on.scalar(_REQUESTED, {**key, "request": turn.request_id})
                if known is not None:
                    return TurnKnown(known)
            if not self._order.take(on, conversation_id, place):
                return ConversationBusy()
            if prepared_at is not None and on.scalar(VERSION, key) not in (prepared_at, None):
                return ConversationChanged()
            if any(upload["handle"] in reserved_handles(on, conversation_id) for upload in uploads):
                return ConversationChanged()
            written = _written(on, _LEAD_ON, {**key, "now": now, "new_title": title, "new_head": turn.id})
            on.execute(_ADD_TURN, row)
            if uploads:
                last = on.scalar(_LAST_POSITION, key) or 0
                more = [{**one, "within": conversation_id, "position": last + n} for n, one in enumerate(uploads, 1)]
                on.execute(_ADD_PICTURE, more)
            return written

        def begun(one: Conversation) -> Conversation | None:
            if turn.parent != (one.turns[-1].id if one.turns else None):
                # A new branch: which pictures are elsewhere now, and in what order, the record tells.
                return None
            update = {
                "title": one.title or title,
                "updated_at": now,
                "turns": (*one.turns, turn),
                "pictures": (*one.pictures, *(_light(picture) for picture in pictures)),
            }
            return one.model_copy(update=update)

        def remember(written: Written | Exception) -> None:
            if isinstance(written, Written):
                self._open.change(conversation_id, written.version, begun, _bytes_of(turn))

        _raise(await self.db.write(begin, remember))

    async def take_up(self, conversation_id: str, turn: Turn, *, place: int | None = None) -> None:
        """Put on record that this process has a turn go on that rests, as given, where it is the newest that is shown.

        Raises as `begin_turn` does; TurnKnown where it rests no more, or somebody else was first.
        """
        key = {"key": conversation_id}
        this = {**key, "turn": turn.id}

        def take_up(on: Connection) -> int | Exception:
            if on.scalar(_STATE_OF, this) != turn.state.value:
                return TurnKnown(turn.id)
            if not self._order.take(on, conversation_id, place):
                return ConversationBusy()
            # Read once more: another turn of a process that died may have been closed.
            head = on.execute(_HEAD, key).one_or_none()
            if head is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            if head.head not in (turn.id, None):
                return ConversationChanged()
            on.execute(_TAKE_UP, {**this, "runner": self._process.name})
            return _next_version(on, conversation_id)

        running = turn.model_copy(update={"state": TurnState.RUNNING})

        def remember(version: int | Exception) -> None:
            if isinstance(version, int):
                self._open.change(conversation_id, version, lambda one: _with_turn(one, running))

        _raise(await self.db.write(take_up, remember))

    async def requested_turn(self, conversation_id: str, request_id: str) -> str | None:
        """Return the id of the turn that was sent under this name, if there is one on record."""
        assert self._direct is not None
        return self._direct.turn_of_request(conversation_id, request_id)

    # The queue of turns

    async def join_queue(self, conversation_id: str, request_id: str | None, limit: int) -> Place:
        """Take the last place in a conversation's queue, where fewer than `limit` turns of all processes wait."""
        joining = asyncio.create_task(
            self.db.write(lambda on: self._order.join(on, conversation_id, request_id, limit))
        )
        try:
            return await asyncio.shield(joining)
        except asyncio.CancelledError:
            # Nobody would give it up, and everybody would wait behind it.
            await self._durably(self._leave_again(joining))
            raise

    async def _leave_again(self, joining: asyncio.Task[Place]) -> None:
        await asyncio.wait([joining])
        is_there = not joining.cancelled() and joining.exception() is None
        if is_there and (place := joining.result().id) is not None:
            await self.leave_queue(place)

    async def leave_queue(self, place: int) -> None:
        """Give a place up; one that was given up already is nobody's."""
        await self._durably(self.db.write(lambda on: self._order.leave(on, place)))

    async def turns_ahead(self, conversation_id: str, place: int) -> int | None:
        """Return how many turns go before a place; None when it was stopped by another process."""
        return await self.db.write(lambda on: self._order.ahead(on, conversation_id, place))

    async def is_running(self, conversation_id: str) -> bool:
        """Whether any process that is there has a turn of the conversation at work."""
        return await self.db.read(lambda on: self._order.is_running(on, conversation_id))

    async def request_stop(self, conversation_id: str, turn_id: str | None = None) -> bool:
        """Have other processes stop what runs or waits in the conversation, or that turn alone; return whether there
        was anything."""
        return await self.db.write(lambda on: self._order.request_stop(on, conversation_id, turn_id))

    def turns_to_stop(self) -> tuple[str, ...]:
        """Return the turns of this process that were stopped by another one."""
        return self._direct.turns_to_stop(self._process.name) if self._direct is not None else ()

    async def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Record all of the turn as it is now: messages, components, state, usage, price.

        A turn on record as running is this process's from now on. Raises RequestRefused when the turn is gone, or is
        run by another process now.
        """
        await self._durably(self._finish(conversation_id, turn))

    async def _finish(self, conversation_id: str, turn: Turn) -> None:
        messages, places = await self._keep_signatures(turn.messages)
        now, title, mine = datetime.now(UTC), subject_title(turn), self._process.name
        values = {"key": conversation_id, "turn": turn.id, "mine": mine, "runner": mine}
        values |= turn_row(turn, messages, places)

        def finish(on: Connection) -> Written:
            # The title is that of the conversation now, unless the person gave it one.
            touched = {"key": conversation_id, "now": now, "new_title": title}
            written = _written(on, _CALL_IT if title else _TOUCH, touched)
            if not on.execute(_FINISH, values).rowcount:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            if turn.state in _OVER:
                self._over.append(turn.id)
            if len(self._over) >= _TOGETHER:
                forget_answers(on, self._over)
                self._over = []
            return written

        def remember(written: Written) -> None:
            # One of a branch that is not shown is only on record.
            update = {"updated_at": now, "title": written.title}
            self._open.change(
                conversation_id,
                written.version,
                lambda one: _with_turn(one, turn).model_copy(update=update),
                _bytes_of(turn),
            )

        await self.db.write(finish, remember)

    async def amend_turn(self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None]) -> None:
        """Change what a turn shows and cost, as it is at that very moment; None leaves it. Its messages stay.

        `change` is called in the transaction, perhaps more than once.
        """
        await self._durably(self._amend(conversation_id, turn_id, change))

    async def _amend(self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None]) -> None:
        now, this = datetime.now(UTC), {"key": conversation_id, "turn": turn_id}

        def amend(on: Connection) -> Written | None:
            row = on.execute(_ONE_TURN, this).one_or_none()
            # Signatures are neither shown nor changed.
            changed = change(turn_of(row, lambda _: b"")) if row is not None else None
            if changed is None:
                return None
            written = _written(on, _TOUCH, {"key": conversation_id, "now": now, "new_title": ""})
            on.execute(_AMEND, {**this, **changed_turn(changed)})
            return written

        def amended(one: Conversation) -> Conversation | None:
            kept = one.turn(turn_id)
            changed = change(kept) if kept is not None else None
            return _with_turn(one, changed) if changed is not None else None

        def remember(written: Written | None) -> None:
            if written is not None:
                self._open.change(conversation_id, written.version, amended)

        await self.db.write(amend, remember)

    async def turn(self, conversation_id: str, turn_id: str) -> Turn | None:
        """Return a turn of any branch of the conversation, shown or not."""
        kept = self._remembered(conversation_id)
        for one in kept.turns if kept else ():
            if one.id == turn_id:
                return one
        this = {"key": conversation_id, "turn": turn_id}

        def read(on: Connection) -> Turn | None:
            row = on.execute(_ONE_TURN, this).one_or_none()
            return turn_of(row, self._images.read_blob_now) if row else None

        return await self.db.read(read)

    async def may_go_on(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the turns that run or may go on."""
        return await self.db.read(lambda on: set(on.scalars(_MAY_GO_ON, {"these": list(turn_ids)})))

    # Pictures

    async def next_handles(self, conversation_id: str, count: int) -> list[str]:
        """Return the handles that so many new pictures would be given now."""
        slots = await self.db.read(lambda on: next_slots(on, conversation_id, [None] * count))
        return [slot.handle for slot in slots]

    async def add_picture(self, conversation_id: str, picture: Picture, *, base: str | None = None) -> Picture:
        """Record a picture as soon as it is made, and return it as it is on record, without its `answer`.

        Its handle is the one that was reserved for its `call`, else its own where that is free, else the next one, of
        the family of `base` when it was made by editing that picture. The picture that the same call of the same turn
        has brought before is returned as it is; the same one again under its handle replaces its record.
        """
        return await self._durably(self._add_picture(conversation_id, picture, base))

    async def _add_picture(self, conversation_id: str, picture: Picture, base: str | None) -> Picture:
        answer, places = await self._keep_signatures((picture.answer,) if picture.answer else ())
        light = picture.model_copy(update={"answer": answer[0] if answer else None})
        key, now = {"key": conversation_id}, datetime.now(UTC)

        def row_of(named: Picture) -> dict[str, Any]:
            return picture_row(conversation_id, named, named.answer, places)

        def add(on: Connection) -> tuple[Picture, int | None, bool]:
            """Return the picture, the version of the conversation, none where it was there before, and whether the
            picture is the last of the conversation's."""
            known = on.execute(_BROUGHT_BY, {**key, "turn": light.turn_id, "by": light.call}).one_or_none()
            if known is not None:
                return picture_of(known), None, False
            version = _written(on, _TOUCH, {**key, "now": now, "new_title": ""}).version
            if light.handle:
                row = row_of(light)
                place = {**key, "name": row["handle"], "content": row["digest"]}
                if on.execute(_REPLACE_PICTURE, {**place, **row}).rowcount:
                    return light, version, False
            slot = reserved_slot(on, light.turn_id, light.call) if light.call else None
            if slot is None:
                (slot,) = next_slots(on, conversation_id, [base], light.handle)
            last = on.scalar(_LAST_POSITION, key) or 0
            named = light.named(slot.handle)
            on.execute(_ADD_PICTURE, {**row_of(named), "within": conversation_id, "position": slot.position})
            return named, version, slot.position > last

        def remember(added: tuple[Picture, int | None, bool]) -> None:
            new, version, is_last = added
            if version is None:
                return

            def with_it(one: Conversation) -> Conversation | None:
                changed = _with_picture(one, _light(new), is_last=is_last)
                return changed.model_copy(update={"updated_at": now}) if changed is not None else None

            self._open.change(conversation_id, version, with_it)

        recorded, _, _ = await self.db.write(add, remember)
        return _light(recorded)

    async def set_review(self, conversation_id: str, handle: str, review: Review) -> None:
        """Record what a look at the picture found. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        await self._set_details(conversation_id, handle, review=review)

    async def set_edit(self, conversation_id: str, handle: str, edit: EditRecord) -> None:
        """Record what is known of a masked edit now. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        await self._set_details(conversation_id, handle, edit=edit)

    async def set_drift(self, conversation_id: str, handle: str, drift: DriftRecord) -> None:
        """Record what an edit without a mask changed. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        await self._set_details(conversation_id, handle, drift=drift)

    async def keep_shortfall(self, conversation_id: str, handle: str) -> None:
        """Record that the person is content with a picture that is not as it was asked.

        Raises RequestRefused(PICTURE_NOT_FOUND).
        """
        await self._set_details(conversation_id, handle, shortfall_kept=True)

    async def _set_details(self, conversation_id: str, handle: str, **changes: Value | bool) -> None:
        place = {"key": conversation_id, "name": handle}

        def change(on: Connection) -> int:
            details = on.scalar(_DETAILS, place)
            if details is None:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
            on.execute(_SET_DETAILS, {**place, "new_details": changed_details(details, **changes)})
            return _next_version(on, conversation_id)

        def changed(one: Conversation) -> Conversation:
            return _with_changed(one, handle, lambda picture: picture.model_copy(update=changes))

        await self.db.write(change, lambda version: self._open.change(conversation_id, version, changed))

    async def answer_of(self, conversation_id: str, handle: str) -> PromptMessage | None:
        """Return the image model's message that holds the picture, its signatures whole; None for an upload.

        Raises RequestRefused(PICTURE_NOT_FOUND).
        """
        place = {"key": conversation_id, "name": handle}
        found = await self.db.read(lambda on: on.execute(_ANSWER, place).one_or_none())
        if found is None:
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
        return await asyncio.to_thread(answer_of, found.answer, found.signatures, self._images.read_blob_now)

    async def _durably(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return await asyncio.shield(task)


def _raise(outcome: object) -> None:
    if isinstance(outcome, Exception):
        raise outcome


def _written(connection: Connection, statement: Any, values: dict[str, Any]) -> Written:
    row = connection.execute(statement, values).one_or_none()
    if row is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return Written(row.version, row.title)


def _next_version(connection: Connection, conversation_id: str) -> int:
    version: int = connection.execute(_CHANGED, {"key": conversation_id}).scalar_one()
    return version


def _light(picture: Picture) -> Picture:
    # Signatures of 1-2 MB each: a hundred pictures of a long conversation would fill the memory.
    return picture.model_copy(update={"answer": None}) if picture.answer is not None else picture


def _with_turn(conversation: Conversation, turn: Turn) -> Conversation:
    turns = tuple(turn if other.id == turn.id else other for other in conversation.turns)
    return conversation.model_copy(update={"turns": turns})


def _with_picture(conversation: Conversation, new: Picture, *, is_last: bool) -> Conversation | None:
    """Return the conversation with the picture in it, of the branch that is shown or of another; None for a new one
    that others come after: where it belongs, the record tells."""
    if any(picture.handle == new.handle for picture in conversation.all_pictures):
        return _with_changed(conversation, new.handle, lambda _: new)
    if not is_last:
        return None
    is_shown = any(turn.id == new.turn_id for turn in conversation.turns)
    name = "pictures" if is_shown else "elsewhere"
    return conversation.model_copy(update={name: (*getattr(conversation, name), new)})


def _with_changed(conversation: Conversation, handle: str, change: Callable[[Picture], Picture]) -> Conversation:
    update = {
        name: tuple(change(one) if one.handle == handle else one for one in pictures)
        for name, pictures in (("pictures", conversation.pictures), ("elsewhere", conversation.elsewhere))
    }
    return conversation.model_copy(update=update)


def _bytes_of(turn: Turn) -> int:
    return sum(len(signature) for signature in large_signatures(turn.messages))
