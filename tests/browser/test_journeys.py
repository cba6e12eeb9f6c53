"""Walks through one page in several parts, here and in the files beside: what the sliders do, what is offered while one
types, references, receipts, paper, and all of a phone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import test_cards as cards
from tests.browser import test_composer as the_composer
from tests.browser import test_first_run as first_run
from tests.browser import test_layout as layout
from tests.browser import test_markdown as markdown
from tests.browser import test_painter as painter
from tests.browser import test_ready as ready
from tests.browser import test_sketch as sketch
from tests.browser import test_styles as styles
from tests.browser import test_trace as trace
from tests.browser import test_viewer as viewer
from tests.page import PageProcess
from tests.page.hands import (
    begin_anew,
    choose_setting,
    composer,
    expect_loaded,
    expect_pictures,
    expect_ready,
    expect_still,
    open_at,
    open_more,
    open_page,
    open_sliders,
    paint,
    pictures,
    place_of,
    say,
)
from tests.page.journeys import Called, on, step
from tests.wire_server import GeminiProcess

PREVIEW = re.compile("^blob:")
STORED = re.compile(r"^media/")


def mean_colour(picture: Locator) -> list[float]:
    """Return the mean red, green and blue of what the browser shows."""
    colours: list[float] = picture.evaluate(
        """async image => {
            await image.decode();
            const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 36 });
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0, 64, 36);
            const data = context.getImageData(0, 0, 64, 36).data;
            const sums = [0, 0, 0];
            data.forEach((level, at) => { if (at % 4 < 3) sums[at % 4] += level; });
            return sums.map(sum => sum / (64 * 36));
        }"""
    )
    return colours


def what_the_sliders_do_is_shown_and_taken_back_and_applied_as_it_was_shown(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    picture, frame = pictures(page).first, page.locator("#chat .frame").first
    expect_loaded(picture)
    sliders = open_sliders(page)
    called = Called(sliders, "en")
    apply, reset, before = called.button("panel.apply"), called.button("adjust.reset"), called.button("adjust.before")
    with step("the picture shows what the sliders do, and nothing moves"):
        expect(before).to_be_disabled()
        # Filling a slider scrolls to it first, which is no movement of the page's own.
        sliders.get_by_label("Warmth").scroll_into_view_if_needed()
        expect_still(page, "document.querySelector('#chat .frame').getBoundingClientRect().top")
        place, cool = frame.bounding_box(), mean_colour(picture)
        panel = place_of(sliders)
        sliders.get_by_label("Warmth").fill("80")
        expect(picture).to_have_attribute("src", PREVIEW)
        expect(frame).to_have_attribute("data-previewing", "Preview")
        expect(sliders.locator(".previewed")).to_have_text("Preview on #1. Nothing is kept until you apply it.")
        warm = mean_colour(picture)
        assert warm[0] - warm[2] > cool[0] - cool[2] + 10
        assert frame.bounding_box() == place
        assert sliders.bounding_box() == panel
        sliders.get_by_label("Warmth").fill("0")
        expect(picture).to_have_attribute("src", STORED)
        expect(frame).not_to_have_attribute("data-previewing", re.compile(""))
        # The browser may take another of the picture's sizes now.
        assert mean_colour(picture) == pytest.approx(cool, abs=0.5)
    with step("what was before is seen while its button is held"):
        sliders.get_by_label("Contrast").fill("50")
        expect(picture).to_have_attribute("src", PREVIEW)
        before.hover()
        page.mouse.down()
        expect(picture).to_have_attribute("src", STORED)
        page.mouse.up()
        expect(picture).to_have_attribute("src", PREVIEW)
        before.focus()
        page.keyboard.down("Enter")
        expect(picture).to_have_attribute("src", STORED)
        page.keyboard.up("Enter")
        expect(picture).to_have_attribute("src", PREVIEW)
    with step("all sliders are set back at once"):
        reset.click()
        expect(picture).to_have_attribute("src", STORED)
        expect(sliders.get_by_label("Contrast")).to_have_value("0")
        expect(sliders.locator("output").nth(1)).to_have_text("0")
        expect(apply).to_be_disabled()
    with step("the newest counts, and a busy studio is asked again"):
        asked: list[str] = []

        def answer(route: Route) -> None:
            asked.append(route.request.url.partition("?")[2])
            if len(asked) == 1:
                route.fulfill(status=429)
            else:
                route.continue_()

        page.route("**/aivista/preview/**", answer)
        sliders.get_by_label("Sharpness").evaluate(
            """input => {
                for (const value of [10, 20, 30, 40, 50]) {
                    input.value = value;
                    input.dispatchEvent(new Event("input", { bubbles: true }));
                }
            }"""
        )
        expect(picture).to_have_attribute("src", PREVIEW)
        assert asked == ["sharpness=50", "sharpness=50"]
        page.unroute("**/aivista/preview/**")
        reset.click()
        expect(picture).to_have_attribute("src", STORED)
    with step("a preview that cannot be had is said, and the picture stays"):
        page.route("**/aivista/preview/**", lambda route: route.fulfill(status=500))
        sliders.get_by_label("Warmth").fill("35")
        expect(sliders.locator(".previewed")).to_have_text("The preview cannot be shown. Applying still works.")
        expect(apply).to_be_enabled()
        expect(picture).to_have_attribute("src", STORED)
        page.unroute("**/aivista/preview/**")
        reset.click()
        expect(apply).to_be_disabled()
    with step("a panel that is closed gives the picture back"):
        sliders.get_by_label("Saturation").fill("-100")
        expect(picture).to_have_attribute("src", PREVIEW)
        sliders.locator("summary").click()
        expect(picture).to_have_attribute("src", STORED)
        sliders.locator("summary").click()
        expect(picture).to_have_attribute("src", PREVIEW)
        steps = page.locator("#chat .next-steps > summary")
        steps.click()
        expect(picture).to_have_attribute("src", STORED)
        open_sliders(page)
        reset.click()
    with step("what is applied is what was shown"):
        sliders.get_by_label("Warmth").fill("60")
        sliders.get_by_label("Brightness").fill("-20")
        expect(picture).to_have_attribute("src", PREVIEW)
        expect(sliders.locator(".previewed")).to_contain_text("Preview on #1")
        old = picture.get_attribute("src") or ""
        with page.expect_response(re.compile("aivista/preview/.*brightness=-40.*warmth=60")):
            sliders.get_by_label("Brightness").fill("-40")
        expect(picture).not_to_have_attribute("src", old)
        expect(picture).to_have_attribute("src", PREVIEW)
        shown = mean_colour(picture)
        apply.click()
        expect(picture).to_have_attribute("src", STORED)
        expect_pictures(page, 2)
        expect_loaded(pictures(page).last)
        applied = mean_colour(pictures(page).last)
        assert all(abs(one - other) < 3 for one, other in zip(shown, applied, strict=True))
    with step("the sliders of an adjusted picture stand where it stands, from where they lead back"):
        open_sliders(page)
        expect(sliders.get_by_label("Warmth")).to_have_value("60")
        expect(sliders.get_by_label("Brightness")).to_have_value("-40")
        expect(apply).to_be_disabled()
        sliders.get_by_label("Warmth").fill("0")
        sliders.get_by_label("Brightness").fill("0")
        expect(pictures(page).last).to_have_attribute("src", PREVIEW)
        apply.click()
        expect_pictures(page, 3)
        expect_loaded(pictures(page).last)
        assert mean_colour(pictures(page).last) == pytest.approx(mean_colour(picture), abs=0.5)
    with step("the stage shows it too, also when it is opened later"):
        open_sliders(page)
        sliders.get_by_label("Brightness").fill("40")
        expect(pictures(page).last).to_have_attribute("src", PREVIEW)
        pictures(page).last.click()
        staged = page.locator("#canvas .cv-pic > img").first
        expect(staged).to_have_attribute("src", PREVIEW)
        reset.click()
        expect(staged).to_have_attribute("src", STORED)


def a_small_picture_stays_beside_the_sliders(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("draw a red fox in the snow"), 1)
    sliders = open_sliders(phone)
    small = sliders.locator(".mini img")
    expect_loaded(small)
    box = place_of(sliders)
    sliders.get_by_label("色温").fill("-70")
    expect(small).to_have_attribute("src", PREVIEW)
    expect(small).to_be_in_viewport()
    after = place_of(sliders)
    assert (after["width"], after["height"]) == (box["width"], box["height"])
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def a_long_thread_is_printed_whole(page: Page, studio: PageProcess) -> None:
    page.emulate_media(color_scheme="dark")
    open_at(page, studio.sketched("draw a red fox", "draw a blue bird", "draw a boat", "draw a house"), 4)
    drawn = page.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", drawn)) > 1

    page.emulate_media(media="print", color_scheme="dark")
    for hidden in ("#rail", "#stage", "#dock", "#top button"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator("#top h1")).to_be_visible()
    colour = page.locator("#chat .user .own").first.evaluate("element => getComputedStyle(element).color")
    assert max(map(int, re.findall(r"\d+", colour))) < 60
    reach = page.evaluate("[document.documentElement.scrollHeight, document.querySelector('#thread').scrollHeight]")
    assert reach[0] >= reach[1] > 1000


def pictures_prompts_and_styles_are_offered_while_one_types(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox", ("make it much warmer", "#1"), "draw a boat"), 3)
    offered, box = page.get_by_role("listbox", name="Suggestions"), composer(page)
    with step("a picture is chosen by keys and goes in by its name"):
        box.press_sequentially("like #")
        expect(offered.get_by_role("option")).to_have_text(["#2 draw a boat", "#1b warmth +60", "#1 draw a red fox"])
        box.press_sequentially("1")
        expect(offered.get_by_role("option")).to_have_count(2)
        page.keyboard.press("ArrowDown")
        expect(offered.get_by_role("option", selected=True)).to_contain_text("#1b")
        page.keyboard.press("Enter")
        expect(box).to_have_value("like #1b ")
        expect(offered).to_have_count(0)
        assert page.locator("#chat .user").count() == 3
    with step("a style is found by a part of its name, and Tab takes the first"):
        box.press_sequentially("/aquar")
        expect(offered.get_by_role("option").first).to_contain_text("Watercolour")
        page.keyboard.press("Tab")
        expect(box).to_have_value("like #1b in the style of Watercolour ")
        expect(box).to_be_focused()
    with step("Escape closes the list and nothing else, and it stays closed"):
        box.fill("")
        box.press_sequentially("@")
        expect(offered).to_be_visible()
        page.keyboard.press("Escape")
        expect(offered).to_have_count(0)
        expect(box).to_have_value("@")
    with step("what is kept is offered before the styles"):
        page.evaluate("localStorage.setItem('aivista-starred', JSON.stringify(['an inky night over the harbour']))")
        box.fill("")
        box.press_sequentially("/ink")
        expect(offered.get_by_role("option").first).to_have_text("an inky night over the harbour")
        offered.get_by_role("option").first.click()
        expect(box).to_have_value("an inky night over the harbour ")
    with step("addresses, fractions and names of mailboxes offer nothing, and a name that is whole is sent"):
        box.fill("")
        box.press_sequentially("see https://example.org/ink 1/2 ann@example.org #2")
        expect(offered).to_have_count(0)
        box.fill("")
        box.press_sequentially("make it brighter: #2")
        page.keyboard.press("Enter")
        expect(pictures(page)).to_have_count(4)


def a_finger_chooses_what_is_offered(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("画一只狐狸"), 1)
    composer(phone).press_sequentially("把#")
    options = phone.get_by_role("listbox", name="建议").get_by_role("option")
    expect(options).to_have_count(1)
    assert options.first.evaluate("one => one.offsetHeight") >= 44
    options.first.tap()
    expect(composer(phone)).to_have_value("把#1 ")
    composer(phone).press_sequentially("变成 /水墨")
    options.first.tap()
    expect(composer(phone)).to_have_value("把#1 变成 “水墨画”风格 ")


def pictures_are_adjusted_exactly_and_given_as_references_with_a_role(page: Page, studio: PageProcess) -> None:
    called = Called(page)
    receipt = page.locator("#chat .receipt").last
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    with step("an adjustment says what was done and that it was free"):
        paint(page, "make it a bit warmer")
        expect_loaded(pictures(page).last)
        expect(receipt.locator("summary")).to_contain_text("Exact adjustment · warmth +15 · 344×192 · free")
        expect(page.locator("#chat .steps").last).to_contain_text("Adjusted #1: #1b")
    with step("the sliders of the panel adjust exactly what they say"):
        sliders = open_sliders(page)
        for name, value in (("Brightness", "20"), ("Contrast", "-10")):
            sliders.get_by_label(name).fill(value)
        on(page, "#chat").button("panel.apply").last.click()
        expect_pictures(page, 3)
        expect(receipt.locator("summary")).to_contain_text("brightness +20, contrast −10")
    with step("a reference is given a role that stays"):
        for number in (0, 1):
            on(open_more(page, number)).button("action.reference").click()
            expect(page.locator("#ctx select")).to_have_count(number + 1)
        called.field("role.name", handle="#1b").select_option("style")
        called.field("role.name", handle="#1").select_option("pose")
        expect(called.field("role.name", handle="#1b")).to_have_value("style")
        called.button("composer.remove", handle="#1").click()
        expect(page.locator("#ctx select")).to_have_count(1)
        expect(called.field("role.name", handle="#1b")).to_have_value("style")
    with step("it goes with the message, and only with that one"):
        paint(page, "draw a lighthouse")
        expect(receipt).to_contain_text("#1b style")
        expect(receipt).to_contain_text("Style: take only its colours and brushwork, not its content.")
        expect(page.locator("#ctx select")).to_have_count(0)


def both_image_models_paint_one_wish_side_by_side(
    phone: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    wish = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox"}, "text_before": "I paint it now."}
    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
    looked = {"kind": "Text", "text": review, "chunks": 1}
    gemini.control(clear=True, on_text=[wish, looked, looked])
    called = Called(phone, "zh-CN")
    both = called.words("composer.flash_pro")
    open_page(phone, gemini_studio.url)
    choose_setting(phone, "image-model", both)
    say(phone, "draw a red fox")
    expect_pictures(phone, 2)
    tags = phone.locator("#chat .pics .frame .tag")
    expect(tags).to_have_text([re.compile(f"{called.words(f'composer.{model}')}$") for model in ("flash", "pro")])
    painted = [request["model"] for request in gemini.read("requests") if request["kind"] == "image"]
    assert sorted(painted) == ["gemini-3-pro-image", "gemini-nano-banana-2.1"]
    assert gemini.read("violations") == []


PAINT: dict[str, Any] = {
    "kind": "Call",
    "name": "generate_image",
    "args": {"prompt": "A red fox in snow", "aspect_ratio": "3:2", "number_of_images": 1},
    "text_before": "I paint it now.",
}


def a_receipt_leads_to_the_other_model_and_what_fell_short_is_asked_for_again(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    with step("the other model paints the same words"):
        gemini.control(on_text=[PAINT])
        say(page, "draw a fox")
        expect_pictures(page, 1)
        first = page.locator("#chat .receipt summary").first
        expect(first).to_contain_text("Flash")
        first.click()
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Same prompt, other model").click()
        expect_pictures(page, 2)
        expect(page.locator("#chat .receipt summary").last).to_contain_text("Pro")
        expect(page.locator("#chat .user .md")).to_have_text(["draw a fox", "draw a fox"])
    with step("what fell short is asked for again, repainted as an edit, and folded for good when one is content"):
        begin_anew(page)
        gemini.control(on_text=[PAINT], on_image=[{"kind": "PictureAnswer", "width": 768, "height": 512}])
        choose_setting(page, "resolution", "2K")
        say(page, "draw a fox")
        expect_pictures(page, 1)
        expect(page.locator("#chat .shortfall")).to_contain_text("smaller than you asked for")
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Ask again").click()
        expect_pictures(page, 2)
        expect(page.locator("#chat .receipt summary").last).to_contain_text("2K →")
        expect(page.locator("#chat .shortfall")).to_have_count(1)
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Repaint at 2K").click()
        expect_pictures(page, 3)
        expect(page.locator("#chat .user").last).to_contain_text("Repaint #1 at 2K")
        expect(page.locator("#chat .frame .tag").last).to_have_text("#1b")
        expect(page.locator("#chat .receipt summary").last).to_contain_text("2K →")
        page.get_by_role("button", name="Keep as it is").click()
        expect(page.locator("#chat .shortfall")).to_have_count(0)
        page.reload()
        expect_ready(page)
        expect(pictures(page)).to_have_count(3)
        expect(page.locator("#chat .shortfall")).to_have_count(0)
        page.locator("#chat .receipt summary").first.click()
        expect(page.locator("#chat .receipt").first).to_contain_text("smaller than you asked for")


def test_pictures_are_adjusted_referred_to_traced_painted_over_and_printed(page: Page, studio: PageProcess) -> None:
    for part in (
        pictures_are_adjusted_exactly_and_given_as_references_with_a_role,
        pictures_prompts_and_styles_are_offered_while_one_types,
        what_the_sliders_do_is_shown_and_taken_back_and_applied_as_it_was_shown,
        trace.a_turn_is_read_step_by_step_and_taken_away,
        painter.a_picture_of_the_thread_is_painted_over_by_one_click,
        # Last: the page is dark from then on, and as it is printed.
        a_long_thread_is_printed_whole,
    ):
        with step(part.__name__):
            part(page, studio)


def test_on_a_chinese_phone_everything_fits_and_is_done_with_fingers(phone: Page, studio: PageProcess) -> None:
    for part in (
        ready.words_in_the_box_stay_when_an_example_runs_and_after_a_reload,
        sketch.the_rail_is_a_drawer_and_nothing_is_wider_than_the_screen,
        layout.one_pane_is_seen_at_a_time_and_what_is_unfolded_is_above_the_composer,
        a_small_picture_stays_beside_the_sliders,
        a_finger_chooses_what_is_offered,
        the_composer.the_aids_are_a_sheet_and_the_page_ends_above_the_composer,
        styles.the_library_is_chinese_and_fits,
        viewer.a_picture_is_swiped_and_pinched_and_back_leads_out,
        cards.a_plan_works,
    ):
        with step(part.__name__):
            part(phone, studio)


def test_words_are_written_out_refusals_reworded_styles_tried_and_shortfalls_made_good(
    page: Page, phone: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    for tab, part in (
        (page, the_composer.a_wish_is_written_out_shown_taken_and_undone_and_never_sent),
        (page, first_run.a_refusal_offers_other_words_and_an_empty_picture_is_covered),
        (page, styles.a_style_is_tried_on_the_newest_picture_and_the_draft_stays),
        # What is chosen here stays chosen.
        (page, a_receipt_leads_to_the_other_model_and_what_fell_short_is_asked_for_again),
        (phone, markdown.what_stands_under_a_message_is_not_cut_off),
        (phone, both_image_models_paint_one_wish_side_by_side),
    ):
        with step(part.__name__):
            gemini.control(clear=True)
            part(tab, gemini, gemini_studio)
            assert gemini.read("violations") == []
