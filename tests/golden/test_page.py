"""The page as a browser gets it, in every language: all that it can show, as it reads, and nothing of it is markup."""

from __future__ import annotations

import asyncio
import json
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
from tests.golden.reading import elements, is_markup, read
from tests.page import PageProcess

LANGUAGES = ("en", "zh-CN")
CONVERSATIONS = everything.conversations()


@dataclass(frozen=True)
class Kept:
    """A studio whose key is a Gemini key, and the ids of its conversations by name."""

    page: PageProcess
    ids: dict[str, str]


@contextmanager
def opened(home: Path, conversations: dict[str, list[everything.Scene]]) -> Iterator[Kept]:
    turns = [list(everything.turns(name, scenes)) for name, scenes in conversations.items()]
    ids = dict(zip(conversations, asyncio.run(keep(home, "local", *turns)), strict=True))
    with PageProcess(home=home, environment={"GEMINI_API_KEY": "AIza-operators-own-0001"}) as page:
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
    return [{"kind": one["type"], **one["props"]} for one in config["components"]]


def thread(parts: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield who says it and its HTML for everything that stands in the thread."""
    for message in next(one["value"] for one in parts if one.get("elem_id") == "chat"):
        for piece in message["content"]:
            yield message["role"], str(piece["text"] if piece["type"] == "text" else piece["value"])


def as_read(parts: list[dict[str, Any]]) -> list[str]:
    """Return the thread as somebody reads it; what stands below everybody's words is told once."""
    lines, told = list[str](), 0
    for role, text in thread(parts):
        told += "said-form" in text
        if "said-form" not in text or told == 1:
            lines += [f"## {role}", *read(text)]
    return lines


def around(parts: list[dict[str, Any]]) -> list[str]:
    """Return what stands around the thread: the panels, the dialogs, the settings of the composer."""
    lines = list[str]()
    for one in parts:
        value, name = one.get("value"), one.get("elem_id")
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
def test_everything_that_a_conversation_can_hold_reads_as_it_did(kept: Kept, golden: Golden, language: str) -> None:
    for name in CONVERSATIONS:
        lines = as_read(fetched(kept.page.url, kept.ids[name], language))
        golden(f"page/{name}.{language}.txt", "\n".join(lines).replace(kept.ids[name], f"<{name}>") + "\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_stands_around_a_conversation_reads_as_it_did(kept: Kept, golden: Golden, language: str) -> None:
    lines = around(fetched(kept.page.url, kept.ids["planned"], language))
    golden(f"page/around.{language}.txt", "\n".join(lines).replace(kept.ids["planned"], "<planned>") + "\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_page_without_a_key_reads_as_it_did(tmp_path: Path, golden: Golden, language: str) -> None:
    with PageProcess(home=tmp_path) as page:
        golden(f"page/first.{language}.txt", "\n".join(around(fetched(page.url, "new", language))) + "\n")


@pytest.mark.parametrize("language", LANGUAGES)
def test_whatever_is_shown_every_button_and_every_field_has_a_name(kept: Kept, language: str) -> None:
    for name, conversation in kept.ids.items():
        parts = fetched(kept.page.url, conversation, language)
        assert [line for line in (*as_read(parts), *around(parts)) if "NO NAME" in line] == [], name


def test_nothing_that_somebody_wrote_becomes_markup(tmp_path: Path) -> None:
    conversations = {name: everything.hostile(scenes) for name, scenes in CONVERSATIONS.items()}
    with opened(tmp_path, conversations) as spoilt:
        for conversation in spoilt.ids.values():
            parts = fetched(spoilt.page.url, conversation, "en")
            written = [text for _, text in thread(parts)]
            written += [one["value"] for one in parts if isinstance(one.get("value"), str) and is_markup(one["value"])]
            assert sum("hostile" in text for text in written) > 1
            for text in written:
                assert elements(text, "//*[@class='hostile' or @onmouseover]") == [], text
