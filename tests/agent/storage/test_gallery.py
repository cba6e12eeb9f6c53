"""The gallery over real records: leafed through, filtered, changed and taken away, each owner's alone."""

from __future__ import annotations

import asyncio
import io
import os
import sqlite3
import stat
import zipfile
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import Connection, create_engine, event

from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.messages import ImageOrigin
from agent.storage import gallery_rows
from agent.storage.gallery_values import GalleryItem, GalleryPage, GalleryQuery
from tests.support.children import run_child
from tests.support.galleries import Filled, filled, png
from tests.support.histories import NOW
from webui.media import download_name


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


def ids(page: GalleryPage | tuple[GalleryItem, ...]) -> list[int]:
    return [item.id for item in (page.items if isinstance(page, GalleryPage) else page)]


async def found(kept: Filled, owner: str = "local", **query: object) -> list[int]:
    return ids(await kept.gallery.page(owner, GalleryQuery.model_validate(query)))


# Leafing


async def test_an_empty_gallery_is_an_empty_page(kept: Filled) -> None:
    page = await kept.gallery.page("local", GalleryQuery())
    assert (page.items, page.next) == ((), None)
    assert (await kept.gallery.facets("local")).total == 0
    assert await found(kept, words="anything") == []


async def test_pictures_of_all_conversations_come_newest_first(kept: Filled) -> None:
    first, second = await kept.conversation(), await kept.conversation()
    made = [await kept.add(one) for one in (first, second, first, second)]
    assert await found(kept) == made[::-1]


async def test_an_item_says_where_it_belongs_and_what_it_is(kept: Filled) -> None:
    conversation = await kept.conversation(title="Posters")
    made = await kept.add(conversation, "a red poster", model="Pro", size=(160, 90))
    (item,) = (await kept.gallery.page("local", GalleryQuery())).items
    assert (item.id, item.conversation_id, item.conversation_title) == (made, conversation, "Posters")
    assert (item.model, item.shape, item.source, item.is_starred, item.tags) == ("Pro", "16:9", "made", False, ())
    assert item.picture == (await kept.store.get(conversation, "local")).pictures[0]
    assert item.match is None


async def test_leafing_shows_every_picture_once_even_of_the_same_moment(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, at=NOW + timedelta(minutes=number // 4)) for number in range(11)]
    seen: list[int] = []
    after = None
    for _ in range(4):
        page = await kept.gallery.page("local", GalleryQuery(after=after, limit=3))
        seen += ids(page)
        after = page.next
    assert after is None
    assert seen == made[::-1]


async def test_what_is_made_meanwhile_moves_no_later_page(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(4)]
    page = await kept.gallery.page("local", GalleryQuery(limit=2))
    await kept.add(conversation)
    assert await found(kept, after=page.next, limit=2) == made[1::-1]


async def test_a_last_page_that_is_full_has_none_after_it(kept: Filled) -> None:
    conversation = await kept.conversation()
    for _ in range(2):
        await kept.add(conversation)
    assert (await kept.gallery.page("local", GalleryQuery(limit=2))).next is None


@pytest.mark.parametrize("cursor", ["", "x", "2026-01-01~", "2026-01-01T00:00:00~5", "~1", f"r{10**30}", "r-1", "٣~٣"])
async def test_a_place_that_cannot_be_read_is_the_beginning(kept: Filled, cursor: str) -> None:
    made = await kept.add(await kept.conversation(), "a fox")
    assert await found(kept, after=cursor) == [made]
    assert await found(kept, after=cursor, words="fox") == [made]


# Filters


async def test_each_filter_finds_its_own_and_they_combine(kept: Filled) -> None:
    first, second = await kept.conversation(), await kept.conversation()
    wide = await kept.add(first, model="Pro", size=(160, 90))
    square = await kept.add(first, model="Flash", size=(64, 64))
    upload = await kept.add(second, None, origin=ImageOrigin.UPLOADED, size=(64, 64))
    edited = await kept.add(second, model="Pro", origin=ImageOrigin.EDITED, size=(64, 64))
    await kept.gallery.star("local", [square, edited], True)
    await kept.gallery.tag("local", [wide, edited], "poster")
    assert await found(kept, conversation_id=second) == [edited, upload]
    assert await found(kept, model="Pro") == [edited, wide]
    assert await found(kept, shape="1:1") == [edited, upload, square]
    assert await found(kept, source="uploaded") == [upload]
    assert await found(kept, is_starred=True) == [edited, square]
    assert await found(kept, is_starred=False) == [upload, wide]
    assert await found(kept, tag="poster") == [edited, wide]
    assert await found(kept, tag="poster", shape="16:9") == [wide]
    assert await found(kept, model="Pro", source="edited", is_starred=True, conversation_id=second) == [edited]
    assert await found(kept, model="Pro", source="uploaded") == []


async def test_days_are_counted_in_full_and_both_belong(kept: Filled) -> None:
    conversation = await kept.conversation()
    moments = [datetime(2026, 3, day, hour, tzinfo=UTC) for day, hour in ((1, 23), (2, 0), (2, 23), (3, 0))]
    made = [await kept.add(conversation, at=moment) for moment in moments]
    assert await found(kept, day_from=date(2026, 3, 2), day_to=date(2026, 3, 2)) == made[2:0:-1]
    assert await found(kept, day_from=date(2026, 3, 3)) == [made[3]]
    assert await found(kept, day_to=date(2026, 3, 1)) == [made[0]]
    assert await found(kept, day_from=date.min, day_to=date.max) == made[::-1]


async def test_what_there_is_to_choose_from_is_counted(kept: Filled) -> None:
    conversation = await kept.conversation()
    one = await kept.add(conversation, model="Pro", at=datetime(2026, 1, 31, 12, tzinfo=UTC))
    other = await kept.add(conversation, model="Pro", at=datetime(2026, 2, 1, tzinfo=UTC))
    gone = await kept.add(conversation, None, origin=ImageOrigin.UPLOADED, size=(64, 64))
    await kept.gallery.star("local", [one], True)
    await kept.gallery.tag("local", [one, other, gone], "sea")
    await kept.gallery.tag("local", [other], "blue")
    assert (await kept.gallery.facets("local")).total == 3
    await kept.gallery.delete("local", [gone])
    facets = await kept.gallery.facets("local")
    assert (facets.total, facets.starred) == (2, 1)
    assert (facets.models, facets.shapes, facets.sources) == ({"Pro": 2}, {"16:9": 2}, {"made": 2})
    assert list(facets.months.items()) == [("2026-02", 1), ("2026-01", 1)]
    assert list(facets.tags.items()) == [("sea", 2), ("blue", 1)]


async def test_pictures_of_a_deleted_conversation_do_not_count(tmp_path: Path) -> None:
    async with filled(tmp_path) as kept:
        first, second = await kept.conversation(), await kept.conversation()
        await kept.add(first, model="Pro")
        gone = await kept.add(second, model="Flash", at=datetime(2025, 1, 1, tzinfo=UTC))
        await kept.gallery.star("local", [gone], True)
        await kept.gallery.tag("local", [gone], "sea")
        await kept.store.delete(second, "local")
    async with filled(tmp_path) as kept:
        facets = await kept.gallery.facets("local")
        assert (facets.total, facets.starred, facets.models, facets.tags) == (1, 0, {"Pro": 1}, {})
        assert list(facets.months) == ["2026-11"]
        assert await kept.gallery.count("local", GalleryQuery(conversation_id=first)) == 1
        assert await kept.gallery.count("local", GalleryQuery(conversation_id=second)) == 0
        assert await kept.gallery.count("another", GalleryQuery()) == 0


# Whose they are


async def test_nobody_sees_or_changes_the_pictures_of_another(kept: Filled) -> None:
    mine, theirs = await kept.conversation("me", "Mine"), await kept.conversation("you", "Yours")
    own, other = await kept.add(mine, "a fox"), await kept.add(theirs, "a fox")
    gallery = kept.gallery
    assert await found(kept, "me") == [own]
    assert await found(kept, "me", conversation_id=theirs) == []
    assert await found(kept, "me", words="fox") == [own]
    assert await found(kept, "me", words="Yours") == []
    assert ids(await gallery.items("me", [other, own])) == [own]
    for changed in (
        gallery.star("me", [other], True),
        gallery.tag("me", [other], "mine"),
        gallery.untag("me", [other], "mine"),
        gallery.delete("me", [other]),
        gallery.undelete("me", [other]),
    ):
        assert await changed == ()
    for attempt in (
        gallery.page("me", GalleryQuery(similar_to=other)),
        gallery.zip_of("me", [other], name_of=download_name),
    ):
        with pytest.raises(RequestRefused) as refused:
            await attempt
        assert refused.value.code is ErrorCode.PICTURE_GONE
    (item,) = (await gallery.page("you", GalleryQuery())).items
    assert (item.id, item.is_starred, item.tags) == (other, False, ())
    assert (await gallery.facets("me")).total == 1


@pytest.mark.parametrize("strange", [0, -1, 10**6, 2**63, 10**40])
async def test_an_id_that_is_no_pictures_is_passed_over(kept: Filled, strange: int) -> None:
    made = await kept.add(await kept.conversation())
    assert await kept.gallery.star("local", [strange, made], True) == (made,)
    assert await kept.gallery.delete("local", [strange]) == ()
    assert ids(await kept.gallery.items("local", [strange, made, made])) == [made]


async def test_pictures_of_a_deleted_conversation_are_not_there_until_it_is_brought_back(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = await kept.add(conversation, "a fox")
    await kept.gallery.tag("local", [made], "sea")
    await kept.store.delete(conversation, "local")
    assert (await found(kept), await found(kept, words="fox"), await found(kept, tag="sea")) == ([], [], [])
    assert await kept.gallery.star("local", [made], True) == ()
    await kept.store.undelete(conversation, "local")
    assert (await found(kept), await found(kept, words="fox")) == ([made], [made])


# Changes


async def test_many_pictures_are_marked_and_tagged_at_once(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(3)]
    assert await kept.gallery.star("local", made[:2], True) == tuple(made[:2])
    assert await kept.gallery.star("local", made[:1], False) == tuple(made[:1])
    assert await kept.gallery.tag("local", made, "  red   sea ") == tuple(made)
    assert await kept.gallery.tag("local", made[:1], "Red Sea") == tuple(made[:1])
    assert await kept.gallery.untag("local", made[2:], "RED SEA") == tuple(made[2:])
    items = await kept.gallery.items("local", made)
    assert [item.is_starred for item in items] == [False, True, False]
    assert [item.tags for item in items] == [("red sea",), ("red sea",), ()]


async def test_a_tag_is_never_empty_and_never_endless(kept: Filled) -> None:
    made = await kept.add(await kept.conversation())
    assert await kept.gallery.tag("local", [made], " \n ") == ()
    await kept.gallery.tag("local", [made], "x" * 1000)
    (item,) = await kept.gallery.items("local", [made])
    assert item.tags == ("x" * 64,)


async def test_a_deleted_picture_is_gone_but_for_its_name_and_comes_back(kept: Filled) -> None:
    conversation = await kept.conversation()
    stays, goes = await kept.add(conversation, "a fox"), await kept.add(conversation, "a fox")
    assert await kept.gallery.delete("local", [goes]) == (goes,)
    assert await kept.gallery.delete("local", [goes]) == ()
    assert (await found(kept), await found(kept, words="fox")) == ([stays], [stays])
    without = await kept.store.get(conversation, "local")
    assert ([one.handle for one in without.pictures], without.gone, without.handles) == (["#1"], ("#2",), ("#1", "#2"))
    assert await kept.gallery.undelete("local", [goes, stays]) == (goes,)
    assert (await kept.store.get(conversation, "local")).gone == ()
    assert await found(kept) == [goes, stays]


async def test_what_was_deleted_from_a_conversation_is_told_to_its_owner_alone(kept: Filled) -> None:
    here, elsewhere = await kept.conversation(), await kept.conversation()
    goes, _, other = await kept.add(here, "a fox"), await kept.add(here), await kept.add(elsewhere)
    await kept.gallery.delete("local", [goes, other])
    (gone,) = await kept.gallery.deleted("local", here)
    assert (gone.handle, gone.receipt.prompt if gone.receipt else "") == ("#1", "a fox")
    assert await kept.gallery.deleted("another", here) == ()
    await kept.gallery.undelete("local", [goes])
    assert await kept.gallery.deleted("local", here) == ()


async def test_after_thirty_days_a_deleted_picture_does_not_come_back(kept: Filled) -> None:
    made = await kept.add(await kept.conversation())
    await kept.gallery.delete("local", [made])
    with sqlite3.connect(kept.home / "aivista.db") as database:
        database.execute("UPDATE pictures SET deleted_at = datetime(deleted_at, '-31 days')")
    database.close()
    assert await kept.gallery.undelete("local", [made]) == ()


async def test_a_change_that_fails_changes_nothing(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(3)]
    with sqlite3.connect(kept.home / "aivista.db") as database:
        database.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON picture_tags WHEN NEW.picture_id = "
            f"{made[2]} BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    database.close()
    with pytest.raises(StorageFailure):
        await kept.gallery.tag("local", made, "sea")
    assert [item.tags for item in await kept.gallery.items("local", made)] == [(), (), ()]


async def test_a_turn_is_recorded_while_the_gallery_reads(kept: Filled) -> None:
    conversation = await kept.conversation()
    for _ in range(5):
        await kept.add(conversation, "a fox")
    pages = [kept.gallery.page("local", GalleryQuery(words="fox")) for _ in range(20)]
    *read, made = await asyncio.gather(*pages, kept.add(conversation, "a wolf"))
    assert all(len(page.items) >= 5 for page in read if isinstance(page, GalleryPage))
    assert await found(kept, words="wolf") == [made]


# What SQLite is asked


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ({}, "ix_pictures_owner "),
        ({"after": f"{NOW.isoformat()}~5"}, "ix_pictures_owner "),
        ({"day_from": "2026-01-01"}, "ix_pictures_owner "),
        ({"model": "Pro"}, "ix_pictures_owner_model"),
        ({"is_starred": True}, "ix_pictures_owner_is_starred"),
        ({"shape": "1:1"}, "ix_pictures_owner_shape"),
        ({"source": "made"}, "ix_pictures_owner_source"),
        ({"conversation_id": "x"}, "conversation_id=?"),
    ],
)
async def test_a_page_is_read_in_the_order_of_an_index(kept: Filled, query: dict[str, object], index: str) -> None:
    asked = GalleryQuery.model_validate(query)
    (plan,) = plans_of(kept, lambda connection: gallery_rows.newest(connection, "local", asked))
    assert index in plan
    assert "SCAN" not in plan
    assert ("TEMP B-TREE" in plan) == ("conversation_id" in query)


async def test_pictures_are_counted_along_an_index_without_a_look_at_their_rows(kept: Filled) -> None:
    kinds, not_kinds, months, not_months, tags = plans_of(
        kept, lambda connection: gallery_rows.facets(connection, "local")
    )
    assert kinds == "SEARCH pictures USING COVERING INDEX ix_pictures_counted (owner=? AND deleted_at=?)"
    assert months.startswith(kinds)
    for few in (not_kinds, not_months, tags):
        assert "owner=?" not in few.partition("pictures")[2], few


def plans_of(kept: Filled, work: Callable[[Connection], object]) -> list[str]:
    """Return how SQLite goes about each statement of the work."""
    plans: list[str] = []
    engine = create_engine(f"sqlite:///{kept.home / 'aivista.db'}")
    plain = sqlite3.connect(kept.home / "aivista.db")

    def explain(_connection: object, _cursor: object, statement: str, values: Sequence[Any], *_rest: object) -> None:
        plans.append("; ".join(row[-1] for row in plain.execute(f"EXPLAIN QUERY PLAN {statement}", values)))

    event.listen(engine, "before_cursor_execute", explain)
    with engine.connect() as connection:
        work(connection)
    plain.close()
    engine.dispose()
    return plans


# Taken away


async def test_pictures_are_zipped_as_they_are_and_named_for_people(kept: Filled) -> None:
    conversation = await kept.conversation()
    first = await kept.add(conversation, words="a red fox", data=png("red"))
    second = await kept.add(conversation, words="日落", data=png("blue"))
    zipped = await kept.gallery.zip_of("local", [second, first], name_of=download_name)
    assert stat.S_IMODE(os.stat(zipped.path).st_mode) == 0o600
    assert Path(zipped.path).is_relative_to(kept.home)
    assert (zipped.count, zipped.left_out) == (2, ())
    with zipfile.ZipFile(zipped.path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["aivista-2-日落.png", "aivista-1-a-red-fox.png"]
        assert [entry.compress_type for entry in archive.infolist()] == [zipfile.ZIP_STORED] * 2
        assert archive.read("aivista-1-a-red-fox.png") == png("red")


async def test_pictures_of_one_name_are_numbered_and_no_name_leaves_the_folder(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(3)]
    names = iter(["../Fox.png", "..\\fox.PNG", "/-fox.png"])
    zipped = await kept.gallery.zip_of("local", made, name_of=lambda _: next(names))
    with zipfile.ZipFile(zipped.path) as archive:
        assert archive.namelist() == ["-Fox.png", "-fox-2.PNG", "--fox.png"]


async def test_each_picture_is_prepared_before_it_is_taken_away(kept: Filled) -> None:
    made = await kept.add(await kept.conversation(), "a fox")

    async def prepared(item: GalleryItem) -> bytes:
        assert item.picture.receipt is not None
        return await kept.images.read(item.picture.image) + item.picture.receipt.prompt.encode()

    zipped = await kept.gallery.zip_of("local", [made], name_of=lambda one: f"{one.handle}.png", bytes_of=prepared)
    with zipfile.ZipFile(zipped.path) as archive:
        data = archive.read("#1.png")
    assert data.endswith(b"a fox")
    assert Image.open(io.BytesIO(data)).size == (64, 36)


async def test_a_picture_whose_file_is_gone_is_left_out_and_named(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(2)]
    items = await kept.gallery.items("local", made)
    digest = items[0].picture.image.digest
    (kept.home / "pictures" / digest[:2] / f"{digest}.png").unlink()
    zipped = await kept.gallery.zip_of("local", made, name_of=download_name)
    assert (zipped.count, zipped.left_out) == (1, ("#1",))
    with pytest.raises(RequestRefused, match="#1"):
        await kept.gallery.zip_of("local", made[:1], name_of=download_name)
    assert len(list((kept.home / "temporary").iterdir())) == 1


async def test_what_fails_while_zipping_leaves_no_file_behind(kept: Filled) -> None:
    made = await kept.add(await kept.conversation())

    async def fails(_: GalleryItem) -> bytes:
        raise ValueError("no recipe")

    with pytest.raises(ValueError, match="no recipe"):
        await kept.gallery.zip_of("local", [made], name_of=download_name, bytes_of=fails)
    assert list((kept.home / "temporary").iterdir()) == []


def test_a_full_disk_is_told_and_no_half_of_a_file_stays(tmp_path: Path) -> None:
    code = """
import asyncio, resource, sys
from pathlib import Path
from agent.errors import StorageFailure
from tests.support.galleries import filled

async def large(_):
    return bytes(300_000)

async def main():
    async with filled(Path(sys.argv[1])) as kept:
        made = await kept.add(await kept.conversation())
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            await kept.gallery.zip_of("local", [made], name_of=lambda _: "x.png", bytes_of=large)
        except StorageFailure as error:
            print(error.code)

asyncio.run(main())
"""
    child = run_child("import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + code, str(tmp_path))
    assert child.stdout.split() == ["disk_full"], child.stderr
    assert list((tmp_path / "temporary").iterdir()) == []
