"""A whole receipt, what was not delivered, and what can be done about either."""

from __future__ import annotations

import re

import pytest

from agent.messages import ImagePart, TokenUsage
from agent.pictures import EditRecord, Picture, Receipt, StyleUse
from tests.support.page_values import FLASH, OFFERS, REVIEW, image, picture
from webui.cards import View, picture_actions
from webui.receipts import asked_pixels, folded_receipt, receipt_rows, repainter, whole_receipt
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")
VIEW = View(WORDS, "c1", OFFERS)
RECEIPT = Receipt(
    prompt="A red fox in snow",
    user_text="draw a fox",
    model="gemini-3-pro-image",
    model_label="Pro",
    asked_aspect_ratio="16:9",
    asked_resolution="4K",
    width=1376,
    height=768,
    mime_type="image/png",
    usage=TokenUsage(prompt_tokens=1904, cached_tokens=100, image_tokens=1120, output_tokens=200, thought_tokens=12),
    styles=(StyleUse(name="Gouache", similarity=1, phrases=("opaque paint", "matte <look>")),),
    seconds=21.24,
    attempts=1,
    shortfalls=("resolution",),
)


def made(receipt: Receipt = RECEIPT, **update: object) -> Picture:
    return picture("#7").model_copy(update={"receipt": receipt, "turn_id": "t9", **update})


def edit(part: ImagePart) -> EditRecord:
    return EditRecord(
        kind="mask", verdict="good", reason="", base=part, mask=part, raw=part, changed_outside=0, outside=9437184
    )


def row(shown: str, name: str) -> str:
    found = re.search(f"<dt>{re.escape(name)}</dt><dd>(.*?)</dd>", shown, re.DOTALL)
    assert found is not None, name
    return found[1]


def acts(shown: str) -> list[str]:
    return re.findall(r'data-(?:recipe|act)="(\w+)"', shown)


def test_a_receipt_is_complete() -> None:
    shown = receipt_rows(VIEW, RECEIPT, made(review=REVIEW, edit=edit(image("#1"))))
    assert "A red fox in snow" in row(shown, "Prompt as sent")
    assert "draw a fox" in row(shown, "Your words")
    assert row(shown, "Requested → delivered").startswith("4K 16:9 → 1376×768 (16:9)")
    assert row(shown, "File") == "image/png, 8 bits per channel, 9 bytes"
    assert row(shown, "Styles") == "Gouache <small>opaque paint; matte &lt;look&gt;</small>"
    assert row(shown, "Review") == "2 of 3 · missing: a title at the top"
    assert row(shown, "Outside the mask") == "0 of 9,437,184 changed outside"
    assert row(shown, "Tokens") == ("1,904 in · 1,120 image · 212 out · 12 of it thinking · 100 from the cache")
    assert row(shown, "Time") == "21.2 s"
    assert row(shown, "Attempts") == "1"


def test_words_that_are_the_prompt_are_not_said_twice() -> None:
    assert "Your words" not in receipt_rows(VIEW, RECEIPT.model_copy(update={"user_text": RECEIPT.prompt}))


def test_a_shortfall_comes_with_three_ways_on() -> None:
    shown = folded_receipt(VIEW, made())
    line = shown.partition('class="edit-line short shortfall"')[2]
    assert "smaller than requested" in line
    assert acts(line) == ["retry", "upscale", "keep"]
    assert 'data-act="retry" data-arg="t9"' in line
    assert "Repaint at 4K" in line


def test_a_shortfall_that_is_kept_is_told_in_the_receipt_alone() -> None:
    shown = folded_receipt(VIEW, made(shortfall_kept=True))
    assert "shortfall" not in shown
    assert "smaller than requested" in shown


def test_a_size_that_no_model_has_is_not_offered() -> None:
    shown = folded_receipt(View(WORDS, "c1", (FLASH,)), made())
    assert acts(shown.partition("shortfall")[2]) == ["retry", "keep"]
    ratio_only = RECEIPT.model_copy(update={"shortfalls": ("aspect_ratio",)})
    assert repainter(OFFERS, ratio_only) is None


@pytest.mark.parametrize(
    ("asked", "pixels"), [("2K", (2741, 1530)), ("1600×900", (1600, 900)), ("huge", None), (None, None)]
)
def test_a_sketch_is_enlarged_and_never_repainted(asked: str | None, pixels: tuple[int, int] | None) -> None:
    sketched = RECEIPT.model_copy(update={"is_sketch": True, "asked_resolution": asked})
    assert repainter(OFFERS, sketched) is None
    assert asked_pixels(sketched) == pixels
    assert asked_pixels(RECEIPT) is None
    assert ("Enlarge" in folded_receipt(VIEW, made(sketched))) is (pixels is not None)


def test_a_receipt_leads_to_the_same_again_and_to_the_other_model() -> None:
    assert acts(whole_receipt(VIEW, made())) == ["reuse", "other_model"]


@pytest.mark.parametrize(
    ("view", "one"),
    [
        (View(WORDS, "c1", (FLASH,)), made()),
        (VIEW, made(RECEIPT.model_copy(update={"is_sketch": True}))),
        (VIEW, made(edit=edit(image("#1")))),
        (VIEW, made(RECEIPT.model_copy(update={"prompt": ""}))),
    ],
    ids=["one-model", "sketch", "a-part", "no-prompt"],
)
def test_the_other_model_is_only_offered_where_there_is_one_that_could(view: View, one: Picture) -> None:
    assert acts(whole_receipt(view, one)) == ["reuse"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_words_stay_words(language: str) -> None:
    hostile = '"><script>alert(1)</script>'
    fields = dict.fromkeys(("prompt", "user_text", "model", "model_label", "finish_reason"), hostile)
    shown = folded_receipt(View(load_words(language), "c1", OFFERS), made(RECEIPT.model_copy(update=fields)))
    assert "<script" not in shown


def test_a_download_is_split_into_the_picture_with_its_recipe_and_a_clean_copy() -> None:
    shown = picture_actions(VIEW, "#7")
    assert re.findall(r'href="media/c1/7\?([^"]+)"', shown) == ["download=1", "download=1&amp;clean=1"]
    signed = picture_actions(VIEW, "#7", has_original=True)
    assert "download=1&amp;original=1" in signed
