"""What the server refuses, and the error bodies the Gemini API answers with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
OVERLOADED = (
    "This model is currently experiencing high demand. Spikes in demand are usually temporary. Please try again later."
)
INTERNAL = (
    "An internal error has occurred. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)


@dataclass(frozen=True)
class Violation:
    """One broken rule: its short name, the sentence answered, and which request broke it (counted from 1)."""

    rule: str
    message: str
    request_number: int = 0


class Refused(Exception):
    """A request the true API would not take. Carries the rule's name and the whole error answer."""

    def __init__(self, rule: str, message: str, status: int = 400, details: list[Json] | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.status = status
        self.body = error_body(status, message, details)


class Declared(Refused):
    """An error that the test itself declared: it breaks no rule."""

    def __init__(self, body: Json) -> None:
        super().__init__("", "", body["error"]["code"])
        self.body = body


def refuse(is_broken: object, rule: str, message: str) -> None:
    """Raise Refused when the rule is broken."""
    if is_broken:
        raise Refused(rule, message)


def error_body(status: int, message: str, details: list[Json] | None = None) -> Json:
    """Return the API's JSON for an error of this HTTP status."""
    error: Json = {"code": status, "message": message, "status": _STATUSES.get(status, "UNKNOWN")}
    if details:
        error["details"] = details
    return {"error": error}


def _detail(kind: str, **fields: Any) -> Json:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def _key_details(reason: str, message: str, **metadata: str) -> list[Json]:
    told = {"service": "generativelanguage.googleapis.com", **metadata}
    info = _detail("ErrorInfo", reason=reason, domain="googleapis.com", metadata=told)
    return [info, _detail("LocalizedMessage", locale="en-US", message=message)]


def bad_key() -> Refused:
    """Return the refusal of a key the API does not know: a 400, not a 401."""
    sentence = "API key not valid. Please pass a valid API key."
    return Refused("api_key", sentence, details=_key_details("API_KEY_INVALID", sentence))


def unknown_model(model: str, version: str, method: str) -> Refused:
    """Return the refusal of a model this version or this method does not have."""
    sentence = (
        f"models/{model} is not found for API version {version}, or is not supported for {method}. "
        "Call ModelService.ListModels to see the list of available models and their supported methods."
    )
    return Refused("unknown_model", sentence, status=404)


def retired_model(model: str) -> Refused:
    """Return the refusal of a model that was shut down."""
    sentence = (
        f"This model models/{model} is no longer available. Please update your code to use a newer model "
        "for the latest features and improvements."
    )
    return Refused("retired_model", sentence, status=404)


def unknown_field(name: str, path: str) -> Refused:
    """Return the refusal of a JSON name the API has no field for; `path` is empty at the top."""
    where = f" at '{path}'" if path else ""
    sentence = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
    violation = {"field": path, "description": sentence} if path else {"description": sentence}
    return Refused("unknown_field", sentence, details=[_detail("BadRequest", fieldViolations=[violation])])


def quota_body(
    per: str = "minute", limit: int = 5, model: str = "gemini-3.8-flash", retry_s: float | None = 58.217843437
) -> Json:
    """Return the body of a 429. Per day or with a limit of 0 there is no RetryInfo: waiting does not help."""
    can_wait = per == "minute" and limit > 0 and retry_s is not None
    metric = f"generativelanguage.googleapis.com/generate_requests_per_model_per_{per}"
    sentence = (
        "You exceeded your current quota, please check your plan and billing details. For more information on this "
        "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: "
        f"https://ai.dev/rate-limit. \n* Quota exceeded for metric: {metric}, limit: {limit}, model: {model}"
    )
    violation = {
        "quotaMetric": metric,
        "quotaId": f"GenerateRequestsPer{per.capitalize()}PerProjectPerModel",
        "quotaDimensions": {"model": model, "location": "global"},
        "quotaValue": str(limit),
    }
    link = {
        "description": "Learn more about Gemini API quotas",
        "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
    }
    details = [_detail("Help", links=[link]), _detail("QuotaFailure", violations=[violation])]
    if can_wait:
        sentence += f"\nPlease retry in {retry_s}s."
        details.append(_detail("RetryInfo", retryDelay=f"{int(retry_s or 0)}s"))
    return error_body(429, sentence, details)


def key_body(reason: str, message: str, status: int = 403, **metadata: str) -> Json:
    """Return the body of an error that lies with the key, or its project, by the reason that the API gives."""
    return error_body(status, message, _key_details(reason, message, consumer="projects/1234567890", **metadata))
