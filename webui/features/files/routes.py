"""Files of a conversation taken in and taken away, as they are: the addresses beside the actions."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import NEW_FILE, Studio, Workspace, WorkspaceFile, checked_file_name
from webui.features.files.kinds import picture_type
from webui.http.sessions import Visitor
from webui.http.visitor_routes import NO_STORE, Work, as_json, attachment, visitor_route
from webui.screen import Screen

_MOST_UPLOAD_BYTES = 1 << 20


def file_routes(screen: Screen) -> Sequence[Route]:
    """Return the routes below `/aivista/files/{conversation}`: GET `raw` and `zip`, POST `upload`, which for `new`
    begins the conversation.

    What is refused is told with its `code` and one sentence under `error`: 404, 409 (the name is taken), 413 or 422.
    """

    def workspace(visitor: Visitor, conversation: str) -> Workspace:
        return screen.studio().files(conversation, visitor.owner)

    async def raw(request: Request, visitor: Visitor) -> Response:
        """Answer with a file: a picture to be shown, anything else (or with `download`) to be kept."""
        conversation = request.path_params["conversation"]
        file = await workspace(visitor, conversation).read(request.query_params.get("name", ""))
        shown = picture_type(file.content)
        if shown is not None and request.query_params.get("download") != "1":
            return Response(file.content, media_type=shown, headers=NO_STORE)
        return _kept(file.content, file.name.rpartition("/")[2], "application/octet-stream")

    async def pack(request: Request, visitor: Visitor) -> Response:
        """Answer with all files as a zip archive."""
        conversation = request.path_params["conversation"]
        source = workspace(visitor, conversation)
        found = [await source.read(one.name) for one in await source.list()]
        plain = re.sub(r"[^\w-]", "", conversation, flags=re.ASCII)[:64]
        return _kept(await asyncio.to_thread(_zip_of, found), f"aivista-files-{plain}.zip", "application/zip")

    async def upload(request: Request, visitor: Visitor) -> Response:
        """Save what was sent under `name`: a new file, or with `replace` whatever is there."""
        conversation = request.path_params["conversation"]
        name, data = request.query_params.get("name", ""), bytearray()
        async for some in request.stream():
            data += some
            if len(data) > _MOST_UPLOAD_BYTES:
                # One byte more than a file may have is enough for the workspace to refuse it by name.
                del data[_MOST_UPLOAD_BYTES + 1 :]
                break
        if conversation == "new":
            conversation = await begun(screen.studio(), visitor.owner, name)
        # What a file from elsewhere says, nobody here has written.
        info = await workspace(visitor, conversation).write(
            name,
            bytes(data),
            by="person",
            expected_version=None if request.query_params.get("replace") == "1" else NEW_FILE,
            is_untrusted=True,
        )
        return JSONResponse({"conversation": conversation, "name": info.name}, headers=NO_STORE)

    routes: list[tuple[str, str, Work]] = [("raw", "GET", raw), ("zip", "GET", pack), ("upload", "POST", upload)]
    return [
        visitor_route(f"/aivista/files/{{conversation}}/{name}", screen.sessions, work, method=method, refusal=as_json)
        for name, method, work in routes
    ]


async def begun(studio: Studio, owner: str, name: str) -> str:
    """Return a new conversation for a file of this name."""
    title = checked_file_name(name).rpartition("/")[2]
    conversation = await studio.conversations.create(owner)
    # Without a title it is not listed before a message was sent, and its files would be out of sight.
    await studio.conversations.rename(conversation.id, title, owner)
    return conversation.id


def _kept(content: bytes, name: str, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers={**NO_STORE, **attachment(name)})


def _zip_of(files: Sequence[WorkspaceFile]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, file.updated_at.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.content)
    return packed.getvalue()
