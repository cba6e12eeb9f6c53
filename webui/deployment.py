"""A studio that others can reach, as the page knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent import Sponsor, TurnLimits
    from webui.http.sign_in import Issuer

# Defaults: what visitors may ask, and what one turn may cost whoever pays for them.
TURNS_AT_ONCE = 8
TURNS_PER_VISITOR = 20
CAP_TURN_USD = 0.5


@dataclass(frozen=True)
class Deployment:
    """The host names of the studio, the limits for visitors, who pays for visitors without a key (None: nobody),
    which sites may embed the page, whether data survives a restart, and the issuer of accounts, if visitors can sign
    in."""

    names: frozenset[str]
    limits: TurnLimits
    sponsor: Sponsor | None = None
    embedders: tuple[str, ...] = ()
    is_kept: bool = True
    issuer: Issuer | None = None
