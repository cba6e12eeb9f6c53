"""What visitors' calls cost with the key of a place's owner: each counted once, and no turn beyond what is lent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent import (
    OPERATOR,
    Conversation,
    Decision,
    ErrorCode,
    GalleryQuery,
    PlanEdit,
    Settings,
    Sponsor,
    Studio,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnSettings,
)
from tests.agent.test_turn_limits import all_of, purse, settled
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import only
from tests.support.turns import started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, HttpError, Text
from tests.wire_server.models import Kind

ANN, BOB = "visitor-ann", "visitor-bob"
OWN = SecretStr("AIza-visitors-own-0001")
CONFIRM = TurnSettings(confirm=True)
HALF = Sponsor(cap_day_usd=5, cap_turn_usd=0.5)
DEAR = TurnSettings(image_model="pro", resolution="4K", number_of_images=4, review="off")


@pytest.fixture
def gemini() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        running.on_text(paint())
        yield running


@pytest.fixture
def home(tmp_path: Path, gemini: GeminiServer) -> Settings:
    return on_gemini(Settings(home=tmp_path), gemini.url)


@asynccontextmanager
async def lending(settings: Settings, pays: Sponsor = HALF, owner: str = ANN) -> AsyncIterator[tuple[Studio, str]]:
    """Open a studio that lends its owner's key, and a conversation of somebody's there."""
    async with Studio(settings, sponsor=pays) as studio:
        yield studio, (await studio.conversations.create(owner)).id


def asking(text: str = "a red fox", chosen: TurnSettings | None = None) -> TurnRequest:
    return TurnRequest(text=text, settings=chosen or TurnSettings())


async def leave(events: AsyncIterator[TurnEvent]) -> None:
    """Close a page on its first event."""
    await anext(events)
    assert isinstance(events, AsyncGenerator)
    await events.aclose()


async def over(studio: Studio, conversation_id: str) -> Conversation:
    """Return a conversation of Ann's when nothing of it runs any more, and everything that outlives a turn is done."""
    await until(lambda: not studio.turns.is_running(conversation_id, ANN))
    await settled(studio)
    return await studio.conversations.get(conversation_id, ANN)


def painted(gemini: GeminiServer) -> int:
    return sum(one.kind is Kind.IMAGE for one in gemini.requests)


async def test_turns_in_line_whose_pages_are_closed_are_each_counted_once(home: Settings, gemini: GeminiServer) -> None:
    gemini.clear()
    gemini.on_text(Hold(Text("One.")), Text("Two."), Text("Three."))
    async with lending(home) as (studio, conversation):
        for text in ("one", "two", "three"):
            await leave(studio.run_turn(conversation, asking(text), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        gemini.release()
        kept = await over(studio, conversation)
        assert [turn.price_usd > 0 for turn in kept.turns] == [True] * 3
        assert await purse(studio) == pytest.approx(kept.price_usd)


async def test_what_a_turn_cost_before_the_studio_ended_is_not_paid_again(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_image(Hold(SMALL))
    async with lending(home) as (studio, conversation):
        await leave(studio.run_turn(conversation, asking(), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        paid_usd = await purse(studio)
        assert paid_usd > 0
    gemini.release()
    async with lending(home) as (restarted, _):
        await settled(restarted)
        [turn] = (await over(restarted, conversation)).turns
        # Whether the picture was painted nobody knows, and it is not asked for again.
        assert turn.price_usd == pytest.approx(paid_usd)
        assert await purse(restarted) == pytest.approx(paid_usd)


async def test_a_picture_after_stop_is_set_aside_until_then_and_counted(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_text(Text("Hello."))
    gemini.on_image(Hold(SMALL))
    async with lending(home, Sponsor(cap_day_usd=1, cap_turn_usd=0.6)) as (studio, conversation):
        await leave(studio.run_turn(conversation, asking(), owner=ANN))
        await asyncio.to_thread(gemini.wait_for_held)
        await studio.cancel(conversation, ANN)
        other = await studio.conversations.create(BOB)
        refused = await all_of(studio.run_turn(other.id, asking("hello"), owner=BOB))
        assert only(refused, TurnFailed).error.code is ErrorCode.OWNER_CAP_USED_UP
        gemini.release()
        kept = await over(studio, conversation)
        assert len(kept.pictures) == 1
        assert await purse(studio) == pytest.approx(kept.price_usd)
        assert isinstance((await all_of(studio.run_turn(other.id, asking("hello"), owner=BOB)))[-1], TurnDone)


@pytest.mark.parametrize("budget_usd", [None, 40.0])
async def test_pictures_beyond_what_is_lent_for_a_turn_are_not_painted(
    home: Settings, gemini: GeminiServer, budget_usd: float | None
) -> None:
    async with lending(home) as (studio, conversation):
        chosen = DEAR.model_copy(update={"budget_usd": budget_usd})
        error = only(await all_of(studio.run_turn(conversation, asking(chosen=chosen), owner=ANN)), TurnFailed).error
        assert (error.code, error.parameters["cap"], error.can_retry) == (ErrorCode.TURN_TOO_DEAR, "0.50", False)
        assert float(error.parameters["price"]) > 0.5
        assert "$0.50" in error.message
        assert painted(gemini) == 0


@pytest.mark.parametrize(("owner", "key"), [(OPERATOR, None), (ANN, OWN)])
async def test_the_owner_and_whoever_brings_a_key_paint_what_they_like(
    home: Settings, gemini: GeminiServer, owner: str, key: SecretStr | None
) -> None:
    async with lending(home, owner=owner) as (studio, conversation):
        events = await all_of(studio.run_turn(conversation, asking(chosen=DEAR), owner=owner, key=key))
        assert isinstance(events[-1], TurnDone)
        assert (painted(gemini), await purse(studio)) == (4, 0)


async def test_a_plan_that_was_made_dearer_is_not_run(home: Settings, gemini: GeminiServer) -> None:
    async with lending(home) as (studio, conversation):
        shown = await all_of(studio.run_turn(conversation, asking(chosen=CONFIRM), owner=ANN))
        assert isinstance(shown[-1], TurnPaused)
        edit = PlanEdit(model="pro", resolution="4K", number_of_images=4)
        for going_on in (
            studio.decide(conversation, started(shown), Decision(run=True, edits=(edit,)), owner=ANN),
            studio.retry(conversation, started(shown), owner=ANN),
        ):
            assert only(await all_of(going_on), TurnFailed).error.code is ErrorCode.TURN_TOO_DEAR
        assert painted(gemini) == 0


async def test_a_turn_begun_with_their_own_key_does_not_go_on_beyond_the_loan(
    home: Settings, gemini: GeminiServer
) -> None:
    gemini.on_image(*[HttpError(500)] * 4)
    async with lending(home) as (studio, conversation):
        events = await all_of(studio.run_turn(conversation, asking(chosen=DEAR), owner=ANN, key=OWN))
        assert isinstance(events[-1], TurnFailed)
        before = painted(gemini)
        again = await all_of(studio.retry(conversation, started(events), owner=ANN))
        assert only(again, TurnFailed).error.code is ErrorCode.TURN_TOO_DEAR
        assert painted(gemini) == before


async def test_to_drop_a_plan_needs_nothing_of_the_cap(home: Settings, gemini: GeminiServer) -> None:
    async with lending(home, Sponsor(cap_day_usd=0.5, cap_turn_usd=0.5)) as (studio, conversation):
        shown = await all_of(studio.run_turn(conversation, asking(chosen=CONFIRM), owner=ANN))
        await settled(studio)
        for run, end in ((True, TurnFailed), (False, TurnDone)):
            events = await all_of(studio.decide(conversation, started(shown), Decision(run=run), owner=ANN))
            assert isinstance(events[-1], end)
        assert painted(gemini) == 0


async def test_pictures_read_for_a_search_that_was_answered_are_counted(home: Settings, gemini: GeminiServer) -> None:
    gemini.on_image(SMALL)
    async with lending(home) as (studio, conversation):
        await all_of(studio.run_turn(conversation, asking(), owner=ANN))
        await settled(studio)
        turns_usd = await purse(studio)
        await studio.gallery.page(ANN, GalleryQuery(words="fox"))
        await studio.gallery.settled()
        searched_usd = (await studio.spend.beside_turns(ANN)).price_usd
        assert searched_usd > 0
        assert await purse(studio) - turns_usd == pytest.approx(searched_usd)
