"""Any server with OpenAI's API: DeepSeek, Ollama, vLLM, llama.cpp, OpenAI itself.

OpenAI's SDK is not used: only its reading of events would remain, since such servers do not need its headers, types and
retries.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import httpx2

from agent.errors import AivistaError, Charge, ErrorCode, ErrorInfo
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration, pictures_to_send
from agent.providers.catalogue import JsonMode, ModelEntry
from agent.providers.http_failures import (
    LIMITS,
    Endpoint,
    EventReader,
    ProviderCall,
    close_with_body,
    in_sentence,
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
    without_keys,
    wrong_address,
)
from agent.providers.openai_answer import ArrivedPicture, ChatReader, picture_of, read_picture, usage_from_wire
from agent.providers.openai_wire import Wire, chat_body, image_body, image_files, pictures_to_show
from agent.settings import OpenAISettings

_MAX_PICTURE_BYTES = 100 << 20
# A server may leave its answer open after the end; closing an answer early costs the connection.
_END_S = 0.5

T = TypeVar("T")


class OpenAIProvider:
    """A text model at `/chat/completions`, and an image model at `/images/generations` and `/images/edits`.

    A feature that a server rejects is no longer used with that model: tools and the answer's schema are then described
    in the prompt, and a field is renamed or left out.

    Connections are kept alive until `aclose`, and belong to the event loop of the first call. Closing or cancelling a
    generator ends its request at once. Nothing is retried here, except without rejected features, and no redirect is
    followed.
    """

    def __init__(
        self,
        settings: OpenAISettings,
        pictures: PictureBytes,
        *,
        text_timeout_s: float = 60,
        image_timeout_s: float = 300,
    ) -> None:
        self._talker, self._painter = _endpoints(settings)
        self._keys = [key for key in (settings.api_key, settings.image_api_key) if key is not None]
        self._pictures = pictures
        self._text_timeout_s = text_timeout_s
        self._image_timeout_s = image_timeout_s
        self._clients: dict[Endpoint, httpx2.AsyncClient] = {}
        # By model id, the fields of features that the model turned out not to have.
        self._missing: dict[str, dict[str, Any]] = {}

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
        call = ProviderCall(
            self._talker, model, "AIVISTA_OPENAI_TEXT_MODEL", self._text_timeout_s, self._keys, "/chat/completions"
        )

        async def ask(plainer: ModelEntry) -> tuple[httpx2.Response, ChatReader]:
            answer = await self._begin(call, chat_body(plainer, messages, tools, options, picture_bytes))
            return answer, ChatReader(plainer, call.endpoint.service)

        answer, reader = await self._taken(model, ask)
        async with aclosing(answer), aclosing(_events(answer)) as events:
            try:
                while (event := await self._next(events, call)) is not None:
                    for chunk in reader.read(event):
                        yield chunk
            except AivistaError:
                # A cut answer was billed up to the cut.
                if reader.usage is not None:
                    yield CompletionChunk(usage=reader.usage)
                raise
            with suppress(TimeoutError, httpx2.HTTPError):
                async with asyncio.timeout(_END_S):
                    await anext(events, None)
        for chunk in reader.end():
            yield without_keys(chunk, self._keys)

    async def generate(self, request: ImageRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Make or edit one picture; it is stored before its chunk is yielded."""
        images = pictures_to_show(request)
        data = [await self._pictures.read(image) for image in images]
        path = "/images/edits" if images else "/images/generations"
        call = ProviderCall(
            self._painter, request.model, "AIVISTA_OPENAI_IMAGE_MODEL", self._image_timeout_s, self._keys, path
        )

        async def ask(plainer: ModelEntry) -> Wire:
            body = image_body(request.model_copy(update={"model": plainer}))
            return await self._ask_for_picture(call, body, image_files(images, data, plainer.image_field))

        answer = await self._taken(request.model, ask)
        failure = _failure_in(answer, call)
        if failure is not None:
            # Exception reports show local variables, and a server's text may quote a key.
            del answer
            raise failure
        usage = usage_from_wire(answer["usage"]) if isinstance(answer.get("usage"), dict) else None
        found = read_picture(answer, call.endpoint.base_url)
        if isinstance(found, str):
            found = await self._fetch(found, call)
        if isinstance(found, ErrorInfo):
            # Without a token count, it is unknown whether it was charged.
            found = found.model_copy(update={"charge": Charge.MAYBE if usage is None else Charge.YES})
            yield without_keys(CompletionChunk(usage=usage, finish_reason="stop", error=found), self._keys)
            return
        origin = ImageOrigin.EDITED if images else ImageOrigin.GENERATED
        yield CompletionChunk(part=await self._pictures.write(found.data, found.mime_type, origin))
        yield CompletionChunk(usage=usage, finish_reason="stop")

    def embedder(self, model: ModelEntry) -> None:
        """Return None: such a server is only used for chat and pictures."""

    async def aclose(self) -> None:
        """Close the connections."""
        while self._clients:
            _, http = self._clients.popitem()
            await http.aclose()

    async def _taken(self, model: ModelEntry, ask: Callable[[ModelEntry], Awaitable[T]]) -> T:
        """Call the model, again without each feature that its server rejects, and return the result."""
        plainer = model.model_copy(update=self._missing.get(model.id))
        while True:
            try:
                return await ask(plainer)
            except AivistaError as refused:
                missing = _refused_features(refused.info.provider_detail)
                less = plainer.model_copy(update=missing)
                if less == plainer:
                    raise
                plainer, self._missing[model.id] = less, self._missing.get(model.id, {}) | missing

    async def _begin(self, call: ProviderCall, body: Wire) -> httpx2.Response:
        answer = await self._send(call, json=body)
        content_type = answer.headers.get("content-type", "").partition(";")[0]
        if content_type not in ("text/html", "application/json"):
            return answer
        # This is no stream of events.
        await answer.aclose()
        if content_type == "text/html":
            raise wrong_address(200, "", call)
        raise may_have_been_charged(_wrong_path(f"it answers with {content_type}", call))

    async def _next(self, events: AsyncIterator[str], call: ProviderCall) -> Wire | None:
        """Return the next event, or None at the end."""
        try:
            event: Wire | None = _read(await anext(events, ""))
        except Exception as error:
            raise as_ours(error, call) from None
        failure = _failure_in(event, call) if event is not None else None
        if failure is None:
            return event
        # Exception reports show local variables, and a server's text may quote a key.
        del event
        raise failure

    async def _ask_for_picture(
        self, call: ProviderCall, body: dict[str, str | int], files: list[tuple[str, tuple[str, bytes, str]]]
    ) -> Wire:
        answer = await self._send(call, **({"data": body, "files": files} if files else {"json": body}))
        try:
            await answer.aread()
            is_json = answer.headers.get("content-type", "").partition(";")[0].endswith("json")
            found = answer.json() if is_json else answer.text
        except Exception as error:
            raise as_ours(error, call) from None
        finally:
            await answer.aclose()
        if isinstance(found, str) and is_web_page(found):
            raise wrong_address(200, found, call)
        if not isinstance(found, dict):
            raise as_ours(ValueError(f"the answer is {type(found).__name__}"), call)
        return found

    async def _send(self, call: ProviderCall, **content: Any) -> httpx2.Response:
        """Return a successful answer with its body unread. Raises the matching failure for any other answer."""
        http, address = self._open(call.endpoint), f"{call.endpoint.base_url.rstrip('/')}{call.path}"
        try:
            request = http.build_request("POST", address, timeout=timeouts(call.read_timeout_s), **content)
            answer = await http.send(request, stream=True)
            if answer.is_success:
                return answer
            async with aclosing(answer):
                details = _failure_details(_json_or_text(await answer.aread()), f"HTTP {answer.status_code}")
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header with the key.
            raise as_ours(error, call) from None
        failure = _from_status(answer.status_code, details, answer.headers, call)
        del details
        raise failure

    async def _fetch(self, url: str, call: ProviderCall) -> ArrivedPicture | ErrorInfo:
        """Download the picture from an address of the same server."""
        http, data = self._open(call.endpoint), bytearray()
        try:
            async with http.stream("GET", url, timeout=timeouts(call.read_timeout_s)) as response:
                if response.status_code != 200:
                    reason = f"HTTP {response.status_code} for its file"
                    return ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason})
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > _MAX_PICTURE_BYTES:
                        return ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": "its file is too large"})
        except httpx2.HTTPError as error:
            raise as_ours(error, call) from None
        return picture_of(bytes(data))

    def _open(self, endpoint: Endpoint) -> httpx2.AsyncClient:
        if endpoint in self._clients:
            return self._clients[endpoint]

        async def dress(request: httpx2.Request) -> None:
            if endpoint.key is not None:
                request.headers["authorization"] = f"Bearer {endpoint.key.get_secret_value()}"

        # Redirects are not followed: the key would be sent to any host they name.
        http = httpx2.AsyncClient(
            verify=trusted(),
            limits=LIMITS,
            headers={"accept": "application/json, text/event-stream"},
            event_hooks={"request": [dress], "response": [close_with_body]},
        )
        self._clients[endpoint] = http
        return http


async def _events(answer: httpx2.Response) -> AsyncGenerator[str, None]:
    """Yield the data of each complete event, until the stream ends."""
    reader = EventReader()
    async for piece in answer.aiter_bytes():
        for event in reader.feed(piece):
            yield event.decode()


def _read(event: str) -> Any:
    """Return the parsed event; None for the end."""
    return json.loads(event) if event and not event.startswith("[DONE]") else None


def _endpoints(settings: OpenAISettings) -> tuple[Endpoint, Endpoint]:
    """Return the servers for words and for pictures; a separate address never gets the other server's key."""
    words = pictures = Endpoint(
        base_url=settings.base_url,
        service=netloc(settings.base_url),
        api="OpenAI API",
        key=settings.api_key,
        url_variable="AIVISTA_OPENAI_BASE_URL",
        key_variable="AIVISTA_OPENAI_API_KEY",
    )
    url, key = settings.image_base_url, settings.image_api_key
    if url is not None:
        variable = "AIVISTA_OPENAI_IMAGE_BASE_URL"
        pictures = replace(pictures, base_url=url, service=netloc(url), url_variable=variable)
    if url is not None or key is not None:
        pictures = replace(pictures, key=key, key_variable="AIVISTA_OPENAI_IMAGE_API_KEY")
    return words, pictures


# ---- failures: no text of them contains a key


_UNKNOWN = r"((parameter|argument|field)s?( not supported| supplied)?|extra_forbidden\W+loc\W+body)\W+"
# Error messages for a feature that a model, or the way it is served, does not have.
_FEATURES: tuple[tuple[re.Pattern[str], dict[str, Any]], ...] = (
    (
        re.compile(
            r"not support (tools?|functions?)\b|(tool|function) call(s|ing)?\W+(is|are) not (supported|enabled)"
            r"|param: tools|tools param|tool choice requires|support tool use",
            re.IGNORECASE,
        ),
        {"has_tools": False},
    ),
    (re.compile(r"response_format", re.IGNORECASE), {"json_mode": JsonMode.NONE, "has_response_format": False}),
    (re.compile("stream_options"), {"has_stream_usage": False}),
    # OpenAI's newer models accept only this name for the limit, most servers only the older one.
    (re.compile("max_completion_tokens"), {"limit_field": "max_completion_tokens"}),
    # Most take pictures in the field `image[]`, some only in `image`.
    (
        re.compile(
            r"(required|missing)\W+(\w+\W+){0,2}image\b(?!\[)|\bimage\b(?!\[)\W+(\w+\W+){0,3}(required|missing)",
            re.IGNORECASE,
        ),
        {"image_field": "image"},
    ),
    # xAI's image models take the ratio, others nothing. A size that a model does not offer is a different error.
    (re.compile(_UNKNOWN + r"size\b", re.IGNORECASE), {"size_field": "aspect_ratio"}),
    (re.compile(_UNKNOWN + r"aspect_ratio\b", re.IGNORECASE), {"size_field": ""}),
)
# Error messages for a refusal by policy, a conversation that is too long, and an invalid picture.
_BLOCKING = re.compile(r"content_?(policy|filter)|moderation|safety", re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context_length_exceeded|maximum context length|exceeds? the (available )?context", re.IGNORECASE
)
_BAD_PICTURE = re.compile(r"invalid_image|image_parse_error|unsupported image|could not (load|process) image", re.I)
# Error messages of models without vision; some servers report them as an internal error.
_NO_VISION = re.compile(
    r"image input is not supported|not a multimodal model|at most 0 image|not support images"
    r"|unknown variant .?image_url|image_url is only supported by",
    re.IGNORECASE,
)


def _refused_features(message: str) -> dict[str, Any]:
    """Return the model fields to change for the features that the server rejects."""
    missing: dict[str, Any] = {}
    for pattern, fields in _FEATURES:
        missing |= fields if pattern.search(message) else {}
    return missing


def as_ours(error: Exception, call: ProviderCall) -> AivistaError:
    """Return our failure for an error of the HTTP client or for an unreadable answer."""
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return transport_failure(error, call)
    # The answer did not have the API's form.
    return call.failure(ErrorCode.ANSWER_UNREADABLE, f"{type(error).__name__}: {error}")


class _FailureDetails(NamedTuple):
    """What a server reports about a failure: message, code and type."""

    message: str
    code: str
    kind: str


def _failure_details(body: object, otherwise: str) -> _FailureDetails:
    """Return the details in an error body of any form; `otherwise` is the message when it has none."""
    content = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(content, dict):
        return _FailureDetails(content if isinstance(content, str) and content else otherwise, "", "")
    message = content.get("message") or content.get("detail") or content.get("error") or content
    return _FailureDetails(str(message), *(str(content.get(name) or "") for name in ("code", "type")))


def _json_or_text(body: bytes) -> object:
    text = body.decode("utf-8", "replace").strip()
    try:
        return json.loads(text)
    except ValueError:
        return text


def _failure_in(event: object, call: ProviderCall) -> AivistaError | None:
    """Return the failure in an event or answer: it reports one, or cannot be read; else None."""
    if not isinstance(event, dict):
        return as_ours(ValueError(f"an event is {type(event).__name__}"), call)
    if not event.get("error") and event.get("object") != "error":
        return None
    # The server gave up in the middle of its answer.
    details = _failure_details(event, "error")
    if not (details.code.isdigit() and 400 <= int(details.code) < 600):
        return unexplained(details.message, call)
    return may_have_been_charged(_from_status(int(details.code), details, {}, call))


def _wrong_path(message: str, call: ProviderCall) -> AivistaError:
    """Return the failure that the server does not offer this path at its address; most addresses end in /v1."""
    parameters = {"address": call.endpoint.address, "path": call.path, "variable": call.endpoint.url_variable}
    return call.failure(ErrorCode.WRONG_PATH, message, **parameters)


def _from_status(status: int, failed: _FailureDetails, headers: Mapping[str, str], call: ProviderCall) -> AivistaError:
    message, code = failed.message, f"{failed.code} {failed.kind}"
    if 400 <= status < 500 and _BLOCKING.search(code):
        blocked = ErrorCode.PICTURE_BLOCKED if call.paints else ErrorCode.PROMPT_BLOCKED
        refused = call.failure(blocked, message, reason=(failed.code or failed.kind)[:60])
        # A request refused with an HTTP status was not processed.
        refused.info = refused.info.model_copy(update={"charge": Charge.NO})
        return refused
    if status == 402 or (status == 429 and "insufficient_quota" in code):
        parameters = {"model": call.model.label, "console": call.endpoint.service}
        return call.failure(ErrorCode.BILLING_REQUIRED, message, **parameters)
    if status == 429:
        hint_s = retry_after_s(headers)
        return rate_limited(_hint_in(message) if hint_s is None else hint_s, message, call)
    if status in (400, 422, 500) and not call.paints and _NO_VISION.search(message):
        parameters = {"model": call.model.id, "variable": call.model_variable, "detail": in_sentence(message, call)}
        return call.failure(ErrorCode.MODEL_UNFIT, message, **parameters)
    by_status = status_failure(status, message, headers, call)
    if by_status is not None:
        return by_status
    if is_web_page(message):
        return wrong_address(status, message, call)
    if status == 401 or "invalid_api_key" in code:
        return call.failure(ErrorCode.KEY_INVALID, message, console=call.endpoint.key_variable)
    if status == 403:
        parameters = {"model": call.model.id, "console": call.endpoint.service}
        return call.failure(ErrorCode.KEY_FORBIDDEN, message, **parameters)
    return _rejection(status, message, code, call)


def _rejection(status: int, message: str, code: str, call: ProviderCall) -> AivistaError:
    """Return why the server accepted the key but rejected the request."""
    whole = f"{message} {code}"
    if status == 404 and "model" in whole.lower():
        parameters = {"model": call.model.id, "variable": call.model_variable}
        return call.failure(ErrorCode.MODEL_NOT_FOUND, message, **parameters)
    if status in (404, 405):
        return _wrong_path(message, call)
    if _TOO_LONG.search(whole):
        return call.failure(ErrorCode.CONTEXT_TOO_LONG, message, model=call.model.label)
    if _BAD_PICTURE.search(whole):
        return call.failure(ErrorCode.PICTURE_REJECTED, message)
    return call.failure(ErrorCode.REQUEST_REJECTED, message, detail=in_sentence(message, call))


def _hint_in(message: str) -> float | None:
    hint = re.search(r"try again in (\d{1,9}(?:\.\d+)?) ?(ms|s)\b", message)
    return float(hint[1]) / (1000 if hint[2] == "ms" else 1) if hint is not None else None
