"""The first run and its stumbles: languages, examples, a key that is kept and tried, models it cannot use, refusals."""

from __future__ import annotations

import base64
import io
import json
import re
import stat
import urllib.request
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.page import PageProcess
from tests.page.hands import (
    begin_anew,
    choose_setting,
    chosen_ratio,
    composer,
    expect_loaded,
    expect_ready,
    expect_rest,
    open_page,
    open_settings,
    pictures,
    say,
)
from tests.page.journeys import step
from tests.wire_server import GeminiProcess, quota_body

PRO = "gemini-3-pro-image"


def test_an_example_runs_without_a_key_and_one_is_kept_on_this_machine_and_greys_what_it_cannot_use(
    page: Page, gemini: GeminiProcess, studios: Callable[..., PageProcess]
) -> None:
    keyless = studios(GOOGLE_GEMINI_BASE_URL=gemini.url)
    gemini.control(deny_model={PRO: quota_body("day", limit=0, model=PRO)})
    open_page(page, keyless.url)
    with step("an example runs at once, without a key"):
        expect(page.locator(".example-card")).to_have_count(6)
        page.get_by_role("button", name="Cut to a format").press("Enter")
        expect(pictures(page)).to_have_count(1)
        expect_loaded(pictures(page).first)
        expect_rest(page)
        expect(page.locator("#chat .user")).to_contain_text("Crop my picture to 4:5")
        expect(composer(page)).to_have_value("")
    with step("a key is tried, kept on this machine, and greys what it cannot use"):
        begin_anew(page)
        page.get_by_role("button", name="Add a key").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("textbox", name="Gemini API key").fill("AIzaSyCANARY-kept-on-this-machine-4321")
        dialog.get_by_role("radio", name="On this machine").check()
        dialog.get_by_role("button", name="Save key").click()
        verdict = dialog.locator("#s-verdict")
        expect(dialog.locator("#s-state")).to_contain_text("Using key …4321, stored on this machine.")
        expect(verdict).to_contain_text("Pictures: Flash")
        expect(verdict.locator("[data-code=billing_required]")).to_contain_text("ai.studio/projects")
        file = keyless.home / "gemini.key"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with urllib.request.urlopen(f"{keyless.url}/config", timeout=20) as answer:
            assert "CANARY" not in answer.read().decode()
        assert "CANARY" not in page.content()
        files = [path for path in keyless.home.rglob("*") if path.is_file() and path != file]
        assert files
        assert not [path for path in files if b"CANARY" in path.read_bytes()]
        assert "CANARY" not in keyless.errors
        page.keyboard.press("Escape")
        # The list and the buttons: by the mouse and by the keys it stays what it was.
        settings = open_settings(page)
        chip = page.get_by_role("combobox", name="Image")
        button = settings.locator("#image-models").get_by_role("button", name="Pro")
        expect(button).to_have_attribute("aria-disabled", "true")
        button.click(force=True)
        chip.click()
        pro = page.get_by_role("option", name="Pro", exact=True)
        expect(pro).to_have_attribute("aria-disabled", "true")
        expect(pro).to_have_attribute(
            "title", "Your key has no quota for Pro. Please turn on billing in Google AI Studio."
        )
        pro.click(force=True)
        expect(chip).to_have_value("Auto")
        chip.press("ArrowDown")
        chip.press("ArrowDown")
        expect(pro).to_have_class(re.compile(r"\bactive\b"))
        chip.press("Enter")
        expect(chip).to_have_value("Auto")
        chip.press("Escape")
        chip.press("Enter")
        expect(chip).to_have_value("Auto")
        chip.click()
        chip.press("Home")
        chip.press("ArrowDown")
        expect(page.get_by_role("option", name="Flash", exact=True)).to_have_class(re.compile(r"\bactive\b"))
        chip.press("Enter")
        expect(chip).to_have_value("Flash")
        expect(page.locator(".limits")).to_contain_text("Your key has no quota for image model Pro.")
        # Another visit has the key, and finds out by itself once more.
        page.reload()
        expect(page.locator(".limits")).to_be_visible()
        page.get_by_role("button", name="Settings", exact=True).click()
        dialog.get_by_role("button", name="Remove from this machine").click()
        expect(dialog.locator("#s-state")).to_contain_text("the studio draws sketches")
        assert not file.exists()
        expect(page.locator(".limits")).to_have_count(0)


def a_refusal_offers_other_words_and_an_empty_picture_is_covered(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    out = io.BytesIO()
    Image.new("RGB", (320, 180), (2, 2, 3)).save(out, "JPEG")
    black = {"kind": "PictureAnswer", "data": {"base64": base64.b64encode(out.getvalue()).decode()}}
    wish = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A fox", "confidence": 0.9}}
    offers = ["A fox as a paper cut-out", "The snow alone, with a fox's tracks"]
    reworded = {"kind": "Text", "text": json.dumps({"rewordings": offers})}
    gemini.control(on_text=[wish, reworded, wish], on_image=[{"kind": "Finish", "reason": "IMAGE_SAFETY"}, black])
    open_page(page, gemini_studio.url)
    say(page, "a fox in the snow")
    card = page.locator("#chat [data-code=picture_blocked]")
    expect(card).to_contain_text("blocked the result")
    expect_rest(page)
    # What failed is in the box again before somebody chooses other words for it.
    expect(composer(page)).to_have_value("a fox in the snow")
    card.get_by_role("button", name=offers[1]).click()
    expect(composer(page)).to_have_value(offers[1])
    assert len([one for one in gemini.read("requests") if one["kind"] == "image"]) == 1
    composer(page).press("Enter")
    expect(page.locator("#chat .blank-mark")).to_contain_text("All black")
    expect(page.locator("#chat .blank-note")).to_contain_text("it was charged like any other")
    expect_rest(page)


def language_of_gradio(page: Page) -> str:
    told: str = page.evaluate("navigator.language")
    return told


def test_the_language_is_the_browsers_until_it_is_switched_and_gradio_speaks_it_too(
    browser: Browser, tmp_path: Path
) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="zh-TW")
    page = context.new_page()
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        assert language_of_gradio(page) == "zh-CN"
        expect(page.get_by_role("button", name="发送", exact=True)).to_be_visible()
        expect(page.get_by_role("group", name="你的消息")).to_be_visible()
        composer(page).fill("一座山")
        choose_setting(page, "aspect-ratio", "21:9")
        expect(chosen_ratio(page)).to_have_value("21:9")
        page.get_by_role("button", name="English").click()
        expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
        expect_ready(page)
        expect(composer(page)).to_have_value("一座山")
        expect(chosen_ratio(page)).to_have_value("21:9")
        expect(page.locator("html")).to_have_attribute("lang", "en")
        assert language_of_gradio(page) == "en"
        page.get_by_role("button", name="中文").click()
        expect(page.get_by_role("button", name="发送", exact=True)).to_be_visible()
        expect_ready(page)
    # The studio is gone: it is Gradio that notices, and says so in its own English.
    page.get_by_role("button", name="发送", exact=True).click()
    expect(page.get_by_role("alert").or_(page.locator(".toast-body")).first).to_contain_text("连接")
    expect(page.locator(".toast-body").first).not_to_contain_text("Connection")
    context.close()


def test_what_is_told_of_lost_records_is_in_the_readers_time_zone(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "aivista-20261130T140000Z.db").touch()
    (tmp_path / "aivista.db").write_bytes(b"no database" * 1000)
    context = browser.new_context(locale="en-US", timezone_id="Asia/Shanghai")
    with PageProcess(home=tmp_path) as studio:
        page = context.new_page()
        page.goto(studio.url)
        said = page.locator(".welcome [role=alert]")
        expect(said).to_contain_text("was set aside as aivista.db.unreadable-")
        expect(said).to_contain_text("There is a backup of Nov 30, 2026, 10:00")
        context.close()
