"""Visitors: our signed cookie, the owner it stands for, and the visitor's key. Also the HTTP routes beside the
page's actions: a refusal there is one sentence, and no answer can be taken for a page."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import quote

from cachetools import LRUCache, TTLCache
from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from agent import OPERATOR, AivistaError, Settings, locked_file, storage_failure, write_private_file
from webui.http.root_path import is_https
from webui.words import Words, choose_language, load_words

COOKIE = "aivista_session"
LANGUAGE_COOKIE = "aivista_lang"
KEY_IDLE_S = 2 * 3600.0
LINK_LIFE_S = 24 * 3600
COOKIE_LIFE_S = 365 * 24 * 3600
OWNED_LIFE_S = 30 * 24 * 3600

_MOST_NAMES = 10_000
_MOST_KEYS = 10_000
_LONGEST_NAME = 100
_KEY_FILE = "gemini.key"
_LONGEST_KEY_BYTES = 1024
_SECRET_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_log = logging.getLogger(__name__)
# Content of users and models is never rendered as a page of ours.
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NO_STORE = {"Cache-Control": "no-store", **_SAFE}
# The same address may have another answer tomorrow.
NO_CACHE = {"Cache-Control": "private, no-cache", **_SAFE}
# A handle never stands for other pixels, so an address with all its parameters always has the same answer.
IMMUTABLE = {"Cache-Control": "private, max-age=86400, immutable", "Vary": "Cookie", **_SAFE}
PER_VISITOR = 4


class StoredKey:
    """The key that the user keeps on their own machine: one file below the home, readable by its user alone. It is read
    anew each time, because another process may have changed or removed it.

    It exists only where nobody but the user can reach the studio, because everybody who opens the page is served with
    it. One that `is_silent` logs nothing: the log filter itself asks it for the key that no line may hold.
    """

    def __init__(self, home: Path, *, is_silent: bool = False) -> None:
        self._path = home / _KEY_FILE
        self._is_silent = is_silent
        # Warn once, not for each page.
        self._told = ""

    def read(self) -> SecretStr | None:
        """Return the key, or None where none is kept or the file cannot be read as one."""
        try:
            # A link could lead to any file, whose content would be sent to Google as a key.
            with open(self._path, "rb", opener=_without_links) as file:
                # Windows has other means to say who may read a file.
                if os.name == "posix" and _is_open_to_others(file.fileno()):
                    self._close_to_others(file.fileno())
                text = file.read(_LONGEST_KEY_BYTES + 1).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn(f"cannot be read: {error.strerror}")
            return None
        is_plausible = text and len(text) <= _LONGEST_KEY_BYTES and text.isascii() and text.isprintable()
        return SecretStr(text) if is_plausible else None

    def _close_to_others(self, descriptor: int) -> None:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o600)
        # Some network file systems report success and do nothing.
        if _is_open_to_others(descriptor):
            self._warn("can be read by others, and cannot be closed to them here. Please keep the key elsewhere.")
        else:
            self._warn("could be read by others; it is closed to them now. Please make a new key.")

    def _warn(self, problem: str) -> None:
        if not self._is_silent and problem != self._told:
            self._told = problem
            _log.warning("%s %s", _KEY_FILE, problem)

    def keep(self, key: SecretStr) -> None:
        """Put the key in the file, whole and durable. Raises StorageFailure."""
        try:
            write_private_file(self._path, key.get_secret_value().encode())
        except OSError as error:
            raise storage_failure(error) from error

    def remove(self) -> None:
        """Delete the file, if there is one. Raises StorageFailure."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise storage_failure(error) from error


def _is_open_to_others(descriptor: int) -> bool:
    return bool(stat.S_IMODE(os.fstat(descriptor).st_mode) & _OTHERS)


def _without_links(path: str, flags: int) -> int:
    # A named pipe is not waited for either.
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


class PageRequest(Protocol):
    """The part of a request that this module reads; Gradio's and Starlette's requests both have it."""

    @property
    def cookies(self) -> Mapping[str, str]: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class SessionCookie:
    """The content of our cookie: the visitor's token, and the owner whose data it opens when that is not the token
    itself."""

    token: str
    owner: str | None = None


@dataclass(frozen=True)
class Visitor:
    """A visitor: their token (None without a cookie), the owner whose conversations they may open, and their language.

    `is_known` says that they signed in, or are the operator: their data does not depend on this one cookie.
    """

    token: str | None
    owner: str
    words: Words
    is_known: bool = False


@dataclass
class Sessions:
    """Identifies visitors by their cookie, and signs links to pictures.

    On the user's own machine everyone is the owner `local`. Where others can come, each cookie is an owner of its own,
    except for the operator's cookie and, with `has_accounts`, those of signed-in users; these are valid for
    `OWNED_LIFE_S`. Keys that visitors type are held in memory only, until they are idle for `KEY_IDLE_S` or displaced
    by newer ones.
    """

    secret: bytes
    is_shared: bool = False
    fixed_language: str | None = None
    has_accounts: bool = False
    clock: Callable[[], float] = time.time
    kept: StoredKey | None = None
    _names: LRUCache[str, str] = field(default_factory=lambda: LRUCache(_MOST_NAMES), repr=False)

    def __post_init__(self) -> None:
        self._keys: TTLCache[str, SecretStr] = TTLCache(_MOST_KEYS, KEY_IDLE_S, self.clock)

    def new_cookie(self, owner: str | None = None) -> str:
        """Return the value of a fresh cookie: 128 random bits and their signature; with `owner`, one for that owner."""
        token = secrets.token_hex(16)
        if owner is None:
            return f"{token}.{self.sign('cookie', token)}"
        until = str(int(self.clock()) + OWNED_LIFE_S)
        return f"{token}.{owner}.{until}.{self.sign('owned', token, owner, until)}"

    def read(self, cookie: str | None) -> SessionCookie | None:
        """Return the content of a cookie that we signed and that has not expired, else None."""
        match (cookie or "").split("."):
            case [token, signature] if token and self.is_signed(signature, "cookie", token):
                return SessionCookie(token)
            case [token, owner, until, signature] if self.is_signed(signature, "owned", token, owner, until):
                return SessionCookie(token, owner) if self.clock() <= int(until) else None
            case _:
                return None

    def token_of(self, cookie: str | None) -> str | None:
        """Return the token of a valid cookie, else None."""
        found = self.read(cookie)
        return found.token if found is not None else None

    def visitor(self, request: PageRequest) -> Visitor:
        """Return who sent the request."""
        return self.visitor_of(request.cookies.get(COOKIE), self.words(request))

    def visitor_of(self, cookie: str | None, words: Words) -> Visitor:
        """Return the visitor of a cookie. Where each cookie is its own owner, one without a valid cookie owns
        nothing."""
        found = self.read(cookie)
        token = found.token if found is not None else None
        if not self.is_shared:
            return Visitor(token, OPERATOR, words)
        if found is not None and found.owner is not None:
            return Visitor(token, found.owner, words, is_known=True)
        if token is None:
            return Visitor(None, f"nobody-{secrets.token_hex(16)}", words)
        return Visitor(token, f"visitor-{hashlib.sha256(token.encode()).hexdigest()[:32]}", words)

    def words(self, request: PageRequest) -> Words:
        """Return the words of the language that a request asks for."""
        chosen = request.cookies.get(LANGUAGE_COOKIE)
        language = choose_language(self.fixed_language, chosen, request.headers.get("accept-language", ""))
        return load_words(language)

    def key(self, visitor: Visitor) -> SecretStr | None:
        """Return the key that this visitor typed, if it is still held, else the one that is kept on this machine."""
        return self.session_key(visitor) or (self.kept.read() if self.kept is not None else None)

    def session_key(self, visitor: Visitor) -> SecretStr | None:
        """Return the key that this visitor typed for this session, if it is still held. Using it renews it."""
        held = self._keys.get(visitor.token or "")
        if held is not None:
            self._keys[visitor.token or ""] = held
        return held

    def hold_key(self, visitor: Visitor, key: SecretStr | None) -> bool:
        """Hold a key for this visitor, or forget it (None). Return whether the visitor has a cookie to hold it for."""
        if visitor.token is None:
            return False
        self._keys.pop(visitor.token, None)
        if key is not None:
            self._keys[visitor.token] = key
        return True

    def name_owner(self, owner: str, name: str) -> None:
        """Remember the name of a signed-in user."""
        self._names[owner] = name[:_LONGEST_NAME]

    def name_of(self, owner: str) -> str:
        """Return the name of a signed-in user, empty when it is not known any more."""
        return self._names.get(owner, "")

    def link_query(self, owner: str, conversation_id: str, handle: str) -> str:
        """Return a query that lets a script without a cookie fetch one picture for a day."""
        until = int(self.clock()) + LINK_LIFE_S
        return f"owner={owner}&until={until}&sig={self.sign('link', owner, conversation_id, handle, str(until))}"

    def link_owner(self, query: Mapping[str, str], conversation_id: str, handle: str) -> str | None:
        """Return the owner that a signed link stands for, or None when it is forged or expired."""
        owner, until = query.get("owner", ""), query.get("until", "")
        is_ours = self.is_signed(query.get("sig", ""), "link", owner, conversation_id, handle, until)
        return owner if is_ours and self.clock() <= int(until) else None

    def is_signed(self, signature: str, *parts: str) -> bool:
        """Whether we signed these parts."""
        try:
            given, ours = signature.encode(), self.sign(*parts).encode()
        except UnicodeEncodeError:
            # JSON can hold half of a surrogate pair, which no text of ours has.
            return False
        return hmac.compare_digest(given, ours)

    def sign(self, *parts: str) -> str:
        """Return our signature of these parts; the first part names the purpose."""
        text = "\n".join(parts).encode()
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()[:32]


def cookie_line(scope: Scope, name: str, value: str, life_s: int, *, is_embedded: bool = False) -> str:
    """Return a `Set-Cookie` header for the whole studio, of a cookie that scripts cannot read."""
    site = "SameSite=Lax"
    if is_https(scope):
        # A page that is embedded in another site gets only cookies back that are marked so.
        site = "SameSite=None; Secure; Partitioned" if is_embedded else "SameSite=Lax; Secure"
    return f"{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; {site}"


def open_sessions(settings: Settings, *, is_shared: bool, language: str | None, has_accounts: bool = False) -> Sessions:
    """Return the sessions of a studio with its home at `settings.home`. A key is kept only where nobody else can
    come."""
    kept = None if is_shared or settings.is_public else StoredKey(settings.home)
    secret = load_secret(settings.home)
    return Sessions(secret, is_shared=is_shared, fixed_language=language, kept=kept, has_accounts=has_accounts)


def load_secret(home: Path) -> bytes:
    """Return the secret that signs cookies and links. It is made on first use and readable by its user alone.

    Raises StorageFailure.
    """
    path = home / "session.secret"
    try:
        # A studio that starts at the same moment takes the same one.
        with locked_file(path):
            kept = path.read_bytes() if path.exists() else b""
            if len(kept) >= _SECRET_BYTES:
                return kept
            fresh = secrets.token_bytes(_SECRET_BYTES)
            write_private_file(path, fresh)
    except OSError as error:
        raise storage_failure(error) from error
    return fresh


class TemporaryFile(FileResponse):
    """A response that sends a file and removes it, also when the client has gone."""

    def __init__(self, path: Path, media_type: str, name: str) -> None:
        super().__init__(path, headers=NO_STORE, media_type=media_type, filename=name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await asyncio.to_thread(Path(self.path).unlink, missing_ok=True)


def as_text(sentence: str, status: int, code: str = "") -> Response:
    """Return a refusal as plain text."""
    return PlainTextResponse(sentence, status, NO_STORE)


def as_json(sentence: str, status: int, code: str = "") -> Response:
    """Return a refusal as JSON: its sentence under `error`, and its code."""
    return JSONResponse({"error": sentence, "code": code}, status, NO_STORE)


# Routes beside the actions of the page


Work: TypeAlias = Callable[[Request, Visitor], Awaitable[Response]]
Refusal: TypeAlias = Callable[[str, int, str], Response]


def visitor_route(
    path: str,
    sessions: Sessions,
    work: Work,
    *,
    method: str = "GET",
    refusal: Refusal = as_text,
    visitor_of: Callable[[Request], Visitor | None] | None = None,
) -> Route:
    """Return a route that `work` answers for visitors with a valid cookie, or for those that `visitor_of` finds
    otherwise.

    Everybody else gets 403. An error of the studio is answered with its sentence, under the status of its code.
    """

    async def answer(request: Request) -> Response:
        visitor = sessions.visitor(request)
        allowed = visitor_of(request) if visitor_of else visitor if visitor.token is not None else None
        if allowed is None:
            return refusal(visitor.words("route.not_yours"), 403, "")
        try:
            return await work(request, allowed)
        except AivistaError as error:
            return refusal(allowed.words.error(error.info), error.code.http_status, error.code.value)

    return Route(path, answer, methods=[method])


def announced_bytes(request: Request) -> int:
    """Return the length of the body as it is announced, 0 where it is not."""
    length = request.headers.get("content-length", "")
    # A length with more digits than this is too many bytes anyway.
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


async def body_of(request: Request, most_bytes: int) -> bytes | None:
    """Return the body; None as soon as it is larger than allowed."""
    found = bytearray()
    async for some in request.stream():
        found += some
        if len(found) > most_bytes:
            return None
    return bytes(found)


def attachment(name: str) -> dict[str, str]:
    """Return the header that has the browser save an answer under this name."""
    plain = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
    exact = f"; filename*=UTF-8''{quote(name)}" if plain != name else ""
    return {"Content-Disposition": f'attachment; filename="{plain}"{exact}'}


class ImageJobs:
    """Limits image work for previews: `places` jobs at once in all, and `PER_VISITOR` running or waiting for each
    visitor.

    A request that the browser gave up before its job began costs nothing.
    """

    def __init__(self, places: int) -> None:
        self._room = asyncio.Semaphore(places)
        self._held = Counter[str]()

    async def run(self, request: Request, visitor: Visitor, work: Callable[[], Awaitable[Response]]) -> Response:
        """Return the result of the work, or 429 for a visitor with too many jobs."""
        token = visitor.token or ""
        if self._held[token] >= PER_VISITOR:
            return as_text(visitor.words("route.too_much"), 429)
        self._held[token] += 1
        try:
            async with self._room:
                if await request.is_disconnected():
                    return as_text("", 499)
                return await work()
        finally:
            self._held[token] -= 1
            if not self._held[token]:
                del self._held[token]
