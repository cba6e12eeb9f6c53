"""What the page's parts answer when they are pressed, each person on a studio that others share, over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.golden.reading import elements, read
from tests.page import PageProcess
from tests.support.cases import each_case
from tests.webui.hostile import Stranger

GONE = "no longer exists"
# Not of the documentation's addresses, which are not public.
_ADDRESSES = (f"93.185.{high}.{low}" for high in range(216, 220) for low in range(1, 255))


class Person(Stranger):
    """Somebody with a cookie and conversations of their own."""

    def says(self, *words: str, conversation: str = "", ratio: str = "auto") -> str:
        """Send words, one after the other, in a new conversation unless one is given; return its id."""
        for text in words:
            send = self.number("send")
            data = self.plain(send)
            inputs = next(one["inputs"] for one in self.config["dependencies"] if one["id"] == send)
            names = [self.names[one] for one in inputs]
            data[names.index("box")] = {"text": text, "files": []}
            data[names.index("aspect-ratio")] = ratio
            data[names.index("conversation")] = conversation
            assert self.done(send, data)[-1]["success"]
            conversation = conversation or self.rows()[0]
        return conversation

    def look(self, act: str = "look", text: str = "") -> str:
        """Return the rail's rows after a look at them."""
        return str(self.press("rail-bus", {"act": act, "text": text})["rail-rows"])

    def rows(self, act: str = "look", text: str = "") -> list[str]:
        """Return the ids of the conversations that the rail lists."""
        listed = (one.get("data-id") for one in elements(self.look(act, text), "//*[@data-id]"))
        return list(dict.fromkeys(one for one in listed if one))

    def changes(self, act: str, key: str, current: str = "", **more: Any) -> dict[str, Any]:
        """Return what a change of a conversation changed on the page."""
        return self.press("rail-bus", {"act": act, "id": key, **more}, "submit", conversation=current)

    def shown(self, conversation: str) -> str:
        """Return the page as it comes for a conversation."""
        return self.http.get(f"/?c={conversation}").text

    def tree(self, conversation: str, act: str = "show", arg: str = "", **on_page: str) -> dict[str, Any]:
        opened = on_page.pop("opened", "")
        return self.press("tree-bus", {"act": act, "arg": arg, "opened": opened}, conversation=conversation, **on_page)

    def preset(self, act: str, key: str = "", name: str = "", **chips: Any) -> dict[str, Any]:
        return self.press("presets-bus", {"act": act, "id": key, "name": name}, **chips)

    def presets(self) -> list[str]:
        return [one.get("data-id") for one in elements(self.preset("list")["presets"], "//li[@data-id]")]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    chosen = {"AIVISTA_BEHIND_PROXY": "on"}
    with PageProcess("--host", "0.0.0.0", home=tmp_path_factory.mktemp("home"), environment=chosen) as page:
        yield page
        assert "Traceback" not in page.errors


@pytest.fixture
def person(public: PageProcess) -> Iterator[Callable[..., Person]]:
    came: list[Person] = []

    def come(**headers: str) -> Person:
        came.append(Person(public.url, headers={"X-Forwarded-For": next(_ADDRESSES), **headers}))
        return came[-1]

    yield come
    for one in came:
        one.close()


@pytest.fixture
def ann(person: Callable[..., Person]) -> Person:
    return person()


@pytest.fixture
def ben(person: Callable[..., Person]) -> Person:
    return person()


def words(html: Any) -> str:
    return "\n".join(read(str(html)))


# The rail


def test_a_search_lasts_until_it_is_emptied_and_finds_nothing_of_anothers(ann: Person, ben: Person) -> None:
    ann.says("draw a red fox")
    ann.says("draw a blue whale")
    assert "<mark>whale</mark>" in ann.look("find", " whale ")
    assert "<mark>whale</mark>" in ann.look()
    assert len(ann.rows("find", "")) == 2
    assert "will be listed" in ben.look()
    assert "Nothing holds “whale”" in ben.look("find", "whale")


def test_a_name_is_kept_and_shown_above_the_open_conversation_and_one_that_says_nothing_is_refused(ann: Person) -> None:
    key = ann.says("hello")
    changed = ann.changes("rename", key, key, text="Greetings")
    assert "Greetings" in words(changed["top"])
    assert "Greetings" in words(changed["rail-rows"])
    assert "top" not in ann.changes("rename", key, text="Others")
    assert elements(ann.changes("rename", key, text=" ")["rail-said"], "//*[@role='alert']")
    assert "Others" in words(ann.look())


def test_pinned_ones_stand_first_until_they_are_unpinned(ann: Person) -> None:
    key = ann.says("hello")
    ann.says("good evening")
    assert "Pinned" in words(ann.changes("pin", key, key)["rail-rows"])
    assert ann.rows()[0] == key
    assert "Pinned" not in words(ann.changes("unpin", key)["rail-rows"])


def test_what_is_deleted_comes_back_from_where_it_was_open_or_from_the_trash_until_it_goes_for_good(
    ann: Person, ben: Person
) -> None:
    stays, first, second = (ann.says(text) for text in ("hello there", "good morning", "good evening"))
    changed = ann.changes("delete", first, first)
    assert changed["conversation"] == ""
    back = ann.changes("undo", first, is_open=True)
    assert (back["conversation"], "is back" in words(back["rail-said"])) == (first, True)
    for key in (first, second):
        assert "chat" not in ann.changes("delete", key, stays), "another one that is open stays as it is"
    assert ann.rows("trash") == [second, first]
    assert words(ann.look("trash")).count("Deleted today · 30 days left") == 2
    assert "The trash is empty" in words(ben.look("trash"))
    assert "is back" in words(ann.changes("restore", first)["rail-said"])
    assert "The trash is empty" in words(ann.changes("forget", second)["rail-rows"])
    assert set(ann.rows("list")) == {stays, first}
    ann.changes("delete", first)
    assert "The trash is empty" in words(ann.changes("empty", "")["rail-said"])
    assert "<mark>hello</mark>" in ann.look("find", "hello"), "a search leaves the trash"


def test_a_copy_is_opened_under_a_name_that_says_so_with_the_chips_it_was_made_with(ann: Person) -> None:
    key = ann.says("draw a fox", ratio="16:9")
    changed = ann.changes("duplicate", key, key)
    assert changed["aspect-ratio"] == "16:9"
    assert changed["conversation"] not in {key, ""}
    assert "(copy)" in words(changed["top"])
    ann.changes("rename", key, text="n" * 120)
    title = elements(ann.changes("duplicate", key, key)["top"], "//h1")[0].text_content().strip()
    assert (len(title), title.endswith("(copy)")) == (120, True)


def test_nobody_changes_what_is_somebody_elses(ann: Person, ben: Person) -> None:
    key = ann.says("hello")
    for act in ("rename", "pin", "duplicate", "delete", "undo", "restore", "forget"):
        assert GONE in words(ben.changes(act, key, text="mine")["rail-said"]), act
    turn = turns(ann, key)[0]
    assert ben.press("branch-bus", {"act": "say", "turn": turn, "text": "x"}, conversation=key) == {}
    assert "hello" in words(ann.look())
    assert turns(ann, key) == [turn]


# Words said otherwise


def turns(person: Person, conversation: str) -> list[str]:
    """Return the ids of the turns that the page shows."""
    return list(dict.fromkeys(re.findall(r'said-form\\" data-turn=\\"(\w+)', spelt(person.shown(conversation)))))


def spelt(document: str) -> str:
    """Return a page whose configuration is spelt in plain signs."""
    return re.sub(r"\\u00([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), document)


def test_words_said_otherwise_make_a_version_and_the_first_is_a_step_away(ann: Person) -> None:
    key = ann.says("draw a red fox", "make it darker")[:]
    second = turns(ann, key)[1]
    ann.press("branch-bus", {"act": "say", "turn": second, "text": "make it brighter"}, conversation=key)
    assert "make it brighter" in ann.shown(key)
    assert "make it darker" not in ann.shown(key)
    back = ann.press("branch-bus", {"act": "switch", "turn": second}, conversation=key)
    assert "1 / 2" in json.dumps(back["chat"])
    assert turns(ann, key)[1] == second


# Presets


def test_presets_are_saved_taken_up_renamed_deleted_and_brought_back(ann: Person) -> None:
    wide: dict[str, Any] = {"aspect_ratio": "21:9", "count": "2", "review": "always", "confirm": True}
    assert "No presets yet" in words(ann.preset("list")["presets"])
    assert "“Wide” is saved." in words(ann.preset("save", name="Wide", **wide)["presets"])
    shown = words(ann.preset("list")["presets"])
    for part in ("Wide", "21:9", "×2", "Ask before painting"):
        assert part in shown
    [key] = ann.presets()
    taken = ann.preset("use", key)
    assert [taken[chip] for chip in ("aspect-ratio", "count", "confirm")] == ["21:9", "2", True]
    assert "“wide” now holds these settings." in words(ann.preset("save", name="wide")["presets"])
    assert "Everything automatic" in words(ann.preset("list")["presets"])
    assert "Film" in words(ann.preset("rename", key, "Film")["presets"])
    assert "“Film” is deleted." in words(ann.preset("delete", key)["presets"])
    assert ann.presets() == []
    ann.preset("undo")
    ann.preset("undo")
    assert ann.presets() == [key]


def test_what_cannot_be_done_with_a_preset_is_told_in_one_sentence(ann: Person, ben: Person) -> None:
    ann.preset("save", name="Wide")
    ann.preset("save", name="Tall")
    first, _ = ann.presets()
    refused = ann.preset("rename", first, "tall")["presets"]
    assert "already" in words(refused)
    assert [one.get("data-id") for one in elements(refused, "//li[@data-typed='tall']")] == [first], "to be typed on"
    assert "A preset needs a name of 1 to 60 characters." in words(ann.preset("save", name=" ")["presets"])
    assert ben.presets() == []
    for act in ("use", "rename", "delete"):
        assert "This preset is not there any more." in words(ben.preset(act, first, "Mine")["presets"])
    assert len(ann.presets()) == 2
    assert elements(ann.preset("save", name='<img src=x onerror="x">')["presets"], "//img") == []


# The tree and the gallery


def nodes(updates: dict[str, Any]) -> dict[str, Any]:
    """Return the pictures of the tree by handle."""
    return {one.get("data-handle"): one for one in elements(updates["tr-pane"], "//*[@data-handle and @data-parents]")}


def gallery(person: Person) -> dict[str, int]:
    """Return the gallery's ids of a person's pictures by handle, oldest first; of one handle the newest."""
    cells = elements(person.http.get("/aivista/gallery/page").json()["cells"], "//*[@data-id and @data-handle]")
    return {one.get("data-handle"): int(one.get("data-id")) for one in reversed(cells)}


def delete(person: Person, *ids: int) -> None:
    body = {"act": "delete", "ids": ids}
    answer = person.http.post("/aivista/gallery/change", json=body, headers={"Origin": person.url})
    assert answer.status_code == 200, answer.text


def test_a_deleted_picture_between_two_others_stands_in_the_tree_without_its_picture(ann: Person, ben: Person) -> None:
    key = ann.says("draw a red fox", "make it darker", "make it brighter", "draw a boat")
    delete(ann, gallery(ann)["#1b"])
    shown = nodes(ann.tree(key))
    assert set(shown) == {"#1", "#1b", "#1c", "#2"}
    assert (shown["#1c"].get("data-parents"), shown["#1b"].get("data-parents")) == ("#1b", "#1")
    assert [handle for handle, one in shown.items() if not one.xpath(".//img")] == ["#1b"]
    assert shown["#1b"].xpath(".//button[@disabled]")
    assert "Picture #1b was deleted" in words(ann.tree(key, "edit", "#1b")["tr-note"])
    assert ann.tree(key, "ask", "#1b") == {}
    assert "the picture made from it" in words(ann.tree(key, "ask", "#1")["tr-note"]), "a ghost is not counted"
    ann.tree(key, "delete", "#1")
    assert set(nodes(ann.tree(key))) == {"#2"}
    ann.tree(key, "undo")
    assert set(nodes(ann.tree(key))) == {"#1", "#1b", "#1c", "#2"}
    assert nodes(ben.tree(key)) == {}


def test_what_is_deleted_in_the_tree_leaves_the_thread_the_stage_and_the_composer(ann: Person) -> None:
    key = ann.says("draw a red fox", "make it darker")
    changed = ann.tree(key, "delete", "#1b", opened="#1b", editing="#1b")
    assert changed["editing"] == ""
    assert "No picture is open" in words(changed["canvas"])
    assert "/1b?size" not in json.dumps(changed["chat"])
    back = ann.tree(key, "undo", opened="#1", editing="#1")
    assert "/1b?size" in json.dumps(back["chat"])
    assert not {"canvas", "editing"} & back.keys()


def test_pictures_of_the_gallery_are_opened_compared_and_used_here_or_elsewhere(ann: Person, ben: Person) -> None:
    here = ann.says("draw a red fox", "draw a boat")
    ids = list(gallery(ann).values())
    there = ann.says("draw a whale")
    ids.append(max(gallery(ann).values()))

    def press(act: str, *which: int, conversation: str = here, **more: Any) -> dict[str, Any]:
        told = {"act": act, "ids": [ids[one] for one in which], "opened": more.pop("opened", "")}
        return ann.press("gal-bus", told, conversation=conversation, **more)

    assert press("open", 1).keys() == {"canvas"}
    assert press("open", 2)["conversation"] == there
    assert "#2" in words(press("compare", 1, 0)["canvas"])
    assert press("compare", 0, 1, conversation=there)["conversation"] == here
    for which in ((0,), (0, 2), (0, 1, 2), (0, 0)):
        assert press("compare", *which) == {}
    joined = press("reference", 0, 1, editing="#2")
    assert (joined["references"], joined["editing"]) == ("#1", "#2")
    delete(ann, ids[1])
    gone = press("changed", 1, opened="#2", editing="#2")
    assert "No picture is open" in words(gone["canvas"])
    assert (gone["editing"], "/2?size" in json.dumps(gone["chat"])) == ("", False)
    assert press("changed", 1, opened="#1", editing="#1").keys() == {"chat", "top", "ctx-next"}
    assert ben.press("gal-bus", {"act": "open", "ids": ids[:1], "opened": ""}, conversation=here) == {}


# Drafts and wishes


def test_a_draft_brings_back_its_chips_and_the_pictures_that_are_still_there(ann: Person) -> None:
    chips = {"aspect_ratio": "21:9", "confirm": True, "review": "off"}
    taken = ann.press("draft-bus", {"conversation": "", "chips": chips}, conversation="")
    assert [taken[one] for one in ("aspect-ratio", "confirm", "review")] == ["21:9", True, "off"]
    key = ann.says("draw a red fox", "draw a cup", "draw a boat")
    draft = {"conversation": key, "editing": "#1", "references": ["#2", "#3", "#9", "#1"]}
    back = ann.press("draft-bus", {**draft, "roles": '{"#2": "style", "#9": "face"}'}, conversation=key)
    assert (back["editing"], back["references"], back["roles"]) == ("#1", "#2 #3", '{"#2": "style"}')
    assert "aspect-ratio" not in back, "chips that were not kept stay as they are"
    assert ann.press("draft-bus", {"conversation": key, "editing": "#8", "references": ["#9"]}, conversation=key) == {}
    assert "aspect-ratio" not in ann.press("draft-bus", {"conversation": "", "chips": chips}, conversation=key)


def test_a_wish_is_written_out_for_its_person_and_nothing_is_sent(ann: Person, person: Callable[..., Person]) -> None:
    def written(one: Person, text: str, **marked: str) -> str:
        return words(one.press("wish-bus", {"ticket": "t1", "text": text}, **marked)["fuller"])

    assert "Draw a red fox, " in written(ann, "Draw a red fox")
    assert "without a model" in written(ann, "Draw a red fox")
    assert "only wishes for a new picture" in written(ann, "make it darker", editing="#1")
    assert "只能扩写新图片" in written(person(**{"Accept-Language": "zh-CN"}), "暗一些", editing="#1")
    evil = ann.press("wish-bus", {"ticket": '"><script>', "text": 'a "><script>x</script>'})["fuller"]
    assert elements(evil, "//script") == []
    assert ann.rows() == []


NONSENSE: dict[str, tuple[Any, ...]] = {
    "rail-bus": (None, "x", {"act": "find", "text": 5}, {"act": "x", "more": 1}, {"act": "d" * 9, "id": "9" * 65}),
    "branch-bus": ({"act": "say"}, {"act": "say", "turn": "t", "text": ["x"]}),
    "gal-bus": (None, {}, {"act": "open", "ids": []}, {"act": "open", "ids": ["x"]}, {"act": "burn", "ids": [7]}),
    "tree-bus": (None, 3, {"act": 1}, {"act": "show", "arg": "#" * 65}),
    "presets-bus": (None, 3, [], {}, {"act": 1}, {"act": "save", "name": "x" * 401}),
    "draft-bus": (None, 1, "x", {"references": ["#1"] * 50}, {"roles": "x" * 3000}, {"chips": {"image_model": "x"}}),
    "wish-bus": (None, {}, {"ticket": "t"}, {"ticket": "t" * 41, "text": ""}, {"ticket": "t", "text": 1}),
}


@each_case(("part", "told"), [(part, told) for part, every in NONSENSE.items() for told in every])
def test_what_the_page_never_sends_changes_nothing(ann: Person, part: str, told: Any) -> None:
    assert ann.press(part, told) == {}
