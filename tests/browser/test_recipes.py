"""A picture taken away and brought back: it tells how it was made, unless it was taken as a clean copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Browser, Locator, Page, expect

from agent.imaging.provenance import Recipe, embed, read
from tests.page import PageProcess
from tests.page.hands import Held, attach, composer, drop, expect_ready, expect_rest, open_page, pictures, say

WISH = "draw a red fox, 3:2"


class Taken(NamedTuple):
    """A picture's conversation, and the files it was taken away in."""

    address: str
    file: Path
    clean: Path


@pytest.fixture(scope="module")
def taken(browser: Browser, studio: PageProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    folder = tmp_path_factory.mktemp("taken")
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US", accept_downloads=True)
    page = context.new_page()
    open_page(page, studio.url)
    choose_ratio(page, "3:2")
    say(page, WISH)
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    acts = page.locator("#chat .acts")
    with page.expect_download() as plain:
        acts.get_by_text("Download").click()
    acts.locator("summary").click()
    with page.expect_download() as clean:
        acts.get_by_text("Clean copy").click()
    expect(acts.get_by_text("Clean copy")).to_be_hidden()
    files = [folder / download.value.suggested_filename for download in (plain, clean)]
    for file, download in zip(files, (plain, clean), strict=True):
        download.value.save_as(file)
    yield Taken(page.url, *files)
    context.close()


def choose_ratio(page: Page, ratio: str) -> None:
    page.locator("#aspect-ratio input").click()
    page.get_by_role("option", name=ratio, exact=True).click()
    expect(page.locator("#aspect-ratio input")).to_have_value(ratio)


def card(page: Page) -> Locator:
    return page.locator("#recipe .recipe")


def test_a_downloaded_picture_tells_its_recipe_and_a_clean_copy_nothing(taken: Taken) -> None:
    recipe = read(taken.file.read_bytes())
    assert isinstance(recipe, Recipe)
    assert (recipe.words, recipe.asked_aspect_ratio) == (WISH, "3:2")
    assert read(taken.clean.read_bytes()) is None
    assert b"fox" not in taken.clean.read_bytes()
    with Image.open(taken.file) as first, Image.open(taken.clean) as second:
        assert first.tobytes() == second.tobytes()
    assert taken.clean.stem.endswith("-clean")


def test_dropped_into_a_new_conversation_its_settings_are_restored(
    page: Page, studio: PageProcess, taken: Taken
) -> None:
    open_page(page, studio.url)
    expect(page.locator("#aspect-ratio input")).to_have_value("Auto ratio")
    drop(page.locator("#box textarea"), Held(taken.file.name, taken.file.read_bytes()))
    expect(card(page)).to_contain_text(f"This picture carries its recipe: “{WISH}”, Sketch, 3:2")
    card(page).get_by_role("button", name="Restore settings").click()
    expect(composer(page)).to_have_value(WISH)
    expect(page.locator("#aspect-ratio input")).to_have_value("3:2")
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    expect(card(page)).to_be_hidden()
    page.keyboard.press("Enter")
    expect(pictures(page)).to_have_count(1)
    expect(page.locator("#chat .receipt summary")).to_contain_text("3:2")


def test_it_opens_the_conversation_it_came_from_with_the_picture_marked(
    page: Page, studio: PageProcess, taken: Taken
) -> None:
    open_page(page, studio.url)
    attach(page, taken.file)
    card(page).get_by_role("button", name="Open it and branch").click()
    expect(page.locator("#ctx .ctx b")).to_have_text("#1")
    expect(page.locator("#chat .user").first).to_contain_text(WISH)
    # The same words make the same sketch: by now it may be in two conversations, of which the newer one is opened.
    expect(page.locator("#chat .frame .tag").first).to_contain_text("#1")
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)


def test_a_picture_nobody_knows_here_is_changed_itself(page: Page, studio: PageProcess, tmp_path: Path) -> None:
    foreign, plain = tmp_path / "owl.png", tmp_path / "plain.png"
    Image.new("RGB", (64, 64), "green").save(plain)
    recipe = Recipe.model_validate({"words": "an owl", "created_at": "2026-01-01T00:00:00Z", "width": 64, "height": 64})
    foreign.write_bytes(embed(plain.read_bytes(), "image/png", recipe))
    open_page(page, studio.url)
    attach(page, foreign)
    card(page).get_by_role("button", name="Branch from here").click()
    expect(composer(page)).to_have_value("Change this picture, which was made from “an owl”: ")
    expect(page.locator("#box .thumbnail-item")).to_have_count(1)


def test_all_of_it_is_read_on_the_stage_and_the_card_goes_with_its_file(
    page: Page, studio: PageProcess, taken: Taken
) -> None:
    open_page(page, studio.url)
    page.locator("#top [data-act=stage]").click()
    drop(page.locator("#canvas"), Held(taken.file.name, taken.file.read_bytes()))
    card(page).get_by_role("button", name="Only read").click()
    expect(page.locator("#canvas .receipt")).to_contain_text(WISH)
    expect(page.locator("#canvas")).to_contain_text("Nobody has checked it.")
    card(page).get_by_role("button", name="Leave the recipe aside").click()
    expect(card(page)).to_be_hidden()
    expect(page.locator("#box .thumbnail-item")).to_have_count(1)


def test_a_file_without_a_recipe_is_not_sent_to_be_read_and_what_another_program_wrote_is_shown_as_words(
    page: Page, studio: PageProcess, taken: Taken, tmp_path: Path
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "aivista/recipe" in request.url else None)
    open_page(page, studio.url)
    attach(page, taken.clean)
    expect(card(page)).to_have_count(0)
    info, file = PngInfo(), tmp_path / "castle.png"
    info.add_text("parameters", '<img src=x onerror="document.title=1"> castle\nSteps: 20, Sampler: Euler, Seed: 1')
    Image.new("RGB", (64, 64), "blue").save(file, pnginfo=info)
    attach(page, file)
    expect(card(page)).to_contain_text('<img src=x onerror="document.title=1"> castle')
    # What was asked of the first file would have been asked before.
    assert len(asked) == 1
    expect(card(page).locator("img")).to_have_count(0)
    card(page).get_by_role("button", name="Use its prompt").click()
    expect(composer(page)).to_have_value('<img src=x onerror="document.title=1"> castle')


def test_a_receipt_puts_its_words_and_settings_back_into_the_composer(page: Page, taken: Taken) -> None:
    page.goto(taken.address)
    expect_ready(page)
    expect(page.locator("#aspect-ratio input")).to_have_value("3:2")
    choose_ratio(page, "1:1")
    page.locator("#chat .receipt summary").click()
    page.locator("#chat").get_by_role("button", name="Reuse settings").click()
    expect(composer(page)).to_have_value(WISH)
    expect(page.locator("#aspect-ratio input")).to_have_value("3:2")
    expect(composer(page)).to_be_focused()
