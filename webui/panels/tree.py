"""The tree of a conversation's pictures: what was made from what, drawn, walked and acted upon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

import gradio as gr

from agent import Picture
from webui.cards import View
from webui.icons import icon
from webui.lineage import Kin, Lineage
from webui.panels.canvas import example_button
from webui.panels.flat import flat
from webui.receipts import changes_text
from webui.words import LANGUAGES, Words, load_words

# In pixels at full size: a picture with its line of words, the gaps between two, the edge around all.
WIDTH, HEIGHT = 148, 120
GAP_X, GAP_Y = 24, 36
EDGE = 16
_GUTTER = GAP_X // 2
_BEND = 10
_IMAGE_EDGE_PX = 320
_MOST_WORDS = 80
_BUS = "window.aivistaTree = { act: data => trigger('click', data) };"


@dataclass(frozen=True)
class TreePanel:
    """The components: what stands over the tree, what is asked or told, the tree, and what brings its clicks."""

    head: gr.HTML
    note: gr.HTML
    pane: gr.HTML
    bus: gr.HTML


def build_tree() -> TreePanel:
    """Return the pane, empty: it is filled when somebody looks at it."""
    with gr.Column(elem_id="tree"):
        head, note, pane = flat("tr-head"), flat("tr-note"), flat("tr-pane")
        bus = flat("tree-bus", js_on_load=_BUS)
    return TreePanel(head, note, pane, bus)


def head_html(words: Words) -> str:
    """Return the key to the lines, the zoom, and the menu of a picture."""
    lines = (("", "tree.made_from"), ("dashed", "tree.reference"), ("path", "tree.path"))
    legend = "".join(f'<li><i class="{kind}"></i>{escape(words(key))}</li>' for kind, key in lines)
    zooms = (("out", "tree.zoom_out", "zoom-out"), ("in", "tree.zoom_in", "zoom-in"), ("fit", "tree.fit", "maximize"))
    zoom = "".join(_icon_button(act, words(key), shape) for act, key, shape in zooms)
    items = (
        ("open", "tree.open", "image"),
        ("edit", "tree.edit", "pencil"),
        ("compare", "tree.compare", "square-split-horizontal"),
        ("delete", "tree.delete", "trash"),
    )
    menu = "".join(
        f'<button type="button" role="menuitem" tabindex="-1" data-tree="{act}">{icon(shape)}'
        f"<span>{escape(words(key))}</span></button>"
        for act, key, shape in items
    )
    pick, cancel = escape(words("tree.pick", handle="{handle}")), escape(words("tree.cancel"))
    return (
        f'<div class="tr-bar"><ul>{legend}</ul><span class="grow"></span>{zoom}</div>'
        f'<p class="tr-pick" role="status" data-pick="{pick}"><span></span><button type="button" class="b line" '
        f'data-tree="cancel">{cancel}</button></p><div id="tr-menu" role="menu" popover>{menu}</div>'
    )


def tree_html(view: View, lineage: Lineage, opened: str = "") -> str:
    """Return the tree of a conversation; `opened` is the handle of the picture that is looked at."""
    words = view.words
    conversation_id = escape(view.conversation_id)
    if not lineage.kin:
        return (
            f'<div class="tr-scroll" data-conversation="{conversation_id}"><div class="empty"><div class="empty-art">'
            f"{icon('git-fork', 26)}</div><h3>{escape(words('tree.empty'))}</h3>"
            f"<p>{escape(words('tree.empty_text'))}</p><div>{example_button(words)}</div></div></div>"
        )
    path = lineage.path_to(opened)
    first = opened if path else lineage.kin[-1].handle
    wide = 2 * EDGE + lineage.columns * (WIDTH + GAP_X) // 2 - GAP_X
    high = 2 * EDGE + lineage.rows * (HEIGHT + GAP_Y) - GAP_Y
    pictures = "".join(_picture(view, one, path, is_first=one.handle == first) for one in lineage.kin)
    return (
        f'<div class="tr-scroll" data-conversation="{conversation_id}" role="group" '
        f'aria-label="{escape(words("tree.label"))}" aria-describedby="tr-help">'
        f'<p id="tr-help" class="tr-help">{escape(words("tree.help"))}</p>'
        f'<div class="tr-plane" data-width="{wide}" data-height="{high}" style="width:{wide}px;height:{high}px">'
        f'<svg width="{wide}" height="{high}" aria-hidden="true">{_lines(lineage, path)}</svg>{pictures}</div></div>'
    )


def asking_html(words: Words, handle: str, others: int) -> str:
    """Return the question whether a picture and all made from it shall be deleted."""
    said = words.counted("tree.ask", others, handle=handle) if others else words("tree.ask_alone", handle=handle)
    return (
        f'<div class="tr-say" role="alertdialog" aria-label="{escape(said)}"><p>{escape(said)}</p>'
        f"{_button('sure', words('tree.confirm'), 'solid', handle)}"
        f"{_button('keep', words('tree.cancel'), 'line')}</div>"
    )


def told_html(words: Words, sentence: str, *, can_undo: bool = False) -> str:
    """Return what was done, with the way back where there is one."""
    undo = _button("undo", words("tree.undo"), "line") if can_undo else ""
    close = _icon_button("keep", words("tree.close"), "x")
    return f'<div class="tr-say" role="status"><p>{escape(sentence)}</p>{undo}{close}</div>'


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


def _picture(view: View, one: Kin, path: Sequence[str], *, is_first: bool) -> str:
    words, handle = view.words, escape(one.handle)
    left, top = _corner(one)
    told = words("tree.gone") if one.is_gone else label(words, one.picture)
    name = escape(words("tree.name", handle=one.handle, label=told))
    mark = " now" if path[-1:] == (one.handle,) else ""
    index = 0 if is_first else -1
    image = f'<img src="{view.url(one.handle, _IMAGE_EDGE_PX)}" alt="" loading="lazy" draggable="false">'
    shown = f'<i class="tr-gone">{icon("trash", 20)}</i>' if one.is_gone else image
    more = escape(words("tree.more", handle=one.handle))
    menu = (
        f'<button type="button" class="tr-more" data-tree="menu" aria-haspopup="menu" tabindex="{index}" '
        f'aria-label="{more}" title="{more}">{icon("ellipsis")}</button>'
    )
    return (
        f'<div class="tr-node{mark}{" gone" if one.is_gone else ""}" data-handle="{handle}" data-row="{one.row}" '
        f'data-column="{one.column}" data-parents="{escape(" ".join((*filter(None, (one.base,)), *one.references)))}" '
        f'style="left:{left}px;top:{top}px"><button type="button" class="tr-open" data-tree="open" '
        f'tabindex="{index}" aria-label="{name}" title="{name}"{" aria-current=true" if mark else ""}'
        f"{' disabled' if one.is_gone else ''}>{shown}<span><b>{handle}</b> {escape(told)}</span></button>"
        f"{'' if one.is_gone else menu}</div>"
    )


def _corner(one: Kin) -> tuple[int, int]:
    return EDGE + one.column * (WIDTH + GAP_X) // 2, EDGE + one.row * (HEIGHT + GAP_Y)


def _lines(lineage: Lineage, path: Sequence[str]) -> str:
    """Return the lines, the path to the open picture last, so that it lies over the others."""
    plain: list[str] = []
    thick: list[str] = []
    for one in lineage.kin:
        base = lineage.find(one.base)
        if base is not None:
            line = f'd="{_made_from(base, one)}"/>'
            if one.handle in path:
                thick.append(f'<path class="path" {line}')
            else:
                plain.append(f"<path {line}")
        leaned = (lineage.find(handle) for handle in one.references)
        plain += [f'<path class="dashed" d="{_leaned_on(other, one)}"/>' for other in leaned if other is not None]
    return "".join((*plain, *thick))


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


def _button(act: str, text: str, style: str, handle: str = "") -> str:
    return (
        f'<button type="button" class="b {style}" data-tree="{act}" data-arg="{escape(handle)}">'
        f"<span>{escape(text)}</span></button>"
    )


def _icon_button(act: str, text: str, shape: str) -> str:
    name = escape(text)
    return (
        f'<button type="button" class="b icon" data-tree="{act}" aria-label="{name}" title="{name}">{icon(shape)}'
        "</button>"
    )
