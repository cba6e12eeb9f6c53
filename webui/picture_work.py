"""Pictures that are worked out while somebody looks: for the conversation's owner only, a few at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from agent import AivistaError, ErrorCode, RequestRefused
from webui.http.sessions import Sessions
from webui.words import Words

PER_VISITOR = 4
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# A handle never stands for other pixels, so an address with all its parameters always gives the same answer.
HEADERS = {"Cache-Control": "private, max-age=86400, immutable", "Vary": "Cookie", **_SAFE}
_REFUSED = {"Cache-Control": "no-store", **_SAFE}
_MISSING = (ErrorCode.PICTURE_NOT_FOUND, ErrorCode.PICTURE_DELETED, ErrorCode.CONVERSATION_NOT_FOUND)


@dataclass
class Workbench:
    """Where pictures are worked out: `places` at once for everybody, and `PER_VISITOR` at work or waiting for each.

    A browser that gave its request up before its turn came costs nothing.
    """

    places: int
    _room: asyncio.Semaphore = field(init=False, repr=False)
    _held: Counter[str] = field(init=False, default_factory=Counter, repr=False)

    def __post_init__(self) -> None:
        self._room = asyncio.Semaphore(self.places)

    async def answer(
        self, request: Request, sessions: Sessions, work: Callable[[str], Awaitable[Response]]
    ) -> Response:
        """Return what `work` makes for the owner who asks: 403 without our cookie, 429 for one who asks too much at
        once, 404 for what the owner does not have, 422 for a picture that cannot be read, 500 when the records can't.
        """
        visitor = sessions.visitor(request)
        token = visitor.token
        if token is None:
            return refusal(visitor.words("route.not_yours"), 403)
        if self._held[token] >= PER_VISITOR:
            return refusal(visitor.words("route.too_much"), 429)
        self._held[token] += 1
        try:
            async with self._room:
                if await request.is_disconnected():
                    return refusal("", 499)
                return await _worked_out(work(visitor.owner), visitor.words)
        finally:
            self._held[token] -= 1
            if not self._held[token]:
                del self._held[token]


async def _worked_out(work: Awaitable[Response], words: Words) -> Response:
    try:
        return await work
    except RequestRefused as error:
        if error.code in _MISSING:
            return refusal(words("route.no_picture"), 404)
        if error.code is ErrorCode.PICTURE_FILE_MISSING:
            return refusal(words.error(error.info), 404)
        return refusal(words.error(error.info), 422)
    except AivistaError as error:
        return refusal(words.error(error.info), 500)


def refusal(sentence: str, status_code: int) -> Response:
    """Return a sentence that no cache keeps."""
    return PlainTextResponse(sentence, status_code=status_code, headers=_REFUSED)
