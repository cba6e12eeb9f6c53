"""Words of models as HTML that can do nothing."""

from __future__ import annotations

from webui.markdown import MOST_FORMATTED_CHARACTERS, markdown_html, own_words_html

__all__ = [
    "MOST_FORMATTED_CHARACTERS",
    "markdown_html",
    "own_words_html",
]
