"""Who looks at what: the visitor's words, addresses of a conversation's pictures, and what models offer for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from markupsafe import Markup

from agent import Catalogue, ErrorInfo, KeyDiagnosis, ModelRole, Picture
from webui.shell.templates import render
from webui.words import Words

# The longer edge of a picture in the thread, on a fine screen, and of a thumbnail.
THREAD_EDGE_PX = 1344
_THUMBNAIL_EDGE_PX = 192
_ROLES = {"flash": ModelRole.IMAGE_FLASH, "pro": ModelRole.IMAGE_PRO}


@dataclass(frozen=True)
class Offer:
    """One image model: its name in the page, `flash` or `pro`, and the aspect ratios and resolutions it obeys.

    `problem` says why the key cannot use it.
    """

    name: str
    label: str
    aspect_ratios: tuple[str, ...]
    resolutions: tuple[str, ...]
    problem: ErrorInfo | None = None


def image_offers(catalogue: Catalogue, provider: str, diagnosis: KeyDiagnosis | None = None) -> tuple[Offer, ...]:
    """Return what can be chosen; where one model plays both roles there is one offer, and no choice.

    A model that the key cannot use by its `diagnosis` is among them, with the reason.
    """
    models = {name: catalogue.model(role, provider) for name, role in _ROLES.items()}
    offers = tuple(
        Offer(name, one.label, one.aspect_ratios, one.resolutions, diagnosis.why_not(one.id) if diagnosis else None)
        for name, one in models.items()
    )
    return offers[:1] if len({one.id for one in models.values()}) == 1 else offers


@dataclass(frozen=True)
class View:
    """Who looks, at what: the words of their language, the conversation whose pictures are shown, and what the image
    models offer that serve them. `prices` are what a button may cost at most: `turn` for a message sent once more, and
    by its id for one picture of a model's; without any, nothing costs anything, or nobody knows what."""

    words: Words
    conversation_id: str
    offers: tuple[Offer, ...] = ()
    prices: Mapping[str, str] = field(default_factory=dict)

    def render(self, template: str, /, **values: object) -> Markup:
        """Return a template's HTML, which may ask for `view`."""
        return render(template, self.words, view=self, **values)

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

    def thumbnail(self, handle: str) -> str:
        """Return the address of a picture as it stands small beside words."""
        return self.url(handle, _THUMBNAIL_EDGE_PX)

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


def picture_alt(words: Words, picture: Picture) -> str:
    """Return what a screen reader says of the picture."""
    text = picture.alt or (picture.receipt.user_text if picture.receipt else "")
    if not text:
        return words("picture.upload_alt", handle=picture.handle)
    return words("picture.alt", handle=picture.handle, text=" ".join(text.split())[:240])


def marked(text: str, marks: Sequence[tuple[int, int]], at: int = 0) -> list[tuple[str, bool]]:
    """Return a text from a place on in pieces: those from where a mark begins to where it ends, and those between."""
    pieces = []
    for start, end in marks:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [*pieces, (text[at:], False)]
