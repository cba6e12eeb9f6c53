"""A wish that was written out stands beside the person's words, with who wrote it, what it cost, and what changed."""

from __future__ import annotations

from datetime import date
from html import unescape
from pathlib import Path

import pytest

from agent.providers.catalogue import load_catalogue
from agent.settings import OpenAISettings, Settings
from agent.studio import Studio
from agent.workflow.fuller_wishes import FullerWish, Wish
from tests.webui.test_rail_wiring import Desk
from webui.panels.aids import aids_html
from webui.panels.fuller import fuller_html, refused_html
from webui.sessions import Visitor
from webui.wish_wiring import WishClick, pictures_of, read_wish_click, written_out
from webui.words import load_words

EN, ZH = load_words("en"), load_words("zh-CN")
CLICK = WishClick(ticket="t1", text="a fox")
TODAY = date(2026, 11, 20)


@pytest.mark.parametrize(
    ("click", "editing", "references", "expected"),
    [
        (CLICK, "", "", "none"),
        (CLICK, "#7b", "#2", "change"),
        (CLICK, "", "#2", "beside"),
        (CLICK.model_copy(update={"files": 2}), "", "", "beside"),
        (CLICK.model_copy(update={"files": 1, "is_painted": True}), "", "", "change"),
    ],
)
def test_what_the_pictures_are_for_decides_how_a_wish_is_written(
    click: WishClick, editing: str, references: str, expected: str
) -> None:
    assert pictures_of(click, editing, references) == expected


def test_the_answer_names_its_question_its_writer_and_its_price() -> None:
    written = FullerWish(text="a red fox, at golden hour", by="model", label="Flash", price_usd=0.0006)
    shown = fuller_html(EN, "t1", "a red fox", written)
    assert 'data-ticket="t1"' in shown
    assert 'data-text="a red fox, at golden hour"' in shown
    assert "by Flash, $0.0006" in shown
    assert "<ins>, at golden hour</ins>" in shown
    assert 'data-heard="Your wish, written out: a red fox, at golden hour"' in shown
    assert "未用模型" in fuller_html(ZH, "t1", "红狐", FullerWish(text="红狐，黄昏", by="rules"))


def test_a_wish_that_says_it_all_is_not_shown_as_changed() -> None:
    shown = fuller_html(EN, "t1", " a red fox ", FullerWish(text="a red fox", by="rules"))
    assert "nothing to add" in shown
    assert 'data-heard="' in shown
    assert "data-text" not in shown


def test_where_nobody_could_write_it_out_nothing_is_said_of_the_wish() -> None:
    nobody = FullerWish(text="make it darker", by="nobody")
    assert "only wishes for a new picture" in fuller_html(EN, "t1", "make it darker", nobody)
    assert "只能扩写新图片" in fuller_html(ZH, "t1", "暗一些", FullerWish(text="暗一些", by="nobody"))
    assert "data-text" not in fuller_html(EN, "t1", "make it darker", nobody)


def test_nothing_of_a_wish_becomes_markup() -> None:
    evil = '"><script>x</script>'
    shown = fuller_html(EN, evil, "a", FullerWish(text=evil, by="model", label=evil, price_usd=1))
    assert "<script" not in shown
    assert "<script" not in refused_html(EN, evil, evil)


def test_the_button_says_what_it_costs_before_it_is_pressed() -> None:
    catalogue = load_catalogue()
    paid = unescape(aids_html(EN, catalogue, "gemini", TODAY, upload_limit_megabytes=160))
    assert 'data-flash="by Flash, about $0.00' in paid
    assert 'data-thinking="by ' in paid
    assert "without a model, free" in unescape(aids_html(EN, catalogue, "sketch", TODAY, upload_limit_megabytes=160))
    own = load_catalogue(openai=OpenAISettings(base_url="http://127.0.0.1:1/v1", text_model="gemma"))
    assert "$" not in unescape(aids_html(EN, own, "openai", TODAY, upload_limit_megabytes=160))


async def test_a_visitors_wish_is_written_out_for_them_and_nothing_is_sent(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        desk = Desk(studio)
        written = await written_out(desk.screen, Visitor("ann", "ann", EN), Wish(text="Draw a red fox"))
        assert written.text.startswith("Draw a red fox, ")
        assert await studio.conversations("ann") == []


@pytest.mark.parametrize(
    "data", [None, {}, {"ticket": "t"}, {"ticket": "t" * 41, "text": ""}, {"ticket": "t", "text": 1}]
)
def test_a_click_that_is_none_is_ignored(data: object) -> None:
    assert read_wish_click(data) is None
