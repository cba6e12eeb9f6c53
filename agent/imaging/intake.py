"""Decode, verify, orient and strip uploaded pictures (no upload bypasses this), and probe pictures made by a model.

The file extension and the type claimed by the client are ignored; only the bytes count. The limits and the order of
the steps come from measurements with hostile files and Pillow 12.3: the size in the header is checked before any pixel
is decoded.
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
from typing import TYPE_CHECKING

from PIL import Image

from agent.errors import ErrorCode, ProviderFailure, RequestRefused
from agent.messages import INVISIBLE_LETTERS
from agent.pictures import (
    LOW_MEMORY_MEGAPIXELS,
    MAX_ASPECT,
    MAX_DEEP_MEGAPIXELS,
    MAX_MEGAPIXELS,
    MAX_PICTURES_PER_MESSAGE,
    MAX_SIDE_PX,
    MAX_UPLOAD_MEGABYTES,
    harden_pillow,
    mime_type_of,
)

# numpy and OpenCV are imported with the first picture, not at startup.
if TYPE_CHECKING:
    from agent.pixels import Pixels

MAX_TEXT_CHARACTERS = 100_000

_DECODERS_AT_ONCE = 2
# Two pictures with more bytes of pixels than this would together need over 1 GB while they are decoded and encoded.
_ALONE = threading.Lock()
_ALONE_ABOVE_BYTES = 72_000_000
_SHOWN_NAME_CHARACTERS = 40
# Pillow's names of the formats.
_FORMATS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/avif": "AVIF",
    "image/heic": "HEIF",
}
# A JPEG may hold a much larger profile in its segments than any real colour profile.
_MOST_PROFILE_BYTES = 1 << 20
# The box with the bit depth of an AVIF is near the start of the file.
_AV1_CONFIG_WITHIN_BYTES = 1 << 16


@dataclass(frozen=True)
class CleanPicture:
    """A cleaned picture: an upright PNG at full size, with 8 or 16 bits and its colour profile, and nothing else.

    `file_mime_type` and `file_bit_depth` describe the uploaded file. Its bit depth is kept (10 and 12 bits in 16),
    except for AVIF, which is decoded to 8 bits, and for pictures of more than 32 megapixels.
    """

    data: bytes
    mime_type: str
    width: int
    height: int
    bit_depth: int
    file_mime_type: str
    file_bit_depth: int


@dataclass(frozen=True)
class PictureInfo:
    """The facts about a picture that were read from its bytes."""

    mime_type: str
    width: int
    height: int
    bit_depth: int


async def take_in_image(data: bytes, name: str, *, limit_megabytes: int = MAX_UPLOAD_MEGABYTES) -> CleanPicture:
    """Return the upload as a clean PNG; `name` is the file's name for the error message.

    Runs in a thread: at most two in the process at once, and large pictures one at a time, so at most about 1 GB of
    memory is used. For an animation, the first frame is used.

    Raises RequestRefused with the message that explains why.
    """
    work = functools.partial(_take_in, data, shown_name(name), limit_megabytes)
    return await asyncio.get_running_loop().run_in_executor(_decoders(), work)


async def probe_image(data: bytes) -> PictureInfo:
    """Return type and size of a picture that a model delivered; all of it is decoded, and the bytes are not changed.

    Runs in the same threads as `take_in_image`. Raises ProviderFailure(BROKEN_PICTURE).
    """
    return await asyncio.get_running_loop().run_in_executor(_decoders(), _probe, data)


def check_request(text: str, picture_count: int) -> None:
    """Check that a message with this text and number of pictures can be accepted.

    Raises RequestRefused(TEXT_TOO_LONG) or RequestRefused(TOO_MANY_PICTURES).
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise RequestRefused(ErrorCode.TEXT_TOO_LONG, length=len(text), limit=MAX_TEXT_CHARACTERS)
    if picture_count > MAX_PICTURES_PER_MESSAGE:
        raise RequestRefused(ErrorCode.TOO_MANY_PICTURES, count=picture_count, limit=MAX_PICTURES_PER_MESSAGE)


def is_blank_text(text: str) -> bool:
    """Return whether the text has no letter or digit: it is empty, or only space, punctuation or emoji."""
    return not any(unicodedata.category(sign)[0] in "LN" and sign not in INVISIBLE_LETTERS for sign in text)


def shown_name(name: str) -> str:
    """Return a file's name for display: no folder, no control or direction characters, at most 40 characters."""
    bare = PurePosixPath(name.replace("\\", "/")).name
    kept = " ".join("".join(sign for sign in bare if sign.isprintable() or sign.isspace()).split())
    if len(kept) > _SHOWN_NAME_CHARACTERS:
        kept = f"{kept[: _SHOWN_NAME_CHARACTERS - 11]}…{kept[-10:]}"
    return kept or "The picture"


@functools.cache
def _decoders() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_DECODERS_AT_ONCE, thread_name_prefix="intake")


def _take_in(data: bytes, name: str, limit_megabytes: int) -> CleanPicture:
    harden_pillow()
    if len(data) > limit_megabytes << 20:
        megabytes = _rounded_up(len(data) / (1 << 20))
        raise RequestRefused(ErrorCode.PICTURE_TOO_LARGE, name=name, megabytes=megabytes, limit=limit_megabytes)
    # The exception keeps the decoded data alive: drop it before the next step, which needs memory too.
    with contextlib.suppress(MemoryError):
        return _decoded(data, name)
    with _open(data, name) as image:
        raise _too_many_pixels(name, _check_size(image, name), LOW_MEMORY_MEGAPIXELS)


def _decoded(data: bytes, name: str) -> CleanPicture:
    try:
        with _open(data, name) as image:
            pixels = _check_size(image, name)
            depth = _bit_depth(image, data)
            channels = 1 if image.mode in {"1", "L"} or image.mode.startswith("I") else 4 if "A" in image.mode else 3
            is_large = pixels * channels * (1 if depth == 8 else 2) > _ALONE_ABOVE_BYTES
            with _ALONE if is_large else contextlib.nullcontext():
                image.load()
                return _cleaned(image, data, depth)
    except (RequestRefused, MemoryError):
        raise
    # A decoder may raise anything for hostile bytes: OSError, SyntaxError, ValueError, struct.error, …
    except Exception as error:
        raise RequestRefused(ErrorCode.PICTURE_TRUNCATED, name=name, provider_detail=str(error)[:200]) from error


def _probe(data: bytes) -> PictureInfo:
    harden_pillow()
    try:
        with _open(data, "The picture") as image:
            _check_size(image, "The picture")
            mime_type = Image.MIME[image.format or ""]
            width, height = image.size
            depth = 16 if image.format == "PNG" and data[24:25] == b"\x10" else 8
            image.load()
    # A decoder may raise anything for damaged bytes.
    except Exception as error:
        raise ProviderFailure(ErrorCode.BROKEN_PICTURE, provider_detail=str(error)[:200]) from error
    return PictureInfo(mime_type=mime_type, width=width, height=height, bit_depth=depth)


def _open(data: bytes, name: str) -> Image.Image:
    kind = _FORMATS.get(mime_type_of(data) or "")
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
    # An embedded thumbnail must not replace the picture, and its depth map must not be decoded.
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
    # Rounded up, so that a value slightly above the limit is never shown as the limit itself.
    return math.ceil(number * 10) / 10


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


def _bit_depth(image: Image.Image, data: bytes) -> int:
    """Return the number of bits per channel of the file: 8 or more."""
    match image.format:
        case "PNG":
            return 16 if data[24:25] == b"\x10" else 8
        case "HEIF":
            return int(image.info.get("bit_depth", 8))
        case "AVIF":
            at = data[:_AV1_CONFIG_WITHIN_BYTES].find(b"av1C")
            # The AV1 configuration box: its name, two bytes, then flags (high bit depth, twelve bits).
            flags = data[at + 6] if at >= 0 and at + 6 < len(data) else 0
            return 8 if not flags & 0x40 else 12 if flags & 0x20 else 10
        case _:
            return 8


def _cleaned(image: Image.Image, data: bytes, depth: int) -> CleanPicture:
    """Return an opened and loaded picture as a PNG of the same size that holds only pixels and colour profile."""
    from agent.pixels import Raster, encode_png, sound_profile, upright

    stated = image.info.get("icc_profile")
    profile = stated if isinstance(stated, bytes) and len(stated) <= _MOST_PROFILE_BYTES else None
    # Pillow reports only the HEIF type, even for a HEIF file that contains a JPEG.
    mime_type = Image.MIME.get(image.format or "", "image/png")
    pixels, turn, has_profile = _pixels_of(image, data, depth, profile)
    raster = Raster(upright(pixels, turn), sound_profile(profile, pixels.shape[2]) if has_profile else None)
    del pixels
    return CleanPicture(
        data=encode_png(raster),
        mime_type="image/png",
        width=raster.width,
        height=raster.height,
        bit_depth=raster.bit_depth,
        file_mime_type=mime_type,
        file_bit_depth=depth,
    )


def _pixels_of(image: Image.Image, data: bytes, depth: int, profile: bytes | None) -> tuple[Pixels, int, bool]:
    """Return the pixels, their orientation, and whether the file's profile still applies to them."""
    from agent.pixels import deep_png_pixels, eight_bits, from_inks, orientation_of, pixels_of

    turn, is_kept = orientation_of(image), image.width * image.height <= MAX_DEEP_MEGAPIXELS * 1_000_000
    if image.mode == "CMYK":
        return pixels_of(from_inks(image, profile)), turn, False
    if depth == 8 or image.format == "AVIF" or not is_kept:
        return eight_bits(pixels_of(image)), turn, True
    if image.format == "HEIF":
        return _deep_heif_pixels(data), turn, True
    # Pillow has already loaded the file, so the next decoder gets a valid PNG.
    return deep_png_pixels(data, image), turn, True


def _deep_heif_pixels(data: bytes) -> Pixels:
    import numpy as np

    plugin = importlib.import_module("pillow_heif")
    opened = plugin.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False, thumbnails=False)
    pixels = np.asarray(opened)
    return pixels[..., None] if pixels.ndim == 2 else pixels
