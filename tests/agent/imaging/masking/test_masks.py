from __future__ import annotations

import cv2
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from tests.adapters.masks import (
    Mask,
    MaskProblem,
    MaskRefusal,
    grow_mask,
    invert_mask,
    packed,
    read_mask,
    unpacked,
)
from tests.support.cases import each_case
from tests.support.pixels import encoded

SIZE = (60, 40)


def drawn() -> NDArray[np.uint8]:
    values = np.zeros((SIZE[1], SIZE[0]), np.uint8)
    values[10:25, 20:45] = 255
    return values


def values_of(mask: Mask | MaskRefusal) -> NDArray[np.uint8]:
    assert isinstance(mask, Mask)
    return unpacked(mask)


@each_case("colour", [(255, 255, 255), (0, 0, 0), (230, 40, 90)])
def test_of_a_painters_layer_the_strokes_count_whatever_their_colour(colour: tuple[int, int, int]) -> None:
    layer = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    layer.paste((*colour, 255), (20, 10, 45, 25))
    np.testing.assert_array_equal(values_of(read_mask(encoded(layer), SIZE)), drawn())


def test_a_mask_of_another_size_is_scaled_if_its_ratio_is_off_by_two_per_cent_at_most() -> None:
    larger = Image.fromarray(drawn()).resize((180, 120), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(values_of(read_mask(encoded(larger), SIZE)), drawn())
    for width, is_fitting in ((1000, True), (1019, True), (1021, False), (982, True), (979, False)):
        read = read_mask(encoded(Image.new("L", (width, 1000), 255)), (500, 500))
        assert isinstance(read, Mask) is is_fitting
    stroke = np.zeros((400, 600), np.uint8)
    stroke[:, 301] = 255
    thin = values_of(read_mask(encoded(Image.fromarray(stroke)), SIZE))
    assert (thin[:, 30] == 255).all()
    assert int((thin > 0).sum()) == SIZE[1]


@given(st.integers(0, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_a_grown_mask_holds_the_old_one_and_reaches_so_far(pixels: int, seed: int) -> None:
    values = np.where(np.random.default_rng(seed).random((30, 50)) > 0.995, 255, 0).astype(np.uint8)
    values[15, 25] = 255
    wider = unpacked(grow_mask(packed(values), pixels))
    reach = cv2.distanceTransform((values == 0).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    assert (wider[values > 0] == 255).all()
    assert (wider[reach > pixels] == 0).all()
    assert (wider[reach <= pixels] == 255).all()


@each_case("mode", ["1", "L", "RGB", "P", "LA", "RGBA", "16 bits"])
def test_white_is_what_changes_in_every_mode(mode: str) -> None:
    if mode == "16 bits":
        data = cv2.imencode(".png", drawn().astype(np.uint16) * 257)[1].tobytes()
    else:
        data = encoded(Image.fromarray(drawn()).convert(mode))
    np.testing.assert_array_equal(values_of(read_mask(data, SIZE)), drawn())


def test_an_inverted_mask_marks_all_the_rest() -> None:
    np.testing.assert_array_equal(values_of(invert_mask(packed(drawn()))), 255 - drawn())
    assert invert_mask(packed(np.full((4, 4), 255, np.uint8))) == MaskRefusal(MaskProblem.EMPTY)


@each_case(
    ("data", "problem"),
    [
        (encoded(Image.new("L", SIZE, 0)), MaskProblem.EMPTY),
        (encoded(Image.new("RGBA", SIZE, (255, 255, 255, 0))), MaskProblem.EMPTY),
        (b"", MaskProblem.UNREADABLE),
        (b"no picture", MaskProblem.UNREADABLE),
        (encoded(Image.new("L", SIZE, 255))[:60], MaskProblem.UNREADABLE),
        (encoded(Image.new("L", (50, 50), 255)), MaskProblem.WRONG_RATIO),
    ],
)
def test_a_mask_that_marks_nothing_or_does_not_fit_is_refused(data: bytes, problem: MaskProblem) -> None:
    refused = read_mask(data, SIZE)
    assert isinstance(refused, MaskRefusal)
    assert refused.problem is problem
    sizes = {"mask_width": 50, "mask_height": 50, "width": 60, "height": 40}
    assert problem is not MaskProblem.WRONG_RATIO or refused.parameters == sizes
