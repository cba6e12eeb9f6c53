"""A wish is written out by the model that is chosen, on record and under the day's cap; sketch does it by rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from agent import AivistaError, ErrorCode, Preferences, PromptToExpand, Settings, Studio
from agent.providers.sketch.fuller import fuller_wish
from agent.providers.sketch.painter import compose
from agent.providers.sketch.wishes import Draw, understand
from agent.workflow.fuller_wishes import MAX_CHARACTERS
from tests.support.cases import each_case
from tests.support.gemini import on_gemini
from tests.wire_server import Blocked, GeminiServer, HttpError, Text

FULL = "A red fox sits at the edge of a pine forest in fresh snow, low morning sun behind it, watercolour."


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as one:
        yield one


@pytest.fixture
async def studio(settings: Settings, server: GeminiServer) -> AsyncIterator[Studio]:
    async with Studio(on_gemini(settings, server.url)) as one:
        yield one


async def refusal(studio: Studio, wish: PromptToExpand) -> ErrorCode:
    with pytest.raises(AivistaError) as refused:
        await studio.expand_prompt(wish)
    return refused.value.info.code


async def test_the_model_writes_the_wish_out_and_the_day_knows_what_it_cost(
    server: GeminiServer, studio: Studio
) -> None:
    server.on_text(Text(FULL))
    written = await studio.expand_prompt(PromptToExpand(text="  a red fox, watercolour "))
    assert (written.text, written.by) == (FULL, "model")
    assert written.price_usd > 0
    day = await studio.spend.day("local")
    assert day.price_usd == pytest.approx(written.price_usd)
    assert day.total_tokens > 0
    assert await studio.conversations.list() == [], "nothing is sent"
    [asked] = server.requests
    assert "[WISH]\na red fox, watercolour\n[/WISH]" in asked.text
    assert "{" not in asked.system
    assert "tools" not in asked.normal
    assert server.violations == []


async def test_the_chosen_model_writes_and_is_told_what_the_chips_say_and_whether_a_picture_changes(
    server: GeminiServer, studio: Studio
) -> None:
    server.on_text(*[Text("one")] * 3)
    await studio.expand_prompt(PromptToExpand(text="一只狐狸", aspect_ratio="21:9", number_of_images=3))
    await studio.expand_prompt(
        PromptToExpand.model_validate({"text": "darker", "pictures": "change", "text_model": "thinking"})
    )
    await studio.expand_prompt(PromptToExpand(text="a poster with this cup", pictures="beside"))
    new, change, beside = (asked.system for asked in server.requests)
    assert ("21:9" in new, "3 pictures" in new, "Chinese characters" in new) == (True, True, True)
    assert ("a wish for a new picture" in new, "a wish to change a picture" in new) == (True, False)
    assert ("a wish for a new picture" in change, "a wish to change a picture" in change) == (False, True)
    assert "90 words" in change
    assert "Pictures that you do not see go with it" in beside
    assert len({asked.model for asked in server.requests}) == 2


async def test_what_models_like_to_put_around_an_answer_is_taken_off(server: GeminiServer, studio: Studio) -> None:
    for answer in (
        f"“{FULL}”",
        f'"{FULL}"',
        f"```text\n{FULL}\n```",
        f"[WISH]\n{FULL}\n[/WISH]",
        "“Slow” beside “Fast”",
    ):
        server.on_text(Text(answer))
        shown = (await studio.expand_prompt(PromptToExpand(text="a fox"))).text
        assert shown == (FULL if FULL in answer else answer)


async def test_nothing_is_asked_when_the_days_cap_is_used_up(server: GeminiServer, studio: Studio) -> None:
    server.on_text(Text(FULL))
    first = await studio.expand_prompt(PromptToExpand(text="a fox"))
    await studio.preferences.keep("local", Preferences(cap_day_usd=first.price_usd))
    assert await refusal(studio, PromptToExpand(text="a fox")) is ErrorCode.DAY_CAP_USED_UP
    assert len(server.requests) == 1
    assert (await studio.spend.day("local")).price_usd == pytest.approx(first.price_usd)


async def test_what_gives_no_wish_is_said(server: GeminiServer, studio: Studio) -> None:
    fox = PromptToExpand(text="a fox")
    server.on_text(
        Blocked(), HttpError(400, "API key not valid. Please pass a valid API key."), Text("[WISH]\n[/WISH]")
    )
    assert await refusal(studio, fox) is ErrorCode.PROMPT_BLOCKED
    assert await refusal(studio, fox) is ErrorCode.KEY_INVALID
    assert await refusal(studio, fox) is ErrorCode.ANSWER_UNREADABLE
    assert await studio.conversations.list() == []
    # What is empty or too long costs nothing.
    asked = len(server.requests)
    assert await refusal(studio, PromptToExpand(text=" \n ")) is ErrorCode.NOTHING_SENT
    assert await refusal(studio, PromptToExpand(text="x" * (MAX_CHARACTERS + 1))) is ErrorCode.WISH_TOO_LONG
    assert len(server.requests) == asked


async def test_without_a_key_rules_write_it_for_nothing(settings: Settings) -> None:
    async with Studio(settings) as studio:
        written = await studio.expand_prompt(PromptToExpand(text="Draw a red fox"))
        assert (written.by, written.price_usd) == ("rules", 0.0)
        assert written.text.startswith("Draw a red fox, ")
        change = await studio.expand_prompt(PromptToExpand(text="Draw a red fox", pictures="change"))
        assert (change.text, change.by) == ("Draw a red fox", "nobody")
        assert (await studio.spend.day("local")).price_usd == 0.0


@each_case("wish", ["Draw a red fox", "a cup", "画一只猫", "画一艘船", "paint a robot, 16:9", "一位宇航员"])
def test_every_word_that_the_rules_add_is_one_that_the_sketch_obeys(wish: str) -> None:
    full = fuller_wish(wish)
    before, after = understand(wish, has_pictures=False), understand(full, has_pictures=False)
    assert isinstance(before, Draw)
    assert isinstance(after, Draw)
    old, new = compose(before.description, before.style), compose(after.description, after.style)
    assert new.figure == old.figure, "the thing that was wished for stays the same"
    assert (new.place, new.palette.moods) != (old.place, old.palette.moods)
    assert before.aspect_ratio == after.aspect_ratio
    assert fuller_wish(full) == full, "what says it all is left alone"


@each_case(
    "wish",
    [
        *("make it warmer", "把这张调亮一点", "hello", "Draw a fox in a forest at night", "画夜里的城市", ""),
        "what can you do?",
    ],
)
def test_the_rules_leave_alone_what_they_cannot_make_fuller(wish: str) -> None:
    assert fuller_wish(wish) == wish
