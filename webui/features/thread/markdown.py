"""Safe HTML from Markdown of users and models: no live tags, no foreign pictures, no hidden addresses.

Only tags that this module writes occur, and every character of the text is escaped. Formulas become MathML, and
Pygments colours code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from html import escape, unescape
from types import ModuleType
from typing import TYPE_CHECKING
from unicodedata import category, east_asian_width
from urllib.parse import urlsplit

from markupsafe import Markup

from agent import Source, urls_in

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.rules_inline.state_inline import Scanned
    from markdown_it.token import Token

# A longer text is shown as it was written. Parsing so much takes about as long as a frame.
MOST_FORMATTED_CHARACTERS = 12_000
_MOST_LINES = 1000
# With so many of these characters, matching them would take long: then they are plain text.
_MOST_SIGNS = {"[": (300, ("link", "image")), "*_~": (1000, ("emphasis", "strikethrough"))}
_MOST_CELLS = 2000
_MOST_COLOURED = 4000
_COLOURED = frozenset("ksc")

_FOOTNOTE = re.compile(r"(?<![\w\]\\])((?:\[\d{1,2}(?:, ?\d{1,2})*\])+)(?![(:\[])")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_TASK = re.compile(r"\[([ xX])\]\s+")
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}", re.ASCII)
_FORMULAS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"))
_LONGEST_FORMULA = 1000
# The elements allowed in a formula; the library also writes links, styles, and the content of `\text{}` as it is.
_MATH_TAGS = re.compile(
    "math|m(row|i|n|o|s|text|space|frac|sqrt|root|sub|sup|subsup|under|over|underover|table|tr|td|style|padded|phantom)"
)
_MATH_ATTRIBUTES = re.compile(
    "accent|columnalign|display|displaystyle|fence|form|linethickness|mathvariant|maxsize|minsize|movablelimits"
    "|scriptlevel|separator|stretchy|width"
)
_LINK_ATTRIBUTES = 'target="_blank" rel="noopener noreferrer"'


def markdown_html(text: str, sources: Sequence[Source] = (), copy: str = "") -> Markup:
    """Return Markdown as HTML. Every picture becomes the text `[image: host]`, every link shows its whole address,
    every HTML tag is spelled out, and code of any kind is code. `[2]` links to the second source. Each block of code
    has a button to copy it, labelled `copy`.

    Invisible characters that could hide or reorder words are dropped.
    """
    return Markup(_html(text, tuple(sources), copy))  # noqa: S704  every character of the text is escaped


def own_words_html(text: str) -> Markup:
    """Return a user's text as HTML, as typed: stars and hash signs stay, addresses become links.

    The page's styles keep its line breaks and spaces.
    """
    text = _INVISIBLE.sub("", text).strip("\r\n").rstrip()
    written = escape(text) if len(text) > MOST_FORMATTED_CHARACTERS else _with_links(text)
    return Markup(f'<p class="own" dir="auto">{written}</p>')  # noqa: S704  its text is escaped


@lru_cache(maxsize=256)
def _html(text: str, sources: tuple[Source, ...], copy: str) -> str:
    text = _INVISIBLE.sub("", text)
    if len(text) > MOST_FORMATTED_CHARACTERS or text.count("\n") > _MOST_LINES:
        lines = escape(text.strip()).split("\n")
        return f"<p>{'<br>'.join(lines)}</p>"
    return _Writer(sources, copy).blocks(_parser(_too_many(text)).parse(text))


def _too_many(text: str) -> tuple[str, ...]:
    """Return the rules that are disabled for a text."""
    counted = ((sum(map(text.count, signs)), most, rules) for signs, (most, rules) in _MOST_SIGNS.items())
    too_many = [rule for count, most, rules in counted if count > most for rule in rules]
    rows = [line.count("|") for line in text.split("\n") if "|" in line]
    # A row with too few cells is filled with empty ones.
    return (*too_many, *(("table",) if len(rows) * max(rows, default=0) > _MOST_CELLS else ()))


@cache
def _parser(without: tuple[str, ...]) -> MarkdownIt:
    # Importing it takes a tenth of a second, which the start need not wait for.
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import emphasis, strikethrough

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
    # Link definitions stay visible, and so do references to them.
    parser.disable(["reference", "entity", "html_block", "html_inline", *without])
    parser.inline.ruler.before("escape", "formula", _formula)
    for name, rule in (("emphasis", emphasis), ("strikethrough", strikethrough)):
        parser.inline.ruler.at(name, _flanked(rule))
    # Every address is shown; whether it becomes a link is decided when it is written.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parser


def _flanked(rule: ModuleType) -> Callable[[StateInline, bool], bool]:
    """Return the rule of emphasis or strikethrough, with `_flanks` in place of its own test for delimiter runs."""

    def tokenize(state: StateInline, silent: bool) -> bool:
        state.scanDelims = partial(_flanks, state)  # type: ignore[method-assign]
        found: bool = rule.tokenize(state, silent)
        return found

    return tokenize


def _flanks(state: StateInline, start: int, can_split_word: bool) -> Scanned:
    """Return what a delimiter run can open and close: CommonMark's rule, adapted to Chinese, Japanese and Korean,
    which put no space between words. Their punctuation counts as a letter, and their letters count as a space when
    other punctuation is on the other side: `**注意：**请看`, `他说**“好”**`."""
    from markdown_it.rules_inline.state_inline import Scanned, StateInline

    found = StateInline.scanDelims(state, start, can_split_word)
    end = start + found.length
    before = state.src[start - 1] if start > 0 else " "
    after = state.src[end] if end < state.posMax else " "
    if not can_split_word or not (_is_cjk(before) or _is_cjk(after)):
        return found
    opens = not after.isspace() and (not _is_other_sign(after) or _is_cjk(before) or not _is_letter(before))
    closes = not before.isspace() and (not _is_other_sign(before) or _is_cjk(after) or not _is_letter(after))
    return Scanned(opens, closes, found.length)


def _is_cjk(sign: str) -> bool:
    return east_asian_width(sign) in "WFH" and category(sign) != "So"


def _is_letter(sign: str) -> bool:
    return not (sign.isspace() or _is_other_sign(sign))


def _is_other_sign(sign: str) -> bool:
    """Whether it is punctuation other than Chinese, Japanese or Korean."""
    return (category(sign)[0] == "P" or sign in "$+<=>^`|~") and not _is_cjk(sign)


def _formula(state: StateInline, silent: bool) -> bool:
    """Take a formula as a token of its own, if it cannot be anything else."""
    for opening, closing in _FORMULAS:
        if not state.src.startswith(opening, state.pos):
            continue
        begins = state.pos + len(opening)
        ends = state.src.find(closing, begins, state.posMax)
        inner = state.src[begins:ends]
        if ends <= begins or not inner.strip() or any(sign in inner for pair in _FORMULAS for sign in pair):
            return False
        if not silent:
            token = state.push("formula", "", 0)
            token.content, token.markup = inner, opening
        state.pos = ends + len(closing)
        return True
    return False


class _Writer:
    """Writes tokens as HTML."""

    def __init__(self, sources: Sequence[Source], copy: str) -> None:
        self._sources = sources
        self._copy = copy

    def blocks(self, tokens: Sequence[Token]) -> str:
        """Return the blocks."""
        _mark_tasks(tokens)
        return "".join(map(self._block, tokens))

    def _block(self, token: Token) -> str:
        match token.type:
            case "inline":
                return self._inline(token.children or [])
            case "fence" | "code_block":
                return _code_block(token, self._copy)
            case "hr":
                return "<hr>"
            case "paragraph_open" | "paragraph_close" if token.hidden:
                return ""
            case _ if token.tag:
                return _tag(token)
            case _:
                return ""

    def _inline(self, tokens: Sequence[Token]) -> str:
        pieces: list[str] = []
        opened: list[tuple[str, int]] = []
        for token in tokens:
            match token.type:
                case "link_open":
                    opened.append((str(token.attrs.get("href", "")), len(pieces)))
                case "link_close":
                    address, at = opened.pop()
                    pieces[at:] = [_link(address, "".join(pieces[at:]))]
                case _:
                    pieces.append(self._word(token, is_in_link=bool(opened)))
        return "".join(pieces)

    def _word(self, token: Token, *, is_in_link: bool) -> str:
        match token.type:
            case "text":
                return escape(token.content) if is_in_link else self._text(token.content)
            case "code_inline":
                return f"<code>{escape(token.content)}</code>"
            case "image":
                address = str(token.attrs.get("src", ""))
                return escape(f"[image: {_host(address) or token.content or '?'}]")
            case "softbreak" | "hardbreak":
                return "<br>"
            case "formula":
                return _math(token.content, is_block=token.markup in ("$$", "\\["))
            case _ if token.tag:
                return _tag(token)
            case _:
                return escape(token.content)

    def _text(self, text: str) -> str:
        pieces, at = [], 0
        for marks in _FOOTNOTE.finditer(text):
            pieces += [_with_links(text[at : marks.start()]), _footnotes(marks[0], self._sources)]
            at = marks.end()
        return "".join([*pieces, _with_links(text[at:])])


def _mark_tasks(tokens: Sequence[Token]) -> None:
    """Replace the box of a task by a character, and mark its item: `- [x] done`."""
    for item, paragraph, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        words = inline.children[0] if inline.type == "inline" and inline.children else None
        if (item.type, paragraph.type) != ("list_item_open", "paragraph_open") or words is None:
            continue
        if words.type == "text" and (box := _TASK.match(words.content)):
            item.attrSet("class", "task")
            words.content = f"{'☐' if box[1] == ' ' else '☑'} {words.content[box.end() :]}"


@lru_cache(maxsize=256)
def _math(formula: str, *, is_block: bool) -> str:
    """Return a formula as MathML, or as code when it is invalid."""
    # Importing it takes a tenth of a second, and few answers hold a formula.
    from latex2mathml.converter import convert_to_element

    try:
        if len(formula) > _LONGEST_FORMULA:
            raise ValueError("too long")
        return _math_html(convert_to_element(formula, display="block" if is_block else "inline"))
    except Exception:
        # Whatever a model writes, it is shown; the library raises many kinds of errors.
        return f"<code>{escape(formula.strip())}</code>"


def _math_html(element: Element) -> str:
    if not _MATH_TAGS.fullmatch(element.tag):
        raise ValueError(element.tag)
    known = {name: value for name, value in element.attrib.items() if _MATH_ATTRIBUTES.fullmatch(name)}
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in known.items())
    # The library writes characters as entities.
    inside = escape(unescape(element.text or "")) + "".join(map(_math_html, element))
    return f"<{element.tag}{attributes}>{inside}</{element.tag}>"


def _tag(token: Token) -> str:
    if token.nesting == -1:
        return f"</{token.tag}>"
    attributes = ""
    if token.tag == "ol" and isinstance(start := token.attrs.get("start"), int):
        attributes = f' start="{start}"'
    elif token.tag == "li" and "class" in token.attrs:
        attributes = ' class="task"'
    elif token.tag in ("td", "th") and (style := str(token.attrs.get("style", ""))):
        attributes = f' align="{escape(style.removeprefix("text-align:"))}"'
    return f"<{token.tag}{attributes}>"


def _code_block(token: Token, copy: str) -> str:
    language = _LANGUAGE.match(token.info.strip())
    named = f' class="language-{language[0]}"' if language else ""
    code = _coloured(token.content, language[0] if language else "")
    button = f'<button type="button" class="copy-code" aria-label="{escape(copy)}" title="{escape(copy)}"></button>'
    return f'<div class="code">{button}<pre tabindex="0"><code{named}>{code}</code></pre></div>'


@lru_cache(maxsize=256)
def _coloured(code: str, language: str) -> str:
    """Return code with its tokens marked by kind (`k` keyword, `s` string, `c` comment), if Pygments knows the
    language."""
    if not language or len(code) > _MOST_COLOURED:
        return escape(code)
    from pygments import lexers, token, util  # type: ignore[import-untyped]  # it has no types of its own

    try:
        # Pygments would remove empty lines at both ends.
        lexer = lexers.get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except util.ClassNotFound:
        return escape(code)
    pieces = ((token.STANDARD_TYPES.get(kind, "")[:1], escape(words)) for kind, words in lexer.get_tokens(code))
    return "".join(f'<span class="{kind}">{words}</span>' if kind in _COLOURED else words for kind, words in pieces)


def _link(address: str, label: str) -> str:
    """Return a link that shows its whole address: a hidden one could leak what the model has learnt."""
    shown = escape(address)
    if not address.startswith(("http://", "https://")):
        return f"{label} ({shown})" if address and label != shown else label
    anchor = f'<a href="{shown}" {_LINK_ATTRIBUTES}>{shown}</a>'
    return anchor if label in ("", shown) else f"{label} ({anchor})"


def _with_links(text: str) -> str:
    pieces, at = [], 0
    for url in urls_in(text):
        begins = text.find(url, at)
        if begins < 0:
            continue
        pieces += [escape(text[at:begins]), _link(url, "")]
        at = begins + len(url)
    return "".join([*pieces, escape(text[at:])])


def _footnotes(marks: str, sources: Sequence[Source]) -> str:
    numbers = [int(one) for one in re.findall(r"\d+", marks)]
    known = [one for one in numbers if 0 < one <= len(sources) and sources[one - 1].url.startswith(("http:", "https:"))]
    if len(known) < len(numbers):
        return escape(marks)
    links = (
        f'<a href="{escape(sources[one - 1].url)}" {_LINK_ATTRIBUTES}>{str(one).translate(_RAISED)}</a>'
        for one in known
    )
    return "\u2009".join(links)


def _host(address: str) -> str:
    try:
        return urlsplit(address if "//" in address else f"//{address}").hostname or ""
    except ValueError:
        return ""
