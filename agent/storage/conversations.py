"""The records of conversations: turns, pictures and receipts, written as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import PromptMessage, Value
from agent.pictures import DriftRecord, EditRecord, Picture
from agent.reviews import Review
from agent.storage.kept import KeptConversations
from agent.storage.signatures import large_signatures
from agent.storage.titles import subject_title, title_of

if TYPE_CHECKING:
    from agent.storage.records import RunningTurn

# A turn in such a state asks for nothing any more; a failed or waiting one may go on.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})


class ConversationStore(KeptConversations):
    """Conversations below `<home>/aivista.db`, with their turns and pictures as they come."""

    # Turns

    async def begin_turn(self, conversation_id: str, turn: Turn, pictures: Sequence[Picture] = ()) -> None:
        """Record the turn and its uploads together; it is the newest of the branch that is shown from now on.

        It follows its `parent`: another one than the newest shown turn makes a new branch. Its first words become the
        title of an untitled conversation. Raises RequestRefused(CONVERSATION_NOT_FOUND) for a deleted one.
        """
        messages, places = await self._keep_signatures(turn.messages)
        now, title = datetime.now(UTC), title_of(turn.text)

        def record() -> None:
            from agent.storage.rows import picture_row, turn_row

            row = {"id": turn.id, "runner": self._life.name, "request_id": turn.request_id, "parent": turn.parent}
            row |= turn_row(turn, messages, places)
            uploads = [picture_row(conversation_id, picture, None, ()) for picture in pictures]
            self._records.begin_turn(conversation_id, row, uploads, title, now)

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

        await self._writing.write(record, lambda: self._open.change(conversation_id, begun, _bytes_of(turn)))

    async def requested_turn(self, conversation_id: str, request_id: str) -> str | None:
        """Return the id of the turn that was sent under this name, if there is one on record."""
        return await self._call(lambda: self._records.requested_turn(conversation_id, request_id))

    async def finish_turn(self, conversation_id: str, turn: Turn) -> None:
        """Record all of the turn as it is now: messages, components, state, usage, price.

        A turn on record as running is this process's from now on.
        """
        await self._durably(self._finish(conversation_id, turn))

    async def _finish(self, conversation_id: str, turn: Turn) -> None:
        messages, places = await self._keep_signatures(turn.messages)
        now, title = datetime.now(UTC), subject_title(turn)
        called: list[str] = []

        def record() -> None:
            from agent.storage.rows import turn_row

            row = {"runner": self._life.name, **turn_row(turn, messages, places)}
            name = self._records.finish_turn(conversation_id, turn.id, row, now, title)
            called[:] = [name] if name else []
            if turn.state in _OVER:
                self._records.calls.let_go(turn.id)

        def finished(one: Conversation) -> Conversation:
            # One of a branch that is not shown is only on record.
            turns = tuple(turn if other.id == turn.id else other for other in one.turns)
            update = {"updated_at": now, "turns": turns, "title": next(iter(called), one.title)}
            return one.model_copy(update=update)

        await self._writing.write(record, lambda: self._open.change(conversation_id, finished, _bytes_of(turn)))

    async def turn(self, conversation_id: str, turn_id: str) -> Turn | None:
        """Return a turn of any branch of the conversation, shown or not."""
        kept = self._open.get(conversation_id)
        for one in kept.turns if kept else ():
            if one.id == turn_id:
                return one
        return await self._call(lambda: self._records.turn(conversation_id, turn_id, self._images.read_blob_now))

    async def running_turns(self) -> tuple[RunningTurn, ...]:
        """Return the turns on record as running, of this process and others, the oldest first."""
        return await self._call(lambda: self._records.running_turns())

    async def resting_turns(self) -> tuple[str, ...]:
        """Return the ids of the turns that run or may go on."""
        return await self._call(lambda: self._records.resting_turns())

    # Pictures

    async def add_picture(self, conversation_id: str, picture: Picture) -> None:
        """Record a picture as soon as it is made; the same one again replaces its record.

        Raises DesignRuleBroken when the handle belongs to another picture.
        """
        await self._durably(self._add_picture(conversation_id, picture))

    async def _add_picture(self, conversation_id: str, picture: Picture) -> None:
        answer, places = await self._keep_signatures((picture.answer,) if picture.answer else ())
        now = datetime.now(UTC)

        def record() -> None:
            from agent.storage.rows import picture_row

            row = picture_row(conversation_id, picture, answer[0] if answer else None, places)
            self._records.add_picture(conversation_id, row, now)

        def added(one: Conversation) -> Conversation:
            return _with_picture(one, _light(picture)).model_copy(update={"updated_at": now})

        await self._writing.write(record, lambda: self._open.change(conversation_id, added))

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
        await self._writing.write(
            lambda: self._records.set_details(conversation_id, handle, **changes),
            lambda: self._open.change(conversation_id, lambda one: _updated(one, handle, **changes)),
        )

    async def mark_picture(self, conversation_id: str, handle: str, is_marked: bool) -> None:
        """Record whether the person marked the picture. Raises RequestRefused(PICTURE_NOT_FOUND)."""

        def mark_now() -> None:
            self._records.mark_picture(conversation_id, handle, is_marked)
            self._open.change(conversation_id, lambda one: _updated(one, handle, is_marked=is_marked))

        await self._call(mark_now)

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


def _with_picture(conversation: Conversation, new: Picture) -> Conversation:
    """Return the conversation with the picture in it, of the branch that is shown or of another."""
    if any(picture.handle == new.handle for picture in conversation.all_pictures):
        return _changed(conversation, new.handle, lambda _: new)
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


def _bytes_of(turn: Turn) -> int:
    return sum(len(signature) for signature in large_signatures(turn.messages))
