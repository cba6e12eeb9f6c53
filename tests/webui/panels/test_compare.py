"""Two pictures compared: which two, what the stage says of them, and nothing hostile in it."""

from __future__ import annotations

import pytest

from agent.errors import RequestRefused
from agent.pictures import Picture
from tests.support.cases import each_case
from tests.support.page_values import VIEW, conversation, picture
from webui.panels.compare import compare_html, counterpart, pair, read_pair


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


@each_case(
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


def test_a_single_picture_is_told_that_there_is_no_other() -> None:
    one = made("#1")
    shown = compare_html(VIEW, conversation(pictures=(one,)), None, one)
    assert "#1 is the only picture of this conversation" in shown
    assert "data-pair" not in shown
