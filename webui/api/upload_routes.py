"""Pictures and masks sent ahead of a turn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile

from agent import (
    MAX_MASK_MEGABYTES,
    MAX_UPLOAD_MEGABYTES,
    MAX_VISITOR_UPLOAD_MEGABYTES,
    ErrorCode,
    RequestRefused,
    Value,
    take_in_image,
    upload_limit_megabytes,
)
from webui.api.door import TheCaller, TheDoor

_FILE = (
    f"PNG (8 or 16 bits), JPEG, WebP, GIF, HEIC or AVIF, at most {MAX_UPLOAD_MEGABYTES} MB; "
    f"{MAX_VISITOR_UPLOAD_MEGABYTES} MB for anybody but the studio's owner."
)

router = APIRouter(prefix="/api/v1/uploads", tags=["uploads"])


class UploadView(Value):
    """An upload: what to call it in a turn, and until when. A mask's size is looked at when it is used."""

    id: str
    expires_at: datetime
    width: int | None = None
    height: int | None = None


@router.post("", status_code=201)
async def upload(
    door: TheDoor,
    caller: TheCaller,
    file: Annotated[UploadFile, File(description=_FILE)],
    kind: Annotated[Literal["picture", "mask"], Form()] = "picture",
) -> UploadView:
    """Send a picture or a mask ahead. It is kept for an hour, for its owner alone."""
    name, data = file.filename or "", await file.read()
    width = height = None
    if kind == "picture":
        taken = await take_in_image(data, name, limit_megabytes=upload_limit_megabytes(caller.owner))
        width, height = taken.width, taken.height
    elif len(data) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    upload_id, until_s = door.uploads.put(caller.owner, name, data)
    return UploadView(id=upload_id, expires_at=datetime.fromtimestamp(until_s, UTC), width=width, height=height)
