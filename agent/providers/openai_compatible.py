"""Any server that speaks OpenAI's API, through its SDK: DeepSeek, Ollama, vLLM, llama.cpp, OpenAI itself.

Importing this module loads the SDK, an extra of the distribution, so the studio imports it when such a server is
first used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from agent.errors import AivistaError, Charge, ErrorCode, ErrorInfo
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.providers.http_failures import (
    Asked,
    Endpoint,
    close_with_body,
    info_without_keys,
    is_web_page,
    trusted,
    wrong_address,
)
from agent.providers.openai_answer import (
    ArrivedPicture,
    ChatReader,
    PictureElsewhere,
    picture_of,
    read_picture,
    usage_from_wire,
)
from agent.providers.openai_errors import as_ours, event_failure, not_a_stream
from agent.providers.openai_wire import Wire, chat_body, image_body, image_files, pictures_to_send, pictures_to_show
from agent.settings import OpenAISettings

_CONNECT_TIMEOUT_S = 10.0
# The whole body counts: reference pictures on a slow line take minutes, and Stop works all the while.
_WRITE_TIMEOUT_S = 300.0
_MAX_PICTURE_BYTES = 100 << 20
# The SDK adds headers from the environment and of its own telling about this machine; these are all that leave it.
_SENT_HEADERS = frozenset(
    {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "content-type",
        "content-length",
        "transfer-encoding",
        "user-agent",
    }
)


class OpenAIProvider:
    """A text model behind `/chat/completions`, and an image model behind `/images/generations` and `/images/edits`.

    Connections are kept alive until `aclose`, and belong to the event loop of the first call. A generator that is
    closed or cancelled ends its request at once. Nothing is tried twice here, and no redirect is followed.
    """

    def __init__(
        self,
        settings: OpenAISettings,
        pictures: PictureBytes,
        *,
        text_timeout_s: float = 60,
        image_timeout_s: float = 300,
    ) -> None:
        self._talker = _endpoint_of_words(settings)
        self._painter = _endpoint_of_pictures(settings)
        self._keys = [key for key in (settings.api_key, settings.image_api_key) if key is not None]
        self._pictures = pictures
        self._text_timeout_s = text_timeout_s
        self._image_timeout_s = image_timeout_s
        self._clients: dict[Endpoint, tuple[openai.AsyncOpenAI, httpx2.AsyncClient]] = {}

    async def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the text model's answer; see `ChatModel.stream`."""
        wanted = pictures_to_send(model, messages)
        picture_bytes = {digest: await self._pictures.read(image) for digest, image in wanted.items()}
        body = chat_body(model, messages, tools, options, picture_bytes)
        asked = Asked(
            self._talker, model, "AIVISTA_OPENAI_TEXT_MODEL", self._text_timeout_s, self._keys, "/chat/completions"
        )
        reader = ChatReader(model, asked.endpoint.service)
        answer = await self._begin(asked, body)
        try:
            while (event := await self._next(answer, asked)) is not None:
                for chunk in reader.read(event):
                    yield chunk
            for chunk in reader.end():
                yield self._told(chunk)
        except AivistaError:
            # A cut answer was billed as far as it came.
            if reader.usage is not None:
                yield CompletionChunk(usage=reader.usage)
            raise
        finally:
            await answer.close()

    async def generate(self, request: ImageRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Make or change one picture; it is in the store before its chunk is given."""
        body, images = image_body(request), pictures_to_show(request)
        files = image_files(images, [await self._pictures.read(image) for image in images])
        path = "/images/edits" if files else "/images/generations"
        asked = Asked(
            self._painter, request.model, "AIVISTA_OPENAI_IMAGE_MODEL", self._image_timeout_s, self._keys, path
        )
        answer = await self._ask_for_picture(asked, body, files)
        usage = usage_from_wire(answer["usage"]) if isinstance(answer.get("usage"), dict) else None
        found = read_picture(answer, asked.endpoint.base_url)
        if isinstance(found, PictureElsewhere):
            found = await self._fetch(found.url, asked)
        if isinstance(found, ErrorInfo):
            # Without a count of what it used, nobody can tell whether it was charged.
            found = found.model_copy(update={"charge": Charge.MAYBE if usage is None else Charge.YES})
            yield self._told(CompletionChunk(usage=usage, finish_reason="stop", error=found))
            return
        origin = ImageOrigin.EDITED if files else ImageOrigin.GENERATED
        yield CompletionChunk(part=await self._pictures.write(found.data, found.mime_type, origin))
        yield CompletionChunk(usage=usage, finish_reason="stop")

    def embedder(self, model: ModelEntry) -> None:
        """Return None: only chat and pictures are asked of such a server."""

    async def aclose(self) -> None:
        """Close the connections."""
        while self._clients:
            _, (client, _) = self._clients.popitem()
            await client.close()

    async def _begin(self, asked: Asked, body: Wire) -> openai.AsyncStream[object]:
        client, _ = self._open(asked.endpoint)
        try:
            answer = await client.post(
                asked.path,
                cast_to=object,
                body=body,
                options={"timeout": _timeout(asked)},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header that holds the key.
            raise as_ours(error, asked) from None
        content_type = answer.response.headers.get("content-type", "").partition(";")[0]
        if content_type in ("text/html", "application/json"):
            await answer.close()
            raise not_a_stream(content_type, asked)
        return answer

    async def _next(self, answer: openai.AsyncStream[object], asked: Asked) -> Wire | None:
        try:
            event = await anext(answer, None)
        except Exception as error:
            raise as_ours(error, asked) from None
        if event is None or (isinstance(event, dict) and event.get("object") != "error"):
            return event
        failure = event_failure(event, asked)
        # Reports of an exception may show local variables, and what a server says may quote a key.
        del event
        raise failure

    async def _ask_for_picture(
        self, asked: Asked, body: dict[str, str | int], files: list[tuple[str, tuple[str, bytes, str]]]
    ) -> Wire:
        client, _ = self._open(asked.endpoint)
        headers = {"Content-Type": "multipart/form-data"} if files else {}
        options: Any = {"timeout": _timeout(asked), "headers": headers}
        try:
            answer = await client.post(asked.path, cast_to=object, body=body, files=files or None, options=options)
        except Exception as error:
            raise as_ours(error, asked) from None
        if isinstance(answer, str) and is_web_page(answer):
            raise wrong_address(200, answer, asked)
        if not isinstance(answer, dict):
            raise as_ours(ValueError(f"the answer is {type(answer).__name__}"), asked)
        return answer

    async def _fetch(self, url: str, asked: Asked) -> ArrivedPicture | ErrorInfo:
        """Return the picture at an address of the same server."""
        _, http = self._open(asked.endpoint)
        data = bytearray()
        try:
            async with http.stream("GET", url, timeout=_timeout(asked)) as response:
                if response.status_code != 200:
                    reason = f"HTTP {response.status_code} for its file"
                    return ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason})
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > _MAX_PICTURE_BYTES:
                        return ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": "its file is too large"})
        except httpx2.HTTPError as error:
            raise as_ours(error, asked) from None
        return picture_of(bytes(data))

    def _told(self, chunk: CompletionChunk) -> CompletionChunk:
        if chunk.error is None:
            return chunk
        return chunk.model_copy(update={"error": info_without_keys(chunk.error, self._keys)})

    def _open(self, endpoint: Endpoint) -> tuple[openai.AsyncOpenAI, httpx2.AsyncClient]:
        if endpoint in self._clients:
            return self._clients[endpoint]

        async def dress(request: httpx2.Request) -> None:
            for name in [name for name in request.headers if name.lower() not in _SENT_HEADERS]:
                del request.headers[name]
            if endpoint.key is not None:
                request.headers["authorization"] = f"Bearer {endpoint.key.get_secret_value()}"

        # Redirects are not followed: the key would go to whatever host they name.
        http = httpx2.AsyncClient(
            verify=trusted(),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            event_hooks={"request": [dress], "response": [close_with_body]},
        )
        # The SDK wants a key where a local server needs none; the header is ours.
        client = openai.AsyncOpenAI(api_key="-", base_url=endpoint.base_url, max_retries=0, http_client=http)
        self._clients[endpoint] = client, http
        return client, http


def _endpoint_of_words(settings: OpenAISettings) -> Endpoint:
    return Endpoint(
        base_url=settings.base_url,
        service=_netloc(settings.base_url),
        api="OpenAI API",
        key=settings.api_key,
        url_variable="AIVISTA_OPENAI_BASE_URL",
        key_variable="AIVISTA_OPENAI_API_KEY",
    )


def _endpoint_of_pictures(settings: OpenAISettings) -> Endpoint:
    """Return the server that paints. One with an address of its own gets the other one's key in no case."""
    has_own = settings.image_base_url is not None
    has_own_key = has_own or settings.image_api_key is not None
    base_url = settings.image_base_url or settings.base_url
    return Endpoint(
        base_url=base_url,
        service=_netloc(base_url),
        api="OpenAI API",
        key=settings.image_api_key if has_own_key else settings.api_key,
        url_variable="AIVISTA_OPENAI_IMAGE_BASE_URL" if has_own else "AIVISTA_OPENAI_BASE_URL",
        key_variable="AIVISTA_OPENAI_IMAGE_API_KEY" if has_own_key else "AIVISTA_OPENAI_API_KEY",
    )


def _netloc(base_url: str) -> str:
    return urlsplit(base_url).netloc.rpartition("@")[2]


def _timeout(asked: Asked) -> httpx2.Timeout:
    return httpx2.Timeout(
        connect=_CONNECT_TIMEOUT_S, read=asked.read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
    )
