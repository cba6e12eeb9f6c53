"""The records of conversations: turns, pictures and receipts, written as they happen."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent.components import InterruptedNote, SmartCanvas
from agent.conversation import Conversation, ConversationInfo, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import PromptMessage, Value
from agent.pictures import DriftRecord, EditRecord, Picture
from agent.reviews import Review
from agent.storage.images import ImageStore
from agent.storage.journal import Journal
from agent.storage.liveness import LifeSign
from agent.storage.open_conversations import OpenConversations
from agent.storage.private_files import storage_failure
from agent.storage.signatures import Place, large_signatures, take_out
from agent.storage.writing import Writing

if TYPE_CHECKING:
    from agent.storage.records import Records, RunningTurn

T = TypeVar("T")

_TITLE_LENGTH = 48
# A turn in such a state asks for nothing any more; a failed or waiting one may go on.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED})


class ConversationStore:
    """Conversations below `<home>/aivista.db`, one thread of its own under the event loop.

    What was handed over is written even when the caller is cancelled meanwhile. Every call but `open` and `aclose`
    raises StorageFailure when the database cannot be read or written, and RequestRefused(CONVERSATION_NOT_FOUND) for
    a conversation that is gone.
    """

    def __init__(self, home: Path, images: ImageStore) -> None:
        self._home = home
        self._images = images
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="records")
        self._open = OpenConversations()
        self._writing = Writing(
            self._thread, lambda: self._records.together(), lambda is_durable: self._records.begin_batch(is_durable)
        )
        self._life = LifeSign(home / "running")
        self.journal = Journal(self._writing, lambda: self._records.calls, images)
        # The turns that a dead process left running, found when this store was opened.
        self.abandoned: tuple[RunningTurn, ...] = ()
        self._opened: Records | None = None
        self._unfinished: set[asyncio.Task[None]] = set()

    @property
    def set_aside(self) -> Path | None:
        """Where an unreadable database was put when this one was opened."""
        return self._opened.set_aside if self._opened else None

    @property
    def _records(self) -> Records:
        if self._opened is None:
            raise RuntimeError("the store is not open")
        return self._opened

    async def open(self) -> None:
        """Open or create the database and close the turns that a dead process left behind.

        Raises StorageFailure when the home cannot be used or the database is that of a newer Aivista.
        """
        try:
            await self._call(self._open_now)
        except BaseException:
            await self.aclose()
            raise

    def _open_now(self) -> None:
        # SQLAlchemy takes 0.2 s to import, which the first page need not wait for.
        from agent.storage.records import Records

        self._opened = Records(self._home)
        try:
            self._life.hold()
        except OSError as error:
            raise storage_failure(error) from error
        self.abandoned = self._close_abandoned_now()
        self._opened.calls.let_go_of_all()

    async def aclose(self) -> None:
        """Finish what is being written and close the database."""
        while self._unfinished:
            await asyncio.wait(self._unfinished)
        await self._writing.finish()
        await self._call(self._close_now)
        self._thread.shutdown()

    def _close_now(self) -> None:
        self._life.release()
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    # Conversations

    async def create(self, owner: str, title: str = "") -> Conversation:
        """Return a new, empty conversation."""
        now = datetime.now(UTC)
        conversation = Conversation(id=secrets.token_hex(16), owner=owner, title=title, created_at=now, updated_at=now)
        await self._call(self._create_now, conversation)
        return conversation

    def _create_now(self, conversation: Conversation) -> None:
        self._records.create(conversation)
        self._open.put(conversation)

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """Return the conversation as it is on record; its pictures come without `answer` (see `answer_of`).

        Raises RequestRefused(CONVERSATION_NOT_FOUND), also when it is somebody else's.
        """
        conversation = self._open.get(conversation_id) or await self._call(self._load_now, conversation_id)
        if conversation is None or conversation.owner != owner:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def conversation_of_any_owner(self, conversation_id: str) -> Conversation:
        """Return the conversation whoever it belongs to, for the studio's own work.

        Raises RequestRefused(CONVERSATION_NOT_FOUND).
        """
        conversation = self._open.get(conversation_id) or await self._call(self._load_now, conversation_id)
        if conversation is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    def _load_now(self, conversation_id: str) -> Conversation | None:
        conversation = self._records.load(conversation_id, self._images.read_blob_now)
        if conversation is not None:
            self._open.put(conversation)
        return conversation

    async def list(self, owner: str, limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, the newest first."""
        return await self._call(lambda: self._records.list(owner, limit, offset))

    async def rename(self, conversation_id: str, owner: str, title: str) -> None:
        """Give the owner's conversation another title."""

        def rename_now() -> None:
            if not self._records.rename(conversation_id, owner, title):
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            self._open.change(conversation_id, lambda one: one.model_copy(update={"title": title}))

        await self._call(rename_now)

    async def delete(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's conversation from the records; picture files stay, others may share them."""

        def delete_now() -> None:
            if not self._records.delete(conversation_id, owner):
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            self._open.drop(conversation_id)

        await self._call(delete_now)

    # Turns

    async def begin_turn(self, conversation_id: str, turn: Turn, pictures: Sequence[Picture] = ()) -> None:
        """Record the turn and its uploads together; its first words become the title of an untitled conversation."""
        messages, places = await self._keep_signatures(turn.messages)
        now, title = datetime.now(UTC), _title(turn.text)

        def record() -> None:
            from agent.storage.rows import picture_row, turn_row

            row = {"id": turn.id, "runner": self._life.name, "request_id": turn.request_id, "parent": turn.parent}
            row |= turn_row(turn, messages, places)
            uploads = [picture_row(conversation_id, picture, None, ()) for picture in pictures]
            self._records.begin_turn(conversation_id, row, uploads, title, now)

        def begun(one: Conversation) -> Conversation:
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
        now = datetime.now(UTC)

        def record() -> None:
            from agent.storage.rows import turn_row

            row = {"runner": self._life.name, **turn_row(turn, messages, places)}
            self._records.finish_turn(conversation_id, turn.id, row, now)
            if turn.state in _OVER:
                self._records.calls.let_go(turn.id)

        def finished(one: Conversation) -> Conversation:
            turns = tuple(turn if other.id == turn.id else other for other in one.turns)
            return one.model_copy(update={"updated_at": now, "turns": turns})

        await self._writing.write(record, lambda: self._open.change(conversation_id, finished, _bytes_of(turn)))

    async def running_turns(self) -> tuple[RunningTurn, ...]:
        """Return the turns on record as running, of this process and others, the oldest first."""
        return await self._call(lambda: self._records.running_turns())

    async def resting_turns(self) -> tuple[str, ...]:
        """Return the ids of the turns that run or may go on."""
        return await self._call(lambda: self._records.resting_turns())

    async def close_abandoned(self) -> tuple[RunningTurn, ...]:
        """Return the turns that a dead process left running; they are now interrupted and show what they had made.

        Their calls that were on their way are `unknown` now.
        """
        return await self._call(self._close_abandoned_now)

    def _close_abandoned_now(self) -> tuple[RunningTurn, ...]:
        from agent.storage.rows import COMPONENTS

        closed = []
        for turn in self._records.running_turns():
            if self._life.is_alive(turn.runner):
                continue
            handles = self._records.made_in(turn)
            canvas = (SmartCanvas(handles=handles),) if handles else ()
            note = InterruptedNote(may_have_been_charged=self._records.calls.lose(turn.turn_id))
            if self._records.abandon(turn, COMPONENTS.dump_json((*canvas, note)).decode()):
                self._open.drop(turn.conversation_id)
                closed.append(turn)
        return tuple(closed)

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
            update = {"updated_at": now, "pictures": _with_picture(one.pictures, _light(picture))}
            return one.model_copy(update=update)

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

    async def _set_details(self, conversation_id: str, handle: str, **changes: Value) -> None:
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

    # Threads

    async def _call(self, work: Callable[..., T], *arguments: object) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        # Cancelling the caller must not take its work from the queue.
        return await asyncio.shield(future)

    async def _durably(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        await asyncio.shield(task)

    async def _keep_signatures(
        self, messages: tuple[PromptMessage, ...]
    ) -> tuple[tuple[PromptMessage, ...], tuple[Place, ...]]:
        """Write large signatures as blobs, off the database's thread: others' turns wait for that one."""
        signatures = large_signatures(messages)
        if not signatures:
            return messages, ()
        return take_out(messages, [await self._images.write_blob(signature) for signature in signatures])


def _title(text: str) -> str:
    words = " ".join(re.split(r"\s+", text[:1000])).strip()
    if len(words) <= _TITLE_LENGTH:
        return words
    cut = words[:_TITLE_LENGTH]
    return (cut.rsplit(" ", 1)[0] if " " in cut[_TITLE_LENGTH // 2 :] else cut).rstrip() + "…"


def _light(picture: Picture) -> Picture:
    # Signatures of 1-2 MB each: a hundred pictures of a long conversation would fill the memory.
    return picture.model_copy(update={"answer": None}) if picture.answer is not None else picture


def _with_picture(pictures: tuple[Picture, ...], new: Picture) -> tuple[Picture, ...]:
    if all(picture.handle != new.handle for picture in pictures):
        return (*pictures, new)
    return tuple(new if picture.handle == new.handle else picture for picture in pictures)


def _updated(conversation: Conversation, handle: str, **update: object) -> Conversation:
    """Return the conversation with one of its pictures changed."""
    pictures = (one.model_copy(update=update) if one.handle == handle else one for one in conversation.pictures)
    return conversation.model_copy(update={"pictures": tuple(pictures)})


def _bytes_of(turn: Turn) -> int:
    return sum(len(signature) for signature in large_signatures(turn.messages))
