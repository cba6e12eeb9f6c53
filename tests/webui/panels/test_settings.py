"""What the settings say of where a key is kept, and of the MCP servers."""

from __future__ import annotations

from typing import get_args

import pytest

from agent.mcp.states import Problem, ServerState
from tests.support.cases import each_case
from webui.panels.settings import head_html, keep_update, servers_html, typed_key
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_others_come_a_key_lives_for_a_session_and_there_is_no_choice(language: str) -> None:
    words = load_words(language)
    assert keep_update(words, is_private=False)["visible"] is False
    assert words("keytest.lead") not in head_html(words)
    private = keep_update(words, is_private=True)
    assert private["visible"] is True
    assert [value for _, value in private["choices"]] == ["session", "machine"]
    assert words("keytest.lead") in head_html(words, is_private=True)


@each_case("text", [None, "", "   ", "x" * 401, "schlüssel", "a\x00b"])
def test_what_cannot_be_a_key_is_none(text: str | None) -> None:
    assert typed_key(text) is None


def test_a_key_is_taken_without_the_blanks_around_it() -> None:
    key = typed_key("  AIzaSomething \n")
    assert key is not None
    assert key.get_secret_value() == "AIzaSomething"


def test_each_mcp_server_has_a_line_that_says_how_it_stands() -> None:
    servers = [ServerState("files", tools=3), ServerState("<far>", problem="locked"), ServerState("late")]
    shown = servers_html(WORDS, servers)
    assert "3 tools" in shown
    assert "&lt;far&gt;" in shown
    assert "Wants another key" in shown
    assert servers_html(WORDS, []) == ""


@each_case("language", LANGUAGES)
@each_case("problem", get_args(Problem))
def test_every_trouble_of_a_server_has_its_sentence(language: str, problem: Problem) -> None:
    words = load_words(language)
    assert words(f"mcp.{problem}") in servers_html(words, [ServerState("files", problem=problem)])
