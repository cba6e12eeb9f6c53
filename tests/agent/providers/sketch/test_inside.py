"""Operations inside a mask, measured on photographs: changed as asked inside, untouched outside."""

from __future__ import annotations

import colorsys
import io
from functools import cache
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from agent import ErrorCode, RequestRefused
from tests.adapters.language import Adjustment, Flip
from tests.adapters.pixels import Raster, image_of, pixels_of
from tests.adapters.sketch import (
    AddText,
    Edit,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Recolour,
    apply_inside,
    edited_inside,
    read_area_wish,
)
from tests.support.cases import each_case

PHOTOS = Path(__file__).parents[3] / "data" / "photos"
SUIT, SHUTTLE, ROCKET = (60, 300, 250, 470), (345, 0, 470, 300), (300, 120, 350, 330)
EVERY: tuple[Operation, ...] = (
    Recolour((36, 92, 204)),
    Erase(),
    Fill(PatternKind.CHECKS, (0, 0, 0), (255, 255, 255)),
    Effect(EffectKind.BLUR),
    Effect(EffectKind.PIXELATE),
    Effect(EffectKind.SEPIA),
    Effect(EffectKind.INVERT),
    Adjustment(brightness=40, contrast=20, saturation=-50, warmth=30, sharpness=40),
    AddText("HELLO", ink=(250, 0, 0)),
)


@cache
def photo(name: str) -> Image.Image:
    with Image.open(PHOTOS / f"{name}.webp") as opened:
        return opened.convert("RGB")


def covering(image: Image.Image, box: tuple[int, int, int, int], *, is_round: bool = True) -> Image.Image:
    mask = Image.new("L", image.size, 0)
    draw = ImageDraw.Draw(mask)
    (draw.ellipse if is_round else draw.rectangle)(box, fill=255)
    return mask


def pixels_in(image: Image.Image, mask: Image.Image) -> NDArray[np.float64]:
    return np.asarray(image.convert("RGB"))[np.asarray(mask) > 0].astype(np.float64)


def light_of(image: Image.Image, mask: Image.Image) -> NDArray[np.float64]:
    return np.asarray(image.convert("L"))[np.asarray(mask) > 0].astype(np.float64)


def asked(wish: str, image: Image.Image, mask: Image.Image) -> Image.Image:
    understood = read_area_wish(wish)
    assert isinstance(understood, Edit)
    return changed(image, mask, understood.operations)


def changed(image: Image.Image, mask: Image.Image, operations: tuple[Operation, ...]) -> Image.Image:
    return image_of(apply_inside(Raster(pixels_of(image)), mask, operations))


def counter() -> Image.Image:
    return covering(photo("coffee"), (50, 50, 449, 349), is_round=False)


def hue_of(colour: NDArray[np.float64]) -> float:
    return 360 * colorsys.rgb_to_hsv(*(float(value) / 255 for value in colour))[0]


@each_case(("wish", "hue"), [("make it red", 0), ("make it blue", 220), ("改成绿色", 134), ("make it purple", 274)])
@each_case(("name", "box"), [("astronaut", SUIT), ("chelsea", (120, 60, 330, 260)), ("gravel", SUIT)])
def test_another_colour_has_the_hue_asked_for_and_the_texture_there_was(
    wish: str, hue: float, name: str, box: tuple[int, int, int, int]
) -> None:
    image = photo(name)
    mask = covering(image, box)
    result = asked(wish, image, mask)
    colour = np.median(pixels_in(result, mask), axis=0)
    assert abs((hue_of(colour) - hue + 180) % 360 - 180) < 12
    assert np.ptp(colour) > 70
    assert np.corrcoef(light_of(image, mask), light_of(result, mask))[0, 1] > 0.9


def test_a_brighter_part_is_brighter_and_a_grey_one_has_no_colour() -> None:
    image = photo("coffee")
    mask = covering(image, (100, 80, 400, 300))
    assert light_of(asked("much brighter", image, mask), mask).mean() > light_of(image, mask).mean() + 20
    assert np.ptp(pixels_in(asked("黑白", image, mask), mask), axis=1).max() <= 1
    assert (pixels_in(asked("反色", image, mask), mask) == 255 - pixels_in(image, mask)).all()


@each_case("wish", ["blur it", "pixelate it", "模糊", "打马赛克"])
def test_detail_is_gone_and_the_colour_stays(wish: str) -> None:
    image = photo("gravel")
    mask = covering(image, (100, 100, 400, 400))
    result = asked(wish, image, mask)
    assert light_of(result, mask).std() < light_of(image, mask).std() / 2
    assert abs(light_of(result, mask).mean() - light_of(image, mask).mean()) < 4


def test_nothing_beside_the_mask_shines_into_a_blur() -> None:
    image = Image.new("RGB", (90, 60), (20, 60, 200))
    image.paste((250, 20, 20), (45, 0, 90, 60))
    mask = covering(image, (0, 0, 44, 59), is_round=False)
    assert (pixels_in(asked("blur a lot", image, mask), mask) == (20, 60, 200)).all()


def test_an_erased_thing_is_gone_and_the_sky_goes_on() -> None:
    image = photo("rocket")
    mask = covering(image, ROCKET, is_round=False)
    result = asked("erase the rocket", image, mask)
    beside = pixels_in(image, covering(image, (240, 120, 290, 300), is_round=False))
    assert light_of(image, mask).max() > 200
    upper = covering(image, (300, 120, 350, 290), is_round=False)
    assert light_of(result, upper).max() < beside.max() + 30
    assert np.abs(pixels_in(result, upper).mean(axis=0) - beside.mean(axis=0)).max() < 15


def test_what_fills_a_place_has_the_grain_of_what_is_round_it() -> None:
    image = photo("gravel")
    mask = covering(image, (120, 120, 400, 400))
    result = asked("remove this", image, mask)
    smeared = Image.fromarray(cv2.inpaint(np.asarray(image), np.asarray(mask), 5, cv2.INPAINT_TELEA))
    assert light_of(result, mask).std() > 0.7 * light_of(image, mask).std()
    assert light_of(result, mask).std() > 1.5 * light_of(smeared, mask).std()
    assert abs(light_of(result, mask).mean() - light_of(image, mask).mean()) < 8
    assert (pixels_in(result, mask) != pixels_in(image, mask)).mean() > 0.9


def test_none_of_the_colour_of_an_erased_thing_is_left() -> None:
    image = photo("brick").copy()
    ImageDraw.Draw(image).ellipse((200, 200, 300, 300), fill=(0, 230, 40))
    mask = covering(image, (190, 190, 310, 310))
    result = pixels_in(asked("擦掉", image, mask), mask)
    assert (result[:, 1] - result[:, 0]).max() < 25


def test_the_edge_of_a_picture_can_be_continued() -> None:
    image = photo("gravel").copy()
    image.paste((255, 0, 255), (400, 0, 512, 512))
    mask = covering(image, (400, 0, 511, 511), is_round=False)
    result = asked("extend it", image, mask)
    assert np.ptp(pixels_in(result, mask), axis=1).max() < 40
    assert light_of(result, mask).std() > 0.6 * light_of(photo("gravel"), mask).std()


@each_case(
    ("wish", "share"),
    [("fill it with blue stripes", 0.5), ("填充蓝色波点", 0.28), ("blue checks", 0.5), ("填充蓝色", 1.0)],
)
def test_a_pattern_takes_its_share_of_the_area(wish: str, share: float) -> None:
    pixels = pixels_in(asked(wish, photo("coffee"), counter()), counter())
    assert abs((pixels[:, 2] - pixels[:, 0] > 84).mean() - share) < 0.06


def test_stripes_run_as_they_are_asked_to() -> None:
    across, upright = (
        np.asarray(asked(wish, photo("coffee"), counter()))[60:340, 60:440] for wish in ("horizontal stripes", "竖条纹")
    )
    assert (across == across[:, :1]).all()
    assert (upright == upright[:1]).all()


def test_letters_stand_within_the_mask_in_their_colour() -> None:
    image = Image.new("RGB", (400, 300), (120, 130, 140))
    mask = covering(image, (100, 100, 300, 200), is_round=False)
    result = np.asarray(asked("write HELLO here in yellow", image, mask)).astype(int)
    rows, columns = np.nonzero((result == (244, 208, 44)).all(axis=2))
    assert rows.size > 400
    assert columns.min() > 101
    assert columns.max() < 299
    assert np.ptp(columns) > 120
    assert abs((rows.min() + rows.max()) / 2 - 150) < 12


def test_a_long_text_in_a_low_mask_is_made_small_and_not_cut() -> None:
    image = Image.new("RGB", (600, 200), "black")
    mask = covering(image, (50, 80, 549, 139), is_round=False)
    result = light_of(asked('write "a rather long line of words for such a place"', image, mask), mask)
    assert 0.02 < (result > 200).mean() < 0.4


@each_case("mode", ["RGB", "RGBA", "L"])
@each_case("size", [(1, 1), (2, 3), (7, 5), (33, 17), (3, 200)])
def test_small_and_odd_pictures_keep_their_size(size: tuple[int, int], mode: str) -> None:
    image = photo("chelsea").resize(size).convert(mode)
    half = Image.new("L", size, 255)
    half.paste(0, (0, 0, size[0] // 2, size[1]))
    wrong = []
    for operation, mask in product(EVERY, (Image.new("L", size, 0), half, Image.new("L", size, 255))):
        result = changed(image, mask, (operation,))
        before, after, kept = np.asarray(image.convert(result.mode)), np.asarray(result), np.asarray(mask) == 0
        if result.size != size or (after[kept] != before[kept]).any():
            wrong.append((operation, mask.getextrema()))
    assert wrong == []


def test_a_faint_mask_is_changed_fully_and_a_mask_of_another_size_is_stretched() -> None:
    image = photo("coffee")
    faint = covering(image, (100, 100, 300, 300)).point([0] + [1] * 255)
    full = faint.point([0] + [255] * 255)
    assert asked("make it blue", image, faint) == asked("make it blue", image, full)
    small = Image.new("L", (60, 40), 255)
    assert asked("反色", image, small) == asked("反色", image, Image.new("L", image.size, 255))


def test_nothing_around_an_erased_whole_leaves_one_colour_and_what_moves_pixels_is_left_out() -> None:
    image = photo("coffee")
    whole = Image.new("L", image.size, 255)
    assert len(asked("erase it", image, whole).getcolors() or ()) == 1
    assert changed(image, whole, (Adjustment(flip=Flip.HORIZONTAL),)).tobytes() == image.tobytes()


def test_clear_pixels_lend_their_colour_to_no_blur() -> None:
    image = Image.new("RGBA", (60, 60), (255, 0, 0, 0))
    image.paste((0, 200, 0, 255), (0, 0, 30, 60))
    result = np.asarray(asked("blur a lot", image, Image.new("L", image.size, 255)))
    assert result[..., 0][result[..., 3] > 8].max() < 3


def test_a_file_comes_back_as_a_png_of_its_size_and_a_broken_mask_is_refused() -> None:
    image, sink, mask = photo("coffee"), io.BytesIO(), io.BytesIO()
    image.save(sink, "PNG")
    covering(image, (100, 100, 300, 300)).save(mask, "PNG")
    data = edited_inside(sink.getvalue(), mask.getvalue(), "#3", (Recolour((36, 92, 204)),))
    with Image.open(io.BytesIO(data)) as opened:
        assert (opened.format, opened.size) == ("PNG", image.size)
    with pytest.raises(RequestRefused) as refused:
        edited_inside(sink.getvalue(), b"no picture", "#3", ())
    assert refused.value.code is ErrorCode.MASK_UNREADABLE
