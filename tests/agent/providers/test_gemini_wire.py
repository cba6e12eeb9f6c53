"""What goes onto the wire and what comes off it, without a call."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import pytest
from google.genai import types

from agent import (
    CompletionChunk,
    ContentPart,
    DesignRuleBroken,
    ErrorCode,
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
    to_wire,
)
from tests.adapters.scripted import ChatOptions, ImageRequest, ToolDeclaration
from tests.support.cases import each_case
from tests.support.prompts import answer as model
from tests.support.prompts import results as tool

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")
SIGNATURE = bytes(range(256))
TOOL = ToolDeclaration(name="look", description="Looks.", parameters={"type": "object", "properties": {}})
DATA = {"a": b"picture a", "b": b"picture b"}
FOREIGN: dict[str, Any] = {"thought_signature": SIGNATURE, "signed_by": "another-model"}
LOOK = ToolCallPart(name="look")


def image(digest: str = "a", **fields: Any) -> ImagePart:
    kept: dict[str, Any] = {"md5": "0" * 32, "mime_type": "image/png", "size_bytes": 9}
    return ImagePart(digest=digest, origin=ImageOrigin.UPLOADED, **kept, **fields)


def prompt(*parts: ContentPart) -> PromptMessage:
    return PromptMessage(role=Role.PROMPT, parts=parts)


def words(text: str, **fields: Any) -> TextPart:
    return TextPart(text=text, **fields)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def blob(digest: str) -> Wire:
    return {"inlineData": {"mimeType": "image/png", "data": b64(DATA[digest])}}


def user(*parts: Wire) -> Wire:
    return {"role": "user", "parts": list(parts)}


def said(*parts: Wire) -> Wire:
    return {"role": "model", "parts": list(parts)}


# To the wire: the conversation.

CALL: Wire = {"functionCall": {"name": "look", "args": {}}}


@each_case(
    ("why", "messages", "contents"),
    [
        (
            "a text of another model loses its signature, and an empty one its place",
            [model(words("so", **FOREIGN), words("", **FOREIGN))],
            [said({"text": "so"})],
        ),
        (
            "only the first call of a foreign step gets the stand-in signature",
            [model(words("well"), ToolCallPart(name="look", **FOREIGN), LOOK)],
            [said({"text": "well"}, {**CALL, "thoughtSignature": b64(DUMMY_SIGNATURE)}, CALL)],
        ),
        (
            "thoughts and grounding stay here",
            [model(words("hm", is_thought=True), words("so"), GroundingPart(queries=("q",)))],
            [said({"text": "so"})],
        ),
        (
            "a message with nothing to say is left out",
            [prompt(words("a")), model(words("")), prompt(words("b"))],
            [user({"text": "a"}, {"text": "b"})],
        ),
        (
            "a moved picture stands in a user turn of its own when none follows",
            [model(image()), model(words("so"))],
            [user(blob("a")), said({"text": "so"})],
        ),
        *(
            (
                "a picture without its own signature moves to the user turn that follows",
                [prompt(words("draw")), model(words("here"), picture), prompt(words("redder"))],
                [user({"text": "draw"}), said({"text": "here"}), user(blob("a"), {"text": "redder"})],
            )
            for picture in (image(), image(thought_signature=SIGNATURE, signed_by=PRO.id))
        ),
    ],
)
def test_a_conversation_is_written(why: str, messages: list[PromptMessage], contents: list[Wire]) -> None:
    by = PAINTER if "own signature" in why else FLASH
    assert to_wire(by, messages, DATA) == contents


def test_a_picture_never_comes_between_a_call_and_its_result() -> None:
    def kinds(content: Wire) -> list[str]:
        return [name for part in content["parts"] for name in part]

    moved = to_wire(FLASH, [model(image(), LOOK), tool(ToolResultPart(name="look"))], DATA)
    assert kinds(moved[1]) == ["functionResponse", "inlineData"]
    # A tool's pictures follow all results for a model that cannot take them inside.
    old = FLASH.model_copy(update={"has_image_tool_results": False})
    calls = model(ToolCallPart(name="one"), ToolCallPart(name="two"))
    results = tool(ToolResultPart(name="one", images=(image(),)), ToolResultPart(name="two"))
    contents = to_wire(old, [calls, results, prompt(words("and?"))], DATA)
    assert kinds(contents[1]) == ["functionResponse", "functionResponse", "inlineData"]
    assert contents[2] == user({"text": "and?"})


# To the wire: the settings.


def test_what_the_design_never_asks_for_is_refused() -> None:
    blind, lite = FLASH.model_copy(update={"has_grounding": False}), CATALOGUE.by_id("gemini-3.1-flash-lite-image")
    assert lite is not None
    for by, tools in ((FLASH, [TOOL]), (blind, [])):
        with pytest.raises(DesignRuleBroken):
            chat_settings(by, tools, ChatOptions(google_search=True))
    with pytest.raises(DesignRuleBroken):
        image_settings(ImageRequest(model=lite, messages=(prompt(words("a fox")),), use_grounding=True))


# From the wire.


def response(*parts: Wire, usage: Wire | None = None, **candidate: Any) -> types.GenerateContentResponse:
    content = said(*parts) if parts else {"role": "model"}
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


PICTURE = {"inlineData": {"mimeType": "image/png", "data": b64(b"x")}}


def test_a_part_of_an_unknown_kind_is_dropped_with_its_signature() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": b64(SIGNATURE)}
    assert parts_of(AnswerReader(FLASH).read(response(code, {"text": "so"}))) == [TextPart(text="so")]


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
    web = {"web": {"uri": "https://a.example/1", "title": "a.example"}}
    script = {"web": {"uri": "javascript:alert(1)", "title": "no"}}
    seen = {"image": {"sourceUri": "https://b.example/2", "domain": "b.example"}}
    html = "<style></style><a>fox</a>"
    early = {"webSearchQueries": ["fox", ""], "groundingChunks": [web, script]}
    late = {
        **{"webSearchQueries": ["fox"], "imageSearchQueries": ["red fox"], "groundingChunks": [web, seen]},
        "searchEntryPoint": {"renderedContent": html},
    }
    reader = AnswerReader(FLASH)
    assert parts_of(reader.read(response({"text": "so"}, groundingMetadata=early))) == [TextPart(text="so")]
    assert not list(reader.read(response(finishReason="STOP", groundingMetadata=late)))
    grounding, end = reader.end()
    sources = [Source(title=f"{name}.example", url=f"https://{name}.example/{n}") for name, n in (("a", 1), ("b", 2))]
    queries = ("fox", "red fox")
    assert grounding.part == GroundingPart(queries=queries, sources=tuple(sources), suggestions_html=html)
    assert (end.usage, end.finish_reason) == (TokenUsage(search_queries=2), "STOP")


def test_the_same_words_asked_of_the_web_and_of_its_pictures_are_two_queries() -> None:
    both = {"webSearchQueries": ["fox"], "imageSearchQueries": ["fox"]}
    reader = AnswerReader(FLASH)
    list(reader.read(response({"text": "so"}, finishReason="STOP", groundingMetadata=both)))
    grounding, end = reader.end()
    assert isinstance(grounding.part, GroundingPart)
    assert grounding.part.queries == ("fox",)
    assert end.usage == TokenUsage(search_queries=2)


@each_case(("details", "words", "tokens"), [([], 0, 1290), ([{"modality": "TEXT", "tokenCount": 90}], 90, 1200)])
def test_a_picture_whose_tokens_are_not_named_apart_is_priced_as_one(
    details: list[Wire], words: int, tokens: int
) -> None:
    usage = {"candidatesTokenCount": 1290, "candidatesTokensDetails": details}
    last = last_chunk(PAINTER, response(PICTURE, finishReason="STOP", usage=usage))
    assert last.usage == TokenUsage(output_tokens=words, image_tokens=tokens)


def test_a_picture_that_arrived_is_good_whatever_the_reason_says_and_words_instead_of_one_are_quoted() -> None:
    assert last_chunk(PAINTER, response(PICTURE, finishReason="MAX_TOKENS")).error is None
    error = last_chunk(PAINTER, response({"text": "I can't. " * 60}), response(finishReason="STOP")).error
    assert error is not None
    assert error.code is ErrorCode.TEXT_INSTEAD_OF_PICTURE
    assert error.parameters == {"text": ("I can't. " * 60)[:300]}
