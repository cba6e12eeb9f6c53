"""The page's own addresses over HTTP: the right answer for their owner, a refusal for others, headers that matter."""

from __future__ import annotations

import asyncio
import io
import json
import re
import zipfile
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from agent import Step, Steps, ThoughtLog
from tests.adapters.records import keep
from tests.adapters.webui import ALIVE, words_of
from tests.golden import everything
from tests.golden.reading import elements
from tests.page import PageProcess
from tests.support.cases import each_case
from tests.support.pixels import encoded
from tests.support.tables import table
from tests.support.waiting import wait_until
from tests.webui.people import Person, words

GALLERY, FILES, TRACE = "/aivista/gallery", "/aivista/files", "/aivista/trace"
ZIP = {"Content-Type": "application/zip"}
# What a browser makes nothing of but what its type says.
SANDBOX = {"content-security-policy": "default-src 'none'; sandbox", "x-content-type-options": "nosniff"}


def change(person: Person, act: str, *ids: int, **more: Any) -> str:
    """Do something with pictures of the gallery; return what is said of it."""
    return words(person.gallery(act, ids=ids, **more).get("toast", ""))


def cells(person: Person, at: str = "", **asked: Any) -> str:
    """Return the pictures on a page of the gallery, as the page shows them."""
    shown = person.gallery("show", at, **asked)
    return "".join(str(html) for name, html in shown.items() if name.startswith("gal-") or name == "gal")


def found(person: Person, at: str = "", **asked: Any) -> list[int]:
    """Return the ids of the pictures on a page of the gallery, the newest first."""
    return [int(one) for one in re.findall(r'data-id="(\d+)"', cells(person, at, **asked))]


def turns(trace: str) -> list[str]:
    """Return the ids of the turns of a trace, as the page shows it."""
    return [str(one.get("data-turn")) for one in elements(trace, "//*[@data-turn]")]


def unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def recipe(person: Person, data: bytes, **headers: str) -> httpx.Response:
    return person.http.post("/aivista/recipe", content=data, headers=headers)


def announce(person: Person, path: str, size: int, **headers: str) -> HTTPConnection:
    """Announce a body and send none of it."""
    where = urlsplit(person.url)
    connection = HTTPConnection(str(where.hostname), where.port, timeout=60)
    connection.putrequest("POST", path)
    cookie = f"aivista_session={person.http.cookies['aivista_session']}"
    for name, value in {"Content-Length": str(size), "Cookie": cookie, **person.headers, **headers}.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection


def at_last(ask: Callable[[], httpx.Response]) -> httpx.Response:
    """Ask again while what the same visitor was given just now is still being put away."""
    answers: list[httpx.Response] = []

    def is_taken() -> bool:
        answers.append(ask())
        return answers[-1].status_code != 429

    wait_until(is_taken)
    return answers[-1]


def pixels(data: bytes) -> bytes:
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGBA").tobytes()


# Whose they are


def test_every_address_answers_its_owner_and_nobody_else_nor_writes_for_them(
    ann: Person, ben: Person, person: Callable[..., Person], public: PageProcess
) -> None:
    key = ann.says("draw a red fox", "draw a cup")
    [*_, turn] = turns(ann.trace(key))
    [picture, _] = found(ann)
    ann.file(key, "create", name="a.md")
    ann.file(key, "save", name="a.md", text="hers")
    packed = ann.gallery("pack", ids=[picture])["gallery-packed"]
    paths = [f"{TRACE}/{key}{one}.json" for one in ("", "/{turn}", "/{turn}/1")]
    paths += [f"{FILES}/{key}/{one}" for one in ("raw?name=a.md", "zip")]
    paths += [f"/media/{key}/1{one}" for one in ("", "?size=200", "?size=%C2%B2", "?download=1")]
    paths += [f"/export/{key}", f"/aivista/report/{key}/{{turn}}.json", f"/{packed}"]
    paths += [f"/aivista/preview/{key}/1?warmth=5", f"/aivista/difference/{key}/1/2"]
    forged = httpx.Client(base_url=public.url, cookies={"aivista_session": "forged.0123"}, trust_env=False)
    nobody = httpx.Client(base_url=public.url, trust_env=False)
    for path in (one.format(turn=turn) for one in paths):
        for stranger, status in ((ben.http, 404), (forged, 403), (nobody, 403)):
            answer = stranger.get(path)
            assert answer.status_code == status, (path, answer.text[:200])
            assert not {"hers", "fox"} & set(re.findall(r"\w+", answer.text))
            assert answer.headers["content-type"].startswith(("text/plain", "application/json"))
        assert ann.http.get(path).status_code == 200, path
    assert found(ben) == []
    assert ben.gallery("show", similar_to=picture).keys() == {"toast"}
    for act, more in (
        ("star", {"is_on": True}),
        ("tag", {"is_on": True, "name": "x"}),
        ("delete", {}),
        ("undelete", {}),
    ):
        assert "These pictures no longer exist." in change(ben, act, picture, **more), act
    assert ben.gallery("pack", ids=[picture]).keys() == {"toast"}
    for act in ("show", "open", "create", "save", "compare", "rename", "delete", "run"):
        refused = ben.file(key, act, name="a.md", text="x", new_name="b.md")
        assert refused.keys() == {"toast"}, act
        assert "hers" not in str(refused), act
    chinese = person(**{"Accept-Language": "zh"}).http.get(f"{FILES}/{key}/zip")
    assert chinese.json()["error"] == "这段对话已不存在。请新建一个。"
    # Without a cookie nothing is written either.
    writes: dict[str, dict[str, Any]] = {
        "/aivista/act/gallery.delete": {"json": {"args": {"ids": [picture]}}},
        f"{FILES}/{key}/upload?name=a.md&replace=1": {"content": b"x"},
        "/aivista/act/files.delete": {"json": {"args": {"conversation": key, "name": "a.md"}}},
        "/import": {"content": b"", "headers": ZIP},
        "/aivista/recipe": {"content": b"x"},
    }
    assert [path for path, sent in writes.items() if nobody.post(path, **sent).status_code != 403] == []
    reads = (f"{GALLERY}/zip/x", "/export")
    assert [path for path in reads if nobody.get(path).status_code != 403] == []
    assert picture in found(ann)
    forged.close()
    nobody.close()


# The gallery


def test_pictures_are_found_starred_tagged_deleted_and_brought_back(ann: Person) -> None:
    here = ann.says("draw a red fox", aspect_ratio="1:1")
    ann.says("画一只蓝色的猫", aspect_ratio="16:9")
    there = ann.says("brighter", files=[encoded(Image.new("RGB", (64, 48), "teal"))])
    fox, cat, *_ = reversed(found(ann))
    [upload] = found(ann, source="uploaded")
    assert "1 picture found" in words(cells(ann, words="foxes"))
    assert (found(ann, words="foxes"), found(ann, words="蓝色的猫")) == ([fox], [cat])
    assert change(ann, "star", fox, is_on=True) == ""
    assert "1 picture tagged “client A”" in change(ann, "tag", fox, name=" client  A ", is_on=True)
    wanted: list[dict[str, Any]] = [{"is_starred": True}, {"tag": "client A"}, {"shape": "1:1"}]
    assert [found(ann, **one) for one in wanted] == [[fox]] * 3
    assert found(ann, here, here=True) == [fox]
    assert upload in found(ann, there, here=True)
    assert found(ann, day_from="2100-01-01") == []
    assert set(found(ann, day_from="2020-01-01", model="Sketch")) == {fox, cat}
    assert set(found(ann, when="1", zone="Asia/Shanghai")) >= {fox, cat}
    assert found(ann, when="2001-02", zone="no/where") == []
    counts = ann.gallery("count", here)
    for one in ("This conversation 1", "Uploaded 1", "Starred 1"):
        assert one in words(counts["gal-chips"])
    assert "client A 1" in words(counts["gal-more-in"])
    assert 'aria-pressed="true"' in ann.gallery("tags", ids=[fox])["gal-tag-options"]
    assert 'aria-pressed="mixed"' in ann.gallery("tags", ids=[fox, cat])["gal-tag-options"]
    change(ann, "tag", fox, name="client A", is_on=False)
    change(ann, "star", fox, is_on=False)
    assert [found(ann, is_starred=True), found(ann, tag="client A")] == [[], []]
    deleted = ann.gallery("delete", here, ids=[fox, cat])
    assert "2 pictures deleted" in words(deleted["toast"])
    assert (deleted["pictures"], deleted[f"gal-{cat}"]) == (True, None)
    assert not {fox, cat} & set(found(ann))
    [undo] = elements(deleted["toast"], "//button[@data-action='gallery.undelete']")
    back = ann.gallery("undelete", there, **json.loads(undo.get("data-args")))
    assert "2 pictures are back" in words(back["toast"])
    assert (back["gallery-back"], "pictures" in back) == (2, False)
    assert {fox, cat} < set(found(ann))


def test_pictures_are_packed_with_their_recipes_or_clean_and_fetched_once(ann: Person) -> None:
    key = ann.says("draw a red fox", "draw an owl")
    newest, first = found(ann)

    def packed(**wanted: Any) -> httpx.Response:
        address = ann.gallery("pack", **wanted)["gallery-packed"]
        assert ann.http.head(f"/{address}").status_code == 200
        answer = ann.http.get(f"/{address}")
        assert ann.http.get(f"/{address}").status_code == 404, "once"
        return answer

    answer = packed(ids=[first, newest])
    assert 'filename="aivista-pictures-2.zip"' in answer.headers["content-disposition"]
    files = unpacked(answer.content)
    assert list(files) == ["aivista-1-draw-a-red-fox.png", "aivista-2-draw-an-owl.png"]
    assert [recipe(ann, data).json()["recipe"]["handle"] for data in files.values()] == ["#1", "#2"]
    stored = ann.http.get(f"/media/{key}/1").content
    assert pixels(files["aivista-1-draw-a-red-fox.png"]) == pixels(stored)
    [(name, clean)] = unpacked(packed(ids=[first], clean=True).content).items()
    assert (name, recipe(ann, clean).status_code) == ("aivista-1-draw-a-red-fox-clean.png", 204)
    assert (pixels(clean), b"fox" in clean) == (pixels(stored), False)
    waiting = [ann.gallery("pack", ids=[first])["gallery-packed"] for _ in range(4)]
    # Of many, the last few wait.
    assert [ann.http.get(f"/{one}").status_code for one in waiting] == [404, 200, 200, 200]


def test_a_pack_that_was_cleaned_away_is_not_found(ann: Person, public: PageProcess) -> None:
    ann.says("draw a red fox")
    address = ann.gallery("pack", ids=found(ann))["gallery-packed"]
    for file in (public.home / "temporary").glob("*.zip"):
        file.unlink()
    assert ann.http.get(f"/{address}").status_code == 404


def test_a_picture_whose_file_is_gone_is_told(ann: Person, public: PageProcess) -> None:
    key = ann.says("draw a lighthouse at dusk", "draw a heron in reeds")
    stored = ann.http.get(f"/media/{key}/1").content
    for file in (public.home / "pictures").rglob("*"):
        if file.is_file() and file.read_bytes() == stored:
            file.unlink()
    assert "1 packed; #1 could not be read" in change(ann, "pack", *found(ann))
    assert ann.http.get(f"/aivista/preview/{key}/1?warmth=5").status_code == 404


@each_case(("act", "args"), table("page_requests")["no_changes"])
def test_a_change_that_cannot_be_read_is_refused_in_one_sentence(ann: Person, act: str, args: dict[str, Any]) -> None:
    answer = ann.http.post(f"/aivista/act/gallery.{act}", json={"args": args})
    [toast] = answer.json()["patches"]
    assert (answer.status_code, "This could not be read. Please reload the page." in toast["html"]) == (400, True)


# Files


def test_files_are_written_kept_from_others_changes_renamed_deleted_and_brought_back(ann: Person) -> None:
    key = ann.begins_a_file("notes/狐.py")
    assert ann.rows() == [key]
    assert "toast" in ann.file("", "create", name="../up")
    assert ann.rows() == [key], "for a name that is none no conversation is begun"
    for name in ("../up.md", "a//b", "x" * 200, "a\0b", "/etc/passwd"):
        for act in ("create", "save"):
            refused = ann.file(key, act, name=name, text="x")
            assert ('role="alert"' in refused["toast"], refused.get("files", {})) == (True, {}), name
    there = ann.file(key, "create", name="notes/狐.py")
    assert "notes/狐.py already exists." in there["toast"]

    saved = ann.file(key, "save", name="notes/狐.py", text="print('rot')\r\n", version=1)["files"]["fi-1"]
    assert saved.items() >= {"name": "notes/狐.py", "said": "by you, {time}", "language": "python"}.items()
    read = ann.file(key, "open", name="notes/狐.py")
    assert read["files"]["fi-1"] == saved | {"kind": "text", "text": "print('rot')\r\n"}
    assert "14 B" in read["fi-tree"]
    ann.file(key, "save", name="notes/狐.py", text="print(2)", version=saved["version"])
    mine = {"key": "fi-1", "name": "notes/狐.py", "version": saved["version"], "is_dirty": True}
    late = ann.file(key, "save", name="notes/狐.py", text="print(<3>)", version=saved["version"], docs=[mine])
    assert ("This file changed elsewhere" in late["fi-1-notice"], late["files"]) == (True, {})
    compared = ann.file(key, "compare", name="notes/狐.py", text="print(<3>)")["fi-1-diff"]
    assert "<del>− print(&lt;3&gt;)</del></p><p><ins>+ print(2)</ins>" in compared
    same = ann.file(key, "compare", name="notes/狐.py", text="print(2)")["fi-1-diff"]
    assert "Both versions are the same." in same
    theirs = ann.file(key, "open", name="notes/狐.py", docs=[mine])
    assert (theirs["files"]["fi-1"]["text"], theirs["fi-1-notice"]) == ("print(2)", None)
    answer = ann.http.get(f"{FILES}/{key}/raw", params={"name": "notes/狐.py", "download": "1"})
    assert answer.headers["content-disposition"] == "attachment; filename=\"_.py\"; filename*=UTF-8''%E7%8B%90.py"
    ann.file(key, "create", name="b.md")
    ann.file(key, "save", name="b.md", text="two")
    assert 'data-path="c/a.py"' in ann.file(key, "rename", name="notes/狐.py", new_name="c/a.py")["fi-tree"]
    refused = ann.file(key, "rename", name="b.md", new_name="C/A.py")
    assert ('role="alert"' in refused["toast"], 'data-path="b.md"' in refused["fi-tree"]) == (True, True)
    assert 'data-path="d/a.py"' in ann.file(key, "rename", name="c", new_name="d", is_folder=True)["fi-tree"]
    packed = ann.http.get(f"{FILES}/{key}/zip")
    assert unpacked(packed.content) == {"d/a.py": b"print(2)", "b.md": b"two"}
    assert packed.headers["content-disposition"].startswith('attachment; filename="aivista-files-')
    gone = {"key": "fi-2", "name": "b.md", "version": 2}
    deleted = ann.file(key, "delete", name="b.md")
    assert ("b.md deleted." in deleted["toast"], deleted["deleted"]["names"]) == (True, ["b.md"])
    assert ann.file(key, "show", docs=[gone])["files"] == {"fi-2": None}
    unsaved = ann.file(key, "show", docs=[gone | {"is_dirty": True}])
    assert ("was deleted" in unsaved["fi-2-notice"], unsaved["files"]) == (True, {})
    token = deleted["deleted"]["token"]
    assert "toast" in ann.file(ann.begins_a_file("x.md"), "undelete", token=token)
    assert ["toast" in ann.file(key, "undelete", token=token) for _ in range(2)] == [False, True]
    assert ann.file(key, "open", name="b.md")["files"]["fi-1"]["text"] == "two"


def test_of_a_deleted_folder_all_comes_back_but_what_has_its_name_taken_by_now(ann: Person) -> None:
    key = ann.begins_a_file("d/a.md")
    for name in ("d/b.md", "d/c.md"):
        ann.file(key, "create", name=name)
    token = ann.file(key, "delete", name="d", is_folder=True)["deleted"]["token"]
    ann.file(key, "create", name="d/b.md")
    ann.file(key, "save", name="d/b.md", text="new")
    back = ann.file(key, "undelete", token=token)
    assert back["undeleted"]["versions"].keys() == {"d/a.md", "d/c.md"}
    assert "d/b.md already exists." in back["toast"]
    assert unpacked(ann.http.get(f"{FILES}/{key}/zip").content) == {"d/a.md": b"", "d/b.md": b"new", "d/c.md": b""}


def test_a_file_that_is_refused_begins_no_conversation(ann: Person) -> None:
    answer = ann.http.post(f"{FILES}/new/upload", params={"name": "a.md"}, content=b"x" * (2 << 20))
    assert (answer.status_code, answer.json()["code"], ann.rows()) == (413, "file_too_large", [])


def test_files_are_shown_by_their_bytes_and_none_as_a_page(ann: Person) -> None:
    picture = encoded(Image.new("RGB", (4, 4)))

    def upload(name: str, data: bytes, key: str, **more: str) -> httpx.Response:
        return ann.http.post(f"{FILES}/{key}/upload", params={"name": name, **more}, content=data)

    key = upload("first.md", b"# one", "new").json()["conversation"]
    assert ann.rows() == [key]
    kinds: dict[str, tuple[bytes, str, str | None]] = {
        "photo.txt": (picture, "picture", "image/png"),
        "evil.png": (b"<script>alert(1)</script>", "text", None),
        "drawn.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>", "text", None),
        "zero.txt": (b"a\0b", "bytes", None),
        "half.txt": (b"\xff\xfe", "bytes", None),
        "long.txt": (b"<em>" * 100_000, "long", None),
    }
    for name, (data, kind, shown_as) in kinds.items():
        assert upload(name, data, key).status_code == 200
        opened = ann.file(key, "open", name=name)
        assert opened["files"]["fi-1"]["kind"] == kind, name
        assert "contains outside content" in opened["files"]["fi-1"]["said"]
        assert not elements(opened["fi-1"], "//script | //em")
        raw = ann.http.get(f"{FILES}/{key}/raw", params={"name": name})
        assert (raw.content, raw.headers["x-content-type-options"]) == (data, "nosniff")
        assert raw.headers["content-type"] == (shown_as or "application/octet-stream")
        assert raw.headers.get("content-disposition", "").startswith("attachment;") is (shown_as is None)
        assert "sandbox" in raw.headers["content-security-policy"]
    assert upload("zero.txt", b"\0two", key).json()["code"] == "file_changed"
    assert upload("zero.txt", b"\0two", key, replace="1").status_code == 200
    large = upload("big.bin", b"x" * ((1 << 20) + 5), key)
    told = "big.bin is larger than 1 MB. Please make it smaller, or split it."
    assert (large.status_code, large.json()["error"]) == (413, told)
    assert upload("full.bin", b"x" * (1 << 20), key).status_code == 200
    assert upload("../up", b"x", "new").status_code == 422
    # As JSON it is six times as long.
    assert "files" in ann.file(key, "save", name="first.md", text="\1" * (1 << 20))
    assert "first.md is larger than 1 MB" in ann.file(key, "save", name="first.md", text="x" * (1 << 20) + "y")["toast"]


def test_a_program_is_run_and_what_it_says_is_text(ann: Person) -> None:
    key = ann.begins_a_file("a.js")

    def run(text: str) -> str:
        assert "files" in ann.file(key, "save", name="a.js", text=text)
        return str(ann.file(key, "run", name="a.js")["fi-1-out"])

    said = run("console.log('<b>bold</b>'); writeFile('out/a.txt', 'x'); 6 * 7")
    assert "&lt;b&gt;bold&lt;/b&gt;" in said
    assert not elements(said, "//b[text()='bold']")
    assert 'data-name="out/a.txt"' in said
    assert ">\n42</pre>" in said
    assert ann.file(key, "open", name="out/a.txt")["files"]["fi-1"]["said"].startswith("by you")
    broken = run("1\nnull.x")
    assert "TypeError" in broken
    assert 'data-line="2"' in broken


@each_case("act", ["open", "create", "save", "compare", "rename", "delete", "undelete", "run"])
@each_case("args", [{}, {"name": 1}, {"name": "a", "key": "toast"}, {"name": "a", "text": "x", "more": 1}])
def test_what_cannot_be_read_of_files_is_one_sentence(ann: Person, act: str, args: dict[str, Any]) -> None:
    answer = ann.http.post(f"/aivista/act/files.{act}", json={"args": args})
    assert answer.status_code == 400
    [patch] = answer.json()["patches"]
    assert "This could not be read. Please reload the page." in patch["html"]


# The trace and the report


def test_a_turn_is_shown_also_when_a_model_read_what_is_no_address(operator: Person, public: PageProcess) -> None:
    line = ThoughtLog(step=Step.TOOL, parameters={"name": "read_url", "object": "http://[cafe"})
    scene = everything.Scene("look it up", (Steps(lines=(line,), seconds=1),))
    [key] = asyncio.run(keep(public.home, "local", list(everything.turns("odd", [scene]))))
    assert "http://[cafe" in operator.shown(key)


def test_turns_and_pictures_come_a_page_at_a_time_and_only_the_newest_turn_is_open(
    operator: Person, public: PageProcess
) -> None:
    # Of 23 turns and 69 pictures, and no steps are on record.
    make = everything.Shelf().picture
    scenes = [everything.Scene("draw", (), (make(), make(), make())) for _ in range(23)]
    [long] = asyncio.run(keep(public.home, "local", list(everything.turns("long", scenes))))
    first = operator.trace(long)
    assert turns(first) == [f"long-{number}" for number in range(4, 24)]
    [is_open] = [one.get("data-turn") for one in elements(first, "//*[@data-turn][@open]")]
    assert (is_open, first.count("No steps are on record")) == ("long-23", 1)
    [mark] = elements(first, "//*[@data-before]")
    before = operator.trace(long, "older", turn=mark.get("data-before"))
    assert (turns(before), elements(before, "//*[@data-before]")) == (["long-1", "long-2", "long-3"], [])
    assert turns(operator.trace(long, since="long-22")) == ["long-22", "long-23"]
    assert turns(operator.trace(long, since="of-another-branch")) == turns(first)
    shown = operator.gallery("show", long, here=True)
    [day] = (one.get("data-group") for one in elements(shown["gal"], "//section[@data-group]"))
    more = {"here": True, "after": shown["gallery"]["next"]}
    first_page, rest = found(operator, long, here=True), found(operator, long, **more)
    assert (len(first_page), len(rest), len({*first_page, *rest})) == (60, 9, 69)
    # A group that is there already gets its cells one by one.
    assert operator.gallery("show", long, **more).keys() == {f"gal-g-{day}", "gallery"}
    assert operator.gallery("show", long, **more, there=[day]).keys() == {*(f"gal-{one}" for one in rest), "gallery"}
    assert len(found(operator, long, here=True, count=300)) == 69


def test_a_turn_is_read_step_by_step_and_taken_away_and_a_report_of_it_says_what_was_said(ann: Person) -> None:
    key = ann.says("draw a red fox", "draw red fox 22")
    [first, last] = turns(ann.trace(key))
    numbers = re.findall(r'data-number="(\d+)"', ann.trace(key, "turn", turn=last))
    assert "red fox 22" in ann.trace(key, "step", turn=last, number=numbers[-1])
    taken = {key: f"{key}.json", last: f"{key}/{last}.json", "step": f"{key}/{last}/{numbers[0]}.json"}
    for name, path in taken.items():
        answer = ann.http.get(f"{TRACE}/{path}")
        assert answer.json()["steps"]
        assert answer.headers["content-disposition"] == f'attachment; filename="aivista-trace-{name}.json"'
        assert answer.headers["x-content-type-options"] == "nosniff"
    for act, asked in (("turn", {}), ("older", {}), ("step", {"number": 1})):
        assert [*ann.act(f"trace.{act}", key, turn="t9", **asked)] == ["toast"], act
    lost = ("nobody.json", f"{key}/t9.json", f"{key}/{first}/99999999999999.json")
    for path in lost:
        answer = ann.http.get(f"{TRACE}/{path}")
        assert (answer.status_code, answer.json()["error"][-1]) == (404, "."), path
    report = ann.http.get(f"/aivista/report/{key}/{last}.json")
    assert report.json()["said"]["text"] == "draw red fox 22"
    kept = {**SANDBOX, "cache-control": "no-store", "content-type": "application/json"}
    kept["content-disposition"] = f'attachment; filename="aivista-report-{last}.json"'
    assert kept.items() <= dict(report.headers).items()
    gone = {words_of("en")[f"error.{code}"] for code in ("conversation_not_found", "turn_not_found")}
    for path in (f"nowhere/{first}.json", *(f"{key}/{one}.json" for one in ("t2", ".", "%00", "t%0D%0A"))):
        answer = ann.http.get(f"/aivista/report/{path}")
        assert (answer.status_code, answer.text in gone) == (404, True), path
    assert ann.http.post(f"/aivista/report/{key}/{first}.json").status_code == 405


# Taking away and taking in


def test_conversations_are_taken_away_in_three_forms_and_taken_in_again(ann: Person, ben: Person) -> None:
    key = ann.says("draw a red fox in the snow")
    sent = at_last(lambda: ann.http.get(f"/export/{key}"))
    assert sent.headers["content-disposition"].startswith('attachment; filename="aivista-')
    kept = {"content-type": "application/zip", "cache-control": "no-store"}
    assert kept.items() <= dict(sent.headers).items()
    answer = at_last(lambda: ann.http.post("/import", content=sent.content, headers=ZIP)).json()
    assert (answer["isDone"], answer["text"]) == (True, "1 conversation imported.")
    assert "/1?size" in ann.shown(answer["conversation"])
    page = at_last(lambda: ann.http.get(f"/export/{key}?kind=html"))
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.headers["content-security-policy"] == SANDBOX["content-security-policy"]
    assert (page.text.count('<img src="data:image/'), "draw a red fox in the snow" in page.text) == (1, True)
    folder = unpacked(at_last(lambda: ann.http.get(f"/export/{key}?kind=md")).content)
    [picture] = folder.keys() - {"conversation.md"}
    assert f"]({picture})" in folder["conversation.md"].decode()
    hello = ann.says("hello")
    words = at_last(lambda: ann.http.get(f"/export/{hello}?kind=md"))
    assert ('.md"' in words.headers["content-disposition"], words.text[:2]) == (True, "# ")
    everything = at_last(lambda: ann.http.get("/export")).content
    assert ben.http.post("/import", content=everything, headers=ZIP).json()["text"] == "3 conversations imported."


def test_what_is_no_archive_or_too_large_or_from_elsewhere_is_not_taken_in(
    person: Callable[..., Person], public: PageProcess
) -> None:
    ann = person(**{"Accept-Language": "zh-CN"})
    refused = ann.http.post("/import", content=b"this is no archive", headers=ZIP)
    assert (refused.status_code, refused.json()["isDone"]) == (422, False)
    assert re.search(r"[\u4e00-\u9fff]", refused.json()["text"])
    with closing(announce(person(), "/import", 257 << 20, **ZIP)) as connection, connection.getresponse() as answer:
        assert (answer.status, b"256 MB" in answer.read()) == (413, True)
    for headers in ({**ZIP, "Origin": "https://evil.example"}, {"Content-Type": "text/plain"}):
        assert ann.http.post("/import", content=b"x", headers=headers).status_code == 403
    changes = ("/aivista/act/gallery.delete", f"{FILES}/none/upload", "/aivista/act/files.save")
    for path in ("/import", "/aivista/recipe", *changes):
        # Who leaves in the middle leaves nothing, and nothing is said of it.
        announce(person(), path, 1000, **ZIP).close()
    wait_until(lambda: not any(path for folder in ("exports", "imports") for path in (public.home / folder).glob("*")))


# Pictures that are worked out


def photo(
    width: int = 200, height: int = 100, levels: int = 0, box: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> Image.Image:
    """Return a picture with one channel moved by so many levels within a box."""
    grey = Image.linear_gradient("L").resize((width, height))
    red = grey.copy()
    red.paste(red.crop(box).point(lambda one: one + levels if one < 128 else one - levels), box)
    return Image.merge("RGB", (red, grey.point(lambda level: 255 - level), grey.point(lambda level: level // 2)))


def test_the_difference_of_two_pictures_is_counted_and_shown(ann: Person) -> None:
    larger = photo().resize((400, 200), Image.Resampling.LANCZOS)
    dot = photo(levels=90, box=(150, 50, 151, 51))
    pictures = [photo(), photo().convert("RGBA"), photo(levels=40, box=(0, 0, 100, 100)), dot, larger]
    pictures += [Image.new("RGB", (80, 300)), Image.new("RGB", (400, 100))]
    key = ann.says("look", files=[encoded(one) for one in pictures])

    def of(first: int, second: int) -> tuple[dict[str, Any], httpx.Response]:
        answer = ann.http.get(f"/aivista/difference/{key}/{first}/{second}?edge=100")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.headers["Aivista-Difference"]), answer

    same, answer = of(1, 2)
    size = {"first": [200, 100], "second": [200, 100], "compared": [200, 100]}
    assert same == {"changed": 0, "clear": 0, "largest": 0, **size}
    assert {**SANDBOX, "content-type": "image/webp"}.items() <= dict(answer.headers).items()
    assert answer.headers["cache-control"].startswith("private, ")
    assert of(1, 3)[0] == {"changed": 0.5, "clear": 0.5, "largest": 40, **size}
    numbers, answer = of(1, 4)
    assert numbers["changed"] == pytest.approx(1 / 20_000)
    with Image.open(io.BytesIO(answer.content)) as image:
        shown = image.convert("L")
    assert shown.size == (100, 50)
    brightest = max(range(5000), key=lambda at: shown.getpixel((at % 100, at // 100)) or 0)
    assert (abs(brightest % 100 - 75) <= 1, abs(brightest // 100 - 25) <= 1) == (True, True), "one pixel is seen"
    scaled, _ = of(1, 5)
    assert (scaled["compared"], scaled["second"], scaled["clear"]) == ([200, 100], [400, 200], 0)
    assert of(6, 7)[0]["first"] == [80, 300]
    edges = ("63", "2049", "-64", "١٠٠", "")
    for path, status in (("1/9", 404), ("9/1", 404), *((f"1/2?edge={edge}", 400) for edge in edges)):
        assert ann.http.get(f"/aivista/difference/{key}/{path}").status_code == status, path


def test_the_preview_of_sliders_shows_what_applying_gives(ann: Person) -> None:
    clear = Image.new("RGBA", (40, 30), (200, 100, 50, 90))
    key = ann.says("look", files=[encoded(photo(1800, 900)), encoded(clear)])
    said = {"handle": "#1", "brightness": 30, "contrast": -20, "saturation": 40, "warmth": 25}
    path = f"/aivista/preview/{key}/1?brightness=30&contrast=-20&saturation=40&warmth=25"
    answer = ann.http.get(path)
    assert answer.headers["content-type"] == "image/jpeg"
    assert answer.headers["cache-control"] == "private, max-age=86400, immutable"
    ann.press("panel_apply", json.dumps(said), key)
    applied = Image.open(io.BytesIO(ann.http.get(f"/media/{key}/1b").content)).convert("RGB")
    shown = Image.open(io.BytesIO(answer.content)).convert("RGB")
    assert (applied.size, shown.size) == ((1800, 900), (896, 448))
    small = applied.resize(shown.size, Image.Resampling.LANCZOS)
    far = [abs(one - two) for one, two in zip(shown.tobytes(), small.tobytes(), strict=True)]
    assert sum(far) / len(far) < 3
    glass = ann.http.get(f"/aivista/preview/{key}/2?brightness=20")
    assert glass.headers["content-type"] == "image/webp"
    assert Image.open(io.BytesIO(glass.content)).getchannel("A").getextrema() == (90, 90)
    for amount in ("101", "-101", "1.5", "", "+5", "%205", "٥", "5&brightness=6", "5&size=5"):
        assert ann.http.get(f"/aivista/preview/{key}/1?brightness={amount}").status_code == 400, amount
    assert ann.http.get(f"/aivista/preview/{key}/9?warmth=5").status_code == 404


# What a file says of itself


def test_the_page_is_told_what_a_file_says_and_of_other_programs_as_such(ann: Person) -> None:
    info, out = PngInfo(), io.BytesIO()
    info.add_text("parameters", "castle\nNegative prompt: blur\nSteps: 20, Sampler: Euler a, Seed: 1")
    Image.new("RGB", (4, 4)).save(out, "PNG", pnginfo=info)
    assert recipe(ann, out.getvalue()).json()["foreign"]["prompt"] == "castle"
    plain = encoded(Image.new("RGB", (8, 6), "red"))
    for data in (b"", b"no picture", plain, plain[:20]):
        answer = recipe(ann, data)
        assert (answer.status_code, answer.content) == (204, b"")
    assert recipe(ann, plain, origin="https://evil.test").status_code == 403
    assert recipe(ann, bytes((160 << 20) + 1)).status_code == 413


# The page and what it is made of


def test_the_page_gives_one_cookie_and_says_what_it_may_show_and_where_its_files_are(public: PageProcess) -> None:
    with httpx.Client(base_url=public.url, trust_env=False) as browser:
        first = browser.get("/")
        given = first.headers["set-cookie"]
        assert given.startswith("aivista_session=")
        assert {"HttpOnly", "SameSite=Lax"} <= {one.strip() for one in given.split(";")}
        assert "set-cookie" not in browser.get("/").headers
        policy = first.headers["content-security-policy"]
        assert "img-src 'self' data: blob:" in policy
        assert "object-src 'none'" in policy
        # In the head: our files and Gradio's own, packed for whoever reads that, and the same for the others.
        head = first.text.partition("</head>")[0]
        paths = re.findall(r'(?:href|src)="((?:aivista/page/studio|\./assets/index)-[\w-]+\.(?:css|js))"', head)
        assert sorted(path[-3:].strip(".") for path in paths) == ["css", "css", "js", "js"]
        for path in paths:
            packed, plain = (browser.get(f"/{path}", headers={"accept-encoding": one}) for one in ("br", ""))
            assert "immutable" in packed.headers["cache-control"]
            assert packed.headers["content-type"].startswith(("text/css", "text/javascript"))
            assert (packed.headers["content-encoding"], packed.text) == ("br", plain.text)
            assert "content-encoding" not in plain.headers
        for name in ("page/studio.css", "page/studio-0000000000000000.js", "page/..%2fframe.css", "page/frame.css"):
            assert browser.get(f"/aivista/{name}").status_code == browser.get("/assets/none.js").status_code == 404
    answer = httpx.post(public.url + GALLERY, trust_env=False)
    assert not {"set-cookie", "content-security-policy"} & answer.headers.keys()
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_whoever_runs_it_may_ask_how_it_is_by_name_by_address_or_by_none(public: PageProcess) -> None:
    for path, told in ((ALIVE, "alive"), ("/readyz", "ready")):
        for host in ("studio.example", "10.0.0.7:7860", "127.0.0.1", "[fd00::1]:7860"):
            answer = httpx.get(public.url + path, headers={"Host": host}, trust_env=False)
            assert (answer.status_code, answer.json()["status"]) == (200, told)
            assert (answer.headers["cache-control"], "set-cookie" in answer.headers) == ("no-store", False)
        assert httpx.head(public.url + path, trust_env=False).status_code == 200
        assert httpx.post(public.url + path, trust_env=False).status_code == 405
