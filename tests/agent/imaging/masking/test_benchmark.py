"""What the benchmark itself stands on: its colour difference, its seam, its known maps, and where it writes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from tests.bench.masking import HEADING, put_into
from tests.bench.masking_measures import ciede2000, seam
from tests.bench.masking_simulator import Answer, Redrawing, drifting
from tests.support.cases import each_case
from tests.support.masking_scenes import HEIGHT, WIDTH, photo, rectangle

# Rows of the test data of Sharma, Wu and Dalal (2005): L*, a*, b* of two colours and their difference.
SHARMA = (
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0000),
    ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
)


@each_case(("one", "other", "difference"), SHARMA)
def test_colour_differences_are_those_of_the_published_data(
    one: tuple[float, float, float], other: tuple[float, float, float], difference: float
) -> None:
    assert ciede2000(np.array([one]), np.array([other]))[0] == pytest.approx(difference, abs=1e-4)


def test_a_seam_is_seen_where_there_is_one() -> None:
    mask = rectangle(200, 200, 300, 300)
    assert seam(photo(), photo(), mask) == pytest.approx(1)
    pasted = np.where(mask[..., None] > 0, photo() // 2, photo()).astype(np.uint8)
    assert seam(photo(), pasted, mask) > 2


def test_the_map_of_an_answer_is_the_one_it_was_drawn_by() -> None:
    grid = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    cv2.circle(grid, (300, 200), 6, (255, 255, 255), -1, cv2.LINE_AA)
    answer = Answer(grid, drifting(5, wobble_px=3.0))
    weights = answer.pixels[..., 1].astype(float)
    weights[weights < weights.max() * 0.6] = 0
    rows, columns = np.indices(weights.shape)
    found = np.array([[(columns * weights).sum(), (rows * weights).sum()]]) / weights.sum()
    assert answer.back(found.astype(np.float32))[0] == pytest.approx((300, 200), abs=0.3)


def test_an_answer_without_drift_is_the_picture() -> None:
    answer = Answer(photo(), Redrawing())
    np.testing.assert_array_equal(answer.pixels, photo())


def test_the_section_takes_the_place_of_the_old_one() -> None:
    page = f"# Page\n\ntext\n\n{HEADING}\n\nold\n\n## Other\n\nmore\n"
    once = put_into(page, f"{HEADING}\n\nnew\n")
    assert once == f"# Page\n\ntext\n\n{HEADING}\n\nnew\n\n## Other\n\nmore\n"
    assert put_into("# Page\n", f"{HEADING}\n") == f"# Page\n\n{HEADING}\n"
