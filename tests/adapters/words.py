"""The words of the page, by the key that it has them under."""

from __future__ import annotations

from collections.abc import Mapping

from webui.features.prompts.book import Prompt, prompt_groups
from webui.features.shortcuts import key_groups
from webui.script_words import NAMES, PARTS, script_words_html
from webui.shell.templates import render
from webui.shortcuts import NATIVE, chords_of, is_single, script_table, shortcuts
from webui.word_diff import Kind, diff_html, word_diff
from webui.words import LANGUAGES, Words, choose_language, load_words


def words_of(language: str) -> Mapping[str, str]:
    """Return what is said in a language by key, such as `plan.run`, with `{parameters}` to fill in."""
    return load_words(language).table


def shortcuts_html(words: Words) -> str:
    """Return the dialog of keys."""
    return render("shortcuts/dialog.html", words, groups=key_groups(words))
