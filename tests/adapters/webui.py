"""What the page says in both languages, what it asks Python for, how its tree and its Markdown are drawn; the sentences
that its panel says for the person, the studio as an MCP server, the flags of its command, and what a visitor is known
by."""

from __future__ import annotations

from collections.abc import Mapping

from webui.cli.parser import read_flags
from webui.features.all import FEATURES
from webui.features.page import DiffKind, diff_html, word_diff
from webui.features.prompts import Prompt, prompt_groups
from webui.features.shortcuts import NATIVE, chords_of, is_single, key_groups, key_table, script_table
from webui.features.thread.markdown import MOST_FORMATTED_CHARACTERS, markdown_html, own_words_html
from webui.features.tree import Lineage, PlacedPicture, lineage
from webui.features.viewer import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.http.hosts import ALIVE
from webui.http.sessions import COOKIE
from webui.mcp_server.server import mcp_server
from webui.shell.document import NAMES, PARTS, script_words_html
from webui.shell.templates import render
from webui.words import LANGUAGES, Words, choose_language, load_words


def actions() -> list[str]:
    """Return the names of all actions."""
    return [f"{feature.name}.{action}" for feature in FEATURES for action in feature.actions]


def words_of(language: str) -> Mapping[str, str]:
    """Return what is said in a language by key, such as `plan.run`, with `{parameters}` to fill in."""
    return load_words(language).table


def shortcuts_html(words: Words) -> str:
    """Return the dialog of keys."""
    return render("shortcuts/dialog.html", words, groups=key_groups(words))
