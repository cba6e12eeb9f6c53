"""A conversation as a value: the one ordered history, with its pictures, settings and files.

`Conversation.edit_target` is the one answer to the question which picture the next words change.
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
from agent.pictures import PASS_SCORE, Margins, Picture, ReferenceRole
from agent.requests import NO_PICTURE
from agent.settings import TurnSettings

# A handle that nobody gave may be a whole text.
_SHOWN_CHARACTERS = 40


class TurnState(StrEnum):
    """How far a turn came. One that waits has a plan for the person to decide about, an interrupted one was cut off
    by the end of the studio's process; both can go on."""

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class MaskedPicture(Value):
    """A picture of which only a part may change: `mask` is at its size, white = change, its soft edge `feather_px` wide
    when the person chose that."""

    handle: str
    mask: ImagePart
    feather_px: int | None = None


class Turn(Value):
    """One thing the person sent and all that followed until the agent rested.

    `messages` are what the turn added to the history, the person's own first; `components` are what it shows.
    `parent` is the id of the turn it follows: several turns with the same one are branches of the conversation.
    `editing` is empty where no picture was to be changed, and None where it was the newest.
    `roles` says what some of the `references` are for. `provider` names the one that served it; the same `request_id`
    twice runs once. `mask` and `feather_px` are those of `editing`, as in `MaskedPicture`; `more_masks` are of other
    pictures that change, too. `margins` is what `editing` grows by instead. `maximum_usd` is the most it may cost, as
    told before it was sent; None where nobody knows the prices or nothing costs anything. One that `is_imported` came
    from an archive or a program: nobody here said its words.
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
        """Whether the person wanted a new picture, whatever there was before."""
        return self.editing == ""

    @property
    def asked_editing(self) -> str | None:
        """What a request says in `editing` to be the same."""
        return NO_PICTURE if self.starts_anew else self.editing

    @property
    def has_area(self) -> bool:
        """Whether only a part of a picture may change: inside a mask, or beyond its edges."""
        return self.mask is not None or self.margins is not None

    @property
    def masked(self) -> tuple[MaskedPicture, ...]:
        """The pictures of which only a part may change, each with its mask: that of `editing` comes first."""
        if self.mask is None or self.editing is None:
            return ()
        return (MaskedPicture(handle=self.editing, mask=self.mask, feather_px=self.feather_px), *self.more_masks)

    def mask_of(self, handle: str) -> MaskedPicture | None:
        """Return the mask of a picture; the first one where it has none of its own."""
        return next((one for one in self.masked if one.handle == handle), next(iter(self.masked), None))

    def changed_by(self, handles: Sequence[str]) -> str | None:
        """Return which of the pictures that the person marked to be changed is meant by a call that names these."""
        masked = {one.handle for one in self.masked}
        return next((one for one in map(_spelt, handles) if one in masked), self.editing)


class ConversationInfo(Value):
    """What a list of conversations shows of one."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_pinned: bool = False
    picture_count: int = 0
    price_usd: float = 0.0
    thumbnail_digest: str | None = None


class DeletedConversation(Value):
    """A conversation in the trash: it can be brought back at least until `kept_until`."""

    id: str
    title: str
    deleted_at: datetime
    kept_until: datetime
    picture_count: int = 0


class EditState(NamedTuple):
    """A picture that was, at some moment, the one to change."""

    handle: str
    is_generated: bool


class EditHistory(NamedTuple):
    """The pictures that were the one to change, in order, and which of them (`position`) is it now.

    A new picture is the next state; what was undone before is then no longer ahead. Going back to a named picture is a
    state, too, so that it can be undone. `was_moved` until a new picture comes after an undo, a redo or going back.
    """

    states: tuple[EditState, ...] = ()
    position: int = -1
    was_moved: bool = False

    @property
    def target(self) -> str | None:
        """The handle of the picture to change, None without any."""
        return self.states[self.position].handle if self.position >= 0 else None

    @property
    def last_generated(self) -> str | None:
        """The newest picture made here up to the one to change; the person's choice, whatever it is, comes first."""
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
        """Return the history so many steps back, at most at its beginning."""
        return self._at(max(self.position - steps, min(self.position, 0)))

    def redone(self, steps: int = 1) -> EditHistory:
        """Return the history so many steps forward, at most at its end."""
        return self._at(min(self.position + steps, len(self.states) - 1))

    def back_at(self, picture: Picture) -> EditHistory:
        """Return the history after the person went back to a picture of their choice."""
        return self.with_picture(picture)._replace(was_moved=True)

    def after(self, step: Picture | TargetChanged, known: Mapping[str, Picture]) -> EditHistory:
        """Return the history after a new picture, or after the person went back or forward.

        `known` are the pictures by handle: what leads to one that was deleted since is left out.
        """
        if isinstance(step, Picture):
            is_edit = step.image.origin is ImageOrigin.EDITED and bool(step.parents)
            base = known.get(step.parents[0]) if is_edit else None
            # Undone, a change of an older picture leads back to that one.
            history = self if step.is_set_aside or base is None else self.with_picture(base)
            return history if step.is_set_aside else history.with_picture(step)
        if not step.has_moved or step.handle not in known:
            return self
        way = {"undo": -1, "redo": 1, "back_to": 0}[step.move]
        place = self.position + way * step.steps
        is_there = way and 0 <= place < len(self.states) and self.states[place].handle == step.handle
        # A picture between the two may have been deleted since: what counts is where the person went.
        return self._at(place) if is_there else self.back_at(known[step.handle])

    def _at(self, position: int) -> EditHistory:
        return self._replace(position=position, was_moved=True)


def leading(pictures: Sequence[Picture]) -> Picture | None:
    """Return the one of several that stands for all: the best reviewed, the newest of equals. None of those that were
    set aside."""
    there = [one for one in pictures if not one.is_set_aside]
    ranks = [PASS_SCORE if one.review is None else one.review.rank for one in there]
    best = max(range(len(there)), key=lambda place: (ranks[place], place), default=None)
    return there[best] if best is not None else None


class Conversation(Value):
    """A conversation with all it holds. `owner` is who may open it: `local`, or a visitor's own token.

    `turns` and `pictures` are those of the branch that is shown, from the first turn to its newest; `elsewhere` are the
    pictures of other branches. `forks` names, for each shown turn that has others beside it, all of them by id, the
    oldest first. `gone` are the handles of pictures that were deleted: no other is given one of them. `version` is a
    higher one after each change of any of it, by whichever process.
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
        """Every handle that was ever given here."""
        return (*(picture.handle for picture in self.all_pictures), *self.gone)

    def adjusted_from(self, handle: str) -> tuple[Picture, Adjustment] | None:
        """Return the picture that one was adjusted from and all that was adjusted since; None where it was not, where
        nothing can be added to that, or where that picture is not here."""
        known = {picture.handle: picture for picture in self.all_pictures}
        receipt = known[handle].receipt if handle in known else None
        adjustment = receipt.adjustment if receipt is not None and receipt.references else None
        if receipt is None or adjustment is None or adjustment.is_final:
            return None
        original = known.get(receipt.references[0].handle)
        return (original, adjustment) if original is not None else None

    @property
    def edit_target(self) -> str | None:
        """The handle of the picture that the next words change when nothing is selected; None without any picture."""
        return self.edit_history.target

    @property
    def edit_history(self) -> EditHistory:
        """Which pictures were the one to change, as the turns of the branch that is shown made them so."""
        by_turn: dict[str, list[Picture]] = {turn.id: [] for turn in self.turns}
        made_later: list[Picture] = []
        for picture in self.pictures:
            # Made by hand of one of an older turn, it comes after all turns that had begun by then.
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
        """What the conversation has cost so far."""
        return sum(turn.price_usd for turn in self.turns)

    def turn(self, turn_id: str) -> Turn | None:
        """Return the turn of that id, None where the branch that is shown has none."""
        return next((one for one in self.turns if one.id == turn_id), None)

    def picture(self, handle: str) -> Picture:
        """Return the picture with this handle, with or without the `#`.

        Raises RequestRefused when the conversation holds none of that name.
        """
        wanted = _spelt(handle)
        for picture in self.all_pictures:
            if picture.handle == wanted:
                return picture
        shown = " ".join(wanted.split())[:_SHOWN_CHARACTERS]
        raise RequestRefused(
            ErrorCode.PICTURE_DELETED if wanted in self.gone else ErrorCode.PICTURE_NOT_FOUND, handle=shown
        )


class TurnsPage(Value):
    """Some turns of the branch that is shown, in the order they came, and the pictures that they brought or show.

    `forks` are those of `Conversation`, for these turns. `earlier` leads to the page before, as its `before`; None at
    the beginning.
    """

    turns: tuple[Turn, ...] = ()
    pictures: tuple[Picture, ...] = ()
    forks: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    earlier: str | None = None


def _spelt(handle: str) -> str:
    """Return a handle as it is kept, whether somebody wrote it with `#` or without."""
    return "#" + handle.strip().lstrip("#").lower()


def _target_steps(turn: Turn, pictures: Sequence[Picture]) -> Iterator[Picture | TargetChanged]:
    """Yield what in a turn made another picture the one to change: uploads, what was made, where the person went.

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
                chosen = leading([made[handle] for handle in component.handles if handle in made])
                if chosen is not None:
                    yield chosen
            case _:
                pass
    # Of a turn that is still at work, or came to no end.
    unshown = leading([one for handle, one in made.items() if handle not in shown])
    if unshown is not None:
        yield unshown


Writer = Literal["person", "agent"]


class WorkspaceFile(Value):
    """A file of a conversation's workspace.

    `version` is another one after each write; `written_by` says who wrote it last. It `is_untrusted` when what it holds
    came, at least in part, from outside of the studio.
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
        """The content as text, None when it is none: not UTF-8, or with a NUL in it."""
        try:
            text = self.content.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else text


class WholeConversation(Value):
    """A conversation with every branch, as it is exported, imported and duplicated.

    `turns` are those of every branch in the order they were made, `head` is the newest of the one that is shown;
    `pictures` come with their `answer`; of them the person has `starred` some and given `tags` to
    some, both by handle. The title `is_named` when the person gave it. `files` are those of the workspace, by name.
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
