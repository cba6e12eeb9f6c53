"""Decode, verify, orient and strip: the only way a person's picture enters the studio, and a look at a model's own.

The extension and the type that the client claims are ignored; the bytes decide. Limits and order of the steps follow
what was measured of hostile files with Pillow 12.3: the header's size is judged before a single pixel is decoded.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import io
import math
import re
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath

from PIL import Image, ImageCms, ImageOps

from agent import picture_limits
from agent.errors import ErrorCode, ProviderFailure, RequestRefused
from agent.picture_limits import LOW_MEMORY_MEGAPIXELS, harden_pillow

MAX_UPLOAD_MEGABYTES = 20
MAX_MEGAPIXELS = picture_limits.MAX_MEGAPIXELS
MAX_SIDE_PX = 16_384
MAX_ASPECT = 100
WORKING_SIDE_PX = 4096
MAX_TEXT_CHARACTERS = 100_000
MAX_PICTURES_PER_MESSAGE = 16

_DECODERS_AT_ONCE = 2
# One 64-megapixel picture with alpha takes 700 MB while it is made smaller: two at once would pass 1 GB.
_ALONE = threading.Lock()
_ALONE_ABOVE_PIXELS = 24_000_000
_SHOWN_NAME_CHARACTERS = 40
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_INVISIBLE_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")
_RESIZABLE_MODES = frozenset({"L", "LA", "RGB", "RGBA", "CMYK"})


@dataclass(frozen=True)
class TakenIn:
    """A picture fit for use: upright, sRGB, 8 bits, at most 4096 pixels a side, without any metadata."""

    data: bytes
    mime_type: str
    width: int
    height: int


@dataclass(frozen=True)
class Probed:
    """What a picture's own bytes say of it."""

    mime_type: str
    width: int
    height: int


async def take_in(data: bytes, name: str) -> TakenIn:
    """Return the upload as a clean PNG; `name` is the file's name, for the sentence when it cannot be used.

    Runs in a thread, two at a time in the whole process and large ones alone: at most about 1 GB.
    Of an animation the first frame is taken.

    Raises RequestRefused with the one sentence that fits.
    """
    return await asyncio.get_running_loop().run_in_executor(_decoders(), _take_in, data, shown_name(name))


async def probe(data: bytes) -> Probed:
    """Return type and size of a picture that a model delivered, after decoding all of it; the bytes stay as they are.

    Runs where `take_in` runs. Raises ProviderFailure(BROKEN_PICTURE).
    """
    return await asyncio.get_running_loop().run_in_executor(_decoders(), _probe, data)


def check_request(text: str, picture_count: int) -> None:
    """Return when a message of this text and number of pictures can be taken.

    Raises RequestRefused: nothing at all, too long, too many pictures.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise RequestRefused(ErrorCode.TEXT_TOO_LONG, length=len(text), limit=MAX_TEXT_CHARACTERS)
    if picture_count > MAX_PICTURES_PER_MESSAGE:
        raise RequestRefused(ErrorCode.TOO_MANY_PICTURES, count=picture_count, limit=MAX_PICTURES_PER_MESSAGE)


def is_blank(text: str) -> bool:
    """Return whether the text says nothing in words: empty, space, punctuation or emoji only."""
    return not any(unicodedata.category(sign)[0] in "LN" and sign not in _INVISIBLE_LETTERS for sign in text)


def shown_name(name: str) -> str:
    """Return a file's name fit for a sentence: no folder, no control or direction signs, at most 40 characters."""
    bare = PurePosixPath(name.replace("\\", "/")).name
    kept = "".join(" " if sign.isspace() else sign for sign in bare if sign.isspace() or _is_printable(sign))
    kept = " ".join(kept.split())
    if len(kept) > _SHOWN_NAME_CHARACTERS:
        kept = f"{kept[: _SHOWN_NAME_CHARACTERS - 11]}…{kept[-10:]}"
    return kept or "The picture"


def _is_printable(sign: str) -> bool:
    return unicodedata.category(sign) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@functools.cache
def _decoders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_DECODERS_AT_ONCE, thread_name_prefix="intake")


def _take_in(data: bytes, name: str) -> TakenIn:
    harden_pillow()
    if len(data) > MAX_UPLOAD_MEGABYTES << 20:
        megabytes = _rounded_up(len(data) / (1 << 20))
        raise RequestRefused(ErrorCode.PICTURE_TOO_LARGE, name=name, megabytes=megabytes, limit=MAX_UPLOAD_MEGABYTES)
    pixels = 0
    try:
        with _open(data, name) as image:
            pixels = _check_size(image, name)
            with _ALONE if pixels > _ALONE_ABOVE_PIXELS else contextlib.nullcontext():
                image.load()
                return _encoded(_cleaned(image))
    except RequestRefused:
        raise
    except MemoryError as error:
        raise _too_many_pixels(name, pixels, LOW_MEMORY_MEGAPIXELS) from error
    # A decoder fed with hostile bytes may raise anything: OSError, SyntaxError, ValueError, struct.error, …
    except Exception as error:
        raise RequestRefused(ErrorCode.PICTURE_TRUNCATED, name=name, provider_detail=str(error)[:200]) from error


def _probe(data: bytes) -> Probed:
    harden_pillow()
    try:
        with _open(data, "The picture") as image:
            _check_size(image, "The picture")
            mime_type = Image.MIME[image.format or ""]
            width, height = image.size
            image.load()
    # A decoder fed with damaged bytes may raise anything.
    except Exception as error:
        raise ProviderFailure(ErrorCode.BROKEN_PICTURE, provider_detail=str(error)[:200]) from error
    return Probed(mime_type=mime_type, width=width, height=height)


def _open(data: bytes, name: str) -> Image.Image:
    kind = _format_of(data)
    if kind is None:
        code = ErrorCode.PICTURE_IS_SVG if _is_svg(data) else ErrorCode.PICTURE_UNREADABLE
        raise RequestRefused(code, name=name)
    if kind == "HEIF":
        _register_heif()
    try:
        return Image.open(io.BytesIO(data), formats=(kind,))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        stated = re.search(r"\((\d+) pixels\)", str(error))
        raise _too_many_pixels(name, int(stated.group(1)) if stated else 0, MAX_MEGAPIXELS) from error


@functools.cache
def _register_heif() -> None:
    # An embedded thumbnail must not stand in for the picture, nor its depth map be decoded.
    plugin = importlib.import_module("pillow_heif")
    plugin.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False)


def _check_size(image: Image.Image, name: str) -> int:
    width, height = image.size
    if width * height > MAX_MEGAPIXELS * 1_000_000:
        raise _too_many_pixels(name, width * height, MAX_MEGAPIXELS)
    if min(width, height) < 1:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name)
    if max(width, height) > MAX_SIDE_PX or max(width, height) > MAX_ASPECT * min(width, height):
        raise RequestRefused(ErrorCode.PICTURE_BAD_SHAPE, name=name, width=width, height=height)
    return width * height


def _too_many_pixels(name: str, pixels: int, limit: int) -> RequestRefused:
    megapixels = _rounded_up(pixels / 1_000_000)
    return RequestRefused(ErrorCode.PICTURE_TOO_MANY_PIXELS, name=name, megapixels=megapixels, limit=limit)


def _rounded_up(number: float) -> float:
    # Up, so that what is a little over the limit never reads as the limit itself.
    return math.ceil(number * 10) / 10


def _format_of(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        return "GIF"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp":
        return _format_of_brands(data)
    return None


def _format_of_brands(data: bytes) -> str | None:
    end = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12], *(data[at : at + 4] for at in range(16, end, 4))}
    if brands & _AVIF_BRANDS:
        return "AVIF"
    return "HEIF" if brands & _HEIF_BRANDS else None


def _is_svg(data: bytes) -> bool:
    head = data[: 1 << 16]
    text = head.decode("utf-16" if head[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig", errors="ignore").lstrip()
    while text.startswith(("<?", "<!")):
        closing = "-->" if text.startswith("<!--") else "]>" if re.match(r"<![^>]*\[", text) else ">"
        _, found, text = text.partition(closing)
        if not found:
            return False
        text = text.lstrip()
    return re.match(r"<(\w+:)?svg[\s>/]", text, re.IGNORECASE) is not None


def _cleaned(image: Image.Image) -> Image.Image:
    small = _in_plain_mode(image)
    # Smaller first: turning and colour management then never need a second copy of 64 megapixels.
    small.thumbnail((WORKING_SIDE_PX, WORKING_SIDE_PX), Image.Resampling.LANCZOS)
    small = _in_srgb(_upright(small))
    clean = Image.new(small.mode, small.size)
    clean.paste(small)
    return clean


def _in_plain_mode(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        # Sixteen bits: scaled here, because a plain conversion cuts everything above 255 to white.
        return image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    if "transparency" in image.info:
        return image.convert("RGBA")
    if image.mode in _RESIZABLE_MODES:
        return image
    return image.convert("RGBA" if image.mode in {"PA", "La", "RGBa"} else "L" if image.mode == "1" else "RGB")


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    # Corrupt EXIF is no reason to refuse the picture: it is dropped anyway.
    except Exception:
        return image


def _in_srgb(image: Image.Image) -> Image.Image:
    target = "RGBA" if image.mode in {"LA", "RGBA"} else "RGB"
    profile = image.info.get("icc_profile")
    if isinstance(profile, bytes) and profile and image.mode != "LA":
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode=target)
        # A corrupt profile is ignored, as browsers do.
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            converted = None
        if converted is not None:
            return converted
    return image if image.mode == target else image.convert(target)


def _encoded(image: Image.Image) -> TakenIn:
    # Level 3: within 7 % of level 6 in size at a quarter of its time, measured with a 48-megapixel photo.
    sink = io.BytesIO()
    image.save(sink, "PNG", compress_level=3)
    return TakenIn(data=sink.getvalue(), mime_type="image/png", width=image.width, height=image.height)
