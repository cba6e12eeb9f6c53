"""What scripts say, and what Gradio says by itself: both in the visitor's language."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import gradio
import pytest

import webui
from tests.adapters.webui import LANGUAGES, NAMES, PARTS, load_words, script_words_html

SCRIPTS = sorted(Path(webui.__file__).parent.rglob("*.js"))
# Said by Python or by the browser, not by Gradio's page.
ELSEWHERE = {"maximum allowed size", "Queue is full", "Failed to fetch", "NetworkError"}


def test_gradio_still_says_what_we_put_into_other_words() -> None:
    folder = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
    wanted = [
        path for path in folder.glob("*.js") if re.match(r"(Index|Blocks|index|core|src|statustracker)-", path.name)
    ]
    page = "\n".join(path.read_text(encoding="utf-8") for path in wanted)
    assert [text for text in {**NAMES, **PARTS} if text not in ELSEWHERE and text not in page] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_told_all_of_it(language: str) -> None:
    words, html = load_words(language), script_words_html(load_words(language))
    tables = {name: json.loads(unescape(data)) for name, data in re.findall(r'data-(\w+)="([^"]*)"', html)}
    assert tables["script"] == {
        key.removeprefix("script."): text for key, text in words.table.items() if key.startswith("script.")
    }
    assert tables["names"].keys() == NAMES.keys()
    assert tables["parts"].keys() == PARTS.keys()
    assert tables["names"]["Upload a file"] == words("builtin.attach")


def test_scripts_ask_for_words_that_exist_and_leave_none_over() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    asked = set(re.findall(r"""aivista\.translate\("([a-z_]+)\"""", source))
    assert {f"script.{key}" for key in asked} == {key for key in load_words("en").table if key.startswith("script.")}


def test_no_script_brings_words_of_its_own() -> None:
    shown = r"""(?:textContent|innerText|title|placeholder|alt|ariaLabel)\s*[=:]\s*["'`]([^"'`$]*)["'`]"""
    named = r"""setAttribute\(["'](?:aria-label|title|alt|placeholder)["'],\s*["'`]([^"'`$]*)["'`]"""
    inserted = r">([A-Za-z][a-z]+(?: [a-z]+)*)<"
    found = []
    for path in SCRIPTS:
        code = re.sub(r"(?m)(^|\s)//.*$", "", path.read_text(encoding="utf-8"))
        written = [text for pattern in (shown, named, inserted) for text in re.findall(pattern, code)]
        found += [(path.stem, text) for text in written if re.search(r"[^\W\d_]{2,}", text)]
        found += [(path.stem, text) for text in re.findall(r"[\u4e00-\u9fff]+", code)]
    assert found == []
