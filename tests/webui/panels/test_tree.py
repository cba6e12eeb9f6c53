"""The tree as HTML: who is in it, how it is labelled, and nothing hostile in it."""

from __future__ import annotations

import re

import pytest

from agent.adjusting.describing import Change, ChangeKind
from agent.lineage import Lineage, lineage
from agent.messages import ImageOrigin
from agent.pictures import EditKind, EditRecord, Picture, Receipt
from tests.support.cases import each_case
from tests.support.page_values import VIEW, WORDS, image, picture
from webui.cards import View
from webui.panels.tree import asking_html, head_html, label, told_html, tree_html
from webui.tree_wiring import read_tree_click
from webui.words import LANGUAGES, load_words

RECEIPT = Receipt(
    prompt="p",
    user_text="",
    model="m",
    model_label="Flash",
    asked_aspect_ratio=None,
    asked_resolution=None,
    width=64,
    height=36,
    mime_type="image/png",
)


def made(handle: str, *parents: str, said: str = "", origin: ImageOrigin = ImageOrigin.EDITED) -> Picture:
    receipt = RECEIPT.model_copy(update={"user_text": said})
    drawn = picture(handle)
    shown = drawn.image.model_copy(update={"origin": origin})
    return drawn.model_copy(update={"parents": parents, "image": shown, "receipt": receipt})


def upload(handle: str) -> Picture:
    return made(handle, origin=ImageOrigin.UPLOADED).model_copy(update={"receipt": None})


def part(kind: EditKind, said: str) -> Picture:
    one = image("#1")
    record = EditRecord(kind=kind, verdict="good", reason="", base=one, mask=one, raw=one)
    return made("#2", "#1", said=said).model_copy(update={"edit": record})


TREE = lineage([upload("#1"), upload("#5"), made("#7", "#1", "#5", said="a hero"), made("#7b", "#7", said="warm")])


def test_every_picture_is_a_button_with_its_name_and_a_menu() -> None:
    shown = tree_html(VIEW, TREE, "#7b")
    assert re.findall(r'class="tr-open"[^>]* aria-label="([^"]+)"', shown) == [
        "#1, uploaded",
        "#5, uploaded",
        "#7, a hero",
        "#7b, warm",
    ]
    assert shown.count('class="tr-more"') == 4
    assert re.findall(r'data-handle="#7" [^>]*data-parents="([^"]*)"', shown) == ["#1 #5"]


def test_the_path_to_the_open_picture_is_drawn_last_and_that_picture_is_the_one_to_begin_with() -> None:
    shown = tree_html(VIEW, TREE, "#7b")
    drawn = re.findall(r'<path (?:class="(\w+)" )?d=', shown)
    assert drawn == ["dashed", "path", "path"]
    assert re.findall(r'data-handle="([^"]+)"[^>]*><button[^>]* tabindex="0"', shown) == ["#7b"]
    assert shown.count("aria-current=true") == 1
    plain = tree_html(VIEW, TREE, "#99")
    assert sorted(re.findall(r'<path (?:class="(\w+)" )?d=', plain)) == ["", "", "dashed"]
    assert "aria-current" not in plain


def test_a_conversation_without_pictures_says_so() -> None:
    assert WORDS("tree.empty") in tree_html(VIEW, Lineage())


def test_a_deleted_picture_that_another_was_made_from_cannot_be_opened() -> None:
    tree = lineage([upload("#1"), made("#1b", "#1")], gone={"#1"})
    gone = tree_html(VIEW, tree).partition('data-handle="#1b"')[0]
    assert "deleted" in gone
    assert " disabled" in gone
    assert "tr-more" not in gone
    assert "<img" not in gone


@each_case(
    ("one", "said"),
    [
        (upload("#1"), "uploaded"),
        (part("mask", "remove the red cup"), "mask: remove the red cup"),
        (part("mask", ""), "mask"),
        (part("expansion", "wider"), "expanded"),
        (part("kept_part", "x"), "kept a part of it"),
        (made("#2", "#1", said="  a   fox \n in snow "), "a fox in snow"),
        (made("#2", said=""), "Flash"),
        (made("#2", "#1", said=load_words("zh-CN")("panel.vary_said")), "vary"),
        (made("#2", "#1", said=WORDS("panel.regenerate_said")), "painted again"),
        (made("#2", "#1", said=load_words("zh-CN")("styles.try_said", title="水粉")), "restyle: 水粉"),
    ],
)
def test_a_label_says_in_a_few_words_how_a_picture_came_about(one: Picture, said: str) -> None:
    assert label(WORDS, one) == said


def test_an_adjustment_is_named_in_the_visitors_language() -> None:
    changes = (Change(kind=ChangeKind.CROPPED_TO_RATIO, ratio="4:5"),)
    one = made("#2", "#1")
    one = one.model_copy(update={"receipt": RECEIPT.model_copy(update={"changes": changes})})
    assert (label(WORDS, one), label(load_words("zh-CN"), one)) == ("cropped to 4:5", "裁成 4:5")


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_words_and_handles_stay_words(language: str) -> None:
    words, hostile = load_words(language), '"><script>alert(1)</script>'
    tree = lineage([made(f"#{hostile}", said=hostile), made("#2", f"#{hostile}", said=hostile)])
    told = (tree_html(View(words, hostile), tree, "#2"), asking_html(words, hostile, 2), told_html(words, hostile))
    for shown in (*told, head_html(words)):
        assert "<script" not in shown


def test_the_question_counts_what_would_go() -> None:
    assert "Delete #7 and the 3 pictures made from it?" in asking_html(WORDS, "#7", 3)
    assert "Delete #7 and the picture made from it?" in asking_html(WORDS, "#7", 1)
    assert "Delete #7?" in asking_html(WORDS, "#7", 0)


@pytest.mark.parametrize("data", [None, [], {"act": None}, {"act": "show", "x": 1}, {"act": "ask", "arg": "#" * 65}])
def test_a_click_the_page_never_sends_is_ignored(data: object) -> None:
    assert read_tree_click(data) is None
