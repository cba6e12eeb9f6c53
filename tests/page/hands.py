"""What a person does on the page, in the words of the tests."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, Page, expect


def open_page(page: Page, url: str) -> None:
    """Open a new conversation and wait until the page is usable."""
    page.goto(f"{url}/?c=new")
    expect(page.locator("#top h1")).to_be_visible()
    expect(composer(page)).to_be_editable()


def composer(page: Page) -> Locator:
    """Return the box one types in."""
    return page.locator("#box textarea")


def say(page: Page, words: str) -> None:
    """Type the words and send them."""
    composer(page).fill(words)
    composer(page).press("Enter")


def attach(page: Page, *files: Path) -> None:
    """Add files to the message and wait until they are there."""
    page.locator("#box input[type=file]").first.set_input_files([str(file) for file in files])
    expect(page.locator("#box .thumbnail-item, #box .file-icon, #box img").first).to_be_visible()


def pictures(page: Page) -> Locator:
    """Return the pictures the agent made."""
    return page.locator("#chat .pic img")


def expect_rest(page: Page) -> None:
    """Wait until the agent rests: Send is back, Stop is gone."""
    expect(page.locator("#box .submit-button")).to_be_visible()
    expect(page.locator("#box .stop-button")).to_be_hidden()


def expect_loaded(picture: Locator) -> None:
    """Wait until the browser has the picture's pixels."""
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0
