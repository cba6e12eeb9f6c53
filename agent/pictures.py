"""A picture of a conversation and its receipt: what was asked against what was got."""

from __future__ import annotations

from datetime import datetime

from agent.messages import ImagePart, PromptMessage, Source, TokenUsage, Value
from agent.reviews import Review


class Fact(Value):
    """Something a search found, and where (`source` is a URL or the name of a page)."""

    item: str
    source: str


class Reference(Value):
    """A picture that the image model was shown: its handle and its part in the request."""

    handle: str
    role: str = ""


class StyleUse(Value):
    """A style whose phrases went into the prompt, and how surely the request named it (0 to 1)."""

    name: str
    similarity: float


class Receipt(Value):
    """Asked against got, for one picture.

    `prompt` is the prompt as sent; `user_text` the person's words; `model` the model's id and `model_label` its name
    on the page; prices in US dollars, times in seconds. `left_out` counts references that exceeded the model's limit.
    """

    prompt: str
    user_text: str
    model: str
    model_label: str
    asked_aspect_ratio: str | None
    asked_resolution: str | None
    width: int
    height: int
    mime_type: str
    references: tuple[Reference, ...] = ()
    left_out: int = 0
    styles: tuple[StyleUse, ...] = ()
    facts: tuple[Fact, ...] = ()
    sources: tuple[Source, ...] = ()
    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    seconds: float = 0.0
    attempts: int = 1
    finish_reason: str = ""
    is_sketch: bool = False
    shortfalls: tuple[str, ...] = ()


class Picture(Value):
    """A picture of a conversation: uploaded, generated or edited.

    `parents` are the handles it was made from, base picture first. `answer` is the image model's message as it came,
    signatures included, so that the picture can go back in a model turn; uploads have none. `alt` describes it.
    `round` counts the attempts of one request, `call` names the paid call that brought it (`agent.storage.journal`).
    """

    handle: str
    image: ImagePart
    turn_id: str
    created_at: datetime
    parents: tuple[str, ...] = ()
    answer: PromptMessage | None = None
    receipt: Receipt | None = None
    alt: str = ""
    after_stop: bool = False
    is_marked: bool = False
    review: Review | None = None
    round: int = 1
    call: str = ""
