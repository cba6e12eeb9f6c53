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
from webui.http.clients import UPLOADS_KEPT_S, ActiveJobs, Client, Rate, RejectedRequest, Uploads, address_of, client_of
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


def is_let(rate: Rate, one: Client) -> bool:
    try:
        rate.count(one)
    except RejectedRequest:
        return False
    return True


def test_a_fresh_cookie_for_each_question_does_not_help_and_unknown_addresses_share_a_larger_bucket() -> None:
    for address, most, other in (("93.184.216.1", 10, "93.184.216.2"), (None, 40, "93.184.216.1")):
        rate = Rate(2)
        answers = [is_let(rate, client(f"fresh {number}", address)) for number in range(most + 1)]
        assert answers == [True] * most + [False]
        assert is_let(rate, client("other", other))


def test_one_is_at_work_of_a_visitor_and_a_few_of_an_address_and_what_failed_is_no_more() -> None:
    at_work = ActiveJobs()
    group = [at_work.one(client(f"fresh {number}")) for number in range(5)]
    for one in group:
        one.__enter__()
    for other in client("fresh 0", None), client("another"):
        with pytest.raises(RejectedRequest), at_work.one(other):
            pass
    with at_work.one(client("one", "8.8.8.8")):
        pass
    group[0].__exit__(None, None, None)
    for name in ("fresh 0", "another", *["ann"] * 9):
        with contextlib.suppress(ValueError), at_work.one(client(name)):
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


async def has_no_room(uploads: Uploads, one: Client, size_bytes: int) -> None:
    with pytest.raises(RejectedRequest) as caught:
        await uploads.begin(one, size_bytes)
    assert caught.value.status == 507


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
    await looking
    for number in range(900):
        path = str(folder / f"{number}" / "a.png")
        assert uploads.is_of(path, ann)
        assert not uploads.is_of(path, bob)


async def test_what_is_too_old_is_gone_and_nobodys(folder: Path) -> None:
    now = [time.time()]
    uploads, ann = Uploads(folder, most_bytes=MB, clock=lambda: now[0]), client("ann")
    path = file_in(folder, "abc/a.png")
    uploads.keep(path, ann)
    await has_no_room(uploads, ann, MB - 999)
    assert uploads.is_of(path, ann)
    now[0] += UPLOADS_KEPT_S + 60
    await uploads.begin(ann, MB - 999)
    with pytest.raises(FileNotFoundError):
        os.unlink(path)
    assert not uploads.is_of(path, ann)


async def test_a_fresh_cookie_makes_no_more_room_and_what_is_under_way_takes_it_already(folder: Path) -> None:
    uploads, ann = Uploads(folder, most_bytes=20 * MB, most_bytes_of_one=10 * MB), client("ann", "8.8.8.8")

    sending = await uploads.begin(ann, 6 * MB)
    await has_no_room(uploads, ann, 5 * MB)
    operator = Client("me", None, load_words("en"), is_operator=True)
    await has_no_room(uploads, operator, 15 * MB)
    uploads.end(await uploads.begin(operator, 14 * MB), 0)
    uploads.end(sending, MB)
    # From now on it is what lies in the folder.
    uploads.end(await uploads.begin(operator, 20 * MB), 0)
    await has_no_room(uploads, ann, 10 * MB)
    uploads.end(await uploads.begin(ann, 9 * MB), 0)
    # Of how much nothing is announced, all that there is room for may come.
    nothing_announced = await uploads.begin(ann, 0)
    assert nothing_announced.size_bytes == 9 * MB
    uploads.end(nothing_announced, 0)
    for address, most in ("93.184.216.1", 4), (None, 8):
        for number in range(most):
            one = client(f"{address} {number}", address)
            uploads.end(await uploads.begin(one, 10 * MB), 10 * MB)
            await has_no_room(uploads, one, 1)
        await has_no_room(uploads, client(f"{address} last", address), 1)
    uploads.end(await uploads.begin(client("other", "93.184.216.2"), 10 * MB), 0)
