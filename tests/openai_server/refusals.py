"""What the server refuses, and the error bodies of the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Violation:
    """One broken rule: its short name, the sentence answered, and which request broke it (counted from 1)."""

    rule: str
    message: str
    request_number: int


class Refused(Exception):
    """A request that some server of this API would not take."""

    def __init__(self, rule: str, message: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.status = status
        self.body = error_body(message, code=code)


def error_body(message: str, *, code: str | None = None, kind: str = "invalid_request_error") -> Json:
    """Return the API's JSON for an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
