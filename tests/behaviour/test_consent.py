"""Once something from outside is before the model, a call that could do harm waits for the person, who sees it all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent import Ask, ConsentAsked, ConsentCard, PlanReady, Studio, TurnDone, TurnPaused, TurnState
from tests.adapters.tools import letter_tools
from tests.behaviour.conftest import settings_in
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.scenes import png
from tests.wire_server import Call, Calls, Events, GeminiServer, Text

READ = Call("open_mail", id="m1")
SEND = Call("send_letter", {"words": "all I know"}, id="s1")
# More than this nobody is asked to read.
MOST_CHARACTERS = 200_000

_SENT: list[str] = []


@asynccontextmanager
async def opened(home: Path, models: GeminiServer) -> AsyncIterator[Studio]:
    """Open a studio with a tool that reads mail and one that sends letters."""
    async with Studio(settings_in(home, models), tools=letter_tools(_SENT)) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def studio(models: GeminiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Studio]:
    """The studio of the file, with these tools."""
    async with opened(tmp_path_factory.mktemp("home"), models) as made:
        yield made


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """The letters that were sent."""
    _SENT.clear()
    yield _SENT
    _SENT.clear()


def asked(turn: TurnResult) -> Ask:
    """Return the one call that a turn asks about."""
    [ask] = turn.one(ConsentAsked).asks
    return ask


def cards(turn: TurnResult) -> list[str]:
    """Return how it stands with what a turn asks about."""
    return [one.state for one in turn.components if isinstance(one, ConsentCard)]


# ---- what is asked


async def test_without_anything_from_outside_a_call_runs_at_once(talk: Talk, sent: list[str]) -> None:
    turn = await talk.say("send it", plan=[SEND, Text("Sent.")])
    assert isinstance(turn.events[-1], TurnDone)
    assert sent == ["all I know"]


async def test_after_something_from_outside_the_call_waits_with_its_exact_arguments(
    talk: Talk, sent: list[str]
) -> None:
    turn = await talk.say("read my mail", plan=[READ, SEND])
    ask = asked(turn)
    assert (ask.tool, ask.reason) == ("send_letter", "may_change_something")
    assert json.loads(ask.arguments) == {"words": "all I know"}
    assert (type(turn.events[-1]), turn.record.state) == (TurnPaused, TurnState.WAITING)
    assert ConsentCard(asks=(ask,)) in turn.components
    assert sent == []


async def test_a_hundred_thousand_characters_are_asked_about_with_every_one_of_them(
    talk: Talk, sent: list[str]
) -> None:
    letter = "".join(chr(0x4E00 + number % 20_000) for number in range(99_990)) + "\u202eTHE END"
    send = replace(SEND, args={"words": letter})
    turn = await talk.say("read my mail", plan=[READ, send, Text("Sent.")], budget_usd=5.0)
    assert json.loads(asked(turn).arguments) == {"words": letter}
    assert ConsentCard(asks=(asked(turn),)) in turn.components
    done = await talk.decide(turn)
    assert isinstance(done.events[-1], TurnDone)
    assert [letter] == sent


async def test_what_is_too_long_for_anybody_to_read_is_not_asked_about_and_never_runs(
    talk: Talk, sent: list[str]
) -> None:
    long = replace(SEND, args={"words": "x" * MOST_CHARACTERS})
    short = replace(SEND, args={"words": "short"}, id="s2")
    turn = await talk.say("read my mail", plan=[READ, Calls([long, short]), Text("One was sent.")], budget_usd=5.0)
    assert asked(turn).call == 1
    first, second = (await talk.decide(turn)).requests[-1].function_responses
    assert sent == ["short"]
    assert (first["id"], list(first["response"]), "error" in second["response"]) == ("s1", ["error"], False)
    assert "Call it with less" in first["response"]["error"]


async def test_half_a_character_in_a_call_breaks_nothing(talk: Talk) -> None:
    call = {"functionCall": {"id": "s1", "name": "send_letter", "args": {"words": "a\ud800b"}}}
    candidate = {"content": {"role": "model", "parts": [call]}, "finishReason": "STOP", "index": 0}
    halved = Events([json.dumps({"candidates": [candidate]}).encode()])
    turn = await talk.say("read my mail", plan=[READ, halved])
    assert json.loads(asked(turn).arguments) == {"words": "a?b"}


# ---- what the person decides


async def test_allowed_it_runs_once_and_the_turn_goes_on(talk: Talk, sent: list[str]) -> None:
    turn = await talk.decide(await talk.say("read my mail", plan=[READ, SEND, Text("Sent.")]))
    assert sent == ["all I know"]
    assert turn.words == "Sent."
    assert (turn.record.state, cards(turn)) == (TurnState.DONE, ["allowed"])


async def test_declined_it_never_runs_and_the_model_is_told(talk: Talk, sent: list[str]) -> None:
    turn = await talk.decide(await talk.say("read my mail", plan=[READ, SEND, Text("Then not.")]), run=False)
    assert sent == []
    assert (turn.words, cards(turn)) == ("Then not.", ["refused"])
    [told] = turn.requests[-1].function_responses
    assert "did not allow it" in told["response"]["error"]


async def test_the_decision_may_come_after_a_restart(models: GeminiServer, tmp_path: Path, sent: list[str]) -> None:
    async with opened(tmp_path, models) as studio:
        talk = Talk(studio, models, (await studio.conversations.create()).id, "local")
        turn = await talk.say("read my mail", plan=[READ, SEND, Text("Sent.")])
    async with opened(tmp_path, models) as studio:
        done = await replace(talk, studio=studio).decide(turn)
    assert (done.words, sent) == ("Sent.", ["all I know"])


async def test_calls_beside_one_that_waits_wait_with_it_and_run_once(talk: Talk, sent: list[str]) -> None:
    both = Calls([replace(READ, id="m2"), replace(SEND, args={"words": "hello"})])
    turn = await talk.say("read my mail", plan=[READ, both, Text("Done.")])
    [request] = (await talk.decide(turn)).requests
    assert [one["id"] for one in request.function_responses] == ["m2", "s1"]
    assert sent == ["hello"]


async def test_a_new_message_leaves_the_question_behind_unanswered(talk: Talk, sent: list[str]) -> None:
    turn = await talk.say("read my mail", plan=[READ, SEND])
    await talk.say("never mind", plan=Text("Yes?"))
    first = replace(turn, turn=(await talk.kept()).turns[0])
    assert (first.record.state, cards(first)) == (TurnState.STOPPED, ["refused"])
    assert sent == []


# ---- for how long


async def test_what_came_in_by_an_earlier_message_asks_for_a_click_in_every_later_one(
    talk: Talk, sent: list[str]
) -> None:
    await talk.say("read my mail", plan=[READ, Text("A letter.")])
    await talk.say("thanks", plan=Text("You are welcome."))
    turn = await talk.say("send it on", plan=SEND)
    assert (asked(turn).reason, sent) == ("may_change_something", [])


async def test_it_asks_after_a_restart_and_in_a_copy_of_the_conversation_as_well(
    models: GeminiServer, tmp_path: Path, sent: list[str]
) -> None:
    async with opened(tmp_path, models) as studio:
        talk = Talk(studio, models, (await studio.conversations.create()).id, "local")
        await talk.say("read my mail", plan=[READ, Text("A letter.")])
        copy = await studio.conversations.duplicate(talk.id)
    async with opened(tmp_path, models) as studio:
        for id in (talk.id, copy.id):
            turn = await replace(talk, studio=studio, id=id).say("send it on", plan=SEND)
            assert (asked(turn).tool, sent) == ("send_letter", [])


async def test_a_message_said_otherwise_leaves_behind_what_came_in_by_the_other_one(
    talk: Talk, sent: list[str]
) -> None:
    first = await talk.say("read my mail", plan=[READ, Text("A letter.")])
    turn = await talk.say("send it", plan=[SEND, Text("Sent.")], instead_of=first.record.id)
    assert isinstance(turn.events[-1], TurnDone)
    assert sent == ["all I know"]


async def test_an_upload_asks_for_a_click_as_a_page_does(talk: Talk, sent: list[str]) -> None:
    await talk.say("what is this?", png(), plan=Text("A photo."))
    turn = await talk.say("thanks", plan=SEND)
    assert (asked(turn).tool, sent) == ("send_letter", [])


# ---- pictures


async def test_fifty_pictures_that_a_page_asks_for_are_shown_as_a_plan_first(talk: Talk) -> None:
    many = Calls([paint(f"spam {number}", number_of_images=4) for number in range(12)])
    # With room for all of them, the mail alone is why they are asked about.
    turn = await talk.say("read my mail", plan=[READ, many], budget_usd=100.0)
    plans = turn.one(PlanReady).plans
    assert (len(plans), {plan.caps for plan in plans}) == (12, {()})
    assert (type(turn.events[-1]), turn.painted()) == (TurnPaused, [])


async def test_one_picture_is_painted_without_a_question(talk: Talk) -> None:
    turn = await talk.say("paint what my mail says", plan=[READ, paint()], image=SMALL)
    assert isinstance(turn.events[-1], TurnDone)


async def test_as_many_as_the_person_locked_are_painted_without_a_question(talk: Talk) -> None:
    turn = await talk.say("paint my mail", plan=[READ, paint()], image=[SMALL] * 3, number_of_images=3)
    assert isinstance(turn.events[-1], TurnDone)


async def test_as_many_as_the_person_said_in_this_message_are_painted_without_a_question(talk: Talk) -> None:
    many = [READ, paint(number_of_images=4)]
    said = await talk.say("read my mail and paint 4 pictures of it", plan=many, image=[SMALL] * 4)
    unsaid = await talk.say("and once more", plan=many, budget_usd=5.0)
    assert isinstance(said.events[-1], TurnDone)
    assert [plan.caps for plan in unsaid.one(PlanReady).plans] == [()]
