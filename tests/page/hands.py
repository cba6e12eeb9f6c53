"""What a person does on the page, in the words of the tests.

What has to be waited for is counted: of whatever else is not so yet, Playwright reads the whole page at every look, for
a report that nobody sees.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import FloatRect, JSHandle, Locator, Page, expect

from tests.page.journeys import on


def open_page(page: Page, url: str) -> None:
    """Open a new conversation and wait until the page is usable."""
    open_at(page, f"{url}/?c=new")


def go(page: Page, address: str) -> None:
    """Go to an address, once the page has taken its last step back: a browser that is on its way back goes nowhere."""
    # The page begins that step in a timer after what was done last.
    page.evaluate("() => new Promise(done => setTimeout(() => setTimeout(done)))")
    expect(page.locator("html[data-stepping]")).to_have_count(0)
    page.goto(address)


def reload(page: Page) -> None:
    """Load the page anew and wait until it is usable."""
    page.reload()
    expect_ready(page)


def expect_ready(page: Page) -> None:
    """Wait until Python has filled the page for the conversation of its address."""
    _wait(page, "() => document.querySelector('html[data-ready] #box textarea:enabled')")


def _wait(page: Page, condition: str, argument: object = None) -> None:
    # `expect` looks only each half second after the first: most of what is waited for takes less.
    page.wait_for_function(condition, arg=argument, polling=50, timeout=60_000)


def begin_anew(page: Page) -> None:
    """Begin a new conversation in the same tab, which takes a seventh of opening the page."""
    on(page, "#rail-head").button("rail.new").click()
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect_ready(page)


# As the row of a conversation in the list, which may not be in sight.
_PRESSED = """id => {
  const row = document.createElement("button"), act = id === "new" ? "new" : "open";
  Object.assign(row.dataset, { act, arg: id });
  document.body.append(row);
  row.click();
  row.remove();
}"""


def open_at(page: Page, address: str, count: int | None = None) -> None:
    """Open a conversation of this address and wait until the page is usable, and has so many pictures.

    A page of this studio that is open already stays, which takes a seventh.
    """
    studio, _, conversation = address.partition("?c=")
    if page.url.startswith(studio) and page.locator("html[data-ready]").count():
        page.evaluate(_PRESSED, conversation)
        expect(page.locator(f"#top h1[data-conversation='{conversation}']")).to_have_count(1)
    else:
        go(page, address)
    expect_ready(page)
    if count is not None:
        expect(pictures(page)).to_have_count(count)


def paint(page: Page, *wishes: str) -> None:
    """Send the wishes, one after the other, and wait for the picture of each and for the end of its turn."""
    for wish in wishes:
        count = pictures(page).count()
        say(page, wish)
        expect_pictures(page, count + 1)


def composer(page: Page) -> Locator:
    """Return the box one types in."""
    return page.locator("#box").get_by_role("textbox")


def say(page: Page, words: str) -> None:
    """Type the words and send them."""
    composer(page).fill(words)
    composer(page).press("Enter")


def open_settings(page: Page) -> Locator:
    """Open the settings of the next picture and return their panel."""
    panel = page.locator("#setup")
    if not panel.is_visible():
        on(page).button("composer.settings").click()
        expect(panel).to_be_visible()
    return panel


def close_settings(page: Page) -> None:
    """Close the settings of the next picture."""
    page.keyboard.press("Escape")
    expect(page.locator("#setup")).to_be_hidden()


def choose_setting(page: Page, setting: str, value: str) -> None:
    """Choose a value of a setting, by the setting's id and what stands on the value; the panel is closed again."""
    place = open_settings(page).locator(f"#{setting}")
    # Gradio draws the settings when the page rests.
    expect(place.locator("input").first).to_be_attached()
    if place.get_by_role("combobox").count():
        place.get_by_role("combobox").click()
        page.get_by_role("option", name=value, exact=True).click()
        expect(place.get_by_role("combobox")).to_have_value(value)
    else:
        place.get_by_role("radio", name=value, exact=True).check()
    close_settings(page)


def chosen_ratio(page: Page) -> Locator:
    """Return the ratio that is chosen, whose value is the ratio, or `auto`."""
    return page.locator("#aspect-ratio :checked")


def ask_before_painting(page: Page) -> None:
    """Have the next message answered with a plan."""
    on(open_settings(page)).field("composer.confirm").check()
    close_settings(page)


def open_more(page: Page, number: int = -1) -> Locator:
    """Open the menu beneath a picture of the thread, the last one's unless told otherwise, and return it."""
    menu = page.locator("#chat .acts details.more").nth(number)
    on(menu).field("action.more").click()
    expect(on(menu).button("action.reference")).to_be_visible()
    return menu


def open_sliders(page: Page) -> Locator:
    """Unfold what adjusts the last picture of the thread, from its menu, and return its sliders."""
    on(open_more(page)).button("panel.adjust").click()
    sliders = page.locator("#chat .next-steps[open] .sliders").last
    expect(sliders.get_by_role("slider").first).to_be_visible()
    return sliders


def attach(page: Page, *files: Path) -> None:
    """Add files to the message and wait until they are there."""
    page.locator("#box input[type=file]").first.set_input_files([str(file) for file in files])
    attached = page.locator("#box .thumbnail-item, #box .file-icon, #box img")
    expect(attached).not_to_have_count(0)
    expect(attached.first).to_be_visible()


@dataclass(frozen=True)
class Held:
    """A file that is dropped or pasted: its name, its bytes, its media type."""

    name: str
    data: bytes
    kind: str = "image/png"


def held(page: Page, *files: Held) -> JSHandle:
    """Return the files as what a drop or a paste carries, a DataTransfer."""
    # As text: a list of numbers takes seconds for a photo.
    told = [{"name": one.name, "kind": one.kind, "text": b64encode(one.data).decode()} for one in files]
    return page.evaluate_handle(
        """files => {
          const data = new DataTransfer();
          for (const { name, kind, text } of files) {
            data.items.add(new File([Uint8Array.from(atob(text), one => one.charCodeAt(0))], name, { type: kind }));
          }
          return data;
        }""",
        told,
    )


def drop(place: Locator, *files: Held) -> None:
    """Drop the files onto a place as one."""
    data = {"dataTransfer": held(place.page, *files)}
    place.dispatch_event("dragover", data)
    place.dispatch_event("drop", data)


def pictures(page: Page) -> Locator:
    """Return the pictures the agent made."""
    return page.locator("#chat .pic img")


_RESTS = """count => {
  const chat = document.querySelector("#chat"), is_shown = name => document.querySelector(name)?.checkVisibility();
  const rests = !document.querySelector("#turn-now[data-sending]") && !chat.querySelector(".live")
    && is_shown("#box .submit-button") && !is_shown("#box .stop-button");
  return rests && (count === null || chat.querySelectorAll(".pic img").length === count);
}"""


def expect_rest(page: Page, count: int | None = None) -> None:
    """Wait until the agent rests: what was sent is in the thread, no turn is at work, Send is back, Stop is gone."""
    _wait(page, _RESTS, count)


def expect_pictures(page: Page, count: int) -> None:
    """Wait until the agent rests and has made so many pictures."""
    expect_rest(page, count)


def place_of(element: Locator) -> FloatRect:
    """Return where an element that is drawn stands on the page, in pixels."""
    box = element.bounding_box()
    assert box is not None
    return box


def draw_twice(page: Page) -> None:
    """Wait until the page was drawn twice: whatever answers what was just done on it has had its turn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def expect_still(page: Page, number: str) -> None:
    """Wait until a number of the page, given as an expression, was the same while it was drawn ten times."""
    page.wait_for_function(
        f"""async () => {{
          const number = () => {number}, before = number();
          for (let times = 0; times < 10; times++) {{
            await new Promise(done => requestAnimationFrame(done));
            if (number() !== before) return false;
          }}
          return true;
        }}"""
    )


def expect_loaded(picture: Locator) -> None:
    """Wait until the browser has the picture's pixels."""
    expect(picture).to_have_js_property("complete", True)
    expect(picture).not_to_have_js_property("naturalWidth", 0)
