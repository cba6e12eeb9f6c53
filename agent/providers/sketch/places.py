"""The places of a sketch, painted from far to near, with their skies, weather and trees.

Each place returns the height at which a figure stands (0 top, 1 bottom).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from agent.providers.sketch.canvas import Canvas
from agent.providers.sketch.palette import Colour, Palette, darker, lighter, mix


def paint_place(name: str, canvas: Canvas, palette: Palette) -> float:
    """Paint the named place over the whole canvas and return the height at which a figure stands."""
    return _PLACES[name](canvas, palette)


def mountains(canvas: Canvas, palette: Palette) -> float:
    """Paint three hazy ridges, with a meadow in front of them."""
    _paint_sky(canvas, palette, 0.6)
    for base, height, rough, colour, haze in ((0.66, 0.44, 5, palette.far, 0.55), (0.74, 0.36, 6, palette.mid, 0.35)):
        ridge = canvas.ridge(base, height, rough, is_sharp=True)
        canvas.land(ridge, colour, mix(colour, palette.sky_low, haze))
        _snow_caps(canvas, ridge, base - height * 0.62, lighter(palette.sky_low, 0.6))
    canvas.land(canvas.ridge(0.82, 0.14, 4), palette.near, mix(palette.near, palette.ground, 0.5))
    canvas.land(canvas.ridge(0.92, 0.07, 3), mix(palette.near, palette.ground, 0.75), palette.ground)
    for _ in range(9):
        side = canvas.between(0, 1)
        x = side * 0.34 if side < 0.5 else 1 - (1 - side) * 0.34
        _pine(canvas, x, 0.86 + canvas.between(0, 0.06), canvas.between(0.1, 0.19), palette.near, palette)
    return 0.93


def _snow_caps(canvas: Canvas, ridge: list[tuple[float, float]], line: float, colour: Colour) -> None:
    """Whiten the peaks above a line, with a jagged lower edge."""
    run: list[tuple[float, float]] = []
    for x, y in [*ridge, (2.0, 1.0)]:
        if y < line:
            run.append((x, y))
            continue
        if len(run) > 3:
            high = enumerate(run[::2])
            torn = [(px, min(line, py + (line - py) * (0.35 + 0.6 * (index % 2)))) for index, (px, py) in high]
            canvas.fill([*run, *reversed(torn)], colour, opacity=0.82)
        run = []


def sea(canvas: Canvas, palette: Palette) -> float:
    """Paint the sky, a far coast, water with reflections, and a strip of beach."""
    horizon = 0.54
    _paint_sky(canvas, palette, horizon)
    canvas.land(canvas.ridge(horizon, 0.07, 4), palette.far, mix(palette.far, palette.sky_low, 0.5), opacity=0.85)
    water = [(-0.02, horizon), (1.02, horizon), (1.02, 1.03), (-0.02, 1.03)]
    canvas.fill(water, mix(palette.water, palette.sky_low, 0.45), darker(palette.water, 0.18))
    colours = (lighter(palette.light, 0.2), darker(palette.water, 0.2), lighter(palette.water, 0.3))
    for row in range(46):
        depth = (row / 46) ** 1.6
        y = horizon + 0.012 + depth * 0.36
        x, length = canvas.between(-0.05, 1), 0.02 + 0.09 * depth * canvas.between(0.5, 1.2)
        wave = [(x, y), (x + length * 0.5, y - 0.004), (x + length, y)]
        canvas.stroke(wave, colours[row % 3], 0.003 + 0.004 * depth, opacity=0.55)
    beach = canvas.ridge(0.95, 0.05, 2)
    canvas.fill(
        [*[(x, y - 0.018) for x, y in beach], (1.02, 1.03), (-0.02, 1.03)], lighter(palette.water, 0.65), opacity=0.7
    )
    sand = mix((236, 208, 160), palette.ground, 0.3)
    canvas.land(beach, lighter(sand, 0.2), sand)
    return 0.83


def underwater(canvas: Canvas, palette: Palette) -> float:
    """Paint the deep sea: rays from above, bubbles, weed and sand."""
    canvas.ground(lighter(palette.water, 0.45), darker(palette.water, 0.5))
    for index in range(5):
        x = 0.1 + index * 0.2 + canvas.between(-0.05, 0.05)
        ray = [(x, -0.02), (x + 0.06, -0.02), (x - 0.04, 0.85), (x - 0.2, 0.85)]
        canvas.fill(ray, lighter(palette.water, 0.7), darker(palette.water, 0.1), opacity=0.16, rim=0.0)
    canvas.land(
        canvas.ridge(0.93, 0.08, 4), mix(palette.ground, palette.water, 0.35), mix(palette.ground, palette.water, 0.6)
    )
    for _ in range(12):
        x, tall = canvas.between(0.02, 0.98), canvas.between(0.1, 0.26)
        weed = [(x + 0.012 * math.sin(step * 1.4), 0.97 - tall * step / 5) for step in range(6)]
        canvas.stroke(weed, mix((52, 120, 96), palette.water, 0.3), 0.014, opacity=0.8)
    for _ in range(22):
        size = canvas.between(0.004, 0.014)
        canvas.oval(
            canvas.between(0, 1), canvas.between(0.05, 0.85), size, size, lighter(palette.water, 0.75), opacity=0.45
        )
    return 0.72


def city(canvas: Canvas, palette: Palette) -> float:
    """Paint three rows of houses with lit windows, and a street."""
    _paint_sky(canvas, palette, 0.7)
    rows = ((0.88, 0.5, 15, palette.far, 0.5), (0.9, 0.42, 12, palette.mid, 0.25), (0.94, 0.3, 9, palette.near, 0.1))
    for base, tall, count, colour, haze in rows:
        _houses(canvas, palette, (base, tall, count), colour, mix(colour, palette.sky_low, haze))
    street = mix(palette.near, palette.ground, 0.35)
    canvas.fill([(-0.02, 0.9), (1.02, 0.9), (1.02, 1.03), (-0.02, 1.03)], street, darker(street, 0.25))
    for index in range(6):
        x = 0.02 + index * 0.18
        canvas.stroke([(x, 0.955), (x + 0.09, 0.955)], lighter(palette.light, 0.1), 0.007, opacity=0.55)
    return 0.96


def _houses(canvas: Canvas, palette: Palette, row: tuple[float, float, int], top: Colour, low: Colour) -> None:
    base, tall, count = row
    is_lit = "night" in palette.moods or "sunset" in palette.moods
    x = -0.03
    while x < 1.0:
        wide = canvas.between(0.6, 1.35) / count
        height = tall * canvas.between(0.4, 1.0)
        roof = base - height
        canvas.fill([(x, roof), (x + wide, roof), (x + wide, base + 0.1), (x, base + 0.1)], top, low)
        if canvas.between(0, 1) > 0.65:
            canvas.stroke([(x + wide / 2, roof), (x + wide / 2, roof - 0.07)], top, 0.005, opacity=0.9)
        _windows(canvas, palette, (x, roof, wide, height), top, is_lit=is_lit)
        x += wide * canvas.between(0.98, 1.12)


def _windows(
    canvas: Canvas, palette: Palette, house: tuple[float, float, float, float], wall: Colour, *, is_lit: bool
) -> None:
    x, roof, wide, height = house
    columns = max(2, int(wide * canvas.width / (canvas.unit * 0.032)))
    rows = max(2, int(height * canvas.height / (canvas.unit * 0.05)))
    cell_x, cell_y = wide / (columns + 0.6), height / (rows + 0.6)
    for column in range(columns):
        for row in range(rows):
            chance = canvas.between(0, 1)
            if chance > (0.5 if is_lit else 0.62):
                continue
            left, upper = x + cell_x * (column + 0.55), roof + cell_y * (row + 0.6)
            colour = mix(palette.accent, palette.light, chance * 2) if is_lit else lighter(wall, 0.28)
            right, lower = left + cell_x * 0.5, upper + cell_y * 0.45
            pane = [(left, upper), (right, upper), (right, lower), (left, lower)]
            canvas.fill(pane, colour, opacity=0.85 if is_lit else 0.6, rim=0.0)


def forest(canvas: Canvas, palette: Palette) -> float:
    """Paint rows of trees, paler the farther away, and a path."""
    _paint_sky(canvas, palette, 0.6)
    grow = _leaf_tree if {"autumn", "spring"} & set(palette.moods) else _pine
    for row, (base, tall, count) in enumerate(((0.7, 0.36, 17), (0.78, 0.46, 13), (0.88, 0.62, 8))):
        colour = mix((palette.far, palette.mid, palette.near)[row], palette.sky_low, 0.3 - 0.12 * row)
        canvas.land(canvas.ridge(base, 0.05, 5), colour, mix(colour, palette.ground, 0.4))
        for index in range(count):
            x = (index + canvas.between(0.1, 0.9)) / count
            if row == 2 and 0.36 < x < 0.64:
                continue
            grow(canvas, x, base + 0.03, tall * canvas.between(0.75, 1.1), colour, palette)
    canvas.land(canvas.ridge(0.9, 0.05, 3), mix(palette.near, palette.ground, 0.6), palette.ground)
    path = [(0.47, 0.87), (0.53, 0.87), (0.6, 0.94), (0.72, 1.03), (0.3, 1.03), (0.42, 0.94)]
    canvas.fill(path, lighter(palette.ground, 0.4), lighter(palette.ground, 0.25), opacity=0.75)
    return 0.94


def field(canvas: Canvas, palette: Palette) -> float:
    """Paint rolling hills and a meadow with flowers."""
    _paint_sky(canvas, palette, 0.62)
    canvas.land(canvas.ridge(0.7, 0.16, 3), palette.far, mix(palette.far, palette.sky_low, 0.4))
    canvas.land(canvas.ridge(0.76, 0.12, 3), palette.mid, mix(palette.mid, palette.ground, 0.5))
    for _ in range(5):
        _leaf_tree(canvas, canvas.between(0, 1), 0.76, canvas.between(0.11, 0.2), palette.near, palette)
    canvas.land(canvas.ridge(0.82, 0.06, 2), mix(palette.near, palette.ground, 0.6), palette.ground)
    for _ in range(90):
        x, y = canvas.between(0, 1), canvas.between(0.84, 1.0)
        tall = (y - 0.76) * 0.11
        canvas.stroke([(x, y), (x + 0.004, y - tall)], mix(palette.near, palette.ground, 0.25), 0.003, opacity=0.55)
    if "snow" not in palette.moods:
        for colour in (palette.accent, lighter(palette.accent, 0.5), (250, 236, 180)):
            canvas.dots(16, (0, 0.85, 1, 1), (0.003, 0.0065), colour, 0.9)
    return 0.93


def desert(canvas: Canvas, palette: Palette) -> float:
    """Paint dunes, each with a lit and a shaded side."""
    _paint_sky(canvas, palette, 0.58)
    sand = mix((228, 178, 112), palette.ground, 0.35)
    for base, height, rough, shade in ((0.68, 0.16, 3, 0.0), (0.8, 0.16, 2, 0.1), (0.96, 0.17, 2, 0.18)):
        colour = darker(sand, shade)
        canvas.land(canvas.ridge(base, height, rough), lighter(colour, 0.12), mix(colour, palette.accent, 0.2))
        canvas.stroke(canvas.ridge(base + 0.07, 0.05, 2)[::6], darker(colour, 0.15), 0.004, opacity=0.4)
    return 0.93


def room(canvas: Canvas, palette: Palette) -> float:
    """Paint a wall with light from a window, and a table."""
    wall = lighter(mix(palette.sky_low, palette.far, 0.3), 0.1)
    canvas.ground(lighter(wall, 0.15), darker(wall, 0.06))
    canvas.glow(0.22, 0.2, 0.9, palette.light, 0.55)
    for left in (0.1, 0.235):
        pane = [(left, 0.08), (left + 0.12, 0.1), (left + 0.12, 0.5), (left, 0.52)]
        canvas.fill(pane, lighter(palette.sky_top, 0.45), lighter(palette.sky_low, 0.4), opacity=0.8)
        for start, end in zip(pane, [*pane[1:], pane[0]], strict=True):
            canvas.stroke([start, end], darker(wall, 0.4), 0.009, opacity=0.75, tapers=False)
        middle = left + 0.06
        canvas.stroke([(middle, 0.09), (middle, 0.51)], darker(wall, 0.4), 0.005, opacity=0.6, tapers=False)
    wood = mix((164, 112, 76), palette.near, 0.22)
    top = 0.74
    canvas.fill([(-0.02, top), (1.02, top), (1.02, 1.03), (-0.02, 1.03)], lighter(wood, 0.12), darker(wood, 0.15))
    for _ in range(14):
        y, x = canvas.between(top + 0.02, 1), canvas.between(-0.1, 0.8)
        grain = [(x, y), (x + 0.15, y + canvas.between(-0.006, 0.006)), (x + 0.35, y)]
        canvas.stroke(grain, darker(wood, 0.25), 0.0025, opacity=0.4)
    return 0.86


def plain(canvas: Canvas, palette: Palette) -> float:
    """Paint a studio backdrop: two washes and a halo."""
    back = lighter(mix(palette.sky_top, palette.sky_low, 0.6), 0.2)
    canvas.ground(back, mix(back, palette.ground, 0.45))
    canvas.oval(
        0.5, 0.46, 0.47, 0.44, lighter(palette.sky_low, 0.5), mix(palette.accent, palette.sky_low, 0.65), opacity=0.75
    )
    canvas.glow(0.5, 0.4, 0.7, palette.light, 0.35)
    for _ in range(7):
        x, y, size = canvas.between(0, 1), canvas.between(0, 1), canvas.between(0.02, 0.07)
        canvas.oval(x, y, size, size, mix(palette.accent, palette.sky_low, 0.5), opacity=0.22)
    return 0.97


def space(canvas: Canvas, palette: Palette) -> float:
    """Paint deep space: a nebula, stars, a ringed planet and the rim of another one."""
    canvas.ground((14, 16, 40), mix((42, 24, 72), palette.water, 0.3))
    for _ in range(7):
        colour = mix(palette.accent, (96, 70, 190), canvas.between(0, 1))
        canvas.glow(canvas.between(0.05, 0.95), canvas.between(0.1, 0.75), canvas.between(0.3, 0.65), colour, 0.3)
    canvas.dots(190, (0, 0, 1, 1), (0.001, 0.0036), (255, 252, 238), 1.0)
    x, y, size = canvas.between(0.7, 0.8), canvas.between(0.24, 0.32), 0.115
    canvas.oval(x, y, size, size, lighter(palette.accent, 0.35), darker(palette.accent, 0.45))
    across, down = canvas.unit / canvas.width, canvas.unit / canvas.height
    turns = [step / 20 * math.pi for step in range(-3, 24)]
    ring = [
        (x + size * 1.75 * across * math.cos(turn), y + size * down * (0.42 * math.sin(turn) - 0.35 * math.cos(turn)))
        for turn in turns
    ]
    canvas.stroke(ring, lighter(palette.accent, 0.6), 0.012, opacity=0.8)
    canvas.oval(0.3, 1.32, 0.85, 0.5, mix(palette.far, (110, 120, 180), 0.5), darker(palette.near, 0.4))
    return 0.84


def abstract(canvas: Canvas, palette: Palette) -> float:
    """Paint a composition of circles, bars and arcs on a grid."""
    canvas.ground(lighter(palette.sky_low, 0.45), lighter(palette.ground, 0.4))
    colours = (palette.accent, palette.water, palette.near, palette.mid, lighter(palette.accent, 0.4), palette.light)
    x, y = canvas.between(0.3, 0.7), canvas.between(0.35, 0.6)
    canvas.oval(x, y, 0.33, 0.33, palette.accent, mix(palette.accent, palette.light, 0.4))
    for index in range(9):
        colour = colours[index % len(colours)]
        x, y, size = canvas.between(0.05, 0.95), canvas.between(0.05, 0.95), canvas.between(0.05, 0.2)
        kind = index % 4
        across, down = canvas.unit / canvas.width * size, canvas.unit / canvas.height * size
        if kind == 0:
            canvas.oval(x, y, size * 0.7, size * 0.7, colour, lighter(colour, 0.2), opacity=0.82)
        elif kind == 1:
            bar = [(x - across, y), (x + across, y - down * 0.3), (x + across, y), (x - across, y + down * 0.3)]
            canvas.fill(bar, colour, opacity=0.85)
        elif kind == 2:
            peak = [(x, y - down), (x + across, y + down), (x - across, y + down)]
            canvas.fill(peak, colour, lighter(colour, 0.3), opacity=0.8)
        else:
            arc = [(x + across * math.cos(a / 12 * math.pi), y + down * math.sin(a / 12 * math.pi)) for a in range(13)]
            canvas.stroke(arc, colour, 0.02, opacity=0.85, tapers=False)
    for _ in range(5):
        x, y = canvas.between(0, 0.8), canvas.between(0.1, 0.9)
        canvas.stroke([(x, y), (x + 0.28, y + canvas.between(-0.12, 0.12))], palette.ink, 0.005, opacity=0.7)
    return 0.88


_PLACES: dict[str, Callable[[Canvas, Palette], float]] = {
    "mountains": mountains,
    "sea": sea,
    "underwater": underwater,
    "city": city,
    "forest": forest,
    "field": field,
    "desert": desert,
    "room": room,
    "plain": plain,
    "space": space,
    "abstract": abstract,
}


def paint_weather(canvas: Canvas, palette: Palette) -> None:
    """Paint the weather: snowflakes, rain, leaves or petals, by the moods."""
    if "snow" in palette.moods:
        canvas.dots(150, (0, 0, 1, 1), (0.002, 0.0065), (255, 255, 255), 0.85)
    if "rain" in palette.moods:
        for _ in range(110):
            x, y, length = canvas.between(0, 1.05), canvas.between(-0.05, 1), canvas.between(0.03, 0.07)
            canvas.stroke([(x, y), (x - length * 0.22, y + length)], lighter(palette.sky_low, 0.5), 0.0028, opacity=0.5)
    if "autumn" in palette.moods:
        _leaves(canvas, ((206, 72, 38), (232, 150, 52), (178, 58, 40)))
    if "spring" in palette.moods:
        _leaves(canvas, ((250, 190, 206), (244, 160, 186), (255, 226, 232)))


def _leaves(canvas: Canvas, colours: tuple[Colour, ...]) -> None:
    for index in range(34):
        x, y, size = canvas.between(0, 1), canvas.between(0.05, 1), canvas.between(0.006, 0.013)
        turn = canvas.between(0, math.tau)
        across, down = size * canvas.unit / canvas.width, size * canvas.unit / canvas.height
        cos, sin = math.cos(turn), math.sin(turn)
        points = [
            (x + across * (cos * a - sin * b), y + down * (sin * a + cos * b))
            for a, b in ((-1.3, 0), (-0.4, 0.55), (0.6, 0.45), (1.3, 0), (0.6, -0.45), (-0.4, -0.55))
        ]
        canvas.fill(points, colours[index % len(colours)], opacity=0.85)


def _paint_sky(canvas: Canvas, palette: Palette, horizon: float) -> None:
    """Cover the canvas with the sky for the palette's moods: sun and clouds, or moon and stars."""
    canvas.ground(palette.sky_top, palette.sky_low)
    if "night" in palette.moods:
        canvas.dots(90, (0, 0, 1, 0.6), (0.0012, 0.0034), (255, 250, 230), 0.95)
        x, y = canvas.between(0.68, 0.86), canvas.between(0.16, 0.26)
        canvas.glow(x, y, 0.42, palette.light, 0.42)
        canvas.oval(x, y, 0.078, 0.078, palette.light, mix(palette.light, palette.sky_low, 0.15))
        for dx, dy, size in ((-0.02, -0.016, 0.016), (0.026, 0.012, 0.011), (-0.008, 0.034, 0.009)):
            canvas.oval(x + dx * canvas.unit / canvas.width, y + dy * canvas.unit / canvas.height, size, size,
                        mix(palette.light, palette.sky_low, 0.28), opacity=0.6)  # fmt: skip
        return
    is_low = "sunset" in palette.moods
    x = canvas.between(0.36, 0.64) if is_low else canvas.between(0.68, 0.84)
    y = horizon - 0.12 if is_low else canvas.between(0.17, 0.27)
    canvas.glow(x, y, 0.75 if is_low else 0.5, palette.light, 0.75 if is_low else 0.55)
    size = 0.105 if is_low else 0.07
    canvas.oval(x, y, size, size, lighter(palette.light, 0.35), palette.light, opacity=0.95)
    cloud = mix(lighter(palette.sky_low, 0.4), palette.sky_top, 0.12)
    for _ in range(3 if "rain" not in palette.moods else 6):
        x, y = canvas.between(0.05, 0.95), canvas.between(0.08, horizon * 0.5)
        for step in range(5):
            across = (step - 2) * 0.045 * canvas.unit / canvas.width
            lift = 0.012 * (2 - abs(step - 2))
            rx, ry = 0.055 - 0.007 * abs(step - 2), 0.026 + lift * 0.7
            canvas.oval(x + across, y - lift, rx, ry, cloud, mix(cloud, palette.sky_low, 0.4), opacity=0.93, rim=0.03)


def _pine(canvas: Canvas, x: float, base: float, height: float, colour: Colour, palette: Palette) -> None:
    """Draw one fir tree, its height a share of the shorter side."""
    across, down = canvas.unit / canvas.width, canvas.unit / canvas.height
    canvas.stroke(
        [(x, base), (x, base - height * 0.3 * down)], darker(colour, 0.4), height * 0.07, opacity=0.9, tapers=False
    )
    for tier in range(4):
        low = base - height * (0.12 + 0.2 * tier) * down
        top = low - height * 0.34 * down
        wide = height * (0.3 - 0.058 * tier) * across
        tilt = canvas.between(-0.1, 0.1) * wide
        points = [
            (x - wide, low),
            (x - wide * 0.4, low - height * 0.03 * down),
            (x + wide, low + height * 0.01 * down),
            (x + tilt, top),
        ]
        canvas.fill(points, lighter(colour, 0.06 * tier), darker(colour, 0.12))
        if "snow" in palette.moods:
            left, right = (x - wide * 0.45, low - height * 0.16 * down), (x + wide * 0.35, low - height * 0.18 * down)
            canvas.fill([left, (x + tilt, top), right], (248, 250, 253), opacity=0.8, rim=0.0)


def _leaf_tree(canvas: Canvas, x: float, base: float, height: float, colour: Colour, palette: Palette) -> None:
    """Draw one tree with a round crown, its height a share of the shorter side."""
    across, down = canvas.unit / canvas.width, canvas.unit / canvas.height
    trunk = mix((96, 68, 54), palette.near, 0.35)
    fork = base - height * 0.55 * down
    canvas.stroke(
        [(x, base), (x + 0.01 * across, fork), (x, fork - height * 0.1 * down)], trunk, height * 0.06, opacity=0.95
    )
    leaf = colour if "autumn" not in palette.moods else mix(palette.accent, (236, 170, 60), canvas.between(0, 0.9))
    leaf = mix((244, 166, 190), (255, 222, 230), canvas.between(0, 0.6)) if "spring" in palette.moods else leaf
    for dx, dy, size in ((0, 0.8, 0.2), (-0.17, 0.66, 0.15), (0.17, 0.66, 0.15), (-0.08, 0.9, 0.12), (0.09, 0.9, 0.12)):
        canvas.oval(x + dx * height * across, base - dy * height * down, size * height, size * height * 0.9,
                    lighter(leaf, 0.14), darker(leaf, 0.14), opacity=0.88)  # fmt: skip
