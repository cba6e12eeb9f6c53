"""The one door: conversations, turns and pictures. The page, the HTTP API and other people's scripts go through it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import AivistaError, ErrorCode, RequestRefused
from agent.events import TurnEvent
from agent.kept_things import KeptThings
from agent.mcp.states import ServerState
from agent.messages import whole_characters
from agent.pictures import Picture, StoredPicture
from agent.plans import Decision
from agent.providers.base import PictureBytes, Provider
from agent.providers.catalogue import Catalogue, ModelRole, catalogue_of
from agent.providers.key_desk import KeyDesk
from agent.providers.pool import NO_KEY, ProviderPool
from agent.requests import Mask, TurnRequest
from agent.sandbox.runner import Sandbox
from agent.settings import OPERATOR, Settings, TurnSettings
from agent.spending import Estimate
from agent.storage.answer_cache import AnswerCache
from agent.storage.cache import HistoryImageCache
from agent.storage.gallery_values import GalleryPage, GalleryQuery
from agent.storage.model_pictures import ModelPictures
from agent.tools.script_files import ScriptRun, run_file
from agent.workflow.again import repeated, request_of
from agent.workflow.fuller_wishes import ExpandedPrompt, PromptToExpand, fuller_wish
from agent.workflow.maximum import turn_estimate
from agent.workflow.outliving import Outliving
from agent.workflow.retrying import Breakers
from agent.workflow.search_meters import Book, SearchMeters
from agent.workflow.waiting_room import WaitingRoom

if TYPE_CHECKING:
    from agent.fetching.reading import PageReader
    from agent.mcp.toolbox import Toolbox
    from agent.providers.sketch.restyling import FoundLook
    from agent.storage.turn_order import RunningTurn
    from agent.tools.base import Tool
    from agent.workflow.dispatch import Dispatch
    from agent.workflow.later_edits import Pictures
    from agent.workflow.lending import Loan
    from agent.workflow.live import LiveTurn
    from agent.workflow.metering import Meter

__all__ = ["StoredPicture", "Studio", "TurnRequest"]

_CLOSE_S = 1.5
# Another process that is asked to stop a turn does so within a second.
_STOP_S = 5.0
# The start and the first page come first.
_TIDY_AFTER_S = 5.0
_LOOK_WHETHER_DUE_S = 3600.0
_LOOK_AFTER_OTHERS_S = 2.0
_SAVED_AGAIN_S = 5.0
_log = logging.getLogger(__name__)
_REPORT_BYTES = 512 << 10


def _find_look(text: str) -> FoundLook | None:
    # Loaded with the first sketch: no start needs the styles.
    from agent.workflow.sketch_looks import find_look

    return find_look(text)


class Studio(KeptThings):
    """The whole program without a screen. Use it as an async context manager.

    `provider` makes the models that replace Gemini and sketch, for scripts and tests that bring their own; it is given
    the store that pictures are read from and written to. `tools` are further ones that the agent may call,
    `reader` reads the web for it instead of one that dials public addresses alone. Of `turns_at_once` all further ones
    wait in a line.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        provider: Callable[[PictureBytes], Provider] | None = None,
        tools: Sequence[Tool] = (),
        reader: PageReader | None = None,
        sketch_pace_s: float = 0.0,
        turns_at_once: int | None = None,
    ) -> None:
        super().__init__(settings)
        self.catalogue: Catalogue = catalogue_of(settings)
        self._cache = HistoryImageCache(
            settings.home, ttl_s=settings.history_cache_ttl_s, limit_bytes=settings.history_cache_limit_bytes
        )
        self._providers = ProviderPool(
            settings,
            ModelPictures(self._images),
            originals=self._images,
            sketch_pace_s=sketch_pace_s,
            find_look=_find_look,
        )
        self._keys = KeyDesk(self.catalogue, self._providers.check)
        self._breakers = Breakers()
        self._meters = SearchMeters(self.catalogue, self._breakers, self._spend, self._cap_day_usd)
        self._own_provider = provider(ModelPictures(self._images)) if provider else None
        self._answers = AnswerCache(settings.home) if settings.reuse_plans else None
        self._tools = tools
        self._toolbox: Toolbox | None = None
        self._reader = reader
        self._sandbox = Sandbox()
        self._room = WaitingRoom(turns_at_once) if turns_at_once is not None else None
        self._dispatch: Dispatch | None = None
        self._kept = Outliving()
        self._saving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __aenter__(self) -> Studio:
        await self._records.open()
        # Not one of the tasks that end by themselves: this one goes on as long as the studio.
        self._saving = asyncio.create_task(self._save_unsaved())
        for turn in self._records.abandoned:
            self.keep_alive(self._resume(turn))
        return self

    async def __aexit__(self, *_: object) -> None:
        """End running turns, on record as far as they came so that the next start goes on, and close what is open."""
        self._closing.set()
        if self._dispatch is not None:
            await self._dispatch.aclose()
        if self._toolbox is not None:
            # Beside the others: what MCP servers were started must end in any case.
            self.keep_alive(self._toolbox.aclose())
        await self._kept.end(_CLOSE_S)
        if self._saving is not None:
            await self._saving
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

    async def wind_down(self, grace_s: float) -> None:
        """Refuse new turns, wait for those at work, at most so long, and put the rest on record; then leave it."""
        self._closing.set()
        if self._dispatch is not None:
            await self._dispatch.finish(grace_s)

    def warm_up(self) -> None:
        """Begin to load what the first turn would wait for and no start needs; nothing while the studio closes."""
        if not self._closing.is_set():
            self.keep_alive(self._warm_up())

    def keep_house(self) -> None:
        """Begin what a studio that stays open does by itself: tidy up, back up, go on with what others left."""
        for work in (self.tidy_up(), self.back_up(), self.take_over()):
            self.keep_alive(work)

    async def tidy_up(self) -> None:
        """Once a day, remove for good what was deleted more than 30 days ago, and at the start and each hour archives
        that nobody fetched for a day, until the studio closes."""
        from agent.storage.tidying import tidy_if_due

        wait_s = _TIDY_AFTER_S
        while not await self._closes_within(wait_s):
            await asyncio.to_thread(tidy_if_due, self.settings.home, datetime.now(UTC))
            # A clock that jumps says nothing of how long it was: it is looked at each hour.
            wait_s = _LOOK_WHETHER_DUE_S

    async def back_up(self) -> None:
        """Once a day, back up the database, until the studio closes."""
        from agent.storage.backups import Backups

        wait_s = _TIDY_AFTER_S
        while not await self._closes_within(wait_s):
            await asyncio.to_thread(Backups(self.settings.home).make_if_due, datetime.now(UTC))
            wait_s = _LOOK_WHETHER_DUE_S

    async def take_over(self) -> None:
        """Have turns go on whose process has died, as a start does, until the studio closes."""
        while not await self._closes_within(_LOOK_AFTER_OTHERS_S):
            with contextlib.suppress(AivistaError):
                for turn in await self._records.newly_abandoned():
                    self.keep_alive(self._resume(turn))

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
        # Where there is an embedding model, its vectors stand in LanceDB, which takes seconds to load.
        has_meaning = self._meters.has_model(self._providers.name(None))
        with contextlib.suppress(AivistaError):
            await self._styles.warm_up(with_meaning=has_meaning)

    async def not_ready(self) -> tuple[str, ...]:
        """Return what keeps the studio from taking turns: `turns` while it closes, `records`, `disk`; or nothing."""
        return (*(("turns",) if self._closing.is_set() else ()), *await self._records.not_ready())

    # Conversations

    async def delete_conversation(self, conversation_id: str, owner: str = "local") -> None:
        """Stop what runs in a conversation and put it into the trash; `undelete_conversation` brings it back."""
        await self.cancel(conversation_id, owner)
        await self._records.delete(conversation_id, owner)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give all that an owner made to another one; a conversation with a turn at work stays where it is."""
        busy = self._dispatch.busy(owner) if self._dispatch is not None else ()
        await self._records.hand_over(owner, new_owner, busy)
        await self._styles.hand_over(owner, new_owner)

    async def switch_branch(self, conversation_id: str, turn_id: str, owner: str = "local") -> Conversation:
        """Return the conversation with the branch shown that holds this turn, up to its newest turn.

        Raises RequestRefused while a turn runs, and for a turn that the conversation does not have.
        """
        return await self._turns.switch(conversation_id, turn_id, owner)

    # Turns

    async def run_turn(
        self, conversation_id: str, request: TurnRequest, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn and stream what happens. The last event is TurnDone, TurnFailed or TurnStopped.

        Bad input ends with TurnFailed, not with an exception. Closing the stream does not stop the turn.
        """
        live = self._turns.begin(conversation_id, request, owner, self._key(owner, key))
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
        live = self._turns.go_on(conversation_id, turn_id, owner, self._key(owner, key), decision=decision)
        async for event in live.follow():
            yield event

    async def conversation_of_request(self, request_id: str, owner: str = "local") -> str | None:
        """Return the id of the owner's conversation in which a turn was sent under this name, the newest of several.

        The turn may wait, run or be over, in whichever process. None without any, and for a deleted conversation.
        """
        request_id = whole_characters(request_id)
        found = self._dispatch.place_of(request_id, owner) if self._dispatch is not None else None
        return found or await self._records.of_request(request_id, owner)

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Have a failed or interrupted turn go on where it failed; what was answered is not asked, or paid, again.

        When the conversation has gone on since, the turn is sent again as a new one.
        """
        conversation, key = await self.conversation(conversation_id, owner), self._key(owner, key)
        turn = conversation.turn(turn_id)
        if turn is None:
            return
        if self._turns.can_go_on(conversation, turn, key):
            live = self._turns.go_on(conversation_id, turn_id, owner, key)
        else:
            request = await request_of(conversation, turn, self._images)
            live = self._turns.begin(conversation_id, request, owner, key, is_again=True)
        async for event in live.follow():
            yield event

    async def request_of(self, conversation_id: str, turn_id: str, owner: str = "local") -> TurnRequest:
        """Return the request that a turn of the branch that is shown was, to be said otherwise.

        Raises RequestRefused for a turn that is not there, and when the file of one of its pictures is gone.
        """
        conversation = await self.conversation(conversation_id, owner)
        turn = conversation.turn(turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return await request_of(conversation, turn, self._images)

    async def repeated(
        self, conversation_id: str, handle: str, owner: str = "local", *, difference: str = ""
    ) -> TurnRequest | None:
        """Return the request that made a picture, to be painted once more beside it: the same prompt, references and
        parameters, with a stated `difference` perhaps. None for a picture that cannot be painted again like that.

        Raises RequestRefused for a picture that is not there, and when the file of one of its pictures is gone.
        """
        conversation = await self.conversation(conversation_id, owner)
        pro = self.catalogue.model(ModelRole.IMAGE_PRO, self.provider_name())
        return await repeated(conversation, handle, self._images, pro.id, difference)

    async def attach(self, conversation_id: str, owner: str = "local") -> AsyncIterator[TurnEvent]:
        """Follow the running turn of a conversation from its first event; end at once when none runs.

        Of one that runs in another process the pictures are told as they come, and all else at its end.
        """
        running = self._running(conversation_id, owner)
        if running:
            async for event in running[0].follow():
                yield event
            return
        turn = await self._running_elsewhere(conversation_id, owner)
        if turn is not None:
            from agent.workflow.replay import follow_record

            async for event in follow_record(self._records, conversation_id, owner, turn.id):
                yield event

    async def _running_elsewhere(self, conversation_id: str, owner: str) -> Turn | None:
        """Return the turn of the branch that is shown that another process has at work, if there is one."""
        try:
            conversation = await self._records.get(conversation_id, owner)
        except RequestRefused:
            return None
        return next((one for one in reversed(conversation.turns) if one.state is TurnState.RUNNING), None)

    async def cancel(self, conversation_id: str, owner: str = "local", *, turn_id: str | None = None) -> bool:
        """Stop what runs or waits in the conversation, in any process, or that turn alone; return whether there was
        anything. It is on record as far as it came then; what another process does not stop soon, it stops later."""
        running = [one for one in self._running(conversation_id, owner) if turn_id in (None, one.turn_id)]
        for live in reversed(running):
            await live.stop()
        return await self._stop_elsewhere(conversation_id, owner, turn_id) or bool(running)

    async def _stop_elsewhere(self, conversation_id: str, owner: str, turn_id: str | None) -> bool:
        try:
            await self._records.get(conversation_id, owner)
        except RequestRefused:
            return False
        if not await self._records.request_stop(conversation_id, turn_id):
            return False
        until_s = time.monotonic() + _STOP_S
        while time.monotonic() < until_s:
            seen = self._records.changes()
            if not await self._records.is_running(conversation_id):
                break
            await self._records.changed(seen, _STOP_S)
        return True

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

    # Tools

    async def run_script(self, conversation_id: str, name: str, owner: str = "local") -> ScriptRun:
        """Run a JavaScript file of a conversation over its files, in the sandbox; return what came of it.

        What it writes may overwrite: the person asked for it. Raises RequestRefused: FILE_NOT_FOUND, FILE_NOT_TEXT.
        """
        return await run_file(self.workspace(conversation_id, owner), self._sandbox, name)

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

    async def keep_transparency(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return an edit that came back opaque as see-through as the picture that it was made from: a new picture,
        without a request. Raises RequestRefused for a picture that lost no transparency.
        """
        from agent.workflow.later_edits import keep_transparency

        return await keep_transparency(self._pictures_of(conversation_id, owner), handle)

    async def keep(self, conversation_id: str, handle: str, keep: bool, owner: str = "local") -> Picture:
        """Put on record that the person keeps a masked edit, or discards it: then nothing leans on it unasked."""
        from agent.workflow import later_edits

        return await later_edits.keep(self._pictures_of(conversation_id, owner), handle, is_kept=keep)

    # Searches and models

    async def gallery_page(self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None) -> GalleryPage:
        """Return a page of the owner's pictures; words find by meaning as well where the key's provider can tell.

        What that costs is added to what the owner spent today; it is not done when the day's cap is used up. Raises
        what `Gallery.page` raises, and StorageFailure.
        """
        embedder = await self._embedder(owner, key) if query.words.strip() else None
        return await self._gallery.page(owner, query, embedder=embedder)

    def provider_name(self, key: SecretStr | None = None, owner: str = OPERATOR) -> str:
        """Return which provider serves an owner with this key: `gemini`, `openai` or `sketch`."""
        return "gemini" if self._own_provider is not None else self._providers.name(self._key(owner, key))

    @property
    def keys(self) -> KeyDesk:
        """What keys are good for: which models they may use, and why not the others."""
        return self._keys

    async def fuller_wish(
        self, wish: PromptToExpand, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> ExpandedPrompt:
        """Return a short wish written out in full, which is not sent. Raises what `fuller_wishes.fuller_wish` does."""
        provider = await self._provider(self._key(owner, key))
        name, book = self.provider_name(key, owner), self._book(owner, key)
        return await fuller_wish(wish, self._meters.writer(owner, provider, name, book))

    def estimate(
        self,
        settings: TurnSettings,
        *,
        text: str = "",
        characters: int = 0,
        pictures: int = 0,
        masks: int = 0,
        has_mask: bool = False,
        conversation: Conversation | None = None,
        provider_name: str | None = None,
    ) -> Estimate:
        """Return what a turn with these settings is likely to cost, and its maximum: it asks before it passes that.

        `pictures` come with the message or are marked beside it; of so many of them as there are `masks` only a part
        changes (`has_mask`, deprecated, stands for one). `characters` are those of the message where only a
        part of its text is told.
        """
        return turn_estimate(
            self.catalogue,
            self.provider_name() if provider_name is None else provider_name,
            None,
            conversation,
            settings,
            datetime.now(UTC).date(),
            text=text,
            characters=max(characters, len(text)),
            pictures=pictures,
            masks=masks or int(has_mask),
        )

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
                    quota=self._quota,
                    provider=self._provider,
                    provider_name=self.provider_name,
                    lend=self._lend,
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
        return self._dispatch

    def _tools_of_a_turn(self) -> Toolbox:
        if self._toolbox is None:
            from agent.mcp.toolbox import Toolbox
            from agent.tools.registry import TOOLS

            self._toolbox = Toolbox(self.settings, (*TOOLS.values(), *self._tools))
        return self._toolbox

    def _pictures_of(self, conversation_id: str, owner: str) -> Pictures:
        from agent.workflow.later_edits import Pictures

        return Pictures(conversation_id, owner, self._records, self._images)

    def _running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        return self._dispatch.running(conversation_id, owner) if self._dispatch else []

    async def _resume(self, abandoned: RunningTurn) -> None:
        """Have a turn go on that a dead process left behind. Calls of unknown outcome are not made again."""
        conversation = await self._records.conversation_of_any_owner(abandoned.conversation_id)
        turn, key = conversation.turn(abandoned.turn_id), self._key(conversation.owner, None)
        if turn is not None and self._turns.can_go_on(conversation, turn, key):
            self._turns.go_on(conversation.id, turn.id, conversation.owner, key, may_repeat=False)

    async def _embedder(self, owner: str, key: SecretStr | None) -> Meter | None:
        name, book, key = self.provider_name(key, owner), self._book(owner, key), self._key(owner, key)
        if not self._meters.has_model(name):
            return None
        return await self._meters.of(owner, await self._provider(key), name, book)

    def _key(self, owner: str, key: SecretStr | None) -> SecretStr | None:
        """Return the key an owner's calls are made with: None is the studio's own, where it is lent to them."""
        is_lent = self.settings.lends_keys or owner == OPERATOR
        return NO_KEY if key is None and not is_lent else key

    def _lend(self, owner: str, key: SecretStr | None, asks: bool) -> AbstractAsyncContextManager[Loan | None]:
        """Return what somebody else pays a turn from, while it lasts. Raises AivistaError where it `asks` in vain."""
        return nullcontext()

    def _book(self, owner: str, key: SecretStr | None) -> Book | None:
        """Return the account of whoever pays what an owner asks for outside of turns, None when they do themselves."""
        return None

    async def _cap_day_usd(self, owner: str) -> float | None:
        return (await self._preferences.of(owner)).cap_day_usd

    async def _provider(self, key: SecretStr | None) -> Provider:
        return self._own_provider or await self._providers.provider(key)

    def keep_alive(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work that must go on whoever stops listening, and hold on to it until it is done."""
        return self._kept.start(work)
