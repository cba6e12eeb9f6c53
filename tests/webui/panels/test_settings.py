"""What the settings say of the key in use, and of the MCP servers."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import SecretStr

from agent.mcp.states import Problem, ServerState
from webui.panels.settings import servers_html, state_html
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")


def test_a_model_server_of_the_operators_is_named_instead_of_sketches() -> None:
    shown = state_html(WORDS, None, has_operator_key=False, has_own_server=True)
    assert "model server" in shown
    assert "draws sketches" not in shown


def test_a_typed_key_is_named_by_its_last_four_characters_alone() -> None:
    shown = state_html(WORDS, SecretStr("AIzaVerySecret4f2c"), has_operator_key=True)
    assert "4f2c" in shown
    assert "VerySecret" not in shown


def test_each_mcp_server_has_a_line_that_says_how_it_stands() -> None:
    servers = [ServerState("files", tools=3), ServerState("<far>", problem="locked"), ServerState("late")]
    shown = servers_html(WORDS, servers)
    assert "3 tools" in shown
    assert "&lt;far&gt;" in shown
    assert "Wants another key" in shown
    assert servers_html(WORDS, []) == ""


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("problem", get_args(Problem))
def test_every_trouble_of_a_server_has_its_sentence(language: str, problem: Problem) -> None:
    words = load_words(language)
    assert words(f"mcp.{problem}") in servers_html(words, [ServerState("files", problem=problem)])
