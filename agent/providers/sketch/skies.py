"""Skies of a sketch, and what falls from them."""

from __future__ import annotations

import math

from agent.providers.sketch.brush import Canvas
from agent.providers.sketch.palette import Colour, Palette, lighter, mix


def paint_weather(canvas: Canvas, palette: Palette) -> None:
    """Paint what falls: snowflakes, rain, leaves or petals, as the moods say."""
    if "snow" in palette.moods:
        canvas.dots(150, (0, 0, 1, 1), (0.002, 0.0065), (255, 255, 255), 0.85)
    if "rain" in palette.moods:
        _rain(canvas, palette)
    if "autumn" in palette.moods:
        _leaves(canvas, ((206, 72, 38), (232, 150, 52), (178, 58, 40)))
    if "spring" in palette.moods:
        _leaves(canvas, ((250, 190, 206), (244, 160, 186), (255, 226, 232)))


def _rain(canvas: Canvas, palette: Palette) -> None:
    for _ in range(110):
        x, y, length = canvas.between(0, 1.05), canvas.between(-0.05, 1), canvas.between(0.03, 0.07)
        canvas.stroke([(x, y), (x - length * 0.22, y + length)], lighter(palette.sky_low, 0.5), 0.0028, opacity=0.5)


def _leaves(canvas: Canvas, colours: tuple[Colour, ...]) -> None:
    for index in range(34):
        x, y, size = canvas.between(0, 1), canvas.between(0.05, 1), canvas.between(0.006, 0.013)
        turn = canvas.between(0, math.tau)
        points = [
            (
                x + size * canvas.unit / canvas.width * (math.cos(turn) * a - math.sin(turn) * b),
                y + size * canvas.unit / canvas.height * (math.sin(turn) * a + math.cos(turn) * b),
            )
            for a, b in ((-1.3, 0), (-0.4, 0.55), (0.6, 0.45), (1.3, 0), (0.6, -0.45), (-0.4, -0.55))
        ]
        canvas.fill(points, colours[index % len(colours)], opacity=0.85)


def paint_sky(canvas: Canvas, palette: Palette, horizon: float = 0.62) -> None:
    """Cover the canvas with the sky of the palette's moods: sun and clouds, or moon and stars."""
    canvas.ground(palette.sky_top, palette.sky_low)
    if "night" in palette.moods:
        _stars_and_moon(canvas, palette)
        return
    _sun(canvas, palette, horizon)
    for _ in range(3 if "rain" not in palette.moods else 6):
        _cloud(canvas, palette, canvas.between(0.05, 0.95), canvas.between(0.08, horizon * 0.5))


def _stars_and_moon(canvas: Canvas, palette: Palette) -> None:
    canvas.dots(90, (0, 0, 1, 0.6), (0.0012, 0.0034), (255, 250, 230), 0.95)
    x, y = canvas.between(0.68, 0.86), canvas.between(0.16, 0.26)
    canvas.glow(x, y, 0.42, palette.light, 0.42)
    canvas.oval(x, y, 0.078, 0.078, palette.light, mix(palette.light, palette.sky_low, 0.15))
    for dx, dy, size in ((-0.02, -0.016, 0.016), (0.026, 0.012, 0.011), (-0.008, 0.034, 0.009)):
        canvas.oval(x + dx * canvas.unit / canvas.width, y + dy * canvas.unit / canvas.height, size, size,
                    mix(palette.light, palette.sky_low, 0.28), opacity=0.6)  # fmt: skip


def _sun(canvas: Canvas, palette: Palette, horizon: float) -> None:
    is_low = "sunset" in palette.moods
    x = canvas.between(0.36, 0.64) if is_low else canvas.between(0.68, 0.84)
    y = horizon - 0.12 if is_low else canvas.between(0.17, 0.27)
    canvas.glow(x, y, 0.75 if is_low else 0.5, palette.light, 0.75 if is_low else 0.55)
    size = 0.105 if is_low else 0.07
    canvas.oval(x, y, size, size, lighter(palette.light, 0.35), palette.light, opacity=0.95)


def _cloud(canvas: Canvas, palette: Palette, x: float, y: float) -> None:
    colour = mix(lighter(palette.sky_low, 0.4), palette.sky_top, 0.12)
    for step in range(5):
        across = (step - 2) * 0.045 * canvas.unit / canvas.width
        lift = 0.012 * (2 - abs(step - 2))
        rx, ry = 0.055 - 0.007 * abs(step - 2), 0.026 + lift * 0.7
        canvas.oval(x + across, y - lift, rx, ry, colour, mix(colour, palette.sky_low, 0.4), opacity=0.93, rim=0.03)
