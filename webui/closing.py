"""The end of a studio that is served by a thread of its own: its turns first, then its streams, then all the rest."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Protocol

from agent import Studio

_STREAMS_S = 1.0
_STUDIO_S = 10.0
_THREAD_S = 0.5
# How soon it is noticed that somebody is in a hurry, or that the thread has ended.
_GLANCE_S = 0.1


class Serving(Protocol):
    """What is used of Gradio's server: uvicorn in a thread."""

    should_exit: bool
    force_exit: bool
    thread: threading.Thread


@dataclass(frozen=True)
class Ending:
    """Ends what is served on `loop`. `close` closes the studio, once, whoever calls it; it runs on the loop."""

    studio: Studio
    close: Callable[[], Coroutine[Any, Any, None]]
    loop: asyncio.AbstractEventLoop
    server: Serving

    def finish_turns(self, grace_s: float, hurried: threading.Event) -> None:
        """Have no turn begin any more, wait for those at work until the time is over or somebody is in a hurry, and
        put the rest on record. The server answers all the while."""
        finishing = self._begun(self.studio.wind_down(grace_s))
        self._wait(finishing, grace_s + _STUDIO_S, hurried)
        if not finishing.done():
            # What waited is cancelled, and puts the turns on record on its way out.
            finishing.cancel()
            self._wait(self._begun(self.studio.wind_down(0)), _STUDIO_S)

    def end_streams(self, stop_event: asyncio.Event) -> None:
        """Take no connection any more, and give those that are open a moment for their last words.

        An open page keeps an endless stream, which ends by `stop_event`. When the last one has ended the server closes
        the studio by itself.
        """
        self.loop.call_soon_threadsafe(stop_event.set)
        self.server.should_exit = True
        self.server.thread.join(timeout=_STREAMS_S)

    def close_studio(self) -> None:
        """Close the studio, and cut what still streams."""
        if self.server.thread.is_alive():
            self._wait(self._begun(self.close()), _STUDIO_S)
        self.server.force_exit = True
        self.server.thread.join(timeout=_THREAD_S)

    def _begun(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def _wait(self, work: Future[None], most_s: float, hurried: threading.Event | None = None) -> None:
        """Wait for work on the loop; when its thread has ended, nothing comes of it any more."""
        until = time.monotonic() + most_s
        while self.server.thread.is_alive() and time.monotonic() < until:
            if wait([work], _GLANCE_S).done or (hurried is not None and hurried.is_set()):
                return
