"""Gemini's text, image and embedding models through Google's SDK: the calls, and the check of a key.

Importing this module loads the SDK (about half a second), so the studio imports it when the first key is used.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import TypeVar

import httpx2
from google.genai import types

from agent.errors import AivistaError, ErrorCode, ErrorInfo, ProviderFailure
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage, TokenUsage
from agent.providers.base import (
    PLAIN,
    ChatOptions,
    Embedding,
    ImageRequest,
    PictureBytes,
    ToolDeclaration,
    pictures_to_send,
    signatures_to_send,
)
from agent.providers.catalogue import IMAGE_ROLES, ModelEntry
from agent.providers.gemini_connection import GeminiCall, GeminiConnection
from agent.providers.gemini_wire import AnswerReader, ArrivedPicture, Wire, chat_settings, image_settings, to_wire
from agent.providers.key_status import KeyDiagnosis, ModelStanding, diagnosed

# The SDK requires its own contents; ours replace them in the body.
_PLACEHOLDER = "-"
# The API's limit for one call.
_MOST_TEXTS = 100
T = TypeVar("T")
_CHECK_READ_S = 20.0
_CHECK_LIMIT_S = 30.0
_QUESTION = "Answer with the word OK, and paint nothing."


class GeminiProvider:
    """Gemini's text, image and embedding models behind one key.

    Connections are kept alive until `aclose`, and belong to the event loop of the first call; a given `http` client
    must be closed by its owner. Closing or cancelling a generator ends its request at once. Nothing is retried here.
    """

    def __init__(
        self,
        api_key: str,
        pictures: PictureBytes,
        *,
        base_url: str | None = None,
        api_version: str = "v1beta",
        text_timeout_s: float = 60,
        image_timeout_s: float = 300,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self._connection = GeminiConnection(api_key, base_url=base_url, api_version=api_version, http=http)
        self._pictures = pictures
        self._text_timeout_s = text_timeout_s
        self._image_timeout_s = image_timeout_s

    def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the text model's answer; see `ChatModel.stream`."""
        return self._answer(model, messages, chat_settings(model, tools, options), self._text_timeout_s, {})

    def generate(self, request: ImageRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the image model's answer; a picture is stored before its chunk is yielded."""
        settings = image_settings(request)
        # Without this deadline, the server may give up before the picture is ready.
        headers = {"X-Server-Timeout": str(math.ceil(self._image_timeout_s))}
        return self._answer(request.model, request.messages, settings, self._image_timeout_s, headers)

    def embedder(self, model: ModelEntry) -> GeminiEmbedder:
        """Return the embedding model on this provider's connections."""
        return GeminiEmbedder(self._connection, model)

    async def check(self, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
        """Return what the key can do with these models; see `KeyChecker.check`."""
        return await check_key(self._connection, models, tries_models=tries_models)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _answer(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        settings: Wire,
        read_timeout_s: float,
        headers: dict[str, str],
    ) -> AsyncGenerator[CompletionChunk, None]:
        models = self._connection.client().aio.models
        wanted = pictures_to_send(messages)
        picture_bytes = {digest: await self._pictures.read(image) for digest, image in wanted.items()}
        signatures = {digest: await self._pictures.signature(digest) for digest in signatures_to_send(messages, model)}
        known = {digest: signature for digest, signature in signatures.items() if signature is not None}
        body = {"contents": to_wire(model, messages, picture_bytes, known), **settings}
        config: types.GenerateContentConfigDict = {
            "automatic_function_calling": {"disable": True},
            "automatic_continuation": False,
            # The body as sent; it overrides what the SDK builds from its own arguments.
            "http_options": {"extra_body": body, "headers": headers},
        }
        call = GeminiCall(read_timeout_s)
        reader = AnswerReader(model, call.events)
        responses = await models.generate_content_stream(model=model.id, contents=_PLACEHOLDER, config=config)
        try:
            while (response := await self._connection.attend(anext(responses, None), call, model)) is not None:
                for piece in reader.read(response):
                    yield await self._stored(piece, model) if isinstance(piece, ArrivedPicture) else piece
            if (draft := reader.only_draft()) is not None:
                yield await self._stored(draft, model)
            for chunk in reader.end():
                yield self._connection.cleaned(chunk)
        except AivistaError:
            # A cut answer was billed up to the cut.
            if reader.usage is not None:
                yield CompletionChunk(usage=reader.usage)
            raise
        finally:
            # Closing the SDK's outermost generator leaves the inner ones, and the connection, to the garbage collector.
            if call.response is not None:
                await call.response.aclose()

    async def _stored(self, picture: ArrivedPicture, model: ModelEntry) -> CompletionChunk:
        image = await self._pictures.write(picture.data, picture.mime_type, ImageOrigin.GENERATED)
        signature = picture.thought_signature
        signed = {"thought_signature": signature, "signed_by": model.id if signature else None}
        return CompletionChunk(part=image.model_copy(update=signed))


class GeminiEmbedder:
    """The `Embedder` of one key: vectors of length 1 with `dimension` numbers.

    For short texts, the model's full 3072 numbers add little to the first 768, and take four times the space. The
    connection's owner closes it. Nothing is retried here.
    """

    def __init__(
        self, connection: GeminiConnection, model: ModelEntry, *, dimension: int = 768, timeout_s: float = 20
    ) -> None:
        self._connection = connection
        self._model = model
        self._dimension = dimension
        self._timeout_s = timeout_s

    @property
    def model_id(self) -> str:
        """The id of the model that makes the vectors."""
        return self._model.id

    @property
    def dimension(self) -> int:
        """The number of values in a vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Embedding:
        """Return one vector for each text, in order. Raises only the errors of `agent.errors`, never the SDK's.

        The token count is that of the answer's `usageMetadata`, which `gemini-embedding-2` sends; a model whose answer
        has none counts as having used none.
        """
        vectors: list[list[float]] = []
        usage = TokenUsage()
        for start in range(0, len(texts), _MOST_TEXTS):
            part = await self._batch(texts[start : start + _MOST_TEXTS])
            vectors, usage = vectors + part.vectors, usage + part.usage
        return Embedding(vectors, usage)

    async def _batch(self, texts: Sequence[str]) -> Embedding:
        models = self._connection.client().aio.models
        # A list of plain texts would become one content with many parts, and one vector for all of them.
        contents: list[types.ContentUnionDict] = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        config = types.EmbedContentConfig(output_dimensionality=self._dimension)
        call = GeminiCall(self._timeout_s)
        try:
            work = models.embed_content(model=self._model.id, contents=contents, config=config)
            answer = await self._connection.attend(work, call, self._model)
        finally:
            if call.response is not None:
                await call.response.aclose()
        vectors = [_of_length_1(embedding.values or []) for embedding in answer.embeddings or ()]
        if len(vectors) != len(texts) or any(len(vector) != self._dimension for vector in vectors):
            raise ProviderFailure(ErrorCode.EMPTY_ANSWER, provider_detail="not one vector for each text")
        usage = answer.usage_metadata
        return Embedding(vectors, TokenUsage(prompt_tokens=(usage.prompt_token_count or 0) if usage else 0))


def _of_length_1(vector: Sequence[float]) -> list[float]:
    # Only the full vector has length 1; a shortened one may not.
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else []


async def check_key(connection: GeminiConnection, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
    """Return the diagnosis of the key with these models; see `KeyChecker.check`."""
    try:
        offered = await _in_time(_offered(connection, models[0]))
    except AivistaError as error:
        return KeyDiagnosis(problem=error.info)
    standings = [_listed(model, offered) for model in models]
    if not tries_models:
        return diagnosed(standings)
    tried = (_tried(connection, model, listed) for model, listed in zip(models, standings, strict=True))
    return diagnosed(await asyncio.gather(*tried))


async def _offered(connection: GeminiConnection, like: ModelEntry) -> frozenset[str]:
    """Return the ids of all models that the API lists for the key."""
    models = connection.client().aio.models

    async def listed() -> frozenset[str]:
        pager = await models.list(config={"page_size": 1000})
        return frozenset([(one.name or "").removeprefix("models/") async for one in pager])

    return await connection.attend(listed(), GeminiCall(_CHECK_READ_S), like)


def _listed(model: ModelEntry, offered: frozenset[str]) -> ModelStanding:
    problem = None
    if model.id not in offered:
        problem = ErrorInfo(code=ErrorCode.MODEL_NOT_OFFERED, parameters={"model": model.id})
    return ModelStanding(role=model.role, model_id=model.id, label=model.label, problem=problem)


async def _tried(connection: GeminiConnection, model: ModelEntry, listed: ModelStanding) -> ModelStanding:
    if listed.problem is not None:
        return listed
    modalities = ["TEXT", "IMAGE"] if model.role in IMAGE_ROLES else ["TEXT"]
    config: types.GenerateContentConfigDict = {
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
        # Enough for an answer, and far too little for a picture, which takes more than a thousand.
        "max_output_tokens": 1,
        "response_modalities": modalities,
    }
    asked = connection.client().aio.models.generate_content(model=model.id, contents=_QUESTION, config=config)
    try:
        await _in_time(connection.attend(asked, GeminiCall(_CHECK_READ_S), model))
    except AivistaError as error:
        return _failed(listed, error.info)
    return listed.model_copy(update={"is_tried": True})


def _failed(listed: ModelStanding, error: ErrorInfo) -> ModelStanding:
    match error.code:
        case ErrorCode.MODEL_NOT_FOUND:
            error = ErrorInfo(code=ErrorCode.MODEL_NOT_OFFERED, parameters={"model": listed.model_id})
        case ErrorCode.REQUEST_REJECTED | ErrorCode.MODEL_UNFIT:
            # The question did not suit the model, but the key was accepted, as far as one can tell without a picture.
            return listed
        case _:
            pass
    return listed.model_copy(update={"problem": error, "is_tried": True})


async def _in_time(work: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(_CHECK_LIMIT_S):
            return await work
    except TimeoutError:
        parameters = {"model": "Gemini", "seconds": f"{_CHECK_LIMIT_S:g}"}
        raise ProviderFailure(ErrorCode.ANSWER_TOO_SLOW, **parameters) from None
