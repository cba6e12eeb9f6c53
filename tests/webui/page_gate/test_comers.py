"""Who comes, as far as limits go."""

from __future__ import annotations

from starlette.types import Scope

from agent import OPERATOR
from tests.support.cases import each_case
from tests.support.tables import filled, table
from webui.page_gate.comers import address_of, comer_of
from webui.sessions import COOKIE, Sessions


def asked(address: str = "93.184.216.1", port: int = 4711, cookie: str = "", forwarded: str = "") -> Scope:
    told = {"cookie": f"{COOKIE}={cookie}" if cookie else "", "x-forwarded-for": forwarded}
    headers = [(name.encode(), value.encode()) for name, value in told.items() if value]
    return {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers} | {
        "client": (address, port)
    }


@each_case(("told", "address"), filled(table("doors")["customers"], {}))
def test_all_addresses_that_one_customer_has_are_one(told: str, address: str | None) -> None:
    assert address_of(asked(told), is_behind_proxy=False) == address
    through_proxies = asked("10.0.0.1", forwarded=f"8.8.8.8, {told}, 10.0.0.2")
    assert address_of(through_proxies, is_behind_proxy=True) == (address or "8.8.8.8")


def test_whoever_drops_the_cookie_stays_in_the_crowd_of_the_address() -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    comers = [
        comer_of(asked(cookie=cookie), sessions, is_behind_proxy=False)
        for cookie in ("", sessions.new_cookie(), sessions.new_cookie())
    ]
    assert len({one.name for one in comers}) == 3
    assert len({one.crowd for one in comers}) == 1
    unknown = {comer_of(asked(port=0), sessions, is_behind_proxy=False).crowd}
    assert unknown.isdisjoint(one.crowd for one in comers)


def test_the_operator_is_known_by_the_cookie_and_where_nobody_else_comes() -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    for cookie, is_operator in (sessions.new_cookie(OPERATOR), True), (sessions.new_cookie(), False), ("x.y", False):
        assert comer_of(asked(cookie=cookie), sessions, is_behind_proxy=False).is_operator == is_operator
    assert comer_of(asked(), Sessions(b"s" * 32), is_behind_proxy=False).is_operator
