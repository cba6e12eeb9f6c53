"""The earlier turns of a conversation, and the stream by which the page follows a running turn."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import orjson
from pydantic import Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import AivistaError, Conversation, Step, ThoughtLog, TurnEvent, TurnFailed, Value, report_text
from webui.features.thread.live import ShownTurn, advance_all, resumed
from webui.features.thread.render import TURNS_AT_ONCE, Article, article_id, changes, earlier_html, newest, render_live
from webui.features.thread.steps import step_sentence, usual_time
from webui.http.event_stream import event_stream
from webui.http.sessions import NO_STORE, Visitor, as_json, attachment, visitor_route
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply, Toast
from webui.view import View

T = TypeVar("T")

# Streams of one visitor at once: a browser opens six at most.
_MOST_FOLLOWED = 24
_INTERVAL_S = 1 / 12


class Shown(Value):
    """The first turn that the page shows, by its id; with `until`, all turns between that one and the first are
    requested."""

    before: str = Field(max_length=64)
    until: str = Field(default="", max_length=64)


def _routes(screen: Screen) -> list[Route]:
    """Return the routes of a conversation: the stream of its turns; its version, a number that changes with each
    change, by which an open page notices changes made elsewhere; and the debug report of a turn as a file."""
    followed = Counter[str]()

    async def follow(request: Request, visitor: Visitor) -> Response:
        conversation = await screen.studio().conversations.get(request.path_params["id"], visitor.owner)
        if followed[visitor.owner] >= _MOST_FOLLOWED:
            return as_json(visitor.words("route.too_much"), 429)
        # A browser that reconnects after the stream was cut may have missed anything.
        is_back = "last-event-id" in request.headers
        replies = Following(screen, visitor, conversation).replies(is_back=is_back)

        async def frames() -> AsyncIterator[bytes]:
            # Of several requests at once each may have found a free slot; one that finds none is repeated by the page.
            if followed[visitor.owner] >= _MOST_FOLLOWED:
                return
            followed[visitor.owner] += 1
            try:
                async for reply in replies:
                    if reply.patches or reply.events or reply.toast:
                        # JSON has line breaks only inside its strings, where they are escaped.
                        yield b"id: 1\nretry: 1000\ndata: " + orjson.dumps(reply.written(visitor.words)) + b"\n\n"
            finally:
                followed[visitor.owner] -= 1
                # A Counter keeps entries that were counted down to zero.
                if not followed[visitor.owner]:
                    del followed[visitor.owner]

        return event_stream(frames())

    async def version(request: Request, visitor: Visitor) -> Response:
        # An open conversation is in memory: checking its version takes microseconds.
        kept = await screen.studio().conversations.get(request.path_params["id"], visitor.owner)
        return JSONResponse({"version": kept.version}, headers=NO_STORE)

    async def report(request: Request, visitor: Visitor) -> Response:
        place, key = (request.path_params["id"], request.path_params["turn"]), screen.sessions.key(visitor)
        found = await screen.studio().turns.report(*place, owner=visitor.owner, key=key)
        headers = {**NO_STORE, **attachment(f"aivista-report-{place[1][:64]}.json")}
        return Response(report_text(found), media_type="application/json", headers=headers)

    sessions = screen.sessions
    return [
        visitor_route("/aivista/thread/{id}", sessions, follow, refusal=as_json),
        visitor_route("/aivista/version/{id}", sessions, version, refusal=as_json),
        visitor_route("/aivista/report/{id}/{turn}.json", sessions, report),
    ]


thread = Feature("thread", routes=_routes)


@thread.action
async def earlier(at: Context, shown: Shown) -> Reply:
    """Show the turns before those that are shown."""
    conversation = await at.conversation()
    turns = conversation.turns if conversation is not None else ()
    ids = [article_id(one.id) for one in turns]
    if article_id(shown.before) not in ids:
        return Reply()
    end = ids.index(article_id(shown.before))
    until = article_id(shown.until)
    begin = ids.index(until) if until in ids[:end] else max(0, end - TURNS_AT_ONCE)
    articles = at.screen.articles(at.visitor, conversation, turns=turns[begin:end])
    asked = (one for one in articles if one.id in ids[begin:end])
    patches = [Patch(id=one.id, html=one.html, parent="thread", before=ids[end]) for one in asked]
    more = Patch(id="earlier", html=earlier_html(at.words), parent="thread", before=ids[begin]) if begin else None
    return Reply(patches=(Patch(id="earlier"), *patches, *((more,) if more else ())))


@dataclass
class Following:
    """Follows the turns of a conversation as they happen, until none is running."""

    screen: Screen
    visitor: Visitor
    conversation: Conversation
    _shown: Article | None = None
    _began_s: float = field(default_factory=time.monotonic)
    # How long the turn had run when it was first followed.
    _before_s: float = 0.0

    async def replies(self, *, is_back: bool) -> AsyncIterator[Reply]:
        """Yield the changes of the thread, at most twelve times a second. For a client that `is_back`, first the
        whole thread."""
        studio, owner, key = self.screen.studio(), self.visitor.owner, self.conversation.id
        if is_back:
            shown = newest(self.screen.articles(self.visitor, self.conversation))
            yield Reply(patches=tuple(one.patch for one in shown))
        while True:
            # The page already shows the message of a turn that is not recorded yet.
            live = self.screen.at_work(self.conversation) or ShownTurn("")
            pictures = {picture.handle: picture for picture in self.conversation.pictures}
            async for batch in batches(_with_refusals(studio.attach(key, owner))):
                for full in (one for one in batch if isinstance(one, ThoughtLog) and one.step is Step.NEARLY_FULL):
                    yield Reply(toast=Toast(text=step_sentence(self.visitor.words, full), is_problem=True))
                before, live = live, advance_all(live, batch)
                if before.turn_id != live.turn_id:
                    live = await self._recorded(live)
                if live.usual is None and live.painting is not None:
                    live = await self._timed(live)
                if live.ending is None:
                    yield Reply(
                        patches=tuple(self._change(render_live(self._view, live, self._seconds(live), pictures)))
                    )
            event = "turn-ended" if studio.turns.is_running(key, owner) else "turn-over"
            yield await self._at_rest(live, event)
            if event == "turn-over":
                return
            self._shown, self._began_s, self._before_s = None, time.monotonic(), 0.0

    async def _recorded(self, live: ShownTurn) -> ShownTurn:
        """Return the turn, which was just recorded, with the message that it was sent with."""
        self.conversation = await self._read()
        turn = self.conversation.turn(live.turn_id)
        if turn is None:
            return live
        recorded, beside = resumed(turn), self.conversation.forks.get(turn.id, ())
        return replace(live, text=recorded.text, named=recorded.named, uploads=recorded.uploads, beside=beside)

    async def _timed(self, live: ShownTurn) -> ShownTurn:
        studio, provider, painting = self.screen.studio(), self.screen.provider(self.visitor), live.painting
        assert painting is not None
        elapsed_s, owner = self._seconds(live), self.visitor.owner
        usual = await usual_time(
            studio.gallery, studio.catalogue, owner, provider, painting.asked, elapsed_s, live.turn_id
        )
        return replace(live, usual=usual)

    def _seconds(self, live: ShownTurn) -> float:
        watched_s = time.monotonic() - self._began_s
        if live.step is not None:
            self._before_s = max(self._before_s, live.step.at_s - watched_s)
        return self._before_s + watched_s

    def _change(self, now: Article) -> list[Patch]:
        before, self._shown = self._shown, now
        is_unrecorded = now.id == article_id("")
        if is_unrecorded and before is None:
            # The message is already shown: only the agent's blocks are added.
            return [Patch(id=name, html=html, parent=f"{now.id}-blocks") for name, html in now.blocks.items()]
        is_named = not is_unrecorded and (before is None or before.id != now.id)
        return [*(self._unnamed_gone() if is_named else ()), *changes(before, now)]

    def _unnamed_gone(self) -> list[Patch]:
        """Return the patch that removes the unnamed element, unless it belongs to another turn, which waits."""
        waits = self.screen.studio().turns.count(self.conversation.id, self.visitor.owner) > 1
        return [] if waits else [Patch(id=article_id(""))]

    async def _at_rest(self, live: ShownTurn, event: str) -> Reply:
        """Return the turn as recorded, and its id; of a turn that failed before it was recorded, what it says."""
        self.conversation = await self._read()
        turn_id, turns = live.turn_id, self.conversation.turns
        if live.ending is None and turns and not turn_id:
            # It was over before it could be followed.
            turn_id = turns[-1].id
        gone, shown = list[Patch](), list[Article]()
        if turn_id:
            gone, turn = self._unnamed_gone(), self.conversation.turn(turn_id)
            articles = self.screen.articles(self.visitor, self.conversation, turns=[turn] if turn is not None else [])
            shown = [one for one in articles if one.id == article_id(turn_id)]
        elif isinstance(live.ending, TurnFailed):
            shown = [render_live(self._view, live, 0)]
        return Reply(patches=(*gone, *(one.patch for one in shown)), events={event: turn_id})

    @property
    def _view(self) -> View:
        return self.screen.view(self.visitor, self.conversation.id)

    async def _read(self) -> Conversation:
        return await self.screen.conversation(self.visitor, self.conversation.id) or self.conversation


async def _with_refusals(events: AsyncIterator[TurnEvent]) -> AsyncIterator[TurnEvent]:
    """Yield the events; a failure that is raised before or between them becomes the last event."""
    try:
        async for event in events:
            yield event
    except AivistaError as error:
        yield TurnFailed(error=error.info)


async def batches(events: AsyncIterator[T]) -> AsyncGenerator[list[T], None]:
    """Yield the events in order, at most twelve batches a second; the first and the last batch are not delayed.

    Closing the generator stops reading the source. An exception of the source is raised after the events before it.
    """
    waiting: list[T] = []
    changed = asyncio.Event()

    async def read() -> None:
        try:
            async for event in events:
                waiting.append(event)
                changed.set()
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    reader = asyncio.create_task(read())
    reader.add_done_callback(lambda _: changed.set())
    try:
        while not reader.done() or waiting:
            await changed.wait()
            changed.clear()
            batch, waiting[:] = waiting[:], []
            if batch:
                yield batch
                await asyncio.wait([reader], timeout=_INTERVAL_S)
        reader.result()
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
