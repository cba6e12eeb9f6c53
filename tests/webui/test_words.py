"""Every word of the page is there, in every language, and is used."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter

import agent
import webui
from agent import ErrorCode, ErrorInfo, Step
from tests.adapters.models import load_catalogue
from tests.adapters.webui import LANGUAGES, choose_language, key_table, load_words
from tests.support.cases import each_case
from tests.support.sources import nodes
from tests.support.tables import filled, table

WEBUI = Path(webui.__file__).parent
SOURCES = sorted(WEBUI.rglob("*.py"))
TEMPLATES = sorted(WEBUI.rglob("*.html"))
# What no visitor of the page reads: the command and what it writes, the doors for programs, what is said to whoever is
# no visitor of ours, and what Gradio says in English, which is put into other words.
ENGLISH = "cli/*.py cli/space/* __main__.py http/hosts.py api/* mcp_server/* app.py shell/document.py"


@cache
def literals() -> frozenset[str]:
    """Return every text that stands in the code by itself, and the names of the table of keys."""
    files = [*SOURCES, *Path(agent.__file__).parent.rglob("*.py")]
    texts = {
        node.value
        for path in files
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for path in TEMPLATES:
        texts |= set(re.findall(r"'([^'\n]*)'", path.read_text()))
        texts |= set(re.findall(r'"([^"\n]*)"', path.read_text()))
    return frozenset({*texts, *key_table(), *(name for rows in key_table().values() for name in rows)})


def sentences(path: Path) -> list[str]:
    """Return what stands in a file as words for people: no docstring, three words in a row, no markup."""
    notes = {id(one.value) for one in nodes(path) if isinstance(one, ast.Expr)}
    texts = [node for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    spoken = r"^[A-Z][a-z']*,? (?:[A-Za-z'-]+,? ){1,}[A-Za-z'-]+"
    return [str(one.value) for one in texts if id(one) not in notes and re.search(spoken, str(one.value))]


def parameters_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def test_every_language_has_the_same_keys_and_a_sentence_the_same_parameters_in_each() -> None:
    english, chinese = (load_words(language).table for language in LANGUAGES)
    assert chinese.keys() == english.keys()
    assert [key for key in english if parameters_of(chinese[key]) != parameters_of(english[key])] == []


def test_there_is_a_sentence_for_every_error_and_no_other_and_one_and_a_word_for_every_step() -> None:
    keys = load_words("en").table.keys()
    assert {key for key in keys if key.startswith("error.")} == {f"error.{code.value}" for code in ErrorCode}
    assert {f"{kind}.{step}" for kind in ("step", "did") for step in Step} <= keys
    # One whose parameter is missing still reads.
    assert load_words("en").error(ErrorInfo(code=ErrorCode.RATE_LIMITED)).endswith("in ? s.")


def test_every_key_used_by_the_page_exists() -> None:
    keys = load_words("en").table.keys()
    groups = {key.partition(".")[0] for key in keys}
    used = {
        found
        for path in (*SOURCES, *TEMPLATES)
        for found in re.findall(r"""["']([a-z]+\.[a-z_]+)["']""", path.read_text(encoding="utf-8"))
        if found.partition(".")[0] in groups and not found.endswith((".toml", ".html"))
    }
    assert used
    assert used <= keys


def test_no_key_is_left_over() -> None:
    # Those that are put together from values, f"example.{name}_text", as a pattern with a group for each.
    found = []
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant):
                parts = [re.escape(str(one.value)) if isinstance(one, ast.Constant) else "(.+)" for one in node.values]
                if re.match(r"[a-z_]+\.", str(first.value)):
                    found.append(re.compile("".join(parts)))
    begun = [one for path in TEMPLATES for one in re.findall(r"""["']([a-z]+\.)["'] ~ """, path.read_text())]
    patterns, known = [*found, *(re.compile(f"{re.escape(one)}(.+)") for one in begun)], literals()

    def is_used(key: str) -> bool:
        found = [match.groups() for pattern in patterns if (match := pattern.fullmatch(key))]
        return key in known or any(known.issuperset(groups) for groups in found)

    # Those of scripts and failures are looked for by tests of their own.
    others = ("script.", "error.")
    keys = [key.removesuffix("_one") for key in load_words("en").table if not key.startswith(others)]
    assert [key for key in keys if not is_used(key)] == []


def test_no_sentence_of_the_page_stands_in_the_code() -> None:
    files = [path for path in SOURCES if not any(path.match(f"webui/{name}") for name in ENGLISH.split())]
    assert {path: found for path in files if (found := sentences(path))} == {}


def test_what_the_studio_draws_with_has_a_name_in_every_language() -> None:
    labels = {one.label for one in load_catalogue().entries if one.is_sketch} | {agent.EXACT_ADJUSTMENT_LABEL}
    english, chinese = map(load_words, LANGUAGES)
    assert {english.model(one) for one in labels} == labels
    assert {chinese.model(one) for one in labels}.isdisjoint(labels)


def test_chinese_sentences_are_chinese_with_chinese_signs() -> None:
    english, chinese = load_words("en").table, load_words("zh-CN").table
    spoken = [key for key in english if re.search(r"[a-z]{3,} [a-z]{3,}", re.sub(r"\{[^}]*\}", "", english[key]))]
    assert [key for key in spoken if not re.search(r"[\u4e00-\u9fff]", chinese[key])] == []
    assert [key for key in chinese if re.search(r"[\u4e00-\u9fff][,.;:?!](?:\s|$)", chinese[key])] == []


@each_case(("fixed", "chosen", "accepted", "expected"), filled(table("doors")["languages"], {}))
def test_the_visitors_choice_wins_then_the_operators_then_the_browsers(
    fixed: str | None, chosen: str | None, accepted: str, expected: str
) -> None:
    assert choose_language(fixed, chosen, accepted) == expected
