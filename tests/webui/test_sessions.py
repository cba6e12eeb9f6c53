"""Who may see what: cookies, keys and links."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from webui.sessions import (
    COOKIE,
    KEY_IDLE_S,
    LANGUAGE_COOKIE,
    LINK_LIFE_S,
    OWNED_LIFE_S,
    Sessions,
    Visitor,
    load_secret,
)
from webui.words import load_words


@dataclass
class Asked:
    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sessions(clock: Clock | None = None, *, is_shared: bool = False) -> Sessions:
    return Sessions(b"s" * 32, is_shared=is_shared, clock=clock or Clock())


def test_a_cookie_of_ours_is_known_and_a_forged_one_is_not() -> None:
    ours = sessions()
    cookie = ours.new_cookie()
    token = ours.token_of(cookie)
    assert token is not None
    assert len(token) == 32
    for forged in (
        None,
        "",
        token,
        f"{token}.",
        f"{token}.{'0' * 32}",
        f"{'0' * 32}.{cookie.partition('.')[2]}",
        "é.é",
        f"{token}.\ud800",
        f"\ud800.{'0' * 32}",
        f"{token}.local.9.\ud800",
        f"{token}.\ud800.9.{'0' * 32}",
    ):
        assert ours.token_of(forged) is None
    assert Sessions(b"t" * 32).token_of(cookie) is None


def test_on_ones_own_machine_every_cookie_is_the_same_owner() -> None:
    ours = sessions()
    assert ours.owner(ours.token_of(ours.new_cookie())) == ours.owner(None) == "local"


def test_on_a_shared_link_each_cookie_is_its_own_owner() -> None:
    ours = sessions(is_shared=True)
    owners = {ours.owner(ours.token_of(ours.new_cookie())) for _ in range(3)}
    assert len(owners) == 3
    assert "local" not in owners
    assert ours.owner(None) not in owners


def test_a_cookie_may_open_what_belongs_to_another_owner_until_it_is_too_old() -> None:
    clock = Clock()
    ours = sessions(clock, is_shared=True)
    cookie = ours.new_cookie("local")
    visitor = ours.visitor(Asked({COOKIE: cookie}))
    assert (visitor.owner, visitor.is_known) == ("local", True)
    token, _, until, signature = cookie.split(".")
    for forged in (
        f"{token}.account-1.{until}.{signature}",
        f"{token}.local.{int(until) + 1}.{signature}",
        f"{token}.local.{until}.{'0' * 32}",
        f"{token}.{signature}",
        f"{ours.new_cookie()}.local",
    ):
        assert ours.read(forged) is None
    clock.now += OWNED_LIFE_S + 1
    assert ours.read(cookie) is None
    assert ours.visitor(Asked({COOKIE: cookie})).owner != "local"


def test_on_ones_own_machine_a_cookie_of_another_owner_is_the_operators_as_well() -> None:
    ours = sessions()
    visitor = ours.visitor(Asked({COOKIE: ours.new_cookie("account-1")}))
    assert (visitor.owner, visitor.is_known) == ("local", False)


def test_the_names_of_those_who_signed_in_do_not_grow_without_end() -> None:
    ours = sessions(is_shared=True)
    for number in range(10_001):
        ours.name_owner(f"account-{number}", f"Ada {number}")
    assert ours.name_of("account-0") == ""
    assert ours.name_of("account-10000") == "Ada 10000"


def test_a_key_is_held_for_its_visitor_only_and_until_it_is_idle() -> None:
    clock = Clock()
    ours = sessions(clock)
    one, two = (ours.visitor(Asked({COOKIE: ours.new_cookie()})) for _ in range(2))
    assert ours.hold_key(one, SecretStr("AIza-one"))
    assert ours.key(two) is None
    clock.now += KEY_IDLE_S - 1
    held = ours.key(one)
    assert held is not None
    assert held.get_secret_value() == "AIza-one"
    clock.now += KEY_IDLE_S - 1
    assert ours.key(one) is not None, "using it keeps it"
    clock.now += KEY_IDLE_S + 1
    assert ours.key(one) is None


def test_keys_that_are_held_do_not_grow_without_end_and_the_one_that_rested_longest_goes_first() -> None:
    ours = sessions()
    used, rested, *others = (Visitor(f"token-{number}", "local", load_words("en")) for number in range(10_001))
    for visitor in (used, rested, *others[:-1]):
        ours.hold_key(visitor, SecretStr("AIza-one"))
    assert ours.key(used) is not None
    ours.hold_key(others[-1], SecretStr("AIza-one"))
    assert ours.key(rested) is None
    assert all(ours.key(one) is not None for one in (used, others[0], others[-1]))


def test_a_key_can_be_forgotten() -> None:
    ours = sessions()
    visitor = ours.visitor(Asked({COOKIE: ours.new_cookie()}))
    ours.hold_key(visitor, SecretStr("AIza-one"))
    ours.hold_key(visitor, None)
    assert ours.key(visitor) is None


def test_without_a_cookie_no_key_is_held() -> None:
    ours = sessions()
    stranger = ours.visitor(Asked())
    assert not ours.hold_key(stranger, SecretStr("AIza-one"))
    assert ours.key(stranger) is None


def test_a_key_never_shows_in_a_repr() -> None:
    ours = sessions()
    ours.hold_key(ours.visitor(Asked({COOKIE: ours.new_cookie()})), SecretStr("AIza-canary"))
    assert "canary" not in repr(ours)


@pytest.mark.parametrize("change", ["owner", "until", "sig", "conversation", "handle"])
def test_a_signed_link_opens_one_picture_and_nothing_else(change: str) -> None:
    ours = sessions()
    query = dict(part.split("=", 1) for part in ours.link_query("local", "c1", "7b").split("&"))
    assert ours.link_owner(query, "c1", "7b") == "local"
    where = ("c2", "7b") if change == "conversation" else ("c1", "7c") if change == "handle" else ("c1", "7b")
    if change in query:
        query[change] = "9" * len(query[change])
    assert ours.link_owner(query, *where) is None


def test_a_signed_link_ends_after_a_day() -> None:
    clock = Clock()
    ours = sessions(clock)
    query = dict(part.split("=", 1) for part in ours.link_query("local", "c1", "7b").split("&"))
    clock.now += LINK_LIFE_S + 1
    assert ours.link_owner(query, "c1", "7b") is None


def test_the_language_comes_from_the_cookie_or_the_browser() -> None:
    ours = sessions()
    assert ours.visitor(Asked(headers={"accept-language": "zh-CN"})).words.language == "zh-CN"
    assert ours.visitor(Asked({LANGUAGE_COOKIE: "en"}, {"accept-language": "zh-CN"})).words.language == "en"


def test_the_secret_is_made_once_and_is_private(tmp_path: Path) -> None:
    first = load_secret(tmp_path)
    assert load_secret(tmp_path) == first
    assert len(first) == 32
    assert stat.S_IMODE((tmp_path / "session.secret").stat().st_mode) == 0o600
