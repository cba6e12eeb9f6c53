"""The server in a thread: real HTTP on a free port of this machine, for as long as a `with` block lasts."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.openai_server.answers import Answer
from tests.openai_server.refusals import Violation
from tests.openai_server.request import ChatRequest, PictureRequest
from tests.openai_server.service import Service
from tests.support.waiting import join
from tests.wire_server.connection import Connection
from tests.wire_server.records import PATIENCE_S

_MAX_BODY_BYTES = 100 << 20


class OpenAIServer:
    """A strict server of chats and pictures. With a `key` of None it wants none, and takes it ill to be given one.

    Use as a context manager; an exception of a test's own brain is raised on leaving. The address ends in `/v1`.
    """

    def __init__(self, *, key: str | None = None) -> None:
        self._service = Service(key)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    def __enter__(self) -> Self:
        started: queue.Queue[str | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(started,), name="openai-server", daemon=True)
        self._thread.start()
        first = started.get(timeout=PATIENCE_S)
        if isinstance(first, BaseException):
            raise first
        self.url = first
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stopping is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            join(self._thread)
        if error is None and self._service.faults:
            raise self._service.faults[0]

    @property
    def chats(self) -> list[ChatRequest]:
        """Every call of the text models whose body could be read."""
        return self._service.chats

    @property
    def pictures(self) -> list[PictureRequest]:
        """Every call of the image models whose body could be read."""
        return self._service.pictures

    @property
    def fetched(self) -> list[str]:
        """The paths of the files that were fetched."""
        return self._service.fetched

    @property
    def violations(self) -> list[Violation]:
        """Every rule broken."""
        return self._service.violations

    def on_chat(self, *answers: Answer | Callable[[ChatRequest], Answer | None]) -> None:
        """Queue answers of the text models; a callable answers whenever the queue is empty."""
        for answer in answers:
            if isinstance(answer, Answer):
                self._service.chat_answers.append(answer)
            else:
                self._service.chat_brain = answer

    def on_picture(self, *answers: Answer | Callable[[PictureRequest], Answer | None]) -> None:
        """Queue answers of the image models; a callable answers whenever the queue is empty."""
        for answer in answers:
            if isinstance(answer, Answer):
                self._service.picture_answers.append(answer)
            else:
                self._service.picture_brain = answer

    def release(self) -> None:
        """Let every held answer go on."""
        assert self._loop is not None, "the server is not running"
        self._loop.call_soon_threadsafe(self._service.release)

    def wait_for_held(self) -> None:
        """Return when an answer is held. From a coroutine, in a thread."""
        self._service.wait_until(lambda: self._service.held > 0)

    def wait_for_disconnect(self) -> None:
        """Return when a client has left before the end of its answer. From a coroutine, in a thread."""
        self._service.wait_until(lambda: self._service.disconnects > 0)

    def _run(self, started: queue.Queue[str | BaseException]) -> None:
        try:
            asyncio.run(self._live(started))
        except BaseException as fault:
            started.put(fault)

    async def _live(self, started: queue.Queue[str | BaseException]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        connections: set[Connection] = set()
        listener = await loop.create_server(
            lambda: Connection(self._service.handle, _MAX_BODY_BYTES, connections), "127.0.0.1", 0
        )
        started.put(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1")
        await self._stopping.wait()
        listener.close()
        await asyncio.gather(*(connection.stop() for connection in tuple(connections)))
        await listener.wait_closed()
