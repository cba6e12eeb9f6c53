"""Sign-in with Hugging Face, where a Space offers it: what somebody made is theirs in every browser then.

The flow is OpenID Connect's, by authlib: authorization code with PKCE, state and nonce, and an ID token whose signature
is checked against the issuer's keys. Of the account only its id and its name are used, and no token of it is kept.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import SecretStr
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from agent import AivistaError
from webui.http.root_path import public_url
from webui.http.sessions import COOKIE, COOKIE_LIFE_S, OWNED_LIFE_S, Sessions, cookie_line

ACCOUNT = "/account"
_OFFER_LIFE_S = 600
_UNREACHABLE = 502

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Issuer:
    """Who knows the accounts, and as whom this studio asks: what Hugging Face gives a Space with `hf_oauth`."""

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
    """The routes below `/account`. `hand_over` gives all that one owner has to another."""

    def __init__(self, issuer: Issuer, sessions: Sessions, hand_over: Callable[[str, str], Awaitable[None]]) -> None:
        self._issuer = issuer
        self._sessions = sessions
        self._hand_over = hand_over
        # authlib brings no types, and is imported when the first one signs in.
        self._client: Any = None

    def mount(self) -> Mount:
        """Return the routes: to sign in, back from the issuer, and to sign out."""
        from starlette.middleware.sessions import SessionMiddleware

        # What a sign-in under way needs to be known again by; nothing of the account is in it.
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
        return self._moved(request, self._sessions.new_cookie(owner), OWNED_LIFE_S)

    async def _leave(self, request: Request) -> Response:
        """Whoever sits here next starts with nothing."""
        self._sessions.hold_key(self._sessions.visitor(request), None)
        return self._moved(request, self._sessions.new_cookie(), COOKIE_LIFE_S)

    def _moved(self, request: Request, cookie: str, life_s: int) -> Response:
        answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
        answer.headers.append("set-cookie", cookie_line(request.scope, COOKIE, cookie, life_s))
        return answer

    def _failed(self, request: Request, error: Exception) -> Response:
        # What an issuer says goes to the log without the token or code it may be about.
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
    """Return what goes wrong with an issuer: it cannot be reached, refuses, or answers what is not to be believed."""
    from httpx2 import HTTPError
    from joserfc.errors import JoseError

    refused: type[Exception] = import_module("authlib.common.errors").AuthlibBaseError
    return refused, HTTPError, JoseError, ValueError, KeyError, TypeError, RuntimeError


def owner_of(account_id: str) -> str:
    """Return the owner that an account stands for."""
    return f"account-{hashlib.sha256(account_id.encode()).hexdigest()[:32]}"
