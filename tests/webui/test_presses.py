"""What the page's parts answer when they are pressed, each person on a studio that others share, over HTTP."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from tests.adapters.webui import LANGUAGES, words_of
from tests.golden import everything
from tests.golden.reading import boxes, elements
from tests.page import PageProcess
from tests.support.cases import each_case
from tests.support.tables import filled, table
from tests.webui.people import Person, words
from tests.webui.test_addresses import change

# The rail


def test_names_pins_and_copies_are_kept_and_shown_above_the_open_conversation(ann: Person) -> None:
    key = ann.says("draw a fox", aspect_ratio="16:9")
    ann.says("good evening")
    changed = ann.changes("rename", key, key, text="Greetings")
    assert "Greetings" in words(changed["rail-list"])
    told = json.loads(changed["events"])["conversation"]
    assert (told["id"], told["title"], told["pinned"]) == (key, "Greetings", False)
    assert told["version"] == ann.http.get(f"/aivista/version/{key}").json()["version"]
    ann.changes("rename", key, text="Others")
    assert elements(ann.changes("rename", key, text=" ")["toast"], "//*[@role='alert']")
    assert "Others" in words(ann.look())
    assert "Pinned" in words(ann.changes("pin", key, key)["rail-list"])
    assert ann.rows()[0] == key
    assert "Pinned" not in words(ann.changes("unpin", key)["rail-list"])
    copy = ann.changes("duplicate", key, key)
    assert (copy["aspect-ratio"], "(copy)" in words(copy["top"])) == ("16:9", True)
    assert copy["conversation"] not in {key, ""}
    ann.changes("rename", key, text="n" * 120)
    title = elements(ann.changes("duplicate", key, key)["top"], "//h1")[0].text_content().strip()
    assert (len(title), title.endswith("(copy)")) == (120, True)


def test_what_is_deleted_comes_back_until_it_goes_for_good(ann: Person, ben: Person) -> None:
    stays, first, second = (ann.says(text) for text in ("hello there", "good morning", "good evening"))
    changed = ann.changes("delete", first, first)
    assert changed["conversation"] == ""
    [undo] = elements(changed["toast"], "//button[@data-action='conversations.restore']")
    told = json.loads(undo.get("data-args"))
    back = ann.changes("restore", told.pop("id"), **told)
    assert (back["conversation"], "is back" in words(back["toast"])) == (first, True)
    for key in (first, second):
        assert "thread" not in ann.changes("delete", key, stays), "another one that is open stays as it is"
    assert ann.rows(is_trash=True) == [second, first]
    assert words(ann.look(is_trash=True)).count("Deleted today · 30 days left") == 2
    assert "The trash is empty" in words(ben.look(is_trash=True))
    assert "is back" in words(ann.changes("restore", first)["toast"])
    assert "The trash is empty" in words(ann.changes("forget", second, is_trash=True)["rail-list"])
    assert set(ann.rows()) == {stays, first}
    ann.changes("delete", first)
    assert "The trash is empty" in words(ann.act("conversations.empty")["toast"])
    assert "<mark>hello</mark>" in ann.look(" hello ")
    assert ann.rows() == [stays]
    assert "will be listed" in ben.look()
    assert "No conversations match “hello”" in ben.look("hello")


def test_nobody_changes_what_is_somebody_elses(ann: Person, ben: Person) -> None:
    key = ann.says("hello")
    for act in ("rename", "pin", "duplicate", "delete", "restore", "forget"):
        more = {"text": "mine"} if act == "rename" else {}
        assert "no longer exists" in words(ben.changes(act, key, **more)["toast"]), act
    turn = turns(ann, key)[0]
    assert ben.ask("page.edit_message", key, turn=turn, text="x") == {}
    assert "hello" in words(ann.look())
    assert turns(ann, key) == [turn]


# Words said otherwise


def turns(person: Person, conversation: str) -> list[str]:
    """Return the ids of the turns that the page shows."""
    return list(dict.fromkeys(re.findall(r'said-form" data-turn="(\w+)', person.shown(conversation))))


def test_words_said_otherwise_make_a_version_and_enter_pressed_twice_sends_once(ann: Person) -> None:
    send = ann.number("send")
    data = [{"text": "draw a red fox", "files": []}, '{"request": "one press", "begun": "one page"}']
    answers = "".join(ann.join(send, data).json()["data"][0] for _ in range(2))
    [begun] = set(re.findall(r'"conversation":"(\w+)"', answers))
    ann.follow(begun)
    [key] = ann.rows()
    assert len(turns(ann, key)) == 1
    # Its page may not have heard yet that the conversation has begun.
    again = [{"text": "draw a red cup", "files": []}, '{"request": "another press", "begun": "one page"}']
    assert begun in ann.join(send, again).json()["data"][0]
    ann.follow(begun)
    assert (ann.rows(), len(turns(ann, key))) == ([key], 2)
    ann.says("make it darker", "draw a red fox", conversation=key)
    [_, _, second, _] = turns(ann, key)
    ann.ask("page.edit_message", key, turn=second, text="make it brighter")
    assert "make it brighter" in ann.shown(key)
    assert "make it darker" not in ann.shown(key)
    assert "1 / 2" in json.dumps(ann.press("switch", second, key)["thread"])
    assert turns(ann, key)[2] == second


def test_a_cross_at_the_picture_that_is_edited_has_the_next_words_make_a_new_one(ann: Person) -> None:
    key = ann.says("draw a red fox")
    away = ann.press("edit", "none", key)
    assert (away["editing"], words(away["ctx"])) == ("none", "New picture [Edit the last picture again]")
    back = ann.press("drop", "none", key, editing="none")
    assert (back["editing"], words(back["ctx"])) == ("", "")
    ann.says("make it darker", conversation=key, editing="none")
    assert "#1b" not in ann.shown(key)


def test_what_can_be_done_with_an_edit_of_a_part_is_refused_for_another_picture(ann: Person) -> None:
    key, part = ann.says("draw a red fox", "make it darker"), "was not made by changing a part of a picture"
    said = {"keep_only": "is the same as the picture", "keep_transparency": "lost no transparency"}
    for act in ("grow_mask", "keep_edit", "discard_edit", *said):
        assert f"#1b {said.get(act, part)}" in words(ann.press(act, "#1b", key)["toast"])


def test_a_button_of_a_model_sets_it_and_what_no_button_says_changes_nothing(ann: Person) -> None:
    assert ann.press("set", "aspect_ratio 16:9")["aspect-ratio"] == "16:9"
    for wrong in ("image_model nonsense", "nothing x", "number_of_images 99", ""):
        assert "aspect-ratio" not in ann.press("set", wrong), wrong
    assert ann.press("reset", aspect_ratio="16:9")["aspect-ratio"] == "auto"


# Presets


def test_presets_are_saved_taken_up_renamed_deleted_and_brought_back(ann: Person) -> None:
    wide = {"aspect_ratio": "21:9", "number_of_images": "2", "review": "always", "confirm": True}
    assert "No presets yet" in words(ann.act("presets.show", is_begun=False)["presets"])
    assert "“Wide” is saved." in words(ann.preset("save", name="Wide", settings=wide))
    shown = words(ann.preset("show", is_begun=True))
    for part in ("Wide", "21:9", "×2", "Ask before painting"):
        assert part in shown
    [key] = ann.presets()
    taken = ann.press("use_preset", key)
    assert [taken[chip] for chip in ("aspect-ratio", "count", "confirm")] == ["21:9", "2", True]
    assert "“wide” is updated." in words(ann.preset("save", name="wide", settings={}))
    assert "Everything automatic" in words(ann.preset("show", is_begun=True))
    assert "Film" in words(ann.preset("rename", id=key, name="Film"))
    deleted = ann.preset("delete", id=key)
    assert "“Film” is deleted." in words(deleted)
    assert ann.presets() == []
    [undo] = elements(deleted, "//button[@data-args]")
    for _ in range(2):
        ann.act(str(undo.get("data-action")), **json.loads(str(undo.get("data-args"))))
    assert ann.presets() == [key]


def test_a_new_conversation_begins_with_the_settings_that_its_person_chose_for_all(ann: Person, ben: Person) -> None:
    key, wide = ann.says("hello"), {"aspect_ratio": "16:9", "count": "2"}
    assert "aspect-ratio" not in ann.press("open"), "without any, the settings stay as they are"
    kept = ann.ask("settings.defaults", key, wide, are_kept=True)
    assert "16:9 · ×2" in words(kept["set-new"])
    assert [ann.press("open")[one] for one in ("aspect-ratio", "count")] == ["16:9", "2"]
    assert ann.press("open", key)["aspect-ratio"] == "auto", "one that has begun has its own"
    assert "16:9 · ×2" in words(ann.act("settings.open")["settings"])
    assert "16:9 · ×2" not in words(ben.act("settings.open")["settings"])
    for path, shown in (("/?c=new", "16:9"), (f"/?c={key}", "auto")):
        document = ann.http.get(path).text
        [ratio] = re.findall(r'"elem_id": "aspect-ratio".*?"value": "([^"]+)"', document)
        assert ratio == shown
    assert "as they are" in words(ann.act("settings.defaults", are_kept=False)["set-new"])
    assert "aspect-ratio" not in ann.press("open")


def test_what_cannot_be_done_with_a_preset_is_told_in_one_sentence(ann: Person, ben: Person) -> None:
    ann.preset("save", name="Wide", settings={})
    ann.preset("save", name="Tall", settings={})
    first, _ = ann.presets()
    assert "already" in words(ann.preset("rename", id=first, name="tall"))
    assert "A preset needs a name of 1 to 60 characters." in words(ann.preset("save", name=" ", settings={}))
    unread = ann.act("presets.save", name="Wide", settings={"image_model": "nonsense"})
    assert "could not be read" in words(unread["toast"])
    assert ben.presets() == []
    assert "aspect-ratio" not in ben.press("use_preset", first)
    for act, more in (("rename", {"name": "Mine"}), ("delete", {})):
        assert "This preset is not there any more." in words(ben.preset(act, id=first, **more))
    assert len(ann.presets()) == 2
    assert elements(ann.preset("save", name='<img src=x onerror="x">', settings={}), "//img") == []


# The tree and the gallery


def nodes(updates: dict[str, Any]) -> dict[str, Any]:
    """Return the pictures of the tree by handle."""
    return {one.get("data-handle"): one for one in elements(updates["tr-pane"], "//*[@data-handle and @data-parents]")}


def gallery(person: Person) -> dict[str, int]:
    """Return the gallery's ids of a person's pictures by handle, oldest first; of one handle the newest."""
    cells = elements(person.gallery("show")["gal"], "//*[@data-id and @data-handle]")
    return {one.get("data-handle"): int(one.get("data-id")) for one in reversed(cells)}


def test_a_deleted_picture_is_a_ghost_in_the_tree_and_nowhere_else(ann: Person, ben: Person) -> None:
    key = ann.says("draw a red fox", "make it darker", "make it brighter", "draw a boat")
    change(ann, "delete", gallery(ann)["#1b"])
    shown = nodes(ann.tree(key))
    assert set(shown) == {"#1", "#1b", "#1c", "#2"}
    assert (shown["#1c"].get("data-parents"), shown["#1b"].get("data-parents")) == ("#1b", "#1")
    assert [handle for handle, one in shown.items() if not one.xpath(".//img")] == ["#1b"]
    assert shown["#1b"].xpath(".//button[@disabled]")
    assert ann.press("edit", "#1b", key).keys() == {"toast"}
    assert ann.tree(key, "ask", handle="#1b") == {}
    assert "the picture made from it" in words(ann.tree(key, "ask", handle="#1")["tr-note"]), "a ghost is not counted"
    deleted = ann.tree(key, "delete", handle="#1", opened="#1c")
    assert "2 pictures deleted" in words(deleted["toast"])
    assert json.loads(deleted["events"]) == {"pictures": True}
    changed = ann.press("changed", "#1c", key, editing="#1c")
    assert (changed["editing"], "No picture is open" in words(changed["canvas"])) == ("", True)
    assert "/1c?size" not in json.dumps(changed["thread"])
    assert set(nodes(ann.tree(key))) == {"#2"}
    [undo] = elements(deleted["toast"], "//button[@data-action='tree.undelete']")
    assert set(nodes(ann.tree(key, "undelete", **json.loads(undo.get("data-args"))))) == {"#1", "#1b", "#1c", "#2"}
    assert "/1c?size" in json.dumps(ann.press("changed", "#2", key, editing="#2")["thread"])
    assert set(nodes(ann.tree(key))) == {"#1", "#1b", "#1c", "#2"}
    assert nodes(ben.tree(key)) == {}


def test_pictures_of_the_gallery_are_opened_compared_and_used_here_or_elsewhere(ann: Person, ben: Person) -> None:
    here = ann.says("draw a red fox", "draw a boat")
    ids = list(gallery(ann).values())
    there = ann.says("draw a whale")
    ids.append(max(gallery(ann).values()))

    def press(act: str, *which: int, conversation: str = here, **more: Any) -> dict[str, Any]:
        return ann.ask(f"gallery.{act}", conversation, more, ids=[ids[one] for one in which])

    def changed(opened: str) -> dict[str, Any]:
        return ann.press("changed", opened, here, editing=opened)

    assert press("open", 1).keys() == {"canvas"}
    assert press("open", 2)["conversation"] == there
    assert "#2" in words(press("compare", 1, 0)["canvas"])
    assert press("compare", 0, 1, conversation=there)["conversation"] == here
    for which in ((0,), (0, 2), (0, 1, 2), (0, 0)):
        assert press("compare", *which).keys() == {"toast"}
    joined = press("reference", 0, 1, editing="#2")
    assert (joined["references"], joined["editing"]) == (["#1"], "#2")
    change(ann, "delete", ids[1])
    gone = changed("#2")
    assert "No picture is open" in words(gone["canvas"])
    assert (gone["editing"], "/2?size" in json.dumps(gone["thread"])) == ("", False)
    assert changed("#1").keys() == {"thread", "top", "conversation", "ctx-next"}
    assert ben.ask("gallery.open", here, ids=ids[:1]).keys() == {"toast"}


# Drafts and wishes


def test_a_draft_brings_back_its_chips_and_the_pictures_that_are_still_there(ann: Person) -> None:
    chips = {"aspect_ratio": "21:9", "confirm": True, "review": "off"}
    taken = ann.ask("page.restore", conversation="", chips=chips)
    assert [taken[one] for one in ("aspect-ratio", "confirm", "review")] == ["21:9", True, "off"]
    key = ann.says("draw a red fox", "draw a cup", "draw a boat")
    draft = {"conversation": key, "editing": "#1", "references": ["#2", "#3", "#9", "#1"]}
    back = ann.ask("page.restore", key, **draft, roles={"#2": "style", "#3": "x", "#9": "face"})
    assert (back["editing"], back["references"], back["roles"]) == ("#1", ["#2", "#3"], {"#2": "style"})
    assert "aspect-ratio" not in back, "chips that were not kept stay as they are"
    assert ann.ask("page.restore", key, conversation=key, editing="#8", references=["#9"]) == {}
    assert "aspect-ratio" not in ann.ask("page.restore", key, conversation="", chips=chips)


def test_a_setting_that_is_not_offered_counts_as_not_chosen(ann: Person) -> None:
    ann.press("try_example", "fox", text_model="of an older page", count="99", image_model="x")
    assert len(gallery(ann)) == 1


def test_a_wish_is_written_out_for_its_person_and_nothing_is_sent(ann: Person, person: Callable[..., Person]) -> None:
    def written(one: Person, text: str, **marked: str) -> str:
        return words(one.ask("page.expand", "", marked, text=text)["expanded"])

    assert "Draw a red fox, " in written(ann, "Draw a red fox")
    assert "without a model" in written(ann, "Draw a red fox")
    assert "Draw a red fox, " in written(ann, "Draw a red fox", editing="none")
    assert "only prompts for new pictures" in written(ann, "make it darker", editing="#1")
    assert "只能扩写新图片" in written(person(**{"Accept-Language": "zh-CN"}), "暗一些", editing="#1")
    evil = ann.ask("page.expand", text='a "><script>x</script>')["expanded"]
    assert elements(evil, "//script") == []
    assert ann.rows() == []


# The styles


MOON = {
    "name": "Haiku moon",
    "other_name": "俳句月色",
    "aliases": "moonlit haiku，月下俳句",
    "description": "A pale disc over reeds.",
    "phrases": "pale moon over reeds\none heron\n",
    "tags": "night, print",
}


def style(person: Person, act: str, **more: Any) -> dict[str, Any]:
    return person.act(f"styles.{act}", **more)


def said_of(changed: dict[str, Any]) -> str:
    """Return what the library says at a change."""
    return " ".join(words(changed["toast"]).split("\n"))


def listed(person: Person, query: str = "", family: str = "") -> list[str]:
    cards = style(person, "find", query=query, family=family)["sty-list"]
    return [one.get("data-id") for one in elements(cards, "//article[@data-id]")]


def test_a_style_is_written_found_changed_deleted_brought_back_and_handed_on(ann: Person, ben: Person) -> None:
    assert listed(ann, "ukiyo-e")[0] == "ukiyo-e"
    assert "ukiyo-e" not in listed(ann, "ukiyo-e", "3d")
    assert "“Haiku moon” is saved." in said_of(style(ann, "save", fields=MOON))
    [key] = listed(ann, family="mine")
    reasons = {"HAIKU": "Its name", "moonlit": "Also called “moonlit haiku”", "heron": "Adds “one heron”"}
    for query, why in (reasons | {"night": "Filed under “night”", "disc": "Matches the description"}).items():
        assert why in words(style(ann, "find", query=query, family="mine")["sty-list"])
    assert "pale moon over reeds\none heron" in style(ann, "form", id=key)["sty-form"]
    assert "“Haiku dusk” is saved." in said_of(style(ann, "save", id=key, fields=MOON | {"name": "Haiku dusk"}))
    deleted = style(ann, "delete", id=key)
    assert "“Haiku dusk” is deleted." in said_of(deleted)
    assert listed(ann, family="mine") == []
    [undo] = elements(deleted["toast"], "//button[@data-action]")
    assert undo.get("data-action") == "styles.restore"
    assert "“Haiku dusk” is back." in said_of(style(ann, "restore", **json.loads(undo.get("data-args"))))
    [key] = listed(ann, family="mine")
    data = json.loads(style(ann, "export")["events"])["save"]["text"]
    assert "1 style imported." in said_of(style(ben, "take", text=data))
    assert "pale moon over reeds\none heron" in style(ben, "form", id=listed(ben, family="mine")[0])["sty-form"]


def test_a_style_needs_one_language_and_its_letters_tell_which(ann: Person) -> None:
    style(ann, "save", fields={"name": "苔石", "description": "长满青苔的石头", "phrases": "mossy stone"})
    [key] = listed(ann, family="mine")
    [card] = elements(style(ann, "find", family="mine")["sty-list"], f"//article[@data-id='{key}']")
    assert card.findtext("p") == "长满青苔的石头"
    form = style(ann, "form", id=key)["sty-form"]
    named = {one.get("name"): one.get("value") for one in elements(form, "//input")}
    assert (named["name"], named["other_name"]) == ("苔石", "")
    style(ann, "save", id=key, fields={"name": "苔石", "other_name": "Moss", "phrases": "mossy stone"})
    named = {one.get("name"): one.get("value") for one in elements(style(ann, "form", id=key)["sty-form"], "//input")}
    assert (named["name"], named["other_name"]) == ("Moss", "苔石")


def test_a_style_is_shown_by_what_was_made_in_it_else_by_the_sample_in_its_look(ann: Person, ben: Person) -> None:
    def shown(person: Person) -> str:
        listed = style(person, "find", query="watercolour")["sty-list"]
        [image] = elements(listed, "//article[@data-id='watercolour']//img")
        return str(image.get("src"))

    assert shown(ann) == "aivista/styles/watercolour.webp"
    sample = ann.http.get(f"/{shown(ann)}")
    assert sample.headers["content-type"] == "image/webp"
    assert Image.open(io.BytesIO(sample.content)).size == (320, 213)
    assert ann.http.get("/aivista/styles/none.webp").status_code == 404
    key = ann.says("draw a fox in watercolour style")
    assert shown(ann) == f"media/{key}/1?size=480"
    assert shown(ben) == "aivista/styles/watercolour.webp"


def test_what_cannot_be_done_with_a_style_is_told_and_nothing_of_one_shows_to_another(
    ann: Person, ben: Person, person: Callable[..., Person]
) -> None:
    style(ann, "save", fields=MOON)
    [key] = listed(ann, family="mine")
    assert (listed(ben, family="mine"), key in listed(ben, "haiku moon")) == ([], False)
    for act, more in (("form", {}), ("delete", {}), ("save", {"fields": MOON})):
        for one, which in ((ben, key), (ann, "ink-wash")):
            changed = style(one, act, id=which, **more)
            assert list(changed) == ["toast"]
            assert words_of("en")["error.style_not_found"] in said_of(changed)
    assert "Phrases: there is none" in said_of(style(ann, "save", fields=MOON | {"phrases": " \n", "name": "Sun"}))
    long = json.dumps({"styles": [{"name": {"en": "Long"}, "phrases": ["x" * 241]}]})
    short = json.dumps({"styles": [{"name": {"en": "Fine style"}, "phrases": ["x"]}, {"name": {"en": "Bad style"}}]})
    chinese = person(**{"Accept-Language": "zh-CN"})
    for text, problem, in_chinese in (
        ("{", "the file is not JSON", "文件不是 JSON"),
        ("[]", "the file is not one that was exported here", "文件不是从这里导出的"),
        (" " * ((1 << 20) + 9), "the file is larger than 1 MB", "文件超过 1 MB"),
        (short, "style 2, Phrases: something is missing", "第 2 种风格，短语：缺少"),
        (long, "style 1, Phrases: it has more than 240 characters", "第 1 种风格，短语：超过 240 个字符"),
    ):
        assert problem in said_of(style(ann, "take", text=text))
        assert in_chinese in said_of(style(chinese, "take", text=text))
    assert listed(ann, family="mine") == [key]


# Examples and exact adjustments


@each_case("language", LANGUAGES)
def test_every_example_makes_a_picture_on_sketch_and_sliders_do_just_what_they_say(
    person: Callable[..., Person], language: str
) -> None:
    one, said = person(**{"Accept-Language": language}), {"brightness": 20, "contrast": -10, "saturation": 0}
    for name in ("fox", "poster", "city", "photo", "crop", "letters"):
        one.press("try_example", name, "")
    chips = elements(one.gallery("count")["gal-chips"], "//button/small")
    assert ([chip.text for chip in chips[::2]][:2], len(one.rows())) == (["9", "3"], 6)
    key = one.rows()[-1]
    told = {"handle": "#1", "warmth": 100, "sharpness": 35, **said}
    shown = json.dumps(one.press("panel_apply", json.dumps(told), key))
    assert "/1b?size" in shown
    for amount in ("20", "10", "100", "35"):
        assert amount in words(shown)
    assert one.press("try_example", "../fox", "") == {}


# The page as it comes


def test_a_page_comes_filled_for_its_visitor_also_for_one_who_comes_for_the_first_time(
    ann: Person, ben: Person, person: Callable[..., Person], public: PageProcess
) -> None:
    key = ann.says("draw a teapot")
    answer = ann.http.get("/", headers={"Accept-Encoding": "identity"})
    assert (answer.headers["cache-control"], int(answer.headers["content-length"])) == ("no-store", len(answer.content))
    shown = boxes(answer.text)
    assert all("teapot" in shown[part] for part in ("top", "rail-rows", "chat"))
    assert f'data-conversation="{key}"' in shown["top"]
    new = boxes(ann.http.get("/?c=new").text)
    assert ('data-conversation="new"' in new["top"], "teapot" in new["top"]) == (True, False)
    chinese = boxes(person(**{"Accept-Language": "zh-CN"}).http.get("/").text)
    for told, language in ((new, "en"), (chinese, "zh-CN")):
        assert words_of(language)["welcome.hello"] in told["welcome"]
    for path in ("/", f"/?c={key}"):
        assert "teapot" not in ben.http.get(path).text + httpx.get(f"{public.url}{path}", trust_env=False).text
    first = httpx.get(public.url, trust_env=False)
    assert words_of("en")["welcome.hello"] in boxes(first.text)["welcome"]
    [cookie] = first.headers.get_list("set-cookie")
    # What was shown there is what the cookie opens.
    stranger = {"Cookie": cookie.partition(";")[0]}
    asked = {"args": {"arg": key}}
    opened = httpx.post(f"{public.url}/aivista/act/page.open", json=asked, headers=stranger, trust_env=False)
    assert (opened.status_code, "teapot" in opened.text) == (200, False)
    assert httpx.post(f"{public.url}/aivista/act/page.open", json=asked, trust_env=False).status_code == 403


def test_the_page_is_packed_for_a_browser_that_can_unpack_it(ann: Person) -> None:
    plain, packed = (ann.http.get("/", headers={"Accept-Encoding": one}) for one in ("identity", "gzip"))
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(packed.headers["content-length"]) * 3 < len(plain.content)
    assert boxes(packed.text)["rail-head"] == boxes(plain.text)["rail-head"]


# What somebody wrote


def test_what_somebody_wrote_is_markup_nowhere(ann: Person) -> None:
    hostile = everything.HOSTILE
    key = ann.says(f"draw a fox {hostile}", f"draw a boat</script><!--<script> {hostile}")
    ann.changes("rename", key, key, text=hostile)
    [*_, turn] = turns(ann, key)
    ids = gallery(ann)
    change(ann, "tag", *ids.values(), name=hostile[:60], is_on=True)
    style(ann, "save", fields=dict.fromkeys(MOON, hostile) | {"name": f"{hostile[:40]} moon"})
    trace = ann.trace(key, "turn", turn=turn)
    numbers = [one.get("data-number") for one in elements(trace, "//*[@data-number]")]
    steps = [ann.trace(key, "step", turn=turn, number=one) for one in numbers]
    assert len(steps) > 1
    data = ann.http.get(f"/media/{key}/1?download=1").content
    told = ann.http.post("/aivista/recipe", content=data).json()
    lines = dict.fromkeys(("words", "prompt", "model", "model_label", "conversation_title"), hostile)
    sources = [{"title": hostile, "url": "javascript:alert(1)"}]
    file = json.dumps({"recipe": told["recipe"] | lines | {"sources": sources}})
    foreign = {"tool": "parameters", **dict.fromkeys(("prompt", "negative_prompt", "raw"), hostile)}
    told_of = (file, json.dumps({"foreign": foreign}))
    recipes = [ann.ask(f"recipes.{act}", told=one) for act in ("found", "read") for one in told_of]
    cells = ann.gallery("show", words="fox")["gal"]
    written = [ann.look(), ann.look(hostile[:200]), cells, ann.tree(key)["tr-pane"]]
    written += [style(ann, "find", query=hostile, family="mine")["sty-list"], trace + "".join(steps)]
    written += [str(one) for part in recipes for one in part.values()]
    written += [ann.preset("save", name=hostile[:60], settings={"negative_prompt": hostile})]
    for text in written:
        assert "hostile" in text
        assert elements(text, "//*[@class='hostile' or @onmouseover] | //script") == []
        assert elements(text, "//a[starts-with(@href, 'javascript')]") == []
    page = ann.shown(key)
    config = page.partition("window.gradio_config = ")[2].partition(";</script>")[0]
    assert not re.search(r"[<>&'\u2028\u2029]", config)
    assert "hostile" in page
    assert elements(page, "//body//*[@class='hostile' or @onmouseover]") == []


LONG: list[tuple[str, Any]] = [("recipes.read", {"told": " " * 300_000})]
LONG += [("page.restore", {"references": ["#1"] * 50}), ("page.restore", {"roles": {"#1": "x", **{"#" * 20: "x"}}})]
NONSENSE = [(action, args) for action, every in filled(table("nonsense"), {}).items() for args in every]


@each_case(("action", "args"), NONSENSE + LONG)
def test_what_the_page_never_sends_changes_nothing(ann: Person, action: str, args: Any) -> None:
    assert ann.ask(action, **args).keys() <= {"toast"}


def test_the_operator_alone_is_told_who_can_come_and_the_folder_of_the_data_is_shown_on_their_own_machine(
    ann: Person, operator: Person, tmp_path: Path
) -> None:
    told = words(operator.act("settings.open")["settings"])
    assert "Visitors\nOthers can open this studio." in told
    assert "They paint with keys of their own" in told
    assert "Visitors" not in words(ann.act("settings.open")["settings"])
    opener, opened, home = tmp_path / "opener", tmp_path / "opened", tmp_path / "home"
    opener.write_text(f'#!/bin/sh\n[ ! -e {opened} ] && echo "$1" > {opened}\n')
    opener.chmod(0o700)
    with PageProcess(home=home, environment={"BROWSER": str(opener)}) as own:
        one = Person(own.url)
        own_settings = words(one.act("settings.open")["settings"])
        assert str(home) in own_settings
        assert "Visitors\nNobody but you can open this studio" in own_settings
        assert one.ask("settings.open_folder") == {}
        assert opened.read_text() == f"{home.as_uri()}\n"
        assert "open it by its path" in words(one.ask("settings.open_folder")["toast"])
        one.close()
    assert str(home) not in words(ann.act("settings.open")["settings"])
    assert "toast" in ann.ask("settings.open_folder")


def test_the_thread_alone_says_which_version_is_shown_so_that_a_picture_that_comes_meanwhile_is_missed_by_nobody(
    ann: Person,
) -> None:
    key = ann.says("hello")
    version = ann.http.get(f"/aivista/version/{key}").json()["version"]
    assert f'id="thread" data-version="{version}"' in ann.http.get(f"/?c={key}").text
    assert ann.press("refresh", "", key)["thread"]["version"] == version
    around = ann.ask("page.models", key)
    assert ("version" in around["top"], "thread" in around) == (False, False)
