"""What visitors' calls cost with the key of a place's owner: each counted once, and no turn beyond what is lent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.errors import ErrorCode
from agent.events import TurnDone, TurnEvent, TurnFailed, TurnPaused
from agent.plans import Decision, PlanEdit
from agent.settings import OPERATOR, Settings, TurnSettings
from agent.storage.gallery_values import GalleryQuery
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import only
from tests.support.turns import started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, HttpError, Text
from tests.wire_server.models import Kind
from webui.space.limited import PURSE, LimitedStudio
from webui.space.spacefile import Limits, Pays

ANN, BOB = "visitor-ann", "visitor-bob"
OWN = SecretStr("AIza-visitors-own-0001")
HALF = Pays(who="owner", cap_day_usd=5, cap_turn_usd=0.5)
DEAR = TurnSettings(image_model="pro", resolution="4K", number_of_images=4, review="off")


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def home(tmp_path: Path, gemini: GeminiServer) -> Settings:
    return on_gemini(Settings(home=tmp_path), gemini.url)


def lending(settings: Settings, pays: Pays = HALF) -> LimitedStudio:
    return LimitedStudio(settings, Limits(), pays)


def asking(text: str = "hello", settings: TurnSettings | None = None) -> TurnRequest:
    return TurnRequest(text=text, settings=settings or TurnSettings())


async def all_of(events: AsyncIterator[TurnEvent]) -> list[TurnEvent]:
    return [event async for event in events]


async def leave(events: AsyncIterator[TurnEvent]) -> None:
    """Close a page on its first event."""
    await anext(events)
    assert isinstance(events, AsyncGenerator)
    await events.aclose()


async def over(studio: Studio, conversation_id: str, owner: str = ANN) -> None:
    """Return when nothing of a conversation runs any more, and everything that outlives a turn is done."""
    await until(lambda: not studio.is_running(conversation_id, owner))
    await settled(studio)


async def settled(studio: Studio) -> None:
    for task in list(studio._kept):
        await task


async def purse(studio: Studio) -> float:
    return (await studio.spend.day(PURSE)).price_usd


def painted(gemini: GeminiServer) -> int:
    return sum(one.kind is Kind.IMAGE for one in gemini.requests)


async def test_turns_in_line_whose_pages_are_closed_are_each_counted_once(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_text(Hold(Text("One.")), Text("Two."), Text("Three."))
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        for text in ("one", "two", "three"):
            await leave(studio.run_turn(conversation.id, asking(text), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        gemini.release()
        await over(studio, conversation.id)
        kept = await studio.conversation(conversation.id, ANN)
        assert [turn.price_usd > 0 for turn in kept.turns] == [True] * 3
        assert await purse(studio) == pytest.approx(kept.price_usd)


async def test_what_a_turn_had_cost_before_the_studio_ended_is_not_paid_again(
    home: Settings, gemini: GeminiServer
) -> None:
    gemini.on_text(paint())
    gemini.on_image(Hold(SMALL))
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        await leave(studio.run_turn(conversation.id, asking("a red fox"), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        paid_usd = await purse(studio)
        assert paid_usd > 0
    gemini.release()
    async with lending(home) as restarted:
        await settled(restarted)
        await over(restarted, conversation.id)
        [turn] = (await restarted.conversation(conversation.id, ANN)).turns
        # Whether the picture was painted nobody knows, and it is not asked for again.
        assert turn.price_usd == pytest.approx(paid_usd)
        assert await purse(restarted) == pytest.approx(paid_usd)


async def test_a_picture_that_comes_after_stop_is_set_aside_until_then_and_counted(
    home: Settings, gemini: GeminiServer
) -> None:
    gemini.on_text(paint(), Text("Hello."))
    gemini.on_image(Hold(SMALL))
    async with lending(home, Pays(who="owner", cap_day_usd=1, cap_turn_usd=0.6)) as studio:
        conversation = await studio.new_conversation(ANN)
        await leave(studio.run_turn(conversation.id, asking("a red fox"), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        await studio.cancel(conversation.id, ANN)
        other = await studio.new_conversation(BOB)
        refused = await all_of(studio.run_turn(other.id, asking(), owner=BOB))
        assert only(refused, TurnFailed).error.code is ErrorCode.OWNER_CAP_USED_UP
        gemini.release()
        await over(studio, conversation.id)
        kept = await studio.conversation(conversation.id, ANN)
        assert len(kept.pictures) == 1
        assert await purse(studio) == pytest.approx(kept.price_usd)
        assert isinstance((await all_of(studio.run_turn(other.id, asking(), owner=BOB)))[-1], TurnDone)


@pytest.mark.parametrize("budget_usd", [None, 40.0])
async def test_pictures_beyond_what_is_lent_for_a_turn_are_not_painted(
    home: Settings, gemini: GeminiServer, budget_usd: float | None
) -> None:
    gemini.on_text(paint())
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        chosen = DEAR.model_copy(update={"budget_usd": budget_usd})
        events = await all_of(studio.run_turn(conversation.id, asking("a red fox", chosen), owner=ANN))
        error = only(events, TurnFailed).error
        assert (error.code, error.parameters["cap"], error.can_retry) == (ErrorCode.TURN_TOO_DEAR, "0.50", False)
        assert float(error.parameters["price"]) > 0.5
        assert "$0.50" in error.message
        assert painted(gemini) == 0


@pytest.mark.parametrize(("owner", "key"), [(OPERATOR, None), (ANN, OWN)])
async def test_the_owner_and_whoever_brings_a_key_paint_what_they_like(
    home: Settings, gemini: GeminiServer, owner: str, key: SecretStr | None
) -> None:
    gemini.on_text(paint())
    async with lending(home) as studio:
        conversation = await studio.new_conversation(owner)
        events = await all_of(studio.run_turn(conversation.id, asking("a red fox", DEAR), owner=owner, key=key))
        assert isinstance(events[-1], TurnDone)
        assert painted(gemini) == 4
        assert await purse(studio) == 0


async def test_a_plan_that_was_made_dearer_is_not_run(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_text(paint())
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        shown = await all_of(studio.run_turn(conversation.id, asking("a fox", TurnSettings(confirm=True)), owner=ANN))
        assert isinstance(shown[-1], TurnPaused)
        edit = PlanEdit(model="pro", resolution="4K", number_of_images=4)
        decision = Decision(run=True, edits=(edit,))
        events = await all_of(studio.decide(conversation.id, started(shown), decision, owner=ANN))
        assert only(events, TurnFailed).error.code is ErrorCode.TURN_TOO_DEAR
        again = await all_of(studio.retry(conversation.id, started(shown), owner=ANN))
        assert only(again, TurnFailed).error.code is ErrorCode.TURN_TOO_DEAR
        assert painted(gemini) == 0


async def test_a_turn_that_began_with_a_key_of_their_own_does_not_go_on_beyond_what_is_lent(
    home: Settings, gemini: GeminiServer
) -> None:
    gemini.on_text(paint())
    gemini.on_image(*[HttpError(500)] * 4)
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        events = await all_of(studio.run_turn(conversation.id, asking("a red fox", DEAR), owner=ANN, key=OWN))
        assert isinstance(events[-1], TurnFailed)
        asked = painted(gemini)
        again = await all_of(studio.retry(conversation.id, started(events), owner=ANN))
        assert only(again, TurnFailed).error.code is ErrorCode.TURN_TOO_DEAR
        assert painted(gemini) == asked


async def test_to_drop_a_plan_needs_nothing_of_the_cap(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_text(paint())
    async with lending(home, Pays(who="owner", cap_day_usd=0.5, cap_turn_usd=0.5)) as studio:
        conversation = await studio.new_conversation(ANN)
        shown = await all_of(studio.run_turn(conversation.id, asking("a fox", TurnSettings(confirm=True)), owner=ANN))
        await settled(studio)
        for run, end in ((True, TurnFailed), (False, TurnDone)):
            events = await all_of(studio.decide(conversation.id, started(shown), Decision(run=run), owner=ANN))
            assert isinstance(events[-1], end)
        assert painted(gemini) == 0


async def test_pictures_read_for_a_search_after_it_was_answered_are_counted(
    home: Settings, gemini: GeminiServer
) -> None:
    gemini.on_text(paint())
    gemini.on_image(SMALL)
    async with lending(home) as studio:
        conversation = await studio.new_conversation(ANN)
        await all_of(studio.run_turn(conversation.id, asking("a red fox"), owner=ANN))
        await settled(studio)
        turns_usd = await purse(studio)
        await studio.gallery_page(ANN, GalleryQuery(words="fox"))
        await studio.gallery.settled()
        searched_usd = (await studio.spend.beside_turns(ANN)).price_usd
        assert searched_usd > 0
        assert await purse(studio) - turns_usd == pytest.approx(searched_usd)
