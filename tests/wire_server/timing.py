"""Answers that take their time: late, slow, or held until the test lets them go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.wire_server.steps import Answer, Asked, Pause, Piece, Step, WaitForRelease


@dataclass(frozen=True)
class Delay(Answer):
    """Another answer, after so many seconds of nothing."""

    seconds: float
    answer: Answer

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Pause(self.seconds)
        yield from self.answer.steps(asked)


@dataclass(frozen=True)
class DelayBetweenChunks(Answer):
    """Another answer, with so many seconds between its chunks."""

    seconds: float
    answer: Answer

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number, step in enumerate(self.answer.steps(asked)):
            if number:
                yield Pause(self.seconds)
            yield step


@dataclass(frozen=True)
class Hold(Answer):
    """Another answer, which stops after so many chunks until the test calls `release`: no sleeping needed."""

    answer: Answer
    after_chunks: int = 0

    def steps(self, asked: Asked) -> Iterator[Step]:
        sent, is_held = 0, False
        for step in self.answer.steps(asked):
            if not is_held and sent >= self.after_chunks:
                yield WaitForRelease()
                is_held = True
            yield step
            sent += isinstance(step, Piece)
