"""Whatever goes wrong with a call: one sentence that says who must act, nothing lost, and the next turn works."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import SecretStr

from agent import (
    AgentMessage,
    FailureNote,
    GroundingPart,
    PictureFailed,
    Role,
    Settings,
    SmartCanvas,
    Step,
    Steps,
    ToolCallPart,
    TurnDone,
    TurnFailed,
    TurnState,
)
from agent import ErrorCode as E
from tests.adapters.models import Asked, Line, calls, finds
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.cases import each_case
from tests.support.clock import Clock
from tests.support.gemini import SMALL, paint, search, spoken
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run
from tests.wire_server import (
    Answer,
    Blocked,
    Call,
    Calls,
    CorruptPicture,
    Cut,
    Empty,
    Finish,
    Garbage,
    Hold,
    HttpError,
    MalformedCall,
    MidStreamError,
    PictureAnswer,
    Text,
    TextOnly,
    WireRequest,
    error_body,
    quota_body,
)

Place = Literal["text", "image", "search"]
Fault = tuple[Answer, E, str, str]
WISH = "Put my dog into the snow 🐕"
NODES: dict[Place, str] = {"text": "planner", "image": "executor", "search": "searcher"}
FACTS = {"facts": [{"item": "It is 330 m high.", "source": "tower.example"}], "prompt_draft": ""}
# How long to wait for the next piece of an answer: less than the patience of any step.
TIMEOUT_S = 50

LOCATION = error_body(400, "User location is not supported for the API use.")
LOCATION["error"]["status"] = "FAILED_PRECONDITION"
NOT_VALID = "API key not valid. Please pass a valid API key."
GONE = "This model models/x is no longer available."
NO_PICTURE = b"Not a picture, whatever it says."

# What goes wrong where, the code of it, who must act, and words of the sentence the person reads.
EVERYWHERE: list[Fault] = [
    # HTTP
    (HttpError(400, NOT_VALID), E.KEY_INVALID, "key", "check it in Google AI Studio"),
    (HttpError(400, "* contents: bad"), E.REQUEST_REJECTED, "us", "send us the debug report"),
    (HttpError(400, body=LOCATION), E.REGION_UNSUPPORTED, "key", "run it from another region"),
    (HttpError(401, "no"), E.KEY_INVALID, "key", "check it in Google AI Studio"),
    (HttpError(403, "no"), E.KEY_FORBIDDEN, "key", "Your API key may not use"),
    (HttpError(404, GONE), E.MODEL_NOT_FOUND, "operator", "Please set AIVISTA_MODEL_"),
    (HttpError(404, body=b"<html>No</html>"), E.WRONG_ADDRESS, "operator", "check GOOGLE_GEMINI_BASE_URL"),
    (HttpError(429, body=quota_body("minute", retry_s=34.0)), E.RATE_LIMITED, "provider", "try again in 34 s"),
    (HttpError(429, body=quota_body("day", limit=100)), E.QUOTA_EXHAUSTED, "key", "midnight Pacific time"),
    (HttpError(429, body=quota_body("day", limit=0)), E.BILLING_REQUIRED, "key", "turn on billing"),
    (HttpError(500), E.PROVIDER_ERROR, "provider", "HTTP 500"),
    (HttpError(503), E.OVERLOADED, "provider", "overloaded at Google"),
    (HttpError(504, "too late"), E.PROVIDER_GAVE_UP, "provider", "Google gave up after"),
    # the wire
    (Cut(after_chunks=0), E.STREAM_CUT, "network", "connection broke"),
    (MidStreamError(2, 503), E.OVERLOADED, "provider", "overloaded at Google"),
    (Garbage(), E.ANSWER_UNREADABLE, "provider", "Please try again"),
    (Garbage(after_chunks=2), E.ANSWER_UNREADABLE, "provider", "Please try again"),
    # the answer
    (Empty(), E.EMPTY_ANSWER, "provider", "empty answer"),
    (Empty(has_empty_part=True), E.EMPTY_ANSWER, "provider", "empty answer"),
    (Blocked("PROHIBITED_CONTENT"), E.PROMPT_BLOCKED, "policy", "Google's policy declined the request"),
]
IN_WORDS: list[Fault] = [
    (Cut(after_chunks=2), E.STREAM_CUT, "network", "connection broke"),
    (Text("Once upon a time", finish_reason="MAX_TOKENS"), E.ANSWER_TOO_LONG, "provider", "length limit"),
]
# Words of which nothing would be seen.
UNSEEN = ("\n\n \n", "\u200b\u200d", "\ufeff\u2060\n", "\u3164\u2800")
SILENCE: list[Fault] = [
    (Hold(Text("late")), E.PROVIDER_TIMEOUT, "provider", "for 50 s"),
    (Hold(Text("One two three", chunks=3), after_chunks=2), E.PROVIDER_TIMEOUT, "provider", "for 50 s"),
]
# One finish reason of every kind is among them; `test_endings` knows what each of the others comes to.
ELSEWHERE: dict[Place, list[Fault]] = {
    "search": IN_WORDS,
    "text": [
        *IN_WORDS,
        *((Text(text), E.EMPTY_ANSWER, "provider", "empty answer") for text in UNSEEN),
        (Cut(after_chunks=4, answer=paint()), E.STREAM_CUT, "network", "connection broke"),
        (MalformedCall(), E.MALFORMED_CALL, "provider", "garbled"),
        (Finish("STOP"), E.EMPTY_ANSWER, "", ""),
        (Finish("CONTINUATION"), E.ANSWER_TOO_LONG, "", ""),
        (Finish("SAFETY"), E.ANSWER_BLOCKED, "", ""),
        (Finish("LANGUAGE"), E.LANGUAGE_UNSUPPORTED, "", ""),
        (Finish("UNEXPECTED_TOOL_CALL"), E.MALFORMED_CALL, "", ""),
        (Finish("MISSING_THOUGHT_SIGNATURE"), E.SIGNATURE_REJECTED, "", ""),
        (Finish("IMAGE_SAFETY"), E.PICTURE_BLOCKED, "", ""),
    ],
    "image": [
        (Cut(1, PictureAnswer(text_before="Here")), E.STREAM_CUT, "network", "connection broke"),
        (TextOnly("I can't."), E.TEXT_INSTEAD_OF_PICTURE, "provider", "in words instead of a picture: I can't."),
        (CorruptPicture(), E.BROKEN_PICTURE, "provider", "The picture arrived damaged"),
        (PictureAnswer(data=NO_PICTURE), E.BROKEN_PICTURE, "provider", "The picture arrived damaged"),
        (PictureAnswer(data=b"%PDF-1.7", mime="application/pdf"), E.EMPTY_ANSWER, "provider", "empty answer"),
        (Finish("MAX_TOKENS"), E.ANSWER_TOO_LONG, "", ""),
        (Finish("LANGUAGE"), E.LANGUAGE_UNSUPPORTED, "", ""),
        (Finish("MALFORMED_RESPONSE"), E.MALFORMED_CALL, "", ""),
        (Finish("MISSING_THOUGHT_SIGNATURE"), E.SIGNATURE_REJECTED, "", ""),
        (Finish("PROHIBITED_CONTENT"), E.PICTURE_BLOCKED, "", ""),
        (Finish("IMAGE_RECITATION"), E.PICTURE_RECITATION, "", ""),
        (Finish("NO_IMAGE"), E.NO_PICTURE, "", ""),
    ],
}


async def draw_a_fox(talk: Talk) -> None:
    assert (await talk.say("a fox", plan=paint(), image=SMALL)).picture.handle == "#1"


async def fail(talk: Talk, place: Place, answer: Answer, clock: Clock | None = None) -> TurnResult:
    """Run a turn with a picture in which one kind of call fails, however often it is made; all before it goes well."""

    def text(request: WireRequest) -> Answer:
        if place == "text" or request.has_search:
            return answer
        return paint() if place == "image" else search()

    talk.models.on_text(text)
    talk.models.on_image(lambda request: answer)
    running = talk.say(WISH, png(80, 60, "green"), allow_search=place == "search")
    turn = await (clock.run_out(running, lambda: talk.models.held, TIMEOUT_S) if clock else running)
    assert talk.models.violations == []
    talk.models.clear()
    return turn


async def expect_failed(talk: Talk, turn: TurnResult, place: Place, fault: Fault) -> None:
    """It failed so, where it was asked, and is on record with the person's words, their picture and the reason."""
    _, code, actor, said = fault
    failed, kept = turn.events[-1], turn.record
    assert isinstance(failed, TurnFailed), failed
    error = failed.error
    assert (error.code, failed.node) == (code, NODES[place])
    assert actor in (error.actor.value, "")
    assert said in error.message
    assert "?" not in error.message
    assert (kept.text, kept.state, kept.messages[0].text) == (WISH, TurnState.FAILED, WISH)
    [upload] = kept.uploads
    assert upload.handle is not None
    assert (await talk.studio.picture(talk.id, upload.handle, talk.owner)).picture.turn_id == turn.id
    notes = [component for component in turn.components if isinstance(component, FailureNote)]
    assert [note.error for note in notes] == [error]


async def expect_next_turn_works(talk: Talk, handle: str = "#1") -> None:
    """An edit of a picture: the history is one that the strict server takes, planner and image model."""
    turn = await talk.say("at dusk", plan=paint("at dusk", handles=[handle]), image=SMALL)
    assert isinstance(turn.events[-1], TurnDone)
    assert turn.picture.handle.startswith(handle)


# ---- failed


@pytest.mark.parametrize("place", NODES)
async def test_each_failure_says_who_must_act_and_the_next_turn_works(
    talk: Talk, subtests: pytest.Subtests, place: Place
) -> None:
    for fault in (*EVERYWHERE, *ELSEWHERE[place]):
        with subtests.test(fault=repr(fault)):
            one = await talk.another()
            await expect_failed(one, await fail(one, place, fault[0]), place, fault)
            await expect_next_turn_works(one)


@pytest.mark.parametrize("fault", SILENCE)
async def test_silence_does_too(open_talk: OpenTalk, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    async with open_talk(text_timeout_s=TIMEOUT_S, image_timeout_s=TIMEOUT_S) as talk:
        await draw_a_fox(talk)
        for place in NODES:
            await expect_failed(talk, await fail(talk, place, fault[0], Clock(monkeypatch)), place, fault)
            await expect_next_turn_works(talk)


@each_case(
    ("forbidden", "refusal", "code"),
    [
        ("the unspeakable", Blocked("SAFETY"), E.PROMPT_BLOCKED),
        ("the unspeakable", Blocked("BLOCKED_REASON_UNSPECIFIED"), E.PROMPT_BLOCKED),
        ("\u202e", HttpError(400, "* contents[4]: bad"), E.REQUEST_REJECTED),
    ],
)
async def test_a_request_that_is_blocked_or_rejected_does_not_spoil_the_next_one(
    talk: Talk, forbidden: str, refusal: Answer, code: E
) -> None:
    """Who refuses reads the whole history: what it declined once must not stand in the way for ever."""
    talk = await talk.another()
    talk.models.on_text(lambda request: refusal if forbidden in request.text else Text("Gladly."))
    await talk.say("Hello, who are you?")
    turn = await talk.say(f"Draw {forbidden} a fox.", png())
    assert turn.failure.code is code
    assert turn.failure.parameters.get("reason") == getattr(refusal, "reason", None)
    assert turn.record.text == f"Draw {forbidden} a fox."
    turn = await talk.say("A fox, then.")
    assert turn.words == "Gladly."
    assert "who are you?" in turn.requests[-1].text
    assert "#1, uploaded by the user" in turn.requests[-1].text


async def test_a_server_that_is_not_there_is_a_failed_connection(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await draw_a_fox(talk)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: every connection is refused
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with open_talk(talk, gemini_base_url=nowhere) as talk:
            fault = (Empty(), E.CONNECTION_FAILED, "network", "check the network connection")
            await expect_failed(talk, await fail(talk, "text", Empty()), "text", fault)
    async with open_talk(talk) as talk:
        await expect_next_turn_works(talk)


async def test_what_was_said_before_the_failure_is_kept_and_goes_back(talk: Talk) -> None:
    turn = await talk.say("Tell me a story.", plan=Cut(2, Text("It was a dark and stormy night", chunks=3)))
    assert turn.failure.code is E.STREAM_CUT
    assert turn.components[0] == AgentMessage(text="It was a dark and st")
    assert "It was a dark and st" in (await talk.say("And then?", plan=Text("Go on."))).requests[-1].text


async def test_ten_failures_in_a_row_leave_a_conversation_that_works(open_talk: OpenTalk) -> None:
    faults: list[tuple[Place, Answer]] = [
        ("text", Cut(after_chunks=4, answer=paint())),
        ("text", Finish("SAFETY", text_before="Well")),
        ("image", Finish("IMAGE_SAFETY")),
        ("search", HttpError(503)),
        ("text", Empty()),
        ("image", CorruptPicture()),
        ("text", Text("Once", finish_reason="MAX_TOKENS")),
        ("image", HttpError(500)),
        ("text", MalformedCall()),
        ("search", Empty()),
    ]
    async with open_talk() as talk:
        await draw_a_fox(talk)
        for place, answer in faults:
            assert isinstance((await fail(talk, place, answer)).events[-1], TurnFailed)
        await expect_next_turn_works(talk)
        kept = await talk.kept()
    async with open_talk(talk) as talk:
        assert await talk.kept() == kept


async def test_failures_of_two_conversations_do_not_meet(talk: Talk) -> None:
    talk.models.on_text(lambda request: HttpError(503) if "storm" in request.text else Text("Sunny."))
    other = await talk.another()
    turns = await asyncio.gather(talk.say("a storm please"), other.say("some sun please"))
    assert [type(turn.events[-1]) for turn in turns] == [TurnFailed, TurnDone]


async def test_a_key_that_is_revoked_is_asked_for_anew_and_nobody_else_is_held_up(open_talk: OpenTalk) -> None:
    """One person's key stops working between two turns; the other goes on, and so does the first with another key."""
    revoked, other, new = (SecretStr(f"AIzaSyTheKeyOfSomeVisitor{number:014}") for number in range(3))
    async with open_talk(lends_keys=False) as talk:
        studio, models = talk.studio, talk.models
        ann, bob = [Talk(studio, models, (await studio.conversations.create(name)).id, name) for name in ("ann", "bob")]
        assert isinstance((await ann.say("Hello again.", key=revoked)).events[-1], TurnDone)
        assert isinstance((await bob.say("Hello again.", key=other)).events[-1], TurnDone)
        models.deny_key(error_body(403, "The caller does not have permission"), revoked.get_secret_value())
        for _ in range(6):
            failed = await ann.say("Hello again.", key=revoked)
            assert (failed.failure.code, failed.failure.actor.value) == (E.KEY_FORBIDDEN, "key")
        assert isinstance((await bob.say("Hello again.", key=other)).events[-1], TurnDone)
        again = await ann.retry(failed, Text("Gladly."), key=new)
        assert (again.words, type(again.events[-1])) == ("Gladly.", TurnDone)


@pytest.mark.parametrize("node", ["planner", "searcher", "executor"])
async def test_what_nobody_foresaw_is_one_sentence_for_the_person_and_whole_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, node: str
) -> None:
    """A provider trips over its own code wherever it is asked: nothing of it is shown, and the turn can be retried."""
    is_broken = True

    def trip(where: str, line: Line) -> Line:
        if is_broken and where == node:
            raise ZeroDivisionError("a secret of the machine")
        return line

    def text(asked: Asked) -> Line:
        if asked.options.google_search:
            return trip("searcher", finds(json.dumps(FACTS), GroundingPart()))
        answered = asked.messages[-1].role is Role.TOOL
        find = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})
        return trip("planner", calls(generate()) if answered else calls(find))

    scene = Scene(Settings(home=tmp_path), text=text, pictures=lambda _: trip("executor", picture()))
    async with scene.studio() as studio:
        conversation, other = await studio.conversations.create(), await studio.conversations.create()
        events = await run(studio, conversation.id, WISH, allow_search=True)
        failed = only(events, TurnFailed)
        assert (failed.error.code, failed.node) == (E.INTERNAL, node)
        assert "Your words and pictures are kept; please try again." in failed.error.message
        assert "ZeroDivisionError" in caplog.text
        kept = await studio.conversations.get(conversation.id)
        assert "secret" not in spoken(events) + kept.model_dump_json()
        assert kept.turns[-1].state is TurnState.FAILED
        assert not studio.turns.is_running(conversation.id)
        is_broken = False
        again = [event async for event in studio.retry(conversation.id, kept.turns[-1].id)]
        assert isinstance(again[-1], TurnDone)
        assert isinstance((await run(studio, other.id, WISH, allow_search=True))[-1], TurnDone)


async def test_the_record_of_a_failed_turn_says_that_painting_failed(talk: Talk) -> None:
    turn = await talk.say(WISH, plan=paint(subject="a red fox"), image=Blocked("PROHIBITED_CONTENT"))
    record = next(one for one in turn.components if isinstance(one, Steps))
    assert record.outcome == "failed"
    assert [line.step for line in record.lines][:3] == [Step.THINKING, Step.UNDERSTOOD, Step.PAINTING]
    assert Step.PAINTED not in {line.step for line in record.lines}
    assert [line.at_s for line in record.lines] == sorted(line.at_s for line in record.lines)


# ---- mended, not failed


async def test_an_unknown_function_is_answered_and_the_model_mends_it(talk: Talk) -> None:
    await draw_a_fox(talk)
    unknown = Calls([Call("fly_away", {"folder": "/"}, id="a"), Call("draw", id="b")])
    turn = await talk.say(WISH, plan=[unknown, Text("I cannot.")])
    assert (type(turn.events[-1]), turn.words) == (TurnDone, "I cannot.")
    answers = turn.requests[-1].function_responses
    assert [(answer["name"], answer["id"]) for answer in answers] == [("fly_away", "a"), ("draw", "b")]
    assert "no tool named fly_away" in answers[0]["response"]["error"]
    await expect_next_turn_works(talk)


@each_case(
    "arguments",
    [{}, {"prompt": ""}, {"prompt": 7}, {"prompt": "a fox", "number_of_images": "many"}, {"promt": "a fox"}],
)
async def test_arguments_that_do_not_fit_are_mended_or_answered(talk: Talk, arguments: dict[str, Any]) -> None:
    talk = await talk.another()
    await draw_a_fox(talk)
    talk.models.on_text(lambda request: Text("Let me ask: which fox?"))
    turn = await talk.say(WISH, plan=Call("generate_image", arguments))
    assert isinstance(turn.events[-1], TurnDone)
    talk.models.clear()
    await expect_next_turn_works(talk)


async def test_a_picture_that_lies_about_its_type_is_kept_under_its_true_one(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=PictureAnswer(data=png(64, 36), mime="image/jpeg"))
    assert turn.picture.image.mime_type == "image/png"
    assert (await talk.studio.picture(talk.id, "#1", talk.owner)).data == png(64, 36)
    await expect_next_turn_works(talk)


async def test_of_three_pictures_each_fails_or_succeeds_alone(talk: Talk) -> None:
    answers = [Finish("IMAGE_SAFETY"), CorruptPicture(), SMALL]
    turn = await talk.say("three foxes", plan=paint(number_of_images=3), image=answers)
    assert isinstance(turn.events[-1], TurnDone)
    wrong = [E.BROKEN_PICTURE, E.PICTURE_BLOCKED]
    assert sorted(one.error.code for one in of_type(turn.events, PictureFailed)) == wrong
    assert sorted(one.error.code for one in turn.components if isinstance(one, FailureNote)) == wrong
    assert [one.handles for one in turn.components if isinstance(one, SmartCanvas)] == [(turn.picture.handle,)]
    await expect_next_turn_works(talk, turn.picture.handle)
