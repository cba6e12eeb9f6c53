"""Whatever picture came in a paid answer is kept, told for what it is, and can be painted again, by both models too."""

from __future__ import annotations

import asyncio
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent import (
    Blank,
    ErrorCode,
    FailureNote,
    PaintingStarted,
    PictureFailed,
    PictureReady,
    PlanCard,
    PlanEdit,
    PlanReady,
    Settings,
    SmartCanvas,
    Step,
    ThoughtLog,
    TurnDone,
    TurnRequest,
    TurnSettings,
)
from tests.adapters.models import Asked, Line, calls
from tests.adapters.models import Hold as Gated
from tests.behaviour.talk import Talk
from tests.support.gemini import REVIEWED, SMALL, paint
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run
from tests.support.waiting import until
from tests.wire_server import Finish, Hold, PictureAnswer, WireRequest

FLASH, PRO = "gemini-nano-banana-2.1", "gemini-3-pro-image"
RED, BLUE = png(64, 36, "red"), png(64, 36, "blue")
DIFFERENCE = "Seen from above."


@pytest.mark.parametrize(
    "answer",
    [
        PictureAnswer(64, 36, is_thought=True),
        PictureAnswer(64, 36, declared="application/octet-stream"),
        PictureAnswer(64, 36, declared=""),
        PictureAnswer(64, 36, mime="image/png", declared="image/jpeg"),
        PictureAnswer(64, 36, text_after="There it is."),
    ],
    ids=["labelled as a thought", "as bytes", "as nothing", "as another type", "words after it"],
)
async def test_the_only_picture_of_an_answer_is_the_result(talk: Talk, answer: PictureAnswer) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=answer)
    assert isinstance(turn.events[-1], TurnDone)
    assert [one.handle for one in (await talk.kept()).pictures] == ["#1"]
    assert (await talk.picture("#1")).mime_type == answer.mime


async def test_all_pictures_of_an_answer_are_kept_and_each_stands_in_its_turn(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(), image=PictureAnswer(64, 36, count=3))

    async def shown() -> set[str] | None:
        [turn] = (await talk.kept()).turns
        handles = {handle for one in turn.components for handle in getattr(one, "handles", ())}
        return handles if len(handles) == 3 else None

    assert await until(shown) == {one.handle for one in (await talk.kept()).pictures}


@pytest.mark.parametrize(("colour", "blank"), [("black", Blank.BLACK), ("white", Blank.WHITE), ("red", None)])
async def test_an_empty_picture_is_marked_for_good(talk: Talk, colour: str, blank: Blank | None) -> None:
    answer = PictureAnswer(data=png(colour=colour), mime="image/png")
    turn = await talk.say("a fox at night", plan=paint(), image=answer)
    stored = await talk.picture("#1")
    assert (type(turn.events[-1]), turn.picture.blank, stored.picture.blank) == (TurnDone, blank, blank)
    assert turn.receipt.price_usd > 0
    assert ("shows nothing" in str(turn.record.messages[-1])) is (blank is not None), "the model hears it"


async def test_what_the_studio_draws_itself_is_never_called_empty(sketch: Talk) -> None:
    assert (await sketch.say("Draw a night sky")).picture.blank is None


async def test_pictures_that_come_in_another_order_stand_in_the_order_of_the_request_everywhere(tmp_path: Path) -> None:
    colours, gates, asked = ("red", "lime", "blue", "white"), [asyncio.Event() for _ in range(4)], count()

    def painter(_: Asked) -> Line:
        place = next(asked)
        return Line((Gated(gates[place]), *picture(colour=colours[place]).parts))

    again = generate("the same at night", action="edit", reference_mode="LAST_GENERATED")
    scene = Scene(Settings(home=tmp_path), text=[calls(generate(number_of_images=3)), calls(again)], pictures=painter)
    arrived: list[str] = []
    # The last one asked answers first, and each that comes lets the one before it come.
    gates[2].set()
    gates[3].set()
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        request = TurnRequest(text="three foxes", settings=TurnSettings(review=False))
        async for event in studio.run_turn(conversation.id, request):
            if isinstance(event, PictureReady):
                arrived.append(event.picture.handle)
                assert event.picture.handle == f"#{event.index + 1}", "each stands in the place it was asked for"
                gates[event.index - 1].set()
        kept = await studio.conversations.get(conversation.id)
        shown = [(await studio.picture(conversation.id, one.handle)).data for one in kept.pictures]
        made = only(await run(studio, conversation.id, "the last one at night", review=False), PictureReady).picture
    assert (arrived, [one.handle for one in kept.pictures]) == (["#3", "#2", "#1"], ["#1", "#2", "#3"])
    assert shown == [png(1376, 768, colour) for colour in colours[:3]]
    assert SmartCanvas(handles=("#1", "#2", "#3")) in kept.turns[0].components
    told = next(one for one in reversed(scene.provider.asked) if one.request is None).messages
    listed = "".join(message.text for message in told)
    assert "#1 (painted here; a red fox), #2 (painted here; a red fox), #3 (painted here; a red fox)" in listed
    # The newest is the last one that was asked for, not the last to arrive.
    assert "When no picture is named, #3 is the one to change." in listed
    assert (made.handle, made.parents) == ("#3b", ("#3",))


# ---- painted again


def prompt_of(body: Any) -> str:
    """Take the words out of a body and return them, the names of its pictures left out: sent anew they have others."""
    words = [part.pop("text") for one in body["contents"] for part in one["parts"] if "text" in part]
    return re.sub(r"#\d+[a-z]*", "#", "\n".join(words))


@pytest.mark.parametrize("difference", ["", DIFFERENCE])
@pytest.mark.parametrize("edits", [{}, {"handles": ["#1"]}], ids=["new", "edit"])
async def test_the_same_request_is_sent_once_more_and_the_picture_is_a_sibling(
    talk: Talk, difference: str, edits: dict[str, Any]
) -> None:
    plan = paint("a red fox", aspect_ratio="3:2", style="ukiyo-e", **edits)
    photos = png(80, 60, "green"), png(60, 80, "blue")
    first = await talk.say("the fox of my photo", *photos, plan=plan, image=SMALL)
    handle = first.picture.handle
    request = await talk.studio.turns.repeated(talk.id, handle, talk.owner, difference=difference)
    assert request is not None
    second = await talk.send(request, image=SMALL)
    assert await talk.studio.turns.repeated(talk.id, handle, talk.owner) is not None, "it stays, and can be repeated"
    [before], [after] = ([one.body for one in turn.painted()] for turn in (first, second))
    words = [prompt_of(body) for body in (before, after)]
    assert before == after, "references, parameters and their order are equal, byte for byte"
    assert [DIFFERENCE in one for one in words] == [False, bool(difference)]
    assert (words[0] == words[1]) is not bool(difference)
    assert [one.handle for one in (await talk.kept()).pictures] == ["#1", "#2", handle, second.picture.handle]
    assert len(second.picture.parents) == len(first.picture.parents)
    assert handle not in second.picture.parents, "the model was not shown the first"
    assert len(second.requests) == 1
    assert second.record.price_usd == second.receipt.price_usd, "the planner was not paid again"


# ---- Flash and Pro on one wish, side by side


def by_model(request: WireRequest) -> PictureAnswer:
    """Paint in the model's own colour."""
    return PictureAnswer(data=RED if request.model == FLASH else BLUE, mime="image/png")


async def test_one_wish_is_painted_by_both_at_the_same_time_and_shown_as_one_sheet(talk: Talk) -> None:
    talk.models.on_text(lambda request: paint() if request.function_names else REVIEWED)
    talk.models.on_image(lambda request: Hold(by_model(request)))
    saying = asyncio.create_task(talk.say("a red fox", image_model="both", review="on"))
    await until(lambda: talk.models.held == 2)
    talk.models.release()
    turn = await saying
    assert sorted(one.model for one in turn.painted()) == sorted((FLASH, PRO))
    assert len({(one.text, str(one.config["imageConfig"])) for one in turn.painted()}) == 1
    frame = turn.one(PaintingStarted)
    assert (frame.count, frame.model_label) == (2, "Flash + Pro")
    assert {event.index for event in of_type(turn.events, PictureReady)} == {0, 1}
    [canvas] = [one for one in turn.components if isinstance(one, SmartCanvas)]
    shown = [await talk.picture(handle) for handle in canvas.handles]
    assert sorted(canvas.handles) == ["#1", "#2"]
    assert [one.receipt and one.receipt.model_label for one in shown] == ["Flash", "Pro"]
    assert [one.data for one in shown] == [RED, BLUE]
    [line] = [line for line in of_type(turn.events, ThoughtLog) if line.step is Step.PAINTING]
    assert line.parameters == {"count": 2, "model": "Flash + Pro, 1K"}
    # Both are looked at when one is due.
    kept = await talk.kept()
    assert [one.review is not None and one.review.score for one in kept.pictures] == [0.9, 0.9]
    # The planner hears which of them made which picture.
    [answer] = (await talk.say("thanks", plan=lambda _: None)).requests[0].contents[-2]["parts"]
    told = answer["functionResponse"]["response"]["pictures"]
    assert [one["model"] for one in told if isinstance(one, dict)] == ["Flash", "Pro"]


async def test_when_one_of_the_two_refuses_the_other_is_shown_with_the_reason(talk: Talk) -> None:
    talk.models.on_image(lambda request: Finish("IMAGE_SAFETY") if request.model == PRO else by_model(request))
    turn = await talk.say("a fox", plan=paint(), image_model="both")
    assert turn.one(PictureFailed).index == 1
    assert isinstance(turn.events[-1], TurnDone)
    kinds = [type(one) for one in turn.components]
    assert (kinds.count(SmartCanvas), kinds.count(FailureNote)) == (1, 1)


async def test_the_plan_for_both_tells_what_several_of_each_cost_and_can_be_cut_down_to_one(talk: Talk) -> None:
    talk.models.on_image(by_model)
    waiting = await talk.say("a fox", plan=paint(number_of_images=2), image_model="both", confirm=True)
    [plan] = waiting.one(PlanReady).plans
    assert (plan.model, plan.model_label) == ("both", "Flash + Pro")
    assert [one.model_label for one in plan.prices] == ["Flash", "Pro"]
    flash, pro = (one.price_usd for one in plan.prices)
    assert 0 < flash < pro
    assert plan.price_usd == pytest.approx(flash + pro)
    painted = await talk.decide(waiting)
    assert len(painted.pictures) == 4
    assert sorted(one.model for one in painted.painted()) == sorted([FLASH, PRO] * 2)
    assert [one.state for one in painted.components if isinstance(one, PlanCard)] == ["run"]
    waiting = await talk.say("another fox", plan=paint(), image_model="both", confirm=True)
    painted = await talk.decide(waiting, PlanEdit(model="flash"))
    assert painted.receipt.model == FLASH
    [card] = [one for one in painted.components if isinstance(one, PlanCard)]
    assert [(plan.model, plan.model_label, plan.prices) for plan in card.plans] == [("flash", "Flash", ())]


async def test_where_one_painter_plays_both_parts_it_is_refused_with_a_sentence(sketch: Talk) -> None:
    failure = (await sketch.say("draw a red fox", image_model="both")).failure
    assert failure.code is ErrorCode.ONE_PAINTER_ONLY
    assert failure.message.startswith("Only Sketch paints here")
