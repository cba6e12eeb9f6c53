"""The provider against a strict server: real HTTP, the real SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agent.errors import (
    ErrorCode,
    ErrorInfo,
    KeyProblem,
    ProviderFailure,
    SettingsError,
)
from agent.messages import (
    CompletionChunk,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.providers import GeminiProvider
from tests.adapters.scripted import ChatOptions, ImageRequest
from tests.support.prompts import LOOK, message_of, png, prompt, results
from tests.support.shelf import Shelf
from tests.wire_server import (
    Call,
    Calls,
    Events,
    GeminiServer,
    Hold,
    HttpError,
    PictureAnswer,
    Text,
)

KEY = "AIzaSyTestKeyThatNobodyOwns0123456789"
CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
THINKING = CATALOGUE.model(ModelRole.THINKING, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
async def gemini(server: GeminiServer, shelf: Shelf) -> AsyncIterator[GeminiProvider]:
    provider = GeminiProvider(KEY, shelf, base_url=server.url)
    yield provider
    await provider.aclose()


async def say(gemini: GeminiProvider, *messages: PromptMessage, **settings: Any) -> list[CompletionChunk]:
    return [chunk async for chunk in gemini.stream(FLASH, messages, **settings)]


async def paint(gemini: GeminiProvider, *messages: PromptMessage, **settings: Any) -> list[CompletionChunk]:
    request = ImageRequest.model_validate({"model": PAINTER, "messages": messages, **settings})
    return [chunk async for chunk in gemini.generate(request)]


def error_of(chunks: list[CompletionChunk]) -> ErrorInfo:
    assert all(chunk.error is None for chunk in chunks[:-1])
    error = chunks[-1].error
    assert error is not None
    return error


# Good answers.


async def test_a_text_streams_piece_by_piece_and_ends_with_its_usage(
    server: GeminiServer, gemini: GeminiProvider
) -> None:
    server.on_text(Text("Hello, dear friend.", chunks=3))
    chunks = await say(gemini, prompt("hi"), options=ChatOptions(system="Be kind."))
    texts = [chunk.part.text for chunk in chunks if isinstance(chunk.part, TextPart)]
    assert len([text for text in texts if text]) == 3
    assert "".join(texts) == "Hello, dear friend."
    assert chunks[-1].finish_reason == "STOP"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.output_tokens > 0
    assert chunks[-1].error is None
    [request] = server.requests
    assert (request.model, request.method, request.system) == (FLASH.id, "streamGenerateContent", "Be kind.")
    assert [content["role"] for content in request.contents] == ["user"]
    assert not request.shows_thoughts


async def test_the_first_piece_arrives_before_the_last_is_sent(server: GeminiServer, gemini: GeminiProvider) -> None:
    server.on_text(Hold(Text("one two three", chunks=3), after_chunks=1))
    answer = gemini.stream(FLASH, [prompt("hi")])
    first = await anext(answer)
    assert isinstance(first.part, TextPart)
    assert first.part.text == "one "
    server.release()
    rest = [chunk.part.text async for chunk in answer if isinstance(chunk.part, TextPart)]
    assert "".join(rest) == "two three"


async def test_a_tool_loop_keeps_every_signature_and_breaks_no_rule(
    server: GeminiServer, gemini: GeminiProvider, shelf: Shelf
) -> None:
    image = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    server.on_text(Calls([Call("look", {"at": "north"}, id="c1"), Call("look", {"at": "south"}, id="c2")], "Let me."))
    server.on_text(Call("look", {"at": "up"}), Text("A bird."), Text("Welcome."))
    history = [prompt("What is there?", image)]
    answer = message_of(await say(gemini, *history, tools=[LOOK]))
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    assert [(call.arguments, call.call_id, call.signed_by) for call in calls] == [
        ({"at": "north"}, "c1", FLASH.id),
        ({"at": "south"}, "c2", None),
    ]
    seen = (
        ToolResultPart(name="look", content={"n": n}, images=(image,), call_id=call.call_id)
        for n, call in enumerate(calls)
    )
    history += [answer, results(*seen)]
    history += [message_of(await say(gemini, *history, tools=[LOOK])), results(ToolResultPart(name="look"))]
    history += [message_of(await say(gemini, *history, tools=[LOOK])), prompt("Thanks")]
    await say(gemini, *history, tools=[LOOK])
    assert server.violations == []
    sent = server.requests[1].function_responses
    assert [len(result["parts"]) for result in sent] == [1, 1]
    assert server.requests[-1].function_names == ["look"]


async def test_works_that_an_answer_quotes_and_places_of_maps_are_its_sources(
    server: GeminiServer, gemini: GeminiProvider
) -> None:
    """Works come on any event, under either name that the API has for them; the SDK leaves them out."""
    quoted = {"startIndex": 0, "endIndex": 9, "uri": "https://poems.example/7", "license": ""}
    named = {"uri": "https://books.example/3", "title": "A book"}
    place = {"maps": {"uri": "https://maps.google.com/?cid=1", "title": "The tower", "placeId": "places/1"}}
    hostile = [{"uri": "javascript:alert(1)"}, {}]
    server.on_text(
        Events(
            [
                {
                    "candidates": [
                        {
                            "content": {"parts": [{"text": "Tyger"}]},
                            "citationMetadata": {"citationSources": [quoted, *hostile]},
                        }
                    ]
                },
                {
                    "candidates": [
                        {
                            "content": {"parts": [{"text": " Tyger"}]},
                            "citationMetadata": {"citations": [quoted, named]},
                        }
                    ]
                },
                {"candidates": [{"finishReason": "STOP", "groundingMetadata": {"groundingChunks": [place]}}]},
            ]
        )
    )
    chunks = await say(gemini, prompt("recite"))
    assert error_free(chunks)
    [found] = [chunk.part for chunk in chunks if isinstance(chunk.part, GroundingPart)]
    assert found.sources == (
        Source(title="The tower", url="https://maps.google.com/?cid=1"),
        Source(title="poems.example", url="https://poems.example/7"),
        Source(title="A book", url="https://books.example/3"),
    )


async def test_a_picture_is_stored_before_its_chunk_is_given(
    server: GeminiServer, gemini: GeminiProvider, shelf: Shelf
) -> None:
    data = png("blue")
    server.on_image(Hold(PictureAnswer(data=data, mime="image/png", text_before="Here:", drafts=1), after_chunks=2))
    answer = gemini.generate(ImageRequest(model=PAINTER, messages=(prompt("blue"),), aspect_ratio="1:1"))
    words = await anext(answer)
    picture = (await anext(answer)).part
    assert isinstance(words.part, TextPart)
    assert isinstance(picture, ImagePart)
    assert await shelf.read(picture) == data
    assert shelf.origins == [ImageOrigin.GENERATED]
    assert (picture.mime_type, picture.signed_by) == ("image/png", PAINTER.id)
    server.release()
    end = [chunk async for chunk in answer][-1]
    assert end.error is None
    assert end.usage is not None
    assert end.usage.image_tokens == 1120
    assert server.requests[0].config["imageConfig"] == {"aspectRatio": "1:1"}


async def test_a_picture_is_edited_in_its_own_conversation(
    server: GeminiServer, gemini: GeminiProvider, shelf: Shelf
) -> None:
    upload = await shelf.write(png(), "image/png", ImageOrigin.UPLOADED)
    server.on_image(PictureAnswer(text_before="Here:", is_huge=True, text_after="Like it?"))
    history = [prompt("a fox like this", upload)]
    history += [message_of(await paint(gemini, *history)), prompt("redder")]
    chunks = await paint(gemini, *history, resolution="1K")
    assert error_free(chunks)
    assert server.violations == []
    roles = [role for role, _ in server.requests[1].blobs]
    assert roles == ["user", "model"]


async def test_only_a_picture_gets_a_deadline_on_the_servers_side(server: GeminiServer, gemini: GeminiProvider) -> None:
    await say(gemini, prompt("hi"))
    await paint(gemini, prompt("a fox"))
    assert [request.headers.get("x-server-timeout") for request in server.requests] == [None, "300"]


def error_free(chunks: list[CompletionChunk]) -> bool:
    return bool(chunks) and all(chunk.error is None for chunk in chunks)


# Failures; every way in which an answer can end is in `test_endings`.


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", ErrorCode.KEY_MISSING),
        ("  ", ErrorCode.KEY_MISSING),
        ("我的密钥", ErrorCode.KEY_INVALID),
        ("two words", ErrorCode.KEY_INVALID),
        ("a\nb", ErrorCode.KEY_INVALID),
        ("auth_tokens/1", ErrorCode.KEY_INVALID),
    ],
)
async def test_a_key_that_cannot_be_one_is_refused_before_anything_is_sent(
    server: GeminiServer, shelf: Shelf, key: str, code: ErrorCode
) -> None:
    with pytest.raises(KeyProblem) as caught:
        await say(GeminiProvider(key, shelf, base_url=server.url), prompt("hi"))
    assert caught.value.code is code
    assert server.requests == []


async def test_a_failure_that_quotes_the_key_is_told_without_it(server: GeminiServer, gemini: GeminiProvider) -> None:
    server.on_text(HttpError(403, f"Consumer 'api_key:{KEY}' has been suspended; see AIzaSyAnotherKeyOfSomebody01."))
    with pytest.raises(KeyProblem) as caught:
        await say(gemini, prompt("hi"))
    told = f"{caught.value!r} {caught.value} {caught.value.info!r} {vars(gemini)!r}"
    assert "AIza" not in told
    assert "suspended" in caught.value.info.provider_detail


async def test_the_environment_changes_neither_key_nor_server(
    server: GeminiServer, gemini: GeminiProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.reject_key("another-key")
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "another-key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "another-project")
    assert error_free(await say(gemini, prompt("hi")))


@pytest.mark.parametrize("base_url", ["example.org", "http://[", "ftp://example.org"])
async def test_a_base_url_that_is_none_names_its_variable(shelf: Shelf, base_url: str) -> None:
    provider = GeminiProvider(KEY, shelf, base_url=base_url)
    with pytest.raises(SettingsError) as caught:
        await say(provider, prompt("hi"))
    await provider.aclose()
    assert caught.value.info.parameters["name"] == "GOOGLE_GEMINI_BASE_URL"


@pytest.mark.parametrize("after_chunks", [0, 2])
async def test_silence_longer_than_the_time_limit_ends_the_call(
    server: GeminiServer, shelf: Shelf, after_chunks: int
) -> None:
    server.on_text(Hold(Text("one two three four", chunks=4), after_chunks))
    provider = GeminiProvider(KEY, shelf, base_url=server.url, text_timeout_s=0.2)
    with pytest.raises(ProviderFailure) as caught:
        await say(provider, prompt("hi"))
    await asyncio.to_thread(server.wait_for_disconnect)
    await provider.aclose()
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT
    assert {"model": FLASH.label, "seconds": "0.2"}.items() <= caught.value.info.parameters.items()


# Stop.


@pytest.mark.parametrize("after_chunks", [0, 2])
async def test_cancelling_the_task_ends_the_request(
    server: GeminiServer, gemini: GeminiProvider, after_chunks: int
) -> None:
    server.on_text(Hold(Text("one two three four", chunks=4), after_chunks))
    task = asyncio.create_task(say(gemini, prompt("hi")))
    await asyncio.to_thread(server.wait_for_held)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(server.wait_for_disconnect)
    assert error_free(await say(gemini, prompt("still there?")))
