"""A conversation as a value: its single ordered history, with pictures, settings and files.

`Conversation.edit_target` is the only place that decides which picture the next turn changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field

from agent.adjusting.adjustment import Adjustment
from agent.errors import ErrorCode, RequestRefused
from agent.events import Component, SmartCanvas, TargetChanged, TargetNote
from agent.messages import ImageOrigin, ImagePart, PromptMessage, TokenUsage, Value
from agent.pictures import PASS_SCORE, Margins, Picture, ReferenceRole, parse_handle
from agent.requests import NO_PICTURE
from agent.settings import TurnSettings

# Limits an unknown handle in an error message: it may be any text.
_SHOWN_CHARACTERS = 40


class TurnState(StrEnum):
    """The state of a turn.

    A waiting turn needs the user's decision about a plan or calls; an interrupted turn was cut off by the end of the
    studio's process. Both can be resumed."""

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class MaskedPicture(Value):
    """A picture of which only a part may change: `mask` has the picture's size, white = change.

    `feather_px` is the width of its soft edge if the user chose one."""

    handle: str
    mask: ImagePart
    feather_px: int | None = None


class Turn(Value):
    """One request of the user and everything that followed until the agent finished.

    `messages` are the messages that the turn added to the history, the user's own first; `components` are what it
    shows. `parent` is the id of the preceding turn: turns with the same parent are branches of the conversation.
    `editing` is empty if no picture is to change, and None if the newest one is. `roles` gives the role of some of
    the `references`. `provider` names the provider that served it. Turns with the same `request_id` run once. `mask`
    and `feather_px` belong to `editing`, as in `MaskedPicture`; `more_masks` belong to further pictures that change.
    `margins`, used instead of a mask, is how far `editing` is extended. `maximum_usd` is the cost limit shown before
    sending; None when the prices are unknown or everything is free. With `is_imported` the turn came from an archive or
    a program: no user of this studio wrote its text.
    """

    id: str
    text: str
    settings: TurnSettings
    started_at: datetime
    provider: str = ""
    request_id: str | None = None
    parent: str | None = None
    uploads: tuple[ImagePart, ...] = ()
    editing: str | None = None
    references: tuple[str, ...] = ()
    roles: dict[str, ReferenceRole] = Field(default_factory=dict)
    mask: ImagePart | None = None
    feather_px: int | None = None
    margins: Margins | None = None
    more_masks: tuple[MaskedPicture, ...] = ()
    maximum_usd: float | None = None
    state: TurnState = TurnState.RUNNING
    messages: tuple[PromptMessage, ...] = ()
    components: tuple[Component, ...] = ()
    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    seconds: float = 0.0
    is_imported: bool = False

    @property
    def starts_anew(self) -> bool:
        """Whether the user asked for a new picture instead of changing an existing one."""
        return self.editing == ""

    @property
    def asked_editing(self) -> str | None:
        """The value of `TurnRequest.editing` that makes the same turn."""
        return NO_PICTURE if self.starts_anew else self.editing

    @property
    def has_area(self) -> bool:
        """Whether only a part of a picture may change: inside a mask, or beyond its edges."""
        return self.mask is not None or self.margins is not None

    @property
    def masked(self) -> tuple[MaskedPicture, ...]:
        """The masked pictures, each with its mask; the picture `editing` comes first."""
        if self.mask is None or self.editing is None:
            return ()
        return (MaskedPicture(handle=self.editing, mask=self.mask, feather_px=self.feather_px), *self.more_masks)

    def mask_of(self, handle: str) -> MaskedPicture | None:
        """Return the mask of a picture, or the turn's first mask when the picture has none."""
        masked = self.masked
        return next((one for one in masked if one.handle == handle), masked[0] if masked else None)

    def changed_by(self, handles: Sequence[str]) -> str | None:
        """Return the masked picture that a call with these handles refers to, or `editing` when it names none."""
        masked = {one.handle for one in self.masked}
        return next((one for one in map(stored_handle, handles) if one in masked), self.editing)


class ConversationInfo(Value):
    """One entry in a list of conversations."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_pinned: bool = False
    picture_count: int = 0
    price_usd: float = 0.0
    thumbnail_digest: str | None = None


class DeletedConversation(Value):
    """A conversation in the trash: it can be restored at least until `kept_until`."""

    id: str
    title: str
    deleted_at: datetime
    kept_until: datetime
    picture_count: int = 0


class EditState(NamedTuple):
    """A picture that was the edit target at some point."""

    handle: str
    is_generated: bool


class EditHistory(NamedTuple):
    """The successive edit targets, in order; `position` is the index of the current one.

    A new picture becomes the next state and discards the undone states after it. Going back to a named picture adds a
    state, too, so that it can be undone. `was_moved` is true after undo, redo or going back, until a new picture comes.
    """

    states: tuple[EditState, ...] = ()
    position: int = -1
    was_moved: bool = False

    @property
    def target(self) -> str | None:
        """The handle of the current edit target, None without one."""
        return self.states[self.position].handle if self.position >= 0 else None

    @property
    def last_generated(self) -> str | None:
        """The newest generated picture up to the current state; after a move by the user, the current target itself."""
        if self.was_moved:
            return self.target
        made = (one.handle for one in reversed(self.states[: self.position + 1]) if one.is_generated)
        return next(made, None)

    def with_picture(self, picture: Picture) -> EditHistory:
        if self.target == picture.handle:
            return self
        state = EditState(picture.handle, is_generated=picture.image.origin is not ImageOrigin.UPLOADED)
        states = (*self.states[: self.position + 1], state)
        return EditHistory(states, len(states) - 1)

    def undone(self, steps: int = 1) -> EditHistory:
        """Return the history `steps` back, at most to its beginning."""
        return self._at(max(self.position - steps, min(self.position, 0)))

    def redone(self, steps: int = 1) -> EditHistory:
        """Return the history `steps` forward, at most to its end."""
        return self._at(min(self.position + steps, len(self.states) - 1))

    def after(self, step: Picture | TargetChanged, known: Mapping[str, Picture]) -> EditHistory:
        """Return the history after a new picture, or after the user moved the edit target.

        `known` are the pictures by handle: a move to a picture that was deleted since is ignored.
        """
        if isinstance(step, Picture):
            if step.is_set_aside:
                return self
            is_edit = step.image.origin is ImageOrigin.EDITED and step.parents
            base = known.get(step.parents[0]) if is_edit else None
            # The base becomes a state first, so that undoing an edit of an older picture returns to that picture.
            history = self.with_picture(base) if base is not None else self
            return history.with_picture(step)
        if not step.has_moved or step.handle not in known:
            return self
        way = {"undo": -1, "redo": 1, "back_to": 0}[step.move]
        place = self.position + way * step.steps
        is_there = way and 0 <= place < len(self.states) and self.states[place].handle == step.handle
        # A picture in between may have been deleted since, so the target counts, not the number of steps.
        return self._at(place) if is_there else self.with_picture(known[step.handle])._replace(was_moved=True)

    def _at(self, position: int) -> EditHistory:
        return self._replace(position=position, was_moved=True)


def best_picture(pictures: Sequence[Picture]) -> Picture | None:
    """Return the best reviewed picture, the newest among equals, ignoring those set aside; None without any."""
    there = [one for one in pictures if not one.is_set_aside]
    # The newest comes first, because `max` returns the first among equals.
    return max(reversed(there), key=lambda one: one.review.rank if one.review else PASS_SCORE, default=None)


class Conversation(Value):
    """A conversation with all its content. Only `owner` may open it: `local`, or a visitor's own token.

    `turns` and `pictures` belong to the shown branch, from the first turn to the newest; `elsewhere` are the pictures
    of other branches. `forks` maps each shown turn that has alternatives to the ids of all of them, oldest first.
    `gone` are the handles of deleted pictures, which are never reused. `version` increases with each change, by any
    process.
    """

    id: str
    owner: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_pinned: bool = False
    turns: tuple[Turn, ...] = ()
    pictures: tuple[Picture, ...] = ()
    elsewhere: tuple[Picture, ...] = ()
    forks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    gone: tuple[str, ...] = ()
    version: int = 0

    @property
    def messages(self) -> tuple[PromptMessage, ...]:
        """The whole history, oldest first."""
        return tuple(message for turn in self.turns for message in turn.messages)

    @property
    def all_pictures(self) -> tuple[Picture, ...]:
        """The pictures of every branch: no two have the same handle."""
        return (*self.pictures, *self.elsewhere)

    @property
    def handles(self) -> tuple[str, ...]:
        """Every handle that this conversation ever assigned."""
        return (*(picture.handle for picture in self.all_pictures), *self.gone)

    def adjusted_from(self, handle: str) -> tuple[Picture, Adjustment] | None:
        """Return the original of an adjusted picture and its total adjustment.

        None when it was not adjusted, when the adjustment is final, or when the original is not here."""
        known = {picture.handle: picture for picture in self.all_pictures}
        receipt = known[handle].receipt if handle in known else None
        adjustment = receipt.adjustment if receipt is not None and receipt.references else None
        if receipt is None or adjustment is None or adjustment.is_final:
            return None
        original = known.get(receipt.references[0].handle)
        return (original, adjustment) if original is not None else None

    @property
    def edit_target(self) -> str | None:
        """The handle of the picture that the next turn changes when none is selected; None without any picture."""
        return self.edit_history.target

    @property
    def edit_history(self) -> EditHistory:
        """The edit targets over the turns of the shown branch."""
        by_turn: dict[str, list[Picture]] = {turn.id: [] for turn in self.turns}
        made_later: list[Picture] = []
        for picture in self.pictures:
            # A later manual edit keeps the turn id of its original; it comes after all turns that had started by then.
            was_made_later = picture.edit is not None and picture.edit.grown_from is not None
            (made_later if was_made_later else by_turn.get(picture.turn_id, [])).append(picture)
        known = {picture.handle: picture for picture in self.all_pictures}
        history = EditHistory()
        for turn in self.turns:
            while made_later and made_later[0].created_at < turn.started_at:
                history = history.after(made_later.pop(0), known)
            for step in _target_steps(turn, by_turn[turn.id]):
                history = history.after(step, known)
        for picture in made_later:
            history = history.after(picture, known)
        return history

    @property
    def price_usd(self) -> float:
        """The cost of the shown branch so far, in US dollars."""
        return sum(turn.price_usd for turn in self.turns)

    def turn(self, turn_id: str) -> Turn | None:
        """Return the turn with that id, None when the shown branch does not have it."""
        return next((one for one in self.turns if one.id == turn_id), None)

    def picture(self, handle: str) -> Picture:
        """Return the picture with this handle, with or without the `#`.

        Raises RequestRefused(PICTURE_DELETED or PICTURE_NOT_FOUND) when the conversation has no such picture.
        """
        wanted = stored_handle(handle)
        for picture in self.all_pictures:
            if picture.handle == wanted:
                return picture
        shown = " ".join(wanted.split())[:_SHOWN_CHARACTERS]
        raise RequestRefused(
            ErrorCode.PICTURE_DELETED if wanted in self.gone else ErrorCode.PICTURE_NOT_FOUND, handle=shown
        )


class TurnsPage(Value):
    """Some turns of the shown branch, in order, and the pictures that they made or show.

    `forks` is as in `Conversation`, for these turns. `earlier` is the value of `before` for the previous page; None at
    the beginning.
    """

    turns: tuple[Turn, ...] = ()
    pictures: tuple[Picture, ...] = ()
    forks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    earlier: str | None = None


def stored_handle(handle: str) -> str:
    """Return a handle in its stored form, with `#` and in lower case; what is not a handle stays as it is."""
    return str(parse_handle(handle) or handle)


def _target_steps(turn: Turn, pictures: Sequence[Picture]) -> Iterator[Picture | TargetChanged]:
    """Yield what changed the edit target in a turn: the last upload, generated pictures, and moves by the user.

    `pictures` are those of the turn.
    """
    yield from [one for one in pictures if one.image.origin is ImageOrigin.UPLOADED][-1:]
    made = {one.handle: one for one in pictures if one.image.origin is not ImageOrigin.UPLOADED}
    shown: set[str] = set()
    for component in turn.components:
        match component:
            case TargetNote():
                yield component.change
            case SmartCanvas():
                shown.update(component.handles, component.earlier)
                chosen = best_picture([made[handle] for handle in component.handles if handle in made])
                if chosen is not None:
                    yield chosen
    # The turn is still running, or ended early: these pictures have no component yet.
    unshown = best_picture([one for handle, one in made.items() if handle not in shown])
    if unshown is not None:
        yield unshown


Writer = Literal["person", "agent"]


class WorkspaceFile(Value):
    """A file of a conversation's workspace.

    `version` changes with each write; `written_by` says who wrote it last. `is_untrusted` is true when at least a part
    of its content came from outside of the studio.
    """

    name: str
    content: bytes
    version: int
    updated_at: datetime
    written_by: Writer
    is_untrusted: bool = False

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @property
    def text(self) -> str | None:
        """The content as text, None when it is not UTF-8 or contains NUL."""
        try:
            text = self.content.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text


class WholeConversation(Value):
    """A conversation with every branch, as it is exported, imported and duplicated.

    `turns` are those of every branch in order of creation, `head` is the newest turn of the shown branch. `pictures`
    include their `answer`; `starred` and `tags` refer to them by handle. `is_named` is true when the user chose the
    title. `files` are those of the workspace, by name.
    """

    title: str
    created_at: datetime
    updated_at: datetime
    is_named: bool = False
    is_pinned: bool = False
    head: str | None = None
    turns: tuple[Turn, ...] = ()
    pictures: tuple[Picture, ...] = ()
    starred: tuple[str, ...] = ()
    tags: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    files: tuple[WorkspaceFile, ...] = ()
