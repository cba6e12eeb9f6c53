"""Conversations as a whole: opened, listed, searched, named, pinned, switched, copied, thrown away and swept up."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from agent.conversation import Conversation, ConversationInfo, DeletedConversation, TurnsPage, WholeConversation
from agent.errors import ErrorCode, RequestRefused
from agent.storage.opened_records import OpenedRecords
from agent.storage.titles import checked_title

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from agent.storage.finding import ConversationHit
    from agent.storage.kept_rows import KeptRows, WholeRows

# Turns are written between two batches: each takes the database's thread for some milliseconds.
_INDEXED_AT_ONCE = 32
_ROWS_AT_ONCE = 500


class KeptConversations(OpenedRecords):
    """Every conversation of every owner. One that is deleted is not there until it is brought back; what was still
    on its way into it when it was deleted is recorded all the same."""

    async def create(self, owner: str, title: str = "", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation. A title given here is the person's own.

        The same request of the same owner begins one conversation, however often and wherever it comes. One that was
        deleted since is not returned: its request is free for a new one.
        """
        now = datetime.now(UTC)
        conversation = Conversation(id=secrets.token_hex(16), owner=owner, title=title, created_at=now, updated_at=now)
        found = await self._call(self._create_now, conversation, request_id)
        return conversation if found == conversation.id else await self.get(found, owner)

    def _create_now(self, conversation: Conversation, request_id: str | None) -> str:
        found = self._records.create(conversation, request_id)
        if found == conversation.id:
            self._open.put(conversation)
        return found

    async def of_request(self, request_id: str, owner: str) -> str | None:
        """Return the owner's conversation in which a turn of this request is on record or waits, in any process."""
        return await self._call(lambda: self._records.kept.of_request(request_id, owner))

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """Return the conversation as it is on record; its pictures come without `answer` (see `answer_of`).

        Raises RequestRefused(CONVERSATION_NOT_FOUND), also when it is deleted or somebody else's.
        """
        conversation = self._remembered(conversation_id)
        if conversation is None:
            conversation, is_deleted = await self._call(self._load_now, conversation_id)
            conversation = None if is_deleted else conversation
        if conversation is None or conversation.owner != owner:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def turns_page(self, conversation_id: str, owner: str, before: str | None, limit: int) -> TurnsPage:
        """Return the last `limit` turns of the branch that is shown, or the last ones before a turn of it, with their
        pictures; no other turn is read.

        Raises RequestRefused(CONVERSATION_NOT_FOUND, TURN_NOT_FOUND).
        """
        from agent.storage.turn_pages import turns_page

        read_blob = self._images.read_blob_now
        return await self.read(lambda opened: turns_page(opened, conversation_id, owner, before, limit, read_blob))

    async def hand_over(self, owner: str, new_owner: str, without: Collection[str] = ()) -> int:
        """Give the conversations and pictures of an owner to another one, deleted ones too; return how many
        conversations these were. Those `without` stay, and those in which another process has a turn at work."""

        def is_busy(connection: Connection, conversation_id: str) -> bool:
            busy = self._records.order.is_busy_elsewhere(connection, conversation_id)
            return busy or conversation_id in without

        return len(await self._call(lambda: self._records.kept.hand_over(owner, new_owner, is_busy)))

    async def conversation_of_any_owner(self, conversation_id: str) -> Conversation:
        """Return the conversation whoever it belongs to, deleted or not, for the studio's own work.

        Raises RequestRefused(CONVERSATION_NOT_FOUND).
        """
        conversation = self._remembered(conversation_id)
        if conversation is None:
            conversation, _ = await self._call(self._load_now, conversation_id)
        if conversation is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    def _load_now(self, conversation_id: str) -> tuple[Conversation | None, bool]:
        kept = self._open.get(conversation_id)
        if kept is not None and kept.version == self._records.version(conversation_id):
            # Written in this process a moment ago.
            return kept, False
        self._open.drop(conversation_id)
        loaded = self._records.load(conversation_id, self._images.read_blob_now)
        if loaded is None:
            return None, False
        # What is in memory is there for whoever it belongs to.
        if not loaded.is_deleted:
            self._open.put(loaded.conversation)
        return loaded

    async def list(self, owner: str, limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; those with neither a title nor a turn
        are left out."""
        return await self._call(lambda: self._records.kept.list(owner, limit, offset))

    async def pinned_and_newest(self, owner: str, count: int) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others, as `list` does."""
        return await self._call(lambda: self._records.kept.pinned_and_newest(owner, count))

    async def newest(self, owner: str) -> str | None:
        """Return the id of the owner's conversation that changed last, of those that have a title."""
        return await self._call(lambda: self._records.kept.newest(owner))

    async def search(self, owner: str, query: str, limit: int = 30) -> Sequence[ConversationHit]:
        """Return the owner's conversations that hold every word of the query, the newest first.

        Searched are titles, what the person said, what the agent answered and the pictures' prompts, in every branch.
        The last word of the query is found as far as it is written. What changed since the last search is put into
        the full text first: the first search in a home takes the longest.
        """
        from agent.storage.finding import as_found
        from agent.storage.word_index import match_query

        match = match_query(query)
        if match is None:
            return []
        await self._index_words()
        wordings = await self._call(lambda: self._records.words.found(owner, match, limit))
        infos = await self._call(lambda: self._records.kept.infos(one.id for one in wordings))
        by_id = {one.id: one for one in wordings}
        return await asyncio.to_thread(lambda: [as_found(info, by_id[info.id], query) for info in infos])

    async def _index_words(self) -> None:
        after: str | None = ""
        while after is not None:
            after = await self._index_some(after)

    async def _index_some(self, after: str) -> str | None:
        """Put the words of a few conversations into the full text; return after which one to go on."""
        from agent.storage.finding import split_words

        stale = await self._call(lambda: self._records.words.stale(after, _INDEXED_AT_ONCE))
        if stale:
            words = await asyncio.to_thread(lambda: [(one, split_words(one.wording)) for one in stale])
            await self._call(lambda: self._records.words.put(words))
        return stale[-1].wording.id if len(stale) == _INDEXED_AT_ONCE else None

    async def rename(self, conversation_id: str, owner: str, title: str) -> None:
        """Give the owner's conversation a title of at most 120 characters, which nothing but the person changes.

        Raises RequestRefused(TITLE_EMPTY, TITLE_TOO_LONG, CONVERSATION_NOT_FOUND).
        """
        name = checked_title(title)
        await self._change(lambda kept: kept.rename(conversation_id, owner, name), conversation_id, title=name)

    async def pin(self, conversation_id: str, owner: str, is_pinned: bool) -> None:
        """Have the owner's conversation stand before the others in the list, or not any more."""
        await self._change(
            lambda kept: kept.pin(conversation_id, owner, is_pinned), conversation_id, is_pinned=is_pinned
        )

    async def delete(self, conversation_id: str, owner: str) -> None:
        """Take the owner's conversation out of every list. `undelete` brings it back, `sweep` removes it for good."""
        now = datetime.now(UTC)
        await self._change(lambda kept: kept.throw_away(conversation_id, owner, now), conversation_id)

    async def undelete(self, conversation_id: str, owner: str) -> Conversation:
        """Return the owner's conversation, which is not deleted any more."""
        await self._change(lambda kept: kept.bring_back(conversation_id, owner), conversation_id)
        return await self.get(conversation_id, owner)

    async def trash(self, owner: str, limit: int = 50, offset: int = 0) -> Sequence[DeletedConversation]:
        """Return the owner's deleted conversations, the one that was deleted last first."""
        return await self._call(lambda: self._records.kept.trash(owner, limit, offset))

    async def delete_forever(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's deleted conversation for good; its files go with the next sweep.

        What it had cost is kept by owner and day. Raises RequestRefused(CONVERSATION_NOT_FOUND), also for one that is
        not deleted.
        """
        if not await self._call(self._delete_forever_now, conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

    async def empty_trash(self, owner: str) -> int:
        """Remove all of the owner's deleted conversations for good; return how many those were."""
        ids = await self._call(lambda: self._records.sweeping.deleted(owner))
        # One by one: others write meanwhile.
        return sum([await self._call(self._delete_forever_now, one, owner) for one in ids])

    def _delete_forever_now(self, conversation_id: str, owner: str) -> bool:
        is_gone = self._records.sweeping.delete_forever(conversation_id, owner)
        if is_gone:
            self._open.drop(conversation_id)
        return is_gone

    async def _change(self, change: Callable[[KeptRows], int | None], conversation_id: str, **update: object) -> None:
        """Change the conversation's row, and what is remembered of it; without an update that is forgotten."""

        def change_now() -> None:
            version = change(self._records.kept)
            if version is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            self._open.change(conversation_id, version, lambda one: one.model_copy(update=update) if update else None)

        await self._call(change_now)

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str) -> Conversation:
        """Return the conversation with the branch shown that holds this turn: up to its newest descendant.

        A turn of the branch that is shown changes nothing. Raises RequestRefused: TURN_NOT_FOUND, and CONVERSATION_BUSY
        while another process has a turn at work there.
        """

        def is_busy(connection: Connection) -> bool:
            return self._records.order.is_busy_elsewhere(connection, conversation_id)

        await self._call(lambda: self._records.kept.switch(conversation_id, owner, turn_id, is_busy))
        return await self.get(conversation_id, owner)

    # Copies

    async def whole(self, conversation_id: str, owner: str) -> WholeConversation:
        """Return the owner's conversation with every branch, its pictures with their `answer`, signatures whole.

        Pictures that were deleted are left out.
        """
        found = await self._rows_of(conversation_id, owner)
        kept = [row for row in found.pictures if row.deleted_at is None]
        return await asyncio.to_thread(self._whole_of, found._replace(pictures=kept))

    async def _rows_of(self, conversation_id: str, owner: str) -> WholeRows:
        found = await self._call(lambda: self._records.kept.whole(conversation_id, owner))
        if found is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return found

    def _whole_of(self, found: WholeRows) -> WholeConversation:
        from agent.storage.rows import whole_of

        return whole_of(*found, self._images.read_blob_now)

    async def add_whole(self, owner: str, whole: WholeConversation) -> Conversation:
        """Return a conversation like this one, recorded as a new one of the owner's; the bytes of its pictures are in
        the image store already.

        Turns whose ids are taken get fresh ones; one that ran or waited is stopped: it cannot go on here. What they
        had cost is what the conversation has cost; it counts on no day here, and towards no cap.
        """
        return await self._add_whole(owner, whole, copy_of=None)

    async def duplicate(self, conversation_id: str, owner: str, title: str = "") -> Conversation:
        """Return a copy of the owner's conversation, with every branch and its files; its title is the same unless one
        is given.

        The copy has cost nothing: neither calls nor spend come along.
        """
        from agent.storage.wholes import as_copy

        name = checked_title(title) if title else ""
        # Deleted pictures come along as such: no other may be given their handles in the copy either.
        whole = await asyncio.to_thread(self._whole_of, await self._rows_of(conversation_id, owner))
        copy = as_copy(whole, name, datetime.now(UTC))
        return await self._add_whole(owner, copy, copy_of=conversation_id)

    async def _add_whole(self, owner: str, whole: WholeConversation, copy_of: str | None) -> Conversation:
        from agent.storage.kept_rows import NewRows
        from agent.storage.wholes import fit_for_record

        ids = [turn.id for turn in whole.turns]
        whole = fit_for_record(whole, await self._call(lambda: self._records.kept.taken(ids)))
        key = secrets.token_hex(16)
        own = whole.model_dump(include={"title", "created_at", "updated_at", "is_named", "is_pinned", "head"})
        own |= {"id": key, "owner": owner, "file_version": max((one.version for one in whole.files), default=0)}
        turns = await self._turn_rows(key, whole, is_imported=copy_of is None)
        pictures = await self._picture_rows(key, owner, whole)
        new = NewRows(own, turns, pictures, whole.tags, whole.files)
        await self._call(lambda: self._records.kept.add_whole(new, copy_of))
        return await self.get(key, owner)

    async def _turn_rows(self, key: str, whole: WholeConversation, *, is_imported: bool) -> Sequence[dict[str, Any]]:
        from agent.storage.rows import turn_row

        rows = []
        for position, turn in enumerate(whole.turns):
            messages, places = await self._keep_signatures(turn.messages)
            own = {"conversation_id": key, "id": turn.id, "position": position, "parent": turn.parent}
            own |= {"runner": self._life.name, "request_id": turn.request_id}
            own |= {"is_imported": is_imported or turn.is_imported}
            rows.append(own | turn_row(turn, messages, places))
        return rows

    async def _picture_rows(self, key: str, owner: str, whole: WholeConversation) -> Sequence[dict[str, Any]]:
        from agent.storage.rows import picture_row

        rows, starred, calls = [], frozenset(whole.starred), set[tuple[str, str]]()
        for position, picture in enumerate(whole.pictures, 1):
            answer, places = await self._keep_signatures((picture.answer,) if picture.answer else ())
            row = picture_row(key, picture, answer[0] if answer else None, places)
            own = {"owner": owner, "is_starred": picture.handle in starred, "position": position}
            # An archive may say anything; here a call brings one picture.
            own["call"] = "" if (picture.turn_id, picture.call) in calls else picture.call
            calls.add((picture.turn_id, picture.call))
            rows.append(row | own)
        return rows

    # What goes for good

    async def remove(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's conversation at once, with all its rows, as though it had never been on record."""

        def remove_now() -> None:
            if not self._records.sweeping.remove(conversation_id, owner):
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            self._open.drop(conversation_id)

        await self._call(remove_now)

    async def sweep(self, before: datetime) -> set[str]:
        """Remove the conversations that were deleted before the moment, and return the digests of pictures and blobs
        that they named and that no row names any more.

        What they had cost is kept by owner and day.
        """
        named: set[str] = set()
        for conversation_id in await self._call(lambda: self._records.sweeping.thrown_away(before)):
            named |= await self._call(self._sweep_now, conversation_id, before)
        return named - await self.named_digests() if named else named

    def _sweep_now(self, conversation_id: str, before: datetime) -> set[str]:
        named = self._records.sweeping.sweep(conversation_id, before)
        self._open.drop(conversation_id)
        return named

    async def named_digests(self) -> set[str]:
        """Return the digest of every picture and blob that any row names, deleted conversations' included.

        Turns are written meanwhile: what is new has to be spared by its age.
        """
        from agent.storage.sweeping import digests_in, tables_with_texts

        named: set[str] = set()
        for table in tables_with_texts():
            after: int | None = 0
            while after is not None:
                after, texts = await self._call(self._records.sweeping.texts, table, after, _ROWS_AT_ONCE)
                named |= await asyncio.to_thread(digests_in, texts)
        return named
