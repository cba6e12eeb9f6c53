"""Conversations on record: opened, listed, searched, named, pinned, switched, copied, thrown away; and their pictures.

Statements are made once: SQLAlchemy then takes their SQL from its cache, which is most of what a call costs. Whatever
changes what a `Conversation` holds gives that conversation its next version.
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
from agent.storage.conversation_search import (
    ConversationHit,
    hit_of,
    index_documents,
    matching_documents,
    search_words,
    stale_documents,
)
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
from agent.storage.turns import ADD_PICTURE, CHANGED, LAST_POSITION, TOUCH, TurnStore, touched
from agent.storage.word_index import match_query
from agent.storage.workspace import add_files, files_of

# Turns are written between two batches: each takes the database's thread for some milliseconds.
_INDEXED_AT_ONCE = 32
_ROWS_AT_ONCE = 500

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
# Its place in the list stays; its words are to be found anew.
_CHANGE = update(CONVERSATIONS).values(version=_C.version + 1).returning(_C.version)
_RENAME = _CHANGE.where(_KEPT).values(title=bindparam("name"), is_named=True, indexed_at=None)
_READ_ANEW = update(PICTURES).where(_P.conversation_id == bindparam("key")).values(is_indexed=False)
_PIN = _CHANGE.where(_KEPT).values(is_pinned=bindparam("pinned"))
_NOW = bindparam("now", type_=_C.deleted_at.type)
_THROW_AWAY = _CHANGE.where(_OWN).values(deleted_at=func.coalesce(_C.deleted_at, _NOW))
_BRING_BACK = _CHANGE.where(_OWN).values(deleted_at=None)
_ALL = select(_C.id).where(_C.owner == bindparam("whose"))
# The requests of the other owner are not this one's.
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
_TURNS = select(TURNS, _T.id.label("turn_id")).where(_T.conversation_id == bindparam("key")).order_by(_T.position)
_PICTURES = select(PICTURES).where(_P.conversation_id == bindparam("key")).order_by(_P.position)
_TAKEN = select(_T.id).where(_T.id.in_(bindparam("these", expanding=True)))
_ADD_CONVERSATION = insert(CONVERSATIONS)
_BEGUN_BY = select(_C.id, _C.deleted_at).where(_C.owner == bindparam("whose"), _C.request_id == bindparam("request"))
_FREE_REQUEST = update(CONVERSATIONS).where(_C.id == bindparam("key")).values(request_id=None)
_ONE_TURN = select(*TURN_COLUMNS).where(_T.conversation_id == bindparam("key"), _T.id == bindparam("turn"))
_THIS_PICTURE = and_(_P.conversation_id == bindparam("key"), _P.handle == bindparam("name"))
_THIS_ONE = select(*PICTURE_COLUMNS).where(_THIS_PICTURE)
_REPLACE_PICTURE = update(PICTURES).where(_THIS_PICTURE, _P.digest == bindparam("content"))
_SET_DETAILS = update(PICTURES).where(_THIS_PICTURE).values(details=bindparam("new_details"), is_indexed=False)
_BROUGHT_BY = select(*PICTURE_COLUMNS).where(
    _P.conversation_id == bindparam("key"), _P.turn_id == bindparam("turn"), _P.call == bindparam("by"), _P.call != ""
)
_ANSWER = select(_P.answer).where(_THIS_PICTURE)
_ADD_TURNS = insert(TURNS)
_ADD_PICTURES = insert(PICTURES)
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
_TURNS_OF_PAGE = select(*TURN_COLUMNS).where(
    _T.conversation_id == bindparam("key"), _T.id.in_(bindparam("these", expanding=True))
)
_PICTURES_OF_PAGE = (
    select(*PICTURE_COLUMNS)
    .where(
        and_(_P.conversation_id == bindparam("key"), _P.deleted_at.is_(None)),
        or_(_P.turn_id.in_(bindparam("these", expanding=True)), _P.handle.in_(bindparam("named", expanding=True))),
    )
    .order_by(_P.position)
)


class PictureFindings(TypedDict, total=False):
    """What can be found out about a picture after it was made, by the fields of `Picture`."""

    review: Review
    edit: EditRecord
    drift: DriftRecord
    shortfall_kept: bool


class ConversationStore:
    """Every conversation of every owner. One that is deleted is not there until it is brought back; what was still
    on its way into it when it was deleted is recorded all the same."""

    def __init__(
        self, db: Database, images: ImageStore, cache: ConversationCache, turns: TurnStore, process: ProcessLock
    ) -> None:
        self.db = db
        self._images = images
        self._cache = cache
        self._turns = turns
        self._runner = process.name

    async def create(self, owner: str, title: str = "", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation. A title given here is the person's own.

        The same request of the same owner begins one conversation, however often and wherever it comes. One that was
        deleted since is not returned: its request is free for a new one.
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
        """Return the owner's conversation in which a turn of this request is on record or waits, in any process; the
        newest of several, no deleted one."""
        values = {"whose": owner, "request": request_id}
        found: str | None = await self.db.read(lambda on: on.scalar(_NEWEST_REQUESTED, values))
        return found

    async def get(self, conversation_id: str, owner: str) -> Conversation:
        """Return the conversation as it is on record; its pictures come without `answer` (see `answer_of`).

        Raises RequestRefused(CONVERSATION_NOT_FOUND), also when it is deleted or somebody else's.
        """
        conversation = self._cache.get(conversation_id)
        if conversation is None:
            conversation, is_deleted = await self.db.read(lambda on: self._cache.load(on, conversation_id))
            conversation = None if is_deleted else conversation
        if conversation is None or conversation.owner != owner:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def of_any_owner(self, conversation_id: str) -> Conversation:
        """Return the conversation whoever it belongs to, deleted or not, for the studio's own work.

        Raises RequestRefused(CONVERSATION_NOT_FOUND).
        """
        conversation = self._cache.get(conversation_id)
        if conversation is None:
            conversation, _ = await self.db.read(lambda on: self._cache.load(on, conversation_id))
        if conversation is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return conversation

    async def turns_page(self, conversation_id: str, owner: str, before: str | None, limit: int) -> TurnsPage:
        """Return the last `limit` turns of the branch that is shown, or the last ones before a turn of it, with their
        pictures; no other turn is read.

        Raises RequestRefused: CONVERSATION_NOT_FOUND, TURN_NOT_FOUND for a `before` that is not shown.
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
        """Give the conversations and pictures of an owner to another one, deleted ones too; return how many
        conversations these were. Those `without` stay, and those in which another process has a turn at work."""

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
        """Return a turn of any branch of the conversation, shown or not."""
        kept = self._cache.get(conversation_id)
        for one in kept.turns if kept else ():
            if one.id == turn_id:
                return one
        this = {"key": conversation_id, "turn": turn_id}

        def read(on: Connection) -> Turn | None:
            row = on.execute(_ONE_TURN, this).one_or_none()
            return turn_of(row) if row else None

        return await self.db.read(read)

    # Lists

    async def list(self, owner: str, limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; those with neither a title nor a turn
        are left out."""

        def read(on: Connection) -> list[ConversationInfo]:
            # Two statements, each in the order of an index: sorted together, all would be looked at.
            pinned = list(on.scalars(_PINNED, {"whose": owner}))
            page = pinned[offset : offset + limit]
            values = {"whose": owner, "page": limit - len(page), "start": max(0, offset - len(pinned))}
            others = list(on.scalars(_OTHERS, values)) if len(page) < limit else []
            return _infos(on, [*page, *others])

        return await self.db.read(read)

    async def pinned_and_newest(self, owner: str, count: int) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others, as `list` does."""
        others = {"whose": owner, "page": count, "start": 0}
        return await self.db.read(
            lambda on: _infos(on, [*on.scalars(_PINNED, {"whose": owner}), *on.scalars(_OTHERS, others)])
        )

    async def newest(self, owner: str) -> str | None:
        """Return the id of the owner's conversation that changed last, of those that have a title, pinned or not."""
        found: str | None = await self.db.read(lambda on: on.scalar(_NEWEST, {"whose": owner}))
        return found

    async def search(self, owner: str, query: str, limit: int = 30) -> Sequence[ConversationHit]:
        """Return the owner's conversations that hold every word of the query, the newest first.

        Searched are titles, what the person said, what the agent answered and the pictures' prompts, in every branch.
        The last word of the query is found as far as it is written. What changed since the last search is put into
        the full text first: the first search in a home takes the longest.
        """
        match = match_query(query)
        if match is None:
            return []
        after: str | None = ""
        while after is not None:
            after = await self._index_some(after)
        wordings = await self.db.read(lambda on: matching_documents(on, owner, match, limit))
        infos = await self.db.read(lambda on: _infos(on, [one.id for one in wordings]))
        by_id = {one.id: one for one in wordings}
        return await asyncio.to_thread(lambda: [hit_of(info, by_id[info.id], query) for info in infos])

    async def _index_some(self, after: str) -> str | None:
        """Put the words of a few conversations into the full text; return after which one to go on."""
        stale = await self.db.read(lambda on: stale_documents(on, after, _INDEXED_AT_ONCE))
        if stale:
            words = await asyncio.to_thread(lambda: [(one, search_words(one.document)) for one in stale])
            await self.db.write(lambda on: index_documents(on, words), is_spare=True)
        return stale[-1].document.id if len(stale) == _INDEXED_AT_ONCE else None

    # Changes

    async def rename(self, conversation_id: str, owner: str, title: str) -> None:
        """Give the owner's conversation a title of at most 120 characters, which nothing but the person changes.

        Raises RequestRefused(TITLE_EMPTY, TITLE_TOO_LONG, CONVERSATION_NOT_FOUND).
        """
        name = checked_title(title)
        # Its pictures are found by the title as well.
        await self._change((_RENAME, _READ_ANEW), conversation_id, owner, {"name": name}, title=name)

    async def pin(self, conversation_id: str, owner: str, is_pinned: bool) -> None:
        """Have the owner's conversation stand before the others in the list, or not any more."""
        await self._change((_PIN,), conversation_id, owner, {"pinned": is_pinned}, is_pinned=is_pinned)

    async def delete(self, conversation_id: str, owner: str) -> None:
        """Take the owner's conversation out of every list. `undelete` brings it back."""
        await self._change((_THROW_AWAY,), conversation_id, owner, {"now": datetime.now(UTC)})

    async def undelete(self, conversation_id: str, owner: str) -> Conversation:
        """Return the owner's conversation, which is not deleted any more."""
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
        """Change the conversation's row, and what is remembered of it; without an update that is forgotten.

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
        """Return the conversation with the branch shown that holds this turn: up to its newest descendant.

        A turn of the branch that is shown changes nothing. Raises RequestRefused: TURN_NOT_FOUND, and CONVERSATION_BUSY
        while another process has a turn at work there.
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
        """Return the handles that so many new pictures would be given now."""
        slots = await self.db.read(lambda on: next_slots(on, conversation_id, [None] * count))
        return [slot.handle for slot in slots]

    async def add_picture(self, conversation_id: str, picture: Picture, *, base: str | None = None) -> Picture:
        """Record a picture as soon as it is made, and return it as it is on record, without its `answer`.

        Its handle is the one that was reserved for its `call`, else its own where that is free, else the next one, of
        the family of `base` when it was made by editing that picture. The picture that the same call of the same turn
        has brought before is returned as it is; the same one again under its handle replaces its record.
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
        """Record what has been found out about a picture since it was made. Raises
        RequestRefused(PICTURE_NOT_FOUND)."""
        place = {"key": conversation_id, "name": handle}

        def change(on: Connection) -> Change:
            row = on.execute(_THIS_ONE, place).one_or_none()
            if row is None:
                raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=handle)
            picture = picture_of(row).model_copy(update=dict(findings))
            on.execute(_SET_DETAILS, {**place, "new_details": picture_details(picture)})
            version = on.execute(CHANGED, {"key": conversation_id}).scalar_one()
            return Change(version, pictures=(picture,))

        await self.db.write(change, lambda change: self._cache.apply(conversation_id, change))

    async def answer_of(self, conversation_id: str, handle: str) -> PromptMessage | None:
        """Return the image model's message that holds the picture; None for an upload.

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
        """Return the owner's deleted conversations, the one that was deleted last first; no empty ones."""
        values = {"whose": owner, "page": limit, "start": offset}
        rows = await self.db.read(lambda on: on.execute(_TRASH, values).all())
        return [DeletedConversation(**row._asdict(), kept_until=row.deleted_at + KEPT_FOR) for row in rows]

    async def delete_forever(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's deleted conversation for good; its files go with the next sweep.

        What it had cost is kept by owner and day. Raises RequestRefused(CONVERSATION_NOT_FOUND), also for one that is
        not deleted.
        """
        if not await self._delete_forever(conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

    async def empty_trash(self, owner: str) -> int:
        """Remove all of the owner's deleted conversations for good; return how many those were."""
        ids = await self.db.read(lambda on: purging.deleted_of(on, owner))
        # One by one: others write meanwhile.
        return sum([await self._delete_forever(one, owner) for one in ids])

    async def _delete_forever(self, conversation_id: str, owner: str) -> bool:
        return await self.db.write(
            lambda on: purging.delete_forever(on, conversation_id, owner=owner),
            lambda _: self._cache.drop(conversation_id),
        )

    async def remove(self, conversation_id: str, owner: str) -> None:
        """Remove the owner's conversation at once, with all its rows, as though it had never been on record."""

        def remove(on: Connection) -> None:
            if not purging.remove(on, conversation_id, owner):
                raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)

        await self.db.write(remove, lambda _: self._cache.drop(conversation_id))

    async def named_digests(self) -> set[str]:
        """Return the digest of every picture and blob that any row names, deleted conversations' included.

        Turns are written meanwhile: what is new has to be spared by its age.
        """
        named: set[str] = set()
        for table in purging.tables_with_texts():
            after: int | None = 0
            while after is not None:
                some = partial(purging.texts_of, table=table, after=after, limit=_ROWS_AT_ONCE)
                after, texts = await self.db.read(some)
                named |= await asyncio.to_thread(purging.digests_in, texts)
        return named

    # Copies

    async def whole(self, conversation_id: str, owner: str) -> WholeConversation:
        """Return the owner's conversation with every branch, its pictures with their `answer`.

        Pictures that were deleted are left out.
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
        name = checked_title(title) if title else ""
        # Deleted pictures come along as such: no other may be given their handles in the copy either.
        whole = await self._whole(conversation_id, owner, with_deleted=True)
        return await self._add_whole(owner, as_copy(whole, name, datetime.now(UTC)), copy_of=conversation_id)

    async def _add_whole(self, owner: str, whole: WholeConversation, copy_of: str | None) -> Conversation:
        ids = {"these": [turn.id for turn in whole.turns]}
        whole = fit_for_record(whole, await self.db.read(lambda on: set(on.scalars(_TAKEN, ids))))
        key = secrets.token_hex(16)
        own = whole.model_dump(include={"title", "created_at", "updated_at", "is_named", "is_pinned", "head"})
        own |= {"id": key, "owner": owner, "file_version": max((one.version for one in whole.files), default=0)}
        turns = self._turn_rows(key, whole, is_imported=copy_of is None)
        pictures = _picture_rows(key, owner, whole)

        def add(on: Connection) -> None:
            on.execute(_ADD_CONVERSATION, own)
            if turns:
                on.execute(_ADD_TURNS, turns)
            if pictures:
                on.execute(_ADD_PICTURES, pictures)
            gallery_rows.add_tags(on, owner, key, whole.tags)
            add_files(on, key, whole.files)
            if copy_of is not None:
                on.execute(_DELETE_ALIKE, {"copy": key, "copied": copy_of})

        await self.db.write(add, is_spare=True)
        return await self.get(key, owner)

    def _turn_rows(self, key: str, whole: WholeConversation, *, is_imported: bool) -> Sequence[dict[str, Any]]:
        rows = []
        for position, turn in enumerate(whole.turns):
            own = {"conversation_id": key, "id": turn.id, "position": position, "parent": turn.parent}
            own |= {"runner": self._runner, "request_id": turn.request_id}
            own |= {"is_imported": is_imported or turn.is_imported}
            rows.append(own | turn_row(turn))
        return rows


def _picture_rows(key: str, owner: str, whole: WholeConversation) -> Sequence[dict[str, Any]]:
    rows, starred, calls = [], frozenset(whole.starred), set[tuple[str, str]]()
    for position, picture in enumerate(whole.pictures, 1):
        own = {"owner": owner, "is_starred": picture.handle in starred, "position": position}
        # An archive may say anything; here a call brings one picture.
        own["call"] = "" if (picture.turn_id, picture.call) in calls else picture.call
        calls.add((picture.turn_id, picture.call))
        rows.append(picture_row(key, picture) | own)
    return rows


def _branches(connection: Connection, conversation_id: str, owner: str) -> tuple[str | None, dict[str, str | None]]:
    """Return the head of the owner's conversation, and all its turns with the one before each."""
    own = connection.execute(_HEAD, {"key": conversation_id, "whose": owner}).one_or_none()
    if own is None:
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
    return own.head, {row.id: row.parent for row in connection.execute(_PARENTS, {"key": conversation_id})}


def _infos(connection: Connection, ids: list[str]) -> list[ConversationInfo]:
    """Return what a list shows of these conversations, in their order."""
    if not ids:
        return []
    rows = connection.execute(_INFOS, {"these": ids})
    found = {row.id: ConversationInfo(**row._asdict()) for row in rows}
    return [found[one] for one in ids if one in found]


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
