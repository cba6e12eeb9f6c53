"""The operator's choice to reuse the planner's answers: the same request within the hour is not paid for again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agent import Step, Studio, ThoughtLog, TurnDone
from tests.behaviour.conftest import OpenTalk, settings_in
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint, search
from tests.support.scenes import of_type, png
from tests.wire_server import GeminiServer, HttpError, Search, Text

SEASON = Text("Which season shall it be?")
ONE_AND_TWO = [Text("One."), Text("Two.")]
REVIEW = Text('{"score": 0.9, "checklist": [], "lettering": "", "feedback": "", "suggestions": []}')
FOUND = Search({"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def studio(models: GeminiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Studio]:
    """The studio of the file, whose operator has chosen so."""
    async with Studio(settings_in(tmp_path_factory.mktemp("home"), models, reuse_plans=True)) as made:
        yield made


async def afresh(talk: Talk) -> Talk:
    """Return another conversation of the same owner."""
    return replace(talk, id=(await talk.studio.conversations.create(talk.owner)).id)


async def twice(talk: Talk, text: str, **chosen: Any) -> tuple[TurnResult, TurnResult]:
    """Say the same in two new conversations."""
    return await talk.say(text, **chosen), await (await afresh(talk)).say(text)


def is_reused(turn: TurnResult) -> bool:
    return Step.REUSED in [log.step for log in of_type(turn.events, ThoughtLog)]


def kinds(turn: TurnResult) -> list[str]:
    """Return what kinds of models were asked, in order."""
    return [request.kind.value for request in turn.requests]


async def test_the_second_time_the_same_words_cost_nothing_and_that_is_said(talk: Talk) -> None:
    first, second = await twice(talk, "a forest", plan=SEASON)
    assert (len(first.requests), second.requests) == (1, [])
    assert first.words == second.words == SEASON.text
    assert (is_reused(first), is_reused(second)) == (False, True)
    assert first.one(TurnDone).price_usd > second.one(TurnDone).price_usd == 0
    assert second.one(TurnDone).usage.total_tokens == 0


async def test_a_reused_plan_is_painted_anew_and_only_the_picture_is_paid(talk: Talk) -> None:
    first, second = await twice(talk, "a red fox", plan=paint(), image=[SMALL, SMALL])
    assert (kinds(first), kinds(second)) == (["text", "image"], ["image"])
    assert second.one(TurnDone).price_usd == second.receipt.price_usd > 0
    assert first.one(TurnDone).price_usd > second.receipt.price_usd


async def test_it_is_reused_after_a_restart_too(open_talk: OpenTalk) -> None:
    async with open_talk(reuse_plans=True) as talk:
        await talk.say("a forest", plan=SEASON)
    async with open_talk(talk, reuse_plans=True) as talk:
        again = await (await afresh(talk)).say("a forest")
    assert (again.words, again.requests) == (SEASON.text, [])


async def test_another_owner_is_asked_anew(talk: Talk) -> None:
    said = {}
    talk.models.on_text(Text("For Ann."), Text("For Bob."))
    for owner in (talk.owner, "bob", talk.owner):
        said[owner] = (await (await afresh(replace(talk, owner=owner))).say("a forest")).words
    assert said == {talk.owner: "For Ann.", "bob": "For Bob."}
    assert len(talk.models.requests) == 2


@pytest.mark.parametrize(
    ("text", "images", "chosen"),
    [
        ("another forest", (), {}),
        ("a forest", (png(),), {}),
        ("a forest", (), {"text_model": "thinking"}),
        ("a forest", (), {"allow_search": True}),
    ],
    ids=["words", "picture", "model", "search"],
)
async def test_whatever_the_answer_depends_on_makes_it_another_request(
    talk: Talk, text: str, images: tuple[bytes, ...], chosen: dict[str, Any]
) -> None:
    await talk.say("a forest", plan=ONE_AND_TWO)
    assert (await (await afresh(talk)).say(text, *images, **chosen)).words == "Two."


async def test_a_history_makes_it_another_request(talk: Talk) -> None:
    await talk.say("a forest", plan=ONE_AND_TWO)
    assert (await talk.say("a forest")).words == "Two."


async def test_a_failed_answer_is_not_kept(talk: Talk) -> None:
    first, second = await twice(talk, "hello there", plan=[HttpError(500), Text("Hello.")])
    assert (kinds(first), kinds(second)) == (["text"], ["text"])
    assert isinstance(second.events[-1], TurnDone)


async def test_by_default_every_request_is_asked(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first, second = await twice(talk, "a forest", plan=ONE_AND_TWO)
    assert (first.words, second.words) == ("One.", "Two.")


async def test_reviews_are_made_every_time(talk: Talk) -> None:
    for plan, asked in (([paint(), REVIEW], ["text", "image", "text"]), ([REVIEW], ["image", "text"])):
        turn = await (await afresh(talk)).say("a red fox", plan=plan, image=SMALL, review="always")
        assert isinstance(turn.events[-1], TurnDone)
        assert kinds(turn) == asked


async def test_searches_are_made_every_time(talk: Talk) -> None:
    for plan in ([search(), FOUND, Text("330 m.")], [FOUND]):
        turn = await (await afresh(talk)).say("how high?", plan=plan, allow_search=True)
        assert turn.words == "330 m."
        assert sum(request.has_search for request in turn.requests) == 1


async def test_a_reused_answer_leaves_no_call_on_record_that_was_never_made(talk: Talk) -> None:
    first = await talk.say("hello there", plan=Text("Hello."))
    another = await afresh(talk)
    again = await another.say("hello there")
    assert [call["name"] for call in await talk.calls(first)] == ["planner:1"]
    assert (is_reused(again), await another.calls(again)) == (True, [])


async def test_a_turn_with_a_reused_plan_goes_on_after_its_picture_failed(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(), image=SMALL)
    another = await afresh(talk)
    failed = await another.say("a red fox", image=HttpError(500))
    again = await another.retry(failed, image=SMALL)
    assert (kinds(failed), kinds(again)) == (["image"], ["image"])
    assert again.picture.handle == "#1"
