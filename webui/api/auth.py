"""Authentication of programs: named bearer tokens, rate limits, and the caller's own key."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from pydantic import SecretStr, TypeAdapter, ValidationError

from agent import CALLER_NAME, OPERATOR, ErrorCode, StorageFailure, locked_file, storage_failure, write_private_file
from webui.api.problems import RefusalCode, Refused
from webui.words import Words

KEY_HEADER = "X-Gemini-Api-Key"
TOKENS_FILE = "api_tokens.json"
_HASHES = TypeAdapter(dict[str, str])
_NAME = re.compile(CALLER_NAME)
_KEY = re.compile(r"[!-~]{1,400}")
_MOST_OWNERS = 10_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """The caller of one request: the owner whose data they may see, their language, and their own key."""

    owner: str
    words: Words
    key: SecretStr | None = None


@dataclass
class Buckets:
    """A token bucket for each owner, with the requests of a minute; full at first. `clock` returns seconds."""

    per_minute: float
    clock: Callable[[], float] = time.monotonic
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def most(self) -> float:
        """The size of a bucket: at least one, or nothing could ever be taken."""
        return max(1.0, self.per_minute)

    def take(self, owner: str) -> float:
        """Take one from the owner's bucket. Return 0, or the seconds until there is one."""
        now = self.clock()
        level = self._level(owner, now)
        if level < 1:
            return (1 - level) * 60 / self.per_minute
        self._levels[owner] = (level - 1, now)
        if len(self._levels) > _MOST_OWNERS:
            self._levels = {one: kept for one, kept in self._levels.items() if self._level(one, now) < self.most}
        return 0.0

    def _level(self, owner: str, now: float) -> float:
        level, then = self._levels.get(owner, (self.most, now))
        return min(self.most, level + (now - then) * self.per_minute / 60)

    def take_or_refuse(self, owner: str) -> None:
        """Take one from the owner's bucket. Raises Refused(TOO_MANY_REQUESTS) when it is empty."""
        wait_s = self.take(owner)
        if wait_s > 0:
            raise Refused(RefusalCode.TOO_MANY_REQUESTS, seconds=ceil(wait_s))


class TokenNameRefused(ValueError):
    """The name of a token is invalid or taken."""


class TokenFile:
    """The tokens made with `aivista token`: their SHA-256 by name. A token itself is shown once and stored nowhere.

    A token has 256 random bits, so that a plain hash of it cannot be guessed. The file is read again when it changes.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / TOKENS_FILE
        self._seen: tuple[int, int] | None = None
        self._hashes: dict[str, str] = {}

    def new(self, name: str) -> str:
        """Return a fresh token with a new name. Raises TokenNameRefused, StorageFailure."""
        if not _NAME.fullmatch(name):
            raise TokenNameRefused(
                f"{name!r} is no name for a token: use a small letter, then at most 31 small letters, digits, - or _"
            )
        token = f"aiv_{secrets.token_urlsafe(32)}"
        with self._changing() as hashes:
            if name in hashes:
                raise TokenNameRefused(f"there is a token named {name} already; remove it first")
            hashes[name] = _hash(token)
        return token

    def remove(self, name: str) -> bool:
        """Revoke a token; return whether there was one of that name. Raises StorageFailure."""
        with self._changing() as hashes:
            return hashes.pop(name, None) is not None

    def hashes(self) -> Mapping[str, str]:
        """Return the hashes by name, as the file has them now. An unreadable file lets nobody in."""
        try:
            state = self._path.stat()
        except FileNotFoundError:
            self._seen, self._hashes = None, {}
            return self._hashes
        seen = (state.st_mtime_ns, state.st_ino)
        if seen != self._seen:
            try:
                self._hashes = self._read()
            except StorageFailure:
                _log.error("%s cannot be read: none of its tokens is let in", TOKENS_FILE)
                self._hashes = {}
            self._seen = seen
        return self._hashes

    @property
    def is_there(self) -> bool:
        """Whether the file exists, whatever it holds."""
        return self._path.exists()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, str]]:
        """Lock the hashes against other processes while they are changed. Raises StorageFailure."""
        try:
            with locked_file(self._path):
                kept = self._read()
                hashes = dict(kept)
                yield hashes
                if hashes != kept:
                    write_private_file(self._path, _HASHES.dump_json(dict(sorted(hashes.items())), indent=1))
        except OSError as error:
            raise storage_failure(error) from error

    def _read(self) -> dict[str, str]:
        try:
            return _HASHES.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise storage_failure(error) from error
        except ValidationError as error:
            raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{TOKENS_FILE} is damaged") from error


class Callers:
    """Authenticates callers, and counts their requests.

    `is_open` says that only the operator can reach the studio: then no token is needed until one exists, and the owner
    is that of the page.
    """

    def __init__(
        self, file: TokenFile, given: Mapping[str, SecretStr], requests_per_minute: float, *, is_open: bool
    ) -> None:
        self._file = file
        self._given = {name: _hash(token.get_secret_value()) for name, token in given.items()}
        self._requests = Buckets(requests_per_minute)
        self._is_open = is_open

    def caller(self, headers: Mapping[str, str], words: Words) -> Caller:
        """Return who sent a request with these headers. Raises Refused."""
        owner = self.owner(headers.get("authorization", ""))
        if owner is None:
            raise Refused(RefusalCode.UNAUTHORIZED)
        self._requests.take_or_refuse(owner)
        key = headers.get(KEY_HEADER, "").strip()
        if key and not _KEY.fullmatch(key):
            raise Refused(RefusalCode.UNREADABLE, problem=KEY_HEADER)
        return Caller(owner, words, SecretStr(key) if key else None)

    def owner(self, authorization: str) -> str | None:
        """Return the owner of an `Authorization` header, None when it is not valid."""
        if self._is_open and not self._given and not self._file.is_there:
            return OPERATOR
        kind, _, token = authorization.strip().partition(" ")
        presented = _hash(token.strip()) if kind.lower() == "bearer" else ""
        found = None
        # All tokens are compared, so that the time tells nothing.
        for name, kept in {**self._file.hashes(), **self._given}.items():
            if hmac.compare_digest(presented.encode(), kept.encode("ascii", "replace")):
                found = name
        if found is None:
            return None
        return OPERATOR if found == OPERATOR else f"token-{found}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
