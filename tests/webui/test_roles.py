"""Roles of references on the page: chosen in the composer, kept in a hidden field, read strictly."""

from __future__ import annotations

import json

from agent.pictures import ReferenceRole
from tests.support.cases import each_case
from webui.roles import RoleChoice, chosen_roles, read_choice, read_roles, write_roles

STYLE, POSE = ReferenceRole.STYLE, ReferenceRole.POSE


@each_case(
    ("text", "roles"),
    [
        ('{"#2": "style"}', {"#2": STYLE}),
        ('{"#2": "style", "#3": "pose"}', {"#2": STYLE}),
        ('{"#2": "mood"}', {}),
        ('{"#2": 3}', {}),
        ('["#2"]', {}),
        ("{", {}),
        ("", {}),
        (None, {}),
    ],
)
def test_only_known_roles_of_references_that_are_there_are_read(
    text: str | None, roles: dict[str, ReferenceRole]
) -> None:
    assert read_roles(text, ("#1", "#2")) == roles


def test_what_is_written_is_read_again() -> None:
    roles = {"#1": POSE, "#2": STYLE}
    assert read_roles(write_roles(roles), ("#1", "#2")) == roles
    assert write_roles({}) == ""


@each_case(
    ("sent", "choice"),
    [
        ({"handle": "#2", "role": "style"}, RoleChoice(handle="#2", role=STYLE)),
        ({"handle": "#2", "role": None}, RoleChoice(handle="#2", role=None)),
        ({"handle": "#2", "role": "mood"}, None),
        ({"handle": "#2"}, None),
        ({"handle": 2, "role": "style"}, None),
        ("style", None),
    ],
)
def test_a_choice_is_read_or_ignored(sent: object, choice: RoleChoice | None) -> None:
    assert read_choice(json.dumps(sent)) == choice


def test_a_choice_replaces_the_one_before_and_can_be_taken_back() -> None:
    roles = chosen_roles({"#1": POSE, "#2": POSE}, RoleChoice(handle="#2", role=STYLE))
    assert roles == {"#1": POSE, "#2": STYLE}
    assert chosen_roles(roles, RoleChoice(handle="#2", role=None)) == {"#1": POSE}
