"""Pictures found by words in two languages, by meaning on a real LanceDB, and by their looks."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image, ImageEnhance

from agent.errors import ErrorCode, NetworkFailure, StorageFailure
from agent.messages import ImageOrigin
from agent.reviews import Review
from agent.storage.gallery_index import FOLDER, AboutVectors, VectorTables, table_of_model
from agent.storage.gallery_looks import LENGTH, looks_of
from agent.storage.gallery_search import fused
from agent.storage.gallery_values import FoundBy, GalleryItem, GalleryQuery
from agent.storage.gallery_words import Term, terms_of
from agent.storage.style_table import EmbeddingModel
from tests.support.children import run_child
from tests.support.galleries import Filled, WordEmbedder, filled, png

PHOTOS = Path(__file__).parents[2] / "data" / "photos"


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


async def searched(kept: Filled, words: str, embedder: WordEmbedder | None = None, **query: object) -> list[int]:
    asked = GalleryQuery.model_validate({"words": words, **query})
    return [item.id for item in (await kept.gallery.page("local", asked, embedder=embedder)).items]


async def first(kept: Filled, words: str, embedder: WordEmbedder | None = None) -> GalleryItem:
    return (await kept.gallery.page("local", GalleryQuery(words=words), embedder=embedder)).items[0]


# Words


async def test_a_sentence_finds_the_picture_whose_prompt_says_it_in_either_language(kept: Filled) -> None:
    conversation = await kept.conversation()
    english = await kept.add(conversation, "A poster in bold red, a suspension bridge across it")
    chinese = await kept.add(conversation, "海报，红色为主，中间是一座跨江大桥")
    for prompt in ("the sky over the sea with the moon", "a red car", "the bridge", "一片红色的花海", "有猫的房间"):
        await kept.add(conversation, prompt)
    assert (await searched(kept, "the red poster with the bridge"))[0] == english
    assert (await searched(kept, "有桥的红色海报"))[0] == chinese


async def test_the_more_words_match_the_better_and_not_all_must(kept: Filled) -> None:
    conversation = await kept.conversation()
    two = await kept.add(conversation, "a red bridge")
    three = await kept.add(conversation, "a red bridge at night")
    one = await kept.add(conversation, "a red car")
    await kept.add(conversation, "the sea")
    assert await searched(kept, "red bridge night") == [three, two, one]


async def test_words_that_every_text_is_full_of_do_not_count(kept: Filled) -> None:
    conversation = await kept.conversation()
    fox = await kept.add(conversation, "fox")
    for _ in range(5):
        await kept.add(conversation, "the one with the hat, and with a bow on the hat")
    assert await searched(kept, "with the fox") == [fox]
    assert len(await searched(kept, "with the")) == 5


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("two bridges", "bridge"),
        ("a bridge", "bridges"),
        ("a foxy lady", "foxy"),
        ("a lady with berries", "berry"),
        ("two boxes", "box"),
        ("a suspension bridge", "suspens"),
        ("ein Füchsle im Schnee", "fuchsle schnee"),
        ("ＦＯＸ", "fox"),
        ("a fox", "FOX!?"),
        ("水墨画里的一只鹤", "鹤"),
        ("水墨画里的一只鹤", "水墨"),
        ("水墨画里的一只鹤", "水墨画"),
        ("夕焼けの東京タワー", "東京タワー"),
        ("iPhone15手机海报", "海报 iphone15"),
        ("The", "the"),
        ("是的", "是的"),
    ],
)
async def test_words_are_found_however_they_are_written(kept: Filled, prompt: str, words: str) -> None:
    made = await kept.add(await kept.conversation(), prompt)
    assert await searched(kept, words) == [made]


@pytest.mark.parametrize(
    "words", ["carpet", "bridgehead", "猫", "?!", '"', "NEAR(a b)", "words:fox", "* OR *", "-", "'; --"]
)
async def test_what_is_not_there_is_not_found_and_nothing_is_a_command(kept: Filled, words: str) -> None:
    await kept.add(await kept.conversation(), "a car on a bridge")
    assert await searched(kept, words) == []


async def test_every_word_that_belongs_to_a_picture_finds_it_and_the_place_is_told(kept: Filled) -> None:
    conversation = await kept.conversation(title="Summer holidays")
    review = Review(score=0.9, lettering="GRAND OPENING")
    made = await kept.add(
        conversation,
        "heron over reeds",
        words="please draw water birds",
        model="Nano Pro",
        styles=("Ukiyo-e woodblock print",),
        details={"alt": "A grey bird", "review": review},
    )
    await kept.gallery.tag("local", [made], "framed")
    places = {
        "holidays": "title",
        "birds": "words",
        "heron": "prompt",
        "grey": "alt",
        "grand opening": "lettering",
        "浮世绘": "style",
        "nano": "model",
        "framed": "tag",
    }
    for words, place in places.items():
        item = await first(kept, words)
        assert item.match is not None
        assert (item.id, item.match.place, item.match.found_by) == (made, place, (FoundBy.WORDS,)), words
    match = (await first(kept, "heron")).match
    assert match is not None
    assert match.excerpt == "heron over reeds"


async def test_an_upload_is_found_by_what_it_was_sent_with(kept: Filled) -> None:
    made = await kept.add(await kept.conversation(), None, origin=ImageOrigin.UPLOADED)
    item = await first(kept, "words of the turn")
    assert item.match is not None
    assert (item.id, item.match.place) == (made, "words")


async def test_a_tag_is_found_as_soon_as_it_is_given_and_no_longer_than_it_stays(kept: Filled) -> None:
    made = await kept.add(await kept.conversation())
    assert await searched(kept, "framed") == []
    await kept.gallery.tag("local", [made], "framed")
    assert await searched(kept, "framed") == [made]
    await kept.gallery.untag("local", [made], "framed")
    assert await searched(kept, "framed") == []


async def test_a_picture_recorded_again_is_found_by_its_new_words_alone(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = await kept.add(conversation, "a fox")
    assert await searched(kept, "fox") == [made]
    (picture,) = (await kept.store.get(conversation, "local")).pictures
    assert picture.receipt is not None
    again = picture.model_copy(update={"receipt": picture.receipt.model_copy(update={"prompt": "a heron"})})
    await kept.store.add_picture(conversation, again)
    assert (await searched(kept, "fox"), await searched(kept, "heron")) == ([], [made])


async def test_searches_and_filters_combine(kept: Filled) -> None:
    first_one, second_one = await kept.conversation(), await kept.conversation()
    wide = await kept.add(first_one, "a fox", size=(160, 90))
    square = await kept.add(second_one, "a fox", size=(64, 64))
    await kept.add(second_one, "a wolf", size=(64, 64))
    assert await searched(kept, "fox") == [square, wide]
    assert await searched(kept, "fox", shape="1:1") == [square]
    assert await searched(kept, "fox", conversation_id=first_one) == [wide]
    assert await searched(kept, "fox", is_starred=True) == []


async def test_a_search_goes_on_where_its_page_ended_whatever_is_made_meanwhile(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, "a fox") for _ in range(5)]
    page = await kept.gallery.page("local", GalleryQuery(words="fox", limit=2))
    assert (page.found, page.is_whole) == (5, True)
    await kept.add(conversation, "a fox")
    await kept.gallery.delete("local", [made[2]])
    seen = [item.id for item in page.items]
    while page.next is not None:
        page = await kept.gallery.page("local", GalleryQuery(words="fox", limit=2, after=page.next))
        seen += [item.id for item in page.items]
    assert seen == [made[4], made[3], made[1], made[0]]


async def test_many_pictures_are_read_before_the_first_search_answers(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, f"fox number{number}") for number in range(120)]
    assert await searched(kept, "number0") == [made[0]]
    assert len(await searched(kept, "fox", limit=200)) == 120


async def test_a_search_that_cannot_wait_says_that_it_may_have_missed_some(tmp_path: Path) -> None:
    async with filled(tmp_path, patience_s=0) as kept:
        made = await kept.add(await kept.conversation(), "a fox")
        assert not (await kept.gallery.page("local", GalleryQuery(words="fox"))).is_whole
        await kept.gallery.settled()
        page = await kept.gallery.page("local", GalleryQuery(words="fox"))
        assert ([item.id for item in page.items], page.is_whole) == ([made], True)


def test_a_full_disk_leaves_searches_with_the_words_that_are_there(tmp_path: Path) -> None:
    code = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from agent.storage.gallery_values import GalleryQuery
from tests.support.galleries import filled

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def main():
    async with filled(Path(sys.argv[1])) as kept:
        conversation = await kept.conversation()
        await kept.add(conversation, "a fox")
        await kept.gallery.page("local", GalleryQuery(words="fox"))
        await kept.add(conversation, "another fox")
        size = os.stat(Path(sys.argv[1]) / "aivista.db-wal").st_size
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        page = await kept.gallery.page("local", GalleryQuery(words="fox"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        print([item.picture.receipt.prompt for item in page.items])

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path))
    assert child.stdout.strip() == "['a fox']", child.stderr
    assert "not read for searches" in child.stderr


def test_a_query_is_cut_into_what_is_looked_for() -> None:
    assert [term.forms[-1] for term in terms_of("the red poster with the bridge")] == ["red", "poster", "bridge"]
    assert [term.forms[-1] for term in terms_of("有桥的红色海报")] == ["桥", "红色", "色海", "海报"]
    assert terms_of("with the") == (Term(("withs", "with")), Term(("thes", "the"), is_beginning=True))
    assert len(terms_of(" ".join(f"w{number}" for number in range(100)))) == 24
    assert terms_of("  ") == ()


# Meaning


async def test_pictures_are_found_by_meaning_where_no_word_is_the_same(kept: Filled) -> None:
    conversation = await kept.conversation()
    cat = await kept.add(conversation, "kitten sleeping")
    await kept.add(conversation, "mountain lake")
    embedder = WordEmbedder(same={"cat": "kitten", "小猫": "kitten"})
    assert await searched(kept, "cat", embedder) == []
    await kept.gallery.settled()
    item = await first(kept, "cat", embedder)
    assert item.match is not None
    assert (item.id, item.match.found_by, item.match.place) == (cat, (FoundBy.MEANING,), None)
    assert await searched(kept, "小猫", embedder) == [cat]


async def test_what_words_and_meaning_both_find_comes_first(kept: Filled) -> None:
    conversation = await kept.conversation()
    both = await kept.add(conversation, "cat")
    meant = await kept.add(conversation, "kitten")
    said = await kept.add(conversation, "cat fur brush kit sale banner")
    embedder = WordEmbedder(same={"cat": "kitten"})
    await searched(kept, "cat", embedder)
    await kept.gallery.settled()
    found = await searched(kept, "cat", embedder)
    assert set(found) == {both, meant, said}
    item = await first(kept, "cat", embedder)
    assert item.match is not None
    assert item.match.found_by == (FoundBy.WORDS, FoundBy.MEANING)


async def test_each_picture_is_put_to_a_model_once_and_models_are_kept_apart(tmp_path: Path) -> None:
    embedder, other = WordEmbedder(), WordEmbedder("words-2", 64)
    async with filled(tmp_path) as kept:
        conversation = await kept.conversation()
        for prompt in ("red fox", "blue heron"):
            await kept.add(conversation, prompt)
        for one in (embedder, other):
            await searched(kept, "fox", one)
            await kept.gallery.settled()
        await kept.add(conversation, "green newt")
        await searched(kept, "fox", embedder)
        await kept.gallery.settled()
    async with filled(tmp_path) as kept:
        await searched(kept, "fox", embedder)
        await kept.gallery.settled()
    pictures = [text for text in embedder.asked if text in ("red fox", "blue heron", "green newt")]
    assert sorted(pictures) == ["blue heron", "green newt", "red fox"]
    assert sorted(text for text in other.asked if text in ("red fox", "blue heron")) == ["blue heron", "red fox"]
    folders = {path.name for path in (tmp_path / FOLDER).iterdir()}
    models = [EmbeddingModel(id="words-1", dimension=192), EmbeddingModel(id="words-2", dimension=64)]
    assert folders == {f"{table_of_model(model)}.lance" for model in models}


async def test_nothing_is_found_by_meaning_that_is_as_far_as_chance(kept: Filled) -> None:
    conversation = await kept.conversation()
    for prompt in ("mountain lake", "paper lantern", "steam engine"):
        await kept.add(conversation, prompt)
    embedder = WordEmbedder()
    await searched(kept, "zebra", embedder)
    await kept.gallery.settled()
    assert await searched(kept, "zebra", embedder) == []


@pytest.mark.parametrize("failure", [NetworkFailure(ErrorCode.CONNECTION_FAILED), ValueError("no vector")])
async def test_a_model_that_fails_fails_no_search_and_is_left_alone(
    kept: Filled, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    made = await kept.add(await kept.conversation(), "a fox")
    embedder = WordEmbedder()
    embedder.failure = failure
    assert await searched(kept, "fox", embedder) == [made]
    await kept.gallery.settled()
    asked = len(embedder.asked)
    assert asked
    assert await searched(kept, "fox", embedder) == [made]
    assert len(embedder.asked) == asked
    assert "found by their words" in caplog.text


async def test_a_model_that_does_not_answer_keeps_nobody_waiting(tmp_path: Path) -> None:
    embedder = WordEmbedder()
    async with filled(tmp_path) as kept:
        made = await kept.add(await kept.conversation(), "a fox")
        await searched(kept, "fox", embedder)
        await kept.gallery.settled()
    async with filled(tmp_path, patience_s=0.05) as kept:
        embedder.open.clear()
        assert await searched(kept, "fox", embedder) == [made]


async def test_an_owner_is_shown_nothing_of_another_by_meaning(kept: Filled) -> None:
    await kept.add(await kept.conversation("you"), "kitten")
    embedder = WordEmbedder(same={"cat": "kitten"})
    for owner in ("you", "me"):
        await kept.gallery.page(owner, GalleryQuery(words="cat"), embedder=embedder)
        await kept.gallery.settled()
    yours = await kept.gallery.page("you", GalleryQuery(words="cat"), embedder=embedder)
    mine = await kept.gallery.page("me", GalleryQuery(words="cat"), embedder=embedder)
    assert (len(yours.items), len(mine.items)) == (1, 0)


async def test_a_broken_index_is_made_anew_and_words_are_found_meanwhile(
    kept: Filled, caplog: pytest.LogCaptureFixture
) -> None:
    made = await kept.add(await kept.conversation(), "kitten")
    embedder = WordEmbedder(same={"cat": "kitten"})
    await searched(kept, "cat", embedder)
    await kept.gallery.settled()
    for manifest in (kept.home / FOLDER).rglob("*.manifest"):
        manifest.write_bytes(b"not a manifest")
    assert await searched(kept, "kitten", embedder) == [made]
    assert "made anew" in caplog.text
    await searched(kept, "cat", embedder)
    await kept.gallery.settled()
    assert await searched(kept, "cat", embedder) == [made]


async def test_an_index_that_cannot_be_made_leaves_the_words(kept: Filled, caplog: pytest.LogCaptureFixture) -> None:
    made = await kept.add(await kept.conversation(), "a fox")
    kept.home.joinpath("gallery").write_text("in the way")
    embedder = WordEmbedder()
    assert await searched(kept, "fox", embedder) == [made]
    await kept.gallery.settled()
    assert await searched(kept, "fox", embedder) == [made]
    assert any(record.levelno >= logging.WARNING for record in caplog.records)
    with pytest.raises(StorageFailure):
        await kept.gallery.page("local", GalleryQuery(similar_to=made))


def test_lists_are_brought_together_by_their_places() -> None:
    assert fused([[1, 2, 3], [3, 4]]) == [3, 1, 4, 2]
    assert fused([[5, 6]]) == [5, 6]
    assert fused([[1], [2]]) == [2, 1]


# Looks


def photo(name: str) -> Image.Image:
    with Image.open(PHOTOS / f"{name}.webp") as image:
        return image.convert("RGB").resize((256, 256))


async def alike(kept: Filled, picture_id: int, **query: object) -> list[int]:
    asked = GalleryQuery.model_validate({"similar_to": picture_id, **query})
    return [item.id for item in (await kept.gallery.page("local", asked)).items]


async def test_the_same_scene_in_other_light_or_cropped_is_found_first(kept: Filled) -> None:
    conversation = await kept.conversation()
    coffee = photo("coffee")
    base = await kept.add(conversation, data=png(coffee))
    darker = await kept.add(conversation, data=png(ImageEnhance.Brightness(coffee).enhance(0.7)))
    for name in ("rocket", "gravel", "hubble", "chelsea"):
        await kept.add(conversation, data=png(photo(name)))
    cropped = await kept.add(conversation, "a cup", data=png(coffee.crop((16, 16, 240, 240))))
    assert set(await alike(kept, base)) == {darker, cropped}
    assert await alike(kept, base, words="cup") == [cropped]
    page = await kept.gallery.page("local", GalleryQuery(similar_to=base))
    match = page.items[0].match
    assert match is not None
    assert match.found_by == (FoundBy.LOOKS,)
    assert match.similarity is not None
    assert match.similarity > 0.9
    assert page.is_whole


async def test_a_damaged_picture_looks_like_none_and_stops_no_other(kept: Filled) -> None:
    conversation = await kept.conversation()
    red, crimson = await kept.add(conversation, data=png("red")), await kept.add(conversation, data=png("#f00000"))
    damaged = await kept.add(conversation, data=b"\x89PNG no picture at all")
    assert await alike(kept, red) == [crimson]
    page = await kept.gallery.page("local", GalleryQuery(similar_to=damaged))
    assert (page.items, page.is_whole) == ((), True)


async def test_what_is_not_looked_at_in_time_is_there_the_next_time(tmp_path: Path) -> None:
    async with filled(tmp_path, patience_s=0) as kept:
        conversation = await kept.conversation()
        made = [await kept.add(conversation, data=png(f"#ff00{number:02x}")) for number in range(6)]
        page = await kept.gallery.page("local", GalleryQuery(similar_to=made[0]))
        assert not page.is_whole
        await kept.gallery.settled()
        assert set(await alike(kept, made[0])) == set(made[1:])


async def test_nobodys_pictures_are_shown_to_another_for_their_looks(kept: Filled) -> None:
    mine, yours = await kept.conversation("me"), await kept.conversation("you")
    own = await kept.add(mine, data=png("red"))
    other = await kept.add(yours, data=png("#fe0000"))
    again = await kept.add(yours, data=png("red"))
    for owner, picture, expected in (("you", other, [again]), ("me", own, [])):
        page = await kept.gallery.page(owner, GalleryQuery(similar_to=picture))
        assert [item.id for item in page.items] == expected


async def test_a_deleted_picture_is_not_found_by_its_looks(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = [await kept.add(conversation, data=png("red")) for _ in range(3)]
    await kept.gallery.delete("local", made[:1])
    assert await alike(kept, made[1]) == [made[2]]


async def test_the_looks_of_another_picture_under_an_old_id_are_not_believed(kept: Filled) -> None:
    conversation = await kept.conversation()
    red, crimson = await kept.add(conversation, data=png("red")), await kept.add(conversation, data=png("#f00000"))
    assert await alike(kept, red) == [crimson]
    blue = await kept.images.write(png("blue"), "image/png", ImageOrigin.GENERATED)
    with sqlite3.connect(kept.home / "aivista.db") as database:
        database.execute("UPDATE pictures SET digest = ? WHERE id = ?", (blue.digest, crimson))
    database.close()
    assert await alike(kept, red) == []


def test_looks_are_few_numbers_of_length_one() -> None:
    thumbnail = webp(photo("coffee"))
    looks = looks_of(thumbnail)
    assert looks is not None
    assert len(looks) == LENGTH < 200
    assert sum(value * value for value in looks) == pytest.approx(1, abs=1e-5)
    assert looks_of(thumbnail) == looks
    assert looks_of(thumbnail[:40]) is None
    assert looks_of(b"") is None


def test_colours_tell_plain_pictures_apart() -> None:
    red, crimson, blue = (looks_of(webp(Image.new("RGB", (64, 64), name))) for name in ("red", "#f00000", "blue"))
    assert red is not None
    assert crimson is not None
    assert blue is not None
    assert likeness(red, crimson) > 0.95
    assert likeness(red, blue) < 0.1


def test_what_is_see_through_looks_as_on_white() -> None:
    clear = looks_of(webp(Image.new("RGBA", (64, 64), (255, 0, 0, 0))))
    white = looks_of(webp(Image.new("RGB", (64, 64), "white")))
    assert clear is not None
    assert white is not None
    assert likeness(clear, white) > 0.99


def webp(image: Image.Image) -> bytes:
    import io

    sink = io.BytesIO()
    image.save(sink, "WEBP", lossless=True)
    return sink.getvalue()


def likeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_an_index_of_another_length_is_made_anew(tmp_path: Path) -> None:
    async with filled(tmp_path) as kept:
        conversation = await kept.conversation()
        red, crimson = await kept.add(conversation, data=png("red")), await kept.add(conversation, data=png("#f00000"))
        old = VectorTables(tmp_path)
        await asyncio.to_thread(old.add, "looks", AboutVectors(dimension=3), [])
        from agent.storage.gallery_index import VectorRow

        rows = [VectorRow(red, "ab", "cd", [1.0, 0.0, 0.0])]
        await asyncio.to_thread(old.add, "looks", AboutVectors(dimension=3), rows)
        await asyncio.to_thread(old.close)
        assert await alike(kept, red) == [crimson]


async def test_an_index_that_was_removed_is_made_again(kept: Filled) -> None:
    conversation = await kept.conversation()
    red, crimson = await kept.add(conversation, data=png("red")), await kept.add(conversation, data=png("#f00000"))
    assert await alike(kept, red) == [crimson]
    shutil.rmtree(kept.home / FOLDER)
    await alike(kept, red)
    await kept.gallery.settled()
    assert await alike(kept, red) == [crimson]
