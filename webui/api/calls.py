"""What every route works with, and what stands before the routes: who asks, how often, how much at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent import MAX_MESSAGE_MEGABYTES, MAX_UPLOAD_MEGABYTES, MAX_VISITOR_UPLOAD_MEGABYTES, OPERATOR, Studio
from webui.api.auth import Buckets, Caller, Callers
from webui.api.contexts import Contexts
from webui.api.problems import RefusalCode, Refused, answer_with, problem_of_refusal
from webui.api.uploads import Uploads
from webui.sessions import Sessions
from webui.whole_json import receiving_whole
from webui.words import Words, choose_language, load_words

OPENAPI_PATH = "/api/v1/openapi.json"
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
class Api:
    """What the application is built with; `language` is that of callers who name none. `studio` is there once open."""

    studio: Callable[[], Studio]
    sessions: Sessions
    callers: Callers
    turns: Buckets
    uploads: Uploads
    contexts: Contexts
    language: str | None = None

    def words(self, headers: Mapping[str, str]) -> Words:
        """Return the words of the language that a caller asks for."""
        accepted = headers.get("accept-language", "")
        return load_words(choose_language(None if accepted else self.language, None, accepted))


@dataclass(frozen=True)
class Call:
    """One request: who asks, in which language, with which key of their own."""

    api: Api
    studio: Studio
    owner: str
    words: Words
    key: SecretStr | None = None


def _call(request: Request) -> Call:
    api, caller = cast("Api", request.app.state.api), cast("Caller", request.scope["aivista.caller"])
    return Call(api, api.studio(), caller.owner, caller.words, caller.key)


def _turn_call(request: Request) -> Call:
    call = _call(request)
    call.api.turns.take_or_refuse(call.owner)
    return call


AnyCall = Annotated[Call, Depends(_call)]
# Of a request that begins a turn, or has one go on, which is counted by itself.
TurnCall = Annotated[Call, Depends(_turn_call)]


class Gate:
    """ASGI middleware before the routes: nothing of a body is read before its sender is known, and no more than fits.

    The caller's own key goes along with this one request; the next one must bring it again.
    """

    def __init__(self, app: ASGIApp, api: Api) -> None:
        self.app = app
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, path = Headers(scope=scope), scope["path"]
        words = self.api.words(headers)
        try:
            # The document of the API is read without a token.
            caller = Caller("", words) if path == OPENAPI_PATH else self.api.callers.caller(headers, words)
            limit_mb = _limit_mb(path, caller.owner)
            length = headers.get("content-length") or "0"
            if not (length.isascii() and length.isdecimal() and len(length) < 16):
                raise Refused(RefusalCode.UNREADABLE, problem="Content-Length")
            if int(length) > limit_mb * _MB:
                raise Refused(RefusalCode.BODY_TOO_LARGE, limit=limit_mb)
        except Refused as refused:
            await answer_with(problem_of_refusal(words, refused), path)(scope, receive, send)
            return
        limited = _limited(receive, limit_mb)
        scope = {**scope, "aivista.caller": caller}
        await self.app(scope, receiving_whole(scope, limited, limit_mb * _MB), send)


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
