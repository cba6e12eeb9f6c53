"""What went wrong with a call of Gemini, in the studio's own errors: no text of them holds the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import httpx2
from google.genai import errors

from agent.errors import AivistaError, ErrorCode
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
# What a 400 says, and what it means for the person; what fits none of these is a fault of the studio's request.
_TOO_LONG = re.compile(r"token count.{0,80}exceeds|exceeds the maximum number of tokens", re.IGNORECASE)
_TOO_LARGE = re.compile(r"(payload|request).{0,20}size.{0,40}(exceeds|limit)|entity too large", re.IGNORECASE)
_BAD_PICTURE = re.compile(r"(unable to process|could not process).{0,20}image|image is not valid", re.IGNORECASE)
_UNFIT = re.compile(r"(is not|are not|isn't) (enabled|supported|available) for|does not support", re.IGNORECASE)


def failure_of(
    error: Exception, asked: Asked, *, has_response: bool, event: Mapping[str, Any] | None = None
) -> AivistaError:
    """Return the failure that stands for the SDK's or its HTTP client's; no text of it holds the key.

    `has_response` says that an HTTP response had begun: then even what the SDK trips over is the provider's answer.
    `event` is the one of a streamed answer that told an error, if any did.
    """
    if event is not None:
        return _from_event(event, asked)
    if isinstance(error, errors.APIError):
        return _from_api(error, asked)
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return transport_failure(error, asked)
    if not has_response:
        # Nothing was answered, so no answer can be at fault: the studio or the SDK failed before anything was sent.
        return asked.failure(ErrorCode.NOT_SENT, f"{type(error).__name__}: {error}")
    # What came was not what the API sends: the SDK could not read it.
    return asked.failure(ErrorCode.ANSWER_UNREADABLE, f"{type(error).__name__}: {error}")


def web_page_failure(response: httpx2.Response, asked: Asked) -> AivistaError | None:
    """Return that something else than the API answers there, when a good answer is a web page; else None."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_page = response.status_code == 200 and kind in ("text/html", "application/xhtml+xml")
    return wrong_address(response.status_code, "", asked) if is_page else None


def _from_event(event: Mapping[str, Any], asked: Asked) -> AivistaError:
    """Return the failure that an event of an answer tells: the call had begun by then, and may have been charged."""
    told = event.get("error")
    body = told if isinstance(told, dict) else {"message": str(told)}
    said, status = str(body.get("message") or body.get("status") or ""), body.get("code")
    if not isinstance(status, int) or not 400 <= status < 600:
        return unexplained(said, asked)
    return may_have_been_charged(_from_body(status, body, said, {}, asked))


def _from_api(error: errors.APIError, asked: Asked) -> AivistaError:
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    details, status = error.details, error.code if isinstance(error.code, int) else 500
    if isinstance(details, dict) and isinstance(details.get("error"), dict):
        body = details["error"]
        return _from_body(status, body, str(body.get("message") or body.get("status") or ""), headers, asked)
    return _from_elsewhere(status, details, headers, asked)


def _from_body(
    status: int, body: Mapping[str, Any], said: str, headers: Mapping[str, str], asked: Asked
) -> AivistaError:
    """Return the failure that the API itself tells: `body` is its error object."""
    key_code = _key_code(body, said)
    match status:
        case 429:
            return _quota_failure(body, said, headers, asked)
        case 400 | 401 | 403 if key_code is not None:
            return asked.failure(key_code, said, model=asked.model.label)
        case 401:
            return asked.failure(ErrorCode.KEY_INVALID, said)
        case 403 if not re.search(r"cached ?content|\bfile\b", said, re.IGNORECASE):
            return asked.failure(ErrorCode.KEY_FORBIDDEN, said, model=asked.model.label)
        case 404 if asked.model.id in said or re.search(r"\bmodels?\b", said, re.IGNORECASE):
            told = {"model": asked.model.id, "variable": asked.model_variable}
            return asked.failure(ErrorCode.MODEL_NOT_FOUND, said, **told)
        case _:
            by_status = status_failure(status, said, headers, asked)
            return by_status or _rejection(body, said, asked)


def _from_elsewhere(status: int, body: object, headers: Mapping[str, str], asked: Asked) -> AivistaError:
    """Return the failure of an answer that has not the API's form: a gateway's, a proxy's, or another server's."""
    told = body if isinstance(body, dict) else {"message": body}
    said = str(next((told[name] for name in ("message", "detail", "error", "status") if told.get(name)), ""))
    by_status = status_failure(status, said, headers, asked)
    if by_status is not None:
        return by_status
    if status == 429:
        return rate_limited(retry_after_s(headers), said, asked)
    if is_web_page(said) or status in (404, 405, 410):
        return wrong_address(status, said, asked)
    if status in (401, 403):
        code = ErrorCode.KEY_INVALID if status == 401 else ErrorCode.KEY_FORBIDDEN
        return asked.failure(code, said, model=asked.model.label)
    return _rejection({}, said, asked)


def _rejection(body: Mapping[str, Any], said: str, asked: Asked) -> AivistaError:
    model = asked.model.label
    if body.get("status") == "FAILED_PRECONDITION" and "billing" in said.lower():
        return asked.failure(ErrorCode.BILLING_REQUIRED, said, model=model)
    if re.search(r"thought[_ ]signature", said, re.IGNORECASE):
        return asked.failure(ErrorCode.SIGNATURE_REJECTED, said)
    if _TOO_LONG.search(said):
        return asked.failure(ErrorCode.CONTEXT_TOO_LONG, said, model=model)
    if _TOO_LARGE.search(said):
        return asked.failure(ErrorCode.REQUEST_TOO_LARGE, said)
    if _BAD_PICTURE.search(said):
        return asked.failure(ErrorCode.PICTURE_REJECTED, said)
    detail = in_sentence(said, asked)
    if _UNFIT.search(said):
        told = {"model": asked.model.id, "variable": asked.model_variable, "detail": detail}
        return asked.failure(ErrorCode.MODEL_UNFIT, said, **told)
    return asked.failure(ErrorCode.REQUEST_REJECTED, said, detail=detail)


def _key_code(body: Mapping[str, Any], said: str) -> ErrorCode | None:
    """Return what the API says is wrong with the key itself, or None when it says nothing of that kind."""
    told = next((code for pattern, code in _KEY_SENTENCES if pattern.search(said)), None)
    reasons = (_KEY_REASONS.get(str(entry.get("reason"))) for entry in _details(body))
    return told or next((code for code in reasons if code is not None), None)


def _quota_failure(body: Mapping[str, Any], said: str, headers: Mapping[str, str], asked: Asked) -> AivistaError:
    violations = [entry for part in _details(body) for entry in part.get("violations") or () if isinstance(entry, dict)]
    model = asked.model.label
    if re.search(r"credits are depleted", said, re.IGNORECASE):
        return asked.failure(ErrorCode.CREDITS_USED_UP, said)
    # `limit: 0` is a key without any quota for the model: waiting does not help.
    has_none = re.search(r"limit: 0(?![\d.])|doesn't have a free quota tier", said)
    if has_none or any(str(entry.get("quotaValue")) == "0" for entry in violations):
        return asked.failure(ErrorCode.BILLING_REQUIRED, said, model=model)
    names = " ".join(f"{entry.get('quotaId')} {entry.get('quotaMetric')}" for entry in violations)
    if re.search(r"per_?day", f"{names} {said}", re.IGNORECASE):
        return asked.failure(ErrorCode.QUOTA_EXHAUSTED, said, model=model)
    hint_s = _retry_delay_s(body, said)
    return rate_limited(retry_after_s(headers) if hint_s is None else hint_s, said, asked)


def _retry_delay_s(body: Mapping[str, Any], said: str) -> float | None:
    hints = [str(entry.get("retryDelay", "")).removesuffix("s") for entry in _details(body)]
    hints.extend(re.findall(r"retry in ([\d.]+\d)s", said))
    return next((float(hint) for hint in hints if re.fullmatch(r"\d{1,9}(\.\d+)?", hint)), None)


def _details(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = body.get("details")
    return [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []
