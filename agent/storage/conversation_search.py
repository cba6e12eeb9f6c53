"""Full-text search in conversations: index their words, find the matching ones, and cut an excerpt for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from pydantic import JsonValue, TypeAdapter
from sqlalchemy import BindParameter, Connection, and_, bindparam, func, literal_column, or_, select, text, update

from agent.conversation import ConversationInfo
from agent.messages import Value
from agent.storage.tables import CONVERSATIONS, PICTURES, TURNS
from agent.storage.word_index import excerpt_of, found_in, words_of

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)

_C, _T, _P = CONVERSATIONS.c, TURNS.c, PICTURES.c
_THESE: BindParameter[str] = bindparam("these", expanding=True)
# The same wording as in the partial index, word for word: otherwise every search would scan all conversations.
STALE = (
    select(_C.id, _C.title, _C.updated_at)
    .where(text("(indexed_at IS NULL OR indexed_at < updated_at)"), _C.id > bindparam("after"))
    .where(_C.deleted_at.is_(None))
    .order_by(_C.id)
    .limit(bindparam("page"))
)
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
# Only a conversation that has not changed since it was read: otherwise it stays stale and is read again.
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
    select(_C.id, _C.title)
    .select_from(text("conversation_words"))
    .join(CONVERSATIONS, _C.word_id == literal_column("conversation_words.rowid"))
    .where(text("conversation_words MATCH :query"), _C.owner == bindparam("whose"), _C.deleted_at.is_(None))
    .order_by(_C.updated_at.desc(), _C.id)
    .limit(bindparam("page"))
)

Place = Literal["title", "said", "answered", "prompt"]


class ConversationHit(Value):
    """A conversation that contains all words of a query.

    `excerpt` is a piece of its title, of the user's text, of the agent's answer, or of a picture's prompt (`place`);
    `marks` are the start and end of each found word in it. `turn_id` is the turn of the excerpt, which may be on a
    branch that is not shown; None for the title.
    """

    info: ConversationInfo
    place: Place
    excerpt: str
    marks: tuple[tuple[int, int], ...] = ()
    turn_id: str | None = None


class Snippet(NamedTuple):
    """One searchable text of a conversation."""

    place: Place
    text: str
    turn_id: str | None = None


@dataclass(frozen=True)
class SearchDocument:
    """The texts of one conversation as its rows store them.

    `turns` holds the id, text and components of each turn, oldest first; `receipts` those of each turn's pictures.
    """

    id: str
    title: str
    turns: Sequence[tuple[str, str, str]]
    receipts: Mapping[str, Sequence[str]]

    def snippets(self) -> Iterator[Snippet]:
        """Yield every text, the title first, then those of the newest turn."""
        yield Snippet("title", self.title)
        for turn_id, message, components in reversed(self.turns):
            yield Snippet("said", message, turn_id)
            prompts = (_text(_JSON.validate_json(one), "prompt") for one in self.receipts.get(turn_id, ()))
            for written in dict.fromkeys(prompts):
                yield Snippet("prompt", written, turn_id)
            yield from _shown_snippets(turn_id, components)


def hit_of(info: ConversationInfo, document: SearchDocument, query: str) -> ConversationHit:
    """Return the search hit for a conversation: its first passage that contains most of the query's words."""
    best = max(document.snippets(), key=lambda passage: found_in(passage.text, query))
    excerpt = excerpt_of(best.text, query)
    return ConversationHit(info=info, place=best.place, excerpt=excerpt.text, marks=excerpt.marks, turn_id=best.turn_id)


def _shown_snippets(turn_id: str, components: str) -> Iterator[Snippet]:
    """Yield what the agent said in the turn, and the prompts of its plans, even of plans that were never painted."""
    listed = _JSON.validate_json(components)
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict):
            continue
        if one.get("type") == "agent_message":
            yield Snippet("answered", _text(one, "text"), turn_id)
        plans = one.get("plans")
        for plan in plans if isinstance(plans, list) else ():
            yield Snippet("prompt", _text(plan, "prompt"), turn_id)


def _text(value: JsonValue, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


class StaleWords(NamedTuple):
    """The words of a conversation for the full-text table, and the conversation as it was when they were read."""

    id: str
    title: str
    updated_at: datetime
    words: str


def stale_words(connection: Connection, after: str, limit: int) -> list[StaleWords]:
    """Return the words of conversations that changed since they were indexed, by id, starting after the id `after`."""
    rows = connection.execute(STALE, {"after": after, "page": limit}).all()
    found = []
    for row, document in zip(rows, _documents(connection, {row.id: row.title for row in rows}), strict=True):
        texts = dict.fromkeys(passage.text for passage in document.snippets() if passage.text)
        found.append(StaleWords(row.id, row.title, row.updated_at, words_of("\n".join(texts))))
    return found


def index_words(connection: Connection, words: Sequence[StaleWords]) -> None:
    """Write the words of conversations into the full-text table, replacing those that were there."""
    for one in words:
        seen = {"key": one.id, "seen": one.updated_at, "seen_title": one.title}
        number = connection.execute(_INDEXED, seen).scalar_one_or_none()
        if number is not None:
            connection.execute(_PUT, {"number": number, "words": one.words})


def matching_documents(connection: Connection, owner: str, match: str, limit: int) -> list[SearchDocument]:
    """Return the owner's conversations that match a query of `word_index.match_query`, the newest first."""
    rows = connection.execute(_FOUND, {"whose": owner, "query": match, "page": limit})
    return _documents(connection, {row.id: row.title for row in rows})


def _documents(connection: Connection, titles: dict[str, str]) -> list[SearchDocument]:
    these = {"these": list(titles)}
    turns: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for row in connection.execute(_TEXTS, these):
        turns[row.conversation_id].append((row.id, row.text, row.components))
    receipts: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(_RECEIPTS, these):
        receipts[row.conversation_id][row.turn_id].append(row.receipt)
    return [SearchDocument(one, title, turns[one], receipts[one]) for one, title in titles.items()]
