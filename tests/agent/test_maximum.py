"""The maximum told before a message is sent: nothing is asked for that could pass it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent import (
    ErrorCode,
    PlanCard,
    PlanReady,
    Settings,
    Studio,
    TokenUsage,
    ToolCallPart,
    TurnDone,
    TurnFailed,
    TurnRequest,
    TurnSettings,
    TurnState,
)
from tests.adapters.models import Asked, Line, calls, says
from tests.bench.prices import run_path
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import Scene, generate, only, picture, run
from tests.support.turns import decide, newest, retry, started
from tests.wire_server import GeminiServer, PictureAnswer

LOOK = ToolCallPart(name="list_files", arguments={})


@pytest.mark.parametrize(
    ("path", "ratio"),
    [
        ("talk with search", 5.0),
        ("one left to the agent", 1.6),
        ("pro chosen by the agent", 2.6),
        ("several in words", 1.6),
        ("masked edit", 1.6),
        ("masked edits of two", 1.6),
        ("pro repainted by the review", 1.4),
        ("retry after a failure", 3.0),
        ("grounded picture", 1.9),
        ("without token details", 1.6),
        ("thinking", 2.6),
    ],
)
async def test_no_path_is_charged_more_than_its_maximum_which_is_near(tmp_path: Path, path: str, ratio: float) -> None:
    with GeminiServer() as server:
        paid = await run_path(path, tmp_path, server, seed=7)
        assert server.violations == []
        assert all(request.config["maxOutputTokens"] > 0 for request in server.requests), "every call is limited"
    assert paid.paid_usd <= paid.maximum_usd <= ratio * paid.paid_usd


async def test_a_dearer_model_than_was_told_is_asked_about_first(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(model="pro"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "a red fox", review="off")
        [cap] = only(events, PlanReady).plans[0].caps
        assert (cap.cap, cap.cap_usd) == ("turn", (await newest(studio, conversation.id)).maximum_usd)
        assert cap.spent_usd + cap.price_usd > cap.cap_usd
        assert all(one.request is None for one in scene.provider.asked)
        done = await decide(studio, conversation.id, started(events))
        assert isinstance(done[-1], TurnDone)
        turn = await newest(studio, conversation.id)
        assert any(isinstance(one, PlanCard) and one.state == "run" for one in turn.components)


async def test_an_answer_is_limited_to_what_is_left_and_one_that_could_pass_it_is_not_asked_for(
    settings: Settings,
) -> None:
    def thinks_long(asked: Asked) -> Line:
        limit = asked.options.max_output_tokens or 0
        line = calls(ToolCallPart(name="read_file", arguments={"name": f"{limit}.txt"}))
        return replace(line, usage=line.usage.model_copy(update={"thought_tokens": limit // 2}))

    scene = Scene(settings, text=thinks_long)
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        failed = only(await run(studio, conversation.id, "list my files"), TurnFailed)
        turn = await newest(studio, conversation.id)
        assert failed.error.code is ErrorCode.MAXIMUM_REACHED
        assert turn.maximum_usd is not None
        assert 0.3 * turn.maximum_usd < turn.price_usd <= turn.maximum_usd
        limits = [one.options.max_output_tokens or 0 for one in scene.provider.asked]
        assert limits == sorted(limits, reverse=True)
        assert limits[-1] >= 256


async def test_who_tries_again_lets_it_cost_as_much_once_more(settings: Settings) -> None:
    dear = replace(calls(LOOK), usage=TokenUsage(prompt_tokens=100, output_tokens=1000))
    scene = Scene(settings, text=[dear, says("Nothing there.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "list my files", budget_usd=0.0078)
        assert only(events, TurnFailed).error.code is ErrorCode.MAXIMUM_REACHED
        again = await retry(studio, conversation.id, started(events))
        assert isinstance(again[-1], TurnDone)
        assert (await newest(studio, conversation.id)).price_usd <= 2 * 0.0078


async def test_what_was_shown_counts_where_the_studio_would_allow_more(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(PictureAnswer(64, 36))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.conversations.create()
            request = TurnRequest("a red fox", maximum_usd=0.02)
            events = [one async for one in studio.run_turn(conversation.id, request)]
            assert only(events, PlanReady).plans[0].caps[0].cap_usd == 0.02
            assert (await newest(studio, conversation.id)).state is TurnState.WAITING


async def test_a_sketch_has_no_maximum(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        assert (await newest(studio, conversation.id)).maximum_usd is None
        assert studio.turns.estimate(TurnSettings()).is_free
