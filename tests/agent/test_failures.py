"""Whatever goes wrong with a call: one sentence that says who must act, nothing lost, and the next turn works."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import SecretStr

from agent.components import AgentMessage, FailureNote, Steps
from agent.conversation import Conversation, TurnState
from agent.errors import Actor, ErrorCode, ErrorInfo
from agent.events import PictureReady, Step, TurnDone, TurnEvent, TurnFailed
from agent.messages import GroundingPart, Role, ToolCallPart
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.adapters.scripted import Asked, Line, calls, finds
from tests.support.clock import Clock
from tests.support.gemini import draw, on_gemini, paint, search, spoken
from tests.support.scenes import Scene, generate, only, picture, png, run, words
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
    GeminiServer,
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
WISH = "Put my dog into the snow 🐕"
NODES = {"text": "planner", "image": "executor", "search": "searcher"}
FACTS = {"facts": [{"item": "It is 330 m high.", "source": "tower.example"}], "prompt_draft": ""}


def _location() -> Any:
    body = error_body(400, "User location is not supported for the API use.")
    body["error"]["status"] = "FAILED_PRECONDITION"
    return body


@dataclass(frozen=True)
class Fault:
    """What goes wrong where, the code of it, who must act, and words of the sentence the person reads."""

    answer: Answer
    code: ErrorCode
    actor: Actor
    says: str
    places: tuple[Place, ...] = ("text", "image", "search")


# How long to wait for the next piece of an answer: less than the patience of any step.
TIMEOUT_S = 50
TEXT_AND_SEARCH: tuple[Place, ...] = ("text", "search")
IMAGE: tuple[Place, ...] = ("image",)

FAULTS = {
    # HTTP
    "400 bad key": Fault(
        HttpError(400, "API key not valid. Please pass a valid API key."),
        ErrorCode.KEY_INVALID,
        Actor.KEY,
        "check it in Google AI Studio",
    ),
    "400 other": Fault(
        HttpError(400, "* contents: bad"), ErrorCode.REQUEST_REJECTED, Actor.US, "send us the debug report"
    ),
    "400 location": Fault(
        HttpError(400, body=_location()), ErrorCode.REGION_UNSUPPORTED, Actor.KEY, "run it from another region"
    ),
    "401": Fault(HttpError(401, "no"), ErrorCode.KEY_INVALID, Actor.KEY, "check it in Google AI Studio"),
    "403": Fault(HttpError(403, "no"), ErrorCode.KEY_FORBIDDEN, Actor.KEY, "Your API key may not use"),
    "404": Fault(
        HttpError(404, "This model models/x is no longer available."),
        ErrorCode.MODEL_NOT_FOUND,
        Actor.OPERATOR,
        "Please set AIVISTA_MODEL_",
    ),
    "404 elsewhere": Fault(
        HttpError(404, body=b"<html>Not found</html>"),
        ErrorCode.WRONG_ADDRESS,
        Actor.OPERATOR,
        "check GOOGLE_GEMINI_BASE_URL",
    ),
    "429 a minute": Fault(
        HttpError(429, body=quota_body("minute", retry_s=34.0)),
        ErrorCode.RATE_LIMITED,
        Actor.PROVIDER,
        "try again in 34 s",
    ),
    "429 a day": Fault(
        HttpError(429, body=quota_body("day", limit=100)), ErrorCode.QUOTA_EXHAUSTED, Actor.KEY, "midnight Pacific time"
    ),
    "429 limit 0": Fault(
        HttpError(429, body=quota_body("day", limit=0)), ErrorCode.BILLING_REQUIRED, Actor.KEY, "turn on billing"
    ),
    "500": Fault(HttpError(500), ErrorCode.PROVIDER_ERROR, Actor.PROVIDER, "HTTP 500"),
    "503": Fault(HttpError(503), ErrorCode.OVERLOADED, Actor.PROVIDER, "overloaded at Google"),
    "504": Fault(HttpError(504, "too late"), ErrorCode.PROVIDER_GAVE_UP, Actor.PROVIDER, "Google gave up after"),
    # the wire
    "cut": Fault(Cut(after_chunks=2), ErrorCode.STREAM_CUT, Actor.NETWORK, "connection broke", TEXT_AND_SEARCH),
    "cut at once": Fault(Cut(after_chunks=0), ErrorCode.STREAM_CUT, Actor.NETWORK, "connection broke"),
    "cut after a call": Fault(
        Cut(after_chunks=4, answer=paint()), ErrorCode.STREAM_CUT, Actor.NETWORK, "connection broke", ("text",)
    ),
    "cut picture": Fault(
        Cut(after_chunks=1, answer=PictureAnswer(text_before="Here")),
        ErrorCode.STREAM_CUT,
        Actor.NETWORK,
        "connection broke",
        IMAGE,
    ),
    "error in the stream": Fault(MidStreamError(2, 503), ErrorCode.OVERLOADED, Actor.PROVIDER, "overloaded at Google"),
    "garbage": Fault(Garbage(), ErrorCode.ANSWER_UNREADABLE, Actor.PROVIDER, "Please try again"),
    "garbage later": Fault(Garbage(after_chunks=2), ErrorCode.ANSWER_UNREADABLE, Actor.PROVIDER, "Please try again"),
    "silence": Fault(Hold(Text("late")), ErrorCode.PROVIDER_TIMEOUT, Actor.PROVIDER, "for 50 s"),
    "silence in the middle": Fault(
        Hold(Text("One two three", chunks=3), after_chunks=2),
        ErrorCode.PROVIDER_TIMEOUT,
        Actor.PROVIDER,
        "for 50 s",
    ),
    # the answer
    "empty": Fault(Empty(), ErrorCode.EMPTY_ANSWER, Actor.PROVIDER, "empty answer"),
    "empty part": Fault(Empty(has_empty_part=True), ErrorCode.EMPTY_ANSWER, Actor.PROVIDER, "empty answer"),
    "words, no picture": Fault(
        TextOnly("I'd rather not."),
        ErrorCode.TEXT_INSTEAD_OF_PICTURE,
        Actor.PROVIDER,
        "in words instead of a picture: I'd rather not.",
        IMAGE,
    ),
    "malformed call": Fault(MalformedCall(), ErrorCode.MALFORMED_CALL, Actor.PROVIDER, "garbled", ("text",)),
    "too long": Fault(
        Text("Once upon a time", finish_reason="MAX_TOKENS"),
        ErrorCode.ANSWER_TOO_LONG,
        Actor.PROVIDER,
        "length limit",
        TEXT_AND_SEARCH,
    ),
    "prompt blocked": Fault(
        Blocked("PROHIBITED_CONTENT"), ErrorCode.PROMPT_BLOCKED, Actor.POLICY, "Google's policy declined the request"
    ),
    "corrupt picture": Fault(
        CorruptPicture(), ErrorCode.BROKEN_PICTURE, Actor.PROVIDER, "The picture arrived damaged", IMAGE
    ),
    "no picture at all": Fault(
        PictureAnswer(data=b"Not a picture, whatever it says."),
        ErrorCode.BROKEN_PICTURE,
        Actor.PROVIDER,
        "The picture arrived damaged",
        IMAGE,
    ),
    "a document for a picture": Fault(
        PictureAnswer(data=b"%PDF-1.7", mime="application/pdf"),
        ErrorCode.EMPTY_ANSWER,
        Actor.PROVIDER,
        "empty answer",
        IMAGE,
    ),
}

# One finish reason of every kind; `test_gemini_answer` knows what each of the others comes to.
FINISHES: list[tuple[Place, str, ErrorCode]] = [
    ("text", "STOP", ErrorCode.EMPTY_ANSWER),
    ("text", "CONTINUATION", ErrorCode.ANSWER_TOO_LONG),
    ("text", "SAFETY", ErrorCode.ANSWER_BLOCKED),
    ("text", "LANGUAGE", ErrorCode.LANGUAGE_UNSUPPORTED),
    ("text", "UNEXPECTED_TOOL_CALL", ErrorCode.MALFORMED_CALL),
    ("text", "MISSING_THOUGHT_SIGNATURE", ErrorCode.SIGNATURE_REJECTED),
    ("text", "IMAGE_SAFETY", ErrorCode.PICTURE_BLOCKED),
    ("image", "MAX_TOKENS", ErrorCode.ANSWER_TOO_LONG),
    ("image", "LANGUAGE", ErrorCode.LANGUAGE_UNSUPPORTED),
    ("image", "MALFORMED_RESPONSE", ErrorCode.MALFORMED_CALL),
    ("image", "MISSING_THOUGHT_SIGNATURE", ErrorCode.SIGNATURE_REJECTED),
    ("image", "PROHIBITED_CONTENT", ErrorCode.PICTURE_BLOCKED),
    ("image", "IMAGE_RECITATION", ErrorCode.PICTURE_RECITATION),
    ("image", "NO_IMAGE", ErrorCode.NO_PICTURE),
]


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


def script(server: GeminiServer, place: Place, answer: Answer) -> None:
    """Make one kind of call fail, as often as it is made; what comes before it goes well."""

    def text(request: WireRequest) -> Answer:
        if place == "text" or request.has_search:
            return answer
        return paint() if place == "image" else search()

    def image(request: WireRequest) -> Answer:
        return answer

    server.on_text(text)
    server.on_image(image)


async def fail(studio: Studio, conversation_id: str, place: Place) -> tuple[ErrorInfo, str]:
    """Run a turn with a picture that must fail; return its failure and the node that failed."""
    events = await run(studio, conversation_id, WISH, png(80, 60, "green"), allow_search=place == "search")
    assert isinstance(events[-1], TurnFailed), events[-1]
    return events[-1].error, events[-1].node


async def expect_on_record(studio: Studio, conversation_id: str, error: ErrorInfo) -> Conversation:
    """The newest turn is on record as failed, with the person's words, their picture and the reason."""
    kept = await studio.conversation(conversation_id)
    turn = kept.turns[-1]
    assert (turn.text, turn.state) == (WISH, TurnState.FAILED)
    assert turn.messages[0].text == WISH
    [upload] = turn.uploads
    assert upload.handle is not None
    assert (await studio.picture(conversation_id, upload.handle)).picture.turn_id == turn.id
    notes = [component for component in turn.components if isinstance(component, FailureNote)]
    assert [note.error for note in notes] == [error]
    return kept


async def expect_failure(
    server: GeminiServer,
    studio: Studio,
    conversation_id: str,
    place: Place,
    answer: Answer,
    code: ErrorCode,
    clock: Clock,
) -> ErrorInfo:
    """A turn to which this is answered fails with that code where it was asked, and the next one works."""
    script(server, place, answer)
    turn = fail(studio, conversation_id, place)
    is_silent = isinstance(answer, Hold)
    error, node = await (clock.run_out(turn, lambda: server.held, TIMEOUT_S) if is_silent else turn)
    assert (error.code, node) == (code, NODES[place]), answer
    assert "?" not in error.message
    await expect_on_record(studio, conversation_id, error)
    await expect_next_turn_works(server, studio, conversation_id)
    return error


async def expect_next_turn_works(
    server: GeminiServer, studio: Studio, conversation_id: str, handle: str = "#1"
) -> None:
    """A question, then an edit of a picture: the history is one that the strict server takes."""
    assert server.violations == []
    server.clear()
    server.on_text(Text("Still here."))
    events = await run(studio, conversation_id, "Are you there?")
    assert isinstance(events[-1], TurnDone), events[-1]
    assert words(events) == "Still here."
    assert (await draw(server, studio, conversation_id, "at dusk", handles=[handle])).startswith(handle)


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in FAULTS.items()])
async def test_each_failure_says_who_must_act_and_the_next_turn_works(
    server: GeminiServer, settings: Settings, fault: Fault, clock: Clock
) -> None:
    gemini = on_gemini(settings, server.url, text_timeout_s=TIMEOUT_S, image_timeout_s=TIMEOUT_S)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        for place in fault.places:
            error = await expect_failure(server, studio, conversation.id, place, fault.answer, fault.code, clock)
            assert error.actor == fault.actor
            assert fault.says in error.message


@pytest.mark.parametrize("place", ["text", "image"])
async def test_an_answer_that_ends_badly_ends_the_turn_with_its_own_sentence(
    server: GeminiServer, settings: Settings, place: Place, clock: Clock
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        for reason, code in [(reason, code) for where, reason, code in FINISHES if where == place]:
            await expect_failure(server, studio, conversation.id, place, Finish(reason), code, clock)


@pytest.mark.parametrize("reason", ["SAFETY", "BLOCKED_REASON_UNSPECIFIED"])
async def test_a_request_that_is_blocked_does_not_block_the_next_one(
    server: GeminiServer, settings: Settings, reason: str
) -> None:
    """The policy reads the whole history: what it declined once must not stand in the way for ever."""
    forbidden = "the unspeakable"

    def policy(request: WireRequest) -> Answer:
        return Blocked(reason) if forbidden in request.text else Text("Gladly.")

    server.on_text(policy)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Hello, who are you?")
        events = await run(studio, conversation.id, f"Draw {forbidden}.", png())
        error = only(events, TurnFailed).error
        assert (error.code, error.parameters["reason"]) == (ErrorCode.PROMPT_BLOCKED, reason)
        kept = await studio.conversation(conversation.id)
        assert kept.turns[-1].text == f"Draw {forbidden}."
        events = await run(studio, conversation.id, "A fox, then.")
    assert words(events) == "Gladly."
    assert "who are you?" in server.requests[-1].text
    assert "#1, uploaded by the user" in server.requests[-1].text
    assert server.violations == []


async def test_a_request_that_is_rejected_does_not_spoil_the_next_one(server: GeminiServer, settings: Settings) -> None:
    def picky(request: WireRequest) -> Answer:
        return HttpError(400, "* contents[4]: bad") if "\u202e" in request.text else Text("Gladly.")

    server.on_text(picky)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "Draw \u202e a fox.")
        assert only(events, TurnFailed).error.code is ErrorCode.REQUEST_REJECTED
        events = await run(studio, conversation.id, "A fox, then.")
    assert words(events) == "Gladly."


async def test_a_server_that_is_not_there_is_a_failed_connection(server: GeminiServer, settings: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: every connection is refused
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            await draw(server, studio, conversation.id, "a fox")
        async with Studio(on_gemini(settings, nowhere)) as studio:
            error, node = await fail(studio, conversation.id, "text")
            assert (error.code, error.actor, node) == (ErrorCode.CONNECTION_FAILED, Actor.NETWORK, "planner")
            assert "check the network connection" in error.message
            await expect_on_record(studio, conversation.id, error)
    async with Studio(on_gemini(settings, server.url)) as studio:
        await expect_next_turn_works(server, studio, conversation.id)


async def test_what_was_said_before_the_failure_is_kept_and_goes_back(server: GeminiServer, settings: Settings) -> None:
    server.on_text(Cut(after_chunks=2, answer=Text("It was a dark and stormy night", chunks=3)), Text("Go on."))
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "Tell me a story.")
        kept = await studio.conversation(conversation.id)
        await run(studio, conversation.id, "And then?")
    assert kept.turns[0].components[0] == AgentMessage(text="It was a dark and st")
    assert "It was a dark and st" in server.requests[-1].text
    assert server.violations == []


# Mended, not failed.


async def test_an_unknown_function_is_answered_and_the_model_mends_it(server: GeminiServer, settings: Settings) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        server.on_text(Calls([Call("fly_away", {"folder": "/"}, id="a"), Call("draw", id="b")]), Text("I cannot."))
        events = await run(studio, conversation.id, WISH)
        assert isinstance(events[-1], TurnDone)
        assert words(events) == "I cannot."
        answers = server.requests[-1].function_responses
        assert [answer["id"] for answer in answers] == ["a", "b"]
        assert "no tool named fly_away" in answers[0]["response"]["error"]
        await expect_next_turn_works(server, studio, conversation.id)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"prompt": ""}, {"prompt": 7}, {"prompt": "a fox", "number_of_images": "many"}, {"promt": "a fox"}],
    ids=str,
)
async def test_arguments_that_do_not_fit_are_mended_or_answered(
    server: GeminiServer, settings: Settings, arguments: dict[str, Any]
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        server.on_text(Call("generate_image", arguments), Text("Let me ask: which fox?"))
        events = await run(studio, conversation.id, WISH)
        assert isinstance(events[-1], TurnDone)
        await expect_next_turn_works(server, studio, conversation.id)


async def test_a_picture_that_lies_about_its_type_is_kept_under_its_true_one(
    server: GeminiServer, settings: Settings
) -> None:
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        server.on_text(paint())
        server.on_image(PictureAnswer(data=png(64, 36), mime="image/jpeg"))
        events = await run(studio, conversation.id, "a fox")
        assert only(events, PictureReady).picture.image.mime_type == "image/png"
        assert (await studio.picture(conversation.id, "#1")).data == png(64, 36)
        await expect_next_turn_works(server, studio, conversation.id)


async def test_a_rejected_signature_is_mended_once(server: GeminiServer, settings: Settings) -> None:
    rejected = HttpError(400, "Corrupted thought signature.")
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        server.on_text(rejected, paint("darker", handles=["#1"]))
        server.on_image(rejected, PictureAnswer(width=64, height=36))
        events = await run(studio, conversation.id, "at dusk")
        receipt = only(events, PictureReady).picture.receipt
        assert receipt is not None
        assert receipt.attempts == 2
        assert server.violations == []


async def test_of_three_pictures_each_fails_or_succeeds_alone(server: GeminiServer, settings: Settings) -> None:
    outcomes: Iterator[Answer] = iter([Finish("IMAGE_SAFETY"), CorruptPicture(), PictureAnswer(width=64, height=36)])

    def image(request: WireRequest) -> Answer:
        return next(outcomes)

    server.on_text(paint(number_of_images=3))
    server.on_image(image)
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "three foxes")
        kept = await studio.conversation(conversation.id)
        assert isinstance(events[-1], TurnDone)
        made = only(events, PictureReady).picture.handle
        notes = [one.error.code for one in kept.turns[0].components if isinstance(one, FailureNote)]
        assert sorted(notes) == [ErrorCode.BROKEN_PICTURE, ErrorCode.PICTURE_BLOCKED]
        await expect_next_turn_works(server, studio, conversation.id, made)


async def test_ten_failures_in_a_row_leave_a_conversation_that_works(server: GeminiServer, settings: Settings) -> None:
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
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        for place, answer in faults:
            script(server, place, answer)
            await fail(studio, conversation.id, place)
        await expect_next_turn_works(server, studio, conversation.id)
        kept = await studio.conversation(conversation.id)
    async with Studio(on_gemini(settings, server.url)) as later:
        assert await later.conversation(conversation.id) == kept


async def test_failures_of_two_conversations_do_not_meet(server: GeminiServer, settings: Settings) -> None:
    def text(request: WireRequest) -> Answer:
        return HttpError(503) if "storm" in request.text else Text("Sunny.")

    server.on_text(text)
    async with Studio(on_gemini(settings, server.url)) as studio:
        one, two = await studio.new_conversation(), await studio.new_conversation()
        endings = await asyncio.gather(run(studio, one.id, "a storm please"), run(studio, two.id, "some sun please"))
    assert [type(events[-1]) for events in endings] == [TurnFailed, TurnDone]


async def test_a_key_that_is_revoked_is_asked_for_anew_and_nobody_else_is_held_up(
    server: GeminiServer, settings: Settings
) -> None:
    """One person's key stops working between two turns; the other goes on, and so does the first with another key."""
    revoked, other, new = (SecretStr(f"AIzaSyTheKeyOfSomeVisitor{number:014}") for number in range(3))
    server.on_text(lambda request: Text("Gladly."))

    async def say(owner: str, conversation_id: str, key: SecretStr) -> TurnEvent:
        request = TurnRequest(text="Hello again.")
        return [event async for event in studio.run_turn(conversation_id, request, owner=owner, key=key)][-1]

    async with Studio(on_gemini(settings, server.url, lends_keys=False)) as studio:
        mine, yours = await studio.new_conversation("ann"), await studio.new_conversation("bob")
        assert isinstance(await say("ann", mine.id, revoked), TurnDone)
        assert isinstance(await say("bob", yours.id, other), TurnDone)
        server.deny_key(error_body(403, "The caller does not have permission"), revoked.get_secret_value())
        for _ in range(6):
            failed = await say("ann", mine.id, revoked)
            assert isinstance(failed, TurnFailed)
            assert (failed.error.code, failed.error.actor) == (ErrorCode.KEY_FORBIDDEN, Actor.KEY)
        assert isinstance(await say("bob", yours.id, other), TurnDone)
        last = (await studio.conversation(mine.id, "ann")).turns[-1]
        again = [event async for event in studio.retry(mine.id, last.id, owner="ann", key=new)]
        assert words(again) == "Gladly."
        assert isinstance(again[-1], TurnDone)


@pytest.mark.parametrize("node", ["planner", "searcher", "executor"])
async def test_what_nobody_foresaw_is_one_sentence_for_the_person_and_whole_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture, node: str
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

    def paint_one(asked: Asked) -> Line:
        return trip("executor", picture())

    scene = Scene(settings, text=text, pictures=paint_one)
    async with scene.studio() as studio:
        conversation, other = await studio.new_conversation(), await studio.new_conversation()
        events = await run(studio, conversation.id, WISH, allow_search=True)
        failed = only(events, TurnFailed)
        assert (failed.error.code, failed.node) == (ErrorCode.INTERNAL, node)
        assert "Your words and pictures are kept; please try again." in failed.error.message
        assert "ZeroDivisionError" in caplog.text
        kept = await studio.conversation(conversation.id)
        assert "secret" not in spoken(events) + kept.model_dump_json()
        assert kept.turns[-1].state is TurnState.FAILED
        assert not studio.is_running(conversation.id)
        is_broken = False
        again = [event async for event in studio.retry(conversation.id, kept.turns[-1].id)]
        assert isinstance(again[-1], TurnDone)
        assert isinstance((await run(studio, other.id, WISH, allow_search=True))[-1], TurnDone)


async def test_the_record_of_a_failed_turn_says_that_painting_failed(server: GeminiServer, settings: Settings) -> None:
    server.on_text(paint(subject="a red fox"))
    server.on_image(Blocked("PROHIBITED_CONTENT"))
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, WISH)
        turn = (await studio.conversation(conversation.id)).turns[-1]
    record = next(one for one in turn.components if isinstance(one, Steps))
    assert record.outcome == "failed"
    assert [line.step for line in record.lines][:3] == [Step.THINKING, Step.UNDERSTOOD, Step.PAINTING]
    assert Step.PAINTED not in {line.step for line in record.lines}
    assert [line.at_s for line in record.lines] == sorted(line.at_s for line in record.lines)
