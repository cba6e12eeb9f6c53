"""A planner that is not sure asks first; whatever it does, nothing is painted in the meantime."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from agent.components import AskBack, SmartCanvas
from agent.conversation import Conversation, TurnState
from agent.events import PaintingStarted, QuestionAsked, TurnDone, TurnEvent
from agent.messages import Role, ToolCallPart, ToolResultPart
from agent.settings import Settings
from tests.adapters.language import ASK_INSTEAD
from tests.adapters.scripted import Asked, Line, calls, says
from tests.support.scenes import Scene, generate, of_type, picture, run, words

UNSURE: list[dict[str, Any]] = [{"confidence": 0.5}, {"confidence": 0.1}, {"action": "unknown", "confidence": 0.99}]
SURE: list[dict[str, Any]] = [{"confidence": 0.51}, {"confidence": 1.0}, {"confidence": None}]


@dataclass
class Played:
    """A turn that was run, and what it left."""

    events: list[TurnEvent]
    kept: Conversation
    asked: list[Asked]

    @property
    def painted(self) -> int:
        return sum(one.request is not None for one in self.asked)

    @property
    def told(self) -> list[ToolResultPart]:
        """What the planner was answered before its newest call."""
        planned = [one for one in self.asked if one.request is None]
        return [part for part in planned[-1].messages[-1].parts if isinstance(part, ToolResultPart)]


async def play(settings: Settings, *text: Line, pictures: Iterable[Line] = (), said: str = "a fox") -> Played:
    scene = Scene(settings, text=text, pictures=pictures)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, said)
        kept = await studio.conversation(conversation.id)
    assert isinstance(events[-1], TurnDone), events[-1]
    assert kept.turns[0].state is TurnState.DONE
    return Played(events, kept, scene.provider.asked)


@pytest.mark.parametrize("doubt", UNSURE, ids=str)
async def test_an_unsure_call_goes_back_once_and_the_planner_s_question_ends_the_turn(
    settings: Settings, doubt: dict[str, Any]
) -> None:
    played = await play(settings, calls(generate(**doubt)), says("Which season shall it be?"))
    assert [(one.content, one.is_error) for one in played.told] == [({"error": ASK_INSTEAD}, True)]
    assert words(played.events) == "Which season shall it be?"
    assert (len(played.asked), played.painted) == (2, 0)
    assert not of_type(played.events, QuestionAsked)


@pytest.mark.parametrize("doubt", UNSURE, ids=str)
async def test_a_planner_unsure_a_second_time_has_the_studio_ask_in_its_own_words(
    settings: Settings, doubt: dict[str, Any]
) -> None:
    again = generate("another fox", subject=" a fox ", **doubt)
    played = await play(settings, calls(generate(**doubt)), calls(again))
    assert of_type(played.events, QuestionAsked) == [QuestionAsked(question="unsure", subject="a fox")]
    assert AskBack(question="unsure", subject="a fox") in played.kept.turns[0].components
    assert (len(played.asked), played.painted) == (2, 0)
    assert not of_type(played.events, PaintingStarted)


async def test_the_question_stands_in_the_history_and_no_call_is_left_open(settings: Settings) -> None:
    scene = Scene(settings, text=[*[calls(generate(confidence=0.2))] * 2, says("Green.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        await run(studio, conversation.id, "I mean the animal")
    history = scene.provider.asked[-1].messages
    roles = [message.role for message in history]
    assert roles == [Role.PROMPT, Role.MODEL, Role.TOOL, Role.MODEL, Role.TOOL, Role.MODEL, Role.PROMPT]
    assert "what exactly is wanted?" in history[5].text


async def test_a_question_in_words_beside_the_unsure_call_ends_the_turn_at_once(settings: Settings) -> None:
    played = await play(settings, calls(generate(confidence=0.3), text="Shall it sleep or run?"))
    assert words(played.events) == "Shall it sleep or run?"
    assert (len(played.asked), played.painted) == (1, 0)
    assert not of_type(played.events, QuestionAsked)
    assert played.kept.messages[-1].role is Role.TOOL


async def test_words_that_ask_nothing_do_not_end_the_turn(settings: Settings) -> None:
    played = await play(settings, calls(generate(confidence=0.3), text="Here it comes."), says("Which one?"))
    assert (len(played.asked), played.painted) == (2, 0)


async def test_a_planner_that_becomes_sure_after_the_no_paints(settings: Settings) -> None:
    played = await play(settings, calls(generate(confidence=0.5)), calls(generate()), pictures=[picture()])
    assert played.painted == 1
    assert [one.handle for one in played.kept.pictures] == ["#1"]


@pytest.mark.parametrize("sure", SURE, ids=str)
async def test_a_little_more_than_half_sure_is_sure_enough(settings: Settings, sure: dict[str, Any]) -> None:
    played = await play(settings, calls(generate(**sure)), pictures=[picture()])
    assert played.painted == 1
    assert not of_type(played.events, QuestionAsked)


async def test_of_two_calls_the_sure_one_is_painted_and_the_unsure_one_is_answered_with_a_no(
    settings: Settings,
) -> None:
    both = calls(
        generate("a whale", confidence=0.2).model_copy(update={"call_id": "a"}),
        generate("a fox").model_copy(update={"call_id": "b"}),
    )
    played = await play(settings, both, pictures=[picture()])
    assert played.painted == 1
    results = [part for part in played.kept.messages[-1].parts if isinstance(part, ToolResultPart)]
    assert [(one.call_id, one.is_error) for one in results] == [("a", True), ("b", False)]
    assert [one.alt for one in played.kept.pictures] == ["a fox"]


async def test_an_unsure_call_beside_a_tool_does_not_end_the_turn_unserved(settings: Settings) -> None:
    both = calls(
        ToolCallPart(name="fly_away", call_id="a"),
        generate(confidence=0.2).model_copy(update={"call_id": "b"}),
    )
    played = await play(settings, both, says("Which one?"))
    assert [(one.call_id, one.is_error) for one in played.told] == [("a", True), ("b", True)]
    assert played.painted == 0


async def test_a_call_that_cannot_be_read_is_not_taken_for_a_doubt(settings: Settings) -> None:
    nonsense = ToolCallPart(name="generate_image", arguments={"confidence": 0.1})
    played = await play(settings, calls(nonsense), calls(generate()), pictures=[picture()])
    assert played.painted == 1
    assert not of_type(played.events, QuestionAsked)


async def test_a_doubt_of_an_earlier_turn_does_not_count_in_the_next(settings: Settings) -> None:
    text = [*[calls(generate(confidence=0.2))] * 2, calls(generate(confidence=0.2)), says("Which one?")]
    scene = Scene(settings, text=text)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = await run(studio, conversation.id, "a fox")
        second = await run(studio, conversation.id, "I mean the animal")
        kept = await studio.conversation(conversation.id)
    assert len(of_type(first, QuestionAsked)) == 1
    assert (of_type(second, QuestionAsked), words(second)) == ([], "Which one?")
    assert not [one for turn in kept.turns for one in turn.components if isinstance(one, SmartCanvas)]


async def test_with_confirm_first_a_doubt_is_settled_before_any_plan_is_shown(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(confidence=0.4)), says("Which one?")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", confirm=True)
    assert isinstance(events[-1], TurnDone)
    assert words(events) == "Which one?"


CLAIM = "I've created a picture of a red fox for you!"


async def test_a_planner_that_only_says_it_painted_is_asked_once_more_and_paints(settings: Settings) -> None:
    played = await play(settings, says(CLAIM), calls(generate(confidence=1.0)), pictures=[picture()])
    assert SmartCanvas(handles=("#1",)) in played.kept.turns[0].components
    assert not of_type(played.events, QuestionAsked)
    told = [one for one in played.asked if one.request is None][-1].messages[-1]
    assert (told.role, "no picture was made" in told.text) == (Role.PROMPT, True)


async def test_a_claim_that_is_repeated_is_told_to_the_person(settings: Settings) -> None:
    played = await play(settings, says(CLAIM), says("Here is your picture: ![fox](https://x.test/fox.png)"))
    assert of_type(played.events, QuestionAsked) == [QuestionAsked(question="not_painted")]
    assert AskBack(question="not_painted") in played.kept.turns[0].components
    assert (len(played.asked), played.painted) == (2, 0)


async def test_whoever_asks_about_pictures_is_answered_in_words(settings: Settings) -> None:
    played = await play(settings, says("I have painted nothing yet."), said="What did you paint?")
    assert len(played.asked) == 1
    assert not of_type(played.events, QuestionAsked)
