"""The full-text table of conversations, as plain blocking calls for the database's thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, literal_column, or_, select, text, update

from agent.storage.finding import Wording
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.transactions import Transactions

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_THESE: BindParameter[str] = bindparam("these", expanding=True)
# As in the partial index, word by word: without it every search would look at every conversation.
STALE = (
    select(_C.id, _C.title, _C.updated_at)
    .where(text("(indexed_at IS NULL OR indexed_at < updated_at)"), _C.id > bindparam("after"))
    .where(_C.deleted_at.is_(None))
    .order_by(_C.id)
    .limit(bindparam("page"))
)
_TITLES = select(_C.id, _C.title).where(_C.id.in_(_THESE))
_TEXTS = (
    select(_T.conversation_id, _T.id, _T.text, _T.components)
    .where(_T.conversation_id.in_(_THESE))
    .order_by(_T.conversation_id, _T.position)
)
_RECEIPTS = (
    select(_P.conversation_id, _P.turn_id, _P.receipt)
    .where(_P.conversation_id.in_(_THESE), _P.receipt.is_not(None))
    .order_by(_P.conversation_id, _P.id)
)
_NEXT = select(func.coalesce(func.max(_C.word_id), 0) + 1).scalar_subquery()
# Only what has not changed since it was read: otherwise it stays to be read again.
_INDEXED = (
    update(CONVERSATIONS)
    .where(
        and_(_C.id == bindparam("key"), _C.updated_at == bindparam("seen"), _C.title == bindparam("seen_title")),
        or_(_C.indexed_at.is_(None), _C.indexed_at < _C.updated_at),
    )
    .values(indexed_at=_C.updated_at, word_id=func.coalesce(_C.word_id, _NEXT))
    .returning(_C.word_id)
)
_PUT = text("INSERT OR REPLACE INTO conversation_words(rowid, words) VALUES (:number, :words)")
_FOUND = (
    select(_C.id)
    .select_from(text("conversation_words"))
    .join(CONVERSATIONS, _C.word_id == literal_column("conversation_words.rowid"))
    .where(text("conversation_words MATCH :query"), _C.owner == bindparam("whose"), _C.deleted_at.is_(None))
    .order_by(_C.updated_at.desc(), _C.id)
    .limit(bindparam("page"))
)


class Stale(NamedTuple):
    """A conversation whose words are to be put into the full text, as it was when they were read."""

    wording: Wording
    updated_at: datetime


class WordRows:
    """The words of conversations; `transactions` opens those of its database."""

    def __init__(self, transactions: Transactions) -> None:
        self._db = transactions

    def stale(self, after: str, limit: int) -> list[Stale]:
        """Return conversations that changed since their words were put in, by id, those after one of them."""
        with self._db.reading() as connection:
            rows = connection.execute(STALE, {"after": after, "page": limit}).all()
            moments = {row.id: row.updated_at for row in rows}
            titles = {row.id: row.title for row in rows}
            return [Stale(one, moments[one.id]) for one in _wordings(connection, titles)]

    def put(self, words: Sequence[tuple[Stale, str]]) -> None:
        """Put the words of conversations into the full text, in place of those that were there."""
        with self._db.writing() as connection:
            for one, split in words:
                wording = one.wording
                seen = {"key": wording.id, "seen": one.updated_at, "seen_title": wording.title}
                number = connection.execute(_INDEXED, seen).scalar_one_or_none()
                if number is not None:
                    connection.execute(_PUT, {"number": number, "words": split})

    def found(self, owner: str, match: str, limit: int) -> list[Wording]:
        """Return the owner's conversations that a query of `word_index.match_query` finds, the newest first."""
        with self._db.reading() as connection:
            ids = list(connection.scalars(_FOUND, {"whose": owner, "query": match, "page": limit}))
            titles = {row.id: row.title for row in connection.execute(_TITLES, {"these": ids})}
            return _wordings(connection, {one: titles[one] for one in ids})


def _wordings(connection: Connection, titles: dict[str, str]) -> list[Wording]:
    turns: dict[str, list[tuple[str, str, str]]] = {one: [] for one in titles}
    pictures: dict[str, list[tuple[str, str | None]]] = {one: [] for one in titles}
    if titles:
        these = {"these": list(titles)}
        for row in connection.execute(_TEXTS, these):
            turns[row.conversation_id].append((row.id, row.text, row.components))
        for made in connection.execute(_RECEIPTS, these):
            pictures[made.conversation_id].append((made.turn_id, made.receipt))
    return [Wording(one, title, turns[one], pictures[one]) for one, title in titles.items()]
