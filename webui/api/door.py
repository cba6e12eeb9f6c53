"""What every route works with, and the gate before them: who asks, how often, how much at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Annotated, cast

from fastapi import Depends, Request
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import MAX_MESSAGE_MEGABYTES, MAX_UPLOAD_MEGABYTES, MAX_VISITOR_UPLOAD_MEGABYTES, OPERATOR, Studio
from webui.api.contexts import Contexts
from webui.api.problems import RefusalCode, Refused, answer_with, problem_of_refusal
from webui.api.rates import Buckets
from webui.api.tokens import Tokens
from webui.api.uploads import UploadShelf
from webui.sessions import Sessions
from webui.whole_json import receiving_whole
from webui.words import Words, choose_language, load_words

KEY_HEADER = "X-Gemini-Api-Key"
OPENAPI_PATH = "/api/v1/openapi.json"
_KEY = re.compile(r"[!-~]{1,400}")
_MB = 1 << 20
_LIMIT_MB = 2
# Pictures travel here, as they are or as base64: how much of it for the studio's owner, and for anybody else.
_LIMITS_MB = (
    (re.compile(r"/api/v1/uploads"), MAX_UPLOAD_MEGABYTES + 1, MAX_VISITOR_UPLOAD_MEGABYTES + 1),
    (re.compile(r"/api/v1/conversations/[^/]+/turns"), MAX_MESSAGE_MEGABYTES, 64),
    (re.compile(r"/api/v1/chat"), 64, 64),
    (re.compile(r"/v1/images/edits"), MAX_MESSAGE_MEGABYTES, 64),
)


@dataclass(frozen=True)
class Door:
    """What every route works with; `language` is that of callers who name none. `studio` is there once it is open."""

    studio: Callable[[], Studio]
    sessions: Sessions
    tokens: Tokens
    requests: Buckets
    turns: Buckets
    uploads: UploadShelf
    contexts: Contexts
    language: str | None = None

    def words(self, headers: Mapping[str, str]) -> Words:
        """Return the words of the language that a caller asks for."""
        accepted = headers.get("accept-language", "")
        return load_words(choose_language(None if accepted else self.language, None, accepted))


@dataclass(frozen=True)
class Caller:
    """Who asks: whose things they may see, in which language, and with which key of their own, for this request."""

    owner: str
    words: Words
    key: SecretStr | None = None


def door_of(request: Request) -> Door:
    """Return what the application was built with."""
    return cast("Door", request.app.state.door)


def caller_of(request: Request) -> Caller:
    """Return who asks, as the gate found out."""
    return cast("Caller", request.scope["aivista.caller"])


def payer_of(request: Request) -> Caller:
    """Return who asks for a turn, which counts by itself. Raises Refused(TOO_MANY_REQUESTS)."""
    caller = caller_of(request)
    take_one(door_of(request).turns, caller.owner)
    return caller


TheDoor = Annotated[Door, Depends(door_of)]
TheCaller = Annotated[Caller, Depends(caller_of)]
ThePayer = Annotated[Caller, Depends(payer_of)]


def take_one(buckets: Buckets, owner: str) -> None:
    """Take one from the owner's bucket. Raises Refused(TOO_MANY_REQUESTS) when it is empty."""
    wait_s = buckets.take(owner)
    if wait_s > 0:
        raise Refused(RefusalCode.TOO_MANY_REQUESTS, seconds=ceil(wait_s))


class Gate:
    """ASGI middleware before the routes: nothing of a body is read before its sender is known, and no more than fits.

    The caller's own key goes along with this one request; the next one must bring it again.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self.app = app
        self.door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        try:
            caller = self._caller(headers, path)
            limit_mb = _limit_mb(path, caller.owner)
            if int(headers.get("content-length") or 0) > limit_mb * _MB:
                raise Refused(RefusalCode.BODY_TOO_LARGE, limit=limit_mb)
        except ValueError:
            refused = Refused(RefusalCode.UNREADABLE, problem="Content-Length")
            await self._refuse(refused, headers, scope, receive, send)
        except Refused as refused:
            await self._refuse(refused, headers, scope, receive, send)
        else:
            scope = {**scope, "aivista.caller": caller}
            limited = _limited(receive, limit_mb)
            await self.app(scope, receiving_whole(scope, limited, limit_mb * _MB), send)

    def _caller(self, headers: Headers, path: str) -> Caller:
        words = self.door.words(headers)
        owner = self.door.tokens.owner(headers.get("authorization", ""))
        if path == OPENAPI_PATH:
            return Caller(owner or "", words)
        if owner is None:
            raise Refused(RefusalCode.UNAUTHORIZED)
        take_one(self.door.requests, owner)
        key = headers.get(KEY_HEADER, "").strip()
        if key and not _KEY.fullmatch(key):
            raise Refused(RefusalCode.UNREADABLE, problem=KEY_HEADER)
        return Caller(owner, words, SecretStr(key) if key else None)

    async def _refuse(self, refused: Refused, headers: Headers, scope: Scope, receive: Receive, send: Send) -> None:
        problem = problem_of_refusal(self.door.words(headers), refused)
        await answer_with(problem, scope["path"])(scope, receive, send)


def _limit_mb(path: str, owner: str) -> int:
    limits = next((limits for pattern, *limits in _LIMITS_MB if pattern.fullmatch(path)), (_LIMIT_MB, _LIMIT_MB))
    return limits[owner != OPERATOR]


def _limited(receive: Receive, limit_mb: int) -> Receive:
    """Return `receive` that raises Refused(BODY_TOO_LARGE) once more than the limit has come."""
    so_far = 0

    async def limited() -> Message:
        nonlocal so_far
        message = await receive()
        so_far += len(message.get("body", b""))
        if so_far > limit_mb * _MB:
            raise Refused(RefusalCode.BODY_TOO_LARGE, limit=limit_mb)
        return message

    return limited
