"""The style library: searched by text or family, shown as pictures, tried in a turn, and extended with one's own
styles."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    MAX_GALLERY_PAGE,
    MAX_STYLE_IMAGE_BYTES,
    AivistaError,
    ErrorCode,
    ErrorInfo,
    GalleryQuery,
    MatchKind,
    RequestRefused,
    Style,
    StyleDraft,
    StyleMatch,
    Value,
)
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply, Toast, Undo
from webui.view import View
from webui.words import Words

LONGEST_QUERY = 200
FILE_NAME = "aivista-styles.json"
PREVIEW_PX = 320
_MADE_PX = 480
_MOST_MATCHES = 24
# Seconds that a user waits at most for a first answer to what they typed.
_AT_ONCE_S = 0.25
# The floor of similarity is lower here than in a turn: a browsing user wants to see weaker matches as well.
_FLOOR = 0.35
MINE = "mine"
# The families, in the order of the list. A style is listed under the first of its tags that is one.
FAMILIES = ("painting", "drawing", "illustration", "chinese", "print", "craft", "design", "photography", "film", "3d")
# A name with one such character is Chinese.
_FIRST_IDEOGRAPH = "\u2e80"
_COMMAS = re.compile(r"[,，、;；\n]")
# The library's validation errors, and the keys of their sentences on the page.
_SAID = (
    (re.compile("too short"), "styles.problem_short"),
    (re.compile("square brackets"), "styles.problem_brackets"),
    (re.compile("cannot be shown"), "styles.problem_characters"),
    (re.compile("it is empty"), "styles.problem_empty"),
    (re.compile("needs a name"), "styles.problem_name"),
    (re.compile(r"at most (?P<limit>\d+) character"), "styles.problem_long"),
    (re.compile(r"at most (?P<limit>\d+) item"), "styles.problem_many"),
    (re.compile(r"at least 1 item"), "styles.problem_phrases"),
    (re.compile(r"larger than (?P<limit>\d+) MB"), "styles.problem_large"),
    (re.compile("Invalid JSON"), "styles.problem_json"),
    (re.compile("Field required"), "styles.problem_missing"),
)
_PLACES = frozenset({"name", "aliases", "description", "phrases", "negative", "tags"})
SAMPLE_NAME = "sample.jpg"
_SAMPLE_WIDTH, _SAMPLE_HEIGHT = 960, 640
_SKY = ((108, 148, 190), (196, 206, 208), (238, 214, 184))
_GLOW, _SUN = (46.0, 34.0, 8.0), (40.0, 38.0, 30.0)
_NEAR, _FAR = np.array((38, 62, 66), np.float32), np.array((164, 180, 190), np.float32)
# Hills from the farthest to the nearest: their height, the height of their waves, and the length of those.
_HILLS = ((0.52, 0.05, 5.0), (0.58, 0.07, 3.4), (0.66, 0.06, 2.3), (0.75, 0.05, 1.5))

Pixels = NDArray[np.floating]


class StyleFilter(Value):
    """The filter: a text, a family, or nothing. With `patient`, wait for the styles that are found by meaning."""

    query: str = Field(default="", max_length=LONGEST_QUERY)
    family: str = Field(default="", max_length=40)
    patient: bool = False


class ChosenStyle(StyleFilter):
    """A style, with the filter that is shown."""

    id: str = Field(default="", max_length=64)


class StyleForm(Value):
    """A style as written in the form; without an id a new one."""

    id: str = Field(default="", max_length=64)
    fields: Mapping[str, Annotated[str, Field(max_length=5000)]]


class DeletedStyle(StyleFilter):
    """A deleted style to restore."""

    style: StyleDraft


class StyleFile(Value):
    """A file of styles."""

    text: str


def _routes(screen: Screen) -> Sequence[Route]:
    known: dict[str, bytes] = {}
    # A page requests many previews, and slow ones would hold up its other requests.
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


def refusal(words: Words, info: ErrorInfo) -> str:
    """Return why something was not saved, in one sentence of the visitor's language."""
    if info.code is not ErrorCode.STYLES_REFUSED:
        return words.error(info)
    said = str(info.parameters.get("problem", ""))
    place, separator, message = said.partition(": ")
    if not separator or not re.fullmatch(r"[\w.]+", place):
        place, message = "", said
    where = _where(words, place.split("."))
    problem = _problem(words, message)
    located = words("styles.problem_where", where=where, problem=problem) if where else problem
    return words.error(info.model_copy(update={"parameters": {**info.parameters, "problem": located}}))


styles = Feature("styles", _routes, refusal)


@styles.action
async def open(at: Context, look: StyleFilter) -> Reply:
    """Show the library."""
    at.screen.studio().keep_alive(_warm_up(at))
    shown = await _shown(at, look)
    return Reply(patches=(at.fragment("styles", "styles/dialog.html", limit=LONGEST_QUERY, **shown),))


@styles.action
async def find(at: Context, look: StyleFilter) -> Reply:
    """Show the matches. While the library is slow, first those that merely contain the words."""
    finding = asyncio.create_task(_shown(at, look))
    try:
        await asyncio.wait([finding], timeout=None if look.patient else _AT_ONCE_S)
        if finding.done():
            return Reply(patches=(_list(at, await finding),))
        return Reply(patches=(_list(at, await _shown(at, look, is_quick=True)),), events={"styles-more": True})
    finally:
        finding.cancel()


@styles.action
async def form(at: Context, chosen: ChosenStyle) -> Reply:
    """Show the form of a style of one's own, or of a new one."""
    style = await _own(at, chosen.id) if chosen.id else None
    fields = fields_of(style, at.words.language)
    shown = at.fragment("sty-form", "styles/form.html", "styles-box", id=chosen.id, fields=fields)
    return Reply(patches=(shown,), events={"styles-form": True})


@styles.action
async def save(at: Context, form: StyleForm) -> Reply:
    """Save a style as it was written, and show one's own styles."""
    library, owner = at.screen.studio().styles, at.visitor.owner
    if form.id:
        style = await library.edit(form.id, draft_fields(form.fields, await _own(at, form.id)), owner)
    else:
        style = await library.add(draft_fields(form.fields), owner)
    return await _done(at, StyleFilter(family=MINE), at.words("styles.saved", title=title_of(at.words, style)))


@styles.action
async def delete(at: Context, chosen: ChosenStyle) -> Reply:
    """Delete a style of one's own."""
    style = await _own(at, chosen.id)
    await at.screen.studio().styles.delete(style.id, at.visitor.owner)
    back: dict[str, JsonValue] = {**chosen.model_dump(exclude={"id"}), "style": style.draft.model_dump(mode="json")}
    sentence = at.words("styles.deleted", title=title_of(at.words, style))
    return await _done(at, chosen, sentence, styles.undo(restore, back))


@styles.action
async def restore(at: Context, deleted: DeletedStyle) -> Reply:
    """Restore a style that was just deleted."""
    style = await at.screen.studio().styles.add(deleted.style, at.visitor.owner)
    return await _done(at, deleted, at.words("styles.restored", title=title_of(at.words, style)))


@styles.action
async def take(at: Context, file: StyleFile) -> Reply:
    """Import styles from a file. The page cuts a file that is too large after as much as shows that."""
    text = file.text[: MAX_STYLE_IMAGE_BYTES + 1].encode()
    taken = await at.screen.studio().styles.import_styles(text, at.visitor.owner)
    return await _done(at, StyleFilter(family=MINE), at.words.counted("styles.imported", len(taken)))


@styles.action
async def export(at: Context) -> Reply:
    """Export one's own styles as a file."""
    library, owner = at.screen.studio().styles, at.visitor.owner
    own = [style for style in await library.all(owner) if style.is_own]
    if not own:
        return Reply(toast=Toast(text=at.words("styles.nothing_to_export"), is_problem=True))
    text = (await library.export_styles(owner)).decode()
    toast = Toast(text=at.words.counted("styles.exported", len(own)))
    return Reply(toast=toast, events={"save": {"name": FILE_NAME, "text": text}})


async def _done(at: Context, look: StyleFilter, sentence: str, undo: Undo | None = None) -> Reply:
    """Return the list as it is now, without the form, and a toast."""
    patches = _list(at, await _shown(at, look)), Patch(id="sty-form")
    return Reply(patches=patches, toast=Toast(text=sentence, undo=undo), events={"styles-done": look.family})


def _list(at: Context, shown: Mapping[str, Any]) -> Patch:
    return at.fragment("sty-list", "styles/list.html", "styles-box", **shown)


async def _shown(at: Context, look: StyleFilter, *, is_quick: bool = False) -> dict[str, Any]:
    """Return the content of the list: by family, or the best matches first for a search."""
    library, words, query = at.screen.studio().styles, at.words, look.query.strip()
    everything, matches = await library.all(at.visitor.owner), list[StyleMatch]()
    if query and not is_quick:
        matches = await library.search(query, _MOST_MATCHES, _FLOOR, owner=at.visitor.owner, is_style=True)
    chosen = found(words, query, everything, matches) if query else [ListedStyle(style) for style in everything]
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
        # The maximum price of trying one.
        "price": at.screen.view(at.visitor, "").turn_price,
        "pictures": await _made(at),
        "title_of": lambda style: title_of(words, style),
    }


async def _made(at: Context) -> dict[str, str]:
    """Return the URL of the visitor's newest picture in each style, by the style's English name."""
    page = await at.screen.studio().gallery.page(at.visitor.owner, GalleryQuery(limit=MAX_GALLERY_PAGE))
    made: dict[str, str] = {}
    for item in page.items:
        receipt = item.picture.receipt
        for use in receipt.styles if receipt is not None else ():
            made.setdefault(use.name, View(at.words, item.conversation_id).url(item.picture.handle, _MADE_PX))
    return made


async def _own(at: Context, style_id: str) -> Style:
    """Return one of the visitor's own styles. Raises RequestRefused, also for a curated one."""
    style = await at.screen.studio().styles.get(style_id, at.visitor.owner)
    if not style.is_own:
        raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
    return style


async def _warm_up(at: Context) -> None:
    # Loading LanceDB takes a second: it is loaded while the user looks at the list. A search that fails says so.
    with contextlib.suppress(AivistaError):
        await at.screen.studio().styles.warm_up(at.visitor.owner)


# What is found by name or meaning, what merely contains the words, and why


@dataclass(frozen=True)
class ListedStyle:
    """A style of the list, and for a search the reason why it was found."""

    style: Style
    why: str = ""


def title_of(words: Words, style: Style) -> str:
    """Return the style's name in the page's language, else in the one it has."""
    return style.name.zh if words.language == "zh-CN" and style.name.zh else style.title


def family_name(words: Words, family: str) -> str:
    """Return the name of a family on the page."""
    if family == MINE:
        return words("styles.mine")
    return words(f"styles.family_{family}") if family in FAMILIES else words("styles.family_other")


def in_family(style: Style, family: str) -> bool:
    """Whether a style belongs to the chosen family; without one, every style does."""
    return not family or (style.is_own if family == MINE else family in style.tags)


def found(words: Words, query: str, styles: Sequence[Style], matches: Sequence[StyleMatch]) -> list[ListedStyle]:
    """Return the library's matches, then every other style that contains the words, each with the reason."""
    surest = [ListedStyle(match.style, _reason(words, match)) for match in matches]
    known = {shown.style.id for shown in surest}
    wanted = query.casefold()
    rest: list[tuple[int, ListedStyle]] = []
    for style in styles:
        hit = next((hit for hit in _sayings(words, style) if wanted in hit[1].casefold()), None)
        if hit is not None and style.id not in known:
            rank, text, key = hit
            rest.append((rank, ListedStyle(style, words(key, text=text))))
    return surest + [shown for _, shown in sorted(rest, key=lambda entry: entry[0])]


def grouped(shown: Sequence[ListedStyle]) -> list[tuple[str, list[ListedStyle]]]:
    """Return the styles by family, one's own first."""
    members: dict[str, list[ListedStyle]] = {family: [] for family in (MINE, *FAMILIES, "")}
    for one in shown:
        style = one.style
        family = MINE if style.is_own else next((tag for tag in style.tags if tag in FAMILIES), "")
        members[family].append(one)
    return [(family, ones) for family, ones in members.items() if ones]


def _reason(words: Words, match: StyleMatch) -> str:
    reason = match.reason
    # A match with a description is shown as a match of meaning.
    kind = MatchKind.MEANING if reason.kind is MatchKind.DESCRIPTION else reason.kind
    return words(f"styles.why_{kind}", text=reason.text)


def _sayings(words: Words, style: Style) -> Iterator[tuple[int, str, str]]:
    """Yield all texts of a style, the most telling first: rank, text, and key of the reason."""
    for name in style.names:
        yield 0, name, "styles.why_name"
    for alias in (*style.aliases.en, *style.aliases.zh, *style.loose):
        yield 1, alias, "styles.why_alias"
    for tag in style.tags:
        if tag in FAMILIES:
            yield 2, family_name(words, tag), "styles.why_tag"
        yield 2, tag, "styles.why_tag"
    for phrase in style.phrases:
        yield 3, phrase, "styles.why_phrase"
    for description in (style.description.en, style.description.zh):
        yield 4, description, "styles.why_description"


# A style as a form: its fields as text, and text back to a style


def fields_of(style: Style | None, language: str) -> dict[str, str]:
    """Return the fields of the form for a style; empty ones for a new style.

    One language is enough: it comes first, and is the page's where the style has both.
    """
    if style is None:
        return dict.fromkeys(_NAMES, "")
    names, descriptions = (style.name.en, style.name.zh), (style.description.en, style.description.zh)
    first = 1 if (language == "zh-CN" and names[1]) or not names[0] else 0
    return {
        "name": names[first],
        "description": descriptions[first],
        "other_name": names[1 - first],
        "other_description": descriptions[1 - first],
        "aliases": ", ".join((*style.aliases.en, *style.aliases.zh)),
        "phrases": "\n".join(style.phrases),
        "negative": "\n".join(style.negative),
        "tags": ", ".join(style.tags),
    }


_NAMES = ("name", "description", "other_name", "other_description", "aliases", "phrases", "negative", "tags")


def draft_fields(form: Mapping[str, str], before: Style | None = None) -> dict[str, object]:
    """Return the fields of a style from a form; what the form does not show stays as it was `before`.

    The language of the name follows from its characters.
    """
    aliases = _listed(form.get("aliases", ""))
    name, other = form.get("name", "").strip(), form.get("other_name", "").strip()
    description, other_description = form.get("description", ""), form.get("other_description", "")
    first, second = ("zh", "en") if _is_chinese(name or description) else ("en", "zh")
    return {
        "name": {first: name, second: other},
        "aliases": {
            "en": [alias for alias in aliases if not _is_chinese(alias)],
            "zh": [alias for alias in aliases if _is_chinese(alias)],
        },
        "loose": before.loose if before else (),
        "description": {first: description, second: other_description},
        "phrases": _lines(form.get("phrases", "")),
        "negative": _lines(form.get("negative", "")),
        "tags": _listed(form.get("tags", "")),
    }


def _where(words: Words, parts: Sequence[str]) -> str:
    """Return which style of a file is wrong, and which of its fields."""
    named = [words(f"styles.form_{part}") for part in parts if part in _PLACES][:1]
    is_numbered = len(parts) > 1 and parts[0] == "styles" and parts[1].isdigit()
    numbered = [words("styles.problem_number", number=int(parts[1]) + 1)] if is_numbered else []
    return words("styles.problem_join").join([*numbered, *named])


def _problem(words: Words, message: str) -> str:
    for pattern, key in _SAID:
        if match := pattern.search(message):
            return words(key, **match.groupdict())
    return words("styles.problem_other")


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in _COMMAS.split(text) if part.strip()))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _is_chinese(text: str) -> bool:
    return any(letter >= _FIRST_IDEOGRAPH for letter in text)


# The sample picture: a landscape to try styles on for visitors who brought no picture. It is computed here


@cache
def sample_picture() -> bytes:
    """Return the picture as JPEG, 960 by 640 pixels, always with the same bytes. The first call takes a moment."""
    out = io.BytesIO()
    pixels = np.clip(_landscape(), 0, 255).astype(np.uint8)
    Image.fromarray(pixels, "RGB").save(out, "JPEG", quality=90)
    return out.getvalue()


def _landscape() -> Pixels:
    across = np.linspace(0, 1, _SAMPLE_WIDTH, dtype=np.float32)
    down = np.linspace(0, 1, _SAMPLE_HEIGHT, dtype=np.float32)[:, None]
    picture = _sky(across, down)
    for number, (height, swing, length) in enumerate(_HILLS):
        below = down - (height - swing * _waves(across, length, number))
        near = (number + 1) / len(_HILLS)
        colour = _FAR * (1 - near) + _NEAR * near
        # Mist lies in the valleys: the foot of a hill is lighter than its ridge.
        mist = np.clip(below * 2.2, 0, 0.45)[..., None]
        # A ridge is two pixels soft: otherwise it would show steps.
        cover = np.clip(below * _SAMPLE_HEIGHT / 2 + 0.5, 0, 1)[..., None]
        picture += cover * (colour + mist * (_FAR - colour) - picture)
    grain = np.random.default_rng(7).standard_normal((_SAMPLE_HEIGHT, _SAMPLE_WIDTH, 1), dtype=np.float32)
    return picture + 2.5 * grain


def _sky(across: Pixels, down: Pixels) -> Pixels:
    stops = np.linspace(0, 0.62, len(_SKY))
    bands = [np.interp(down[:, 0], stops, [colour[band] for colour in _SKY]) for band in range(3)]
    sky = np.broadcast_to(np.stack(bands, axis=-1)[:, None], (_SAMPLE_HEIGHT, _SAMPLE_WIDTH, 3)).astype(np.float32)
    away = np.hypot((across - 0.68) * (_SAMPLE_WIDTH / _SAMPLE_HEIGHT), down - 0.4)
    glow, sun = np.exp(-((away / 0.2) ** 2)), np.clip((0.045 - away) * _SAMPLE_HEIGHT / 2, 0, 1)
    lit = glow[..., None] * np.array(_GLOW, np.float32) + sun[..., None] * np.array(_SUN, np.float32)
    return np.asarray(sky + lit, np.float32)


def _waves(across: Pixels, length: float, number: int) -> Pixels:
    """Return a line of hills between about -1 and 1."""
    turns = 2 * np.pi * across * 6 / length
    waves = 0.6 * np.sin(turns + 1.7 * number) + 0.3 * np.sin(2.3 * turns + number) + 0.1 * np.sin(7.1 * turns)
    return np.asarray(waves, np.float32)
