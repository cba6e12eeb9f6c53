"""What goes wrong with a server of OpenAI's API, as our errors: no text of any holds a key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import SecretStr

from agent.errors import (
    AivistaError,
    ContentBlocked,
    ErrorCode,
    ErrorInfo,
    KeyProblem,
    NetworkFailure,
    ProviderFailure,
    RateLimited,
    SettingsError,
)
from agent.providers.catalogue import ModelEntry

_LONGEST_DETAIL = 500
_BLOCKING = re.compile(r"content_?(policy|filter)|moderation|safety", re.IGNORECASE)
_KEYS = re.compile(r"\b(sk|gsk|pk|rk)-[\w-]{8,}|(?<=Bearer )\S+|AIza[\w-]{10,}")


@dataclass(frozen=True)
class Endpoint:
    """A server, the key that only it gets, and the variables an operator would change."""

    base_url: str
    key: SecretStr | None
    url_variable: str
    key_variable: str
    model_variable: str

    @property
    def service(self) -> str:
        """The server's name in a sentence."""
        return urlsplit(self.base_url).netloc


@dataclass(frozen=True)
class Asked:
    """What was asked of whom, for the sentence of a failure."""

    endpoint: Endpoint
    path: str
    model: ModelEntry
    read_timeout_s: float
    keys: Sequence[SecretStr]

    @property
    def paints(self) -> bool:
        """Whether a picture was asked for."""
        return self.path.startswith("/images/")


def as_ours(error: Exception, asked: Asked) -> AivistaError:
    """Return the failure that stands for the SDK's or its HTTP client's."""
    match error:
        case openai.APIStatusError():
            return _from_status(error.status_code, error, asked)
        case openai.APIConnectionError():
            return _from_connection(error.__cause__ or error, asked)
        case openai.APIError():
            # The server gave up in the middle of its answer and says why in an event.
            return _from_status(_status_of(error.code), error, asked)
        case httpx2.HTTPError():
            return _from_connection(error, asked)
        case _:
            # What came was not what the API sends: it could not be read.
            detail = without_keys(f"{type(error).__name__}: {error}", asked.keys)
            return _told(ProviderFailure, ErrorCode.ANSWER_UNREADABLE, asked, detail)


def event_failure(event: object, asked: Asked) -> AivistaError:
    """Return the failure that an event of a stream stands for: it tells one, or is none that can be read."""
    if not isinstance(event, dict):
        return as_ours(ValueError(f"an event is {type(event).__name__}"), asked)
    detail = without_keys(str(event.get("message") or ""), asked.keys)
    status = _status_of(event.get("code"))
    return _told(ProviderFailure, ErrorCode.PROVIDER_ERROR, asked, detail, status=status)


def not_a_stream(content_type: str, asked: Asked) -> AivistaError:
    """Return the failure of a server that answered something else than a stream of events."""
    problem = f"what answers there sends {content_type or 'nothing'} instead of a stream. {_HINT}"
    return SettingsError(asked.endpoint.url_variable, asked.endpoint.base_url, problem)


def without_keys(text: str, keys: Sequence[SecretStr]) -> str:
    """Return the text on one line, cut, with the keys and whatever looks like one blacked out."""
    for key in keys:
        text = text.replace(key.get_secret_value(), "[key]")
    return " ".join(_KEYS.sub("[key]", text).split())[:_LONGEST_DETAIL]


def told_without_keys(info: ErrorInfo, keys: Sequence[SecretStr]) -> ErrorInfo:
    """Return the failure of an answer, whose texts are the server's or the model's own, free of keys."""
    told = {n: without_keys(value, keys) if isinstance(value, str) else value for n, value in info.parameters.items()}
    return info.model_copy(update={"parameters": told, "provider_detail": without_keys(info.provider_detail, keys)})


_HINT = "Most addresses end in /v1"


def _from_connection(error: BaseException, asked: Asked) -> AivistaError:
    detail = without_keys(f"{type(error).__name__}: {error}", asked.keys)
    match error:
        case httpx2.ReadTimeout():
            return _timed_out(asked, detail)
        case httpx2.ConnectError() | httpx2.TimeoutException() | httpx2.ProxyError():
            return _told(NetworkFailure, ErrorCode.CONNECTION_FAILED, asked, detail)
        case httpx2.LocalProtocolError():
            return _told(ProviderFailure, ErrorCode.REQUEST_REJECTED, asked, detail, detail=detail[:200])
        case _:
            return _told(NetworkFailure, ErrorCode.STREAM_CUT, asked, detail)


def _from_status(status: int, error: openai.APIError, asked: Asked) -> AivistaError:
    detail = without_keys(_detail(error), asked.keys)
    code = f"{error.code or ''} {error.type or ''}"
    if 400 <= status < 500 and _BLOCKING.search(code):
        blocked = ErrorCode.PICTURE_BLOCKED if asked.paints else ErrorCode.PROMPT_BLOCKED
        return _told(ContentBlocked, blocked, asked, detail, reason=(error.code or error.type or "")[:60])
    match status:
        case 429 if "insufficient_quota" in code:
            return _unpaid(asked, detail)
        case 429:
            return RateLimited(_retry_after_s(error, detail), detail, service=asked.endpoint.service)
        case 402:
            return _unpaid(asked, detail)
        case 403:
            console = asked.endpoint.service
            return _told(KeyProblem, ErrorCode.KEY_FORBIDDEN, asked, detail, model=asked.model.id, console=console)
        case 404:
            return _not_found(asked, detail, code)
        case 408 | 504:
            return _timed_out(asked, detail)
        case 499:
            return _told(NetworkFailure, ErrorCode.STREAM_CUT, asked, detail)
        case 503 | 529:
            return _told(ProviderFailure, ErrorCode.OVERLOADED, asked, detail, model=asked.model.label)
        case _ if status == 401 or "invalid_api_key" in code:
            console = asked.endpoint.key_variable
            return _told(KeyProblem, ErrorCode.KEY_INVALID, asked, detail, console=console)
        case _ if 300 <= status < 400:
            problem = "it sends us on to another address. Name that one, if you trust it"
            return SettingsError(asked.endpoint.url_variable, asked.endpoint.base_url, problem)
        case _ if 400 <= status < 500:
            return _told(ProviderFailure, ErrorCode.REQUEST_REJECTED, asked, detail, detail=detail[:200])
        case _:
            return _told(ProviderFailure, ErrorCode.PROVIDER_ERROR, asked, detail, status=status)


def _not_found(asked: Asked, detail: str, code: str) -> AivistaError:
    """Return that the model is unknown, or that the server has no such path at all."""
    if "model" in f"{detail} {code}".lower():
        variable = asked.endpoint.model_variable
        told = {"model": asked.model.id, "variable": variable}
        return _told(ProviderFailure, ErrorCode.MODEL_NOT_FOUND, asked, detail, **told)
    problem = f"the server there has no {asked.path}. {_HINT}"
    return SettingsError(asked.endpoint.url_variable, asked.endpoint.base_url, problem)


def _unpaid(asked: Asked, detail: str) -> AivistaError:
    told = {"model": asked.model.label, "console": asked.endpoint.service}
    return _told(KeyProblem, ErrorCode.BILLING_REQUIRED, asked, detail, **told)


def _timed_out(asked: Asked, detail: str) -> AivistaError:
    told = {"model": asked.model.label, "seconds": f"{asked.read_timeout_s:g}"}
    return _told(ProviderFailure, ErrorCode.PROVIDER_TIMEOUT, asked, detail, **told)


def _told(kind: type[AivistaError], code: ErrorCode, asked: Asked, said: str, **parameters: str | int) -> AivistaError:
    return kind(code, provider_detail=said, service=asked.endpoint.service, **parameters)


def _status_of(code: object) -> int:
    """Return the HTTP status an error in a stream stands for; 200 was the stream's own."""
    text = str(code)
    return int(text) if text.isdigit() and 400 <= int(text) < 600 else 200


def _detail(error: openai.APIError) -> str:
    body = error.body
    if isinstance(body, dict):
        said = body.get("message") or body.get("detail") or body.get("error")
        return said if isinstance(said, str) else str(said or body)
    return body if isinstance(body, str) and body else error.message


def _retry_after_s(error: openai.APIError, detail: str) -> float | None:
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    milliseconds, hint = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    if re.fullmatch(r"\d+(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    if re.fullmatch(r"\d+(\.\d+)?", hint):
        return float(hint)
    try:
        return max(0.0, (parsedate_to_datetime(hint) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        pass
    said = re.search(r"try again in (\d+(?:\.\d+)?) ?(ms|s)\b", detail)
    if said is None:
        return None
    return float(said[1]) / (1000 if said[2] == "ms" else 1)
