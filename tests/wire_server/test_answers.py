"""Each scripted answer, as the real SDK reads it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from PIL import Image

from tests.wire_server import (
    Call,
    Calls,
    Finish,
    GeminiServer,
    HttpError,
    PictureAnswer,
    Search,
    Text,
    TextOnly,
    quota_body,
)
from tests.wire_server.raw import BANANA, FLASH, Raw

PAINT = types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"])


def stream(sdk: genai.Client, model: str = FLASH, **config: Any) -> list[types.GenerateContentResponse]:
    settings = types.GenerateContentConfig(**config)
    return list(sdk.models.generate_content_stream(model=model, contents="a fox", config=settings))


def parts_of(chunks: list[types.GenerateContentResponse]) -> list[types.Part]:
    return [part for chunk in chunks for part in chunk.parts or []]


def first_candidate(response: types.GenerateContentResponse) -> types.Candidate:
    assert response.candidates
    return response.candidates[0]


def test_a_text_comes_in_as_many_chunks_as_said_and_a_signed_empty_one(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Text("0123456789" * 10, chunks=50))
    chunks = stream(sdk)
    assert [part.text for part in parts_of(chunks)[:2]] == ["01", "23"]
    assert len(chunks) == 51
    assert parts_of(chunks)[-1].text == ""
    assert parts_of(chunks)[-1].thought_signature
    assert [first_candidate(chunk).finish_reason for chunk in chunks[:-1]] == [None] * 50
    assert first_candidate(chunks[-1]).finish_reason == types.FinishReason.STOP


def test_a_signature_can_ride_on_the_last_text(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Text("abcd", chunks=2, signed="last_text"))
    first, last = parts_of(stream(sdk))
    assert (first.text, first.thought_signature) == ("ab", None)
    assert last.text == "cd"
    assert last.thought_signature


def test_usage_grows_with_each_chunk_and_adds_up(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Text("word " * 40, chunks=4))
    usages = [chunk.usage_metadata for chunk in stream(sdk)]
    counts = [usage.candidates_token_count or 0 for usage in usages if usage]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    last = usages[-1]
    assert last is not None
    spent = (last.prompt_token_count, last.candidates_token_count, last.thoughts_token_count)
    assert last.total_token_count == sum(count or 0 for count in spent)


def test_thoughts_come_only_when_asked_for(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Text("yes", thoughts="Let me see."), Text("yes", thoughts="Let me see."))
    asked = stream(sdk, thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="low"))
    assert parts_of(asked)[0].thought
    assert not any(part.thought for part in parts_of(stream(sdk)))


def test_events_are_framed_as_the_api_frames_them(raw: Raw) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    response = raw.post(body, method="streamGenerateContent")
    assert response.headers["content-type"] == "text/event-stream"
    events = response.content.split(b"\r\n\r\n")
    assert events.pop() == b""
    assert all(event.startswith(b'data: {"candidates"') for event in events)


def test_unary_joins_texts_but_never_a_signed_one(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Text("abcdef", chunks=3, signed="last_text"))
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    first, last = raw.parts(body)
    assert first == {"text": "abcd"}
    assert last["text"] == "ef"
    assert last["thoughtSignature"]


def test_only_the_first_of_parallel_calls_is_signed(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Calls([Call("draw", {"what": "fox"}), Call("draw", {"what": "hen"}, id="c2")], text_before="On it."))
    parts = parts_of(stream(sdk))
    calls = [part for part in parts if part.function_call]
    assert "".join(part.text or "" for part in parts) == "On it."
    assert [bool(part.thought_signature) for part in calls] == [True, False]
    assert [part.function_call and part.function_call.args for part in calls] == [{"what": "fox"}, {"what": "hen"}]
    assert [part.function_call and part.function_call.id for part in calls] == [None, "c2"]


def test_a_search_brings_queries_sources_and_suggestions(server: GeminiServer, sdk: genai.Client) -> None:
    facts = {"facts": [{"item": "Füchse sind rot", "source": "zoo"}]}
    supports = [("rot", [0])]
    server.on_text(Search(facts, [("zoo.de", "https://zoo.de/1")], ["fox"], "<b>fox</b>", supports, chunks=5))
    chunks = stream(sdk, tools=[types.Tool(google_search=types.GoogleSearch())])
    found = first_candidate(chunks[-1]).grounding_metadata
    assert found is not None
    assert found.grounding_chunks
    assert found.grounding_supports
    assert found.search_entry_point
    segment = found.grounding_supports[0].segment
    assert segment is not None
    text = "".join(part.text or "" for part in parts_of(chunks))
    assert found.web_search_queries == ["fox"]
    assert found.search_entry_point.rendered_content == "<b>fox</b>"
    assert found.grounding_chunks[0].web == types.GroundingChunkWeb(uri="https://zoo.de/1", title="zoo.de")
    assert text.encode()[segment.start_index : segment.end_index].decode() == "rot"
    usage = chunks[-1].usage_metadata
    assert usage is not None
    assert usage.tool_use_prompt_token_count


@pytest.mark.parametrize(
    ("ratio", "size", "pixels"),
    [
        ("16:9", "1K", (1376, 768)),
        ("9:16", "2K", (1536, 2752)),
        ("1:1", "4K", (4096, 4096)),
        (None, None, (1024, 1024)),
    ],
)
def test_a_picture_has_exactly_the_pixels_asked_for(
    sdk: genai.Client, ratio: str | None, size: str | None, pixels: tuple[int, int]
) -> None:
    config = types.GenerateContentConfig(
        response_modalities=["IMAGE"], image_config=types.ImageConfig(aspect_ratio=ratio, image_size=size)
    )
    answer = sdk.models.generate_content(model=BANANA, contents="a fox", config=config)
    (part,) = answer.parts or []
    assert part.inline_data
    assert part.inline_data.data
    with Image.open(BytesIO(part.inline_data.data)) as picture:
        picture.load()
        assert picture.size == pixels
        assert picture.format == "JPEG"
    assert part.thought_signature
    usage = answer.usage_metadata
    assert usage is not None
    assert usage.candidates_tokens_details
    image_tokens = {None: 1120, "1K": 1120, "2K": 1680, "4K": 2520}[size]
    assert usage.candidates_tokens_details[0].token_count == image_tokens


def test_a_png_can_be_heavy_and_signed_with_the_real_weight(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_image(
        PictureAnswer(300, 200, mime="image/png", least_bytes=1_000_000, is_huge=True, text_before="Here it is.")
    )
    answer = sdk.models.generate_content(model=BANANA, contents="a fox", config=PAINT)
    text, picture = answer.parts or []
    assert picture.inline_data
    data = picture.inline_data.data or b""
    assert len(data) >= 1_000_000
    with Image.open(BytesIO(data)) as opened:
        opened.load()
        assert (opened.size, opened.format) == ((300, 200), "PNG")
    assert [len(part.thought_signature or b"") for part in (text, picture)] == [900_000, 900_000]


def test_drafts_are_thoughts_without_signatures(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_image(PictureAnswer(drafts=2))
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_level="high")
    parts = parts_of(stream(sdk, BANANA, response_modalities=["IMAGE"], thinking_config=thinking))
    pictures = [part for part in parts if part.inline_data]
    assert [bool(part.thought) for part in pictures] == [True, True, False]
    assert [bool(part.thought_signature) for part in pictures] == [False, False, True]


def test_script_gives_each_answer_to_its_kind_of_model(server: GeminiServer, sdk: genai.Client) -> None:
    server.script(TextOnly("from the painter"), Text("from the talker"))
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "from the talker"
    assert sdk.models.generate_content(model=BANANA, contents="hi", config=PAINT).text == "from the painter"
    assert server.remaining == 0


def test_a_finish_message_is_on_the_wire(server: GeminiServer, raw: Raw) -> None:
    """The SDK leaves it out for the Developer API, so this is read from the wire."""
    server.on_text(Finish("SAFETY", "The model said no.", text_before="Well"))
    candidate = raw.post({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).json()["candidates"][0]
    assert candidate["finishMessage"] == "The model said no."
    assert candidate["content"]["parts"] == [{"text": "Well"}]


def test_a_quota_error_tells_when_to_come_back(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(HttpError(429, body=quota_body(retry_s=34.4), headers={"x-extra": "1"}))
    with pytest.raises(errors.ClientError, match=r"Please retry in 34\.4s\.") as caught:
        stream(sdk)
    details = caught.value.details["error"]["details"]
    assert details[-1] == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
    assert caught.value.response.headers["x-extra"] == "1"


@pytest.mark.parametrize("body", [quota_body("day"), quota_body(limit=0)])
def test_a_quota_of_the_day_or_of_nothing_has_no_retry_info(
    server: GeminiServer, sdk: genai.Client, body: dict[str, Any]
) -> None:
    server.on_text(HttpError(429, body=body))
    with pytest.raises(errors.ClientError) as caught:
        stream(sdk)
    assert [entry["@type"].rpartition(".")[2] for entry in caught.value.details["error"]["details"]] == [
        "Help",
        "QuotaFailure",
    ]


def test_a_text_cannot_come_in_more_chunks_than_it_has_letters() -> None:
    server = GeminiServer()
    server.on_text(Text("ab", chunks=3))
    with pytest.raises(ValueError, match="cannot come in 3 chunks"), server:
        httpx2.post(
            f"{server.url}/v1beta/models/{FLASH}:generateContent",
            json={"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
            headers={"x-goog-api-key": "a-key"},
        )
