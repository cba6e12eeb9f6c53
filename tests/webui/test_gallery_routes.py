"""The gallery's addresses over real records: each owner's pictures alone, and every answer readable."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.imaging.provenance import Recipe, pixels_digest, read
from agent.imaging.recipe_desk import RecipeDesk
from agent.messages import ImageOrigin
from agent.storage.gallery import Gallery
from agent.storage.gallery_values import GalleryPage, GalleryQuery
from tests.support.galleries import Filled, filled
from webui.gallery_routes import MOST_AT_ONCE, PAGE_SIZE, READY_S, Shelf, gallery_routes
from webui.guard import Guard, HostRules
from webui.sessions import COOKIE, Sessions, Visitor
from webui.words import load_words


@dataclass(frozen=True)
class Studio:
    """What the routes need of the studio, and with which keys they searched."""

    gallery: Gallery
    recipes: RecipeDesk
    keys: list[SecretStr | None] = field(default_factory=list)

    async def gallery_page(self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None) -> GalleryPage:
        self.keys.append(key)
        return await self.gallery.page(owner, query)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


def browser(
    kept: Filled,
    sessions: Sessions,
    cookie: str | None,
    shelf: Shelf | None = None,
    language: str = "en",
    studio: Studio | None = None,
) -> httpx.AsyncClient:
    studio = studio or Studio(kept.gallery, RecipeDesk(kept.store, kept.images))
    app = Starlette(
        routes=gallery_routes(lambda: studio, sessions, shelf),
        middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)],
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1:7860/aivista/gallery/",
        cookies={COOKIE: cookie} if cookie is not None else {},
        headers={"Accept-Language": language},
    )


@pytest.fixture
async def page(kept: Filled) -> AsyncIterator[httpx.AsyncClient]:
    sessions = Sessions(b"s" * 32)
    async with browser(kept, sessions, sessions.new_cookie()) as client:
        yield client


def shown(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [int(one) for one in re.findall(r'data-id="(\d+)"', answer.json()["cells"])]


async def found(page: httpx.AsyncClient, **asked: Any) -> list[int]:
    return shown(await page.get("page", params=asked))


async def test_pictures_come_newest_first_a_page_at_a_time(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(PAGE_SIZE + 3)]
    first = await page.get("page")
    assert shown(first) == made[: -PAGE_SIZE - 1 : -1]
    assert await found(page, after=first.json()["next"]) == made[2::-1]
    assert first.json()["found"] is None
    assert first.headers["cache-control"] == "no-store"


async def test_words_of_both_languages_find_and_the_answer_counts(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation(title="Plain")
    fox = await kept.add(conversation, "a red fox", words="draw a fox")
    cat = await kept.add(conversation, "a cat", words="画一只红色的猫")
    assert await found(page, words="foxes") == [fox]
    assert await found(page, words="红色的猫") == [cat]
    assert (await page.get("page", params={"words": "fox"})).json()["found"] == 1


async def test_every_filter_reaches_the_gallery(kept: Filled, page: httpx.AsyncClient) -> None:
    first, second = await kept.conversation(), await kept.conversation()
    wide = await kept.add(first, model="Pro", size=(160, 90))
    upload = await kept.add(second, None, origin=ImageOrigin.UPLOADED, size=(64, 64))
    await kept.gallery.star("local", [wide], True)
    await kept.gallery.tag("local", [upload], "poster")
    assert await found(page, conversation=second) == [upload]
    assert await found(page, source="uploaded") == [upload]
    assert await found(page, starred="1") == [wide]
    assert await found(page, model="Pro") == [wide]
    assert await found(page, shape="1:1") == [upload]
    assert await found(page, tag="poster") == [upload]
    assert await found(page, starred="1", tag="poster") == []
    assert await found(page, day_from="2026-01-01", day_to="2026-12-31") == [upload, wide]
    assert await found(page, day_from="2027-01-01") == []


async def test_what_there_is_to_choose_from_is_counted(kept: Filled, page: httpx.AsyncClient) -> None:
    first, second = await kept.conversation(), await kept.conversation()
    one = await kept.add(first)
    await kept.add(second, None, origin=ImageOrigin.UPLOADED)
    await kept.gallery.tag("local", [one], "poster")
    counts = (await page.get("facets", params={"conversation": second})).json()
    assert (counts["total"], counts["here"], counts["sources"]["uploaded"], counts["tags"]) == (2, 1, 1, {"poster": 1})
    assert (await page.get("facets")).json()["here"] == 0


async def test_a_change_answers_with_the_pictures_as_they_are_and_says_what_was_done(
    kept: Filled, page: httpx.AsyncClient
) -> None:
    made = await kept.add(await kept.conversation())
    starred = (await page.post("change", json={"act": "star", "ids": [made]})).json()
    assert starred == {"ids": [made], "items": [{"id": made, "is_starred": True, "tags": []}], "said": ""}
    tagged = (await page.post("change", json={"act": "tag", "ids": [made], "tag": " client  A "})).json()
    assert tagged["items"][0]["tags"] == ["client A"]
    assert tagged["said"] == "1 picture tagged “client A”"
    untagged = (await page.post("change", json={"act": "untag", "ids": [made], "tag": "client A"})).json()
    assert untagged["items"][0]["tags"] == []
    unstarred = (await page.post("change", json={"act": "unstar", "ids": [made]})).json()
    assert unstarred["items"][0]["is_starred"] is False


async def test_what_is_deleted_comes_back(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(2)]
    deleted = (await page.post("change", json={"act": "delete", "ids": made})).json()
    assert (deleted["ids"], deleted["items"], deleted["said"]) == (made, [], "2 pictures deleted")
    assert await found(page) == []
    back = (await page.post("change", json={"act": "undelete", "ids": made})).json()
    assert back["said"] == "2 pictures are back"
    assert await found(page) == made[::-1]


async def test_nobody_is_shown_or_changes_the_pictures_of_another(kept: Filled) -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    hers, his = sessions.new_cookie(), sessions.new_cookie()
    owner = sessions.owner(sessions.token_of(hers))
    made = await kept.add(await kept.conversation(owner))
    async with browser(kept, sessions, hers) as her, browser(kept, sessions, his) as him:
        assert await found(her) == [made]
        assert await found(him) == []
        for act in ("star", "tag", "delete"):
            answer = (await him.post("change", json={"act": act, "ids": [made], "tag": "x"})).json()
            assert (answer["ids"], answer["said"]) == ([], "These pictures are not there any more.")
        assert (await him.post("zip", json={"ids": [made]})).status_code == 404
        assert (await him.get("page", params={"similar": made})).status_code == 404
        packed = (await her.post("zip", json={"ids": [made]})).json()["address"].removeprefix("aivista/gallery/")
        assert (await him.get(packed)).status_code == 404
        assert (await her.get(packed)).status_code == 200
        assert await found(her) == [made]


@pytest.mark.parametrize("cookie", [None, "", "forged.0123"])
async def test_without_our_cookie_nothing_is_answered(kept: Filled, cookie: str | None) -> None:
    made = await kept.add(await kept.conversation())
    async with browser(kept, Sessions(b"s" * 32), cookie) as page:
        assert (await page.get("page")).status_code == 403
        assert (await page.get("facets")).status_code == 403
        assert (await page.get("zip/x")).status_code == 403
        assert (await page.post("zip", json={"ids": [made]})).status_code == 403
        assert (await page.post("change", json={"act": "delete", "ids": [made]})).status_code == 403
    assert (await kept.gallery.facets("local")).total == 1


async def test_a_foreign_page_may_not_change_anything(kept: Filled, page: httpx.AsyncClient) -> None:
    made = await kept.add(await kept.conversation())
    answer = await page.post(
        "change", json={"act": "delete", "ids": [made]}, headers={"Origin": "https://elsewhere.example"}
    )
    assert answer.status_code == 403
    assert await found(page) == [made]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON",
        b"[]",
        b'{"act": "star", "ids": []}',
        b'{"act": "burn", "ids": [1]}',
        b'{"act": "star", "ids": ["x"]}',
        b'{"act": "star", "ids": [1], "more": 1}',
        b'{"act": "tag", "ids": [1], "tag": "' + b"x" * 65 + b'"}',
        b'{"act": "star", "ids": [' + b",".join([b"1"] * (MOST_AT_ONCE + 1)) + b"]}",
        b'{"act": "star", "ids": [1]' + b" " * 300_000 + b"}",
    ],
    ids=["empty", "words", "list", "no-ids", "act", "id", "field", "long-tag", "many", "long"],
)
async def test_a_change_that_cannot_be_read_is_refused_in_one_sentence(page: httpx.AsyncClient, body: bytes) -> None:
    answer = await page.post("change", content=body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "This could not be read. Please reload the page."}


@pytest.mark.parametrize(
    "asked",
    [{"words": "x" * 201}, {"source": "stolen"}, {"day_from": "soon"}, {"similar": "x"}, {"limit": "9999"}],
    ids=["words", "source", "day", "similar", "limit"],
)
async def test_a_page_that_cannot_be_read_is_refused(page: httpx.AsyncClient, asked: dict[str, str]) -> None:
    assert (await page.get("page", params=asked)).status_code == 400


async def test_sentences_are_in_the_visitors_language(kept: Filled) -> None:
    sessions = Sessions(b"s" * 32)
    made = await kept.add(await kept.conversation())
    async with browser(kept, sessions, sessions.new_cookie(), language="zh-CN") as page:
        assert (await page.post("change", json={"act": "delete", "ids": [made]})).json()["said"] == "已删除 1 张图片"
        assert (await page.post("change", content=b"?")).json()["error"].startswith("无法读取")


# Taking away


async def test_pictures_are_packed_fetched_once_and_thrown_away(
    kept: Filled, page: httpx.AsyncClient, tmp_path: Path
) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, words="a red fox") for _ in range(2)]
    packed = (await page.post("zip", json={"ids": made})).json()
    assert packed["said"] == "2 pictures packed"
    address = packed["address"].removeprefix("aivista/gallery/")
    answer = await page.get(address)
    assert answer.status_code == 200
    assert 'filename="aivista-pictures-2.zip"' in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["aivista-1-a-red-fox.png", "aivista-2-a-red-fox.png"]
    assert (await page.get(address)).status_code == 404
    assert list((tmp_path / "temporary").iterdir()) == []


async def test_a_file_whose_picture_is_gone_is_told(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(2)]
    gone = (await kept.gallery.items("local", made[:1]))[0].picture.image
    for file in (kept.home / "pictures").rglob(f"{gone.digest}*"):
        file.unlink()
    packed = (await page.post("zip", json={"ids": made})).json()
    assert packed["said"] == "1 packed; #1 could not be read"


def carried(data: bytes) -> Recipe:
    found = read(data)
    assert isinstance(found, Recipe)
    return found


async def unpacked(page: httpx.AsyncClient, **wanted: Any) -> dict[str, bytes]:
    packed = (await page.post("zip", json=wanted)).json()
    answer = await page.get(packed["address"].removeprefix("aivista/gallery/"))
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


async def test_packed_pictures_carry_their_recipes_and_the_same_pixels(kept: Filled, page: httpx.AsyncClient) -> None:
    here, elsewhere = await kept.conversation(title="Foxes"), await kept.conversation(title="Owls")
    made = [await kept.add(here, "a red fox", words="fox"), await kept.add(elsewhere, "an owl", words="owl")]
    files = await unpacked(page, ids=made)
    assert list(files) == ["aivista-1-fox.png", "aivista-2-owl.png"]
    recipes = [carried(data) for data in files.values()]
    assert [(one.prompt, one.handle, one.conversation_title) for one in recipes] == [
        ("a red fox", "#1", "Foxes"),
        ("an owl", "#2", "Owls"),
    ]
    for item, data in zip(await kept.gallery.items("local", made), files.values(), strict=True):
        stored = await kept.images.read(item.picture.image)
        assert data != stored
        assert pixels_digest(data) == pixels_digest(stored)


async def test_clean_copies_say_nothing_and_are_named_so(kept: Filled, page: httpx.AsyncClient) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, "a red fox", words="fox"), await kept.add(conversation, data=b"no picture")]
    packed = (await page.post("zip", json={"ids": made, "clean": True})).json()
    assert packed["said"] == "1 packed; #2 could not be read"
    [(name, data)] = (await unpacked(page, ids=made[:1], clean=True)).items()
    assert name == "aivista-1-fox-clean.png"
    assert read(data) is None
    assert b"fox" not in data


async def test_a_search_asks_with_the_visitors_own_key(kept: Filled) -> None:
    sessions, studio = Sessions(b"s" * 32), Studio(kept.gallery, RecipeDesk(kept.store, kept.images))
    cookie, key = sessions.new_cookie(), SecretStr("AIza-of-a-visitor")
    async with browser(kept, sessions, cookie, studio=studio) as page:
        await page.get("page", params={"words": "fox"})
        sessions.hold_key(Visitor(sessions.token_of(cookie), "local", load_words("en")), key)
        await page.get("page", params={"words": "fox"})
    assert studio.keys == [None, key]


def test_a_file_nobody_comes_for_is_thrown_away(tmp_path: Path) -> None:
    now = [0.0]
    shelf = Shelf(clock=lambda: now[0])
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    for path in (first, second):
        path.write_bytes(b"PK")
    name = shelf.put("local", first, 1)
    now[0] = READY_S + 1
    shelf.put("local", second, 1)
    assert not first.exists()
    assert second.exists()
    assert shelf.take("local", name) is None


def test_of_one_owner_only_the_last_few_files_wait(tmp_path: Path) -> None:
    shelf, names = Shelf(), list[str]()
    paths = [tmp_path / f"{number}.zip" for number in range(5)]
    others = tmp_path / "others.zip"
    others.write_bytes(b"PK")
    name = shelf.put("other", others, 1)
    for path in paths:
        path.write_bytes(b"PK")
        names.append(shelf.put("local", path, 1))
    assert [path.exists() for path in paths] == [False, False, True, True, True]
    assert [shelf.take("local", one) is not None for one in names] == [False, False, True, True, True]
    assert shelf.take("other", name) == (others, 1)
