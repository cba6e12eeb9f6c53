"""The provider against a strict server: real HTTP, the real SDK."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from agent import (
    AivistaError,
    DesignRuleBroken,
    ErrorCode,
    ImageOrigin,
    ImagePart,
    KeyProblem,
    ProviderFailure,
    RateLimited,
    RequestRefused,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.models import ChatOptions, TagSplitter, read_calls
from tests.openai_server import (
    Answer,
    Call,
    Calls,
    Events,
    Hold,
    HttpError,
    MidStreamError,
    OpenAIServer,
    Picture,
    PictureAt,
    Text,
)
from tests.openai_server.answers import PICTURE_USAGE, USAGE
from tests.support.cases import each_case
from tests.support.desks import OPENAI_KEY, OpenAIDesk, at_openai
from tests.support.prompts import LOOK, answer, calls_of, error_of, message_of, png, prompt, results

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"type": "number"}}}


GONE = ImagePart(digest="gone", md5="", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)


@pytest.fixture
async def openai(tmp_path: Path) -> AsyncIterator[OpenAIDesk]:
    with OpenAIServer(key=OPENAI_KEY) as running:
        async with at_openai(running, tmp_path) as desk:
            yield desk


@each_case("numbering", ["index", "zero", "none"])
async def test_calls_come_together_however_the_server_numbers_their_pieces(openai: OpenAIDesk, numbering: Any) -> None:
    wanted = [Call("look", {"at": "north"}, id="c1"), Call("look", {"at": "south"}, id="c2"), Call("look", id="c3")]
    openai.server.on_chat(Calls(wanted, text_before="Let me see.", numbering=numbering))
    chunks = await openai.say("talker", prompt("Look around"), tools=[LOOK])
    assert message_of(chunks).text == "Let me see."
    came = [(call.name, call.arguments, call.call_id) for call in calls_of(chunks)]
    assert came == [(call.name, call.arguments, call.id) for call in wanted]
    assert sum(chunk.part is None for chunk in chunks) > len(wanted), "each piece of a call is a sign of life"
    assert openai.server.chats[-1].tool_names == ["look"]
    assert openai.server.violations == []


@each_case(
    "reply",
    [
        Text("Red.", thoughts="A fox?"),
        Text("Red.", thoughts="A fox?", thoughts_field="reasoning"),
        Text("<think>A fox?</think>Red."),
    ],
)
async def test_what_a_model_thinks_is_told_while_it_thinks_and_is_none_of_its_words(
    openai: OpenAIDesk, reply: Text
) -> None:
    openai.server.on_chat(reply)
    chunks = await openai.say("talker", prompt("Which colour?"))
    parts = [chunk.part for chunk in chunks if isinstance(chunk.part, TextPart)]
    assert ["".join(one.text for one in parts if one.is_thought is is_thought) for is_thought in (True, False)] == [
        "A fox?",
        "Red.",
    ]


async def test_a_history_of_another_provider_gets_ids_for_its_calls(openai: OpenAIDesk) -> None:
    foreign: dict[str, Any] = {"thought_signature": b"secret", "signed_by": "gemini"}

    def call(at: str, call_id: str | None = None) -> ToolCallPart:
        return ToolCallPart(name="look", arguments={"at": at}, call_id=call_id, **foreign)

    def result(n: int, call_id: str | None = None) -> ToolResultPart:
        return ToolResultPart(name="look", content={"n": n}, call_id=call_id)

    history = [
        prompt("Look"),
        answer(TextPart(text="", **foreign), call("a"), call("b")),
        results(result(1), result(2)),
        prompt("Again"),  # the turn before ended with its result
        answer(TextPart(text="Once more."), call("c", "call00000"), call("d", "call00000"), call("e", "x" * 41)),
        results(result(3, "call00000"), result(4, "call00000")),
        prompt("And now?"),
        prompt("Hello?"),
    ]
    await openai.say("talker", *history, tools=[LOOK])
    assert openai.server.violations == []
    [chat] = openai.server.chats
    assert chat.roles == [
        *("user", "assistant", "tool", "tool", "assistant"),
        *("user", "assistant", "tool", "tool", "tool", "assistant", "user"),
    ]
    ids = [[call["id"] for call in message["tool_calls"]] for message in chat.messages if "tool_calls" in message]
    assert ids[0] == ["call00001", "call00002"]  # neither is the one that another call already has
    assert ids[1][0] == "call00000"
    told = [json.loads(m["content"]) for m in chat.messages if m["role"] == "tool"]
    assert told == [*({"n": n} for n in (1, 2, 3, 4)), {"error": "There was no result."}]
    assert "secret" not in json.dumps(chat.body)
    assert chat.messages[-1]["content"] == "And now?\nHello?"


@each_case(
    ("model", "format_sent", "is_in_words"),
    [("seer", "json_schema", False), ("deepseek-flash", "json_object", True), ("simple", None, True)],
)
async def test_json_is_asked_for_the_way_the_model_takes_it(
    openai: OpenAIDesk, model: str, format_sent: str | None, is_in_words: bool
) -> None:
    await openai.say(model, prompt("How good?"), options=ChatOptions(system="Judge.", response_schema=SCHEMA))
    request = openai.server.chats[-1]
    assert request.body.get("response_format", {}).get("type") == format_sent
    assert (json.dumps(SCHEMA) in request.system) is is_in_words
    assert openai.server.violations == []


def _chunk(delta: Any, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **fields}


@each_case(
    ("refusal", "left_out"),
    [
        (HttpError(400, "registry.ollama.ai/library/gemma3:27b does not support tools"), "tools"),
        (HttpError(400, '"auto" tool choice requires --enable-auto-tool-choice to be set'), "tools"),
        (HttpError(500, "tools param requires --jinja flag"), "tools"),
        (HttpError(400, "Function calling is not enabled for this model"), "tools"),
        (HttpError(400, "`tool calling` is not supported with this model"), "tools"),
        (HttpError(400, "This response_format type is unavailable now"), "response_format"),
    ],
)
async def test_what_a_server_does_not_take_is_said_in_words_from_then_on(
    tmp_path: Path, refusal: Answer, left_out: str
) -> None:
    options = ChatOptions(system="Be kind.", response_schema=SCHEMA)
    with OpenAIServer(key=OPENAI_KEY) as server:
        async with at_openai(server, tmp_path) as desk:
            server.on_chat(refusal, Text("Hello."), Text("Hello again."))
            for wanted in ("Hello.", "Hello again."):
                chunks = await desk.say("talker", prompt("Hi"), tools=[LOOK], options=options)
                assert message_of(chunks).text == wanted
            # The same model in another role keeps what is its own there.
            thinking = desk.model("talker").model_copy(update={"thinking_level": "high"})
            await desk.say(thinking, prompt("Hi"), tools=[LOOK], options=options)
            assert server.chats[-1].body["reasoning_effort"] == "high"
    assert [left_out in chat.body for chat in server.chats] == [True, False, False, False]
    assert all(("look" in chat.system) == (left_out == "tools") for chat in server.chats[1:])


@each_case(("name", "field"), [("new-talker", "max_completion_tokens"), ("silent-talker", "max_tokens")])
async def test_a_field_that_a_server_does_not_take_is_sent_under_its_other_name_or_not_at_all(
    tmp_path: Path, name: str, field: str
) -> None:
    with OpenAIServer(key=OPENAI_KEY) as server:
        async with at_openai(server, text_model=name) as desk:
            for _ in range(2):
                chunks = await desk.say(name, prompt("Hi"), options=ChatOptions(max_output_tokens=100))
                assert message_of(chunks).text == "Hello."
    assert ([chat.body[field] for chat in server.chats[1:]], len(server.violations)) == ([100, 100], 1)


@each_case(
    "events",
    [
        [_chunk({"content": "Hello."}), _chunk(None, "stop"), {"choices": None, "usage": USAGE}],
        [_chunk({"content": [{"type": "text", "text": "Hello."}]}), _chunk({}, "stop", usage=USAGE)],
        [{}, _chunk({"refusal": "Hello."}), {"choices": [{"finish_reason": "eos"}]}, {"choices": [], "usage": USAGE}],
        [{"choices": [None], "usage": "?"}, _chunk({"content": "Hello.", "tool_calls": None}, "stop", usage=USAGE)],
    ],
)
async def test_what_servers_leave_out_or_add_does_no_harm(openai: OpenAIDesk, events: list[Any]) -> None:
    openai.server.on_chat(Events(events))
    chunks = await openai.say("talker", prompt("hi"))
    assert (message_of(chunks).text, chunks[-1].error) == ("Hello.", None)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 40


# Failures.
@each_case(
    ("reply", "seconds"),
    [
        (HttpError(429, "slow down", headers={"Retry-After": "9", "retry-after-ms": "1500"}), 2),
        (HttpError(429, "Rate limit reached. Please try again in 20.5s."), 21),
        (HttpError(429, "Please try again in 300ms."), 1),
        (HttpError(429, "slow down", headers={"Retry-After": "soon"}), None),
    ],
)
async def test_too_many_requests_say_when_to_come_back(openai: OpenAIDesk, reply: Answer, seconds: int | None) -> None:
    openai.server.on_chat(reply)
    with pytest.raises(RateLimited) as caught:
        await openai.say("talker", prompt("hi"))
    assert caught.value.retry_after_s == seconds
    assert caught.value.info.message.startswith("127.0.0.1:")


async def test_an_unknown_model_names_the_variable_to_change(openai: OpenAIDesk) -> None:
    for ask, model, kind in ((openai.say, "talker", "TEXT"), (openai.paint, "painter", "IMAGE")):
        with pytest.raises(ProviderFailure, match="does not know the model nobody") as caught:
            await ask(openai.model(model).model_copy(update={"id": "nobody"}), prompt("hi"))
        assert caught.value.info.parameters["variable"] == f"AIVISTA_OPENAI_{kind}_MODEL"


async def test_a_rejected_key_and_an_address_without_its_v1_name_their_variables(
    openai: OpenAIDesk, tmp_path: Path
) -> None:
    server, bare = openai.server, openai.server.url.removesuffix("/v1")
    async with at_openai(server, tmp_path, base_url=bare) as lost:
        with pytest.raises(ProviderFailure, match="/v1") as wrong:
            await lost.say("talker", prompt("hi"))
    async with at_openai(server, tmp_path, key="sk-another-key-of-mine") as stranger:
        with pytest.raises(KeyProblem, match="AIVISTA_OPENAI_API_KEY") as rejected:
            await stranger.say("talker", prompt("hi"))
    assert (wrong.value.code, rejected.value.code) == (ErrorCode.WRONG_PATH, ErrorCode.KEY_INVALID)
    assert "AIVISTA_OPENAI_BASE_URL" in wrong.value.info.message
    assert "sk-another" not in repr(rejected.value.info)


@each_case(
    "reply",
    [
        HttpError(403, f"The key {OPENAI_KEY} was suspended; see sk-AnotherKeyOfSomebody01."),
        HttpError(400, f"bad: Bearer {OPENAI_KEY}", code="content_filter"),
        MidStreamError(1, {"error": {"message": f"{OPENAI_KEY} was suspended"}}),
        MidStreamError(1, {"object": "error", "message": f"{OPENAI_KEY} was suspended"}),
    ],
)
async def test_a_failure_that_quotes_the_key_is_told_without_it(
    openai: OpenAIDesk, reply: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    openai.server.on_chat(reply)
    with pytest.raises(AivistaError) as caught:
        await openai.say("talker", prompt("hi"))
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [str(frame.locals) for frame in report.stack if "/agent/" in frame.filename.replace("/tests/agent", "")]
    assert frames
    told = [*frames, repr(caught.value), str(caught.value), repr(caught.value.info), repr(vars(openai.provider))]
    assert "sk-" not in "".join([*told, caplog.text])
    assert "[key]" in caught.value.info.provider_detail


async def test_what_cannot_be_asked_is_refused_before_anything_is_sent(openai: OpenAIDesk) -> None:
    with pytest.raises(DesignRuleBroken):
        await openai.say("talker", prompt("hi"), options=ChatOptions(google_search=True))
    with pytest.raises(DesignRuleBroken):
        await openai.paint("painter", prompt("a fox"), use_grounding=True)
    for ask, model in ((openai.say, "seer"), (openai.paint, "painter")):
        with pytest.raises(RequestRefused):
            await ask(model, prompt("hi", GONE))
    with pytest.raises(RequestRefused) as refused:
        await openai.paint("sign-painter", prompt("darker", await openai.upload()))
    assert refused.value.code is ErrorCode.TOO_MANY_REFERENCES
    assert (openai.server.chats, openai.server.pictures) == ([], [])


async def test_a_server_without_a_key_is_sent_none_whatever_the_environment_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-somebody-else\nX-Secret: mine")
    with OpenAIServer() as server:
        server.on_picture(PictureAt())
        async with at_openai(server, tmp_path, key=None) as desk:
            await desk.say("talker", prompt("hi"))
            await desk.paint("painter", prompt("a fox"))
        assert (server.violations, server.fetched) == ([], ["/files/one.png"])


# Stop.
async def test_closing_the_stream_or_cancelling_the_task_ends_the_request(openai: OpenAIDesk) -> None:
    story = Text("one two three four", chunks=4)
    openai.server.on_chat(Hold(story, after_chunks=3))
    async with aclosing(openai.stream("talker", prompt("hi"))) as stream:
        await anext(stream)
    await asyncio.to_thread(openai.server.wait_for_disconnect)
    for after_chunks in (0, 3):
        openai.server.on_chat(Hold(story, after_chunks))
        await openai.cancel(openai.say("talker", prompt("hi")))
    openai.server.on_picture(Hold(Picture()))
    await openai.cancel(openai.paint("painter", prompt("a fox")))
    assert openai.shelf.held == {}
    assert (await openai.say("talker", prompt("still there?")))[-1].error is None


# Pictures.
async def test_a_picture_is_stored_before_it_is_given_and_has_the_size_of_its_ratio(openai: OpenAIDesk) -> None:
    openai.server.on_picture(Picture(usage=PICTURE_USAGE))
    stream = openai.painting("painter", prompt("a fox"), aspect_ratio="3:2", resolution="1K")
    image = (await anext(stream)).part
    assert isinstance(image, ImagePart)
    assert (image.mime_type, image.thought_signature) == ("image/png", None)
    assert openai.shelf.image(image).size == (1536, 1024)
    [end] = [chunk async for chunk in stream]
    assert (end.finish_reason, end.error) == ("stop", None)
    assert end.usage == TokenUsage(prompt_tokens=30, image_tokens=1056)
    [request] = openai.server.pictures
    assert request.fields == {
        **{"model": "painter", "prompt": "a fox", "n": "1", "size": "1536x1024"},
        "response_format": "b64_json",
    }
    assert not request.is_edit
    assert (openai.shelf.origins, openai.server.violations) == ([ImageOrigin.GENERATED], [])
    # A model that refuses the answer's format is not told it.
    await openai.paint("gpt-image-2", prompt("a fox"), aspect_ratio="16:9", resolution="2K")
    assert (openai.server.violations, openai.server.pictures[1].fields["size"]) == ([], "2560x1440")


@each_case(("name", "told"), [("ratio-painter", {"aspect_ratio": "3:2"}), ("square-painter", {})])
async def test_a_painter_is_told_the_size_as_it_takes_it(tmp_path: Path, name: str, told: dict[str, str]) -> None:
    with OpenAIServer(key=OPENAI_KEY) as server:
        async with at_openai(server, image_model=name) as desk:
            for _ in range(2):
                await desk.paint(name, prompt("a fox"), aspect_ratio="3:2", resolution="1K")
        for request in server.pictures:
            fields = request.fields
            assert {name: fields[name] for name in ("size", "aspect_ratio") if name in fields} == told
        assert (len(server.pictures), len(server.violations)) == (2, 2 - len(told))


@each_case(("name", "asked"), [("plain-painter", 3), ("fast-painter", 2)])
async def test_a_painter_gets_its_pictures_in_the_field_that_it_wants(tmp_path: Path, name: str, asked: int) -> None:
    with OpenAIServer(key=OPENAI_KEY) as server:
        async with at_openai(server, image_model=name) as desk:
            photo = await desk.shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
            for _ in range(2):
                assert isinstance((await desk.paint(name, prompt("warmer", photo)))[0].part, ImagePart)
            assert (len(server.pictures), len(server.violations)) == (asked + 1, asked - 1)
            for request in server.pictures[-2:]:
                assert [(file.field, file.data) for file in request.files] == [("image", png())]
            server.on_picture(HttpError(400, "Missing required parameter: 'image'."))
            with pytest.raises(ProviderFailure, match="Missing required parameter"):
                await desk.paint(name, prompt("colder", photo))


async def test_why_there_is_no_picture_is_told_also_by_a_server_that_says_it_as_a_success(openai: OpenAIDesk) -> None:
    openai.server.on_picture(HttpError(200, "The model is not loaded."))
    with pytest.raises(ProviderFailure, match="The model is not loaded"):
        await openai.paint("painter", prompt("a fox"))


@each_case(
    "url",
    [
        "http://127.0.0.1:9/files/one.png",
        "http://localhost/files/one.png",
        "https://example.org/one.png",
        "//example.org/one.png",
        "http://user@127.0.0.1/one.png",
        "file:///etc/passwd",
        "{server}@example.org/one.png",
        "http://127.0.0.1\\@example.org/one.png",
        "http://[",
    ],
)
async def test_a_picture_on_another_server_is_refused(openai: OpenAIDesk, url: str) -> None:
    openai.server.on_picture(PictureAt(url))
    error = error_of(await openai.paint("painter", prompt("a fox")))
    assert error.code is ErrorCode.NO_PICTURE
    assert "another server" in error.message
    assert openai.shelf.held == {}


async def test_a_picture_told_by_its_address_is_fetched_and_one_that_is_missing_or_none_is_told(
    openai: OpenAIDesk,
) -> None:
    data = "data:image/png;base64,"
    openai.server.on_picture(PictureAt("{server}/files/missing.png"), PictureAt(f"{data}aGVsbG8="))
    codes = [error_of(await openai.paint("painter", prompt("a fox"))).code for _ in range(2)]
    assert (codes, openai.shelf.held) == ([ErrorCode.NO_PICTURE, ErrorCode.BROKEN_PICTURE], {})
    openai.server.on_picture(PictureAt("{server}/files/one.png"), PictureAt("/files/one.png"))
    for _ in range(2):
        assert isinstance((await openai.paint("painter", prompt("a fox")))[0].part, ImagePart)
    assert openai.server.fetched[-2:] == ["/files/one.png"] * 2
    openai.shelf.held.clear()
    openai.server.on_picture(PictureAt(data + base64.b64encode(png()).decode()))
    await openai.paint("painter", prompt("a fox"))
    assert list(openai.shelf.held.values()) == [png()]


async def test_another_server_of_pictures_is_sent_its_own_key_or_none_and_never_that_of_the_words(
    tmp_path: Path,
) -> None:
    for key in (None, "another"):
        own: dict[str, Any] = {"image_api_key": SecretStr(key)} if key else {}
        with OpenAIServer(key=OPENAI_KEY) as words, OpenAIServer(key=key) as pictures:
            async with at_openai(words, tmp_path, image_base_url=pictures.url, **own) as desk:
                await desk.say("talker", prompt("hi"))
                await desk.paint("painter", prompt("a fox"))
            assert (len(words.chats), words.pictures, len(pictures.pictures)) == (1, [], 1)
            assert words.violations == pictures.violations == []


TOKENS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<", ">", "</", "thi", "nk>", "words", " ", "狐", "{}"]


def split(pieces: list[str]) -> list[tuple[str, str]]:
    splitter, joined = TagSplitter("think", "tool_call"), list[tuple[str, str]]()
    for tag, text in (*(found for piece in pieces for found in splitter.feed(piece)), *splitter.end()):
        assert text
        if joined and joined[-1][0] == tag:
            joined[-1] = (tag, joined[-1][1] + text)
        else:
            joined.append((tag, text))
    return joined


@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_a_text_is_taken_apart_the_same_however_it_is_cut(tokens: list[str], sizes: list[int]) -> None:
    text = "".join(tokens)
    pieces: list[str] = []
    while left := text[sum(map(len, pieces)) :]:
        pieces.append(left[: sizes[len(pieces) % len(sizes)]])
    assert split(pieces) == split([text])


@each_case(
    ("text", "names"),
    [
        ("", []),
        (' {"name": "look"} ', ["look"]),
        ('{"name": "look", "arguments": {"a": "x\ny"}}\n{"name": "go", "arguments": null}', ["look", "go"]),
        ("{", None),
        ("[]", None),
        ('{"name": ""}', None),
        ('{"name": "look", "arguments": [1]}', None),
        ('{"name": "look"} and so on', None),
    ],
)
def test_calls_in_words_are_read_or_refused(text: str, names: list[str] | None) -> None:
    calls = read_calls(text)
    assert (None if calls is None else [call.name for call in calls]) == names
