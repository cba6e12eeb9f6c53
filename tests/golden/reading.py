"""A piece of HTML as somebody reads it who sees no layout: its words, what can be pressed, filled in, opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeAlias

# The package brings no types.
html: Any = import_module("lxml.html")
Element: TypeAlias = Any
_INLINE = frozenset(
    "a b button code dd del dt em i ins kbd label mark small span strong sub sup time var".split()  # noqa: SIM905
)
_UNREAD = frozenset(("style", "svg", "template"))
_SENTENCE = re.compile(r"[{ \u4e00-\u9fff]")
# What waits in a template and is seen once it is opened.
_FOLDED = r"""(?<=class="flat">)<template>|<template id="pt-folded">|</template>(?=</div>|\s*<p id="pt-said")"""
_FIELDS = frozenset(("input", "select", "textarea"))


def read(text: str) -> list[str]:
    """Return what stands in a piece of HTML, a line for each thing, indented below what it belongs to."""
    if not text.strip():
        return []
    (root,) = html.fragments_fromstring(f"<div>{text}</div>")
    return list(_lines(root, 0))


def elements(text: str, path: str) -> list[Element]:
    """Return the elements of a piece of HTML that an XPath finds."""
    found: list[Element] = html.fragment_fromstring(text, create_parent="div").xpath(path)
    return found


def written(element: Element) -> str:
    """Return an element as HTML."""
    return str(html.tostring(element, encoding="unicode", with_tail=False))


def boxes(document: str) -> dict[str, str]:
    """Return the HTML of the parts of a page as it comes, by element's id."""
    found = elements(re.sub(_FOLDED, "", document), "//div[@class='flat']")
    return {one.get("id"): (one.text or "") + "".join(map(written, one)) for one in found}


def is_markup(text: str) -> bool:
    """Return whether a value of the page is a piece of HTML."""
    return text.lstrip().startswith("<")


def _lines(element: Element, depth: int) -> Iterator[str]:
    """Yield the lines of an element's own: neighbouring words are one line."""
    said: list[str] = [element.text or ""]
    for child in element:
        block = [] if not isinstance(child.tag, str) or child.tag in _UNREAD else list(_of(child, depth))
        is_inline = isinstance(child.tag, str) and child.tag in _INLINE and len(block) <= 1
        if child.tag == "dt":
            yield from _words(said, depth)
            said = []
        if is_inline or not block:
            said += [f" {line.strip()} " for line in block]
        else:
            yield from _words(said, depth)
            yield from block
            said = []
        said.append(child.tail or "")
    yield from _words(said, depth)


def _words(said: list[str], depth: int) -> Iterator[str]:
    if words := " ".join("".join(said).split()):
        yield "  " * depth + words


def _of(element: Element, depth: int) -> Iterator[str]:
    indent = "  " * depth
    match element.tag:
        case "button" | "summary":
            yield f"{indent}[{_name(element)}]{_state(element)}"
        case "dt":
            yield f"{indent}{_text(element)}:"
        case "a":
            yield f"{indent}<{_name(element)}>({element.get('href', '')}){_state(element)}"
        case "img":
            yield f"{indent}(picture: {element.get('alt', '')})"
        case "input" | "textarea" if element.get("type") in {"file", "hidden"} or element.get("hidden") is not None:
            return
        case "input" | "textarea" | "progress":
            value = (element.text or "").strip() if element.tag == "textarea" else element.get("value", "")
            ticked = " ticked" if element.get("checked") is not None else ""
            bounds = f" of {element.get('min')} to {element.get('max')}" if element.get("type") == "range" else ""
            yield f"{indent}{{{_name(element)}: {value or ''}{bounds}}}{ticked}{_state(element)}"
        case "select":
            chosen = [f"*{_text(one)}" if one.get("selected") is not None else _text(one) for one in element]
            yield f"{indent}{{{_name(element)}: {' | '.join(chosen)}}}{_state(element)}"
        case "iframe":
            yield f"{indent}(frame: {element.get('title', '')}, may {element.get('sandbox')}) {element.get('srcdoc')}"
        case _:
            yield from _group(element, depth)


def _group(element: Element, depth: int) -> Iterator[str]:
    """Yield an element's lines, below a line for what it is if that is said to who does not see it."""
    name = element.get("aria-label") or element.get("title") or ""
    kind = element.get("role") or element.get("aria-live") or ("details" if element.tag == "details" else "")
    is_open = " open" if element.tag == "details" and element.get("open") is not None else ""
    hidden = " hidden" if element.get("hidden") is not None else ""
    # What a script says when the time comes.
    said = [text for name, text in sorted(element.items()) if name.startswith("data-") and _SENTENCE.search(text)]
    yield from (f"{'  ' * depth}~ {text}" for text in said)
    if not (name or kind or hidden):
        yield from _lines(element, depth + (element.tag in {"ul", "ol", "dl"}))
        return
    within = list(_lines(element, depth + 1))
    if within or name:
        yield "  " * depth + f"- {kind or element.tag}{is_open}{hidden}{': ' + name if name else ''}"
    yield from within


def _name(element: Element) -> str:
    """Return what it is called: by its label for who does not see it, else by its words."""
    if element.tag in {"button", "summary", "a"}:
        return element.get("aria-label") or _text(element) or element.get("title") or "NO NAME"
    around = next(element.iterancestors("label"), None)
    beside = element.getroottree().xpath("//label[@for=$id]", id=element.get("id", ""))
    labels = [_text(one) for one in ([around] if around is not None else beside)]
    return element.get("aria-label") or " ".join(labels) or element.get("placeholder") or "NO NAME"


def _text(element: Element) -> str:
    pieces = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _UNREAD | _FIELDS:
            pieces.append(child.get("alt", "") if child.tag == "img" else f" {_text(child)} ")
        pieces.append(child.tail or "")
    return " ".join("".join(pieces).split())


def _state(element: Element) -> str:
    title = element.get("title")
    told = [f"off: {title or ''}" if title else "off"] if element.get("disabled") is not None else []
    told += [title] if title and not told and title != _name(element) else []
    told += ["pressed"] if element.get("aria-pressed") == "true" else []
    told += ["current"] if element.get("aria-current") not in {None, "false"} else []
    return f" ({'; '.join(told)})" if told else ""
