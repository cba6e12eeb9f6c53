"""A conversation as a readable page: a list of plain blocks that is rendered as Markdown or HTML.

The texts in the blocks are raw: the renderer escapes every one. In Markdown, no text can create a link, picture,
heading or HTML. An HTML page is self-contained: one file beside the pictures, no script, and nothing is fetched from
anywhere; its Content-Security-Policy blocks anything that slipped through.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from typing import Literal, TypeAlias, assert_never
from urllib.parse import quote, urlsplit

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from agent.archive.format import ArchiveLanguage, ListedConversation
from agent.conversation import Turn, TurnState, WholeConversation
from agent.events import (
    AgentMessage,
    AskBack,
    Component,
    FailureNote,
    InterruptedNote,
    PlanCard,
    SearchNote,
    SmartCanvas,
    StoppedNote,
    TargetNote,
)
from agent.locales import sentences
from agent.messages import ImagePart, Source
from agent.pictures import Picture, Receipt
from agent.spending import format_usd
from agent.storage.branches import path_to

# The limits of characters shown of one file and of all files: the page is for reading.
_MOST_OF_A_FILE = 20_000
_MOST_OF_ALL_FILES = 400_000


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title of the page."""

    level: Literal[1, 2, 3]
    text: str


@dataclass(frozen=True)
class Speech:
    """The text of a speaker, possibly of several lines."""

    speaker: str
    text: str
    is_person: bool


@dataclass(frozen=True)
class Note:
    """A remark of one line that the page adds."""

    text: str


@dataclass(frozen=True)
class Shown:
    """A picture: the address of its file relative to the page, its alternative text and its caption."""

    address: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Facts:
    """Names and values, such as those of a picture's receipt."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Links:
    """The web pages that a search found."""

    title: str
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Code:
    """A text that is shown verbatim, line by line."""

    text: str


Block: TypeAlias = Heading | Speech | Note | Shown | Facts | Links | Code


@dataclass(frozen=True)
class Page:
    """The content of a page: its language, its title and its blocks."""

    language: ArchiveLanguage
    title: str
    blocks: tuple[Block, ...]


def conversation_page(whole: WholeConversation, language: ArchiveLanguage, addresses: Mapping[str, str]) -> Page:
    """Return the page of a conversation: the shown branch, then the turns of all other branches.

    `addresses` maps a picture's digest to its file, relative to the page; lost pictures are missing from it.
    """
    title = whole.title or _word(language, "untitled")
    return Page(language, title, tuple(_PageBuilder(whole, language, addresses).blocks(title)))


def branch_shown(whole: WholeConversation) -> tuple[Turn, ...]:
    """Return the turns from the first to the head."""
    by_id = {turn.id: turn for turn in whole.turns}
    path = path_to(whole.head or "", {turn.id: turn.parent for turn in whole.turns})
    return tuple(by_id[one] for one in path)


def _moment_text(moment: datetime) -> str:
    """Return a time in the format of all pages, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


class _PageBuilder:
    """A builder of the blocks of a conversation."""

    def __init__(self, whole: WholeConversation, language: ArchiveLanguage, addresses: Mapping[str, str]) -> None:
        self._whole = whole
        self._word = partial(_word, language)
        self._addresses = addresses
        self._numbers = {turn.id: number for number, turn in enumerate(whole.turns, 1)}
        self._pictures = {picture.handle: picture for picture in whole.pictures}
        self._of_turn: dict[str, list[Picture]] = defaultdict(list)
        for picture in whole.pictures:
            self._of_turn[picture.turn_id].append(picture)

    def blocks(self, title: str) -> Iterator[Block]:
        whole = self._whole
        yield Heading(1, title)
        moments = {"moment": _moment_text(whole.created_at), "moment_of_change": _moment_text(whole.updated_at)}
        yield Note(self._word("begun", **moments))
        yield Note(self._word("counts", turns=len(whole.turns), pictures=len(whole.pictures)))
        yield Note(self._word("made_by"))
        path = branch_shown(whole)
        for turn in path:
            yield from self._turn(turn)
        ids = {turn.id for turn in path}
        others = [turn for turn in whole.turns if turn.id not in ids]
        if others:
            yield Heading(2, self._word("elsewhere"))
        for turn in others:
            yield from self._turn(turn, is_elsewhere=True)
        yield from self._files()

    def _turn(self, turn: Turn, *, is_elsewhere: bool = False) -> Iterator[Block]:
        head = f"{self._numbers[turn.id]} · {_moment_text(turn.started_at)}"
        if is_elsewhere:
            parent = self._numbers.get(turn.parent or "")
            head += f" · {self._word('follows', number=parent) if parent else self._word('first')}"
        yield Heading(3 if is_elsewhere else 2, head)
        if turn.text.strip():
            yield Speech(self._word("you"), turn.text, is_person=True)
        if turn.editing:
            yield Note(self._word("marked", handle=turn.editing))
        if turn.references:
            yield Note(self._word("references", handles=" ".join(turn.references)))
        for image in turn.uploads:
            yield self._image(image, self._word("picture", handle=image.handle or ""))
        for one in turn.masked:
            yield self._image(one.mask, self._word("mask"))
        seen = {image.handle for image in turn.uploads}
        for component in turn.components:
            yield from self._component(component, seen)
        for picture in self._of_turn[turn.id]:
            if picture.handle not in seen:
                yield from self._picture(picture)
        if turn.state is TurnState.WAITING:
            yield Note(self._word("waiting"))

    def _component(self, component: Component, seen: set[str | None]) -> Iterator[Block]:
        match component:
            case AgentMessage():
                yield Speech(self._word("agent"), component.text, is_person=False)
            case SmartCanvas():
                yield from self._canvas(component, seen)
            case PlanCard():
                yield Note(self._word("plan"))
                yield Facts(tuple((self._word("prompt"), plan.prompt) for plan in component.plans))
            case AskBack():
                yield Note(f"{self._word(f'question.{component.question}')} {component.subject}".strip())
            case TargetNote():
                yield Note(self._word("went_back", handle=component.change.handle or "–"))
            case SearchNote() if component.sources:
                yield Links(self._word("sources"), component.sources)
            case FailureNote():
                yield Note(f"{self._word('failed')}: {component.error.message}")
            case InterruptedNote():
                yield Note(self._word("interrupted"))
            case StoppedNote():
                yield Note(self._word("stopped"))
            case _:
                # Actions of the agent and panels contain neither messages nor pictures.
                pass

    def _canvas(self, canvas: SmartCanvas, seen: set[str | None]) -> Iterator[Block]:
        for handles, heading in ((canvas.handles, ""), (canvas.earlier, "earlier")):
            known = [self._pictures[handle] for handle in handles if handle in self._pictures]
            if known and heading:
                yield Note(self._word(heading))
            for picture in known:
                seen.add(picture.handle)
                yield from self._picture(picture)

    def _picture(self, picture: Picture) -> Iterator[Block]:
        receipt = picture.receipt
        alt = picture.alt or (receipt.user_text if receipt else "")
        yield self._image(picture.image, self._word("picture", handle=picture.handle), alt)
        rows = [*(self._receipt(receipt) if receipt else ()), *self._review(picture)]
        if rows:
            yield Facts(tuple(rows))

    def _image(self, image: ImagePart, caption: str, alt: str = "") -> Shown | Note:
        address = self._addresses.get(image.digest)
        if address is None:
            return Note(self._word("lost", handle=image.handle or "?"))
        return Shown(address, alt or caption, caption)

    def _receipt(self, receipt: Receipt) -> Iterator[tuple[str, str]]:
        asked = " ".join(one for one in (receipt.asked_resolution, receipt.asked_aspect_ratio) if one)
        got = f"{receipt.width}×{receipt.height}"
        rows: Sequence[tuple[str, str]] = (
            ("prompt", receipt.prompt),
            ("model", receipt.model_label),
            ("size", f"{asked} → {got}" if asked else got),
            ("styles", ", ".join(style.name for style in receipt.styles)),
            ("facts", "\n".join(f"{fact.item} ({fact.source})" for fact in receipt.facts)),
            ("price", f"${format_usd(receipt.price_usd)}" if receipt.price_usd else ""),
            ("seconds", f"{receipt.seconds:.1f}" if receipt.seconds else ""),
        )
        return ((self._word(name), value) for name, value in rows if value)

    def _review(self, picture: Picture) -> Iterator[tuple[str, str]]:
        review = picture.review
        if review is None:
            return
        for item in review.checklist:
            # The oldest records also contain the studio's own checks, which are not part of a review.
            if item.check is None and item.is_met is not None:
                sign = "✓" if item.is_met else "✗"
                yield self._word("review"), " ".join(one for one in (sign, f"“{item.wish}”", item.why) if one)
        if review.feedback and review.model_label:
            yield self._word("review"), review.feedback
        if review.lettering:
            yield self._word("lettering"), review.lettering

    def _files(self) -> Iterator[Block]:
        if self._whole.files:
            yield Heading(2, self._word("files"))
        room = _MOST_OF_ALL_FILES
        for file in self._whole.files:
            size, writer = self._word("bytes", count=f"{file.size_bytes:,}"), self._word(f"by.{file.written_by}")
            yield Heading(3, file.name)
            yield Note(f"{size} · {writer} · {_moment_text(file.updated_at)}")
            text = file.text
            if text is None:
                yield Note(self._word("no_text"))
                continue
            shown = text[: min(_MOST_OF_A_FILE, room)]
            room -= len(shown)
            if shown.strip():
                yield Code(shown)
            if len(shown) < len(text):
                yield Note(self._word("cut", count=f"{len(text) - len(shown):,}"))


def _word(language: ArchiveLanguage, key: str, **parameters: object) -> str:
    return str(sentences("archive", language)[key]).format(**parameters)


# Characters that could hide or reorder words: control characters, direction marks, invisible letters, tags.
_HIDING = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
# Characters that an address may contain unescaped (RFC 3986), except those that end it in Markdown.
_IN_ADDRESS = ":/?#@!$&*+,;=%~[]"


def visible(text: str) -> str:
    """Return the text without characters that could hide or reorder its words; line breaks become \\n."""
    return _HIDING.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def web_address(address: str) -> str | None:
    """Return the address of a web page in a form that is safe in a link, or None for anything but http and https."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return quote(visible(address.strip()), safe=_IN_ADDRESS)


_FOLDER = resources.files("agent").joinpath("archive")
_STYLE = _FOLDER.joinpath("page.css").read_text(encoding="utf-8").strip()
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# A page that is opened from a folder has no origin, so its pictures need `file:`.
_POLICY = f"default-src 'none'; img-src 'self' file:; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
_POLICY_ALONE = _POLICY.replace("'self' file:", "data:")


def web_page(page: Page, *, is_alone: bool = False) -> str:
    """Return the page as HTML, ending with a line break; with `is_alone`, its policy allows only embedded pictures."""
    return _document(page, _POLICY_ALONE if is_alone else _POLICY)


def library_page(listed: Sequence[ListedConversation], language: ArchiveLanguage) -> str:
    """Return the index page of the conversations of an archive."""
    title = _word(language, "library")
    entries = (
        (
            f"{one.folder}/conversation.html",
            one.title or _word(language, "untitled"),
            f"{_moment_text(one.created_at)} · "
            + _word(language, "counts", turns=one.turn_count, pictures=one.picture_count),
        )
        for one in listed
    )
    note = Note(_word(language, "made_by" if listed else "empty"))
    return index_page(Page(language, title, (Heading(1, title), note)), entries)


def index_page(page: Page, entries: Iterable[tuple[str, str, str]]) -> str:
    """Return a page with its own blocks, followed by links to other pages: address, title and a remark for each."""
    return _document(page, _POLICY, tuple(entries))


def _document(page: Page, policy: str, entries: Sequence[tuple[str, str, str]] = ()) -> str:
    blocks = [(type(block).__name__, block) for block in page.blocks]
    return _template().render(page=page, policy=policy, style=Markup(_STYLE), blocks=blocks, entries=entries)  # noqa: S704  our own


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True,
        finalize=lambda shown: visible(shown) if type(shown) is str else shown,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["web_address"] = web_address
    return environment.from_string(_FOLDER.joinpath("page.html").read_text(encoding="utf-8"))


# GFM also turns bare addresses into links; a backslash before these characters prevents that.
_SIGN = re.compile(r"[\\`*_{}\[\]()#|~!@$^]|(?<=[a-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
# Characters with a meaning only at the start of a line: lists and rules.
_START = re.compile(r"[=+-]|[0-9]+(?=[.)])")
_OF_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_MOST_INDENTED = 40


def markdown(page: Page) -> str:
    """Return the page as Markdown, ending with a line break."""
    return "\n\n".join(map(_markdown_block, page.blocks)) + "\n"


def escaped(text: str) -> str:
    """Return a text on one line, escaped so that it has no meaning in Markdown."""
    return _line(" ".join(visible(text).split()))


def _markdown_block(block: Block) -> str:
    match block:
        case Heading():
            return f"{'#' * block.level} {escaped(block.text)}"
        case Speech():
            quote = "> " if block.is_person else ""
            return f"{quote}**{escaped(block.speaker)}**\n{quote.rstrip()}\n{_lines(block.text, quote)}"
        case Note():
            return f"*{escaped(block.text)}*"
        case Shown():
            return f"![{escaped(block.alt)}]({block.address})\n\n{escaped(block.caption)}"
        case Facts():
            return "\n".join(f"- **{escaped(name)}:** {escaped(value)}" for name, value in block.rows)
        case Links():
            rows = (f"- {_markdown_link(source.title, source.url)}" for source in block.sources)
            return "\n".join((f"**{escaped(block.title)}**", "", *rows))
        case Code():
            return _fenced(block.text)
        case _:
            assert_never(block)


def _fenced(text: str) -> str:
    """Return the text as a code block with a fence that no line of the text can close."""
    plain = visible(text).rstrip("\n")
    longest = max((len(run[0]) for run in re.finditer("`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{plain}\n{fence}"


def _lines(text: str, prefix: str) -> str:
    """Return the text line by line; a line that is directly followed by another ends with a backslash (hard break)."""
    lines = visible(text).strip().split("\n")
    written = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        ending = "\\" if line.strip() and following.strip() else ""
        written.append(f"{prefix}{_line(line)}{ending}".rstrip())
    return "\n".join(written)


def _line(line: str) -> str:
    words = line.strip()
    # Four spaces would start a code block.
    indent = "&nbsp;" * min(len(line) - len(line.lstrip()), _MOST_INDENTED) if words else ""
    start = _START.match(words)
    head = start[0] if start else ""
    rest = _SIGN.sub(lambda match: f"\\{match[0]}", words[len(head) :]).translate(_OF_HTML)
    if not head.isdigit():
        return f"{indent}{chr(92) if head else ''}{head}{rest}"
    # A closing bracket is already escaped; a full stop after the digits is not.
    return f"{indent}{head}{rest if rest.startswith(chr(92)) else chr(92) + rest}"


def _markdown_link(title: str, address: str) -> str:
    url = web_address(address)
    return f"[{escaped(title or address)}](<{url}>)" if url else escaped(title or address)
