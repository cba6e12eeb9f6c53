"""What a key can do: which models of the catalogue it may use, and which not, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agent.errors import Actor, ErrorCode, ErrorInfo
from agent.messages import Value
from agent.providers.base import Provider
from agent.providers.catalogue import ModelEntry, ModelRole

OF_THE_KEY = frozenset(
    {
        *(ErrorCode.KEY_INVALID, ErrorCode.KEY_MISSING, ErrorCode.KEY_EXPIRED, ErrorCode.KEY_LEAKED),
        *(ErrorCode.KEY_SUSPENDED, ErrorCode.KEY_RESTRICTED, ErrorCode.KEY_WITHOUT_API, ErrorCode.API_DISABLED),
        *(ErrorCode.CREDITS_USED_UP, ErrorCode.REGION_UNSUPPORTED, ErrorCode.ACCOUNT_LIMITED),
        *(ErrorCode.CONNECTION_FAILED, ErrorCode.PROXY_FAILED, ErrorCode.CERTIFICATE_FAILED, ErrorCode.TLS_FAILED),
        *(ErrorCode.WRONG_ADDRESS, ErrorCode.REDIRECTED),
    }
)
"""What is wrong with the key as a whole, or with the way to Google, whichever model says so first."""


class ModelStanding(Value):
    """How it stands with one model: what is in the way, if anything, and whether it was tried with a call or only
    looked for in the list of what the key is offered."""

    role: ModelRole
    model_id: str
    label: str
    problem: ErrorInfo | None = None
    is_tried: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether it can be chosen: nothing is in its way, or only what passes by itself."""
        return self.problem is None or self.problem.actor is not Actor.KEY


class KeyDiagnosis(Value):
    """What is wrong with the key itself (or with the way to Google), or how it stands with each model."""

    problem: ErrorInfo | None = None
    models: tuple[ModelStanding, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the key is good and every model answered."""
        return self.problem is None and all(one.problem is None for one in self.models)

    def why_not(self, model_id: str) -> ErrorInfo | None:
        """Return why this key cannot use the model, or None where it can or nobody knows.

        A network that is down keeps no model from being chosen.
        """
        if self.problem is not None:
            return self.problem if self.problem.actor is Actor.KEY else None
        standing = next((one for one in self.models if one.model_id == model_id), None)
        return standing.problem if standing is not None and not standing.is_usable else None


class KeyChecker(Provider, Protocol):
    """A provider behind a key that can say what the key is good for."""

    async def check(self, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
        """Return what the key can do with these models.

        The list of what it is offered is asked for, which costs nothing. With `tries_models` each model is asked for
        one word as well: only that finds a quota of zero or one that is used up. Nothing is raised but SettingsError.
        """
        ...


def diagnosed(standings: Sequence[ModelStanding]) -> KeyDiagnosis:
    """Return the standings as a diagnosis: a fault of the key is told once, not once for every model."""
    whole = next((one.problem for one in standings if one.problem and one.problem.code in OF_THE_KEY), None)
    return KeyDiagnosis(problem=whole, models=() if whole is not None else tuple(standings))
