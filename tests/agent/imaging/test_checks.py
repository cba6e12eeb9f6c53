"""What is seen of a picture by the studio itself: whether it is empty, and what stands in it."""

from __future__ import annotations

import subprocess
import sys

from PIL import Image

from agent import Blank, Caption, EditRecord
from tests.adapters.language import asked_lettering
from tests.adapters.pixels import blank_of
from tests.adapters.requests import captions_in, refused_review
from tests.adapters.sketch import Position, paint, write_into
from tests.support.cases import each_case
from tests.support.histories import image_part
from tests.support.pixels import encoded
from tests.support.scenes import png

NOISE = Image.effect_noise((1376, 768), 2).point(lambda level: max(0, min(255, level - 124)))
SKY = Image.new("RGB", (1376, 768), "black")
SKY.paste("white", (700, 300, 704, 304))


@each_case(
    ("data", "blank"),
    [
        (encoded(Image.new("RGB", (64, 36), "black")), Blank.BLACK),
        (encoded(Image.new("L", (64, 36), 3)), Blank.BLACK),
        (encoded(Image.new("RGB", (2752, 1536), (6, 5, 8)), "JPEG", quality=60), Blank.BLACK),
        (encoded(NOISE.convert("RGB"), "JPEG", quality=80), Blank.BLACK),
        (encoded(Image.new("RGB", (64, 36), "white"), "WEBP"), Blank.WHITE),
        (encoded(Image.new("RGBA", (64, 36), (200, 30, 30, 0))), Blank.CLEAR),
        (encoded(Image.new("RGB", (64, 36), "red")), None),
        (encoded(Image.new("RGB", (64, 36), (30, 30, 34))), None),
        (encoded(Image.linear_gradient("L")), None),
        # One star in a black sky.
        *((encoded(SKY), None), (encoded(SKY, "JPEG", quality=80), None)),
        (b"no picture", None),
        (encoded(Image.new("RGB", (640, 360), "black"))[:80], None),
    ],
)
def test_a_picture_that_shows_nothing_is_told_from_one_that_does(data: bytes, blank: Blank | None) -> None:
    assert blank_of(data) is blank


@each_case(
    ("prompt", "words"),
    [("a café poster with the headline “Slow mornings”", "Slow mornings"), ("海报，标题是“慢下来”", "慢下来")],
)
def test_lettering_that_was_painted_is_seen(prompt: str, words: str) -> None:
    for size in ((1376, 768), (768, 1376), (1024, 1024)):
        sketch = encoded(paint(prompt, "poster", "", size))
        assert captions_in(sketch, asked_lettering(prompt)) == (Caption(text=words, is_written=True),)


@each_case("painted", ["a café poster", "a café poster with the headline “Fast mornings”", "a night city “SALE”"])
def test_lettering_that_is_missing_or_another_is_noticed(painted: str) -> None:
    sketch = encoded(paint(painted, "Slow mornings", "", (1376, 768)))
    assert captions_in(sketch, ("Slow mornings",)) == (Caption(text="Slow mornings", is_written=False),)


@each_case("position", Position)
def test_words_added_to_a_photo_are_seen_wherever_they_stand(position: Position) -> None:
    photo = Image.effect_noise((900, 600), 60).convert("RGB")
    written = encoded(write_into(photo, "Slow mornings", position))
    assert captions_in(written, ("Slow mornings",))[0].is_written
    assert not captions_in(encoded(photo), ("Slow mornings",))[0].is_written


def test_nothing_is_told_without_lettering_in_the_wish_or_without_a_picture_or_of_what_was_not_pasted() -> None:
    assert captions_in(png(64, 36), asked_lettering("a cat named “Tom”")) == ()
    assert captions_in(b"nothing", ("Slow mornings",)) == ()
    part = image_part("#1")
    for reason, says in (("another_framing", "another framing"), ("another_picture", "another pict")):
        review = refused_review(
            EditRecord(kind="mask", verdict="refused", reason=reason, base=part, mask=part, raw=part)
        )
        assert says in review.feedback
        assert (review.checklist, review.has_passed) == ((), False)


@each_case(
    "use",
    [
        "import agent.imaging.masking",
        "import agent.adjusting",
        "from agent.imaging import provenance; provenance.read_recipe(b'')",
    ],
)
def test_nothing_that_decodes_pixels_is_loaded_before_it_is_needed(use: str) -> None:
    code = f"import sys; {use}; print(*sorted({{'PIL', 'cv2', 'numpy', 'lancedb'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
