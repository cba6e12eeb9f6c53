"""Whole conversations with branches, for hypothesis: every field of every value, also those that are new."""

from __future__ import annotations

import hashlib
import io
import types
import typing
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import annotated_types
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agent import (
    MAX_RATIO_SIDE,
    Adjustment,
    Ask,
    CropBox,
    CropRatio,
    EditNotice,
    EditRecord,
    ErrorInfo,
    ImageOrigin,
    ImagePart,
    Margins,
    MaskedPicture,
    Picture,
    Placement,
    Plan,
    PlanCard,
    Resize,
    SearchNote,
    TextPart,
    ThoughtLog,
    ToolCallPart,
    Turn,
    TurnSettings,
    TurnState,
    WholeConversation,
    WorkspaceFile,
)
from tests.adapters.masks import Notice, Reason
from tests.adapters.tools import Reason as AskReason
from tests.support.pixels import encoded

_LARGE_SIGNATURE_BYTES = 5000
_MOMENTS = st.datetimes(datetime(2001, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC))
_NUMBERS = st.floats(-1e9, 1e9)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 40), 1 << 40) | _NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
_NAMES = st.sampled_from(["model", "seconds", "names"])
_PARAMETERS = st.dictionaries(_NAMES, st.text(max_size=5) | _NUMBERS, max_size=2)
_FILE_NAMES = ("data/Zahlen.csv", "data/狐.bin", "notes.md", "ÜBER uns.txt")
_TAGS = st.lists(st.sampled_from(["Füchse", "red poster", "狐"]), max_size=2, unique=True)
_HANDLES = st.sampled_from(["#1", "#2", "#2b", "#17c"])


def png(number: int, size: tuple[int, int] = (24, 16)) -> bytes:
    """Return a small picture that is another one for each number."""
    return encoded(Image.new("RGB", size, (number * 37 % 256, number * 91 % 256, number % 256)))


def part_of(data: bytes, mime_type: str = "image/png", handle: str | None = None) -> ImagePart:
    """Return the reference to a picture of these bytes."""
    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
    return ImagePart(
        digest=hashlib.sha256(data).hexdigest(),
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        mime_type=mime_type,
        size_bytes=len(data),
        origin=ImageOrigin.GENERATED,
        width=width,
        height=height,
        handle=handle,
    )


PNGS = tuple(png(number) for number in range(6))
PARTS = tuple(map(part_of, PNGS))


@st.composite
def image_parts(draw: st.DrawFn) -> ImagePart:
    """Draw a reference to one of PNGS, signed or not, measured or not."""
    part = draw(st.sampled_from(PARTS))
    update: dict[str, object] = {
        "handle": draw(st.none() | _HANDLES),
        "origin": draw(st.sampled_from(ImageOrigin)),
        "is_thought": draw(st.booleans()),
        "thought_signature": draw(st.none() | _signatures()),
        "signed_by": draw(st.none() | st.text(max_size=5)),
    }
    if draw(st.booleans()):
        update |= {"width": None, "height": None}
    return part.model_copy(update=update)


@st.composite
def whole_conversations(draw: st.DrawFn) -> WholeConversation:
    """Draw a conversation whose turns form a tree, with pictures of all of them."""
    ids = [f"turn-{number}" for number in range(draw(st.integers(0, 4)))]
    turns = tuple(
        draw(_model(Turn)).model_copy(
            update={
                "id": one,
                "parent": draw(st.sampled_from([None, *ids[:at]])),
                "request_id": None,
                "is_imported": False,
            }
        )
        for at, one in enumerate(ids)
    )
    handles = [f"#{number}" for number in range(1, draw(st.integers(0, 3)) + 1)] if ids else []
    pictures = tuple(
        draw(_model(Picture)).model_copy(
            update={
                "handle": handle,
                "turn_id": draw(st.sampled_from(ids)),
                "parents": tuple(draw(st.lists(st.sampled_from(["#99", *handles[:at]]), max_size=2))),
            }
        )
        for at, handle in enumerate(handles)
    )
    names = draw(st.lists(st.sampled_from(_FILE_NAMES), max_size=3, unique=True))
    return WholeConversation(
        title=draw(st.text(max_size=20)),
        is_named=draw(st.booleans()),
        created_at=draw(_MOMENTS),
        updated_at=draw(_MOMENTS),
        is_pinned=draw(st.booleans()),
        # An import shows the branch to its end.
        head=draw(st.sampled_from([one for one in ids if one not in {turn.parent for turn in turns}])) if ids else None,
        turns=turns,
        pictures=pictures,
        starred=tuple(handle for handle in handles if draw(st.booleans())),
        tags={handle: tags for handle in handles if (tags := tuple(draw(_TAGS)))},
        files=tuple(draw(_model(WorkspaceFile)).model_copy(update={"name": name}) for name in names),
    )


def _signatures() -> st.SearchStrategy[bytes]:
    return st.binary(max_size=20) | st.integers(0, 255).map(lambda byte: bytes([byte]) * _LARGE_SIGNATURE_BYTES)


@st.composite
def _placements(draw: st.DrawFn) -> Placement:
    rows, columns = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    sides = st.integers(1, 2000)
    return Placement(
        box=(draw(st.integers(-50, 50)), draw(st.integers(-50, 50)), draw(sides), draw(sides)),
        frame=(draw(sides), draw(sides)),
        feather_px=draw(st.floats(0, 100)),
        work=(draw(sides), draw(sides)),
        matrix=tuple(draw(st.lists(st.floats(-10, 10), min_size=6, max_size=6))),
        bends=draw(st.binary(min_size=rows * columns * 4, max_size=rows * columns * 4)),
        bends_rows=rows,
        bends_columns=columns,
    )


@st.composite
def _boxes(draw: st.DrawFn) -> CropBox:
    left, top = draw(st.floats(0, 0.5)), draw(st.floats(0, 0.5))
    return CropBox(left=left, top=top, right=draw(st.floats(0.51, 1)), bottom=draw(st.floats(0.51, 1)))


def _crops() -> st.SearchStrategy[CropRatio | CropBox]:
    side = st.integers(1, MAX_RATIO_SIDE)
    ratios = st.builds(CropRatio, width=side, height=side, across=st.floats(0, 1), down=st.floats(0, 1))
    outer = st.none() | _boxes() | ratios
    return st.tuples(_boxes() | ratios, outer).map(lambda pair: pair[0].model_copy(update={"within": pair[1]}))


_OF_FIELD: dict[tuple[type[BaseModel], str], st.SearchStrategy[Any]] = {
    (Turn, "state"): st.sampled_from([TurnState.DONE, TurnState.STOPPED, TurnState.FAILED]),
    (Turn, "price_usd"): st.floats(0, 100),
    (Turn, "seconds"): st.floats(0, 1e6),
    (Turn, "maximum_usd"): st.none(),
    (Turn, "feather_px"): st.none() | st.integers(0, 400),
    (MaskedPicture, "feather_px"): st.none() | st.integers(0, 400),
    (Adjustment, "crop"): st.none() | _crops(),
    (Resize, "factor"): st.floats(0.01, 50),
    (TurnSettings, "aspect_ratio"): st.sampled_from([None, "auto", "16:9"]),
    (TurnSettings, "resolution"): st.sampled_from([None, "2K", "1024×768"]),
    (TurnSettings, "budget_usd"): st.none() | st.floats(0.01, 50),
    (Picture, "round"): st.integers(1, 9),
    (WorkspaceFile, "version"): st.integers(1, 1000),
    (ErrorInfo, "parameters"): _PARAMETERS,
    (ThoughtLog, "parameters"): _PARAMETERS,
    (EditNotice, "code"): st.sampled_from([one.value for one in Notice]),
    (EditNotice, "parameters"): _PARAMETERS,
    (Ask, "reason"): st.sampled_from(typing.get_args(AskReason)),
    (EditRecord, "reason"): st.sampled_from([one.value for one in Reason]),
    (Plan, "notices"): st.lists(st.sampled_from([one.value for one in Notice]), max_size=1).map(tuple),
    (PlanCard, "plans"): st.deferred(lambda: st.lists(_model(Plan), min_size=1, max_size=2)).map(tuple),
    **{(kind, "signature_digest"): st.none() for kind in (TextPart, ImagePart, ToolCallPart)},
    # Not taken over by an import.
    (SearchNote, "suggestions_html"): st.just(""),
}
_OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    bool: st.booleans(),
    int: st.integers(-(1 << 40), 1 << 40),
    float: _NUMBERS,
    bytes: _signatures(),
    datetime: _MOMENTS,
    type(None): st.none(),
    ImagePart: image_parts(),
    Placement: _placements(),
    Margins: st.builds(Margins, left=st.integers(0, 500), top=st.integers(0, 500)),
}


def _model(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    if model in _OF_TYPE:
        return _OF_TYPE[model]
    fields = {name: _field(model, name, info) for name, info in model.model_fields.items()}
    return st.builds(model, **fields)


def _field(model: type[BaseModel], name: str, info: FieldInfo) -> st.SearchStrategy[Any]:
    if (model, name) in _OF_FIELD:
        return _OF_FIELD[model, name]
    least = [one.ge for one in info.metadata if isinstance(one, annotated_types.Ge)]
    most = [one.le for one in info.metadata if isinstance(one, annotated_types.Le)]
    if not least and not most:
        return _typed(info.annotation)
    kinds = typing.get_args(info.annotation) or (info.annotation,)
    lowest: Any = (least or [0])[0]
    highest: Any = (most or [100])[0]
    numbers = st.integers(lowest, highest) if int in kinds else st.floats(lowest, highest)
    return st.none() | numbers if type(None) in kinds else numbers


def _typed(wanted: Any) -> st.SearchStrategy[Any]:
    if "JsonValue" in str(wanted) and typing.get_origin(wanted) is not dict:
        return _JSON
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Annotated:
        return _typed(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(_typed, arguments))
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.deferred(lambda: st.lists(_typed(arguments[0]), max_size=2)).map(tuple)
    if origin is tuple:
        return st.tuples(*map(_typed, arguments))
    if origin is dict:
        return st.dictionaries(_typed(arguments[0]), _typed(arguments[1]), max_size=2)
    if wanted in _OF_TYPE:
        return _OF_TYPE[wanted]
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return st.sampled_from(wanted)
    if isinstance(wanted, type) and issubclass(wanted, BaseModel):
        return st.deferred(lambda: _model(wanted))
    raise TypeError(f"say how to draw {wanted!r}")
