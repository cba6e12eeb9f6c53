"""Any server that speaks OpenAI's API, through its SDK: DeepSeek, Ollama, vLLM, llama.cpp, OpenAI itself.

Importing this module loads the SDK, an extra of the distribution, so the studio imports it when such a server is
first used.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import httpx2
import openai

from agent.errors import AivistaError, Charge, ErrorCode, ErrorInfo
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration, pictures_to_send
from agent.providers.catalogue import ModelEntry
from agent.providers.http_failures import (
    LIMITS,
    Asked,
    Endpoint,
    close_with_body,
    in_sentence,
    info_without_keys,
    is_web_page,
    may_have_been_charged,
    netloc,
    rate_limited,
    retry_after_s,
    status_failure,
    timeouts,
    transport_failure,
    trusted,
    unexplained,
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
from agent.providers.openai_wire import Wire, chat_body, image_body, image_files, pictures_to_show
from agent.settings import OpenAISettings

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
        wanted = pictures_to_send(messages) if model.has_vision else {}
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
                options={"timeout": timeouts(asked.read_timeout_s)},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header that holds the key.
            raise as_ours(error, asked) from None
        content_type = answer.response.headers.get("content-type", "").partition(";")[0]
        if content_type in ("text/html", "application/json"):
            await answer.close()
            raise _not_a_stream(content_type, asked)
        return answer

    async def _next(self, answer: openai.AsyncStream[object], asked: Asked) -> Wire | None:
        try:
            event = await anext(answer, None)
        except Exception as error:
            raise as_ours(error, asked) from None
        if event is None or (isinstance(event, dict) and event.get("object") != "error"):
            return event
        failure = _event_failure(event, asked)
        # Reports of an exception may show local variables, and what a server says may quote a key.
        del event
        raise failure

    async def _ask_for_picture(
        self, asked: Asked, body: dict[str, str | int], files: list[tuple[str, tuple[str, bytes, str]]]
    ) -> Wire:
        client, _ = self._open(asked.endpoint)
        headers = {"Content-Type": "multipart/form-data"} if files else {}
        options: Any = {"timeout": timeouts(asked.read_timeout_s), "headers": headers}
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
            async with http.stream("GET", url, timeout=timeouts(asked.read_timeout_s)) as response:
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
            verify=trusted(), limits=LIMITS, event_hooks={"request": [dress], "response": [close_with_body]}
        )
        # The SDK wants a key where a local server needs none; the header is ours.
        client = openai.AsyncOpenAI(api_key="-", base_url=endpoint.base_url, max_retries=0, http_client=http)
        self._clients[endpoint] = client, http
        return client, http


def _endpoint_of_words(settings: OpenAISettings) -> Endpoint:
    return Endpoint(
        base_url=settings.base_url,
        service=netloc(settings.base_url),
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
        service=netloc(base_url),
        api="OpenAI API",
        key=settings.image_api_key if has_own_key else settings.api_key,
        url_variable="AIVISTA_OPENAI_IMAGE_BASE_URL" if has_own else "AIVISTA_OPENAI_BASE_URL",
        key_variable="AIVISTA_OPENAI_IMAGE_API_KEY" if has_own_key else "AIVISTA_OPENAI_API_KEY",
    )


# ---- what goes wrong: no text of it holds a key


# What such servers call a refusal by policy, a conversation that is too long, a picture that is no good.
_BLOCKING = re.compile(r"content_?(policy|filter)|moderation|safety", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|exceeds? the (available )?context", re.IGNORECASE
)
_BAD_PICTURE = re.compile(r"invalid_image|image_parse_error|unsupported image|could not (load|process) image", re.I)


def as_ours(error: Exception, asked: Asked) -> AivistaError:
    """Return the failure that stands for the SDK's or its HTTP client's."""
    match error:
        case openai.APIStatusError():
            return _from_status(error.status_code, error, error.response.headers, asked)
        case openai.APIConnectionError():
            cause = error.__cause__
            return transport_failure(cause if isinstance(cause, Exception) else error, asked)
        case openai.APIResponseValidationError():
            return asked.failure(ErrorCode.ANSWER_UNREADABLE, f"{type(error).__name__}: {error}")
        case openai.APIError():
            # The server gave up in the middle of its answer and says why in an event.
            status = _status_of(error.code)
            if status is None:
                return unexplained(_said(error), asked)
            return may_have_been_charged(_from_status(status, error, {}, asked))
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return transport_failure(error, asked)
        case _:
            # What came was not what the API sends: it could not be read.
            return asked.failure(ErrorCode.ANSWER_UNREADABLE, f"{type(error).__name__}: {error}")


def _event_failure(event: object, asked: Asked) -> AivistaError:
    """Return the failure that an event of a stream stands for: it tells one, or is none that can be read."""
    if not isinstance(event, dict):
        return as_ours(ValueError(f"an event is {type(event).__name__}"), asked)
    said, status = str(event.get("message") or ""), _status_of(event.get("code"))
    failure = status_failure(status, said, {}, asked) if status else None
    return may_have_been_charged(failure) if failure else unexplained(said, asked)


def _wrong_path(said: str, asked: Asked) -> AivistaError:
    """Return that the server does not offer what was asked for at its address: most addresses end in /v1."""
    told = {"address": asked.endpoint.address, "path": asked.path, "variable": asked.endpoint.url_variable}
    return asked.failure(ErrorCode.WRONG_PATH, said, **told)


def _not_a_stream(content_type: str, asked: Asked) -> AivistaError:
    """Return the failure of a server that answered something else than a stream of events."""
    if content_type == "text/html":
        return wrong_address(200, "", asked)
    return may_have_been_charged(_wrong_path(f"it answers with {content_type}", asked))


def _from_status(status: int, error: openai.APIError, headers: Mapping[str, str], asked: Asked) -> AivistaError:
    said, code = _said(error), f"{error.code or ''} {error.type or ''}"
    if 400 <= status < 500 and _BLOCKING.search(code):
        blocked = ErrorCode.PICTURE_BLOCKED if asked.paints else ErrorCode.PROMPT_BLOCKED
        refused = asked.failure(blocked, said, reason=(error.code or error.type or "")[:60])
        # A request that is refused with an HTTP status was not worked on.
        refused.info = refused.info.model_copy(update={"charge": Charge.NO})
        return refused
    if status == 402 or (status == 429 and "insufficient_quota" in code):
        told = {"model": asked.model.label, "console": asked.endpoint.service}
        return asked.failure(ErrorCode.BILLING_REQUIRED, said, **told)
    if status == 429:
        hint_s = retry_after_s(headers)
        return rate_limited(_hint_in(said) if hint_s is None else hint_s, said, asked)
    by_status = status_failure(status, said, headers, asked)
    if by_status is not None:
        return by_status
    if is_web_page(said):
        return wrong_address(status, said, asked)
    if status == 401 or "invalid_api_key" in code:
        return asked.failure(ErrorCode.KEY_INVALID, said, console=asked.endpoint.key_variable)
    if status == 403:
        told = {"model": asked.model.id, "console": asked.endpoint.service}
        return asked.failure(ErrorCode.KEY_FORBIDDEN, said, **told)
    return _rejection(status, said, code, asked)


def _rejection(status: int, said: str, code: str, asked: Asked) -> AivistaError:
    """Return why the server took the key and refused the request."""
    whole = f"{said} {code}"
    if status == 404 and "model" in whole.lower():
        told = {"model": asked.model.id, "variable": asked.model_variable}
        return asked.failure(ErrorCode.MODEL_NOT_FOUND, said, **told)
    if status in (404, 405):
        return _wrong_path(said, asked)
    if _TOO_LONG.search(whole):
        return asked.failure(ErrorCode.CONTEXT_TOO_LONG, said, model=asked.model.label)
    if _BAD_PICTURE.search(whole):
        return asked.failure(ErrorCode.PICTURE_REJECTED, said)
    return asked.failure(ErrorCode.REQUEST_REJECTED, said, detail=in_sentence(said, asked))


def _status_of(code: object) -> int | None:
    """Return the HTTP status an error in a stream stands for, or None when it names none."""
    text = str(code)
    return int(text) if text.isdigit() and 400 <= int(text) < 600 else None


def _said(error: openai.APIError) -> str:
    body = error.body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error")
        return said if isinstance(said, str) else str(said or body)
    return body if isinstance(body, str) and body else error.message


def _hint_in(said: str) -> float | None:
    hint = re.search(r"try again in (\d{1,9}(?:\.\d+)?) ?(ms|s)\b", said)
    return float(hint[1]) / (1000 if hint[2] == "ms" else 1) if hint is not None else None
