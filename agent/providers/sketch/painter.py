"""Compose a sketch: a place, a figure, weather, a caption, and a label that marks it as a sketch.

The table of figures gives the drawing for each word, its height, and its own colour.

Everything follows from the text: the same text and size give the same pixels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from agent import wording
from agent.providers.sketch import creatures, lettering, things
from agent.providers.sketch.canvas import Canvas, FigureFrame
from agent.providers.sketch.operations import Position
from agent.providers.sketch.palette import INK, PAPER, Colour, Palette, mix, palette_for
from agent.providers.sketch.phrases import find_quoted
from agent.providers.sketch.places import paint_place, paint_weather
from agent.providers.sketch.vocabulary import FIGURES, PLACES, find
from agent.style_look import StyleLook

_USUAL_PLACE = {
    "fish": "underwater", "boat": "sea", "lighthouse": "sea", "cup": "room", "cake": "room", "fruit": "room",
    "flower": "room", "person": "plain", "guitar": "plain", "heart": "plain", "star": "plain", "robot": "plain",
    "dragon": "mountains", "rocket": "space", "balloon": "mountains", "car": "city", "umbrella": "city",
}  # fmt: skip
_FLAT_STYLES = {"minimal", "pixel art"}
# How far left a figure moves to make room beside it, and how much smaller it becomes.
_ASIDE = 0.19
_SMALLER = 0.78


@dataclass(frozen=True)
class Composition:
    """The content of a sketch: the place, the figure in it (or None), its colours, and the words it came from."""

    place: str
    figure: str | None
    palette: Palette
    style: str
    seed: int
    words: str


def compose(description: str, style: str, take: int = 1) -> Composition:
    """Return what to paint for a description: the first known place and figure, else geometry; each take differs."""
    name = description.strip() if take == 1 else f"{description.strip()} #{take}"
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
    figure, place = find(FIGURES, description), find(PLACES, description)
    palette = palette_for(description, style, seed)
    if figure == "fish" and place == "sea":
        place = "underwater"
    if place is None:
        place = _USUAL_PLACE.get(figure, "field") if figure else _place_of_mood(palette)
    if place == "abstract" and figure is not None and style != "abstract":
        place = "plain"
    return Composition(place, figure, palette, style, seed, description.lower())


def paint(
    description: str,
    caption: str,
    style: str,
    size: tuple[int, int],
    take: int = 1,
    *,
    is_variation: bool = False,
    look: StyleLook | None = None,
) -> Image.Image:
    """Return the sketch as an RGB picture of exactly that size, width first; a variation has another arrangement.

    With a look, the sketch is rendered in that style; caption and label stay as they are, so that it is still
    recognised as a sketch.

    The caption is below the picture, without characters that no font of this machine has; if none is left, there is
    only the label.
    """
    plan = compose(description, style, take)
    width, height = size
    # Below the painting is a band for the caption.
    margin, band = round(min(size) * 0.04), round(min(size) * 0.088)
    left, top, right, bottom = frame = margin, margin, width - margin, height - margin - band
    art = _paint_art(plan, (right - left, bottom - top), is_variation=is_variation)
    if look is not None:
        # This import loads OpenCV, which most sketches do not need.
        from agent.style_rendering import render_in_style

        art = Image.fromarray(render_in_style(np.asarray(art.convert("RGB")), look))
    quoted = find_quoted(description)
    if quoted:
        art = lettering.write_into(art, quoted[0], Position.TOP)
    paper = Canvas(size, plan.seed ^ 0x5EED)
    paper.ground(PAPER, mix(PAPER, (232, 224, 208), 0.4))
    page = paper.image()
    page.paste(art, (left, top), _torn_edge(art.size, plan.seed))
    _write_below(page, frame, caption, is_in_chinese=wording.is_chinese(description + caption))
    return page


def _place_of_mood(palette: Palette) -> str:
    if {"night", "snow", "sunset"} & set(palette.moods):
        return "mountains"
    if "autumn" in palette.moods:
        return "forest"
    return "field" if palette.moods else "abstract"


def _paint_art(plan: Composition, size: tuple[int, int], *, is_variation: bool) -> Image.Image:
    """Return the painting; in a variation the figure is smaller and off-centre, and the picture is mirrored."""
    canvas = Canvas(size, plan.seed, is_flat=plan.style in _FLAT_STYLES)
    stand = paint_place(plan.place, canvas, plan.palette)
    if plan.figure is not None:
        _paint_figure(plan.figure, plan, canvas, stand, is_aside=is_variation)
    if plan.place not in {"room", "space", "underwater"}:
        paint_weather(canvas, plan.palette)
    art = ImageOps.mirror(canvas.image()) if is_variation else canvas.image()
    if plan.style == "pixel art":
        small = art.resize((max(1, art.width // 8), max(1, art.height // 8)), Image.Resampling.BOX)
        few = small.quantize(28, dither=Image.Dither.NONE).convert("RGB")
        return few.resize(art.size, Image.Resampling.NEAREST)
    if plan.style in {"pencil", "line art"}:
        # Pale tones with drawn edges.
        gray = art.convert("L")
        blurred = ImageOps.invert(gray).filter(ImageFilter.GaussianBlur(max(3, min(art.size) // 90)))
        lines = ImageChops.add(gray, blurred)
        drawn = ImageChops.multiply(lines, gray.point([96 + value * 159 // 255 for value in range(256)]))
        return ImageOps.colorize(drawn, black=(40, 40, 46), white=PAPER)
    return art


def _torn_edge(size: tuple[int, int], seed: int) -> Image.Image:
    """Return the mask of the painted area: its edges are slightly irregular, like those of a brush."""
    random = np.random.default_rng(seed ^ 0xED6E)
    reach = max(2.0, min(size) * 0.006)
    width, height = size

    def side(count: int) -> list[float]:
        rough = np.interp(np.arange(count), np.arange(count // 5 + 2) * 5, random.uniform(0.15, 1, count // 5 + 2))
        return [float(value) * reach for value in rough + random.uniform(-0.12, 0.12, count)]

    count = 160
    at = [index / (count - 1) for index in range(count)]
    points = [(x * width, y) for x, y in zip(at, side(count), strict=True)]
    points += [(width - x, y * height) for x, y in zip(side(count), at, strict=True)]
    points += [((1 - x) * width, height - y) for x, y in zip(at, side(count), strict=True)]
    points += [(x, (1 - y) * height) for x, y in zip(side(count), at, strict=True)]
    mask = Image.new("L", (width * 2, height * 2), 0)
    ImageDraw.Draw(mask).polygon([(x * 2, y * 2) for x, y in points], fill=255)
    return mask.reduce(2)


def _write_below(page: Image.Image, frame: tuple[int, int, int, int], caption: str, *, is_in_chinese: bool) -> None:
    unit = min(page.size)
    left, _, right, bottom = frame
    middle = bottom + (page.height - bottom) * 0.47
    mark_left = _mark(page, right, middle, unit, "草图" if is_in_chinese else "Sketch")
    width = mark_left - left - unit * 0.05
    words = caption[:1].upper() + caption[1:]
    size = unit * 0.04
    fitted = lettering.fit(words, width, size, max_lines=1)
    if fitted is not None and fitted[0].size < size * 0.72:
        fitted = lettering.fit(words, width, size * 0.78, max_lines=2)
    if fitted is None:
        return
    font, lines = fitted
    step = font.size * 1.25
    start = middle - step * (len(lines) - 1) / 2
    draw = ImageDraw.Draw(page)
    for row, line in enumerate(lines):
        draw.text((left + unit * 0.006, start + step * row), line, fill=INK, font=font, anchor="lm")


def _mark(page: Image.Image, right: float, middle: float, unit: int, word: str) -> float:
    """Draw the small label that marks the sketch, and return its left edge."""
    size = unit * 0.026
    font = lettering.find_font(word, size)
    if font is None or lettering.drawable(word, font) != word:
        word = "Sketch"
        font = lettering.find_font(word, size)
    if font is None:
        return right
    colour: Colour = (128, 122, 114)
    wide, high = font.getlength(word) + size * 1.3, size * 1.9
    left = right - wide
    draw = ImageDraw.Draw(page)
    box = (left, middle - high / 2, right, middle + high / 2)
    draw.rounded_rectangle(box, radius=high / 2, outline=colour, width=max(1, round(unit / 500)))
    draw.text(((left + right) / 2, middle), word, fill=colour, font=font, anchor="mm")
    return left


# ---- figures


@dataclass(frozen=True)
class _Figure:
    """A drawing, the size of its unit as a share of the shorter side, and its natural colour.

    `has_shadow`: it throws one on the ground, unless it floats.
    """

    draw: Callable[[FigureFrame, Colour], None]
    scale: float
    colour: Colour | None = None
    is_floating: bool = False
    has_shadow: bool = True


_FIGURES: dict[str, _Figure] = {
    "cat": _Figure(creatures.cat, 0.30, (150, 118, 92)),
    "fox": _Figure(creatures.fox, 0.30, (218, 116, 52)),
    "rabbit": _Figure(creatures.rabbit, 0.30, (196, 176, 158)),
    "bear": _Figure(creatures.bear, 0.33, (126, 92, 70)),
    "bird": _Figure(creatures.bird, 0.28),
    "fish": _Figure(creatures.fish, 0.34, (240, 132, 70), is_floating=True),
    "dragon": _Figure(creatures.dragon, 0.34, (84, 146, 104)),
    "horse": _Figure(creatures.horse, 0.30, (150, 104, 72)),
    "butterfly": _Figure(creatures.butterfly, 0.34, is_floating=True),
    "robot": _Figure(creatures.robot, 0.32, (150, 172, 184)),
    "person": _Figure(creatures.person, 0.38, has_shadow=False),
    "lighthouse": _Figure(things.lighthouse, 0.34, (208, 72, 58)),
    "boat": _Figure(things.boat, 0.34, (150, 84, 58), has_shadow=False),
    "balloon": _Figure(things.balloon, 0.30, is_floating=True),
    "rocket": _Figure(things.rocket, 0.32, (232, 232, 228), is_floating=True),
    "car": _Figure(things.car, 0.32),
    "bicycle": _Figure(things.bicycle, 0.32),
    "house": _Figure(things.house, 0.33, (226, 200, 164)),
    "umbrella": _Figure(things.umbrella, 0.34),
    "cup": _Figure(things.cup, 0.32, (240, 234, 222)),
    "cake": _Figure(things.cake, 0.32, (246, 218, 206)),
    "guitar": _Figure(things.guitar, 0.32, (186, 112, 62)),
    "fruit": _Figure(things.fruit, 0.30, (208, 66, 52)),
    "flower": _Figure(things.flowers, 0.30),
    "tree": _Figure(things.tree, 0.38, (96, 140, 84)),
    "heart": _Figure(things.heart, 0.34, (214, 70, 76), is_floating=True),
    "star": _Figure(things.star, 0.34, (240, 190, 70), is_floating=True),
}


def _paint_figure(name: str, plan: Composition, canvas: Canvas, stand: float, *, is_aside: bool) -> None:
    """Paint the named figure, standing at the height `stand` or floating; with `is_aside` smaller and off-centre."""
    figure, palette = _FIGURES[name], plan.palette
    colour = palette.subject or figure.colour or palette.accent
    if "night" in palette.moods:
        colour = mix(colour, palette.sky_low, 0.18)
    is_wide = canvas.width > canvas.height * 1.2
    x = canvas.between(0.4, 0.6) if is_wide else canvas.between(0.47, 0.53)
    x, scale = (x if name != "person" else 0.5), figure.scale
    if is_aside:
        x, scale = x - (_ASIDE if is_wide else _ASIDE / 2), scale * _SMALLER
    # The words select details that only some drawings have: a hat, grey hair.
    frame = FigureFrame(canvas, palette, x, 0.5 if figure.is_floating else stand, scale, plan.words)
    if figure.has_shadow and not figure.is_floating:
        frame.shadow()
    figure.draw(frame, colour)
