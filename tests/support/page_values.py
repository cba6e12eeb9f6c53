"""Values that the tests of the page show: pictures, plans, reviews, turns."""

from __future__ import annotations

from datetime import UTC, datetime

from agent.components import Component
from agent.conversation import Conversation, Turn, TurnState
from agent.messages import ImageOrigin, ImagePart
from agent.pictures import Picture
from agent.plans import Plan
from agent.reviews import AskedKind, ChecklistItem, Review
from agent.settings import TurnSettings
from webui.cards import View
from webui.offers import Offer
from webui.words import load_words

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
WORDS = load_words("en")
FLASH = Offer("flash", "Flash", ("1:1", "3:2", "16:9", "1:8"), ("512", "1K", "2K"))
PRO = Offer("pro", "Pro", ("1:1", "3:2", "16:9"), ("1K", "2K", "4K"))
OFFERS = (FLASH, PRO)
VIEW = View(WORDS, "c1", OFFERS)
PLAN = Plan(
    call=0,
    prompt="A red fox in snow",
    model="pro",
    model_label="Pro",
    aspect_ratio="16:9",
    resolution="2K",
    number_of_images=2,
    references=("#2",),
    editing="#1",
    price_usd=0.268,
    seconds=31,
)
REVIEW = Review(
    score=0.86,
    checklist=(
        ChecklistItem(wish="a red fox", is_met=True, kind=AskedKind.SUBJECT),
        ChecklistItem(wish="in the snow", is_met=True, why="deep snow", kind=AskedKind.ATTRIBUTE),
        ChecklistItem(wish="a title at the top", is_met=False, why="it stands at the bottom"),
    ),
    lettering="Slow mornings",
    feedback="The title stands too low.",
    suggestions=("Say that the title stands in the upper third.",),
    model_label="Flash",
)


def image(handle: str) -> ImagePart:
    """Return a reference to a generated picture of 1376×768 pixels."""
    return ImagePart(
        digest="0" * 64,
        md5="1" * 32,
        mime_type="image/png",
        size_bytes=9,
        origin=ImageOrigin.GENERATED,
        width=1376,
        height=768,
        handle=handle,
    )


def picture(handle: str, review: Review | None = None) -> Picture:
    """Return a picture without a receipt."""
    return Picture(handle=handle, image=image(handle), turn_id="t1", created_at=NOW, review=review)


def turn(*components: Component, turn_id: str = "t1", state: TurnState = TurnState.DONE, text: str = "a fox") -> Turn:
    """Return a turn on record that shows the components."""
    return Turn(
        id=turn_id, text=text, settings=TurnSettings(), started_at=NOW, state=state, components=tuple(components)
    )


def conversation(*turns: Turn, pictures: tuple[Picture, ...] = ()) -> Conversation:
    """Return a conversation of the turns."""
    return Conversation(
        id="c1", owner="local", title="Fox", created_at=NOW, updated_at=NOW, turns=turns, pictures=pictures
    )
