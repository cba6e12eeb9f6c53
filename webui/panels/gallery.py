"""The gallery on the stage: every picture there is, found, chosen, and put to use.

Python writes the frame once and the cells page by page (`webui.gallery_routes`); assets/gallery.js fills the one with
the others, and never draws a cell twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

import gradio as gr

from agent import MAX_TAG_CHARACTERS, GalleryFoundBy, GalleryItem, GalleryMatch, GalleryPlace, Picture
from webui.cards import View, picture_alt
from webui.icons import icon
from webui.panels.canvas import example_button
from webui.panels.flat import flat
from webui.shell.templates import render
from webui.words import Words

# Twice as many pixels as a cell usually has on the page.
CELL_EDGE_PX = 384
WIDE_EDGE_PX = 640
# Pictures that are longer still are shown on a ground of this shape: no row holds a strip well.
MOST_RATIO = 4
LEAST_RATIO = 0.5
_LEAD = 10
LONGEST_QUERY = 200
_BUS = "window.aivistaGalleryBus = { act: data => trigger('click', data) };"
# A picture's mark and star are drawn as masks: thousands of cells need no drawing of their own then.
_MASKS = {"check": "check", "star": "star", "full": "star"}
_PLACES: dict[GalleryPlace, str] = {
    "tag": "gallery.place_tag",
    "title": "gallery.place_title",
    "words": "gallery.place_words",
    "prompt": "gallery.place_prompt",
    "alt": "gallery.place_alt",
    "lettering": "gallery.place_lettering",
    "style": "gallery.place_style",
    "model": "gallery.place_model",
}


@dataclass(frozen=True)
class GalleryPanel:
    """The components of the gallery: the pane, and `bus`, which brings the clicks that change the rest of the page."""

    pane: gr.HTML
    bus: gr.HTML


def build_gallery() -> GalleryPanel:
    """Return the gallery, empty until a visitor is known."""
    return GalleryPanel(flat("gallery"), flat("gal-bus", js_on_load=_BUS))


def gallery_html(words: Words) -> str:
    """Return the pane without a picture: they come when it is first looked at."""
    masks = ";".join(f"--gal-{name}:url({_drawn(shape, is_full=name == 'full')})" for name, shape in _MASKS.items())
    return (
        f'<div class="gal" style="{escape(masks)}"{_sentences(words)}>{_head(words)}{_chips(words)}'
        '<div class="gal-on" role="group" hidden></div>'
        '<p class="gal-count" role="status"></p>'
        f'<div class="gal-scroll"><div class="gal-grid" role="group" aria-label="{escape(words("gallery.label"))}">'
        f'</div><div class="gal-end"></div>{_empty(words)}{_nothing(words)}</div>'
        f'<div class="gal-foot"><div class="gal-said" role="status"></div>{_bar(words)}</div>'
        f"{_dates(words)}{_more(words)}{_tags(words)}{_kinds(words)}</div>"
    )


def cells_html(words: Words, items: Sequence[GalleryItem]) -> str:
    """Return the cells of a page, one a picture, with nothing in them that is not escaped."""
    return render("gallery/cells.html", words, cells=[_cell(words, item) for item in items])


def found_why(words: Words, match: GalleryMatch) -> str:
    """Return why a search found a picture, as a phrase; empty where nothing can be said."""
    if match.similarity is not None:
        return words("gallery.alike", percent=round(match.similarity * 100))
    if match.place is not None:
        excerpt = " ".join(match.excerpt.split())
        return words("gallery.why", place=words(_PLACES[match.place]), excerpt=excerpt)
    return words("gallery.why_meaning") if GalleryFoundBy.MEANING in match.found_by else ""


def _cell(words: Words, item: GalleryItem) -> dict[str, object]:
    picture, title = item.picture, item.conversation_title or words("top.untitled")
    width, height = picture.image.width or 1, picture.image.height or 1
    rejected = _why_rejected(words, picture) if item.is_rejected else ""
    why = found_why(words, item.match) if item.match else ""
    name = words("gallery.of", alt=picture_alt(words, picture), title=title)
    edge_px = WIDE_EDGE_PX if width > height else CELL_EDGE_PX
    return {
        "item": item,
        "handle": picture.handle,
        "title": title,
        "name": ". ".join(part for part in (name, why, rejected) if part),
        "address": View(words, item.conversation_id).url(picture.handle, edge_px),
        "width": width,
        "height": height,
        "ratio": round(min(MOST_RATIO, max(LEAST_RATIO, width / height)), 4),
        "rejected": rejected,
        "caption": _caption(words, item),
    }


def _why_rejected(words: Words, picture: Picture) -> str:
    review = picture.review
    missing = [one.wish for one in review.checklist if one.is_met is False] if review else []
    why = (review.feedback if review else "") or words("did.join").join(missing)
    return words("gallery.rejected_why", why=" ".join(why.split())) if why else words("gallery.rejected_title")


def _caption(words: Words, item: GalleryItem) -> list[tuple[str, bool]]:
    """Return how the picture came about, or why it was found: pieces of text, and whether they are marked."""
    picture, match = item.picture, item.match
    if match is not None and match.similarity is not None:
        return [(words("gallery.alike", percent=round(match.similarity * 100)), False)]
    if match is not None and match.marks:
        return _marked(match)
    asked = (picture.receipt.user_text if picture.receipt else "") or picture.alt
    return [(" ".join(asked.split()) or words("gallery.uploaded"), False)]


def _marked(match: GalleryMatch) -> list[tuple[str, bool]]:
    """Return the excerpt from shortly before its first mark: a narrow picture leaves no room for more."""
    excerpt, first = match.excerpt, match.marks[0][0]
    at = max(0, first - _LEAD)
    at = excerpt.find(" ", at, first) + 1 or at if at else 0
    pieces = [("…", False)] if at else []
    for start, end in match.marks:
        pieces += [(excerpt[at:start], False), (excerpt[start:end], True)]
        at = end
    return [*pieces, (excerpt[at:], False)]


def _drawn(shape: str, *, is_full: bool) -> str:
    svg = icon(shape, 24).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    if is_full:
        svg = svg.replace('fill="none"', 'fill="currentColor"', 1)
    return f"'data:image/svg+xml,{quote(svg)}'"


def _sentences(words: Words) -> str:
    """Return what the page's script says by itself, as attributes; `#` stands for a number, `*` for a name."""
    said = {
        "label": words("gallery.label"),
        "today": words("gallery.today"),
        "yesterday": words("gallery.yesterday"),
        "newest": words("gallery.newest"),
        "best": words("gallery.best"),
        "found": words("gallery.found", count="#"),
        "found-one": words("gallery.found_one"),
        "reading": words("gallery.reading"),
        "chosen": words("gallery.chosen", count="#"),
        "similar": words("gallery.similar_to", handle="*"),
        "between": words("gallery.between", first="*", last="*"),
        "since": words("gallery.since", first="*"),
        "until": words("gallery.until", last="*"),
        "remove": words("gallery.remove_filter", name="*"),
        "failed": words("gallery.failed"),
        "retry": words("action.retry"),
        "undo": words("gallery.undo"),
        "zipping": words("gallery.zipping"),
        "most": words("gallery.most_references"),
        "kept": words("gallery.kept"),
        "star": words("gallery.star"),
        "unstar": words("gallery.unstar"),
        "close": words("action.close"),
        "language": words.language,
    }
    return "".join(f' data-{name}="{escape(sentence)}"' for name, sentence in said.items())


def _head(words: Words) -> str:
    find, more = escape(words("gallery.find")), escape(words("gallery.more_filters"))
    return (
        f'<div class="gal-head" role="search"><label class="gal-find">{icon("search")}'
        f'<input id="gal-find" type="search" maxlength="{LONGEST_QUERY}" placeholder="{find}" aria-label="{find}" '
        'autocomplete="off" spellcheck="false" enterkeyhint="search"></label>'
        f'<button type="button" class="b line gal-order" popovertarget="gal-dates" aria-haspopup="menu" '
        f'title="{escape(words("gallery.order"))}"><span>{escape(words("gallery.newest"))}</span>'
        f"{icon('chevron-down', 14)}</button>"
        f'<button type="button" class="b line icon gal-sift" popovertarget="gal-more" aria-haspopup="dialog" '
        f'aria-label="{more}" title="{more}">{icon("sliders-horizontal")}<small></small></button></div>'
    )


def _chips(words: Words) -> str:
    chips = {
        "all": words("gallery.all"),
        "here": words("gallery.here"),
        "uploaded": words("gallery.uploaded"),
        "edited": words("gallery.edited"),
        "starred": words("gallery.starred"),
    }
    cells = "".join(
        f'<button type="button" class="chip toggle" data-gal="chip" data-value="{name}" '
        f'aria-pressed="{"true" if name == "all" else "false"}">{escape(label)} <small></small></button>'
        for name, label in chips.items()
    )
    return f'<div class="gal-chips" role="group" aria-label="{escape(words("gallery.filters"))}">{cells}</div>'


def _dates(words: Words) -> str:
    times = {
        "": words("gallery.any_time"),
        "1": words("gallery.today"),
        "7": words("gallery.week"),
        "30": words("gallery.month"),
    }
    items = "".join(
        f'<button type="button" role="menuitemradio" data-gal="when" data-value="{days}" '
        f'aria-checked="{"true" if not days else "false"}"><span>{escape(label)}</span></button>'
        for days, label in times.items()
    )
    groups = "".join(
        f'<button type="button" role="menuitemradio" data-gal="group" data-value="{name}" '
        f'aria-checked="false"><span>{escape(words(f"gallery.by_{name}"))}</span></button>'
        for name in ("day", "conversation")
    )
    return (
        f'<div id="gal-dates" class="gal-pop gal-menu" popover role="menu" '
        f'aria-label="{escape(words("gallery.order"))}"><div class="gal-groups" role="group" '
        f'aria-label="{escape(words("gallery.groups"))}">{groups}</div>{items}<div class="gal-months" role="group" '
        f'aria-label="{escape(words("gallery.months"))}"></div></div>'
    )


def _more(words: Words) -> str:
    groups = {
        "model": words("gallery.models"),
        "shape": words("gallery.shapes"),
        "tag": words("gallery.tags"),
    }
    sections = "".join(
        f'<section data-facet="{name}" hidden><h3>{escape(label)}</h3><div class="gal-options" role="group" '
        f'aria-label="{escape(label)}"></div></section>'
        for name, label in groups.items()
    )
    days = "".join(
        f'<label><span>{escape(words(key))}</span><input type="date" data-day="{name}"></label>'
        for name, key in (("from", "gallery.day_from"), ("to", "gallery.day_to"))
    )
    title = escape(words("gallery.more_filters"))
    return (
        f'<div id="gal-more" class="gal-pop" popover role="dialog" aria-label="{title}">{sections}'
        f'<section><h3>{escape(words("gallery.reviewed"))}</h3><div class="gal-options"><button type="button" '
        'class="chip toggle" data-gal="option" data-facet="kept" data-value="1" aria-pressed="false">'
        f"{escape(words('gallery.kept'))}</button></div></section>"
        f'<section><h3>{escape(words("gallery.when"))}</h3><div class="gal-days">{days}</div></section>'
        f"<footer>{_button('clear', words('gallery.clear'), '', 'line')}"
        f'<button type="button" class="b solid" popovertarget="gal-more" popovertargetaction="hide">'
        f"{escape(words('gallery.done'))}</button></footer></div>"
    )


def _tags(words: Words) -> str:
    label = escape(words("gallery.tag_name"))
    return (
        f'<div id="gal-tags" class="gal-pop" popover role="dialog" aria-label="{escape(words("gallery.tag_title"))}">'
        f'<form class="gal-tagging" autocomplete="off"><input name="tag" maxlength="{MAX_TAG_CHARACTERS}" '
        f'placeholder="{label}" aria-label="{label}"><button type="submit" class="b solid">'
        f'{escape(words("gallery.tag_add"))}</button></form><div class="gal-options" role="group" '
        f'aria-label="{escape(words("gallery.tags"))}"></div></div>'
    )


def _bar(words: Words) -> str:
    copies = words("gallery.copies_short")
    return (
        f'<div class="gal-bar" role="toolbar" aria-label="{escape(words("gallery.bar"))}" hidden><b></b>'
        + _button("similar", words("gallery.similar"), "scan-search", "line", words("gallery.similar_short"))
        + _button("compare", words("compare.action"), "square-split-horizontal", "line")
        + _button("reference", words("gallery.references"), "image", "line", words("action.reference_short"))
        + _button("zip", words("action.download"), "download", "mini")
        + _button("", words("action.download_more"), "chevron-down", "mini gal-copies", copies, controls="gal-kinds")
        + _button("star", words("gallery.star"), "star", "mini")
        + _button("tag", words("gallery.tag"), "tag", "mini", controls="gal-tags")
        + _button("delete", words("gallery.delete"), "trash", "mini")
        + _button("drop", words("gallery.drop"), "x", "icon gal-drop")
        + "</div>"
    )


def _kinds(words: Words) -> str:
    """Return the other ways to take the pictures away."""
    label, why = escape(words("action.clean")), escape(words("action.clean_title"))
    return (
        f'<div id="gal-kinds" class="gal-pop gal-menu" popover role="menu" '
        f'aria-label="{escape(words("action.download_more"))}"><button type="button" role="menuitem" '
        f'data-gal="zip_clean"><span>{label}<small>{why}</small></span></button></div>'
    )


def _empty(words: Words) -> str:
    return (
        f'<div class="gal-none empty" hidden><div class="empty-art">{icon("layout-grid", 26)}</div>'
        f"<h3>{escape(words('gallery.empty'))}</h3><p>{escape(words('gallery.empty_text'))}</p>"
        f"<div>{example_button(words)}</div></div>"
    )


def _nothing(words: Words) -> str:
    return (
        f'<div class="gal-nothing empty" hidden><div class="empty-art">{icon("search", 26)}</div>'
        f"<h3>{escape(words('gallery.nothing'))}</h3><p>{escape(words('gallery.nothing_text'))}</p>"
        f"<div>{_button('clear', words('gallery.clear'), '', 'line')}</div></div>"
    )


def _button(do: str, label: str, icon_name: str, look: str, short: str = "", controls: str = "") -> str:
    """Return a button of a row; its words are hidden where the row is narrow. One that `controls` a popover opens it,
    and does nothing else where `do` is empty."""
    shape = icon(icon_name) if icon_name else ""
    act = f' data-gal="{do}"' if do else ""
    popover = f' popovertarget="{controls}"' if controls else ""
    shown = "" if look.startswith("icon") else f'<span data-short="{escape(short or label)}">{escape(label)}</span>'
    return (
        f'<button type="button" class="b {look}"{act} aria-label="{escape(label)}" title="{escape(label)}"{popover}>'
        f"{shape}{shown}</button>"
    )
