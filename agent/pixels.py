"""A picture in memory without loss: its own size, 8 or 16 bits, grey or colour, alpha and colour profile.

Pillow silently opens 16-bit colour PNGs with 8 bits, so OpenCV reads PNGs of 16 bits. All functions here may compute
for a few seconds and belong in a thread. OpenCV is imported with the first call that needs it.
"""

from __future__ import annotations

import functools
import io
import math
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, UnidentifiedImageError

from agent.errors import ErrorCode, RequestRefused
from agent.pictures import LOW_MEMORY_MEGAPIXELS, MAX_MEGAPIXELS, fitted_size, harden_pillow

Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.floating]
Flags: TypeAlias = NDArray[np.bool_]
Pixels: TypeAlias = NDArray[np.uint8 | np.uint16]

BACKDROP = 255
"""The grey level behind transparent pixels when a picture is shown without transparency."""

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""The weights of red, green and blue in a grey value."""

# The formats that the studio stores and that image models deliver.
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "AVIF")
_ORIENTATION = 0x0112
_PNG_START = b"\x89PNG\r\n\x1a\n"
_PLAIN_MODES = frozenset({"L", "LA", "RGB", "RGBA"})
_COLOUR_MODELS = {1: b"GRAY", 2: b"GRAY", 3: b"RGB ", 4: b"RGB "}
_BAND_ROWS = 256
# Two profiles count as equal if all probe colours of these levels differ by at most _SAME_LEVELS of 255.
_PROBE_LEVELS = tuple(range(0, 256, 51))
_SAME_LEVELS = 1
# Exceptions observed from Pillow's decoders for damaged bytes; UnidentifiedImageError is an OSError.
DAMAGES = (OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, OverflowError, struct.error)
_PROFILE_DAMAGES = (ImageCms.PyCMSError, OSError, ValueError, TypeError)


@dataclass(frozen=True)
class Raster:
    """Height by width by channels (grey, grey and alpha, RGB, RGBA) of 8 or 16 bits, upright, with its ICC profile.

    Alpha is not premultiplied.
    """

    pixels: Pixels
    profile: bytes | None = None

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """The number of rows."""
        return int(self.pixels.shape[0])

    @property
    def has_alpha(self) -> bool:
        """Whether the last channel is alpha."""
        return _has_alpha(self.pixels)

    @property
    def colours(self) -> int:
        """The number of colour channels: 1 or 3."""
        return int(self.pixels.shape[2]) - self.has_alpha

    @property
    def peak(self) -> int:
        """The value of full white: 255 or 65535."""
        return 255 if self.pixels.dtype == np.uint8 else 65535

    @property
    def bit_depth(self) -> int:
        """8 or 16."""
        return 8 if self.pixels.dtype == np.uint8 else 16


def open_picture(data: bytes, name: str = "The picture") -> Raster:
    """Return a picture of the studio at its own size and bit depth; `name` is used in error messages.

    The size is checked in the header before any pixel is decoded. The picture is rotated upright according to its EXIF.
    Palettes become colours; CMYK becomes RGB, which PNG supports; 16-bit grey with alpha becomes 16-bit RGBA, which is
    lossless. For an animation the first frame is used.

    Raises RequestRefused: unreadable, damaged, more than 64 megapixels.
    """
    with _reading(data, name) as image:
        orientation, profile = orientation_of(image), _stated_profile(image)
        if is_deep_png(data):
            pixels = deep_png_pixels(data, image)
        elif image.mode == "CMYK":
            pixels, profile = pixels_of(from_inks(image, profile)), None
        else:
            pixels = pixels_of(image)
        return Raster(upright(pixels, orientation), profile)


@contextmanager
def _reading(data: bytes, name: str) -> Iterator[Image.Image]:
    """Open a picture within the size limit; exceptions of decoders in the block become RequestRefused."""
    harden_pillow()
    pixels = 0
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            pixels = image.width * image.height
            if pixels > MAX_MEGAPIXELS * 1_000_000:
                raise _too_many(name, pixels, MAX_MEGAPIXELS)
            yield image
    except RequestRefused:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        stated = re.search(r"\((\d+) pixels\)", str(error))
        raise _too_many(name, int(stated[1]) if stated else 0, MAX_MEGAPIXELS) from error
    except MemoryError as error:
        raise _too_many(name, pixels, LOW_MEMORY_MEGAPIXELS) from error
    except UnidentifiedImageError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=name) from error
    except DAMAGES as error:
        raise RequestRefused(ErrorCode.PICTURE_TRUNCATED, name=name, provider_detail=str(error)[:200]) from error


def encode_png(raster: Raster) -> bytes:
    """Return the picture as PNG without metadata, except its profile if that has the same colour model."""
    import cv2

    pixels = raster.pixels
    profile = raster.profile if fits(raster.profile, pixels) else None
    if pixels.shape[2] == 2:
        # OpenCV cannot write grey with alpha.
        sink = io.BytesIO()
        Image.fromarray(pixels).save(sink, "PNG", compress_level=2, icc_profile=profile)
        return sink.getvalue()
    order = {1: None, 3: cv2.COLOR_RGB2BGR, 4: cv2.COLOR_RGBA2BGRA}[pixels.shape[2]]
    stored = np.ascontiguousarray(pixels) if order is None else cv2.cvtColor(pixels, order)
    # Level 1 with the "average" filter: measured with a 24-megapixel photo, a quarter of Pillow's time at level 3 and
    # the same size.
    options = [cv2.IMWRITE_PNG_COMPRESSION, 1, cv2.IMWRITE_PNG_FILTER, cv2.IMWRITE_PNG_FILTER_AVG]
    if profile is None:
        _, data = cv2.imencode(".png", stored, options)
    else:
        kept = np.frombuffer(profile, np.uint8)
        _, data = cv2.imencodeWithMetadata(".png", stored, [cv2.IMAGE_METADATA_ICCP], [kept], options)
    return data.tobytes()


def fits(profile: bytes | None, pixels: Pixels) -> bool:
    """Return whether an ICC profile has the colour model of these pixels."""
    return profile is not None and profile[16:20] == _COLOUR_MODELS[pixels.shape[2]]


def of_channels(combine: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
    """Return the channels of each pixel combined, such as their sum.

    NumPy's own reduction along the last axis takes seven times as long."""
    return functools.reduce(combine, np.moveaxis(values, 2, 0))


def eight_bits(pixels: Pixels) -> Bytes:
    """Return the values with 8 bits, rounded to the nearest level."""
    if pixels.dtype == np.uint8:
        return np.asarray(pixels, np.uint8)
    shown = np.empty(pixels.shape, np.uint8)
    for top in range(0, len(pixels), _BAND_ROWS):
        rows = slice(top, top + _BAND_ROWS)
        shown[rows] = (pixels[rows].astype(np.uint32) + 128) // 257
    return shown


def in_colour(raster: Raster) -> Raster:
    """Return the picture as RGB or RGBA; a grey picture loses its profile."""
    if raster.colours == 3:
        return raster
    grey = raster.pixels
    return Raster(np.concatenate([grey[..., :1]] * 3 + [grey[..., 1:]], axis=2))


def resized(raster: Raster, width: int, height: int) -> Raster:
    """Return the picture resized, with colours weighted by their opacity; bit depth and profile stay the same."""
    import cv2

    way = cv2.INTER_AREA if width * height < raster.width * raster.height else cv2.INTER_LANCZOS4
    scaled = averaged(raster.pixels, lambda values: cv2.resize(values, (width, height), interpolation=way))
    return replace(raster, pixels=scaled)


def with_alpha_of(data: bytes, other: bytes) -> bytes:
    """Return a picture as PNG with the alpha of the other one, resized to fit; unchanged pixels if that has no alpha.

    Raises RequestRefused when one of them cannot be read.
    """
    raster, mask = open_picture(data), open_picture(other)
    if not mask.has_alpha:
        return encode_png(raster)
    alpha = resized(Raster(np.ascontiguousarray(mask.pixels[..., -1:])), raster.width, raster.height)
    values = np.rint(alpha.pixels.astype(np.float32) * (raster.peak / alpha.peak)).astype(raster.pixels.dtype)
    colours = raster.pixels[..., : raster.colours]
    return encode_png(replace(raster, pixels=np.concatenate([colours, values], axis=2)))


def averaged(pixels: Pixels, way: Callable[[Any], NDArray[Any]]) -> Pixels:
    """Apply `way`, a function that averages pixels, with colours weighted by their opacity."""
    has_alpha = _has_alpha(pixels)
    found = np.asarray(way(weighed(pixels) if has_alpha else pixels))
    # OpenCV drops the axis of a single channel.
    found = found.reshape(*found.shape[:2], -1)
    return unweighed(found, pixels.dtype) if has_alpha else found


def with_opacity(pixels: Pixels) -> Pixels:
    """Return pixels with an alpha channel, which is opaque if they had none."""
    if _has_alpha(pixels):
        return pixels
    opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([pixels, opaque], axis=2)


def _has_alpha(pixels: Pixels) -> bool:
    return pixels.shape[2] in {2, 4}


def weighed(pixels: Pixels) -> Floats:
    """Return pixels with alpha as premultiplied floats, alpha from 0 to 1.

    Averages of such values are not affected by the invisible colours of transparent pixels.
    """
    opacity = pixels[..., -1:].astype(np.float32) / np.iinfo(pixels.dtype).max
    return np.concatenate([pixels[..., :-1] * opacity, opacity], axis=2)


def unweighed(values: Floats, kind: np.dtype[Any]) -> Pixels:
    """Convert the result of `weighed` back to pixels of a type."""
    peak = np.iinfo(kind).max
    alpha = np.clip(values[..., -1:], 0, 1)
    colours = values[..., :-1] / np.maximum(alpha, 1e-6)
    mixed = np.concatenate([colours, alpha * peak], axis=2)
    return np.asarray(np.clip(np.rint(mixed), 0, peak), kind)


def read_rgb(data: bytes) -> Bytes:
    """Return a picture as 8-bit RGB in sRGB, transparent parts over white. Raises RequestRefused as `open_picture`."""
    raster = open_picture(data)
    return shown_rgb(raster.pixels, raster.profile)


def shown_rgb(pixels: Pixels, profile: bytes | None) -> Bytes:
    """Return pixels as 8-bit RGB in sRGB, transparent parts over white."""
    eight = eight_bits(pixels)
    has_alpha = _has_alpha(eight)
    colour = to_srgb(eight[..., : eight.shape[2] - has_alpha], profile)
    if has_alpha:
        alpha = eight[..., -1:].astype(np.uint16)
        colour = ((colour.astype(np.uint16) * alpha + BACKDROP * (255 - alpha) + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(colour)


def to_srgb(colours: Bytes, profile: bytes | None) -> Bytes:
    """Convert 8-bit colours (grey or RGB, no alpha) from a profile to RGB in sRGB; without a profile they are sRGB."""
    transform = _transform(profile, colours.shape[2], is_back=False)
    if transform is not None:
        return np.asarray(transform.apply(Image.fromarray(_squeezed(np.ascontiguousarray(colours)))))
    return np.repeat(colours, 3, axis=2) if colours.shape[2] == 1 else colours


def from_srgb(colours: Floats, profile: bytes | None, channels: int) -> Floats:
    """Convert sRGB colours (RGB floats from 0 to 255) to a profile with 3 channels, or 1 for grey."""
    transform = _transform(profile, channels, is_back=True)
    if transform is None:
        return colours if channels == 3 else np.asarray((colours @ LUMA)[..., None], np.float32)
    # The profile is applied to integer levels; the fractional rest is added afterwards.
    whole = np.rint(np.clip(colours, 0, 255))
    shown = np.asarray(transform.apply(Image.fromarray(whole.astype(np.uint8))), np.float32)
    rest = np.asarray(colours - whole, np.float32)
    if channels == 1:
        shown, rest = shown[..., None], np.asarray((rest @ LUMA)[..., None], np.float32)
    return np.asarray(shown + rest, np.float32)


@functools.lru_cache(maxsize=16)
def _transform(profile: bytes | None, channels: int, *, is_back: bool) -> ImageCms.ImageCmsTransform | None:
    """Return the transform from a profile to sRGB, or back; None if no conversion is needed or possible."""
    if profile is None or profile[16:20] != _COLOUR_MODELS[channels] or (channels == 3 and is_srgb(profile)):
        return None
    own, mode = io.BytesIO(profile), "L" if channels == 1 else "RGB"
    try:
        if is_back:
            return ImageCms.buildTransform(ImageCms.createProfile("sRGB"), own, "RGB", mode)
        return ImageCms.buildTransform(own, ImageCms.createProfile("sRGB"), mode, "RGB")
    # A damaged profile is ignored, as browsers do.
    except _PROFILE_DAMAGES:
        return None


def small_copy(data: bytes, longest_px: int) -> Image.Image:
    """Return a copy of a picture for screens and models: 8 bits, sRGB, mode RGB or RGBA, no metadata.

    Its longer side is at most `longest_px`; a smaller picture keeps its size. Raises RequestRefused as `open_picture`.
    """
    if is_deep_png(data):
        raster = open_picture(data)
        image, profile = image_of(raster), raster.profile
        size = fitted_size(*image.size, longest_px)
        del raster
    else:
        image, profile, size = _opened_smaller(data, longest_px)
    image = image.convert("RGBA" if image.has_transparency_data else "RGB") if image.mode != "L" else image
    if image.size != size:
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    shown = in_srgb(image, profile)
    shown.info = {}
    return shown


def in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return an 8-bit picture as RGB or RGBA in sRGB; a profile that is damaged or does not fit is ignored."""
    mode = "RGBA" if image.has_transparency_data else "RGB"
    model = b"GRAY" if image.mode == "L" else b"RGB "
    if profile is not None and profile[16:20] == model and (model == b"GRAY" or not is_srgb(profile)):
        shown = _converted(image, profile, mode)
        if shown is not None:
            return shown
    return image if image.mode == mode else image.convert(mode)


@functools.lru_cache(maxsize=32)
def is_srgb(profile: bytes) -> bool:
    """Return whether an RGB profile has the colours of sRGB, whatever its name; a damaged profile counts as sRGB."""
    levels = np.array(_PROBE_LEVELS, np.uint8)
    probe = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(1, -1, 3)
    shown = _converted(Image.fromarray(probe), profile, "RGB")
    return shown is None or bool(np.abs(np.asarray(shown, np.int16) - probe).max() <= _SAME_LEVELS)


def is_deep_png(data: bytes) -> bool:
    """Return whether the bytes are a PNG of 16 bits."""
    return data.startswith(_PNG_START) and data[24:25] == b"\x10"


def orientation_of(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8. Corrupt EXIF counts as upright."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except DAMAGES:
        return 1


def upright(pixels: Pixels, orientation: int) -> Pixels:
    """Return pixels rotated and mirrored according to an EXIF orientation."""
    if orientation in {2, 7}:
        pixels = pixels[:, ::-1]
    elif orientation in {4, 5}:
        pixels = pixels[::-1]
    quarters = {3: 2, 5: 3, 6: 3, 7: 3, 8: 1}.get(orientation, 0)
    return np.ascontiguousarray(np.rot90(pixels, quarters))


def pixels_of(image: Image.Image) -> Pixels:
    """Return an open Pillow image as height by width by 1 to 4 channels; 16-bit grey keeps its depth."""
    if image.mode.startswith("I"):
        return _deep_grey(image)
    if image.mode in {"1", "L"}:
        image = image.convert("LA" if "transparency" in image.info else "L")
    elif "transparency" in image.info or image.mode in {"PA", "RGBa"}:
        image = image.convert("RGBA")
    elif image.mode == "La":
        image = image.convert("LA")
    elif image.mode not in _PLAIN_MODES:
        image = image.convert("RGB")
    pixels = np.array(image, np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def image_of(raster: Raster) -> Image.Image:
    """Return the picture as a Pillow image with 8 bits: mode L, LA, RGB or RGBA."""
    return Image.fromarray(_squeezed(eight_bits(raster.pixels)))


def _stated_profile(image: Image.Image) -> bytes | None:
    stated = image.info.get("icc_profile")
    return stated if isinstance(stated, bytes) and stated else None


def deep_png_pixels(data: bytes, image: Image.Image) -> Pixels:
    """Return the pixels of a 16-bit PNG; `image` is the same file opened with Pillow."""
    import cv2

    # For grey, Pillow keeps all 16 bits and the transparent level.
    if image.mode.startswith("I"):
        return pixels_of(image)
    stored = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if stored is None or stored.dtype != np.uint16 or stored.ndim != 3:
        raise ValueError("no 16-bit PNG")
    order = cv2.COLOR_BGR2RGB if stored.shape[2] == 3 else cv2.COLOR_BGRA2RGBA
    return np.asarray(cv2.cvtColor(stored, order), np.uint16)


def sound_profile(profile: bytes | None, channels: int) -> bytes | None:
    """Return an ICC profile if it fits the number of channels, can be applied, and differs from sRGB; else None."""
    return profile if _transform(profile, 1 if channels < 3 else 3, is_back=False) is not None else None


def _opened_smaller(data: bytes, longest_px: int) -> tuple[Image.Image, bytes | None, tuple[int, int]]:
    """Return an 8-bit picture, its profile and the size of its copy; a JPEG is decoded no larger than needed."""
    with _reading(data, "The picture") as opened:
        image, profile, orientation = opened, _stated_profile(opened), orientation_of(opened)
        size = fitted_size(*(image.size[::-1] if orientation >= 5 else image.size), longest_px)
        if opened.format == "JPEG" and opened.mode == "RGB":
            opened.draft("RGB", (longest_px, longest_px))
        image.load()
        if image.mode == "CMYK":
            image, profile = from_inks(image, profile), None
        if image.mode in {"L", "RGB", "RGBA"} and "transparency" not in image.info and orientation == 1:
            return image, profile, size
        return image_of(Raster(upright(pixels_of(image), orientation))), profile, size


def from_inks(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return a CMYK picture as RGB in sRGB, with its profile if that is valid."""
    return (profile and _converted(image, profile, "RGB")) or image.convert("RGB")


def _converted(image: Image.Image, profile: bytes, mode: str) -> Image.Image | None:
    """Return a picture in sRGB; None when the profile is damaged or does not fit."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        return ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode=mode)
    except _PROFILE_DAMAGES:
        return None


def _squeezed(pixels: Bytes) -> Bytes:
    """Return the pixels in Pillow's shape: grey has no third axis."""
    return pixels[..., 0] if pixels.shape[2] == 1 else pixels


def _deep_grey(image: Image.Image) -> Pixels:
    values = np.asarray(image).clip(0, 65535).astype(np.uint16)[..., None]
    clear = image.info.get("transparency")
    if clear is None:
        return values
    alpha = np.where(values == clear, 0, 65535).astype(np.uint16)
    return np.concatenate([values, values, values, alpha], axis=2)


def _too_many(name: str, pixels: int, limit: int) -> RequestRefused:
    # Rounded up, so that a picture slightly over the limit is never reported as exactly the limit.
    megapixels = math.ceil(pixels / 100_000) / 10
    return RequestRefused(ErrorCode.PICTURE_TOO_MANY_PIXELS, name=name, megapixels=megapixels, limit=limit)
