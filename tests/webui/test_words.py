"""Every word of the page is there, in every language, and is used."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import webui
from agent.errors import ErrorCode, ErrorInfo
from agent.events import Step
from webui.words import LANGUAGES, choose_language, load_words

SOURCES = sorted(Path(webui.__file__).parent.rglob("*.py"))
# Keys that are put together from a value: everything else stands in the source as a literal.
COMPOSED = (
    "error.",
    "step.",
    "did.",
    "wish.",
    "failure.title_",
    "failure.who_",
    "rail.theme_",
    "receipt.short_",
    "composer.",
    "panel.",
    "check.",
    "notice.",
    "change.",
    "role.",
)
AGES = ("rail.today", "rail.yesterday", "rail.week", "rail.older")


def parameters_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys(language: str) -> None:
    assert load_words(language).table.keys() == load_words("en").table.keys()


@pytest.mark.parametrize("key", sorted(load_words("en").table))
def test_a_sentence_takes_the_same_parameters_in_every_language(key: str) -> None:
    assert parameters_of(load_words("zh-CN").table[key]) == parameters_of(load_words("en").table[key])


@pytest.mark.parametrize("code", list(ErrorCode))
def test_the_english_sentence_of_an_error_is_the_one_of_the_table(code: ErrorCode) -> None:
    words = load_words("en")
    values: dict[str, str | int | float] = {name: f"<{name}>" for name in parameters_of(words.table[f"error.{code}"])}
    info = ErrorInfo(code=code, parameters=values)
    assert words.error(info) == info.message


def test_there_is_a_sentence_for_every_error_and_no_other() -> None:
    named = {key.removeprefix("error.") for key in load_words("en").table if key.startswith("error.")}
    assert named == {code.value for code in ErrorCode}


def test_there_is_a_sentence_and_a_word_for_every_step() -> None:
    keys = load_words("en").table.keys()
    assert {f"step.{step}" for step in Step} <= keys
    assert {f"did.{step}" for step in Step} <= keys


def test_every_key_used_by_the_page_exists() -> None:
    keys = load_words("en").table.keys()
    groups = {key.partition(".")[0] for key in keys}
    used = {
        found
        for path in SOURCES
        for found in re.findall(r"""["']([a-z]+\.[a-z_]+)["']""", path.read_text(encoding="utf-8"))
        if found.partition(".")[0] in groups
    }
    assert used
    assert used <= keys


def test_no_key_is_left_over() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    unused = [
        key
        for key in load_words("en").table
        if not key.startswith(COMPOSED)
        and key not in AGES
        and f'"{key.removesuffix("_one")}"' not in source
        and f"'{key.removesuffix('_one')}'" not in source
    ]
    assert unused == []


def test_a_sentence_whose_parameter_is_missing_still_reads() -> None:
    assert load_words("en").error(ErrorInfo(code=ErrorCode.RATE_LIMITED)).endswith("in ? s.")


@pytest.mark.parametrize(
    ("fixed", "chosen", "accepted", "expected"),
    [
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        (None, None, "fr-FR,fr;q=0.9,en;q=0.8,zh;q=0.5", "en"),
        (None, None, "zh-TW", "zh-CN"),
        (None, None, "de", "en"),
        (None, None, "", "en"),
        (None, None, "zh;q=oops, en", "en"),
        ("zh-CN", None, "en", "zh-CN"),
        ("zh-CN", "en", "zh", "en"),
        (None, "xx", "zh", "zh-CN"),
    ],
)
def test_the_visitors_choice_wins_then_the_operators_then_the_browsers(
    fixed: str | None, chosen: str | None, accepted: str, expected: str
) -> None:
    assert choose_language(fixed, chosen, accepted) == expected
