"""What of a request can be looked for in a picture: each item stands, letter for letter, in the person's own words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from agent.imaging.lettering import asked_lettering
from agent.pictures import AskedItem, AskedKind

MAX_ITEMS = 10
_MAX_CHARACTERS = 160
_SPACES = re.compile(r"\s+")
_EDGES = " \t\n.,;:!?…'\"“”‘’「」『』()[]，。；：！？、（）"


def traceable(quote: str, texts: Iterable[str]) -> bool:
    """Return whether the quote stands in one of the texts; case, width, spaces and quotation marks do not count."""
    wanted = _plain(quote)
    return bool(wanted) and any(wanted in _plain(text) for text in texts)


def checklist_of(claimed: Iterable[AskedItem], texts: Sequence[str]) -> tuple[AskedItem, ...]:
    """Return what a picture is to be held against: what is `claimed` and stands in the person's `texts`, each once.

    `texts` are the person's messages, the newest first. Words that the newest one asks for as lettering are on the
    list in any case.
    """
    items: dict[str, AskedItem] = {}
    lettering = {_plain(words): words for words in asked_lettering(texts[0])} if texts else {}
    for item in claimed:
        quote = _SPACES.sub(" ", item.quote).strip(_EDGES)
        plain = _plain(quote)
        if plain in lettering:
            continue
        if len(quote) <= _MAX_CHARACTERS and traceable(quote, texts):
            items.setdefault(plain, AskedItem(quote=quote, kind=item.kind))
    texts_asked = [AskedItem(quote=words, kind=AskedKind.TEXT) for words in lettering.values()]
    return (*texts_asked, *items.values())[:MAX_ITEMS]


def matching(quote: str, items: Sequence[AskedItem]) -> int | None:
    """Return the place of the item that the quote speaks of, None when it is none of them."""
    wanted = _plain(quote)
    same = [place for place, item in enumerate(items) if _plain(item.quote) == wanted]
    close = [place for place, item in enumerate(items) if wanted and _plain(item.quote) in wanted]
    return next(iter([*same, *close]), None)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _SPACES.sub(" ", folded.translate(_NO_QUOTES)).strip(_EDGES)


_NO_QUOTES = str.maketrans("", "", '"“”‘’「」『』')
