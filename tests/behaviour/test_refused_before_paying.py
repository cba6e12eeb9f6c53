"""What can never be painted is refused before any model is paid, and what a planner writes has a length."""

from __future__ import annotations

from typing import Any

import pytest

from agent import Actor, Charge, ErrorCode, Expansion, ReferenceMode, ReferenceRole, TurnDone, TurnSettings
from tests.behaviour.talk import Talk, TurnResult
from tests.support.cases import each_case
from tests.support.gemini import SMALL, paint, search
from tests.support.scenes import png
from tests.wire_server import Call, Calls, Text
from tests.wire_server.models import Kind

MEGABYTE = 1 << 20


# ---- what the person has fixed
@each_case(
    ("chosen", "says"),
    [
        ({"image_model": "pro", "aspect_ratio": "1:8"}, "Pro does not offer aspect ratio 1:8"),
        ({"image_model": "both", "aspect_ratio": "1:8"}, "Pro does not offer aspect ratio 1:8"),
        ({"image_model": "flash", "resolution": "512"}, "Flash does not offer resolution 512"),
        ({"aspect_ratio": "7:3"}, "does not offer aspect ratio 7:3"),
        ({"resolution": "16K"}, "does not offer resolution 16K"),
        ({"aspect_ratio": "wide"}, "does not offer aspect ratio wide"),
    ],
)
async def test_settings_that_no_model_can_obey_are_refused_before_the_planner_is_paid(
    talk: Talk, chosen: dict[str, Any], says: str
) -> None:
    turn = await talk.say("a red fox", **chosen)
    error = turn.failure
    assert (error.code, error.actor, error.charged) == (ErrorCode.SETTING_NOT_SUPPORTED, Actor.YOU, Charge.NO)
    assert says in error.message
    assert (turn.record.text, turn.record.price_usd, turn.requests) == ("a red fox", 0.0, [])


async def test_a_lock_that_one_model_obeys_is_obeyed_and_the_edit_of_a_part_keeps_its_shape(talk: Talk) -> None:
    turn = await talk.say("a tall red fox", plan=paint(), image=SMALL, aspect_ratio="1:8")
    assert turn.receipt.asked_aspect_ratio == "1:8"
    locks: dict[str, Any] = {"image_model": "pro", "aspect_ratio": "1:8"}
    turn = await talk.say("more sky", plan=Text("I only looked."), expand=Expansion("#1", top=20), **locks)
    assert turn.words == "I only looked."


async def test_more_faces_than_the_chosen_model_keeps_alike_are_refused_before_the_planner_is_paid(talk: Talk) -> None:
    model = talk.studio.catalogue.by_id("gemini-nano-banana-2.1")
    assert model is not None
    handles = tuple(f"#{number}" for number in range(1, model.max_characters + 2))
    people = [png(8, 8 + number, "green") for number in range(len(handles))]
    await talk.say("these", *people, plan=Text("Nice people."))
    roles = dict.fromkeys(handles, ReferenceRole.FACE)
    turn = await talk.say("all of them", references=handles, roles=roles, image_model="flash")
    assert (turn.failure.code, turn.requests) == (ErrorCode.TOO_MANY_FACES, [])


# ---- what the planner writes
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": "fox " * (5 * MEGABYTE // 4)}, f"its prompt has {5 * MEGABYTE} characters"),
        ({"prompt": "a fox", "negative_prompt": "x" * 5000}, "its negative_prompt has 5000 characters"),
        ({"prompt": "a fox", "handles": ["#1"] * 5000}, "its handles has"),
        ({"prompt": "a fox", "surprise": "x" * 5000}, "its surprise has 5000 characters"),
    ],
    ids=["prompt", "negative prompt", "handles", "what there is not"],
)
async def test_a_call_that_is_too_long_goes_back_to_the_planner_and_is_not_sent_on(
    talk: Talk, arguments: dict[str, Any], says: str
) -> None:
    too_long = Call("generate_image", {"confidence": 0.9, **arguments})
    turn = await talk.say("a red fox", plan=[too_long, paint("a short fox")], image=SMALL)
    assert len(turn.pictures) == 1
    first, second, painted = turn.requests
    assert [one.kind for one in turn.requests] == [Kind.TEXT, Kind.TEXT, Kind.IMAGE]
    [answer] = second.function_responses
    assert says in answer["response"]["error"]
    assert "Call it again with less" in answer["response"]["error"]
    # Neither the next question nor the picture pays for what was too long.
    assert second.size_bytes < first.size_bytes + 4000
    assert "a short fox" in painted.text


async def test_of_two_calls_the_one_that_fits_is_carried_out(talk: Talk) -> None:
    too_long, fits = paint("y" * MEGABYTE), paint("a fox")
    turn = await talk.say("two foxes", plan=Calls([too_long, fits]), image=SMALL)
    assert (type(turn.events[-1]), len(turn.pictures)) == (TurnDone, 1)
    assert (await talk.say("And the other?", plan=Text("One of two."))).words == "One of two."


async def test_a_search_for_a_whole_book_goes_back_and_a_planner_that_never_gets_shorter_is_stopped(talk: Talk) -> None:
    by_heart = [search("why " * 10_000), Text("I know it by heart.")]
    turn = await talk.say("look it up", plan=by_heart, allow_search=True)
    assert turn.words == "I know it by heart."
    assert not any(request.has_search for request in turn.requests)
    turn = await talk.say("a red fox", plan=lambda _: paint("z" * MEGABYTE))
    assert (turn.failure.code, len(turn.requests)) == (ErrorCode.TOO_MANY_STEPS, 3)


async def test_without_a_key_the_longest_message_is_drawn(sketch: Talk) -> None:
    turn = await sketch.say("draw a red fox " + "in the snow " * 8000)
    assert isinstance(turn.events[-1], TurnDone), turn.events[-1]


# ---- what the person fixed besides shape and model


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
