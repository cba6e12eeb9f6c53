"""The agent's tools on the page: footnotes, formatted words, a click before something risky, and words sent before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_rest, open_page, say
from tests.wire_server import GeminiProcess

SEARCH = {"kind": "Call", "name": "web_search", "args": {"query": "When was the bridge opened?"}}
FOUND = {
    "kind": "Search",
    "facts": {"facts": [{"item": "Opened in 1937", "source": "example.org"}], "prompt_draft": ""},
}
FOREIGN = "https://elsewhere.example/?all=we+said"
RICH = """It opened in 1937 [1].

| bridge | year |
| --- | --- |
| Golden Gate | 1937 |

$$E = mc^2$$

```python
print("hello")
```
"""


@pytest.fixture(autouse=True)
def _clear(gemini: GeminiProcess) -> Iterator[None]:
    gemini.control(clear=True)
    yield
    assert gemini.read("violations") == []


def words(text: str) -> dict[str, Any]:
    return {"kind": "Text", "text": text}


def permit_search(page: Page) -> None:
    page.get_by_role("checkbox", name="Search").check(force=True)


def test_what_was_found_has_footnotes_and_tables_formulas_and_code_are_drawn(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[SEARCH, FOUND, words(RICH)])
    open_page(page, gemini_studio.url)
    permit_search(page)
    say(page, "when was the bridge opened?")
    expect_rest(page)
    note = page.locator("#chat .bot a", has_text="¹")
    expect(note).to_have_attribute("href", "https://vertexaisearch.cloud.google.com/redirect/1")
    expect(page.locator("#chat .sources sup")).to_have_text("1")
    expect(page.locator("#chat .bot table td").first).to_have_text("Golden Gate")
    expect(page.locator("#chat .bot .katex").first).to_be_visible()
    expect(page.locator("#chat .bot pre code")).to_contain_text('print("hello")')


def test_an_address_that_nobody_named_waits_for_a_click_and_words_come_back_with_up(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    read = {"kind": "Call", "name": "read_url", "args": {"url": FOREIGN}}
    gemini.control(on_text=[SEARCH, FOUND, read, words("I left it alone.")])
    open_page(page, gemini_studio.url)
    permit_search(page)
    say(page, "look it up")
    card = page.get_by_role("group", name="May I?")
    expect(card).to_contain_text("read_url")
    expect(card).to_contain_text(FOREIGN)
    page.reload()
    expect(card.get_by_role("button", name="Allow")).to_be_enabled()
    card.get_by_role("button", name="Don't").click()
    expect(page.locator("#chat")).to_contain_text("I left it alone.")
    expect(page.locator("#chat")).to_contain_text("Not done")
    expect_rest(page)
    answered = json.dumps(gemini.read("requests")[-1]["body"])
    assert "did not allow it" in answered

    box = composer(page)
    box.fill("a draft\nof two lines")
    box.press("ArrowUp")
    expect(box).to_have_value("a draft\nof two lines")
    box.press("ArrowUp")
    expect(box).to_have_value("look it up")
    box.press("ArrowUp")
    box.press("ArrowDown")
    box.press("ArrowDown")
    expect(box).to_have_value("a draft\nof two lines")
    box.dispatch_event("compositionstart")
    box.evaluate("area => area.setSelectionRange(0, 0)")
    box.dispatch_event("keydown", {"key": "ArrowUp", "isComposing": True, "bubbles": True})
    expect(box).to_have_value("a draft\nof two lines")
