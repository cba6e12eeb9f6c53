"""The language is the browser's until somebody switches it, for what Gradio says by itself as well."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.page import PageProcess
from tests.page.hands import choose_setting, chosen_ratio, composer, expect_ready, open_page


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
