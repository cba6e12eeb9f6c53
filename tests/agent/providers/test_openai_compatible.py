"""The provider against a strict server: real HTTP, the real SDK."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import logging
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import SecretStr

from agent.errors import (
    AivistaError,
    DesignRuleBroken,
    ErrorCode,
    KeyProblem,
    ProviderFailure,
    RateLimited,
    RequestRefused,
)
from agent.messages import (
    CompletionChunk,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from agent.settings import OpenAISettings
from tests.adapters.catalogue import Catalogue, ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import OpenAIProvider
from tests.adapters.scripted import ChatOptions, ImageRequest
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
from tests.support.openai import openai_settings, own_catalogue
from tests.support.prompts import LOOK, answer, calls_of, error_of, message_of, png, prompt, results
from tests.support.shelf import Shelf

KEY = "sk-test-key-that-nobody-owns-0123456789"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"score": {"type": "number"}}}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return load_catalogue(own=own_catalogue(tmp_path), openai=OpenAISettings(base_url="http://x", text_model="talker"))


@pytest.fixture
def talker(catalogue: Catalogue) -> ModelEntry:
    return catalogue.model(ModelRole.FLASH, "openai")


@pytest.fixture
def seer(catalogue: Catalogue) -> ModelEntry:
    return known(catalogue, "seer")


@pytest.fixture
def painter() -> ModelEntry:
    openai = OpenAISettings(base_url="http://x", text_model="talker", image_model="painter")
    return load_catalogue(openai=openai).model(ModelRole.IMAGE_FLASH, "openai")


@pytest.fixture
async def provider(server: OpenAIServer, shelf: Shelf) -> AsyncIterator[OpenAIProvider]:
    running = OpenAIProvider(openai_settings(server, key=KEY), shelf)
    yield running
    await running.aclose()


def known(catalogue: Catalogue, model_id: str) -> ModelEntry:
    entry = catalogue.by_id(model_id)
    assert entry is not None
    return entry


async def say(
    provider: OpenAIProvider, model: ModelEntry, *messages: PromptMessage, **settings: Any
) -> list[CompletionChunk]:
    return [chunk async for chunk in provider.stream(model, messages, **settings)]


async def paint(
    provider: OpenAIProvider, model: ModelEntry, *messages: PromptMessage, **settings: Any
) -> list[CompletionChunk]:
    request = ImageRequest.model_validate({"model": model, "messages": messages, **settings})
    return [chunk async for chunk in provider.generate(request)]


# Words.


async def test_a_text_streams_piece_by_piece_and_ends_with_its_usage(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry
) -> None:
    server.on_chat(Text("Hello, dear friend.", chunks=3))
    chunks = await say(provider, talker, prompt("hi"), options=ChatOptions(system="Be kind."))
    texts = [chunk.part.text for chunk in chunks if isinstance(chunk.part, TextPart)]
    assert (len(texts), "".join(texts)) == (3, "Hello, dear friend.")
    assert chunks[-1].finish_reason == "stop"
    assert chunks[-1].error is None
    assert chunks[-1].usage == TokenUsage(prompt_tokens=40, cached_tokens=8, output_tokens=7, thought_tokens=5)
    assert server.chats[0].body == {
        "model": "talker",
        "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert server.violations == []


async def test_the_first_piece_arrives_before_the_last_is_sent(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry
) -> None:
    server.on_chat(Hold(Text("one two three", chunks=3), after_chunks=2))
    stream = provider.stream(talker, [prompt("hi")])
    first = await anext(stream)
    assert isinstance(first.part, TextPart)
    assert first.part.text == "one t"
    server.release()
    rest = [chunk.part.text async for chunk in stream if isinstance(chunk.part, TextPart)]
    assert "".join(rest) == "wo three"


@pytest.mark.parametrize("numbering", ["index", "zero", "none"])
async def test_calls_come_together_however_the_server_numbers_their_pieces(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, numbering: Any
) -> None:
    wanted = [Call("look", {"at": "north"}, id="c1"), Call("look", {"at": "south"}, id="c2"), Call("look", id="c3")]
    server.on_chat(Calls(wanted, text_before="Let me see.", numbering=numbering))
    chunks = await say(provider, talker, prompt("Look around"), tools=[LOOK])
    assert message_of(chunks).text == "Let me see."
    assert [(call.name, call.arguments, call.call_id) for call in calls_of(chunks)] == [
        ("look", {"at": "north"}, "c1"),
        ("look", {"at": "south"}, "c2"),
        ("look", {}, "c3"),
    ]
    assert server.chats[0].tool_names == ["look"]
    assert server.violations == []


async def test_a_tool_loop_pairs_every_call_with_its_result(
    server: OpenAIServer, provider: OpenAIProvider, seer: ModelEntry, shelf: Shelf
) -> None:
    image = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    seen = image.model_copy(update={"handle": "#1"})
    server.on_chat(Calls([Call("look", {"at": "a"}, id="c1"), Call("look", {"at": "b"}, id="c2")]), Text("A bird."))
    history = [prompt("What is there?", image)]
    history.append(message_of(await say(provider, seer, *history, tools=[LOOK])))
    # The results come in another order than the calls.
    second = ToolResultPart(name="look", content={"n": 2}, call_id="c2")
    history.append(results(second, ToolResultPart(name="look", content={"n": 1}, images=(seen,), call_id="c1")))
    history += [message_of(await say(provider, seer, *history, tools=[LOOK])), prompt("Thanks")]
    await say(provider, seer, *history, tools=[LOOK])
    assert server.violations == []
    assert server.chats[1].roles == ["user", "assistant", "tool", "tool", "assistant", "user"]
    sent = [(m["tool_call_id"], json.loads(m["content"])) for m in server.chats[1].messages if m["role"] == "tool"]
    assert sent == [("c2", {"n": 2}), ("c1", {"n": 1})]
    assert [role for role, _ in server.chats[1].placed_pictures] == ["user", "user"]
    assert server.chats[2].roles[-2:] == ["assistant", "user"]


async def test_a_history_of_another_provider_gets_ids_for_its_calls(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry
) -> None:
    def call(at: str, call_id: str | None = None) -> ToolCallPart:
        return ToolCallPart(
            name="look", arguments={"at": at}, call_id=call_id, thought_signature=b"secret", signed_by="gemini"
        )

    def result(n: int, call_id: str | None = None) -> ToolResultPart:
        return ToolResultPart(name="look", content={"n": n}, call_id=call_id)

    history = [
        prompt("Look"),
        answer(TextPart(text="", thought_signature=b"secret", signed_by="gemini"), call("a"), call("b")),
        results(result(1), result(2)),
        prompt("Again"),  # the turn before ended with its result
        answer(TextPart(text="Once more."), call("c", "call00000"), call("d", "call00000"), call("e", "x" * 41)),
        results(result(3, "call00000"), result(4, "call00000")),
        prompt("And now?"),
        prompt("Hello?"),
    ]
    await say(provider, talker, *history, tools=[LOOK])
    assert server.violations == []
    body = server.chats[0].body
    assert server.chats[0].roles == [
        *("user", "assistant", "tool", "tool", "assistant"),
        *("user", "assistant", "tool", "tool", "tool", "assistant", "user"),
    ]
    ids = [[call["id"] for call in message["tool_calls"]] for message in body["messages"] if "tool_calls" in message]
    assert ids[0] == ["call00001", "call00002"]  # neither is the one that another call already has
    assert ids[1][0] == "call00000"
    assert [json.loads(m["content"]) for m in body["messages"] if m["role"] == "tool"] == [
        *({"n": 1}, {"n": 2}, {"n": 3}, {"n": 4}),
        {"error": "There was no result."},
    ]
    assert "secret" not in json.dumps(body)
    assert body["messages"][-1]["content"] == "And now?\nHello?"


async def test_a_picture_is_shown_to_a_model_with_eyes_and_described_to_one_without(
    server: OpenAIServer, provider: OpenAIProvider, shelf: Shelf, seer: ModelEntry, talker: ModelEntry
) -> None:
    image = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    image = image.model_copy(update={"handle": "#7b", "width": 8, "height": 8})
    made = image.model_copy(update={"origin": ImageOrigin.GENERATED, "handle": "#8"})
    history = [prompt("What is this?", image), answer(TextPart(text="See:"), made), prompt("And that?")]
    await say(provider, seer, *history)
    await say(provider, talker, *history)
    assert server.violations == []
    assert server.chats[0].placed_pictures == [("user", png()), ("user", png())]
    assert server.chats[1].pictures == []
    assert "[Picture #7b, uploaded, 8×8. You cannot see pictures.]" in server.chats[1].text
    assert "[Picture #8, generated, 8×8. You cannot see pictures.]\nAnd that?" in server.chats[1].prompt


async def test_a_result_may_show_its_pictures_itself_where_the_model_takes_them(
    provider: OpenAIProvider, shelf: Shelf, seer: ModelEntry, server: OpenAIServer
) -> None:
    image = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    call, result = ToolCallPart(name="look", call_id="c"), ToolResultPart(name="look", images=(image,), call_id="c")
    able = seer.model_copy(update={"has_image_tool_results": True})
    with pytest.raises(ProviderFailure):
        await say(provider, able, prompt("Look"), answer(call), results(result))
    [violation] = server.violations
    assert violation.rule == "content"  # this server takes words only, as most do
    tool = server.chats[0].messages[-1]
    assert [part["type"] for part in tool["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("model_id", "format_sent", "is_in_words"),
    [("seer", "json_schema", False), ("deepseek-flash", "json_object", True), ("simple", None, True)],
)
async def test_json_is_asked_for_the_way_the_model_takes_it(
    server: OpenAIServer,
    provider: OpenAIProvider,
    catalogue: Catalogue,
    model_id: str,
    format_sent: str | None,
    is_in_words: bool,
) -> None:
    options = ChatOptions(system="Judge.", response_schema=SCHEMA)
    await say(provider, known(catalogue, model_id), prompt("How good?"), options=options)
    [request] = server.chats
    assert request.body.get("response_format", {}).get("type") == format_sent
    assert (json.dumps(SCHEMA) in request.system) is is_in_words
    assert server.violations == []


@each_case("field", ["reasoning_content", "reasoning"])
async def test_thoughts_are_neither_shown_nor_kept(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, field: str
) -> None:
    server.on_chat(Text("\n\nHello.", thoughts="They greet me.", thoughts_field=field))
    chunks = await say(provider, talker, prompt("hi"))
    assert message_of(chunks) == answer(*(TextPart(text=text) for text in ("H", "ell", "o.")))


async def test_deepseeks_thoughts_go_back_with_its_calls_and_only_its_own(
    server: OpenAIServer, provider: OpenAIProvider, catalogue: Catalogue
) -> None:
    flash, pro = known(catalogue, "deepseek-flash"), known(catalogue, "deepseek-v4-pro")
    server.on_chat(Calls([Call("look", id="c1")], thoughts="I should look."), Text("A bird.", thoughts="A bird, then."))
    history = [prompt("Look"), answer(ToolCallPart(name="look")), results(ToolResultPart(name="look")), prompt("Again")]
    first = await say(provider, flash, *history, tools=[LOOK])
    assert message_of(first).parts[0] == TextPart(text="I should look.", is_thought=True, signed_by="deepseek-flash")
    history += [message_of(first), results(ToolResultPart(name="look", call_id="c1"))]
    history += [message_of(await say(provider, flash, *history, tools=[LOOK])), prompt("Thanks")]
    await say(provider, flash, *history, tools=[LOOK])
    await say(provider, pro, *history, tools=[LOOK])
    assert server.violations == []
    thoughts = [
        [message["reasoning_content"] for message in chat.messages if "reasoning_content" in message]
        for chat in server.chats
    ]
    assert thoughts == [[""], ["", "I should look."], ["", "I should look."], ["", ""]]
    assert [chat.body["reasoning_effort"] for chat in server.chats] == ["low", "low", "low", "high"]


async def test_a_model_without_tools_calls_them_in_words(
    server: OpenAIServer, provider: OpenAIProvider, catalogue: Catalogue
) -> None:
    simple = known(catalogue, "simple")
    written = '<tool_call>{"name": "look", "arguments": {"at": "north"}}</tool_call>'
    server.on_chat(Text(f"Let me see.\n{written}{written}", chunks=20))
    chunks = await say(provider, simple, prompt("Look"), tools=[LOOK], options=ChatOptions(system="Be kind."))
    assert message_of(chunks).text.strip() == "Let me see."
    assert [(call.name, call.arguments) for call in calls_of(chunks)] == [("look", {"at": "north"})] * 2
    result = ToolResultPart(name="look", content={"n": 1})
    await say(provider, simple, prompt("Look"), message_of(chunks), results(result, result), tools=[LOOK])
    assert server.violations == []
    assert server.chats[0].tool_names == []
    assert '"name": "look"' in server.chats[0].system
    assert server.chats[1].text.count(written) == 2
    assert server.chats[1].prompt == 'Result of look: {"n": 1}\nResult of look: {"n": 1}'


def _chunk(delta: Any, finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], **fields}


@each_case(
    "events",
    [
        [_chunk({"content": "Hello."}), _chunk(None, "stop"), {"choices": None, "usage": USAGE}],
        [_chunk({"content": [{"type": "text", "text": "Hello."}]}), _chunk({}, "stop", usage=USAGE)],
        [{}, _chunk({"refusal": "Hello."}), {"choices": [{"finish_reason": "eos"}]}, {"choices": [], "usage": USAGE}],
        [{"choices": [None], "usage": "?"}, _chunk({"content": "Hello.", "tool_calls": None}, "stop", usage=USAGE)],
    ],
)
async def test_what_servers_leave_out_or_add_does_no_harm(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, events: list[Any]
) -> None:
    server.on_chat(Events(events))
    chunks = await say(provider, talker, prompt("hi"))
    assert message_of(chunks).text == "Hello."
    assert chunks[-1].error is None
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == 40


# Failures.


@each_case(
    ("reply", "seconds"),
    [
        (HttpError(429, "slow down", headers={"Retry-After": "9", "retry-after-ms": "1500"}), 1.5),
        (HttpError(429, "Rate limit reached. Please try again in 20.5s."), 20.5),
        (HttpError(429, "Please try again in 300ms."), 0.3),
        (HttpError(429, "slow down", headers={"Retry-After": "soon"}), None),
    ],
)
async def test_too_many_requests_say_when_to_come_back(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, reply: Answer, seconds: float | None
) -> None:
    server.on_chat(reply)
    with pytest.raises(RateLimited) as caught:
        await say(provider, talker, prompt("hi"))
    assert caught.value.retry_after_s == seconds
    assert caught.value.info.message.startswith("127.0.0.1:")


async def test_an_unknown_model_names_the_variable_to_change(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, painter: ModelEntry
) -> None:
    for model, variable in ((talker, "AIVISTA_OPENAI_TEXT_MODEL"), (painter, "AIVISTA_OPENAI_IMAGE_MODEL")):
        nobody = model.model_copy(update={"id": "nobody"})
        with pytest.raises(ProviderFailure) as caught:
            await (say if model is talker else paint)(provider, nobody, prompt("hi"))
        assert caught.value.info.parameters["variable"] == variable
        assert "does not know the model nobody" in caught.value.info.message


async def test_an_address_without_its_v1_says_so(server: OpenAIServer, shelf: Shelf, talker: ModelEntry) -> None:
    bare = openai_settings(server, key=KEY, base_url=server.url.removesuffix("/v1"))
    provider = OpenAIProvider(bare, shelf)
    with pytest.raises(ProviderFailure) as caught:
        await say(provider, talker, prompt("hi"))
    await provider.aclose()
    assert caught.value.code is ErrorCode.WRONG_PATH
    assert "AIVISTA_OPENAI_BASE_URL" in caught.value.info.message
    assert "/v1" in caught.value.info.message


async def test_a_rejected_key_names_its_variable(server: OpenAIServer, shelf: Shelf, talker: ModelEntry) -> None:
    provider = OpenAIProvider(openai_settings(server, key="sk-another-key-of-mine"), shelf)
    with pytest.raises(KeyProblem) as caught:
        await say(provider, talker, prompt("hi"))
    await provider.aclose()
    assert caught.value.code is ErrorCode.KEY_INVALID
    assert "AIVISTA_OPENAI_API_KEY" in caught.value.info.message
    assert "sk-another" not in repr(caught.value.info)


@pytest.mark.parametrize(
    "reply",
    [
        HttpError(403, f"The key {KEY} was suspended; see sk-AnotherKeyOfSomebody01."),
        HttpError(400, f"bad: Bearer {KEY}", code="content_filter"),
        MidStreamError(1, {"error": {"message": f"{KEY} was suspended"}}),
        MidStreamError(1, {"object": "error", "message": f"{KEY} was suspended"}),
    ],
)
async def test_a_failure_that_quotes_the_key_is_told_without_it(
    server: OpenAIServer,
    provider: OpenAIProvider,
    talker: ModelEntry,
    reply: Answer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    server.on_chat(reply)
    with pytest.raises(AivistaError) as caught:
        await say(provider, talker, prompt("hi"))
    report = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    frames = [str(frame.locals) for frame in report.stack if "/agent/" in frame.filename.replace("/tests/agent", "")]
    assert frames
    told = [*frames, repr(caught.value), str(caught.value), repr(caught.value.info), repr(vars(provider)), caplog.text]
    assert "sk-" not in "".join(told)
    assert "[key]" in caught.value.info.provider_detail


async def test_the_search_is_refused_before_anything_is_sent(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, painter: ModelEntry
) -> None:
    with pytest.raises(DesignRuleBroken):
        await say(provider, talker, prompt("hi"), options=ChatOptions(google_search=True))
    with pytest.raises(DesignRuleBroken):
        await paint(provider, painter, prompt("a fox"), use_grounding=True)
    assert (server.chats, server.pictures) == ([], [])


async def test_a_picture_that_is_gone_is_told_before_anything_is_sent(
    server: OpenAIServer, provider: OpenAIProvider, seer: ModelEntry, painter: ModelEntry
) -> None:
    gone = ImagePart(digest="gone", md5="", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    for ask, model in ((say, seer), (paint, painter)):
        with pytest.raises(RequestRefused):
            await ask(provider, model, prompt("hi", gone))
    assert (server.chats, server.pictures) == ([], [])


async def test_a_server_without_a_key_is_sent_none_whatever_the_environment_holds(
    shelf: Shelf, talker: ModelEntry, painter: ModelEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-somebody-else\nX-Secret: mine")
    with OpenAIServer() as server:
        provider = OpenAIProvider(openai_settings(server), shelf)
        await say(provider, talker, prompt("hi"))
        server.on_picture(PictureAt())
        await paint(provider, painter, prompt("a fox"))
        await provider.aclose()
        assert server.violations == []
        assert server.fetched == ["/files/one.png"]


async def test_a_picture_has_a_time_limit_of_its_own(server: OpenAIServer, shelf: Shelf, painter: ModelEntry) -> None:
    server.on_picture(Hold(Picture()))
    provider = OpenAIProvider(openai_settings(server, key=KEY), shelf, image_timeout_s=0.2)
    with pytest.raises(ProviderFailure) as caught:
        await paint(provider, painter, prompt("a fox"))
    await provider.aclose()
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    assert len(server.pictures) == 1


# Stop.


async def test_closing_the_stream_ends_the_request(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry
) -> None:
    server.on_chat(Hold(Text("one two three four", chunks=4), after_chunks=3))
    async with aclosing(provider.stream(talker, [prompt("hi")])) as stream:
        await anext(stream)
    await asyncio.to_thread(server.wait_for_disconnect)
    assert (await say(provider, talker, prompt("still there?")))[-1].error is None


@pytest.mark.parametrize("after_chunks", [0, 3])
async def test_cancelling_the_task_ends_the_request(
    server: OpenAIServer, provider: OpenAIProvider, talker: ModelEntry, after_chunks: int
) -> None:
    server.on_chat(Hold(Text("one two three four", chunks=4), after_chunks))
    task = asyncio.create_task(say(provider, talker, prompt("hi")))
    await asyncio.to_thread(server.wait_for_held)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(server.wait_for_disconnect)
    assert (await say(provider, talker, prompt("still there?")))[-1].error is None


async def test_cancelling_a_picture_ends_the_request(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf
) -> None:
    server.on_picture(Hold(Picture()))
    task = asyncio.create_task(paint(provider, painter, prompt("a fox")))
    await asyncio.to_thread(server.wait_for_held)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(server.wait_for_disconnect)
    assert shelf.held == {}


# Pictures.


async def test_a_picture_is_stored_before_it_is_given_and_has_the_size_of_its_ratio(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf
) -> None:
    server.on_picture(Picture(usage=PICTURE_USAGE))
    request = ImageRequest(model=painter, messages=(prompt("a fox"),), aspect_ratio="3:2", resolution="1K")
    stream = provider.generate(request)
    image = (await anext(stream)).part
    assert isinstance(image, ImagePart)
    assert (image.mime_type, image.thought_signature) == ("image/png", None)
    with Image.open(io.BytesIO(shelf.held[image.digest])) as stored:
        assert stored.size == (1536, 1024)
    [end] = [chunk async for chunk in stream]
    assert (end.finish_reason, end.error) == ("stop", None)
    assert end.usage == TokenUsage(prompt_tokens=30, image_tokens=1056)
    assert server.pictures[0].fields == {
        **{"model": "painter", "prompt": "a fox", "n": "1", "size": "1536x1024"},
        "response_format": "b64_json",
    }
    assert not server.pictures[0].is_edit
    assert (shelf.origins, server.violations) == ([ImageOrigin.GENERATED], [])


async def test_a_model_that_refuses_the_answers_format_is_not_told_it(
    server: OpenAIServer, provider: OpenAIProvider
) -> None:
    openai = OpenAISettings(base_url="http://x", text_model="talker", image_model="gpt-image-2")
    model = load_catalogue(openai=openai).model(ModelRole.IMAGE_PRO, "openai")
    await paint(provider, model, prompt("a fox"), aspect_ratio="16:9", resolution="2K")
    assert server.violations == []
    assert server.pictures[0].fields["size"] == "2560x1440"


async def test_pictures_to_be_changed_go_as_files_of_a_form(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf
) -> None:
    jpeg = io.BytesIO()
    Image.new("RGB", (8, 8), "blue").save(jpeg, "JPEG")
    red = await shelf.write(png("red"), "image/png", ImageOrigin.GENERATED)
    blue = await shelf.write(jpeg.getvalue(), "image/jpeg", ImageOrigin.UPLOADED)
    messages = [prompt("a fox"), answer(red), prompt("both, Füchse 狐", blue, red)]
    [chunk, _] = await paint(provider, painter, *messages, aspect_ratio="1:1")
    assert server.violations == []
    [request] = server.pictures
    assert request.is_edit
    assert request.fields == {
        **{"model": "painter", "prompt": "both, Füchse 狐", "n": "1", "size": "1024x1024"},
        "response_format": "b64_json",
    }
    assert [(file.name, file.mime_type, file.data) for file in request.files] == [
        ("image1.png", "image/png", png("red")),
        ("image2.jpg", "image/jpeg", jpeg.getvalue()),
    ]
    assert isinstance(chunk.part, ImagePart)
    assert shelf.origins[-1] is ImageOrigin.EDITED


async def test_a_model_that_changes_no_pictures_refuses_to(
    server: OpenAIServer, provider: OpenAIProvider, tmp_path: Path, shelf: Shelf
) -> None:
    openai = OpenAISettings(base_url="http://x", text_model="talker", image_model="sign-painter")
    model = load_catalogue(own=own_catalogue(tmp_path), openai=openai).model(ModelRole.IMAGE_FLASH, "openai")
    image = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    with pytest.raises(RequestRefused) as caught:
        await paint(provider, model, prompt("darker", image))
    assert caught.value.code is ErrorCode.TOO_MANY_REFERENCES
    assert server.pictures == []


@pytest.mark.parametrize("url", ["{server}/files/one.png", "/files/one.png"])
async def test_a_picture_told_by_its_address_is_fetched_from_the_same_server(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf, url: str
) -> None:
    server.on_picture(PictureAt(url))
    chunks = await paint(provider, painter, prompt("a fox"))
    assert isinstance(chunks[0].part, ImagePart)
    assert chunks[0].part.digest in shelf.held
    assert (server.fetched, server.violations) == (["/files/one.png"], [])


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
async def test_a_picture_on_another_server_is_refused(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf, url: str
) -> None:
    server.on_picture(PictureAt(url))
    error = error_of(await paint(provider, painter, prompt("a fox")))
    assert error.code is ErrorCode.NO_PICTURE
    assert "another server" in error.message
    assert shelf.held == {}


async def test_a_file_that_is_missing_or_no_picture_is_told(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf
) -> None:
    server.on_picture(PictureAt("{server}/files/missing.png"), PictureAt("data:image/png;base64,aGVsbG8="))
    codes = [error_of(await paint(provider, painter, prompt("a fox"))).code for _ in range(2)]
    assert (codes, shelf.held) == ([ErrorCode.NO_PICTURE, ErrorCode.BROKEN_PICTURE], {})


async def test_a_picture_as_a_data_address_is_taken(
    server: OpenAIServer, provider: OpenAIProvider, painter: ModelEntry, shelf: Shelf
) -> None:
    server.on_picture(PictureAt("data:image/png;base64," + base64.b64encode(png()).decode()))
    await paint(provider, painter, prompt("a fox"))
    assert list(shelf.held.values()) == [png()]


@each_case("key", [None, "another"])
async def test_another_server_of_pictures_is_sent_its_own_key_or_none_and_never_that_of_the_words(
    shelf: Shelf, talker: ModelEntry, painter: ModelEntry, key: str | None
) -> None:
    with OpenAIServer(key=KEY) as words, OpenAIServer(key=key) as pictures:
        own: dict[str, Any] = {"image_api_key": SecretStr(key)} if key else {}
        provider = OpenAIProvider(openai_settings(words, key=KEY, image_base_url=pictures.url, **own), shelf)
        await say(provider, talker, prompt("hi"))
        await paint(provider, painter, prompt("a fox"))
        await provider.aclose()
        assert (len(words.chats), words.pictures, len(pictures.pictures)) == (1, [], 1)
        assert words.violations == pictures.violations == []


def test_without_its_package_the_operator_is_told_what_to_install(tmp_path: Path) -> None:
    script = """
import asyncio, sys
sys.modules["openai"] = None  # as if it were not installed
from agent import Settings, Studio, TurnRequest

async def main():
    async with Studio(Settings.from_env(ENVIRONMENT)) as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="hello")):
            print(event.type, getattr(event, "error", None) and event.error.message)

asyncio.run(main())
"""
    environment = {
        "AIVISTA_HOME": str(tmp_path / "home"),
        "AIVISTA_OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "AIVISTA_OPENAI_TEXT_MODEL": "talker",
    }
    ended = subprocess.run(
        [sys.executable, "-c", script.replace("ENVIRONMENT", repr(environment))],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("turn_failed")
    assert "pip install 'aivista[openai]'" in ended.stdout
