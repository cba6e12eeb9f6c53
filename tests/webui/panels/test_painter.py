"""The painter's HTML: every tool has a name in both languages, and what it says is in the page's words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from webui.cards import View
from webui.mask_wires import MAX_EDGE_PX, MAX_FEATHER_PX, MIN_FEATHER_PX
from webui.panels.canvas import empty_canvas_html
from webui.panels.composer import context_html
from webui.panels.painter import RATIOS, painter_html, stage_buttons_html
from webui.words import LANGUAGES, load_words

WORDS = load_words("en")


class Tags(HTMLParser):
    """Every tag with its attributes, and how the tags nest."""

    VOID = frozenset({"input", "img", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID and tag not in {"path", "circle", "rect", "line", "polyline", "polygon", "ellipse"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_tool_has_a_name(language: str) -> None:
    words = load_words(language)
    tags = Tags(painter_html(words))
    assert tags.open == []
    named = [one for one in tags.named("button") if "aria-label" in one]
    assert {words(f"painter.{name}") for name in ("brush", "eraser", "box", "undo", "redo", "invert", "clear")} <= {
        one["aria-label"] for one in named
    }
    assert all(one["aria-label"] == one["title"] for one in named)
    assert all(one.get("aria-label") for one in tags.named("input") if one.get("type") == "range")


def test_the_canvas_can_be_reached_by_keyboard_and_says_how() -> None:
    canvas = Tags(painter_html(WORDS)).named("canvas")[0]
    assert canvas["tabindex"] == "0"
    assert canvas["aria-describedby"] == "pt-help"
    assert "Escape leaves" in painter_html(WORDS)


def test_the_share_is_announced_politely_and_a_problem_at_once() -> None:
    tags = Tags(painter_html(WORDS))
    assert next(one for one in tags.named("output") if one.get("id") == "pt-share")["aria-live"] == "polite"
    assert next(one for one in tags.named("p") if one.get("id") == "pt-note")["role"] == "alert"


def test_sentences_of_the_script_keep_their_gaps_for_it_to_fill() -> None:
    root = Tags(painter_html(WORDS)).found[0][1]
    assert root["data-share"] == "{share} % painted"
    assert set(re.findall(r"{(\w+)}", root["data-wrong-shape"])) == {"mask_width", "mask_height", "width", "height"}
    assert root["data-longest"] == str(MAX_EDGE_PX)
    assert "?" not in root["data-mask-note"]


def test_the_soft_edge_goes_from_2_to_32_pixels() -> None:
    feather = next(one for one in Tags(painter_html(WORDS)).named("input") if one.get("id") == "pt-feather")
    assert (feather["min"], feather["max"]) == (str(MIN_FEATHER_PX), str(MAX_FEATHER_PX)) == ("2", "32")


def test_four_edges_and_the_ratios_are_offered() -> None:
    html = painter_html(WORDS)
    tags = Tags(html)
    assert [one["data-side"] for one in tags.named("input") if "data-side" in one] == ["left", "top", "right", "bottom"]
    assert len([one for one in tags.named("i") if "data-edge" in one]) == 4
    assert re.findall(r"<option>([^<]+)</option>", html) == list(RATIOS)


def test_the_stage_opens_the_painter_on_its_picture() -> None:
    html = stage_buttons_html(WORDS, '#7b"><script>')
    buttons = Tags(html).named("button")
    assert [one["data-mode"] for one in buttons] == ["mask", "expand"]
    assert all(one["data-paint"] == "open" for one in buttons)
    assert "<script>" not in html
    assert "Paint over it" in html


def test_the_empty_stage_says_where_a_picture_may_come_from_and_lets_one_be_chosen() -> None:
    html = empty_canvas_html(WORDS)
    assert "drop one of your own here" in html
    [button] = [one for one in Tags(html).named("button") if "data-paint" in one]
    assert button["data-paint"] == "choose"
    assert "Choose a picture" in html
    chooser = next(one for one in Tags(painter_html(WORDS)).named("input") if one.get("id") == "pt-photo")
    assert (chooser["type"], chooser["accept"]) == ("file", "image/*,.heic,.heif,.avif")
    assert "multiple" in chooser


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_picture_that_was_not_sent_has_a_line_of_its_own_that_leads_back_to_it(language: str) -> None:
    words = load_words(language)
    line = painter_html(words).partition('<template id="pt-chip">')[2].partition("</template>")[0]
    tags = Tags(line)
    assert tags.open == []
    opens, drops = tags.named("button")
    assert (opens["data-paint"], drops["data-paint"]) == ("again", "unpaint")
    assert drops["aria-label"] == words("painter.new_drop")
    label = next(one for one in tags.named("span") if one["class"] == "lab")
    assert (label["data-editing"], label["data-expanding"]) == (words("composer.editing"), words("painter.expand_note"))
    assert words("painter.new_picture") in line


def test_the_composers_line_leaves_room_for_what_is_painted() -> None:
    line = context_html(View(WORDS, "c1"), "#7b", ("#2",))
    tags = Tags(line)
    assert [one["data-handle"] for one in tags.named("span") if one.get("class") == "ctx" and "data-handle" in one] == [
        "#7b"
    ]
    assert len(tags.named("small")) == 1
    label = next(one for one in tags.named("span") if "data-expanding" in one)
    assert (label["data-editing"], label["data-expanding"]) == ("Editing", "Expanding")
