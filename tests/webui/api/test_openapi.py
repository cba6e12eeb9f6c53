"""The schema at `/api/v1/openapi.json` is true: whatever is asked, what comes back is what the schema says.

Schemathesis makes requests by the schema, those that fit it and those that do not, the same in each run. More than
5,000: `AIVISTA_OPENAPI_REQUESTS=90 pytest --timeout 1200 tests/webui/api/test_openapi.py`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import httpx
import pytest
import requests
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, seed, settings
from requests.structures import CaseInsensitiveDict
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core import NOT_SET
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.api import ANNA, BEN, TOKENS, png, served

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
Asked: TypeAlias = Case[Operation]

# For each route, of requests that fit the schema, and again of those that do not.
REQUESTS = int(os.environ.get("AIVISTA_OPENAPI_REQUESTS", "5"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CONVERSATION = "/api/v1/conversations/{conversation_id}"
TURN = f"{CONVERSATION}/turns/{{turn_id}}"
FILE = f"{CONVERSATION}/files/{{name}}"
STYLE = "/api/v1/styles/{style_id}"
QUIET = {"review": "off"}


def a_style(name: str) -> dict[str, Any]:
    """Return a style as it is sent."""
    return {"name": {"en": name}, "phrases": ["in a way of my own"]}


# What each route does when it is asked as it is meant: few bodies that are made by the schema alone say anything.
MEANT: Mapping[str, dict[str, Any]] = {
    "POST /api/v1/conversations": {"json": {"title": "Owls"}},
    f"PATCH {CONVERSATION}": {"json": {"is_pinned": True}},
    f"POST {CONVERSATION}/turns": {"json": {"text": "a blue owl", "settings": QUIET}},
    f"POST {TURN}/decision": {"json": {"run": True}},
    f"PUT {FILE}": {"data": b"Another plan."},
    "POST /api/v1/chat": {"json": {"messages": [["human", "a green hill"]], "settings": QUIET}},
    "POST /api/v1/uploads": {"files": {"file": ("photo.png", png())}},
    "POST /api/v1/styles": {"json": a_style("Mine")},
    f"PUT {STYLE}": {"json": a_style("Mine anew")},
    "POST /v1/images/generations": {"json": {"prompt": "a red fox"}},
    "POST /v1/images/edits": {"files": {"image": ("photo.png", png())}, "data": {"prompt": "warmer"}},
}


@dataclass
class Door:
    """A studio's API as programs find it, and what the things are called that `fill` makes in it."""

    client: httpx.Client
    schema: schemathesis.BaseSchema
    names: dict[str, str] = field(default_factory=dict)

    @property
    def operations(self) -> dict[str, Operation]:
        """Every route by its method and path."""
        read = list(self.schema.get_all_operations())
        found = [one.ok() for one in read if isinstance(one, Ok)]
        assert len(found) == len(read), "a route is described in a way that cannot be read"
        return {one.label: one for one in found}

    def fill(self) -> None:
        """Make a conversation with a turn, a picture and a file, and a style."""
        self.names = {"conversation_id": self._conversation(), "handle": "1", "name": "notes/plan.md"}
        self.names |= {"turn_id": self._turn(QUIET), "style_id": self._style()}
        self._write_file()

    def names_for(self, label: str) -> dict[str, str]:
        """Return names for a request to this route; what it uses up is made for it."""
        if label == f"DELETE {CONVERSATION}":
            return {"conversation_id": self._conversation()}
        if label in (f"POST {CONVERSATION}/undelete", "DELETE /api/v1/trash/{conversation_id}"):
            return {"conversation_id": self._deleted()}
        if label == f"POST {TURN}/decision":
            return self.names | {"turn_id": self._turn({**QUIET, "confirm": True})}
        if label == f"DELETE {STYLE}":
            return {"style_id": self._style()}
        if label == f"DELETE {FILE}":
            self._write_file()
        return self.names

    def asked(self, case: Asked, session: requests.Session, **more: Any) -> requests.Response:
        """Return what comes back, a stream to its end."""
        return session.request(**case.as_transport_kwargs(base_url=str(self.client.base_url)) | more, timeout=60)

    def _conversation(self) -> str:
        return str(self._done("POST", "/api/v1/conversations", json={"title": "Foxes"}).json()["id"])

    def _deleted(self) -> str:
        found = self._conversation()
        self._done("DELETE", f"/api/v1/conversations/{found}")
        return found

    def _turn(self, chosen: Mapping[str, Any]) -> str:
        path = f"/api/v1/conversations/{self.names['conversation_id']}/turns"
        told = self._done("POST", path, json={"text": "a red fox in the snow", "settings": chosen}).text
        started = next(line for line in told.splitlines() if line.startswith("data: "))
        return str(json.loads(started.removeprefix("data: "))["turn_id"])

    def _write_file(self) -> None:
        self._done("PUT", FILE.format(**self.names), content=b"A plan.")

    def _style(self) -> str:
        # Each has a name of its own.
        return str(self._done("POST", "/api/v1/styles", json=a_style(uuid4().hex)).json()["id"])

    def _done(self, method: str, path: str, **more: Any) -> httpx.Response:
        answer = self.client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer


@contextmanager
def opened(home: Path, **chosen: Any) -> Iterator[Door]:
    """Serve a studio from a loop of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(served(home, **chosen)) as one,
        httpx.Client(base_url=one.url, timeout=60) as client,
    ):
        yield Door(client, schemathesis.openapi.from_dict(client.get("/api/v1/openapi.json").json()))


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    often = 1_000_000
    home = tmp_path_factory.mktemp("openapi")
    with opened(home, api_requests_per_minute=often, api_turns_per_minute=often) as door:
        door.fill()
        yield door


def modes(operation: Operation) -> list[GenerationMode]:
    """Return which requests there can be: an address alone always fits."""
    takes_more = operation.query or operation.headers or operation.body
    return list(GenerationMode) if takes_more else [GenerationMode.POSITIVE]


def wrong_of(operation: Operation, case: Asked, answer: requests.Response | httpx.Response) -> list[str]:
    """Return what of an answer the schema does not say."""
    found = []
    if answer.status_code < 400 and str(answer.status_code) not in operation.definition.raw["responses"]:
        found.append(f"{operation.label}: {answer.status_code} is not described")
    try:
        case.validate_response(answer, checks=CHECKS)
    except FailureGroup as failures:
        found += [f"{operation.label}: {answer.status_code}: {one}" for one in failures.exceptions]
    return found


def asked_about(door: Door, operation: Operation, mode: GenerationMode) -> list[tuple[Asked, requests.Response]]:
    """Ask a route, and return what comes back: to requests that the route is meant for, to those that name what is
    there, and to those that are left as they were made by the schema."""
    ways = ["meant", "named", "made"] if mode is GenerationMode.POSITIVE else ["named", "made"]
    came: list[tuple[Asked, requests.Response]] = []
    with requests.Session() as session:

        @seed(20_261_127)
        @settings(
            max_examples=REQUESTS,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(mode))
        def ask(case: Asked) -> None:
            way = ways[len(came) % len(ways)]
            meant = MEANT.get(operation.label, {}) if way == "meant" else {}
            if way != "made":
                case.path_parameters.update(door.names_for(operation.label))
            if meant:
                case.query, case.headers = {}, CaseInsensitiveDict()
                case.body, case.media_type = NOT_SET, None
            came.append((case, door.asked(case, session, **meant)))

        ask()
    return came


def test_the_schema_is_a_document_as_openapi_has_them(door: Door) -> None:
    door.schema.validate()


def test_what_comes_back_is_what_the_schema_says(door: Door) -> None:
    wrong: dict[str, str] = {}
    done = set()
    for label, operation in door.operations.items():
        for mode in modes(operation):
            for case, answer in asked_about(door, operation, mode):
                if answer.ok:
                    done.add(label)
                for one in wrong_of(operation, case, answer):
                    # Of each kind the first.
                    wrong.setdefault(one[:150], one)
    assert not wrong, "\n\n".join(wrong.values())
    assert done == set(door.operations), "each route was seen to do what it is for"


def test_what_stands_before_the_routes_is_described_as_well(tmp_path: Path) -> None:
    def told(door: Door, label: str, token: str | None, content: bytes = b"{}", **headers: str) -> int:
        operation = door.operations[label]
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        asked = {"Content-Type": "application/json", **headers}
        answer = door.client.request(operation.method, operation.path, content=content, headers=asked)
        assert wrong_of(operation, operation.Case(), answer) == []
        return answer.status_code

    with opened(tmp_path, api_tokens=TOKENS, api_requests_per_minute=2) as door:
        for label in ("POST /api/v1/styles", "POST /v1/images/generations"):
            assert told(door, label, None) == 401
            assert told(door, label, None, Host="another.example") == 403
            assert told(door, label, ANNA, b" " * (3 << 20)) == 413
            assert told(door, label, BEN) == 422
        assert told(door, label, BEN) == 429
