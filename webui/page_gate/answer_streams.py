"""Gradio's streams of answers: how many each session has seen the end of.

Gradio 6.31 ends a browser's stream once nothing is left to be answered; the browser opens another with its next event,
unless it still takes the old one for open. So an event that is sent between the end and the moment in which the browser
reads of it gets no stream, and its answer never arrives. With each event that is accepted the browser is told how many
streams have ended, and the page (`assets/answers.js`) lets Gradio know only once Gradio has read of as many ends.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

HEADER = "x-ended-streams"
# The last message of a stream, as Gradio writes it.
_END = b'data: {"msg":"close_stream"'
_MOST_SESSIONS = 20_000


@dataclass
class AnswerStreams:
    """Counts the streams that ended, by session."""

    _ended: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def counted(self, session: str, send: Send) -> Send:
        """Return `send` for a stream of answers: its end is counted before the browser is told."""

        async def counting(message: Message) -> None:
            if message.get("body", b"").startswith(_END):
                self._ended[session] = self._ended.pop(session, 0) + 1
                if len(self._ended) > _MOST_SESSIONS:
                    self._ended.popitem(last=False)
            await send(message)

        return counting

    def telling(self, session: str, send: Send) -> Send:
        """Return `send` for what Gradio says to a new event: how many streams have ended goes with it."""

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start" and session in self._ended:
                MutableHeaders(raw=message["headers"])[HEADER] = str(self._ended[session])
            await send(message)

        return tell
