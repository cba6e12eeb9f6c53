"""The gallery's pane and cells: what a picture is called, why it was found, and nothing hostile in it."""

from __future__ import annotations

import re
from html import unescape

import pytest

from agent.storage.gallery_values import FoundBy, GalleryItem, GalleryMatch
from tests.support.page_values import WORDS, picture
from webui.panels.gallery import cells_html, found_why, gallery_html


def item(handle: str = "#7", **more: object) -> GalleryItem:
    shown = picture(handle).model_copy(update={"alt": "a red cup"})
    values = {"id": 12, "conversation_id": "c1", "conversation_title": "Café launch", "picture": shown}
    return GalleryItem.model_validate({**values, **more})


def test_no_id_is_given_twice_in_the_pane() -> None:
    ids = re.findall(r' id="([^"]+)"', gallery_html(WORDS))
    assert len(ids) == len(set(ids)) == 5


def test_a_cell_says_what_the_picture_is_and_where_it_belongs() -> None:
    (html,) = [cells_html(WORDS, [item()])]
    assert 'alt="Picture #7: a red cup (Café launch)"' in html
    assert 'src="media/c1/7?size=320" ' in html
    assert 'loading="lazy" decoding="async"' in html
    assert 'data-id="12" data-conversation="c1" data-handle="#7"' in html


def test_a_star_and_tags_are_told() -> None:
    html = cells_html(WORDS, [item(is_starred=True, tags=("poster", "客户 A"))])
    assert 'aria-pressed="true"' in html
    assert 'data-tags="poster\n客户 A"' in html
    assert 'aria-pressed="false"' in cells_html(WORDS, [item()])


def test_a_conversation_without_a_title_is_called_a_new_one() -> None:
    assert "(New conversation)" in cells_html(WORDS, [item(conversation_title="")])


def test_every_cell_has_its_own_picture() -> None:
    html = cells_html(WORDS, [item("#1"), item("#2", id=13, conversation_id="c2")])
    assert re.findall(r'src="([^"]+)"', html) == ["media/c1/1?size=320", "media/c2/2?size=320"]


def test_what_people_and_models_wrote_makes_no_markup() -> None:
    hostile = '"><script>alert(1)</script><b data-gal="delete" x="'
    shown = picture("#7").model_copy(update={"alt": hostile})
    match = GalleryMatch(found_by=(FoundBy.WORDS,), place="prompt", excerpt=hostile)
    html = cells_html(WORDS, [item(picture=shown, conversation_title=hostile, tags=(hostile,), match=match)])
    assert "<script" not in html
    assert "<b " not in html
    assert len(re.findall(r'(?<!&quot;) data-gal="', html)) == 3
    assert hostile in unescape(html)


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        (GalleryMatch(found_by=(FoundBy.WORDS,), place="tag", excerpt="poster"), "Tag: “poster”"),
        (GalleryMatch(found_by=(FoundBy.WORDS,), place="prompt", excerpt="a  red\ncup"), "Prompt: “a red cup”"),
        (GalleryMatch(found_by=(FoundBy.MEANING,)), "Means about the same"),
        (GalleryMatch(found_by=(FoundBy.LOOKS,), similarity=0.874), "87 % alike"),
        (GalleryMatch(found_by=()), ""),
    ],
    ids=["tag", "prompt", "meaning", "looks", "nothing"],
)
def test_a_search_says_why_it_found_a_picture(match: GalleryMatch, sentence: str) -> None:
    assert found_why(WORDS, match) == sentence
    assert (f". {sentence}" in cells_html(WORDS, [item(match=match)])) == bool(sentence)
