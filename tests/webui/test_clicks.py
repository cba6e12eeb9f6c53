"""What the page sends with a click is checked before it means anything."""

from __future__ import annotations

from tests.support.cases import each_case
from webui.clicks import MAX_REFERENCES, Click, read_click, read_references
from webui.tabs import Returned, Tab
from webui.turns import Fields, Sent, give_back, paint_back


@each_case("data", [None, "view", [], {}, {"act": 3}, {"act": "view", "arg": {}}, {"act": "x", "more": 1}])
def test_anything_but_an_act_and_its_argument_is_ignored(data: object) -> None:
    assert read_click(data) is None


def test_a_click_is_read() -> None:
    assert read_click({"act": "view", "arg": "#7b"}) == Click(act="view", arg="#7b")
    assert read_click({"act": "new"}) == Click(act="new")


def test_references_are_few_and_each_once() -> None:
    assert read_references("#1 #2  #1") == ("#1", "#2")
    assert read_references(None) == ()
    assert len(read_references(" ".join(f"#{n}" for n in range(99)))) == MAX_REFERENCES


def test_a_stream_that_lost_its_tab_may_not_write() -> None:
    tab = Tab()
    first = tab.take_over()
    assert tab.holds(first)
    tab.take_over()
    assert not tab.holds(first)


def test_words_come_back_once_and_never_over_new_ones() -> None:
    tab = Tab(returned=Returned("a fox", ["/tmp/x.png"]))
    assert give_back(tab, {"text": "", "files": []})["value"] == {"text": "a fox", "files": ["/tmp/x.png"]}
    assert "value" not in give_back(tab, None)
    tab.returned = Returned("a fox")
    assert "value" not in give_back(tab, {"text": "something new", "files": []})


def test_words_come_back_to_a_page_that_asks_before_it_has_emptied_its_box() -> None:
    tab = Tab(returned=Returned("a fox", ("/tmp/x.png",)))
    assert "value" not in give_back(tab, {"text": "a fox", "files": ["/tmp/y.png"]}), "another file is something new"
    tab.returned = Returned("a fox", ("/tmp/x.png",))
    assert give_back(tab, {"text": "a fox", "files": ["/tmp/x.png"]})["value"]["text"] == "a fox"


def test_what_was_painted_comes_back_unless_something_else_was_painted_meanwhile() -> None:
    sent = Sent("a fox", fields=Fields("mask", "expand"))
    for mask, expand in (("", ""), ("mask", "expand"), ("", "expand")):
        assert paint_back(Tab(returned=sent), mask, expand) == ("mask", "expand")
    for mask, expand in (("another", "expand"), ("", "another")):
        assert "mask" not in paint_back(Tab(returned=sent), mask, expand)
    assert "mask" not in paint_back(Tab(), "", "")


def test_enter_pressed_twice_sends_once_but_the_same_words_later_are_sent() -> None:
    tab = Tab()
    assert not tab.is_echo(Returned("a fox"), 10.0)
    assert tab.is_echo(Returned("a fox"), 10.2)
    assert not tab.is_echo(Returned("a wolf"), 10.3)
    assert not tab.is_echo(Returned("a wolf"), 20.0)
