"""The strict Gemini API as a test uses it: in a thread, or in a process of its own."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.support.lines import read_line, running
from tests.support.waiting import PATIENCE_S, wait_until
from tests.wire_server.control import Control
from tests.wire_server.models import Kind
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.service import Service
from tests.wire_server.serving import MAX_BODY_BYTES, Serving
from tests.wire_server.steps import Answer

ROOT = Path(__file__).parents[2]
# Looks at the request and says what to answer; None leaves it to the default.
Brain = Callable[[WireRequest], Answer | None]


class GeminiServer(Serving):
    """A strict Gemini API. Use as a context manager; an exception of a test's own brain is raised on leaving.

    `keeps_bodies=False` keeps only the sizes of requests, for measurements.
    """

    def __init__(
        self,
        *,
        keeps_bodies: bool = True,
        max_body_bytes: int = MAX_BODY_BYTES,
        port: int = 0,
        text: Brain | None = None,
        image: Brain | None = None,
    ) -> None:
        self._service = service = Service(keeps_bodies=keeps_bodies, max_body_bytes=max_body_bytes)
        service.control = Control(service).handle
        super().__init__(service.handle, service.records, service.gate, port=port, most_bytes=max_body_bytes)
        for kind, brain in ((Kind.TEXT, text), (Kind.IMAGE, image)):
            if brain is not None:
                service.script.add(kind, brain)

    @property
    def requests(self) -> list[WireRequest]:
        """Every request whose body could be read, in the order of arrival."""
        return self._service.records.requests

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
        self._service.withheld.update(models)

    def deny_key(self, body: Json, key: str | None = None) -> None:
        """Answer every request with this key, or with any, with this error, the list of models included."""
        self._service.denied_keys[key] = body

    def deny_model(self, model: str, body: Json) -> None:
        """Answer every request for this model with this error; the list still has it."""
        self._service.denied_models[model] = body

    def clear(self) -> None:
        """Forget what was scripted and seen. Signatures stay: a conversation may go on."""
        self._service.clear()
        # Behind whatever was released before.
        self._soon(self._service.gate.clear)


class GeminiProcess:
    """`python -m tests.wire_server` for as long as a `with` block lasts."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.wire_server", "--port", "0", *self._arguments]
        with ExitStack() as stack:
            self.url = read_line(*stack.enter_context(running(command, cwd=ROOT)))
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def control(self, **orders: Any) -> Any:
        """Script the server; return its state."""
        return self._ask("/_control", json.dumps(orders).encode())

    def release(self) -> None:
        """Let the held answers go on, once there are any. Raises TimeoutError when none comes."""
        wait_until(lambda: self.read("state")["held"])
        self.control(release=True)

    def read(self, what: str) -> Any:
        """Return `requests`, `violations`, `disconnects` or `state`."""
        return self._ask(f"/_{what}")

    def _ask(self, path: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", body, timeout=PATIENCE_S) as answer:
            return json.load(answer)
