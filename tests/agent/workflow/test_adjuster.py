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

from agent.components import ActionPanel, FailureNote, SmartCanvas, Steps
from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode
from agent.events import PaintingStarted, PictureReady, Step, ThoughtLog, TurnDone, TurnFailed, TurnStarted, TurnStopped
from agent.messages import ImageOrigin, ImagePart, Role, TextPart
from agent.pictures import EXACT_ADJUSTMENT, Picture, StoredPicture
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.language import Adjustment, Change, ChangeKind, adjustment_wish, read_adjustment
from tests.adapters.pixels import apply_adjustment
from tests.adapters.scripted import calls, says
from tests.support.cases import each_case
from tests.support.children import StudioChild
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, stop_at
from tests.support.turns import at_rest

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def image(handle: str, origin: ImageOrigin = ImageOrigin.GENERATED) -> ImagePart:
    return ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=origin, handle=handle)


def made(handle: str, turn_id: str) -> Picture:
    return Picture(handle=handle, image=image(handle), turn_id=turn_id, created_at=NOW)


def shown(turn_id: str, *handles: str, earlier: tuple[str, ...] = ()) -> Turn:
    canvas = SmartCanvas(handles=handles, earlier=earlier)
    return Turn(id=turn_id, text="x", settings=TurnSettings(), started_at=NOW, components=(canvas,) if handles else ())


def history(turns: tuple[Turn, ...] = (), pictures: tuple[Picture, ...] = ()) -> Conversation:
    return Conversation(id="c", owner="local", title="", created_at=NOW, updated_at=NOW, turns=turns, pictures=pictures)


ONE = history((shown("a", "#1"),), (made("#1", "a"),))
TWO = history((shown("a", "#1"), shown("b", "#2")), (made("#1", "a"), made("#2", "b")))
FOUR = history((shown("a", "#1", "#2"),), (made("#1", "a"), made("#2", "a")))
REVIEWED = history((shown("a", "#1", earlier=("#2",)),), (made("#1", "a"), made("#2", "a")))


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
        ("make it warmer", TWO, {"editing": "#2", "mask": image("mask")}, None),
        *((text, ONE, {}, None) for text in ("make the sky warmer", "make it warmer and add a fox", "a warmer fox")),
        *((text, ONE, {}, None) for text in ("don't make it warmer", "把天空调亮一点", "")),
        # Of several shown last the one that stands for all, and none that a review sent back.
        ("make it warmer", FOUR, {}, FOUR.edit_target),
        ("make #1 warmer", FOUR, {}, "#1"),
        ("make it warmer", REVIEWED, {}, "#1"),
    ],
)
def test_which_picture_is_meant_is_clear_or_left_to_the_planner(
    text: str, conversation: Conversation, said: dict[str, Any], expected: str | None
) -> None:
    uploads = tuple(image(handle, ImageOrigin.UPLOADED) for handle in said.get("uploads", ()))
    turn = Turn(id="now", text=text, settings=TurnSettings(), started_at=NOW, **{**said, "uploads": uploads})
    wish = adjustment_wish(turn, conversation)
    assert (wish.base.handle if wish else None) == expected


async def test_an_adjustment_asks_no_model_and_costs_nothing(settings: Settings) -> None:
    scene = Scene(settings)
    before = png(64, 36, "#4080c0")
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "make it warmer", before)
        kept = await studio.conversation(conversation.id)
        stored = await studio.picture(conversation.id, "#1b")
    assert scene.provider.asked == []
    done = events[-1]
    assert isinstance(done, TurnDone)
    assert (done.price_usd, done.usage.total_tokens) == (0.0, 0)
    assert stored.data == apply_adjustment(before, Adjustment(warmth=30)).data
    made_now = stored.picture
    assert made_now.parents == ("#1",)
    assert made_now.image.origin is ImageOrigin.EDITED
    assert (made_now.image.width, made_now.image.height) == (64, 36)
    receipt = stored.receipt
    assert receipt is not None
    assert receipt.model == EXACT_ADJUSTMENT
    assert receipt.changes == (Change(kind=ChangeKind.WARMER, amount=30),)
    assert (receipt.price_usd, receipt.shortfalls, receipt.is_sketch) == (0.0, (), False)
    assert kept.turns[0].state is TurnState.DONE


async def test_the_page_gets_a_frame_a_picture_steps_and_what_to_do_next(settings: Settings) -> None:
    scene = Scene(settings)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "crop to 1:1", png(64, 36))
        kept = await studio.conversation(conversation.id)
    frame = only(events, PaintingStarted)
    ready = only(events, PictureReady)
    assert (frame.width, frame.height) == (36, 36)
    assert (ready.picture.image.width, ready.picture.image.height) == (36, 36)
    assert [line.step for line in of_type(events, ThoughtLog)] == [Step.ADJUSTING, Step.ADJUSTED]
    steps, canvas, panel = kept.turns[0].components
    assert isinstance(steps, Steps)
    assert canvas == SmartCanvas(handles=("#1b",))
    assert isinstance(panel, ActionPanel)
    assert panel.handle == "#1b"


async def test_the_planner_of_the_next_turn_hears_what_was_done(settings: Settings) -> None:
    scene = Scene(settings, text=[says("It is warmer now.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "warmth +15, brightness -5", png())
        await run(studio, conversation.id, "what did you do?")
        kept = await studio.conversation(conversation.id)
    said = kept.turns[0].messages[-1]
    assert said.role is Role.MODEL
    assert said.text.startswith(
        "[The studio adjusted #1 exactly: brightness -5, warmth +15. The result is #1b.] [Picture:history_"
    )
    seen = [
        part.text
        for message in scene.provider.asked[0].messages
        for part in message.parts
        if isinstance(part, TextPart)
    ]
    assert said.text in seen


async def test_adjustments_follow_one_another_in_the_same_family(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        first = await run(studio, conversation.id, "make it brighter")
        second = await run(studio, conversation.id, "对比度 +10", confirm=True, number_of_images=4)
        third = await run(studio, conversation.id, "make #1 black and white")
    handles = [only(events, PictureReady).picture for events in (first, second, third)]
    assert [(one.handle, one.parents) for one in handles] == [("#1b", ("#1",)), ("#1c", ("#1b",)), ("#1d", ("#1",))]
    assert len(scene.provider.asked) == 2


def noise(width: int, height: int) -> bytes:
    """Return a picture in which no pixel is like the next."""
    sink = io.BytesIO()
    Image.frombytes("RGB", (width, height), random.Random(7).randbytes(width * height * 3)).save(sink, "PNG")
    return sink.getvalue()


def pixels(data: bytes) -> tuple[tuple[int, int], bytes]:
    with Image.open(io.BytesIO(data)) as image:
        return image.size, image.convert("RGB").tobytes()


async def adjusted_in_turn(studio: Studio, data: bytes, *texts: str) -> list[StoredPicture]:
    """Return the upload and one picture for each text, each an adjustment of the one before."""
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, texts[0], data)
    for text in texts[1:]:
        await run(studio, conversation.id, text)
    kept = await studio.conversation(conversation.id)
    return [await studio.picture(kept.id, one.handle) for one in kept.pictures]


async def test_warmer_and_then_colder_by_as_much_gives_the_picture_back_bit_for_bit(settings: Settings) -> None:
    data = png(64, 36, "#4080c0")
    async with Studio(settings) as studio:
        original, warmer, back = await adjusted_in_turn(studio, data, "a bit warmer", "a bit colder")
    assert warmer.data != back.data == original.data
    assert back.picture.parents == (warmer.picture.handle,)
    assert back.picture.handle == "#1c"
    assert back.receipt is not None
    assert (back.receipt.adjustment, back.receipt.changes) == (Adjustment(), ())


async def test_what_is_asked_for_in_small_steps_is_applied_once_to_the_original(settings: Settings) -> None:
    data = png(64, 36, "#4080c0")
    async with Studio(settings) as studio:
        *_, last = await adjusted_in_turn(studio, data, "a bit warmer", "a bit warmer", "a bit warmer")
        _, once = await adjusted_in_turn(studio, data, "warmth +45")
    assert last.data == once.data == apply_adjustment(data, Adjustment(warmth=45)).data
    assert last.picture.image.digest == once.picture.image.digest
    assert last.receipt is not None
    assert last.receipt.adjustment == Adjustment(warmth=45)
    assert [one.handle for one in last.receipt.references] == ["#1"]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("crop to 1:1", "flip horizontally", "rotate right", "flip horizontally", "rotate right"), ("crop to 1:1",)),
        (
            ("brightness +20", "crop to 1:1", "flip vertically", "brightness -20"),
            ("crop to 1:1", "flip vertically"),
        ),
        (("rotate by 2 degrees", "rotate by -2 degrees"), ()),
    ],
)
async def test_frames_add_up_to_the_pixel(
    settings: Settings, texts: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    data = noise(65, 38)
    async with Studio(settings) as studio:
        *_, last = await adjusted_in_turn(studio, data, *texts)
        wanted = data
        for text in expected:
            wished = read_adjustment(text)
            assert wished is not None
            wanted = apply_adjustment(wanted, wished).data
    assert pixels(last.data) == pixels(wanted)


async def test_a_cut_picture_that_is_straightened_is_a_new_start(settings: Settings) -> None:
    async with Studio(settings) as studio:
        _, cut, last = await adjusted_in_turn(studio, noise(65, 38), "crop to 1:1", "rotate by 3 degrees")
    assert last.data == apply_adjustment(cut.data, Adjustment(rotate=3)).data
    assert last.receipt is not None
    assert [one.handle for one in last.receipt.references] == [cut.picture.handle]


async def test_an_adjusted_picture_is_what_the_next_change_starts_from(settings: Settings) -> None:
    edit = generate("add a hat", action="edit_image")
    scene = Scene(settings, text=[calls(generate()), calls(edit)], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "make it darker")
        events = await run(studio, conversation.id, "add a hat")
        adjusted = await studio.picture(conversation.id, "#1b")
    assert only(events, PictureReady).picture.parents == ("#1b",)
    request = scene.provider.asked[-1].request
    assert request is not None
    assert [part.digest for message in request.messages for part in message.images] == [adjusted.picture.image.digest]


async def test_a_picture_whose_file_is_gone_fails_with_a_sentence_and_can_be_tried_again(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Noted.")])
    data = png(40, 40, "green")
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "look at this", data)
        digest = (await studio.picture(conversation.id, "#1")).picture.image.digest
        file = next(path for path in settings.home.rglob(f"{digest}*") if path.is_file())
        data = file.read_bytes()
        file.unlink()
        events = await run(studio, conversation.id, "make it warmer")
        file.write_bytes(data)
        failed = (await studio.conversation(conversation.id)).turns[-1]
        again = [event async for event in studio.retry(conversation.id, failed.id)]
    failure = only(events, TurnFailed)
    assert (failure.error.code, failure.node) == (ErrorCode.PICTURE_FILE_MISSING, "adjuster")
    assert isinstance(failed.components[-1], FailureNote)
    assert only(again, PictureReady).picture.handle == "#1b"
    assert isinstance(again[-1], TurnDone)


async def test_stop_ends_it_and_the_next_turn_is_as_good_as_ever(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Noted.")])
    noise = Image.effect_noise((1600, 1200), 60).convert("RGB")
    out = io.BytesIO()
    noise.save(out, "PNG")
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "look at this", out.getvalue())
        events = await stop_at(studio, conversation.id, "make it sharper", PaintingStarted)
        stopped = (await studio.conversation(conversation.id)).turns[-1]
        after = await run(studio, conversation.id, "make it sharper")
    assert isinstance(events[-1], TurnStopped)
    assert stopped.state is TurnState.STOPPED
    assert only(after, PictureReady).picture.parents == ("#1",)


async def test_two_turns_at_once_never_take_the_same_handle(settings: Settings) -> None:
    scene = Scene(settings)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        turns = [
            run(studio, conversation.id, text) for text in ("make #1 brighter", "make #1 darker", "make #1 sharper")
        ]
        events = await asyncio.gather(*turns)
    handles = {only(one, PictureReady).picture.handle for one in events}
    assert handles == {"#1c", "#1d", "#1e"}


async def test_sketch_mode_adjusts_exactly_too(settings: Settings) -> None:
    data = png(50, 40, "#204060")
    async with Studio(settings) as studio:
        assert studio.provider_name() == "sketch"
        conversation = await studio.new_conversation()
        request = TurnRequest(text="亮度 +20，对比度 -10。", images=[data])
        events = [event async for event in studio.run_turn(conversation.id, request)]
        stored = await studio.picture(conversation.id, "#1b")
    assert stored.data == apply_adjustment(data, Adjustment(brightness=20, contrast=-10)).data
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnDone)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main(home, picture, moment):
    async with Studio(Settings(home=Path(home))) as studio:
        conversation = await studio.new_conversation()
        print(conversation.id, flush=True)
        request = TurnRequest(text="make it warmer", images=[Path(picture)])
        async for event in studio.run_turn(conversation.id, request):
            if moment in (event.type, getattr(event, "step", None)):
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("moment", ["turn_started", "adjusting", "picture_ready", "adjusted"])
async def test_a_studio_killed_at_any_moment_goes_on_and_makes_one_picture(
    settings: Settings, tmp_path: Path, moment: str
) -> None:
    file = tmp_path / "blue.png"
    file.write_bytes(png(64, 36, "#4080c0"))
    with StudioChild(KILLED, str(settings.home), str(file), moment) as child:
        conversation_id = await child.line()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(settings) as studio:
        kept = await at_rest(studio, conversation_id)
    assert [one.handle for one in kept.pictures] == ["#1", "#1b"]
    assert kept.turns[0].state is TurnState.DONE
    assert SmartCanvas(handles=("#1b",)) in kept.turns[0].components


WARMER = generate("warmth +30", action="adjust_parameters", handles=["#1"])


async def test_an_adjustment_that_the_planner_calls_for_is_made_exactly_and_no_image_model_is_asked(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[calls(generate()), calls(WARMER), says("There.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        events = await run(studio, conversation.id, "give the first one the light of an evening in august")
        kept = await studio.conversation(conversation.id)
        before, after = [await studio.picture(conversation.id, handle) for handle in ("#1", "#1b")]
    assert isinstance(events[-1], TurnDone)
    assert sum(one.request is not None for one in scene.provider.asked) == 1
    assert after.data == apply_adjustment(before.data, Adjustment(warmth=30)).data
    receipt = after.picture.receipt
    assert receipt is not None
    assert (receipt.model, receipt.price_usd, after.picture.parents) == (EXACT_ADJUSTMENT, 0.0, ("#1",))
    shown = [one for one in kept.turns[1].components if isinstance(one, SmartCanvas | ActionPanel)]
    assert [one.handles for one in shown if isinstance(one, SmartCanvas)] == [("#1b",)]
    assert any(isinstance(one, ActionPanel) for one in shown)


async def test_two_adjustments_and_a_picture_of_one_answer_are_all_made(settings: Settings) -> None:
    both = [WARMER, generate("contrast -20", action="adjust_parameters", handles=["#1"]), generate("a blue owl")]
    scene = Scene(settings, text=[calls(generate()), calls(*both)], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "warmer, paler, and an owl beside it")
        kept = await studio.conversation(conversation.id)
    assert [one.handle for one in kept.pictures] == ["#1", "#1b", "#1c", "#2"]
    assert kept.turns[1].state is TurnState.DONE


async def test_an_adjustment_in_words_that_name_no_amount_goes_back_to_the_planner(settings: Settings) -> None:
    vague = generate("Give it the mood of an old film.", action="adjust_parameters", handles=["#1"])
    scene = Scene(settings, text=[calls(generate()), calls(vague), calls(WARMER)], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        events = await run(studio, conversation.id, "the mood of an old film, please")
    assert isinstance(events[-1], TurnDone)
    planned = [one for one in scene.provider.asked if one.request is None]
    assert "prompt must name amounts" in str(planned[-1].messages[-1].parts)
    assert sum(one.request is not None for one in scene.provider.asked) == 1
