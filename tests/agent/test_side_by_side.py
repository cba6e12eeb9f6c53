"""Flash and Pro on one wish: the same request painted by each, at the same time, to be seen side by side."""

from __future__ import annotations

import asyncio

import pytest

from agent.components import FailureNote, PlanCard, SmartCanvas
from agent.errors import ErrorCode, ErrorInfo
from agent.events import PaintingStarted, PictureFailed, PictureReady, PlanReady, Step, ThoughtLog, TurnDone, TurnFailed
from agent.messages import ToolResultPart
from agent.plans import PlanEdit
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.scripted import Asked, Hold, Line, calls, says
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run
from tests.support.turns import decide, send, started

FLASH, PRO = "gemini-nano-banana-2.1", "gemini-3-pro-image"


def by_model(asked: Asked) -> Line:
    """Paint in the model's own colour."""
    return picture(colour="red" if asked.model.id == FLASH else "blue")


async def test_one_wish_is_painted_by_both_at_the_same_time_and_shown_as_one_sheet(settings: Settings) -> None:
    asked_models: set[str] = set()
    both_are_asked = asyncio.Event()

    def held(asked: Asked) -> Line:
        asked_models.add(asked.model.id)
        if len(asked_models) == 2:
            both_are_asked.set()
        return Line((Hold(both_are_asked), *by_model(asked).parts))

    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
    scene = Scene(settings, text=[calls(generate("a red fox")), says(review), says(review)], pictures=held)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox", image_model="both")
        kept = await studio.conversation(conversation.id)
        made = [await studio.picture(conversation.id, handle) for handle in ("#1", "#2")]
    requests = [one.request for one in scene.provider.asked if one.request]
    assert sorted(one.model.id for one in requests) == sorted((FLASH, PRO))
    assert len({one.messages[-1].text for one in requests}) == 1
    assert len({(one.aspect_ratio, one.resolution, one.take) for one in requests}) == 1
    frame = only(events, PaintingStarted)
    assert (frame.count, frame.model_label) == (2, "Flash + Pro")
    assert {event.index for event in of_type(events, PictureReady)} == {0, 1}
    canvas = next(one for one in kept.turns[0].components if isinstance(one, SmartCanvas))
    assert sorted(canvas.handles) == ["#1", "#2"]
    shown = {one.picture.handle: one for one in made}
    receipts = [receipt for handle in canvas.handles if (receipt := shown[handle].receipt)]
    assert [receipt.model_label for receipt in receipts] == ["Flash", "Pro"]
    assert [shown[handle].data for handle in canvas.handles] == [png(1376, 768, "red"), png(1376, 768, "blue")]
    painting = next(line for line in of_type(events, ThoughtLog) if line.step is Step.PAINTING)
    assert painting.parameters == {"count": 2, "model": "Flash + Pro, 1K"}
    # Both are looked at when one is due.
    assert [one.review is not None and one.review.score for one in kept.pictures] == [0.9, 0.9]
    # The planner hears which of them made which picture.
    [result] = [part for part in kept.turns[0].messages[-1].parts if isinstance(part, ToolResultPart)]
    told = result.content["pictures"]
    assert isinstance(told, list)
    assert [one["model"] for one in told if isinstance(one, dict)] == ["Flash", "Pro"]


async def test_when_one_of_the_two_refuses_the_other_is_shown_with_the_reason(settings: Settings) -> None:
    refusal = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"})
    scene = Scene(
        settings,
        text=[calls(generate())],
        pictures=lambda asked: Line(error=refusal) if asked.model.id == PRO else by_model(asked),
    )
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", image_model="both", review="off")
        kept = await studio.conversation(conversation.id)
    assert only(events, PictureFailed).index == 1
    assert isinstance(events[-1], TurnDone)
    kinds = [type(one) for one in kept.turns[0].components]
    assert (kinds.count(SmartCanvas), kinds.count(FailureNote)) == (1, 1)


async def test_the_plan_says_what_several_of_each_would_cost(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(number_of_images=2))], pictures=by_model)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", image_model="both", confirm=True, review="off")
        [plan] = only(events, PlanReady).plans
        painted = await decide(studio, conversation.id, started(events))
        kept = await studio.conversation(conversation.id)
    assert (plan.model, plan.model_label) == ("both", "Flash + Pro")
    assert [one.model_label for one in plan.prices] == ["Flash", "Pro"]
    flash, pro = (one.price_usd for one in plan.prices)
    assert 0 < flash < pro
    assert plan.price_usd == pytest.approx(flash + pro)
    assert len(of_type(painted, PictureReady)) == 4
    requests = [one.request for one in scene.provider.asked if one.request]
    assert sorted((one.model.id, one.take) for one in requests) == sorted((m, n) for m in (FLASH, PRO) for n in (1, 2))
    card = next(one for one in kept.turns[0].components if isinstance(one, PlanCard))
    assert card.state == "run"


async def test_a_plan_for_both_can_be_cut_down_to_one(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=by_model)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", image_model="both", confirm=True, review="off")
        painted = await decide(studio, conversation.id, started(events), PlanEdit(model="flash"))
        kept = await studio.conversation(conversation.id)
    receipt = only(painted, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.model == FLASH
    card = next(one for one in kept.turns[0].components if isinstance(one, PlanCard))
    assert [(plan.model, plan.model_label, plan.prices) for plan in card.plans] == [("flash", "Flash", ())]


async def test_a_ratio_that_only_one_of_them_obeys_is_refused_naming_the_other(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", image_model="both", aspect_ratio="1:8")
    error = only(events, TurnFailed).error
    assert (error.code, error.parameters["model"]) == (ErrorCode.SETTING_NOT_SUPPORTED, "Pro")


async def test_where_one_painter_plays_both_parts_it_is_refused_with_a_sentence(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        request = TurnRequest(text="draw a red fox", settings=TurnSettings(image_model="both"))
        events = await send(studio, conversation.id, request)
    error = only(events, TurnFailed).error
    assert error.code is ErrorCode.ONE_PAINTER_ONLY
    assert error.message.startswith("Here Sketch paints alone")
