"""What the person fixed besides shape and model: what not to show, and which pictures are shown to the model."""

from __future__ import annotations

import itertools

import pytest
from pydantic import JsonValue, ValidationError

from agent.events import PictureReady, TurnEvent
from agent.pictures import Receipt
from agent.settings import ReferenceMode, Settings, TurnSettings
from agent.studio import Studio
from tests.adapters.scripted import Asked, Line, calls
from tests.support.scenes import Scene, generate, only, picture, png, run


def receipt_of(events: list[TurnEvent]) -> Receipt:
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    return receipt


def scene(settings: Settings, **arguments: JsonValue) -> Scene:
    def planned(asked: Asked) -> Line:
        return calls(generate("a red fox", **arguments))

    colours = itertools.cycle(("red", "green", "blue", "white", "black"))
    return Scene(settings, text=planned, pictures=lambda asked: picture(colour=next(colours)))


async def three_pictures(studio: Studio) -> str:
    """Return a conversation with an upload and two generated pictures."""
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, "a fox", png())
    await run(studio, conversation.id, "a fox")
    return conversation.id


async def test_what_the_person_wants_avoided_takes_the_place_of_the_agents_choice(settings: Settings) -> None:
    async with scene(settings, negative_prompt="snow").studio() as studio:
        conversation = await studio.new_conversation()
        chosen = await run(studio, conversation.id, "a fox")
        locked = await run(studio, conversation.id, "a fox", negative_prompt="people, text ")
    assert receipt_of(chosen).prompt.endswith("Avoid: snow")
    assert receipt_of(chosen).asked_negative_prompt == ""
    assert receipt_of(locked).prompt.endswith("Avoid: people, text")
    assert receipt_of(locked).asked_negative_prompt == "people, text"


async def test_the_references_that_the_person_fixed_are_shown_whatever_the_agent_names(settings: Settings) -> None:
    async with scene(settings, handles=["#1"], reference_mode="USER_UPLOADED_ONLY").studio() as studio:
        conversation = await three_pictures(studio)
        free = await run(studio, conversation, "a fox")
        locked = await run(studio, conversation, "a fox", reference_mode=ReferenceMode.LAST_N, reference_count=2)
    assert [one.handle for one in receipt_of(free).references] == ["#1"]
    receipt = receipt_of(locked)
    assert len(receipt.references) == 2
    assert "#1" not in [one.handle for one in receipt.references]
    assert (receipt.asked_reference_mode, receipt.asked_reference_count) == (ReferenceMode.LAST_N, 2)


async def test_a_picture_to_be_changed_stays_the_one_that_was_named(settings: Settings) -> None:
    async with scene(settings, handles=["#1"], action="edit_image").studio() as studio:
        conversation = await three_pictures(studio)
        locked = await run(studio, conversation, "change #1", reference_mode=ReferenceMode.LAST_GENERATED)
    assert receipt_of(locked).references[0].handle == "#1"


@pytest.mark.parametrize(
    "fields",
    [{"negative_prompt": "x" * 1001}, {"reference_mode": "ANY"}, {"reference_count": 0}, {"reference_count": 17}],
)
def test_locks_out_of_bounds_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TurnSettings.model_validate(fields)


def test_an_empty_negative_prompt_is_none() -> None:
    assert TurnSettings(negative_prompt="  ").negative_prompt is None
