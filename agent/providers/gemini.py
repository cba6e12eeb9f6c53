"""Gemini's text and image models through Google's SDK: the call.

Importing this module loads the SDK (about half a second), so the studio imports it when the first key is used.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from google.genai import types

from agent.errors import AivistaError
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.providers.gemini_answer import AnswerReader, ArrivedPicture
from agent.providers.gemini_connection import GeminiCall, GeminiConnection
from agent.providers.gemini_embeddings import GeminiEmbedder
from agent.providers.gemini_key_check import check_key
from agent.providers.gemini_wire import Wire, chat_settings, image_settings, pictures_to_send, to_wire
from agent.providers.key_check import KeyDiagnosis

# The SDK insists on contents of its own; ours replace them in the body.
_PLACEHOLDER = "-"


class GeminiProvider:
    """Gemini's text, image and embedding models behind one key.

    Connections are kept alive until `aclose`, and belong to the event loop of the first call. A generator that is
    closed or cancelled ends its request at once. Nothing is tried twice here.
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
    ) -> None:
        self._connection = GeminiConnection(api_key, base_url=base_url, api_version=api_version)
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
        """Stream the image model's answer; a picture is in the store before its chunk is given."""
        settings = image_settings(request)
        # Without a deadline of its own the server may give up before the picture is ready.
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
        config = _config({"contents": to_wire(model, messages, picture_bytes), **settings}, headers)
        call = GeminiCall(read_timeout_s)
        reader = AnswerReader(model, call.events)
        responses = await models.generate_content_stream(model=model.id, contents=_PLACEHOLDER, config=config)
        try:
            while (response := await self._next(responses, call, model)) is not None:
                for piece in reader.read(response):
                    yield await self._stored(piece, model) if isinstance(piece, ArrivedPicture) else piece
            if (draft := reader.only_draft()) is not None:
                yield await self._stored(draft, model)
            for chunk in reader.end():
                yield self._cleaned(chunk)
        except AivistaError:
            # A cut answer was billed as far as it came.
            if reader.usage is not None:
                yield CompletionChunk(usage=reader.usage)
            raise
        finally:
            # Closing the SDK's outermost generator leaves the inner ones, and the connection, to the garbage collector.
            if call.response is not None:
                await call.response.aclose()

    async def _next(
        self, responses: AsyncIterator[types.GenerateContentResponse], call: GeminiCall, model: ModelEntry
    ) -> types.GenerateContentResponse | None:
        return await self._connection.attend(anext(responses, None), call, model)

    async def _stored(self, picture: ArrivedPicture, model: ModelEntry) -> CompletionChunk:
        image = await self._pictures.write(picture.data, picture.mime_type, ImageOrigin.GENERATED)
        signature = picture.thought_signature
        signed = {"thought_signature": signature, "signed_by": model.id if signature else None}
        return CompletionChunk(part=image.model_copy(update=signed))

    def _cleaned(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk with a failure's texts, which are the API's or the model's own, free of the key."""
        if chunk.error is None:
            return chunk
        return chunk.model_copy(update={"error": self._connection.cleaned(chunk.error)})


def _config(body: Wire, headers: dict[str, str]) -> types.GenerateContentConfigDict:
    return {
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
        # The body as it is to be sent; what the SDK builds of its own arguments is overwritten by it.
        "http_options": {"extra_body": body, "headers": headers},
    }
