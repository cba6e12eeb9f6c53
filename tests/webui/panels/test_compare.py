"""Two pictures compared: which two, what the stage says of them, and nothing hostile in it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from agent.errors import RequestRefused
from agent.pictures import Picture
from tests.support.page_values import VIEW, conversation, image, picture
from webui.cards import View
from webui.panels.compare import compare_html, counterpart, pair, read_pair
from webui.words import LANGUAGES, load_words


def made(handle: str, *parents: str, size: tuple[int, int] = (1376, 768)) -> Picture:
    drawn = picture(handle)
    resized = drawn.image.model_copy(update={"width": size[0], "height": size[1]})
    return drawn.model_copy(update={"parents": parents, "image": resized})


@pytest.mark.parametrize(
    ("argument", "handles"),
    [("#7b", ("", "#7b")), ("#7 #7b", ("#7", "#7b")), (" #7  #7b #9", ("#7", "#7b")), ("", ("", "")), ("  ", ("", ""))],
)
def test_a_click_names_one_picture_or_two(argument: str, handles: tuple[str, str]) -> None:
    assert read_pair(argument) == handles


@pytest.mark.parametrize(
    ("pictures", "shown", "other"),
    [
        ((made("#1"), made("#2"), made("#1b", "#1")), "#1b", "#1"),
        ((made("#1"), made("#2"), made("#3", "#2", "#1")), "#3", "#2"),
        ((made("#1"), made("#2"), made("#3", "#9", "#1")), "#3", "#1"),
        ((made("#1"), made("#2"), made("#3", "#3")), "#3", "#2"),
        ((made("#1"), made("#2"), made("#3")), "#3", "#2"),
        ((made("#1"), made("#2")), "#1", "#2"),
        ((made("#1"),), "#1", None),
    ],
    ids=["parent", "base-first", "parent-gone", "own-parent", "before", "first-takes-the-next", "alone"],
)
def test_the_other_picture_is_what_it_was_made_from_or_the_one_beside_it(
    pictures: tuple[Picture, ...], shown: str, other: str | None
) -> None:
    stored = conversation(pictures=pictures)
    found = counterpart(stored, stored.picture(shown))
    assert (found.handle if found else None) == other


def test_two_that_are_named_are_taken_in_their_order() -> None:
    stored = conversation(pictures=(made("#1"), made("#2"), made("#1b", "#1")))
    first, second = pair(stored, "#1b", "#2")
    assert first is not None
    assert (first.handle, second.handle) == ("#1b", "#2")


@pytest.mark.parametrize(("first", "second"), [("#9", "#1"), ("#1", "#9"), ("", "#9"), ("", "")])
def test_a_picture_the_conversation_does_not_hold_is_refused(first: str, second: str) -> None:
    with pytest.raises(RequestRefused):
        pair(conversation(pictures=(made("#1"), made("#2"))), first, second)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_stage_shows_both_and_every_way_to_compare_them(language: str) -> None:
    words = load_words(language)
    one, two = made("#1"), made("#1b", "#1")
    shown = unescape(compare_html(View(words, "c1"), conversation(pictures=(one, two)), one, two))
    assert 'data-difference="aivista/difference/c1/1/1b"' in shown
    assert re.findall(r'<img src="media/c1/(\w+)\?', shown) == ["1", "1b"]
    assert re.findall(r'data-cmp-mode="(\w+)"', shown) == ["slider", "side", "blink", "difference"]
    for name in ("slider", "side", "blink", "difference", "first", "second"):
        assert f">{words(f'compare.{name}')}<" in shown
    assert words("compare.same_size", size="1376×768") in shown
    assert shown.count(" selected>") == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_that_the_script_completes_keep_their_places(language: str) -> None:
    one, two = made("#1"), made("#2")
    shown = unescape(compare_html(View(load_words(language), "c1"), conversation(pictures=(one, two)), one, two))
    said = dict(re.findall(r'data-(numbers|same|compared|share)="([^"]*)"', shown))
    assert {name: set(re.findall(r"\{(\w+)\}", text)) for name, text in said.items()} == {
        "numbers": {"changed", "clear", "largest"},
        "same": {"compared"},
        "compared": {"compared"},
        "share": {"share"},
    }
    assert "16" in said["numbers"]


def test_pictures_of_other_sizes_are_fitted_to_the_first_ones_frame_and_it_says_so() -> None:
    one, two = made("#1", size=(1000, 500)), made("#2", size=(640, 640))
    shown = compare_html(VIEW, conversation(pictures=(one, two)), one, two)
    assert "--ar:2.0000" in shown
    assert "#1 is 1000×500, #2 is 640×640: fitted to one frame." in shown


def test_a_single_picture_is_told_that_there_is_no_other() -> None:
    one = made("#1")
    shown = compare_html(VIEW, conversation(pictures=(one,)), None, one)
    assert "#1 is the only picture of this conversation" in shown
    assert "data-pair" not in shown


def test_nothing_hostile_becomes_html() -> None:
    hostile = '"><img src=x onerror=1>'
    one = made("#1").model_copy(update={"alt": hostile})
    two = made("#2").model_copy(update={"alt": hostile, "image": image("#2")})
    assert hostile not in compare_html(VIEW, conversation(pictures=(one, two)), one, two)
