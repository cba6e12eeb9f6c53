"""Conversations on record: open, list, search, rename, pin, switch, copy and delete them; and their pictures.

Statements are built once: SQLAlchemy then takes their SQL from its cache, which is most of a call's cost. Every change
of what a `Conversation` holds increments that conversation's version.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypedDict, Unpack

from sqlalchemy import Connection, and_, bindparam, exists, func, insert, or_, select, update

from agent.conversation import Conversation, ConversationInfo, DeletedConversation, Turn, TurnsPage, WholeConversation
from agent.errors import ErrorCode, RequestRefused
from agent.events import ActionPanel, SmartCanvas, TargetNote
from agent.library import KEPT_FOR
from agent.messages import PromptMessage
from agent.pictures import DriftRecord, EditRecord, Picture, Review
from agent.storage import gallery_rows, purging
from agent.storage.branches import as_copy, fit_for_record, newest_below, shown
from agent.storage.conversation_cache import Change, ConversationCache
from agent.storage.conversation_search import ConversationHit, hit_of, index_words, matching_documents, stale_words
from agent.storage.database import Database
from agent.storage.images import ImageStore
from agent.storage.journal import next_slots, reserved_slot
from agent.storage.process_lock import ProcessLock
from agent.storage.rows import (
    PICTURE_COLUMNS,
    TURN_COLUMNS,
    answer_of,
    picture_details,
    picture_of,
    picture_row,
    turn_of,
    turn_row,
    whole_of,
)
from agent.storage.tables import CONVERSATIONS, PICTURES, TURN_QUEUE, TURNS
from agent.storage.titles import checked_title
from agent.storage.turns import ADD_PICTURE, CHANGED, LAST_POSITION, ONE_TURN, TOUCH, TurnStore, touched
from agent.storage.word_index import match_query
from agent.storage.workspace import add_files, files_of

# Turns write between two batches: each batch takes the database's thread for some milliseconds.
_INDEXED_AT_ONCE = 32

_C, _T, _P, _Q = CONVERSATIONS.c, TURNS.c, PICTURES.c, TURN_QUEUE.c
_OWN = and_(_C.id == bindparam("key"), _C.owner == bindparam("whose"))
_KEPT = and_(_OWN, _C.deleted_at.is_(None))
_HAS_SOMETHING = or_(_C.title != "", exists().where(_T.conversation_id == _C.id))
_LISTED = (
    select(_C.id)
    .where(_C.owner == bindparam("whose"), _C.deleted_at.is_(None), _HAS_SOMETHING)
    .order_by(_C.updated_at.desc(), _C.id)
)
_PINNED = _LISTED.where(_C.is_pinned)
_NEWEST = _LISTED.where(_C.title != "").limit(1)
_OTHERS = _LISTED.where(~_C.is_pinned).limit(bindparam("page")).offset(bindparam("start"))
_PICTURES_OF_IT = _P.conversation_id == _C.id, _P.deleted_at.is_(None)
_IN_TRASH = _C.owner == bindparam("whose"), _C.deleted_at.is_not(None), _HAS_SOMETHING
_TRASH = (
    select(
        *(_C.id, _C.title, _C.deleted_at),
        select(func.count()).where(*_PICTURES_OF_IT).scalar_subquery().label("picture_count"),
    )
    .where(*_IN_TRASH)
    .order_by(_C.deleted_at.desc(), _C.id)
    .limit(bindparam("page"))
    .offset(bindparam("start"))
)
_INFOS = select(
    *(_C.id, _C.title, _C.created_at, _C.updated_at, _C.is_pinned),
    select(func.count()).where(*_PICTURES_OF_IT).scalar_subquery().label("picture_count"),
    select(func.coalesce(func.sum(_T.price_usd), 0.0))
    .where(_T.conversation_id == _C.id)
    .scalar_subquery()
    .label("price_usd"),
    select(_P.digest)
    .where(*_PICTURES_OF_IT)
    .order_by(_P.position.desc())
    .limit(1)
    .scalar_subquery()
    .label("thumbnail_digest"),
).where(_C.id.in_(bindparam("these", expanding=True)))
# `updated_at` stays, so its place in the list does too; a rename is indexed again.
_CHANGE = update(CONVERSATIONS).values(version=_C.version + 1).returning(_C.version)
_RENAME = _CHANGE.where(_KEPT).values(title=bindparam("name"), is_named=True, indexed_at=None)
_READ_ANEW = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(is_indexed=False)
_PIN = _CHANGE.where(_KEPT).values(is_pinned=bindparam("pinned"))
_NOW = bindparam("now", type_=_C.deleted_at.type)
_THROW_AWAY = _CHANGE.where(_OWN).values(deleted_at=func.coalesce(_C.deleted_at, _NOW))
_BRING_BACK = _CHANGE.where(_OWN).values(deleted_at=None)
_ALL = select(_C.id).where(_C.owner == bindparam("whose"))
# The request ids of the former owner mean nothing to the new one.
_GIVE = _CHANGE.where(_OWN).values(owner=bindparam("new_owner"), request_id=None)
_GIVE_PICTURES = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(owner=bindparam("new_owner"))
_REQUESTED = select(_C.id).where(
    _C.owner == bindparam("whose"),
    _C.deleted_at.is_(None),
    or_(
        exists().where(_T.conversation_id == _C.id, _T.request_id == bindparam("request")),
        exists().where(_Q.conversation_id == _C.id, _Q.request_id == bindparam("request")),
    ),
)
_NEWEST_REQUESTED = _REQUESTED.order_by(_C.updated_at.desc(), _C.id).limit(1)
_HEAD = select(_C.head).where(_KEPT)
_PARENTS = select(_T.id, _T.parent).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_SWITCH = _CHANGE.where(_KEPT).values(head=bindparam("new_head"))
_WHOLE = select(_C.title, _C.created_at, _C.updated_at, _C.is_named, _C.is_pinned, _C.head).where(_KEPT)
_TURNS_HERE = select(*TURN_COLUMNS).where(_T.conversation_id == bindparam("key"))
_TURNS = _TURNS_HERE.order_by(_T.position)
_PICTURES = select(PICTURES).where(_P.conversation_id == bindparam("key")).order_by(_P.position)
_TAKEN = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)))
_ADD_CONVERSATION = insert(CONVERSATIONS)
_BEGUN_BY = select(_C.id, _C.deleted_at).where(_C.owner == bindparam("whose"), _C.request_id == bindparam("request"))
_FREE_REQUEST = update(CONVERSATIONS).where(_C.id == bindparam("key")).values(request_id=None)
_THIS_PICTURE = and_(_P.conversation_id == bindparam("key"), _P.handle == bindparam("name"))
_PICTURES_HERE = select(*PICTURE_COLUMNS).where(_P.conversation_id == bindparam("key"))
_THIS_ONE = _PICTURES_HERE.where(_P.handle == bindparam("name"))
_REPLACE_PICTURE = update(PICTURES).where(_THIS_PICTURE, _P.digest == bindparam("content"))
_SET_DETAILS = update(PICTURES).where(_THIS_PICTURE).values(details=bindparam("new_details"), is_indexed=False)
_BROUGHT_BY = _PICTURES_HERE.where(_P.turn_id == bindparam("turn"), _P.call == bindparam("by"), _P.call != "")
_ANSWER = select(_P.answer).where(_THIS_PICTURE)
_ORIGINAL = PICTURES.alias("original")
_DELETE_ALIKE = (
    update(PICTURES)
    .where(_P.conversation_id == bindparam("copy"))
    .values(
        deleted_at=select(_ORIGINAL.c.deleted_at)
        .where(_ORIGINAL.c.conversation_id == bindparam("copied"), _ORIGINAL.c.handle == _P.handle)
        .scalar_subquery()
    )
)
_TURNS_OF_PAGE = _TURNS_HERE.where(_T.id.in_(bindparam("these", expanding=True)))
_PICTURES_OF_PAGE = _PICTURES_HERE.where(
    _P.deleted_at.is_(None),
    or_(_P.turn_id.in_(bindparam("these", expanding=True)), _P.handle.in_(bindparam("named", expanding=True))),
).order_by(_P.position)


class PictureFindings(TypedDict, total=False):
    """What can be found out about a picture after it was made, as fields of `Picture`."""

    review: Review
    edit: EditRecord
    drift: DriftRecord
    shortfall_kept: bool


class ConversationStore:
    """All conversations of all owners.

    A soft-deleted one is invisible until it is restored; what was still being added to it when it was deleted is
    recorded.
    """

    def __init__(
        self, db: Database, images: ImageStore, cache: ConversationCache, turns: TurnStore, process: ProcessLock
    ) -> None:
        self.db = db
        self._images = images
        self._cache = cache
        self._turns = turns
        self._runner = process.name

    async def create(self, owner: str, title: str = "", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation. A title given here counts as the user's own.

        The same request of the same owner creates one conversation, however often and in whichever process it comes. A
        conversation deleted since is not returned: its request may create a new one.
        """
        now = datetime.now(UTC)
        new = Conversation(id=secrets.token_hex(16), owner=owner, title=title, created_at=now, updated_at=now)
        row = new.model_dump(include={"id", "owner", "title", "created_at", "updated_at"})
        row |= {"is_named": bool(title), "request_id": request_id}

        def create(on: Connection) -> str:
            if request_id is not None:
                known = on.execute(_BEGUN_BY, {"whose": owner, "request": request_id}).one_or_none()
                if known is not None and known.deleted_at is None:
                    return str(known.id)
                if known is not None:
                    on.execute(_FREE_REQUEST, {"key": known.id})
            on.execute(_ADD_CONVERSATION, row)
            return new.id

        found = await self.db.write(
            create, lambda found: self._cache.put(new) if found == new.id else None, is_spare=True
        )
        return new if found == new.id else await self.get(found, owner)

    async def of_request(self, request_id: str, owner: str) -> str | None:
        """Return the owner's conversation with a recorded or waiting turn of this request, in any process.

        Returns the newest of several, never a deleted one.
        """
        values = {"whose": owner, "request": request_id}
        found: str | None = await self.db.read(lambda on: on.scalar(_NEWEST_REQUESTED, values))
        return found

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """Return the recorded conversation; its pictures come without `answer` (see `answer_of`).

        Raises RequestRefused(CONVERSATION_NOT_FOUND), also when it is deleted or belongs to another owner.
        """
        conversation, is_deleted = await self._load(conversation_id)
        if conversation is None or is_deleted or conversation.owner != owner:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def of_any_owner(self, conversation_id: str) -> Conversation:
        """Return the conversation of any owner, deleted or not, for internal use.

        Raises RequestRefused(CONVERSATION_NOT_FOUND).
        """
        conversation, _ = await self._load(conversation_id)
        if conversation is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def _load(self, conversation_id: str) -> tuple[Conversation | None, bool]:
        """Return the conversation of any owner, and whether it is soft-deleted."""
        kept = self._cache.get(conversation_id)
        if kept is not None:
            return kept, False
        return await self.db.read(lambda on: self._cache.load(on, conversation_id))

    async def turns_page(self, conversation_id: str, owner: str, before: str | None, limit: int) -> TurnsPage:
        """Return the last `limit` turns of the shown branch, or those before one of its turns, with their pictures.

        No other turn is read. Raises RequestRefused: CONVERSATION_NOT_FOUND, TURN_NOT_FOUND for a `before` that is not
        shown.
        """
        key = {"key": conversation_id}

        def read(on: Connection) -> TurnsPage:
            branch = shown(*_branches(on, conversation_id, owner))
            if before is not None and before not in branch.path:
                raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
            end = len(branch.path) if before is None else branch.path.index(before)
            ids = branch.path[max(0, end - limit) : end]
            if not ids:
                return TurnsPage()
            rows = on.execute(_TURNS_OF_PAGE, {**key, "these": list(ids)})
            by_id = {row.turn_id: turn_of(row) for row in rows}
            turns = tuple(by_id[one] for one in ids)
            named = sorted({handle for turn in turns for handle in _named(turn)})
            pictures = on.execute(_PICTURES_OF_PAGE, {**key, "these": list(ids), "named": named})
            return TurnsPage(
                turns=turns,
                pictures=tuple(map(picture_of, pictures)),
                forks={one: branch.forks[one] for one in ids if one in branch.forks},
                earlier=ids[0] if end > limit else None,
            )

        return await self.db.read(read)

    async def hand_over(self, owner: str, new_owner: str, without: Collection[str] = ()) -> int:
        """Give an owner's conversations and pictures to another owner, deleted ones too; return how many conversations.

        Conversations in `without` stay, and those in which another process runs or queues a turn.
        """

        def hand_over(on: Connection) -> int:
            theirs = [key for key in on.scalars(_ALL, {"whose": owner}) if key not in without]
            given = [key for key in theirs if not self._turns.is_busy_elsewhere(on, key)]
            for key in given:
                values = {"key": key, "whose": owner, "new_owner": new_owner}
                on.execute(_GIVE, values)
                on.execute(_GIVE_PICTURES, values)
            return len(given)

        return await self.db.write(hand_over, is_spare=True)

    async def turn(self, conversation_id: str, turn_id: str) -> Turn | None:
        """Return a turn of any branch of the conversation, shown or not; None when there is none."""
        kept = self._cache.get(conversation_id)
        for one in kept.turns if kept else ():
            if one.id == turn_id:
                return one
        this = {"key": conversation_id, "turn": turn_id}

        def read(on: Connection) -> Turn | None:
            row = on.execute(ONE_TURN, this).one_or_none()
            return turn_of(row) if row else None

        return await self.db.read(read)

    # Lists

    async def list(self, owner: str, limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, pinned ones first, then the newest.

        Conversations with neither a title nor a turn are left out.
        """

        def read(on: Connection) -> list[ConversationInfo]:
            # Two statements, each in the order of an index: sorted together, they would scan all conversations.
            pinned = list(on.scalars(_PINNED, {"whose": owner}))
            page = pinned[offset : offset + limit]
            values = {"whose": owner, "page": limit - len(page), "start": max(0, offset - len(pinned))}
            others = list(on.scalars(_OTHERS, values)) if len(page) < limit else []
            return _infos(on, [*page, *others])

        return await self.db.read(read)

    async def pinned_and_newest(self, owner: str, count: int) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others."""
        others = {"whose": owner, "page": count, "start": 0}
        return await self.db.read(
            lambda on: _infos(on, [*on.scalars(_PINNED, {"whose": owner}), *on.scalars(_OTHERS, others)])
        )

    async def newest(self, owner: str) -> str | None:
        """Return the id of the owner's conversation that changed last and has a title, pinned or not."""
        found: str | None = await self.db.read(lambda on: on.scalar(_NEWEST, {"whose": owner}))
        return found

    async def search(self, owner: str, query: str, limit: int = 30) -> Sequence[ConversationHit]:
        """Return the owner's conversations that contain every word of the query, the newest first.

        It searches titles, the user's texts, the agent's answers and the pictures' prompts, on every branch. The
        query's last word may be a prefix. What changed since the last search is indexed first: the first search in a
        home is the slowest.
        """
        match = match_query(query)
        if match is None:
            return []
        after = ""
        while words := await self.db.read(partial(stale_words, after=after, limit=_INDEXED_AT_ONCE)):
            await self.db.write(partial(index_words, words=words), is_spare=True)
            after = words[-1].id

        def find(on: Connection) -> Sequence[ConversationHit]:
            documents = matching_documents(on, owner, match, limit)
            infos = _infos(on, [one.id for one in documents])
            return [hit_of(info, document, query) for info, document in zip(infos, documents, strict=True)]

        return await self.db.read(find)

    # Changes

    async def rename(self, conversation_id: str, owner: str, title: str) -> None:
        """Give the owner's conversation a title of at most 120 characters, which only the user can change.

        Raises RequestRefused(TITLE_EMPTY, TITLE_TOO_LONG, CONVERSATION_NOT_FOUND).
        """
        name = checked_title(title)
        # Its pictures must be indexed again: they are found by the title too.
        await self._change((_RENAME, _READ_ANEW), conversation_id, owner, {"name": name}, title=name)

    async def pin(self, conversation_id: str, owner: str, is_pinned: bool) -> None:
        """Pin the owner's conversation above the others in the list, or unpin it."""
        await self._change((_PIN,), conversation_id, owner, {"pinned": is_pinned}, is_pinned=is_pinned)

    async def delete(self, conversation_id: str, owner: str) -> None:
        """Soft-delete the owner's conversation. `undelete` restores it."""
        await self._change((_THROW_AWAY,), conversation_id, owner, {"now": datetime.now(UTC)})

    async def undelete(self, conversation_id: str, owner: str) -> Conversation:
        """Restore the owner's conversation and return it."""
        await self._change((_BRING_BACK,), conversation_id, owner)
        return await self.get(conversation_id, owner)

    async def _change(
        self,
        statements: Sequence[Any],
        conversation_id: str,
        owner: str,
        values: Mapping[str, Any] = {},
        **update: object,
    ) -> None:
        """Change the conversation's row and its cache entry; without an update, the cache entry is dropped.

        The first of the statements returns the version.
        """
        first, *others = statements
        values = {"key": conversation_id, "whose": owner, **values}

        def change(on: Connection) -> Change | None:
            version: int | None = on.execute(first, values).scalar_one_or_none()
            if version is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            for other in others:
                on.execute(other, {"key": conversation_id})
            return Change(version, update) if update else None

        await self.db.write(change, lambda change: self._cache.apply(conversation_id, change), is_spare=True)

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str) -> Conversation:
        """Show the branch that contains this turn, down to its newest descendant; return the conversation.

        A turn of the shown branch changes nothing. Raises RequestRefused: TURN_NOT_FOUND, and CONVERSATION_BUSY while
        another process runs or queues a turn there.
        """

        def switch(on: Connection) -> None:
            head, parents = _branches(on, conversation_id, owner)
            if turn_id not in parents:
                raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
            if turn_id in shown(head, parents).path:
                return
            if self._turns.is_busy_elsewhere(on, conversation_id):
                raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
            values = {"key": conversation_id, "whose": owner, "new_head": newest_below(turn_id, parents)}
            on.execute(_SWITCH, values)

        await self.db.write(switch, is_spare=True)
        return await self.get(conversation_id, owner)

    # Pictures

    async def next_handles(self, conversation_id: str, count: int) -> Sequence[str]:
        """Return the handles that the next `count` new pictures would get now."""
        slots = await self.db.read(lambda on: next_slots(on, conversation_id, [None] * count))
        return [slot.handle for slot in slots]

    async def add_picture(self, conversation_id: str, picture: Picture, *, base: str | None = None) -> Picture:
        """Record a picture as soon as it is made; return it as recorded, without its `answer`.

        Its handle is the one reserved for its `call`, else its own if that is free, else the next one, in the family of
        `base` when it was made by editing that picture. If the same call of the same turn already has a picture, that
        one is returned unchanged; the same picture under the same handle replaces its record.
        """
        key, now = {"key": conversation_id}, datetime.now(UTC)

        def add(on: Connection) -> tuple[Picture, Change | None]:
            known = on.execute(_BROUGHT_BY, {**key, "turn": picture.turn_id, "by": picture.call}).one_or_none()
            if known is not None:
                return picture_of(known), None
            version, _ = touched(on, TOUCH, {**key, "now": now, "new_title": ""})
            named, is_newest = picture, False
            place = {**key, "name": picture.handle, "content": picture.image.digest}
            row = picture_row(conversation_id, picture)
            if not picture.handle or not on.execute(_REPLACE_PICTURE, {**place, **row}).rowcount:
                slot = reserved_slot(on, picture.turn_id, picture.call) if picture.call else None
                if slot is None:
                    (slot,) = next_slots(on, conversation_id, [base], picture.handle)
                named, is_newest = picture.named(slot.handle), slot.position > (on.scalar(LAST_POSITION, key) or 0)
                row = picture_row(conversation_id, named)
                on.execute(ADD_PICTURE, {**row, "within": conversation_id, "position": slot.position})
            new = named.model_copy(update={"answer": None})
            return new, Change(version, {"updated_at": now}, pictures=(new,), is_newest=is_newest)

        recorded, _ = await self.db.write(add, lambda added: self._cache.apply(conversation_id, added[1]))
        return recorded

    async def update_picture(self, conversation_id: str, handle: str, **findings: Unpack[PictureFindings]) -> None:
        """Record findings about a picture. Raises RequestRefused(PICTURE_NOT_FOUND)."""
        place = {"key": conversation_id, "name": handle}

        def change(on: Connection) -> Change:
            row = on.execute(_THIS_ONE, place).one_or_none()
            if row is None:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
            picture = picture_of(row).model_copy(update=dict(findings))
            on.execute(_SET_DETAILS, {**place, "new_details": picture_details(picture)})
            return Change(on.execute(CHANGED, {"key": conversation_id}).scalar_one(), pictures=(picture,))

        await self.db.write(change, lambda change: self._cache.apply(conversation_id, change))

    async def answer_of(self, conversation_id: str, handle: str) -> PromptMessage | None:
        """Return the image model's message that contains the picture; None for an upload.

        A part whose signature is lost comes unsigned: its picture can still be sent, but not as the model's own.

        Raises RequestRefused(PICTURE_NOT_FOUND).
        """
        place = {"key": conversation_id, "name": handle}
        found = await self.db.read(lambda on: on.execute(_ANSWER, place).one_or_none())
        if found is None:
            raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
        answer = answer_of(found.answer)
        if answer is None:
            return None
        return answer.model_copy(update={"parts": await self._images.with_known_signatures(answer.parts)})

    # The trash

    async def trash(self, owner: str, limit: int = 50, offset: int = 0) -> Sequence[DeletedConversation]:
        """Return the owner's deleted conversations, the last deleted first, without empty ones."""
        values = {"whose": owner, "page": limit, "start": offset}
        rows = await self.db.read(lambda on: on.execute(_TRASH, values).all())
        return [DeletedConversation(**row._asdict(), kept_until=row.deleted_at + KEPT_FOR) for row in rows]

    async def delete_forever(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's soft-deleted conversation for good; the next sweep removes its files.

        Its cost is kept by owner and day. Raises RequestRefused(CONVERSATION_NOT_FOUND), also for one that is not
        deleted.
        """
        if not await self._delete_forever(conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

    async def empty_trash(self, owner: str) -> int:
        """Remove all of the owner's soft-deleted conversations for good; return how many there were."""
        ids = await self.db.read(lambda on: purging.deleted_of(on, owner))
        # One by one: others write in between.
        return sum([await self._delete_forever(one, owner) for one in ids])

    async def _delete_forever(self, conversation_id: str, owner: str) -> bool:
        return await self.db.write(
            lambda on: purging.delete_forever(on, conversation_id, owner=owner),
            lambda _: self._cache.drop(conversation_id),
        )

    async def remove(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's conversation at once, with all its rows and without keeping its cost."""

        def remove(on: Connection) -> None:
            if not purging.remove(on, conversation_id, owner):
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

        await self.db.write(remove, lambda _: self._cache.drop(conversation_id))

    async def named_digests(self) -> set[str]:
        """Return the digest of every picture and blob that any row names, including deleted conversations.

        Turns write meanwhile: the caller must spare new files by their age.
        """
        named: set[str] = set()
        for table in purging.tables_with_texts():
            after: int | None = 0
            while after is not None:
                after, found = await self.db.read(partial(purging.named_digests, table=table, after=after))
                named |= found
        return named

    # Copies

    async def whole(self, conversation_id: str, owner: str) -> WholeConversation:
        """Return the owner's conversation with every branch, and its pictures with their `answer`.

        Deleted pictures are left out.
        """
        return await self._whole(conversation_id, owner, with_deleted=False)

    async def _whole(self, conversation_id: str, owner: str, *, with_deleted: bool) -> WholeConversation:
        key = {"key": conversation_id}

        def read(on: Connection) -> tuple[Any, Sequence[Any], Sequence[Any], Any, Any]:
            own = on.execute(_WHOLE, {**key, "whose": owner}).one_or_none()
            if own is None:
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
            turns, pictures = on.execute(_TURNS, key).all(), on.execute(_PICTURES, key).all()
            kept = [row for row in pictures if with_deleted or row.deleted_at is None]
            return own, turns, kept, gallery_rows.tags_of(on, [row.id for row in kept]), files_of(on, conversation_id)

        rows = await self.db.read(read)
        return await asyncio.to_thread(lambda: whole_of(*rows))

    async def add_whole(self, owner: str, whole: WholeConversation) -> Conversation:
        """Record a copy of this conversation as a new one of the owner and return it.

        The image store must already have the bytes of its pictures. Turns whose ids are taken get new ids; one that ran
        or waited is stopped, because it cannot resume here. The cost of its turns counts in the conversation, but on no
        day and towards no cap.
        """
        return await self._add_whole(owner, whole, copy_of=None)

    async def duplicate(self, conversation_id: str, owner: str, title: str = "") -> Conversation:
        """Return a copy of the owner's conversation, with every branch and its files.

        It has the same title unless one is given. The copy has cost nothing: neither calls nor spend are copied.
        """
        name = checked_title(title) if title else ""
        # Deleted pictures are copied as deleted: their handles must not be given to others in the copy either.
        whole = await self._whole(conversation_id, owner, with_deleted=True)
        return await self._add_whole(owner, as_copy(whole, name, datetime.now(UTC)), copy_of=conversation_id)

    async def _add_whole(self, owner: str, whole: WholeConversation, copy_of: str | None) -> Conversation:
        ids = {"these": [turn.id for turn in whole.turns]}
        whole = fit_for_record(whole, await self.db.read(lambda on: set(on.scalars(_TAKEN, ids))))
        key = secrets.token_hex(16)
        own = whole.model_dump(include={"title", "created_at", "updated_at", "is_named", "is_pinned", "head"})
        own |= {"id": key, "owner": owner, "file_version": max((one.version for one in whole.files), default=0)}
        turns = [
            {
                **{"conversation_id": key, "id": turn.id, "position": position, "parent": turn.parent},
                **{"runner": self._runner, "is_imported": copy_of is None or turn.is_imported},
                **turn_row(turn),
            }
            for position, turn in enumerate(whole.turns)
        ]
        pictures = _picture_rows(key, owner, whole)

        def add(on: Connection) -> None:
            on.execute(_ADD_CONVERSATION, own)
            if turns:
                on.execute(insert(TURNS), turns)
            if pictures:
                on.execute(insert(PICTURES), pictures)
            gallery_rows.add_tags(on, owner, key, whole.tags)
            add_files(on, key, whole.files)
            if copy_of is not None:
                on.execute(_DELETE_ALIKE, {"copy": key, "copied": copy_of})

        await self.db.write(add, is_spare=True)
        return await self.get(key, owner)


def _picture_rows(key: str, owner: str, whole: WholeConversation) -> Sequence[dict[str, Any]]:
    rows, starred, calls = [], frozenset(whole.starred), set[tuple[str, str]]()
    for position, picture in enumerate(whole.pictures, 1):
        own = {"owner": owner, "is_starred": picture.handle in starred, "position": position}
        # An archive may say anything; here a call produces one picture.
        own["call"] = "" if (picture.turn_id, picture.call) in calls else picture.call
        calls.add((picture.turn_id, picture.call))
        rows.append(picture_row(key, picture) | own)
    return rows


def _branches(connection: Connection, conversation_id: str, owner: str) -> tuple[str | None, dict[str, str | None]]:
    """Return the head of the owner's conversation, and the parent of each of its turns."""
    own = connection.execute(_HEAD, {"key": conversation_id, "whose": owner}).one_or_none()
    if own is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return own.head, {row.id: row.parent for row in connection.execute(_PARENTS, {"key": conversation_id})}


def _infos(connection: Connection, ids: list[str]) -> list[ConversationInfo]:
    """Return the list entries of these conversations, in their order."""
    found = {row.id: ConversationInfo(**row._asdict()) for row in connection.execute(_INFOS, {"these": ids})}
    return [found[one] for one in ids]


def _named(turn: Turn) -> Iterator[str]:
    """Yield the handles of the pictures that a turn shows or refers to, also of other turns' pictures."""
    yield from (turn.editing or "", *turn.references, *turn.roles, *(one.handle for one in turn.more_masks))
    for component in turn.components:
        match component:
            case SmartCanvas():
                yield from (*component.handles, *component.earlier)
            case ActionPanel():
                yield component.handle
            case TargetNote():
                yield from (component.change.handle, component.change.before)
