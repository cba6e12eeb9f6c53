"""What went wrong with a call of Gemini, in the studio's own errors: no text of them holds the key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2
from google.genai import errors

from agent.errors import AivistaError, ErrorCode, KeyProblem, NetworkFailure, ProviderFailure, RateLimited
from agent.providers.catalogue import ModelEntry, override_variable

_LONGEST_DETAIL = 500

# What the API gives as its reason when a key, or its project, may not ask at all.
_KEY_REASONS = {
    "API_KEY_INVALID": ErrorCode.KEY_INVALID,
    "API_KEY_HTTP_REFERRER_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_IP_ADDRESS_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_ANDROID_APP_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_IOS_APP_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_SERVICE_BLOCKED": ErrorCode.KEY_WITHOUT_API,
    "SERVICE_DISABLED": ErrorCode.API_DISABLED,
    "CONSUMER_SUSPENDED": ErrorCode.KEY_SUSPENDED,
    "BILLING_DISABLED": ErrorCode.BILLING_REQUIRED,
}
# Where it gives none its sentence says it. The first that fits counts: an expired key has the reason of an invalid one.
_KEY_SENTENCES = (
    (re.compile(r"api key (has )?expired", re.IGNORECASE), ErrorCode.KEY_EXPIRED),
    (re.compile(r"reported as leaked", re.IGNORECASE), ErrorCode.KEY_LEAKED),
    (re.compile(r"api key not (valid|found)", re.IGNORECASE), ErrorCode.KEY_INVALID),
    (re.compile(r"has been suspended|project has been denied access", re.IGNORECASE), ErrorCode.KEY_SUSPENDED),
    (re.compile(r"requests from .{0,200}are blocked", re.IGNORECASE), ErrorCode.KEY_RESTRICTED),
    (re.compile(r"requests to this api .{0,300}are blocked", re.IGNORECASE), ErrorCode.KEY_WITHOUT_API),
    (re.compile(r"has not been used in project|it is disabled", re.IGNORECASE), ErrorCode.API_DISABLED),
    (re.compile(r"location is not supported", re.IGNORECASE), ErrorCode.REGION_UNSUPPORTED),
)


def failure_of(error: Exception, model: ModelEntry, read_timeout_s: float, key: str) -> AivistaError:
    """Return the failure that stands for the SDK's or its HTTP client's; no text of it holds the key."""
    if isinstance(error, errors.APIError):
        return _from_api(error, model, read_timeout_s, key)
    detail = without_key(f"{type(error).__name__}: {error}", key)
    match error:
        case httpx2.ReadTimeout():
            return _timed_out(model, read_timeout_s, detail)
        case httpx2.ProxyError():
            return NetworkFailure(ErrorCode.PROXY_FAILED, provider_detail=detail)
        case httpx2.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in detail:
            return NetworkFailure(ErrorCode.CERTIFICATE_FAILED, provider_detail=detail)
        case httpx2.ConnectError() | httpx2.TimeoutException():
            return NetworkFailure(ErrorCode.CONNECTION_FAILED, provider_detail=detail)
        case httpx2.LocalProtocolError():
            return ProviderFailure(ErrorCode.REQUEST_REJECTED, provider_detail=detail, detail=detail[:200])
        case httpx2.HTTPError():
            return NetworkFailure(ErrorCode.STREAM_CUT, provider_detail=detail)
        case _:
            # What came was not what the API sends: the SDK could not read it.
            return ProviderFailure(ErrorCode.ANSWER_UNREADABLE, provider_detail=detail)


def _from_api(error: errors.APIError, model: ModelEntry, read_timeout_s: float, key: str) -> AivistaError:
    body = _body(error)
    detail = without_key(str(body.get("message") or error.message or error.status or ""), key)
    match error.code:
        case 429:
            return _quota_failure(error, body, model, detail)
        case 401 | 403:
            code = _key_code(body, detail) or (ErrorCode.KEY_INVALID if error.code == 401 else ErrorCode.KEY_FORBIDDEN)
            return KeyProblem(code, provider_detail=detail, model=model.label)
        case 404:
            return ProviderFailure(
                ErrorCode.MODEL_NOT_FOUND,
                provider_detail=detail,
                model=model.id,
                variable=override_variable(model.role),
            )
        case 407:
            return NetworkFailure(ErrorCode.PROXY_FAILED, provider_detail=detail)
        case 408 | 504:
            return _timed_out(model, read_timeout_s, detail)
        case 499:
            return NetworkFailure(ErrorCode.STREAM_CUT, provider_detail=detail)
        case 503:
            return ProviderFailure(ErrorCode.OVERLOADED, provider_detail=detail, model=model.label)
        case code if code is not None and 400 <= code < 500:
            return _rejection(body, model, detail)
        case code:
            return ProviderFailure(ErrorCode.PROVIDER_ERROR, provider_detail=detail, status=code or "?")


def _rejection(body: Mapping[str, Any], model: ModelEntry, detail: str) -> AivistaError:
    code = _key_code(body, detail)
    if code is not None:
        return KeyProblem(code, provider_detail=detail, model=model.label)
    if body.get("status") == "FAILED_PRECONDITION" and "billing" in detail.lower():
        return KeyProblem(ErrorCode.BILLING_REQUIRED, provider_detail=detail, model=model.label)
    if re.search(r"thought[_ ]signature", detail, re.IGNORECASE):
        return ProviderFailure(ErrorCode.SIGNATURE_REJECTED, provider_detail=detail)
    return ProviderFailure(ErrorCode.REQUEST_REJECTED, provider_detail=detail, detail=detail[:200])


def _key_code(body: Mapping[str, Any], detail: str) -> ErrorCode | None:
    """Return what the API says is wrong with the key itself, or None when it says nothing of that kind."""
    told = next((code for pattern, code in _KEY_SENTENCES if pattern.search(detail)), None)
    reasons = (_KEY_REASONS.get(str(entry.get("reason"))) for entry in _details(body))
    return told or next((code for code in reasons if code is not None), None)


def _quota_failure(error: errors.APIError, body: Mapping[str, Any], model: ModelEntry, detail: str) -> AivistaError:
    violations = [entry for part in _details(body) for entry in part.get("violations") or () if isinstance(entry, dict)]
    if re.search(r"credits are depleted", detail, re.IGNORECASE):
        return KeyProblem(ErrorCode.CREDITS_USED_UP, provider_detail=detail)
    # `limit: 0` is a key without any quota for the model: waiting does not help.
    has_none = re.search(r"limit: 0(?![\d.])|doesn't have a free quota tier", detail)
    if has_none or any(str(entry.get("quotaValue")) == "0" for entry in violations):
        return KeyProblem(ErrorCode.BILLING_REQUIRED, provider_detail=detail, model=model.label)
    names = " ".join(f"{entry.get('quotaId')} {entry.get('quotaMetric')}" for entry in violations)
    if re.search(r"per_?day", f"{names} {detail}", re.IGNORECASE):
        return KeyProblem(ErrorCode.QUOTA_EXHAUSTED, provider_detail=detail, model=model.label)
    return RateLimited(_retry_after_s(error, body, detail), detail)


def _retry_after_s(error: errors.APIError, body: Mapping[str, Any], detail: str) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    hints = [str(entry.get("retryDelay", "")).removesuffix("s") for entry in _details(body)]
    hints.append(str(headers.get("retry-after", "")))
    hints.extend(re.findall(r"retry in ([\d.]+\d)s", detail))
    for hint in hints:
        if re.fullmatch(r"\d+(\.\d+)?", hint):
            return float(hint)
    return None


def _timed_out(model: ModelEntry, read_timeout_s: float, detail: str) -> ProviderFailure:
    seconds = f"{read_timeout_s:g}"
    return ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, provider_detail=detail, model=model.label, seconds=seconds)


def _body(error: errors.APIError) -> dict[str, Any]:
    """Return the error object of the response; a body that is none (HTML, text) gives what the SDK made of it."""
    body = error.details
    if isinstance(body, dict):
        inner = body.get("error")
        return inner if isinstance(inner, dict) else body
    return {"message": body if isinstance(body, str) else json.dumps(body)}


def _details(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = body.get("details")
    return [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []


def without_key(text: str, key: str) -> str:
    """Return the text on one line, cut, with this key and whatever looks like one blacked out."""
    hidden = text.replace(key, "[key]") if key else text
    hidden = re.sub(r"AIza[\w-]{10,}|AQ\.[\w-]{20,}", "[key]", hidden)
    return " ".join(hidden.split())[:_LONGEST_DETAIL]
