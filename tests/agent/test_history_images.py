from __future__ import annotations

import contextlib
import logging
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.conversation import Conversation
from agent.errors import ErrorCode, RequestRefused
from agent.events import TurnDone
from agent.history_images import fetch_history_image, replace_history_images
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, Role, TextPart, ToolResultPart
from agent.pictures import Picture
from agent.settings import Settings
from agent.storage.cache import HistoryImageCache
from agent.storage.images import ImageStore
from agent.studio import Studio
from tests.support.gemini import on_gemini
from tests.support.histories import NOW
from tests.support.scenes import png, run, words
from tests.wire_server import Answer, Call, GeminiServer, Text, WireRequest

SIGNATURE = bytes(range(256)) * 20


@dataclass
class Album:
    """An image store and a cache below one home, and a count of what is read."""

    home: Path
    cache: HistoryImageCache
    reads: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.images = ImageStore(self.home)

    async def add(self, handle: str, data: bytes = b"", origin: ImageOrigin = ImageOrigin.UPLOADED) -> ImagePart:
        part = await self.images.write(data or handle.encode(), "image/png", origin)
        return part.model_copy(update={"handle": handle, "width": 64, "height": 36})

    async def read(self, image: ImagePart) -> bytes:
        self.reads[image.md5] += 1
        return await self.images.read(image)

    async def replace(self, messages: Sequence[PromptMessage]) -> Sequence[PromptMessage]:
        return await replace_history_images(messages, self.cache, self.read)

    async def fetch(self, image_id: str, *held: ImagePart) -> ToolResultPart:
        pictures = tuple(Picture(handle=part.handle or "", image=part, turn_id="t", created_at=NOW) for part in held)
        conversation = Conversation(id="c", owner="local", title="", created_at=NOW, updated_at=NOW, pictures=pictures)
        return await fetch_history_image(image_id, conversation, self.cache, self.read, self.images.write)

    def lose(self, image: ImagePart) -> None:
        (self.home / "pictures" / image.digest[:2] / f"{image.digest}.png").unlink()


@pytest.fixture
async def album(tmp_path: Path) -> AsyncIterator[Album]:
    cache = HistoryImageCache(tmp_path, free_space_floor_bytes=0)
    yield Album(tmp_path, cache)
    await cache.aclose()


def says(role: Role, *parts: ContentPart | str) -> PromptMessage:
    return PromptMessage(
        role=role, parts=tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)
    )


def prompt(*parts: ContentPart | str) -> PromptMessage:
    return says(Role.PROMPT, *parts)


def model(*parts: ContentPart | str) -> PromptMessage:
    return says(Role.MODEL, *parts)


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (prompt("hi"),),
        (prompt("hi"), model("hello"), prompt("draw")),
        (prompt("[Picture:history_0123456789abcdef0123456789abcdef] (#1, generated)"), prompt("again")),
        (prompt("![a fox](http://example.org/fox.png) and http://example.org/fox.png"), prompt("again")),
        (model("before any prompt"),),
    ],
    ids=["nothing", "one message", "no pictures", "an existing placeholder", "an http picture", "no prompt"],
)
async def test_what_holds_no_pictures_of_the_past_comes_back_as_it_is(
    album: Album, messages: tuple[PromptMessage, ...]
) -> None:
    assert await album.replace(messages) is messages


async def test_the_pictures_of_the_last_prompt_and_what_follows_it_stay(album: Album) -> None:
    one, two = await album.add("#1"), await album.add("#2", origin=ImageOrigin.GENERATED)
    result = ToolResultPart(name="generate_image", content={"handle": "#2"}, images=(two,))
    alone = (prompt(one, "draw"), model(two), says(Role.TOOL, result))
    assert await album.replace(alone) is alone
    assert not album.reads


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (ImageOrigin.UPLOADED, "uploaded by the user"),
        (ImageOrigin.GENERATED, "generated"),
        (ImageOrigin.EDITED, "edited"),
    ],
)
async def test_an_earlier_picture_becomes_a_placeholder_and_its_bytes_go_to_the_cache(
    album: Album, origin: ImageOrigin, words: str
) -> None:
    part = await album.add("#3", origin=origin)
    messages = (prompt("look", part, "nice"), model("yes"), prompt("and now?"))
    first, *rest = await album.replace(messages)
    assert first == prompt("look", f"[Picture:history_{part.md5}] (#3, {words})", "nice")
    assert [one is other for one, other in zip(rest, messages[1:], strict=True)] == [True, True]
    assert await album.cache.get(part.md5) == (b"#3", "image/png")


async def test_the_same_picture_twice_is_one_entry_under_both_handles(album: Album) -> None:
    one, again = await album.add("#1", b"same"), await album.add("#2", b"same")
    seen = await album.replace((prompt(one), prompt(again), prompt("now")))
    assert [message.text for message in seen[:2]] == [
        f"[Picture:history_{one.md5}] (#1, uploaded by the user)",
        f"[Picture:history_{one.md5}] (#2, uploaded by the user)",
    ]
    assert album.reads == {one.md5: 1}


async def test_the_next_turn_neither_reads_nor_writes_a_picture_again(album: Album) -> None:
    parts = [await album.add(f"#{n}") for n in range(1, 6)]
    messages = (*(prompt(part) for part in parts), prompt("now"))
    seen = await album.replace(messages)
    assert await album.replace(messages) == seen
    assert sorted(album.reads.values()) == [1] * 5


async def test_the_pictures_of_an_earlier_tools_result_move_into_its_content(album: Album) -> None:
    part = await album.add("#2", origin=ImageOrigin.GENERATED)
    result = ToolResultPart(name="generate_image", call_id="c1", content={"handles": ["#2"]}, images=(part,))
    told = result.model_copy(update={"content": {"pictures": ["#2"]}})
    seen = await album.replace((prompt("draw"), says(Role.TOOL, result, told), prompt("now")))
    stand_in = f"[Picture:history_{part.md5}] (#2, generated)"
    assert seen[1].parts == (
        ToolResultPart(name="generate_image", call_id="c1", content={"handles": ["#2"], "pictures": [stand_in]}),
        ToolResultPart(name="generate_image", call_id="c1", content={"pictures": ["#2", stand_in]}),
    )


async def test_signatures_of_words_stay_and_a_signed_picture_leaves_an_unsigned_placeholder(album: Album) -> None:
    part = await album.add("#2", origin=ImageOrigin.GENERATED)
    signed = part.model_copy(update={"thought_signature": SIGNATURE, "signed_by": "m"})
    words = TextPart(text="", thought_signature=SIGNATURE, signed_by="m")
    seen = await album.replace((prompt("draw"), model(words, signed), prompt("now")))
    assert seen[1].parts == (words, TextPart(text=f"[Picture:history_{part.md5}] (#2, generated)"))


async def test_a_picture_that_the_cache_cannot_take_stays_in_full(tmp_path: Path) -> None:
    cache = HistoryImageCache(tmp_path, limit_bytes=400)
    album = Album(tmp_path, cache)
    large, small = await album.add("#1", b"x" * 101), await album.add("#2")
    result = ToolResultPart(name="t", images=(large, small))
    messages = (prompt(large, small), says(Role.TOOL, result), prompt("now"))
    stand_in = f"[Picture:history_{small.md5}] (#2, uploaded by the user)"
    seen = await album.replace(messages)
    assert seen[0] == prompt(large, stand_in)
    assert seen[1].parts == (ToolResultPart(name="t", content={"pictures": [stand_in]}, images=(large,)),)
    await cache.aclose()


async def test_a_picture_whose_file_is_gone_does_not_end_the_turn(album: Album) -> None:
    part = await album.add("#1")
    album.lose(part)
    seen = await album.replace((prompt(part), prompt("now")))
    assert seen[0].text == f"[Picture:history_{part.md5}] (#1, uploaded by the user)"


@pytest.mark.parametrize(
    "wrapping",
    [
        "{md5}",
        "history_{md5}",
        "[Picture:history_{md5}]",
        "[picture:history_{MD5}] (#1, uploaded by the user)",
        "  Picture:history_{md5} ",
        "{short}",
        "history_{short}",
    ],
)
async def test_a_picture_is_fetched_by_its_md5_however_it_is_written(album: Album, wrapping: str) -> None:
    part, other = await album.add("#1"), await album.add("#2")
    image_id = wrapping.format(md5=part.md5, MD5=part.md5.upper(), short=part.md5[:8])
    result = await album.fetch(image_id, part, other)
    assert not result.is_error
    assert result.images == (part,)
    assert result.content == {
        "image_id": f"history_{part.md5}",
        "handle": "#1",
        "origin": "uploaded by the user",
        "width": 64,
        "height": 36,
        "size_bytes": 2,
    }


async def test_an_id_that_leads_nowhere_is_answered_with_a_sentence(album: Album) -> None:
    held, strange = await album.add("#1"), await album.add("#9")
    await album.cache.put(strange.md5, b"#9", "image/png")
    sentences = {
        held.md5[:7]: "too short",
        "history_": "not an image id",
        "": "not an image id",
        "#1": "not an image id",
        "../../etc/passwd": "not an image id",
        "0" * 32: "holds no picture",
        strange.md5: "holds no picture",
        held.md5 + "0": "holds no picture",
    }
    for image_id, sentence in sentences.items():
        result = await album.fetch(image_id, held)
        assert (result.is_error, result.images) == (True, ())
        assert sentence in str(result.content["error"])


async def test_an_ambiguous_id_is_answered_with_a_sentence(album: Album) -> None:
    one = await album.add("#1")
    twin = (await album.add("#2")).model_copy(update={"md5": one.md5[:12] + "0" * 20})
    result = await album.fetch(one.md5[:12], one, twin)
    assert result.is_error
    assert "fits several" in str(result.content["error"])
    assert (await album.fetch(one.md5, one, twin)).images == (one,)


async def test_what_the_cache_has_forgotten_is_taken_from_the_conversation_and_cached_again(album: Album) -> None:
    part = await album.add("#1")
    assert await album.cache.get(part.md5) is None
    assert (await album.fetch(part.md5, part)).images == (part,)
    assert await album.cache.get(part.md5) == (b"#1", "image/png")


async def test_a_file_that_is_gone_is_made_again_from_the_cache(album: Album) -> None:
    part = await album.add("#1")
    await album.replace((prompt(part), prompt("now")))
    album.lose(part)
    assert (await album.fetch(part.md5, part)).images == (part,)
    assert await album.images.read(part) == b"#1"


async def test_a_picture_that_is_gone_everywhere_has_expired(album: Album) -> None:
    part = await album.add("#1")
    album.lose(part)
    result = await album.fetch(part.md5, part)
    assert (result.is_error, result.images) == (True, ())
    assert "expired" in str(result.content["error"])
    with pytest.raises(RequestRefused) as refused:
        await album.images.read(part)
    assert refused.value.code is ErrorCode.PICTURE_FILE_MISSING


async def test_a_signed_picture_is_fetched_without_its_signature(album: Album) -> None:
    part = await album.add("#1", origin=ImageOrigin.GENERATED)
    signed = part.model_copy(update={"thought_signature": SIGNATURE, "signed_by": "m"})
    assert (await album.fetch(part.md5, signed)).images == (part,)


# In whole turns, over real HTTP.


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


def ask_for_it(request: WireRequest) -> Answer:
    """Ask for the picture whose placeholder stands in the history, then say that this was it."""
    if request.function_responses:
        return Text("So that was it.")
    [shown] = re.findall(r"\[Picture:history_([0-9a-f]{32})\]", request.text)
    return Call("get_history_image", {"image_id": shown})


def forget_all(cache: Path) -> None:
    """Let the cache throw all of it out."""
    with contextlib.closing(sqlite3.connect(cache)) as database:
        assert database.execute("DELETE FROM Cache").rowcount == 1
        database.commit()


async def test_a_picture_that_goes_after_it_was_listed_has_expired_and_the_turn_goes_on(
    settings: Settings, server: GeminiServer
) -> None:
    def lose_it(request: WireRequest) -> Answer:
        if not request.function_responses:
            for path in (settings.home / "pictures").rglob("*.png"):
                path.unlink()
            forget_all(settings.home / "cache" / "history_images" / "cache.db")
        return ask_for_it(request)

    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        server.on_text(Text("A red field."))
        await run(studio, conversation.id, "what is this?", png())
        server.on_text(lose_it)
        events = await run(studio, conversation.id, "which colour had it?")
    assert words(events) == "So that was it."
    assert isinstance(events[-1], TurnDone)
    [answer] = server.requests[-1].function_responses
    assert "#1 has expired and its file is gone. Ask the user to add it again." in answer["response"]["error"]
    assert server.requests[-1].pictures == []
    assert server.violations == []


async def test_without_a_place_for_the_cache_pictures_of_the_past_come_and_that_is_logged_once(
    settings: Settings, server: GeminiServer, caplog: pytest.LogCaptureFixture
) -> None:
    settings.home.mkdir()
    (settings.home / "cache").write_text("in the way")
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.new_conversation()
        server.on_text(Text("A red field."), ask_for_it)
        await run(studio, conversation.id, "what is this?", png())
        stored = await studio.picture(conversation.id, "#1")
        for _ in range(2):
            events = await run(studio, conversation.id, "show it to me again")
            assert isinstance(events[-1], TurnDone)
            assert words(events) == "So that was it."
            assert server.requests[-1].pictures == [stored.data]
    warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert ["kept in memory for now" in one.getMessage() for one in warnings] == [True]
    assert server.violations == []
