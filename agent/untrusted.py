"""What text from outside must lose before anybody reads it: characters that show nothing and can say anything."""

from __future__ import annotations

import re

# Each of them is drawn as nothing, or changes how its neighbours are drawn, so that a person and a model read
# different texts. The tag block and the two runs of variation selectors can spell whole sentences unseen.
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f"  # controls, but for tab, line feed and next line
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero width, and which way to read
    "\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tags, and more variation selectors
    "\ud800-\udfff"  # halves of a pair: no text at all
)
_REMOVED = re.compile(f"[{_INVISIBLE}]+")
_LINE_ENDS = re.compile("\r\n?|[\u0085\u2028\u2029]")


def plain_text(text: str) -> str:
    """Return the text without zero-width, bidirectional, tag and control characters; every line ends in a line feed.

    Doing it twice changes nothing more. A joined emoji falls into its parts: what joins them can hide words too.
    """
    return _REMOVED.sub("", _LINE_ENDS.sub("\n", text))
