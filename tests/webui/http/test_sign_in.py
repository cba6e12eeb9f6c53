"""The way in, as browsers and programs meet it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from agent import OPERATOR
from tests.support.clock import Standing
from webui.http.sessions import COOKIE, Sessions
from webui.http.sign_in import (
    LET_IN_COOKIE,
    SIGN_IN,
    TRIES_OF_ALL_A_MINUTE,
    WAS_IN_COOKIE,
    AccessPolicy,
    SignIn,
    SignInLimits,
)

PASSWORD = "a red fox"
PAGE = {"Accept": "text/html,application/xhtml+xml"}
# Not of the documentation's addresses, which are not public.
GUESSERS, GUESTS = "93.184.216.34", "93.184.216.35"


Browser = Callable[..., AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def way_in() -> AccessPolicy:
    return AccessPolicy(Sessions(b"s" * 32, is_shared=True), PASSWORD)


@pytest.fixture
def browser(way_in: AccessPolicy) -> Browser:
    """Return a function that opens a browser with cookies of its own before a page behind the password."""

    async def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"the page of {way_in.sessions.visitor(request).owner}")

    paths = ["/", "/media/c/1", "/api/v1/conversations", "/readyz", "/gradio_api/upload", "/aivista/gallery/zip/x"]
    routes = [Route(path, page, methods=["GET", "POST"]) for path in paths]
    app = Starlette(routes=routes, middleware=[Middleware(SignIn, way_in=way_in)])

    @asynccontextmanager
    async def opened(address: str = "127.0.0.1", **cookies: str) -> AsyncIterator[httpx2.AsyncClient]:
        transport = httpx2.ASGITransport(app, client=(address, 50_000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://studio", cookies=cookies) as client:
            yield client

    return opened


async def sign_in(client: httpx2.AsyncClient, password: str, **headers: str) -> httpx2.Response:
    return await client.post(SIGN_IN, data={"username": "aivista", "password": password}, headers=headers)


async def let_in_before(browser: Browser) -> dict[str, str]:
    """Return the cookie that a browser keeps which was let in once."""
    async with browser("8.8.4.4") as guest:
        await sign_in(guest, PASSWORD)
        return {WAS_IN_COOKIE: guest.cookies[WAS_IN_COOKIE]}


async def guess_until_refused(client: httpx2.AsyncClient, **headers: str) -> None:
    """Try wrong passwords until no more may be tried for now."""
    for _ in range(1000):
        if (await sign_in(client, "guess", **headers)).status_code == 429:
            return
    raise AssertionError("one may guess without end")


async def test_without_the_password_nothing_is_answered_and_a_browser_is_asked_for_it_in_its_language(
    browser: Browser, way_in: AccessPolicy
) -> None:
    async with browser() as stranger:
        for path in ("/", "/media/c/1", "/gradio_api/upload", "/aivista/gallery/zip/x", "/no-such-page"):
            for method in ("GET", "POST"):
                answer = await stranger.request(method, path)
                assert (answer.status_code, answer.text) == (401, "Please sign in with the password first.")
        page = await stranger.get("/", headers={**PAGE, "Accept-Language": "zh-CN"})
        assert (page.status_code, page.headers["cache-control"]) == (401, "no-store")
        assert '<html lang="zh-CN">' in page.text
        assert 'autocomplete="current-password"' in page.text
        # Programs with tokens and platforms that probe need none; a signed link is checked by its route.
        for path in ("/api/v1/conversations", "/readyz", "/media/c/1?sig=0"):
            assert (await stranger.get(path)).status_code == 200
        for forged in ("", "x", "a.9999999999.0", "a.b.c", "é"):
            cookie = [(b"Cookie", f"{LET_IN_COOKIE}={forged}".encode("latin-1"))]
            assert (await stranger.get("/", headers=cookie)).status_code == 401
        assert (await sign_in(stranger, "x" * 10_000)).status_code == 413
    async with browser(**{COOKIE: way_in.sessions.new_cookie()}) as visitor:
        assert (await visitor.get("/media/c/1?sig=0")).status_code == 401, "a cookie would speak for its visitor there"
        way_in.password = ""
        assert (await visitor.get("/")).status_code == 200


async def test_with_the_password_the_studio_opens_until_there_is_another(
    browser: Browser, way_in: AccessPolicy
) -> None:
    async with browser() as guest:
        answer = await sign_in(guest, PASSWORD, **PAGE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookies = answer.headers.get_list("set-cookie")
        assert [cookie.partition("=")[0] for cookie in cookies] == [LET_IN_COOKIE, WAS_IN_COOKIE]
        for cookie in cookies:
            assert {"HttpOnly", "SameSite=Lax"} <= set(cookie.split("; "))
            assert not {"Secure", PASSWORD} & set(cookie.split("; "))
            assert PASSWORD not in cookie
        assert (await guest.get("/")).status_code == 200
        answer = await sign_in(guest, PASSWORD, **{"X-Forwarded-Proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]
    async with browser(**{LET_IN_COOKIE: guest.cookies[LET_IN_COOKIE]}) as again:
        assert (await again.get("/")).status_code == 200
        way_in.password = "another fox"
        assert (await again.get("/")).status_code == 401
        assert (await sign_in(again, PASSWORD)).status_code == 401
        answer = await sign_in(again, "another fox")
        assert (answer.status_code, answer.json()) == (200, {"success": True}), "a program signs in by the same form"


async def test_a_wrong_password_is_told_and_who_guesses_waits_ever_longer(
    browser: Browser, way_in: AccessPolicy
) -> None:
    clock = Standing()
    way_in.limits = SignInLimits(clock)
    pauses, refused = [], None
    async with browser(GUESSERS) as guesser:
        wrong = await sign_in(guesser, "guess", **PAGE)
        assert (wrong.status_code, 'role="alert"' in wrong.text) == (401, True)
        for _ in range(20):
            answer = await sign_in(guesser, "guess")
            if answer.status_code == 429:
                refused = await sign_in(guesser, PASSWORD, **PAGE)
                assert refused.status_code == 429, "nobody finds out that this one was right"
                pauses.append(int(answer.headers["retry-after"]))
                assert f"wait {pauses[-1]} s" in refused.text
                clock.now += pauses[-1]
        assert pauses[:7] == [1, 2, 4, 8, 16, 32, 64]
        clock.now += 300
        assert (await sign_in(guesser, PASSWORD)).status_code == 200
        assert [(await sign_in(guesser, "guess")).status_code for _ in range(5)] == [401] * 5


async def test_whoever_guesses_keeps_out_no_other_browser_at_the_same_address(
    browser: Browser, way_in: AccessPolicy
) -> None:
    new = {COOKIE: way_in.sessions.new_cookie()}
    async with browser(GUESSERS) as guesser, browser(GUESSERS, **new) as neighbour:
        answers = [(await sign_in(guesser, "guess")).status_code for _ in range(400)]
        assert answers.count(429) > 300
        assert (await sign_in(neighbour, PASSWORD)).status_code == 200


@pytest.mark.parametrize("gets_cookies", [False, True])
@pytest.mark.parametrize("addresses", ["one", "many", "unknown"])
async def test_hundreds_of_wrong_tries_keep_out_nobody(
    browser: Browser, way_in: AccessPolicy, addresses: str, gets_cookies: bool
) -> None:
    came_before = await let_in_before(browser)

    async def guess(number: int) -> int:
        address = {"one": GUESSERS, "many": f"8.{number // 250}.4.{number % 250}", "unknown": "127.0.0.1"}[addresses]
        cookies = {COOKIE: way_in.sessions.new_cookie()} if gets_cookies else {}
        async with browser(address, **cookies) as guesser:
            return (await sign_in(guesser, f"guess {number}")).status_code

    assert {await guess(number) for number in range(400)} <= {401, 429}
    for address in (GUESTS, "127.0.0.1", "2a00:1450:4001:80c::1"):
        async with browser(address, **{COOKIE: way_in.sessions.new_cookie()}) as guest:
            assert (await sign_in(guest, PASSWORD)).status_code == 200, "a new browser"
        async with browser(address) as script:
            assert (await sign_in(script, PASSWORD)).status_code == 200, "a program without a cookie"
    async with browser(GUESSERS, **came_before) as returning:
        assert (await sign_in(returning, PASSWORD)).status_code == 200, "one who was in before, beside the guesser"
    async with browser(GUESSERS) as own:
        assert (await own.get(way_in.operator_path)).status_code == 303


async def test_more_than_may_be_tried_in_a_minute_holds_up_new_ones_alone_and_not_for_long(
    browser: Browser, way_in: AccessPolicy
) -> None:
    clock = Standing()
    way_in.limits = SignInLimits(clock)
    came_before = await let_in_before(browser)
    async with browser() as crowd, browser(GUESTS) as guest, browser(GUESTS, **came_before) as returning:
        answers = [(await sign_in(crowd, "guess")).status_code for _ in range(int(TRIES_OF_ALL_A_MINUTE) + 10)]
        assert answers[-1] == 429
        assert (await sign_in(returning, PASSWORD)).status_code == 200
        assert (await sign_in(guest, PASSWORD)).headers["retry-after"] == "1"
        clock.now += 1
        assert (await sign_in(guest, PASSWORD)).status_code == 200


async def test_a_mark_of_having_been_in_lets_in_nobody_and_cannot_be_forged(
    browser: Browser, way_in: AccessPolicy
) -> None:
    came_before = await let_in_before(browser)
    async with browser(**came_before) as returning:
        assert (await returning.get("/")).status_code == 401
        answers = [(await sign_in(returning, "guess")).status_code for _ in range(20)]
        assert 429 in answers, "what it is good for is not guessing"
    for forged in ("x", "x.y", f"{came_before[WAS_IN_COOKIE]}0", "."):
        async with browser(GUESSERS, **{WAS_IN_COOKIE: forged}) as guesser:
            await guess_until_refused(guesser)


async def test_addresses_that_one_may_choose_among_count_as_one_and_a_proxys_word_counts_for_who_guesses(
    browser: Browser, way_in: AccessPolicy
) -> None:
    async with (
        browser("2a00:1450:4001:80b::1") as guesser,
        browser("2a00:1450:4001:80b:7::2") as again,
        browser("2a00:1450:4001:80c::1") as guest,
    ):
        await guess_until_refused(guesser)
        assert (await sign_in(again, PASSWORD)).status_code == 429
        assert (await sign_in(guest, PASSWORD)).status_code == 200
    way_in.is_behind_proxy = True
    async with browser(GUESSERS) as proxy:
        await guess_until_refused(proxy, **{"X-Forwarded-For": f"{GUESTS}, {GUESSERS}"})
        assert (await sign_in(proxy, PASSWORD, **{"X-Forwarded-For": GUESTS})).status_code == 200


async def test_the_operators_link_makes_a_browser_the_operators_and_no_other(
    browser: Browser, way_in: AccessPolicy
) -> None:
    async with browser() as own:
        told = [await own.get(path) for path in (way_in.operator_path + "x", "/enter/", "/enter/" + "é" * 32)]
        assert [(one.status_code, "set-cookie" in one.headers) for one in told] == [(404, False)] * 3
        answer = await own.get(way_in.operator_path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await own.get("/")).text == f"the page of {OPERATOR}"
