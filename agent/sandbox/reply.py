"""What a child may answer, read as hostile: a script that broke out of the engine can say anything."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, field_validator

from agent.sandbox.process import Spoken
from agent.sandbox.run import ConsoleLine, Protection


class Thrown(BaseModel):
    """What a script threw."""

    model_config = ConfigDict(extra="forbid")

    name: str
    message: str
    line: int | None


class Reply(BaseModel):
    """The answer of a child that came to speak.

    `stopped` says which limit of the engine's ended the script, if one did: `interrupted`, `jobs` or its own words;
    `unreadable` why its state could not be told; `unfiltered` why there is no seccomp.
    """

    model_config = ConfigDict(extra="forbid")

    has_limits: bool
    unfiltered: str
    stopped: str
    unreadable: str = ""
    state: Literal["pending", "done", "failed"] = "pending"
    result: JsonValue = None
    error: Thrown | None = None
    console: tuple[ConsoleLine, ...] = ()
    read: tuple[str, ...] = ()
    has_listed: bool = False
    written: dict[str, str] = {}
    is_truncated: bool = False

    @field_validator("result")
    @classmethod
    def _is_json_to_everybody(cls, result: JsonValue) -> JsonValue:
        # Python and pydantic read NaN and Infinity, which nobody else takes for JSON.
        json.dumps(result, allow_nan=False)
        return result

    @property
    def protection(self) -> Protection:
        """What held the script."""
        if not self.unfiltered:
            return Protection.SECCOMP
        return Protection.PROCESS_LIMITS if self.has_limits else Protection.ENGINE_LIMITS


def read_reply(spoken: Spoken) -> Reply | None:
    """Return the answer, or None when there is none that can be read."""
    try:
        return Reply.model_validate_json(spoken.data)
    except ValidationError:
        return None
