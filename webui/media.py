"""The one way a picture reaches a browser or a script: by conversation and handle, for its owner only."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agent.errors import AivistaError, ErrorCode
from agent.pictures import Picture
from agent.studio import Studio
from webui.sessions import COOKIE, Sessions

MAX_EDGE_PX = 2048
_DIGEST = re.compile(r"[0-9a-f]{64}")
_HEADERS = {
    "Cache-Control": "private, max-age=86400, immutable",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def media_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/media/{conversation}/{picture}`.

    `picture` is a handle without `#`, or the digest of its bytes. `?size=` asks for a preview whose longer edge has at
    most that many pixels, `?download=1` for a file with a name. Without our cookie or a signed query it answers 403,
    for a picture its owner does not have 404.
    """

    async def media(request: Request) -> Response:
        conversation_id, name = request.path_params["conversation"], request.path_params["picture"]
        owner = _owner(request, sessions, conversation_id, name)
        if owner is None:
            return PlainTextResponse("This picture is not yours to see.", status_code=403)
        try:
            return await _answer(studio(), request, conversation_id, name, owner)
        except AivistaError as error:
            is_missing = error.code in (ErrorCode.PICTURE_NOT_FOUND, ErrorCode.CONVERSATION_NOT_FOUND)
            return PlainTextResponse("There is no such picture.", status_code=404 if is_missing else 500)

    return [Route("/media/{conversation}/{picture}", media, methods=["GET"])]


def _owner(request: Request, sessions: Sessions, conversation_id: str, name: str) -> str | None:
    token = sessions.token_of(request.cookies.get(COOKIE))
    if token is not None:
        return sessions.owner(token)
    return sessions.link_owner(request.query_params, conversation_id, name)


async def _answer(studio: Studio, request: Request, conversation_id: str, name: str, owner: str) -> Response:
    handle = await _handle(studio, conversation_id, name, owner)
    size = request.query_params.get("size", "")
    if size.isdigit() and 0 < int(size) <= MAX_EDGE_PX:
        data, mime_type = await studio.thumbnail(conversation_id, handle, int(size), owner)
        return Response(data, media_type=mime_type, headers=_HEADERS)
    stored = await studio.picture(conversation_id, handle, owner)
    headers = dict(_HEADERS)
    if request.query_params.get("download") == "1":
        file_name = download_name(stored.picture)
        plain = file_name.encode("ascii", "ignore").decode() or "aivista.png"
        headers["Content-Disposition"] = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name)}"
    return Response(stored.data, media_type=stored.mime_type, headers=headers)


async def _handle(studio: Studio, conversation_id: str, name: str, owner: str) -> str:
    if not _DIGEST.fullmatch(name):
        return name
    conversation = await studio.conversation(conversation_id, owner)
    return next((picture.handle for picture in conversation.pictures if picture.image.digest == name), name)


def download_name(picture: Picture) -> str:
    """Return a file name a person finds again: the handle and the first words of the wish."""
    wish = picture.receipt.user_text if picture.receipt else ""
    words = re.findall(r"\w+", wish)[:6]
    extension = {"image/jpeg": "jpg", "image/webp": "webp"}.get(picture.image.mime_type, "png")
    return "-".join(["aivista", picture.handle.lstrip("#"), *words])[:80] + f".{extension}"
