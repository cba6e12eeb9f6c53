"""Many conversations at the same time: nothing of one shows in another, and every one of them comes to its end."""

from __future__ import annotations

import asyncio
from collections import Counter

from agent import (
    Conversation,
    ErrorCode,
    PictureReady,
    PictureReviewed,
    PlanCard,
    PlanEdit,
    PlanReady,
    Settings,
    SmartCanvas,
    Step,
    Studio,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnLimits,
    TurnPaused,
    TurnRequest,
    TurnSettings,
    TurnState,
    TurnStopped,
)
from tests.support.gemini import SMALL, on_gemini, spoken
from tests.support.scenes import of_type, only, run
from tests.support.turns import decide, rows, send, started
from tests.support.waiting import until
from tests.wire_server import Answer, Call, GeminiServer, Hold, Text, WireRequest
from tests.wire_server.models import Kind

REVIEW = '{"score": %s, "checklist": [], "lettering": "", "feedback": "%s is there.", "suggestions": []}'


def mark_of(request: WireRequest) -> str:
    """Return whose request it is."""
    return next(word.strip('".,') for word in request.text.split() if word.startswith("MARK"))


def talker(request: WireRequest) -> Answer:
    """Plan a picture of the person's own mark, thank when it is there, and review what is shown."""
    mark = mark_of(request)
    if not request.function_names:
        return Text(REVIEW % (0.9, mark), chunks=1)
    if "thanks" in request.last_text:
        return Text(f"You are welcome, {mark}.", chunks=2)
    return Call("generate_image", {"prompt": f"a picture of {mark}", "confidence": 0.9}, text_before=f"For {mark}.")


async def talk(studio: Studio, mark: str, number: int) -> tuple[list[TurnEvent], Conversation]:
    """Have a picture painted, reviewed or confirmed by turns, and say thanks."""
    conversation = await studio.conversations.create(owner=f"owner of {mark}")
    owner = conversation.owner
    events = await ask(studio, conversation.id, owner, f"paint {mark} please", number)
    if number % 2:
        assert isinstance(events[-1], TurnPaused)
        edit = PlanEdit(prompt=f"an edited picture of {mark}")
        is_dropped = number % 10 == 1
        events += await decide(studio, conversation.id, started(events), edit, run=not is_dropped, owner=owner)
    events += await ask(studio, conversation.id, owner, f"thanks {mark}", 0)
    return events, await studio.conversations.get(conversation.id, owner)


async def ask(studio: Studio, conversation_id: str, owner: str, text: str, number: int) -> list[TurnEvent]:
    chosen = TurnSettings(confirm=number % 2 == 1, review="always" if number % 3 == 0 else "off")
    return await send(studio, conversation_id, TurnRequest(text=text, settings=chosen), owner=owner)


async def test_reviews_and_plans_of_many_conversations_never_mix(settings: Settings) -> None:
    marks = [f"MARK{number:02}" for number in range(30)]
    with GeminiServer(text=talker, image=lambda request: SMALL) as server:
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            told = await asyncio.gather(*(talk(studio, mark, number) for number, mark in enumerate(marks)))
            assert not any(studio.turns.is_running(kept.id, kept.owner) for _, kept in told)
        assert server.violations == []
    for number, (events, kept) in enumerate(told):
        everything = spoken(events) + kept.model_dump_json()
        assert [mark for mark in marks if mark in everything] == [marks[number]]
        is_dropped = number % 10 == 1
        assert [turn.state for turn in kept.turns] == [TurnState.DONE] * 2
        assert len(of_type(events, TurnDone)) == 2
        assert len(of_type(events, PictureReady)) == len(kept.pictures) == (not is_dropped)
        assert len(of_type(events, PlanReady)) == number % 2
        assert len(of_type(events, PictureReviewed)) == (number % 3 == 0 and not is_dropped)
        cards = [one.state for one in kept.turns[0].components if isinstance(one, PlanCard)]
        assert cards == (["dropped" if is_dropped else "run"] if number % 2 else [])
        shown = [one.handles for one in kept.turns[0].components if isinstance(one, SmartCanvas)]
        assert shown == ([] if is_dropped else [("#1",)])
    calls = rows(gemini.home / "aivista.db", "SELECT conversation_id, name, state FROM calls")
    assert {row["state"] for row in calls} == {"done"}
    assert {row["conversation_id"] for row in calls} == {kept.id for _, kept in told}


async def test_of_fifty_at_once_four_are_at_work_and_the_others_come_in_their_order_or_hear_that_it_is_full(
    settings: Settings,
) -> None:
    begun: list[str] = []
    told: dict[str, list[TurnEvent]] = {f"MARK{number:02}": [] for number in range(50)}
    marks = list(told)

    def answer(request: WireRequest) -> Answer:
        begun.append(mark_of(request))
        words = Text(f"You are welcome, {mark_of(request)}.")
        return Hold(words) if len(begun) <= 4 else words

    async def say(mark: str, conversation: Conversation) -> None:
        asked = studio.run_turn(conversation.id, TurnRequest(text=f"thanks {mark}"), owner=mark)
        async for event in asked:
            told[mark].append(event)

    with GeminiServer(text=answer) as server:
        async with Studio(on_gemini(settings, server.url), limits=TurnLimits(turns_at_once=4)) as studio:
            conversations = [await studio.conversations.create(owner=mark) for mark in marks]
            sent = [asyncio.create_task(say(*one)) for one in zip(marks, conversations, strict=True)]
            await asyncio.to_thread(server.wait_for_held, 4)
            await until(lambda: all(told.values()))
            assert len(begun) == 4
            server.release()
            await asyncio.gather(*sent)
            kept = [await studio.conversations.get(one.id, one.owner) for one in conversations]
    served, refused = marks[:20], marks[20:]
    assert {type(told[mark][-1]) for mark in served} == {TurnDone}
    assert {only(told[mark], TurnFailed).error.code for mark in refused} == {ErrorCode.STUDIO_BUSY}
    # Each hears its place as it comes, and those that are called together may overtake each other.
    assert [places(told[mark])[0] for mark in served[4:]] == list(range(1, 17))
    assert all(places(told[mark]) == sorted(places(told[mark]), reverse=True) for mark in served)
    assert sorted(begun) == served
    assert all(abs(begun.index(mark) - marks.index(mark)) < 8 for mark in served)
    for mark, one in zip(marks, kept, strict=True):
        everything = spoken(told[mark]) + one.model_dump_json(exclude={"owner"})
        assert [other for other in marks if other in everything] == ([mark] if mark in served else [])


def places(events: list[TurnEvent]) -> list[int]:
    """Return the places in the line that were told."""
    return [int(log.parameters["place"]) for log in of_type(events, ThoughtLog) if log.step is Step.IN_LINE]


def call_of(request: WireRequest) -> str:
    """Return which call of a turn it is."""
    if request.kind is Kind.IMAGE:
        return "image"
    return "text" if request.function_names else "review"


async def test_many_stops_at_every_call_leave_every_turn_and_every_call_ended(settings: Settings) -> None:
    # By what each is stopped in; the first of them before anything is asked.
    moments = {f"MARK{number:02}": ("", "text", "image", "review")[number % 4] for number in range(12)}

    def asked_for(mark: str) -> list[str]:
        return [call_of(one) for one in server.requests if mark_of(one) == mark]

    def held(request: WireRequest, answer: Answer) -> Answer:
        return Hold(answer) if moments[mark_of(request)] == call_of(request) else answer

    async def stop(conversation: Conversation, moment: str, mark: str) -> None:
        await until(lambda: not moment or moment in asked_for(mark))
        assert await studio.cancel(conversation.id)

    with GeminiServer() as server:
        server.on_text(lambda request: held(request, talker(request)))
        server.on_image(lambda request: held(request, SMALL))
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            kept = {mark: await studio.conversations.create() for mark in moments}
            turns = (run(studio, kept[mark].id, f"paint {mark}", review="always") for mark in moments)
            stops = (stop(kept[mark], moment, mark) for mark, moment in moments.items())
            endings = await asyncio.gather(*turns, *stops)
            # A picture that was asked for is paid for: it is waited for.
            server.release()
        assert server.violations == []
        async with Studio(gemini) as studio:
            after = {mark: await studio.conversations.get(one.id) for mark, one in kept.items()}
    assert {type(events[-1]) for events in endings if events} == {TurnStopped}
    reached = {"": [], "text": ["text"], "image": ["text", "image"], "review": ["text", "image", "review"]}
    for mark, moment in moments.items():
        assert asked_for(mark) == reached[moment]
        assert [turn.state for turn in after[mark].turns] == [TurnState.STOPPED] * bool(moment)
        assert len(after[mark].pictures) == (moment in ("image", "review"))
    left = rows(gemini.home / "aivista.db", "SELECT state FROM calls")
    assert Counter(row["state"] for row in left) == {"done": 3 + 2 * 3 + 3, "cancelled": 3 + 3}
