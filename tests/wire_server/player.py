"""Plays an answer's steps onto a connection, as a stream of events or as one response."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson

from tests.wire_server.chunks import Writer
from tests.wire_server.connection import Connection
from tests.wire_server.refusals import Json
from tests.wire_server.serving import Gate
from tests.wire_server.steps import (
    Answer,
    Asked,
    Failure,
    HangUp,
    Pause,
    Piece,
    Raw,
    Step,
    WaitForRelease,
    Whole,
)

_COMMON_HEADERS = {
    "server": "scaffolding on HTTPServer2",
    "x-content-type-options": "nosniff",
    "x-gemini-service-tier": "standard",
}
JSON_HEADERS = {"content-type": "application/json; charset=UTF-8", **_COMMON_HEADERS}
STREAM_HEADERS = {"content-type": "text/event-stream", "content-disposition": "attachment", **_COMMON_HEADERS}


class Player:
    """One answer on its way to one client."""

    def __init__(self, asked: Asked, connection: Connection, gate: Gate) -> None:
        self._connection = connection
        self._gate = gate
        self._asked = asked
        self._writer = Writer(asked.request, asked.answer_id, asked.dice)
        self.chunks_sent = 0

    async def play(self, answer: Answer) -> None:
        """Send the answer the way its method wants it."""
        steps = answer.steps(self._asked)
        if self._asked.request.method == "streamGenerateContent":
            await self._stream(steps)
        else:
            await self._respond(steps)

    async def _stream(self, steps: Iterator[Step]) -> None:
        for step in steps:
            if await self._waits(step):
                continue
            match step:
                case Failure() if not self._connection.has_begun:
                    self._fail(step, STREAM_HEADERS)
                    return
                case HangUp():
                    self._connection.hang_up()
                    return
                case Failure():
                    self._event(_dumped(step.body))
                case Raw():
                    self._event(step.data)
                case Whole():
                    self._event(orjson.dumps(self._writer.whole(step)))
                case Piece():
                    self._event(orjson.dumps(self._writer.chunk(step)))
                case Pause() | WaitForRelease():
                    pass
            await self._connection.drain()
        if not self._connection.has_begun:
            self._connection.write_head(200, STREAM_HEADERS)
        self._connection.write_end()

    async def _respond(self, steps: Iterator[Step]) -> None:
        pieces: list[Piece] = []
        body: bytes | None = None
        for step in steps:
            if await self._waits(step):
                continue
            match step:
                case Failure():
                    self._fail(step, JSON_HEADERS)
                    return
                case HangUp():
                    self._connection.hang_up()
                    return
                case Raw():
                    body = step.data
                case Whole():
                    body = orjson.dumps(self._writer.whole(step))
                case Piece():
                    pieces.append(step)
                case Pause() | WaitForRelease():
                    pass
        if body is None:
            body = orjson.dumps(self._writer.unary(pieces))
        self._connection.write_whole(200, JSON_HEADERS, body)

    async def _waits(self, step: Step) -> bool:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return True
        if isinstance(step, WaitForRelease):
            await self._gate.wait()
            return True
        return False

    def _event(self, data: bytes) -> None:
        if not self._connection.has_begun:
            self._connection.write_head(200, STREAM_HEADERS)
        self._connection.write_piece(b"data: %b\r\n\r\n" % data)
        self.chunks_sent += 1

    def _fail(self, failure: Failure, headers: dict[str, str]) -> None:
        self._connection.write_whole(failure.status, {**headers, **failure.headers}, _dumped(failure.body))


def _dumped(body: Json | bytes) -> bytes:
    return body if isinstance(body, bytes) else orjson.dumps(body)
