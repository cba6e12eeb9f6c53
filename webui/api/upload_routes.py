"""Pictures and masks sent ahead of a turn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, File, Form, UploadFile

from agent.errors import ErrorCode, RequestRefused
from agent.imaging.intake import MAX_UPLOAD_MEGABYTES, take_in
from agent.messages import Value
from webui.api.door import TheCaller, TheDoor

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
    file: Annotated[UploadFile, File(description="PNG, JPEG, WebP, GIF, HEIC or AVIF, at most 20 MB.")],
    kind: Annotated[Literal["picture", "mask"], Form()] = "picture",
) -> UploadView:
    """Send a picture or a mask ahead. It is kept for an hour, for its owner alone."""
    name, data = file.filename or "", await file.read()
    width = height = None
    if kind == "picture":
        taken = await take_in(data, name)
        width, height = taken.width, taken.height
    elif len(data) > MAX_UPLOAD_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_UPLOAD_MEGABYTES)
    upload_id, until_s = door.uploads.put(caller.owner, name, data)
    return UploadView(id=upload_id, expires_at=datetime.fromtimestamp(until_s, UTC), width=width, height=height)
