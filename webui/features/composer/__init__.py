"""The composer: prompt and pictures, and the settings that the model accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import gradio as gr
from markupsafe import Markup
from pydantic import ValidationError

from agent import (
    MAX_NEGATIVE_CHARACTERS,
    Catalogue,
    ModelEntry,
    ModelRole,
    RecipeSettings,
    ReferenceMode,
    TurnSettings,
    Value,
)
from webui.shell.templates import render
from webui.view import IMAGE_MODEL_ROLES
from webui.words import Words

AUTO = "auto"
BOTH = "both"
MESSAGE = "box"
# The ids of the settings' inputs, by their names in `ChosenSettings`.
INPUTS = {
    "text_model": "text-model",
    "image_model": "image-model",
    "allow_search": "search",
    "search_policy": "policy",
    "aspect_ratio": "aspect-ratio",
    "resolution": "resolution",
    "number_of_images": "count",
    "review": "review",
    "confirm": "confirm",
    "negative_prompt": "avoid",
    "reference_mode": "reference-mode",
    "reference_count": "reference-count",
}
# The settings in the panel that one button opens.
PANEL = frozenset(INPUTS.values()) - {INPUTS["allow_search"]}
TEXT_MODELS = ("flash", "thinking")
IMAGE_MODELS = (AUTO, "flash", "pro")
COUNTS = ("1", "2", "3", "4")
POLICIES = ("llm_only", "image_only", "both")
REFERENCE_MODES = {
    ReferenceMode.USER_UPLOADED_ONLY: "composer.user_uploaded_only",
    ReferenceMode.LAST_GENERATED: "composer.last_generated",
    ReferenceMode.ALL_USER_UPLOADED: "composer.all_user_uploaded",
    ReferenceMode.LAST_N: "composer.last_n",
}
REFERENCE_COUNTS = ("1", "2", "3", "4", "6", "8", "10", "14")
REVIEWS = ("off", "on", "always")
_LONGEST_AVOIDED = 24
Setting: TypeAlias = gr.Dropdown | gr.Radio | gr.Checkbox | gr.Textbox
Update: TypeAlias = dict[str, Any]
"""Properties of an input of Gradio's."""


class ChosenSettings(Value):
    """The settings as chosen on the page; `auto` leaves the choice to the agent."""

    text_model: str = "flash"
    image_model: str = AUTO
    allow_search: bool = False
    search_policy: str = "llm_only"
    aspect_ratio: str = AUTO
    resolution: str = AUTO
    number_of_images: str = AUTO
    review: str = "on"
    confirm: bool = False
    negative_prompt: str = ""
    reference_mode: str = AUTO
    reference_count: str = AUTO

    @classmethod
    def of(cls, settings: TurnSettings | RecipeSettings) -> ChosenSettings:
        """Return the choices on the page that stand for a turn's settings."""
        given = {name: value for name in cls.model_fields if (value := getattr(settings, name, None)) is not None}
        given |= {name: str(given[name]) for name in ("number_of_images", "reference_count") if name in given}
        if given.get("number_of_images") not in COUNTS:
            given.pop("number_of_images", None)
        return cls(**given)

    def turn_settings(self) -> TurnSettings:
        """Return the turn's settings. Raises ValueError for values that the page does not offer."""
        given = {name: None if value in (AUTO, "") else value for name, value in self.model_dump().items()}
        return TurnSettings.model_validate(given | {"image_model": self.image_model})

    @classmethod
    def from_chips(cls, chips: Mapping[str, Any]) -> ChosenSettings:
        """Return the choices sent by a page; a value that the page does not offer counts as not chosen."""
        try:
            chosen = cls.model_validate(chips)
            chosen.turn_settings()
        except ValidationError as error:
            wrong = {one["loc"][0] for one in error.errors()}
            return cls.from_chips({name: value for name, value in chips.items() if name not in wrong})
        return chosen


class Composer(NamedTuple):
    """The inputs of the composer: the message, and the settings by their names in `ChosenSettings`."""

    message: gr.MultimodalTextbox
    settings: dict[str, Setting]


def build_composer(catalogue: Catalogue) -> Composer:
    """Return the composer with every choice of the catalogue; `chip_updates` narrows them to those of the chosen
    model. The settings are real Gradio inputs, in a panel that one button opens."""
    painters = [entry for entry in catalogue.entries if entry.aspect_ratios]
    ratios = list(dict.fromkeys(ratio for entry in painters for ratio in entry.aspect_ratios))
    made = dict[str, Setting]()

    def common(name: str) -> dict[str, Any]:
        # Gradio makes an input read-only when no event uses it.
        default = ChosenSettings.model_fields[name].default
        return {"value": default, "label": name, "elem_id": INPUTS[name], "interactive": True}

    def switch(name: str) -> None:
        made[name] = gr.Checkbox(**common(name), container=False, min_width=0, scale=0)

    def dropdown(name: str, choices: Sequence[str]) -> None:
        made[name] = gr.Dropdown(list(choices), **common(name), filterable=False)

    def radio(name: str, choices: Sequence[str]) -> None:
        made[name] = gr.Radio(list(choices), **common(name))

    def box(name: str) -> None:
        # Laid out as if it were our own element with that id: without Gradio's prose styles and wrappers.
        gr.HTML(apply_default_css=False, elem_classes="flat", elem_id=name)

    message = gr.MultimodalTextbox(
        elem_id=MESSAGE,
        label="message",
        show_label=False,
        container=False,
        lines=1,
        max_lines=8,
        file_count="multiple",
        file_types=["image", ".heic", ".heif", ".avif"],
        sources=["upload"],
        max_plain_text_length=1_000_000,
        # Both buttons always exist: the style shows Stop while the thread has a live line. Gradio would apply quick
        # changes of the two out of order.
        submit_btn=True,
        stop_btn=True,
    )
    with gr.Column(elem_id="opts"):
        box("summary")
        switch("allow_search")
        box("cost")
    with gr.Column(elem_id="setup"):
        dropdown("text_model", TEXT_MODELS)
        box("text-models")
        dropdown("image_model", [*IMAGE_MODELS, BOTH])
        box("image-models")
        radio("aspect_ratio", [AUTO, *ratios])
        radio("resolution", [AUTO, *catalogue.resolutions])
        radio("number_of_images", [AUTO, *COUNTS])
        radio("review", REVIEWS)
        switch("confirm")
        dropdown("search_policy", POLICIES)
        avoided = common("negative_prompt")
        made["negative_prompt"] = gr.Textbox(**avoided, lines=1, max_lines=1, max_length=MAX_NEGATIVE_CHARACTERS)
        dropdown("reference_mode", [AUTO, *ReferenceMode])
        dropdown("reference_count", [AUTO, *REFERENCE_COUNTS])
        box("aids")
    return Composer(message, {name: made[name] for name in INPUTS})


def painters(catalogue: Catalogue, provider: str, image_model: str) -> list[ModelEntry]:
    """Return the image models that may paint for a choice: both for `auto` and for `both`."""
    chosen = [image_model] if image_model in IMAGE_MODEL_ROLES else IMAGE_MODEL_ROLES
    return [catalogue.model(IMAGE_MODEL_ROLES[name], provider) for name in chosen]


def chip_updates(words: Words, catalogue: Catalogue, provider: str, chosen: ChosenSettings) -> dict[str, Update]:
    """Return the update of every setting, by name: its label, its translated choices, and whether it is visible.

    A value that the chosen model does not accept falls back to `auto`. Without a key, the models and the search are
    still shown, greyed; `summary_html` says why.
    """
    planner = catalogue.model(ModelRole(chosen.text_model), provider)
    # Where the text model cannot search, there is nothing to permit.
    is_sketch, can_search = planner.is_sketch, planner.has_grounding
    able = painters(catalogue, provider, chosen.image_model)
    # All models of a choice accept them.
    ratios = [ratio for ratio in able[0].aspect_ratios if all(ratio in one.aspect_ratios for one in able)]
    sizes = [size for size in able[0].resolutions if all(size in one.resolutions for one in able)]
    auto = words("composer.auto")
    has_two = is_sketch or len({one.id for one in painters(catalogue, provider, BOTH)}) > 1
    models = [(model_name(words, name), name) for name in (*IMAGE_MODELS, *([BOTH] if has_two else []))]
    thinkers = [(model_name(words, name), name) for name in TEXT_MODELS]
    when = [(words(f"composer.review_{name}"), name) for name in REVIEWS]
    by_whom = [(words(f"composer.{name}"), name) for name in POLICIES]
    image = chosen.image_model if not is_sketch and chosen.image_model in {name for _, name in models} else AUTO
    size = chosen.resolution if chosen.resolution in sizes and not is_sketch else AUTO
    ratio = chosen.aspect_ratio if chosen.aspect_ratio in ratios else AUTO
    # A sketch is drawn from the prompt alone, and a model that cannot change pictures is shown none.
    takes_pictures = not is_sketch and all(one.has_edits for one in able)
    mode = chosen.reference_mode if takes_pictures and chosen.reference_mode in set(ReferenceMode) else AUTO
    modes = [(auto, AUTO), *((words(key), one.value) for one, key in REFERENCE_MODES.items())]
    is_counted = mode == ReferenceMode.LAST_N
    many = chosen.reference_count if is_counted and chosen.reference_count in REFERENCE_COUNTS else AUTO
    text_model = chosen.text_model if not is_sketch else "flash"
    searches = can_search and chosen.allow_search
    return {
        "text_model": _choices(words, "text_model", thinkers, text_model, interactive=not is_sketch),
        "image_model": _choices(words, "image_model", models, image, interactive=not is_sketch),
        "aspect_ratio": _choices(words, "aspect_ratio", [(auto, AUTO), *_same(ratios)], ratio),
        "resolution": _choices(words, "resolution", [(auto, AUTO), *_same(sizes)], size, visible=not is_sketch),
        "number_of_images": _choices(words, "count", [(auto, AUTO), *_same(COUNTS)], chosen.number_of_images),
        "allow_search": {
            "label": words("composer.search"),
            "value": searches,
            "visible": can_search or is_sketch,
            "interactive": can_search,
        },
        "search_policy": _choices(words, "search_policy", by_whom, chosen.search_policy, visible=searches),
        "review": _choices(words, "review", when, chosen.review),
        "confirm": {"label": words("composer.confirm"), "value": chosen.confirm, "visible": True},
        "negative_prompt": {
            "label": words("composer.negative_prompt"),
            "placeholder": words("composer.negative_prompt_hint"),
            "value": chosen.negative_prompt if not is_sketch else "",
            "visible": not is_sketch,
        },
        "reference_mode": _choices(words, "reference_mode", modes, mode, visible=takes_pictures),
        "reference_count": _choices(
            words, "reference_count", [(auto, AUTO), *_same(REFERENCE_COUNTS)], many, visible=is_counted
        ),
    }


def _same(values: Sequence[str]) -> list[tuple[str, str]]:
    return [(value, value) for value in values]


def _choices(
    words: Words,
    name: str,
    choices: Sequence[tuple[str, str]],
    value: str,
    *,
    visible: bool = True,
    interactive: bool = True,
) -> Update:
    label, listed = words(f"composer.{name}"), [list(one) for one in choices]
    return {"label": label, "choices": listed, "value": value, "visible": visible, "interactive": interactive}


# How the settings button names a fixed value, by `setting:value`; ratios and sizes name themselves.
_SAID = {
    "text_model:thinking": "composer.thinking",
    "image_model:flash": "composer.flash",
    "image_model:pro": "composer.pro",
    "image_model:both": "composer.flash_pro",
    "review:off": "presets.review_off",
    "review:always": "presets.review_always",
    "confirm:true": "composer.confirm",
    **{f"reference_mode:{mode}": key for mode, key in REFERENCE_MODES.items()},
}


def summary_html(words: Words, *, needs_key: bool) -> Markup:
    """Return the button that says what will be made and opens the settings. With `needs_key`, the panel says why the
    models and the search are greyed."""
    said = {name: words(key) for name, key in _SAID.items()} | {"negative_prompt": words("presets.avoids", words="{}")}
    return render("composer/summary.html", words, said=said, needs_key=needs_key)


def models_html(words: Words, setting: str, values: Sequence[str], prices: Mapping[str, str]) -> Markup:
    """Return models as buttons, each with a sentence and, where it is known, its price (by `setting:value`)."""
    models = [(value, words(f"composer.{setting}_{value}")) for value in values]
    return render("composer/models.html", words, setting=setting, models=models, prices=prices)


def model_name(words: Words, value: str) -> str:
    """Return the name of a value of the settings `text_model` and `image_model`."""
    return words("composer.flash_pro" if value == BOTH else f"composer.{value}")


def fixed(words: Words, chosen: ChosenSettings) -> list[str]:
    """Return the fixed settings in words, without those that are left to the agent."""
    avoided = chosen.negative_prompt
    if len(avoided) > _LONGEST_AVOIDED:
        avoided = f"{avoided[: _LONGEST_AVOIDED - 1].rstrip()}…"
    count = f" ×{chosen.reference_count}" if chosen.reference_count != AUTO else ""
    return [
        *([model_name(words, chosen.text_model)] if chosen.text_model != "flash" else []),
        *([model_name(words, chosen.image_model)] if chosen.image_model != AUTO else []),
        *(one for one in (chosen.aspect_ratio, chosen.resolution) if one != AUTO),
        *([f"×{chosen.number_of_images}"] if chosen.number_of_images != AUTO else []),
        *([words("composer.search")] if chosen.allow_search else []),
        *([words(_SAID[f"review:{chosen.review}"])] if chosen.review != "on" else []),
        *([words("presets.avoids", words=avoided)] if avoided else []),
        *(words(REFERENCE_MODES[one]) + count for one in ReferenceMode if one == chosen.reference_mode),
        *([words("composer.confirm")] if chosen.confirm else []),
    ]
