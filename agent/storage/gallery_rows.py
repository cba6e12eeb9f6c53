"""The gallery's SQL statements: pages, changes, and filter values. Each function takes a connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Row,
    Select,
    String,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    not_,
    select,
    text,
    tuple_,
    update,
)

from agent.library import GalleryFacets, GalleryItem, GalleryQuery, moment_of
from agent.pictures import Picture
from agent.storage.rows import PICTURE_COLUMNS, picture_of
from agent.storage.tables import CONVERSATIONS, PICTURE_TAGS, PICTURE_VECTORS, PICTURES, TURNS

_C, _P, _T = CONVERSATIONS.c, PICTURES.c, PICTURE_TAGS.c
# SQLite takes some 32,000 values in one statement.
_MOST_VALUES = 5000
# Prevents use of the owner's index: SQLite, without statistics here, would read all of the owner's pictures for a few
# ids.
_owner_unindexed = literal_column("+pictures.owner", String)
_IS_THERE = and_(_P.deleted_at.is_(None), _C.deleted_at.is_(None))
# The user's text that an upload was sent with; a generated picture has it in its receipt.
_SAID = (
    select(TURNS.c.text)
    .where(TURNS.c.conversation_id == _P.conversation_id, TURNS.c.id == _P.turn_id, _P.receipt.is_(None))
    .scalar_subquery()
)
ITEM = (
    *(_P.id, _P.conversation_id, _C.title, _P.owner, _P.is_starred, _P.model, _P.shape, _P.source),
    *(_P.digest, _P.handle, _P.turn_id, _P.created_at, _P.receipt, _P.details, _SAID.label("said")),
)
WITH_CONVERSATION = PICTURES.join(CONVERSATIONS, _C.id == _P.conversation_id)
# A turn's components name the attempts that a review rejected. Few pictures have a review.
_IS_REJECTED = literal_column(
    "(json_extract(pictures.details, '$.review') IS NOT NULL AND EXISTS (SELECT 1 FROM turns, "
    "json_each(turns.components) AS shown, json_each(shown.value, '$.earlier') AS attempt "
    "WHERE turns.conversation_id = pictures.conversation_id AND turns.id = pictures.turn_id "
    "AND attempt.value = pictures.handle))",
    Boolean(),
)
_KINDS = (_P.model, _P.shape, _P.source, _P.is_starred)
_MONTH = func.substr(_P.created_at, 1, 7, type_=String)
# Without a join, so that one index covers it; pictures of deleted conversations are subtracted later.
_COUNTED = PICTURES, and_(_P.owner == bindparam("whose"), _P.deleted_at.is_(None))
_NOT_COUNTED = (
    WITH_CONVERSATION,
    and_(_C.owner == bindparam("whose"), _C.deleted_at.is_not(None), _P.deleted_at.is_(None)),
)
# Far fewer pictures have a tag than an owner has: start from the tags.
_TAGGED = (
    select(_T.tag, func.count())
    .select_from(PICTURE_TAGS.join(WITH_CONVERSATION, _P.id == _T.picture_id))
    .where(_owner_unindexed == bindparam("whose"), _IS_THERE)
    .group_by(_T.tag)
)

ItemRow = Row[*tuple[Any, ...]]


def newest(connection: Connection, owner: str, query: GalleryQuery) -> Sequence[ItemRow]:
    """Return the rows of a page, the newest first, plus one more row when there is another page."""
    order = (_C.updated_at, _C.id, _P.id) if query.is_by_conversation else (_P.created_at, _P.id)
    statement = _owned(select(*ITEM), owner, query).where(*_conditions(query))
    if (place := moment_of(query.after)) is not None:
        # The position by conversation is read again: a conversation that goes on moves to the front.
        found = select(*order).select_from(WITH_CONVERSATION).where(_P.id == place[1], _owner_unindexed == owner)
        last = connection.execute(found).first() if query.is_by_conversation else place
        if last is not None:
            statement = statement.where(tuple_(*order) < tuple(last))
    return connection.execute(statement.order_by(*(one.desc() for one in order)).limit(query.limit + 1)).all()


def _owned(statement: Select[*tuple[Any, ...]], owner: str, query: GalleryQuery) -> Select[*tuple[Any, ...]]:
    # A conversation has few pictures: its own index is better, however the owner's is ordered.
    is_few = query.conversation_id is not None or query.is_by_conversation
    is_owned = and_(_owner_unindexed == owner, _C.owner == owner) if is_few else _P.owner == owner
    return statement.select_from(WITH_CONVERSATION).where(is_owned, _IS_THERE)


def _conditions(query: GalleryQuery) -> Iterator[ColumnElement[bool]]:
    plain = (
        (_P.conversation_id, query.conversation_id),
        (_P.model, query.model),
        (_P.shape, query.shape),
        (_P.source, query.source),
    )
    yield from (column == value for column, value in plain if value is not None)
    if query.is_starred is not None:
        yield _P.is_starred == query.is_starred
    if query.day_from is not None:
        yield _P.created_at >= datetime.combine(query.day_from, time(), UTC)
    if query.day_to is not None:
        # The last possible date has no next day.
        yield _P.created_at <= datetime.combine(query.day_to, time.max, UTC)
    if query.tag is not None:
        yield _P.id.in_(select(_T.picture_id).where(_T.tag == query.tag))
    if query.hides_rejected:
        yield not_(_IS_REJECTED)


def allowed(connection: Connection, owner: str, query: GalleryQuery, ids: Sequence[int]) -> set[int]:
    """Return those of the ids that are the owner's, not deleted, and pass the filters."""
    found: set[int] = set()
    for some in _in_portions(ids):
        statement = select(_P.id).select_from(WITH_CONVERSATION).where(_P.id.in_(some), _owner_unindexed == owner)
        found.update(connection.scalars(statement.where(_IS_THERE, *_conditions(query))))
    return found


def rows_of(connection: Connection, owner: str, ids: Sequence[int]) -> list[ItemRow]:
    """Return the rows of the owner's undeleted pictures among the ids, in the order of the ids."""
    rows: dict[int, ItemRow] = {}
    for some in _in_portions(ids):
        statement = select(*ITEM).select_from(WITH_CONVERSATION).where(_P.id.in_(some), _owner_unindexed == owner)
        rows.update({row.id: row for row in connection.execute(statement.where(_IS_THERE))})
    return [rows[one] for one in dict.fromkeys(ids) if one in rows]


def items_of(connection: Connection, rows: Sequence[ItemRow]) -> tuple[GalleryItem, ...]:
    """Return the pictures of the rows, with their tags."""
    ids = [row.id for row in rows]
    tags, rejected = tags_of(connection, ids), rejected_of(connection, ids)
    return tuple(
        GalleryItem(
            id=row.id,
            conversation_id=row.conversation_id,
            conversation_title=row.title,
            picture=picture_of(row),
            is_starred=row.is_starred,
            is_rejected=row.id in rejected,
            tags=tags.get(row.id, ()),
            model=row.model,
            shape=row.shape,
            source=row.source,
        )
        for row in rows
    )


def tags_of(connection: Connection, ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """Return the tags of each picture that has any, in alphabetical order."""
    found: dict[int, tuple[str, ...]] = {}
    for some in _in_portions(ids):
        statement = select(_T.picture_id, _T.tag).where(_T.picture_id.in_(some)).order_by(_T.picture_id, _T.tag)
        for picture_id, tag in connection.execute(statement):
            found[picture_id] = (*found.get(picture_id, ()), tag)
    return found


def rejected_of(connection: Connection, ids: Sequence[int]) -> set[int]:
    """Return those of the pictures that are attempts rejected by a review."""
    found: set[int] = set()
    for some in _in_portions(ids):
        found.update(connection.scalars(select(_P.id).where(_P.id.in_(some), _IS_REJECTED)))
    return found


def ids_without_vector(connection: Connection, owner: str, kind: str) -> list[int]:
    """Return the ids of all the owner's pictures that have no vector of the kind, the newest first."""
    has_one = exists().where(PICTURE_VECTORS.c.picture_id == _P.id, PICTURE_VECTORS.c.kind == kind)
    statement = _owned(select(_P.id), owner, GalleryQuery()).where(~has_one)
    return list(connection.scalars(statement.order_by(_P.created_at.desc(), _P.id.desc())))


def deleted_of(connection: Connection, owner: str, conversation_id: str) -> list[Picture]:
    """Return the pictures of the owner's conversation that were deleted, the oldest first."""
    statement = select(*PICTURE_COLUMNS).select_from(WITH_CONVERSATION).where(_P.conversation_id == conversation_id)
    gone = statement.where(_owner_unindexed == owner, _P.deleted_at.is_not(None), _C.deleted_at.is_(None))
    return [picture_of(row) for row in connection.execute(gone.order_by(_P.position))]


# Changes


def add_tags(connection: Connection, owner: str, conversation_id: str, tags: Mapping[str, Sequence[str]]) -> None:
    """Add tags by handle to pictures of a new conversation, in the spelling that the owner already uses."""
    handles = select(_P.handle, _P.id).where(_P.conversation_id == conversation_id)
    ids = {row.handle: row.id for row in connection.execute(handles)} if tags else {}
    spelling = spellings(connection, owner, [name for names in tags.values() for name in names])
    given = {(ids[handle], spelling[name]) for handle, names in tags.items() for name in names if handle in ids}
    if given:
        connection.execute(insert(PICTURE_TAGS), [{"picture_id": one, "tag": name} for one, name in sorted(given)])


def star(connection: Connection, owner: str, ids: Sequence[int], is_starred: bool) -> tuple[int, ...]:
    """Star the pictures, or remove the star. Return those that are the owner's."""
    own = _own(connection, owner, ids)
    _update(connection, own, is_starred=is_starred)
    return own


def tag(connection: Connection, owner: str, ids: Sequence[int], name: str) -> tuple[int, ...]:
    """Add a tag to the pictures, in the spelling that the owner already uses. Return those that are the owner's."""
    own = _own(connection, owner, ids)
    spelling = spellings(connection, owner, [name])[name]
    if own:
        rows = [{"picture_id": one, "tag": spelling} for one in own]
        connection.execute(insert(PICTURE_TAGS).prefix_with("OR IGNORE"), rows)
    _update(connection, own, is_indexed=False)
    return own


def untag(connection: Connection, owner: str, ids: Sequence[int], name: str) -> tuple[int, ...]:
    """Remove a tag from the pictures. Return those that are the owner's."""
    own = _own(connection, owner, ids)
    spelling = spellings(connection, owner, [name])[name]
    for some in _in_portions(own):
        connection.execute(delete(PICTURE_TAGS).where(_T.picture_id.in_(some), _T.tag == spelling))
    _update(connection, own, is_indexed=False)
    return own


def delete_pictures(connection: Connection, owner: str, ids: Sequence[int], now: datetime) -> tuple[int, ...]:
    """Soft-delete the pictures. Return the deleted ones that are the owner's."""
    return _set_deleted(connection, owner, ids, now, _P.deleted_at.is_(None))


def bring_back(connection: Connection, owner: str, ids: Sequence[int], since: datetime) -> tuple[int, ...]:
    """Restore pictures that were not deleted before `since`. Return them."""
    return _set_deleted(connection, owner, ids, None, _P.deleted_at >= since)


def _set_deleted(
    connection: Connection, owner: str, ids: Sequence[int], moment: datetime | None, is_meant: ColumnElement[bool]
) -> tuple[int, ...]:
    changed: dict[int, str] = {}
    for some in _in_portions(ids):
        theirs = select(_P.id, _P.conversation_id).select_from(WITH_CONVERSATION)
        theirs = theirs.where(_P.id.in_(some), _owner_unindexed == owner, _C.deleted_at.is_(None), is_meant)
        found = {row.id: row.conversation_id for row in connection.execute(theirs)}
        connection.execute(update(PICTURES).where(_P.id.in_(list(found))).values(deleted_at=moment))
        changed |= found
    conversations = sorted(set(changed.values()))
    for start in range(0, len(conversations), _MOST_VALUES):
        theirs_now = _C.id.in_(conversations[start : start + _MOST_VALUES])
        connection.execute(update(CONVERSATIONS).where(theirs_now).values(version=_C.version + 1))
    return tuple(changed)


def _own(connection: Connection, owner: str, ids: Sequence[int]) -> tuple[int, ...]:
    own = allowed(connection, owner, GalleryQuery(), ids)
    return tuple(one for one in dict.fromkeys(ids) if one in own)


def spellings(connection: Connection, owner: str, names: Iterable[str]) -> dict[str, str]:
    """Return each tag name in the spelling that the owner already uses, else as the first of the names spells it."""
    theirs = select(_T.tag).distinct().join(PICTURES, _P.id == _T.picture_id).where(_owner_unindexed == owner)
    known: dict[str, str] = {}
    for one in sorted(connection.scalars(theirs)):
        known.setdefault(one.casefold(), one)
    return {name: known.setdefault(name.casefold(), name) for name in names}


def _update(connection: Connection, ids: Sequence[int], **values: object) -> None:
    for some in _in_portions(ids):
        connection.execute(update(PICTURES).where(_P.id.in_(some)).values(**values))


# Filter values


def facets(connection: Connection, owner: str) -> GalleryFacets:
    """Return how many pictures there are of each kind, and in each month."""
    models, shapes, sources, stars = _counts(connection, owner, _KINDS)
    (months,) = _counts(connection, owner, (_MONTH,))
    tag_rows = connection.execute(_TAGGED, {"whose": owner}).all()
    return GalleryFacets(
        total=sum(stars.values()),
        starred=stars.get(True, 0),
        models=_most_first(models.items()),
        shapes=_most_first(shapes.items()),
        sources=_most_first(sources.items()),
        months=dict(sorted(months.items(), reverse=True)),
        tags=_most_first((name, count) for name, count in tag_rows),
    )


def _counts(connection: Connection, owner: str, columns: Sequence[ColumnElement[Any]]) -> tuple[dict[Any, int], ...]:
    """Return for each column how many pictures have each of its values."""
    counts: tuple[Counter[Any], ...] = tuple(Counter() for _ in columns)
    for (table, are_meant), sign in ((_COUNTED, 1), (_NOT_COUNTED, -1)):
        statement = select(*columns, func.count()).select_from(table).where(are_meant).group_by(*columns)
        for *values, number in connection.execute(statement, {"whose": owner}):
            for counter, value in zip(counts, values, strict=True):
                counter[value] += sign * number
    return tuple({value: number for value, number in each.items() if number} for each in counts)


def count(connection: Connection, owner: str, query: GalleryQuery) -> int:
    """Return how many pictures pass the filters; words and similarity are ignored."""
    statement = _owned(select(func.count()), owner, query).where(*_conditions(query))
    return connection.execute(statement).scalar_one()


def _most_first(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    return dict(sorted(((name, count) for name, count in counts if name), key=lambda one: (-one[1], one[0])))


def has_unread(connection: Connection) -> bool:
    """Whether any picture's words are not indexed yet."""
    # This exact wording: otherwise SQLite does not use its partial index.
    return connection.scalar(text("SELECT 1 FROM pictures WHERE is_indexed = 0 LIMIT 1")) is not None


def _in_portions(ids: Sequence[int]) -> Iterator[list[int]]:
    # An id comes from a page, which may send anything; SQLite refuses integers of more than 8 bytes.
    unique = [one for one in dict.fromkeys(ids) if 0 < one < 1 << 63]
    yield from (unique[start : start + _MOST_VALUES] for start in range(0, len(unique), _MOST_VALUES))


_MOST_DIGESTS = 100


def find_picture(connection: Connection, owner: str, digests: Sequence[str]) -> tuple[str, str] | None:
    """Return conversation and handle of the owner's picture for the first of these digests that is found.

    Of several pictures with that digest, the newest. Deleted pictures and conversations are ignored.
    """
    wanted = [digest for digest in dict.fromkeys(digests) if digest][:_MOST_DIGESTS]
    rows = connection.execute(
        select(_P.digest, _P.conversation_id, _P.handle)
        .select_from(WITH_CONVERSATION)
        .where(_P.digest.in_(wanted), _owner_unindexed == owner, _IS_THERE)
        .order_by(_P.created_at, _P.id)
    )
    known = {row.digest: (row.conversation_id, row.handle) for row in rows}
    return next((known[digest] for digest in wanted if digest in known), None)
