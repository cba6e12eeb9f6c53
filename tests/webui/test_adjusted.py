"""An exact adjustment on the page: what was done is named in the visitor's language, and the sliders say just that."""

from __future__ import annotations

from itertools import product

import pytest

from agent.adjusting import Adjustment, ChangeKind, describe, read_adjustment
from agent.events import Step, ThoughtLog
from agent.pictures import EXACT_ADJUSTMENT, Receipt, Reference
from webui.action_panels import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.cards import View
from webui.receipts import changes_text, receipt_line, receipt_rows
from webui.step_lines import step_sentence, steps
from webui.words import LANGUAGES, load_words

TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")
AMOUNTS = (0, 20, -10, 100)


def receipt(adjustment: Adjustment) -> Receipt:
    return Receipt(
        prompt="",
        user_text="warmer",
        model=EXACT_ADJUSTMENT,
        model_label="Exact adjustment",
        asked_aspect_ratio=None,
        asked_resolution=None,
        width=1376,
        height=768,
        mime_type="image/png",
        references=(Reference(handle="#3"),),
        changes=describe(adjustment),
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_the_sliders_say_is_read_exactly(language: str) -> None:
    words = load_words(language)
    for amounts in product(AMOUNTS, repeat=len(TONES)):
        chosen = dict(zip(TONES, amounts, strict=True))
        said = amounts_sentence(words, PanelAmounts.model_validate({"handle": "#1", **chosen}))
        expected = Adjustment.model_validate(chosen)
        assert read_adjustment(said) == (None if expected.is_identity else expected), said


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_buttons_for_light_and_colour_are_read_as_such_and_the_others_are_not(language: str) -> None:
    words = load_words(language)
    read = {
        action: read_adjustment(pressed_sentence(words, PanelPress(handle="#1", action=action)))
        for action in ("more_contrast", "warmer", "vary", "regenerate")
    }
    assert read["more_contrast"] is not None
    assert read["more_contrast"].contrast > 0
    assert read["warmer"] is not None
    assert read["warmer"].warmth > 0
    assert (read["vary"], read["regenerate"]) == (None, None)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "brightness −10, warmth +15, cropped to 1:1"), ("zh-CN", "亮度 −10、色温 +15、裁成 1:1")],
)
def test_what_was_done_is_said_in_the_visitors_language(language: str, said: str) -> None:
    adjustment = Adjustment.model_validate({"brightness": -10, "warmth": 15, "crop": "1:1"})
    assert changes_text(load_words(language), describe(adjustment)) == said


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_change_has_its_words(language: str) -> None:
    assert {f"change.{kind}" for kind in ChangeKind} <= load_words(language).table.keys()


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("en", "Exact adjustment · warmth +15 · 1376×768 · free"),
        ("zh-CN", "精确调整 · 色温 +15 · 1376×768 · 免费"),
    ],
)
def test_the_receipt_names_the_adjustment_and_that_it_was_free(language: str, line: str) -> None:
    assert receipt_line(load_words(language), receipt(Adjustment(warmth=15))) == line


def test_the_whole_receipt_has_what_was_done_instead_of_a_prompt() -> None:
    words = load_words("en")
    rows = receipt_rows(View(words, "c1"), receipt(Adjustment(warmth=15)))
    assert f"<dt>{words('receipt.changes')}</dt><dd>warmth +15</dd>" in rows
    assert words("receipt.prompt") not in rows
    assert words("receipt.as_asked") in rows


@pytest.mark.parametrize(
    ("language", "said"), [("en", "Adjusted #3 exactly: that is #3b"), ("zh-CN", "已精确调整 #3，得到 #3b")]
)
def test_the_step_says_which_picture_became_which(language: str, said: str) -> None:
    line = ThoughtLog(step=Step.ADJUSTED, parameters={"base": "#3", "handle": "#3b"})
    assert step_sentence(load_words(language), line) == said
    assert said in steps(load_words(language), [ThoughtLog(step=Step.ADJUSTING, parameters={"base": "#3"}), line], 0.2)


def test_a_role_is_named_in_the_visitors_language_on_the_receipt() -> None:
    shown = receipt(Adjustment(warmth=15)).model_copy(update={"references": (Reference(handle="#2", role="style"),)})
    assert "#2 风格" in receipt_rows(View(load_words("zh-CN"), "c1"), shown)
    assert "#2 style" in receipt_rows(View(load_words("en"), "c1"), shown)
