"""Other words for a refused wish: asked of the text model, else made by rules, and never in the way of the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent import ErrorCode, ErrorInfo, FailureNote, Settings, Step, ThoughtLog, TurnFailed, TurnPaused
from tests.adapters.language import reworded_by_rule
from tests.adapters.models import Asked, Line, calls
from tests.behaviour.talk import Talk, TurnResult
from tests.support.cases import each_case
from tests.support.gemini import paint
from tests.support.scenes import Scene, generate, of_type, only, run
from tests.wire_server import Answer, Blocked, Cut, Finish, HttpError, Text, TextOnly

BLOCKED = ErrorCode.PICTURE_BLOCKED
REFUSED = Finish("IMAGE_SAFETY")
OFFERS = ("A fox as a paper cut-out", "The snow alone, with a fox's tracks")


def offers(turn: TurnResult) -> tuple[str, ...]:
    return turn.one(TurnFailed).rewordings


async def test_a_refused_picture_is_followed_by_other_words_that_are_paid_and_kept(talk: Talk) -> None:
    failed = await talk.say("a red fox", plan=[paint(), Text(json.dumps({"rewordings": OFFERS}))], image=REFUSED)
    assert (offers(failed), failed.failure.refused) == (OFFERS, "output")
    assert [one.rewordings for one in failed.components if isinstance(one, FailureNote)] == [OFFERS]
    assert [one.step for one in of_type(failed.events, ThoughtLog)][-1] is Step.REWORDING
    question = failed.requests[-1]
    assert question.system.startswith("An image model's policy")
    assert (question.function_names, "a red fox" in question.text, "IMAGE_SAFETY" in question.text) == ([], True, True)
    # What was found once is not paid for again.
    talk.models.on_image(REFUSED)
    again = await talk.retry(failed)
    assert (offers(again), [one.kind for one in again.requests]) == (OFFERS, ["image"])
    assert again.record.price_usd >= failed.record.price_usd > 0


@each_case("answer", [HttpError(503), Text("No."), Text('{"rewordings": ["a fox"]}')])
async def test_where_the_model_gives_none_the_rules_do(talk: Talk, answer: Answer) -> None:
    failed = await talk.say("a fox", plan=[paint(), answer], image=REFUSED)
    assert (failed.failure.code, offers(failed)) == (BLOCKED, reworded_by_rule("a fox", BLOCKED))


async def test_a_fault_of_ours_on_the_way_does_not_hide_the_refusal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def text(asked: Asked) -> Line:
        if asked.options.response_schema is None:
            return calls(generate())
        raise RuntimeError("nobody foresaw this")

    refused = Line(error=ErrorInfo(code=BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
    async with Scene(Settings(home=tmp_path), text=text, pictures=[refused]).studio() as studio:
        failed = only(await run(studio, (await studio.conversations.create()).id, "a fox"), TurnFailed)
    assert (failed.error.code, len(failed.rewordings)) == (BLOCKED, 3)
    assert "other words could not be asked for" in caplog.text


async def test_where_no_money_is_left_the_rules_serve(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=REFUSED, cap_conversation_usd=0.0001)
    assert isinstance(turn.events[-1], TurnPaused), "the cap asks first, and the person agrees"
    failed = await talk.decide(turn)
    assert offers(failed) == reworded_by_rule("a fox", BLOCKED)
    assert [one.kind for one in failed.requests] == ["image"]


async def test_words_that_the_text_model_refused_itself_are_not_sent_to_it_again(talk: Talk) -> None:
    failed = await talk.say("a soldier holding a gun", plan=Blocked("SAFETY"))
    assert (len(failed.requests), failed.failure.refused) == (1, "input")
    assert offers(failed) == reworded_by_rule("a soldier holding a gun", ErrorCode.PROMPT_BLOCKED)


async def test_a_refusal_in_words_gets_other_words_and_a_failure_of_the_network_none(talk: Talk) -> None:
    failed = await talk.say("a fox", plan=[paint(), Text("No.")], image=TextOnly("I can't draw that."))
    assert (failed.failure.code, len(offers(failed))) == (ErrorCode.TEXT_INSTEAD_OF_PICTURE, 3)
    assert offers(await talk.say("a fox", plan=paint(), image=Cut())) == ()
