"""Words of models as HTML that can do nothing."""

from __future__ import annotations

from collections.abc import Sequence

from agent import Source
from webui.features.thread import markdown

MOST_FORMATTED_CHARACTERS = markdown.MOST_FORMATTED_CHARACTERS


def markdown_html(text: str, sources: Sequence[Source] = (), copy: str = "") -> str:
    """Return Markdown as HTML."""
    return str(markdown.markdown_html(text, sources, copy))


def own_words_html(text: str) -> str:
    """Return a person's words as HTML."""
    return str(markdown.own_words_html(text))
