"""The mark that the list of conversations may be another one now."""

from __future__ import annotations

from html import escape


def stamp_html(at: int, ended: str = "", newest: str = "") -> str:
    """Return the mark that the list may be another one now.

    After a turn it says how it `ended` (`done`, `failed`, `waiting`, `stopped`), and which is the `newest` picture.
    """
    told = f' data-ended="{escape(ended)}" data-newest="{escape(newest)}"' if ended else ""
    return f'<i data-at="{at}"{told}></i>'
