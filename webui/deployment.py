"""A studio that others come to, as the page knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent import Sponsor, TurnLimits
    from webui.http.sign_in import Issuer

# What visitors may ask, and what one turn may cost whoever pays for them, where nothing else is said.
TURNS_AT_ONCE = 8
TURNS_PER_VISITOR = 20
CAP_TURN_USD = 0.5


@dataclass(frozen=True)
class Deployment:
    """The host names it answers to, how much may be asked there, who pays for visitors without a key (None: nobody),
    which sites may show it inside of theirs, whether what is made there outlives a restart, and who knows the accounts
    of those who come, if anybody does."""

    names: frozenset[str]
    limits: TurnLimits
    sponsor: Sponsor | None = None
    embedders: tuple[str, ...] = ()
    is_kept: bool = True
    issuer: Issuer | None = None
