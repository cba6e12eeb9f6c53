"""Who a caller is: bearer tokens by name, kept as hashes in a private file of the home, or given by the operator."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr, TypeAdapter, ValidationError

from agent import CALLER_NAME, storage_failure, write_private_file

TOKENS_FILE = "api_tokens.json"
PAGE_OWNER = "local"
_FILE = TypeAdapter(dict[str, str])
_NAME = re.compile(CALLER_NAME)

_log = logging.getLogger(__name__)


class TokenNameRefused(ValueError):
    """A name that no token can have, or that another one has."""


class TokenFile:
    """The tokens made with `aivista token`: SHA-256 by name. A token itself is told once, and kept nowhere.

    A token has 256 random bits, so that a plain hash of it cannot be guessed. The file is read again when it changes.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / TOKENS_FILE
        self._seen: tuple[int, int] | None = None
        self._hashes: dict[str, str] = {}

    def new(self, name: str) -> str:
        """Return a fresh token under a new name. Raises TokenNameRefused, StorageFailure."""
        if not _NAME.fullmatch(name):
            raise TokenNameRefused(
                f"{name!r} is no name for a token: use a small letter, then at most 31 small letters, digits, - or _"
            )
        hashes = dict(self.hashes())
        if name in hashes:
            raise TokenNameRefused(f"there is a token named {name} already; remove it first")
        token = f"aiv_{secrets.token_urlsafe(32)}"
        self._write({**hashes, name: hash_of(token)})
        return token

    def remove(self, name: str) -> bool:
        """Make a token worthless; return whether there was one of that name. Raises StorageFailure."""
        hashes = dict(self.hashes())
        was_there = hashes.pop(name, None) is not None
        if was_there:
            self._write(hashes)
        return was_there

    def hashes(self) -> Mapping[str, str]:
        """Return the hashes by name, as the file has them now. One that cannot be read lets nobody in."""
        try:
            state = self._path.stat()
        except FileNotFoundError:
            self._seen, self._hashes = None, {}
            return self._hashes
        seen = (state.st_mtime_ns, state.st_ino)
        if seen != self._seen:
            self._hashes, self._seen = self._read(), seen
        return self._hashes

    @property
    def is_there(self) -> bool:
        """Whether the file is there, whatever it holds."""
        return self._path.exists()

    def _read(self) -> dict[str, str]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            _log.error("%s cannot be read: none of its tokens is let in", TOKENS_FILE)
            return {}

    def _write(self, hashes: Mapping[str, str]) -> None:
        try:
            write_private_file(self._path, _FILE.dump_json(dict(sorted(hashes.items())), indent=1))
        except OSError as error:
            raise storage_failure(error) from error


class Tokens:
    """Whose request it is.

    `is_open` says that nobody but the operator can reach the studio: then no token is needed until one is given or
    made, and the owner is that of the page.
    """

    def __init__(self, file: TokenFile, given: Mapping[str, SecretStr], *, is_open: bool) -> None:
        self._file = file
        self._given = {name: hash_of(token.get_secret_value()) for name, token in given.items()}
        self._is_open = is_open

    def owner(self, authorization: str) -> str | None:
        """Return the owner that an `Authorization` header speaks for, None when it must not be let in."""
        if self._is_open and not self._given and not self._file.is_there:
            return PAGE_OWNER
        kind, _, token = authorization.strip().partition(" ")
        presented = hash_of(token.strip()) if kind.lower() == "bearer" else ""
        found = None
        # Every one is compared: how long it takes tells nothing.
        for name, kept in {**self._file.hashes(), **self._given}.items():
            if hmac.compare_digest(presented.encode(), kept.encode("ascii", "replace")):
                found = name
        return owner_of(found) if found is not None else None


def owner_of(name: str) -> str:
    """Return the owner that a token's name stands for; the name `local` is that of the page on one's own machine."""
    return PAGE_OWNER if name == PAGE_OWNER else f"token-{name}"


def hash_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
