"""Caps: what would pass one is asked about first, in words and in pictures, and what is agreed to goes on."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from agent.components import ConsentCard, FailureNote, PlanCard
from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import ConsentAsked, PaintingStarted, PictureReady, PlanReady, TurnDone, TurnFailed, TurnPaused
from agent.messages import TokenUsage
from agent.plans import PlanEdit
from agent.providers.catalogue import ModelRole, load_catalogue
from agent.providers.scripted import Asked, Hold, Line, Painting, calls, says
from agent.settings import Settings
from agent.spending import picture_price
from agent.studio import Studio
from tests.support.scenes import Scene, generate, of_type, only, png, run, stop_at, words
from tests.support.turns import decide, newest, retry, started
from tests.support.waiting import until

FLASH = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini")
NOW = datetime.now(UTC).date()
PRICE = picture_price(FLASH, "1K", NOW)
# The scripted planner's call: 100 tokens in, 20 out.
WORDS = (
    load_catalogue().model(ModelRole.FLASH, "gemini").price_usd(TokenUsage(prompt_tokens=100, output_tokens=20), NOW)
)
PAINTED = TokenUsage(prompt_tokens=300, thought_tokens=200, image_tokens=1120)


def priced(colour: str = "red") -> Line:
    """Return a picture that costs what was guessed."""
    return Line((Painting(png(1376, 768, colour)),), usage=PAINTED)


def painted(scene: Scene) -> int:
    return sum(one.request is not None for provider in scene.providers for one in provider.asked)


def card(turn: Turn) -> PlanCard:
    [found] = [one for one in turn.components if isinstance(one, PlanCard)]
    return found


@pytest.mark.parametrize("cap", ["cap_day_usd", "cap_conversation_usd"])
@pytest.mark.parametrize(
    ("rest", "is_asked"), [(2.0, False), (1.0, False), (0.999, True), (0.0, True)], ids=["under", "at", "above", "none"]
)
async def test_pictures_that_would_pass_a_cap_are_asked_about_first(
    settings: Settings, cap: str, rest: float, is_asked: bool
) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[priced()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        chosen: dict[str, Any] = {cap: WORDS + rest * PRICE + 1e-12}
        events = await run(studio, conversation.id, "a red fox", **chosen)
        turn = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnPaused if is_asked else TurnDone)
    assert painted(scene) == (not is_asked)
    if is_asked:
        [plan] = only(events, PlanReady).plans
        [passed] = plan.caps
        assert passed.cap == cap.removeprefix("cap_").removesuffix("_usd")
        assert passed.spent_usd == pytest.approx(WORDS)
        assert passed.over_usd == pytest.approx((1 - rest) * PRICE, abs=1e-6)
        assert card(turn).plans == (plan,)


async def test_who_runs_it_lets_the_turn_go_on_beyond_the_cap_and_only_that_turn(settings: Settings) -> None:
    script = [calls(generate()), calls(generate("a whale"))]
    scene = Scene(settings, text=script, pictures=[priced()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", cap_day_usd=0.02))
        events = await decide(studio, conversation.id, turn_id)
        assert isinstance(events[-1], TurnDone)
        assert painted(scene) == 1
        again = await run(studio, conversation.id, "a whale", cap_day_usd=0.05)
        [passed] = only(again, PlanReady).plans[0].caps
    assert passed.spent_usd == pytest.approx(2 * WORDS + PRICE, rel=1e-3)
    assert painted(scene) == 1


async def test_who_drops_it_pays_nothing_more(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", cap_day_usd=0.02))
        await decide(studio, conversation.id, turn_id, run=False)
        turn = await newest(studio, conversation.id)
    assert (turn.state, card(turn).state, painted(scene)) == (TurnState.DONE, "dropped", 0)
    assert turn.price_usd == pytest.approx(WORDS)


async def test_the_question_survives_a_restart(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[priced()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", cap_day_usd=0.02))
        before = card(await newest(studio, conversation.id))
    scene.text = []
    async with scene.studio() as studio:
        assert card(await newest(studio, conversation.id)) == before
        assert before.plans[0].caps
        events = await decide(studio, conversation.id, turn_id)
    assert isinstance(events[-1], TurnDone)
    assert painted(scene) == 1


async def test_what_a_decision_makes_dearer_is_asked_about_when_it_now_passes_a_cap(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[priced(), priced("blue"), priced("green")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox", confirm=True, cap_day_usd=WORDS + 1.5 * PRICE)
        assert only(events, PlanReady).plans[0].caps == ()
        turn_id = started(events)
        edit = PlanEdit(prompt="a blue whale", number_of_images=3)
        again = await decide(studio, conversation.id, turn_id, edit)
        [plan] = only(again, PlanReady).plans
        assert (plan.prompt, plan.number_of_images, len(plan.caps)) == ("a blue whale", 3, 1)
        assert painted(scene) == 0
        done = await decide(studio, conversation.id, turn_id, PlanEdit(number_of_images=2))
        turn = await newest(studio, conversation.id)
    assert isinstance(done[-1], TurnDone)
    sent = [one.request.messages[-1].text for one in scene.provider.asked if one.request is not None]
    assert sent == ["a blue whale"] * 2, "what was changed first still counts"
    assert (card(turn).state, card(turn).plans[0].number_of_images) == ("run", 2)


async def test_all_conversations_of_the_day_count_and_only_the_owners(settings: Settings) -> None:
    script = [calls(generate(name)) for name in ("a fox", "a whale", "an owl")]
    scene = Scene(settings, text=script, pictures=[priced(), priced("blue")])
    chosen: dict[str, Any] = {"cap_day_usd": 2 * WORDS + 1.5 * PRICE}
    async with scene.studio() as studio:
        first, second = await studio.new_conversation(), await studio.new_conversation()
        assert isinstance((await run(studio, first.id, "a fox", **chosen))[-1], TurnDone)
        events = await run(studio, second.id, "a whale", **chosen)
        assert only(events, PlanReady).plans[0].caps[0].spent_usd == pytest.approx(2 * WORDS + PRICE)
        here = await run(studio, second.id, "an owl", cap_conversation_usd=2 * WORDS + 1.5 * PRICE)
        assert isinstance(here[-1], TurnDone), "the other conversation does not count for this one's own cap"


async def test_what_another_conversation_is_painting_counts(settings: Settings) -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    def paint(asked: Asked) -> Line:
        begun.set()
        return Line((Hold(gate), *priced().parts), usage=PAINTED)

    scene = Scene(settings, text=[calls(generate("a fox")), calls(generate("a whale"))], pictures=paint)
    chosen: dict[str, Any] = {"cap_day_usd": 2 * WORDS + 1.5 * PRICE}
    async with scene.studio() as studio:
        first, second = await studio.new_conversation(), await studio.new_conversation()
        painting = asyncio.create_task(run(studio, first.id, "a fox", **chosen))
        await begun.wait()
        events = await run(studio, second.id, "a whale", **chosen)
        gate.set()
        done = await painting
    assert isinstance(done[-1], TurnDone)
    [passed] = only(events, PlanReady).plans[0].caps
    assert passed.spent_usd == pytest.approx(2 * WORDS + PRICE)
    assert painted(scene) == 1


async def test_ten_turns_that_ask_together_do_not_pass_a_cap_unasked(settings: Settings) -> None:
    gate, planned, painting = asyncio.Event(), asyncio.Event(), list[Asked]()

    def plan(_: Asked) -> Line:
        if sum(one.request is None for one in scene.provider.asked) == 10:
            planned.set()
        return Line((Hold(planned), *calls(generate()).parts))

    def paint(asked: Asked) -> Line:
        painting.append(asked)
        return Line((Hold(gate), *priced().parts), usage=PAINTED)

    scene, cap = Scene(settings, text=plan, pictures=paint), 10 * WORDS + 3.5 * PRICE
    async with scene.studio() as studio:
        conversations = [await studio.new_conversation() for _ in range(10)]
        turns = [asyncio.create_task(run(studio, one.id, "a red fox", cap_day_usd=cap)) for one in conversations]
        await until(lambda: len(painting) + sum(turn.done() for turn in turns) == 10)
        gate.set()
        ends = [(await turn)[-1] for turn in turns]
        spent_usd = (await studio.spend.day("local")).price_usd
    assert sum(isinstance(end, TurnDone) for end in ends) == len(painting) == 3
    assert sum(isinstance(end, TurnPaused) for end in ends) == 7
    assert spent_usd <= cap


async def test_two_processes_that_weigh_in_the_same_moment_do_not_pass_a_cap_together(settings: Settings) -> None:
    gate, planned, painting = asyncio.Event(), asyncio.Event(), list[Asked]()

    def plan(_: Asked) -> Line:
        if sum(one.request is None for each in scene.providers for one in each.asked) == 6:
            planned.set()
        return Line((Hold(planned), *calls(generate()).parts))

    def paint(asked: Asked) -> Line:
        painting.append(asked)
        return Line((Hold(gate), *priced().parts), usage=PAINTED)

    scene, cap = Scene(settings, text=plan, pictures=paint), 6 * WORDS + 2.5 * PRICE
    async with scene.studio() as one, scene.studio() as other:
        turns = []
        for studio in (one, other) * 3:
            conversation = await studio.new_conversation()
            turns.append(asyncio.create_task(run(studio, conversation.id, "a red fox", cap_day_usd=cap)))
        await until(lambda: len(painting) + sum(turn.done() for turn in turns) == 6)
        gate.set()
        ends = [(await turn)[-1] for turn in turns]
        spent_usd = (await one.spend.day("local")).price_usd
    assert sum(isinstance(end, TurnDone) for end in ends) == len(painting)
    assert 1 <= len(painting) <= 2
    assert spent_usd <= cap


async def test_what_a_turn_did_not_spend_after_all_is_there_for_the_next(settings: Settings) -> None:
    failed = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED))
    scene = Scene(settings, text=lambda _: calls(generate()), pictures=[failed, priced()])
    chosen: dict[str, Any] = {"cap_day_usd": 2 * WORDS + 1.5 * PRICE}
    async with scene.studio() as studio:
        first, second = await studio.new_conversation(), await studio.new_conversation()
        assert isinstance((await run(studio, first.id, "a red fox", **chosen))[-1], TurnFailed)
        assert isinstance((await run(studio, second.id, "a red fox", **chosen))[-1], TurnDone)


async def test_what_a_stopped_turn_still_waits_for_counts(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(
        settings,
        text=lambda _: calls(generate()),
        pictures=lambda _: Line((Hold(gate), *priced().parts), usage=PAINTED),
    )
    async with scene.studio() as studio:
        first, second = await studio.new_conversation(), await studio.new_conversation()
        await stop_at(studio, first.id, "a red fox", PaintingStarted)
        events = await run(studio, second.id, "a red fox", cap_day_usd=2 * WORDS + 1.5 * PRICE)
        gate.set()
    [passed] = only(events, PlanReady).plans[0].caps
    assert passed.spent_usd == pytest.approx(2 * WORDS + PRICE)


# Another round after a poor review.


@pytest.mark.parametrize(("rest", "paintings"), [(2.5, 2), (1.5, 1)])
async def test_no_new_round_is_painted_that_would_pass_a_cap(settings: Settings, rest: float, paintings: int) -> None:
    poor = json.dumps({"lettering": "", "checklist": [], "feedback": "", "suggestions": [], "score": 0.3})
    script = [calls(generate()), says(poor), says(poor)][: 1 + paintings]
    scene = Scene(settings, text=script, pictures=[priced(), priced("blue")][:paintings])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        # A review is guessed at more than the scripted one costs.
        cap = rest * PRICE + 0.005
        events = await run(studio, conversation.id, "a red fox", review="always", cap_conversation_usd=cap)
        spent = (await newest(studio, conversation.id)).price_usd
    assert isinstance(events[-1], TurnDone)
    assert (painted(scene), spent <= cap) == (paintings, True)


# Words.


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ({"cap_day_usd": WORDS}, ErrorCode.BUDGET_USED_UP),
        ({"cap_conversation_usd": WORDS / 2}, ErrorCode.CONVERSATION_BUDGET_USED_UP),
        ({"cap_day_usd": 1.01 * WORDS}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_not_even_words_are_asked_for_when_a_cap_is_used_up(
    settings: Settings, chosen: dict[str, Any], code: ErrorCode | None
) -> None:
    scene = Scene(settings, text=[says("Hello."), says("Fine.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello")
        events = await run(studio, conversation.id, "how are you?", **chosen)
        turn = await newest(studio, conversation.id)
    assert len(scene.provider.asked) == (1 if code else 2)
    if code is not None:
        error = only(events, TurnFailed).error
        assert (error.code, error.can_retry) == (code, True)
        assert (turn.state, turn.price_usd) == (TurnState.FAILED, 0)
        assert [one.error for one in turn.components if isinstance(one, FailureNote)] == [error]


async def test_trying_again_sends_the_message_all_the_same_and_pictures_are_asked_about(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Hello."), calls(generate())], pictures=[priced()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello")
        refused = await run(studio, conversation.id, "a red fox", cap_day_usd=WORDS)
        assert only(refused, TurnFailed).node == "planner"
        events = await retry(studio, conversation.id, started(refused))
        assert only(events, PlanReady).plans[0].caps
        done = await decide(studio, conversation.id, started(refused))
    assert isinstance(done[-1], TurnDone)
    assert painted(scene) == 1


# A cap of zero asks before every cent.


@pytest.mark.parametrize("cap", ["cap_day_usd", "cap_conversation_usd"])
async def test_a_cap_of_zero_asks_before_every_cent_and_fails_no_turn(settings: Settings, cap: str) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[priced()])
    chosen: dict[str, Any] = {cap: 0.0}
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox", **chosen)
        turn_id = started(events)
        [ask] = only(events, ConsentAsked).asks
        assert (ask.tool, ask.reason) == ("Flash", "costs_money")
        assert 0 < json.loads(ask.arguments)["about_usd"] < 0.01
        assert isinstance(events[-1], TurnPaused)
        assert not scene.provider.asked
        # Words are paid now; the picture is another question.
        events = await decide(studio, conversation.id, turn_id)
        [plan] = only(events, PlanReady).plans
        assert plan.caps
        assert (len(scene.provider.asked), painted(scene)) == (1, 0)
        events = await decide(studio, conversation.id, turn_id)
        assert isinstance(events[-1], TurnDone)
        assert painted(scene) == 1
        # The next message is asked about again.
        again = await run(studio, conversation.id, "a whale", **chosen)
    assert only(again, ConsentAsked).asks[0].reason == "costs_money"


async def test_who_does_not_want_to_pay_for_words_pays_nothing(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Well?")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a red fox", cap_day_usd=0.0))
        events = await decide(studio, conversation.id, turn_id, run=False)
        turn = await newest(studio, conversation.id)
        assert isinstance(events[-1], TurnDone)
        assert (turn.state, turn.price_usd) == (TurnState.DONE, 0)
        assert [one.state for one in turn.components if isinstance(one, ConsentCard)] == ["refused"]
        assert not scene.provider.asked
        # The conversation goes on.
        assert isinstance((await run(studio, conversation.id, "and now?"))[-1], TurnDone)


async def test_the_question_about_words_survives_a_restart(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Here I am.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "hello", cap_conversation_usd=0.0))
    async with scene.studio() as studio:
        assert (await newest(studio, conversation.id)).state is TurnState.WAITING
        events = await decide(studio, conversation.id, turn_id)
    assert isinstance(events[-1], TurnDone)
    assert words(events) == "Here I am."


# What costs nothing, and what it costs to look.


async def test_a_sketch_is_never_asked_about(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "draw a red fox", cap_day_usd=0.0, cap_conversation_usd=0.0)
    assert of_type(events, PictureReady)
    assert isinstance(events[-1], TurnDone)


async def test_a_turn_without_caps_reads_no_sums(settings: Settings) -> None:
    statements: list[str] = []

    def heard(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    async def sums_read(**chosen: Any) -> int:
        scene = Scene(settings, text=[calls(generate())], pictures=[priced()])
        async with scene.studio() as studio:
            conversation = await studio.new_conversation()
            statements.clear()
            assert isinstance((await run(studio, conversation.id, "a red fox", **chosen))[-1], TurnDone)
            return sum("sum(" in one and "trace_steps" not in one for one in statements)

    event.listen(Engine, "before_cursor_execute", heard)
    try:
        assert await sums_read() == 0
        assert await sums_read(cap_day_usd=100.0) > 0
    finally:
        event.remove(Engine, "before_cursor_execute", heard)
