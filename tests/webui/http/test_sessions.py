"""Who a browser is, what its cookie and a signed link open, and the keys that are held or kept for somebody."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent import Settings, StorageFailure
from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.clock import Standing
from webui.http.sessions import (
    COOKIE,
    KEY_IDLE_S,
    LANGUAGE_COOKIE,
    LINK_LIFE_S,
    OWNED_LIFE_S,
    Sessions,
    StoredKey,
    Visitor,
    load_secret,
    open_sessions,
)
from webui.words import load_words

KEY, OTHER = SecretStr("AIzaSyKeptOnThisMachine0001"), SecretStr("AIzaSyOfTheSession0002")
ME = Visitor("token", "local", load_words("en"))


@dataclass
class Asked:
    """What of a request says who sent it."""

    cookies: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def sessions(clock: Standing | None = None, *, is_shared: bool = False) -> Sessions:
    return Sessions(b"s" * 32, is_shared=is_shared, clock=clock or Standing())


def test_a_cookie_of_ours_is_known_and_a_forged_one_is_not() -> None:
    ours = sessions()
    cookie = ours.new_cookie()
    token = ours.token_of(cookie)
    assert token is not None
    forged = [None, "", token, f"{token}.", f"{token}.{'0' * 32}", f"{'0' * 32}.{cookie.partition('.')[2]}", "é.é"]
    forged += [f"{token}.\ud800", f"\ud800.{'0' * 32}", f"{token}.local.9.\ud800", f"{token}.\ud800.9.{'0' * 32}"]
    assert [one for one in forged if ours.token_of(one) is not None] == []
    assert Sessions(b"t" * 32).token_of(cookie) is None


def test_each_cookie_is_its_own_owner_where_others_come_and_all_are_one_elsewhere() -> None:
    for is_shared, count in ((True, 4), (False, 1)):
        ours = sessions(is_shared=is_shared)
        cookies = [{}, *({COOKIE: ours.new_cookie()} for _ in range(3))]
        owners = {ours.visitor(Asked(one)).owner for one in cookies}
        assert (len(owners), "local" in owners) == (count, not is_shared)
    visitor = sessions().visitor(Asked({COOKIE: sessions().new_cookie("account-1")}))
    assert (visitor.owner, visitor.is_known) == ("local", False)


def test_a_cookie_may_open_what_belongs_to_another_owner_until_it_is_too_old() -> None:
    clock = Standing()
    ours = sessions(clock, is_shared=True)
    cookie = ours.new_cookie("local")
    visitor = ours.visitor(Asked({COOKIE: cookie}))
    assert (visitor.owner, visitor.is_known) == ("local", True)
    token, _, until, signature = cookie.split(".")
    forged = [f"{token}.account-1.{until}.{signature}", f"{token}.local.{int(until) + 1}.{signature}"]
    forged += [f"{token}.local.{until}.{'0' * 32}", f"{token}.{signature}", f"{ours.new_cookie()}.local"]
    assert [one for one in forged if ours.read(one) is not None] == []
    clock.now += OWNED_LIFE_S + 1
    assert ours.read(cookie) is None
    assert ours.visitor(Asked({COOKIE: cookie})).owner != "local"


def test_a_key_is_held_for_its_visitor_only_until_it_is_idle_or_forgotten_and_for_nobody_without_a_cookie() -> None:
    clock = Standing()
    ours = sessions(clock)
    one, two = (ours.visitor(Asked({COOKIE: ours.new_cookie()})) for _ in range(2))
    assert ours.hold_key(one, KEY)
    assert ours.key(two) is None
    assert KEY.get_secret_value() not in repr(ours)
    for _ in range(2):
        clock.now += KEY_IDLE_S - 1
        assert ours.key(one) == KEY, "using it keeps it"
    clock.now += KEY_IDLE_S + 1
    assert ours.key(one) is None
    ours.hold_key(one, KEY)
    ours.hold_key(one, None)
    assert ours.key(one) is None
    assert not ours.hold_key(ours.visitor(Asked()), KEY)


def test_keys_that_are_held_do_not_grow_without_end_and_the_one_that_rested_longest_goes_first() -> None:
    ours = sessions()
    used, rested, *others = (Visitor(f"token-{number}", "local", load_words("en")) for number in range(10_001))
    for visitor in (used, rested, *others[:-1]):
        ours.hold_key(visitor, KEY)
    assert ours.key(used) is not None
    ours.hold_key(others[-1], KEY)
    assert ours.key(rested) is None
    assert all(ours.key(one) is not None for one in (used, others[0], others[-1]))


@each_case("change", ["", "owner", "until", "sig", "conversation", "handle", "time"])
def test_a_signed_link_opens_one_picture_for_a_day_and_nothing_else(change: str) -> None:
    clock = Standing()
    ours = sessions(clock)
    query = dict(part.split("=", 1) for part in ours.link_query("local", "c1", "7b").split("&"))
    where = ("c2", "7b") if change == "conversation" else ("c1", "7c") if change == "handle" else ("c1", "7b")
    if change in query:
        query[change] = "9" * len(query[change])
    clock.now += LINK_LIFE_S + 1 if change == "time" else 0
    assert ours.link_owner(query, *where) == (None if change else "local")


def test_the_language_comes_from_the_cookie_or_the_browser() -> None:
    chinese = {"accept-language": "zh-CN"}
    told = [sessions().visitor(Asked(cookies, chinese)).words.language for cookies in ({}, {LANGUAGE_COOKIE: "en"})]
    assert told == ["zh-CN", "en"]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_the_secret_and_a_kept_key_are_private_and_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "new" / "home"
    kept = StoredKey(home)
    assert kept.read() is None
    kept.keep(OTHER)
    kept.keep(KEY)
    [path] = home.iterdir()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (home, path)] == [0o700, 0o600]
    path.chmod(0o644)
    assert StoredKey(home).read() == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "could be read by others" in caplog.text
    assert KEY.get_secret_value() not in caplog.text + repr(vars(kept))
    if hasattr(os, "mkfifo"):
        path.unlink()
        os.mkfifo(path, 0o600)
        assert kept.read() is None
        path.unlink()
    for damaged in (b"", b"\n", b"x" * 2000, b"two\nlines", "schlüssel".encode(), b"\x00\xff"):
        path.write_bytes(damaged)
        assert kept.read() is None, damaged
    for _ in range(2):
        kept.remove()
        assert list(home.iterdir()) == []
    # Many that start at the same moment take the same one.
    with ThreadPoolExecutor(8) as threads:
        [secret] = set(threads.map(load_secret, [home] * 8))
    assert len(secret) == 32
    assert stat.S_IMODE((home / "session.secret").stat().st_mode) == 0o600
    (home / "session.secret").unlink()
    (home / "session.secret").mkdir()
    with pytest.raises(StorageFailure):
        load_secret(home)
    # A link to another file is not followed, and a home that cannot be written is told of without the key.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("AIzaSomebodyElses")
    path.symlink_to(elsewhere)
    assert kept.read() is None
    with pytest.raises(StorageFailure) as caught:
        StoredKey(elsewhere).keep(KEY)
    assert KEY.get_secret_value() not in f"{caught.value!r} {caught.value.info!r}"


@each_case(("is_shared", "is_public"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_key_of_the_session_goes_first_and_where_others_come_none_is_kept_and_none_is_read(
    tmp_path: Path, is_shared: bool, is_public: bool
) -> None:
    StoredKey(tmp_path).keep(KEY)
    ours = open_sessions(Settings(home=tmp_path, is_public=is_public), is_shared=is_shared, language=None)
    kept = None if is_shared or is_public else KEY
    assert (ours.kept is None, ours.key(ME)) == (kept is None, kept)
    for held, used in ((OTHER, OTHER), (None, kept)):
        ours.hold_key(ME, held)
        assert (ours.key(ME), ours.session_key(ME)) == (used, held)


def test_the_command_lets_no_key_into_its_log_nor_into_the_web_servers(tmp_path: Path) -> None:
    code = """
import logging, sys
from pathlib import Path
from pydantic import SecretStr
from agent.settings import Settings
from webui.cli.serve import prepare_log
from webui.http.sessions import StoredKey

StoredKey(Path(sys.argv[1])).keep(SecretStr("the-one-that-is-kept"))
prepare_log(Settings(home=Path(sys.argv[1]), gemini_api_key=SecretStr("a-key-of-no-shape")))
import uvicorn
uvicorn.Config(app=None, log_level="warning")
logging.getLogger("agent.somewhere").error("it was %s and %s", "a-key-of-no-shape", "the-one-that-is-kept")
try:
    raise ValueError("no a-key-of-no-shape")
except ValueError:
    logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
"""
    child = run_child(code, str(tmp_path))
    assert "ERROR agent.somewhere: it was [secret] and [secret]" in child.stderr
    assert "ValueError: no [secret]" in child.stderr
    assert not any(key in child.stderr + child.stdout for key in ("the-one-that-is-kept", "a-key-of-no-shape"))
