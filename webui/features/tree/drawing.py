"""Where the pictures and the lines of the tree stand on their plane, and what is said of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from agent import Picture
from webui.features.tree.lineage import Kin, Lineage
from webui.features.viewer.receipt import changes_text
from webui.view import View
from webui.words import LANGUAGES, Words, load_words

# In pixels at full size: a picture with its line of words, the gaps between two, the edge around all.
WIDTH, HEIGHT = 148, 120
GAP_X, GAP_Y = 24, 36
EDGE = 16
_GUTTER = GAP_X // 2
_BEND = 10
_IMAGE_EDGE_PX = 320
_MOST_WORDS = 80


class Node(NamedTuple):
    """A picture on the plane: its place in pixels, its words, and its preview unless it is gone."""

    kin: Kin
    left: int
    top: int
    label: str
    parents: str
    preview: str
    is_now: bool
    is_first: bool


def drawn(view: View, tree: Lineage, opened: str) -> dict[str, Any]:
    """Return the plane, its lines and its pictures; `opened` is the handle of the picture that is looked at."""
    path = tree.path_to(opened)
    first = opened if path else tree.kin[-1].handle if tree.kin else ""
    return {
        "width": 2 * EDGE + tree.columns * (WIDTH + GAP_X) // 2 - GAP_X,
        "height": 2 * EDGE + tree.rows * (HEIGHT + GAP_Y) - GAP_Y,
        "lines": _lines(tree, path),
        "nodes": [_node(view, one, path, first) for one in tree.kin],
    }


def _node(view: View, one: Kin, path: Sequence[str], first: str) -> Node:
    return Node(
        one,
        *_corner(one),
        label=view.words("tree.gone") if one.is_gone else label(view.words, one.picture),
        parents=" ".join((*filter(None, (one.base,)), *one.references)),
        preview="" if one.is_gone else view.url(one.handle, _IMAGE_EDGE_PX),
        is_now=path[-1:] == (one.handle,),
        is_first=one.handle == first,
    )


def label(words: Words, picture: Picture) -> str:
    """Return in a few words how the picture came about: by whom where it was brought, else what was wished."""
    receipt = picture.receipt
    if receipt is None:
        return words("tree.uploaded")
    said = " ".join(receipt.user_text.split())[:_MOST_WORDS]
    if receipt.changes:
        return changes_text(words, receipt.changes)
    match picture.edit.kind if picture.edit else None:
        case "mask":
            return words("tree.masked", words=said) if said else words("tree.mask")
        case "expansion":
            return words("tree.expanded")
        case "kept_part":
            return words("tree.kept_part")
        case None:
            return _ours(words, said) or said or receipt.model_label


def _ours(words: Words, said: str) -> str:
    """Return a word for what the page itself said for the person, in whichever language; empty for their own words."""
    for one in map(load_words, LANGUAGES):
        if said == one("panel.vary_said"):
            return words("tree.vary")
        if said == one("panel.regenerate_said"):
            return words("tree.again")
    found = next((match for match in (pattern.fullmatch(said) for pattern in _restyling()) if match), None)
    return words("tree.restyled", style=found[1]) if found else ""


@cache
def _restyling() -> Sequence[re.Pattern[str]]:
    """Return how the page asks for a picture in another style, in each language."""
    templates = (load_words(language)("styles.try_said", title="\0") for language in LANGUAGES)
    return tuple(re.compile(re.escape(one).replace(re.escape("\0"), "(.+)")) for one in templates)


def _corner(one: Kin) -> tuple[int, int]:
    return EDGE + one.column * (WIDTH + GAP_X) // 2, EDGE + one.row * (HEIGHT + GAP_Y)


def _lines(tree: Lineage, path: Sequence[str]) -> list[tuple[str, str]]:
    """Return the kind and the path of each line, those to the open picture last, so that they lie over the others."""
    plain: list[tuple[str, str]] = []
    thick: list[tuple[str, str]] = []
    for one in tree.kin:
        base = tree.find(one.base)
        if base is not None:
            kind, lines = ("path", thick) if one.handle in path else ("", plain)
            lines.append((kind, _made_from(base, one)))
        leaned = (tree.find(handle) for handle in one.references)
        plain += [("dashed", _leaned_on(other, one)) for other in leaned if other is not None]
    return [*plain, *thick]


def _made_from(base: Kin, one: Kin) -> str:
    """Return the line from the foot of one picture to the head of another: into its column, then straight down."""
    (left, top), (to_left, to_top) = _corner(base), _corner(one)
    x, y, to_x = left + WIDTH // 2, top + HEIGHT, to_left + WIDTH // 2
    middle = y + GAP_Y // 2
    return f"M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {y + GAP_Y}V{to_top}"


def _leaned_on(other: Kin, one: Kin) -> str:
    """Return the line from the foot of a reference through the gutter beside a picture into its side."""
    (left, top), (to_left, to_top) = _corner(other), _corner(one)
    x, y = left + WIDTH // 2, top + HEIGHT
    is_right = left >= to_left
    side = to_left + WIDTH if is_right else to_left
    gutter = side + _GUTTER if is_right else side - _GUTTER
    middle, end = y + GAP_Y // 2, to_top + HEIGHT // 2
    return f"M{x} {y}C{x} {middle} {gutter} {middle} {gutter} {y + GAP_Y}V{end - _BEND}Q{gutter} {end} {side} {end}"
