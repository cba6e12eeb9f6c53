"""The family tree of a conversation's pictures: what was made from what, in which generation, and where each stands.

Pure. A picture stands below all that it was made from; what no other picture is joined to forms a family of its own.
Families stand side by side on shelves. Within a family the columns below a picture belong to what was made from it
alone, so that no two solid lines ever cross; each picture stands above the middle of its own.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent import ImageOrigin, Picture

SHELF_COLUMNS = 3
"""How many columns a shelf has, where no single family needs more."""


@dataclass(frozen=True)
class Kin:
    """A picture in its place.

    `column` counts half columns from the left: a picture is two wide. `row` counts from the top, `generation` from the
    oldest of the family. `base` is the picture that this one was made from, `references` those it leaned on; `is_gone`
    when the picture was deleted, and stands here because another was made from it.
    """

    picture: Picture
    column: int
    row: int
    generation: int
    base: str = ""
    references: tuple[str, ...] = ()
    is_gone: bool = False

    @property
    def handle(self) -> str:
        """The picture's handle."""
        return self.picture.handle


@dataclass(frozen=True)
class Lineage:
    """All pictures of a conversation in their places, row by row from the left. `columns` counts half columns."""

    kin: tuple[Kin, ...] = ()
    columns: int = 0
    rows: int = 0

    @cached_property
    def _by_handle(self) -> Mapping[str, Kin]:
        return {one.handle: one for one in self.kin}

    @cached_property
    def _children(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = defaultdict(list)
        for one in sorted(self.kin, key=lambda one: (one.picture.created_at, one.row, one.column)):
            if one.base:
                found[one.base].append(one.handle)
        return {handle: tuple(children) for handle, children in found.items()}

    def find(self, handle: str) -> Kin | None:
        """Return the picture with this handle, or None."""
        return self._by_handle.get(handle)

    def children(self, handle: str) -> tuple[str, ...]:
        """Return what was made from the picture itself, the oldest first."""
        return self._children.get(handle, ())

    def path_to(self, handle: str) -> tuple[str, ...]:
        """Return the pictures from the first one that this was made from down to itself; none for an unknown one."""
        path: list[str] = []
        one = self.find(handle)
        while one is not None:
            path.append(one.handle)
            one = self.find(one.base)
        return tuple(reversed(path))

    def branch_of(self, handle: str) -> tuple[str, ...]:
        """Return the picture and all made from it, and from those; without what merely leaned on one of them."""
        found: list[str] = []
        waiting = [handle] if self.find(handle) is not None else []
        while waiting:
            one = waiting.pop()
            found.append(one)
            waiting.extend(reversed(self.children(one)))
        return tuple(found)


@dataclass
class _Draft:
    """A picture while its place is sought; `order` is its place in time."""

    picture: Picture
    order: int
    base: str = ""
    references: tuple[str, ...] = ()
    generation: int = 0
    column: int = 0
    children: list[str] = field(default_factory=list)

    @property
    def parents(self) -> tuple[str, ...]:
        return (*((self.base,) if self.base else ()), *self.references)


def lineage(pictures: Sequence[Picture], gone: Collection[str] = (), *, shelf_columns: int = SHELF_COLUMNS) -> Lineage:
    """Return the tree of the pictures, whatever their order; the same for the same pictures.

    `gone` are the handles of deleted ones: they are left out unless a picture that is there was made from them. Parents
    that are not among the pictures count for nothing, and hostile records that go in a ring are cut open.
    """
    drafts = _ordered(pictures)
    _without_gone(drafts, frozenset(gone))
    _set_generations(drafts)
    families = [_placed(drafts, family) for family in _families(drafts)]
    return _shelved(drafts, families, frozenset(gone), 2 * shelf_columns)


def _ordered(pictures: Sequence[Picture]) -> dict[str, _Draft]:
    """Return the pictures so that each stands behind its parents, the oldest first."""
    by_time = sorted(pictures, key=lambda one: one.created_at)
    order = {one.handle: at for at, one in enumerate(by_time)}
    drafts = {one.handle: _Draft(one, order[one.handle]) for one in by_time}
    waits_for = {
        one.handle: {parent for parent in one.parents if parent in drafts and parent != one.handle} for one in by_time
    }
    awaited: dict[str, list[str]] = defaultdict(list)
    for handle, parents in waits_for.items():
        for parent in parents:
            awaited[parent].append(handle)
    ready = [order[handle] for handle, parents in waits_for.items() if not parents]
    heapq.heapify(ready)
    behind: dict[str, _Draft] = {}
    for at in range(len(by_time)):
        # In a ring nothing is ever ready: its oldest picture counts as made from what stands already.
        handle = by_time[heapq.heappop(ready)].handle if ready else _oldest_left(by_time, behind)
        _join(drafts[handle], behind)
        behind[handle] = drafts[handle]
        drafts[handle].order = at
        for child in awaited[handle]:
            waits_for[child].discard(handle)
            if not waits_for[child] and child not in behind:
                heapq.heappush(ready, order[child])
    return behind


def _oldest_left(by_time: Sequence[Picture], behind: Mapping[str, _Draft]) -> str:
    return next(one.handle for one in by_time if one.handle not in behind)


def _join(draft: _Draft, behind: Mapping[str, _Draft]) -> None:
    """Note what the picture was made from and leaned on, of those that stand already."""
    picture = draft.picture
    named = [one for one in dict.fromkeys(picture.parents) if one in behind and one != picture.handle]
    is_edit = picture.image.origin is ImageOrigin.EDITED and bool(picture.parents)
    draft.base = picture.parents[0] if is_edit and picture.parents[0] in named else ""
    draft.references = tuple(one for one in named if one != draft.base)


def _without_gone(drafts: dict[str, _Draft], gone: Collection[str]) -> None:
    """Take out the pictures that are gone and that nothing which is there was made from."""
    needed: set[str] = set()
    for handle, draft in reversed(drafts.items()):
        if (handle not in gone or handle in needed) and draft.base:
            needed.add(draft.base)
    for handle in [one for one in drafts if one in gone and one not in needed]:
        del drafts[handle]
    for draft in drafts.values():
        draft.references = tuple(one for one in draft.references if one in drafts)


def _set_generations(drafts: Mapping[str, _Draft]) -> None:
    for handle, draft in drafts.items():
        draft.generation = 1 + max((drafts[one].generation for one in draft.parents), default=-1)
        if draft.base:
            drafts[draft.base].children.append(handle)


def _families(drafts: Mapping[str, _Draft]) -> list[list[str]]:
    """Return the roots of each family, those that are joined by a reference beside each other, the oldest first."""
    root: dict[str, str] = {}
    for handle, draft in drafts.items():
        root[handle] = root[draft.base] if draft.base else handle
    joined: dict[str, dict[str, None]] = {one: {} for one in root.values()}
    for handle, draft in drafts.items():
        for reference in draft.references:
            one, other = root[handle], root[reference]
            if one != other:
                joined[one][other] = joined[other][one] = None
    seen: set[str] = set()
    return [_kindred(one, joined, seen) for one in joined if one not in seen]


def _kindred(first: str, joined: Mapping[str, Mapping[str, None]], seen: set[str]) -> list[str]:
    """Return the roots that are joined to the first, each next to one that it is joined to."""
    found, waiting = [], [first]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            found.append(one)
            waiting.extend(reversed(tuple(joined[one])))
    return found


@dataclass(frozen=True)
class _Family:
    """Pictures with columns of their own from 0 on; sizes in half columns and in rows."""

    members: tuple[str, ...]
    columns: int
    rows: int


def _placed(drafts: Mapping[str, _Draft], roots: Sequence[str]) -> _Family:
    """Give each picture of a family its column: the next free one, or the middle above what was made from it."""
    members: list[str] = []
    next_free = 0
    # Depth first without recursion, since each picture of a long conversation may be made from the one before.
    waiting = [(root, False) for root in reversed(roots)]
    while waiting:
        handle, has_children_placed = waiting.pop()
        draft = drafts[handle]
        if not has_children_placed:
            members.append(handle)
            waiting.append((handle, True))
            waiting.extend((child, False) for child in reversed(draft.children))
        elif draft.children:
            draft.column = (drafts[draft.children[0]].column + drafts[draft.children[-1]].column) // 2
        else:
            draft.column, next_free = next_free, next_free + 2
    return _Family(tuple(members), next_free, 1 + max(drafts[one].generation for one in members))


def _shelved(
    drafts: Mapping[str, _Draft], families: Sequence[_Family], gone: Collection[str], shelf_columns: int
) -> Lineage:
    """Set the families side by side, on the next shelf where one has no room any more."""
    width = max([shelf_columns, *(family.columns for family in families)])
    kin: list[Kin] = []
    left = top = height = widest = 0
    for family in families:
        if left and left + family.columns > width:
            left, top, height = 0, top + height, 0
        for handle in family.members:
            one = drafts[handle]
            place = {"column": left + one.column, "row": top + one.generation, "generation": one.generation}
            kin.append(Kin(one.picture, **place, base=one.base, references=one.references, is_gone=handle in gone))
        left, height = left + family.columns, max(height, family.rows)
        widest = max(widest, left)
    kin.sort(key=lambda one: (one.row, one.column))
    return Lineage(tuple(kin), widest, top + height if families else 0)
