"""Pictures over HTTP, for their owner only: by conversation and handle, as the difference of two, and as adjusted by
sliders."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import reduce
from typing import TYPE_CHECKING, get_args

from cachetools import LRUCache
from pydantic import SecretStr, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import Adjustment, PanelSetting, Picture, PictureFile, Studio
from webui.http.sessions import IMMUTABLE, NO_CACHE, ImageJobs, Sessions, Visitor, as_text, attachment, visitor_route
from webui.words import load_words

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

NUMBERS_HEADER = "Aivista-Difference"
DEFAULT_EDGE_PX = 1024
MAX_EDGE_PX = 2048
_DIGEST = re.compile(r"[0-9a-f]{64}")
# Unicode has digits that `int` reads and that are no ASCII digits.
_NUMBER = re.compile(r"[0-9]{1,4}")
MIN_EDGE_PX = 64
CLEAR_LEVELS = 16
# Below this the full range of colours is not used, so that the noise of a codec does not look like a new picture.
_FULL_LEVELS = 64
_GAMMA = 0.6
_HOT = (255.0, 196.0, 64.0)
_OUTSIDE = 24
_STRIP_ROWS = 256
PREVIEW_EDGE_PX = 896
SETTINGS: tuple[str, ...] = get_args(PanelSetting)
_KEPT_BYTES = 32 << 20
_AMOUNT = re.compile(r"-?[0-9]{1,3}")


@dataclass(frozen=True)
class Difference:
    """The difference between two pictures.

    `changed` and `clear` are shares (0 to 1) of the compared pixels: any difference at all, and one of at least
    `CLEAR_LEVELS` of 255 in some channel. `largest` is the largest difference, 0 to 255. Sizes are (width, height) in
    pixels; `compared` is the size at which both were compared.
    """

    changed: float
    clear: float
    largest: int
    first: tuple[int, int]
    second: tuple[int, int]
    compared: tuple[int, int]


def image_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the two routes; pictures are handles without `#`.

    `/aivista/difference/{conversation}/{first}/{second}` answers with a WebP that shows where the pictures differ, its
    longer edge `?edge=` pixels (64 to 2048, else 400), and with a `Difference` as JSON in the header
    `Aivista-Difference`. `/aivista/preview/{conversation}/{handle}` takes slider values by name, each once and from
    -100 to 100, 0 when left out; 400 for any other query. 429 for a client with too many requests.
    """
    # A picture of 64 megapixels takes 200 MB while it is decoded, and a difference decodes two.
    comparing, adjusting, copies = ImageJobs(places=1), ImageJobs(places=2), LRUCache[str, bytes](_KEPT_BYTES, len)

    async def compare(request: Request, visitor: Visitor) -> Response:
        edge_px, where = _edge(request.query_params.get("edge", str(DEFAULT_EDGE_PX))), request.path_params
        if edge_px is None:
            return as_text(visitor.words("route.unreadable"), 400)

        async def work() -> Response:
            first = await studio().picture(where["conversation"], where["first"], visitor.owner)
            second = await studio().picture(where["conversation"], where["second"], visitor.owner)
            shown, found = await asyncio.to_thread(difference, first.data, second.data, edge_px)
            headers = {**IMMUTABLE, NUMBERS_HEADER: json.dumps(asdict(found))}
            return Response(shown, media_type="image/webp", headers=headers)

        return await comparing.run(request, visitor, work)

    async def preview(request: Request, visitor: Visitor) -> Response:
        adjustment, where = read_query(request.query_params), request.path_params
        if adjustment is None:
            return as_text(visitor.words("route.unreadable"), 400)

        async def work() -> Response:
            small, before = await _small(studio(), copies, where["conversation"], where["handle"], visitor.owner)
            data, mime_type = await asyncio.to_thread(adjusted, small, before.combine(adjustment))
            return Response(data, media_type=mime_type, headers=IMMUTABLE)

        return await adjusting.run(request, visitor, work)

    return [
        visitor_route("/aivista/difference/{conversation}/{first}/{second}", sessions, compare),
        visitor_route("/aivista/preview/{conversation}/{handle}", sessions, preview),
    ]


def _edge(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and MIN_EDGE_PX <= int(text) <= MAX_EDGE_PX else None


def difference(first: bytes, second: bytes, edge_px: int) -> tuple[bytes, Difference]:
    """Return where the second picture differs from the first, as a WebP and in numbers. CPU-bound: run it in a thread.

    Pictures of the same size are compared pixel by pixel. Otherwise the second is fitted into the middle of the first
    one's frame, and both are compared at the coarser size; what lies outside is not counted. Pixels that are
    transparent in both are equal.

    Raises RequestRefused when either is no picture, damaged, or larger than 64 megapixels.
    """
    one, two = _opened(first), _opened(second)
    part, fitted, box = _overlaid(one, two)
    levels = _levels(part, fitted)
    largest = int(levels.max())
    return _shown(one, levels, box, edge_px), Difference(
        changed=float((levels > 0).mean()),
        clear=float((levels >= CLEAR_LEVELS).mean()),
        largest=largest,
        first=one.size,
        second=two.size,
        compared=part.size,
    )


def _opened(data: bytes) -> Image.Image:
    from agent import image_of, open_picture

    image = image_of(open_picture(data))
    return image.convert("RGBA" if image.mode in ("LA", "RGBA") else "RGB")


def _overlaid(first: Image.Image, second: Image.Image) -> tuple[Image.Image, Image.Image, tuple[int, int, int, int]]:
    """Return the pictures at the same size, and the box of the first one's frame (left, top, width, height) that they
    cover."""
    from PIL import Image

    scale = min(first.width / second.width, first.height / second.height)
    width = min(first.width, max(1, round(second.width * scale)))
    height = min(first.height, max(1, round(second.height * scale)))
    left, top = (first.width - width) // 2, (first.height - height) // 2
    part = first.crop((left, top, left + width, top + height))
    if scale > 1:
        part = part.resize(second.size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    elif second.size != part.size:
        second = second.resize(part.size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    return part, second, (left, top, width, height)


def _levels(first: Image.Image, second: Image.Image) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return the largest difference of any channel, 0 to 255, for each pixel (rows, columns)."""
    import numpy as np

    # Premultiplied, so that the colour of transparent pixels does not count.
    mode = "RGBa" if "RGBA" in (first.mode, second.mode) else "RGB"
    found = np.empty((first.height, first.width), np.uint8)
    for top in range(0, first.height, _STRIP_ROWS):
        box = (0, top, first.width, min(first.height, top + _STRIP_ROWS))
        one, two = (np.asarray(_in_mode(image.crop(box), mode)) for image in (first, second))
        # Along the last axis itself NumPy takes seven times as long.
        found[box[1] : box[3]] = reduce(np.maximum, np.moveaxis(np.maximum(one, two) - np.minimum(one, two), 2, 0))
    return found


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    return image.convert("RGBA").convert(mode) if mode == "RGBa" else image


def _shown(
    first: Image.Image,
    levels: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    box: tuple[int, int, int, int],
    edge_px: int,
) -> bytes:
    """Return the first picture as a faint grey ghost with the differences glowing on it."""
    import numpy as np
    from PIL import Image

    scale = min(1.0, edge_px / max(first.size))
    size = (max(1, round(first.width * scale)), max(1, round(first.height * scale)))
    left, width = _span(box[0], box[2], scale, size[0])
    top, height = _span(box[1], box[3], scale, size[1])
    ghost = 40 + np.asarray(_on_grey(first.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0))) * 0.22
    canvas = np.full((size[1], size[0], 3), _OUTSIDE, np.float32)
    glow = np.power(np.minimum(_fitted(levels, width, height) / max(int(levels.max()), _FULL_LEVELS), 1.0), _GAMMA)
    part = ghost[top : top + height, left : left + width, None] * (1 - glow[:, :, None])
    canvas[top : top + height, left : left + width] = part + glow[:, :, None] * np.array(_HOT, np.float32)
    sink = io.BytesIO()
    Image.fromarray(canvas.round().astype(np.uint8)).save(sink, "WEBP", quality=88, method=2)
    return sink.getvalue()


def _span(start: int, length: int, scale: float, edge: int) -> tuple[int, int]:
    """Return start and length of a span at another scale, at least one pixel long and inside the edge."""
    first = min(round(start * scale), edge - 1)
    return first, max(1, min(round(length * scale), edge - first))


def _on_grey(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, (128, 128, 128, 255)), image)
    return image.convert("L")


def _fitted(
    levels: np.ndarray[tuple[int, int], np.dtype[np.uint8]], width: int, height: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the levels at another size. When shrunk, each cell keeps its maximum, so that a single pixel stays
    visible."""
    import numpy as np

    rows, columns = levels.shape
    at_row, at_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    levels = np.maximum.reduceat(levels, at_row, axis=0) if height <= rows else levels[at_row]
    levels = np.maximum.reduceat(levels, at_column, axis=1) if width <= columns else levels[:, at_column]
    return levels.astype(np.float32)


def read_query(query: QueryParams) -> Adjustment | None:
    """Return the values of the query, or None when it holds anything else."""
    asked = query.multi_items()
    names = [name for name, _ in asked]
    if len(set(names)) < len(names) or not set(names) <= set(SETTINGS):
        return None
    if not all(_AMOUNT.fullmatch(value) for _, value in asked):
        return None
    try:
        return Adjustment.model_validate({name: int(value) for name, value in asked})
    except ValidationError:
        return None


async def _small(
    studio: Studio, copies: LRUCache[str, bytes], conversation_id: str, handle: str, owner: str
) -> tuple[bytes, Adjustment]:
    """Return a small copy in the picture's frame, and the part of its adjustment that still has to be applied.

    Decoding a large picture takes longer than adjusting a small one, and a slider asks for the same picture many times:
    the most recently used `copies` are cached by digest and frame.
    """
    from agent import preview_adjustment

    conversation = await studio.conversations.get(conversation_id, owner)
    picture = conversation.picture(handle)
    original, before = conversation.adjusted_from(picture.handle) or (picture, Adjustment())
    frame = before.model_copy(update=dict.fromkeys(SETTINGS, 0))
    key = f"{original.image.digest} {frame.model_dump_json()}"
    found = copies.get(key)
    if found is None:
        stored = await studio.picture(conversation_id, original.handle, owner)
        found = (await asyncio.to_thread(preview_adjustment, stored.data, frame, PREVIEW_EDGE_PX)).data
        copies[key] = found
    return found, Adjustment.model_validate(before.model_dump(include=set(SETTINGS)))


def adjusted(small: bytes, adjustment: Adjustment) -> tuple[bytes, str]:
    """Return the small picture adjusted, and its media type: JPEG, or WebP with transparency."""
    from PIL import Image

    from agent import preview_adjustment

    made = preview_adjustment(small, adjustment, PREVIEW_EDGE_PX)
    sink = io.BytesIO()
    with Image.open(io.BytesIO(made.data)) as image:
        kept = {"icc_profile": image.info.get("icc_profile")}
        if image.mode in ("LA", "RGBA"):
            image.save(sink, "WEBP", quality=90, method=2, **kept)
            return sink.getvalue(), "image/webp"
        image.save(sink, "JPEG", quality=90, subsampling=0, **kept)
    return sink.getvalue(), "image/jpeg"


def media_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/media/{conversation}/{picture}`.

    `picture` is a handle without `#`, or the digest of its bytes. `?size=` asks for a preview whose longer edge has at
    most that many pixels; `?download=1` for a file with a name and the picture's recipe in it, with `&clean=1` for one
    without any metadata, with `&original=1` for the bytes as they came. The pixels are the same in each.
    `?unrecorded=1` asks, by digest, for the bytes of a picture that the full disk takes no record of. 403 without our
    cookie or a signed query, 404 for a picture that the owner does not have, 422 for a file that cannot be cleaned.
    """

    def visitor_of(request: Request) -> Visitor | None:
        visitor, where = sessions.visitor(request), request.path_params
        known = visitor if visitor.token is not None else None
        owner = sessions.link_owner(request.query_params, where["conversation"], where["picture"])
        if owner is None or (known is not None and known.owner == owner):
            return known
        # A link is valid for its owner in any browser, also in one with another visitor's cookie.
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
    """Return the file to download, and the part of its name that says which kind of copy it is."""
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
    """Return a recognisable file name: the handle, the first words of the prompt, and the kind of copy."""
    text = picture.receipt.user_text if picture.receipt else ""
    words = re.findall(r"\w+", text)[:6]
    extension = {"image/jpeg": "jpg", "image/webp": "webp"}.get(picture.image.mime_type, "png")
    stem = "-".join(["aivista", picture.handle.lstrip("#"), *words])[:80]
    return f"{stem}{f'-{kind}' if kind else ''}.{extension}"
