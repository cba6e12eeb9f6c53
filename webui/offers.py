"""What the image models of a provider offer, for the fields of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from agent.providers.catalogue import Catalogue, ModelRole

_ROLES = {"flash": ModelRole.IMAGE_FLASH, "pro": ModelRole.IMAGE_PRO}


@dataclass(frozen=True)
class Offer:
    """One image model: its name in the page, `flash` or `pro`, and the aspect ratios and resolutions it obeys."""

    name: str
    label: str
    aspect_ratios: tuple[str, ...]
    resolutions: tuple[str, ...]


def image_offers(catalogue: Catalogue, provider: str) -> tuple[Offer, ...]:
    """Return what can be chosen; where one model plays both roles there is one offer, and no choice."""
    models = {name: catalogue.model(role, provider) for name, role in _ROLES.items()}
    offers = tuple(Offer(name, one.label, one.aspect_ratios, one.resolutions) for name, one in models.items())
    return offers[:1] if len({one.id for one in models.values()}) == 1 else offers
