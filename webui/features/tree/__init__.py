"""The tree of a conversation's pictures: shown as it stands, its branches deleted and brought back."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from agent import MAX_GALLERY_PAGE, GalleryQuery, Value
from webui.features.tree.drawing import drawn
from webui.features.tree.lineage import Lineage, lineage
from webui.shell.actions import Context, Feature
from webui.shell.patches import Patch, Reply, Toast

tree = Feature("tree")


class Seen(Value):
    """The handle of the picture that is looked at, and whether the tree was shown before."""

    opened: str = Field(default="", max_length=64)
    is_begun: bool = True


class Branch(Seen):
    """A picture by its handle, with all that was made from it."""

    handle: str = Field(max_length=64)


class Deleted(Seen):
    """What was deleted, by the gallery's ids."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Grown:
    """A conversation's tree, and the gallery's id of each picture that is there."""

    tree: Lineage
    ids: dict[str, int]

    def branch(self, handle: str) -> list[int]:
        """Return the ids of the picture, when it is there, and of all made from it."""
        if handle not in self.ids:
            return []
        return [self.ids[one] for one in self.tree.branch_of(handle) if one in self.ids]


@tree.action
async def show(at: Context, seen: Seen) -> Reply:
    """Show the tree as it is now, the first time with its head and menu."""
    head = () if seen.is_begun else (at.fragment("tr-head", "tree/head.html", "tree"),)
    return Reply(patches=(*head, await _shown(at, seen)))


@tree.action
async def ask(at: Context, branch: Branch) -> Reply:
    """Ask whether a picture and all made from it shall be deleted."""
    others = len((await _grown(at)).branch(branch.handle)) - 1
    if others < 0:
        return Reply()
    words, handle = at.words, branch.handle
    said = words.counted("tree.ask", others, handle=handle) if others else words("tree.ask_alone", handle=handle)
    return Reply(patches=(at.fragment("tr-note", "tree/ask.html", "tree", said=said, handle=handle),))


@tree.action
async def delete(at: Context, branch: Branch) -> Reply:
    """Delete a picture and all made from it."""
    ids = await at.screen.studio().gallery.delete(at.visitor.owner, (await _grown(at)).branch(branch.handle))
    undo = tree.undo(undelete, {"ids": list(ids), "opened": branch.opened}) if ids else None
    return await _changed(at, branch, Toast(text=at.words.counted("tree.deleted", len(ids)), undo=undo))


@tree.action
async def undelete(at: Context, deleted: Deleted) -> Reply:
    """Bring back what was just deleted."""
    back = await at.screen.studio().gallery.undelete(at.visitor.owner, deleted.ids)
    return await _changed(at, deleted, Toast(text=at.words.counted("tree.restored", len(back))))


async def _changed(at: Context, seen: Seen, toast: Toast) -> Reply:
    """Return the tree without a question; what else shows pictures of the conversation is told."""
    return Reply(patches=(await _shown(at, seen), Patch(id="tr-note")), toast=toast, events={"pictures": True})


async def _shown(at: Context, seen: Seen) -> Patch:
    shown = drawn(at.view, (await _grown(at)).tree, seen.opened)
    return at.fragment("tr-pane", "tree/tree.html", "tree", conversation=at.place.conversation, **shown)


async def _grown(at: Context) -> Grown:
    """Return the tree; pictures that the gallery does not have any more are gone from it."""
    gallery, ids, after = at.screen.studio().gallery, dict[str, int](), None
    if await at.conversation() is None:
        return Grown(Lineage(), ids)
    while True:
        query = GalleryQuery(conversation_id=at.place.conversation, limit=MAX_GALLERY_PAGE, after=after)
        page = await gallery.page(at.visitor.owner, query)
        ids |= {item.picture.handle: item.id for item in page.items}
        after = page.next
        if after is None:
            break
    # As it is now: what was deleted or brought back a moment ago is told by the records alone.
    conversation = await at.conversation()
    pictures = conversation.all_pictures if conversation is not None else ()
    there = {one.handle for one in pictures}
    deleted = await gallery.deleted(at.visitor.owner, at.place.conversation)
    ghosts = [one for one in deleted if one.handle not in there]
    gone = {*(there - ids.keys()), *(one.handle for one in ghosts)}
    return Grown(lineage((*pictures, *ghosts), gone), ids)
