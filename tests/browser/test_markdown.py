"""Markdown in the thread, as the browser draws it: marks, indentation, alignment, and nothing that is cut off."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import open_page, say
from tests.wire_server import GeminiProcess

ANSWER = """\
# What I can do

1. first
2. second
   - a bullet within
     - a deeper one
3. third
   1. inner one

- a bullet
- [x] a task that is done

7. seven

| Left | Middle | Right |
|:-----|:------:|------:|
| a    | b      |     1 |

> A quote

---

`code` and the last words.
"""


@pytest.fixture(scope="module")
def answer(browser: Browser, gemini: GeminiProcess, gemini_studio: PageProcess) -> Locator:
    """The agent's answer in Markdown, on a page."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US").new_page()
    gemini.control(on_text=[{"kind": "Text", "text": ANSWER, "chunks": 7}])
    open_page(page, gemini_studio.url)
    say(page, "what can you do?")
    drawn = page.locator("#chat .bot .md")
    expect(drawn).to_contain_text("the last words.")
    return drawn


def style(element: Locator, name: str) -> str:
    """Return a computed style of the first element."""
    value: str = element.first.evaluate("(element, name) => getComputedStyle(element).getPropertyValue(name)", name)
    return value


def text_left(element: Locator) -> float:
    """Return where the words of the first element begin, in pixels."""
    value: float = element.first.evaluate(
        "element => { const range = document.createRange(); range.selectNodeContents(element.firstChild);"
        " return range.getBoundingClientRect().left; }"
    )
    return value


@pytest.mark.parametrize(
    ("place", "mark"),
    [
        ("> ol > li", "decimal"),
        ("> ol > li > ol > li", "lower-alpha"),
        ("> ul > li:not(.task)", "disc"),
        ("> ol > li > ul > li", "disc"),
        ("> ol > li > ul > li > ul > li", "circle"),
    ],
)
def test_an_item_of_a_list_has_its_mark_in_sight(answer: Locator, place: str, mark: str) -> None:
    item = answer.locator(f":scope {place}")
    assert style(item, "list-style-type") == mark
    assert style(item, "display") == "list-item"
    # The mark stands in the padding of the list: where there is none, it is cut off or lies outside of the thread.
    room = float(style(item.first.locator(".."), "padding-inline-start").removesuffix("px"))
    assert room >= 20


def test_a_list_that_begins_later_keeps_its_number(answer: Locator) -> None:
    assert answer.locator(":scope > ol").last.evaluate("list => list.start") == 7


def test_each_level_of_a_list_stands_further_in(answer: Locator) -> None:
    levels = [answer.locator(f":scope {place}") for place in ("> ol > li", "> ol ul > li", "> ol ul ul > li")]
    lefts = [text_left(level) for level in levels]
    assert lefts[1] - lefts[0] >= 16
    assert lefts[2] - lefts[1] >= 16


def test_a_task_shows_its_box_and_no_other_mark(answer: Locator) -> None:
    task = answer.locator("li.task")
    assert style(task, "list-style-type") == "none"
    expect(task).to_have_text("☑ a task that is done")


@pytest.mark.parametrize(("column", "side"), [(0, "left"), (1, "center"), (2, "right")])
def test_a_column_of_a_table_is_aligned_as_it_was_written(answer: Locator, column: int, side: str) -> None:
    for cell in ("th", "td"):
        assert style(answer.locator(cell).nth(column), "text-align") == side


def test_headings_quotes_rules_and_code_are_told_apart(answer: Locator) -> None:
    heading, words = answer.locator("h1"), answer.locator(":scope > p").last
    assert float(style(heading, "font-size")[:-2]) > float(style(words, "font-size")[:-2])
    assert style(answer.locator("blockquote"), "border-left-style") == "solid"
    assert style(answer.locator("hr"), "border-top-style") == "solid"
    assert "mono" in style(answer.locator("p code"), "font-family").lower()


def test_what_stands_under_a_message_is_not_cut_off_on_a_phone(
    browser: Browser, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-US", has_touch=True)
    page: Page = context.new_page()
    gemini.control(on_text=[{"kind": "Text", "text": "Here I am.", "chunks": 1}])
    open_page(page, gemini_studio.url)
    say(page, "are you there?")
    expect(page.locator("#chat .bot .md")).to_have_text("Here I am.")
    for name in ("copy", "edit"):
        # A row of a long thread draws nothing beyond its edges.
        sides: list[list[float]] = page.locator(f"[data-branch={name}]").evaluate(
            "button => [button, button.closest('.message-row')].map(one => one.getBoundingClientRect())"
            ".map(box => [box.left, box.top, box.right, box.bottom])"
        )
        button, row = sides
        assert (row[0] <= button[0], row[1] <= button[1], row[2] >= button[2], row[3] >= button[3]) == (True,) * 4
        seen = page.locator(f"[data-branch={name}] svg").evaluate(
            "icon => { const box = icon.getBoundingClientRect();"
            " return [box.top + 1, box.bottom - 1].every(y => icon.closest('button').contains("
            "document.elementFromPoint(box.left + box.width / 2, y))); }"
        )
        assert seen
    context.close()


@pytest.mark.parametrize("typed", ["画一个20*30*40厘米的盒子", "# x\n    * y\n\n```\nz\n```\n$$a$$ \\(b\\) <b>"])
def test_a_persons_own_words_are_drawn_as_typed(answer: Locator, typed: str) -> None:
    page: Page = answer.page
    say(page, typed)
    bubble = page.locator("#chat .user .own").last
    expect(bubble).to_have_text(typed, use_inner_text=True)
    assert bubble.evaluate("element => element.innerText") == typed
    assert bubble.get_attribute("dir") == "auto"
