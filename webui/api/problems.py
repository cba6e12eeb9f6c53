"""Errors as RFC 9457 problem documents in the caller's language; for OpenAI's clients in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Self

from pydantic import Field
from starlette.responses import JSONResponse

from agent import Charge, ErrorInfo, Value
from webui.words import Words

PROBLEM_TYPE = "application/problem+json"
OPENAI_PREFIX = "/v1/"
_TYPE = "urn:aivista:problem:"
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class RefusalCode(StrEnum):
    """A refusal before the studio is called: its code and HTTP status. `api.<code>` is its sentence."""

    status: int

    UNAUTHORIZED = "unauthorized", 401
    TOO_MANY_REQUESTS = "too_many_requests", 429
    BODY_TOO_LARGE = "body_too_large", 413
    UNREADABLE = "unreadable", 422
    NO_SUCH_ADDRESS = "no_such_address", 404
    WRONG_METHOD = "wrong_method", 405
    UPLOAD_GONE = "upload_gone", 404
    DATA_URLS_ONLY = "data_urls_only", 400
    CONTEXT_ORDER = "context_order", 400
    NOT_PAINTED = "not_painted", 422
    NO_RECEIPT = "no_receipt", 404
    NEEDS_DECISION = "needs_decision", 409
    SIZE_UNKNOWN = "size_unknown", 400
    FOREIGN_HOST = "foreign_host", 403
    FOREIGN_ORIGIN = "foreign_origin", 403

    def __new__(cls, code: str, status: int) -> Self:
        member = str.__new__(cls, code)
        member._value_, member.status = code, status
        return member


class Refused(Exception):
    """A request that the API refuses; `parameters` fill the sentence."""

    def __init__(self, code: RefusalCode, **parameters: str | int) -> None:
        self.code = code
        self.parameters = parameters
        super().__init__(code.value)


class Problem(Value):
    """A problem document. `type` names the kind of problem, `detail` is one sentence that says who must act. With
    `can_retry`, the same request may work later. `charged` says whether a failed model call was charged: `no`, `yes`
    (its usage is counted) or `maybe`. `errors` lists the invalid fields."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    can_retry: bool
    charged: Charge = Charge.NO
    retry_after_s: int | None = Field(default=None, exclude=True)
    errors: tuple[dict[str, str], ...] = ()

    @property
    def as_json(self) -> dict[str, Any]:
        """The document as it is sent."""
        return self.model_dump(exclude_defaults=True)


class OpenAIError(Value):
    """An error in OpenAI's shape: `message` is the problem's `detail`, `param` the invalid parameter."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIProblem(Value):
    """A problem in OpenAI's shape."""

    error: OpenAIError


_CHALLENGE = {"WWW-Authenticate": {"required": True, "schema": {"type": "string", "const": "Bearer"}}}
_COME_BACK = {
    "Retry-After": {
        "description": "In how many seconds to come back, where that is known.",
        "schema": {"type": "integer", "minimum": 0},
    }
}
# The problems by status: name and description in the schema, and their headers.
_DESCRIBED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "401": ("Unauthorized", "The token is missing or unknown.", _CHALLENGE),
    "422": ("Unfit", "What was sent does not fit.", {}),
    "429": ("TooMuch", "Too much is asked for at once.", _COME_BACK),
    "default": ("Failure", "400, 403, 404, 405, 409, 413 or 500 and above: `code` says what.", _COME_BACK),
}


def problem_responses(path: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the schema of the problems at an address, by status."""
    if path.startswith(OPENAI_PREFIX):
        prefix, media_type, model = "OpenAI", "application/json", "OpenAIProblem"
    else:
        prefix, media_type, model = "", PROBLEM_TYPE, "Problem"
    content = {media_type: {"schema": {"$ref": f"#/components/schemas/{model}"}}}
    return {
        status: (f"{prefix}{name}", {"description": words, "content": content, "headers": headers})
        for status, (name, words, headers) in _DESCRIBED.items()
    }


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def problem_of_refusal(words: Words, refused: Refused, errors: Sequence[dict[str, str]] = ()) -> Problem:
    """Return the document of a refusal by the API."""
    status, seconds = refused.code.status, refused.parameters.get("seconds")
    return Problem(
        type=f"{_TYPE}{refused.code}",
        title=words("failure.title_you"),
        status=status,
        detail=words(f"api.{refused.code}", **refused.parameters),
        code=refused.code.value,
        can_retry=status == 429,
        retry_after_s=seconds if isinstance(seconds, int) else None,
        errors=tuple(errors),
    )


def problem_of_failure(words: Words, info: ErrorInfo) -> Problem:
    """Return the document of a failure of the studio."""
    seconds = info.retry_after_s
    return Problem(
        type=f"{_TYPE}{info.code}",
        title=words(f"failure.title_{info.actor.value}"),
        status=info.code.http_status,
        detail=words.error(info),
        code=info.code.value,
        can_retry=info.can_retry,
        charged=info.charged,
        retry_after_s=None if seconds is None else int(seconds),
    )


def answer_with(problem: Problem, path: str) -> JSONResponse:
    """Return the response for a request at this path."""
    headers = dict(HEADERS)
    if problem.retry_after_s is not None:
        headers["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if not path.startswith(OPENAI_PREFIX):
        return JSONResponse(problem.as_json, problem.status, headers, media_type=PROBLEM_TYPE)
    otherwise = "server_error" if problem.status >= 500 else "invalid_request_error"
    kind = _OPENAI_TYPES.get(problem.status, otherwise)
    where = problem.errors[0]["where"] if problem.errors else None
    error = OpenAIError(message=problem.detail, type=kind, param=where, code=problem.code)
    return JSONResponse(OpenAIProblem(error=error).model_dump(), problem.status, headers)
