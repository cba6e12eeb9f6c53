"""The provider against a strict server: real HTTP, the real SDK. Every way an answer can end is in `test_endings`."""

from __future__ import annotations

from typing import Any

import pytest

from agent import (
    AivistaError,
    CompletionChunk,
    ErrorCode,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    KeyProblem,
    SettingsError,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.scripted import ChatOptions
from tests.support.cases import each_case
from tests.support.desks import GeminiDesk, at_gemini
from tests.support.prompts import LOOK, message_of, png, prompt, results
from tests.wire_server import Call, Calls, Events, GeminiServer, Hold, PictureAnswer, Text

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")


def error_free(chunks: list[CompletionChunk]) -> bool:
    return bool(chunks) and all(chunk.error is None for chunk in chunks)


async def test_a_text_streams_piece_by_piece_and_ends_with_its_usage(gemini: GeminiDesk) -> None:
    gemini.server.on_text(Hold(Text("one two three", chunks=3), after_chunks=1))
    answer = gemini.stream(FLASH, prompt("hi"), options=ChatOptions(system="Be kind."))
    chunks = [await anext(answer)]  # the first piece arrives before the last is sent
    gemini.server.release()
    chunks += [chunk async for chunk in answer]
    texts = [chunk.part.text for chunk in chunks if isinstance(chunk.part, TextPart)]
    assert [text for text in texts if text] == ["one ", "two ", "three"]
    assert (chunks[-1].finish_reason, error_free(chunks)) == ("STOP", True)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.output_tokens > 0
    [request] = gemini.server.requests
    assert (request.model, request.method, request.system) == (FLASH.id, "streamGenerateContent", "Be kind.")
    assert [content["role"] for content in request.contents] == ["user"]
    assert not request.shows_thoughts


async def test_a_tool_loop_keeps_every_signature_and_breaks_no_rule(gemini: GeminiDesk) -> None:
    image, server = await gemini.upload(), gemini.server
    server.on_text(Calls([Call("look", {"at": "north"}, id="c1"), Call("look", {"at": "south"}, id="c2")], "Let me."))
    server.on_text(Call("look", {"at": "up"}), Text("A bird."), Text("Welcome."))
    history = [prompt("What is there?", image)]
    answer = message_of(await gemini.say(FLASH, *history, tools=[LOOK]))
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    assert [(call.arguments, call.call_id, call.signed_by) for call in calls] == [
        ({"at": "north"}, "c1", FLASH.id),
        ({"at": "south"}, "c2", None),
    ]
    seen = (ToolResultPart(name="look", content={}, images=(image,), call_id=call.call_id) for call in calls)
    for said in (results(*seen), results(ToolResultPart(name="look")), prompt("Thanks")):
        history += [answer, said]
        answer = message_of(await gemini.say(FLASH, *history, tools=[LOOK]))
    assert server.violations == []
    assert [len(result["parts"]) for result in server.requests[1].function_responses] == [1, 1]
    assert server.requests[-1].function_names == ["look"]


async def test_works_that_an_answer_quotes_and_places_of_maps_are_its_sources(gemini: GeminiDesk) -> None:
    """Works come on any event, under either name that the API has for them; the SDK leaves them out."""
    quoted: dict[str, Any] = {"startIndex": 0, "endIndex": 9, "uri": "https://poems.example/7", "license": ""}
    named = {"uri": "https://books.example/3", "title": "A book"}
    place = {"maps": {"uri": "https://maps.google.com/?cid=1", "title": "The tower", "placeId": "places/1"}}
    hostile: list[Any] = [{"uri": "javascript:alert(1)"}, {}]
    text, more = ({"content": {"parts": [{"text": words}]}} for words in ("Tyger", " Tyger"))
    end = {"finishReason": "STOP", "groundingMetadata": {"groundingChunks": [place]}}
    text["citationMetadata"] = {"citationSources": [quoted, *hostile]}
    more["citationMetadata"] = {"citations": [quoted, named]}
    gemini.server.on_text(Events([{"candidates": [candidate]} for candidate in (text, more, end)]))
    chunks = await gemini.say(FLASH, prompt("recite"))
    assert error_free(chunks)
    [found] = [chunk.part for chunk in chunks if isinstance(chunk.part, GroundingPart)]
    assert found.sources == (
        Source(title="The tower", url="https://maps.google.com/?cid=1"),
        Source(title="poems.example", url="https://poems.example/7"),
        Source(title="A book", url="https://books.example/3"),
    )


async def test_a_picture_is_stored_before_its_chunk_is_given(gemini: GeminiDesk) -> None:
    data = png("blue")
    picture = PictureAnswer(data=data, mime="image/png", text_before="Here:", drafts=1)
    gemini.server.on_image(Hold(picture, after_chunks=2))
    answer = gemini.painting(PAINTER, prompt("blue"), aspect_ratio="1:1")
    words, image = (await anext(answer)).part, (await anext(answer)).part
    assert isinstance(words, TextPart)
    assert isinstance(image, ImagePart)
    assert await gemini.shelf.read(image) == data
    assert gemini.shelf.origins == [ImageOrigin.GENERATED]
    assert (image.mime_type, image.signed_by) == ("image/png", PAINTER.id)
    gemini.server.release()
    end = [chunk async for chunk in answer][-1]
    assert (end.error, end.usage and end.usage.image_tokens) == (None, 1120)
    assert gemini.server.requests[0].config["imageConfig"] == {"aspectRatio": "1:1"}


async def test_a_picture_is_edited_in_its_own_conversation(gemini: GeminiDesk) -> None:
    gemini.server.on_image(PictureAnswer(text_before="Here:", is_huge=True, text_after="Like it?"))
    history = [prompt("a fox like this", await gemini.upload())]
    history += [message_of(await gemini.paint(PAINTER, *history)), prompt("redder")]
    assert error_free(await gemini.paint(PAINTER, *history, resolution="1K"))
    await gemini.say(FLASH, prompt("hi"))
    assert gemini.server.violations == []
    painted, edited, said = gemini.server.requests
    assert [role for role, _ in edited.blobs] == ["user", "model"]
    # Only a picture gets a deadline on the server's side.
    assert [request.headers.get("x-server-timeout") for request in (painted, said)] == ["300", None]


# Failures.


@each_case(
    ("key", "code"),
    [("", ErrorCode.KEY_MISSING), ("  ", ErrorCode.KEY_MISSING)]
    + [(key, ErrorCode.KEY_INVALID) for key in ("我的密钥", "two words", "a\nb", "auth_tokens/1")],
)
async def test_a_key_that_cannot_be_one_is_refused_before_anything_is_sent(
    server: GeminiServer, key: str, code: ErrorCode
) -> None:
    async with at_gemini(server, key) as desk:
        with pytest.raises(KeyProblem) as caught:
            await desk.say(FLASH, prompt("hi"))
    assert caught.value.code is code
    assert server.requests == []


async def test_the_environment_changes_neither_key_nor_server(
    gemini: GeminiDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    gemini.server.reject_key("another-key")
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "another-key")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "another-project")
    assert error_free(await gemini.say(FLASH, prompt("hi")))


async def failing(server: GeminiServer, kind: type[AivistaError], **options: Any) -> AivistaError:
    """Return what a call ends with."""
    async with at_gemini(server, **options) as desk:
        with pytest.raises(kind) as caught:
            await desk.say(FLASH, prompt("hi"))
    return caught.value


@each_case("base_url", ["example.org", "http://[", "ftp://example.org"])
async def test_a_base_url_that_is_none_names_its_variable(server: GeminiServer, base_url: str) -> None:
    error = await failing(server, SettingsError, base_url=base_url)
    assert error.info.parameters["name"] == "GOOGLE_GEMINI_BASE_URL"
