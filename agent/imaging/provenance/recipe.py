"""The recipe of a picture, a value that is embedded in its file, and the other recipes that may be found there.

Everything read from a file is untrusted: every text and every list is cut to its limit, on writing and on reading, so
a recipe is read exactly as it was written.

`parameters`, the text that other programs look for, has the format of AUTOMATIC1111's web UI: the prompt, then
optionally `Negative prompt: …`, then one line of `Name: value` pairs; readers recognise that last line when it holds at
least three pairs. Ours has no steps, sampler or seed, because we have none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from agent.adjusting.adjustment import AdjustmentChange
from agent.messages import ImageOrigin, Value
from agent.pictures import EditKind, Margins, Picture
from agent.redaction import without_homes, without_secrets
from agent.settings import ImageModelChoice, ReferenceMode, SearchPolicy, TextModelChoice, TurnSettings

VERSION: Final = 1
LONG_TEXT_CHARACTERS = 20_000
RAW_TEXT_CHARACTERS = 100_000
MAX_RECIPE_BYTES = 1 << 20

_LAST_VERSION = 1_000_000
# XML 1.0 cannot contain these characters, and UTF-8 cannot encode half of a surrogate pair.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_UNWRITABLE = re.compile(r"[\ud800-\udfff\ufffe\uffff]")


def _cut(value: object, limit: int) -> object:
    if not isinstance(value, str):
        return value
    return _UNWRITABLE.sub("\ufffd", _CONTROLS.sub("", value[: 2 * limit]))[:limit]


def _few(value: object, limit: int) -> object:
    return tuple(value[:limit]) if isinstance(value, list | tuple) else value


def _web_address(value: object) -> object:
    # A page may turn the address into a link: only http and https are allowed, never a script.
    is_other = isinstance(value, str) and not value.lower().startswith(("https://", "http://"))
    return "" if is_other else value


def _in_utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError("no such day") from None


_Words: TypeAlias = Annotated[str, BeforeValidator(partial(_cut, limit=LONG_TEXT_CHARACTERS))]
_RawText: TypeAlias = Annotated[str, BeforeValidator(partial(_cut, limit=RAW_TEXT_CHARACTERS))]
_Sentence: TypeAlias = Annotated[str, BeforeValidator(partial(_cut, limit=500))]
_Name: TypeAlias = Annotated[str, BeforeValidator(partial(_cut, limit=200))]
_Sign: TypeAlias = Annotated[str, BeforeValidator(partial(_cut, limit=40))]
_Address: TypeAlias = Annotated[str, BeforeValidator(_web_address), BeforeValidator(partial(_cut, limit=1000))]
_Digest: TypeAlias = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{64})?$")]
_Pixels: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000)]
_Amount: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_FewSmall = BeforeValidator(partial(_few, limit=64))
_FewLarge = BeforeValidator(partial(_few, limit=32))


class SourceType(StrEnum):
    """The origin of a picture's pixels, as IPTC defines it (http://cv.iptc.org/newscodes/digitalsourcetype/).

    In order: made by a trained model; a photo with a part made by one; drawn by an algorithm without training data.
    """

    TRAINED = "trainedAlgorithmicMedia"
    COMPOSITE = "compositeWithTrainedAlgorithmicMedia"
    ALGORITHMIC = "algorithmicMedia"


class ParentDigest(Value):
    """A picture that this one was made from: its handle, the SHA-256 of its stored file, and its role.

    The digest is empty when the picture was not available, the role when none was given.
    """

    handle: _Sign
    digest: _Digest = ""
    role: _Sign = ""


class RecipeStyle(Value):
    """A style whose phrases were added to the prompt, and its similarity to the request (0 to 1)."""

    name: _Name
    similarity: Annotated[float, Field(allow_inf_nan=False)] = 0.0


class RecipeFact(Value):
    """A fact found by a search, and its source: a URL or the name of a page."""

    item: _Sentence
    source: _Sentence = ""


class RecipeSource(Value):
    """A web page that a search used; the address is empty unless it is http or https."""

    title: _Name = ""
    url: _Address = ""


class RecipeChange(AdjustmentChange):
    """One change of an exact adjustment, with a finite amount and a short ratio."""

    amount: _Amount = 0
    ratio: _Sign = ""


class RecipeMargins(Margins):
    """The number of pixels by which a picture grew on each side, with an upper bound."""

    left: _Pixels = 0
    top: _Pixels = 0
    right: _Pixels = 0
    bottom: _Pixels = 0


class RecipeSettings(Value):
    """The user's settings of the turn that are needed to make a similar picture."""

    text_model: TextModelChoice = "flash"
    image_model: ImageModelChoice = "auto"
    aspect_ratio: _Sign | None = None
    resolution: _Sign | None = None
    number_of_images: Annotated[int, Field(ge=1, le=4)] | None = None
    allow_search: bool = False
    search_policy: SearchPolicy = SearchPolicy.LLM_ONLY
    reference_mode: ReferenceMode | None = None


class Recipe(Value):
    """The recipe of a picture. A new field, or a new meaning of a field, requires a higher `VERSION`.

    `words` is the user's text, `prompt` the text sent to the model; `parents` are the source pictures, the base first.
    `file_digest` is the SHA-256 of the stored file. The price is in US dollars, `seconds` in seconds, times in UTC.
    `edit` says that a model changed only a part, or that an exact adjustment (`adjustment`, with its `changes`) was
    made. `is_shortened` is set when the file had no room for everything. A recipe contains no owner, conversation id,
    key or file path.
    """

    version: Literal[1] = VERSION
    words: _Words = ""
    prompt: _Words = ""
    model: _Name = ""
    model_label: _Name = ""
    asked_aspect_ratio: _Sign | None = None
    asked_resolution: _Sign | None = None
    width: _Pixels = 0
    height: _Pixels = 0
    settings: RecipeSettings | None = None
    parents: Annotated[tuple[ParentDigest, ...], _FewSmall] = ()
    styles: Annotated[tuple[RecipeStyle, ...], _FewLarge] = ()
    facts: Annotated[tuple[RecipeFact, ...], _FewLarge] = ()
    sources: Annotated[tuple[RecipeSource, ...], _FewLarge] = ()
    price_usd: _Amount = 0.0
    seconds: _Amount = 0.0
    created_at: Annotated[datetime, AfterValidator(_in_utc)]
    file_digest: _Digest = ""
    handle: _Sign = ""
    conversation_title: _Name = ""
    edit: EditKind | Literal["adjustment"] | None = None
    margins: RecipeMargins | None = None
    changes: Annotated[tuple[RecipeChange, ...], _FewLarge] = ()
    source_type: SourceType | None = None
    made_with_ai: bool = False
    is_sketch: bool = False
    is_shortened: bool = False


class ForeignTool(StrEnum):
    """The program whose format was found; `parameters` is AUTOMATIC1111's format, which many programs write."""

    PARAMETERS = "parameters"
    COMFYUI = "comfyui"
    FOOOCUS = "fooocus"
    SWARMUI = "swarmui"
    INVOKEAI = "invokeai"
    NOVELAI = "novelai"
    DRAW_THINGS = "draw_things"
    MIDJOURNEY = "midjourney"


class ForeignRecipe(Value):
    """The generation data of another program, as it wrote them; `size` is in pixels or a ratio."""

    tool: ForeignTool
    prompt: _Words = ""
    negative_prompt: _Words = ""
    seed: _Sign = ""
    steps: _Sign = ""
    cfg_scale: _Sign = ""
    sampler: _Name = ""
    model: _Name = ""
    size: _Sign = ""
    raw: _RawText = ""


class RecipeRefusal(StrEnum):
    """Why an existing recipe cannot be read."""

    NEWER = "newer"
    DAMAGED = "damaged"


class RefusedRecipe(Value):
    """A recipe of ours that cannot be read: it is damaged, or of a later version, which `version` then gives."""

    reason: RecipeRefusal
    version: Annotated[int, Field(ge=0)] = 0


FoundRecipe: TypeAlias = Recipe | ForeignRecipe | RefusedRecipe | None


def to_json(recipe: Recipe) -> str:
    """Return the recipe as JSON on one line, without fields that have their default value."""
    fields = recipe.model_dump(mode="json", exclude_defaults=True)
    return json.dumps({"version": recipe.version} | fields, ensure_ascii=False, separators=(",", ":"))


def from_json(text: bytes) -> Recipe | RefusedRecipe:
    """Return the recipe in this UTF-8 JSON, which may be untrusted. Never raises."""
    damaged = RefusedRecipe(reason=RecipeRefusal.DAMAGED)
    if len(text) > MAX_RECIPE_BYTES:
        return damaged
    try:
        value = json.loads(text.decode("utf-8"))
        version = value.get("version") if isinstance(value, dict) else None
        if type(version) is not int or version > _LAST_VERSION:
            return damaged
        if version > VERSION:
            return RefusedRecipe(reason=RecipeRefusal.NEWER, version=version)
        # Earlier versions also contained a digest of the pixels.
        value.pop("pixels_digest", None)
        return Recipe.model_validate(value)
    # The errors of Pydantic, JSON and UTF-8 are ValueErrors; brackets may be nested too deeply.
    except (ValueError, RecursionError):
        return damaged


def shortened(recipe: Recipe, characters: int, items: int) -> Recipe:
    """Return the recipe with words and prompt cut to `characters`, and lists cut to `items`.

    The parents stay complete, because they connect the pictures.
    """
    texts = {name: getattr(recipe, name)[:characters] for name in ("words", "prompt")}
    lists = {name: getattr(recipe, name)[:items] for name in ("styles", "facts", "sources", "changes")}
    return recipe.model_copy(update=texts | lists | {"is_shortened": True})


_SIGNATURE = "Version: Aivista"
# An EXIF comment must fit into a 64 KB segment of a JPEG, with up to four bytes per character.
_PARAMETERS_PROMPT_CHARACTERS = 12_000
_STYLES_CHARACTERS = 500
# Readers of `parameters` expect a value with any of these characters as a JSON string.
_QUOTED = re.compile(r'[,\n:"]')


def parameters_text(recipe: Recipe) -> str:
    """Return the `parameters` text: the prompt, or the user's words if no prompt was sent; empty without either."""
    prompt = (recipe.prompt or recipe.words).strip()
    if not prompt:
        return ""
    pairs = {
        "Size": f"{recipe.width}x{recipe.height}",
        "Model": recipe.model_label or recipe.model,
        "Aspect ratio": recipe.asked_aspect_ratio or "",
        "Resolution": recipe.asked_resolution or "",
        "Styles": ", ".join(style.name for style in recipe.styles)[:_STYLES_CHARACTERS],
        "Created Date": recipe.created_at.isoformat(timespec="seconds"),
    }
    facts = [
        f"{name}: {json.dumps(value, ensure_ascii=False) if _QUOTED.search(value) else value}"
        for name, value in pairs.items()
        if value
    ]
    return "\n".join((prompt[:_PARAMETERS_PROMPT_CHARACTERS], ", ".join((*facts, _SIGNATURE))))


def is_ours(text: str) -> bool:
    """Return whether the text was written by `parameters_text`."""
    return text.rstrip().endswith(f", {_SIGNATURE}")


def recipe_of(
    picture: Picture,
    settings: TurnSettings | None,
    parents: Iterable[Picture] = (),
    *,
    conversation_title: str = "",
    secrets: Sequence[SecretStr] = (),
) -> Recipe:
    """Return the recipe of a picture made with these settings; the recipe of an upload has little more than its origin.

    `parents` are the source pictures and their own ancestors, in any order; all pictures of the conversation also work.
    Only the ancestors show whether an adjusted picture was a photo. Secrets (the given ones, and anything that looks
    like one) and the paths of home folders are removed from all texts.
    """
    known = {one.handle: one for one in parents}
    source, receipt = source_type(picture, known), picture.receipt
    roles = {one.handle: str(one.role) for one in receipt.references} if receipt else {}

    def safe(text: str) -> str:
        return without_homes(without_secrets(text, secrets))

    fields: dict[str, object] = {
        "width": picture.image.width or 0,
        "height": picture.image.height or 0,
        "parents": [
            {
                "handle": handle,
                "digest": known[handle].image.digest if handle in known else "",
                "role": roles.get(handle, ""),
            }
            for handle in dict.fromkeys((*picture.parents, *roles))
        ],
        "created_at": picture.created_at,
        "file_digest": picture.image.digest,
        "handle": picture.handle,
        "conversation_title": safe(conversation_title),
        "source_type": source,
        "made_with_ai": source in (SourceType.TRAINED, SourceType.COMPOSITE),
    }
    if receipt is None:
        return Recipe.model_validate(fields)
    fields |= {
        "words": safe(receipt.user_text),
        "prompt": safe(receipt.prompt),
        "model": safe(receipt.model),
        "model_label": safe(receipt.model_label),
        "asked_aspect_ratio": receipt.asked_aspect_ratio,
        "asked_resolution": receipt.asked_resolution,
        "width": receipt.width,
        "height": receipt.height,
        "styles": [{"name": safe(one.name), "similarity": one.similarity} for one in receipt.styles],
        "facts": [{"item": safe(one.item), "source": safe(one.source)} for one in receipt.facts],
        "sources": [{"title": safe(one.title), "url": safe(one.url)} for one in receipt.sources],
        "price_usd": receipt.price_usd,
        "seconds": receipt.seconds,
        "is_sketch": receipt.is_sketch,
    }
    if receipt.is_exact:
        fields |= {"edit": "adjustment", "changes": [one.model_dump() for one in receipt.changes]}
    elif picture.edit is not None and _is_pasted(picture):
        margins = picture.edit.margins
        fields |= {"edit": picture.edit.kind, "margins": margins.model_dump() if margins else None}
    if settings is not None:
        fields["settings"] = settings.model_dump(include=set(RecipeSettings.model_fields))
    return Recipe.model_validate(fields)


def source_type(picture: Picture, known: Mapping[str, Picture]) -> SourceType | None:
    """Return the origin of the picture's pixels, or None for an upload or an adjusted upload.

    An adjustment, and a sketch of another picture, have the type of their base. A part pasted into a picture that no
    model made, or whose origin is unknown, makes a composite.
    """
    has_pasted_part = False
    # The number of steps is bounded, so the loop ends even when hostile records form a cycle.
    for _ in range(len(known) + 1):
        receipt = picture.receipt
        if receipt is None or picture.image.origin is ImageOrigin.UPLOADED:
            break
        is_painted = not receipt.is_exact and not receipt.is_sketch
        if is_painted and not _is_pasted(picture):
            return SourceType.TRAINED
        has_pasted_part = has_pasted_part or is_painted
        if receipt.is_sketch and not picture.parents and not has_pasted_part:
            return SourceType.ALGORITHMIC
        base = known.get(picture.parents[0]) if picture.parents else None
        if base is None:
            break
        picture = base
    return SourceType.COMPOSITE if has_pasted_part else None


def _is_pasted(picture: Picture) -> bool:
    # A refused answer was not pasted: the picture is the answer itself, without parts of another picture.
    return picture.edit is not None and picture.edit.verdict != "refused"
