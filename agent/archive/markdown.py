"""A page in Markdown. Every text is escaped: none makes a link, a picture, a heading or HTML of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import assert_never

from agent.archive.plain_text import visible, web_address
from agent.archive.readable import Block, Code, Facts, Heading, Links, Note, Page, Said, Shown

# GFM makes links of bare addresses, too, which a backslash before their signs prevents.
_SIGN = re.compile(r"[\\`*_{}\[\]()#|~!@$^]|(?<=[a-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
# What means something at the start of a line alone: lists and rules.
_START = re.compile(r"[=+-]|[0-9]+(?=[.)])")
_OF_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_MOST_INDENTED = 40


def markdown(page: Page) -> str:
    """Return the page, which ends with a line break."""
    return "\n\n".join(_block(block) for block in page.blocks) + "\n"


def escaped(text: str) -> str:
    """Return a text on one line, to be read as it stands."""
    return _line(" ".join(visible(text).split()))


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {escaped(block.text)}"
        case Said():
            quote = "> " if block.is_person else ""
            speaker = f"{quote}**{escaped(block.speaker)}**"
            return f"{speaker}\n{quote.rstrip()}\n{_lines(block.text, quote)}"
        case Note():
            return f"*{escaped(block.text)}*"
        case Shown():
            return f"![{escaped(block.alt)}]({block.address})\n\n{escaped(block.caption)}"
        case Facts():
            return "\n".join(f"- **{escaped(name)}:** {escaped(value)}" for name, value in block.rows)
        case Links():
            rows = (f"- {_link(source.title, source.url)}" for source in block.sources)
            return "\n".join((f"**{escaped(block.title)}**", "", *rows))
        case Code():
            return _fenced(block.text)
        case _:
            assert_never(block)


def _fenced(text: str) -> str:
    """Return the text as a block of code, which no line of it can end."""
    plain = visible(text).rstrip("\n")
    longest = max((len(run[0]) for run in re.finditer("`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{plain}\n{fence}"


def _lines(text: str, prefix: str) -> str:
    """Return the text line by line: a backslash ends a line that another one follows."""
    lines: Sequence[str] = visible(text).strip().split("\n")
    written = []
    for number, line in enumerate(lines):
        is_followed = number + 1 < len(lines) and bool(line.strip()) and bool(lines[number + 1].strip())
        written.append(f"{prefix}{_line(line)}{chr(92) if is_followed else ''}".rstrip())
    return "\n".join(written)


def _line(line: str) -> str:
    words = line.strip()
    # Four spaces would make a block of code.
    indent = "&nbsp;" * min(len(line) - len(line.lstrip()), _MOST_INDENTED) if words else ""
    start = _START.match(words)
    head = start[0] if start else ""
    rest = _signs_escaped(words[len(head) :])
    if not head.isdigit():
        return f"{indent}{chr(92) if head else ''}{head}{rest}"
    # A bracket is escaped already, as everywhere.
    return f"{indent}{head}{rest if rest.startswith(chr(92)) else chr(92) + rest}"


def _signs_escaped(text: str) -> str:
    return _SIGN.sub(lambda match: f"\\{match[0]}", text).translate(_OF_HTML)


def _link(title: str, address: str) -> str:
    url = web_address(address)
    return f"[{escaped(title or address)}](<{url}>)" if url else escaped(title or address)
