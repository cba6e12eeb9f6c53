"""The whole program without a user interface: the page, the HTTP API, the MCP server and scripts use it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import SecretStr

from agent.cancellation import shielded
from agent.conversations import Conversations
from agent.errors import AivistaError, RequestRefused
from agent.events import TurnEvent, TurnFailed
from agent.imaging.recipe_service import RecipeService
from agent.mcp.states import ServerState
from agent.pictures import StoredPicture
from agent.providers.base import PictureBytes, Provider
from agent.providers.catalogue import Catalogue, ModelRole, catalogue_of
from agent.providers.key_status import KeyStatusCache
from agent.providers.pool import NO_KEY, ProviderPool
from agent.redaction import secrets_of
from agent.requests import Decision, TurnRequest
from agent.sandbox.runner import Sandbox
from agent.settings import OPERATOR, Settings
from agent.storage.cache import answers, history_images
from agent.storage.gallery import Gallery
from agent.storage.images import ImageStore, ModelPictures
from agent.storage.preferences import PreferenceStore
from agent.storage.quota import Quota
from agent.storage.records import Records
from agent.storage.spend import SpendBook
from agent.storage.styles import StyleLibrary
from agent.storage.workspace import Workspace, WorkspaceStore
from agent.tools.files import ScriptRun, run_file
from agent.trace import TraceStep
from agent.turns import Turns
from agent.workflow.concurrency import BackgroundTasks, ConcurrencyLimiter
from agent.workflow.metering import OwnerMeters
from agent.workflow.model_answers import CircuitBreakers
from agent.workflow.prompt_expansion import ExpandedPrompt, PromptToExpand, expand_prompt
from agent.workflow.sponsoring import Sponsor, SponsorAccount, SponsoredBudget, TurnLimits, TurnRateLimiter

if TYPE_CHECKING:
    from agent.archive.archive import Archive
    from agent.fetching.page_reader import PageReader
    from agent.mcp.toolbox import Toolbox
    from agent.providers.sketch.intent import FoundLook
    from agent.tools.base import Tool
    from agent.workflow.masked import LaterEdits
    from agent.workflow.metering import UsageMeter
    from agent.workflow.scheduler import TurnScheduler

__all__ = ["LostRecords", "StoredPicture", "Studio", "TurnRequest"]

_CLOSE_S = 1.5
# Startup and the first page have priority.
_TIDY_AFTER_S = 5.0
_LOOK_WHETHER_DUE_S = 3600.0
_LOOK_AFTER_OTHERS_S = 2.0
_SAVED_AGAIN_S = 5.0
_log = logging.getLogger(__name__)

# Former methods of Studio and their replacements; each old name works for one more release.
_MOVED = {
    "new_conversation": "conversations.create",
    "conversation": "conversations.get",
    "pinned_and_newest": "conversations.pinned_and_newest",
    "newest_conversation": "conversations.newest",
    "search_conversations": "conversations.search",
    "rename_conversation": "conversations.rename",
    "pin_conversation": "conversations.pin",
    "duplicate_conversation": "conversations.duplicate",
    "switch_branch": "conversations.switch_branch",
    "delete_conversation": "conversations.delete",
    "undelete_conversation": "conversations.undelete",
    "trash": "conversations.trash",
    "delete_forever": "conversations.delete_forever",
    "empty_trash": "conversations.empty_trash",
    "is_running": "turns.is_running",
    "request_of": "turns.request_of",
    "repeated": "turns.repeated",
    "report": "turns.report",
    "estimate": "turns.estimate",
    "grow_mask": "edits.grow_mask",
    "keep_only": "edits.keep_only",
    "keep_transparency": "edits.keep_transparency",
    "keep": "edits.keep",
    "gallery_page": "gallery.page",
    "workspace": "files",
    "fuller_wish": "expand_prompt",
    "keep_house": "start_housekeeping",
}


class LostRecords(NamedTuple):
    """An unreadable database: its name in the home, the number of backups, and the time of the newest one."""

    name: str
    backup_count: int
    newest_backup_at: datetime | None


def _find_look(text: str) -> FoundLook | None:
    """Return how the sketch model draws the style that a request names, None when it names none. Blocking.

    The style library and the sketch model do not depend on each other; this function connects them.
    """
    # Imported with the first sketch: startup does not need the styles.
    from agent.providers.sketch.intent import FoundLook
    from agent.storage.styles import curated_looks, find_curated

    found = find_curated(text)
    if found is None:
        return None
    style, words = found
    return FoundLook(style.name.en, style.name.zh, curated_looks()[style.id], words)


class Studio:
    """The whole program without a user interface. Use it as an async context manager.

    All its data is below `settings.home`. Each item belongs to one owner; other owners can neither read nor change it.

    * `conversations`, `turns`, `edits`: messages and pictures; `files(id)` are the files of one conversation.
    * `gallery`: all pictures of an owner's conversations. `recipes`: export of pictures with or without their recipe.
    * `styles`: the curated styles and each owner's own. `preferences`: each owner's permanent settings.
    * `spend`: spending by conversation, day and month. `traces`: the steps of every turn, by conversation; it does not
      check the owner, so the caller must.
    * `archive`: export and import of conversations as one file. `keys`: the status of API keys.

    `provider` creates models that replace Gemini and sketch, for scripts and tests; it receives the store that
    pictures are read from and written to. `tools` are additional tools that the agent may call. `reader` reads web
    pages instead of the default reader, which connects to public addresses only. `limits` limits the number of turns;
    `sponsor` sets what the operator pays for visitors without a key.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        provider: Callable[[PictureBytes], Provider] | None = None,
        tools: Sequence[Tool] = (),
        reader: PageReader | None = None,
        sketch_pace_s: float = 0.0,
        limits: TurnLimits | None = None,
        sponsor: Sponsor | None = None,
    ) -> None:
        limits = limits or TurnLimits()
        self.settings = settings
        self.catalogue: Catalogue = catalogue_of(settings)
        self._images = ImageStore(settings.home)
        self._records = Records(
            settings.home,
            self._images,
            trace_limit_bytes=settings.trace_limit_bytes,
            free_models={one.id for one in self.catalogue.entries if one.is_free},
        )
        self._quota = Quota(
            self._records.db, self._images, settings.visitor_limit_bytes, settings.visitor_limit_pictures
        )
        self._workspaces = WorkspaceStore(self._records.db, room=self._quota)
        self._cache = history_images(settings.home, settings.history_cache_ttl_s, settings.history_cache_limit_bytes)
        self._providers = ProviderPool(
            settings,
            ModelPictures(self._images),
            originals=self._images,
            sketch_pace_s=sketch_pace_s,
            find_look=_find_look,
        )
        self._own_provider = provider(ModelPictures(self._images)) if provider else None
        rate = TurnRateLimiter(limits.turns_per_visitor) if limits.turns_per_visitor is not None else None
        self.turns = Turns(
            self._records,
            self._images,
            self.catalogue,
            rate,
            key_of=self._key,
            provider_name=self.provider_name,
            scheduler=self._new_scheduler,
        )
        stored = self._records.conversations
        self.conversations = Conversations(stored, self._quota, self.turns.is_running, self.turns.cancel)
        self.gallery = Gallery(settings.home, self._records.db, self._images, embedder_of=self._embedder)
        self.styles = StyleLibrary(settings.home)
        self.spend = SpendBook(self._records.db)
        self.recipes = RecipeService(stored, self._images, secrets_of(settings))
        self.traces = self._records.traces
        self.preferences = PreferenceStore(settings)
        self.keys = KeyStatusCache(self.catalogue, self._providers.check)
        self._breakers = CircuitBreakers()
        self._meters = OwnerMeters(self.catalogue, self._breakers, self.spend, self._cap_day_usd)
        self._answers = answers(settings.home) if settings.reuse_plans else None
        self._tools = tools
        self._toolbox: Toolbox | None = None
        self._reader = reader
        self._sandbox = Sandbox()
        self._room = ConcurrencyLimiter(limits.turns_at_once) if limits.turns_at_once is not None else None
        self._sponsor = SponsorAccount(sponsor, self.spend, self.keep_alive) if sponsor is not None else None
        self._kept = BackgroundTasks()
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @cached_property
    def archive(self) -> Archive:
        """Export and import of conversations as one file."""
        from agent.archive.archive import Archive

        return Archive(self._records.conversations, self._images, self.settings.home, room=self._quota)

    @cached_property
    def edits(self) -> LaterEdits:
        """The edits that a user makes to an existing picture without a model."""
        from agent.workflow.masked import LaterEdits

        return LaterEdits(self._records, self._images)

    def files(self, conversation_id: str, owner: str = "local") -> Workspace:
        """Return the files of a conversation; each call on them checks that the owner owns the conversation."""
        return self._workspaces.of(conversation_id, owner)

    async def __aenter__(self) -> Studio:
        await self._records.open()
        # Not in `_kept`, whose tasks end by themselves: this one runs until the studio closes.
        self._saving = asyncio.create_task(self._save_unsaved())
        for turn in self._records.abandoned:
            self.keep_alive(self.turns.resume_abandoned(turn))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Interrupt running turns, record their progress so that the next start resumes them, and close everything."""
        self._closing.set()
        # Each is closed also if another one fails, the last first.
        async with AsyncExitStack() as closing:
            # The gallery's indexing tasks call a provider.
            for part in (self._answers, self.styles, self._cache, self._records, self._providers, self.gallery):
                if part is not None:
                    closing.push_async_callback(part.aclose)
            if self.turns.scheduler is not None:
                closing.push_async_callback(self.turns.scheduler.settle)
            if self._reader is not None:
                closing.push_async_callback(self._reader.aclose)
            if self.turns.scheduler is not None:
                await self.turns.scheduler.aclose()
            if self._toolbox is not None:
                # Concurrently with the rest: started MCP servers must end in any case.
                self.keep_alive(self._toolbox.aclose())
            await self._kept.end(_CLOSE_S)
            if self._saving is not None:
                await self._saving

    async def wind_down(self, grace_s: float) -> None:
        """Refuse new turns, wait at most `grace_s` seconds for running ones, and record the rest as interrupted."""
        self._closing.set()
        if self.turns.scheduler is not None:
            await self.turns.scheduler.finish(grace_s)

    def warm_up(self) -> None:
        """Load in the background what the first turn needs and startup does not; do nothing while closing.

        What is in memory then is exempt from garbage collection.
        """
        if not self._closing.is_set():
            self.keep_alive(self._warm_up())

    def start_housekeeping(self) -> None:
        """Start the background work of a long-running studio: clean up, back up, resume turns of dead processes."""
        for work in (self._tidy_up(), self._back_up(), self._take_over()):
            self.keep_alive(work)

    async def _tidy_up(self) -> None:
        """Daily purge what was deleted over 30 days ago; at the start and hourly, delete old archives.

        An archive is old when it was not downloaded within a day. This runs until the studio closes."""
        from agent.storage.housekeeping import tidy_if_due

        await self._hourly(lambda now: tidy_if_due(self.settings.home, now))

    async def _back_up(self) -> None:
        """Back up the database once a day until the studio closes."""
        from agent.storage.backups import Backups

        await self._hourly(Backups(self.settings.home).make_if_due)

    async def _hourly(self, work: Callable[[datetime], object]) -> None:
        """Run the work on a thread soon after the start and then every hour, until the studio closes."""
        wait_s = _TIDY_AFTER_S
        while not await self._closes_within(wait_s):
            await asyncio.to_thread(work, datetime.now(UTC))
            # The clock may jump, so check every hour instead of sleeping for a day.
            wait_s = _LOOK_WHETHER_DUE_S

    async def _take_over(self) -> None:
        """Resume turns of processes that died, as a start does, until the studio closes."""
        while not await self._closes_within(_LOOK_AFTER_OTHERS_S):
            with contextlib.suppress(AivistaError):
                for turn in await self._records.turns.newly_abandoned():
                    self.keep_alive(self.turns.resume_abandoned(turn))

    async def _closes_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _save_unsaved(self) -> None:
        """Write pictures that did not fit on the full disk as soon as there is space, until the studio closes."""
        await self._images.reserve.stand_by()
        while not await self._closes_within(_SAVED_AGAIN_S):
            await self._images.save_unsaved()
            await self._images.reserve.stand_by()
        if not await self._images.save_unsaved():
            _log.error("the studio ends with pictures that the full disk had no room for: they are lost")
        self._images.reserve.give_back()

    async def _warm_up(self) -> None:
        from agent.workflow.reception import compile_words

        # What is loaded stays until the process ends. A full collection that looks at it holds up all turns and streams
        # for a tenth of a second.
        gc.disable()
        try:
            await asyncio.to_thread(compile_words)
            await asyncio.to_thread(import_module, "agent.workflow.graph")
            # Only an embedding model needs LanceDB for its vectors, and LanceDB takes seconds to import.
            has_meaning = self._meters.has_model(self._providers.name(None))
            with contextlib.suppress(AivistaError):
                await self._provider(None)
                await self.styles.warm_up(with_meaning=has_meaning)
        finally:
            gc.freeze()
            gc.enable()

    async def not_ready(self) -> tuple[str, ...]:
        """Return why the studio cannot take turns now: `turns` (it is closing), `records`, `disk`; empty if it can."""
        return (*(("turns",) if self._closing.is_set() else ()), *await self._records.not_ready())

    async def lost_records(self) -> LostRecords | None:
        """Return details of an unreadable database that was set aside; None without one, or after a restore."""
        from agent.storage.backups import Backups

        def look() -> LostRecords | None:
            backups = Backups(self.settings.home)
            name = backups.unreadable()
            if name is None:
                return None
            made = backups.all()
            return LostRecords(name, len(made), made[0].made_at if made else None)

        return await asyncio.to_thread(look)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Transfer an owner's data and preferences to another owner, except conversations with an active turn."""
        await self._records.conversations.hand_over(owner, new_owner, self.turns.busy(owner))
        await self.styles.hand_over(owner, new_owner)
        await self.preferences.hand_over(owner, new_owner)

    # Turns

    async def run_turn(
        self, conversation_id: str, request: TurnRequest, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn and stream its events. The last event is TurnDone, TurnFailed, TurnStopped or TurnPaused.

        Invalid input and exceeded limits end with TurnFailed, not with an exception. Closing the stream does not stop
        the turn: follow it from any event with `turns.find`.
        """
        try:
            live = self.turns.start(conversation_id, request, owner=owner, key=key)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        async for _, event in live.follow():
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
        """Run or drop the plan of a waiting turn, and stream the following events as `run_turn` does.

        Ends with TurnFailed(PLAN_GONE) when the turn no longer waits.
        """
        try:
            live = self.turns.decide(conversation_id, turn_id, decision, owner=owner, key=key)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        async for _, event in live.follow(live.before):
            yield event

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Resume a failed or interrupted turn where it failed, and stream the following events.

        Answered calls are neither repeated nor paid again. When the conversation has continued since, the request is
        sent again as a new turn.
        """
        try:
            live = await self.turns.retry(conversation_id, turn_id, owner=owner, key=key)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        async for _, event in live.follow(live.before):
            yield event

    def attach(self, conversation_id: str, owner: str = "local") -> AsyncIterator[TurnEvent]:
        """Stream the events of a conversation's running turn since it started or resumed; empty when none runs.

        A turn of another process yields its pictures as they are recorded, and all other events when it ends.
        """
        return self.turns.attach(conversation_id, owner)

    async def cancel(self, conversation_id: str, owner: str = "local", *, turn_id: str | None = None) -> bool:
        """Stop all running and queued turns of the conversation, or only `turn_id`; return whether there was any.

        Their progress is recorded. This works in any process; there, a turn may stop after this call returns."""
        return await self.turns.cancel(conversation_id, owner, turn_id)

    # Pictures and files

    async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
        """Return a picture with its bytes. Raises RequestRefused when no picture has that handle."""
        conversation = await self._records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return StoredPicture(picture, await self._images.read(picture.image))

    async def unrecorded_picture(self, conversation_id: str, digest: str, owner: str = "local") -> tuple[bytes, str]:
        """Return bytes and MIME type of a generated picture that a full disk kept out of the records.

        Raises RequestRefused when there is none with that digest.
        """
        await self._records.conversations.get(conversation_id, owner)
        image = self._images.offered(conversation_id, digest)
        return await self._images.read(image), image.mime_type

    async def thumbnail(
        self, conversation_id: str, handle: str, edge_px: int, owner: str = "local"
    ) -> tuple[bytes, str]:
        """Return a WebP thumbnail of a picture, its longer edge at most `edge_px`, and its MIME type."""
        conversation = await self._records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return await self._images.thumbnail(picture.image.digest, edge_px, picture.handle), "image/webp"

    async def run_script(self, conversation_id: str, name: str, owner: str = "local") -> ScriptRun:
        """Run a JavaScript file of a conversation on its files in the sandbox; return the result.

        It may overwrite files, because the user asked for the run. Raises RequestRefused(FILE_NOT_FOUND or
        FILE_NOT_TEXT).
        """
        return await run_file(self.files(conversation_id, owner), self._sandbox, name)

    def mcp_servers(self) -> tuple[ServerState, ...]:
        """Return the state of each configured MCP server; this opens no connection."""
        return self._tools_of_a_turn().servers() if self.settings.mcp_servers else ()

    async def trace(
        self, conversation_id: str, turn_id: str | None = None, owner: str = "local"
    ) -> tuple[TraceStep, ...]:
        """Return the steps of a turn, or of all turns on all branches: requests, answers, durations and costs.

        Raises RequestRefused when the owner has no such conversation.
        """
        conversation = await self._records.conversations.get(conversation_id, owner)
        return await self.traces.steps(conversation.id, None if turn_id is None else [turn_id])

    # Models

    def provider_name(self, key: SecretStr | None = None, owner: str = OPERATOR) -> str:
        """Return the provider that serves an owner with this key: `gemini`, `openai` or `sketch`."""
        if self._own_provider is not None:
            return self.catalogue.keyed(ModelRole.FLASH).provider
        return self._providers.name(self._key(owner, key))

    async def expand_prompt(
        self, wish: PromptToExpand, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> ExpandedPrompt:
        """Return a short prompt expanded into a detailed one, without sending it.

        When the caller is cancelled, the model call still completes and its cost is recorded. Raises what
        `prompt_expansion.expand_prompt` raises, and KeyProblem when the sponsor's cap is used up.
        """
        writing: asyncio.Task[ExpandedPrompt] = self.keep_alive(self._expanded(wish, owner, key))
        return await shielded(writing)

    # Inside

    async def _expanded(self, wish: PromptToExpand, owner: str, key: SecretStr | None) -> ExpandedPrompt:
        sponsor = self._sponsor_of(owner, key)
        if sponsor is not None and (problem := await sponsor.problem()):
            raise problem
        provider = await self._provider(self._key(owner, key))
        charge = sponsor.charge if sponsor is not None else None
        return await expand_prompt(wish, self._meters.writer(owner, provider, self.provider_name(key, owner), charge))

    def _new_scheduler(self) -> TurnScheduler:
        from agent.fetching.page_reader import PageReader
        from agent.workflow.deps import TurnServices
        from agent.workflow.scheduler import TurnScheduler

        self._reader = self._reader or PageReader()
        return TurnScheduler(
            TurnServices(
                settings=self.settings,
                catalogue=self.catalogue,
                images=self._images,
                records=self._records,
                cache=self._cache,
                styles=self.styles,
                under_caps=self.preferences.applied,
                quota=self._quota,
                provider=self._provider,
                provider_name=self.provider_name,
                sponsored=self._sponsored,
                keep_alive=self.keep_alive,
                tools=self._tools_of_a_turn().tools,
                reader=self._reader,
                sandbox=self._sandbox,
                answers=self._answers,
                room=self._room,
                breakers=self._breakers,
                closing=self._closing,
            )
        )

    def _tools_of_a_turn(self) -> Toolbox:
        if self._toolbox is None:
            from agent.mcp.toolbox import Toolbox
            from agent.tools.registry import TOOLS

            self._toolbox = Toolbox(self.settings, (*TOOLS.values(), *self._tools))
        return self._toolbox

    async def _embedder(self, owner: str, key: SecretStr | None) -> UsageMeter | None:
        sponsor, name = self._sponsor_of(owner, key), self.provider_name(key, owner)
        if not self._meters.has_model(name) or (sponsor is not None and await sponsor.problem()):
            return None
        charge = sponsor.charge if sponsor is not None else None
        return await self._meters.of(owner, await self._provider(self._key(owner, key)), name, charge)

    def _key(self, owner: str, key: SecretStr | None) -> SecretStr | None:
        """Return the API key for an owner's calls: None means the studio's own, if it is lent to this owner."""
        is_lent = self.settings.lends_keys or owner == OPERATOR
        return NO_KEY if key is None and not is_lent else key

    def _sponsor_of(self, owner: str, key: SecretStr | None) -> SponsorAccount | None:
        """Return the sponsor who pays for an owner's calls, None when the owner pays or the models are free."""
        if self._sponsor is None or owner == OPERATOR or key is not None:
            return None
        name = self.provider_name(None, owner)
        return None if self.catalogue.model(ModelRole.FLASH, name).is_free else self._sponsor

    def _sponsored(
        self, owner: str, key: SecretStr | None, is_new: bool
    ) -> AbstractAsyncContextManager[SponsoredBudget | None]:
        sponsor = self._sponsor_of(owner, key)
        return nullcontext() if sponsor is None else sponsor.budget(is_new)

    async def _cap_day_usd(self, owner: str) -> float | None:
        return (await self.preferences.of(owner)).cap_day_usd

    async def _provider(self, key: SecretStr | None) -> Provider:
        return self._own_provider or await self._providers.provider(key)

    def keep_alive(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work as a task that continues when its caller is cancelled, and hold a reference until it ends."""
        return self._kept.start(work)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Return a method by its former name."""
            if name not in _MOVED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"use `studio.{_MOVED[name]}`", DeprecationWarning, stacklevel=2)
            return attrgetter(_MOVED[name])(self)
