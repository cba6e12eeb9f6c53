"""A planner that is not sure asks first; whatever it does, nothing is painted in the meantime."""

from __future__ import annotations

from typing import Any

import pytest

from agent import AskBack, QuestionAsked, SmartCanvas, TurnDone, TurnState
from tests.adapters.language import ASK_INSTEAD
from tests.behaviour.talk import Script, Talk, TurnResult
from tests.support.cases import each_case
from tests.support.gemini import SMALL
from tests.support.scenes import of_type
from tests.wire_server import Call, Calls, Text

CLAIM = Text("I've created a picture of a red fox for you!")


def fox(prompt: str = "a fox", **arguments: Any) -> Call:
    """Return a call without a word before it."""
    return Call("generate_image", {"prompt": prompt, **arguments})


DOUBT = fox(confidence=0.2)


async def played(talk: Talk, *plan: Any, image: Script = None, said: str = "a fox", **chosen: Any) -> TurnResult:
    """Run a turn, which must end well."""
    turn = await talk.say(said, plan=plan, image=image, **chosen)
    assert (type(turn.events[-1]), turn.record.state) == (TurnDone, TurnState.DONE)
    return turn


def answers(turn: TurnResult) -> list[Any]:
    """Return what the planner was answered before its newest call."""
    asked = [one for one in turn.requests if one.kind == "text"]
    return [one["response"] for one in asked[-1].function_responses]


def questions(turn: TurnResult) -> list[QuestionAsked]:
    return of_type(turn.events, QuestionAsked)


@each_case("doubt", [{"confidence": 0.5}, {"confidence": 0.1}, {"action": "unknown", "confidence": 0.99}])
async def test_an_unsure_call_goes_back_once_and_then_the_planner_or_the_studio_asks(
    talk: Talk, doubt: dict[str, Any]
) -> None:
    turn = await played(talk, fox(**doubt), Text("Which season shall it be?"))
    assert (answers(turn), turn.words) == ([{"error": ASK_INSTEAD}], "Which season shall it be?")
    assert (len(turn.requests), questions(turn)) == (2, [])
    again = fox("another fox", subject=" a fox ", **doubt)
    turn = await played(talk, fox(**doubt), again)
    assert questions(turn) == [QuestionAsked(question="unsure", subject="a fox")]
    assert AskBack(question="unsure", subject="a fox") in turn.components
    assert len(turn.requests) == 2


async def test_the_question_stands_in_the_history_no_call_is_left_open_and_a_new_turn_is_a_new_chance(
    talk: Talk,
) -> None:
    await played(talk, DOUBT, DOUBT)
    turn = await played(talk, DOUBT, Text("Which one?"), said="I mean the animal")
    history = turn.requests[0].contents
    assert [one["role"] for one in history] == ["user", "model", "user", "model", "user", "model", "user"]
    assert "what exactly is wanted?" in str(history[5])
    assert (questions(turn), turn.words) == ([], "Which one?")
    assert not [one for one in turn.components if isinstance(one, SmartCanvas)]


async def test_a_question_in_words_beside_the_unsure_call_ends_the_turn_at_once_and_other_words_do_not(
    talk: Talk,
) -> None:
    turn = await played(talk, Calls([fox(confidence=0.3)], text_before="Shall it sleep or run?"))
    assert (turn.words, len(turn.requests), questions(turn)) == ("Shall it sleep or run?", 1, [])
    assert turn.record.messages[-1].role == "tool"
    turn = await played(talk, Calls([fox(confidence=0.3)], text_before="Here it comes."), Text("Which one?"))
    assert (len(turn.requests), turn.pictures) == (2, [])


@pytest.mark.parametrize("sure", [{"confidence": 0.51}, {"confidence": 1.0}, {}], ids=str)
async def test_a_little_more_than_half_sure_is_sure_enough_at_once_or_after_the_no(
    talk: Talk, sure: dict[str, Any]
) -> None:
    turn = await played(talk, fox(**sure), image=SMALL)
    assert (len(turn.pictures), questions(turn)) == (1, [])
    turn = await played(talk, fox(confidence=0.5), fox(**sure), image=SMALL)
    assert (len(turn.pictures), questions(turn)) == (1, [])


async def test_of_two_calls_the_sure_one_is_painted_and_the_unsure_one_is_answered_with_a_no(talk: Talk) -> None:
    turn = await played(talk, Calls([fox("a whale", confidence=0.2), fox(subject="a fox")]), image=SMALL)
    told = (await played(talk, Text("Yes."), said="thanks")).requests[0]
    results = [part["functionResponse"]["response"] for part in told.contents[2]["parts"] if "functionResponse" in part]
    assert ["error" in one for one in results] == [True, False]
    assert turn.picture.alt == "a fox"


async def test_an_unsure_call_beside_a_tool_does_not_end_the_turn_unserved(talk: Talk) -> None:
    turn = await played(talk, Calls([Call("fly_away"), DOUBT]), Text("Which one?"))
    assert ["error" in one for one in answers(turn)] == [True, True]
    assert turn.painted() == []


async def test_a_call_that_cannot_be_read_is_not_taken_for_a_doubt(talk: Talk) -> None:
    turn = await played(talk, Call("generate_image", {"confidence": 0.1}), fox(), image=SMALL)
    assert (len(turn.pictures), questions(turn)) == (1, [])


async def test_with_confirm_first_a_doubt_is_settled_before_any_plan_is_shown(talk: Talk) -> None:
    assert (await played(talk, DOUBT, Text("Which one?"), confirm=True)).words == "Which one?"


# ---- pictures that are only claimed


async def test_a_planner_that_only_says_it_painted_is_asked_once_more_and_then_paints_or_it_is_told(talk: Talk) -> None:
    turn = await played(talk, CLAIM, fox(confidence=1.0), image=SMALL)
    assert SmartCanvas(handles=("#1",)) in turn.components
    assert questions(turn) == []
    assert "no picture was made" in turn.requests[1].prompt
    turn = await played(talk, CLAIM, Text("Here is your picture: ![fox](https://x.test/fox.png)"))
    assert questions(turn) == [QuestionAsked(question="not_painted")]
    assert AskBack(question="not_painted") in turn.components
    assert (len(turn.requests), turn.pictures) == (2, [])
    turn = await played(talk, Text("I have painted nothing yet."), said="What did you paint?")
    assert (len(turn.requests), questions(turn)) == (1, [])
