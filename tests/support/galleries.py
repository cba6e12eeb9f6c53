"""Records with pictures of many kinds in them, and the gallery over them."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from PIL import Image

from agent import ImageOrigin, ImagePart, Picture, Receipt, StyleUse, TurnState
from tests.adapters.records import Gallery, GalleryQuery, ImageStore, Records
from tests.support.histories import NOW, begun_turn
from tests.support.pixels import encoded


def png(image: Image.Image | str, size: tuple[int, int] = (64, 36)) -> bytes:
    """Return an image, or a plain colour, as the bytes of a PNG."""
    return encoded(image if isinstance(image, Image.Image) else Image.new("RGB", size, image))


def receipt(prompt: str, words: str = "", model: str = "Flash", styles: tuple[str, ...] = ()) -> Receipt:
    """Return the receipt of a picture that was painted by this prompt."""
    return Receipt(
        prompt=prompt,
        user_text=words,
        model="m",
        model_label=model,
        asked_aspect_ratio=None,
        asked_resolution=None,
        width=64,
        height=36,
        mime_type="image/png",
        styles=tuple(StyleUse(name=style, similarity=1.0) for style in styles),
    )


@dataclass
class Filled:
    """Records that a test fills; pictures are a minute apart, each newer than the one before."""

    home: Path
    store: Records
    images: ImageStore
    gallery: Gallery
    count: int = 0

    async def conversation(self, owner: str = "local", title: str = "A talk", turn_id: str = "") -> str:
        """Make a conversation with one turn that is over, and return its id."""
        one = await self.store.conversations.create(owner, title)
        turn = begun_turn(turn_id or f"t-{one.id[:12]}", "words of the turn")
        await self.store.turns.begin(one.id, turn)
        await self.store.turns.finish(one.id, turn.model_copy(update={"state": TurnState.DONE}))
        return one.id

    async def add(
        self,
        conversation_id: str,
        prompt: str | None = "a picture",
        *,
        at: datetime | None = None,
        data: bytes | None = None,
        size: tuple[int, int] = (64, 36),
        origin: ImageOrigin = ImageOrigin.GENERATED,
        details: dict[str, Any] | None = None,
        **written: Any,
    ) -> int:
        """Put a picture on record, an upload when it has no prompt; return its id."""
        self.count += 1
        handle, at = f"#{self.count:x}", at or NOW + timedelta(minutes=self.count)
        stored = await self.images.write(data or png(f"#{self.count:06x}", size), "image/png", origin)
        image: ImagePart = stored.model_copy(update={"handle": handle, "width": size[0], "height": size[1]})
        turn = (await self.store.conversations.of_any_owner(conversation_id)).turns[-1]
        made = receipt(prompt, **written) if prompt is not None else None
        picture = Picture(handle=handle, image=image, turn_id=turn.id, created_at=at, receipt=made, **(details or {}))
        await self.store.conversations.add_picture(conversation_id, picture)
        owner = (await self.store.conversations.of_any_owner(conversation_id)).owner
        newest = (await self.gallery.page(owner, GalleryQuery(conversation_id=conversation_id, limit=200))).items
        return next(item.id for item in newest if item.picture.handle == handle)


@asynccontextmanager
async def filled(home: Path, **settings: Any) -> AsyncIterator[Filled]:
    """Yield empty records with their gallery."""
    images = ImageStore(home)
    store = Records(home, images)
    await store.open()
    gallery = Gallery(home, store.db, images, **dict[str, Any](patience_s=60.0) | settings)
    try:
        yield Filled(home, store, images, gallery)
    finally:
        await gallery.aclose()
        await store.aclose()


class WordEmbedder:
    """Texts that share words, or what those mean, point the same way; nothing like a real model, but as steady."""

    # The letters that a word must have to mean something.
    shortest = 3

    def __init__(self, model_id: str = "words-1", dimension: int = 192, same: dict[str, str] | None = None) -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.asked: list[str] = []
        self.failure: Exception | None = None
        self.open = asyncio.Event()
        self.open.set()
        self._same = same or {}

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.extend(texts)
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        words = {
            self._same.get(word, word)
            for word in re.findall(rf"[a-z]{{{self.shortest},}}|[\u4e00-\u9fff]{{2}}", text.lower())
        }
        columns = zip(*(self._direction(word) for word in words or {text}), strict=True)
        return [float(sum(column)) for column in columns]

    def _direction(self, word: str) -> list[float]:
        return [value - 127.5 for value in hashlib.shake_256(word.encode()).digest(self.dimension)]
