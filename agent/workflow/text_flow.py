"""Words on their way to the listeners: the first at once, the others together a few times a frame."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Faster than a screen draws; each event costs as much as reading several chunks.
_PAUSE_S = 0.012
# Steps of the event loop from the node to whoever follows the turn.
_HOPS = 2


class TextFlow:
    """Gathers streamed words and hands them on, none later than a few milliseconds after it came.

    Use it as an async context manager: leaving hands on what is left.
    """

    def __init__(self, hand_on: Callable[[str, bool], None]) -> None:
        self._hand_on = hand_on
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._are_thoughts = False
        self._is_first = True

    async def __aenter__(self) -> TextFlow:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._flush()

    async def take(self, text: str, is_thought: bool = False) -> None:
        """Take more words, or thoughts. The first ones are handed on before this returns."""
        if is_thought != self._are_thoughts:
            self._flush()
            self._are_thoughts = is_thought
        self._waiting.append(text)
        if self._is_first:
            self._is_first = False
            self._flush()
            # Chunks that lie ready in the socket are read without a pause: the listeners would wait for the last one.
            for _ in range(_HOPS):
                await asyncio.sleep(0)
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._hand_on("".join(self._waiting), self._are_thoughts)
            self._waiting.clear()
