"""A model's words made safe to show as Markdown: no foreign picture is fetched, no HTML is live."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_CODE = re.compile(
    r"(^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z)|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\3(?!`))", re.M | re.S
)
_IMAGE = re.compile(r"!\[([^\]\n]*)\](?:\(\s*<?([^)\s>]*)>?[^)\n]*\)|\[([^\]\n]*)\])?")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]+)\]:\s*<?(\S+?)>?(?:\s.*)?$", re.M)
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def safe_markdown(text: str) -> str:
    """Return the words with every picture as the text `[image: host]` and every HTML tag spelled out.

    Code, fenced or in backticks, is left alone: the page shows it letter by letter. Invisible characters that could
    hide or reorder words are dropped.
    """
    text = _INVISIBLE.sub("", text)
    definitions = {name.lower(): url for name, url in _DEFINITION.findall(text)}
    pieces: list[str] = []
    position = 0
    for match in _CODE.finditer(text):
        pieces += [_safe_prose(text[position : match.start()], definitions), match[0]]
        position = match.end()
    pieces.append(_safe_prose(text[position:], definitions))
    return "".join(pieces)


def _safe_prose(text: str, definitions: dict[str, str]) -> str:
    def spelled_out(match: re.Match[str]) -> str:
        label, url, name = match[1], match[2], match[3]
        address = url if url is not None else definitions.get((name or label).lower(), "")
        return f"[image: {_host(address) or label or '?'}]".replace("[", "\\[").replace("]", "\\]")

    text = _IMAGE.sub(spelled_out, text).replace("![", "!\\[")
    return re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text)


def _host(address: str) -> str:
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
