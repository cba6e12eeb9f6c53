"""What the page says for the person beside a picture, with that picture marked, in both of its languages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent import PanelAction, Picture, PictureReady, Settings, Studio
from tests.adapters.language import Adjustment
from tests.adapters.pixels import apply_adjustment
from tests.adapters.sketch import Edit, Retake, RetakeKind, understand
from tests.support.scenes import only, run
from webui.features.viewer.actions import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.words import LANGUAGES, load_words

TONES: tuple[tuple[PanelAction, str], ...] = (("more_contrast", "contrast"), ("warmer", "warmth"))
BUTTONS: tuple[PanelAction, ...] = ("more_contrast", "warmer", "regenerate", "vary")
FOX = {"en": "draw a red fox in the snow", "zh-CN": "画一只雪中的红狐"}
AMOUNTS = PanelAmounts(handle="#1", brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)
ADJUSTED = Adjustment(brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)


@pytest.fixture
async def studio(settings: Settings) -> AsyncIterator[Studio]:
    async with Studio(settings) as opened:
        yield opened


def pressed(action: PanelAction, language: str) -> str:
    return pressed_sentence(load_words(language), PanelPress(handle="#1", action=action))


async def made(studio: Studio, conversation_id: str, text: str, editing: str | None = None) -> Picture:
    """Run a turn that makes one picture."""
    return only(await run(studio, conversation_id, text, editing=editing), PictureReady).picture


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_button_is_read_as_what_it_says(language: str) -> None:
    read = {action: understand(pressed(action, language), has_pictures=True) for action in BUTTONS}
    for action, tone in TONES:
        amount = 15 if "一点" in pressed(action, language) else 30
        assert read[action] == Edit((Adjustment.model_validate({tone: amount}),))
    kinds = {action: found.kind for action, found in read.items() if isinstance(found, Retake)}
    assert kinds == {"regenerate": RetakeKind.AGAIN, "vary": RetakeKind.VARIATION}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_marked_picture_is_painted_again_and_adjusted_by_these_amounts(studio: Studio, language: str) -> None:
    conversation = await studio.conversations.create()
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
    # Sliders adjust the marked picture itself.
    adjusted = await made(studio, conversation.id, amounts_sentence(load_words(language), AMOUNTS), editing="#1")
    original, changed = [(await studio.picture(conversation.id, handle)).data for handle in ("#1", adjusted.handle)]
    assert (adjusted.handle, changed) == ("#1e", apply_adjustment(original, ADJUSTED).data)
