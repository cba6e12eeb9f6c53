"""A conversation that was held elsewhere and is told as a list of messages, made one that can go on record here."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from agent.conversation import Turn, TurnState, WholeConversation
from agent.events import AgentMessage, Component, SmartCanvas
from agent.imaging.intake import check_request, take_in_image
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, Role, TextPart
from agent.pictures import Picture, allot_handle
from agent.settings import TurnSettings
from agent.storage.titles import title_of

if TYPE_CHECKING:
    from agent.storage.images import ImageStore


@dataclass(frozen=True)
class ContextMessage:
    """What somebody said: the person, or else the assistant; `pictures` are names (or nothing) and bytes."""

    is_person: bool
    text: str
    pictures: tuple[tuple[str, bytes], ...] = ()


async def whole_of_context(told: Sequence[ContextMessage], images: ImageStore) -> WholeConversation:
    """Return the conversation: a turn for each message of the person's, with what the assistant answered to it.

    Pictures of the person's are uploads, those of the assistant's generated ones, though without a receipt; each gets
    the next handle. All are looked at before the first is stored. Raises RequestRefused for a picture or a text that
    no message may hold.
    """
    taken = [await _taken_in(message) for message in told]
    now, handles = datetime.now(UTC), list[str]()
    turns: list[Turn] = []
    pictures: list[Picture] = []
    for message, files in zip(told, taken, strict=True):
        if message.is_person or not turns:
            parent = turns[-1].id if turns else None
            turns.append(_new_turn(message.text if message.is_person else "", parent, now))
        turn = turns[-1]
        added = [await _stored(file, message, images, handles) for file in files]
        pictures += [Picture(handle=one.handle or "", image=one, turn_id=turn.id, created_at=now) for one in added]
        turns[-1] = _with_message(turn, message, added)
    return WholeConversation(
        title=next((title for one in turns if (title := title_of(one.text))), ""),
        created_at=now,
        updated_at=now,
        head=turns[-1].id if turns else None,
        turns=tuple(turns),
        pictures=tuple(pictures),
    )


@dataclass(frozen=True)
class _File:
    data: bytes
    mime_type: str
    width: int
    height: int
    bit_depth: int


async def _taken_in(message: ContextMessage) -> list[_File]:
    check_request(message.text, len(message.pictures))
    files = []
    for number, (name, data) in enumerate(message.pictures, 1):
        taken = await take_in_image(data, name or f"Picture {number}")
        files.append(_File(taken.data, taken.mime_type, taken.width, taken.height, taken.bit_depth))
    return files


async def _stored(file: _File, message: ContextMessage, images: ImageStore, handles: list[str]) -> ImagePart:
    origin = ImageOrigin.UPLOADED if message.is_person else ImageOrigin.GENERATED
    part = await images.write(file.data, file.mime_type, origin)
    handles.append(allot_handle(handles, base=None))
    measured = {"width": file.width, "height": file.height, "bit_depth": file.bit_depth}
    return part.model_copy(update={**measured, "handle": handles[-1]})


def _new_turn(text: str, parent: str | None, now: datetime) -> Turn:
    return Turn(
        id=uuid.uuid4().hex, text=text, settings=TurnSettings(), started_at=now, parent=parent, state=TurnState.DONE
    )


def _with_message(turn: Turn, message: ContextMessage, added: Sequence[ImagePart]) -> Turn:
    words: tuple[ContentPart, ...] = (TextPart(text=message.text),) if message.text else ()
    if not words and not added:
        return turn
    role = Role.PROMPT if message.is_person else Role.MODEL
    update: dict[str, object] = {"messages": (*turn.messages, PromptMessage(role=role, parts=(*words, *added)))}
    if message.is_person:
        return turn.model_copy(update={**update, "uploads": tuple(added)})
    shown: list[Component] = [*turn.components]
    if message.text.strip():
        shown.append(AgentMessage(text=message.text.strip()))
    if added:
        shown.append(SmartCanvas(handles=tuple(one.handle or "" for one in added)))
    return turn.model_copy(update={**update, "components": tuple(shown)})
