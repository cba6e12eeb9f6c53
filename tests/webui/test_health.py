"""How the studio is: told to whoever runs it, by an address as well, and to no page of somebody else's."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from tests.support.cases import each_case
from webui.guard import Guard, HostRules
from webui.health import ALIVE, READY, Health
from webui.sessions import Sessions

NAMED = HostRules(is_loopback=False, names={"studio.example"}, is_named=True)


def client(*missing: str, rules: HostRules = NAMED) -> TestClient:
    async def not_ready() -> tuple[str, ...]:
        return missing

    middleware = [
        Middleware(Health, rules=rules, not_ready=not_ready),
        Middleware(Guard, rules=rules, sessions=Sessions(b"s" * 32, is_shared=True)),
    ]
    return TestClient(Starlette(middleware=middleware), base_url="http://studio.example")


@each_case("path", [ALIVE, READY])
@each_case("host", ["studio.example", "10.0.0.7:7860", "127.0.0.1", "[fd00::1]:7860", ""])
def test_whoever_runs_it_may_ask_by_name_by_address_or_by_none(path: str, host: str) -> None:
    answer = client().get(path, headers={"host": host})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", [ALIVE, READY])
def test_a_name_that_merely_points_here_is_told_nothing(path: str) -> None:
    for rules in (NAMED, HostRules(is_loopback=True)):
        assert client(rules=rules).get(path, headers={"host": "evil.test"}).status_code == 403


def test_what_is_missing_is_named_and_the_process_lives_all_the_same() -> None:
    answer = client("turns", "records").get(READY)
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "not_ready": ["turns", "records"]}
    assert client("records").get(ALIVE).json() == {"status": "alive"}


def test_it_is_asked_with_get_alone() -> None:
    assert client().head(READY).status_code == 200
    assert client().post(ALIVE).status_code == 405
