"""The style library on the page: what it shows to whom, why it was found, and what is said when it cannot be kept."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.settings import Settings
from agent.storage.curated_styles import curated_styles
from agent.storage.own_styles import MOST_BYTES, draft_of
from agent.storage.style_values import MatchKind, MatchReason, Style, StyleMatch
from agent.studio import Studio
from tests.support.cases import each_case
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import build_composer
from webui.panels.conversations import build_rail
from webui.panels.settings import build_settings
from webui.panels.styles import build_styles, list_html, note_html
from webui.screen import Panels, Screen
from webui.sessions import Sessions, Visitor
from webui.style_finding import FAMILIES, MINE, Shown, found, grouped, in_family, title_of
from webui.style_forms import draft_fields, fields_of, refusal
from webui.styles_wiring import Shelf, StyleClick, Styles, read_style_click
from webui.tabs import Tab
from webui.words import load_words

EN, ZH = load_words("en"), load_words("zh-CN")
INK = next(style for style in curated_styles() if style.id == "ink-wash")
MOON = {
    "name_en": "Haiku moon",
    "name_zh": "俳句月色",
    "aliases": "moonlit haiku，月下俳句",
    "description_en": "A pale disc over reeds.",
    "phrases": "pale moon over reeds\none heron\n",
    "tags": "night, print",
}


def own(**changes: Any) -> Style:
    draft = draft_of({**draft_fields(MOON), **changes})
    return Style(**dict(draft), id="own-1", is_own=True)


class Desk:
    """The library of a studio, clicked by visitors of a shared link."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Blocks():
            self.panel = build_styles()
            self.panels = Panels(
                build_rail(), build_chat(), build_composer(studio.catalogue), build_canvas(), build_settings()
            )
        self.styles = Styles(Screen(lambda: studio, Sessions(b"secret", is_shared=True), self.panels), self.panel)
        self.shelf = Shelf()

    async def click(self, act: str, owner: str = "ann", **more: Any) -> dict[str, str]:
        """Return what a click changed, by the names of the panel's fields."""
        updates: dict[Any, Any] = {}
        async for some in self.styles.answer(Visitor(owner, owner, EN), self.shelf, StyleClick(act=act, **more)):
            updates |= some
        names = {id(getattr(self.panel, name)): name for name in ("head", "note", "cards", "form")}
        return {names[id(component)]: html for component, html in updates.items()}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Studio(Settings(home=tmp_path)) as studio:
        yield Desk(studio)


def ids(html: str) -> list[str]:
    return re.findall(r'<article class="sty" data-id="([\w-]+)"', html)


def words_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


# What is shown


def test_a_style_has_its_name_in_the_pages_language_and_the_other_when_there_is_no_such() -> None:
    assert (title_of(EN, INK), title_of(ZH, INK)) == ("Chinese ink wash painting", "水墨画")
    nameless = own(name={"en": "Haiku moon", "zh": ""})
    assert title_of(ZH, nameless) == "Haiku moon"


def test_every_curated_style_is_listed_once_and_under_a_family_with_a_name() -> None:
    groups = grouped([Shown(style) for style in (own(), *curated_styles())])
    assert groups[0][0] == MINE
    assert sum(len(members) for _, members in groups) == len(curated_styles()) + 1
    assert {family for family, _ in groups} == {MINE, *FAMILIES}


def test_a_family_shows_all_that_carry_its_tag_and_mine_only_ones_own() -> None:
    assert in_family(INK, "painting")
    assert in_family(INK, "chinese")
    assert not in_family(INK, "3d")
    assert not in_family(INK, MINE)
    assert in_family(own(), MINE)


def test_words_of_a_style_are_never_html() -> None:
    evil = own(name={"en": "<img src=x onerror=alert(1)>"}, description={"en": '"><b data-act="new">'})
    html = list_html(EN, [Shown(evil, "<i>why</i>")], '"><u>', "")
    assert "<img" not in html
    assert "<b data-act" not in html
    assert "<i>" not in html
    assert '"><u>' not in html


def test_only_ones_own_style_can_be_edited_and_deleted() -> None:
    assert 'data-style="delete"' in list_html(EN, [Shown(own())], "", "")
    assert 'data-style="delete"' not in list_html(EN, [Shown(INK)], "", "")


# What is found


def test_what_the_library_found_comes_first_and_each_says_why() -> None:
    reason = MatchReason(kind=MatchKind.ALIAS, text="sumi-e", words="sumi")
    shown = found(EN, "reeds", (INK, own()), [StyleMatch(style=INK, similarity=0.7, reason=reason)])
    assert [(one.style.id, one.why) for one in shown] == [
        ("ink-wash", "Also called “sumi-e”"),
        ("own-1", "Adds “pale moon over reeds”"),
    ]


@each_case(
    ("query", "why"),
    [
        ("HAIKU", "Its name"),
        ("月色", "Its name"),
        ("moonlit", "Also called “moonlit haiku”"),
        ("night", "Filed under “night”"),
        ("heron", "Adds “one heron”"),
        ("disc", "Says so in its description"),
    ],
)
def test_a_style_that_says_the_words_is_found_with_the_reason(query: str, why: str) -> None:
    assert [one.why for one in found(EN, query, (own(),), ())] == [why]


def test_a_family_is_found_by_its_name_in_the_pages_language() -> None:
    shown = found(ZH, "摄影", curated_styles(), ())
    assert {one.style.id for one in shown} >= {style.id for style in curated_styles() if "photography" in style.tags}
    assert "归在“摄影”类" in {one.why for one in shown}


async def test_the_list_is_narrowed_by_words_and_by_family(desk: Desk) -> None:
    opened = await desk.click("open")
    assert len(ids(opened["cards"])) == len(curated_styles())
    assert "127 styles" in words_of(opened["cards"])
    by_name = await desk.click("find", query="ukiyo-e")
    assert ids(by_name["cards"])[0] == "ukiyo-e"
    narrowed = await desk.click("find", query="ukiyo-e", family="3d")
    assert "ukiyo-e" not in ids(narrowed["cards"])
    nothing = await desk.click("find", query="xyzzy plugh")
    assert "No style is called that" in words_of(nothing["cards"])


# One's own


async def test_a_style_is_written_edited_deleted_and_brought_back(desk: Desk) -> None:
    assert words_of((await desk.click("save", fields=MOON))["note"]) == "“Haiku moon” is kept."
    [style_id] = ids((await desk.click("find", family=MINE))["cards"])
    form = (await desk.click("edit", id=style_id))["form"]
    assert 'value="moonlit haiku, 月下俳句"' in form
    assert "pale moon over reeds\none heron" in form
    changed = await desk.click("save", id=style_id, fields={**MOON, "name_en": "Haiku dusk"})
    assert (words_of(changed["note"]), changed["form"]) == ("“Haiku dusk” is kept.", "")
    deleted = await desk.click("delete", id=style_id)
    assert words_of(deleted["note"]) == "“Haiku dusk” is deleted. Undo"
    assert ids(deleted["cards"]) == []
    restored = await desk.click("undo")
    assert words_of(restored["note"]) == "“Haiku dusk” is back."
    assert len(ids(restored["cards"])) == 1
    assert await desk.click("undo") == {}


async def test_nothing_of_one_visitor_shows_to_another(desk: Desk) -> None:
    await desk.click("save", fields=MOON)
    [style_id] = ids((await desk.click("find", family=MINE))["cards"])
    assert ids((await desk.click("find", "bob", family=MINE))["cards"]) == []
    assert style_id not in ids((await desk.click("find", "bob", query="haiku moon"))["cards"])
    for act in ("edit", "delete", "save"):
        answer = await desk.click(act, "bob", id=style_id, fields=MOON)
        assert words_of(answer.pop("note")) == EN("error.style_not_found")
        assert answer == {}
    assert "nothing" not in words_of((await desk.click("export"))["note"])
    assert words_of((await desk.click("export", "bob"))["note"]) == EN("styles.nothing_to_export")
    assert ids((await desk.click("find", family=MINE))["cards"]) == [style_id]


@pytest.mark.parametrize("act", ["edit", "delete", "save"])
async def test_a_curated_style_is_nobodys_to_change(desk: Desk, act: str) -> None:
    answer = await desk.click(act, id="ink-wash", fields=MOON)
    assert words_of(answer["note"]) == EN("error.style_not_found")
    assert 'role="alert"' in answer["note"]


async def test_what_cannot_be_kept_is_said_and_the_form_stays(desk: Desk) -> None:
    answer = await desk.click("save", fields={**MOON, "phrases": " \n"})
    assert answer.keys() == {"note"}
    assert words_of(answer["note"]) == (
        "This cannot be kept as a style (Phrases: there is none, and a style needs at least one). "
        "Please mend that and try again."
    )
    after = await desk.click("find")
    assert after["note"] == note_html("")


async def test_what_was_exported_can_be_imported_and_keeps_all(desk: Desk) -> None:
    await desk.click("save", fields=MOON)
    exported = (await desk.click("export"))["note"]
    assert words_of(exported) == "1 style exported."
    packed = re.search(r'download="aivista-styles.json" href="data:application/json;base64,([^"]+)"', exported)
    assert packed is not None
    data = base64.b64decode(packed[1]).decode()
    imported = await desk.click("import", "bob", text=data)
    assert words_of(imported["note"]) == "1 style imported."
    [hers], [his] = [[s for s in await desk.studio.styles.all(owner) if s.is_own] for owner in ("ann", "bob")]
    assert hers.draft == his.draft


@pytest.mark.parametrize(
    ("text", "problem", "in_chinese"),
    [
        ("{", "the file is not JSON", "文件不是 JSON"),
        ("[]", "the file is not one that was exported here", "文件不是从这里导出的"),
        (" " * (MOST_BYTES + 9), "the file is larger than 1 MB", "文件超过 1 MB"),
        (
            json.dumps({"styles": [{"name": {"en": "Fine style"}, "phrases": ["x"]}, {"name": {"en": "Bad style"}}]}),
            "style 2, Phrases: something is missing that an exported file has",
            "第 2 种风格，短语：缺少导出文件应有的内容",
        ),
        (
            json.dumps({"styles": [{"name": {"en": "ab"}, "phrases": ["x"]}]}),
            "style 1, Name: it is too short to be told from other words",
            "第 1 种风格，名称：太短，无法与其他词区分",
        ),
        (
            json.dumps({"styles": [{"name": {"en": "Long"}, "phrases": ["x" * 241]}]}),
            "style 1, Phrases: it has more than 240 characters",
            "第 1 种风格，短语：超过 240 个字符",
        ),
    ],
)
async def test_a_file_that_cannot_be_read_is_told_in_one_sentence_of_either_language(
    desk: Desk, text: str, problem: str, in_chinese: str
) -> None:
    note = (await desk.click("import", text=text))["note"]
    assert words_of(note) == EN("error.styles_refused", problem=problem)
    with pytest.raises(RequestRefused) as caught:
        await desk.studio.styles.import_styles(text.encode(), "ann")
    assert refusal(ZH, caught.value.info) == ZH("error.styles_refused", problem=in_chinese)
    assert [style for style in await desk.studio.styles.all("ann") if style.is_own] == []


def test_a_refusal_of_another_kind_keeps_its_own_sentence() -> None:
    taken = ErrorInfo(code=ErrorCode.STYLE_NAME_TAKEN, parameters={"name": "Haiku moon"})
    assert refusal(ZH, taken) == ZH("error.style_name_taken", name="Haiku moon")


@pytest.mark.parametrize("style", [INK, own()])
def test_a_form_that_nobody_touched_makes_the_same_style(style: Style) -> None:
    assert draft_of(draft_fields(fields_of(style), style)) == style.draft


@each_case("data", [None, "try", {}, {"act": 3}, {"act": "find", "more": 1}, {"act": "x", "fields": [1]}])
def test_anything_but_a_click_of_the_library_is_ignored(data: object) -> None:
    assert read_style_click(data) is None


# Trying


async def test_without_a_picture_the_style_goes_behind_what_is_in_the_composer(desk: Desk) -> None:
    at = {"conversation": "", "editing": "", "chips": {}}
    draft = {"text": "a fox ", "files": ["/tmp/fox.png"]}
    visitor = Visitor("ann", "ann", EN)
    [updates] = [one async for one in desk.styles.try_it(visitor, Tab(), "ink-wash", at, draft)]
    [(component, update)] = updates.items()
    assert component is desk.panels.composer.message
    assert update["value"] == {
        "text": "a fox in the style of Chinese ink wash painting",
        "files": ["/tmp/fox.png"],
    }


async def test_a_style_of_somebody_else_cannot_be_tried(desk: Desk) -> None:
    style = await desk.studio.styles.add(draft_fields(MOON), "ann")
    at = {"conversation": "", "editing": "", "chips": {}}
    visitor = Visitor("bob", "bob", EN)
    [updates] = [one async for one in desk.styles.try_it(visitor, Tab(), style.id, at, None)]
    assert words_of(updates[desk.panel.note]) == EN("error.style_not_found")
