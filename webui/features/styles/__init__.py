"""The style library: found by words or by family, shown as pictures, tried in a turn, and filled with one's own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    MAX_GALLERY_PAGE,
    MAX_STYLE_IMAGE_BYTES,
    AivistaError,
    ErrorCode,
    GalleryQuery,
    RequestRefused,
    Style,
    StyleDraft,
    StyleMatch,
    Value,
)
from webui.features.styles.finding import FAMILIES, MINE, Shown, family_name, found, grouped, in_family, title_of
from webui.features.styles.forms import draft_fields, fields_of, refusal
from webui.sample_picture import sample_picture
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.patches import Patch, Reply, Toast, Undo

LONGEST_QUERY = 200
FILE_NAME = "aivista-styles.json"
PREVIEW_PX = 320
_MADE_PX = 480
_MOST_MATCHES = 24
# Nobody need wait longer for a first answer to what they typed.
_AT_ONCE_S = 0.25
# Whoever types into the box looks around: what a turn would leave aside is still worth showing.
_FLOOR = 0.35


class Look(Value):
    """What is looked for: words, a family, or everything. Who is `patient` waits for styles that mean the same."""

    query: str = Field(default="", max_length=LONGEST_QUERY)
    family: str = Field(default="", max_length=40)
    patient: bool = False


class Chosen(Look):
    """A style, out of those that are looked at."""

    id: str = Field(default="", max_length=64)


class Form(Value):
    """A style as it was written; without an id a new one."""

    id: str = Field(default="", max_length=64)
    fields: Mapping[str, Annotated[str, Field(max_length=5000)]]


class Deleted(Look):
    """A style that was deleted, to be brought back."""

    style: StyleDraft


class File(Value):
    """A file of styles."""

    text: str


def _routes(screen: Screen) -> Sequence[Route]:
    known: dict[str, bytes] = {}
    # A page asks for many, and what takes long holds up whatever else it asks.
    drawing = asyncio.Semaphore(2)

    def drawn(style_id: str) -> bytes | None:
        return screen.studio().styles.drawn(style_id, sample_picture(), PREVIEW_PX)

    async def preview(request: Request) -> Response:
        style_id = request.path_params["id"]
        async with drawing:
            data = known.get(style_id) or await asyncio.to_thread(drawn, style_id)
        if data is None:
            return Response(status_code=404)
        known[style_id] = data
        return Response(data, media_type="image/webp", headers={"Cache-Control": "public, max-age=86400"})

    return [Route("/aivista/styles/{id}.webp", preview, methods=["GET"])]


styles = Feature("styles", _routes, refusal)


@styles.action
async def open(at: Context, look: Look) -> Reply:
    """Show the library."""
    at.screen.studio().keep_alive(_warm_up(at))
    shown = await _shown(at, look)
    return Reply(patches=(at.fragment("styles", "styles/dialog.html", limit=LONGEST_QUERY, **shown),))


@styles.action
async def find(at: Context, look: Look) -> Reply:
    """Show what fits. Where the library takes its time, first what merely says the words."""
    finding = asyncio.create_task(_shown(at, look))
    try:
        await asyncio.wait([finding], timeout=None if look.patient else _AT_ONCE_S)
        if finding.done():
            return Reply(patches=(_list(at, await finding),))
        return Reply(patches=(_list(at, await _shown(at, look, is_quick=True)),), events={"styles-more": True})
    finally:
        finding.cancel()


@styles.action
async def form(at: Context, chosen: Chosen) -> Reply:
    """Show the form of a style of one's own, or of a new one."""
    style = await _own(at, chosen.id) if chosen.id else None
    fields = fields_of(style, at.words.language)
    return Reply(
        patches=(
            at.fragment("sty-form", "styles/form.html", "styles-box", id=style.id if style else "", fields=fields),
        ),
        events={"styles-form": True},
    )


@styles.action
async def save(at: Context, form: Form) -> Reply:
    """Keep a style as it was written, and show one's own."""
    library, owner = at.screen.studio().styles, at.visitor.owner
    if form.id:
        before = await _own(at, form.id)
        style = await library.edit(before.id, draft_fields(form.fields, before), owner)
    else:
        style = await library.add(draft_fields(form.fields), owner)
    return await _done(at, Look(family=MINE), at.words("styles.saved", title=title_of(at.words, style)))


@styles.action
async def delete(at: Context, chosen: Chosen) -> Reply:
    """Delete a style of one's own."""
    style = await _own(at, chosen.id)
    await at.screen.studio().styles.delete(style.id, at.visitor.owner)
    back: dict[str, JsonValue] = {**chosen.model_dump(exclude={"id"}), "style": style.draft.model_dump(mode="json")}
    said = at.words("styles.deleted", title=title_of(at.words, style))
    return await _done(at, chosen, said, styles.undo(restore, back))


@styles.action
async def restore(at: Context, deleted: Deleted) -> Reply:
    """Bring back a style that was just deleted."""
    style = await at.screen.studio().styles.add(deleted.style, at.visitor.owner)
    return await _done(at, deleted, at.words("styles.restored", title=title_of(at.words, style)))


@styles.action
async def take(at: Context, file: File) -> Reply:
    """Take in styles from a file. The page sends no more of one than shows that it is too large."""
    text = file.text[: MAX_STYLE_IMAGE_BYTES + 1].encode()
    taken = await at.screen.studio().styles.import_styles(text, at.visitor.owner)
    return await _done(at, Look(family=MINE), at.words.counted("styles.imported", len(taken)))


@styles.action
async def export(at: Context) -> Reply:
    """Hand out one's own styles as a file."""
    library, owner = at.screen.studio().styles, at.visitor.owner
    own = [style for style in await library.all(owner) if style.is_own]
    if not own:
        return Reply(toast=Toast(text=at.words("styles.nothing_to_export"), is_problem=True))
    text = (await library.export_styles(owner)).decode()
    said = Toast(text=at.words.counted("styles.exported", len(own)))
    return Reply(toast=said, events={"save": {"name": FILE_NAME, "text": text}})


async def _done(at: Context, look: Look, said: str, undo: Undo | None = None) -> Reply:
    """Return the list as it is now, without the form, and what was done."""
    patches = _list(at, await _shown(at, look)), Patch(id="sty-form")
    return Reply(patches=patches, toast=Toast(text=said, undo=undo), events={"styles-done": look.family})


def _list(at: Context, shown: Mapping[str, Any]) -> Patch:
    return at.fragment("sty-list", "styles/list.html", "styles-box", **shown)


async def _shown(at: Context, look: Look, *, is_quick: bool = False) -> dict[str, Any]:
    """Return what the list shows: by family, or the surest first when something is sought."""
    library, words, query = at.screen.studio().styles, at.words, look.query.strip()
    everything, matches = await library.all(at.visitor.owner), list[StyleMatch]()
    if query and not is_quick:
        matches = await library.search(query, _MOST_MATCHES, _FLOOR, owner=at.visitor.owner, is_style=True)
    chosen = found(words, query, everything, matches) if query else [Shown(style) for style in everything]
    chosen = [one for one in chosen if in_family(one.style, look.family)]
    is_flat = bool(query or look.family)
    families = {"": words("styles.all"), MINE: words("styles.mine")}
    return {
        "query": query,
        "family": look.family,
        "count": len(chosen),
        "groups": [("", chosen)] if is_flat else [(family_name(words, name), ones) for name, ones in grouped(chosen)],
        "families": families | {family: family_name(words, family) for family in FAMILIES},
        "is_own_family": look.family == MINE and not query,
        # What trying one may cost at most.
        "price": at.screen.view(at.visitor, "").turn_price,
        "pictures": await _made(at),
        "title_of": lambda style: title_of(words, style),
    }


async def _made(at: Context) -> dict[str, str]:
    """Return the address of the newest picture that the visitor has made in each style, by the style's English name."""
    page = await at.screen.studio().gallery.page(at.visitor.owner, GalleryQuery(limit=MAX_GALLERY_PAGE))
    made: dict[str, str] = {}
    for item in page.items:
        receipt = item.picture.receipt
        for use in receipt.styles if receipt is not None else ():
            view = at.screen.view(at.visitor, item.conversation_id)
            made.setdefault(use.name, view.url(item.picture.handle, _MADE_PX))
    return made


async def _own(at: Context, style_id: str) -> Style:
    """Return one of the visitor's own styles. Raises RequestRefused, also for a curated one."""
    style = await at.screen.studio().styles.get(style_id, at.visitor.owner)
    if not style.is_own:
        raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
    return style


async def _warm_up(at: Context) -> None:
    # A second for LanceDB: while one looks at the list, and not when one first types. A search that fails says so.
    with contextlib.suppress(AivistaError):
        await at.screen.studio().styles.warm_up(at.visitor.owner)
