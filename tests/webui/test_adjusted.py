"""An exact adjustment on the page: what was done is named in the visitor's language, and the sliders say just that."""

from __future__ import annotations

from itertools import product

import pytest

from agent.adjusting import Adjustment, read_adjustment
from webui.action_panels import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.words import LANGUAGES, load_words

TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")
AMOUNTS = (0, 20, -10, 100)


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
