"""What the person fixed besides shape and model: what not to show, and which pictures are shown to the model."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent import ReferenceMode, TurnSettings
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.scenes import png


async def fox(talk: Talk, *images: bytes, said: str = "a fox", plan: dict[str, Any], **locks: Any) -> TurnResult:
    return await talk.say(said, *images, plan=paint("a red fox", **plan), image=SMALL, **locks)


def shown(turn: TurnResult) -> list[str]:
    return [one.handle for one in turn.receipt.references]


async def test_what_the_person_wants_avoided_takes_the_place_of_the_agents_choice(talk: Talk) -> None:
    snow = {"negative_prompt": "snow"}
    chosen, locked = await fox(talk, plan=snow), await fox(talk, plan=snow, negative_prompt="people, text ")
    assert (chosen.receipt.prompt.endswith("Avoid: snow"), chosen.receipt.asked_negative_prompt) == (True, "")
    assert locked.receipt.prompt.endswith("Avoid: people, text")
    assert locked.receipt.asked_negative_prompt == "people, text"
    assert TurnSettings(negative_prompt="  ").negative_prompt is None


async def test_the_references_that_the_person_fixed_are_shown_and_a_picture_to_be_changed_stays_the_one_named(
    talk: Talk,
) -> None:
    named = {"handles": ["#1"], "reference_mode": "USER_UPLOADED_ONLY"}
    await fox(talk, png(), plan={})
    await fox(talk, plan={})
    assert shown(await fox(talk, plan=named)) == ["#1"]
    locked = await fox(talk, plan=named, reference_mode=ReferenceMode.LAST_N, reference_count=2)
    assert (len(shown(locked)), "#1" in shown(locked)) == (2, False)
    receipt = locked.receipt
    assert (receipt.asked_reference_mode, receipt.asked_reference_count) == (ReferenceMode.LAST_N, 2)
    change = {"handles": ["#1"], "action": "edit_image"}
    changed = await fox(talk, said="change #1", plan=change, reference_mode=ReferenceMode.LAST_GENERATED)
    assert shown(changed)[0] == "#1"


@pytest.mark.parametrize(
    "fields",
    [{"negative_prompt": "x" * 1001}, {"reference_mode": "ANY"}, {"reference_count": 0}, {"reference_count": 17}],
)
def test_locks_out_of_bounds_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TurnSettings.model_validate(fields)
