"""The records of conversations: turns, pictures and receipts, written as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import PromptMessage, Value
from agent.pictures import DriftRecord, EditRecord, Picture, Review
from agent.storage.kept import KeptConversations
from agent.storage.signatures import large_signatures
from agent.storage.titles import subject_title, title_of

if TYPE_CHECKING:
    from agent.storage.records import AddedPicture, Begun, Written
    from agent.storage.turn_order import Place

# A turn in such a state asks for nothing any more; a failed or waiting one may go on.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})


class ConversationBusy(Exception):
    """Another turn of the conversation goes first, in this process or another one."""


class ConversationChanged(Exception):
    """The conversation is not as it was when the turn was prepared: it is to be prepared again."""


class TurnKnown(Exception):
    """The turn has begun already: its request came once before, or somebody else has taken it up."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(turn_id)
        self.turn_id = turn_id


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
        now, title = datetime.now(UTC), title_of(turn.text)
        begun_as: list[Begun] = []

        def record() -> None:
            from agent.storage.rows import picture_row, turn_row

            row = {"id": turn.id, "runner": self._life.name, "request_id": turn.request_id, "parent": turn.parent}
            row |= turn_row(turn, messages, places)
            uploads = [picture_row(conversation_id, picture, None, ()) for picture in pictures]
            begun_as[:] = [
                self._records.begin_turn(
                    conversation_id, row, uploads, title, now, prepared_at=prepared_at, place=place
                )
            ]

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

        def remember() -> None:
            written = begun_as[0].written
            if written is not None:
                self._open.change(conversation_id, written.version, begun, _bytes_of(turn))

        await self._writing.write(record, remember)
        _require_begun(begun_as[0])

    async def take_up(self, conversation_id: str, turn: Turn, *, place: int | None = None) -> None:
        """Put on record that this process has a turn go on that rests, as given, where it is the newest that is shown.

        Raises as `begin_turn` does; TurnKnown where it rests no more.
        """
        taken: list[Begun] = []

        def record() -> None:
            taken[:] = [self._records.take_up(conversation_id, turn, place)]

        def remember() -> None:
            written = taken[0].written
            if written is not None:
                running = turn.model_copy(update={"state": TurnState.RUNNING})
                self._open.change(conversation_id, written.version, lambda one: _with_turn(one, running))

        await self._writing.write(record, remember)
        _require_begun(taken[0])

    async def requested_turn(self, conversation_id: str, request_id: str) -> str | None:
        """Return the id of the turn that was sent under this name, if there is one on record."""
        assert self._direct is not None
        return self._direct.turn_of_request(conversation_id, request_id)

    # The queue of turns

    async def join_queue(self, conversation_id: str, request_id: str | None, limit: int) -> Place:
        """Take the last place in a conversation's queue, where fewer than `limit` turns of all processes wait."""
        found: list[Place] = []

        def record() -> None:
            found[:] = [self._records.order.join(conversation_id, request_id, limit)]

        joining = asyncio.create_task(self._writing.write(record, _nothing))
        try:
            await asyncio.shield(joining)
        except asyncio.CancelledError:
            # Nobody would give it up, and everybody would wait behind it.
            await self._durably(self._leave_again(joining, found))
            raise
        return found[0]

    async def _leave_again(self, joining: asyncio.Task[None], found: list[Place]) -> None:
        await asyncio.wait([joining])
        for place in found:
            if place.id is not None:
                await self.leave_queue(place.id)

    async def leave_queue(self, place: int) -> None:
        """Give a place up; one that was given up already is nobody's."""
        await self._durably(self._writing.write(lambda: self._records.order.leave(place), _nothing))

    async def turns_ahead(self, conversation_id: str, place: int) -> int | None:
        """Return how many turns go before a place; None when it was stopped by another process."""
        return await self._call(lambda: self._records.order.ahead(conversation_id, place))

    async def is_running(self, conversation_id: str) -> bool:
        """Whether any process that is there has a turn of the conversation at work."""
        return await self._call(lambda: self._records.order.is_running(conversation_id))

    async def request_stop(self, conversation_id: str, turn_id: str | None = None) -> bool:
        """Have other processes stop what runs or waits in the conversation, or that turn alone; return whether there
        was anything."""
        return await self._call(lambda: self._records.order.request_stop(conversation_id, turn_id))

    def turns_to_stop(self) -> tuple[str, ...]:
        """Return the turns of this process that were stopped by another one."""
        return self._direct.turns_to_stop(self._life.name) if self._direct is not None else ()

    async def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Record all of the turn as it is now: messages, components, state, usage, price.

        A turn on record as running is this process's from now on.
        """
        await self._durably(self._finish(conversation_id, turn))

    async def _finish(self, conversation_id: str, turn: Turn) -> None:
        messages, places = await self._keep_signatures(turn.messages)
        now, title = datetime.now(UTC), subject_title(turn)
        done: list[Written] = []

        def record() -> None:
            from agent.storage.rows import turn_row

            row = turn_row(turn, messages, places)
            done[:] = [self._records.finish_turn(conversation_id, turn.id, row, now, title)]
            if turn.state in _OVER:
                self._records.calls.let_go(turn.id)

        def finished(one: Conversation) -> Conversation:
            # One of a branch that is not shown is only on record.
            return _with_turn(one, turn).model_copy(update={"updated_at": now, "title": done[0].title})

        await self._writing.write(
            record, lambda: self._open.change(conversation_id, done[0].version, finished, _bytes_of(turn))
        )

    async def amend_turn(self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None]) -> None:
        """Change what a turn shows and cost, as it is at that very moment; None leaves it. Its messages stay.

        `change` is called in the transaction, perhaps more than once.
        """
        await self._durably(self._amend(conversation_id, turn_id, change))

    async def _amend(self, conversation_id: str, turn_id: str, change: Callable[[Turn], Turn | None]) -> None:
        now = datetime.now(UTC)
        done: list[Written | None] = []

        def record() -> None:
            done[:] = [self._records.amend_turn(conversation_id, turn_id, change, now)]

        def amended(one: Conversation) -> Conversation | None:
            kept = one.turn(turn_id)
            changed = change(kept) if kept is not None else None
            return _with_turn(one, changed) if changed is not None else None

        def remember() -> None:
            if (written := done[0]) is not None:
                self._open.change(conversation_id, written.version, amended)

        await self._writing.write(record, remember)

    async def turn(self, conversation_id: str, turn_id: str) -> Turn | None:
        """Return a turn of any branch of the conversation, shown or not."""
        kept = self._remembered(conversation_id)
        for one in kept.turns if kept else ():
            if one.id == turn_id:
                return one
        return await self._call(lambda: self._records.turn(conversation_id, turn_id, self._images.read_blob_now))

    async def may_go_on(self, turn_ids: Sequence[str]) -> set[str]:
        """Return those of the turns that run or may go on."""
        return await self._call(lambda: self._records.may_go_on(turn_ids))

    # Pictures

    async def next_handles(self, conversation_id: str, count: int) -> list[str]:
        """Return the handles that so many new pictures would be given now."""
        return await self._call(lambda: self._records.next_handles(conversation_id, count))

    async def add_picture(self, conversation_id: str, picture: Picture, *, base: str | None = None) -> Picture:
        """Record a picture as soon as it is made, and return it as it is on record, without its `answer`.

        Its handle is the one that was reserved for its `call`, else its own where that is free, else the next one, of
        the family of `base` when it was made by editing that picture. The picture that the same call of the same turn
        has brought before is returned as it is; the same one again under its handle replaces its record.
        """
        found: list[Picture] = []
        await self._durably(self._add_picture(conversation_id, picture, base, found))
        return found[0]

    async def _add_picture(
        self, conversation_id: str, picture: Picture, base: str | None, found: list[Picture]
    ) -> None:
        answer, places = await self._keep_signatures((picture.answer,) if picture.answer else ())
        light = picture.model_copy(update={"answer": answer[0] if answer else None})
        now = datetime.now(UTC)
        done: list[AddedPicture] = []

        def record() -> None:
            from agent.storage.rows import picture_row

            def row_of(named: Picture) -> dict[str, Any]:
                return picture_row(conversation_id, named, named.answer, places)

            done[:] = [self._records.add_picture(conversation_id, light, row_of, base, now)]
            found[:] = [_light(done[0].picture)]

        def added(one: Conversation) -> Conversation | None:
            changed = _with_picture(one, found[0], is_last=done[0].is_last)
            return changed.model_copy(update={"updated_at": now}) if changed is not None else None

        def remember() -> None:
            if (version := done[0].version) is not None:
                self._open.change(conversation_id, version, added)

        await self._writing.write(record, remember)

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
        versions: list[int] = []

        def record() -> None:
            versions[:] = [self._records.set_details(conversation_id, handle, **changes)]

        await self._writing.write(
            record,
            lambda: self._open.change(conversation_id, versions[0], lambda one: _updated(one, handle, **changes)),
        )

    async def answer_of(self, conversation_id: str, handle: str) -> PromptMessage | None:
        """Return the image model's message that holds the picture, its signatures whole; None for an upload.

        Raises RequestRefused(PICTURE_NOT_FOUND).
        """
        found = await self._call(lambda: self._records.answer(conversation_id, handle))
        if found is None:
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
        from agent.storage.rows import answer_of

        return await asyncio.to_thread(answer_of, *found, self._images.read_blob_now)

    async def _durably(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        await asyncio.shield(task)


def _light(picture: Picture) -> Picture:
    # Signatures of 1-2 MB each: a hundred pictures of a long conversation would fill the memory.
    return picture.model_copy(update={"answer": None}) if picture.answer is not None else picture


def _require_begun(begun: Begun) -> None:
    if begun.known_turn is not None:
        raise TurnKnown(begun.known_turn)
    if begun.is_busy:
        raise ConversationBusy
    if begun.written is None:
        raise ConversationChanged


def _with_turn(conversation: Conversation, turn: Turn) -> Conversation:
    turns = tuple(turn if other.id == turn.id else other for other in conversation.turns)
    return conversation.model_copy(update={"turns": turns})


def _with_picture(conversation: Conversation, new: Picture, *, is_last: bool) -> Conversation | None:
    """Return the conversation with the picture in it, of the branch that is shown or of another; None for a new one
    that others come after: where it belongs, the record tells."""
    if any(picture.handle == new.handle for picture in conversation.all_pictures):
        return _changed(conversation, new.handle, lambda _: new)
    if not is_last:
        return None
    is_shown = any(turn.id == new.turn_id for turn in conversation.turns)
    name = "pictures" if is_shown else "elsewhere"
    return conversation.model_copy(update={name: (*getattr(conversation, name), new)})


def _updated(conversation: Conversation, handle: str, **update: object) -> Conversation:
    """Return the conversation with one of its pictures changed."""
    return _changed(conversation, handle, lambda one: one.model_copy(update=update))


def _changed(conversation: Conversation, handle: str, change: Callable[[Picture], Picture]) -> Conversation:
    update = {
        name: tuple(change(one) if one.handle == handle else one for one in pictures)
        for name, pictures in (("pictures", conversation.pictures), ("elsewhere", conversation.elsewhere))
    }
    return conversation.model_copy(update=update)


def _nothing() -> None:
    pass


def _bytes_of(turn: Turn) -> int:
    return sum(len(signature) for signature in large_signatures(turn.messages))
