"""The body of an answer, unpacked no further than may be kept."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import AsyncGenerator

from agent.fetching.media import unreadable

_GZIP = 16 + zlib.MAX_WBITS


async def read_body(chunks: AsyncGenerator[bytes], encoding: str, limit: int, name: str) -> tuple[bytes, bool]:
    """Return at most `limit` bytes of a body as it was before it was packed, and whether there was more.

    `encoding` is the answer's Content-Encoding: gzip or none, since nothing else was asked for. A gzip bomb costs no
    more than `limit`. Raises ToolArgumentError for another encoding and for broken gzip; `name` is for the sentence.
    """
    match encoding.strip().lower():
        case "" | "identity":
            body: _Plain | _Gzip = _Plain(limit)
        case "gzip" | "x-gzip":
            body = _Gzip(limit)
        case _:
            raise unreadable(name, "it is packed in a way that was not asked for")
    try:
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                body.take(chunk)
                if len(body.data) > limit:
                    return bytes(body.data[:limit]), True
    except zlib.error:
        raise unreadable(name, "its gzip is broken") from None
    if not body.is_whole:
        raise unreadable(name, "its gzip breaks off")
    return bytes(body.data), False


class _Plain:
    """A body as it is; `data` can be longer than the limit."""

    is_whole = True

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit

    def take(self, chunk: bytes) -> None:
        self.data += chunk[: self._limit + 1 - len(self.data)]


class _Gzip:
    """A body in gzip; of what it unpacks to, `data` holds at most one byte more than the limit."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self._limit = limit
        self._inflater = zlib.decompressobj(_GZIP)
        self._is_begun = False

    @property
    def is_whole(self) -> bool:
        # An empty body is what some servers send for an empty page, whatever they say of its packing.
        return self._inflater.eof or not self._is_begun

    def take(self, chunk: bytes) -> None:
        # What follows the first member is left out, as browsers do.
        room = self._limit + 1 - len(self.data)
        if room > 0 and chunk and not self._inflater.eof:
            self._is_begun = True
            self.data += self._inflater.decompress(chunk, room)
