"""The one door: conversations, turns and pictures. The page, the HTTP API and other people's scripts go through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, ConversationInfo
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import TurnEvent
from agent.imaging.recipe_desk import RecipeDesk
from agent.mcp.states import ServerState
from agent.messages import PromptMessage, Role, TextPart
from agent.pictures import Picture, StoredPicture
from agent.plans import Decision
from agent.providers.base import PLAIN, PictureBytes, Provider
from agent.providers.catalogue import Catalogue, ModelRole, catalogue_of
from agent.providers.pool import ProviderPool
from agent.redaction import secrets_of
from agent.requests import Mask, TurnRequest
from agent.sandbox.runner import Sandbox
from agent.settings import Settings
from agent.storage.answer_cache import AnswerCache
from agent.storage.cache import HistoryImageCache
from agent.storage.conversations import ConversationStore
from agent.storage.gallery import Gallery
from agent.storage.gallery_values import GalleryPage, GalleryQuery
from agent.storage.images import ImageStore
from agent.storage.preferences import PreferenceStore
from agent.storage.spend import SpendBook
from agent.storage.styles import StyleLibrary
from agent.storage.traces import Traces
from agent.storage.workspace import Workspace, WorkspaceStore
from agent.tools.script_files import ScriptRun, run_file
from agent.trace import TraceStep
from agent.workflow.again import request_of
from agent.workflow.retrying import Breakers
from agent.workflow.search_meters import SearchMeters

if TYPE_CHECKING:
    from agent.archive.archive import Archive
    from agent.fetching.reading import PageReader
    from agent.mcp.toolbox import Toolbox
    from agent.storage.finding import FoundConversation
    from agent.storage.records import RunningTurn
    from agent.tools.base import Tool
    from agent.workflow.dispatch import Dispatch
    from agent.workflow.later_edits import Pictures
    from agent.workflow.live import LiveTurn
    from agent.workflow.metering import Meter

__all__ = ["StoredPicture", "Studio", "TurnRequest"]

_CLOSE_S = 1.5
_REPORT_BYTES = 512 << 10


class Studio:
    """The whole program without a screen. Use it as an async context manager.

    `provider` makes the models that replace Gemini and sketch, for scripts and tests that bring their own; it is given
    the store that pictures are read from and written to. `tools` are further ones that the agent may call,
    `reader` reads the web for it instead of one that dials public addresses alone.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        provider: Callable[[PictureBytes], Provider] | None = None,
        tools: Sequence[Tool] = (),
        reader: PageReader | None = None,
        sketch_pace_s: float = 0.0,
    ) -> None:
        self.settings = settings
        self.catalogue: Catalogue = catalogue_of(settings)
        self._images = ImageStore(settings.home)
        self._records = ConversationStore(settings.home, self._images, trace_limit_bytes=settings.trace_limit_bytes)
        self._cache = HistoryImageCache(
            settings.home, ttl_s=settings.history_cache_ttl_s, limit_bytes=settings.history_cache_limit_bytes
        )
        self._styles = StyleLibrary(settings.home)
        self._providers = ProviderPool(settings, self._images, sketch_pace_s=sketch_pace_s)
        self._gallery = Gallery(settings.home, self._records, self._images)
        self._workspaces = WorkspaceStore(self._records)
        self._spend = SpendBook(self._records)
        self._preferences = PreferenceStore(settings)
        self._breakers = Breakers()
        self._meters = SearchMeters(self.catalogue, self._breakers, self._spend, self._cap_day_usd)
        self._recipes = RecipeDesk(self._records, self._images, secrets_of(settings))
        self._archive: Archive | None = None
        self._own_provider = provider(self._images) if provider else None
        self._answers = AnswerCache(settings.home) if settings.reuse_plans else None
        self._tools = tools
        self._toolbox: Toolbox | None = None
        self._reader = reader
        self._sandbox = Sandbox()
        self._dispatch: Dispatch | None = None
        self._kept: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Studio:
        await self._records.open()
        for turn in self._records.abandoned:
            self.keep_alive(self._resume(turn))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End running turns, on record as far as they came, and close what is open."""
        if self._dispatch is not None:
            await self._dispatch.aclose()
        if self._toolbox is not None:
            # Beside the others: what MCP servers were started must end in any case.
            self.keep_alive(self._toolbox.aclose())
        if self._kept:
            await asyncio.wait(self._kept, timeout=_CLOSE_S)
        for task in self._kept:
            task.cancel()
        if self._reader is not None:
            await self._reader.aclose()
        if self._dispatch is not None:
            await self._dispatch.close_checkpoints()
        # What searches began to read asks a provider.
        await self._gallery.aclose()
        await self._providers.aclose()
        await self._records.aclose()
        await self._cache.aclose()
        await self._styles.aclose()
        if self._answers is not None:
            await self._answers.aclose()

    # Conversations

    async def new_conversation(self, owner: str = "local") -> Conversation:
        """Return a new, empty conversation."""
        return await self._records.create(owner)

    async def conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a conversation. Raises RequestRefused when the owner has none of that id."""
        return await self._records.get(conversation_id, owner)

    async def conversations(self, owner: str = "local", limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; neither empty nor deleted ones."""
        return await self._records.list(owner, limit, offset)

    async def search_conversations(
        self, query: str, owner: str = "local", limit: int = 30
    ) -> Sequence[FoundConversation]:
        """Return the owner's conversations that hold every word of the query, the newest first, each with where."""
        return await self._records.search(owner, query, limit)

    async def rename_conversation(self, conversation_id: str, title: str, owner: str = "local") -> None:
        """Give a conversation a title for good. Raises RequestRefused for an empty or a too long one."""
        await self._records.rename(conversation_id, owner, title)

    async def pin_conversation(self, conversation_id: str, is_pinned: bool, owner: str = "local") -> None:
        """Have a conversation stand before the others in the list, or not any more."""
        await self._records.pin(conversation_id, owner, is_pinned)

    async def delete_conversation(self, conversation_id: str, owner: str = "local") -> None:
        """Stop what runs in a conversation and take it out of every list; `undelete_conversation` brings it back."""
        await self.cancel(conversation_id, owner)
        await self._records.delete(conversation_id, owner)

    async def undelete_conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a deleted conversation, which is as it was before."""
        return await self._records.undelete(conversation_id, owner)

    async def duplicate_conversation(self, conversation_id: str, owner: str = "local", title: str = "") -> Conversation:
        """Return a copy of a conversation with every branch, under the same title unless one is given."""
        return await self._records.duplicate(conversation_id, owner, title)

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str = "local") -> Conversation:
        """Return the conversation with the branch shown that holds this turn, up to its newest turn.

        Raises RequestRefused while a turn runs, and for a turn that the conversation does not have.
        """
        return await self._turns.switch(conversation_id, turn_id, owner)

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
        live = self._turns.begin(conversation_id, request, owner, key)
        async for event in live.follow():
            yield event

    async def decide(
        self,
        conversation_id: str,
        turn_id: str,
        decision: Decision,
        *,
        owner: str = "local",
        key: SecretStr | None = None,
    ) -> AsyncIterator[TurnEvent]:
        """Run or drop the plan that a turn waits with, and stream what happens as `run_turn` does.

        Ends with TurnFailed(PLAN_GONE) when it no longer waits.
        """
        live = self._turns.go_on(conversation_id, turn_id, owner, key, decision=decision)
        async for event in live.follow():
            yield event

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Have a failed or interrupted turn go on where it failed; what was answered is not asked, or paid, again.

        When the conversation has gone on since, the turn is sent again as a new one.
        """
        conversation = await self.conversation(conversation_id, owner)
        turn = next((one for one in conversation.turns if one.id == turn_id), None)
        if turn is None:
            return
        if self._turns.can_go_on(conversation, turn, key):
            live = self._turns.go_on(conversation_id, turn_id, owner, key)
        else:
            request = await request_of(conversation, turn, self._images)
            live = self._turns.begin(conversation_id, request, owner, key)
        async for event in live.follow():
            yield event

    async def request_of(self, conversation_id: str, turn_id: str, owner: str = "local") -> TurnRequest:
        """Return the request that a turn of the branch that is shown was, to be said otherwise.

        Raises RequestRefused for a turn that is not there, and when the file of one of its pictures is gone.
        """
        conversation = await self.conversation(conversation_id, owner)
        turn = next((one for one in conversation.turns if one.id == turn_id), None)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return await request_of(conversation, turn, self._images)

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

    async def report(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> dict[str, JsonValue]:
        """Return the debug report of a turn: everything that happened, no key, no byte of a picture.

        Raises RequestRefused when the owner has no such turn.
        """
        conversation = await self._records.get(conversation_id, owner)
        turn = await self._records.turn(conversation.id, turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return await self._turns.report(conversation, turn, key, _REPORT_BYTES)

    async def trace(
        self, conversation_id: str, turn_id: str | None = None, owner: str = "local"
    ) -> tuple[TraceStep, ...]:
        """Return the steps of a turn, or of all turns of every branch: what was sent, what came, how long, how much.

        Raises RequestRefused when the owner has no such conversation.
        """
        conversation = await self._records.get(conversation_id, owner)
        return await self.traces.steps(conversation.id, None if turn_id is None else [turn_id])

    @property
    def traces(self) -> Traces:
        """The steps of every turn, by conversation: whose that is, is for the caller to ask first."""
        return self._records.traces

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

    # Files

    def workspace(self, conversation_id: str, owner: str = "local") -> Workspace:
        """Return the files of a conversation; each call on them asks whether that is the owner's."""
        return self._workspaces.of(conversation_id, owner)

    async def run_script(self, conversation_id: str, name: str, owner: str = "local") -> ScriptRun:
        """Run a JavaScript file of a conversation over its files, in the sandbox; return what came of it.

        What it writes may overwrite: the person asked for it. Raises RequestRefused: FILE_NOT_FOUND, FILE_NOT_TEXT.
        """
        return await run_file(self.workspace(conversation_id, owner), self._sandbox, name)

    # MCP servers

    def mcp_servers(self) -> tuple[ServerState, ...]:
        """Return how it stands with each server of the operator's that gives its tools; nothing is connected for it."""
        return self._tools_of_a_turn().servers() if self.settings.mcp_servers else ()

    # Masked edits

    async def grow_mask(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a masked edit's answer under a mask that takes in what went beyond the first one: a new picture,
        without a request. Raises RequestRefused where there is nothing to take in.
        """
        from agent.workflow.later_edits import grow_mask

        return await grow_mask(self._pictures_of(conversation_id, owner), handle)

    async def keep_only(
        self, conversation_id: str, handle: str, owner: str = "local", *, mask: Mask | None = None
    ) -> Picture:
        """Return the picture that an edit was made from with the edit in the mask alone, else in all that changed: a
        new picture, without a request. Raises RequestRefused where the two cannot be compared.
        """
        from agent.workflow.later_edits import keep_only

        return await keep_only(self._pictures_of(conversation_id, owner), handle, mask)

    async def keep(self, conversation_id: str, handle: str, keep: bool, owner: str = "local") -> Picture:
        """Put on record that the person keeps a masked edit, or discards it: then nothing leans on it unasked."""
        from agent.workflow import later_edits

        return await later_edits.keep(self._pictures_of(conversation_id, owner), handle, is_kept=keep)

    # What is kept

    @property
    def styles(self) -> StyleLibrary:
        """The style library: curated styles, and each owner's own."""
        return self._styles

    @property
    def gallery(self) -> Gallery:
        """All pictures of an owner's conversations."""
        return self._gallery

    async def gallery_page(self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None) -> GalleryPage:
        """Return a page of the owner's pictures; words find by meaning as well where the key's provider can tell.

        What that costs is added to what the owner spent today; it is not done when the day's cap is used up. Raises
        what `Gallery.page` raises, and StorageFailure.
        """
        embedder = await self._embedder(owner, key) if query.words.strip() else None
        return await self._gallery.page(owner, query, embedder=embedder)

    @property
    def recipes(self) -> RecipeDesk:
        """Pictures taken away with their recipe or without, and found again by one."""
        return self._recipes

    @property
    def spend(self) -> SpendBook:
        """What was spent, by conversation, day and month."""
        return self._spend

    @property
    def preferences(self) -> PreferenceStore:
        """What each owner chose for good: their caps."""
        return self._preferences

    @property
    def archive(self) -> Archive:
        """Conversations taken out as one file, and taken in again."""
        if self._archive is None:
            from agent.archive.archive import Archive

            self._archive = Archive(self._records, self._images, self.settings.home)
        return self._archive

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

    @property
    def _turns(self) -> Dispatch:
        if self._dispatch is None:
            # LangGraph takes a good part of a second to import, which the first page need not wait for.
            from agent.fetching.reading import PageReader
            from agent.workflow.dispatch import Dispatch, House

            self._reader = self._reader or PageReader()
            self._dispatch = Dispatch(
                House(
                    settings=self.settings,
                    catalogue=self.catalogue,
                    images=self._images,
                    records=self._records,
                    cache=self._cache,
                    styles=self._styles,
                    under_caps=self._preferences.applied,
                    provider=self._provider,
                    provider_name=self.provider_name,
                    keep_alive=self.keep_alive,
                    tools=self._tools_of_a_turn().tools,
                    reader=self._reader,
                    sandbox=self._sandbox,
                    answers=self._answers,
                    breakers=self._breakers,
                )
            )
        return self._dispatch

    def _tools_of_a_turn(self) -> Toolbox:
        if self._toolbox is None:
            from agent.mcp.toolbox import Toolbox
            from agent.tools.registry import TOOLS

            self._toolbox = Toolbox(self.settings, (*TOOLS.values(), *self._tools))
        return self._toolbox

    def _pictures_of(self, conversation_id: str, owner: str) -> Pictures:
        from agent.workflow.later_edits import Pictures

        allotting = self._turns.allotting(conversation_id)
        return Pictures(conversation_id, owner, self._records, self._images, allotting)

    def _running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        return self._dispatch.running(conversation_id, owner) if self._dispatch else []

    async def _resume(self, abandoned: RunningTurn) -> None:
        """Have a turn go on that a dead process left behind. Calls of unknown outcome are not made again."""
        conversation = await self._records.conversation_of_any_owner(abandoned.conversation_id)
        turn = next((one for one in conversation.turns if one.id == abandoned.turn_id), None)
        if turn is not None and self._turns.can_go_on(conversation, turn, None):
            self._turns.go_on(conversation.id, turn.id, conversation.owner, None, may_repeat=False)

    async def _embedder(self, owner: str, key: SecretStr | None) -> Meter | None:
        name = self.provider_name(key)
        if not self._meters.has_model(name):
            return None
        return await self._meters.of(owner, await self._provider(key), name)

    async def _cap_day_usd(self, owner: str) -> float | None:
        return (await self._preferences.of(owner)).cap_day_usd

    async def _provider(self, key: SecretStr | None) -> Provider:
        return self._own_provider or await self._providers.provider(key)

    def keep_alive(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work that must go on whoever stops listening, and hold on to it until it is done."""
        task = asyncio.create_task(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        return task
