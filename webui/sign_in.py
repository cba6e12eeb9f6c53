"""The way in: a password before everything, where there is one, and the operator's own link past it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from html import escape
from math import ceil
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import OPERATOR
from webui.icons import icon
from webui.page_gate.comers import address_of
from webui.root_path import root_path
from webui.sessions import COOKIE, OWNED_LIFE_S, Sessions
from webui.sign_in_limits import LONGEST_WAIT_S, Client, SignInLimits
from webui.theme import tokens_css

SIGN_IN = "/login"
"""Where the password goes, by form: also the place where `gradio_client` sends it (`Client(url, auth=…)`)."""
ENTER = "/enter/"
LET_IN_COOKIE = "aivista_in"
WAS_IN_COOKIE = "aivista_was_in"
"""Says that this browser knew the password once: no guesser's tries count against it."""

_PASS_LIFE_S = 30 * 24 * 3600
_WAS_IN_LIFE_S = 365 * 24 * 3600
_MOST_BYTES = 4096
# Liveness says nothing; Gradio asks the first one when it starts; programs bring tokens of their own.
_OPEN_PATHS = ("/healthz", "/readyz", "/gradio_api/startup-events", "/api/v1/", "/v1/", ENTER)
_STYLE = """
body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--av-bg);color:var(--av-text);
font:15px/1.5 var(--av-sans)}
form{box-sizing:border-box;width:min(360px,calc(100vw - 32px));padding:28px;border-radius:var(--av-r-4);
background:var(--av-surface);box-shadow:var(--av-shadow-2);display:grid;gap:14px}
h1{margin:0;font-size:20px}p{margin:0;color:var(--av-text-2)}p.bad{color:var(--av-danger)}
label{display:grid;gap:6px;font-weight:600}
input{font:inherit;padding:10px 12px;border:1px solid var(--av-edge);border-radius:var(--av-r-2);
background:var(--av-surface);color:inherit}
button{font:inherit;font-weight:600;padding:10px;border:0;border-radius:var(--av-r-2);background:var(--av-ink);
color:var(--av-on-ink);cursor:pointer}
:focus-visible{outline:2px solid var(--av-accent);outline-offset:2px}
svg{color:var(--av-accent)}
"""
# The theme that was chosen on the page, else the system's.
_THEME = """<script>try{const kept=localStorage.getItem("aivista-theme")||"system";
const isDark=kept==="dark"||(kept==="system"&&matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.classList.toggle("dark",isDark)}catch{}</script>"""


@dataclass
class WayIn:
    """Who is let in. Without a `password` everyone is; whoever has `operator_link` is the operator from then on."""

    sessions: Sessions
    password: str = ""
    is_behind_proxy: bool = False
    operator_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    limits: SignInLimits = field(default_factory=SignInLimits)

    @property
    def operator_path(self) -> str:
        """The path that makes a browser the operator's; nobody else may learn it."""
        return f"{ENTER}{self.operator_token}"

    def lets_in(self, request: Request) -> bool:
        """Whether a request may go on: an open place, a signed link, the operator, or a pass that was given here."""
        if not self.password or request.url.path.startswith(_OPEN_PATHS):
            return True
        if request.url.path.startswith("/media/") and request.query_params.get("sig"):
            # The route looks whether the signature is good, and who it speaks for.
            return request.cookies.get(COOKIE) is None or self._has_pass(request)
        return self._has_pass(request)

    def new_pass(self) -> str:
        """Return the value of a cookie that lets in until the password changes, or it is too old."""
        until = str(int(self.sessions.clock()) + _PASS_LIFE_S)
        nonce = secrets.token_hex(16)
        return f"{nonce}.{until}.{self._signature(nonce, until)}"

    def client(self, request: Request) -> Client:
        """Return who tries the password, as far as limits go."""
        address = address_of(request.scope, is_behind_proxy=self.is_behind_proxy)
        nonce, _, signature = request.cookies.get(WAS_IN_COOKIE, "").partition(".")
        if nonce and hmac.compare_digest(signature.encode(), self.sessions.sign("was in", nonce).encode()):
            return Client(f"was in {nonce}", address, was_in=True)
        token = self.sessions.token_of(request.cookies.get(COOKIE))
        return Client(" ".join(filter(None, (address, token))), address)

    def new_mark(self, client: Client) -> str:
        """Return the value of a cookie that says that a browser was let in."""
        nonce = client.name.removeprefix("was in ") if client.was_in else secrets.token_hex(16)
        return f"{nonce}.{self.sessions.sign('was in', nonce)}"

    def is_password(self, typed: str) -> bool:
        """Whether somebody typed the password; how long this takes tells nothing of it."""
        kept, given = (hashlib.sha256(one.encode("utf-8", "replace")).digest() for one in (self.password, typed))
        return hmac.compare_digest(kept, given)

    def is_operator_token(self, token: str) -> bool:
        """Whether a path is the operator's."""
        return hmac.compare_digest(token.encode(), self.operator_token.encode())

    def _has_pass(self, request: Request) -> bool:
        owned = self.sessions.read(request.cookies.get(COOKIE))
        if owned is not None and owned.owner == OPERATOR:
            return True
        nonce, _, rest = request.cookies.get(LET_IN_COOKIE, "").partition(".")
        until, _, signature = rest.partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(nonce, until).encode())
        return is_ours and self.sessions.clock() <= int(until)

    def _signature(self, nonce: str, until: str) -> str:
        digest = hashlib.sha256(self.password.encode()).hexdigest()
        return self.sessions.sign("pass", nonce, until, digest)


class SignIn:
    """ASGI middleware before the page and every route of ours: nothing is answered to whoever is not let in."""

    def __init__(self, app: ASGIApp, way_in: WayIn) -> None:
        self.app = app
        self.way_in = way_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            # Nothing of the studio speaks it.
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        answer = await self._answer(request)
        if answer is None:
            await self.app(scope, receive, send)
        else:
            await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response | None:
        """Return what is said before the page, or None to go on."""
        path = request.url.path
        if path.startswith(ENTER):
            return self._enter(request, path.removeprefix(ENTER))
        if not self.way_in.password:
            return None
        if path.rstrip("/") == SIGN_IN and request.method == "POST":
            return await self._sign_in(request)
        return None if self.way_in.lets_in(request) else self._refusal(request)

    def _enter(self, request: Request, token: str) -> Response:
        sessions = self.way_in.sessions
        if not self.way_in.is_operator_token(token):
            return PlainTextResponse(sessions.words(request)("sign_in.no_such_link"), status_code=404)
        answer = RedirectResponse("/", status_code=303, headers={"Cache-Control": "no-store"})
        answer.headers.append("set-cookie", cookie_line(request, COOKIE, sessions.new_cookie(OPERATOR), OWNED_LIFE_S))
        return answer

    async def _sign_in(self, request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return self._page(request, "sign_in.wrong", 413)
        typed = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10).get("password", [""])[0]
        limits, client = self.way_in.limits, self.way_in.client(request)
        if (pause_s := limits.pause_s(client)) > 0:
            return self._too_often(request, pause_s)
        if not await limits.turn(client):
            return self._too_often(request, LONGEST_WAIT_S)
        if not self.way_in.is_password(typed):
            limits.failed(client)
            return self._page(request, "sign_in.wrong", 401)
        limits.succeeded(client)
        is_page = "text/html" in request.headers.get("accept", "")
        answer: Response = RedirectResponse("/", status_code=303) if is_page else JSONResponse({"success": True})
        answer.headers.append("set-cookie", cookie_line(request, LET_IN_COOKIE, self.way_in.new_pass(), _PASS_LIFE_S))
        mark = self.way_in.new_mark(client)
        answer.headers.append("set-cookie", cookie_line(request, WAS_IN_COOKIE, mark, _WAS_IN_LIFE_S))
        return answer

    def _too_often(self, request: Request, pause_s: float) -> Response:
        seconds = ceil(pause_s)
        answer = self._page(request, "sign_in.too_often", 429, seconds=seconds)
        answer.headers["Retry-After"] = str(seconds)
        return answer

    def _refusal(self, request: Request) -> Response:
        is_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if is_page:
            return self._page(request, "", 401)
        return PlainTextResponse(self.way_in.sessions.words(request)("sign_in.needed"), status_code=401)

    def _page(self, request: Request, problem: str, status_code: int, **parameters: int) -> Response:
        words = self.way_in.sessions.words(request)
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse(words(problem or "sign_in.needed", **parameters), status_code=status_code)
        told = f'<p class="bad" role="alert">{escape(words(problem, **parameters))}</p>' if problem else ""
        page = f"""<!doctype html><html lang="{words.language}"><head><meta charset="utf-8"><title>Aivista</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="robots" content="noindex">
<style>{tokens_css()}{_STYLE}</style>{_THEME}</head><body><form method="post" action="{root_path(request)}{SIGN_IN}">
{icon("palette", 28)}<h1>{escape(words("sign_in.title"))}</h1><p>{escape(words("sign_in.lead"))}</p>{told}
<input type="hidden" name="username" value="aivista">
<label>{escape(words("sign_in.password"))}<input type="password" name="password" autocomplete="current-password"
required autofocus></label><button>{escape(words("sign_in.enter"))}</button></form></body></html>"""
        return HTMLResponse(page, status_code=status_code, headers={"Cache-Control": "no-store"})


def cookie_line(request: Request, name: str, value: str, life_s: int) -> str:
    """Return a cookie for the whole studio that no script reads, as the header says it."""
    is_https = Headers(scope=request.scope).get("x-forwarded-proto") == "https" or request.url.scheme == "https"
    secure = "; Secure" if is_https else ""
    return f"{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}"
