"""The contract of `generate_image`: its declaration, the filling of missing values, and the final prompt.

The user's locks come first, then the agent's values where the model supports them, then the defaults.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import JsonValue

from agent.errors import ErrorCode, RequestRefused
from agent.imaging.arguments import GENERATE_IMAGE, MAX_HANDLES, MAX_IMAGES_PER_CALL, GenerateImageArgs, ImageAction
from agent.messages import Value
from agent.pictures import AskedKind, Fact, Picture, ReferenceRole
from agent.prompts import declared
from agent.providers.base import ToolDeclaration
from agent.providers.catalogue import Catalogue, ModelEntry, ModelRole
from agent.settings import ReferenceMode, SearchPolicy, TurnSettings

DEFAULT_ASPECT_RATIO = "16:9"

T = TypeVar("T")


def image_models(catalogue: Catalogue, provider: str) -> dict[str, ModelEntry]:
    """Return the provider's image models by the names `flash` and `pro`."""
    return {
        "flash": catalogue.model(ModelRole.IMAGE_FLASH, provider),
        "pro": catalogue.model(ModelRole.IMAGE_PRO, provider),
    }


def declaration(catalogue: Catalogue, provider: str, *, may_ground: bool = False) -> ToolDeclaration:
    """Return the declaration of `generate_image`; `use_grounding` is in it only when the user permits it."""
    models = image_models(catalogue, provider)
    written = declared(GENERATE_IMAGE)
    properties = _filled(written["properties"], _choices(models))
    shared = set.intersection(*(set(entry.aspect_ratios) for entry in models.values()))
    for name, entry in models.items():
        own = [ratio for ratio in entry.aspect_ratios if ratio not in shared]
        if own:
            properties["aspect_ratio"]["description"] += f" {', '.join(own)} only with {name}."
    if not (may_ground and any(entry.has_grounding for entry in models.values())):
        del properties["use_grounding"]
    parameters: dict[str, JsonValue] = {"type": "object", "properties": properties, "required": ["prompt"]}
    return ToolDeclaration(name=GENERATE_IMAGE, description=written["description"], parameters=parameters)


def _choices(models: Mapping[str, ModelEntry]) -> dict[str, object]:
    return {
        "{actions}": [action.value for action in ImageAction],
        "{models}": list(models),
        "{ratios}": list(dict.fromkeys(ratio for entry in models.values() for ratio in entry.aspect_ratios)),
        "{resolutions}": list(dict.fromkeys(size for entry in models.values() for size in entry.resolutions)),
        "{modes}": [mode.value for mode in ReferenceMode],
        "{roles}": [role.value for role in ReferenceRole],
        "{kinds}": [kind.value for kind in AskedKind],
        "{most_images}": MAX_IMAGES_PER_CALL,
        "{most_handles}": MAX_HANDLES,
    }


def _filled(written: Any, choices: Mapping[str, object]) -> Any:
    """Return a copy in which every placeholder is replaced by its choices."""
    if isinstance(written, dict):
        return {name: _filled(value, choices) for name, value in written.items()}
    return choices.get(written, written) if isinstance(written, str) else written


class NormalizedRequest(Value):
    """A complete request for the image model: every field is filled, with a value that the model supports.

    `filled` tells who chose each field: `locked` (the user), `agent` or `default`. A `resolution` of None is not sent,
    because the model does not accept one.
    """

    model: ModelEntry
    prompt: str
    negative_prompt: str | None
    aspect_ratio: str
    resolution: str | None
    number_of_images: int
    use_grounding: bool
    reference_mode: ReferenceMode | None
    reference_count: int | None
    handles: tuple[str, ...]
    action: ImageAction | None
    subject: str | None
    style: str | None
    confidence: float | None
    filled: dict[str, str]


def normalize(
    arguments: GenerateImageArgs,
    settings: TurnSettings,
    catalogue: Catalogue,
    provider: str,
    *,
    search_needed: bool,
    search_requested_in_words: bool,
    edited_pixels: tuple[int, int] | None,
) -> NormalizedRequest:
    """Return the request with every field filled: locks, then the agent's legal values, then defaults.

    The defaults are the ratio nearest to the edited picture's (`edited_pixels`, width first), else 16:9; the model's
    default resolution; one picture.

    Raises RequestRefused(SETTING_NOT_SUPPORTED) when the model does not support a lock: a lock is never overridden.
    """
    needs_search = settings.allow_search and search_needed
    model, model_by = _chosen_model(arguments, settings, image_models(catalogue, provider), needs_search)
    nearest = nearest_ratio(edited_pixels, model.aspect_ratios)
    ratio, ratio_by = _first_legal(settings.aspect_ratio, arguments.aspect_ratio, nearest, model.aspect_ratios)
    size, size_by = _first_legal(settings.resolution, arguments.resolution, model.default_resolution, model.resolutions)
    count, count_by = _first_legal(settings.number_of_images, arguments.number_of_images, 1, None)
    filled = {
        "model": model_by,
        "aspect_ratio": ratio_by,
        "resolution": size_by,
        "number_of_images": count_by,
        "use_grounding": "default" if settings.allow_search else "locked",
    }
    return NormalizedRequest(
        **arguments.model_dump(exclude={*filled, "reference_roles", "checklist"}),
        model=model,
        aspect_ratio=ratio,
        resolution=size,
        number_of_images=count,
        use_grounding=_is_grounded(settings, model, needs_search, search_requested_in_words),
        filled=filled,
    )


def check_locks(settings: TurnSettings, catalogue: Catalogue, provider: str) -> None:
    """Check the user's locks against what the image models support, before any model is called.

    Raises RequestRefused when no model that the user allows supports them: `normalize` would refuse every request.
    """
    models, is_compared = image_models(catalogue, provider), settings.image_model == "both"
    if is_compared and models["flash"].id == models["pro"].id:
        raise RequestRefused(ErrorCode.ONE_PAINTER_ONLY, model=models["flash"].label)
    allowed = list(models) if is_compared or settings.image_model == "auto" else [settings.image_model]
    refusals = [refusal for name in allowed if (refusal := _refusal(models[name], settings)) is not None]
    # Both of two compared models must support the locks; otherwise one that does is enough.
    if refusals and (is_compared or len(refusals) == len(allowed)):
        raise refusals[0]


def nearest_ratio(pixels: tuple[int, int] | None, ratios: Sequence[str]) -> str:
    """Return the ratio of the list that is nearest to the picture's, else 16:9, else the first of the list."""
    if pixels is None or not ratios or min(pixels) < 1:
        return DEFAULT_ASPECT_RATIO if DEFAULT_ASPECT_RATIO in ratios or not ratios else ratios[0]
    shape = math.log(pixels[0] / pixels[1])

    def distance(ratio: str) -> float:
        width, _, height = ratio.partition(":")
        return abs(math.log(int(width) / int(height)) - shape)

    return min(ratios, key=distance)


def _chosen_model(
    arguments: GenerateImageArgs, settings: TurnSettings, models: Mapping[str, ModelEntry], needs_search: bool
) -> tuple[ModelEntry, str]:
    """Return the model and who chose it (docs/architecture.md, Which image model).

    When the choice is `auto`, a model that does not support the user's other locks is replaced by one that does.
    """
    if settings.image_model != "auto":
        candidates = [settings.image_model]
    elif arguments.model == "pro" or (needs_search and settings.search_policy is SearchPolicy.IMAGE_ONLY):
        candidates = ["pro", "flash"]
    else:
        candidates = ["flash", "pro"]
    refusals = {name: _refusal(models[name], settings) for name in candidates}
    chosen = next((name for name in candidates if refusals[name] is None), candidates[0])
    refusal = refusals[chosen]
    if refusal is not None:
        raise refusal
    if settings.image_model != "auto" or chosen != candidates[0]:
        return models[chosen], "locked"
    return models[chosen], "agent" if arguments.model == chosen else "default"


def _refusal(model: ModelEntry, settings: TurnSettings) -> RequestRefused | None:
    locks = (
        ("aspect ratio", settings.aspect_ratio, model.aspect_ratios),
        ("resolution", settings.resolution, model.resolutions),
    )
    for setting, value, legal in locks:
        if value is not None and value not in legal:
            choices = ", ".join(legal) or "none"
            return RequestRefused(
                ErrorCode.SETTING_NOT_SUPPORTED, model=model.label, setting=setting, value=value, choices=choices
            )
    return None


def _first_legal(lock: T | None, preferred: T | None, default: T, legal: Sequence[T] | None) -> tuple[T, str]:
    """Return the value to use and who chose it; when `legal` is None, every wish is allowed."""
    if lock is not None:
        return lock, "locked"
    if preferred is not None and (legal is None or preferred in legal):
        return preferred, "agent"
    return default, "default"


def _is_grounded(
    settings: TurnSettings, model: ModelEntry, needs_search: bool, search_requested_in_words: bool
) -> bool:
    if not settings.allow_search or not model.has_grounding:
        return False
    match settings.search_policy:
        case SearchPolicy.LLM_ONLY:
            return False
        case SearchPolicy.IMAGE_ONLY:
            return needs_search
        case SearchPolicy.BOTH:
            return search_requested_in_words


# The text for the image model: the prompt, what to avoid, the facts in one block, and the legend of the pictures

_FACTS_TAG = re.compile(r"\[\s*(/?)\s*FACTS\s*\]", re.IGNORECASE)
_LEGEND = re.compile(r"\s*\[IMAGES\].*?\[/IMAGES\]", re.DOTALL)
_BLANK_LINE = re.compile(r"\n\s*\n")

ROLE_SENTENCES: dict[ReferenceRole, str] = {
    ReferenceRole.SUBJECT: "Subject: show this very subject, recognisably the same, and nothing else of the image.",
    ReferenceRole.PRODUCT: "Product: show this very product, its shape, material, colours and lettering unchanged.",
    ReferenceRole.FACE: "Face: give the person this face, recognisably the same, not the clothes or the surroundings.",
    ReferenceRole.STYLE: "Style: take only its colours and brushwork, not its content.",
    ReferenceRole.PALETTE: "Palette: take only its colours, neither its content nor its technique.",
    ReferenceRole.POSE: "Pose: take only the posture and gesture, not who or what is shown.",
    ReferenceRole.LAYOUT: "Layout: take only where things stand and how large, not what they are.",
    ReferenceRole.BACKGROUND: "Background: take it as the place behind everything, without what stands before it.",
    ReferenceRole.TEXT: "Text: take over its lettering, letter by letter, and nothing else of the image.",
}


def final_prompt(
    prompt: str,
    negative_prompt: str | None,
    facts: Sequence[Fact],
    references: Sequence[Picture],
    roles: Mapping[str, ReferenceRole] | None = None,
) -> str:
    """Return the prompt as it is sent.

    It contains exactly one `[FACTS]` block when there are facts, and none otherwise, whatever blocks the planner or a
    web page wrote. It contains a legend of the pictures in the order they are shown when there are several, when the
    text mentions one by its handle, or when one has a role (`roles`, by handle).
    """
    roles = roles or {}
    text = without_facts(without_legend(prompt))
    if negative_prompt and negative_prompt.strip():
        text += f"\n\nAvoid: {without_facts(without_legend(negative_prompt))}"
    if facts:
        lines = "\n".join(f"- {_one_line(fact.item)} ({_one_line(fact.source)})" for fact in facts)
        text += f"\n\n[FACTS]\n{lines}\n[/FACTS]"
    if len(references) > 1 or any(picture.handle in text or picture.handle in roles for picture in references):
        legend = []
        for place, picture in enumerate(references, 1):
            role = roles.get(picture.handle)
            legend.append(f"Image {place} is {picture.handle}." + (f" {ROLE_SENTENCES[role]}" if role else ""))
        text += "\n\n" + "\n".join(("[IMAGES]", *legend, "[/IMAGES]"))
    return text


def without_legend(prompt: str) -> str:
    """Return the prompt without its `[IMAGES]` legend, for use when those pictures are no longer shown."""
    return _LEGEND.sub("", prompt).strip()


def without_facts(text: str) -> str:
    """Return the text without any `[FACTS]` block: nested, unclosed, repeated or in another case.

    An unclosed block ends at the next blank line. When no text would be left, only the tags are removed.
    """
    kept = text
    # Repeat until none is left: the text joined by a removal may form a new tag.
    while tag := _FACTS_TAG.search(kept):
        if tag[1]:
            kept = _FACTS_TAG.sub(" ", kept, count=1)
        else:
            kept = f"{kept[: tag.start()].rstrip(' ')} {kept[_end_of_block(kept, tag) :].lstrip(' ')}"
    return kept.strip() or _without_tags(text).strip()


def _end_of_block(text: str, opening: re.Match[str]) -> int:
    depth, last_closing = 1, None
    for tag in _FACTS_TAG.finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        last_closing = tag.end() if tag[1] else last_closing
        if depth == 0:
            return tag.end()
    if last_closing is not None:
        return last_closing
    blank = _BLANK_LINE.search(text, opening.end())
    return blank.start() if blank else len(text)


def _without_tags(text: str) -> str:
    while _FACTS_TAG.search(text):
        text = _FACTS_TAG.sub(" ", text)
    return text


def _one_line(text: str) -> str:
    # A fact comes from the web: it must not open or close the block.
    return " ".join(_without_tags(text).split())
