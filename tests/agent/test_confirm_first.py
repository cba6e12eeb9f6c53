"""Confirm first: the plan is shown before it costs anything, and nothing is painted until the person says so."""

from __future__ import annotations

import asyncio

import pytest

from agent.components import AskBack, PlanCard, SmartCanvas
from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode
from agent.events import (
    PaintingStarted,
    PictureReady,
    PlanReady,
    Step,
    ThoughtLog,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnStarted,
)
from agent.messages import Role, ToolResultPart
from agent.plans import Plan, PlanEdit
from agent.providers.base import ImageRequest
from agent.providers.scripted import Hold, Line, Painting, calls, says
from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, words
from tests.support.turns import asked, calls_on_disk, decide, newest, started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Text
from tests.wire_server.models import Kind


def painted(scene: Scene) -> list[ImageRequest]:
    """Return what the image models of every studio were asked, in order."""
    return [one.request for provider in scene.providers for one in provider.asked if one.request is not None]


def card(turn: Turn) -> PlanCard:
    [found] = [one for one in turn.components if isinstance(one, PlanCard)]
    return found


def plan(turn: Turn) -> Plan:
    [found] = card(turn).plans
    return found


async def test_nothing_is_painted_before_the_decision_and_the_plan_is_on_record(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(aspect_ratio="1:1"), text="A fox it is.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox", confirm=True)
        turn = await newest(studio, conversation.id)
        assert painted(scene) == []
        assert not studio.is_running(conversation.id)
    [shown] = only(events, PlanReady).plans
    assert isinstance(events[-1], TurnPaused)
    assert not of_type(events, PaintingStarted)
    assert (turn.state, plan(turn), card(turn).state) == (TurnState.WAITING, shown, "pending")
    assert (shown.prompt, shown.aspect_ratio, shown.resolution) == ("a red fox", "1:1", "1K")
    assert (shown.model, shown.number_of_images, shown.editing) == ("flash", 1, None)
    assert words(events) == "A fox it is."
    assert turn.messages[-1].role is Role.TOOL, "no call is left open in the history"


async def test_without_the_setting_no_plan_is_shown(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
    assert not of_type(events, PlanReady)
    assert isinstance(events[-1], TurnDone)


async def test_a_plan_that_is_run_as_it_is_paints_what_it_showed(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(number_of_images=2))], pictures=[picture(), picture(colour="blue")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "two foxes", confirm=True))
        events = await decide(studio, conversation.id, turn_id)
        turn = await newest(studio, conversation.id)
    assert started(events) == turn_id
    assert isinstance(events[-1], TurnDone)
    assert len(of_type(events, PictureReady)) == len(painted(scene)) == 2
    assert (turn.state, card(turn).state) == (TurnState.DONE, "run")
    assert len(scene.provider.asked) == 3, "the planner is not asked again"
    kinds = [type(one) for one in turn.components]
    assert kinds.index(PlanCard) < kinds.index(SmartCanvas)


async def test_what_the_person_changed_is_what_is_sent_and_what_the_card_shows(settings: Settings) -> None:
    wish = generate("a red fox", aspect_ratio="16:9", resolution="1K", number_of_images=1, model="flash")
    scene = Scene(settings, text=[calls(wish)], pictures=[picture()] * 3)
    edit = PlanEdit(call=0, prompt="a blue whale", model="pro", aspect_ratio="1:1", resolution="2K", number_of_images=3)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True, review="off"))
        events = await decide(studio, conversation.id, turn_id, edit)
        turn = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnDone)
    sent = {(one.model.id, one.aspect_ratio, one.resolution) for one in painted(scene)}
    assert sent == {("gemini-3-pro-image", "1:1", "2K")}
    assert [one.messages[-1].text for one in painted(scene)] == ["a blue whale"] * 3
    ran = plan(turn)
    assert card(turn).state == "run"
    assert (ran.prompt, ran.model, ran.aspect_ratio) == ("a blue whale", "pro", "1:1")
    assert (ran.resolution, ran.number_of_images) == ("2K", 3)


async def test_one_change_leaves_the_rest_as_it_was_planned(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(aspect_ratio="21:9", resolution="2K"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        await decide(studio, conversation.id, turn_id, PlanEdit(prompt="a whale"))
    [sent] = painted(scene)
    assert (sent.messages[-1].text, sent.aspect_ratio, sent.resolution) == ("a whale", "21:9", "2K")


async def test_a_dropped_plan_costs_nothing_more_and_the_planner_hears_of_it(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Fine.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        before = await newest(studio, conversation.id)
        events = await decide(studio, conversation.id, turn_id, run=False)
        turn = await newest(studio, conversation.id)
        await run(studio, conversation.id, "never mind")
    assert isinstance(events[-1], TurnDone)
    assert painted(scene) == []
    assert (turn.state, card(turn).state, turn.price_usd) == (TurnState.DONE, "dropped", before.price_usd)
    history = scene.provider.asked[-1].messages
    told = [part for message in history for part in message.parts if isinstance(part, ToolResultPart)]
    assert [("dropped" in str(one.content), one.is_error) for one in told] == [(True, True)]


async def test_a_new_message_drops_the_plan_that_waits(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Something else, then.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        events = await run(studio, conversation.id, "no, tell me a joke")
        first, second = (await studio.conversation(conversation.id)).turns
        too_late = await decide(studio, conversation.id, turn_id)
        after = (await studio.conversation(conversation.id)).turns
    assert words(events) == "Something else, then."
    assert (first.state, card(first).state) == (TurnState.STOPPED, "dropped")
    assert only(too_late, TurnFailed).error.code is ErrorCode.PLAN_GONE
    assert after == (first, second)
    assert painted(scene) == []


@pytest.mark.parametrize("is_run", [True, False])
async def test_a_plan_is_decided_about_once(settings: Settings, is_run: bool) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        first = await decide(studio, conversation.id, turn_id, run=is_run)
        kept = await studio.conversation(conversation.id)
        for again in (True, False):
            events = await decide(studio, conversation.id, turn_id, run=again)
            assert only(events, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert await studio.conversation(conversation.id) == kept
    assert isinstance(first[-1], TurnDone)
    assert len(painted(scene)) == is_run


async def test_two_decisions_at_the_same_moment_paint_once(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        first, second = await asyncio.gather(*(decide(studio, conversation.id, turn_id) for _ in range(2)))
        turn = await newest(studio, conversation.id)
    assert isinstance(first[-1], TurnDone)
    assert only(second, TurnFailed).error.code is ErrorCode.PLAN_GONE
    assert (turn.state, len(painted(scene))) == (TurnState.DONE, 1)


async def test_nobody_decides_about_the_plan_of_another_conversation_or_owner(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation, other = await studio.new_conversation(), await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", confirm=True))
        elsewhere = await decide(studio, other.id, turn_id)
        nowhere = await decide(studio, conversation.id, "no such turn")
        stranger = await decide(studio, conversation.id, turn_id, owner="bob")
        assert only(elsewhere, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert only(nowhere, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert only(stranger, TurnFailed).error.code is ErrorCode.CONVERSATION_NOT_FOUND
        assert not of_type(stranger, TurnStarted)
        assert (await newest(studio, conversation.id)).state is TurnState.WAITING
        assert (await studio.conversation(other.id)).turns == ()
        events = await decide(studio, conversation.id, turn_id)
    assert isinstance(events[-1], TurnDone), "the plan still waits for whom it belongs to"


async def test_a_turn_that_failed_has_no_plan_to_decide_about(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[Line((Painting(b"not a picture"),))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox"))
        before = await newest(studio, conversation.id)
        events = await decide(studio, conversation.id, turn_id)
        assert only(events, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert await newest(studio, conversation.id) == before


async def test_the_plan_survives_the_end_of_the_studio(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate("a red fox"), text="A fox it is.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", png(), confirm=True, aspect_ratio="1:1"))
        before = await newest(studio, conversation.id)
    scene.text = []
    async with scene.studio() as studio:
        assert await newest(studio, conversation.id) == before
        events = await decide(studio, conversation.id, turn_id, PlanEdit(prompt="a blue whale"))
        turn = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnDone)
    [sent] = painted(scene)
    assert sent.messages[-1].text.startswith("a blue whale")
    assert sent.aspect_ratio == "1:1"
    assert [image.handle for image in sent.messages[-1].images] == ["#1"]
    assert (turn.state, turn.messages[0]) == (TurnState.DONE, before.messages[0])
    assert turn.components[0] == before.components[0]


async def test_two_plans_of_one_answer_are_shown_and_changed_each_for_itself(settings: Settings) -> None:
    both = calls(
        generate("a fox", aspect_ratio="1:1").model_copy(update={"call_id": "a"}),
        generate("a whale", aspect_ratio="16:9").model_copy(update={"call_id": "b"}),
    )
    scene = Scene(settings, text=[both], pictures=[picture(), picture(colour="blue")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        planned = await run(studio, conversation.id, "a fox and a whale", confirm=True)
        edits = (PlanEdit(call=1, prompt="a blue whale"), PlanEdit(call=0, aspect_ratio="9:16"))
        await decide(studio, conversation.id, started(planned), *edits)
        turn = await newest(studio, conversation.id)
    assert [(one.call, one.prompt) for one in only(planned, PlanReady).plans] == [(0, "a fox"), (1, "a whale")]
    sent = {(one.messages[-1].text, one.aspect_ratio) for one in painted(scene)}
    assert sent == {("a fox", "9:16"), ("a blue whale", "16:9")}
    assert [(one.prompt, one.aspect_ratio) for one in card(turn).plans] == [("a fox", "9:16"), ("a blue whale", "16:9")]
    results = [part for part in turn.messages[-1].parts if isinstance(part, ToolResultPart)]
    assert [(one.call_id, one.is_error) for one in results] == [("a", False), ("b", False)]


async def test_dropping_two_plans_answers_both_calls(settings: Settings) -> None:
    both = calls(*(generate(name).model_copy(update={"call_id": name}) for name in ("fox", "whale")))
    scene = Scene(settings, text=[both])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox and a whale", confirm=True))
        await decide(studio, conversation.id, turn_id, run=False)
        turn = await newest(studio, conversation.id)
    results = [part for part in turn.messages[-1].parts if isinstance(part, ToolResultPart)]
    assert [(one.call_id, one.is_error) for one in results] == [("fox", True), ("whale", True)]


async def test_a_plan_that_makes_no_sense_goes_back_to_the_planner_unseen(settings: Settings) -> None:
    script = [calls(generate(handles=["#9"])), calls(generate("a red fox"))]
    scene = Scene(settings, text=script, pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "give it a hat", confirm=True)
        done = await decide(studio, conversation.id, started(events))
    assert [one.prompt for one in only(events, PlanReady).plans] == ["a red fox"]
    told = scene.provider.asked[1].messages[-1].parts[0]
    assert isinstance(told, ToolResultPart)
    assert "#9" in str(told.content)
    assert isinstance(done[-1], TurnDone)


async def test_of_a_sound_and_a_senseless_plan_the_sound_one_is_shown_and_painted(settings: Settings) -> None:
    both = calls(
        generate("a whale", handles=["#9"]).model_copy(update={"call_id": "a"}),
        generate("a fox").model_copy(update={"call_id": "b"}),
    )
    scene = Scene(settings, text=[both], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox and a whale", confirm=True)
        await decide(studio, conversation.id, started(events), PlanEdit(call=1, prompt="a blue fox"))
        turn = await newest(studio, conversation.id)
    assert [(one.call, one.prompt) for one in only(events, PlanReady).plans] == [(1, "a fox")]
    assert [one.messages[-1].text for one in painted(scene)] == ["a blue fox"]
    results = [part for part in turn.messages[-1].parts if isinstance(part, ToolResultPart)]
    assert [(one.call_id, one.is_error) for one in results] == [("a", True), ("b", False)]


async def test_a_setting_that_no_model_obeys_fails_before_the_plan(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", confirm=True, image_model="pro", aspect_ratio="1:8")
    failed = only(events, TurnFailed)
    assert (failed.error.code, failed.node) == (ErrorCode.SETTING_NOT_SUPPORTED, "planner")
    assert not of_type(events, PlanReady)


async def test_an_edit_of_a_picture_names_what_it_changes(settings: Settings) -> None:
    script = [calls(generate()), calls(generate("a fox with a hat", reference_mode="LAST_GENERATED"))]
    scene = Scene(settings, text=script, pictures=[picture(), picture(colour="black")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        events = await run(studio, conversation.id, "give it a hat", confirm=True)
        done = await decide(studio, conversation.id, started(events))
    [shown] = only(events, PlanReady).plans
    assert (shown.editing, shown.references) == ("#1", ())
    assert only(done, PictureReady).picture.handle == "#1b"


async def test_a_turn_that_asks_back_or_only_talks_has_no_plan(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Which season?")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        talked = await run(studio, conversation.id, "a forest", confirm=True)
        asked_back = await run(studio, conversation.id, "", confirm=True)
        turn = await newest(studio, conversation.id)
    assert isinstance(talked[-1], TurnDone)
    assert isinstance(asked_back[-1], TurnDone)
    assert turn.components == (AskBack(question="empty"),)


async def test_stop_after_the_decision_keeps_the_card_and_the_late_picture(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[calls(generate())], pictures=[Line((Hold(gate), Painting(png(1376, 768))))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))
        running = asyncio.create_task(decide(studio, conversation.id, turn_id))
        await until(lambda: bool(painted(scene)))
        assert await studio.cancel(conversation.id)
        await running
        turn = await newest(studio, conversation.id)
        assert (turn.state, card(turn).state) == (TurnState.STOPPED, "run")
        gate.set()
    async with scene.studio() as studio:
        kept = await studio.conversation(conversation.id)
    assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", True)]


async def test_a_decision_waits_in_line_behind_nothing_and_says_nothing_of_waiting(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))
        events = await decide(studio, conversation.id, turn_id)
    assert not [one for one in of_type(events, ThoughtLog) if one.step is Step.WAITING]


# On the real wire, and by the built-in model.


async def test_on_gemini_the_plan_has_a_price_and_the_picture_is_paid_once(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint(number_of_images=2, resolution="2K"), Text("Well."))
        server.on_image(SMALL, SMALL)
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "two foxes", confirm=True, review="off")
            assert asked(server, Kind.IMAGE) == 0
            assert [row["state"] for row in calls_on_disk(gemini.home).values()] == ["done"]
        [shown] = only(events, PlanReady).plans
        async with Studio(gemini) as studio:
            done = await decide(studio, conversation.id, started(events))
            turn = await newest(studio, conversation.id)
            # The history with the plan's turn in it is one that the API takes.
            await run(studio, conversation.id, "thank you")
        assert server.violations == []
        assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (2, 2)
    pictures = [event.picture for event in of_type(done, PictureReady)]
    paid = sum(one.receipt.price_usd for one in pictures if one.receipt)
    assert shown.price_usd == pytest.approx(paid, rel=0.05)
    assert turn.price_usd == only(done, TurnDone).price_usd > paid


async def test_the_price_of_a_plan_counts_pictures_sizes_and_reviews(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: calls(generate()))
    prices = []
    async with scene.studio() as studio:
        for chosen in (
            {"review": "off"},
            {"review": "always"},
            {"review": "off", "number_of_images": 2},
            {"review": "off", "image_model": "pro", "resolution": "4K"},
        ):
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a fox", confirm=True, **chosen)
            prices.append(only(events, PlanReady).plans[0].price_usd)
    plain, reviewed, two, large = prices
    assert 0 < plain < reviewed < two < large
    assert two == pytest.approx(2 * plain)


async def test_a_sketch_costs_nothing_and_waits_all_the_same(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "draw a red fox in the snow", confirm=True)
        [shown] = only(events, PlanReady).plans
        assert (await studio.conversation(conversation.id)).pictures == ()
        done = await decide(studio, conversation.id, started(events))
        turn = await newest(studio, conversation.id)
    assert shown.price_usd == 0
    assert only(done, TurnDone).price_usd == turn.price_usd == 0
    assert len(of_type(done, PictureReady)) == 1
