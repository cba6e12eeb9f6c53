"""The gallery's full-text search by words: index pictures, find them, and show where the words occur."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, select, text

from agent.library import GalleryPlace
from agent.pictures import Picture
from agent.storage.gallery_rows import ITEM, WITH_CONVERSATION, ItemRow, tags_of
from agent.storage.private_files import owner_key
from agent.storage.rows import picture_of
from agent.storage.style_match import is_ideograph
from agent.storage.styles import curated_styles
from agent.storage.tables import PICTURES
from agent.storage.word_index import Excerpt, excerpt_of, folded, words_of

# A batch blocks the records' thread, on which turns write, for some 20 ms.
_AT_ONCE = 50
_LONGEST_TEXT = 8000
_LONGEST_QUERY = 500
_MOST_TERMS = 24
# A word that thousands of pictures have finds only the newest; with filters, few of those may be left.
_MOST_FOR_A_WORD = 2000
_MOST_WITH_FILTERS = 200_000
_SHORTEST_BEGINNING = 3

_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can could do does for from had has have he her his i if in into is it its me my of "
        "on or our please she should so some that the their them there these they this those to was we were which "
        "with would you your",
    )
)
_STOP_LETTERS = frozenset("的了着得地是在和与有个这那把被给也都就呢吗吧啊请我你他她它们")

_CLAIM = text(
    "UPDATE pictures SET is_indexed = 1 WHERE id IN "
    "(SELECT id FROM pictures WHERE is_indexed = 0 ORDER BY id DESC LIMIT :count) RETURNING id"
)
_PUT = text("INSERT OR REPLACE INTO picture_words (rowid, words) VALUES (:id, :words)")
# As two subqueries, each is answered from one end of an index.
_OWNERS = text("SELECT (SELECT min(owner) FROM pictures), (SELECT max(owner) FROM pictures)")
_FIND = text("SELECT rowid FROM picture_words WHERE picture_words MATCH :query ORDER BY rowid DESC LIMIT :most")


class Term(NamedTuple):
    """A search term: the word forms that match, and whether the last form is a prefix."""

    forms: tuple[str, ...]
    is_beginning: bool = False

    def found_in(self, words: Iterable[str]) -> str | None:
        """Return the first word that matches the term, or None."""
        for word in words:
            if word in self.forms or (self.is_beginning and word.startswith(self.forms[-1])):
                return word
        return None

    @property
    def query(self) -> str:
        """The term as an expression of SQLite's full-text query."""
        beginning = " *" if self.is_beginning else ""
        return "(" + " OR ".join(f'"{form}"' for form in self.forms) + beginning + ")"


# Indexing


def read_some(connection: Connection) -> int:
    """Add the words of some pictures that are not indexed yet to the full text, the newest first; return how many.

    The first statement takes the write lock, so that nobody changes a picture between reading and marking it.
    """
    ids = list(connection.scalars(_CLAIM, {"count": _AT_ONCE}))
    if not ids:
        return 0
    rows = connection.execute(select(*ITEM).select_from(WITH_CONVERSATION).where(PICTURES.c.id.in_(ids))).all()
    tags = tags_of(connection, ids)
    connection.execute(_PUT, [{"id": row.id, "words": _words_of_row(row, tags.get(row.id, ()))} for row in rows])
    return len(ids)


def _words_of_row(row: ItemRow, tags: Sequence[str]) -> str:
    texts = texts_of(picture_of(row), row.title, tags, row.model, row.said)
    return f"{_owner_word(row.owner)} {words_of(chr(10).join(one[:_LONGEST_TEXT] for one in texts.values()))}"


def _owner_word(owner: str) -> str:
    # Otherwise a query would scan the matching words of every owner's pictures.
    return f"owner{owner_key(owner)}"


def texts_of(
    picture: Picture, title: str, tags: Sequence[str], model: str, message: str | None
) -> dict[GalleryPlace, str]:
    """Return all texts that belong to a picture, by place; `message` is the text that an upload was sent with."""
    receipt, review = picture.receipt, picture.review
    styles = [name for style in (receipt.styles if receipt else ()) for name in (style.name, *_other_names(style.name))]
    return {
        "tag": " | ".join(tags),
        "title": title,
        "words": receipt.user_text if receipt else message or "",
        "prompt": receipt.prompt if receipt else "",
        "alt": picture.alt,
        "lettering": review.lettering if review else "",
        "style": " | ".join(dict.fromkeys(styles)),
        "model": model,
    }


@lru_cache(maxsize=512)
def _other_names(name: str) -> tuple[str, ...]:
    """Return the names of a curated style in both languages."""
    return next((style.names for style in curated_styles() if name in style.names), ())


# Searching


def terms_of(query: str) -> tuple[Term, ...]:
    """Return the search terms: the query's words without stop words.

    A Chinese run is split at stop letters, and runs longer than a pair are searched pair by pair. The last word may be
    a prefix only, because the user may still be typing it.
    """
    terms = list(_terms(query, _STOP_WORDS, _STOP_LETTERS)) or list(_terms(query, frozenset(), frozenset()))
    return tuple(dict.fromkeys(terms))[:_MOST_TERMS]


def _terms(query: str, stop_words: frozenset[str], stop_letters: frozenset[str]) -> Iterator[Term]:
    runs = "".join(" " if one in stop_letters else one for one in folded(query[:_LONGEST_QUERY])).split()
    words = [word for run in runs for word in _words_of_run(run)]
    for number, word in enumerate(words, start=1):
        if word in stop_words:
            continue
        if is_ideograph(word):
            yield Term((word,))
        else:
            yield Term(_forms(word), is_beginning=number == len(words) and len(word) >= _SHORTEST_BEGINNING)


def _words_of_run(run: str) -> list[str]:
    """Return the words of a run; a single letter that occurs in a pair is left out."""
    words = words_of(run).split()
    pairs = "".join(word for word in words if len(word) == 2 and is_ideograph(word))
    return [word for word in words if len(word) > 1 or word not in pairs]


def _forms(word: str) -> tuple[str, ...]:
    """Return the singular and plural forms of the word; the form as written comes last."""
    others: tuple[str, ...] = ()
    if len(word) > 3 and word.endswith("ies"):
        others = (f"{word[:-3]}y",)
    elif len(word) > 3 and word.endswith("es"):
        others = (word[:-1], word[:-2])
    elif len(word) > 2 and word.endswith("s") and not word.endswith("ss"):
        others = (word[:-1],)
    elif len(word) > 2 and word.isalpha():
        plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
        others = (plural, f"{word}es") if word.endswith(("s", "x", "ch", "sh")) else (plural,)
    return (*others, word)


def best_by_words(connection: Connection, owner: str, terms: Sequence[Term], *, has_filters: bool) -> list[int]:
    """Return the ids of the owner's pictures that match any of the terms; those that match most come first.

    A term counts between a half and one: the rarer, the more. Among equals, the newer comes first. Deleted pictures are
    included.
    """
    most = _MOST_WITH_FILTERS if has_filters else _MOST_FOR_A_WORD
    first, last = connection.execute(_OWNERS).one()
    # A search without the owner's word is faster; it is not needed when all pictures are theirs.
    within = "" if first == last == owner else f'"{_owner_word(owner)}" AND '
    scores: dict[int, float] = defaultdict(float)
    weights: list[float] = []
    for term in terms:
        found = _found(connection, within + term.query, most)
        weights.append(1 - 0.5 * min(1.0, math.log1p(len(found)) / math.log1p(_MOST_FOR_A_WORD)))
        for one in found:
            scores[one] += weights[-1]
        if len(found) == most:
            # The oldest pictures that match every term are not among the newest that match this one.
            weights[-1] = 0.5
    if len(terms) > 1:
        whole = sum(weights)
        for one in _found(connection, within + " AND ".join(term.query for term in terms), most):
            scores[one] = max(scores[one], whole)
    return sorted(scores, key=lambda one: (scores[one], one), reverse=True)


def _found(connection: Connection, query: str, most: int) -> list[int]:
    return list(connection.scalars(_FIND, {"query": query, "most": most}))


def place_of(texts: dict[GalleryPlace, str], terms: Sequence[Term]) -> tuple[GalleryPlace, Excerpt] | None:
    """Return the place that contains most of the terms, with an excerpt of its text; None when no place does."""
    found: dict[GalleryPlace, list[str]] = {}
    for place, content in texts.items():
        words = words_of(content[:_LONGEST_TEXT]).split()
        found[place] = [word for term in terms if (word := term.found_in(words)) is not None]
    best = max(found, key=lambda place: len(found[place]))
    return (best, excerpt_of(texts[best], " ".join(found[best]))) if found[best] else None
