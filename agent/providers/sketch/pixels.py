"""The pixel operations on real pictures: one small function each, full resolution, transparency kept.

A picture is a PIL image in mode RGB or RGBA; `apply` takes any mode. Mirrors and quarter turns move pixels and change
none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch

from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from agent.providers.sketch.lettering import write_into
from agent.providers.sketch.operations import (
    AddText,
    Axis,
    Crop,
    Flip,
    Operation,
    ResizeBy,
    ResizeTo,
    Rotate,
    Tone,
    ToneKind,
)

MAX_SIDE_PIXELS = 8192
MAX_PIXELS = 40_000_000


def apply(image: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    """Return a new picture with the operations applied in their order; the given one stays as it is."""
    result = _plain(image)
    for operation in operations:
        result = apply_one(operation, result)
    return result


def crop_to_ratio(image: Image.Image, width: int, height: int) -> Image.Image:
    """Return the largest middle part whose sides are as width to height, exact to the pixel where the size allows.

    The ratio is met exactly when the sides are multiples of it; a picture smaller than the ratio's own figures is
    cut to the nearest pixel.
    """
    unit = min(image.width // width, image.height // height)
    if unit:
        size = (unit * width, unit * height)
    else:
        scale = min(image.width / width, image.height / height)
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
    left, top = (image.width - size[0]) // 2, (image.height - size[1]) // 2
    return image.crop((left, top, left + size[0], top + size[1]))


@singledispatch
def apply_one(operation: Operation, image: Image.Image) -> Image.Image:
    """Return the picture after one operation."""
    raise TypeError(f"no such operation: {operation!r}")


@apply_one.register
def _(operation: Tone, image: Image.Image) -> Image.Image:
    change = _TONES[operation.kind]
    if operation.kind is ToneKind.BLUR:
        return change(image, operation.amount)
    changed = change(image.convert("RGB"), operation.amount)
    if image.mode == "RGBA":
        changed.putalpha(image.getchannel("A"))
    return changed


@apply_one.register
def _(operation: Rotate, image: Image.Image) -> Image.Image:
    quarters = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
    if operation.degrees in quarters:
        return image.transpose(quarters[int(operation.degrees)])
    return image.convert("RGBA").rotate(-operation.degrees, Image.Resampling.BICUBIC, expand=True)


@apply_one.register
def _(operation: Flip, image: Image.Image) -> Image.Image:
    is_horizontal = operation.axis is Axis.HORIZONTAL
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT if is_horizontal else Image.Transpose.FLIP_TOP_BOTTOM)


@apply_one.register
def _(operation: Crop, image: Image.Image) -> Image.Image:
    return crop_to_ratio(image, operation.width, operation.height)


@apply_one.register
def _(operation: ResizeTo, image: Image.Image) -> Image.Image:
    width, height = operation.width, operation.height
    if width and height:
        return ImageOps.fit(image, _within_limits(width, height), Image.Resampling.LANCZOS)
    factor = (width or 0) / image.width or (height or 0) / image.height
    return _scaled(image, factor)


@apply_one.register
def _(operation: ResizeBy, image: Image.Image) -> Image.Image:
    return _scaled(image, operation.factor)


@apply_one.register
def _(operation: AddText, image: Image.Image) -> Image.Image:
    return write_into(image, operation.text, operation.position)


def _scaled(image: Image.Image, factor: float) -> Image.Image:
    size = _within_limits(round(image.width * factor), round(image.height * factor))
    return image.resize(size, Image.Resampling.LANCZOS)


def _within_limits(width: int, height: int) -> tuple[int, int]:
    """Return the size, made smaller in proportion when it is more than one machine should hold."""
    width, height = max(1, width), max(1, height)
    factor = min(1.0, MAX_SIDE_PIXELS / max(width, height), (MAX_PIXELS / (width * height)) ** 0.5)
    return max(1, int(width * factor)), max(1, int(height * factor))


def _plain(image: Image.Image) -> Image.Image:
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


def _curve(gamma: float) -> list[int]:
    return [round(255 * (value / 255) ** gamma) for value in range(256)]


def _curves(red: float, green: float, blue: float) -> Callable[[Image.Image], Image.Image]:
    """Return a change by one gamma a channel: black stays black and white stays white."""
    table = _curve(red) + _curve(green) + _curve(blue)
    return lambda image: image.point(table)


def _brighter(image: Image.Image, amount: float) -> Image.Image:
    gamma = 1 / (1 + 2 * amount)
    return _curves(gamma, gamma, gamma)(image)


def _darker(image: Image.Image, amount: float) -> Image.Image:
    gamma = 1 + 2 * amount
    return _curves(gamma, gamma, gamma)(image)


def _warmer(image: Image.Image, amount: float) -> Image.Image:
    return _curves(1 / (1 + 0.8 * amount), 1 / (1 + 0.1 * amount), 1 + 0.9 * amount)(image)


def _cooler(image: Image.Image, amount: float) -> Image.Image:
    return _curves(1 + 0.9 * amount, 1 / (1 + 0.05 * amount), 1 / (1 + 0.8 * amount))(image)


def _blur(image: Image.Image, amount: float) -> Image.Image:
    """Return the picture blurred with colours weighed by their opacity, so that clear pixels do not bleed in."""
    radius = max(1.0, max(image.size) / 250 * amount / 0.25)
    blur = ImageFilter.GaussianBlur(radius)
    if image.mode == "RGBA":
        return image.convert("RGBa").filter(blur).convert("RGBA")
    return image.filter(blur)


def _sharpen(image: Image.Image, amount: float) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(radius=2, percent=round(600 * amount), threshold=2))


_TONES: dict[ToneKind, Callable[[Image.Image, float], Image.Image]] = {
    ToneKind.BRIGHTER: _brighter,
    ToneKind.DARKER: _darker,
    ToneKind.WARMER: _warmer,
    ToneKind.COOLER: _cooler,
    ToneKind.MORE_CONTRAST: lambda image, amount: ImageEnhance.Contrast(image).enhance(1 + 1.6 * amount),
    ToneKind.LESS_CONTRAST: lambda image, amount: ImageEnhance.Contrast(image).enhance(1 - 0.9 * amount),
    ToneKind.MORE_SATURATION: lambda image, amount: ImageEnhance.Color(image).enhance(1 + 2 * amount),
    ToneKind.LESS_SATURATION: lambda image, amount: ImageEnhance.Color(image).enhance(max(0.0, 1 - 1.6 * amount)),
    ToneKind.GRAYSCALE: lambda image, amount: image.convert("L").convert("RGB"),
    ToneKind.SEPIA: lambda image, amount: ImageOps.colorize(
        image.convert("L"), black=(24, 14, 6), mid=(146, 108, 70), white=(255, 242, 218)
    ),
    ToneKind.INVERT: lambda image, amount: ImageOps.invert(image),
    ToneKind.BLUR: _blur,
    ToneKind.SHARPEN: _sharpen,
}
