"""Cards that are worked with: plans, panels of actions, reviews, questions, and turns that go on."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import (
    ask_before_painting,
    begin_anew,
    choose_setting,
    composer,
    expect_pictures,
    expect_rest,
    open_at,
    open_page,
    open_sliders,
    pictures,
    reload,
    say,
)
from tests.page.journeys import Called, on, step
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


def requests(gemini: GeminiProcess, kind: str) -> list[dict[str, Any]]:
    return [request for request in gemini.read("requests") if request["kind"] == kind]


FORGED = """([turn, edits]) => window.aivista.shell.act("page.run_plan", { arg: JSON.stringify({ turn, edits }) })"""


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"call": 0, "aspect_ratio": "7:5"}, "does not offer Aspect ratio 7:5"),
    ({"call": 0, "number_of_images": 99}, "plan could not be read"),
    ({"call": 9}, "no longer waits"),
]


def test_plans_buttons_sliders_and_questions_of_the_sketch_model_lead_to_pictures(
    page: Page, studio: PageProcess, photo: Path
) -> None:
    open_page(page, studio.url)
    called = Called(page, "en")
    plan, run = page.locator("#chat .plan"), called.button("plan.run")
    prompt = plan.get_by_label("Prompt")
    with step("a plan without words is not painted"):
        ask_before_painting(page)
        say(page, "draw a boat")
        prompt.fill("   ")
        run.click()
        expect(prompt).to_be_focused()
        assert prompt.evaluate("field => field.validity.valueMissing")
        expect(plan).to_be_visible()
    with step("nonsense is refused"):
        prompt.fill("a boat")
        expect(run).to_be_enabled()
        turn = run.get_attribute("data-arg")
        for edit, sentence in NONSENSE:
            page.evaluate(FORGED, [turn, [edit]])
            expect(page.locator("#chat .card[role=alert]")).to_contain_text(sentence)
            expect(plan).to_be_visible()
        expect(pictures(page)).to_have_count(0)
    with step("it waits over a reload until it is dropped, which is kept"):
        page.reload()
        on(plan).button("plan.drop").click()
        expect(page.locator("#chat .plan-past")).to_contain_text("Plan not painted")
        expect_rest(page)
        expect(pictures(page)).to_have_count(0)
        reload(page)
        expect(page.locator("#chat .plan-past")).to_contain_text("Plan not painted")
    with step("a plan that is changed is painted as changed"):
        begin_anew(page)
        ask_before_painting(page)
        say(page, "draw a red fox in the snow")
        expect(prompt).to_have_value(re.compile("fox"))
        expect_rest(page)
        expect(pictures(page)).to_have_count(0)
        prompt.fill("a yellow tulip on a hill")
        plan.get_by_label("Aspect ratio").select_option("1:1")
        expect(plan.locator(".cost")).to_contain_text("As planned")
        run.press("Enter")
        expect_pictures(page, 1)
        expect(plan).to_have_count(0)
        expect(page.locator("#chat .frame")).to_have_attribute("style", "aspect-ratio:256/256")
        page.locator("#chat .plan-past summary").click()
        expect(page.locator("#chat .plan-past dl")).to_contain_text("a yellow tulip on a hill")
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    panel, question = page.locator("#chat .next-steps[open]").last, page.locator("#chat .ask")
    called = Called(panel, "en")
    with step("a button of a picture says its wish once, and the draft stays"):
        composer(page).fill("half a thought")
        open_sliders(page)
        called.button("panel.warmer").dblclick()
        expect_pictures(page, 2)
        expect(page.locator("#chat .user").last).to_contain_text("Make this picture warmer.")
        expect(composer(page)).to_have_value("half a thought")
    with step("the sliders say by how much"):
        open_sliders(page)
        expect(panel).to_contain_text("Adjust #1b")
        expect(called.button("panel.apply")).to_be_disabled()
        panel.get_by_label("Brightness").fill("20")
        panel.get_by_label("Contrast").fill("-10")
        expect(panel.locator("output").first).to_have_text("+20")
        called.button("panel.apply").click()
        expect(pictures(page)).to_have_count(3)
        expect(page.locator("#chat .user").last).to_contain_text("Brightness +20, contrast -10.")
        expect_rest(page)
    with step("a picture is chosen to be edited"):
        on(page, "#chat").button("action.edit").last.click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#1c")
        expect(pictures(page)).to_have_count(3)
    with step("an empty wish is asked about with examples, also after a reload"):
        begin_anew(page)
        say(page, "🙂")
        expect(question).to_contain_text("What would you like to see?")
        expect_rest(page)
        question.get_by_role("button", name="Draw a red fox in the snow").click()
        expect(composer(page)).to_have_value("Draw a red fox in the snow, watercolour")
        reload(page)
        expect(question).to_contain_text("What would you like to see?")
    with step("a part without a picture leads to choosing one"):
        begin_anew(page)
        say(page, "change this part")
        choose = on(question).button("stage.choose")
        expect(choose).to_be_visible()
        expect(question).not_to_contain_text("Edit")
        with page.expect_file_chooser() as chooser:
            choose.click()
        chooser.value.set_files(photo)
        expect(page.locator("html[data-painting]")).to_have_count(1)
        expect(page.locator("#box .thumbnail-item")).to_have_count(1)


def a_plan_works(phone: Page, studio: PageProcess) -> None:
    open_page(phone, studio.url)
    called = Called(phone, "zh-CN")
    ask_before_painting(phone)
    say(phone, "画一只雪地里的红狐狸")
    plan = phone.locator("#chat .plan")
    expect(plan.get_by_label("提示词")).to_be_visible()
    expect_rest(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert plan.locator("select").first.evaluate("field => field.getBoundingClientRect().height") >= 40
    called.button("plan.run").click()
    expect_pictures(phone, 1)
    expect(phone.locator("#chat .next-steps[open]")).to_have_count(0)
    open_sliders(phone)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_plans_reviews_and_failures_are_worked_with_and_turns_that_wait_or_were_cut_off_continue(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess, tmp_path: Path
) -> None:
    open_page(page, gemini_studio.url)
    called = Called(page, "en")
    plan, card = page.locator("#chat .plan"), page.locator("#chat .card[role=alert]")
    with step("a failed turn goes on in its place"):
        failing = [{"kind": "HttpError", "status": 503}, {"kind": "PictureAnswer"}]
        gemini.control(on_text=[paint()], on_image=failing)
        say(page, "a fox")
        expect(card).to_contain_text("overloaded")
        expect_rest(page)
        on(card).button("action.retry").click()
        expect_pictures(page, 1)
        expect(card).to_have_count(0)
        expect(page.locator("#chat .user")).to_have_count(1)
        assert len(requests(gemini, "text")) == 1
    with step("a report is copied and offered as a file"):
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.route("**/aivista/report/**", lambda route: route.fulfill(json={"studio": "aivista"}))
        gemini.control(clear=True, on_text=[{"kind": "HttpError", "status": 503}])
        begin_anew(page)
        say(page, "a fox")
        copy = on(card).button("report.copy")
        copy.click()
        expect(card).to_contain_text("Copied")
        assert json.loads(page.evaluate("navigator.clipboard.readText()")) == {"studio": "aivista"}
        report = re.compile(r"^aivista/report/\w+/\w+\.json$")
        expect(on(card).link("report.download")).to_have_attribute("href", report)
    with step("a report that cannot be had is not copied"):
        page.unroute("**/aivista/report/**")
        page.route("**/aivista/report/**", lambda route: route.fulfill(status=500))
        expect(copy).to_be_enabled()
        copy.click()
        expect(card).to_contain_text("Not copied")
        page.unroute("**/aivista/report/**")
        page.context.clear_permissions()
    with step("a poor picture is painted again and folded under the better one"):
        gemini.control(clear=True, on_text=[paint(), verdict(0.3), verdict(0.95)])
        begin_anew(page)
        choose_setting(page, "review", "Always")
        say(page, "a red fox")
        expect(page.locator("#chat .earlier")).to_contain_text("1 earlier attempt")
        expect_rest(page)
        expect(pictures(page)).to_have_count(1)
        expect(page.locator("#chat .pic .score")).to_have_text("1 of 1")
        page.locator("#chat .earlier summary").click()
        expect(page.locator("#chat .earlier .score")).to_have_text("0 of 1")
        page.locator("#chat .review summary").click()
        expect(page.locator("#chat .review .found")).to_contain_text("a red fox")
    with step("a model leaves only the values it obeys, and paints"):
        gemini.control(clear=True, on_text=[paint()])
        begin_anew(page)
        ask_before_painting(page)
        say(page, "a fox")
        expect(plan.get_by_label("Image")).to_have_value("flash")
        plan.get_by_label("Aspect ratio").select_option("1:8")
        plan.get_by_label("Image").select_option("pro")
        expect(plan.get_by_label("Aspect ratio")).not_to_have_value("1:8")
        plan.get_by_label("Aspect ratio").select_option("1:1")
        plan.get_by_label("Resolution").select_option("2K")
        gemini.control(on_text=[verdict(0.9)])
        called.button("plan.run").click()
        expect_pictures(page, 1)
        (asked,) = requests(gemini, "image")
        assert asked["model"] == "gemini-3-pro-image"
        expect(page.locator("#chat .receipt")).to_contain_text("2K → 2048×2048")
    assert gemini.read("violations") == []
    environment = {
        "GEMINI_API_KEY": "AIza-operators-own-0001",
        "GOOGLE_GEMINI_BASE_URL": gemini.url,
        "AIVISTA_RETRY_BUDGET_S": "60",
    }
    busy = {"kind": "HttpError", "status": 429, "message": "slow down", "headers": {"Retry-After": "30"}}
    with PageProcess(home=tmp_path, environment=environment) as studio:
        open_page(page, studio.url)
        with step("the wait counts down until it is stopped"):
            gemini.control(clear=True, on_text=[busy])
            say(page, "hello")
            seconds = page.locator(".live .down")
            expect(seconds).to_be_visible()
            begun = int(seconds.inner_text())
            expect(seconds).not_to_have_text(str(begun))
            assert 0 <= int(seconds.inner_text()) < begun
            on(page, "#box").button("builtin.stop").click()
            expect(page.locator(".stopped")).to_be_visible()
            expect_rest(page)
        with step("the studio is killed in the middle of a turn"):
            held = {"kind": "Hold", "answer": {"kind": "PictureAnswer"}, "after_chunks": 0}
            gemini.control(clear=True, on_text=[paint()], on_image=[held])
            begin_anew(page)
            say(page, "draw a fox")
            expect(page.locator(".frame.pending")).to_be_visible()
            address = page.url.partition("?")[2]
            studio.end(signal.SIGKILL)
    with PageProcess(home=tmp_path) as sketching, step("the next studio tells of it and continues"):
        page.goto(f"{sketching.url}/?{address}")
        card = page.locator("#chat .cut-off")
        expect(card).to_contain_text("The studio restarted while this was running")
        expect(card).to_contain_text("1 call may have been charged")
        Called(card, "en").button("interrupted.go_on").click()
        expect_pictures(page, 1)
        # A studio that ends tells a page that is still open of an unexpected error.
        page.goto("about:blank")
