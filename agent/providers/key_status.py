"""The diagnosis of a key: which models of the catalogue it may use, and why not the others.

A key is tested when a user asks for it, its models are listed when a page opens, and results are cached.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from cachetools import TTLCache
from pydantic import SecretStr

from agent.errors import Actor, ErrorCode, ErrorInfo
from agent.messages import Value
from agent.providers.base import Provider
from agent.providers.catalogue import IMAGE_ROLES, TEXT_ROLES, Catalogue, ModelEntry, ModelRole

OF_THE_KEY = frozenset(
    {
        *(ErrorCode.KEY_INVALID, ErrorCode.KEY_MISSING, ErrorCode.KEY_EXPIRED, ErrorCode.KEY_LEAKED),
        *(ErrorCode.KEY_SUSPENDED, ErrorCode.KEY_RESTRICTED, ErrorCode.KEY_WITHOUT_API, ErrorCode.API_DISABLED),
        *(ErrorCode.CREDITS_USED_UP, ErrorCode.REGION_UNSUPPORTED, ErrorCode.ACCOUNT_LIMITED),
        *(ErrorCode.CONNECTION_FAILED, ErrorCode.PROXY_FAILED, ErrorCode.CERTIFICATE_FAILED, ErrorCode.TLS_FAILED),
        *(ErrorCode.WRONG_ADDRESS, ErrorCode.REDIRECTED),
    }
)
"""Problems of the key as a whole, or of the connection to Google, whichever model reports them first."""
_FRESH_S = 3600.0
_MOST_KEYS = 64


class ModelStanding(Value):
    """The status of one model: its problem, if any, and how it was checked.

    `is_tried` says that a call was made; otherwise the model was only looked up in the key's list of models.
    """

    role: ModelRole
    model_id: str
    label: str
    problem: ErrorInfo | None = None
    is_tried: bool = False

    @property
    def is_usable(self) -> bool:
        """Whether the model can be chosen: it has no problem, or only one that is not the key's fault."""
        return self.problem is None or self.problem.actor is not Actor.KEY


class KeyDiagnosis(Value):
    """The problem of the key itself (or of the connection to Google), or the status of each model."""

    problem: ErrorInfo | None = None
    models: tuple[ModelStanding, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the key is good and no model has a problem."""
        return self.problem is None and all(one.problem is None for one in self.models)

    def why_not(self, model_id: str) -> ErrorInfo | None:
        """Return why this key cannot use the model, or None when it can or when that is unknown.

        A network failure does not exclude a model.
        """
        if self.problem is not None:
            return self.problem if self.problem.actor is Actor.KEY else None
        standing = next((one for one in self.models if one.model_id == model_id), None)
        return standing.problem if standing is not None and not standing.is_usable else None


class KeyChecker(Provider, Protocol):
    """A provider behind a key that can diagnose the key."""

    async def check(self, models: Sequence[ModelEntry], *, tries_models: bool) -> KeyDiagnosis:
        """Return what the key can do with these models.

        The key's list of models is requested, which costs nothing. With `tries_models`, each model is also asked for
        one word: only that detects a quota that is zero or used up. Raises nothing but SettingsError.
        """
        ...


def diagnosed(standings: Sequence[ModelStanding]) -> KeyDiagnosis:
    """Return the diagnosis from the models' statuses: a problem of the key is reported once, not per model."""
    whole = next((one.problem for one in standings if one.problem and one.problem.code in OF_THE_KEY), None)
    return KeyDiagnosis(problem=whole, models=() if whole is not None else tuple(standings))


class _Check(Protocol):
    async def __call__(
        self, key: SecretStr, models: Sequence[ModelEntry], /, *, tries_models: bool
    ) -> KeyDiagnosis: ...


class KeyStatusCache:
    """A cache of key diagnoses, by the key itself. `check` calls Gemini with a key.

    A diagnosis is valid for an hour. One of a network failure is returned, but not cached.
    """

    def __init__(self, catalogue: Catalogue, check: _Check, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalogue = catalogue
        self._check = check
        # Keyed by the secret object, not by its text: a dump of this object must not show a key.
        self._known: TTLCache[SecretStr, KeyDiagnosis] = TTLCache(_MOST_KEYS, _FRESH_S, clock)
        self._asking: dict[SecretStr, asyncio.Lock] = {}

    def known(self, key: SecretStr | None) -> KeyDiagnosis | None:
        """Return the cached diagnosis of the key, or None when there is none or it has expired."""
        return self._known.get(key) if key is not None else None

    async def test(self, key: SecretStr) -> KeyDiagnosis:
        """Return what the key can do, tested with one word from each model: it costs less than a tenth of a cent."""
        return await self._ask(key, tries_models=True)

    async def listed(self, key: SecretStr) -> KeyDiagnosis:
        """Return the cached diagnosis, else one from the key's free list of models; one request per key at a time."""
        async with self._asking.setdefault(key, asyncio.Lock()):
            try:
                return self.known(key) or await self._ask(key, tries_models=False)
            finally:
                self._asking.pop(key, None)

    def record_failure(self, key: SecretStr, error: ErrorInfo, roles: Sequence[ModelRole]) -> bool:
        """Record that a call by a model of these roles was refused because of the key; return whether it was of use.

        A model's failure names the model by its label, which is unique among the models of one kind.
        """
        if error.actor is not Actor.KEY:
            return False
        if error.code in OF_THE_KEY:
            self._known[key] = KeyDiagnosis(problem=error)
            return True
        named = error.parameters.get("model")
        before = self.known(key) or KeyDiagnosis()
        standings = before.models or [
            ModelStanding(role=model.role, model_id=model.id, label=model.label) for model in self._models()
        ]
        found = [one for one in standings if one.role in roles and named in (one.label, one.model_id)]
        refused = {one.model_id: one.model_copy(update={"problem": error, "is_tried": True}) for one in found}
        if refused:
            models = tuple(refused.get(one.model_id, one) for one in standings)
            self._known[key] = KeyDiagnosis(models=models)
        return bool(refused)

    def clear(self, key: SecretStr, model_ids: Collection[str]) -> bool:
        """Forget the problems of these models and of the key as a whole, because they have answered with it.

        Return whether there were any.
        """
        held = self._known.get(key)
        if held is None or not model_ids:
            return False
        if held.problem is not None:
            del self._known[key]
            return True
        if not any(one.problem is not None and one.model_id in model_ids for one in held.models):
            return False
        good = {"problem": None, "is_tried": True}
        cleared = (one.model_copy(update=good) if one.model_id in model_ids else one for one in held.models)
        self._known[key] = KeyDiagnosis(models=tuple(cleared))
        return True

    async def _ask(self, key: SecretStr, *, tries_models: bool) -> KeyDiagnosis:
        diagnosis = await self._check(key, self._models(), tries_models=tries_models)
        if diagnosis.problem is None or diagnosis.why_not("") is not None:
            self._known[key] = diagnosis
        return diagnosis

    def _models(self) -> list[ModelEntry]:
        """Return the models that a turn may use, each once."""
        models = [self._catalogue.keyed(role) for role in (*TEXT_ROLES, *IMAGE_ROLES)]
        return list({one.id: one for one in models}.values())
