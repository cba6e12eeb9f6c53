"""The whole program without a screen: the page, the HTTP API, the MCP server and scripts go through it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
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
# The start and the first page come first.
_TIDY_AFTER_S = 5.0
_LOOK_WHETHER_DUE_S = 3600.0
_LOOK_AFTER_OTHERS_S = 2.0
_SAVED_AGAIN_S = 5.0
_log = logging.getLogger(__name__)

# Where the methods are that Studio had; each stays for one release.
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
    """A database that could not be read: its name in the home, and the backups that there are, with the newest's
    moment."""

    name: str
    backup_count: int
    newest_backup_at: datetime | None


def _find_look(text: str) -> FoundLook | None:
    """Return how the style that a request asks for is drawn, None when it asks for none. It blocks.

    The style library and the sketch model do not know each other.
    """
    # Loaded with the first sketch: no start needs the styles.
    from agent.providers.sketch.intent import FoundLook
    from agent.storage.styles import curated_looks, find_curated

    found = find_curated(text)
    if found is None:
        return None
    style, words = found
    return FoundLook(style.name.en, style.name.zh, curated_looks()[style.id], words)


class Studio:
    """The whole program without a screen. Use it as an async context manager.

    All that it keeps is below `settings.home` and belongs to an owner; nobody sees, or changes, what is another's.

    * `conversations`, `turns`, `edits`: what was said and painted; `files(id)` of one conversation.
    * `gallery`: all pictures of an owner's conversations. `recipes`: pictures with their recipe or without.
    * `styles`: the curated styles and each owner's own. `preferences`: what each owner chose for good.
    * `spend`: what was spent, by conversation, day and month. `traces`: the steps of every turn, by conversation;
      whose that is, is for the caller to ask first.
    * `archive`: conversations taken out as one file, and taken in again. `keys`: what a key is good for.

    `provider` makes the models that replace Gemini and sketch, for scripts and tests that bring their own; it is given
    the store that pictures are read from and written to. `tools` are further ones that the agent may call,
    `reader` reads the web for it instead of one that dials public addresses alone. `limits` holds how many turns are
    taken, `sponsor` what the operator pays for others who bring no key.
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
        """Conversations taken out as one file, and taken in again."""
        from agent.archive.archive import Archive

        return Archive(self._records.conversations, self._images, self.settings.home, room=self._quota)

    @cached_property
    def edits(self) -> LaterEdits:
        """What a person does with a picture that is there, without any model."""
        from agent.workflow.masked import LaterEdits

        return LaterEdits(self._records, self._images)

    def files(self, conversation_id: str, owner: str = "local") -> Workspace:
        """Return the files of a conversation; each call on them asks whether that is the owner's."""
        return self._workspaces.of(conversation_id, owner)

    async def __aenter__(self) -> Studio:
        await self._records.open()
        # Not one of the tasks that end by themselves: this one goes on as long as the studio.
        self._saving = asyncio.create_task(self._save_unsaved())
        for turn in self._records.abandoned:
            self.keep_alive(self.turns.resume_abandoned(turn))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End running turns, on record as far as they came so that the next start goes on, and close what is open."""
        self._closing.set()
        if self.turns.scheduler is not None:
            await self.turns.scheduler.aclose()
        if self._toolbox is not None:
            # Beside the others: what MCP servers were started must end in any case.
            self.keep_alive(self._toolbox.aclose())
        await self._kept.end(_CLOSE_S)
        if self._saving is not None:
            await self._saving
        if self._reader is not None:
            await self._reader.aclose()
        if self.turns.scheduler is not None:
            await self.turns.scheduler.settle()
        # What searches began to read asks a provider.
        await self.gallery.aclose()
        await self._providers.aclose()
        await self._records.aclose()
        await self._cache.aclose()
        await self.styles.aclose()
        if self._answers is not None:
            await self._answers.aclose()

    async def wind_down(self, grace_s: float) -> None:
        """Refuse new turns, wait for those at work, at most so long, and put the rest on record; then leave it."""
        self._closing.set()
        if self.turns.scheduler is not None:
            await self.turns.scheduler.finish(grace_s)

    def warm_up(self) -> None:
        """Begin to load what the first turn would wait for and no start needs; nothing while the studio closes."""
        if not self._closing.is_set():
            self.keep_alive(self._warm_up())

    def start_housekeeping(self) -> None:
        """Begin what a studio that stays open does by itself: tidy up, back up, go on with what others left."""
        for work in (self._tidy_up(), self._back_up(), self._take_over()):
            self.keep_alive(work)

    async def _tidy_up(self) -> None:
        """Once a day, remove for good what was deleted more than 30 days ago, and at the start and each hour archives
        that nobody fetched for a day, until the studio closes."""
        from agent.storage.housekeeping import tidy_if_due

        wait_s = _TIDY_AFTER_S
        while not await self._closes_within(wait_s):
            await asyncio.to_thread(tidy_if_due, self.settings.home, datetime.now(UTC))
            # A clock that jumps says nothing of how long it was: it is looked at each hour.
            wait_s = _LOOK_WHETHER_DUE_S

    async def _back_up(self) -> None:
        """Once a day, back up the database, until the studio closes."""
        from agent.storage.backups import Backups

        wait_s = _TIDY_AFTER_S
        while not await self._closes_within(wait_s):
            await asyncio.to_thread(Backups(self.settings.home).make_if_due, datetime.now(UTC))
            wait_s = _LOOK_WHETHER_DUE_S

    async def _take_over(self) -> None:
        """Have turns go on whose process has died, as a start does, until the studio closes."""
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
        """Write the pictures that the disk had no room for as soon as it has, until the studio closes."""
        await self._images.reserve.stand_by()
        while not await self._closes_within(_SAVED_AGAIN_S):
            await self._images.save_unsaved()
            await self._images.reserve.stand_by()
        if not await self._images.save_unsaved():
            _log.error("the studio ends with pictures that the full disk had no room for: they are lost")
        self._images.reserve.give_back()

    async def _warm_up(self) -> None:
        from agent.workflow.reception import compile_words

        await asyncio.to_thread(compile_words)
        await asyncio.to_thread(import_module, "agent.workflow.graph")
        # Where there is an embedding model, its vectors stand in LanceDB, which takes seconds to load.
        has_meaning = self._meters.has_model(self._providers.name(None))
        with contextlib.suppress(AivistaError):
            await self._provider(None)
            await self.styles.warm_up(with_meaning=has_meaning)

    async def not_ready(self) -> tuple[str, ...]:
        """Return what keeps the studio from taking turns: `turns` while it closes, `records`, `disk`; or nothing."""
        return (*(("turns",) if self._closing.is_set() else ()), *await self._records.not_ready())

    async def lost_records(self) -> LostRecords | None:
        """Return what is known of records that could not be read and were set aside, until others are restored."""
        from agent.storage.backups import Backups

        def look() -> LostRecords | None:
            backups = Backups(self.settings.home)
            name = backups.unreadable()
            made = backups.all() if name is not None else []
            return LostRecords(name, len(made), made[0].made_at if made else None) if name is not None else None

        return await asyncio.to_thread(look)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give what an owner made and chose to another one; a conversation with a turn at work stays where it is."""
        await self._records.conversations.hand_over(owner, new_owner, self.turns.busy(owner))
        await self.styles.hand_over(owner, new_owner)
        await self.preferences.hand_over(owner, new_owner)

    # Turns

    async def run_turn(
        self, conversation_id: str, request: TurnRequest, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn and stream what happens. The last event is TurnDone, TurnFailed or TurnStopped.

        Bad input, and a limit in its way, ends with TurnFailed, not with an exception. Closing the stream does not
        stop the turn: `turns.find` follows it from any event on.
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
        """Run or drop the plan that a turn waits with, and stream what happens from now on as `run_turn` does.

        Ends with TurnFailed(PLAN_GONE) when it no longer waits.
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
        """Have a failed or interrupted turn go on where it failed, and stream what happens from now on.

        What was answered is not asked, or paid, again. When the conversation has gone on since, the turn is sent again
        as a new one.
        """
        try:
            live = await self.turns.retry(conversation_id, turn_id, owner=owner, key=key)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        async for _, event in live.follow(live.before):
            yield event

    def attach(self, conversation_id: str, owner: str = "local") -> AsyncIterator[TurnEvent]:
        """Follow the running turn of a conversation from where it began, or went on; end at once when none runs.

        Of one that runs in another process the pictures are told as they come, and all else at its end.
        """
        return self.turns.attach(conversation_id, owner)

    async def cancel(self, conversation_id: str, owner: str = "local", *, turn_id: str | None = None) -> bool:
        """Stop what runs or waits in the conversation, in any process, or that turn alone; return whether there was
        anything. It is on record as far as it came then; what another process does not stop soon, it stops later."""
        return await self.turns.cancel(conversation_id, owner, turn_id)

    # Pictures and files

    async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
        """Return a picture with its bytes. Raises RequestRefused when there is none of that handle."""
        conversation = await self._records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return StoredPicture(picture, await self._images.read(picture.image))

    async def unrecorded_picture(self, conversation_id: str, digest: str, owner: str = "local") -> tuple[bytes, str]:
        """Return bytes and type of a picture that came and that the full disk takes no record of.

        Raises RequestRefused when there is none of that digest.
        """
        await self._records.conversations.get(conversation_id, owner)
        image = self._images.offered(conversation_id, digest)
        return await self._images.read(image), image.mime_type

    async def thumbnail(
        self, conversation_id: str, handle: str, edge_px: int, owner: str = "local"
    ) -> tuple[bytes, str]:
        """Return a small version of a picture as WebP, its longer edge at most `edge_px`, and its type."""
        conversation = await self._records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return await self._images.thumbnail(picture.image.digest, edge_px, picture.handle), "image/webp"

    async def run_script(self, conversation_id: str, name: str, owner: str = "local") -> ScriptRun:
        """Run a JavaScript file of a conversation over its files, in the sandbox; return what came of it.

        What it writes may overwrite: the person asked for it. Raises RequestRefused: FILE_NOT_FOUND, FILE_NOT_TEXT.
        """
        return await run_file(self.files(conversation_id, owner), self._sandbox, name)

    def mcp_servers(self) -> tuple[ServerState, ...]:
        """Return how it stands with each server of the operator's that gives its tools; nothing is connected for it."""
        return self._tools_of_a_turn().servers() if self.settings.mcp_servers else ()

    async def trace(
        self, conversation_id: str, turn_id: str | None = None, owner: str = "local"
    ) -> tuple[TraceStep, ...]:
        """Return the steps of a turn, or of all turns of every branch: what was sent, what came, how long, how much.

        Raises RequestRefused when the owner has no such conversation.
        """
        conversation = await self._records.conversations.get(conversation_id, owner)
        return await self.traces.steps(conversation.id, None if turn_id is None else [turn_id])

    # Models

    def provider_name(self, key: SecretStr | None = None, owner: str = OPERATOR) -> str:
        """Return which provider serves an owner with this key: `gemini`, `openai` or `sketch`."""
        if self._own_provider is not None:
            return self.catalogue.keyed(ModelRole.FLASH).provider
        return self._providers.name(self._key(owner, key))

    async def expand_prompt(
        self, wish: PromptToExpand, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> ExpandedPrompt:
        """Return a short wish written out in full, which is not sent. It is paid and on record also if nobody waits.

        Raises what `prompt_expansion.expand_prompt` does, and KeyProblem when the sponsor's cap is used up.
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
        """Return the key an owner's calls are made with: None is the studio's own, where it is lent to them."""
        is_lent = self.settings.lends_keys or owner == OPERATOR
        return NO_KEY if key is None and not is_lent else key

    def _sponsor_of(self, owner: str, key: SecretStr | None) -> SponsorAccount | None:
        """Return who pays what an owner asks for with this key, None when they do themselves or nothing costs."""
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
        """Run work that must go on whoever stops listening, and hold on to it until it is done."""
        return self._kept.start(work)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Return a method under the name that it had."""
            if name not in _MOVED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"use `studio.{_MOVED[name]}`", DeprecationWarning, stacklevel=2)
            return attrgetter(_MOVED[name])(self)
