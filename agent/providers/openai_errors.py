"""What goes wrong with a server of OpenAI's API, as our errors: no text of any holds a key."""

from __future__ import annotations

import re
from collections.abc import Mapping

import httpx2
import openai

from agent.errors import AivistaError, Charge, ErrorCode
from agent.providers.http_failures import (
    Asked,
    in_sentence,
    is_web_page,
    may_have_been_charged,
    rate_limited,
    retry_after_s,
    status_failure,
    transport_failure,
    unexplained,
    wrong_address,
)

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


def event_failure(event: object, asked: Asked) -> AivistaError:
    """Return the failure that an event of a stream stands for: it tells one, or is none that can be read."""
    if not isinstance(event, dict):
        return as_ours(ValueError(f"an event is {type(event).__name__}"), asked)
    said, status = str(event.get("message") or ""), _status_of(event.get("code"))
    failure = status_failure(status, said, {}, asked) if status else None
    return may_have_been_charged(failure) if failure else unexplained(said, asked)


def wrong_path(said: str, asked: Asked) -> AivistaError:
    """Return that the server does not offer what was asked for at its address: most addresses end in /v1."""
    told = {"address": asked.endpoint.address, "path": asked.path, "variable": asked.endpoint.url_variable}
    return asked.failure(ErrorCode.WRONG_PATH, said, **told)


def not_a_stream(content_type: str, asked: Asked) -> AivistaError:
    """Return the failure of a server that answered something else than a stream of events."""
    if content_type == "text/html":
        return wrong_address(200, "", asked)
    return may_have_been_charged(wrong_path(f"it answers with {content_type}", asked))


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
        return wrong_path(said, asked)
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
