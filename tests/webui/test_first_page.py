"""The first page: examples that run where that is free, and fill the composer where it costs something."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

from agent.conversation import TurnState
from agent.kept_things import LostRecords
from agent.messages import ImageOrigin
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support.cases import each_case
from webui.panels.chat import welcome_html, wish_of
from webui.sample_picture import NAME, sample_picture
from webui.words import LANGUAGES, load_words

WISHES = ("fox", "poster", "city", "photo", "crop", "letters")


def test_another_name_is_no_example() -> None:
    assert wish_of(load_words("en"), "../fox") is None


def test_the_sample_is_a_picture_of_many_colours_and_always_the_same() -> None:
    with Image.open(io.BytesIO(sample_picture())) as image:
        assert (image.format, image.size) == ("JPEG", (960, 640))
        colours = image.resize((48, 32)).getcolors(48 * 32)
    assert colours is not None
    assert len(colours) > 300
    assert sample_picture() is sample_picture()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_example_makes_a_picture_on_sketch(tmp_path: Path, language: str) -> None:
    words = load_words(language)
    async with Studio(Settings(home=tmp_path)) as studio:
        for name in WISHES:
            wish = wish_of(words, name)
            assert wish is not None
            conversation = await studio.new_conversation()
            images = [(NAME, sample_picture())] if wish.needs_picture else []
            async for _ in studio.run_turn(conversation.id, TurnRequest(text=wish.text, images=images)):
                pass
            kept = await studio.conversation(conversation.id)
            assert kept.turns[-1].state is TurnState.DONE, name
            made = [one for one in kept.pictures if one.image.origin is not ImageOrigin.UPLOADED]
            assert len(made) == 1, name


@each_case("language", LANGUAGES)
@each_case("count", [0, 1, 3])
def test_records_that_could_not_be_read_are_told_of_with_the_way_back(language: str, count: int) -> None:
    words = load_words(language)
    newest = datetime(2031, 5, 14, 12, tzinfo=UTC) if count else None
    lost = LostRecords("aivista.db.unreadable-20310515T080000000000Z", count, newest)
    shown = unescape(welcome_html(words, is_sketch=True, lost=lost))
    assert words("welcome.lost_title") in shown
    assert lost.name in shown
    assert ("aivista restore" in shown) == bool(count)
    assert words("welcome.lost_title") not in unescape(welcome_html(words, is_sketch=True))
