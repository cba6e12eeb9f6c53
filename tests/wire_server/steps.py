"""What an answer is made of: steps, played one after the other onto the wire."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar

from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.signatures import Ledger


@dataclass(frozen=True)
class Piece:
    """One chunk of a candidate: its parts, and on the last one why it ended.

    Without parts the content has only a role, as a refused picture's has.
    """

    parts: tuple[Json, ...] = ()
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding: Json | None = None
    image_tokens: int = 0
    has_details: bool = True


@dataclass(frozen=True)
class Whole:
    """A response said in full, but for the usage and the model's name."""

    body: Json


@dataclass(frozen=True)
class Pause:
    """Nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True)
class WaitForRelease:
    """Nothing until the test calls `release`."""


@dataclass(frozen=True)
class Raw:
    """Bytes as they are, in the place of an event or of the body."""

    data: bytes


@dataclass(frozen=True)
class HangUp:
    """The connection closes without the end of the answer."""


@dataclass(frozen=True)
class Failure:
    """An error: the HTTP answer when it comes first, an event when the stream has begun."""

    status: int
    body: Json | bytes
    headers: dict[str, str] = field(default_factory=dict)


Step = Piece | Whole | Pause | WaitForRelease | Raw | HangUp | Failure


@dataclass(frozen=True)
class Asked:
    """What an answer may look at: the request, and the ledger that signs its parts. With `dice` its tokens are counted
    as those of recorded answers: they differ from one to the next."""

    request: WireRequest
    ledger: Ledger
    answer_id: str
    dice: Random | None = None

    def signed(self, part: Json, size_bytes: int) -> Json:
        """Return the part with a signature of this size; of size 0, without."""
        if size_bytes <= 0:
            return part
        return self.ledger.sign(part, self.request.model, self.answer_id, size_bytes)


class Answer(ABC):
    """One scripted answer."""

    is_for_images: ClassVar[bool] = False

    @abstractmethod
    def steps(self, asked: Asked) -> Iterator[Step]:
        """Yield what happens, in order."""
