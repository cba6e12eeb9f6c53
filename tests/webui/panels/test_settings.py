"""What the settings say of the key in use."""

from __future__ import annotations

from pydantic import SecretStr

from webui.panels.settings import state_html
from webui.words import load_words

WORDS = load_words("en")


def test_a_model_server_of_the_operators_is_named_instead_of_sketches() -> None:
    shown = state_html(WORDS, None, has_operator_key=False, has_own_server=True)
    assert "model server" in shown
    assert "draws sketches" not in shown


def test_a_typed_key_is_named_by_its_last_four_characters_alone() -> None:
    shown = state_html(WORDS, SecretStr("AIzaVerySecret4f2c"), has_operator_key=True)
    assert "4f2c" in shown
    assert "VerySecret" not in shown
