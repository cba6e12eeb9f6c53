"""Server-Sent Events: how a stream of them is answered, and kept open while there is nothing to tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse

from webui.api.problems import HEADERS

# A connection on which nothing comes for a while is closed by proxies.
_HEARTBEAT_S = 15.0
_HEARTBEAT = b": still here\n\n"
# A proxy that gathers answers would show a turn only once it has ended.
_HEADERS = {**HEADERS, "X-Accel-Buffering": "no"}


def event_stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return the answer that sends these events as they come, with a comment where none has come for a while."""
    return StreamingResponse(with_heartbeats(events, _HEARTBEAT_S), media_type="text/event-stream", headers=_HEADERS)


async def with_heartbeats(events: AsyncIterator[bytes], pause_s: float) -> AsyncIterator[bytes]:
    """Pass the events on, and a comment, which readers skip, whenever nothing has come for so long."""
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
