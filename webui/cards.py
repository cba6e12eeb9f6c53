"""Trusted pieces of HTML in the thread. Only these functions, the panels and the templates write `data-act`.

Model and user text never becomes HTML here: it is escaped, or goes to the page as Markdown, whose sanitiser drops
every `data-*` attribute, so that words from a model cannot make a working button.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote, urlsplit

from agent import ErrorInfo, ImagePart, Picture, Source
from webui.icons import icon
from webui.offers import Offer
from webui.words import Words

THREAD_EDGE_PX = 1344
THUMB_EDGE_PX = 192


@dataclass(frozen=True)
class View:
    """Who looks, at what: the words of their language, the conversation whose pictures are shown, and what the image
    models offer that serve them. `prices` are what a button may cost at most: `turn` for a message sent once more, and
    by its id for one picture of a model's; without any, nothing costs anything, or nobody knows what."""

    words: Words
    conversation_id: str
    offers: tuple[Offer, ...] = ()
    prices: Mapping[str, str] = field(default_factory=dict)

    @property
    def turn_price(self) -> str:
        """What a message that is sent once more may cost at most."""
        return self.prices.get("turn", "")

    def url(self, handle: str, edge_px: int | None = None, *, is_download: bool = False, kind: str = "") -> str:
        """Return the address of a picture on our own route; with `edge_px` of a preview that fits into that square.

        `kind` is that of a download: `clean`, `original`, or with its recipe.
        """
        query = f"?size={edge_px}" if edge_px else ""
        if is_download:
            query = f"?download=1&{kind}=1" if kind else "?download=1"
        return f"media/{quote(self.conversation_id)}/{quote(handle.lstrip('#'))}{query}"

    def unrecorded_url(self, digest: str) -> str:
        """Return the address of a picture that the full disk takes no record of."""
        return f"media/{quote(self.conversation_id)}/{quote(digest)}?unrecorded=1"

    def preview_url(self, handle: str) -> str:
        """Return the address of a picture as sliders would make it; their amounts go into the query."""
        return f"aivista/preview/{quote(self.conversation_id)}/{quote(handle.lstrip('#'))}"

    def difference_url(self, first: str, second: str) -> str:
        """Return the address of where two pictures differ."""
        pair = f"{quote(first.lstrip('#'))}/{quote(second.lstrip('#'))}"
        return f"aivista/difference/{quote(self.conversation_id)}/{pair}"

    def report_url(self, turn_id: str) -> str:
        """Return the address of a turn's debug report."""
        return f"aivista/report/{quote(self.conversation_id)}/{quote(turn_id)}.json"


def button(
    act: str,
    label: str,
    icon_name: str = "",
    style: str = "",
    arg: str = "",
    *,
    bare: bool = False,
    short: str = "",
    is_off: bool = False,
    price: str = "",
) -> str:
    """Return a button that sends `act` and `arg` to the page's one click handler.

    `bare` shows the icon alone, `short` is the label on a phone, one that `is_off` cannot be pressed yet, and `price`
    is what pressing it may cost at most.
    """
    off = " disabled" if is_off else ""
    named = f' aria-label="{escape(label)}" title="{escape(label)}"' if bare else ""
    brief = f' data-short="{escape(short)}"' if short not in ("", label) else ""
    text = "" if bare else f"<span{brief}>{escape(label)}</span>"
    return (
        f'<button type="button" class="b {style}" data-act="{act}" data-arg="{escape(arg)}"{named}{off}>'
        f"{icon(icon_name) if icon_name else ''}{text}{f'<small>≤ {escape(price)}</small>' if price else ''}</button>"
    )


def tag(handle: str, note: str = "", *, is_on_picture: bool = True) -> str:
    """Return the plate with a picture's handle, for the corner of the picture or for a line of words."""
    more = f" <i>{escape(note)}</i>" if note else ""
    return f'<span class="tag{" on-pic" if is_on_picture else ""}">{escape(handle)}{more}</span>'


def thumbs(view: View, images: Sequence[ImagePart | str]) -> str:
    """Return the small pictures above the person's words: uploads, or handles of earlier pictures."""
    cells = []
    for image in images:
        handle = image if isinstance(image, str) else image.handle or ""
        alt = view.words("picture.upload_alt", handle=handle)
        name = view.words("action.open", handle=handle)
        cells.append(
            f'<button type="button" class="ref" data-act="view" data-arg="{escape(handle)}" title="{escape(name)}">'
            f'<img src="{view.url(handle, THUMB_EDGE_PX)}" alt="{escape(alt)}" width="72" height="72" loading="lazy">'
            f"{tag(handle)}</button>"
        )
    return f'<div class="refs">{"".join(cells)}</div>'


def pending_frame(words: Words, width: int, height: int) -> str:
    """Return the empty frame a picture will arrive in, of its shape, so that its arrival moves nothing."""
    label = escape(words("picture.pending"))
    return (
        f'<figure class="pic" style="--shape:{(width or 1) / (height or 1):.4f}">'
        f'<div class="frame pending" role="img" aria-label="{label}" '
        f'style="aspect-ratio:{width or 1}/{height or 1}"></div></figure>'
    )


def failed_frame(words: Words, number: int, error: ErrorInfo) -> str:
    """Return the place of a picture that could not be made, with the reason."""
    name = escape(words("failure.picture", number=number))
    return (
        f'<div class="pic none-made" role="alert">{icon("circle-alert", 17)}<p><b>{name}</b> '
        f"{escape(words.error(error))}</p></div>"
    )


def picture_alt(words: Words, picture: Picture) -> str:
    """Return what a screen reader says of the picture."""
    text = picture.alt or (picture.receipt.user_text if picture.receipt else "")
    if not text:
        return words("picture.upload_alt", handle=picture.handle)
    return words("picture.alt", handle=picture.handle, text=" ".join(text.split())[:240])


@dataclass(frozen=True)
class Place:
    """Where a picture stands: alone, or in a contact sheet, where the words of one (`is_current`) are seen at a time
    and of exactly two both are compared (`pair` names them, as a click does)."""

    is_in_sheet: bool = False
    is_current: bool = True
    pair: str = ""


ALONE = Place()
# How many columns a contact sheet has, on a wide page and on a phone; the most is for more pictures, too.
_COLUMNS = {2: (2, 2), 3: (3, 3), 4: (2, 2), 5: (3, 3), 6: (3, 3), 7: (4, 2), 8: (4, 2)}


def gallery(view: View, figures: Sequence[str], width: int = 1, height: int = 1) -> str:
    """Return the pictures of one request: one as wide as the thread, several as a contact sheet.

    `width` and `height` are the first one's: a sheet has equal frames, and a picture of another shape is fitted in.
    """
    if len(figures) < 2:
        return f'<div class="pics">{"".join(figures)}</div>'
    across, on_phone = _COLUMNS.get(len(figures), _COLUMNS[8])
    below, below_on_phone = (-(-len(figures) // columns) + 1 for columns in (across, on_phone))
    return (
        f'<div class="pics sheet" role="group" aria-label="{escape(view.words("top.pictures", count=len(figures)))}" '
        f'style="--ar:{width or 1}/{height or 1};--across:{across};--below:{below};--phone-across:{on_phone};'
        f'--phone-below:{below_on_phone}">{"".join(figures)}</div>'
    )


def deleted(words: Words, handles: Sequence[str]) -> str:
    """Return what stands where pictures were that have been deleted since."""
    said = words.counted("action.deleted", len(handles), names=", ".join(handles))
    return f'<p class="gone-pic">{icon("image-off", 15)}<span>{escape(said)}</span></p>'


def source_links(sources: Sequence[Source]) -> str:
    """Return links to the pages of a search, each with its number; anything but http(s) is left as words."""
    numbered = enumerate(sources, 1)
    return " · ".join(f"<sup>{number}</sup>{_link(source.title, source.url)}" for number, source in numbered)


def _link(title: str, address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return escape(title or address)
    if parts.scheme not in ("http", "https"):
        return escape(title or address)
    return (
        f'<a href="{escape(address)}" target="_blank" rel="noopener noreferrer nofollow">'
        f"{escape(title or parts.hostname or address)}</a>"
    )
