"""Real pictures in real records, behind routes of the page, for one visitor or two."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from PIL import Image
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from agent.conversation import Conversation
from agent.messages import ImageOrigin
from agent.pictures import Picture
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.studio import StoredPicture
from tests.support.histories import NOW, begun_turn, finished
from webui.guard import Guard, HostRules
from webui.picture_work import PictureSource
from webui.sessions import COOKIE, Sessions

Routes = Callable[[Callable[[], PictureSource], Sessions], list[Route]]


@dataclass(frozen=True)
class KeptPictures:
    """A `PictureSource` from real records."""

    store: ConversationStore
    images: ImageStore

    async def conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        return await self.store.get(conversation_id, owner)

    async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
        picture = (await self.store.get(conversation_id, owner)).picture(handle)
        return StoredPicture(picture, await self.images.read(picture.image))

    async def keep(self, *pictures: bytes, owner: str = "local") -> str:
        """Put the pictures on record as #1, #2, … of a new conversation; return its id."""
        conversation = await self.store.create(owner)
        turn = begun_turn("t1", "draw")
        await self.store.begin_turn(conversation.id, turn)
        for number, data in enumerate(pictures, start=1):
            image = await self.images.write(data, "image/png", ImageOrigin.GENERATED)
            named = image.model_copy(update={"handle": f"#{number}", "width": 1, "height": 1})
            picture = Picture(handle=f"#{number}", image=named, turn_id="t1", created_at=NOW)
            await self.store.add_picture(conversation.id, picture)
        await self.store.finish_turn(conversation.id, finished(turn))
        return conversation.id


@asynccontextmanager
async def kept_pictures(home: Path) -> AsyncIterator[KeptPictures]:
    """Yield empty records."""
    images = ImageStore(home)
    store = ConversationStore(home, images)
    await store.open()
    try:
        yield KeptPictures(store, images)
    finally:
        await store.aclose()


def visitor(routes: Sequence[Route], sessions: Sessions, cookie: str | None) -> httpx.AsyncClient:
    """Return a browser that asks these routes through the guard, with a cookie or without."""
    app = Starlette(
        routes=list(routes), middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)]
    )
    cookies = {COOKIE: cookie} if cookie is not None else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:7860", cookies=cookies)


def png(image: Image.Image) -> bytes:
    """Return the image as the bytes of a PNG."""
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def decoded(data: bytes) -> Image.Image:
    """Return the pixels of an answer."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image
