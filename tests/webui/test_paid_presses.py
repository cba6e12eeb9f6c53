"""What is pressed where it costs money, over HTTP: prices, caps, plans and keys, before a strict Gemini."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.reading import elements
from tests.page import PageProcess
from tests.support.masked_turns import DRIFTED, redrawn
from tests.support.masking_scenes import photo, rectangle, stored
from tests.webui.people import Person, words
from tests.wire_server import GeminiProcess, quota_body

TYPED = "AIzaTypedIntoTheDialog4f2c"
PLANNED = {"prompt": "A red fox in snow", "aspect_ratio": "16:9", "resolution": "2K", "number_of_images": 2}


@pytest.fixture
def ann(gemini_studio: PageProcess, gemini: GeminiProcess) -> Iterator[Person]:
    gemini.control(clear=True)
    one = Person(gemini_studio.url)
    yield one
    one.close()
    assert gemini.read("violations") == []
    assert "Traceback" not in gemini_studio.errors


def price(person: Person, beside: dict[str, Any] | str = "", **chips: Any) -> tuple[float, float]:
    """Return about what a message would cost, at least and at most, as it stands before Send."""
    told = beside if isinstance(beside, str) else json.dumps(beside)
    shown = person.ask("page.price", "", chips, beside=told)["cost"]
    assert elements(shown, "//script") == []
    [text] = elements(shown, "//*[contains(@class, 'price')]")
    amounts = [float(one) for one in re.findall(r"(?<=\$)[\d.]+", text.text_content())]
    return amounts[0], amounts[-1]


def pictures_asked(gemini: GeminiProcess) -> list[str]:
    """Return the requests for a picture, as they were sent."""
    return [json.dumps(one) for one in gemini.read("requests") if one["kind"] == "image"]


def test_the_price_before_send_follows_the_chips_and_what_stands_beside_the_words(ann: Person) -> None:
    flash = {"image_model": "flash", "review": "off"}
    cheap, most = price(ann, **flash)
    assert 0 < cheap <= most
    four, dearest = price(ann, count="4", **flash), price(ann, image_model="pro", resolution="4K", review="always")
    assert most < four[1] < dearest[1]
    for beside in ({"characters": 90_000}, {"files": 14}, {"marked": 14}, {"masks": 14}):
        dearer = price(ann, {"characters": 0, "files": 0, "marked": 0, "masks": 0} | beside, **flash)
        assert dearer[0] > cheap, beside
    assert price(ann, {"text": "four foxes"}, **flash)[1] > most * 3
    plain, lettering = (
        price(ann, {"text": text}, image_model="flash") for text in ("a fox", "a poster that says “NO”")
    )
    assert lettering[1] > plain[1] * 1.5
    for about, text, is_free in (
        ("target", "make it brighter", True),
        ("target", "撤销", True),
        ("target", "undo that and make it night", False),
        ("target", "make #2 brighter", False),
        ("picture", "crop to a square", True),
        ("picture", "undo", False),
        ("part", "crop to a square", False),
        ("part", "打马赛克", True),
        ("", "make it brighter", False),
    ):
        shown = ann.ask("page.price", "", flash, beside=json.dumps({"text": text, "about": about}))["cost"]
        assert ("Free" in shown) is is_free, (about, text)
    for nonsense in ("no JSON", "[]", '{"files": -1}', '{"files": 1e9}', '{"more": 1}', '"><script>'):
        assert price(ann, nonsense, **flash) == (cheap, most)


def test_a_lock_that_the_chosen_model_does_not_obey_goes_back_to_auto(ann: Person) -> None:
    for model, kept in (("flash", True), ("pro", False), ("both", False)):
        ann.chooses(image_model="flash")
        changed = ann.chooses(image_model=model, aspect_ratio="1:8", resolution="4K")
        assert (changed.get("aspect-ratio") == "auto") is not kept, model


def test_caps_are_amounts_and_a_plan_says_which_it_passes_and_by_how_much(ann: Person, gemini: GeminiProcess) -> None:
    def saved(day: Any, conversation: Any = None) -> str:
        return words(ann.act("settings.cap", day=day, conversation=conversation)["toast"])

    for wrong in (-1, -0.5, "5", [1], True):
        assert "Please enter an amount of zero or more" in saved(wrong)
    assert "Please" not in saved(0.01, 5)
    gemini.control(on_text=[{"kind": "Call", "name": "generate_image", "args": PLANNED}])
    assert "daily cap of $0.01 by about $0." in ann.shown(ann.says("draw two foxes"))
    assert pictures_asked(gemini) == []
    assert "Please" not in saved(None)


def plan(person: Person, gemini: GeminiProcess, **chips: Any) -> tuple[str, str]:
    """Have a plan wait; return its conversation and its turn."""
    gemini.control(on_text=[{"kind": "Call", "name": "generate_image", "args": PLANNED}])
    told = person.send("draw two foxes", confirm=True, **chips)
    return person.rows()[0], re.findall(r'data-act="drop_plan" data-arg="(\w+)"', told)[-1]


def test_a_plan_is_run_once_as_it_was_changed_within_what_its_model_offers(ann: Person, gemini: GeminiProcess) -> None:
    key, turn = plan(ann, gemini, image_model="pro")

    def run(which: str = turn, **edit: Any) -> str:
        told = {"turn": which, "edits": [{"call": 0, **edit}]}
        return json.dumps(ann.press("run_plan", json.dumps(told), key))

    refused = {
        "Pro does not offer Aspect ratio 7:5": {"aspect_ratio": "7:5"},
        "Pro does not offer Aspect ratio 1:8": {"aspect_ratio": "1:8"},
        "Pro does not offer Resolution 512": {"resolution": "512"},
        "does not offer": {"model": "both"},
    }
    for prompt in (" \n ", "x" * 200_000):
        run(prompt=prompt)
    for said, edit in refused.items():
        assert said in run(**edit)
    assert pictures_asked(gemini) == []
    gemini.control(on_image=[{"kind": "PictureAnswer"}] * 2)
    run(prompt="A wolf", aspect_ratio="1:1", number_of_images=1)
    [painted] = pictures_asked(gemini)
    assert "A wolf" in painted
    assert "1:1" in painted
    run(prompt="A wolf")
    assert len(pictures_asked(gemini)) == 1


def test_vary_and_paint_again_send_the_request_of_the_picture_without_asking_the_planner(
    ann: Person, gemini: GeminiProcess
) -> None:
    call = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox in snow"}}
    gemini.control(on_text=[call], on_image=[{"kind": "PictureAnswer"}] * 3)
    key = ann.says("draw a fox", review="off")
    for action in ("vary", "regenerate"):
        ann.press("panel", json.dumps({"handle": "#1", "action": action}), key, review="off")
    first, varied, again = (one["body"]["contents"] for one in gemini.read("requests") if one["kind"] == "image")
    assert "A variation: the same subject" in str(varied)
    assert str(varied).startswith(str(first).partition("snow")[0])
    assert again == first
    names = elements(ann.tree(key)["tr-pane"], "//*[@data-parents]//button/span")
    assert [name.text_content() for name in names] == ["#1 draw a fox", "#2 variation", "#3 draw a fox"]
    assert len([one for one in gemini.read("requests") if one["kind"] == "text"]) == 1


def test_of_an_edit_only_the_asked_part_is_kept_set_aside_and_taken_back(ann: Person, gemini: GeminiProcess) -> None:
    came = redrawn(photo(), rectangle(260, 180, 400, 320), DRIFTED)
    call = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red cup", "action": "edit_image"}}
    answer = {"kind": "PictureAnswer", "data": {"base64": b64encode(came).decode()}}
    gemini.control(on_text=[call], on_image=[answer])
    key = ann.says("make the cup red", files=[stored(photo())], review="off")
    assert "Everything moved by" in words(ann.shown(key))
    for _ in ("once", "twice"):
        kept = words(json.dumps(ann.press("keep_only", "#1b", key)["thread"]))
        assert ("#1c" in kept, "#1d" in kept) == (True, False)
    assert "pixels changed outside the mask" in kept
    for act, is_aside in (("discard_edit", True), ("keep_edit", False)):
        assert ("Discarded: nothing builds on it." in str(ann.press(act, "#1c", key)["thread"])) is is_aside


def test_a_quota_is_forgotten_by_the_next_success_and_the_choice_stays(ann: Person, gemini: GeminiProcess) -> None:
    """Nobody is moved from Flash to Thinking, which costs more, because a minute was busy."""
    gemini.control(on_text=[{"kind": "HttpError", "status": 429, "body": quota_body("day")}])
    assert "is used up" in ann.send("hello")
    assert "text model Flash" in ann.shown(ann.rows()[0])
    gemini.control(on_text=[{"kind": "Text", "text": "Here I am."}])
    ann.send("and now?", conversation=ann.rows()[0])
    page = ann.shown(ann.rows()[0])
    assert "Here I am." in page
    assert "text model Flash" not in page
    models = [one["model"] for one in gemini.read("requests") if one["kind"] == "text"]
    assert (len(models) > 1, len(set(models))) == (True, 1)


def test_a_key_is_told_by_its_last_characters_and_what_is_wrong_with_it_in_a_sentence(
    ann: Person, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    for nothing in ("", "   ", "x" * 401, "schlüssel"):
        assert "Enter a key first." in words(ann.act("settings.save", key=nothing)["s-verdict"])
    shown = ann.act("settings.save", key=f"  {TYPED} \n", keep="session")
    assert "…4f2c" in words(shown["set-key"])
    tested = ann.act("settings.test")
    assert "Google accepts the key." in words(tested["s-verdict"])
    opened = ann.act("settings.open")
    assert "…4f2c" in words(opened["settings"])
    assert TYPED[:-4] not in str([shown, tested, opened]) + ann.http.get("/").text
    assert "4f2c" not in words(ann.act("settings.remove")["set-key"])
    assert TYPED not in gemini_studio.errors


def test_words_that_were_stopped_while_they_waited_come_back_and_those_at_work_do_not(
    ann: Person, gemini: GeminiProcess
) -> None:
    endless = {"kind": "Hold", "answer": {"kind": "Text", "text": "on and on", "chunks": 3}, "after_chunks": 1}
    gemini.control(on_text=[endless])

    def send(text: str, request: str) -> dict[str, Any]:
        composed = json.dumps({"request": request, "begun": "one page"})
        answer = ann.join(ann.number("send"), [{"text": text, "files": []}, composed])
        return ann.changed(json.loads(answer.json()["data"][0]))

    conversation = send("talk on and on", "at work")["thread"]["conversation"]
    send("and of foxes", "waits")
    kept = {"turn": "", "kept": ["at work", "waits", "never came"]}
    assert ann.ask("page.ended", conversation, **kept)["over"] == {"never came": "failed"}
    ann.join(ann.number("stop"), [conversation])
    assert ann.ask("page.ended", conversation, **kept)["over"] == {"waits": "failed", "never came": "failed"}
