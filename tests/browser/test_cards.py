"""Cards that are worked with: plans, panels of actions, reviews, questions, and turns that go on."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_rest, open_at, open_page, pictures, say
from tests.wire_server import GeminiProcess


def paint(count: int = 1) -> dict[str, Any]:
    arguments = {"prompt": "A red fox in snow", "aspect_ratio": "3:2", "number_of_images": count}
    return {"kind": "Call", "name": "generate_image", "args": arguments, "text_before": "I paint it now."}


def verdict(score: float) -> dict[str, Any]:
    found = {
        "lettering": "",
        "checklist": [{"wish": "a red fox", "is_met": score > 0.5, "why": "the fur"}],
        "score": score,
        "feedback": "The fox is there.",
        "suggestions": ["More snow."],
    }
    return {"kind": "Text", "text": json.dumps(found)}


def ask_first(page: Page) -> None:
    page.get_by_label("Ask before painting").check()


def image_requests(gemini: GeminiProcess) -> list[dict[str, Any]]:
    return [request for request in gemini.read("requests") if request["kind"] == "image"]


def test_a_plan_is_changed_and_painted_as_changed(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    ask_first(page)
    say(page, "draw a red fox in the snow")
    plan = page.locator("#chat .plan")
    expect(plan.get_by_label("Prompt")).to_have_value(re.compile("fox"))
    expect_rest(page)
    expect(pictures(page)).to_have_count(0)
    plan.get_by_label("Prompt").fill("a yellow tulip on a hill")
    plan.get_by_label("Aspect ratio").select_option("1:1")
    expect(plan.locator(".cost")).to_contain_text("As planned")
    plan.get_by_role("button", name="Paint it").press("Enter")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(plan).to_have_count(0)
    expect(page.locator("#chat .frame")).to_have_attribute("style", "aspect-ratio:1024/1024")
    page.locator("#chat .plan-past summary").click()
    expect(page.locator("#chat .plan-past dl")).to_contain_text("a yellow tulip on a hill")


FORGED = """([turn, edits]) => window.aivista.act({ act: "run_plan", arg: JSON.stringify({ turn, edits }) })"""


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"call": 0, "aspect_ratio": "7:5"}, "does not offer Aspect ratio 7:5"),
    ({"call": 0, "number_of_images": 99}, "a plan that cannot be read"),
    ({"call": 9}, "no longer waits"),
]


def test_a_plan_without_words_or_with_nonsense_is_refused_and_it_waits_over_a_reload_until_it_is_dropped(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    ask_first(page)
    say(page, "draw a boat")
    prompt = page.locator("#chat .plan").get_by_label("Prompt")
    prompt.fill("   ")
    page.get_by_role("button", name="Paint it").click()
    expect(prompt).to_be_focused()
    assert prompt.evaluate("field => field.validity.valueMissing")
    expect(page.locator("#chat .plan")).to_be_visible()
    prompt.fill("a boat")
    button = page.get_by_role("button", name="Paint it")
    expect(button).to_be_enabled()
    turn = button.get_attribute("data-arg")
    for edit, sentence in NONSENSE:
        page.evaluate(FORGED, [turn, [edit]])
        expect(page.locator("#chat [role=alert]")).to_contain_text(sentence)
        expect(page.locator("#chat .plan")).to_be_visible()
    expect(pictures(page)).to_have_count(0)
    page.reload()
    page.locator("#chat .plan").get_by_role("button", name="Not now").click()
    expect(page.locator("#chat .plan-past")).to_contain_text("Plan not painted")
    expect_rest(page)
    expect(pictures(page)).to_have_count(0)
    page.reload()
    expect(page.locator("#chat .plan-past")).to_contain_text("Plan not painted")


def test_a_plan_works_on_a_phone(browser: Browser, studio: PageProcess) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN")
    page = context.new_page()
    open_page(page, studio.url)
    page.get_by_label("出图前先问我").check()
    say(page, "画一只雪地里的红狐狸")
    expect(page.locator("#chat .plan").get_by_label("提示词")).to_be_visible()
    expect_rest(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#chat .plan select").first.evaluate("field => field.getBoundingClientRect().height") >= 40
    page.get_by_role("button", name="开始绘制").click()
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(page.locator("#chat .next-steps[open]")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_a_model_leaves_only_the_values_it_obeys_and_paints(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[paint()])
    open_page(page, gemini_studio.url)
    ask_first(page)
    say(page, "a fox")
    plan = page.locator("#chat .plan")
    expect(plan.get_by_label("Image")).to_have_value("flash")
    plan.get_by_label("Aspect ratio").select_option("1:8")
    plan.get_by_label("Image").select_option("pro")
    expect(plan.get_by_label("Aspect ratio")).not_to_have_value("1:8")
    plan.get_by_label("Aspect ratio").select_option("1:1")
    plan.get_by_label("Resolution").select_option("2K")
    gemini.control(on_text=[verdict(0.9)])
    page.get_by_role("button", name="Paint it").click()
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    (asked,) = image_requests(gemini)
    assert asked["model"] == "gemini-3-pro-image"
    expect(page.locator("#chat .receipt")).to_contain_text("2K → 2048×2048")


def test_the_buttons_and_sliders_of_a_picture_speak_for_the_person(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    composer(page).fill("half a thought")
    panel = page.locator("#chat .next-steps[open]")
    panel.get_by_role("button", name="Warmer").dblclick()
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect(page.locator("#chat .user-row").last).to_contain_text("Make this picture warmer.")
    expect(composer(page)).to_have_value("half a thought")
    expect(panel).to_have_count(1)
    expect(panel).to_contain_text("Next with #1b")
    panel.get_by_text("Adjust").click()
    expect(panel.get_by_role("button", name="Apply")).to_be_disabled()
    panel.get_by_label("Brightness").fill("20")
    panel.get_by_label("Contrast").fill("-10")
    expect(panel.locator("output").first).to_have_text("+20")
    panel.get_by_role("button", name="Apply").click()
    expect(pictures(page)).to_have_count(3)
    expect(page.locator("#chat .user-row").last).to_contain_text("Brightness +20, contrast -10.")
    expect_rest(page)
    panel.get_by_role("button", name="Edit this").click()
    expect(page.locator("#ctx .ctx")).to_contain_text("#1c")
    expect(pictures(page)).to_have_count(3)


def test_an_empty_wish_is_asked_about_with_examples(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    say(page, "🙂")
    expect(page.locator("#chat .ask")).to_contain_text("What would you like to see?")
    expect_rest(page)
    page.locator("#chat .ask").get_by_role("button", name="Draw a red fox in the snow").click()
    expect(composer(page)).to_have_value("Draw a red fox in the snow, watercolour")
    page.reload()
    expect(page.locator("#chat .ask")).to_contain_text("What would you like to see?")


def test_a_poor_picture_is_painted_again_and_folded_under_the_better_one(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[paint(), verdict(0.3), verdict(0.95)])
    open_page(page, gemini_studio.url)
    page.get_by_role("combobox", name="Review").click()
    page.get_by_role("option", name="Always").click()
    say(page, "a red fox")
    expect(page.locator("#chat .earlier")).to_contain_text("1 earlier attempt")
    expect_rest(page)
    expect(pictures(page)).to_have_count(1)
    expect(page.locator("#chat .pic .score")).to_have_text("1 of 1")
    page.locator("#chat .earlier summary").click()
    expect(page.locator("#chat .earlier .score")).to_have_text("0 of 1")
    page.locator("#chat .review summary").click()
    expect(page.locator("#chat .review .found")).to_contain_text("a red fox")


def test_a_failed_turn_goes_on_in_its_place(page: Page, gemini: GeminiProcess, gemini_studio: PageProcess) -> None:
    gemini.control(on_text=[paint()], on_image=[{"kind": "HttpError", "status": 503}, {"kind": "PictureAnswer"}])
    open_page(page, gemini_studio.url)
    say(page, "a fox")
    card = page.locator("#chat [role=alert]")
    expect(card).to_contain_text("overloaded")
    expect_rest(page)
    card.get_by_role("button", name="Try again").click()
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(card).to_have_count(0)
    expect(page.locator("#chat .user-row")).to_have_count(1)
    assert len([request for request in gemini.read("requests") if request["kind"] == "text"]) == 1


def test_a_report_is_copied_and_offered_as_a_file(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.route("**/aivista/report/**", lambda route: route.fulfill(json={"studio": "aivista"}))
    gemini.control(on_text=[{"kind": "HttpError", "status": 503}])
    open_page(page, gemini_studio.url)
    say(page, "a fox")
    card = page.locator("#chat [role=alert]")
    card.get_by_role("button", name="Copy report").click()
    expect(card).to_contain_text("Copied")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == {"studio": "aivista"}
    expect(card.get_by_role("link", name="Download report")).to_have_attribute(
        "href", re.compile(r"^aivista/report/\w+/\w+\.json$")
    )
    page.unroute("**/aivista/report/**")
    page.route("**/aivista/report/**", lambda route: route.fulfill(status=500))
    expect(card.get_by_role("button", name="Copy report")).to_be_enabled()
    card.get_by_role("button", name="Copy report").click()
    expect(card).to_contain_text("Not copied")


def test_the_wait_for_another_try_counts_down(page: Page, gemini: GeminiProcess, tmp_path: Path) -> None:
    environment = {
        "GEMINI_API_KEY": "AIza-operators-own-0001",
        "GOOGLE_GEMINI_BASE_URL": gemini.url,
        "AIVISTA_RETRY_BUDGET_S": "60",
    }
    busy = {"kind": "HttpError", "status": 429, "message": "slow down", "headers": {"Retry-After": "30"}}
    gemini.control(on_text=[busy, {"kind": "Text", "text": "Here again."}])
    with PageProcess(home=tmp_path, environment=environment) as studio:
        open_page(page, studio.url)
        say(page, "hello")
        seconds = page.locator(".live .down")
        expect(seconds).to_be_visible()
        begun = int(seconds.inner_text())
        expect(seconds).not_to_have_text(str(begun))
        assert 0 <= int(seconds.inner_text()) < begun
        page.locator("#box .stop-button").click()
        expect(page.locator(".stopped")).to_be_visible()
    gemini.control(clear=True)


def test_a_turn_that_was_cut_off_says_so_and_continues(page: Page, gemini: GeminiProcess, tmp_path: Path) -> None:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    gemini.control(
        on_text=[paint()], on_image=[{"kind": "Hold", "answer": {"kind": "PictureAnswer"}, "after_chunks": 0}]
    )
    with PageProcess(home=tmp_path, environment=environment) as studio:
        open_page(page, studio.url)
        say(page, "draw a fox")
        expect(page.locator(".frame.pending")).to_be_visible()
        address = page.url.partition("?")[2]
        studio.end(signal.SIGKILL)
    with PageProcess(home=tmp_path) as sketching:
        page.goto(f"{sketching.url}/?{address}")
        card = page.locator("#chat .cut-off")
        expect(card).to_contain_text("The studio was restarted in the middle of this")
        expect(card).to_contain_text("1 call may have been charged")
        card.get_by_role("button", name="Continue").click()
        expect(pictures(page)).to_have_count(1)
        expect_rest(page)


def test_a_part_without_a_picture_leads_to_choosing_one(page: Page, studio: PageProcess, photo: Path) -> None:
    open_page(page, studio.url)
    say(page, "change this part")
    choose = page.locator("#chat .ask [data-paint=choose]")
    expect(choose).to_be_visible()
    expect(page.locator("#chat .ask")).not_to_contain_text("Edit")
    with page.expect_file_chooser() as chooser:
        choose.click()
    chooser.value.set_files(photo)
    expect(page.locator("html[data-painting]")).to_have_count(1)
    expect(page.locator("#box .thumbnail-item")).to_have_count(1)
