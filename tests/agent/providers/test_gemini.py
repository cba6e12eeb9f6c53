"""Google's models at a strict server, and what goes onto the wire and comes off it; how answers end: `test_endings`."""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from google.genai import types
from pydantic import SecretStr

from agent import (
    AivistaError,
    CompletionChunk,
    ErrorCode,
    ErrorInfo,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    KeyProblem,
    NetworkFailure,
    PromptMessage,
    ProviderFailure,
    SettingsError,
    Source,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.models import (
    DUMMY_SIGNATURE,
    AnswerReader,
    GeminiConnection,
    GeminiEmbedder,
    KeyDiagnosis,
    KeyStatusCache,
    ModelEntry,
    ModelRole,
    Wire,
    check_key,
    load_catalogue,
    to_wire,
)
from tests.support import broken_servers as broken
from tests.support.cases import each_case
from tests.support.desks import GEMINI_KEY, GeminiDesk, at_gemini
from tests.support.prompts import answer, png, prompt, results
from tests.wire_server import Events, GeminiServer, Hold, PictureAnswer, error_body, key_body, quota_body

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")


@pytest.fixture
async def gemini(server: GeminiServer) -> AsyncIterator[GeminiDesk]:
    async with at_gemini(server) as desk:
        yield desk


def error_free(chunks: list[CompletionChunk]) -> bool:
    return bool(chunks) and all(chunk.error is None for chunk in chunks)


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


@each_case("base_url", ["example.org", "http://[", "ftp://example.org"])
async def test_a_base_url_that_is_none_names_its_variable(server: GeminiServer, base_url: str) -> None:
    async with at_gemini(server, base_url=base_url) as desk:
        with pytest.raises(SettingsError) as caught:
            await desk.say(FLASH, prompt("hi"))
    assert caught.value.info.parameters["name"] == "GOOGLE_GEMINI_BASE_URL"


# What goes onto the wire.

SIGNATURE = bytes(range(256))
DATA = b"picture a"
FOREIGN: dict[str, Any] = {"thought_signature": SIGNATURE, "signed_by": "another-model"}
CALLED = ToolCallPart(name="look")
CALL: Wire = {"functionCall": {"name": "look", "args": {}}}
SO = TextPart(text="so")


def image(**fields: Any) -> ImagePart:
    kept: dict[str, Any] = {"digest": "a", "md5": "0" * 32, "mime_type": "image/png", "size_bytes": 9}
    return ImagePart(origin=ImageOrigin.UPLOADED, **kept, **fields)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def user(*parts: Wire) -> Wire:
    return {"role": "user", "parts": list(parts)}


def said(*parts: Wire) -> Wire:
    return {"role": "model", "parts": list(parts)}


BLOB: Wire = {"inlineData": {"mimeType": "image/png", "data": b64(DATA)}}


@each_case(
    ("messages", "contents"),
    [
        # A text of another model loses its signature, and an empty one its place.
        ([answer(TextPart(text="so", **FOREIGN), TextPart(text="", **FOREIGN))], [said({"text": "so"})]),
        # Only the first call of a foreign step gets the stand-in signature.
        (
            [answer(SO, ToolCallPart(name="look", **FOREIGN), CALLED)],
            [said({"text": "so"}, {**CALL, "thoughtSignature": b64(DUMMY_SIGNATURE)}, CALL)],
        ),
        # Thoughts and grounding stay here, and a message with nothing to say is left out.
        ([answer(TextPart(text="hm", is_thought=True), SO, GroundingPart(queries=("q",)))], [said({"text": "so"})]),
        ([prompt("a"), answer(TextPart(text="")), prompt("b")], [user({"text": "a"}, {"text": "b"})]),
        # A picture without its own signature moves to the user turn that follows, or to one of its own.
        ([answer(image()), answer(SO)], [user(BLOB), said({"text": "so"})]),
        *(
            (
                [prompt("draw"), answer(SO, picture), prompt("redder")],
                [user({"text": "draw"}), said({"text": "so"}), user(BLOB, {"text": "redder"})],
            )
            for picture in (image(), image(thought_signature=SIGNATURE, signed_by=PRO.id))
        ),
    ],
)
def test_a_conversation_is_written(messages: list[PromptMessage], contents: list[Wire]) -> None:
    for by in (FLASH, PAINTER):
        assert to_wire(by, messages, {"a": DATA}) == contents


def test_a_picture_never_comes_between_a_call_and_its_result() -> None:
    def kinds(content: Wire) -> list[str]:
        return [name for part in content["parts"] for name in part]

    moved = to_wire(FLASH, [answer(image(), CALLED), results(ToolResultPart(name="look"))], {"a": DATA})
    assert kinds(moved[1]) == ["functionResponse", "inlineData"]
    # A tool's pictures follow all results for a model that cannot take them inside.
    old = FLASH.model_copy(update={"has_image_tool_results": False})
    calls = answer(ToolCallPart(name="one"), ToolCallPart(name="two"))
    told = results(ToolResultPart(name="one", images=(image(),)), ToolResultPart(name="two"))
    contents = to_wire(old, [calls, told, prompt("and?")], {"a": DATA})
    assert kinds(contents[1]) == ["functionResponse", "functionResponse", "inlineData"]
    assert contents[2] == user({"text": "and?"})


# What comes off it.


def response(*parts: Wire, usage: Wire | None = None, **candidate: Any) -> types.GenerateContentResponse:
    content = said(*parts) if parts else {"role": "model"}
    body: Wire = {"candidates": [{"content": content, **candidate}]}
    if usage is not None:
        body["usageMetadata"] = usage
    return types.GenerateContentResponse.model_validate(body)


def last_chunk(by: ModelEntry, *responses: types.GenerateContentResponse) -> CompletionChunk:
    reader = AnswerReader(by)
    for each in responses:
        list(reader.read(each))
    return list(reader.end())[-1]


PICTURE = {"inlineData": {"mimeType": "image/png", "data": b64(b"x")}}


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
    # The same words asked of the web and of its pictures are two queries.
    late = {
        **{"webSearchQueries": ["fox"], "imageSearchQueries": ["red fox", "fox"], "groundingChunks": [web, seen]},
        "searchEntryPoint": {"renderedContent": html},
    }
    reader = AnswerReader(FLASH)
    [said_first] = reader.read(response({"text": "so"}, groundingMetadata=early))
    assert isinstance(said_first, CompletionChunk)
    assert said_first.part == SO
    assert not list(reader.read(response(finishReason="STOP", groundingMetadata=late)))
    grounding, end = reader.end()
    sources = [Source(title=f"{name}.example", url=f"https://{name}.example/{n}") for name, n in (("a", 1), ("b", 2))]
    queries = ("fox", "red fox")
    assert grounding.part == GroundingPart(queries=queries, sources=tuple(sources), suggestions_html=html)
    assert (end.usage, end.finish_reason) == (TokenUsage(search_queries=3), "STOP")


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


# Embeddings.

EMBEDDING = CATALOGUE.model(ModelRole.EMBEDDING, "gemini")


@asynccontextmanager
async def connected(url: str, **settings: Any) -> AsyncIterator[GeminiEmbedder]:
    async with aclosing(GeminiConnection(GEMINI_KEY, base_url=url)) as connection:
        yield GeminiEmbedder(connection, EMBEDDING, **settings)


@pytest.fixture
async def embedder(server: GeminiServer) -> AsyncIterator[GeminiEmbedder]:
    async with connected(server.url) as made:
        yield made


async def failure(kind: type[AivistaError], url: str, *texts: str, **settings: Any) -> AivistaError:
    """Return what embedding at this address ends with."""
    async with connected(url, **settings) as embedder:
        with pytest.raises(kind) as caught:
            await embedder.embed(texts or ("a fox",))
    assert GEMINI_KEY not in caught.value.info.model_dump_json()
    return caught.value


async def test_each_text_becomes_one_vector_of_length_1_in_order(
    server: GeminiServer, embedder: GeminiEmbedder
) -> None:
    assert (await embedder.embed([])).vectors == []
    assert server.requests == []
    fox, crow, again = (await embedder.embed(["a red fox", "三只乌鸦", "a red fox"])).vectors
    [request] = server.requests
    assert (request.model, request.method) == ("gemini-embedding-2", "batchEmbedContents")
    assert (embedder.model_id, embedder.dimension) == (EMBEDDING.id, 768)
    assert [len(vector) for vector in (fox, crow, again)] == [768] * 3
    assert all(math.hypot(*vector) == pytest.approx(1.0) for vector in (fox, crow, again))
    assert fox == again
    assert sum(one * other for one, other in zip(fox, crow, strict=True)) < 0.9


async def test_many_texts_go_in_hundreds_and_come_back_in_order_and_are_counted(
    server: GeminiServer, embedder: GeminiEmbedder
) -> None:
    texts = [f"text number {number}" for number in range(205)]
    vectors = (await embedder.embed(texts)).vectors
    assert [len(request.normal["requests"]) for request in server.requests] == [100, 100, 5]
    [last] = (await embedder.embed(texts[-1:])).vectors
    assert vectors[-1] == last
    assert len({tuple(vector) for vector in vectors}) == 205
    assert (await embedder.embed(["a fox"] * 101)).usage == TokenUsage(prompt_tokens=2 * 101)


def vectors(*values: list[float]) -> dict[str, Any]:
    return {"embeddings": [{"values": one} for one in values]}


@each_case(
    ("status", "body", "code"),
    [
        (429, quota_body("minute", retry_s=7), ErrorCode.RATE_LIMITED),
        (400, error_body(400, f"bad thing with {GEMINI_KEY}"), ErrorCode.REQUEST_REJECTED),
        (200, b"<html>", ErrorCode.ANSWER_UNREADABLE),
        *((200, body, ErrorCode.EMPTY_ANSWER) for body in ({}, {"embeddings": [{}] * 2}, vectors([1.0] * 768))),
        *((200, vectors(*[one] * 2), ErrorCode.EMPTY_ANSWER) for one in ([1.0] * 5, [0.0] * 768)),
    ],
)
async def test_each_failure_has_its_own_sentence_without_the_key_and_is_not_tried_twice(
    status: int, body: dict[str, Any] | bytes, code: ErrorCode
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Some\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    with broken.speaking(head.encode() + data, once=True) as url:
        assert (await failure(AivistaError, url, "a fox", "a crow")).code is code


async def test_a_server_that_is_not_there_or_silent_is_given_up_and_a_cancelled_call_ends_at_once() -> None:
    with broken.refusing() as url:
        assert (await failure(NetworkFailure, url)).code is ErrorCode.CONNECTION_FAILED
    with broken.silent() as (url, asked):
        assert (await failure(ProviderFailure, url, timeout_s=0.05)).code is ErrorCode.PROVIDER_TIMEOUT
        asked.clear()
        async with connected(url) as embedder:
            call = asyncio.create_task(embedder.embed(["a fox"]))
            await asyncio.to_thread(asked.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call


# What a key is good for.

ROLES = (ModelRole.FLASH, ModelRole.THINKING, ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)
MODELS = [CATALOGUE.model(role, "gemini") for role in ROLES]


@pytest.fixture
async def connection(server: GeminiServer) -> AsyncIterator[GeminiConnection]:
    async with aclosing(GeminiConnection(GEMINI_KEY, base_url=server.url)) as opened:
        yield opened


def of(diagnosis: KeyDiagnosis, role: ModelRole) -> ErrorCode | None:
    standing = next(one for one in diagnosis.models if one.role is role)
    return standing.problem.code if standing.problem else None


async def test_a_good_key_is_tried_with_one_token_of_each_model_and_no_picture(
    server: GeminiServer, connection: GeminiConnection
) -> None:
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.is_whole
    assert [(one.model_id, one.is_tried) for one in diagnosis.models] == [(model.id, True) for model in MODELS]
    assert sorted(request.model for request in server.requests) == sorted(model.id for model in MODELS)
    assert {request.config["maxOutputTokens"] for request in server.requests} == {1}
    assert server.violations == []


async def test_the_list_alone_costs_no_call_and_finds_what_is_not_offered(
    server: GeminiServer, connection: GeminiConnection
) -> None:
    server.withhold(PRO.id)
    diagnosis = await check_key(connection, MODELS, tries_models=False)
    assert of(diagnosis, ModelRole.IMAGE_PRO) is ErrorCode.MODEL_NOT_OFFERED
    assert of(diagnosis, ModelRole.IMAGE_FLASH) is None
    assert not any(one.is_tried for one in diagnosis.models)
    assert server.requests == []


_NO_BILLING = quota_body("day", limit=0, model=PRO.id)


@each_case(
    ("body", "code", "is_usable"),
    [
        (_NO_BILLING, ErrorCode.BILLING_REQUIRED, False),
        (quota_body("day", limit=100, model=PRO.id), ErrorCode.QUOTA_EXHAUSTED, False),
        (quota_body("minute"), ErrorCode.RATE_LIMITED, True),
        (error_body(404, f"models/{PRO.id} is not found for API version v1beta"), ErrorCode.MODEL_NOT_OFFERED, False),
        (error_body(403, "The caller does not have permission"), ErrorCode.KEY_FORBIDDEN, False),
        (error_body(503, "This model is currently experiencing high demand."), ErrorCode.OVERLOADED, True),
        (error_body(500, "An internal error has occurred."), ErrorCode.PROVIDER_ERROR, True),
        (error_body(400, "Model does not support the requested response modalities"), None, True),
    ],
)
async def test_what_stands_in_the_way_of_one_model_is_found_by_trying_it(
    server: GeminiServer, connection: GeminiConnection, body: Any, code: ErrorCode | None, is_usable: bool
) -> None:
    server.clear()
    server.deny_model(PRO.id, body)
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.problem is None
    assert of(diagnosis, ModelRole.IMAGE_PRO) is code
    assert [of(diagnosis, role) for role in ROLES[:3]] == [None, None, None]
    assert (diagnosis.why_not(PRO.id) is None) is is_usable
    assert diagnosis.why_not("gemini-nobody") is None


_LOCATION = error_body(400, "User location is not supported for the API use.")
_LOCATION["error"]["status"] = "FAILED_PRECONDITION"


# What a body means is in the tables of `test_endings`.
@each_case(
    ("body", "code"),
    [
        (key_body("CONSUMER_SUSPENDED", f"Consumer 'api_key:{GEMINI_KEY}' is suspended."), ErrorCode.KEY_SUSPENDED),
        (_LOCATION, ErrorCode.REGION_UNSUPPORTED),
        (error_body(407, "Proxy Authentication Required"), ErrorCode.PROXY_FAILED),
    ],
)
async def test_what_is_wrong_with_the_key_itself_is_told_once_and_without_it(
    server: GeminiServer, connection: GeminiConnection, body: Any, code: ErrorCode
) -> None:
    server.clear()
    server.deny_key(body)
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.problem is not None
    assert diagnosis.problem.code is code
    assert diagnosis.models == ()
    assert GEMINI_KEY not in diagnosis.model_dump_json()
    assert "?" not in diagnosis.problem.message
    assert server.requests == []


async def test_a_fault_of_the_key_that_only_a_call_finds_is_told_once_and_a_network_that_is_down_greys_nothing(
    server: GeminiServer, connection: GeminiConnection
) -> None:
    for model in MODELS:
        server.deny_model(model.id, _LOCATION)
    refused = await check_key(connection, MODELS, tries_models=True)
    assert refused.problem is not None
    assert refused.problem.code is ErrorCode.REGION_UNSUPPORTED
    with broken.refusing() as url:
        async with aclosing(GeminiConnection(GEMINI_KEY, base_url=url)) as nowhere:
            lost = await check_key(nowhere, MODELS, tries_models=True)
    assert lost.problem is not None
    assert lost.problem.code is ErrorCode.CONNECTION_FAILED
    assert lost.why_not(PRO.id) is None


class KeyDesk:
    """A desk on the strict server, its clock in the test's hands."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.now_s = 0.0
        self.asked: list[bool] = []
        self.desk = KeyStatusCache(CATALOGUE, self._check, lambda: self.now_s)

    async def _check(self, key: SecretStr, models: Sequence[ModelEntry], /, *, tries_models: bool) -> KeyDiagnosis:
        self.asked.append(tries_models)
        async with aclosing(GeminiConnection(key.get_secret_value(), base_url=self.url)) as connection:
            return await check_key(connection, models, tries_models=tries_models)

    def why_not(self, key: SecretStr, model: str) -> ErrorInfo | None:
        """Return what is known to stand in the way of a model."""
        known = self.desk.known(key)
        assert known is not None
        return known.why_not(model)


async def test_what_a_test_found_is_known_for_an_hour_and_only_of_that_key(server: GeminiServer) -> None:
    held, key = KeyDesk(server.url), SecretStr(GEMINI_KEY)
    server.deny_model(PRO.id, _NO_BILLING)
    assert held.desk.known(key) is None
    tested = await held.desk.test(key)
    assert held.desk.known(key) == tested == await held.desk.listed(key)
    assert held.asked == [True]
    assert held.desk.known(SecretStr("another")) is None
    assert held.desk.known(None) is None
    held.now_s = 3601
    assert held.desk.known(key) is None
    assert (await held.desk.listed(key)).why_not(PRO.id) is None
    assert held.asked == [True, False]
    assert GEMINI_KEY not in repr(vars(held.desk))


async def test_a_network_that_failed_is_asked_again_the_next_time(server: GeminiServer) -> None:
    held, key = KeyDesk(server.url), SecretStr(GEMINI_KEY)
    server.deny_key(error_body(407, "Proxy Authentication Required"))
    assert (await held.desk.test(key)).problem is not None
    assert held.desk.known(key) is None
    server.clear()
    assert (await held.desk.listed(key)).problem is None


def test_what_a_turn_finds_of_a_key_is_remembered_and_of_a_model_forgotten_as_soon_as_that_one_answers() -> None:
    held, key, roles = (
        KeyDesk("http://127.0.0.1:9"),
        SecretStr(GEMINI_KEY),
        (ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO),
    )
    busy = ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Pro"})
    assert not held.desk.record_failure(key, busy, roles)
    assert held.desk.known(key) is None
    billing = ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": "Flash"})
    assert held.desk.record_failure(key, billing, roles)
    assert held.why_not(key, PAINTER.id) == billing
    # The text model is called Flash as well.
    assert held.why_not(key, FLASH.id) is None
    assert held.desk.record_failure(key, billing.model_copy(update={"parameters": {"model": "Pro"}}), roles)
    assert held.why_not(key, PRO.id) is not None
    assert held.why_not(key, PAINTER.id) == billing
    assert not held.desk.clear(key, ())
    assert not held.desk.clear(key, [FLASH.id])
    assert held.desk.clear(key, [FLASH.id, PRO.id])
    assert (held.why_not(key, PRO.id), held.why_not(key, PAINTER.id)) == (None, billing)
    assert not held.desk.clear(key, [PRO.id])
    assert held.desk.record_failure(key, ErrorInfo(code=ErrorCode.KEY_LEAKED), roles)
    assert held.why_not(key, FLASH.id) is not None
    assert held.desk.clear(key, [PRO.id])
    assert held.desk.known(key) is None
    assert not held.desk.clear(key, [PRO.id])
    assert not held.desk.record_failure(SecretStr("other"), ErrorInfo(code=ErrorCode.BILLING_REQUIRED), roles)
