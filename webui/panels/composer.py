"""The composer: words and pictures, what the turn works on, and the settings that the chosen model obeys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.blocks import Block
from pydantic import ValidationError

from agent import (
    MAX_NEGATIVE_CHARACTERS,
    Catalogue,
    Conversation,
    ModelEntry,
    ModelRole,
    ReferenceMode,
    ReferenceRole,
    TurnSettings,
    Value,
)
from webui.panels.flat import flat
from webui.shell.templates import render
from webui.view import View
from webui.words import Words

AUTO = "auto"
BOTH = "both"
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
_SAID_REVIEWS = {"off": "presets.review_off", "always": "presets.review_always"}
_LONGEST_AVOIDED = 24
Update = dict[str, Any]


@dataclass(frozen=True)
class ComposerPanel:
    """The components of the composer; the settings are real Gradio inputs, in a panel that one button opens."""

    message: gr.MultimodalTextbox
    text_model: gr.Dropdown
    image_model: gr.Dropdown
    aspect_ratio: gr.Radio
    resolution: gr.Radio
    number_of_images: gr.Radio
    allow_search: gr.Checkbox
    search_policy: gr.Dropdown
    review: gr.Radio
    confirm: gr.Checkbox
    negative_prompt: gr.Textbox
    reference_mode: gr.Dropdown
    reference_count: gr.Dropdown
    summary: gr.HTML
    text_models: gr.HTML
    image_models: gr.HTML
    aids: gr.HTML
    cost: gr.HTML

    @property
    def settings(self) -> dict[str, Block]:
        """The inputs of a turn's settings, by the names that `Chosen` gives them."""
        return {**self.chips}

    @property
    def chips(self) -> dict[str, gr.Dropdown | gr.Radio | gr.Checkbox | gr.Textbox]:
        """The same, as what they are."""
        return {
            "text_model": self.text_model,
            "image_model": self.image_model,
            "allow_search": self.allow_search,
            "search_policy": self.search_policy,
            "aspect_ratio": self.aspect_ratio,
            "resolution": self.resolution,
            "number_of_images": self.number_of_images,
            "review": self.review,
            "confirm": self.confirm,
            "negative_prompt": self.negative_prompt,
            "reference_mode": self.reference_mode,
            "reference_count": self.reference_count,
        }


class Chosen(Value):
    """What the chips say; `auto` leaves the choice to the agent."""

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
    def of(cls, settings: TurnSettings) -> Chosen:
        """Return what the chips say when a turn was sent with these settings."""
        count = str(settings.number_of_images)
        return cls(
            text_model=settings.text_model,
            image_model=settings.image_model,
            allow_search=settings.allow_search,
            search_policy=settings.search_policy,
            aspect_ratio=settings.aspect_ratio or AUTO,
            resolution=settings.resolution or AUTO,
            number_of_images=count if count in COUNTS else AUTO,
            review=settings.review,
            confirm=settings.confirm,
            negative_prompt=settings.negative_prompt or "",
            reference_mode=settings.reference_mode or AUTO,
            reference_count=str(settings.reference_count or AUTO),
        )

    def turn_settings(self) -> TurnSettings:
        """Return the turn's settings. Raises ValueError for values that no chip offers."""
        count = None if self.number_of_images == AUTO else int(self.number_of_images)
        return TurnSettings.model_validate(
            {
                "text_model": self.text_model,
                "image_model": self.image_model,
                "allow_search": self.allow_search,
                "search_policy": self.search_policy,
                "aspect_ratio": None if self.aspect_ratio == AUTO else self.aspect_ratio,
                "resolution": None if self.resolution == AUTO else self.resolution,
                "number_of_images": count,
                "review": self.review,
                "confirm": self.confirm,
                "negative_prompt": self.negative_prompt or None,
                "reference_mode": None if self.reference_mode == AUTO else self.reference_mode,
                "reference_count": None if self.reference_count == AUTO else int(self.reference_count),
            }
        )

    @classmethod
    def from_chips(cls, chips: Mapping[str, Any]) -> Chosen:
        """Return what the chips of a page say; what no chip could say counts as not chosen."""
        try:
            return cls.model_validate(chips)
        except ValidationError as error:
            wrong = {one["loc"][0] for one in error.errors() if one["loc"]}
            return cls.model_validate({name: value for name, value in chips.items() if name not in wrong})


def build_composer(catalogue: Catalogue) -> ComposerPanel:
    """Return the composer with every choice of the catalogue; `composer_updates` narrows it to the chosen model's."""
    painters = [entry for entry in catalogue.entries if entry.aspect_ratios]
    ratios = list(dict.fromkeys(ratio for entry in painters for ratio in entry.aspect_ratios))
    message = gr.MultimodalTextbox(
        elem_id="box",
        label="message",
        show_label=False,
        container=False,
        lines=1,
        max_lines=8,
        file_count="multiple",
        file_types=["image", ".heic", ".heif", ".avif"],
        sources=["upload"],
        max_plain_text_length=1_000_000,
        # Both are always there: the style shows Stop while the thread has a live line. Gradio applies quick
        # changes of these two out of order.
        submit_btn=True,
        stop_btn=True,
    )
    with gr.Column(elem_id="opts"):
        summary, search, cost = flat("summary"), _switch("search", "allow_search"), flat("cost")
    with gr.Column(elem_id="setup"):
        text_model = _dropdown("text-model", "text_model", ["flash", "thinking"], "flash")
        text_models = flat("text-models")
        image_model = _dropdown("image-model", "image_model", [AUTO, "flash", "pro", BOTH], AUTO)
        image_models = flat("image-models")
        aspect_ratio = _radio("aspect-ratio", "aspect_ratio", [AUTO, *ratios], AUTO)
        resolution = _radio("resolution", "resolution", [AUTO, *catalogue.resolutions], AUTO)
        number = _radio("count", "number_of_images", [AUTO, *COUNTS], AUTO)
        review = _radio("review", "review", list(REVIEWS), "on")
        confirm = _switch("confirm", "confirm")
        policy = _dropdown("policy", "search_policy", list(POLICIES), "llm_only")
        avoid = gr.Textbox(
            "",
            label="negative_prompt",
            elem_id="avoid",
            lines=1,
            max_lines=1,
            max_length=MAX_NEGATIVE_CHARACTERS,
        )
        mode = _dropdown("reference-mode", "reference_mode", [AUTO, *ReferenceMode], AUTO)
        how_many = _dropdown("reference-count", "reference_count", [AUTO, *REFERENCE_COUNTS], AUTO)
        aids = flat("aids")
    chips = (text_model, image_model, aspect_ratio, resolution, number, search, policy, review, confirm)
    return ComposerPanel(
        message,
        *chips,
        avoid,
        mode,
        how_many,
        summary,
        text_models,
        image_models,
        aids,
        cost,
    )


def _switch(elem_id: str, label: str) -> gr.Checkbox:
    # Gradio takes one that no event asks for to be shown only.
    return gr.Checkbox(False, label=label, elem_id=elem_id, container=False, interactive=True, min_width=0, scale=0)


def _dropdown(elem_id: str, label: str, choices: list[str], value: str) -> gr.Dropdown:
    return gr.Dropdown(choices, value=value, label=label, elem_id=elem_id, filterable=False, interactive=True)


def _radio(elem_id: str, label: str, choices: list[str], value: str) -> gr.Radio:
    return gr.Radio(choices, value=value, label=label, elem_id=elem_id, interactive=True)


def painters(catalogue: Catalogue, provider: str, image_model: str) -> list[ModelEntry]:
    """Return the image models a choice may end with: both for `auto` and for `both`."""
    roles = {"flash": [ModelRole.IMAGE_FLASH], "pro": [ModelRole.IMAGE_PRO]}
    chosen = roles.get(image_model, [ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO])
    return [catalogue.model(role, provider) for role in chosen]


def offered(catalogue: Catalogue, provider: str, image_model: str) -> tuple[list[str], list[str]]:
    """Return the aspect ratios and the resolutions that every model the choice may end with obeys."""
    models = painters(catalogue, provider, image_model)
    first = models[0]
    ratios = [ratio for ratio in first.aspect_ratios if all(ratio in model.aspect_ratios for model in models)]
    sizes = [size for size in first.resolutions if all(size in model.resolutions for model in models)]
    return ratios, sizes


def chip_updates(words: Words, catalogue: Catalogue, provider: str, chosen: Chosen) -> dict[str, Update]:
    """Return the update of every setting, by name: its label, its choices in the visitor's words, whether it is shown.

    A value that the chosen model does not obey falls back to `auto`. Without a key the models and the search are shown
    all the same, greyed: `summary_html` says why.
    """
    planner = catalogue.model(ModelRole(chosen.text_model), provider)
    # Where the text model cannot search, there is nothing to permit.
    is_sketch, can_search = planner.is_sketch, planner.has_grounding
    ratios, sizes = offered(catalogue, provider, chosen.image_model)
    auto = words("composer.auto")
    models = [(words(f"composer.{name}"), name) for name in ("flash", "pro")]
    if is_sketch or len({one.id for one in painters(catalogue, provider, BOTH)}) > 1:
        models.append((words("composer.flash_pro"), BOTH))
    thinkers = [(words(f"composer.{name}"), name) for name in ("flash", "thinking")]
    when = [(words(f"composer.review_{name}"), name) for name in REVIEWS]
    by_whom = [(words(f"composer.{name}"), name) for name in POLICIES]
    image = chosen.image_model if not is_sketch and chosen.image_model in {name for _, name in models} else AUTO
    size = chosen.resolution if chosen.resolution in sizes and not is_sketch else AUTO
    ratio = chosen.aspect_ratio if chosen.aspect_ratio in ratios else AUTO
    # A sketch is drawn from the words alone, and a model that changes no picture is shown none.
    takes_pictures = not is_sketch and all(one.has_edits for one in painters(catalogue, provider, chosen.image_model))
    mode = chosen.reference_mode if takes_pictures and chosen.reference_mode in set(ReferenceMode) else AUTO
    modes = [(auto, AUTO), *((words(key), one.value) for one, key in REFERENCE_MODES.items())]
    is_counted = mode == ReferenceMode.LAST_N
    many = chosen.reference_count if is_counted and chosen.reference_count in REFERENCE_COUNTS else AUTO
    text_model = chosen.text_model if not is_sketch else "flash"
    searches = can_search and chosen.allow_search
    return {
        "text_model": _choices(words, "text_model", thinkers, text_model, interactive=not is_sketch),
        "image_model": _choices(words, "image_model", [(auto, AUTO), *models], image, interactive=not is_sketch),
        "aspect_ratio": _choices(words, "aspect_ratio", [(auto, AUTO), *_same(ratios)], ratio),
        "resolution": _choices(words, "resolution", [(auto, AUTO), *_same(sizes)], size, visible=not is_sketch),
        "number_of_images": _choices(words, "count", [(auto, AUTO), *_same(COUNTS)], chosen.number_of_images),
        "allow_search": gr.update(
            label=words("composer.search"),
            value=searches,
            visible=can_search or is_sketch,
            interactive=can_search,
        ),
        "search_policy": _choices(words, "search_policy", by_whom, chosen.search_policy, visible=searches),
        "review": _choices(words, "review", when, chosen.review),
        "confirm": gr.update(label=words("composer.confirm"), value=chosen.confirm, visible=True),
        "negative_prompt": gr.update(
            label=words("composer.negative_prompt"),
            placeholder=words("composer.negative_prompt_hint"),
            value=chosen.negative_prompt if not is_sketch else "",
            visible=not is_sketch,
        ),
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
    label = words(f"composer.{name}")
    update: Update = gr.update(
        label=label, choices=list(choices), value=value, visible=visible, interactive=interactive
    )
    return update


# What the button of the settings says of a value that is fixed, by `setting:value`; ratios and sizes say it themselves.
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


def summary_html(words: Words, *, needs_key: bool) -> str:
    """Return the button that says what will be made and opens the settings. With `needs_key` the panel says why the
    models and the search are greyed."""
    said = {name: words(key) for name, key in _SAID.items()} | {"negative_prompt": words("presets.avoids", words="{}")}
    return render("composer/summary.html", words, said=said, needs_key=needs_key)


def models_html(words: Words, setting: str, values: Sequence[str], prices: Mapping[str, str]) -> str:
    """Return models as buttons, each with a sentence and its price by `setting:value`, where it is known."""
    models = [(value, words(f"composer.{setting}_{value}")) for value in values]
    return render("composer/models.html", words, setting=setting, models=models, prices=prices)


def context_html(
    view: View, editing: str, references: Sequence[str], roles: Mapping[str, ReferenceRole] | None = None
) -> str:
    """Return the line of what the next message works on; with NO_PICTURE for `editing` it makes a new picture."""
    given, every = roles or {}, list(ReferenceRole)
    return render(
        "composer/context.html",
        view.words,
        view=view,
        editing=editing,
        references=references,
        roles=given,
        all_roles=every,
    )


def next_target_html(view: View, conversation: Conversation | None) -> str:
    """Return the line of the picture that the next words change when nothing is marked; nothing before there is one."""
    handle = conversation.edit_target if conversation is not None else None
    return render("composer/next.html", view.words, view=view, handle=handle) if handle is not None else ""


def fixed(words: Words, chosen: Chosen) -> list[str]:
    """Return what settings fix, in words: only what is not left to the agent."""
    image_model = "flash_pro" if chosen.image_model == "both" else chosen.image_model
    avoided = chosen.negative_prompt
    if len(avoided) > _LONGEST_AVOIDED:
        avoided = f"{avoided[: _LONGEST_AVOIDED - 1].rstrip()}…"
    count = f" ×{chosen.reference_count}" if chosen.reference_count != AUTO else ""
    return [
        *([words(f"composer.{chosen.text_model}")] if chosen.text_model != "flash" else []),
        *([words(f"composer.{image_model}")] if image_model != AUTO else []),
        *(one for one in (chosen.aspect_ratio, chosen.resolution) if one != AUTO),
        *([f"×{chosen.number_of_images}"] if chosen.number_of_images != AUTO else []),
        *([words("composer.search")] if chosen.allow_search else []),
        *([words(_SAID_REVIEWS[chosen.review])] if chosen.review != "on" else []),
        *([words("presets.avoids", words=avoided)] if avoided else []),
        *(words(REFERENCE_MODES[one]) + count for one in ReferenceMode if one == chosen.reference_mode),
        *([words("composer.confirm")] if chosen.confirm else []),
    ]
