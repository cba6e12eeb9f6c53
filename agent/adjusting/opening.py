"""A stored picture's bytes as pixels that can be adjusted: upright, in one of five plain modes."""

from __future__ import annotations

import io
import math
import re
import struct
from dataclasses import dataclass

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from agent.errors import ErrorCode, RequestRefused
from agent.picture_limits import LOW_MEMORY_MEGAPIXELS, MAX_MEGAPIXELS, harden_pillow

_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "AVIF")
_PLAIN_MODES = frozenset({"L", "LA", "RGB", "RGBA"})
_ORIENTATION = 0x0112
# What Pillow's decoders were seen to raise when bytes are damaged; UnidentifiedImageError is an OSError.
_DAMAGES = (OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, OverflowError, struct.error)


@dataclass(frozen=True)
class Opened:
    """Pixels in mode L, LA, RGB, RGBA or I;16, and the ICC profile that came with them."""

    image: Image.Image
    profile: bytes | None


def open_picture(data: bytes, name: str = "The picture") -> Opened:
    """Return the picture's pixels; of an animation the first frame. `name` is for the sentence when there are none.

    What Pillow reads with 16 bits keeps them: that is grey alone, since it reads colour with 8. A palette becomes
    the colours it stands for, and inks (CMYK) become RGB, which PNG can hold.

    Raises RequestRefused: unreadable, damaged, more than 64 megapixels.
    """
    harden_pillow()
    pixels = 0
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            pixels = image.width * image.height
            if pixels > MAX_MEGAPIXELS * 1_000_000:
                raise _too_many(name, pixels, MAX_MEGAPIXELS)
            image.load()
            return _opened(image)
    except RequestRefused:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        stated = re.search(r"\((\d+) pixels\)", str(error))
        raise _too_many(name, int(stated[1]) if stated else 0, MAX_MEGAPIXELS) from error
    except MemoryError as error:
        raise _too_many(name, pixels, LOW_MEMORY_MEGAPIXELS) from error
    except UnidentifiedImageError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name) from error
    except _DAMAGES as error:
        raise RequestRefused(ErrorCode.PICTURE_TRUNCATED, name=name, provider_detail=str(error)[:200]) from error


def _too_many(name: str, pixels: int, limit: int) -> RequestRefused:
    # Up, so that what is a little over the limit never reads as the limit itself.
    megapixels = math.ceil(pixels / 100_000) / 10
    return RequestRefused(ErrorCode.PICTURE_TOO_MANY_PIXELS, name=name, megapixels=megapixels, limit=limit)


def _opened(image: Image.Image) -> Opened:
    stated = image.info.get("icc_profile")
    profile = stated if isinstance(stated, bytes) and stated else None
    upright = _upright(image)
    if upright.mode == "CMYK":
        return Opened(_from_inks(upright, profile), None)
    return Opened(_plain(upright), profile)


def _upright(image: Image.Image) -> Image.Image:
    """Return the picture turned as its file says: uploads are upright already, a model's own picture may not be."""
    try:
        if image.getexif().get(_ORIENTATION, 1) == 1:
            return image
        return ImageOps.exif_transpose(image)
    # Corrupt EXIF is dropped like all other.
    except _DAMAGES:
        return image


def _plain(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return _sixteen_bits(image)
    if image.mode in {"1", "L"}:
        return image.convert("LA" if "transparency" in image.info else "L")
    if "transparency" in image.info or image.mode in {"PA", "RGBa"}:
        return image.convert("RGBA")
    if image.mode == "La":
        return image.convert("LA")
    return image.convert("RGB") if image.mode not in _PLAIN_MODES else image


def _sixteen_bits(image: Image.Image) -> Image.Image:
    import numpy as np

    values = np.asarray(image).clip(0, 65535).astype(np.uint16)
    clear = image.info.get("transparency")
    if clear is None:
        return Image.fromarray(values)
    # Pillow has no 16 bits beside an alpha channel, and what is seen through weighs more than the finer greys.
    grey = Image.fromarray(((values.astype(np.uint32) + 128) // 257).astype(np.uint8))
    alpha = Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8))
    return Image.merge("LA", (grey, alpha))


def _from_inks(image: Image.Image, profile: bytes | None) -> Image.Image:
    if profile is not None:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
        # A corrupt profile is ignored, as browsers do.
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            converted = None
        if converted is not None:
            return converted
    return image.convert("RGB")
