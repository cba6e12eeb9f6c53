"""What a call is for, when it is too unsure to be painted, and how the declaration puts both to the planner."""

from __future__ import annotations

from typing import Any

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

DECLARATION = declaration(load_catalogue(), "sketch")


ACTIONS = [
    *((None, True, "edit_image"), (None, False, "generate_image"), ("repaint", True, "edit_image")),
    *(("generate_image", True, "generate_image"), ("edit_image", False, "edit_image")),
    *(("adjust_parameters", True, "adjust_parameters"), ("inpainting", True, "edit_image")),
    *(("Inpainting", False, "edit_image"), ("unknown", True, "unknown"), ("unknown", False, "unknown")),
]


@each_case(("said", "is_edit", "action"), ACTIONS)
def test_without_a_mask_the_agents_word_counts_or_what_the_pictures_say_and_a_mask_forces_a_change_inside_it(
    said: str | None, is_edit: bool, action: str
) -> None:
    arguments = parse_arguments({"prompt": "a fox", "action": said})
    assert action_of(arguments, has_mask=False, is_edit=is_edit) == action
    assert action_of(arguments, has_mask=True, is_edit=is_edit) == "inpainting"


@each_case(("arguments", "unsure"), table("intents")["unsure"])
def test_half_sure_or_less_and_an_unknown_action_are_unsure(arguments: dict[str, Any], unsure: bool) -> None:
    assert is_unsure(parse_arguments({"prompt": "a fox", **arguments})) is unsure


def test_words_that_ask_are_told_from_words_that_announce_and_the_note_of_a_mask_from_both() -> None:
    assert [text for text, asks in table("intents")["asks"] if holds_question(text) is not asks] == []
    assert all(is_mask_note(mask_note(handle)) for handle in ("#3", "#7b", "#12aa"))
    others = ("", "a mask over #3", "[The person marked #3 as the picture to change.]")
    assert not any(map(is_mask_note, others))


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
