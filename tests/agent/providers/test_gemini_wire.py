"""What goes onto the wire and what comes off it, without a call."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any

import pytest
from google.genai import types

from agent.errors import DesignRuleBroken, ErrorCode
from agent.messages import (
    CompletionChunk,
    ContentPart,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Role,
    Source,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.catalogue import ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import (
    DUMMY_SIGNATURE,
    AnswerReader,
    ArrivedPicture,
    Wire,
    chat_settings,
    image_settings,
    pictures_to_send,
    to_wire,
)
from tests.adapters.scripted import ChatOptions, ImageRequest, ToolDeclaration

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")
SIGNATURE = bytes(range(256))
TOOL = ToolDeclaration(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
DATA = {"a": b"picture a", "b": b"picture b"}


def image(digest: str = "a", signature: bytes | None = None, signed_by: str | None = None) -> ImagePart:
    return ImagePart(
        digest=digest,
        md5="0" * 32,
        mime_type="image/png",
        size_bytes=9,
        origin=ImageOrigin.UPLOADED,
        thought_signature=signature,
        signed_by=signed_by,
    )


def prompt(*parts: ContentPart) -> PromptMessage:
    return PromptMessage(role=Role.PROMPT, parts=parts)


def model(*parts: ContentPart) -> PromptMessage:
    return PromptMessage(role=Role.MODEL, parts=parts)


def tool(*parts: ContentPart) -> PromptMessage:
    return PromptMessage(role=Role.TOOL, parts=parts)


def words(text: str) -> TextPart:
    return TextPart(text=text)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def blob(digest: str) -> Wire:
    return {"inlineData": {"mimeType": "image/png", "data": b64(DATA[digest])}}


def written(*messages: PromptMessage, by: ModelEntry = FLASH) -> list[Wire]:
    return to_wire(by, messages, DATA)


# To the wire: the conversation.


def test_a_text_of_another_model_loses_its_signature_and_an_empty_one_its_place() -> None:
    foreign: dict[str, Any] = {"thought_signature": SIGNATURE, "signed_by": "another-model"}
    [content] = written(model(TextPart(text="so", **foreign), TextPart(text="", **foreign)))
    assert content["parts"] == [{"text": "so"}]


def test_only_the_first_call_of_a_foreign_step_gets_the_stand_in_signature() -> None:
    foreign = ToolCallPart(name="look", thought_signature=SIGNATURE, signed_by="another-model")
    [content] = written(model(words("well"), foreign, ToolCallPart(name="look")))
    assert content["parts"] == [
        {"text": "well"},
        {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": b64(DUMMY_SIGNATURE)},
        {"functionCall": {"name": "look", "args": {}}},
    ]


def test_thoughts_and_grounding_stay_here() -> None:
    answer = model(TextPart(text="hm", is_thought=True), words("so"), GroundingPart(queries=("q",)))
    assert written(answer) == [{"role": "model", "parts": [{"text": "so"}]}]


def test_a_message_with_nothing_to_say_is_left_out() -> None:
    assert written(prompt(words("a")), model(words("")), prompt(words("b"))) == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}
    ]


@pytest.mark.parametrize(
    "picture", [image(), image(signature=SIGNATURE, signed_by=PRO.id)], ids=["unsigned", "foreign"]
)
def test_a_picture_without_its_own_signature_moves_to_the_user_turn_that_follows(picture: ImagePart) -> None:
    contents = written(prompt(words("draw")), model(words("here"), picture), prompt(words("redder")), by=PAINTER)
    assert contents[1:] == [
        {"role": "model", "parts": [{"text": "here"}]},
        {"role": "user", "parts": [blob("a"), {"text": "redder"}]},
    ]


def test_a_moved_picture_stands_in_a_user_turn_of_its_own_when_none_follows() -> None:
    assert written(model(image()), model(words("so"))) == [
        {"role": "user", "parts": [blob("a")]},
        {"role": "model", "parts": [{"text": "so"}]},
    ]


def test_a_moved_picture_never_comes_between_a_call_and_its_result() -> None:
    contents = written(model(image(), ToolCallPart(name="look")), tool(ToolResultPart(name="look")))
    assert [list(part) for part in contents[1]["parts"]] == [["functionResponse"], ["inlineData"]]


def test_a_tools_pictures_follow_all_results_for_a_model_that_cannot_take_them_inside() -> None:
    old = FLASH.model_copy(update={"has_image_tool_results": False})
    results = tool(ToolResultPart(name="one", images=(image(),)), ToolResultPart(name="two"))
    contents = written(
        model(ToolCallPart(name="one"), ToolCallPart(name="two")), results, prompt(words("and?")), by=old
    )
    assert [list(part) for part in contents[1]["parts"]] == [["functionResponse"], ["functionResponse"], ["inlineData"]]
    assert contents[2] == {"role": "user", "parts": [{"text": "and?"}]}


def test_every_picture_is_read_once_wherever_it_stands() -> None:
    draft = image("draft").model_copy(update={"is_thought": True})
    messages = [prompt(image("a")), model(image("a"), draft), tool(ToolResultPart(name="look", images=(image("b"),)))]
    assert list(pictures_to_send(messages)) == ["a", "b"]


# To the wire: the settings.


def test_tools_are_declared_with_their_schema_and_the_model_is_held_to_it() -> None:
    body = chat_settings(FLASH, [TOOL], ChatOptions(system="Be kind."))
    assert body == {
        "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": False}},
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "look", "description": "Looks.", "parametersJsonSchema": TOOL.parameters}
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}},
    }


def test_a_search_is_the_only_tool_and_may_answer_in_json() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"facts": {"type": "string"}}}
    body = chat_settings(FLASH, (), ChatOptions(google_search=True, response_schema=schema, thinking_level="high"))
    assert body == {
        "generationConfig": {
            "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": False},
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
        },
        "tools": [{"googleSearch": {}}],
    }


def test_a_thinking_level_the_model_lacks_falls_back_to_its_own() -> None:
    body = chat_settings(FLASH, (), ChatOptions(thinking_level="minimal"))
    assert body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "LOW"


def test_a_model_that_does_not_think_is_sent_no_thinking() -> None:
    plain = FLASH.model_copy(update={"thinking_levels": (), "thinking_level": None})
    assert chat_settings(plain, (), ChatOptions(thinking_level="high")) == {"generationConfig": {}}


def test_functions_and_the_search_in_one_request_are_refused() -> None:
    with pytest.raises(DesignRuleBroken):
        chat_settings(FLASH, [TOOL], ChatOptions(google_search=True))


def test_a_search_of_a_model_without_one_is_refused() -> None:
    blind = FLASH.model_copy(update={"has_grounding": False})
    with pytest.raises(DesignRuleBroken):
        chat_settings(blind, (), ChatOptions(google_search=True))


def picture_request(by: ModelEntry, **settings: Any) -> ImageRequest:
    return ImageRequest(model=by, messages=(prompt(words("a fox")),), **settings)


def test_only_the_chosen_settings_of_a_picture_are_sent() -> None:
    modalities = {"responseModalities": ["TEXT", "IMAGE"]}
    assert image_settings(picture_request(PAINTER)) == {"generationConfig": modalities}
    assert image_settings(picture_request(PAINTER, resolution="2K")) == {
        "generationConfig": {**modalities, "imageConfig": {"imageSize": "2K"}}
    }
    assert image_settings(picture_request(PRO, aspect_ratio="16:9", resolution="4K")) == {
        "generationConfig": {**modalities, "imageConfig": {"aspectRatio": "16:9", "imageSize": "4K"}}
    }


def test_grounding_searches_pictures_only_where_the_model_can() -> None:
    assert image_settings(picture_request(PAINTER, use_grounding=True))["tools"] == [
        {"googleSearch": {"searchTypes": {"webSearch": {}, "imageSearch": {}}}}
    ]
    assert image_settings(picture_request(PRO, use_grounding=True))["tools"] == [{"googleSearch": {}}]


def test_grounding_of_an_image_model_without_a_search_is_refused() -> None:
    lite = CATALOGUE.by_id("gemini-3.1-flash-lite-image")
    assert lite is not None
    with pytest.raises(DesignRuleBroken):
        image_settings(picture_request(lite, use_grounding=True))


# From the wire.


def response(*parts: Wire, usage: Wire | None = None, **candidate: Any) -> types.GenerateContentResponse:
    content = {"role": "model", "parts": list(parts)} if parts else {"role": "model"}
    body: Wire = {"candidates": [{"content": content, **candidate}]}
    if usage is not None:
        body["usageMetadata"] = usage
    return types.GenerateContentResponse.model_validate(body)


def parts_of(pieces: Iterable[CompletionChunk | ArrivedPicture]) -> list[ContentPart | None]:
    return [piece.part for piece in pieces if isinstance(piece, CompletionChunk)]


def last_chunk(by: ModelEntry, *responses: types.GenerateContentResponse) -> CompletionChunk:
    reader = AnswerReader(by)
    for each in responses:
        list(reader.read(each))
    return list(reader.end())[-1]


def last_error(by: ModelEntry, *responses: types.GenerateContentResponse) -> ErrorCode | None:
    error = last_chunk(by, *responses).error
    return error.code if error else None


def test_a_picture_comes_with_its_type_and_signature_and_a_draft_not_at_all() -> None:
    draft = {"inlineData": {"mimeType": "image/jpeg", "data": b64(b"draft")}, "thought": True}
    final = {"inlineData": {"mimeType": "image/jpeg", "data": b64(b"final")}, "thoughtSignature": b64(SIGNATURE)}
    [picture] = AnswerReader(PAINTER).read(response(draft, final))
    assert picture == ArrivedPicture(b"final", "image/jpeg", SIGNATURE)


def test_a_part_of_an_unknown_kind_is_dropped_with_its_signature() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": b64(SIGNATURE)}
    assert parts_of(AnswerReader(FLASH).read(response(code, {"text": "so"}))) == [TextPart(text="so")]


def test_parts_survive_the_way_in_and_out_unchanged() -> None:
    answer: list[Wire] = [
        {"text": "so", "thoughtSignature": b64(hashlib.sha256(b"1").digest())},
        {"functionCall": {"name": "look", "args": {"at": 1.5}}, "thoughtSignature": b64(hashlib.sha512(b"2").digest())},
        {"functionCall": {"name": "look", "args": {}}},
        {"text": "", "thoughtSignature": b64(SIGNATURE)},
    ]
    parts = parts_of(AnswerReader(FLASH).read(response(*answer)))
    [content] = written(model(*(part for part in parts if part is not None)))
    assert content == {"role": "model", "parts": answer}


def test_usage_is_split_by_kind_and_the_last_count_stands() -> None:
    first = response({"text": "a"}, usage={"promptTokenCount": 5, "candidatesTokenCount": 1})
    last = response(
        finishReason="STOP",
        usage={
            "promptTokenCount": 100,
            "cachedContentTokenCount": 40,
            "toolUsePromptTokenCount": 7,
            "candidatesTokenCount": 1283,
            "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1120}, {"modality": "TEXT"}],
            "thoughtsTokenCount": 174,
        },
    )
    assert last_chunk(FLASH, first, last).usage == TokenUsage(
        prompt_tokens=100, cached_tokens=40, tool_tokens=7, output_tokens=163, thought_tokens=174, image_tokens=1120
    )
    reader = AnswerReader(FLASH)
    assert len(list(reader.read(first))) == 1
    assert reader.usage == TokenUsage(prompt_tokens=5, output_tokens=1)


def test_grounding_is_gathered_into_one_part_and_its_queries_are_counted() -> None:
    first = response(
        {"text": "so"},
        groundingMetadata={
            "webSearchQueries": ["fox", ""],
            "groundingChunks": [
                {"web": {"uri": "https://a.example/1", "title": "a.example"}},
                {"web": {"uri": "javascript:alert(1)", "title": "no"}},
            ],
        },
    )
    last = response(
        finishReason="STOP",
        groundingMetadata={
            "webSearchQueries": ["fox"],
            "imageSearchQueries": ["red fox"],
            "groundingChunks": [
                {"web": {"uri": "https://a.example/1", "title": "a.example"}},
                {"image": {"sourceUri": "https://b.example/2", "domain": "b.example"}},
            ],
            "searchEntryPoint": {"renderedContent": "<style></style><a>fox</a>"},
        },
    )
    reader = AnswerReader(FLASH)
    assert parts_of(reader.read(first)) == [TextPart(text="so")]
    assert not list(reader.read(last))
    grounding, end = reader.end()
    assert grounding.part == GroundingPart(
        queries=("fox", "red fox"),
        sources=(
            Source(title="a.example", url="https://a.example/1"),
            Source(title="b.example", url="https://b.example/2"),
        ),
        suggestions_html="<style></style><a>fox</a>",
    )
    assert end.usage == TokenUsage(search_queries=2)
    assert end.finish_reason == "STOP"


def test_the_same_words_asked_of_the_web_and_of_its_pictures_are_two_queries() -> None:
    both = {"webSearchQueries": ["fox"], "imageSearchQueries": ["fox"]}
    reader = AnswerReader(FLASH)
    list(reader.read(response({"text": "so"}, finishReason="STOP", groundingMetadata=both)))
    grounding, end = reader.end()
    assert isinstance(grounding.part, GroundingPart)
    assert grounding.part.queries == ("fox",)
    assert end.usage == TokenUsage(search_queries=2)


@pytest.mark.parametrize(
    ("details", "words", "tokens"), [([], 0, 1290), ([{"modality": "TEXT", "tokenCount": 90}], 90, 1200)]
)
def test_a_picture_whose_tokens_are_not_named_apart_is_priced_as_one(
    details: list[Wire], words: int, tokens: int
) -> None:
    usage = {"candidatesTokenCount": 1290, "candidatesTokensDetails": details}
    picture = {"inlineData": {"mimeType": "image/png", "data": b64(b"x")}}
    last = last_chunk(PAINTER, response(picture, finishReason="STOP", usage=usage))
    assert last.usage == TokenUsage(output_tokens=words, image_tokens=tokens)


def test_a_picture_that_arrived_is_good_whatever_the_reason_says() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": b64(b"x")}}
    assert last_error(PAINTER, response(picture, finishReason="MAX_TOKENS")) is None


def test_words_instead_of_a_picture_are_quoted() -> None:
    error = last_chunk(PAINTER, response({"text": "I can't. " * 60}), response(finishReason="STOP")).error
    assert error is not None
    assert error.code is ErrorCode.TEXT_INSTEAD_OF_PICTURE
    assert error.parameters == {"text": ("I can't. " * 60)[:300]}
