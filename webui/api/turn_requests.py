"""What a program sends for a turn: JSON that names uploads or holds data URLs, or a form with the files beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import Request
from pydantic import Field, StringConstraints
from starlette.datastructures import FormData, UploadFile

from agent import MAX_PICTURES_PER_MESSAGE, Asked, Expansion, Mask, TurnRequest, TurnSettings
from webui.api.problems import RefusalCode, Refused
from webui.api.uploads import UploadShelf
from webui.whole_json import whole_json

# Every picture may have a mask.
_MOST_FORM_FILES = 2 * MAX_PICTURES_PER_MESSAGE
_MOST_FORM_FIELDS = 20
_MOST_FIELD_BYTES = 1 << 20

Short: TypeAlias = Annotated[str, StringConstraints(max_length=100)]
Shorts: TypeAlias = Annotated[tuple[Short, ...], Field(max_length=100)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class MaskBody(Asked):
    """What of a picture may change (white), and which picture: its handle, or `upload:1` for the first of this request.

    `image` is the id of an upload or a data URL. In a form it may be left out: the files of the field `mask` stand for
    those that are, in their order.
    """

    handle: Short
    image: str = ""
    feather_px: Annotated[int, Field(ge=0, le=1000)] | None = None


class ExpansionBody(Asked):
    """How far a picture grows on each side, in fractions of its width and height."""

    handle: Short
    left: Share = 0.0
    top: Share = 0.0
    right: Share = 0.0
    bottom: Share = 0.0


class TurnBody(Asked):
    """A turn: words, pictures (ids of uploads, or data URLs), and what is chosen for it.

    The same `request_id` twice runs once. `editing` and `references` are handles; with `none` for `editing` the words
    make a new picture, without it they are about the newest; `roles` says what some are for. `masks` are of one picture
    each, as is `mask`; each of those pictures is changed by itself. `instead_of` is the id of a turn that this one is
    said otherwise for.
    """

    text: str = ""
    images: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    mask: MaskBody | None = None
    masks: Annotated[tuple[MaskBody, ...], Field(max_length=100)] = ()
    expand: ExpansionBody | None = None
    settings: TurnSettings = TurnSettings()
    editing: Short | None = None
    references: Shorts = ()
    roles: dict[Short, Short] = Field(default_factory=dict, max_length=100)
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    instead_of: Short | None = None


TURN_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/TurnBody"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["request"],
                    "properties": {
                        "request": {"type": "string", "description": "A TurnBody as JSON."},
                        "images": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "mask": {"type": "array", "items": {"type": "string", "format": "binary"}},
                    },
                }
            },
        },
    }
}


async def read_turn(request: Request, uploads: UploadShelf, owner: str) -> TurnRequest:
    """Return the turn that a request asks for.

    Raises pydantic's ValidationError for what does not fit, and Refused.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        body = TurnBody.model_validate_json(await request.body())
        return _turn(body, uploads, owner, (), ())
    async with request.form(
        max_files=_MOST_FORM_FILES, max_fields=_MOST_FORM_FIELDS, max_part_size=_MOST_FIELD_BYTES
    ) as form:
        told = form.get("request")
        if not isinstance(told, str):
            raise Refused(RefusalCode.UNREADABLE, problem="request")
        body = TurnBody.model_validate_json(whole_json(told))
        refuse_unknown(form, files=("images", "mask"), texts=("request",))
        files = [await read_file(file) for file in files_of(form, "images")]
        masks = [data for _, data in [await read_file(file) for file in files_of(form, "mask")]]
    return _turn(body, uploads, owner, files, masks)


def _turn(
    body: TurnBody,
    uploads: UploadShelf,
    owner: str,
    files: Sequence[tuple[str, bytes]],
    mask_files: Sequence[bytes],
) -> TurnRequest:
    named = [uploads.read(owner, written) for written in body.images]
    areas = [*([body.mask] if body.mask is not None else []), *body.masks]
    beside = list(reversed(mask_files))
    drawn = [uploads.read(owner, area.image)[1] if area.image or not beside else beside.pop() for area in areas]
    if beside:
        raise Refused(RefusalCode.UNREADABLE, problem="request.mask.handle")
    return TurnRequest(
        text=body.text,
        images=[(name, data) if name else data for name, data in (*named, *files)],
        mask=[Mask(image, area.handle, area.feather_px) for image, area in zip(drawn, areas, strict=True)],
        expand=Expansion(**body.expand.model_dump()) if body.expand is not None else None,
        settings=body.settings,
        editing=body.editing,
        references=body.references,
        roles=body.roles,
        request_id=body.request_id,
        instead_of=body.instead_of,
    )


def files_of(form: FormData, *fields: str) -> list[UploadFile]:
    """Return the files of these fields. One without name and content, as a browser sends for none, is left out."""
    found = (one for field in fields for one in form.getlist(field) if isinstance(one, UploadFile))
    return [one for one in found if one.filename or one.size]


async def read_file(file: UploadFile) -> tuple[str, bytes]:
    """Return a file's name and bytes."""
    return file.filename or "", await file.read()


def refuse_unknown(form: FormData, *, files: Collection[str], texts: Collection[str]) -> None:
    """Raise Refused for a file or a text in a field that takes none. Empty fields say nothing."""
    for name, value in form.multi_items():
        is_empty = not (value.filename or value.size) if isinstance(value, UploadFile) else not value
        if not is_empty and name not in (files if isinstance(value, UploadFile) else texts):
            raise Refused(RefusalCode.UNREADABLE, problem=f"{name[:40]}: Extra inputs are not permitted")
