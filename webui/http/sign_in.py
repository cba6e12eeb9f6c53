"""Access control: the optional password, the operator's own link past it, and sign-in with Hugging Face.

Guessing the password becomes slower and slower. Failed tries are counted by a cookie that says "was let in before",
else by address and visitor's cookie: after a few, that client alone must wait. A known address has a limit of tries per
minute, and so have all together; a browser that was let in before is held up by its own failures alone.

On a Space that offers it, users sign in with Hugging Face, so that their data is theirs in every browser. The flow is
OpenID Connect by authlib: authorization code with PKCE, state and nonce, and an ID token whose signature is checked
against the issuer's keys. Of the account only its id and name are used, and no token of it is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import ceil
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from cachetools import TTLCache
from markupsafe import Markup
from pydantic import SecretStr
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import OPERATOR, AivistaError
from webui.api.auth import Buckets
from webui.http.clients import address_of
from webui.http.root_path import public_url, root_path
from webui.http.sessions import COOKIE, COOKIE_LIFE_S, OWNED_LIFE_S, Sessions, body_of, cookie_line
from webui.page_assets import tokens_css
from webui.shell.templates import render

SIGN_IN = "/login"
"""Where the password goes, by form: also the place where `gradio_client` sends it (`Client(url, auth=…)`)."""
ENTER = "/enter/"
LET_IN_COOKIE = "aivista_in"
WAS_IN_COOKIE = "aivista_was_in"
"""Says that this browser knew the password once: no guesser's tries count against it."""

_PASS_LIFE_S = 30 * 24 * 3600
_MOST_BYTES = 4096
# Liveness tells nothing private; Gradio asks for the first path when it starts; programs bring tokens of their own.
_OPEN_PATHS = ("/healthz", "/readyz", "/gradio_api/startup-events", "/api/v1/", "/v1/")

FREE_TRIES = 5
LONGEST_PAUSE_S = 300.0
TRIES_OF_AN_ADDRESS_A_MINUTE = 20.0
TRIES_OF_ALL_A_MINUTE = 600.0
_MOST_GUESSERS = 10_000
_FORGOTTEN_S = 3600.0
ACCOUNT = "/account"
_OFFER_LIFE_S = 600
_UNREACHABLE = 502

_log = logging.getLogger(__name__)


class Attempt(NamedTuple):
    """A client that tries the password. `name` identifies it, empty where nothing does; `address` is None where it
    is unknown. A client that `was_in` before has a cookie of ours that says so."""

    name: str
    address: str | None
    was_in: bool


@dataclass
class SignInLimits:
    """Counts the failed tries of each client. `clock` returns seconds."""

    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        # The number of failures, and the time of the last one.
        self._wrong: TTLCache[str, tuple[int, float]] = TTLCache(_MOST_GUESSERS, _FORGOTTEN_S, self.clock)
        self._of_address = Buckets(TRIES_OF_AN_ADDRESS_A_MINUTE, self.clock)
        self._of_all = Buckets(TRIES_OF_ALL_A_MINUTE, self.clock)

    def wait_s(self, attempt: Attempt) -> float:
        """Return 0 when this try may be checked, else the seconds to wait before the next one."""
        tries, at_s = self._wrong.get(attempt.name, (0, 0.0))
        pause_s = min(2.0 ** (tries - FREE_TRIES), LONGEST_PAUSE_S) if tries >= FREE_TRIES else 0.0
        left_s = max(0.0, at_s + pause_s - self.clock())
        if left_s > 0 or attempt.was_in:
            return left_s
        of_address_s = self._of_address.take(attempt.address) if attempt.address is not None else 0.0
        return of_address_s or self._of_all.take("")

    def failed(self, attempt: Attempt) -> None:
        """Count a failed try."""
        if not attempt.name:
            return
        tries, _ = self._wrong.get(attempt.name, (0, 0.0))
        self._wrong[attempt.name] = (tries + 1, self.clock())

    def succeeded(self, attempt: Attempt) -> None:
        """Forget the failed tries of a client that got the password right in the end."""
        self._wrong.pop(attempt.name, None)


@dataclass
class AccessPolicy:
    """Who is let in. Without a `password` everyone is. Opening the operator's path makes a browser the operator's."""

    sessions: Sessions
    password: str = ""
    is_behind_proxy: bool = False
    limits: SignInLimits = field(default_factory=SignInLimits)
    operator_path: str = field(default_factory=lambda: f"{ENTER}{secrets.token_urlsafe(24)}")
    """Nobody else may learn it."""

    def allows(self, request: Request) -> bool:
        """Whether a request may go on: a public path, a signed link, the operator's cookie, or a pass that was
        issued here."""
        if not self.password or request.url.path.startswith(_OPEN_PATHS):
            return True
        if request.url.path.startswith("/media/") and request.query_params.get("sig") and COOKIE not in request.cookies:
            # The route checks the signature and the owner.
            return True
        visitor = self.sessions.read(request.cookies.get(COOKIE))
        if visitor is not None and visitor.owner == OPERATOR:
            return True
        nonce, _, rest = request.cookies.get(LET_IN_COOKIE, "").partition(".")
        until, _, signature = rest.partition(".")
        is_ours = self.sessions.is_signed(signature, *self._pass_parts(nonce, until))
        return is_ours and self.sessions.clock() <= int(until)

    def new_pass(self) -> str:
        """Return the value of a cookie that lets its browser in until the password changes or the cookie expires."""
        nonce, until = secrets.token_hex(16), str(int(self.sessions.clock()) + _PASS_LIFE_S)
        return f"{nonce}.{until}.{self.sessions.sign(*self._pass_parts(nonce, until))}"

    def _pass_parts(self, nonce: str, until: str) -> tuple[str, ...]:
        return "pass", nonce, until, hashlib.sha256(self.password.encode()).hexdigest()

    def attempt(self, request: Request) -> Attempt:
        """Return the client that tries the password."""
        address = address_of(request.scope, is_behind_proxy=self.is_behind_proxy)
        nonce, _, signature = request.cookies.get(WAS_IN_COOKIE, "").partition(".")
        if nonce and self.sessions.is_signed(signature, "was in", nonce):
            return Attempt(f"was in {nonce}", address, was_in=True)
        token = self.sessions.token_of(request.cookies.get(COOKIE))
        return Attempt(" ".join(filter(None, (address, token))), address, was_in=False)

    def new_mark(self, attempt: Attempt) -> str:
        """Return the value of a cookie that says that its browser was let in once."""
        nonce = attempt.name.removeprefix("was in ") if attempt.was_in else secrets.token_hex(16)
        return f"{nonce}.{self.sessions.sign('was in', nonce)}"


class SignIn:
    """ASGI middleware before the page and all our routes: a client that is not let in gets no answer from them."""

    def __init__(self, app: ASGIApp, way_in: AccessPolicy) -> None:
        self.app = app
        self.way_in = way_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._answer(Request(scope, receive)) if scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """Return the answer that is given instead of the page, or None to go on."""
        path, sessions = request.url.path, self.way_in.sessions
        if path.startswith(ENTER):
            if not hmac.compare_digest(path.encode(), self.way_in.operator_path.encode()):
                return PlainTextResponse(sessions.words(request)("sign_in.no_such_link"), status_code=404)
            return _to_page(request, sessions.new_cookie(OPERATOR), OWNED_LIFE_S)
        if self.way_in.password and path.rstrip("/") == SIGN_IN and request.method == "POST":
            return await self._sign_in(request)
        if self.way_in.allows(request):
            return None
        if request.method == "GET":
            return self._page(request, "", 401)
        return PlainTextResponse(sessions.words(request)("sign_in.needed"), status_code=401)

    async def _sign_in(self, request: Request) -> Response:
        body = await body_of(request, _MOST_BYTES)
        if body is None:
            return self._page(request, "sign_in.wrong", 413)
        typed = parse_qs(body.decode("utf-8", "replace")).get("password", [""])[0]
        limits, attempt = self.way_in.limits, self.way_in.attempt(request)
        if (wait_s := limits.wait_s(attempt)) > 0:
            seconds = ceil(wait_s)
            answer = self._page(request, "sign_in.too_often", 429, seconds=seconds)
            answer.headers["Retry-After"] = str(seconds)
            return answer
        # Hashes are compared, so that the time tells nothing of the password.
        hashes = [hashlib.sha256(one.encode("utf-8", "replace")).digest() for one in (typed, self.way_in.password)]
        if not hmac.compare_digest(*hashes):
            limits.failed(attempt)
            return self._page(request, "sign_in.wrong", 401)
        limits.succeeded(attempt)
        is_page = "text/html" in request.headers.get("accept", "")
        answer = RedirectResponse("/", status_code=303) if is_page else JSONResponse({"success": True})
        for name, value, life_s in (
            (LET_IN_COOKIE, self.way_in.new_pass(), _PASS_LIFE_S),
            (WAS_IN_COOKIE, self.way_in.new_mark(attempt), COOKIE_LIFE_S),
        ):
            answer.headers.append("set-cookie", cookie_line(request.scope, name, value, life_s))
        return answer

    def _page(self, request: Request, problem: str, status_code: int, **parameters: int) -> Response:
        words = self.way_in.sessions.words(request)
        told = words(problem, **parameters) if problem else ""
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(told or words("sign_in.needed"), status_code=status_code)
        styles = Markup(tokens_css())  # noqa: S704  ours alone
        page = render("sign_in.html", words, tokens=styles, action=f"{root_path(request)}{SIGN_IN}", problem=told)
        return HTMLResponse(page, status_code=status_code, headers={"Cache-Control": "no-store"})


def _to_page(request: Request, cookie: str, life_s: int) -> Response:
    """Return the way to the page, with another cookie of ours."""
    answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
    answer.headers.append("set-cookie", cookie_line(request.scope, COOKIE, cookie, life_s))
    return answer


# Accounts of Hugging Face


@dataclass(frozen=True)
class Issuer:
    """The issuer of accounts, and the studio's credentials there: what Hugging Face gives a Space with `hf_oauth`."""

    url: str
    client_id: str
    client_secret: SecretStr

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Issuer | None:
        """Return the issuer of a Space that offers the sign-in, None in any other."""
        url, name, secret = (
            environ.get(one, "").strip() for one in ("OPENID_PROVIDER_URL", "OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET")
        )
        return cls(url.rstrip("/"), name, SecretStr(secret)) if url and name and secret else None


class Accounts:
    """The routes below `/account`. `hand_over` moves all data of one owner to another."""

    def __init__(self, issuer: Issuer, sessions: Sessions, hand_over: Callable[[str, str], Awaitable[None]]) -> None:
        self._issuer = issuer
        self._sessions = sessions
        self._hand_over = hand_over
        # authlib has no types; it is imported at the first sign-in.
        self._client: Any = None

    def mount(self) -> Mount:
        """Return the routes: to sign in, back from the issuer, and to sign out."""
        from starlette.middleware.sessions import SessionMiddleware

        # The state of a sign-in under way; it holds nothing of the account.
        under_way = Middleware(
            SessionMiddleware,
            secret_key=self._sessions.sign("sign-in"),
            session_cookie="aivista_sign_in",
            max_age=_OFFER_LIFE_S,
            path=ACCOUNT,
        )
        routes = [
            Route("/sign-in", self._begin, methods=["GET"]),
            Route("/back", self._end, methods=["GET"]),
            Route("/sign-out", self._leave, methods=["POST"]),
        ]
        return Mount(ACCOUNT, routes=routes, middleware=[under_way])

    async def _begin(self, request: Request) -> Response:
        try:
            answer: Response = await self._app().authorize_redirect(request, f"{public_url(request)}{ACCOUNT}/back")
        except _failures() as error:
            return self._failed(request, error)
        return answer

    async def _end(self, request: Request) -> Response:
        try:
            token = await self._app().authorize_access_token(request)
            # Without an ID token whose signature was checked there is no account.
            account = token["userinfo"]
        except _failures() as error:
            return self._failed(request, error)
        visitor, owner = self._sessions.visitor(request), owner_of(str(account["sub"]))
        if visitor.token is not None and not visitor.is_known:
            try:
                await self._hand_over(visitor.owner, owner)
            except AivistaError as error:
                _log.warning("what was made before a sign-in could not be brought along: %s", error.code.value)
                return _refused(visitor.words.error(error.info), 500)
        self._sessions.name_owner(owner, str(account.get("preferred_username") or account.get("name") or ""))
        return _to_page(request, self._sessions.new_cookie(owner), OWNED_LIFE_S)

    async def _leave(self, request: Request) -> Response:
        """Sign out: whoever uses this browser next starts with nothing."""
        self._sessions.hold_key(self._sessions.visitor(request), None)
        return _to_page(request, self._sessions.new_cookie(), COOKIE_LIFE_S)

    def _failed(self, request: Request, error: Exception) -> Response:
        # What the issuer says is logged without the token or code that it may contain.
        _log.warning("a sign-in failed: %s", type(error).__name__)
        return _refused(self._sessions.words(request)("account.failed"), _UNREACHABLE)

    def _app(self) -> Any:
        if self._client is None:
            issuer, authlib = self._issuer, import_module("authlib.integrations.starlette_client")
            self._client = authlib.OAuth().register(
                "huggingface",
                client_id=issuer.client_id,
                client_secret=issuer.client_secret.get_secret_value(),
                server_metadata_url=f"{issuer.url}/.well-known/openid-configuration",
                client_kwargs={"scope": "openid profile", "code_challenge_method": "S256", "timeout": 15.0},
            )
        return self._client


def _refused(sentence: str, status_code: int) -> Response:
    return PlainTextResponse(sentence, status_code=status_code, headers={"Cache-Control": "no-store"})


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of a failed sign-in: the issuer is unreachable, refuses, or answers something
    untrustworthy."""
    from httpx2 import HTTPError
    from joserfc.errors import JoseError

    refused: type[Exception] = import_module("authlib.common.errors").AuthlibBaseError
    return refused, HTTPError, JoseError, ValueError, KeyError, TypeError, RuntimeError


def owner_of(account_id: str) -> str:
    """Return the owner of an account's data."""
    return f"account-{hashlib.sha256(account_id.encode()).hexdigest()[:32]}"
