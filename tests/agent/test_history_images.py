"""Pictures of the past on their way to a text model: placeholders, and how they are had again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent import (
    ContentPart,
    Conversation,
    ErrorCode,
    ImageOrigin,
    ImagePart,
    Picture,
    PromptMessage,
    Role,
    TextPart,
    ToolResultPart,
)
from agent.history_images import fetch_history_image, replace_history_images
from agent.storage.cache import ByteCache, history_images
from agent.storage.images import ImageStore
from tests.support.cases import each_case
from tests.support.histories import NOW
from tests.support.refusals import refusal


@dataclass
class Album:
    """An image store and a cache below one home."""

    home: Path
    cache: ByteCache

    def __post_init__(self) -> None:
        self.images = ImageStore(self.home)

    async def add(self, handle: str, data: bytes = b"", origin: ImageOrigin = ImageOrigin.UPLOADED) -> ImagePart:
        part = await self.images.write(data or handle.encode(), "image/png", origin)
        return part.model_copy(update={"handle": handle, "width": 64, "height": 36})

    async def fetch(self, image_id: str, *held: ImagePart) -> ToolResultPart:
        pictures = tuple(Picture(handle=part.handle or "", image=part, turn_id="t", created_at=NOW) for part in held)
        conversation = Conversation(id="c", owner="local", title="", created_at=NOW, updated_at=NOW, pictures=pictures)
        return await fetch_history_image(image_id, conversation, self.cache, self.images.read, self.images.write)

    def lose(self, image: ImagePart) -> None:
        (self.home / "pictures" / image.digest[:2] / f"{image.digest}.png").unlink()


@pytest.fixture
async def album(tmp_path: Path) -> AsyncIterator[Album]:
    cache = history_images(tmp_path, free_space_floor_bytes=0)
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


async def test_the_pictures_of_an_earlier_tools_result_move_into_its_content(album: Album) -> None:
    part = await album.add("#2", origin=ImageOrigin.GENERATED)
    result = ToolResultPart(name="generate_image", call_id="c1", content={"handles": ["#2"]}, images=(part,))
    told = result.model_copy(update={"content": {"pictures": ["#2"]}})
    seen = replace_history_images((prompt("draw"), says(Role.TOOL, result, told), prompt("now")))
    stand_in = f"[Picture:history_{part.md5}] (#2, generated)"
    assert seen[1].parts == (
        ToolResultPart(name="generate_image", call_id="c1", content={"handles": ["#2"], "pictures": [stand_in]}),
        ToolResultPart(name="generate_image", call_id="c1", content={"pictures": ["#2", stand_in]}),
    )


@each_case(
    "wrapping",
    [
        *("{md5}", "history_{md5}", "[Picture:history_{md5}]", "[picture:history_{MD5}] (#1, uploaded by the user)"),
        *("  Picture:history_{md5} ", "{short}", "history_{short}"),
    ],
)
async def test_a_picture_is_fetched_by_its_md5_however_it_is_written(album: Album, wrapping: str) -> None:
    part, other = await album.add("#1"), await album.add("#2")
    image_id = wrapping.format(md5=part.md5, MD5=part.md5.upper(), short=part.md5[:8])
    result = await album.fetch(image_id, part, other)
    assert (result.is_error, result.images) == (False, (part,))
    told = {"handle": "#1", "origin": "uploaded by the user", "width": 64, "height": 36, "size_bytes": 2}
    assert result.content == {"image_id": f"history_{part.md5}", **told}


async def test_an_id_that_leads_nowhere_or_to_several_is_answered_with_a_sentence(album: Album) -> None:
    held, strange = await album.add("#1"), await album.add("#9")
    twin = (await album.add("#2")).model_copy(update={"md5": held.md5[:12] + "0" * 20})
    await album.cache.put(strange.md5, b"#9")
    sentences = {
        held.md5[:7]: "too short",
        "history_": "not an image id",
        "": "not an image id",
        "#1": "not an image id",
        "../../etc/passwd": "not an image id",
        "0" * 32: "holds no picture",
        strange.md5: "holds no picture",
        held.md5 + "0": "holds no picture",
        held.md5[:12]: "fits several",
    }
    for image_id, sentence in sentences.items():
        result = await album.fetch(image_id, held, twin)
        assert (result.is_error, result.images) == (True, ())
        assert sentence in str(result.content["error"])
    assert (await album.fetch(held.md5, held, twin)).images == (held,)


async def test_cache_and_file_stand_in_for_each_other_and_what_is_gone_from_both_has_expired(album: Album) -> None:
    part, lost = await album.add("#1"), await album.add("#2")
    assert await album.cache.get(part.md5) is None
    assert (await album.fetch(part.md5, part)).images == (part,)
    assert await album.cache.get(part.md5) == b"#1"
    # The file is made again from the cache.
    album.lose(part)
    assert (await album.fetch(part.md5, part)).images == (part,)
    assert await album.images.read(part) == b"#1"
    album.lose(lost)
    result = await album.fetch(lost.md5, lost)
    assert (result.is_error, result.images, "expired" in str(result.content["error"])) == (True, (), True)
    assert await refusal(album.images.read(lost)) is ErrorCode.PICTURE_FILE_MISSING
    # It does not end the turn.
    seen = replace_history_images((prompt(lost), prompt("now")))
    assert seen[0].text == f"[Picture:history_{lost.md5}] (#2, uploaded by the user)"
