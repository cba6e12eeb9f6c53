"""Who is looking: a signed cookie of ours, the owner it stands for, and the key it brought along."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from agent.settings import Settings
from webui.words import Words, choose_language, load_words

COOKIE = "aivista_session"
LANGUAGE_COOKIE = "aivista_lang"
KEY_IDLE_S = 2 * 3600.0
LINK_LIFE_S = 24 * 3600


class PageRequest(Protocol):
    """What of a request this module reads; Gradio's and Starlette's both have it."""

    @property
    def cookies(self) -> Mapping[str, str]: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Visitor:
    """One who looks: their token (None without a cookie), whose conversations they may open, and their words."""

    token: str | None
    owner: str
    words: Words


@dataclass
class Sessions:
    """Knows visitors by their cookie and signs links to pictures.

    On one's own machine everyone with a cookie is the owner `local`; on a shared link each cookie is its own owner.
    Keys that visitors type live here only, in memory, until they are idle for `KEY_IDLE_S`.
    """

    secret: bytes
    is_shared: bool = False
    fixed_language: str | None = None
    clock: Callable[[], float] = time.time
    _keys: dict[str, tuple[SecretStr, float]] = field(default_factory=dict, repr=False)

    def new_cookie(self) -> str:
        """Return the value of a fresh cookie: 128 random bits and their signature."""
        token = secrets.token_hex(16)
        return f"{token}.{self._sign('cookie', token)}"

    def token_of(self, cookie: str | None) -> str | None:
        """Return the token in a cookie that we signed, else None."""
        token, _, signature = (cookie or "").partition(".")
        return (
            token if token and hmac.compare_digest(signature.encode(), self._sign("cookie", token).encode()) else None
        )

    def visitor(self, request: PageRequest) -> Visitor:
        """Return who sent the request. Where each cookie is its own owner, nobody's things are those without one."""
        script = self.script(request)
        if script.token is not None or not self.is_shared:
            return script
        return Visitor(None, f"nobody-{secrets.token_hex(16)}", script.words)

    def script(self, request: PageRequest) -> Visitor:
        """Return which script sent the request: without a cookie it finds what it began by the conversation's id."""
        token = self.token_of(request.cookies.get(COOKIE))
        chosen = request.cookies.get(LANGUAGE_COOKIE)
        language = choose_language(self.fixed_language, chosen, request.headers.get("accept-language", ""))
        return Visitor(token, self.owner(token), load_words(language))

    def owner(self, token: str | None) -> str:
        """Return whose conversations a token opens. Scripts on a shared link have no cookie and share one owner."""
        if not self.is_shared:
            return "local"
        return f"visitor-{hashlib.sha256(token.encode()).hexdigest()[:32]}" if token else "api"

    def key(self, visitor: Visitor) -> SecretStr | None:
        """Return the key this visitor typed, if it is still held."""
        now = self.clock()
        for token in [token for token, (_, used_at) in self._keys.items() if now - used_at > KEY_IDLE_S]:
            del self._keys[token]
        held = self._keys.get(visitor.token or "")
        if held is None:
            return None
        self._keys[visitor.token or ""] = (held[0], now)
        return held[0]

    def hold_key(self, visitor: Visitor, key: SecretStr | None) -> bool:
        """Keep (or with None forget) a key for this visitor; return whether they could be told apart by a cookie."""
        if visitor.token is None:
            return False
        self._keys.pop(visitor.token, None)
        if key is not None:
            self._keys[visitor.token] = (key, self.clock())
        return True

    def link_query(self, owner: str, conversation_id: str, handle: str) -> str:
        """Return a query that lets a script without a cookie fetch one picture for a day."""
        until = int(self.clock()) + LINK_LIFE_S
        return f"owner={owner}&until={until}&sig={self._sign('link', owner, conversation_id, handle, str(until))}"

    def link_owner(self, query: Mapping[str, str], conversation_id: str, handle: str) -> str | None:
        """Return the owner a signed link speaks for, or None when it is forged or too old."""
        owner, until = query.get("owner", ""), query.get("until", "")
        expected = self._sign("link", owner, conversation_id, handle, until)
        if not hmac.compare_digest(query.get("sig", "").encode(), expected.encode()) or not until.isdigit():
            return None
        return owner if self.clock() <= int(until) else None

    def _sign(self, *parts: str) -> str:
        text = "\n".join(parts).encode()
        return hmac.new(self.secret, text, hashlib.sha256).hexdigest()[:32]


def load_secret(home: Path) -> bytes:
    """Return the secret that signs cookies and links, made on first use and readable by its user alone."""
    path = home / "session.secret"
    try:
        kept = path.read_bytes()
        if len(kept) >= 32:
            return kept
    except FileNotFoundError:
        pass
    fresh = secrets.token_bytes(32)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(fresh)
    return fresh


def open_sessions(settings: Settings, *, is_shared: bool, language: str | None) -> Sessions:
    """Return the sessions of a studio that lives in `settings.home`."""
    return Sessions(load_secret(settings.home), is_shared=is_shared, fixed_language=language)
