"""Markdown in the thread, as the browser draws it: marks, indentation, alignment, and nothing that is cut off."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_rest, open_page, say
from tests.page.journeys import step
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


def style(element: Locator, name: str) -> str:
    """Return a computed style of the first element."""
    value: str = element.first.evaluate("(element, name) => getComputedStyle(element).getPropertyValue(name)", name)
    return value


def test_an_answer_in_markdown_is_drawn_and_ones_own_words_as_typed(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[{"kind": "Text", "text": ANSWER, "chunks": 7}])
    open_page(page, gemini_studio.url)
    say(page, "what can you do?")
    answer = page.locator("#chat .bot .md")
    expect(answer).to_contain_text("the last words.")
    expect_rest(page)
    with step("an item of a list has its mark in sight"):
        for place, mark in (
            ("> ol > li", "decimal"),
            ("> ol > li > ol > li", "lower-alpha"),
            ("> ul > li:not(.task)", "disc"),
            ("> ol > li > ul > li", "disc"),
            ("> ol > li > ul > li > ul > li", "circle"),
        ):
            item = answer.locator(f":scope {place}")
            assert style(item, "list-style-type") == mark
            assert style(item, "display") == "list-item"
            # The mark stands in the padding of the list: where there is none, it is cut off or outside of the thread.
            room = float(style(item.first.locator(".."), "padding-inline-start").removesuffix("px"))
            assert room >= 20
    with step("a list that begins later keeps its number"):
        assert answer.locator(":scope > ol").last.evaluate("list => list.start") == 7
    with step("each level of a list stands further in"):
        levels = [answer.locator(f":scope {place}") for place in ("> ol > li", "> ol ul > li", "> ol ul ul > li")]
        begin_px = (
            "element => { const range = document.createRange(); range.selectNodeContents(element.firstChild);"
            " return range.getBoundingClientRect().left; }"
        )
        lefts = [level.first.evaluate(begin_px) for level in levels]
        assert lefts[1] - lefts[0] >= 16
        assert lefts[2] - lefts[1] >= 16
    with step("a task shows its box and no other mark"):
        task = answer.locator("li.task")
        assert style(task, "list-style-type") == "none"
        expect(task).to_have_text("☑ a task that is done")
    with step("a column of a table is aligned as it was written"):
        for column, side in enumerate(("left", "center", "right")):
            for cell in ("th", "td"):
                assert style(answer.locator(cell).nth(column), "text-align") == side
    with step("headings, quotes, rules and code are told apart"):
        heading, words = answer.locator("h1"), answer.locator(":scope > p").last
        assert float(style(heading, "font-size")[:-2]) > float(style(words, "font-size")[:-2])
        assert style(answer.locator("blockquote"), "border-left-style") == "solid"
        assert style(answer.locator("hr"), "border-top-style") == "solid"
        assert "mono" in style(answer.locator("p code"), "font-family").lower()
    with step("a person's own words are drawn as typed"):
        page: Page = answer.page
        for typed in ["画一个20*30*40厘米的盒子", "# x\n    * y\n\n```\nz\n```\n$$a$$ \\(b\\) <b>"]:
            say(page, typed)
            bubble = page.locator("#chat .user .own").last
            expect(bubble).to_have_text(typed, use_inner_text=True)
            assert bubble.evaluate("element => element.innerText") == typed
            assert bubble.get_attribute("dir") == "auto"
            expect_rest(page)


def what_stands_under_a_message_is_not_cut_off(phone: Page, gemini: GeminiProcess, gemini_studio: PageProcess) -> None:
    gemini.control(on_text=[{"kind": "Text", "text": "Here I am.", "chunks": 1}])
    open_page(phone, gemini_studio.url)
    say(phone, "are you there?")
    expect(phone.locator("#chat .bot .md")).to_have_text("Here I am.")
    for name in ("copy", "edit"):
        # A row of a long thread draws nothing beyond its edges.
        sides: list[list[float]] = phone.locator(f".user [data-branch={name}]").evaluate(
            "button => [button, button.closest('.turn')].map(one => one.getBoundingClientRect())"
            ".map(box => [box.left, box.top, box.right, box.bottom])"
        )
        button, row = sides
        assert (row[0] <= button[0], row[1] <= button[1], row[2] >= button[2], row[3] >= button[3]) == (True,) * 4
        seen = phone.locator(f".user [data-branch={name}] svg").evaluate(
            "icon => { const box = icon.getBoundingClientRect();"
            " return [box.top + 1, box.bottom - 1].every(y => icon.closest('button').contains("
            "document.elementFromPoint(box.left + box.width / 2, y))); }"
        )
        assert seen
