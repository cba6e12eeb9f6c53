"""A conversation as a value: the one ordered history, with its pictures, settings and files."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from agent.components import Component
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ImagePart, PromptMessage, TokenUsage, Value
from agent.pictures import Margins, Picture, ReferenceRole
from agent.settings import TurnSettings


class TurnState(StrEnum):
    """How far a turn came. One that waits has a plan for the person to decide about, an interrupted one was cut off
    by the end of the studio's process; both can go on."""

    RUNNING = "running"
    WAITING = "waiting"
    INTERRUPTED = "interrupted"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class Timing(Value):
    """How long a node of the turn took, one entry for each time it ran."""

    node: str
    seconds: float


class Turn(Value):
    """One thing the person sent and all that followed until the agent rested.

    `messages` are what the turn added to the history, the person's own first; `components` are what it shows.
    `parent` is the id of the turn it follows: several turns with the same one are branches of the conversation.
    `roles` says what some of the `references` are for. `provider` names the one that served it; the same `request_id`
    twice runs once. `mask` is what of `editing` may
    change, at its size (white = change), its soft edge `feather_px` wide when the person chose that; `margins` is what
    `editing` grows by instead.
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
    state: TurnState = TurnState.RUNNING
    messages: tuple[PromptMessage, ...] = ()
    components: tuple[Component, ...] = ()
    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    seconds: float = 0.0
    timings: tuple[Timing, ...] = ()

    @property
    def has_area(self) -> bool:
        """Whether only a part of a picture may change: inside a mask, or beyond its edges."""
        return self.mask is not None or self.margins is not None


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


class Conversation(Value):
    """A conversation with all it holds. `owner` is who may open it: `local`, or a visitor's own token.

    `turns` and `pictures` are those of the branch that is shown, from the first turn to its newest; `elsewhere` are the
    pictures of other branches. `forks` names, for each shown turn that has others beside it, all of them by id, the
    oldest first. `gone` are the handles of pictures that were deleted: no other is given one of them.
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
        wanted = "#" + handle.strip().lstrip("#").lower()
        for picture in self.all_pictures:
            if picture.handle == wanted:
                return picture
        raise RequestRefused(ErrorCode.PICTURE_NOT_FOUND, handle=wanted)


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
        """How large it is."""
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
    `pictures` come with their `answer`, signatures whole; of them the person has `starred` some and given `tags` to
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
