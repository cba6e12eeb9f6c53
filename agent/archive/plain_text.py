"""What everything written by a person or a model passes on its way into a page."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

# What could hide or reorder words: controls, marks of direction, invisible letters, tags.
_HIDING = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# What an address may hold as it is (RFC 3986), without the signs that end it in Markdown.
_IN_ADDRESS = ":/?#@!$&*+,;=%~[]"


def visible(text: str) -> str:
    """Return the text without what could hide or reorder its words; line breaks become plain ones."""
    return _HIDING.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def web_address(address: str) -> str | None:
    """Return the address of a web page fit for a link, or None for anything but http and https."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return quote(visible(address.strip()), safe=_IN_ADDRESS)
