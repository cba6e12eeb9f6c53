"""Convert turns and pictures to rows and back. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, TypeAdapter, create_model
from sqlalchemy import Row

from agent.conversation import Conversation, Turn, TurnState, WholeConversation, WorkspaceFile
from agent.events import Component
from agent.messages import ImageOrigin, PromptMessage, Value
from agent.pictures import Picture, Receipt, shape_of
from agent.storage.branches import shown
from agent.storage.tables import PICTURES, TURNS

_T, _P = TURNS.c, PICTURES.c
# The columns that `turn_of` and `picture_of` read.
TURN_COLUMNS = (
    *(_T.id.label("turn_id"), _T.parent, _T.text, _T.state, _T.started_at, _T.price_usd),
    *(_T.messages, _T.components, _T.details, _T.is_imported),
)
PICTURE_COLUMNS = (_P.handle, _P.turn_id, _P.created_at, _P.receipt, _P.details, _P.deleted_at)
_MESSAGES = TypeAdapter(tuple[PromptMessage, ...])
COMPONENTS = TypeAdapter(tuple[Component, ...])


class _Details(Value):
    # A record may have fields that this version no longer knows.
    model_config = ConfigDict(extra="ignore")


def _details_of(kind: type[Value], columns: str) -> type[Value]:
    """Return a model of the fields that have no column of their own and are stored together as JSON.

    A field added later needs a default, for records that lack it.
    """
    fields = {name: field for name, field in kind.model_fields.items() if name not in columns.split()}
    definitions: dict[str, Any] = {name: (field.annotation, field) for name, field in fields.items()}
    return create_model(f"{kind.__name__}Details", __base__=_Details, **definitions)


_TurnDetails = _details_of(Turn, "id parent text state started_at price_usd messages components is_imported")
_PictureDetails = _details_of(Picture, "handle turn_id created_at receipt answer")
_TURN_DETAILS, _PICTURE_DETAILS = set(_TurnDetails.model_fields), set(_PictureDetails.model_fields)


def turn_row(turn: Turn) -> dict[str, Any]:
    """Return the columns of a turn's row that come from the turn."""
    return {
        "state": turn.state.value,
        "started_at": turn.started_at,
        "text": turn.text,
        "messages": _MESSAGES.dump_json(turn.messages).decode(),
        **changed_turn(turn),
    }


def changed_turn(turn: Turn) -> dict[str, Any]:
    """Return the columns of a turn's row for its price, components and details."""
    return {
        "price_usd": turn.price_usd,
        "components": COMPONENTS.dump_json(turn.components).decode(),
        "details": turn.model_dump_json(include=_TURN_DETAILS),
    }


def turn_of(row: Row[*tuple[Any, ...]]) -> Turn:
    """Return the turn of a row."""
    return Turn(
        id=row.turn_id,
        parent=row.parent,
        text=row.text,
        state=TurnState(row.state),
        started_at=row.started_at,
        price_usd=row.price_usd,
        messages=_MESSAGES.validate_json(row.messages),
        components=COMPONENTS.validate_json(row.components),
        is_imported=row.is_imported,
        **dict(_TurnDetails.model_validate_json(row.details)),
    )


def picture_row(conversation_id: str, picture: Picture) -> dict[str, Any]:
    """Return a picture's row."""
    return {
        "conversation_id": conversation_id,
        "handle": picture.handle,
        "turn_id": picture.turn_id,
        "digest": picture.image.digest,
        "model": picture.receipt.model_label if picture.receipt else "",
        "shape": shape_of(picture.image.width, picture.image.height),
        "source": source_of(picture),
        "is_indexed": False,
        "origin": picture.image.origin.value,
        "created_at": picture.created_at,
        "call": picture.call,
        "receipt": picture.receipt.model_dump_json() if picture.receipt else None,
        "details": picture_details(picture),
        "answer": picture.answer.model_dump_json() if picture.answer else None,
    }


def source_of(picture: Picture) -> str:
    """Return how the picture came to be: `uploaded`, `edited` from another, or `made`."""
    origin = picture.image.origin
    return "made" if origin is ImageOrigin.GENERATED else origin.value


def picture_details(picture: Picture) -> str:
    """Return the JSON of a picture's fields that have no column of their own."""
    return picture.model_dump_json(include=_PICTURE_DETAILS)


def picture_of(row: Row[*tuple[Any, ...]]) -> Picture:
    """Return the picture of a row, without the image model's answer."""
    return Picture(
        handle=row.handle,
        turn_id=row.turn_id,
        created_at=row.created_at,
        receipt=Receipt.model_validate_json(row.receipt) if row.receipt else None,
        **dict(_PictureDetails.model_validate_json(row.details)),
    )


def conversation_of(turns: Sequence[Row[*tuple[Any, ...]]], pictures: Sequence[Row[*tuple[Any, ...]]]) -> Conversation:
    """Return the conversation from its rows; only turns of the shown branch are parsed.

    There is one row for each turn of any branch, in order of creation, or a single row without a turn.
    """
    first = turns[0]
    by_id = {row.turn_id: row for row in turns if row.turn_id is not None}
    branch = shown(first.head, {turn_id: row.parent for turn_id, row in by_id.items()})
    path = frozenset(branch.path)
    there = [row for row in pictures if row.deleted_at is None]
    return Conversation(
        id=first.id,
        owner=first.owner,
        title=first.title,
        created_at=first.created_at,
        updated_at=first.updated_at,
        is_pinned=first.is_pinned,
        turns=tuple(turn_of(by_id[turn_id]) for turn_id in branch.path),
        pictures=tuple(picture_of(row) for row in there if row.turn_id in path),
        elsewhere=tuple(picture_of(row) for row in there if row.turn_id not in path),
        forks=branch.forks,
        gone=tuple(row.handle for row in pictures if row.deleted_at is not None),
        version=first.version,
    )


def whole_of(
    own: Row[*tuple[Any, ...]],
    turns: Sequence[Row[*tuple[Any, ...]]],
    pictures: Sequence[Row[*tuple[Any, ...]]],
    tags: Mapping[int, tuple[str, ...]],
    files: tuple[WorkspaceFile, ...],
) -> WholeConversation:
    """Return the conversation with every branch, from its own row and all rows of its turns and pictures in order.

    `tags` are the pictures' tags by row id.
    """
    return WholeConversation(
        title=own.title,
        created_at=own.created_at,
        updated_at=own.updated_at,
        is_named=own.is_named,
        is_pinned=own.is_pinned,
        head=own.head,
        turns=tuple(map(turn_of, turns)),
        pictures=tuple(picture_of(row).model_copy(update={"answer": answer_of(row.answer)}) for row in pictures),
        starred=tuple(row.handle for row in pictures if row.is_starred),
        tags={row.handle: tags[row.id] for row in pictures if row.id in tags},
        files=files,
    )


def answer_of(answer: str | None) -> PromptMessage | None:
    """Return the image model's message, or None."""
    return PromptMessage.model_validate_json(answer) if answer is not None else None
