"""What the image models of a provider offer, for the fields of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from agent import Catalogue, ErrorInfo, KeyDiagnosis, ModelRole

_ROLES = {"flash": ModelRole.IMAGE_FLASH, "pro": ModelRole.IMAGE_PRO}


@dataclass(frozen=True)
class Offer:
    """One image model: its name in the page, `flash` or `pro`, and the aspect ratios and resolutions it obeys.

    `problem` says why the key cannot use it.
    """

    name: str
    label: str
    aspect_ratios: tuple[str, ...]
    resolutions: tuple[str, ...]
    problem: ErrorInfo | None = None


def image_offers(catalogue: Catalogue, provider: str, diagnosis: KeyDiagnosis | None = None) -> tuple[Offer, ...]:
    """Return what can be chosen; where one model plays both roles there is one offer, and no choice.

    A model that the key cannot use by its `diagnosis` is among them, with the reason.
    """
    models = {name: catalogue.model(role, provider) for name, role in _ROLES.items()}
    offers = tuple(
        Offer(name, one.label, one.aspect_ratios, one.resolutions, diagnosis.why_not(one.id) if diagnosis else None)
        for name, one in models.items()
    )
    return offers[:1] if len({one.id for one in models.values()}) == 1 else offers
