"""A ratio is drawn true to its shape, and what is no ratio is not drawn."""

from __future__ import annotations

from agent.providers.catalogue import load_catalogue
from tests.support.cases import each_case
from webui.ratio_shapes import shape_html, shape_size

RATIOS = sorted({ratio for entry in load_catalogue().entries for ratio in entry.aspect_ratios})


@each_case("ratio", RATIOS)
def test_every_ratio_that_a_model_offers_is_drawn_upright_or_lying(ratio: str) -> None:
    wide, high = (int(part) for part in ratio.split(":"))
    width, height = shape_size(ratio)
    assert max(width, height) == 14
    assert (width > height, width < height) == (wide > high, wide < high)
    assert min(width, height) >= 4


@each_case("ratio", ["auto", "", "16", "0:1", "16:9:4", "a:b"])
def test_what_is_no_ratio_is_not_drawn(ratio: str) -> None:
    assert shape_html(ratio) == ""
