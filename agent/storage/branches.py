"""A conversation's turns as a tree: the shown path, the forks on it, and a turn's descendants. Pure functions.

`parents` maps each turn to the one before it (None for a first turn), in order of creation: a turn never comes before
its parent.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from agent.conversation import Turn, TurnState, WholeConversation
from agent.events import InterruptedNote, StoppedNote, undecided
from agent.messages import TokenUsage

Parents = Mapping[str, str | None]


class ShownBranch(NamedTuple):
    """The shown branch, from the first turn to the newest, and for each of its turns the alternatives, if any."""

    path: tuple[str, ...]
    forks: dict[str, tuple[str, ...]]


def shown(head: str | None, parents: Parents) -> ShownBranch:
    """Return the branch of `head`, down to its newest turn; without a known head, the branch of the newest turn."""
    if not parents:
        return ShownBranch((), {})
    known = head if head in parents else list(parents)[-1]
    path = path_to(newest_below(known or "", parents), parents)
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for one, parent in parents.items():
        children[parent].append(one)
    forks = {one: tuple(children[parents[one]]) for one in path if len(children[parents[one]]) > 1}
    return ShownBranch(path, forks)


def path_to(turn_id: str, parents: Parents) -> tuple[str, ...]:
    """Return the turns that lead to this one, from the first turn to itself."""
    path: dict[str, None] = {}
    at: str | None = turn_id
    while at is not None and at in parents and at not in path:
        path[at] = None
        at = parents[at]
    return tuple(reversed(path))


def newest_below(turn_id: str, parents: Parents) -> str:
    """Return the newest descendant of this turn; itself when there is none."""
    family, newest = {turn_id}, turn_id
    for one, parent in parents.items():
        if parent in family:
            family.add(one)
            newest = one
    return newest


_MAY_GO_ON = frozenset({TurnState.RUNNING, TurnState.WAITING, TurnState.INTERRUPTED})


def fit_for_record(whole: WholeConversation, taken: Collection[str]) -> WholeConversation:
    """Return the conversation ready to be recorded as a new one.

    Turns whose ids are taken get new ids, because journal and checkpoints identify turns only by id; a turn that ran,
    waited or was interrupted has neither here, so it is stopped; old request ids are dropped. The head is the newest
    turn of its branch.
    """
    ids = {turn.id: uuid.uuid4().hex if turn.id in taken else turn.id for turn in whole.turns}
    turns = tuple(
        _at_rest(turn).model_copy(update={"id": ids[turn.id], "parent": ids.get(turn.parent or ""), "request_id": None})
        for turn in whole.turns
    )
    parents = {turn.id: turn.parent for turn in turns}
    head = ids.get(whole.head or "", next(reversed(parents), None))
    pictures = tuple(one.model_copy(update={"turn_id": ids.get(one.turn_id, one.turn_id)}) for one in whole.pictures)
    head = newest_below(head, parents) if head is not None else None
    return whole.model_copy(update={"turns": turns, "pictures": pictures, "head": head})


def as_copy(whole: WholeConversation, title: str, now: datetime) -> WholeConversation:
    """Return a copy that begins now. It has cost nothing; its receipts keep the pictures' original prices."""
    turns = tuple(turn.model_copy(update={"price_usd": 0.0, "usage": TokenUsage()}) for turn in whole.turns)
    update = {"title": title or whole.title, "is_named": bool(title) or whole.is_named}
    return whole.model_copy(update={**update, "created_at": now, "updated_at": now, "is_pinned": False, "turns": turns})


def _at_rest(turn: Turn) -> Turn:
    if turn.state not in _MAY_GO_ON:
        return turn
    kept = tuple(undecided(one) for one in turn.components if not isinstance(one, InterruptedNote | StoppedNote))
    return turn.model_copy(update={"state": TurnState.STOPPED, "components": (*kept, StoppedNote())})
