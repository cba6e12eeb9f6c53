"""A model's words made safe to show as Markdown: no foreign picture is fetched, no HTML is live."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from agent.messages import Source

_CODE = re.compile(
    r"(^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\2[`~]*[ \t]*$|\Z)|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\3(?!`))", re.M | re.S
)
_IMAGE = re.compile(r"!\[([^\]\n]*)\](?:\(\s*<?([^)\s>]*)>?[^)\n]*\)|\[([^\]\n]*)\])?")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n]+)\]:\s*<?(\S+?)>?(?:\s.*)?$", re.M)
_LINK = re.compile(r"(?<![!\\])\[([^\[\]\n]+)\](?:\(\s*<?([^)\s>]*)>?[^)\n]*\)|\[([^\]\n]*)\])")
_FOOTNOTE = re.compile(r"(?<![\w\]\\])((?:\[\d{1,2}(?:, ?\d{1,2})*\])+)(?![(:\[])")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")


def safe_markdown(text: str, sources: Sequence[Source] = ()) -> str:
    """Return the words with every picture as the text `[image: host]`, every link's whole address in sight, and every
    HTML tag spelled out; `[2]` leads to the second of the sources.

    Code, fenced or in backticks, is left alone: the page shows it letter by letter. Invisible characters that could
    hide or reorder words are dropped.
    """
    text = _INVISIBLE.sub("", text)
    definitions = {name.lower(): url for name, url in _DEFINITION.findall(text)}
    pieces: list[str] = []
    position = 0
    for match in _CODE.finditer(text):
        pieces += [_safe_prose(text[position : match.start()], definitions, sources), match[0]]
        position = match.end()
    pieces.append(_safe_prose(text[position:], definitions, sources))
    return "".join(pieces)


def _safe_prose(text: str, definitions: dict[str, str], sources: Sequence[Source]) -> str:
    def spelled_out(match: re.Match[str]) -> str:
        label, url, name = match[1], match[2], match[3]
        address = url if url is not None else definitions.get((name or label).lower(), "")
        # By their numbers: a bracket behind a backslash begins a formula.
        return f"&#91;image: {_host(address) or label or '?'}&#93;"

    text = _IMAGE.sub(spelled_out, text).replace("![", "!&#91;")
    text = re.sub(r"<(?=[a-zA-Z/!?])", "&lt;", text)

    def in_sight(match: re.Match[str]) -> str:
        label, url, name = match[1], match[2], match[3]
        address = url if url is not None else definitions.get((name or label).lower(), "")
        if not address or label.strip() == address:
            return match[0]
        # What a model has learnt must not leave in an address that nobody reads.
        return f"{label} (<{address}>)" if address.startswith(("http://", "https://")) else f"{label} ({address})"

    return _FOOTNOTE.sub(lambda match: _footnotes(match[1], sources), _LINK.sub(in_sight, text))


def _footnotes(marks: str, sources: Sequence[Source]) -> str:
    numbers = [int(one) for one in re.findall(r"\d+", marks)]
    known = [one for one in numbers if 0 < one <= len(sources) and sources[one - 1].url.startswith(("http:", "https:"))]
    if len(known) < len(numbers):
        return marks
    return "\u2009".join(f"[{str(one).translate(_RAISED)}](<{sources[one - 1].url}>)" for one in known)


def _host(address: str) -> str:
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
