"""A conversation's turns as a tree: the path that is shown, the forks on it, and what lies below a turn. Pure.

`parents` gives for each turn the one before it (None for a first one), in the order in which the turns were made: a
turn never comes before its parent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Parents = Mapping[str, str | None]


class Shown(NamedTuple):
    """The branch that is shown, from the first turn to its newest, and all the turns beside each of its turns."""

    path: tuple[str, ...]
    forks: dict[str, tuple[str, ...]]


def shown(head: str | None, parents: Parents) -> Shown:
    """Return the branch of `head`, as far as it goes; without a head the branch of the newest turn."""
    if not parents:
        return Shown((), {})
    known = head if head in parents else next(reversed(list(parents)))
    path = path_to(newest_below(known or "", parents), parents)
    return Shown(path, _forks(path, parents))


def path_to(turn_id: str, parents: Parents) -> tuple[str, ...]:
    """Return the turns that lead to this one, the first of them first, itself last."""
    path: dict[str, None] = {}
    at: str | None = turn_id
    while at is not None and at in parents and at not in path:
        path[at] = None
        at = parents[at]
    return tuple(reversed(path))


def newest_below(turn_id: str, parents: Parents) -> str:
    """Return the newest turn that descends from this one; itself when none does."""
    family, newest = {turn_id}, turn_id
    for one, parent in parents.items():
        if parent in family:
            family.add(one)
            newest = one
    return newest


def _forks(path: Sequence[str], parents: Parents) -> dict[str, tuple[str, ...]]:
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for one, parent in parents.items():
        children[parent].append(one)
    return {one: tuple(children[parents[one]]) for one in path if len(children[parents[one]]) > 1}
