"""The answers to come: one queue a kind of model, then a brain, then the default."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tests.wire_server.answers import Text
from tests.wire_server.models import Kind
from tests.wire_server.picture_answers import PictureAnswer
from tests.wire_server.request import WireRequest
from tests.wire_server.steps import Answer

# Looks at the request and says what to answer; None leaves it to the default.
Brain = Callable[[WireRequest], Answer | None]


class Script:
    """What the server will answer, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[Kind, deque[Answer]] = {Kind.TEXT: deque(), Kind.IMAGE: deque()}
        self._brains: dict[Kind, Brain] = {}

    def add(self, kind: Kind, *answers: Answer | Brain) -> None:
        """Queue answers; a callable becomes the brain that answers whenever the queue is empty."""
        with self._lock:
            for answer in answers:
                if isinstance(answer, Answer):
                    self._queues[kind].append(answer)
                else:
                    self._brains[kind] = answer

    def clear(self) -> None:
        """Forget every answer and brain."""
        with self._lock:
            self._brains.clear()
            for queue in self._queues.values():
                queue.clear()

    @property
    def remaining(self) -> int:
        """How many queued answers nobody has asked for yet."""
        return sum(map(len, self._queues.values()))

    def next(self, request: WireRequest) -> Answer:
        """Take the answer of this request."""
        with self._lock:
            queue = self._queues[request.kind]
            if queue:
                return queue.popleft()
            brain = self._brains.get(request.kind)
        answer = brain(request) if brain is not None else None
        if answer is not None:
            return answer
        return PictureAnswer() if request.kind is Kind.IMAGE else Text("Hello.")
