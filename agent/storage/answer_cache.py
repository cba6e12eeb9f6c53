"""Answers of the text model, kept on disk for an hour: the very same request of the same person is not paid twice.

What fails here is a miss, never an error. Only whole and successful answers belong in it; who puts them sees to that.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import JsonValue, SecretStr, TypeAdapter, ValidationError

from agent.messages import PromptMessage, Value
from agent.storage.cache import FREE_SPACE_FLOOR_BYTES, ByteCache
from agent.storage.journal import Heard

# Part of every key: raise it when the form of what is kept changes.
_FORM = 1
_MAX_VALUE_BYTES = 8 << 20
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def key_of(
    model_id: str,
    messages: Sequence[PromptMessage],
    tools: Sequence[Value],
    options: Value,
    owner: str,
    key_fingerprint: str,
) -> str:
    """Return the name under which the answer to a request is kept: the SHA-256 of all that it depends on.

    The owner is part of it, so that nothing of one visitor answers another, and so is the fingerprint of the provider's
    key (`fingerprint_of`). A picture counts by its digest, a thought signature by its bytes.
    """
    request = [
        _FORM,
        owner,
        key_fingerprint,
        model_id,
        [message.model_dump(mode="json") for message in messages],
        [tool.model_dump(mode="json") for tool in tools],
        options.model_dump(mode="json"),
    ]
    return hashlib.sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def fingerprint_of(provider_name: str, key: SecretStr | None = None) -> str:
    """Return what tells providers and their keys apart without telling the key."""
    secret = key.get_secret_value() if key is not None else ""
    return hashlib.sha256(json.dumps([provider_name, secret]).encode()).hexdigest()


def value_of(heard: Heard) -> JsonValue:
    """Return an answer as it is kept, signatures included."""
    return _JSON.validate_python(heard.model_dump(mode="json"))


def heard_in(value: JsonValue) -> Heard | None:
    """Return the answer in a kept value, or None when it is no whole one."""
    try:
        heard = Heard.model_validate_json(json.dumps(value))
    except ValidationError:
        return None
    return heard if heard.parts else None


class AnswerCache:
    """JSON values by key under `<home>/cache/answers`: at most `limit_bytes`, for `ttl_s` after they were put.

    Nothing is opened before the first use. `free_space_floor_bytes` must stay free on the disk beside what is written.
    `clock` tells seconds; an entry from its future counts as expired.
    """

    def __init__(
        self,
        home: Path,
        ttl_s: float = 3600.0,
        limit_bytes: int = 64 << 20,
        *,
        free_space_floor_bytes: int = FREE_SPACE_FLOOR_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        # The hour goes by the clock on the wall, a pause by one that nobody sets.
        self._disk = ByteCache(
            home / "cache" / "answers",
            "aivista:cache:answer_",
            ttl_s=ttl_s,
            limit_bytes=limit_bytes,
            free_space_floor_bytes=free_space_floor_bytes,
            trouble="answers are not kept for now",
        )
        self._ttl_s = ttl_s
        # One value above the limit makes diskcache throw out everything, that value included.
        self._max_value_bytes = min(_MAX_VALUE_BYTES, limit_bytes // 4)
        self._clock = clock
        self._is_closed = False

    async def get(self, key: str) -> JsonValue | None:
        """Return the value, or None when it is unknown, expired or damaged."""
        stored = None if self._is_closed else await self._disk.get(key)
        if stored is None:
            return None
        try:
            kept = _Kept.model_validate_json(stored)
        except ValueError:
            # A row that was not written here.
            kept = None
        if kept is not None and 0 <= self._clock() - kept.at_s < self._ttl_s:
            return kept.value
        await self._disk.drop(key)
        return None

    async def put(self, key: str, value: JsonValue) -> bool:
        """Return whether the value can be had back; None, what is no JSON, and what is too large is not kept."""
        if self._is_closed or value is None:
            return False
        try:
            content = json.dumps({"at_s": self._clock(), "value": value}, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):
            return False
        return len(content) <= self._max_value_bytes and await self._disk.put(key, content)

    async def aclose(self) -> None:
        """Close the files; from now on nothing is found and nothing kept."""
        if not self._is_closed:
            self._is_closed = True
            await self._disk.aclose()


class _Kept(Value):
    """A value and when it was put, in seconds of the clock."""

    at_s: float
    value: JsonValue
