"""What the page says for the person beside a picture, with that picture marked, in both of its languages."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from agent.adjusting import Adjustment
from agent.adjusting.applying import apply_adjustment
from agent.components import PanelAction
from agent.events import PictureReady
from agent.pictures import Picture
from agent.providers.sketch.wishes import Edit, understand
from agent.settings import Settings
from agent.studio import Studio
from tests.support.scenes import of_type, only, png, run, words
from tests.support.small_frames import with_small_frames
from webui.action_panels import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.words import LANGUAGES, load_words

FOX = {"en": "draw a red fox in the snow", "zh-CN": "画一只雪中的红狐"}
AMOUNTS = PanelAmounts(handle="#1", brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)
ADJUSTED = Adjustment(brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    return with_small_frames(settings, tmp_path)


@pytest.fixture
async def studio(settings: Settings) -> AsyncIterator[Studio]:
    async with Studio(settings) as opened:
        yield opened


def pressed(action: PanelAction, language: str) -> str:
    return pressed_sentence(load_words(language), PanelPress(handle="#1", action=action))


async def made(studio: Studio, conversation_id: str, text: str, editing: str | None = None) -> Picture:
    """Run a turn that makes one picture."""
    return only(await run(studio, conversation_id, text, editing=editing), PictureReady).picture


async def data_of(studio: Studio, conversation_id: str, handle: str) -> bytes:
    return (await studio.picture(conversation_id, handle)).data


def prompt_of(picture: Picture) -> str:
    assert picture.receipt is not None
    return picture.receipt.prompt


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_slider_alone_is_read_with_its_amount(language: str) -> None:
    wrong = []
    for tone in ("brightness", "contrast", "saturation", "warmth", "sharpness"):
        for amount in (-100, -5, 5, 100):
            moved = PanelAmounts.model_validate({"handle": "#1", tone: amount})
            understood = understand(amounts_sentence(load_words(language), moved), has_pictures=True)
            if understood != Edit((Adjustment.model_validate({tone: amount}),)):
                wrong.append((tone, amount, understood))
    assert wrong == []


@pytest.mark.parametrize("sentence", ["Brightness +20, contrast -10.", "亮度 +20，对比度 -10。"])
def test_two_sliders_are_read_together(sentence: str) -> None:
    assert understand(sentence, has_pictures=True) == Edit((Adjustment(brightness=20, contrast=-10),))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_sliders_adjust_the_marked_picture_by_exactly_these_amounts(studio: Studio, language: str) -> None:
    conversation = await studio.new_conversation()
    for text in (FOX[language], "draw a lighthouse"):
        await made(studio, conversation.id, text)
    picture = await made(studio, conversation.id, amounts_sentence(load_words(language), AMOUNTS), editing="#1")

    expected = apply_adjustment(await data_of(studio, conversation.id, "#1"), ADJUSTED)
    assert picture.handle == "#1b"
    assert await data_of(studio, conversation.id, "#1b") == expected.data


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("action", "tone"), [("more_contrast", "contrast"), ("warmer", "warmth")])
async def test_a_button_changes_the_marked_picture(
    studio: Studio, language: str, action: PanelAction, tone: str
) -> None:
    conversation = await studio.new_conversation()
    for text in (FOX[language], "draw a lighthouse"):
        await made(studio, conversation.id, text)
    picture = await made(studio, conversation.id, pressed(action, language), editing="#1")

    amount = 15 if "一点" in pressed(action, language) else 30
    expected = apply_adjustment(await data_of(studio, conversation.id, "#1"), Adjustment.model_validate({tone: amount}))
    assert picture.parents == ("#1",)
    assert await data_of(studio, conversation.id, picture.handle) == expected.data


@pytest.mark.parametrize("language", LANGUAGES)
async def test_once_more_and_a_variation_paint_the_same_wish_as_other_pictures(studio: Studio, language: str) -> None:
    conversation = await studio.new_conversation()
    first = await made(studio, conversation.id, FOX[language])
    await made(studio, conversation.id, "draw a lighthouse")
    wish = prompt_of(first)
    again = await made(studio, conversation.id, pressed("regenerate", language), editing="#1")
    variation = await made(studio, conversation.id, pressed("vary", language), editing="#1")
    later = await made(studio, conversation.id, pressed("regenerate", language), editing=again.handle)

    assert [prompt_of(one) for one in (again, variation, later)] == [
        f"{wish} [take 2]", f"{wish} [variation 3]", f"{wish} [take 4]",
    ]  # fmt: skip
    assert {one.alt for one in (again, variation, later)} == {first.alt}
    assert len({one.image.digest for one in (first, again, variation, later)}) == 4
    assert (again.image.width, again.image.height) == (first.image.width, first.image.height)


async def test_the_answer_says_of_which_picture_it_is_a_take(studio: Studio) -> None:
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, FOX["en"])
    events = await run(studio, conversation.id, pressed("regenerate", "en"), editing="#1")

    assert words(events).startswith("Here comes another take of #1: a red fox in the snow.")


async def test_once_more_for_a_changed_picture_starts_from_the_first_wish_and_says_so(studio: Studio) -> None:
    conversation = await studio.new_conversation()
    for text in (FOX["zh-CN"], "再亮一点"):
        await made(studio, conversation.id, text)
    events = await run(studio, conversation.id, pressed("vary", "zh-CN"), editing="#1b")

    assert prompt_of(only(events, PictureReady).picture) == "一只雪中的红狐 [variation 2]"
    assert "从最初的描述重新画起" in words(events)


@pytest.mark.parametrize(("language", "said"), [("en", "I can change it as it is"), ("zh-CN", "我可以直接调整它")])
@pytest.mark.parametrize("action", ["regenerate", "vary"])
async def test_a_photo_that_was_never_painted_is_answered_in_words(
    studio: Studio, language: str, said: str, action: PanelAction
) -> None:
    conversation = await studio.new_conversation()
    await made(studio, conversation.id, FOX[language])
    await run(studio, conversation.id, "make it warmer", png(60, 40))
    for handle in ("#2", "#2b"):
        events = await run(studio, conversation.id, pressed(action, language), editing=handle)

        assert said in words(events)
        assert of_type(events, PictureReady) == []


async def test_several_are_painted_as_so_many_takes(studio: Studio) -> None:
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, "draw two pictures of a fox")
    events = await run(studio, conversation.id, "make three variations of this", editing="#2")
    later = await made(studio, conversation.id, "once more")

    pictures = [event.picture for event in of_type(events, PictureReady)]
    assert {prompt_of(one) for one in pictures} == {"a fox [variation 3]"}
    assert len({one.image.digest for one in pictures}) == 3
    assert prompt_of(later) == "a fox [take 6]"


async def test_marks_end_in_no_prompt_and_no_title(studio: Studio) -> None:
    conversation = await studio.new_conversation()
    await made(studio, conversation.id, FOX["en"])
    await made(studio, conversation.id, "draw a lighthouse")
    request = await run(studio, conversation.id, "draw a cat on a roof", editing="#1", references=("#2",))
    cat = only(request, PictureReady).picture
    kept = await studio.conversation(conversation.id)

    assert (cat.alt, cat.handle) == ("a cat on a roof", "#1b")
    assert prompt_of(cat).startswith("a cat on a roof")
    assert "The person" not in prompt_of(cat) + cat.alt + kept.title + words(request)


async def test_the_marked_picture_is_changed_when_the_words_name_another(studio: Studio) -> None:
    conversation = await studio.new_conversation()
    await run(studio, conversation.id, "make it warmer", png(60, 40))
    await run(studio, conversation.id, "make it warmer", png(30, 90))
    picture = await made(studio, conversation.id, "much brighter than #2", editing="#1")

    with Image.open(io.BytesIO(await data_of(studio, conversation.id, picture.handle))) as image:
        assert (picture.handle, image.size) == ("#1c", (60, 40))
