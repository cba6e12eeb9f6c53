"""Signing in with an account: the real flow against an issuer on this machine, and the ways to try it wrongly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey
from pydantic import SecretStr
from starlette.applications import Starlette

from agent import AivistaError, ErrorCode, SettingsError, StorageFailure
from tests.issuer_server import CLIENT_ID, CLIENT_SECRET, IssuerServer
from webui.http.sessions import COOKIE, Sessions, Visitor
from webui.http.sign_in import Accounts, Issuer, owner_of
from webui.shell.templates import render
from webui.words import load_words

Browser = Callable[[], AbstractAsyncContextManager[httpx2.AsyncClient]]
WORDS = load_words("en")


@pytest.fixture(scope="module")
def running() -> Iterator[IssuerServer]:
    with IssuerServer() as server:
        yield server


@pytest.fixture
def issuer(running: IssuerServer) -> Iterator[IssuerServer]:
    running.signs_with = None
    yield running
    assert running.violations == []


@dataclass
class Space:
    """A Space's routes, and whose things were handed over to whom."""

    issuer: IssuerServer
    sessions: Sessions = field(default_factory=lambda: Sessions(b"s" * 32, is_shared=True, has_accounts=True))
    handed_over: list[tuple[str, str]] = field(default_factory=list)
    failure: AivistaError | None = None

    async def hand_over(self, owner: str, new_owner: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.handed_over.append((owner, new_owner))

    @asynccontextmanager
    async def browser(self, url: str = "") -> AsyncIterator[httpx2.AsyncClient]:
        issuer = Issuer(url or self.issuer.url, CLIENT_ID, SecretStr(CLIENT_SECRET))
        app = Starlette(routes=[Accounts(issuer, self.sessions, self.hand_over).mount()])
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://ada-foxes.hf.space") as client:
            client.cookies.set(COOKIE, self.sessions.new_cookie(), "ada-foxes.hf.space")
            yield client

    def visitor(self, client: httpx2.AsyncClient) -> Visitor:
        """Return who a browser is now."""
        return self.sessions.visitor_of(client.cookies[COOKIE], WORDS)


@pytest.fixture
def space(issuer: IssuerServer) -> Space:
    return Space(issuer)


async def way_back(client: httpx2.AsyncClient) -> str:
    """Begin a sign-in and allow it at the issuer; return where the browser is sent."""
    begun = await client.get("/account/sign-in")
    assert begun.status_code == 302
    async with httpx2.AsyncClient(trust_env=False) as at_the_issuer:
        allowed = await at_the_issuer.get(begun.headers["location"])
    return str(allowed.headers["location"])


async def test_signing_in_brings_along_what_was_made_before_and_is_the_same_owner_anywhere(space: Space) -> None:
    for _ in range(2):
        async with space.browser() as ada:
            before = space.visitor(ada).owner
            answer = await ada.get(await way_back(ada))
            assert (answer.status_code, answer.headers["location"]) == (303, "/")
            visitor = space.visitor(ada)
            assert (visitor.owner, visitor.is_known) == (owner_of("62f0c0ffee"), True)
            assert space.handed_over[-1] == (before, visitor.owner)
            assert space.sessions.name_of(visitor.owner) == "ada"
            assert CLIENT_SECRET not in str(answer.headers)
    space.sessions.hold_key(space.visitor(ada), SecretStr("AIza-of-ada-0001"))
    known = space.visitor(ada)
    for number in range(10_001):
        space.sessions.name_owner(f"account-{number}", f"Ada {number}")
    assert space.sessions.name_of("account-0") == "", "the names do not grow without end"
    async with space.browser() as leaving:
        leaving.cookies = ada.cookies
        assert (await leaving.get("/account/sign-out")).status_code == 405, "a picture elsewhere signs nobody out"
        assert (await leaving.post("/account/sign-out")).status_code == 303
        assert not space.visitor(leaving).is_known
        assert space.sessions.key(known) is None


async def test_a_way_back_is_good_once_and_only_in_the_browser_that_began_it(space: Space) -> None:
    async with space.browser() as ada, space.browser() as mallory:
        back = await way_back(ada)
        stolen = await mallory.get(back)
        assert (stolen.status_code, space.visitor(mallory).is_known) == (502, False)
        await ada.get(back)
        assert space.visitor(ada).is_known
        assert (await ada.get(back)).status_code == 502


async def test_what_does_not_fit_signs_nobody_in(space: Space) -> None:
    async with space.browser() as ada:
        for change in ({"state": "another"}, {"code": "another"}, {"code": ""}, {"error": "access_denied"}):
            back = urlsplit(await way_back(ada))
            query = {name: values[0] for name, values in parse_qs(back.query).items()} | change
            answer = await ada.get(back.path, params=query)
            assert answer.status_code == 502
            assert answer.text == "Signing in did not work. Please go back to the studio and try again."
            assert not space.visitor(ada).is_known
        space.issuer.signs_with = RSAKey.generate_key(2048)
        assert (await ada.get(await way_back(ada))).status_code == 502, "another key signed it"
        assert not space.visitor(ada).is_known


async def test_what_cannot_be_brought_along_and_an_issuer_that_is_gone_are_told(space: Space) -> None:
    for failure in (StorageFailure(ErrorCode.DISK_FULL), SettingsError("styles.json", "[", "no list of styles")):
        space.failure, space.handed_over = failure, []
        async with space.browser() as ada:
            answer = await ada.get(await way_back(ada))
            assert (answer.status_code, answer.text) == (500, WORDS.error(failure.info))
            assert not space.visitor(ada).is_known
            space.failure = None
            await ada.get(await way_back(ada))
            assert (space.visitor(ada).is_known, len(space.handed_over)) == (True, 1)
    async with space.browser("http://127.0.0.1:9") as ada:
        answer = await ada.get("/account/sign-in")
        assert (answer.status_code, "127.0.0.1" in answer.text) == (502, False)


def test_a_space_offers_the_sign_in_where_hugging_face_gave_it_all_it_takes() -> None:
    told = {"OPENID_PROVIDER_URL": "https://huggingface.co/", "OAUTH_CLIENT_ID": "a", "OAUTH_CLIENT_SECRET": "b"}
    issuer = Issuer.from_env(told)
    assert issuer is not None
    assert (issuer.url, "b" in repr(issuer.client_secret)) == ("https://huggingface.co", False)
    assert [Issuer.from_env({**told, name: ""}) for name in told] == [None] * 3


def test_the_page_offers_the_sign_in_and_then_says_who_is_there() -> None:
    assert 'data-act="sign_in"' in render("conversations/account.html", WORDS, is_known=False, name="")
    shown = render("conversations/account.html", WORDS, is_known=True, name="<ada>")
    assert "&lt;ada&gt;" in shown
    assert 'action="account/sign-out"' in shown
