"""Removal of invisible characters, which can carry hidden text, from untrusted text."""

from __future__ import annotations

import re

# Each of these characters is invisible, or changes how its neighbours are displayed, so that a user and a model read
# different texts. The tag block and the two ranges of variation selectors can encode whole invisible sentences.
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls, except tab, line feed, carriage return and next line
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero width, and text direction
    "\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags, and more variation selectors
    "\ud800-\udfff"  # lone surrogates, which are not text
)
_REMOVED = re.compile(f"[{_INVISIBLE}]+")
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")


def plain_text(text: str) -> str:
    """Return the text without zero-width, bidirectional, tag and control characters; line endings become line feeds.

    The function is idempotent. A joined emoji is split into its parts, because the joiners could also hide text.
    """
    return _REMOVED.sub("", _LINE_ENDS.sub("\n", text))
