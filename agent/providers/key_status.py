"""What is known of keys: tested when a person asks for it, listed when a page is opened, kept while it is fresh."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

from agent.errors import Actor, ErrorInfo
from agent.providers.catalogue import IMAGE_ROLES, TEXT_ROLES, Catalogue, ModelEntry, ModelRole
from agent.providers.key_check import OF_THE_KEY, KeyDiagnosis, ModelStanding

_FRESH_S = 3600.0
_MOST_KEYS = 64


@dataclass(frozen=True)
class _Known:
    diagnosis: KeyDiagnosis
    at_s: float


class _Check(Protocol):
    async def __call__(
        self, key: SecretStr, models: Sequence[ModelEntry], /, *, tries_models: bool
    ) -> KeyDiagnosis: ...


class KeyStatusCache:
    """The diagnoses of keys, by the key itself. `check` asks Gemini behind a key.

    A diagnosis is known for an hour. One of a network that failed is told and not kept.
    """

    def __init__(self, catalogue: Catalogue, check: _Check, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalogue = catalogue
        self._check = check
        self._clock = clock
        # By the secret itself, not its text: whatever shows this object must not show a key.
        self._known: OrderedDict[SecretStr, _Known] = OrderedDict()
        self._asking: dict[SecretStr, asyncio.Lock] = {}

    def known(self, key: SecretStr | None) -> KeyDiagnosis | None:
        """Return what is known of the key, or None when nothing is, or not any more."""
        held = self._known.get(key) if key is not None else None
        return held.diagnosis if held is not None and self._clock() - held.at_s < _FRESH_S else None

    async def test(self, key: SecretStr) -> KeyDiagnosis:
        """Return what the key can do, tried with one word of each model: it costs less than a tenth of a cent."""
        return await self._ask(key, tries_models=True)

    async def listed(self, key: SecretStr) -> KeyDiagnosis:
        """Return what is known of the key, else what it is offered, which costs nothing; asked for once at a time."""
        async with self._asking.setdefault(key, asyncio.Lock()):
            try:
                return self.known(key) or await self._ask(key, tries_models=False)
            finally:
                self._asking.pop(key, None)

    def record_failure(self, key: SecretStr, error: ErrorInfo, roles: Sequence[ModelRole]) -> bool:
        """Remember that a call of a turn was refused because of the key, by a model of these roles; return whether
        that says anything.

        A model's failure names it by its label, which is its own among the models of one kind.
        """
        if error.actor is not Actor.KEY:
            return False
        if error.code in OF_THE_KEY:
            self._keep(key, KeyDiagnosis(problem=error))
            return True
        named = error.parameters.get("model")
        before = self.known(key) or KeyDiagnosis()
        standings = [_unknown(model) for model in self._models()] if not before.models else list(before.models)
        found = [one for one in standings if one.role in roles and named in (one.label, one.model_id)]
        refused = {one.model_id: one.model_copy(update={"problem": error, "is_tried": True}) for one in found}
        if refused:
            models = tuple(refused.get(one.model_id, one) for one in standings)
            self._keep(key, KeyDiagnosis(models=models))
        return bool(refused)

    def clear(self, key: SecretStr, model_ids: Collection[str]) -> bool:
        """Forget what stood in the way of these models, and what was wrong with the key as a whole: they have answered
        with it. Return whether there was anything."""
        held = self._known.get(key)
        if held is None or not model_ids:
            return False
        if held.diagnosis.problem is not None:
            del self._known[key]
            return True
        models = held.diagnosis.models
        cleared = tuple(
            one.model_copy(update={"problem": None, "is_tried": True}) if one.model_id in model_ids else one
            for one in models
        )
        was_wrong = any(one.problem is not None and one.model_id in model_ids for one in models)
        if was_wrong:
            # It is known for as long as it would have been.
            self._known[key] = _Known(KeyDiagnosis(models=cleared), held.at_s)
        return was_wrong

    async def _ask(self, key: SecretStr, *, tries_models: bool) -> KeyDiagnosis:
        diagnosis = await self._check(key, self._models(), tries_models=tries_models)
        if diagnosis.problem is None or diagnosis.why_not("") is not None:
            self._keep(key, diagnosis)
        return diagnosis

    def _models(self) -> list[ModelEntry]:
        """Return the models a turn may use, each once."""
        models = [self._catalogue.keyed(role) for role in (*TEXT_ROLES, *IMAGE_ROLES)]
        return list({one.id: one for one in models}.values())

    def _keep(self, key: SecretStr, diagnosis: KeyDiagnosis) -> None:
        self._known[key] = _Known(diagnosis, self._clock())
        self._known.move_to_end(key)
        while len(self._known) > _MOST_KEYS:
            self._known.popitem(last=False)


def _unknown(model: ModelEntry) -> ModelStanding:
    return ModelStanding(role=model.role, model_id=model.id, label=model.label)
