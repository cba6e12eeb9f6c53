"""The page as a browser gets it, in every language: all that it can show, as it reads, and nothing of it is markup."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.adapters.records import keep
from tests.golden import everything
from tests.golden.conftest import Golden
from tests.golden.prices import models_of_the_day
from tests.golden.reading import boxes, elements, is_markup, read, written
from tests.page import PageProcess
from tests.webui.hostile import Stranger

LANGUAGES = ("en", "zh-CN")
CONVERSATIONS = everything.conversations()
KEY = {"GEMINI_API_KEY": "AIza-operators-own-0001"}
PRESSES: list[tuple[str, dict[str, Any]]] = [
    ("page.compare", {"arg": "#2 #1"}),
    ("page.compare", {"arg": "#16"}),
    ("page.edit", {"arg": "#8"}),
    ("page.reference", {"arg": "#9"}),
]
ACTIONS: list[tuple[str, dict[str, Any]]] = [
    *PRESSES,
    ("conversations.look", {"query": "wor"}),
    ("conversations.look", {"query": "zeppelin"}),
    ("conversations.look", {"is_trash": True}),
    ("tree.show", {"is_begun": False}),
    ("files.show", {"is_begun": False}),
    ("styles.open", {}),
    ("styles.form", {}),
    ("prompts.open", {}),
    ("shortcuts.open", {}),
    ("settings.open", {}),
]
# Of the many styles and pictures, the first.
MOST_LINES = 150


@dataclass(frozen=True)
class Kept:
    """A studio whose key is a Gemini key, and the ids of its conversations by name."""

    page: PageProcess
    ids: dict[str, str]


@contextmanager
def opened(home: Path, conversations: dict[str, list[everything.Scene]]) -> Iterator[Kept]:
    turns = [list(everything.turns(name, scenes)) for name, scenes in conversations.items()]
    ids = dict(zip(conversations, asyncio.run(keep(home, "local", *turns)), strict=True))
    chosen = KEY | {"AIVISTA_CATALOGUE": str(models_of_the_day(home))}
    with PageProcess(home=home, environment=chosen) as page:
        yield Kept(page, ids)
        assert "Traceback" not in page.errors


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    with opened(tmp_path_factory.mktemp("home"), CONVERSATIONS) as one:
        yield one


def fetched(url: str, conversation: str, language: str) -> list[dict[str, Any]]:
    """Return the parts of the page with their properties, as it comes to somebody who reads this language."""
    answer = httpx.get(f"{url}/?c={conversation}", headers={"Accept-Language": language}, timeout=60)
    assert answer.status_code == 200
    config, _ = json.JSONDecoder().raw_decode(answer.text.partition("window.gradio_config = ")[2])
    inputs = [{"kind": one["type"], **one["props"]} for one in config["components"]]
    return [{"kind": "html", "elem_id": name, "value": text} for name, text in boxes(answer.text).items()] + inputs


def thread(parts: list[dict[str, Any]], visitor: Stranger, conversation: str) -> Iterator[tuple[str, str]]:
    """Yield who says it and its HTML for everything in the thread, with the turns that come when one scrolls up."""
    log = next(one["value"] for one in parts if one.get("elem_id") == "chat")
    while elements(log, "//*[@id='earlier']"):
        first = elements(log, "//article")[0].get("id").removeprefix("turn-")
        come = visitor.act("thread.earlier", conversation, before=first)
        more = come.pop("earlier") or ""
        log = f"{more}{''.join(map(str, come.values()))}{''.join(map(written, elements(log, '//article')))}"
    for piece in elements(log, "//*[@class='user' or @class='bot']/*"):
        role = {"user": "user", "bot": "assistant"}[piece.getparent().get("class")]
        yield role, written(piece)


def around(parts: list[dict[str, Any]]) -> list[str]:
    """Return what stands around the thread: the panels, the dialogs, the settings of the composer."""
    lines = list[str]()
    for one in parts:
        value, name = one.get("value"), one.get("elem_id")
        if name == "chat":
            continue
        if isinstance(value, str) and is_markup(value):
            lines += [f"## {name}", *read(value)]
        # What only scripts read is called in small letters.
        elif one.get("label") and not one["label"].islower() and not isinstance(value, list):
            choices = [choice[0] for choice in one.get("choices") or ()]
            off = "" if one.get("interactive") is not False else " (off)"
            lines.append(
                f"## {one['kind']} {one['label']}: {value} {choices or ''}{off} {one.get('info') or ''}".rstrip()
            )
    return lines


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_conversation_and_what_stands_around_it_read_as_they_did(kept: Kept, golden: Golden, language: str) -> None:
    visitor = Stranger(kept.page.url, headers={"Accept-Language": language})
    for name, conversation in kept.ids.items():
        parts = fetched(kept.page.url, conversation, language)
        # As somebody reads it; what stands below everybody's words is told once.
        lines, told = list[str](), 0
        for role, text in thread(parts, visitor, conversation):
            told += "said-form" in text
            if "said-form" not in text or told == 1:
                lines += [f"## {role}", *read(text)]
        beside = around(parts)
        assert [line for line in (*lines, *beside) if "NO NAME" in line] == [], name
        golden(f"page/{name}.{language}.txt", "\n".join(lines).replace(conversation, f"<{name}>") + "\n")
        if name == "planned":
            golden(f"page/around.{language}.txt", "\n".join(beside).replace(conversation, "<planned>") + "\n")
    visitor.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_opens_at_a_press_reads_as_it_did(kept: Kept, golden: Golden, language: str) -> None:
    painting = kept.ids["painting"]
    visitor = Stranger(kept.page.url, headers={"Accept-Language": language})
    lines = list[str]()
    for name, args in ACTIONS:
        lines.append(f"# {name}")
        for part, html in visitor.act(name, painting, **args).items():
            if html and is_markup(html) and part not in {"aids", "cost", "rail-foot", "thread-foot"}:
                lines += [f"## {part}", *read(html)[:MOST_LINES]]
    visitor.close()
    text = "\n".join(lines).replace(painting, "<painting>").replace(str(kept.page.home), "<home>")
    # The studio makes its first backup a while after it has started.
    text = re.sub(r"^.*(?=\[(?:Back up now|立即备份)\])", "<newest backup> ", text, flags=re.MULTILINE)
    golden(f"page/pressed.{language}.txt", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "<time>", text) + "\n")


def test_the_first_page_reads_as_it_did_with_a_key_and_without(tmp_path: Path, golden: Golden) -> None:
    chosen = {"AIVISTA_CATALOGUE": str(models_of_the_day(tmp_path))}
    for name, environment in (("first", chosen), ("first with a key", KEY | chosen)):
        with PageProcess(home=tmp_path / name, environment=environment) as page:
            for language in LANGUAGES:
                lines = around(fetched(page.url, "new", language))
                golden(f"page/{name}.{language}.txt", "\n".join(lines) + "\n")


def test_nothing_that_somebody_wrote_becomes_markup(tmp_path: Path) -> None:
    conversations = {name: everything.hostile(scenes) for name, scenes in CONVERSATIONS.items()}
    with opened(tmp_path, conversations) as spoilt:
        for conversation in spoilt.ids.values():
            parts = fetched(spoilt.page.url, conversation, "en")
            visitor = Stranger(spoilt.page.url)
            told_of = [text for _, text in thread(parts, visitor, conversation)]
            told_of += [one["value"] for one in parts if isinstance(one.get("value"), str) and is_markup(one["value"])]
            for name, args in PRESSES:
                told_of += [html for html in visitor.act(name, conversation, **args).values() if html]
            visitor.close()
            assert sum("hostile" in text for text in told_of) > 1
            for text in told_of:
                assert elements(text, "//*[@class='hostile' or @onmouseover]") == [], text
