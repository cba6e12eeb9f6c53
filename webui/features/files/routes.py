"""Files of a conversation taken in and taken away, as they are: the addresses beside the actions."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import NEW_FILE, AivistaError, RequestRefused, Studio, Workspace, WorkspaceFile, checked_file_name
from webui.features.files.kinds import picture_type
from webui.http.sessions import COOKIE, Visitor
from webui.screen import Screen

_MOST_UPLOAD_BYTES = 1 << 20
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_Answer: TypeAlias = Callable[[Request, Visitor, str], Awaitable[Response]]


def file_routes(screen: Screen) -> Sequence[Route]:
    """Return the routes below `/aivista/files/{conversation}`: GET `raw` and `zip`, POST `upload`, which for `new`
    begins the conversation.

    Without our cookie they answer 403; what is refused 404, 409 (the name is taken), 413 or 422, with its `code`; 500
    when the records fail. Always with one sentence under `error`.
    """

    def workspace(visitor: Visitor, conversation: str) -> Workspace:
        return screen.studio().files(conversation, visitor.owner)

    async def raw(request: Request, visitor: Visitor, conversation: str) -> Response:
        """Answer with a file: a picture to be shown, anything else (or with `download`) to be kept."""
        file = await workspace(visitor, conversation).read(request.query_params.get("name", ""))
        shown = picture_type(file.content)
        if shown is not None and request.query_params.get("download") != "1":
            return Response(file.content, media_type=shown, headers=_SAFE)
        return _kept(file.content, file.name.rpartition("/")[2], "application/octet-stream")

    async def pack(request: Request, visitor: Visitor, conversation: str) -> Response:
        """Answer with all files as a zip archive."""
        source = workspace(visitor, conversation)
        found = [await source.read(one.name) for one in await source.list()]
        plain = re.sub(r"[^\w-]", "", conversation, flags=re.ASCII)[:64]
        return _kept(await asyncio.to_thread(_zip_of, found), f"aivista-files-{plain}.zip", "application/zip")

    async def upload(request: Request, visitor: Visitor, conversation: str) -> Response:
        """Save what was sent under `name`: a new file, or with `replace` whatever is there."""
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
        return JSONResponse({"conversation": conversation, "name": info.name}, headers=_SAFE)

    def route(path: str, method: str, work: _Answer) -> Route:
        async def answer(request: Request) -> Response:
            visitor = screen.sessions.visitor(request)
            if screen.sessions.token_of(request.cookies.get(COOKIE)) is None:
                return JSONResponse({"error": visitor.words("route.not_yours")}, 403, _SAFE)
            try:
                return await work(request, visitor, request.path_params["conversation"])
            except AivistaError as error:
                is_refused = isinstance(error, RequestRefused)
                told = {"error": visitor.words.error(error.info), "code": error.code.value if is_refused else ""}
                return JSONResponse(told, error.code.http_status if is_refused else 500, _SAFE)

        return Route(f"/aivista/files/{{conversation}}/{path}", answer, methods=[method])

    return [route("raw", "GET", raw), route("zip", "GET", pack), route("upload", "POST", upload)]


async def begun(studio: Studio, owner: str, name: str) -> str:
    """Return a new conversation for a file of this name."""
    title = checked_file_name(name).rpartition("/")[2]
    conversation = await studio.conversations.create(owner)
    # Without a title it is not listed before a message was sent, and its files would be out of sight.
    await studio.conversations.rename(conversation.id, title, owner)
    return conversation.id


def _kept(content: bytes, name: str, media_type: str) -> Response:
    plain = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
    attachment = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    return Response(content, media_type=media_type, headers={**_SAFE, "Content-Disposition": attachment})


def _zip_of(files: Sequence[WorkspaceFile]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, file.updated_at.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.content)
    return packed.getvalue()
