"""Who asks, how much they may, and whose the files are that they send."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

import pytest
from starlette.types import Scope

from agent import OPERATOR
from tests.support.cases import each_case
from tests.support.tables import filled, table
from webui.http.clients import UPLOADS_KEPT_S, AtWork, Client, Rate, Upload, Uploads, address_of, client_of
from webui.http.sessions import COOKIE, Sessions
from webui.words import load_words

MB = 1 << 20


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


def test_whoever_drops_the_cookie_stays_in_the_group_of_the_address() -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    clients = [
        client_of(asked(cookie=cookie), sessions, is_behind_proxy=False)
        for cookie in ("", sessions.new_cookie(), sessions.new_cookie())
    ]
    assert len({one.name for one in clients}) == 3
    assert len({one.group for one in clients}) == 1
    unknown = {client_of(asked(port=0), sessions, is_behind_proxy=False).group}
    assert unknown.isdisjoint(one.group for one in clients)


def test_the_operator_is_known_by_the_cookie_and_where_nobody_else_comes() -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    for cookie, is_operator in (sessions.new_cookie(OPERATOR), True), (sessions.new_cookie(), False), ("x.y", False):
        assert client_of(asked(cookie=cookie), sessions, is_behind_proxy=False).is_operator == is_operator
    assert client_of(asked(), Sessions(b"s" * 32), is_behind_proxy=False).is_operator


def client(name: str, address: str | None = "93.184.216.1") -> Client:
    return Client(name, address, load_words("en"))


def test_a_fresh_cookie_for_each_question_does_not_help_and_unknown_addresses_share_a_larger_bucket() -> None:
    for address, most, other in (("93.184.216.1", 10, "93.184.216.2"), (None, 40, "93.184.216.1")):
        rate = Rate(2)
        waits = [rate.wait_s(client(f"fresh {number}", address)) for number in range(most + 1)]
        assert (waits[:most], waits[-1] > 0) == ([0.0] * most, True)
        assert rate.wait_s(client("other", other)) == 0


def test_one_is_at_work_of_a_visitor_and_a_few_of_an_address_and_what_failed_is_no_more() -> None:
    at_work = AtWork()
    group = [at_work.one(client(f"fresh {number}")) for number in range(5)]
    assert [one.__enter__() for one in group] == [0] * 5
    for other, is_let in (client("fresh 0", None), False), (client("another"), False), (client("one", "8.8.8.8"), True):
        with at_work.one(other) as wait_s:
            assert (wait_s == 0) == is_let
    group[0].__exit__(None, None, None)
    for name in ("fresh 0", "another", *["ann"] * 9):
        with contextlib.suppress(ValueError), at_work.one(client(name)) as wait_s:
            assert wait_s == 0
            raise ValueError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "uploads"
    folder.mkdir()
    return folder


def file_in(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * 1000)
    return str(path)


def test_a_file_is_of_whoever_sent_it_by_the_path_that_they_were_told(folder: Path) -> None:
    uploads, ann, bob = Uploads(folder), client("ann"), client("bob")
    path = file_in(folder, "abc/a.png")
    assert not uploads.is_of(path, ann)
    uploads.keep(path, ann)
    assert uploads.is_of(path, ann)
    others = (f"{folder}/./abc/../abc/a.png", str(folder), "/etc/hostname", "\0", "/tmp/a\0b", "\ud800")
    assert [one for one in others if uploads.is_of(one, ann)] == []
    assert not uploads.is_of(path, bob)
    uploads.keep(path, bob)
    assert uploads.is_of(path, bob)


async def test_what_is_sent_while_the_folder_is_looked_through_keeps_its_owner(folder: Path) -> None:
    uploads, ann, bob = Uploads(folder), client("ann"), client("bob")
    for number in range(300):
        uploads.keep(file_in(folder, f"{number}/a.png"), ann)
    looking = asyncio.create_task(uploads.begin(bob, 1))
    for number in range(300, 900):
        await asyncio.sleep(0)
        uploads.keep(str(folder / f"{number}" / "a.png"), ann)
        # It is moved to its place only after that.
        file_in(folder, f"{number}/a.png")
    assert await looking is not None
    for number in range(900):
        path = str(folder / f"{number}" / "a.png")
        assert uploads.is_of(path, ann)
        assert not uploads.is_of(path, bob)


async def test_what_is_too_old_is_gone_and_nobodys(folder: Path) -> None:
    now = [time.time()]
    uploads, ann = Uploads(folder, most_bytes=MB, clock=lambda: now[0]), client("ann")
    path = file_in(folder, "abc/a.png")
    uploads.keep(path, ann)
    assert await uploads.begin(ann, MB - 999) is None
    assert uploads.is_of(path, ann)
    now[0] += UPLOADS_KEPT_S + 60
    assert await uploads.begin(ann, MB - 999) is not None
    with pytest.raises(FileNotFoundError):
        os.unlink(path)
    assert not uploads.is_of(path, ann)


async def test_a_fresh_cookie_makes_no_more_room_and_what_is_under_way_takes_it_already(folder: Path) -> None:
    uploads, ann = Uploads(folder, most_bytes=20 * MB, most_bytes_of_one=10 * MB), client("ann", "8.8.8.8")

    async def begun(one: Client, megabytes: int) -> Upload:
        upload = await uploads.begin(one, megabytes * MB)
        assert upload is not None
        return upload

    sending = await begun(ann, 6)
    assert await uploads.begin(ann, 5 * MB) is None
    operator = Client("me", None, load_words("en"), is_operator=True)
    assert await uploads.begin(operator, 15 * MB) is None
    uploads.end(await begun(operator, 14), 0)
    uploads.end(sending, MB)
    # From now on it is what lies in the folder.
    uploads.end(await begun(operator, 20), 0)
    assert await uploads.begin(ann, 10 * MB) is None
    uploads.end(await begun(ann, 9), 0)
    # Of how much nothing is announced, all that there is room for may come.
    nothing_announced = await begun(ann, 0)
    assert nothing_announced.size_bytes == 9 * MB
    uploads.end(nothing_announced, 0)
    for address, most in ("93.184.216.1", 4), (None, 8):
        for number in range(most):
            one = client(f"{address} {number}", address)
            uploads.end(await begun(one, 10), 10 * MB)
            assert await uploads.begin(one, 1) is None
        assert await uploads.begin(client(f"{address} last", address), 1) is None
    uploads.end(await begun(client("other", "93.184.216.2"), 10), 0)
