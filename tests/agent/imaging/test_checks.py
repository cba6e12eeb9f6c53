"""What the studio sees of a sketch by itself: shape, size, lettering, and what a mask kept."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image, ImageDraw

from agent.imaging.checks import check_sketch
from agent.imaging.contract import GenerateImageArgs, NormalizedRequest, normalize
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.providers.catalogue import ModelRole, load_catalogue
from agent.providers.sketch.lettering import write_into
from agent.providers.sketch.operations import Position
from agent.providers.sketch.painter import paint
from agent.reviews import ChecklistItem, Review
from agent.settings import TurnSettings
from tests.support.histories import NOW, image_part
from tests.support.scenes import png

CATALOGUE = load_catalogue()


def request(prompt: str = "a red fox", base: tuple[int, int] | None = None, **settings: Any) -> NormalizedRequest:
    return normalize(
        GenerateImageArgs(prompt=prompt),
        TurnSettings(**settings),
        CATALOGUE,
        "sketch",
        search_needed=False,
        search_requested_in_words=False,
        edited_pixels=base,
    )


def made(*parents: str) -> Picture:
    origin = ImageOrigin.EDITED if parents else ImageOrigin.GENERATED
    return Picture(handle="#2", image=image_part("#2", origin), turn_id="t", created_at=NOW, parents=parents)


def as_png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def item(review: Review, check: str) -> ChecklistItem:
    [found] = [one for one in review.checklist if one.check == check]
    return found


def test_a_sketch_as_it_was_asked_for_meets_everything() -> None:
    review = check_sketch(made(), png(1376, 768), request(aspect_ratio="16:9"))
    assert [(one.check, one.is_met, one.why) for one in review.checklist] == [
        ("aspect_ratio", True, "1376×768"),
        ("size", True, "1376×768"),
    ]
    assert (review.score, review.has_passed, review.model_label) == (1.0, True, "")
    assert review.feedback == "✓ 16:9 · ✓ 1376×768"


def test_the_pixels_are_judged_and_not_what_the_record_says_of_them() -> None:
    record = made()
    wrong = record.model_copy(update={"image": record.image.model_copy(update={"width": 1376, "height": 768})})
    review = check_sketch(wrong, png(1024, 1024), request())
    assert [(one.check, one.is_met) for one in review.checklist] == [("aspect_ratio", False), ("size", False)]
    assert (review.score, review.has_passed) == (0.0, False)
    assert review.feedback == "✗ 16:9 · ✗ 1376×768"


def test_the_right_ratio_in_another_size_is_half_of_it() -> None:
    review = check_sketch(made(), png(688, 384), request())
    assert review.score == 0.5
    assert not item(review, "size").is_met


@pytest.mark.parametrize("ratio", CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch").aspect_ratios)
def test_every_ratio_the_sketch_model_paints_is_met_by_its_own_size(ratio: str) -> None:
    asked = request(aspect_ratio=ratio)
    pixels = asked.model.pixels(ratio, asked.resolution)
    assert pixels is not None
    assert check_sketch(made(), png(*pixels), asked).score == 1.0


def test_an_edit_for_which_nobody_chose_a_shape_has_nothing_to_check() -> None:
    assert check_sketch(made("#1"), png(1000, 700), request(base=(1000, 700))) == Review()


@pytest.mark.parametrize(("size", "is_met"), [((1000, 1000), True), ((1000, 700), False)])
def test_an_edit_whose_ratio_was_chosen_must_have_it(size: tuple[int, int], is_met: bool) -> None:
    review = check_sketch(made("#1"), png(*size), request(base=(1000, 700), aspect_ratio="1:1"))
    assert [(one.check, one.is_met) for one in review.checklist] == [("aspect_ratio", is_met)]


@pytest.mark.parametrize(("size", "is_met"), [((4000, 2250), True), ((320, 180), False)])
def test_an_edit_whose_size_was_chosen_may_be_larger_and_not_smaller(size: tuple[int, int], is_met: bool) -> None:
    review = check_sketch(made("#1"), png(*size), request(base=size, resolution="1K"))
    assert [(one.check, one.is_met) for one in review.checklist] == [("size", is_met)]


@pytest.mark.parametrize("size", [(1376, 768), (768, 1376), (1024, 1024)])
@pytest.mark.parametrize(
    ("prompt", "words"),
    [("a café poster with the headline “Slow mornings”", "Slow mornings"), ("海报，标题是“慢下来”", "慢下来")],
)
def test_lettering_that_was_painted_is_seen(prompt: str, words: str, size: tuple[int, int]) -> None:
    sketch = as_png(paint(prompt, "poster", "", size))
    review = check_sketch(made(), sketch, request(prompt))
    assert item(review, "caption") == ChecklistItem(check="caption", wish=f"“{words}”", is_met=True, why=f"“{words}”")


@pytest.mark.parametrize(
    "painted", ["a café poster", "a café poster with the headline “Fast mornings”", "a night city “SALE”"]
)
def test_lettering_that_is_missing_or_another_is_noticed(painted: str) -> None:
    sketch = as_png(paint(painted, "Slow mornings", "", (1376, 768)))
    review = check_sketch(made(), sketch, request("a café poster with the headline “Slow mornings”"))
    assert not item(review, "caption").is_met
    assert review.score == pytest.approx(2 / 3)
    assert not review.has_passed


@pytest.mark.parametrize("position", list(Position))
def test_words_added_to_a_photo_are_seen_wherever_they_stand(position: Position) -> None:
    photo = Image.effect_noise((900, 600), 60).convert("RGB")
    asked = request("Add the text “Slow mornings”", base=(900, 600))
    written = as_png(write_into(photo, "Slow mornings", position))
    assert item(check_sketch(made("#1"), written, asked), "caption").is_met
    assert not item(check_sketch(made("#1"), as_png(photo), asked), "caption").is_met


def test_the_persons_own_quotation_counts_when_the_prompt_has_none() -> None:
    sketch = as_png(paint("a poster", "poster", "", (1376, 768)))
    review = check_sketch(made(), sketch, request("a poster"), "a poster with the title “DAWN”")
    assert not item(review, "caption").is_met


def test_without_lettering_in_the_wish_there_is_no_item_for_it() -> None:
    sketch = as_png(paint("a red fox", "A red fox", "", (1376, 768)))
    review = check_sketch(made(), sketch, request("a cat named “Tom”"))
    assert {one.check for one in review.checklist} == {"aspect_ratio", "size"}


def masked(change: tuple[int, int, int, int] | None) -> tuple[bytes, bytes, bytes]:
    """Return a picture with a changed rectangle, its original, and a mask that allows the left half."""
    original = Image.effect_noise((200, 100), 50).convert("RGB")
    mask = Image.new("L", (200, 100), 0)
    ImageDraw.Draw(mask).rectangle((0, 0, 99, 99), fill=255)
    picture = original.copy()
    if change:
        ImageDraw.Draw(picture).rectangle(change, fill=(255, 0, 0))
    return as_png(picture), as_png(original), as_png(mask)


@pytest.mark.parametrize(
    ("change", "is_met", "why"),
    [
        (None, True, "0 px"),
        ((10, 10, 99, 90), True, "0 px"),
        ((150, 50, 150, 50), False, "1 px"),
        ((95, 0, 104, 9), False, "50 px"),
    ],
)
def test_pixels_outside_the_mask_are_counted(change: tuple[int, int, int, int] | None, is_met: bool, why: str) -> None:
    picture, original, mask = masked(change)
    review = check_sketch(made("#1"), picture, request(base=(200, 100)), "make it red", original=original, mask=mask)
    found = item(review, "mask")
    assert (found.is_met, found.why) == (is_met, why)
    assert review.score == float(is_met)


def test_a_pixel_that_became_clear_has_changed() -> None:
    picture, original, mask = masked(None)
    with Image.open(io.BytesIO(picture)) as opened:
        clear = opened.convert("RGBA")
    red, green, blue, _ = clear.crop((150, 50, 151, 51)).tobytes()
    clear.putpixel((150, 50), (red, green, blue, 0))
    review = check_sketch(made("#1"), as_png(clear), request(base=(200, 100)), original=original, mask=mask)
    assert item(review, "mask").why == "1 px"


def test_a_feathered_edge_of_the_mask_may_change() -> None:
    picture, original, _ = masked((150, 50, 150, 50))
    soft = Image.new("L", (200, 100), 0)
    soft.putpixel((150, 50), 1)
    review = check_sketch(made("#1"), picture, request(base=(200, 100)), original=original, mask=as_png(soft))
    assert item(review, "mask").is_met


def test_a_picture_of_another_size_than_its_mask_has_not_kept_to_it() -> None:
    _, original, mask = masked(None)
    review = check_sketch(made("#1"), png(100, 50), request(base=(200, 100)), "变红", original=original, mask=mask)
    assert (item(review, "mask").is_met, item(review, "mask").why) == (False, "100×50")
    assert review.feedback == "✗ 蒙版之外保持不变"


def test_what_is_no_picture_is_not_reviewed() -> None:
    assert check_sketch(made(), b"nothing", request()) == Review()
