"""The one way a picture reaches a browser or a script: by conversation and handle, for its owner only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agent import AivistaError, ErrorCode, Picture, PictureFile, RequestRefused, Studio
from webui.http.sessions import COOKIE, Sessions, Visitor
from webui.words import load_words

MAX_EDGE_PX = 2048
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HEADERS = {"Cache-Control": "private, max-age=86400, immutable", **_SAFE}
# A recipe may say something else tomorrow: the conversation was given another name.
_TAKEN_AWAY = {"Cache-Control": "private, no-cache", **_SAFE}
_MISSING = (ErrorCode.PICTURE_NOT_FOUND, ErrorCode.PICTURE_DELETED, ErrorCode.CONVERSATION_NOT_FOUND)


def media_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/media/{conversation}/{picture}`, and the one that reads a recipe (`webui.recipes`).

    `picture` is a handle without `#`, or the digest of its bytes. `?size=` asks for a preview whose longer edge has at
    most that many pixels, `?download=1` for a file with a name and the picture's recipe in it, with `&clean=1` for one
    that says nothing, with `&original=1` for the bytes as they came. The pixels are the same in each.
    `?unrecorded=1` asks for the bytes of a picture that a full disk takes no record of, by their digest. Without our
    cookie or a signed query it answers 403, for a picture its owner does not have 404, 422 for a file that cannot be
    cleaned.
    """

    async def media(request: Request) -> Response:
        conversation_id, name = request.path_params["conversation"], request.path_params["picture"]
        visitor = _visitor(request, sessions, conversation_id, name)
        if visitor is None:
            return PlainTextResponse(sessions.visitor(request).words("route.not_yours"), status_code=403)
        try:
            return await _answer(studio(), request, conversation_id, name, visitor, sessions.key(visitor))
        except RequestRefused as error:
            if error.code in _MISSING:
                return PlainTextResponse(visitor.words("route.no_picture"), status_code=404)
            if error.code is ErrorCode.PICTURE_FILE_MISSING:
                return PlainTextResponse(visitor.words.error(error.info), status_code=404)
            return PlainTextResponse(visitor.words.error(error.info), status_code=422)
        except AivistaError as error:
            return PlainTextResponse(visitor.words.error(error.info), status_code=500)

    return [Route("/media/{conversation}/{picture}", media, methods=["GET"])]


def _visitor(request: Request, sessions: Sessions, conversation_id: str, name: str) -> Visitor | None:
    has_cookie = sessions.token_of(request.cookies.get(COOKIE)) is not None
    visitor = sessions.visitor(request) if has_cookie else None
    owner = sessions.link_owner(request.query_params, conversation_id, name)
    if owner is None or (visitor is not None and visitor.owner == owner):
        return visitor
    # A link speaks for its owner in any browser, also in one that has another visitor's cookie.
    return Visitor(None, owner, load_words("en"))


async def _answer(
    studio: Studio, request: Request, conversation_id: str, name: str, visitor: Visitor, key: SecretStr | None
) -> Response:
    query, owner = request.query_params, visitor.owner
    if query.get("unrecorded") == "1":
        data, mime_type = await studio.unrecorded_picture(conversation_id, name, owner)
        kind = mime_type.removeprefix("image/")
        disposition = f'attachment; filename="aivista-{name[:8]}.{kind}"'
        return Response(data, media_type=mime_type, headers={**_TAKEN_AWAY, "Content-Disposition": disposition})
    handle = await _handle(studio, conversation_id, name, owner)
    size = query.get("size", "")
    if size.isdigit() and 0 < int(size) <= MAX_EDGE_PX:
        data, mime_type = await studio.thumbnail(conversation_id, handle, int(size), owner)
        return Response(data, media_type=mime_type, headers=_HEADERS)
    if query.get("download") != "1":
        stored = await studio.picture(conversation_id, handle, owner)
        return Response(stored.data, media_type=stored.mime_type, headers=_HEADERS)
    file, kind = await _file(studio, query, conversation_id, handle, owner, key)
    name = download_name(file.picture, kind)
    plain = name.encode("ascii", "ignore").decode() or "aivista.png"
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    headers = {**_TAKEN_AWAY, "Content-Disposition": disposition}
    return Response(file.data, media_type=file.picture.image.mime_type, headers=headers)


async def _file(
    studio: Studio, query: Mapping[str, str], conversation_id: str, handle: str, owner: str, key: SecretStr | None
) -> tuple[PictureFile, str]:
    """Return the file to be taken away, and what its name says of it."""
    if query.get("original") == "1":
        return await studio.recipes.original(conversation_id, handle, owner), "original"
    if query.get("clean") == "1":
        return await studio.recipes.clean(conversation_id, handle, owner), "clean"
    return await studio.recipes.with_recipe(conversation_id, handle, owner, key=key), ""


async def _handle(studio: Studio, conversation_id: str, name: str, owner: str) -> str:
    if not _DIGEST.fullmatch(name):
        return name
    conversation = await studio.conversations.get(conversation_id, owner)
    return next((picture.handle for picture in conversation.all_pictures if picture.image.digest == name), name)


def download_name(picture: Picture, kind: str = "") -> str:
    """Return a file name a person finds again: the handle, the first words of the wish and what kind of copy it is."""
    wish = picture.receipt.user_text if picture.receipt else ""
    words = re.findall(r"\w+", wish)[:6]
    extension = {"image/jpeg": "jpg", "image/webp": "webp"}.get(picture.image.mime_type, "png")
    stem = "-".join(["aivista", picture.handle.lstrip("#"), *words])[:80]
    return f"{stem}{f'-{kind}' if kind else ''}.{extension}"
