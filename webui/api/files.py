"""The files of a conversation's workspace: listed, read, written, deleted. No name of theirs leads to the disk."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Request, Response

from agent import NEW_FILE, FileInfo, Value
from webui.api.door import TheCaller, TheDoor
from webui.api.pictures import SAFE
from webui.api.problems import RefusalCode, Refused

router = APIRouter(prefix="/api/v1/conversations/{conversation_id}/files", tags=["files"])

_VERSION = re.compile(r'"?([0-9]{1,15})"?')
_RAW = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}}
IfMatch = Annotated[str, Header(max_length=100, description="The version that is expected.")]
IfNoneMatch = Annotated[str, Header(max_length=100, description="`*`: the file must not be there yet.")]


class Files(Value):
    """What files there are, by name."""

    files: tuple[FileInfo, ...]


@router.get("")
async def list_files(door: TheDoor, caller: TheCaller, conversation_id: str) -> Files:
    """Return what files there are."""
    return Files(files=await door.studio().files(conversation_id, caller.owner).list())


@router.get("/{name:path}", response_class=Response)
async def read_file(door: TheDoor, caller: TheCaller, conversation_id: str, name: str) -> Response:
    """Return what a file holds, never to be shown as a page; its version is the ETag."""
    file = await door.studio().files(conversation_id, caller.owner).read(name)
    last = file.name.rpartition("/")[2]
    plain = re.sub(r"[^\w. -]", "_", last, flags=re.ASCII)
    headers = {
        **SAFE,
        "Cache-Control": "no-store",
        "ETag": f'"{file.version}"',
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last)}",
    }
    return Response(file.content, media_type="application/octet-stream", headers=headers)


@router.put("/{name:path}", openapi_extra=_RAW)
async def write_file(
    door: TheDoor,
    caller: TheCaller,
    conversation_id: str,
    name: str,
    request: Request,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
) -> FileInfo:
    """Write a file, a new one or in the place of what it holds: the body as it is. One without a body is refused."""
    expected = NEW_FILE if if_none_match.strip() == "*" else _version(if_match)
    data = await request.body()
    if not data:
        # A body that was forgotten must not empty a file.
        raise Refused(RefusalCode.UNREADABLE, problem="body")
    workspace = door.studio().files(conversation_id, caller.owner)
    return await workspace.write(name, data, by="person", expected_version=expected, is_untrusted=True)


@router.delete("/{name:path}", status_code=204)
async def delete_file(
    door: TheDoor, caller: TheCaller, conversation_id: str, name: str, if_match: IfMatch = ""
) -> None:
    """Delete a file for good."""
    workspace = door.studio().files(conversation_id, caller.owner)
    await workspace.delete(name, expected_version=_version(if_match))


def _version(if_match: str) -> int | None:
    if not if_match.strip():
        return None
    match = _VERSION.fullmatch(if_match.strip())
    if match is None:
        raise Refused(RefusalCode.UNREADABLE, problem="If-Match")
    return int(match[1])
