from __future__ import annotations

import re

from hypothesis import given

from tests.adapters.recipes import ForeignTool, Recipe, foreign_recipe, is_ours, look, parameters_text, written
from tests.agent.imaging.provenance.samples import PROMPT, recipe, recipes

# How the readers of this text take its last line apart.
PAIR = re.compile(r'\s*(\w[\w \-/]+):\s*("(?:\\.|[^\\"])+"|[^,]*)(?:,|$)')


def test_the_text_is_the_prompt_and_one_line_of_pairs() -> None:
    text = parameters_text(recipe(model_label="Gemini, Pro"))
    *prompt, line = text.split("\n")
    assert "\n".join(prompt) == PROMPT
    assert dict(PAIR.findall(line)) == {
        "Size": "48x32",
        "Model": '"Gemini, Pro"',
        "Aspect ratio": '"16:9"',
        "Resolution": "2K",
        "Styles": "Ukiyo-e",
        "Created Date": '"2026-11-20T09:30:05+00:00"',
        "Version": "Aivista",
    }


def test_the_persons_words_stand_for_a_prompt_that_was_not_sent_and_it_all_fits_into_a_segment_of_a_jpeg() -> None:
    assert parameters_text(recipe(prompt="", words="a bit brighter")).startswith("a bit brighter\n")
    assert parameters_text(recipe(prompt="", words=" ")) == ""
    long = "\U0001f998" * 999
    longest = recipe(prompt=long * 50, styles=[{"name": long}] * 99, model_label=long)
    assert len(written(8, parameters_text(longest))) < 65_000


def test_what_another_program_wrote_is_not_taken_for_ours() -> None:
    assert not is_ours("a cat\nSteps: 20, Size: 8x8, Version: v1.9.3")
    assert not is_ours("Version: Aivista is a nice name")
    assert look(written(1, "a cat")).is_foreign
    found = foreign_recipe("note: a cat, size: small", {})
    assert found is not None
    assert found.prompt == "note: a cat, size: small"
    block = written(6, "")
    preview = look(block[:-4] + len(block).to_bytes(4, "big") + bytes(6))
    assert (preview.orientation, preview.is_foreign, look(block).is_foreign) == (6, True, False)
    assert look(b"no tiff").is_foreign
    assert look(block[:-1]).is_foreign


@given(recipes())
def test_our_own_text_is_known_again_also_in_exif_and_gives_back_its_prompt(told: Recipe) -> None:
    text = parameters_text(told)
    assert is_ours(text) or not text
    found = foreign_recipe(text, {})
    assert (found is None) is (not text)
    if found is not None and "Negative prompt:" not in told.prompt + told.words:
        assert found.tool is ForeignTool.PARAMETERS
        assert found.prompt == (told.prompt or told.words).strip().replace("\r\n", "\n")
    seen = look(written(5, text))
    assert (seen.orientation, seen.comment, seen.is_foreign) == (5, text, False)
