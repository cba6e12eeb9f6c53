"""A picture of a conversation: how large it may be, what a review found of it, its receipt, and its short name.

A handle is `#7`, and `#7b` … `#7z`, `#7aa` for what was made from it by editing: uploads and fresh pictures take the
next free number, an edit keeps the family's number and takes the next letters. None is ever given twice, even when its
picture is gone, because the conversation's words may still speak of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import log
from typing import Literal, NamedTuple

from pydantic import Field

from agent.adjusting.adjustment import Adjustment, AdjustmentChange
from agent.errors import ErrorCode, ToolArgumentError
from agent.messages import ImagePart, PromptMessage, Source, TokenUsage, Value
from agent.settings import OPERATOR, ReferenceMode

# How large a picture may be, wherever one comes in or is decoded. `docs/sharing.md` shows these to people.
MAX_MEGAPIXELS = 64
MAX_DEEP_MEGAPIXELS = 32  # A larger picture is kept with 8 bits instead of its 16, and its record says so.
MAX_SIDE_PX = 16_384
MAX_ASPECT = 100
MAX_UPLOAD_MEGABYTES = 160  # A photograph of 24 megapixels and 16 bits has up to 145 MB as PNG.
MAX_VISITOR_UPLOAD_MEGABYTES = 20  # The same for anybody but the studio's owner.
MAX_MESSAGE_MEGABYTES = 320  # All pictures of one message together.
MAX_MASK_MEGABYTES = 20
MAX_PICTURES_PER_MESSAGE = 16
MODEL_COPY_SIDE_PX = 4096  # The longer side of what a model is shown of a larger picture.
LOW_MEMORY_MEGAPIXELS = 16  # Offered when the machine has no memory left for a picture within the limits.


def upload_limit_megabytes(owner: str) -> int:
    """Return how large a file may be that this owner of conversations sends."""
    return MAX_UPLOAD_MEGABYTES if owner == OPERATOR else MAX_VISITOR_UPLOAD_MEGABYTES


_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})


def mime_type_of(data: bytes) -> str | None:
    """Return the type of a picture by how its bytes begin, None for what begins like none that the studio takes.

    An SVG is none: it is a document, which may hold scripts.
    """
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] != b"ftyp":
        return None
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12], *(data[at : at + 4] for at in range(16, end, 4))}
    return "image/avif" if brands & _AVIF_BRANDS else "image/heic" if brands & _HEIC_BRANDS else None


def fitted_size(width: int, height: int, longest_px: int) -> tuple[int, int]:
    """Return width and height of a copy whose longer side is at most so many pixels, never larger than the picture."""
    scale = min(1.0, longest_px / max(width, height, 1))
    return (width, height) if scale == 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def harden_pillow() -> None:
    """Set Pillow's process-wide limits, for every decoder in this process; may be called again.

    No warning filter is set: filters are shared by all threads, so the sizes are compared where pictures are opened.
    """
    # What the store takes to open is little, and Pillow is much.
    from PIL import Image, ImageFile

    Image.MAX_IMAGE_PIXELS = MAX_MEGAPIXELS * 1_000_000
    ImageFile.LOAD_TRUNCATED_IMAGES = False


PASS_SCORE = 0.7

# The first records hold checks of the studio's own; the page has a name for each under `check.<name>`.
Check = Literal["aspect_ratio", "size", "caption", "mask"]


class AskedKind(StrEnum):
    """What a part of a request is about. The page has a word for each under `asked.<kind>`."""

    SUBJECT = "subject"
    COUNT = "count"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    STYLE = "style"
    ABSENT = "absent"


class AskedItem(Value):
    """One thing that can be looked for in a picture: the person's own words for it, letter for letter.

    Of `text` the picture must read exactly that; what is `absent` must not be seen.
    """

    quote: str
    kind: AskedKind


class ChecklistItem(Value):
    """One thing the person asked for (`wish`, in their words) and what is seen of it (`why`).

    `is_met` is None for what nobody looked at. `check` names a check of the studio's own, in the first records.
    """

    wish: str
    is_met: bool | None
    why: str = ""
    kind: AskedKind | None = None
    check: Check | None = None


class Review(Value):
    """What was found. A `score` of None means that nobody looked: the picture passes unreviewed.

    `score`, from 0 to 1, is the reviewer's own judgement: attempts are compared by it, and it is shown to nobody.
    `lettering` is what the text in the picture actually reads; `feedback` one sentence; `suggestions` what to change
    in the prompt. `model_label` is who looked; it is empty where no model did.
    """

    score: float | None = Field(default=None, ge=0, le=1)
    checklist: tuple[ChecklistItem, ...] = ()
    lettering: str = ""
    feedback: str = ""
    suggestions: tuple[str, ...] = ()
    model_label: str = ""

    @property
    def has_passed(self) -> bool:
        """Whether the picture is good enough, or nobody could say otherwise."""
        return self.score is None or self.score >= PASS_SCORE

    @property
    def rank(self) -> float:
        """By which attempts are compared: an unreviewed picture counts as one that just passes."""
        return PASS_SCORE if self.score is None else self.score

    @property
    def looked_at(self) -> tuple[ChecklistItem, ...]:
        """What was asked for and looked at."""
        return tuple(item for item in self.checklist if item.is_met is not None)

    @property
    def has_shortcomings(self) -> bool:
        """Whether something that was asked for is not there, or the reviewer would send the picture back."""
        return not self.has_passed or any(item.is_met is False for item in self.checklist)


# In a receipt instead of a model's id and label, where the studio itself adjusted the picture.
EXACT_ADJUSTMENT = "exact-adjustment"
EXACT_ADJUSTMENT_LABEL = "Exact adjustment"


class ReferenceRole(StrEnum):
    """What a reference is shown for. The page has a word for each under `role.<name>`."""

    SUBJECT = "subject"
    PRODUCT = "product"
    FACE = "face"
    STYLE = "style"
    PALETTE = "palette"
    POSE = "pose"
    LAYOUT = "layout"
    BACKGROUND = "background"
    TEXT = "text"


class Fact(Value):
    """Something a search found, and where (`source` is a URL or the name of a page)."""

    item: str
    source: str


class Reference(Value):
    """A picture that the image model was shown: its handle and its part in the request, a `ReferenceRole` or empty."""

    handle: str
    role: str = ""


class MissingStyleReason(StrEnum):
    """Why a style that was asked for is not among those of a picture's receipt."""

    UNKNOWN = "unknown"
    NOT_DRAWN = "not_drawn"
    LATE = "late"
    FAILED = "failed"


class MissingStyle(Value):
    """A style that was asked for and not found: the words for it went into the prompt as they are, if at all.

    `is_asked_for` says that the person's own message says these words. NOT_DRAWN is a style that the sketch model has
    no look for.
    """

    requested: str
    reason: MissingStyleReason
    is_asked_for: bool = False


class StyleUse(Value):
    """A style whose phrases went into the prompt, and how surely the request named it (0 to 1).

    The first records do not tell the phrases.
    """

    name: str
    similarity: float
    phrases: tuple[str, ...] = ()


class Caption(Value):
    """Words that a sketch was to hold, and whether its pixels show them."""

    text: str
    is_written: bool


class ReductionKind(StrEnum):
    """Where less than all of a picture was used, or came back.

    `shown`: the model saw a copy of a reference. `result`: what a model made of a picture is smaller or flatter than
    that one. `shape`: it is wider or narrower for its height, which nobody asked for. `transparency`: it is opaque
    where that one is not. `part`: what fills the mask, or the new part beyond the edges, was painted smaller or flatter
    than it stands in the picture.
    """

    SHOWN = "shown"
    RESULT = "result"
    SHAPE = "shape"
    TRANSPARENCY = "transparency"
    PART = "part"


class PixelSize(Value):
    """Pixels across and down, and the bits of each channel."""

    width: int
    height: int
    bit_depth: int = 8


class Reduction(Value):
    """That instead of all a picture (`handle`) has, `full`, only `used` was used."""

    kind: ReductionKind
    handle: str
    full: PixelSize
    used: PixelSize


class Receipt(Value):
    """Asked against got, for one picture.

    `prompt` is the prompt as sent; `user_text` the person's words; `model` the model's id and `model_label` its name
    on the page; prices in US dollars, times in seconds. `left_out` counts references that exceeded the model's limit.
    `asked_negative_prompt` and what follows are locks of the person's, empty where the agent chose.
    `changes` are those of an exact adjustment, for which no prompt was sent; `adjustment` is the same as parameters:
    all that was adjusted one after the other, added up and applied once to the only one of `references`.
    `has_credentials` when the file came with content credentials of its maker's. `asked` is what a review holds the
    picture against; `captions` are those of a sketch. `reductions` say where less than all of a picture was
    used, or came back.
    """

    prompt: str
    user_text: str
    model: str
    model_label: str
    asked_aspect_ratio: str | None
    asked_resolution: str | None
    asked_negative_prompt: str = ""
    asked_reference_mode: ReferenceMode | None = None
    asked_reference_count: int | None = None
    width: int
    height: int
    mime_type: str
    bit_depth: int = 8
    references: tuple[Reference, ...] = ()
    left_out: int = 0
    styles: tuple[StyleUse, ...] = ()
    missing_style: MissingStyle | None = None
    facts: tuple[Fact, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    seconds: float = 0.0
    attempts: int = 1
    finish_reason: str = ""
    is_sketch: bool = False
    shortfalls: tuple[str, ...] = ()
    changes: tuple[AdjustmentChange, ...] = ()
    adjustment: Adjustment | None = None
    has_credentials: bool = False
    asked: tuple[AskedItem, ...] = ()
    captions: tuple[Caption, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the studio itself adjusted the picture, without a model."""
        return self.model == EXACT_ADJUSTMENT


_SHAPES = ("1:8", "1:4", "9:16", "2:3", "3:4", "4:5", "1:1", "5:4", "4:3", "3:2", "16:9", "21:9", "4:1", "8:1")


def shape_of(width: int | None, height: int | None) -> str:
    """Return the common ratio that is nearest to the picture's own, as `16:9`; nothing without its size."""
    if not width or not height:
        return ""
    return min(_SHAPES, key=lambda shape: abs(log(width / height) - log(_ratio(shape))))


def _ratio(shape: str) -> float:
    wide, high = shape.split(":")
    return int(wide) / int(high)


EditKind = Literal["mask", "expansion", "kept_part"]
EditVerdict = Literal["good", "unsure", "refused"]


class Margins(Value):
    """How many pixels a picture grows by on each side."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0


class EditNotice(Value):
    """Something to say of an edit: its name, which the page has a sentence for under `notice.<code>`, and the numbers
    in that sentence."""

    code: str
    parameters: dict[str, float | str] = Field(default_factory=dict)


class Placement(Value):
    """Where an answer lies over the picture it changes, so that it can be pasted again under another mask.

    `box` is what was sent (left, top, width and height in pixels of the picture), `frame` the size it was sent in.
    `matrix` is the affine map, row by row, from the work frame (`work`, width and height, over the box) to the answer
    fitted into it; `bends` is a coarse grid of what the map leaves over (16-bit floats, x and y of each of `bends_rows`
    by `bends_columns` points), empty when the answer is rigid.
    """

    box: tuple[int, int, int, int]
    frame: tuple[int, int]
    feather_px: float
    work: tuple[int, int]
    matrix: tuple[float, ...]
    bends: bytes = b""
    bends_rows: int = 0
    bends_columns: int = 0


class Judgement(Value):
    """How alike an answer and the picture it changes are outside the mask, after alignment.

    `correlation` is that of locally normalised grey (-1 to 1), `tile_share` the share of textured tiles of 48 pixels
    that correlate, `tiles` how many there are; shift in pixels of the frame, `scale` 1 and `turn_deg` 0 for a
    faithful answer.
    """

    verdict: EditVerdict
    reason: str
    correlation: float = 0.0
    tile_share: float = 0.0
    tiles: int = 0
    shift_px: float = 0.0
    scale: float = 1.0
    turn_deg: float = 0.0


class EditRecord(Judgement):
    """What came of an edit that may change only a part of a picture.

    `verdict` is `good`, `unsure` or `refused`: a refused answer was not pasted and is itself the picture. `base` is
    what was pasted on: the picture that was changed or, for an expansion by `margins`, the wider canvas; `mask`, of
    the base's size, is white where it could change. `changed_outside` counts the pixels outside the mask that differ
    from the base's, `outside` how many there are. The change continues `spill_px` pixels beyond the mask, which
    `grown_mask` would take in. `before` and `after` show an unsure one to be judged; `is_kept` is what the person
    decided about it.
    """

    kind: EditKind
    base: ImagePart
    mask: ImagePart
    raw: ImagePart
    margins: Margins | None = None
    changed_outside: int = 0
    outside: int = 0
    spill_px: int = 0
    grown_mask: ImagePart | None = None
    before: ImagePart | None = None
    after: ImagePart | None = None
    notices: tuple[EditNotice, ...] = ()
    placement: Placement | None = None
    grown_from: str | None = None
    is_kept: bool | None = None

    @property
    def is_set_aside(self) -> bool:
        """Whether nothing leans on the picture unasked: it was not pasted, or the person discarded it."""
        return self.verdict == "refused" or self.is_kept is False


class DriftRecord(Value):
    """What an edit without a mask did to the picture it was made from.

    `changed`, of that picture's size, is white where it is not the same any more, `changed_share` how much of it;
    shift in its pixels (across, down), `scale` the zoom, `ratio_change` how much wider the new one is for its height.
    When the two are not comparable, everything counts as changed.
    """

    base: str
    is_comparable: bool
    changed: ImagePart
    changed_share: float
    shift_px: tuple[float, float] = (0.0, 0.0)
    scale: float = 1.0
    turn_deg: float = 0.0
    ratio_change: float = 1.0


class OriginalFile(Value):
    """The file that an upload was, kept as it came: it is never shown, sent or handed out.

    `digest` is the SHA-256 of its bytes, empty where they are not here (in an archive, and after its import).
    `bit_depth` is that of each of its channels.
    """

    digest: str
    mime_type: str
    size_bytes: int
    bit_depth: int = 8


class Blank(StrEnum):
    """How a picture can be empty: black all over, white all over, or wholly see-through."""

    BLACK = "black"
    WHITE = "white"
    CLEAR = "clear"


class Picture(Value):
    """A picture of a conversation: uploaded, generated or edited.

    `parents` are the handles it was made from, base picture first. `answer` is the image model's message as it came,
    signatures included, so that the picture can go back in a model turn; uploads have none, nor has what was pasted
    together here (`edit`). `alt` describes it. `round` counts the attempts of one request, `call` names the paid call
    that brought it (`agent.storage.journal`). `shortfall_kept` when the person is content with what was delivered,
    though it is not what was asked. `blank` when a model delivered a picture that shows nothing. `image` is at the
    picture's own size and bit depth, for an upload too; `original` is the file that an upload was, the first records
    have none.
    """

    handle: str
    image: ImagePart
    turn_id: str
    created_at: datetime
    parents: tuple[str, ...] = ()
    answer: PromptMessage | None = None
    receipt: Receipt | None = None
    alt: str = ""
    after_stop: bool = False
    review: Review | None = None
    round: int = 1
    call: str = ""
    edit: EditRecord | None = None
    drift: DriftRecord | None = None
    shortfall_kept: bool = False
    blank: Blank | None = None
    original: OriginalFile | None = None

    @property
    def is_set_aside(self) -> bool:
        """Whether it is leaned on only when somebody names it."""
        return self.edit is not None and self.edit.is_set_aside

    def named(self, handle: str) -> Picture:
        """Return the picture under another handle, which its image and the model's message then have as well."""
        if handle == self.handle:
            return self
        answer = self.answer
        if answer is not None:
            parts = (
                part.model_copy(update={"handle": handle})
                if isinstance(part, ImagePart) and part.handle == self.handle
                else part
                for part in answer.parts
            )
            answer = answer.model_copy(update={"parts": tuple(parts)})
        image = self.image.model_copy(update={"handle": handle})
        return self.model_copy(update={"handle": handle, "image": image, "answer": answer})


@dataclass(frozen=True)
class StoredPicture:
    """A picture with its bytes, exactly as they were made or taken in."""

    picture: Picture
    data: bytes

    @property
    def mime_type(self) -> str:
        """The type of the bytes."""
        return self.picture.image.mime_type

    @property
    def receipt(self) -> Receipt | None:
        """Asked against got; an upload has none."""
        return self.picture.receipt


_WRITTEN = re.compile(r"#?\s*(\d{1,6})([b-z]|[a-z]{2,3})?")
# ASCII neighbours only: in Chinese a handle stands right beside the next word.
_IN_WORDS = re.compile(r"(?<![0-9A-Za-z_&#])#(\d{1,6})([b-z]|[a-z]{2})?(?![0-9A-Za-z_])", re.IGNORECASE)
_SHOWN_CHARACTERS = 40


class Handle(NamedTuple):
    """A handle taken apart; `letters` is empty for the first picture of a family."""

    number: int
    letters: str = ""

    def __str__(self) -> str:
        return f"#{self.number}{self.letters}"


def parse_handle(written: str) -> Handle | None:
    """Return the handle someone wrote, with or without `#`, in any case or width; None when it is none."""
    match = _WRITTEN.fullmatch(unicodedata.normalize("NFKC", written).strip().lower())
    return Handle(int(match[1]), match[2] or "") if match else None


def handles_in(text: str) -> tuple[str, ...]:
    """Return the handles named in words, each once, in order; the pictures need not exist."""
    found = _IN_WORDS.finditer(unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(str(Handle(int(match[1]), (match[2] or "").lower())) for match in found))


def without_handles(text: str, instead: str = " ") -> str:
    """Return folded words with the handles taken out, and what shall stand there instead."""
    return _IN_WORDS.sub(instead, text)


def allot_handle(existing: Iterable[str], *, base: str | None) -> str:
    """Return the handle for one more picture: of the family of `base` when it was made by editing that one.

    Raises ToolArgumentError(UNKNOWN_HANDLE) when `base` is no handle.
    """
    names = tuple(existing)
    given = [handle for handle in map(parse_handle, names) if handle is not None]
    if base is None:
        return str(Handle(max((handle.number for handle in given), default=0) + 1))
    family = parse_handle(base)
    if family is None:
        raise _unknown(base, names)
    taken = [_rank(handle.letters) for handle in (*given, family) if handle.number == family.number]
    return str(Handle(family.number, _letters(max(taken) + 1)))


def resolve(handle: str, pictures: Iterable[Picture]) -> Picture:
    """Return the picture of that name, tolerant of a missing `#`, case and width, and never guessing.

    Raises ToolArgumentError(UNKNOWN_HANDLE) that lists the known ones.
    """
    known = {picture.handle: picture for picture in pictures}
    wanted = parse_handle(handle)
    if wanted is None or str(wanted) not in known:
        raise _unknown(handle, known)
    return known[str(wanted)]


def _unknown(handle: str, known: Iterable[str]) -> ToolArgumentError:
    shown = " ".join(handle.split())[:_SHOWN_CHARACTERS] or "(empty)"
    return ToolArgumentError(ErrorCode.UNKNOWN_HANDLE, handle=shown, known=", ".join(known) or "none yet")


def _rank(letters: str) -> int:
    # The bare number stands for "a", so the letters count 1 (none), 2 (b), … 26 (z), 27 (aa).
    rank = 0
    for letter in letters or "a":
        rank = rank * 26 + ord(letter) - ord("a") + 1
    return rank


def _letters(rank: int) -> str:
    letters = ""
    while rank > 0:
        rank, index = divmod(rank - 1, 26)
        letters = chr(ord("a") + index) + letters
    return letters
