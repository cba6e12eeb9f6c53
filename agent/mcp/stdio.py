"""A server that is a program of this machine: one line of JSON a message, over its input and output.

The SDK's own transport reads lines of any length and hands down more of our environment; this one does neither, and
no child of it outlives it, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)

from agent.mcp.limits import MAX_MESSAGE_BYTES, TOO_LONG
from agent.mcp_config import StdioServer

_PIECE_BYTES = 65536
_ENDS_BYTES = 256
_LAST_WORDS_BYTES = 2000
_POLITE_S = 0.3
_POLL_S = 0.01
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})')

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
_Theirs = MemoryObjectSendStream[SessionMessage | Exception]
_Ours = MemoryObjectReceiveStream[SessionMessage]

_log = logging.getLogger(__name__)


class StdioLink:
    """The way to such a server, for `mcp.Client`: the child lives as long as the context.

    `inherited` is what it gets of our environment. `on_end` is called when it can answer no more.
    Entering raises OSError when the program cannot be started.
    """

    def __init__(self, server: StdioServer, inherited: Mapping[str, str], *, on_end: Callable[[], None]) -> None:
        self._server = server
        self._inherited = inherited
        self._on_end = on_end
        self._last_words = bytearray()
        self._in_flight: dict[RequestId, None] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._streams: list[Incoming | Outgoing | _Theirs | _Ours] = []
        self._process: Process | None = None

    @property
    def last_words(self) -> str:
        """The end of what the program wrote to its log."""
        return self._last_words.decode(errors="replace").strip()

    async def __aenter__(self) -> tuple[Incoming, Outgoing]:
        """Start the program and return the streams of its messages and of ours."""
        own = {name: value.get_secret_value() for name, value in self._server.env.items()}
        process = await asyncio.create_subprocess_exec(
            *(self._server.command, *self._server.args),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**self._inherited, **own},
            cwd=_folder(self._inherited),
            start_new_session=True,
        )
        self._process = process
        theirs, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, ours = anyio.create_memory_object_stream[SessionMessage](0)
        self._streams = [theirs, incoming, outgoing, ours]
        traffic = (partial(self._read, process, theirs), partial(self._write, process, ours))
        self._tasks = [asyncio.create_task(self._until_the_end(work)) for work in traffic]
        self._tasks.append(asyncio.create_task(self._listen(process)))
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the program: by closing its input, then by a word, then by force."""
        process = self._process
        if process is None:
            return
        try:
            if process.stdin is not None:
                process.stdin.close()
            if not await _has_ended(process):
                _signal(process, signal.SIGTERM)
                await _has_ended(process)
        finally:
            # Its own children as well, also when it has gone already, and also when we are cancelled meanwhile.
            _kill(process)
            for task in self._tasks:
                task.cancel()
            for stream in self._streams:
                stream.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # To the end of its pipes, or their transports would stay open.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _POLITE_S)

    async def _until_the_end(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            # What breaks when a pipe does, or when the session has gone, is the end and no more.
            with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await work()
        finally:
            self._on_end()

    async def _read(self, process: Process, theirs: _Theirs) -> None:
        async with theirs:
            line = _Line()
            while process.stdout is not None and (piece := await process.stdout.read(_PIECE_BYTES)):
                *whole, rest = piece.split(b"\n")
                for part in whole:
                    line.add(part)
                    await self._deliver(line, theirs)
                    line = _Line()
                line.add(rest)
                if line.is_too_long:
                    await self._fail(line, theirs, is_whole=False)

    async def _deliver(self, line: _Line, theirs: _Theirs) -> None:
        if line.is_too_long:
            await self._fail(line, theirs, is_whole=True)
            return
        text = bytes(line.start).strip()
        if not text:
            return
        try:
            message = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            # Many a program greets on the wrong pipe.
            _log.debug("a line of %s is no message of MCP", self._server.command)
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._in_flight.pop(message.id, None)
        await theirs.send(SessionMessage(message))

    async def _fail(self, line: _Line, theirs: _Theirs, *, is_whole: bool) -> None:
        """Answer for a message that is too long, as soon as it is clear which call it belongs to."""
        answered: list[RequestId] = [one for one in line.ids if one in self._in_flight]
        if not answered and is_whole and not line.is_answered:
            answered = list(self._in_flight)
        for request_id in answered:
            line.is_answered = True
            self._in_flight.pop(request_id, None)
            error = ErrorData(code=INTERNAL_ERROR, message=TOO_LONG)
            await theirs.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    async def _write(self, process: Process, ours: _Ours) -> None:
        async with ours:
            async for message in ours:
                if process.stdin is None:
                    return
                if isinstance(message.message, JSONRPCRequest):
                    self._in_flight[message.message.id] = None
                process.stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()

    async def _listen(self, process: Process) -> None:
        while process.stderr is not None and (piece := await process.stderr.read(_PIECE_BYTES)):
            self._last_words += piece
            del self._last_words[:-_LAST_WORDS_BYTES]


class _Line:
    """A line as it comes in; of one that is too long, no more than both its ends."""

    def __init__(self) -> None:
        self.start = bytearray()
        self.end = b""
        self.is_too_long = False
        self.is_answered = False

    def add(self, piece: bytes) -> None:
        self.end = (self.end + piece)[-_ENDS_BYTES:]
        if self.is_too_long:
            return
        self.start += piece
        if len(self.start) > MAX_MESSAGE_BYTES:
            self.is_too_long = True
            del self.start[_ENDS_BYTES:]

    @property
    def ids(self) -> list[int]:
        """The numbers at its ends that may be the call's: some servers write it first, some last."""
        return [int(found) for found in (*_ID.findall(self.start[:_ENDS_BYTES]), *_ID.findall(self.end))]


def _folder(inherited: Mapping[str, str]) -> Path:
    """Return where the program runs: the user's own folder, as where it would be started by hand."""
    home = Path(inherited.get("HOME") or inherited.get("USERPROFILE") or sys.executable)
    return home if home.is_dir() else Path(home.anchor)


async def _has_ended(process: Process) -> bool:
    # `Process.wait` waits for the pipes, too, which a child of the program may hold open.
    deadline = asyncio.get_running_loop().time() + _POLITE_S
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True


def _signal(process: Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, number)


def _kill(process: Process) -> None:
    _signal(process, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
