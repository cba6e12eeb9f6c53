"""Wishes for light, colour or frame alone: carried out exactly, asked of no model, paid by nobody."""

from __future__ import annotations

import asyncio
import io
import random
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agent import (
    EXACT_ADJUSTMENT,
    ActionPanel,
    Conversation,
    ErrorCode,
    FailureNote,
    ImageOrigin,
    ImagePart,
    MaskedPicture,
    PaintingStarted,
    Picture,
    Settings,
    SmartCanvas,
    Step,
    Steps,
    StoredPicture,
    Studio,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnFailed,
    TurnSettings,
    TurnState,
    TurnStopped,
)
from tests.adapters.language import Adjustment, AdjustmentChange, ChangeKind, adjustment_request, read_adjustment
from tests.adapters.pixels import apply_adjustment
from tests.behaviour.talk import Talk
from tests.support.cases import each_case
from tests.support.children import StudioChild
from tests.support.gemini import SMALL, paint
from tests.support.pixels import encoded, size_and_colours
from tests.support.scenes import of_type, png
from tests.support.turns import at_rest
from tests.wire_server import Calls, Text

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BLUE = png(64, 36, "#4080c0")


def image(handle: str, origin: ImageOrigin = ImageOrigin.GENERATED) -> ImagePart:
    return ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=origin, handle=handle)


def history(*canvases: SmartCanvas) -> Conversation:
    """Return a conversation with a turn for each sheet of pictures."""
    chosen, turns, pictures = TurnSettings(), list[Turn](), list[Picture]()
    for turn_id, canvas in zip("ab", canvases, strict=False):
        turns.append(Turn(id=turn_id, text="x", settings=chosen, started_at=NOW, components=(canvas,)))
        handles = sorted((*canvas.handles, *canvas.earlier))
        pictures += [Picture(handle=one, image=image(one), turn_id=turn_id, created_at=NOW) for one in handles]
    times: Any = {"created_at": NOW, "updated_at": NOW}
    return Conversation(id="c", owner="local", title="", turns=tuple(turns), pictures=tuple(pictures), **times)


MASKED = MaskedPicture(handle="#1", mask=image("mask"))
ONE = history(SmartCanvas(handles=("#1",)))
TWO = history(SmartCanvas(handles=("#1",)), SmartCanvas(handles=("#2",)))
FOUR = history(SmartCanvas(handles=("#1", "#2")))


@each_case(
    ("text", "conversation", "said", "expected"),
    [
        # The newest picture, when nothing else is said.
        *((text, TWO, {}, "#2") for text in ("make it warmer", "warmth +15", "把这张图调暖一点", "crop to 1:1")),
        ("make it warmer", history(), {}, None),
        # Before it what is marked, named in the words, or the only upload of the message.
        ("make it warmer", TWO, {"editing": "#1"}, "#1"),
        ("make #1 warmer", TWO, {}, "#1"),
        ("Make #1 warmer, please.", TWO, {}, "#1"),
        ("make it warmer", TWO, {"uploads": ("#3",)}, "#3"),
        ("make #2 warmer", TWO, {"editing": "#2"}, "#2"),
        # What leaves it open, or is another wish, is left to the planner.
        ("make it warmer", TWO, {"uploads": ("#3", "#4")}, None),
        ("make #1 warmer", TWO, {"editing": "#2"}, None),
        ("make it warmer", TWO, {"editing": "#2", "uploads": ("#3",)}, None),
        ("make #9 warmer", TWO, {}, None),
        ("make it warmer", TWO, {"references": ("#1",)}, None),
        # Inside a mask what that covers; no frame, and nothing that masks of two pictures are about.
        ("make this part warmer", TWO, {"editing": "#2", "mask": image("mask")}, "#2"),
        ("crop to 1:1", TWO, {"editing": "#2", "mask": image("mask")}, None),
        ("make it warmer", TWO, {"editing": "#2", "mask": image("mask"), "more_masks": (MASKED,)}, None),
        *((text, ONE, {}, None) for text in ("make the sky warmer", "make it warmer and add a fox", "a warmer fox")),
        *((text, ONE, {}, None) for text in ("don't make it warmer", "把天空调亮一点", "")),
        # Of several shown last the one that stands for all, and none that a review sent back.
        ("make it warmer", FOUR, {}, FOUR.edit_target),
        ("make #1 warmer", FOUR, {}, "#1"),
        ("make it warmer", history(SmartCanvas(handles=("#1",), earlier=("#2",))), {}, "#1"),
    ],
)
def test_which_picture_is_meant_is_clear_or_left_to_the_planner(
    text: str, conversation: Conversation, said: dict[str, Any], expected: str | None
) -> None:
    uploads = tuple(image(handle, ImageOrigin.UPLOADED) for handle in said.get("uploads", ()))
    turn = Turn(id="now", text=text, settings=TurnSettings(), started_at=NOW, **said | {"uploads": uploads})
    wish = adjustment_request(turn, conversation)
    assert (wish.base.handle if wish else None) == expected


async def test_an_adjustment_asks_no_model_costs_nothing_and_the_page_gets_all_that_belongs_to_a_picture(
    talk: Talk,
) -> None:
    turn = await talk.say("make it warmer", BLUE)
    done, made, receipt = turn.one(TurnDone), turn.picture, turn.receipt
    assert (turn.requests, done.price_usd, done.usage.total_tokens) == ([], 0.0, 0)
    assert (await talk.picture("#1b")).data == apply_adjustment(BLUE, Adjustment(warmth=30)).data
    assert (made.parents, made.image.origin) == (("#1",), ImageOrigin.EDITED)
    assert receipt.changes == (AdjustmentChange(kind=ChangeKind.WARMER, amount=30),)
    assert (receipt.model, receipt.price_usd, receipt.shortfalls) == (EXACT_ADJUSTMENT, 0.0, ())
    assert (receipt.is_sketch, turn.record.state) == (False, TurnState.DONE)
    turn = await talk.say("crop #1b to 1:1")
    frame, image = turn.one(PaintingStarted), turn.picture.image
    assert (frame.width, frame.height, image.width, image.height) == (36, 36, 36, 36)
    resized = await talk.say("resize #1b to 32 px wide")
    assert (resized.picture.image.width, resized.picture.image.height, resized.requests) == (32, 18, [])
    # An effect and another size are a new start.
    later = await talk.say("make it brighter")
    assert [one.handle for one in later.receipt.references] == [resized.picture.handle]
    assert [line.step for line in of_type(turn.events, ThoughtLog)] == [Step.ADJUSTING, Step.ADJUSTED]
    steps, canvas, panel = turn.components
    assert isinstance(steps, Steps)
    assert canvas == SmartCanvas(handles=("#1c",))
    assert isinstance(panel, ActionPanel)
    assert panel.handle == "#1c"


async def test_the_planner_of_the_next_turn_hears_what_was_done(talk: Talk) -> None:
    await talk.say("warmth +15, brightness -5", png())
    [request] = (await talk.say("what did you do?", plan=Text("It is warmer now."))).requests
    done = "[The studio adjusted #1 exactly: brightness -5, warmth +15. The result is #1b.] [Picture:history_"
    assert done in request.text


async def test_adjustments_follow_one_another_in_the_same_family_and_the_next_change_starts_from_them(
    talk: Talk,
) -> None:
    await talk.say("a red fox", plan=paint(), image=SMALL)
    turns = [await talk.say("make it brighter"), await talk.say("对比度 +10", confirm=True, number_of_images=4)]
    turns += [await talk.say("make #1 black and white")]
    made = [(turn.picture.handle, turn.picture.parents) for turn in turns]
    assert made == [("#1b", ("#1",)), ("#1c", ("#1b",)), ("#1d", ("#1",))]
    assert [turn.requests for turn in turns] == [[]] * 3
    turn = await talk.say("add a hat", plan=paint("add a hat", action="edit_image"), image=SMALL)
    assert turn.picture.parents == ("#1d",)
    assert turn.painted()[0].pictures == [(await talk.picture("#1d")).data]


def noise(width: int, height: int) -> bytes:
    """Return a picture in which no pixel is like the next."""
    return encoded(Image.frombytes("RGB", (width, height), random.Random(7).randbytes(width * height * 3)))


async def adjusted_in_turn(talk: Talk, data: bytes, *texts: str) -> list[StoredPicture]:
    """Return the upload and one picture for each text, each an adjustment of the one before."""
    talk = await talk.another()
    await talk.say(texts[0], data)
    for text in texts[1:]:
        await talk.say(text)
    return [await talk.picture(one.handle) for one in (await talk.kept()).pictures]


async def test_what_is_asked_for_in_steps_is_applied_once_to_the_original(talk: Talk) -> None:
    original, warmer, back = await adjusted_in_turn(talk, BLUE, "a bit warmer", "a bit colder")
    assert warmer.data != back.data == original.data, "bit for bit"
    assert (back.picture.parents, back.picture.handle) == ((warmer.picture.handle,), "#1c")
    assert back.receipt is not None
    assert (back.receipt.adjustment, back.receipt.changes) == (Adjustment(), ())
    *_, last = await adjusted_in_turn(talk, BLUE, "a bit warmer", "a bit warmer", "a bit warmer")
    _, once = await adjusted_in_turn(talk, BLUE, "warmth +45")
    assert last.data == once.data == apply_adjustment(BLUE, Adjustment(warmth=45)).data
    assert last.picture.image.digest == once.picture.image.digest
    assert last.receipt is not None
    assert last.receipt.adjustment == Adjustment(warmth=45)
    assert [one.handle for one in last.receipt.references] == ["#1"]


@each_case(
    ("texts", "expected"),
    [
        ("crop to 1:1|flip horizontally|rotate right|flip horizontally|rotate right", "crop to 1:1"),
        ("brightness +20|crop to 1:1|flip vertically|brightness -20", "crop to 1:1|flip vertically"),
        ("rotate by 2 degrees|rotate by -2 degrees", ""),
    ],
)
async def test_frames_add_up_to_the_pixel(talk: Talk, texts: str, expected: str) -> None:
    wanted = noise(65, 38)
    *_, last = await adjusted_in_turn(talk, wanted, *texts.split("|"))
    for text in filter(None, expected.split("|")):
        wished = read_adjustment(text)
        assert wished is not None
        wanted = apply_adjustment(wanted, wished).data
    assert size_and_colours(last.data) == size_and_colours(wanted)


async def test_a_cut_picture_that_is_straightened_is_a_new_start(talk: Talk) -> None:
    _, cut, last = await adjusted_in_turn(talk, noise(65, 38), "crop to 1:1", "rotate by 3 degrees")
    assert last.data == apply_adjustment(cut.data, Adjustment(rotate=3)).data
    assert last.receipt is not None
    assert [one.handle for one in last.receipt.references] == [cut.picture.handle]


async def test_a_picture_whose_file_is_gone_fails_with_a_sentence_and_can_be_tried_again(talk: Talk) -> None:
    await talk.say("look at this", png(40, 41, "green"), plan=Text("Noted."))
    digest = (await talk.picture("#1")).picture.image.digest
    file = next(path for path in talk.studio.settings.home.rglob(f"{digest}*") if path.is_file())
    data = file.read_bytes()
    file.unlink()
    failed = await talk.say("make it warmer")
    file.write_bytes(data)
    assert (failed.failure.code, failed.one(TurnFailed).node) == (ErrorCode.PICTURE_FILE_MISSING, "adjuster")
    assert isinstance(failed.components[-1], FailureNote)
    again = await talk.retry(failed)
    assert (again.picture.handle, type(again.events[-1])) == ("#1b", TurnDone)


async def test_stop_ends_it_and_the_next_turn_is_as_good_as_ever(talk: Talk) -> None:
    out = io.BytesIO()
    Image.effect_noise((1600, 1200), 60).convert("RGB").save(out, "PNG")
    await talk.say("look at this", out.getvalue(), plan=Text("Noted."))
    stopped = await talk.stop_at(PaintingStarted, "make it sharper")
    assert (type(stopped.events[-1]), stopped.record.state) == (TurnStopped, TurnState.STOPPED)
    assert (await talk.say("make it sharper")).picture.parents == ("#1",)


async def test_turns_at_once_never_take_the_same_handle(talk: Talk) -> None:
    await talk.say("make it warmer", png())
    wishes = ("make #1 brighter", "make #1 darker", "make #1 sharper")
    turns = await asyncio.gather(*(talk.say(wish) for wish in wishes))
    assert {turn.picture.handle for turn in turns} == {"#1c", "#1d", "#1e"}


async def test_sketch_mode_adjusts_exactly_too(sketch: Talk) -> None:
    data = png(50, 40, "#204060")
    await sketch.say("亮度 +20，对比度 -10。", data)
    assert (await sketch.picture("#1b")).data == apply_adjustment(data, Adjustment(brightness=20, contrast=-10)).data


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main(home, picture, moment):
    async with Studio(Settings(home=Path(home))) as studio:
        conversation = await studio.conversations.create()
        print(conversation.id, flush=True)
        request = TurnRequest(text="make it warmer", images=[Path(picture)])
        async for event in studio.run_turn(conversation.id, request):
            if moment in (event.type, getattr(event, "step", None)):
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("moment", ["turn_started", "adjusting", "picture_ready", "adjusted"])
async def test_a_studio_killed_at_any_moment_goes_on_and_makes_one_picture(tmp_path: Path, moment: str) -> None:
    home, file = tmp_path / "home", tmp_path / "blue.png"
    file.write_bytes(BLUE)
    with StudioChild(KILLED, str(home), str(file), moment) as child:
        conversation_id = await child.line()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(Settings(home=home)) as studio:
        kept = await at_rest(studio, conversation_id)
    assert [one.handle for one in kept.pictures] == ["#1", "#1b"]
    assert kept.turns[0].state is TurnState.DONE
    assert SmartCanvas(handles=("#1b",)) in kept.turns[0].components


# ---- asked for by the planner

WARMER = paint("warmth +30", action="adjust_parameters", handles=["#1"])


async def test_an_adjustment_that_the_planner_calls_for_is_made_exactly_and_no_image_model_is_asked(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(), image=SMALL)
    turn = await talk.say("give it the light of an evening in august", plan=WARMER)
    before, after = [(await talk.picture(handle)).data for handle in ("#1", "#1b")]
    assert after == apply_adjustment(before, Adjustment(warmth=30)).data
    assert (turn.painted(), turn.receipt.model, turn.receipt.price_usd) == ([], EXACT_ADJUSTMENT, 0.0)
    assert turn.picture.parents == ("#1",)
    assert [one.handles for one in turn.components if isinstance(one, SmartCanvas)] == [("#1b",)]
    assert any(isinstance(one, ActionPanel) for one in turn.components)
    # In words that name no amount it goes back to the planner.
    vague = paint("Give it the mood of an old film.", action="adjust_parameters", handles=["#1"])
    turn = await talk.say("the mood of an old film, please", plan=[vague, WARMER])
    assert "prompt must name amounts" in str(turn.requests[1].function_responses)
    assert (type(turn.events[-1]), turn.painted()) == (TurnDone, [])


async def test_two_adjustments_and_a_picture_of_one_answer_are_all_made(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(), image=SMALL)
    paler = paint("contrast -20", action="adjust_parameters", handles=["#1"])
    turn = await talk.say("warmer, paler, and an owl", plan=Calls([WARMER, paler, paint("a blue owl")]), image=SMALL)
    assert [one.handle for one in (await talk.kept()).pictures] == ["#1", "#1b", "#1c", "#2"]
    assert turn.record.state is TurnState.DONE
