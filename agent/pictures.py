"""A picture of a conversation: its size limits, its review, its receipt, and its handle.

A handle is `#7`, or `#7b` … `#7z`, `#7aa` for edits of that picture: uploads and new pictures take the next free
number, an edit keeps the number of its family and takes the next letters. A handle is never reused, even after its
picture is deleted, because messages of the conversation may still mention it.
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

# Size limits for every picture that is received or decoded. `docs/how-to.md` shows them to users.
MAX_MEGAPIXELS = 64
MAX_DEEP_MEGAPIXELS = 32  # A larger 16-bit picture is stored with 8 bits, and its record says so.
MAX_SIDE_PX = 16_384
MAX_ASPECT = 100
MAX_UPLOAD_MEGABYTES = 160  # A photograph of 24 megapixels and 16 bits has up to 145 MB as PNG.
MAX_VISITOR_UPLOAD_MEGABYTES = 20  # The same limit for everyone except the operator.
MAX_MESSAGE_MEGABYTES = 320  # All pictures of one message together.
MAX_MASK_MEGABYTES = 20
MAX_PICTURES_PER_MESSAGE = 16
MODEL_COPY_SIDE_PX = 4096  # The longer side of the copy that a model receives of a larger picture.
LOW_MEMORY_MEGAPIXELS = 16  # The suggested limit when memory runs out for a picture within the limits.


def upload_limit_megabytes(owner: str) -> int:
    """Return the maximum size of a file that this owner may upload, in megabytes."""
    return MAX_UPLOAD_MEGABYTES if owner == OPERATOR else MAX_VISITOR_UPLOAD_MEGABYTES


_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})


def mime_type_of(data: bytes) -> str | None:
    """Return the MIME type of a picture by its first bytes, None when the studio does not accept the type.

    SVG is not accepted: it is a document that may contain scripts.
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
    """Return the size of a copy whose longer side is at most `longest_px`, never larger than the picture."""
    scale = min(1.0, longest_px / max(width, height, 1))
    return (width, height) if scale == 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def harden_pillow() -> None:
    """Set Pillow's process-wide limits, for every decoder in this process; may be called again.

    No warning filter is set: filters are shared by all threads, so sizes are checked where pictures are opened.
    """
    # Imported late: the store opens fast, and Pillow loads slowly.
    from PIL import Image, ImageFile

    Image.MAX_IMAGE_PIXELS = MAX_MEGAPIXELS * 1_000_000
    ImageFile.LOAD_TRUNCATED_IMAGES = False


PASS_SCORE = 0.7

# Only the oldest records contain these checks by the studio itself; the page has a name for each under `check.<name>`.
Check = Literal["aspect_ratio", "size", "caption", "mask"]


class AskedKind(StrEnum):
    """The kind of a requested item. The page has a word for each under `asked.<kind>`."""

    SUBJECT = "subject"
    COUNT = "count"
    ATTRIBUTE = "attribute"
    TEXT = "text"
    STYLE = "style"
    ABSENT = "absent"


class AskedItem(Value):
    """One requested item that a review can check: `quote` is an exact quote from the user's message.

    For `text`, the picture must show exactly that text; an `absent` item must not be visible.
    """

    quote: str
    kind: AskedKind


class ChecklistItem(Value):
    """One item that the user asked for (`wish`, in their words) and what the reviewer sees of it (`why`).

    `is_met` is None for an item that was not checked. `check` names a check by the studio itself (oldest records only).
    """

    wish: str
    is_met: bool | None
    why: str = ""
    kind: AskedKind | None = None
    check: Check | None = None


class Review(Value):
    """The result of a review. A `score` of None means that no review was made: the picture passes unreviewed.

    `score`, from 0 to 1, is the reviewer's own judgement: it is used to compare attempts and is never displayed.
    `lettering` is the text as it appears in the picture; `feedback` is one sentence; `suggestions` are changes for the
    prompt. `model_label` names the reviewing model; it is empty when no model reviewed the picture.
    """

    score: float | None = Field(default=None, ge=0, le=1)
    checklist: tuple[ChecklistItem, ...] = ()
    lettering: str = ""
    feedback: str = ""
    suggestions: tuple[str, ...] = ()
    model_label: str = ""

    @property
    def has_passed(self) -> bool:
        """Whether the picture is good enough or was not reviewed."""
        return self.score is None or self.score >= PASS_SCORE

    @property
    def rank(self) -> float:
        """The score for comparing attempts: an unreviewed picture counts as one that just passes."""
        return PASS_SCORE if self.score is None else self.score

    @property
    def looked_at(self) -> tuple[ChecklistItem, ...]:
        """The requested items that were checked."""
        return tuple(item for item in self.checklist if item.is_met is not None)

    @property
    def has_shortcomings(self) -> bool:
        """Whether a requested item is missing, or the picture did not pass the review."""
        return not self.has_passed or any(item.is_met is False for item in self.checklist)


# In a receipt in place of a model's id and label when the studio itself adjusted the picture.
EXACT_ADJUSTMENT = "exact-adjustment"
EXACT_ADJUSTMENT_LABEL = "Exact adjustment"


class ReferenceRole(StrEnum):
    """The purpose of a reference picture. The page has a word for each under `role.<name>`."""

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
    """A fact that a search found, and its source (a URL or the name of a page)."""

    item: str
    source: str


class Reference(Value):
    """A picture that was sent to the image model: its handle and its role, a `ReferenceRole` or empty."""

    handle: str
    role: str = ""


class MissingStyleReason(StrEnum):
    """Why a requested style is missing from a picture's receipt."""

    UNKNOWN = "unknown"
    NOT_DRAWN = "not_drawn"
    LATE = "late"
    FAILED = "failed"


class MissingStyle(Value):
    """A requested style that was not found: its name went into the prompt unchanged, or not at all.

    `is_asked_for` is true when the user's own message contains the name. NOT_DRAWN is a style for which the sketch
    model has no look.
    """

    requested: str
    reason: MissingStyleReason
    is_asked_for: bool = False


class StyleUse(Value):
    """A style whose phrases went into the prompt, and how certainly the request named it (0 to 1).

    The oldest records do not have the phrases.
    """

    name: str
    similarity: float
    phrases: tuple[str, ...] = ()


class Caption(Value):
    """Text that a sketch should contain, and whether its pixels show it."""

    text: str
    is_written: bool


class ReductionKind(StrEnum):
    """How a model received or returned less than the full picture.

    `shown`: the model received a reduced copy of a reference. `result`: the model's result has fewer pixels or bits
    than its base picture. `shape`: the result has another aspect ratio, which was not requested. `transparency`: the
    result is opaque and the base is not. `part`: the content of the mask, or the new area beyond the edges, was
    generated with fewer pixels or bits than it has in the picture.
    """

    SHOWN = "shown"
    RESULT = "result"
    SHAPE = "shape"
    TRANSPARENCY = "transparency"
    PART = "part"


class PixelSize(Value):
    """Width and height in pixels, and the bits per channel."""

    width: int
    height: int
    bit_depth: int = 8


class Reduction(Value):
    """A loss of pixels or bits: of the picture `handle`, which has `full`, only `used` was used."""

    kind: ReductionKind
    handle: str
    full: PixelSize
    used: PixelSize


class Receipt(Value):
    """What was requested and what was delivered, for one picture.

    `prompt` is the prompt as sent; `user_text` the user's message; `model` the model's id and `model_label` its name on
    the page; prices are in US dollars, times in seconds. `usage` is that of the whole call; of several pictures in one
    answer, each has an equal share of the price. `left_out` counts references that exceeded the model's limit.
    `asked_negative_prompt`, `asked_reference_mode` and `asked_reference_count` are locks that the user set, empty where
    the agent chose. `changes` are those of an exact adjustment, for which no prompt was sent; `adjustment` has the same
    as parameters: the sum of all successive adjustments, applied once to the only one of `references`.
    `has_credentials` is true when the file came with content credentials of its provider. `asked` are the items that a
    review checks; `captions` are those of a sketch. `reductions` list where pixels or bits of a picture were lost.
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
    """Return the common aspect ratio nearest to the picture's own, such as `16:9`; empty when its size is unknown."""
    if not width or not height:
        return ""
    return min(_SHAPES, key=lambda shape: abs(log(width / height) - log(_ratio(shape))))


def _ratio(shape: str) -> float:
    wide, high = shape.split(":")
    return int(wide) / int(high)


EditKind = Literal["mask", "expansion", "kept_part"]
EditVerdict = Literal["good", "unsure", "refused"]


class Margins(Value):
    """The pixels to add to a picture on each side."""

    left: int = 0
    top: int = 0
    right: int = 0
    bottom: int = 0


class EditNotice(Value):
    """A notice about an edit: its code, with a sentence on the page under `notice.<code>`, and the parameters."""

    code: str
    parameters: dict[str, float | str] = Field(default_factory=dict)


class Placement(Value):
    """How a model's answer is aligned with the picture it changes, so that it can be pasted again under another mask.

    `box` is the area that was sent (left, top, width and height in pixels of the picture), `frame` the size it was sent
    at. `matrix` is the affine map, row by row, from the work frame (`work`, width and height, over the box) to the
    answer fitted into it; `bends` is a coarse grid of the residual displacements (16-bit floats, x and y of each of
    `bends_rows` by `bends_columns` points), empty when the answer is rigid.
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
    """The similarity of an answer and the picture it changes outside the mask, after alignment.

    `correlation` is that of locally normalised grey (-1 to 1); `tile_share` is the share of textured 48-pixel tiles
    that correlate, `tiles` their number. `shift_px` is in pixels of the frame; for a faithful answer `scale` is 1 and
    `turn_deg` is 0.
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
    """The result of an edit that may change only a part of a picture.

    `verdict` is `good`, `unsure` or `refused`: a refused answer was not pasted; the picture is the raw answer. `base`
    is the image below the pasted answer: the changed picture or, for an expansion by `margins`, the larger canvas;
    `mask` has the size of the base and is white where it could change. `changed_outside` counts the pixels outside the
    mask that differ from the base, `outside` all pixels there. The change continues `spill_px` pixels beyond the mask,
    which `grown_mask` would cover. `before` and `after` let the user judge an unsure edit; `is_kept` is the decision.
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
        """Whether the picture is used only when named: its answer was not pasted, or the user discarded it."""
        return self.verdict == "refused" or self.is_kept is False


class DriftRecord(Value):
    """The differences between an edit without a mask and the picture it was made from.

    `changed` has that picture's size and is white where the edit differs, `changed_share` is the share of these pixels;
    `shift_px` is in its pixels (x, y), `scale` is the zoom, `ratio_change` the factor by which the new aspect ratio is
    wider. When the two pictures are not comparable, everything counts as changed.
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
    """The unchanged file of an upload: it is never displayed, sent to a model or offered for download.

    `digest` is the SHA-256 of its bytes, empty when they are not here (in an archive, and after its import).
    `bit_depth` is that of each of its channels.
    """

    digest: str
    mime_type: str
    size_bytes: int
    bit_depth: int = 8


class Blank(StrEnum):
    """How a picture can be empty: completely black, white or transparent."""

    BLACK = "black"
    WHITE = "white"
    CLEAR = "clear"


class Picture(Value):
    """A picture of a conversation: uploaded, generated or edited.

    `parents` are the handles it was made from, base picture first. `answer` is the image model's unchanged message with
    its signatures, so that the picture can be sent back in a model turn; uploads and pasted pictures (`edit`) have
    none. `alt` is the alternative text. `round` is the attempt number of one image request, `call` the name of the paid
    call that produced it (`agent.storage.journal`). `shortfall_kept` is true when the user accepted a picture that
    falls short of the request. `blank` is set when a model delivered an empty picture. `image` has the picture's own
    size and bit depth, also for an upload; `original` is the file of an upload, which the oldest records do not have.
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
        """Whether the picture is used only when it is named."""
        return self.edit is not None and self.edit.is_set_aside

    def named(self, handle: str) -> Picture:
        """Return the picture with another handle, also in its image and in the model's message."""
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
    """A picture with its bytes, exactly as they were generated or stored from an upload."""

    picture: Picture
    data: bytes

    @property
    def mime_type(self) -> str:
        """The MIME type of the bytes."""
        return self.picture.image.mime_type

    @property
    def receipt(self) -> Receipt | None:
        """The picture's receipt; an upload has none."""
        return self.picture.receipt


_WRITTEN = re.compile(r"#?\s*(\d{1,6})([b-z]|[a-z]{2,3})?")
# Only ASCII neighbours are excluded: in Chinese no space separates a handle from the next word.
_IN_WORDS = re.compile(r"(?<![0-9A-Za-z_&#])#(\d{1,6})([b-z]|[a-z]{2})?(?![0-9A-Za-z_])", re.IGNORECASE)
_SHOWN_CHARACTERS = 40


class Handle(NamedTuple):
    """A parsed handle; `letters` is empty for the first picture of a family."""

    number: int
    letters: str = ""

    def __str__(self) -> str:
        return f"#{self.number}{self.letters}"


def parse_handle(written: str) -> Handle | None:
    """Return a parsed handle, written with or without `#`, in any case or width; None when it is not a handle."""
    match = _WRITTEN.fullmatch(unicodedata.normalize("NFKC", written).strip().lower())
    return Handle(int(match[1]), match[2] or "") if match else None


def handles_in(text: str) -> tuple[str, ...]:
    """Return the handles that a text mentions, each once, in order; the pictures need not exist."""
    found = _IN_WORDS.finditer(unicodedata.normalize("NFKC", text))
    return tuple(dict.fromkeys(str(Handle(int(match[1]), (match[2] or "").lower())) for match in found))


def without_handles(text: str, instead: str = " ") -> str:
    """Return a folded text with each handle replaced by `instead`."""
    return _IN_WORDS.sub(instead, text)


def allot_handle(existing: Iterable[str], *, base: str | None) -> str:
    """Return the handle for a new picture, in the family of `base` when the picture is an edit of that one.

    Raises ToolArgumentError(UNKNOWN_HANDLE) when `base` is not a handle.
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
    """Return the picture with that handle, ignoring a missing `#`, case and width, but without guessing.

    Raises ToolArgumentError(UNKNOWN_HANDLE), which lists the known handles.
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
    # A handle without letters counts as "a": the ranks are 1 (none), 2 (b), … 26 (z), 27 (aa).
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
