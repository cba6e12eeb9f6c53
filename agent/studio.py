"""The one door: conversations, turns and pictures. The page, the HTTP API and other people's scripts go through it."""

from __future__ import annotations

import asyncio
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pydantic import SecretStr

from agent.conversation import Conversation, ConversationInfo, Turn
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import Step, ThoughtLog, TurnEvent
from agent.imaging.handles import allot_handle
from agent.imaging.intake import check_request, is_blank, shown_name, take_in
from agent.messages import ImageOrigin, PromptMessage, Role, TextPart
from agent.pictures import Picture, Receipt
from agent.providers.base import PLAIN, PictureBytes, Provider
from agent.providers.catalogue import Catalogue, ModelRole, catalogue_of
from agent.providers.pool import ProviderPool
from agent.settings import Settings, TurnSettings
from agent.storage.cache import HistoryImageCache
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.styles import StyleLibrary

if TYPE_CHECKING:
    from agent.workflow.deps import Deps
    from agent.workflow.live import LiveTurn
    from agent.workflow.retrying import Breakers

MAX_WAITING = 3
_MAX_REQUESTS = 1000
_CLOSE_S = 1.5


@dataclass(frozen=True)
class TurnRequest:
    """What the person sends: words, pictures, and what they chose for this turn.

    `images` takes bytes, paths, or pairs of a file name and bytes. `editing` is the handle of the picture marked to be
    changed, `references` those marked as references. The same `request_id` twice runs once.
    """

    text: str
    images: Sequence[bytes | Path | tuple[str, bytes]] = ()
    mask: None = None
    settings: TurnSettings = field(default_factory=TurnSettings)
    editing: str | None = None
    references: tuple[str, ...] = ()
    request_id: str | None = None


@dataclass(frozen=True)
class StoredPicture:
    """A picture with its bytes, exactly as they were made or taken in."""

    picture: Picture
    data: bytes

    @property
    def mime_type(self) -> str:
        """The type of the bytes."""
        return self.picture.image.mime_type

    @property
    def receipt(self) -> Receipt | None:
        """Asked against got; an upload has none."""
        return self.picture.receipt


class Studio:
    """The whole program without a screen. Use it as an async context manager.

    `provider` makes the models that replace Gemini and sketch, for scripts and tests that bring their own; it is given
    the store that pictures are read from and written to.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        provider: Callable[[PictureBytes], Provider] | None = None,
        sketch_pace_s: float = 0.0,
    ) -> None:
        self.settings = settings
        self.catalogue: Catalogue = catalogue_of(settings)
        self._images = ImageStore(settings.home)
        self._records = ConversationStore(settings.home, self._images)
        self._cache = HistoryImageCache(
            settings.home, ttl_s=settings.history_cache_ttl_s, limit_bytes=settings.history_cache_limit_bytes
        )
        self._styles = StyleLibrary(settings.home)
        self._providers = ProviderPool(settings, self._images, sketch_pace_s=sketch_pace_s)
        self._own_provider = provider(self._images) if provider else None
        self._live: dict[str, list[LiveTurn]] = defaultdict(list)
        self._requests: dict[tuple[str, str, str | None], LiveTurn] = {}
        # A lock lives as long as a turn that uses it: conversations come and go by the thousand.
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._allotting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._breakers: Breakers | None = None
        self._kept: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Studio:
        await self._records.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End running turns, on record as far as they came, and close what is open."""
        for live in [one for turns in self._live.values() for one in turns]:
            await live.stop()
        if self._kept:
            await asyncio.wait(self._kept, timeout=_CLOSE_S)
        for task in self._kept:
            task.cancel()
        await self._providers.aclose()
        await self._records.aclose()
        await self._cache.aclose()
        await self._styles.aclose()

    # Conversations

    async def new_conversation(self, owner: str = "local") -> Conversation:
        """Return a new, empty conversation."""
        return await self._records.create(owner)

    async def conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a conversation. Raises RequestRefused when the owner has none of that id."""
        return await self._records.get(conversation_id, owner)

    async def conversations(self, owner: str = "local") -> list[ConversationInfo]:
        """Return the owner's conversations, the newest first."""
        return await self._records.list(owner)

    # Turns

    async def run_turn(
        self,
        conversation_id: str,
        request: TurnRequest,
        *,
        owner: str = "local",
        key: SecretStr | None = None,
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn and stream what happens. The last event is TurnDone, TurnFailed or TurnStopped.

        Bad input ends with TurnFailed, not with an exception. Closing the stream does not stop the turn.
        """
        live = self._start(conversation_id, request, owner, key)
        async for event in live.follow():
            yield event

    async def attach(self, conversation_id: str, owner: str = "local") -> AsyncIterator[TurnEvent]:
        """Follow the running turn of a conversation from its first event; end at once when none runs."""
        for live in self._running(conversation_id, owner)[:1]:
            async for event in live.follow():
                yield event

    async def cancel(self, conversation_id: str, owner: str = "local") -> bool:
        """Stop what runs or waits in the conversation; return whether there was anything to stop."""
        running = self._running(conversation_id, owner)
        for live in reversed(running):
            await live.stop()
        return bool(running)

    def is_running(self, conversation_id: str, owner: str = "local") -> bool:
        """Whether a turn of the conversation is at work or waits."""
        return bool(self._running(conversation_id, owner))

    # Pictures

    async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
        """Return a picture with its bytes. Raises RequestRefused when there is none of that handle."""
        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return StoredPicture(picture, await self._images.read(picture.image))

    async def thumbnail(
        self, conversation_id: str, handle: str, edge_px: int, owner: str = "local"
    ) -> tuple[bytes, str]:
        """Return a small version of a picture as WebP, its longer edge at most `edge_px`, and its type."""
        conversation = await self._records.get(conversation_id, owner)
        digest = conversation.picture(handle).image.digest
        return await self._images.thumbnail(digest, edge_px), "image/webp"

    # Models

    def provider_name(self, key: SecretStr | None = None) -> str:
        """Return which provider serves this key: `gemini`, `openai` or `sketch`."""
        return "gemini" if self._own_provider is not None else self._providers.name(key)

    async def test_key(self, key: SecretStr) -> ErrorInfo | None:
        """Try a key with one tiny call; return what is wrong with it, or None."""
        from agent.workflow.hearing import hear

        provider = self._own_provider or await self._providers.gemini(key)
        ask = PromptMessage(role=Role.PROMPT, parts=(TextPart(text="Answer with OK."),))
        answer = await hear(provider.stream(self.catalogue.model(ModelRole.FLASH, "gemini"), [ask], (), PLAIN))
        return answer.error

    # Inside

    def _start(self, conversation_id: str, request: TurnRequest, owner: str, key: SecretStr | None) -> LiveTurn:
        from agent.workflow.live import LiveTurn
        from agent.workflow.turn import record_stop, run_graph

        name = (conversation_id, owner, request.request_id)
        if name in self._requests:
            return self._requests[name]
        prepared: list[Deps] = []

        async def work(live: LiveTurn) -> None:
            if len(turns) > MAX_WAITING + 1:
                raise RequestRefused(ErrorCode.QUEUE_FULL, count=len(turns) - 1)
            if order.locked():
                live.publish(ThoughtLog(step=Step.WAITING))
            async with order:
                # Uploads get their handles here: a late picture of the turn before must not take the same.
                async with allotting:
                    deps, uploads = await self._prepare(live, request, owner, key, allotting)
                    # Before the first write: a turn stopped while it is recorded must not stay there as running.
                    prepared.append(deps)
                    await self._records.begin_turn(conversation_id, deps.turn, uploads)
                await run_graph(deps, live)

        async def on_stop(live: LiveTurn) -> None:
            if prepared:
                await record_stop(prepared[0], live)

        turns = self._live[conversation_id]
        order = self._order.setdefault(conversation_id, asyncio.Lock())
        allotting = self._allotting.setdefault(conversation_id, asyncio.Lock())
        live = LiveTurn(conversation_id, owner, work, on_stop, self._forget)
        turns.append(live)
        if request.request_id:
            self._requests[name] = live
            if len(self._requests) > _MAX_REQUESTS:
                self._requests.pop(next(iter(self._requests)))
        return live

    def _forget(self, live: LiveTurn) -> None:
        self._live[live.conversation_id].remove(live)
        if not self._live[live.conversation_id]:
            del self._live[live.conversation_id]

    def _running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        return [live for live in self._live.get(conversation_id, []) if live.owner == owner and not live.is_done]

    async def _prepare(
        self, live: LiveTurn, request: TurnRequest, owner: str, key: SecretStr | None, allotting: asyncio.Lock
    ) -> tuple[Deps, list[Picture]]:
        """Return what the turn works with and its uploads, not yet on record. Raises RequestRefused for bad input."""
        from agent.workflow.deps import Deps
        from agent.workflow.retrying import Breakers, Patience
        from agent.workflow.turn import prompt_message

        self._breakers = self._breakers or Breakers()
        if is_blank(request.text) and not request.images:
            raise RequestRefused(ErrorCode.NOTHING_SENT)
        check_request(request.text, len(request.images))
        conversation = await self._records.get(live.conversation_id, owner)
        handles = [request.editing] if request.editing else []
        for handle in (*handles, *request.references):
            conversation.picture(handle)
        turn_id = uuid.uuid4().hex
        uploads = await self._take_in(request, conversation, turn_id)
        turn = Turn(
            id=turn_id,
            text=request.text,
            settings=request.settings,
            started_at=datetime.now(UTC),
            uploads=tuple(picture.image for picture in uploads),
            editing=request.editing,
            references=request.references,
        )
        # On record with its own message, so that the model hears of the turn even when this process dies in it.
        turn = turn.model_copy(update={"messages": (prompt_message(turn),)})
        deps = Deps(
            conversation=conversation,
            turn=turn,
            provider=await self._provider(key),
            provider_name=self.provider_name(key),
            catalogue=self.catalogue,
            images=self._images,
            records=self._records,
            cache=self._cache,
            styles=self._styles,
            allotting=allotting,
            publish=live.publish,
            patience=Patience(budget_s=self.settings.retry_budget_s),
            breakers=self._breakers,
            keep_alive=self.keep_alive,
            stopped=live.stopped,
        )
        return deps, uploads

    async def _take_in(self, request: TurnRequest, conversation: Conversation, turn_id: str) -> list[Picture]:
        """Return the uploads as pictures with handles; all are read before the first is stored."""
        read = [await _read(image, number) for number, image in enumerate(request.images, 1)]
        taken = [await take_in(data, name) for name, data in read]
        handles = [picture.handle for picture in conversation.pictures]
        uploads = []
        for one in taken:
            part = await self._images.write(one.data, one.mime_type, ImageOrigin.UPLOADED)
            handles.append(allot_handle(handles, base=None))
            named = part.model_copy(update={"width": one.width, "height": one.height, "handle": handles[-1]})
            uploads.append(Picture(handle=handles[-1], image=named, turn_id=turn_id, created_at=datetime.now(UTC)))
        return uploads

    async def _provider(self, key: SecretStr | None) -> Provider:
        return self._own_provider or await self._providers.provider(key)

    def keep_alive(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work that must go on whoever stops listening, and hold on to it until it is done."""
        task = asyncio.create_task(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task


async def _read(image: bytes | Path | tuple[str, bytes], number: int) -> tuple[str, bytes]:
    """Return a name to speak of and the bytes of one picture of a request."""
    if isinstance(image, bytes):
        return f"Picture {number}", image
    if isinstance(image, tuple):
        return image
    try:
        return image.name, await asyncio.to_thread(image.read_bytes)
    except OSError as error:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=shown_name(image.name)) from error
