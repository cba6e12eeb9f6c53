"""Masked edits after they were asked for: judged, grown, cut off, stopped and sent again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent.components import PlanCard, SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import (
    PaintingStarted,
    PictureReady,
    PlanReady,
    TurnDone,
    TurnEvent,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from agent.settings import Settings
from agent.studio import TurnRequest
from tests.adapters.scripted import Asked, Hold, Line, Painting, calls, says
from tests.bench.masking_simulator import Redrawing
from tests.support.masked_turns import (
    DRIFTED,
    changed,
    edit_of,
    in_turn,
    mask_over,
    painter,
    pixels_of,
    planned,
    read_now,
    sky,
    uploaded,
)
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.scenes import Scene, generate, only, run
from tests.support.turns import decide, kept_when, newest, retry, started

PHOTO = stored(photo())
PLAIN = Line((Painting(PHOTO),))
AREA = rectangle(260, 180, 400, 320)
FRAME_1K = {(1024, 1024), (1264, 848), (848, 1264), (1200, 896), (896, 1200), (1152, 928), (928, 1152)}


async def test_too_little_to_align_by_is_asked_about_first_and_the_person_judges_the_result(settings: Settings) -> None:
    script = planned("a bird", says("So be it."), calls(generate("darker", action="edit_image")))
    paint = in_turn(painter(settings, Redrawing()), PLAIN)
    scene = Scene(settings, text=script, pictures=paint)
    async with scene.studio() as studio:
        conversation = await uploaded(studio, stored(sky(640, 520)))
        paused = await run(studio, conversation, "a bird", mask=mask_over("#1", AREA))
        asked_before = len(scene.provider.asked)
        events = await decide(studio, conversation, started(paused))
        picture = only(events, PictureReady).picture
        judged = edit_of(picture)
        before = await studio.picture(conversation, "#1")
        after = await studio.picture(conversation, "#1b")
        discarded = await studio.keep(conversation, "#1b", False)
        await run(studio, conversation, "no")
        later = await run(studio, conversation, "darken it a lot at dusk")
        kept = await studio.conversation(conversation)
    assert isinstance(paused[-1], TurnPaused)
    assert only(paused, PlanReady).plans[0].notices == ("little_to_align_by",)
    assert asked_before == 2
    assert (judged.verdict, judged.reason, judged.is_kept) == ("unsure", "little_to_align_by", None)
    assert judged.before is not None
    assert judged.after is not None
    assert read_now(settings, judged.before) != read_now(settings, judged.after)
    assert (changed(pixels_of(before.data), pixels_of(after.data))[AREA == 0] == 0).all()
    assert edit_of(discarded).is_kept is False
    assert edit_of(kept.picture("#1b")).is_kept is False
    assert only(later, PictureReady).picture.parents == ("#1",)


async def test_the_plan_that_waits_may_be_dropped_and_nothing_is_paid(settings: Settings) -> None:
    scene = Scene(settings, text=planned("a bird"))
    async with scene.studio() as studio:
        conversation = await uploaded(studio, stored(sky(640, 520)))
        paused = await run(studio, conversation, "a bird", mask=mask_over("#1", AREA))
        events = await decide(studio, conversation, started(paused), run=False)
        turn = await newest(studio, conversation)
    assert isinstance(events[-1], TurnDone)
    assert [one.state for one in turn.components if isinstance(one, PlanCard)] == ["dropped"]
    assert not any(asked.request for asked in scene.provider.asked)


async def test_what_went_beyond_the_mask_is_taken_in_without_a_request(settings: Settings) -> None:
    script = [*planned(), calls(generate("darker", reference_mode="LAST_GENERATED"))]
    paint = in_turn(painter(settings, replace(DRIFTED, bleed_px=18)), PLAIN)
    scene = Scene(settings, text=script, pictures=paint)
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        await run(studio, conversation, "a cup", mask=mask_over("#1", AREA))
        spilt = await studio.picture(conversation, "#1b")
        asked_before = len(scene.provider.asked)
        grown = await studio.grow_mask(conversation, "#1b")
        asked_after = len(scene.provider.asked)
        original, wider = await studio.picture(conversation, "#1"), await studio.picture(conversation, grown.handle)
        turn = await newest(studio, conversation)
        with pytest.raises(RequestRefused) as refused:
            await studio.grow_mask(conversation, "#1")
        later = await run(studio, conversation, "let it be evening")
    edit, before = edit_of(grown), edit_of(spilt.picture)
    assert (before.spill_px > 6, before.grown_mask is not None) == (True, True)
    assert any(notice.code == "spills" for notice in before.notices)
    assert asked_after == asked_before
    assert (grown.handle, grown.parents, grown.turn_id) == ("#1c", ("#1",), spilt.picture.turn_id)
    assert (edit.grown_from, edit.verdict, edit.mask) == ("#1b", "good", before.grown_mask)
    assert wider.receipt is not None
    assert (wider.receipt.price_usd, wider.receipt.usage.total_tokens) == (0, 0)
    area = pixels_of(read_now(settings, edit.mask))[..., 0]
    differs = changed(pixels_of(original.data), pixels_of(wider.data))
    assert (differs[area == 0] == 0).all()
    assert (differs[(area > 0) & (AREA == 0)] > 0).mean() > 0.5
    assert turn.components[-1] == SmartCanvas(handles=("#1c",))
    assert refused.value.code is ErrorCode.NOT_A_PART_EDIT
    # What the person made of it stands for it from now on.
    assert only(later, PictureReady).picture.parents == ("#1c",)


async def test_a_change_within_its_mask_has_nothing_to_grow(settings: Settings) -> None:
    scene = Scene(settings, text=planned(), pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        await run(studio, conversation, "a cup", mask=mask_over("#1", AREA))
        with pytest.raises(RequestRefused) as refused:
            await studio.grow_mask(conversation, "#1b")
        with pytest.raises(RequestRefused) as stranger:
            await studio.grow_mask(conversation, "#1b", owner="bob")
    assert refused.value.code is ErrorCode.NOTHING_TO_GROW
    assert stranger.value.code is ErrorCode.CONVERSATION_NOT_FOUND


async def test_after_a_restart_the_plan_is_made_anew_and_is_the_same(settings: Settings) -> None:
    scene = Scene(settings, text=planned(), pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        paused = await run(studio, conversation, "a cup", mask=mask_over("#1", AREA), confirm=True)
        before = await studio.conversation(conversation)
    files = {path.name for path in (settings.home / "pictures").rglob("*.png")}
    async with scene.studio() as studio:
        assert await studio.conversation(conversation) == before
        events = await decide(studio, conversation, started(paused))
        kept = await studio.conversation(conversation)
    assert isinstance(paused[-1], TurnPaused)
    request = scene.provider.asked[-1].request
    assert request is not None
    assert request.mask is not None
    sent = {f"{image.digest}.png" for image in (*request.messages[0].images, request.mask)}
    assert sent <= files
    assert edit_of(only(events, PictureReady).picture).verdict == "good"
    async with scene.studio() as studio:
        assert await studio.conversation(conversation) == kept


async def test_an_answer_that_comes_after_stop_is_pasted_and_kept(settings: Settings) -> None:
    gate = asyncio.Event()
    paint = painter(settings)

    def late(asked: Asked) -> Line:
        return Line((Hold(gate), *paint(asked).parts))

    scene = Scene(settings, text=planned(), pictures=late)
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        request = TurnRequest(text="a cup", mask=mask_over("#1", AREA))
        events: list[TurnEvent] = []
        async for event in studio.run_turn(conversation, request):
            events.append(event)
            if isinstance(event, PaintingStarted):
                stopping = asyncio.create_task(studio.cancel(conversation))
        assert await stopping
        gate.set()
        kept = await kept_when(studio, conversation, lambda one: len(one.pictures) == 2)
    assert isinstance(events[-1], TurnStopped)
    picture = kept.picture("#1b")
    assert (picture.after_stop, edit_of(picture).verdict, edit_of(picture).changed_outside) == (True, "good", 0)
    assert kept.turns[-1].state is TurnState.STOPPED


async def test_a_turn_that_is_sent_again_brings_its_mask(settings: Settings) -> None:
    script = [says("I see."), says("Which colour?"), says("And then?"), calls(generate("a red cup"))]
    scene = Scene(settings, text=script, pictures=painter(settings))
    async with scene.studio() as studio:
        conversation = await uploaded(studio)
        first = await run(studio, conversation, "a cup", mask=mask_over("#1", AREA, 4))
        await run(studio, conversation, "red")
        events = await retry(studio, conversation, started(first))
        turns = (await studio.conversation(conversation)).turns
    assert edit_of(only(events, PictureReady).picture).verdict == "good"
    assert only(events, TurnStarted).turn_id != started(first)
    assert (turns[1].mask, turns[1].feather_px) == (turns[-1].mask, turns[-1].feather_px)
    assert turns[-1].mask is not None
