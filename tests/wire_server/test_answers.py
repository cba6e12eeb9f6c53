"""Each scripted answer, as the real SDK reads it."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from PIL import Image

from tests.support.cases import each_case
from tests.wire_server import Call, Calls, Finish, GeminiServer, HttpError, PictureAnswer, Search, Text, TextOnly
from tests.wire_server import quota_body as quota
from tests.wire_server.raw import BANANA, FLASH, HI, Raw

PAINT = types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"])


def stream(sdk: genai.Client, model: str = FLASH, **config: Any) -> list[types.GenerateContentResponse]:
    settings = types.GenerateContentConfig(**config)
    return list(sdk.models.generate_content_stream(model=model, contents="a fox", config=settings))


def parts_of(chunks: list[types.GenerateContentResponse]) -> list[types.Part]:
    return [part for chunk in chunks for part in chunk.parts or []]


def candidate(response: types.GenerateContentResponse) -> types.Candidate:
    assert response.candidates
    return response.candidates[0]


def test_a_text_comes_in_as_many_chunks_as_said_and_a_signed_empty_one_and_its_usage_grows(
    server: GeminiServer, sdk: genai.Client
) -> None:
    server.on_text(Text("0123456789" * 10, chunks=50), Text("abcd", chunks=2, signed="last_text"))
    chunks = stream(sdk)
    *texts, last = parts_of(chunks)
    assert [part.text for part in texts] == [f"{n:02}"[-2:] for n in (1, 23, 45, 67, 89)] * 10
    assert (last.text, bool(last.thought_signature)) == ("", True)
    assert [candidate(chunk).finish_reason for chunk in chunks] == [None] * 50 + [types.FinishReason.STOP]
    usages = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    counts = [usage.candidates_token_count or 0 for usage in usages]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    spent = (usages[-1].prompt_token_count, usages[-1].candidates_token_count, usages[-1].thoughts_token_count)
    assert usages[-1].total_token_count == sum(count or 0 for count in spent)
    riding = [(part.text, bool(part.thought_signature)) for part in parts_of(stream(sdk))]
    assert riding == [("ab", False), ("cd", True)]


def test_thoughts_and_drafts_come_only_when_asked_for_and_unsigned(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(*[Text("yes", thoughts="Let me see.")] * 2)
    server.on_image(PictureAnswer(drafts=2))
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_level="high")
    assert parts_of(stream(sdk, thinking_config=thinking))[0].thought
    assert not any(part.thought for part in parts_of(stream(sdk)))
    parts = parts_of(stream(sdk, BANANA, response_modalities=["IMAGE"], thinking_config=thinking))
    pictures = [(bool(part.thought), bool(part.thought_signature)) for part in parts if part.inline_data]
    assert pictures == [(True, False), (True, False), (False, True)]


def test_events_are_framed_as_the_api_frames_them_and_unary_joins_texts_but_never_a_signed_one(
    server: GeminiServer, raw: Raw
) -> None:
    response = raw.post(HI, method="streamGenerateContent")
    assert response.headers["content-type"] == "text/event-stream"
    *events, rest = response.content.split(b"\r\n\r\n")
    assert rest == b""
    assert all(event.startswith(b'data: {"candidates"') for event in events)
    # The SDK leaves the finish message out, so it is read from the wire.
    server.on_text(Text("abcdef", chunks=3, signed="last_text"), Finish("SAFETY", "No.", text_before="Well"))
    first, last = raw.parts(HI)
    assert (first, last["text"], "thoughtSignature" in last) == ({"text": "abcd"}, "ef", True)
    refused = raw.post(HI).json()["candidates"][0]
    assert (refused["finishMessage"], refused["content"]["parts"]) == ("No.", [{"text": "Well"}])


def test_only_the_first_of_parallel_calls_is_signed(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(Calls([Call("draw", {"what": "fox"}), Call("draw", {"what": "hen"}, id="c2")], text_before="On it."))
    parts = parts_of(stream(sdk))
    assert "".join(part.text or "" for part in parts) == "On it."
    calls = [(part.function_call, bool(part.thought_signature)) for part in parts if part.function_call]
    assert [(call.args, call.id, is_signed) for call, is_signed in calls] == [
        ({"what": "fox"}, None, True),
        ({"what": "hen"}, "c2", False),
    ]


def test_a_search_brings_queries_sources_and_suggestions(server: GeminiServer, sdk: genai.Client) -> None:
    facts = {"facts": [{"item": "Füchse sind rot", "source": "zoo"}]}
    supports = [("rot", [0])]
    server.on_text(Search(facts, [("zoo.de", "https://zoo.de/1")], ["fox"], "<b>fox</b>", supports, chunks=5))
    chunks = stream(sdk, tools=[types.Tool(google_search=types.GoogleSearch())])
    found: Any = candidate(chunks[-1]).grounding_metadata
    assert (found.web_search_queries, found.search_entry_point.rendered_content) == (["fox"], "<b>fox</b>")
    assert found.grounding_chunks[0].web == types.GroundingChunkWeb(uri="https://zoo.de/1", title="zoo.de")
    text = "".join(part.text or "" for part in parts_of(chunks)).encode()
    segment = found.grounding_supports[0].segment
    assert text[segment.start_index : segment.end_index] == b"rot"
    assert chunks[-1].usage_metadata
    assert chunks[-1].usage_metadata.tool_use_prompt_token_count


def opened(part: types.Part) -> tuple[int, int, str | None]:
    """Return the size and the format of a picture that can be read to its end."""
    assert part.inline_data
    with Image.open(BytesIO(part.inline_data.data or b"")) as picture:
        picture.load()
        return (*picture.size, picture.format)


@each_case(
    ("ratio", "size", "pixels", "tokens"),
    [
        ("16:9", "1K", (1376, 768), 1120),
        ("9:16", "2K", (1536, 2752), 1680),
        ("1:1", "4K", (4096, 4096), 2520),
        (None, None, (1024, 1024), 1120),
    ],
)
def test_a_picture_has_exactly_the_pixels_asked_for(
    sdk: genai.Client, ratio: str | None, size: str | None, pixels: tuple[int, int], tokens: int
) -> None:
    frame = types.ImageConfig(aspect_ratio=ratio, image_size=size)
    config = types.GenerateContentConfig(response_modalities=["IMAGE"], image_config=frame)
    answer = sdk.models.generate_content(model=BANANA, contents="a fox", config=config)
    (part,) = answer.parts or []
    assert opened(part) == (*pixels, "JPEG")
    assert part.thought_signature
    assert answer.usage_metadata
    assert [one.token_count for one in answer.usage_metadata.candidates_tokens_details or []] == [tokens]


def test_a_png_can_be_heavy_and_signed_with_the_real_weight(server: GeminiServer, sdk: genai.Client) -> None:
    heavy = PictureAnswer(300, 200, mime="image/png", least_bytes=1_000_000, is_huge=True, text_before="Here it is.")
    server.on_image(heavy)
    text, picture = sdk.models.generate_content(model=BANANA, contents="a fox", config=PAINT).parts or []
    assert picture.inline_data
    assert len(picture.inline_data.data or b"") >= 1_000_000
    assert opened(picture) == (300, 200, "PNG")
    assert [len(part.thought_signature or b"") for part in (text, picture)] == [900_000, 900_000]


def test_script_gives_each_answer_to_its_kind_of_model(server: GeminiServer, sdk: genai.Client) -> None:
    server.script(TextOnly("from the painter"), Text("from the talker"))
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "from the talker"
    assert sdk.models.generate_content(model=BANANA, contents="hi", config=PAINT).text == "from the painter"
    assert server.remaining == 0


@each_case(
    ("body", "words", "kinds"),
    [
        (quota(retry_s=34.4), "Please retry in 34.4s.", ["Help", "QuotaFailure", "RetryInfo"]),
        # A quota of the day, or of nothing, comes back to nobody who waits.
        (quota("day"), "per_day", ["Help", "QuotaFailure"]),
        (quota(limit=0), "limit: 0", ["Help", "QuotaFailure"]),
    ],
)
def test_a_quota_error_tells_when_to_come_back(
    server: GeminiServer, sdk: genai.Client, body: dict[str, Any], words: str, kinds: list[str]
) -> None:
    server.on_text(HttpError(429, body=body, headers={"x-extra": "1"}))
    with pytest.raises(errors.ClientError, match=words) as caught:
        stream(sdk)
    details = caught.value.details["error"]["details"]
    assert [entry["@type"].rpartition(".")[2] for entry in details] == kinds
    assert details[-1].get("retryDelay", "34s") == "34s"
    assert caught.value.response.headers["x-extra"] == "1"


def test_a_text_cannot_come_in_more_chunks_than_it_has_letters(raw: Raw) -> None:
    server = GeminiServer()
    server.on_text(Text("ab", chunks=3))
    with pytest.raises(ValueError, match="cannot come in 3 chunks"), server:
        raw.post(HI, url=server.url)
