"""Server-Sent Events: the response of a stream, and heartbeats that keep it open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from webui.api.problems import HEADERS

# Proxies close a connection on which nothing comes for a while.
_HEARTBEAT_S = 15.0
_HEARTBEAT = b": still here\n\n"
# A proxy that buffers responses would show a turn only once it has ended.
_HEADERS = {**HEADERS, "X-Accel-Buffering": "no"}


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return the streaming response that sends these events, with a comment whenever none came for a while."""
    return StreamingResponse(with_heartbeats(events, _HEARTBEAT_S), media_type="text/event-stream", headers=_HEADERS)


async def with_heartbeats(events: AsyncIterator[bytes], pause_s: float) -> AsyncIterator[bytes]:
    """Yield the events, and a comment, which readers skip, whenever nothing came for `pause_s` seconds."""
    while True:
        coming = asyncio.ensure_future(anext(events, None))
        try:
            while not (await asyncio.wait([coming], timeout=pause_s))[0]:
                yield _HEARTBEAT
            event = coming.result()
        finally:
            coming.cancel()
        if event is None:
            return
        yield event
