"""What the tools are called with. The descriptions are read by the calling model."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from agent import MAX_NEGATIVE_CHARACTERS, MAX_REFERENCE_COUNT, Asked, PlanEdit, ReferenceMode, TurnSettings

_MOST_CHARACTERS = 28 << 20
_DATA_URL = re.compile(r"\s*data:image/[a-z0-9.+-]{1,40};base64,", re.IGNORECASE)


def _decoded(written: object) -> object:
    """Return the bytes of a base64 text or data URL; pydantic words what is raised."""
    if not isinstance(written, str):
        raise ValueError("it must be a picture as base64")
    if len(written) > _MOST_CHARACTERS:
        raise ValueError("the picture is larger than 20 MB")
    text = _DATA_URL.sub("", written, count=1)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("it is not base64") from None


PictureBytes: TypeAlias = Annotated[
    bytes, BeforeValidator(_decoded), WithJsonSchema({"type": "string", "contentEncoding": "base64"})
]
ConversationId: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Handle: TypeAlias = Annotated[str, StringConstraints(pattern=r"^#?[0-9]{1,6}[a-zA-Z]{0,3}$")]
Wish: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
Percent: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]

_NEW_WITHOUT = "The conversation to go on in; without one a new conversation is begun, and its id is in the answer."
_HANDLE = "The picture's short name in its conversation, such as #3 or #3b."
_PICTURE = "Instead of a handle: a picture of your own as base64 (PNG, JPEG, WebP, at most 20 MB)."


class RepeatableArguments(Asked):
    """Arguments of a tool that may cost money."""

    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None,
        description="A name of your own for this call. The same one again brings the same pictures and "
        "costs nothing: give one when you may have to repeat a call.",
    )


class PaintingArguments(RepeatableArguments):
    """What may be chosen for any picture."""

    model: Literal["auto", "flash", "pro"] = Field(
        default="auto", description="The image model: fast (flash), best (pro), or the agent's choice."
    )
    confirm: bool = Field(
        default=False, description="Paint nothing yet: the plan and its price come back, to be decided with `decide`."
    )
    budget_usd: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="The most that this call may cost, in US dollars."
    )

    def settings(self) -> TurnSettings:
        """Return the settings of the turn."""
        return TurnSettings(image_model=self.model, confirm=self.confirm, budget_usd=self.budget_usd)


class ShapedArguments(PaintingArguments):
    """What may be chosen for a whole picture besides."""

    aspect_ratio: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}:[0-9]{1,2}$")] | None = Field(
        default=None, description="Width to height, such as 16:9. Left out, the agent chooses."
    )
    size: Annotated[str, StringConstraints(min_length=1, max_length=8)] | None = Field(
        default=None, description="Left out, the agent chooses."
    )
    count: int | None = Field(default=None, ge=1, le=4, description="How many pictures.")
    allow_search: bool = Field(default=False, description="The agent may search the web for facts.")
    negative_prompt: Annotated[str, StringConstraints(max_length=MAX_NEGATIVE_CHARACTERS)] | None = Field(
        default=None, description="What the picture must not show, in a few words. Left out, the agent chooses."
    )
    reference_mode: ReferenceMode | None = Field(
        default=None,
        description="Which pictures of the conversation the image model is shown. Left out, the agent chooses.",
    )
    reference_count: int | None = Field(
        default=None, ge=1, le=MAX_REFERENCE_COUNT, description="How many pictures LAST_N shows."
    )

    def settings(self) -> TurnSettings:
        """Return the settings of the turn."""
        chosen = {
            "aspect_ratio": self.aspect_ratio,
            "resolution": self.size,
            "number_of_images": self.count,
            "allow_search": self.allow_search,
            "negative_prompt": (self.negative_prompt or "").strip() or None,
            "reference_mode": self.reference_mode,
            "reference_count": self.reference_count,
        }
        return super().settings().model_copy(update=chosen)


class TargetArguments(Asked):
    """Which picture is to be changed: one of a conversation, or one that comes along."""

    conversation_id: ConversationId | None = Field(default=None, description=_NEW_WITHOUT)
    handle: Handle | None = Field(default=None, description=f"{_HANDLE} It needs the conversation_id.")
    picture: PictureBytes | None = Field(default=None, description=_PICTURE)

    @model_validator(mode="after")
    def _is_one_picture(self) -> Self:
        if (self.handle is None) == (self.picture is None):
            raise ValueError("name the picture by its handle, or send it as `picture`: one of the two")
        if self.handle is not None and self.conversation_id is None:
            raise ValueError("a handle belongs to a conversation: give its conversation_id")
        return self


class GenerateArguments(ShapedArguments):
    """Arguments of `generate`."""

    wish: Wish = Field(description="What the picture shall show, in the person's own words.")
    conversation_id: ConversationId | None = Field(default=None, description=_NEW_WITHOUT)
    references: Annotated[tuple[Handle, ...], Field(max_length=14)] = Field(
        default=(), description="Handles of pictures of the conversation that the image model shall be shown."
    )


class EditArguments(TargetArguments, ShapedArguments):
    """Arguments of `edit`."""

    wish: Wish = Field(description="What shall change, in the person's own words.")


class Box(Asked):
    """A rectangle of a picture, in percent of its width and height from its top left corner."""

    left: Percent
    top: Percent
    width: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    height: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _is_inside(self) -> Self:
        if self.left + self.width > 100 or self.top + self.height > 100:
            raise ValueError("the box reaches beyond the picture: left and width, and top and height, add up to 100")
        return self


class MaskedEditArguments(TargetArguments, PaintingArguments):
    """Arguments of `masked_edit`."""

    wish: Wish = Field(description="What shall be there instead, in the person's own words.")
    mask: PictureBytes | None = Field(
        default=None, description="A base64 PNG of the picture's shape: white may change, black stays."
    )
    box: Box | None = Field(
        default=None, description="Instead of a mask: the rectangle that may change, in percent from the top left."
    )
    feather_px: int | None = Field(
        default=None, ge=0, le=1000, description="How wide the mask's soft edge is, in pixels of a picture 1024 wide."
    )

    @model_validator(mode="after")
    def _is_one_area(self) -> Self:
        if (self.mask is None) == (self.box is None):
            raise ValueError("say what may change with a mask or with a box: one of the two")
        return self


class DescribeArguments(RepeatableArguments):
    """Arguments of `describe`."""

    conversation_id: ConversationId
    handle: Handle = Field(description=_HANDLE)
    question: Annotated[str, StringConstraints(max_length=4000)] = Field(
        default="", description="What you want to know of it; left out, it is described as a whole."
    )


class DecideArguments(Asked):
    """Arguments of `decide`."""

    conversation_id: ConversationId
    turn_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    run: bool = Field(description="true: paint the plan, or let the tools be called; false: drop it, nothing is paid.")
    edits: Annotated[tuple[PlanEdit, ...], Field(max_length=4)] = Field(
        default=(), description="Changes of the plan before it runs, one for each `call` that is changed."
    )


class ListPicturesArguments(Asked):
    """Arguments of `list_pictures`."""

    conversation_id: ConversationId
    limit: int = Field(default=20, ge=1, le=100, description="The newest so many.")


class GetPictureArguments(Asked):
    """Arguments of `get_picture`."""

    conversation_id: ConversationId
    handle: Handle = Field(description=_HANDLE)
    edge_px: Literal[512, 1024, 2048] = Field(
        default=1024, description="The longer edge of the preview; the original is the linked resource."
    )


class ListConversationsArguments(Asked):
    """Arguments of `list_conversations`."""

    query: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="Only those that hold all of these words."
    )
    limit: int = Field(default=20, ge=1, le=50)


class NoArguments(Asked):
    """Arguments of a tool that takes none."""
