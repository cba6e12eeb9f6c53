"""The pixel operations on real pictures: one small function each, full resolution, transparency kept.

A picture is a PIL image in mode RGB or RGBA; `apply` takes any mode. Light, colour, turns and crops are the studio's
own exact adjustments.
"""

from __future__ import annotations

from functools import singledispatch

from PIL import Image, ImageFilter, ImageOps

from agent.adjusting import Adjustment
from agent.adjusting.applying import adjusted, eight_bits
from agent.providers.sketch.lettering import write_into
from agent.providers.sketch.operations import AddText, Effect, EffectKind, Operation, ResizeBy, ResizeTo

MAX_SIDE_PIXELS = 8192
MAX_PIXELS = 40_000_000


def apply(image: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    """Return a new picture with the operations applied in their order; the given one stays as it is."""
    result = plain(image)
    for operation in operations:
        result = apply_one(operation, result)
    return result


@singledispatch
def apply_one(operation: Operation, image: Image.Image) -> Image.Image:
    """Return the picture after one operation."""
    raise TypeError(f"no such operation: {operation!r}")


@apply_one.register
def _(operation: Adjustment, image: Image.Image) -> Image.Image:
    return adjusted(image, operation)


@apply_one.register
def _(operation: Effect, image: Image.Image) -> Image.Image:
    if operation.kind is EffectKind.BLUR:
        return _blurred(image, operation.amount)
    if operation.kind is EffectKind.PIXELATE:
        return _pixelated(image, operation.amount)
    opaque = image.convert("RGB")
    changed = ImageOps.invert(opaque) if operation.kind is EffectKind.INVERT else _sepia(opaque)
    if image.mode == "RGBA":
        changed.putalpha(image.getchannel("A"))
    return changed


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


def plain(image: Image.Image) -> Image.Image:
    """Return the picture with 8 bits in mode RGB, or RGBA where it has any transparency."""
    shown = eight_bits(image) if image.mode == "I;16" else image
    return shown.convert("RGBA" if shown.has_transparency_data else "RGB")


def _blurred(image: Image.Image, amount: int) -> Image.Image:
    """Return the picture blurred with colours weighed by their opacity, so that clear pixels do not bleed in."""
    blur = ImageFilter.GaussianBlur(max(1.0, max(image.size) * amount / 7500))
    if image.mode == "RGBA":
        return image.convert("RGBa").filter(blur).convert("RGBA")
    return image.filter(blur)


def _pixelated(image: Image.Image, amount: int) -> Image.Image:
    """Return the picture in squares of one colour each, about twenty across for a plain wish."""
    side = max(2, round(max(image.size) * amount / 600))
    small = image.resize((max(1, round(image.width / side)), max(1, round(image.height / side))), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.NEAREST)


def _sepia(image: Image.Image) -> Image.Image:
    return ImageOps.colorize(image.convert("L"), black=(24, 14, 6), mid=(146, 108, 70), white=(255, 242, 218))
