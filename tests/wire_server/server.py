"""The server in a thread: real HTTP on a free port of this machine, for as long as a `with` block lasts."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Self

from tests.support.waiting import join
from tests.wire_server.connection import Connection
from tests.wire_server.control import Control
from tests.wire_server.models import Kind
from tests.wire_server.records import PATIENCE_S, Disconnect
from tests.wire_server.refusals import Json, Violation
from tests.wire_server.request import WireRequest
from tests.wire_server.script import Brain
from tests.wire_server.service import Service
from tests.wire_server.steps import Answer


class GeminiServer:
    """A strict Gemini API. Use as a context manager; an exception of a test's own brain is raised on leaving.

    `keeps_bodies=False` keeps only the sizes of requests, for measurements.
    """

    def __init__(
        self,
        *,
        keeps_bodies: bool = True,
        max_body_bytes: int = 100 * 1024 * 1024,
        port: int = 0,
        text: Brain | None = None,
        image: Brain | None = None,
    ) -> None:
        self._service = Service(keeps_bodies=keeps_bodies, max_body_bytes=max_body_bytes)
        self._service.control = Control(self._service).handle
        self._port = port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self.url = ""
        if text is not None:
            self.on_text(text)
        if image is not None:
            self.on_image(image)

    def __enter__(self) -> Self:
        started: queue.Queue[str | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(started,), name="gemini-server", daemon=True)
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
        if error is None and self._service.records.faults:
            raise self._service.records.faults[0]

    @property
    def requests(self) -> list[WireRequest]:
        """Every request whose body could be read, in the order of arrival."""
        return self._service.records.requests

    @property
    def violations(self) -> list[Violation]:
        """Every rule broken."""
        return self._service.records.violations

    @property
    def disconnects(self) -> list[Disconnect]:
        """Every client that left before the end of its answer."""
        return self._service.records.disconnects

    @property
    def held(self) -> int:
        """How many answers are held now."""
        return self._service.records.held

    @property
    def remaining(self) -> int:
        """How many scripted answers nobody has asked for."""
        return self._service.script.remaining

    def count_as_recorded(self, seed: int) -> None:
        """Count tokens from now on as recorded answers do: no two alike."""
        self._service.dice = Random(seed)

    def on_text(self, *answers: Answer | Brain) -> None:
        """Queue answers of the text models; a callable answers whenever the queue is empty."""
        self._service.script.add(Kind.TEXT, *answers)

    def on_image(self, *answers: Answer | Brain) -> None:
        """Queue answers of the image models; a callable answers whenever the queue is empty."""
        self._service.script.add(Kind.IMAGE, *answers)

    def script(self, *answers: Answer) -> None:
        """Queue answers, each for the kind of model that gives such answers; for the rest use `on_image`."""
        for answer in answers:
            self._service.script.add(Kind.IMAGE if answer.is_for_images else Kind.TEXT, answer)

    def reject_key(self, key: str) -> None:
        """Answer every request with this key as the API answers a bad one."""
        self._service.rejected_keys.add(key)

    def withhold(self, *models: str) -> None:
        """Offer these models to no key: the list is without them, and asking for one is a 404."""
        self._service.permissions.withheld.update(models)

    def deny_key(self, body: Json, key: str | None = None) -> None:
        """Answer every request with this key, or with any, with this error, the list of models included."""
        self._service.permissions.deny_key(body["error"]["code"], body, key)

    def deny_model(self, model: str, body: Json) -> None:
        """Answer every request for this model with this error; the list still has it."""
        self._service.permissions.deny_model(model, body["error"]["code"], body)

    def release(self) -> None:
        """Let every held answer go on, or the next that is held."""
        assert self._loop is not None, "the server is not running"
        self._loop.call_soon_threadsafe(self._service.gate.open)

    def clear(self) -> None:
        """Forget what was scripted and seen. Signatures stay: a conversation may go on."""
        self._service.script.clear()
        self._service.records.clear()
        self._service.permissions.clear()
        # Behind whatever was released before.
        assert self._loop is not None, "the server is not running"
        self._loop.call_soon_threadsafe(self._service.gate.clear)

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        """Return when the claim about what was seen holds. Raises TimeoutError. From a coroutine, in a thread."""
        self._service.records.wait_until(is_true, timeout_s)

    def wait_for_held(self, count: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Return when so many answers are held."""
        self.wait_until(lambda: self.held >= count, timeout_s)

    def wait_for_disconnect(self, count: int = 1, timeout_s: float = PATIENCE_S) -> Disconnect:
        """Return the newest disconnect when there have been so many."""
        self.wait_until(lambda: len(self.disconnects) >= count, timeout_s)
        return self.disconnects[-1]

    def _run(self, started: queue.Queue[str | BaseException]) -> None:
        try:
            asyncio.run(self._live(started))
        except BaseException as fault:
            started.put(fault)

    async def _live(self, started: queue.Queue[str | BaseException]) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        connections: set[Connection] = set()
        service = self._service
        listener = await loop.create_server(
            lambda: Connection(service.handle, service.max_body_bytes, connections), "127.0.0.1", self._port
        )
        started.put(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        await self._stopping.wait()
        listener.close()
        await asyncio.gather(*(connection.stop() for connection in tuple(connections)))
        await listener.wait_closed()
