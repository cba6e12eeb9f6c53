"""Who looks at what: the visitor's language, the URLs of a conversation's pictures, and the image models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from markupsafe import Markup

from agent import Catalogue, ErrorInfo, KeyDiagnosis, ModelRole, Picture
from webui.shell.templates import render
from webui.words import Words

# The longer edge of a picture in the thread, on a high-density screen, and of a thumbnail.
THREAD_EDGE_PX = 1344
_THUMBNAIL_EDGE_PX = 192
# The roles of the image models, by their names on the page.
IMAGE_MODEL_ROLES = {"flash": ModelRole.IMAGE_FLASH, "pro": ModelRole.IMAGE_PRO}


@dataclass(frozen=True)
class Offer:
    """One image model: its name on the page (`flash` or `pro`), and the aspect ratios and resolutions it accepts.

    `problem` says why the key cannot use it.
    """

    name: str
    label: str
    aspect_ratios: tuple[str, ...]
    resolutions: tuple[str, ...]
    problem: ErrorInfo | None = None


def image_offers(catalogue: Catalogue, provider: str, diagnosis: KeyDiagnosis | None) -> tuple[Offer, ...]:
    """Return the image models to choose from. Where one model plays both roles there is one, and no choice.

    A model that the key cannot use, according to its `diagnosis`, is included with the reason.
    """
    models = {name: catalogue.model(role, provider) for name, role in IMAGE_MODEL_ROLES.items()}
    offers = tuple(
        Offer(name, one.label, one.aspect_ratios, one.resolutions, diagnosis.why_not(one.id) if diagnosis else None)
        for name, one in models.items()
    )
    return offers[:1] if len({one.id for one in models.values()}) == 1 else offers


@dataclass(frozen=True)
class View:
    """The language of the visitor, the conversation whose pictures are shown, and the image models that serve them.
    `prices` are maximum prices of buttons: `turn` for a message sent once more, and by model id for one picture;
    empty when everything is free or nobody knows."""

    words: Words
    conversation_id: str
    offers: tuple[Offer, ...] = ()
    prices: Mapping[str, str] = field(default_factory=dict)

    def render(self, template: str, /, **values: object) -> Markup:
        """Return the HTML of a template, which can use `view`."""
        return render(template, self.words, view=self, **values)

    @property
    def turn_price(self) -> str:
        """The maximum price of a message that is sent once more."""
        return self.prices.get("turn", "")

    def url(self, handle: str, edge_px: int | None = None, *, is_download: bool = False, kind: str = "") -> str:
        """Return the URL of a picture; with `edge_px`, of a preview that fits into that square.

        `kind` is the kind of a download: `clean`, `original`, or with its recipe.
        """
        query = f"?size={edge_px}" if edge_px else ""
        if is_download:
            query = f"?download=1&{kind}=1" if kind else "?download=1"
        return f"media/{quote(self.conversation_id)}/{quote(handle.lstrip('#'))}{query}"

    def thumbnail(self, handle: str) -> str:
        """Return the URL of a small picture beside text."""
        return self.url(handle, _THUMBNAIL_EDGE_PX)

    def unrecorded_url(self, digest: str) -> str:
        """Return the URL of a picture that the full disk took no record of."""
        return f"media/{quote(self.conversation_id)}/{quote(digest)}?unrecorded=1"

    def preview_url(self, handle: str) -> str:
        """Return the URL of a picture as adjusted by the sliders; their amounts go into the query."""
        return f"aivista/preview/{quote(self.conversation_id)}/{quote(handle.lstrip('#'))}"

    def difference_url(self, first: str, second: str) -> str:
        """Return the URL of the difference between two pictures."""
        pair = f"{quote(first.lstrip('#'))}/{quote(second.lstrip('#'))}"
        return f"aivista/difference/{quote(self.conversation_id)}/{pair}"

    def report_url(self, turn_id: str) -> str:
        """Return the URL of a turn's debug report."""
        return f"aivista/report/{quote(self.conversation_id)}/{quote(turn_id)}.json"


def picture_alt(words: Words, picture: Picture) -> str:
    """Return the text alternative of a picture for screen readers."""
    text = picture.alt or (picture.receipt.user_text if picture.receipt else "")
    if not text:
        return words("picture.upload_alt", handle=picture.handle)
    return words("picture.alt", handle=picture.handle, text=" ".join(text.split())[:240])


def marked(text: str, marks: Sequence[tuple[int, int]], at: int = 0) -> list[tuple[str, bool]]:
    """Return a text from a position on in pieces, alternating between unmarked and marked."""
    pieces = []
    for start, end in marks:
        pieces += [(text[at:start], False), (text[start:end], True)]
        at = end
    return [*pieces, (text[at:], False)]
