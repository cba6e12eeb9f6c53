"""What visitors may do: how often, how many at once, how much they keep, and what of it the place's owner pays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import (
    OPERATOR,
    Conversation,
    Decision,
    ErrorCode,
    GalleryQuery,
    KeyProblem,
    OpenAISettings,
    PlanEdit,
    PromptToExpand,
    RequestRefused,
    Settings,
    Sponsor,
    Step,
    Studio,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnLimits,
    TurnPaused,
    TurnRequest,
    TurnSettings,
)
from tests.adapters.records import SPONSOR_ACCOUNT, WINDOW_S, TurnRateLimiter
from tests.support.clock import Standing
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.refusals import refusal
from tests.support.scenes import only
from tests.support.turns import send, started
from tests.support.waiting import until
from tests.wire_server import GeminiProcess, GeminiServer, Hold, HttpError, Text
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


FOX = TurnRequest(text="Draw a red fox in the snow, watercolour")


KEY = SecretStr("AIza-visitors-own-0001")


@pytest.fixture(scope="module")
def gemini_program() -> Iterator[GeminiProcess]:
    with GeminiProcess() as server:
        yield server


async def all_of(events: AsyncIterator[TurnEvent]) -> list[TurnEvent]:
    return [event async for event in events]


async def settled(studio: Studio) -> None:
    """Wait for what outlives a turn."""
    for task in list(studio._kept):
        await task


async def purse(studio: Studio) -> float:
    """Return what of the owner's was spent today."""
    return (await studio.spend.day(SPONSOR_ACCOUNT)).price_usd


def test_a_visitor_comes_so_often_in_ten_minutes_and_the_others_do_not_mind() -> None:
    clock = Standing(0.0)
    gate = TurnRateLimiter(2, clock)
    for _ in range(2):
        gate.enter("a")
        clock.now += 60
    for _ in range(2):
        with pytest.raises(RequestRefused) as caught:
            gate.enter("a")
        told = caught.value.info.parameters
        assert (caught.value.code, told) == (ErrorCode.TOO_MANY_TURNS, {"count": 2, "seconds": 480})
    gate.enter("b")
    clock.now = WINDOW_S
    gate.enter("a")


async def one_turn(studio: Studio, owner: str = "visitor-a", key: SecretStr | None = None) -> TurnEvent:
    """Run a turn in a conversation of its own; return its last event, once it is settled."""
    conversation = await studio.conversations.create(owner)
    events = await all_of(studio.run_turn(conversation.id, FOX, owner=owner, key=key))
    await settled(studio)
    return events[-1]


async def test_a_visitor_is_told_when_it_was_too_often(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path), limits=TurnLimits(turns_per_visitor=1)) as studio:
        assert isinstance(await one_turn(studio), TurnDone)
        again = await one_turn(studio)
        assert isinstance(again, TurnFailed)
        assert again.error.code is ErrorCode.TOO_MANY_TURNS
        assert isinstance(await one_turn(studio, "visitor-b"), TurnDone)
        assert await purse(studio) == 0


async def test_only_what_starts_a_turn_counts(tmp_path: Path) -> None:
    owner, request = "visitor-a", replace(FOX, request_id="one press")
    async with Studio(Settings(home=tmp_path), limits=TurnLimits(turns_per_visitor=2)) as studio:
        conversation = await studio.conversations.create(owner)
        first = await all_of(studio.run_turn(conversation.id, request, owner=owner))
        assert (await all_of(studio.run_turn(conversation.id, request, owner=owner)))[-1] == first[-1]
        for _ in range(2):
            [failed] = await all_of(studio.retry(conversation.id, "no-such-turn", owner=owner))
            assert isinstance(failed, TurnFailed)
            assert failed.error.code is ErrorCode.TURN_NOT_FOUND
        assert isinstance(await one_turn(studio), TurnDone)
        again = await one_turn(studio)
        assert isinstance(again, TurnFailed)
        assert again.error.code is ErrorCode.TOO_MANY_TURNS


@pytest.fixture
def paid(tmp_path: Path, gemini_program: GeminiProcess) -> Settings:
    return Settings(home=tmp_path, gemini_api_key=SecretStr("AIza-owners-own-0001"), gemini_base_url=gemini_program.url)


async def test_the_owner_pays_up_to_the_cap_of_the_day_and_then_visitors_do(paid: Settings) -> None:
    sponsor = Sponsor(cap_day_usd=0.0015, cap_turn_usd=0.001)
    async with Studio(paid, sponsor=sponsor) as studio:
        first = await one_turn(studio)
        assert isinstance(first, TurnDone)
        assert first.price_usd > 0.0005
        assert await purse(studio) == pytest.approx(first.price_usd)
        second = await one_turn(studio, "visitor-b")
        assert isinstance(second, TurnFailed)
        assert (second.error.code, second.error.parameters) == (ErrorCode.OWNER_CAP_USED_UP, {"cap": "0.0015"})
        assert isinstance(await one_turn(studio, "visitor-b", KEY), TurnDone)
        assert await purse(studio) == pytest.approx(first.price_usd)
    async with Studio(paid, sponsor=sponsor) as restarted:
        assert isinstance(await one_turn(restarted), TurnFailed)


async def test_who_waits_in_line_holds_no_money_and_is_painted_when_there_is_a_seat(paid: Settings) -> None:
    sponsor = Sponsor(cap_day_usd=1, cap_turn_usd=0.6)
    async with Studio(paid, limits=TurnLimits(turns_at_once=1), sponsor=sponsor) as studio:
        conversation = await studio.conversations.create("visitor-a")
        running = studio.run_turn(conversation.id, FOX, owner="visitor-a")
        await anext(running)
        other = await studio.conversations.create("visitor-b")
        waited = await all_of(studio.run_turn(other.id, FOX, owner="visitor-b"))
        assert isinstance((await all_of(running))[-1], TurnDone)
        assert isinstance(waited[-1], TurnDone)


async def test_a_wish_written_out_is_the_owners_as_long_as_the_cap_lasts(paid: Settings) -> None:
    wish = PromptToExpand(text="a fox")
    async with Studio(paid, sponsor=Sponsor(cap_day_usd=0.00001, cap_turn_usd=0.00001)) as studio:
        await studio.expand_prompt(wish, "visitor-a")
        spent_usd = await purse(studio)
        assert spent_usd == pytest.approx((await studio.spend.day("visitor-a")).price_usd)
        assert spent_usd > 0.00001
        assert await refusal(studio.expand_prompt(wish, "visitor-a"), KeyProblem) is ErrorCode.OWNER_CAP_USED_UP
        await studio.expand_prompt(wish, "visitor-a", KEY)
        await studio.expand_prompt(wish, OPERATOR)
        assert await purse(studio) == spent_usd


async def test_the_owners_own_turns_pass_no_limit(paid: Settings) -> None:
    sponsor = Sponsor(cap_day_usd=0.0001, cap_turn_usd=0.0001)
    async with Studio(paid, limits=TurnLimits(turns_per_visitor=1), sponsor=sponsor) as studio:
        for _ in range(2):
            assert isinstance(await one_turn(studio, OPERATOR), TurnDone)
        assert await purse(studio) == 0


async def test_one_turn_too_many_waits_in_line_and_hears_its_place(tmp_path: Path) -> None:
    settings, limits = Settings(home=tmp_path), TurnLimits(turns_at_once=1)
    async with Studio(settings, limits=limits, sketch_pace_s=0.2) as studio:
        first, second = [await studio.conversations.create(f"visitor-{name}") for name in "ab"]
        running = studio.run_turn(first.id, FOX, owner="visitor-a")
        await anext(running)
        events = await all_of(studio.run_turn(second.id, FOX, owner="visitor-b"))
        assert isinstance((await all_of(running))[-1], TurnDone)
        assert isinstance(events[0], ThoughtLog)
        assert (events[0].step, events[0].parameters) == (Step.IN_LINE, {"place": 1})
        assert isinstance(events[-1], TurnDone)


USED_UP = ErrorCode.VISITOR_QUOTA_USED_UP


def studio_of(home: Path, **limits: Any) -> Studio:
    return Studio(Settings(home=home, **limits))


async def drawn(studio: Studio, owner: str, count: int) -> tuple[str, list[list[TurnEvent]]]:
    """Return a new conversation and the events of so many wishes in it."""
    key = (await studio.conversations.create(owner)).id
    return key, [await send(studio, key, TurnRequest("draw a boat"), owner) for _ in range(count)]


def code_of(events: list[TurnEvent]) -> ErrorCode | None:
    return events[-1].error.code if isinstance(events[-1], TurnFailed) else None


async def test_a_visitor_is_told_before_it_is_full_and_refused_then_and_the_operator_never(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=5) as studio:
        key, turns = await drawn(studio, "visitor", 6)
        told = [
            line.parameters["percent"]
            for events in turns
            for line in events
            if isinstance(line, ThoughtLog) and line.step is Step.NEARLY_FULL
        ]
        assert told == [80, 100]
        assert [code_of(events) for events in turns] == [None] * 5 + [USED_UP]
        assert len((await studio.conversations.get(key, "visitor")).pictures) == 5
        _, own = await drawn(studio, "local", 6)
        assert [code_of(events) for events in own] == [None] * 6


async def test_what_is_in_the_trash_counts_until_that_is_empty(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=2) as studio:
        key, _ = await drawn(studio, "visitor", 2)
        await studio.conversations.delete(key, "visitor")
        _, (refused,) = await drawn(studio, "visitor", 1)
        assert code_of(refused) is USED_UP
        await studio.conversations.empty_trash("visitor")
        _, (events,) = await drawn(studio, "visitor", 1)
        assert code_of(events) is None


async def test_the_bytes_of_pictures_files_and_words_count(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_bytes=3 << 20) as studio:
        key, _ = await drawn(studio, "visitor", 1)
        files = studio.files(key, "visitor")
        await files.write("notes.txt", b"x" * 1_000_000, by="person")
        assert await refusal(files.write("more.txt", b"x" * 1_000_000, by="person")) is USED_UP
        assert [file.name for file in await files.list()] == ["notes.txt"]


async def test_a_copy_and_an_archive_need_room_as_well(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=5) as studio:
        key, _ = await drawn(studio, "visitor", 3)
        assert await refusal(studio.conversations.duplicate(key, "visitor")) is USED_UP
        exported = await studio.archive.export_conversation(key, "visitor")
        before = await studio.conversations.list("visitor")
        assert await refusal(studio.archive.import_archive(exported.path, "visitor")) is USED_UP
        assert await studio.conversations.list("visitor") == before
        report = await studio.archive.import_archive(exported.path, "local")
        assert [one.picture_count for one in report.conversations] == [3]


async def test_the_pictures_of_the_other_branches_need_room_in_a_copy(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=3) as studio:
        key, _ = await drawn(studio, "visitor", 1)
        (first,) = (await studio.conversations.get(key, "visitor")).turns
        await send(studio, key, TurnRequest("draw a cat", instead_of=first.id), owner="visitor")
        assert len((await studio.conversations.get(key, "visitor")).elsewhere) == 1
        assert await refusal(studio.conversations.duplicate(key, "visitor")) is USED_UP


@pytest.fixture
def settings(tmp_path: Path, gemini_program: GeminiProcess) -> Settings:
    gemini_program.control(clear=True)
    key = SecretStr("AIza-operators-own-0001")
    return Settings(home=tmp_path, gemini_api_key=key, gemini_base_url=gemini_program.url, lends_keys=False)


async def price_of_a_turn(studio: Studio, owner: str, key: SecretStr | None = None) -> float:
    conversation = await studio.conversations.create(owner)
    last = [event async for event in studio.run_turn(conversation.id, FOX, owner=owner, key=key)][-1]
    assert isinstance(last, TurnDone)
    return last.price_usd


async def test_the_operators_key_serves_the_operator_and_others_only_where_it_is_lent(
    settings: Settings, gemini_program: GeminiProcess
) -> None:
    async with Studio(settings) as studio:
        assert studio.provider_name(None, "visitor-a") == "sketch"
        assert await price_of_a_turn(studio, "visitor-a") == 0
        assert gemini_program.read("requests") == []
        assert await price_of_a_turn(studio, OPERATOR) > 0
        assert await price_of_a_turn(studio, "visitor-a", OWN) > 0
    async with Studio(settings.model_copy(update={"lends_keys": True})) as studio:
        assert await price_of_a_turn(studio, "visitor-a") > 0
    assert (settings.lent_key("visitor-a"), settings.lent_key(OPERATOR)) == (None, settings.gemini_api_key)


@pytest.mark.parametrize(("key", "name"), [(None, "openai"), (SecretStr("sk-operators-own-01"), "sketch")])
async def test_a_server_of_the_operators_serves_others_where_it_needs_no_key(
    tmp_path: Path, key: SecretStr | None, name: str
) -> None:
    server = OpenAISettings(base_url="http://127.0.0.1:9/v1", text_model="talker", api_key=key)
    async with Studio(Settings(home=tmp_path, openai=server, lends_keys=False)) as studio:
        assert studio.provider_name(None, "visitor-a") == name
        assert studio.provider_name(None, OPERATOR) == "openai"
