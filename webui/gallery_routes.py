"""The gallery's own addresses: pages of cells, what there is to choose from, changes, and pictures to take away."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationError
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from agent import (
    EXACT_ADJUSTMENT_LABEL,
    MAX_TAG_CHARACTERS,
    AivistaError,
    GalleryItem,
    GalleryQuery,
    GallerySource,
    RequestRefused,
    Studio,
    Value,
)
from webui.media import download_name
from webui.panels.gallery import LONGEST_QUERY, cells_html
from webui.sessions import COOKIE, Sessions, Visitor
from webui.whole_json import whole_body
from webui.words import Words

PAGE_SIZE = 60
MOST_AT_ONCE = 5000
READY_S = 600.0
_MOST_READY = 3
_MOST_BYTES = 200_000
_HEADERS = {"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin"}

Ids: TypeAlias = Annotated[tuple[int, ...], Field(min_length=1, max_length=MOST_AT_ONCE)]
Short: TypeAlias = Annotated[str, Field(max_length=100)]


class Asked(Value):
    """A page as the page's script asks for it."""

    words: str = Field(default="", max_length=LONGEST_QUERY)
    conversation: Short | None = None
    source: GallerySource | None = None
    starred: Literal["1"] | None = None
    model: Short | None = None
    shape: Short | None = None
    tag: str | None = Field(default=None, max_length=MAX_TAG_CHARACTERS)
    day_from: date | None = None
    day_to: date | None = None
    kept: Literal["1"] | None = None
    similar: int | None = None
    groups: Literal["day", "conversation"] = "day"
    after: Short | None = None

    @property
    def query(self) -> GalleryQuery:
        """What the gallery is asked."""
        return GalleryQuery(
            after=self.after,
            limit=PAGE_SIZE,
            conversation_id=self.conversation,
            model=self.model,
            shape=self.shape,
            source=self.source,
            day_from=self.day_from,
            day_to=self.day_to,
            is_starred=True if self.starred else None,
            tag=self.tag,
            hides_rejected=self.kept is not None,
            is_by_conversation=self.groups == "conversation",
            words=self.words,
            similar_to=self.similar,
        )


class Change(Value):
    """What shall be done with the pictures that were chosen."""

    act: Literal["star", "unstar", "tag", "untag", "delete", "undelete"]
    ids: Ids
    tag: str = Field(default="", max_length=MAX_TAG_CHARACTERS)


class Wanted(Value):
    """Pictures to take away; `clean` ones carry no recipe, nor anything else that is said of them."""

    ids: Ids
    clean: bool = False


@dataclass(frozen=True)
class _Ready:
    owner: str
    path: Path
    count: int
    until_s: float


@dataclass
class Shelf:
    """Files that were packed and are not fetched yet; each is given once, and thrown away when nobody comes for it, or
    its owner has others packed instead."""

    clock: Callable[[], float] = time.monotonic
    _ready: dict[str, _Ready] = field(default_factory=dict)

    def put(self, owner: str, path: Path, count: int) -> str:
        """Return the name under which the owner fetches the file."""
        now, theirs = self.clock(), [name for name, one in self._ready.items() if one.owner == owner]
        old = [name for name, one in self._ready.items() if one.until_s < now]
        for gone in {*old, *theirs[: 1 - _MOST_READY]}:
            self._ready.pop(gone).path.unlink(missing_ok=True)
        name = secrets.token_urlsafe(16)
        self._ready[name] = _Ready(owner, path, count, self.clock() + READY_S)
        return name

    def take(self, owner: str, name: str) -> tuple[Path, int] | None:
        """Return the file of that name, which is the caller's to remove, and how many pictures are in it."""
        one = self._ready.get(name)
        if one is None or one.owner != owner:
            return None
        del self._ready[name]
        return one.path, one.count


@dataclass(frozen=True)
class _Pages:
    studio: Callable[[], Studio]
    sessions: Sessions
    shelf: Shelf

    async def page(self, visitor: Visitor, request: Request) -> Response:
        """Answer with the cells of a page."""
        asked = Asked.model_validate({name: one for name, one in request.query_params.items() if one})
        page = await self.studio().gallery.page(visitor.owner, asked.query, key=self.sessions.key(visitor))
        answer = {"cells": cells_html(visitor.words, page.items), "next": page.next, "found": page.found}
        return _json({**answer, "is_whole": page.is_whole})

    async def facets(self, visitor: Visitor, request: Request) -> Response:
        """Answer with how many pictures there are of each kind; `here` are those of the conversation that is named."""
        facets = await self.studio().gallery.facets(visitor.owner)
        here = await self._here(visitor, request.query_params.get("conversation", ""))
        # What was done without a model has a name of its own in each language.
        names = {EXACT_ADJUSTMENT_LABEL: visitor.words("receipt.exact")}
        return _json({**facets.model_dump(), "here": here, "names": names})

    async def _here(self, visitor: Visitor, conversation_id: str) -> int:
        if not conversation_id or len(conversation_id) > 100:
            return 0
        return await self.studio().gallery.count(visitor.owner, GalleryQuery(conversation_id=conversation_id))

    async def change(self, visitor: Visitor, request: Request) -> Response:
        """Do what was asked; answer with the pictures as they are now, and with what to say."""
        change = Change.model_validate_json(await _body(request))
        gallery, owner, ids = self.studio().gallery, visitor.owner, change.ids
        match change.act:
            case "star" | "unstar":
                done = await gallery.star(owner, ids, change.act == "star")
            case "tag":
                done = await gallery.tag(owner, ids, change.tag)
            case "untag":
                done = await gallery.untag(owner, ids, change.tag)
            case "delete":
                done = await gallery.delete(owner, ids)
            case "undelete":
                done = await gallery.undelete(owner, ids)
        items = await gallery.items(owner, done)
        return _json(
            {"ids": done, "items": [_brief(item) for item in items], "said": _said(visitor.words, change, done)}
        )

    async def pack(self, visitor: Visitor, request: Request) -> Response:
        """Pack the pictures; answer with the address of the file."""
        wanted = Wanted.model_validate_json(await _body(request))
        kind = "clean" if wanted.clean else ""
        packed = await self.studio().gallery.zip_of(
            visitor.owner,
            wanted.ids,
            name_of=lambda picture: download_name(picture, kind),
            bytes_of=lambda item: self._taken_away(visitor, item, is_clean=wanted.clean),
        )
        name = self.shelf.put(visitor.owner, Path(packed.path), packed.count)
        said = visitor.words.counted("gallery.zipped", packed.count)
        if packed.left_out:
            said = visitor.words("gallery.zipped_some", count=packed.count, left_out=", ".join(packed.left_out))
        return _json({"address": f"aivista/gallery/zip/{name}", "said": said})

    async def _taken_away(self, visitor: Visitor, item: GalleryItem, *, is_clean: bool) -> bytes:
        desk, place = self.studio().recipes, (item.conversation_id, item.picture.handle, visitor.owner)
        if is_clean:
            return (await desk.clean(*place)).data
        return (await desk.with_recipe(*place, key=self.sessions.key(visitor))).data

    async def fetch(self, visitor: Visitor, request: Request) -> Response:
        """Answer with a packed file and throw it away."""
        found = self.shelf.take(visitor.owner, request.path_params["name"])
        if found is None:
            return PlainTextResponse(visitor.words("route.no_file"), status_code=404, headers=_HEADERS)
        path, count = found
        return FileResponse(
            path,
            media_type="application/zip",
            filename=f"aivista-pictures-{count}.zip",
            headers={**_HEADERS, "X-Content-Type-Options": "nosniff"},
            background=BackgroundTask(path.unlink, missing_ok=True),
        )


def gallery_routes(studio: Callable[[], Studio], sessions: Sessions, shelf: Shelf | None = None) -> list[Route]:
    """Return the routes below `/aivista/gallery`: GET `page`, `facets`, `zip/{name}`; POST `change`, `zip`.

    Without our cookie they answer 403, to what cannot be read 400, to what the owner does not have 404, and 500 when
    the records fail; always with one sentence under `error`.
    """
    pages = _Pages(studio, sessions, shelf or Shelf())
    kept = (
        ("page", "GET", pages.page),
        ("facets", "GET", pages.facets),
        ("change", "POST", pages.change),
        ("zip", "POST", pages.pack),
        ("zip/{name}", "GET", pages.fetch),
    )
    return [Route(f"/aivista/gallery/{path}", _guarded(sessions, work), methods=[how]) for path, how, work in kept]


def _guarded(
    sessions: Sessions, work: Callable[[Visitor, Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if sessions.token_of(request.cookies.get(COOKIE)) is None:
            return _json({"error": sessions.visitor(request).words("route.not_yours")}, 403)
        visitor = sessions.visitor(request)
        try:
            return await work(visitor, request)
        except ValidationError:
            return _json({"error": visitor.words("gallery.unreadable")}, 400)
        except RequestRefused as error:
            return _json({"error": visitor.words.error(error.info)}, 404)
        except AivistaError as error:
            return _json({"error": visitor.words.error(error.info)}, 500)

    return answer


async def _body(request: Request) -> bytes:
    """Return what was sent, cut where nothing that we ask for is as long: then it cannot be read."""
    found = bytearray()
    async for some in request.stream():
        found += some
        if len(found) > _MOST_BYTES:
            return b""
    return whole_body(bytes(found))


def _brief(item: GalleryItem) -> dict[str, Any]:
    return {"id": item.id, "is_starred": item.is_starred, "tags": item.tags}


def _said(words: Words, change: Change, done: tuple[int, ...]) -> str:
    if not done:
        return words("gallery.gone")
    if change.act == "delete":
        return words.counted("gallery.deleted", len(done))
    if change.act == "undelete":
        return words.counted("gallery.restored", len(done))
    if change.act == "tag":
        return words.counted("gallery.tagged", len(done), tag=" ".join(change.tag.split()))
    return ""


def _json(content: Mapping[str, Any], status_code: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code, _HEADERS)
