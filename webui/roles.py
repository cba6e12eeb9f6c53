"""What each reference is for, as the page's hidden field holds it: read strictly, anything else is left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from pydantic import TypeAdapter, ValidationError

from agent import ReferenceRole, Value

_ROLES = TypeAdapter(dict[str, str])
MAX_REFERENCES = 14


class RoleChoice(Value):
    """A role that was chosen for a reference; None leaves it to the agent."""

    handle: str
    role: ReferenceRole | None


def read_references(text: str | None) -> tuple[str, ...]:
    """Return the handles in the hidden field of references, at most `MAX_REFERENCES`."""
    return tuple(dict.fromkeys((text or "").split()))[:MAX_REFERENCES]


def read_roles(text: str | None, references: Collection[str]) -> dict[str, ReferenceRole]:
    """Return the roles in the hidden field, of the references there are alone."""
    try:
        written = _ROLES.validate_json(text or "{}", strict=True)
    except ValidationError:
        return {}
    known = set(ReferenceRole)
    return {one: ReferenceRole(role) for one, role in written.items() if one in references and role in known}


def write_roles(roles: Mapping[str, ReferenceRole]) -> str:
    """Return what the hidden field holds."""
    return json.dumps(dict(roles)) if roles else ""


def read_choice(argument: str) -> RoleChoice | None:
    """Return which role was chosen for which reference, or None when the page sent something else."""
    try:
        return RoleChoice.model_validate_json(argument)
    except ValidationError:
        return None


def chosen_roles(roles: Mapping[str, ReferenceRole], choice: RoleChoice) -> dict[str, ReferenceRole]:
    """Return the roles after the choice."""
    others = {handle: role for handle, role in roles.items() if handle != choice.handle}
    return others if choice.role is None else {**others, choice.handle: choice.role}
