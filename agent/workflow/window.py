"""What of the history the text model sees: the newest turns, whole, with earlier pictures as placeholders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode
from agent.events import FailureNote, SmartCanvas
from agent.history_images import replace_history_images
from agent.messages import (
    ContentPart,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent.pictures import Picture
from agent.storage.images import ModelPictures
from agent.workflow.deps import Deps

MOST_PICTURES = 48
_MOST_CHARACTERS = 70
MAX_MESSAGES = 50

# Sent again, such a message would have every later turn declined with it: the provider judges the history as a whole.
_DECLINED = frozenset({ErrorCode.PROMPT_BLOCKED, ErrorCode.REQUEST_REJECTED})


async def model_view(
    deps: Deps, added: Sequence[PromptMessage], *, target: str | None = None, words: str = ""
) -> tuple[PromptMessage, ...]:
    """Return the messages for the text model: the window of the past, then what this turn has added.

    Pictures before the newest prompt are placeholders; those of the newest prompt are named by their handles, and a
    listing of the earlier ones goes with it, which says that `target` is the one to change. It is not kept: what comes
    before the newest prompt stays the same from turn to turn, which is cheaper. When the person went back to `target`
    in this message, `words` are what else they asked for, and stand instead of all of theirs.
    """
    past = newest_messages(deps.conversation.turns, MAX_MESSAGES - len(added))
    now = [_after_going_back(added[0], deps.turn.text, words, target), *added[1:]] if words and target else added
    seen = [*past, *_with_listing(now, pictures_listing(deps.conversation, target))]
    replaced = await replace_history_images(seen, deps.cache, ModelPictures(deps.images).read)
    return tuple(_with_handles(message) for message in replaced)


def newest_messages(turns: Sequence[Turn], limit: int) -> list[PromptMessage]:
    """Return the messages of the newest turns that fit into `limit`, oldest first.

    A turn is taken whole or not at all, so that no call is cut from its result. Of a turn that the planner's model
    declined to read only the uploads are left.
    """
    taken: list[tuple[PromptMessage, ...]] = []
    room = limit
    for turn in reversed(turns):
        messages = _of_declined(turn) if _was_declined(turn) else turn.messages
        room -= len(messages)
        if room < 0:
            break
        taken.append(messages)
    return [message for messages in reversed(taken) for message in messages]


def _after_going_back(prompt: PromptMessage, said: str, words: str, target: str) -> PromptMessage:
    """Return the person's message without the words by which they went back, and with a note of where to."""
    parts = [TextPart(text=words) if part == TextPart(text=said) else part for part in prompt.parts]
    note = TextPart(text=f"[The person went back to {target} first: it is the picture to change.]")
    return prompt.model_copy(update={"parts": (*parts[:1], note, *parts[1:])})


def _with_listing(added: Sequence[PromptMessage], listing: str) -> Sequence[PromptMessage]:
    if not listing or not added:
        return added
    prompt = added[0]
    return (prompt.model_copy(update={"parts": (*prompt.parts, TextPart(text=listing))}), *added[1:])


def _was_declined(turn: Turn) -> bool:
    notes = (component for component in turn.components if isinstance(component, FailureNote))
    return any(note.node == "planner" and note.error.code in _DECLINED for note in notes)


def _of_declined(turn: Turn) -> tuple[PromptMessage, ...]:
    return (PromptMessage(role=Role.PROMPT, parts=turn.uploads),) if turn.uploads else ()


def answer_open_calls(messages: Sequence[PromptMessage], reason: str) -> list[PromptMessage]:
    """Return the messages with every call answered: one that was cut off gets `reason` as its error.

    A model's message whose calls have no results makes the provider refuse the whole history.
    """
    if not messages or messages[-1].role is not Role.MODEL:
        return list(messages)
    calls = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
    if not calls:
        return list(messages)
    results = tuple(
        ToolResultPart(name=call.name, call_id=call.call_id, content={"error": reason}, is_error=True) for call in calls
    )
    return [*messages, PromptMessage(role=Role.TOOL, parts=results)]


def without_old_signatures(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the messages with no thought signature left, for the one retry after the provider rejected some."""
    return tuple(
        message.model_copy(update={"parts": tuple(_unsigned(part) for part in message.parts)}) for message in messages
    )


def _unsigned(part: ContentPart) -> ContentPart:
    if isinstance(part, TextPart | ImagePart | ToolCallPart) and part.thought_signature is not None:
        return part.model_copy(update={"thought_signature": None, "signed_by": None})
    return part


def _with_handles(message: PromptMessage) -> PromptMessage:
    if message.role is not Role.PROMPT or not message.images:
        return message
    parts: list[ContentPart] = []
    for part in message.parts:
        if isinstance(part, ImagePart) and part.handle:
            parts.append(TextPart(text=f"Picture {part.handle}:"))
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})


def pictures_listing(conversation: Conversation, target: str | None = None) -> str:
    """Return the pictures from before this turn, oldest first, a line for each message of the person that brought any;
    nothing when there is none.

    Of more than `MOST_PICTURES` the newest are listed. Who made each, from which, and what it shows, in brackets. The
    last line says which one is changed when none is named (`target`).
    """
    pictures = conversation.pictures[-MOST_PICTURES:]
    if not pictures:
        return ""
    canvases = [one for turn in conversation.turns for one in turn.components if isinstance(one, SmartCanvas)]
    folded = {handle for canvas in canvases for handle in canvas.earlier}
    lines = [
        ", ".join(_described(picture, is_folded=picture.handle in folded) for picture in group)
        for _, group in groupby(pictures, key=lambda picture: picture.turn_id)
    ]
    left_out = len(conversation.pictures) - len(pictures)
    head = [f"({left_out} earlier pictures are not listed)"] if left_out else []
    now = [f"When no picture is named, {target} is the one to change."] if target else []
    return "\n".join(("[PICTURES]", *head, *lines, *now, "[/PICTURES]"))


def _described(picture: Picture, *, is_folded: bool) -> str:
    told = [_origin(picture)]
    if is_folded:
        told.append("an attempt that a review sent back")
    if picture.is_set_aside:
        told.append("set aside")
    # It stands in a block of brackets, and may come from a file's name or a page of the web.
    text = " ".join(picture.alt.translate(str.maketrans("[]()", "    ")).split())
    if text:
        told.append(text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1].rstrip() + "…")
    return f"{picture.handle} ({'; '.join(told)})"


def _origin(picture: Picture) -> str:
    match picture.image.origin:
        case ImageOrigin.UPLOADED:
            return "uploaded by the person"
        case ImageOrigin.GENERATED:
            return "painted here"
        case ImageOrigin.EDITED:
            is_exact = picture.receipt is not None and picture.receipt.is_exact
            verb = "adjusted" if is_exact else "changed"
            return f"{verb} here from {picture.parents[0]}" if picture.parents else f"{verb} here"
