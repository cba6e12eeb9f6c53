"""A picture taken away and brought back: it tells how it was made, unless it was taken as a clean copy."""

from __future__ import annotations

from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import Locator, Page, expect

from tests.adapters.recipes import Recipe, embed, read_recipe
from tests.page import PageProcess
from tests.page.hands import (
    Held,
    attach,
    begin_anew,
    choose_setting,
    chosen_ratio,
    composer,
    drop,
    expect_pictures,
    expect_rest,
    open_at,
    open_page,
    pictures,
    say,
)
from tests.page.journeys import on, step

WISH = "draw a red fox, 3:2"


def card(page: Page) -> Locator:
    return page.locator("#recipe .recipe")


def test_a_downloaded_picture_tells_its_recipe_and_a_file_that_carries_one_offers_what_can_be_done_with_it(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    open_page(page, studio.url)
    choose_setting(page, "aspect-ratio", "3:2")
    say(page, WISH)
    expect_pictures(page, 1)
    acts, address = page.locator("#chat .acts"), page.url
    with page.expect_download() as plain:
        acts.get_by_text("Download").click()
    acts.locator("summary").click()
    with page.expect_download() as copied:
        acts.get_by_text("Clean copy").click()
    expect(acts.get_by_text("Clean copy")).to_be_hidden()
    taken, clean = (tmp_path / download.value.suggested_filename for download in (plain, copied))
    plain.value.save_as(taken)
    copied.value.save_as(clean)
    with step("a downloaded picture tells its recipe, and a clean copy nothing"):
        recipe = read_recipe(taken.read_bytes())
        assert isinstance(recipe, Recipe)
        assert (recipe.words, recipe.asked_aspect_ratio) == (WISH, "3:2")
        assert read_recipe(clean.read_bytes()) is None
        assert b"fox" not in clean.read_bytes()
        with Image.open(taken) as first, Image.open(clean) as second:
            assert first.tobytes() == second.tobytes()
        assert clean.stem.endswith("-clean")
    begin_anew(page)
    choose_setting(page, "aspect-ratio", "Auto")
    with step("dropped into a new conversation, its settings are restored"):
        expect(chosen_ratio(page)).to_have_value("auto")
        drop(page.locator("#box textarea"), Held(taken.name, taken.read_bytes()))
        expect(card(page)).to_contain_text(f"This picture carries its recipe: “{WISH}”, Sketch, 3:2")
        card(page).get_by_role("button", name="Restore settings").click()
        expect(composer(page)).to_have_value(WISH)
        expect(chosen_ratio(page)).to_have_value("3:2")
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        expect(card(page)).to_be_hidden()
        page.keyboard.press("Enter")
        expect(pictures(page)).to_have_count(1)
        expect(page.locator("#chat .receipt summary")).to_contain_text("3:2")
        expect_rest(page)
    with step("it opens the conversation it came from, with the picture marked"):
        begin_anew(page)
        attach(page, taken)
        card(page).get_by_role("button", name="Open it and branch").click()
        expect(page.locator("#ctx .ctx b")).to_have_text("#1")
        expect(page.locator("#chat .user").first).to_contain_text(WISH)
        # The same words make the same sketch: by now it may be in two conversations, of which the newer one is opened.
        expect(page.locator("#chat .frame .tag").first).to_contain_text("#1")
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        on(page, "#ctx").button("composer.remove").first.click()
    with step("a picture that nobody knows here is changed itself"):
        foreign, plain = tmp_path / "owl.png", tmp_path / "plain.png"
        Image.new("RGB", (64, 64), "green").save(plain)
        recipe = Recipe.model_validate(
            {"words": "an owl", "created_at": "2026-01-01T00:00:00Z", "width": 64, "height": 64}
        )
        foreign.write_bytes(embed(plain.read_bytes(), "image/png", recipe))
        begin_anew(page)
        attach(page, foreign)
        card(page).get_by_role("button", name="Branch from here").click()
        expect(composer(page)).to_have_value("Change this picture, which was made from “an owl”: ")
        expect(page.locator("#box .thumbnail-item")).to_have_count(1)
        on(page, "#box").button("builtin.remove").click()
        composer(page).fill("")
    with step("all of it is read on the stage, and the card goes with its file"):
        begin_anew(page)
        on(page, "#top").button("top.stage").click()
        drop(page.locator("#canvas"), Held(taken.name, taken.read_bytes()))
        card(page).get_by_role("button", name="View only").click()
        expect(page.locator("#canvas .receipt")).to_contain_text(WISH)
        expect(page.locator("#canvas")).to_contain_text("unverified")
        card(page).get_by_role("button", name="Ignore recipe").click()
        expect(card(page)).to_be_hidden()
        expect(page.locator("#box .thumbnail-item")).to_have_count(1)
        on(page, "#box").button("builtin.remove").click()
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    with step("a file without a recipe is not sent to be read, and what another program wrote is shown as words"):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "aivista/recipe" in request.url else None)
        begin_anew(page)
        attach(page, clean)
        expect(card(page)).to_be_hidden()
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
    with step("a receipt puts its words and settings back into the composer"):
        open_at(page, address, 1)
        expect(chosen_ratio(page)).to_have_value("3:2")
        choose_setting(page, "aspect-ratio", "1:1")
        page.locator("#chat .receipt summary").click()
        page.locator("#chat").get_by_role("button", name="Reuse settings").click()
        expect(composer(page)).to_have_value(WISH)
        expect(chosen_ratio(page)).to_have_value("3:2")
        expect(composer(page)).to_be_focused()
