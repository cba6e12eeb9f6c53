"""The tree of a conversation's pictures: shown, and its branches deleted and restored.

A picture stands below the picture it was made from; pictures without any connection form families of their own.
Families stand side by side in rows. Within a family, the columns below a picture belong only to what was made from it,
so that no two solid lines ever cross; each picture is centred above its children.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

from pydantic import Field

from agent import MAX_GALLERY_PAGE, GalleryQuery, ImageOrigin, Picture, Value
from webui.features.viewer.receipt import changes_text
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply, Toast
from webui.view import View
from webui.words import LANGUAGES, Words, load_words

tree = Feature("tree")
# In pixels at full size: a picture with its label, the gaps between two, and the margin around all.
WIDTH, HEIGHT = 148, 120
GAP_X, GAP_Y = 24, 36
EDGE = 16
_GUTTER = GAP_X // 2
_BEND = 10
_IMAGE_EDGE_PX = 320
_MOST_WORDS = 80
SHELF_COLUMNS = 3
"""How many columns a shelf has, where no single family needs more."""


class ShownTree(Value):
    """The handle of the picture on the stage, and whether the tree was shown before."""

    opened: str = Field(default="", max_length=64)
    is_begun: bool = True


class Branch(ShownTree):
    """A picture by its handle, with everything that was made from it."""

    handle: str = Field(max_length=64)


class Deleted(ShownTree):
    """Deleted pictures, by the gallery's ids."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class ConversationTree:
    """A conversation's tree, and the gallery's id of each existing picture."""

    tree: Lineage
    ids: dict[str, int]

    def branch(self, handle: str) -> list[int]:
        """Return the ids of the picture, if it exists, and of everything made from it."""
        if handle not in self.ids:
            return []
        return [self.ids[one] for one in self.tree.branch_of(handle) if one in self.ids]


@tree.action
async def show(at: Context, seen: ShownTree) -> Reply:
    """Show the tree as it is now, the first time with its head and menu."""
    head = () if seen.is_begun else (at.fragment("tr-head", "tree/head.html", "tree"),)
    return Reply(patches=(*head, await _shown(at, seen)))


@tree.action
async def ask(at: Context, branch: Branch) -> Reply:
    """Ask whether to delete a picture and everything made from it."""
    others = len((await _tree(at)).branch(branch.handle)) - 1
    if others < 0:
        return Reply()
    words, handle = at.words, branch.handle
    question = words.counted("tree.ask", others, handle=handle) if others else words("tree.ask_alone", handle=handle)
    return Reply(patches=(at.fragment("tr-note", "tree/ask.html", "tree", said=question, handle=handle),))


@tree.action
async def delete(at: Context, branch: Branch) -> Reply:
    """Delete a picture and everything made from it."""
    ids = await at.screen.studio().gallery.delete(at.visitor.owner, (await _tree(at)).branch(branch.handle))
    undo = tree.undo(undelete, {"ids": list(ids), "opened": branch.opened}) if ids else None
    return await _changed(at, branch, Toast(text=at.words.counted("tree.deleted", len(ids)), undo=undo))


@tree.action
async def undelete(at: Context, deleted: Deleted) -> Reply:
    """Restore what was just deleted."""
    back = await at.screen.studio().gallery.undelete(at.visitor.owner, deleted.ids)
    return await _changed(at, deleted, Toast(text=at.words.counted("tree.restored", len(back))))


async def _changed(at: Context, seen: ShownTree, toast: Toast) -> Reply:
    """Return the tree without a question, and the event that updates pictures elsewhere on the page."""
    return Reply(patches=(await _shown(at, seen), Patch(id="tr-note")), toast=toast, events={"pictures": True})


async def _shown(at: Context, seen: ShownTree) -> Patch:
    shown = drawn(at.view, (await _tree(at)).tree, seen.opened)
    return at.fragment("tr-pane", "tree/tree.html", "tree", conversation=at.state.conversation, **shown)


async def _tree(at: Context) -> ConversationTree:
    """Return the tree; pictures that the gallery no longer has are gone from it."""
    gallery, ids, after = at.screen.studio().gallery, dict[str, int](), None
    # Read before the gallery: a picture that comes in between must not look as if it were gone.
    conversation = await at.conversation()
    if conversation is None:
        return ConversationTree(Lineage(), ids)
    while True:
        query = GalleryQuery(conversation_id=at.state.conversation, limit=MAX_GALLERY_PAGE, after=after)
        page = await gallery.page(at.visitor.owner, query)
        ids |= {item.picture.handle: item.id for item in page.items}
        after = page.next
        if after is None:
            break
    there = {one.handle for one in conversation.all_pictures}
    # Read from the records: the cached conversation may not show the newest deletion or restoration.
    deleted = await gallery.deleted(at.visitor.owner, at.state.conversation)
    ghosts = [one for one in deleted if one.handle not in there]
    gone = {*(there - ids.keys()), *(one.handle for one in ghosts)}
    return ConversationTree(lineage((*conversation.all_pictures, *ghosts), gone), ids)


# How the tree is drawn


class Node(NamedTuple):
    """A picture of the drawing: its position in pixels, its label, and its preview unless it is gone."""

    placed: PlacedPicture
    left: int
    top: int
    label: str
    parents: str
    preview: str
    is_now: bool
    is_first: bool


def drawn(view: View, tree: Lineage, opened: str) -> dict[str, Any]:
    """Return the drawing with its lines and pictures; `opened` is the handle of the picture on the stage."""
    path = frozenset(tree.path_to(opened))
    first = opened if path else tree.placed[-1].handle if tree.placed else ""
    return {
        "width": 2 * EDGE + tree.columns * (WIDTH + GAP_X) // 2 - GAP_X,
        "height": 2 * EDGE + tree.rows * (HEIGHT + GAP_Y) - GAP_Y,
        "lines": _lines(tree, path),
        "nodes": [_node(view, one, opened, first) for one in tree.placed],
    }


def _node(view: View, one: PlacedPicture, opened: str, first: str) -> Node:
    return Node(
        one,
        *_corner(one),
        label=view.words("tree.gone") if one.is_gone else label(view.words, one.picture),
        parents=" ".join((*filter(None, (one.base,)), *one.references)),
        preview="" if one.is_gone else view.url(one.handle, _IMAGE_EDGE_PX),
        is_now=one.handle == opened,
        is_first=one.handle == first,
    )


def label(words: Words, picture: Picture) -> str:
    """Return in a few words how the picture came about: who brought it, or what was asked for."""
    receipt = picture.receipt
    if receipt is None:
        return words("tree.uploaded")
    text = " ".join(receipt.user_text.split())[:_MOST_WORDS]
    if receipt.changes:
        return changes_text(words, receipt.changes)
    match picture.edit.kind if picture.edit else None:
        case "mask":
            return words("tree.masked", words=text) if text else words("tree.mask")
        case "expansion":
            return words("tree.expanded")
        case "kept_part":
            return words("tree.kept_part")
        case None:
            return _ours(words, text, receipt.prompt) or text or receipt.model_label


def _ours(words: Words, text: str, prompt: str) -> str:
    """Return a label for what the page itself said on behalf of the user, or added to the prompt, in whichever
    language; empty for the user's own words."""
    for one in map(load_words, LANGUAGES):
        if text == one("panel.vary_said") or one("panel.vary_difference") in prompt:
            return words("tree.vary")
        if text == one("panel.regenerate_said"):
            return words("tree.again")
    found = next((match for match in (pattern.fullmatch(text) for pattern in _restyling()) if match), None)
    return words("tree.restyled", style=found[1]) if found else ""


@cache
def _restyling() -> Sequence[re.Pattern[str]]:
    """Return how the page asks for a picture in another style, in each language."""
    templates = (load_words(language)("styles.try_said", title="\0") for language in LANGUAGES)
    return tuple(re.compile(re.escape(one).replace(re.escape("\0"), "(.+)")) for one in templates)


def _corner(one: PlacedPicture) -> tuple[int, int]:
    return EDGE + one.column * (WIDTH + GAP_X) // 2, EDGE + one.row * (HEIGHT + GAP_Y)


def _lines(tree: Lineage, path: Collection[str]) -> list[tuple[str, str]]:
    """Return the kind and the SVG path of each line; those to the open picture come last, so that they lie on top."""
    plain: list[tuple[str, str]] = []
    thick: list[tuple[str, str]] = []
    for one in tree.placed:
        base = tree.find(one.base)
        if base is not None:
            kind, lines = ("path", thick) if one.handle in path else ("", plain)
            lines.append((kind, _made_from(base, one)))
        leaned = (tree.find(handle) for handle in one.references)
        plain += [("dashed", _leaned_on(other, one)) for other in leaned if other is not None]
    return [*plain, *thick]


def _made_from(base: PlacedPicture, one: PlacedPicture) -> str:
    """Return the line from the bottom of one picture to the top of another: into its column, then straight down."""
    (left, top), (to_left, to_top) = _corner(base), _corner(one)
    x, y, to_x = left + WIDTH // 2, top + HEIGHT, to_left + WIDTH // 2
    middle = y + GAP_Y // 2
    return f"M{x} {y}C{x} {middle} {to_x} {middle} {to_x} {y + GAP_Y}V{to_top}"


def _leaned_on(other: PlacedPicture, one: PlacedPicture) -> str:
    """Return the line from the bottom of a reference through the gap beside a picture into its side."""
    (left, top), (to_left, to_top) = _corner(other), _corner(one)
    x, y = left + WIDTH // 2, top + HEIGHT
    is_right = left >= to_left
    side = to_left + WIDTH if is_right else to_left
    gutter = side + _GUTTER if is_right else side - _GUTTER
    middle, end = y + GAP_Y // 2, to_top + HEIGHT // 2
    return f"M{x} {y}C{x} {middle} {gutter} {middle} {gutter} {y + GAP_Y}V{end - _BEND}Q{gutter} {end} {side} {end}"


# Which picture was made from which


@dataclass(frozen=True)
class PlacedPicture:
    """A picture with its position.

    `column` counts half columns from the left: a picture is two wide. `row` counts from the top. `base` is the picture
    that this one was made from, `references` are other pictures it used. `is_gone` marks a deleted picture that is kept
    in the tree because another was made from it.
    """

    picture: Picture
    column: int
    row: int
    base: str = ""
    references: tuple[str, ...] = ()
    is_gone: bool = False

    @property
    def handle(self) -> str:
        """The picture's handle."""
        return self.picture.handle


@dataclass(frozen=True)
class Lineage:
    """All pictures of a conversation with their positions, row by row from the left. `columns` counts half columns."""

    placed: tuple[PlacedPicture, ...] = ()
    columns: int = 0
    rows: int = 0

    @cached_property
    def _by_handle(self) -> Mapping[str, PlacedPicture]:
        return {one.handle: one for one in self.placed}

    @cached_property
    def _children(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = defaultdict(list)
        for one in sorted(self.placed, key=lambda one: (one.picture.created_at, one.row, one.column)):
            if one.base:
                found[one.base].append(one.handle)
        return {handle: tuple(children) for handle, children in found.items()}

    def find(self, handle: str) -> PlacedPicture | None:
        """Return the picture with this handle, or None."""
        return self._by_handle.get(handle)

    def children(self, handle: str) -> tuple[str, ...]:
        """Return the pictures that were made from this one, the oldest first."""
        return self._children.get(handle, ())

    def path_to(self, handle: str) -> tuple[str, ...]:
        """Return the pictures from the first ancestor down to this one; empty for an unknown handle."""
        path: list[str] = []
        one = self.find(handle)
        while one is not None:
            path.append(one.handle)
            one = self.find(one.base)
        return tuple(reversed(path))

    def branch_of(self, handle: str) -> tuple[str, ...]:
        """Return the picture and everything made from it, directly or indirectly; without pictures that only used
        one as a reference."""
        found: list[str] = []
        waiting = [handle] if self.find(handle) is not None else []
        while waiting:
            one = waiting.pop()
            found.append(one)
            waiting.extend(reversed(self.children(one)))
        return tuple(found)


@dataclass
class _Draft:
    """A picture while its position is computed; `generation` counts from the oldest of the family."""

    picture: Picture
    base: str = ""
    references: tuple[str, ...] = ()
    generation: int = 0
    column: int = 0
    children: list[str] = field(default_factory=list)

    @property
    def parents(self) -> tuple[str, ...]:
        return (*((self.base,) if self.base else ()), *self.references)


def lineage(pictures: Sequence[Picture], gone: Collection[str] = (), *, shelf_columns: int = SHELF_COLUMNS) -> Lineage:
    """Return the tree of the pictures. The result does not depend on their order.

    `gone` are the handles of deleted pictures: they are left out unless an existing picture was made from them. Parents
    that are not among the pictures are ignored, and cycles in hostile records are cut.
    """
    drafts = _ordered(pictures)
    _without_gone(drafts, gone)
    _set_generations(drafts)
    families = [_placed(drafts, family) for family in _families(drafts)]
    return _shelved(drafts, families, gone, 2 * shelf_columns)


def _ordered(pictures: Sequence[Picture]) -> dict[str, _Draft]:
    """Return the pictures so that each comes after its parents, the oldest first."""
    by_time = sorted(pictures, key=lambda one: one.created_at)
    order = {one.handle: at for at, one in enumerate(by_time)}
    drafts = {one.handle: _Draft(one) for one in by_time}
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
    while len(behind) < len(drafts):
        if ready:
            handle = by_time[heapq.heappop(ready)].handle
        else:
            # In a cycle nothing is ever ready: its oldest picture counts as made from what was placed already.
            handle = next(one.handle for one in by_time if one.handle not in behind)
        _join(drafts[handle], behind)
        behind[handle] = drafts[handle]
        for child in awaited[handle]:
            waits_for[child].discard(handle)
            if not waits_for[child] and child not in behind:
                heapq.heappush(ready, order[child])
    return behind


def _join(draft: _Draft, behind: Mapping[str, _Draft]) -> None:
    """Note the base and the references of the picture, among those that were placed already."""
    picture = draft.picture
    named = [one for one in dict.fromkeys(picture.parents) if one in behind and one != picture.handle]
    is_edit = picture.image.origin is ImageOrigin.EDITED and bool(picture.parents)
    draft.base = picture.parents[0] if is_edit and picture.parents[0] in named else ""
    draft.references = tuple(one for one in named if one != draft.base)


def _without_gone(drafts: dict[str, _Draft], gone: Collection[str]) -> None:
    """Remove deleted pictures from which no existing picture was made."""
    needed: set[str] = set()
    for handle, draft in reversed(drafts.items()):
        if draft.base and (handle not in gone or handle in needed):
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
    """Return the roots of each family, those joined by a reference next to each other, the oldest first."""
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
    return [_related_roots(one, joined, seen) for one in joined if one not in seen]


def _related_roots(first: str, joined: Mapping[str, Mapping[str, None]], seen: set[str]) -> list[str]:
    """Return the roots that are joined to the first one, each next to one that it is joined to."""
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
    """The pictures of a family, with columns of its own from 0 on; sizes in half columns and in rows."""

    members: tuple[str, ...]
    columns: int
    rows: int


def _placed(drafts: Mapping[str, _Draft], roots: Sequence[str]) -> _Family:
    """Give each picture of a family its column: the next free one, or the middle above its children."""
    members: list[str] = []
    next_free = 0
    # Depth first without recursion, because each picture of a long conversation may be made from the one before.
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
    """Place the families side by side, in a new row of families when there is no room left."""
    width = max([shelf_columns, *(family.columns for family in families)])
    placed: list[PlacedPicture] = []
    left = top = height = widest = 0
    for family in families:
        if left and left + family.columns > width:
            left, top, height = 0, top + height, 0
        for handle in family.members:
            one = drafts[handle]
            column, row, is_gone = left + one.column, top + one.generation, handle in gone
            placed.append(PlacedPicture(one.picture, column, row, one.base, one.references, is_gone))
        left, height = left + family.columns, max(height, family.rows)
        widest = max(widest, left)
    placed.sort(key=lambda one: (one.row, one.column))
    return Lineage(tuple(placed), widest, top + height if families else 0)
