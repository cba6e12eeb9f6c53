"""The gallery over real records: leafed through, changed, taken away, and searched by words, meaning and looks."""

from __future__ import annotations

import os
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image, ImageEnhance

from agent import ErrorCode, ImageOrigin, NetworkFailure, RequestRefused, Review, SmartCanvas, StorageFailure, TurnState
from tests.adapters.records import GalleryFoundBy, GalleryItem, GalleryQuery, lose_vectors
from tests.support.children import full_disk
from tests.support.galleries import Filled, WordEmbedder, filled, png
from tests.support.histories import NOW, begun_turn
from tests.support.refusals import refusal
from tests.support.turns import in_database


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


async def found(
    kept: Filled, words: str = "", embedder: WordEmbedder | None = None, owner: str = "local", **query: object
) -> list[int]:
    asked = GalleryQuery.model_validate({"words": words, **query})
    return [item.id for item in (await kept.gallery.page(owner, asked, embedder=embedder)).items]


async def read(kept: Filled, embedder: WordEmbedder) -> None:
    """Have the model read all pictures."""
    await found(kept, "anything", embedder)
    await kept.gallery.settled()


# Leafing and choosing


async def test_leafing_shows_every_picture_once_whatever_is_made_meanwhile(kept: Filled) -> None:
    assert await found(kept) == await found(kept, "anything") == []
    conversation = await kept.conversation()
    made = [await kept.add(conversation, at=NOW + timedelta(minutes=number // 4)) for number in range(12)]
    seen, after = list[int](), None
    for _ in range(4):
        page = await kept.gallery.page("local", GalleryQuery(after=after, limit=3))
        seen, after = seen + [item.id for item in page.items], page.next
        newest = await kept.add(conversation)
    assert (seen, after) == (made[::-1], None)
    nowhere = ("0001-01-01T00:00:00+10:00~3", "9999-12-31T23:59:59-10:00~3")  # no such time in UTC
    for cursor in ("", "x", "2026-01-01~", "2026-01-01T00:00:00~5", "~1", f"r{10**30}", "r-1", "٣~٣", *nowhere):
        assert (await found(kept, after=cursor))[0] == newest
        assert len(await found(kept, "picture", after=cursor)) == 16


async def test_days_are_counted_in_full_and_what_there_is_to_choose_from_is_counted(kept: Filled) -> None:
    first, second = await kept.conversation(), await kept.conversation()
    moments = [datetime(2026, 3, day, hour, tzinfo=UTC) for day, hour in ((1, 23), (2, 0), (2, 23), (3, 0))]
    made = [await kept.add(first, at=moment, model="Pro") for moment in moments]
    assert await found(kept, day_from=date(2026, 3, 2), day_to=date(2026, 3, 2)) == made[2:0:-1]
    assert await found(kept, day_from=date(2026, 3, 3)) == [made[3]]
    assert await found(kept, day_to=date(2026, 3, 1)) == [made[0]]
    assert await found(kept, day_from=date.min, day_to=date.max) == made[::-1]
    gone, put_away = await kept.add(first, model="Flash"), await kept.add(second, model="Flash")
    upload = await kept.add(
        first, None, origin=ImageOrigin.UPLOADED, size=(64, 64), at=datetime(2026, 4, 1, tzinfo=UTC)
    )
    await kept.gallery.star("local", [made[0], gone], True)
    await kept.gallery.tag("local", [*made, gone, put_away], "sea")
    await kept.gallery.delete("local", [gone])
    await kept.store.conversations.delete(second, "local")
    facets = await kept.gallery.facets("local")
    assert (facets.total, facets.starred, facets.tags) == (5, 1, {"sea": 4})
    assert (facets.models, facets.sources) == ({"Pro": 4}, {"made": 4, "uploaded": 1})
    assert list(facets.months.items()) == [("2026-04", 1), ("2026-03", 4)]
    assert facets.shapes == {"16:9": 4, "1:1": 1}
    assert await found(kept, model="Pro", is_starred=False, tag="sea", shape="16:9") == made[:0:-1]
    assert await found(kept, source="uploaded", conversation_id=first) == [upload]


# Changes, and whose they are


async def test_leafing_by_conversation_shows_the_one_that_goes_on_first_and_every_picture_once(kept: Filled) -> None:
    old, new = await kept.conversation(), await kept.conversation()
    pictures = [await kept.add(conversation) for conversation in (old, new, old, new, new)]
    in_database(kept.home, "UPDATE conversations SET updated_at = ? WHERE id = ?", "2026-11-01 00:00:00.000000", old)
    in_database(kept.home, "UPDATE conversations SET updated_at = ? WHERE id = ?", "2026-11-02 00:00:00.000000", new)
    seen, after = list[int](), None
    while after is not None or not seen:
        page = await kept.gallery.page("local", GalleryQuery(after=after, limit=2, is_by_conversation=True))
        seen, after = [*seen, *(item.id for item in page.items)], page.next
    assert seen == [pictures[at] for at in (4, 3, 1, 2, 0)]
    assert await found(kept, is_by_conversation=True, after="2026-11-02T00:00:00+00:00~999") == seen


async def test_an_attempt_that_a_review_sent_back_is_told_and_can_be_hidden(kept: Filled) -> None:
    conversation = await kept.conversation()
    turn = begun_turn("t-reviewed", "a fox")
    await kept.store.turns.begin(conversation, turn)
    poor, good = Review(score=0.2, feedback="There is no fox."), Review(score=0.9)
    first, unseen = await kept.add(conversation, details={"review": poor}), await kept.add(conversation)
    best = await kept.add(conversation, details={"review": good})
    canvas = SmartCanvas(handles=("#3",), earlier=("#1", "#2"))
    await kept.store.turns.finish(
        conversation, turn.model_copy(update={"state": TurnState.DONE, "components": (canvas,)})
    )
    items = (await kept.gallery.page("local", GalleryQuery())).items
    assert [(item.id, item.is_rejected) for item in items] == [(best, False), (unseen, False), (first, True)]
    assert await found(kept, hides_rejected=True) == [best, unseen]
    assert await found(kept, "picture", hides_rejected=True) == [best, unseen]


async def test_nobody_sees_or_changes_the_pictures_of_another(kept: Filled) -> None:
    own, other = [await kept.add(await kept.conversation(owner), "a fox") for owner in ("me", "you")]
    gallery = kept.gallery
    assert await found(kept, owner="me") == await found(kept, "fox", owner="me") == [own]
    assert [item.id for item in await gallery.items("me", [other, own])] == [own]
    tagged = gallery.tag("me", [other], "mine"), gallery.untag("me", [other], "mine")
    for changed in (*tagged, gallery.star("me", [other], True), gallery.delete("me", [other])):
        assert await changed == ()
    assert await gallery.undelete("me", [other]) == ()
    for attempt in (found(kept, owner="me", similar_to=other), gallery.zip_of("me", [other], name_of=lambda _: "x")):
        assert await refusal(attempt) is ErrorCode.PICTURE_GONE
    [item] = await gallery.items("you", [other])
    assert (item.is_starred, item.tags, (await gallery.facets("me")).total) == (False, (), 1)
    embedder = WordEmbedder(same={"vixen": "fox"})
    for owner in ("you", "me"):
        await found(kept, "vixen", embedder, owner)
        await gallery.settled()
        assert await found(kept, "vixen", embedder, owner) == [own if owner == "me" else other]
    again = await kept.add((await gallery.items("you", [other]))[0].conversation_id, data=png("#000001"))
    assert await found(kept, owner="you", similar_to=other) == [again]
    assert await found(kept, owner="me", similar_to=own) == []


async def test_many_are_changed_at_once_or_none_and_what_is_no_picture_is_passed_over(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(3)]
    strange = [0, -1, 10**6, 2**63, 10**40]
    assert await kept.gallery.star("local", [*strange, *made[:2]], True) == tuple(made[:2])
    assert await kept.gallery.delete("local", strange) == ()
    assert await kept.gallery.tag("local", made, "  red   sea ") == tuple(made)
    await kept.gallery.tag("local", made[:1], "Red Sea")
    await kept.gallery.untag("local", made[2:], "RED SEA")
    assert await kept.gallery.tag("local", made, " \n ") == ()
    await kept.gallery.tag("local", made[2:], "x" * 1000)
    expected = [(True, ("red sea",)), (True, ("red sea",)), (False, ("x" * 64,))]
    in_database(
        kept.home,
        f"CREATE TRIGGER refuse BEFORE INSERT ON picture_tags WHEN NEW.picture_id = {made[2]}"
        " BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    with pytest.raises(StorageFailure):
        await kept.gallery.tag("local", made, "blue")
    assert [(item.is_starred, item.tags) for item in await kept.gallery.items("local", [*made, *made])] == expected


async def test_a_deleted_picture_is_gone_but_for_its_name_and_comes_back_for_thirty_days(kept: Filled) -> None:
    conversation = await kept.conversation()
    stays, goes, late = [await kept.add(conversation, "a fox") for _ in range(3)]
    assert await kept.gallery.delete("local", [goes, late]) == (goes, late)
    assert await kept.gallery.delete("local", [goes]) == ()
    assert await found(kept) == await found(kept, "fox") == [stays]
    assert await found(kept, similar_to=stays) == []
    without = await kept.store.conversations.get(conversation, "local")
    assert ([one.handle for one in without.pictures], without.gone) == (["#1"], ("#2", "#3"))
    assert [one.handle for one in await kept.gallery.deleted("local", conversation)] == ["#2", "#3"]
    assert await kept.gallery.deleted("another", conversation) == ()
    in_database(kept.home, "UPDATE pictures SET deleted_at = datetime(deleted_at, '-31 days') WHERE id = ?", late)
    assert await kept.gallery.undelete("local", [goes, stays, late]) == (goes,)
    assert await found(kept) == [goes, stays]


# Taken away


async def test_no_name_in_a_zip_leaves_its_folder_and_a_file_that_is_gone_is_named(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation) for _ in range(4)]
    digest = (await kept.gallery.items("local", made[3:]))[0].picture.image.digest
    (kept.home / "pictures" / digest[:2] / f"{digest}.png").unlink()
    names = iter(["../Fox.png", "..\\fox.PNG", "/-fox.png", "gone.png"])
    zipped = await kept.gallery.zip_of("local", made, name_of=lambda _: next(names))
    with zipfile.ZipFile(zipped.path) as archive:
        assert archive.namelist() == ["-Fox.png", "-fox-2.PNG", "--fox.png"]
        assert archive.testzip() is None
    assert (zipped.count, zipped.left_out, os.stat(zipped.path).st_mode & 0o777) == (3, ("#4",), 0o600)
    os.unlink(zipped.path)

    async def fails(_: GalleryItem) -> bytes:
        raise ValueError("no recipe")

    with pytest.raises(RequestRefused, match="#4"):
        await kept.gallery.zip_of("local", made[3:], name_of=lambda _: "x")
    with pytest.raises(ValueError, match="no recipe"):
        await kept.gallery.zip_of("local", made, name_of=lambda _: "x", bytes_of=fails)
    assert os.listdir(kept.home / "temporary") == []


async def test_on_a_full_disk_no_half_of_a_zip_stays_and_searches_go_on(
    kept: Filled, caplog: pytest.LogCaptureFixture
) -> None:
    async def large(_: GalleryItem) -> bytes:
        return bytes(30_000_000)

    conversation = await kept.conversation()
    made = await kept.add(conversation, "a fox")
    assert await found(kept, "fox") == [made]
    await kept.add(conversation, "another fox")
    with full_disk((kept.home / "aivista.db-wal").stat().st_size):
        assert await found(kept, "fox") == [made]
        with pytest.raises(StorageFailure) as failed:
            await kept.gallery.zip_of("local", [made], name_of=lambda _: "x.png", bytes_of=large)
    assert failed.value.code is ErrorCode.DISK_FULL
    assert "not read for searches" in caplog.text
    assert os.listdir(kept.home / "temporary") == []


# Words

WRITTEN = [
    *(("two bridges", "bridge"), ("a lady with berries", "berry"), ("two boxes", "box"), ("ＦＯＸ", "fox")),
    *(("a suspension bridge", "suspens"), ("ein Füchsle im Schnee", "fuchsle schnee"), ("a fox", "FOX!?")),
    *(("水墨画里的一只鹤", "鹤"), ("水墨画里的一只鹤", "水墨画"), ("夕焼けの東京タワー", "東京タワー")),
    *(("iPhone15手机海报", "海报 iphone15"), ("The", "the"), ("是的", "是的")),
]
NOT_THERE = ["carpet", "bridgehead", "猫", "?!", '"', "NEAR(a b)", "words:zebra", "* OR *", "-", "'; --"]


async def test_words_are_found_however_they_are_written_and_nothing_is_a_command(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = {prompt: await kept.add(conversation, prompt) for prompt in dict(WRITTEN)}
    assert [words for prompt, words in WRITTEN if made[prompt] not in await found(kept, words)] == []
    assert [words for words in NOT_THERE if await found(kept, words)] == []


async def test_the_more_words_match_the_better_and_words_that_every_text_is_full_of_do_not_count(kept: Filled) -> None:
    conversation = await kept.conversation()
    prompts = ["a red bridge", "a red bridge at night", "a red car", "fox", "海报，红色为主，中间是一座跨江大桥"]
    two, three, one, fox, chinese = [await kept.add(conversation, prompt) for prompt in prompts]
    for prompt in ("the one with the hat, and with a bow", "一片红色的花海"):
        await kept.add(conversation, prompt)
    assert await found(kept, "red bridge night") == [three, two, one]
    assert await found(kept, "with the fox") == [fox]
    assert (await found(kept, "有桥的红色海报"))[0] == chinese


async def test_every_word_that_belongs_to_a_picture_finds_it_and_the_place_is_told(kept: Filled) -> None:
    conversation = await kept.conversation(title="Summer holidays")
    made = await kept.add(
        conversation,
        "heron over reeds",
        words="please draw water birds",
        model="Nano Pro",
        styles=("Ukiyo-e woodblock print",),
        details={"alt": "A grey bird", "review": Review(score=0.9, lettering="GRAND OPENING")},
    )
    places = {"holidays": "title", "birds": "words", "heron": "prompt", "grey": "alt", "nano": "model", "framed": "tag"}
    places |= {"grand opening": "lettering", "浮世绘": "style"}
    assert await found(kept, "framed") == []
    await kept.gallery.tag("local", [made], "framed")
    for words, place in places.items():
        [item] = (await kept.gallery.page("local", GalleryQuery(words=words))).items
        assert item.match is not None
        assert (item.id, item.match.place, item.match.found_by) == (made, place, (GalleryFoundBy.WORDS,)), words
    await kept.gallery.untag("local", [made], "framed")
    assert await found(kept, "framed") == []


async def test_a_search_goes_on_where_its_page_ended_and_says_when_it_may_have_missed_some(tmp_path: Path) -> None:
    async with filled(tmp_path) as kept:
        conversation = await kept.conversation()
        made = [await kept.add(conversation, "a fox") for _ in range(100)]
        page = await kept.gallery.page("local", GalleryQuery(words="fox", limit=60))
        assert (page.found, page.is_whole) == (100, True)
        await kept.add(conversation, "a fox")
        await kept.gallery.delete("local", [made[0]])
        seen = [item.id for item in page.items]
        while page.next is not None:
            page = await kept.gallery.page("local", GalleryQuery(words="fox", limit=60, after=page.next))
            seen += [item.id for item in page.items]
        assert seen == made[:0:-1]
    async with filled(tmp_path, patience_s=0) as kept:
        kept.count = 200
        newest = await kept.add(conversation, "a wolf")
        assert not (await kept.gallery.page("local", GalleryQuery(words="wolf"))).is_whole
        await kept.gallery.settled()
        assert await found(kept, "wolf") == [newest]


# Meaning


@pytest.mark.parametrize("failure", [NetworkFailure(ErrorCode.CONNECTION_FAILED), ValueError("no vector")])
async def test_a_model_that_fails_or_does_not_answer_fails_no_search(
    tmp_path: Path, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = WordEmbedder()
    async with filled(tmp_path) as kept:
        made = await kept.add(await kept.conversation(), "a fox")
        await read(kept, embedder)
        embedder.failure = failure
        asked = len(embedder.asked)
        for _ in range(3):
            assert await found(kept, "fox", embedder) == [made]
        assert len(embedder.asked) <= asked + 1, "a model that failed is left alone for a while"
    assert "found by their words" in caplog.text
    embedder.failure = None
    async with filled(tmp_path, patience_s=0.05) as kept:
        embedder.open.clear()
        assert await found(kept, "fox", embedder) == [made]


async def test_vectors_that_are_gone_are_made_anew(kept: Filled) -> None:
    conversation = await kept.conversation()
    made, alike = await kept.add(conversation, "kitten"), await kept.add(conversation, "a lake", data=png("#000002"))
    embedder = WordEmbedder(same={"cat": "kitten"})
    await read(kept, embedder)
    assert (await found(kept, "cat", embedder), await found(kept, similar_to=made)) == ([made], [alike])
    lose_vectors(kept.home)
    assert await found(kept, similar_to=made) == [alike]
    await read(kept, embedder)
    assert await found(kept, "cat", embedder) == [made]


async def test_pictures_are_found_by_meaning_but_not_as_far_as_chance_and_put_to_each_model_once(
    tmp_path: Path,
) -> None:
    prompts = ["kitten sleeping", "cat", "mountain lake", "steam engine"]
    embedder, other = WordEmbedder(same={"cat": "kitten", "小猫": "kitten"}), WordEmbedder("words-2", 64)
    async with filled(tmp_path) as kept:
        conversation = await kept.conversation()
        meant, both, *_ = [await kept.add(conversation, prompt) for prompt in prompts]
        for model in (embedder, other, embedder):
            await read(kept, model)
        assert (await found(kept, "cat", embedder), await found(kept, "zebra", embedder)) == ([both, meant], [])
        assert set(await found(kept, "小猫", embedder)) == {meant, both}
    async with filled(tmp_path) as kept:
        await read(kept, embedder)
    for model in (embedder, other):
        assert sorted(text for text in model.asked if text in prompts[::2]) == prompts[::2]


async def test_words_that_are_the_name_of_their_owner_are_looked_for_too(kept: Filled) -> None:
    embedder = WordEmbedder(same={"local": "kitten"})
    conversation = await kept.conversation()
    meant = await kept.add(conversation, "kitten")
    await read(kept, embedder)
    await kept.add(conversation, "steam engine")
    assert await found(kept, "local", embedder, owner="local") == [meant], "while the owner's new picture is read"


async def test_pictures_whose_words_match_come_before_those_that_are_only_about_the_same(kept: Filled) -> None:
    embedder = WordEmbedder(same={"feline": "kitten", "cat": "kitten"})
    conversation = await kept.conversation()
    # The fewer words beside it, the closer is a text's meaning to that one word.
    texts = ["a kitten in a very long sentence about gardens and old trains", "cat", "feline"]
    said, *meant = [await kept.add(conversation, text) for text in texts]
    tagged, lettered = (
        await kept.add(conversation, "blue"),
        await kept.add(conversation, "green", details={"review": Review(score=1.0, lettering="KITTEN")}),
    )
    await kept.gallery.tag("local", [tagged], "kitten")
    await read(kept, embedder)
    page = await kept.gallery.page("local", GalleryQuery(words="kitten"), embedder=embedder)
    order = [item.id for item in page.items]
    assert set(order[:3]) == {said, tagged, lettered}
    assert set(order[3:]) == set(meant)
    assert [bool(item.match and item.match.place) for item in page.items] == [True] * 3 + [False] * 2


# Looks


def photo(name: str) -> Image.Image:
    with Image.open(Path(__file__).parents[2] / "data" / "photos" / f"{name}.webp") as image:
        return image.convert("RGB").resize((256, 256))


async def test_the_same_scene_in_other_light_or_cropped_is_found_and_a_damaged_picture_stops_no_other(
    kept: Filled,
) -> None:
    conversation, coffee = await kept.conversation(), photo("coffee")
    base = await kept.add(conversation, data=png(coffee))
    darker = await kept.add(conversation, data=png(ImageEnhance.Brightness(coffee).enhance(0.7)))
    for name in ("rocket", "gravel", "hubble", "chelsea"):
        await kept.add(conversation, data=png(photo(name)))
    cropped = await kept.add(conversation, "a cup", data=png(coffee.crop((16, 16, 240, 240))))
    damaged = await kept.add(conversation, data=b"\x89PNG no picture at all")
    clear = await kept.add(conversation, data=png(Image.new("RGBA", (64, 64), (255, 0, 0, 0))))
    white = await kept.add(conversation, data=png("white"))
    assert set(await found(kept, similar_to=base)) == {darker, cropped}
    assert await found(kept, "cup", similar_to=base) == [cropped]
    page = await kept.gallery.page("local", GalleryQuery(similar_to=base))
    match = page.items[0].match
    assert match is not None
    assert (page.is_whole, match.found_by, (match.similarity or 0) > 0.9) == (True, (GalleryFoundBy.LOOKS,), True)
    assert await found(kept, similar_to=damaged) == []
    assert await found(kept, similar_to=clear) == [white], "what is see-through looks as on white"
    blue = await kept.images.write(png("blue"), "image/png", ImageOrigin.GENERATED)
    in_database(kept.home, "UPDATE pictures SET digest = ? WHERE id = ?", blue.digest, white)
    assert await found(kept, similar_to=clear) == [], "the looks of another picture are not believed"
