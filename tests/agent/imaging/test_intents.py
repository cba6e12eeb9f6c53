"""What a call is for, when it is too unsure to be painted, and how the declaration puts both to the planner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.catalogue import load_catalogue
from tests.adapters.requests import (
    action_of,
    declaration,
    holds_question,
    is_mask_note,
    is_unsure,
    mask_note,
    parse_arguments,
)
from tests.adapters.sketch import Draw, Edit, image_call, understand
from tests.support.cases import each_case
from tests.support.tables import table

SAID = ["generate_image", "edit_image", "adjust_parameters", "inpainting", "unknown", "repaint", None]
DECLARATION = declaration(load_catalogue(), "sketch")


@each_case("said", SAID)
@each_case("is_edit", [True, False])
def test_a_mask_forces_a_change_inside_it_whatever_the_agent_says(said: str | None, is_edit: bool) -> None:
    arguments = parse_arguments({"prompt": "a fox", "action": said})
    assert action_of(arguments, has_mask=True, is_edit=is_edit) == "inpainting"


@each_case(
    ("said", "is_edit", "action"),
    [
        (None, True, "edit_image"),
        (None, False, "generate_image"),
        ("repaint", True, "edit_image"),
        ("generate_image", True, "generate_image"),
        ("edit_image", False, "edit_image"),
        ("adjust_parameters", True, "adjust_parameters"),
        ("inpainting", True, "edit_image"),
        ("Inpainting", False, "edit_image"),
        ("unknown", True, "unknown"),
        ("unknown", False, "unknown"),
    ],
)
def test_without_a_mask_the_agents_word_counts_and_silence_means_what_the_pictures_say(
    said: str | None, is_edit: bool, action: str
) -> None:
    arguments = parse_arguments({"prompt": "a fox", "action": said})
    assert action_of(arguments, has_mask=False, is_edit=is_edit) == action


@each_case(("arguments", "unsure"), table("intents")["unsure"])
def test_half_sure_or_less_and_an_unknown_action_are_unsure(arguments: dict[str, Any], unsure: bool) -> None:
    assert is_unsure(parse_arguments({"prompt": "a fox", **arguments})) is unsure


@each_case(("text", "asks"), table("intents")["asks"])
def test_words_that_ask_are_told_from_words_that_announce(text: str, asks: bool) -> None:
    assert holds_question(text) is asks


@pytest.mark.parametrize("handle", ["#3", "#7b", "#12aa"])
def test_the_note_of_a_mask_is_known_again(handle: str) -> None:
    assert is_mask_note(mask_note(handle))


@pytest.mark.parametrize("text", ["", "a mask over #3", "[The person marked #3 as the picture to change.]"])
def test_other_words_are_no_note_of_a_mask(text: str) -> None:
    assert not is_mask_note(text)


def test_the_planner_may_say_unknown_but_never_inpainting() -> None:
    properties: Any = DECLARATION.parameters["properties"]
    assert properties["action"]["enum"] == ["generate_image", "edit_image", "adjust_parameters", "unknown"]
    assert (
        "unknown: you cannot tell what is wanted; then ask instead of calling." in (properties["action"]["description"])
    )
    assert "0.5 or less" in properties["confidence"]["description"]


@each_case(("text", "action"), table("intents")["actions"])
def test_the_built_in_model_is_sure_of_every_wish_that_it_understands(text: str, action: str) -> None:
    wish = understand(text, True)
    assert isinstance(wish, Draw | Edit)
    call = image_call(wish, text, [DECLARATION], is_upload=False)
    assert call is not None
    arguments = parse_arguments(call.arguments)
    assert not is_unsure(arguments)
    assert arguments.confidence is not None
    assert action_of(arguments, has_mask=False, is_edit=True) == action
