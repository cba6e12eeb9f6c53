"""The one way a picture reaches a browser or a script: by conversation and handle, for its owner only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import Picture, PictureFile, Studio
from webui.http.sessions import Sessions, Visitor
from webui.http.visitor_routes import IMMUTABLE, NO_CACHE, attachment, visitor_route
from webui.words import load_words

MAX_EDGE_PX = 2048
_DIGEST = re.compile(r"[0-9a-f]{64}")
# Other scripts have digits that are no numbers.
_NUMBER = re.compile(r"[0-9]{1,4}")


def media_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/media/{conversation}/{picture}`.

    `picture` is a handle without `#`, or the digest of its bytes. `?size=` asks for a preview whose longer edge has at
    most that many pixels, `?download=1` for a file with a name and the picture's recipe in it, with `&clean=1` for one
    that says nothing, with `&original=1` for the bytes as they came. The pixels are the same in each.
    `?unrecorded=1` asks for the bytes of a picture that a full disk takes no record of, by their digest. Without our
    cookie or a signed query it answers 403, for a picture its owner does not have 404, 422 for a file that cannot be
    cleaned.
    """

    def visitor_of(request: Request) -> Visitor | None:
        visitor, where = sessions.visitor(request), request.path_params
        known = visitor if visitor.token is not None else None
        owner = sessions.link_owner(request.query_params, where["conversation"], where["picture"])
        if owner is None or (known is not None and known.owner == owner):
            return known
        # A link speaks for its owner in any browser, also in one that has another visitor's cookie.
        return Visitor(None, owner, load_words("en"))

    async def media(request: Request, visitor: Visitor) -> Response:
        query, owner, source = request.query_params, visitor.owner, studio()
        conversation_id, name = request.path_params["conversation"], request.path_params["picture"]
        if query.get("unrecorded") == "1":
            data, mime_type = await source.unrecorded_picture(conversation_id, name, owner)
            kind = mime_type.removeprefix("image/")
            headers = {**NO_CACHE, **attachment(f"aivista-{name[:8]}.{kind}")}
            return Response(data, media_type=mime_type, headers=headers)
        handle = await _handle(source, conversation_id, name, owner)
        size = query.get("size", "")
        if _NUMBER.fullmatch(size) and 0 < int(size) <= MAX_EDGE_PX:
            data, mime_type = await source.thumbnail(conversation_id, handle, int(size), owner)
            return Response(data, media_type=mime_type, headers=IMMUTABLE)
        if query.get("download") != "1":
            stored = await source.picture(conversation_id, handle, owner)
            return Response(stored.data, media_type=stored.mime_type, headers=IMMUTABLE)
        file, kind = await _file(source, query, conversation_id, handle, owner, sessions.key(visitor))
        headers = {**NO_CACHE, **attachment(download_name(file.picture, kind))}
        return Response(file.data, media_type=file.picture.image.mime_type, headers=headers)

    return [visitor_route("/media/{conversation}/{picture}", sessions, media, visitor_of=visitor_of)]


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
