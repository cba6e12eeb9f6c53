"""What each reference is shown for: the person's word first, then the agent's; and how many of a kind a model keeps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from agent.errors import ErrorCode, RequestRefused
from agent.imaging.arguments import ReferenceUse
from agent.pictures import ReferenceRole, parse_handle
from agent.providers.catalogue import ModelEntry

_FACES = frozenset({ReferenceRole.FACE})
_OBJECTS = frozenset({ReferenceRole.SUBJECT, ReferenceRole.PRODUCT})


def read_roles(written: Mapping[str, str]) -> dict[str, ReferenceRole]:
    """Return the roles by handle, as the person gave them.

    Raises RequestRefused(SETTING_NOT_SUPPORTED) for a role there is not.
    """
    roles = {}
    for handle, role in written.items():
        if role not in set(ReferenceRole):
            raise RequestRefused(
                ErrorCode.SETTING_NOT_SUPPORTED,
                model="Aivista",
                setting="reference role",
                value=role[:40],
                choices=", ".join(ReferenceRole),
            )
        roles[handle] = ReferenceRole(role)
    return roles


def merged_roles(marked: Mapping[str, ReferenceRole], said: Sequence[ReferenceUse]) -> dict[str, ReferenceRole]:
    """Return every role by handle: `marked` by the person, which wins, and `said` by the agent."""
    by_agent = {str(parse_handle(use.handle) or use.handle): use.role for use in said}
    return {**by_agent, **marked}


def check_limits(model: ModelEntry, marked: Collection[str], roles: Collection[ReferenceRole]) -> None:
    """Hold what would be sent against the model's limits, where it states them.

    `marked` are the handles the person marked, `roles` those of the pictures to be shown.

    Raises RequestRefused naming the limit: TOO_MANY_REFERENCES, TOO_MANY_FACES, TOO_MANY_OBJECTS.
    """
    counted = (
        (ErrorCode.TOO_MANY_REFERENCES, model.max_references, len(marked)),
        (ErrorCode.TOO_MANY_FACES, model.max_characters, sum(role in _FACES for role in roles)),
        (ErrorCode.TOO_MANY_OBJECTS, model.max_objects, sum(role in _OBJECTS for role in roles)),
    )
    for code, limit, count in counted:
        if limit and count > limit:
            raise RequestRefused(code, model=model.label, limit=limit, count=count)
