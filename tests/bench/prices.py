"""What a message is said to cost at most, beside what it is charged in the end.

Every path runs on the strict test server, which counts tokens as recorded answers do. The estimate and the maximum are
those that the page shows before Send.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from agent import Expansion, Mask, PlanCard, Settings, Studio, TurnRequest, TurnState
from tests.bench.measuring import command, table
from tests.support.gemini import on_gemini, paint, search
from tests.support.pixels import encoded
from tests.support.turns import decide, newest, retry, send
from tests.wire_server import Answer, Call, Calls, GeminiServer, Grounding, HttpError, PictureAnswer, Search, Text
from webui.features.composer import ChosenSettings
from webui.spend import MessageFacts, chosen_estimate

_WISH = "a red fox in the snow, watercolour, soft morning light, seen from the side, with a small village behind it"
_GOOD, _POOR = (
    Text(f'{{"lettering": "", "checklist": [], "score": {score}, "feedback": "A hat?", "suggestions": ["a hat"]}}')
    for score in (0.9, 0.4)
)


@dataclass(frozen=True)
class Message:
    """A message: what is set in the page, what goes with the words, and what the models answer."""

    text: str = _WISH
    answers: Sequence[Answer] = (paint(_WISH),)
    pictures: Sequence[Answer] = (PictureAnswer(),)
    chosen: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    masked: Sequence[str] = ()
    # Messages before it in the conversation, which do not count.
    before: Sequence[Message] = ()


@dataclass(frozen=True)
class Paid:
    """One run of one path, in US dollars."""

    estimate_usd: float
    maximum_usd: float
    paid_usd: float

    @property
    def ratio(self) -> float:
        """The maximum by the price paid."""
        return self.maximum_usd / self.paid_usd


def _chosen(*answers: Answer, count: int = 1, **chosen: Any) -> Message:
    """Return a wish that is painted so often, with what is set in the page; the answers are those after the plan."""
    return Message(answers=(paint(_WISH), *answers), pictures=[PictureAnswer()] * count, chosen=chosen)


_EDIT = paint(_WISH, action="edit_image", handles=["#1"])
_ASKED = {"prompt": _WISH, "confidence": 0.9, "action": "edit_image"}
_TWO_EDITS = Calls([Call("generate_image", {**_ASKED, "handles": [one]}) for one in ("#1", "#2")])
_TALK = Message("What makes a good watercolour?", [Text("Leave the white where the light falls. " * 12)], [])
_FACTS = {"facts": [{"item": "The tower is 330 m high.", "source": "example.org"}], "prompt_draft": ""}
_FOUND = Search(_FACTS, queries=("height of the tower", "tower height 2026"))
_GROUNDING = Grounding(queries=("lantern festival", "lanterns at night"), image_queries=("lantern festival",))
_MORE_SKY = {"editing": "#1", "expand": Expansion("#1", top=0.4)}
PATHS = {
    "talk": _TALK,
    "talk with search": Message(
        "How high is the tower?", [search(), _FOUND, Text("It is 330 metres high. " * 8)], [], {"allow_search": True}
    ),
    "one left to the agent": Message(),
    "one of flash": _chosen(image_model="flash"),
    "one of pro unreviewed": _chosen(image_model="pro", review="off"),
    "one of pro reviewed": _chosen(_GOOD, image_model="pro"),
    "pro chosen by the agent": Message(f"{_WISH}, in the highest quality", [paint(_WISH, model="pro"), _GOOD]),
    "several in words": Message(f"four pictures of {_WISH}", [paint(_WISH, number_of_images=4)], [PictureAnswer()] * 4),
    "several locked 2k": _chosen(count=3, image_model="flash", number_of_images="3", resolution="2K"),
    "both models": _chosen(count=2, image_model="both", review="off"),
    "edit in words": Message("now in the rain, and everything else as it is", [_EDIT], before=[Message()]),
    "masked edit": Message("a lantern here", [_EDIT], masked=["#1"], before=[Message()]),
    "masked edits of two": Message(
        "a lantern in each", [_TWO_EDITS], [PictureAnswer()] * 2, masked=["#1", "#2"], before=[Message()] * 2
    ),
    "expansion": Message("more of the sky", [_EDIT], sent=_MORE_SKY, before=[Message()]),
    "reference": Message("an owl in the same style", sent={"references": ("#1",)}, before=[Message()]),
    "style": Message("a red fox as a ukiyo-e woodblock print", [paint(_WISH, style="ukiyo-e")]),
    "always reviewed": _chosen(_GOOD, review="always"),
    "repainted by the review": _chosen(_POOR, _GOOD, count=2, review="always"),
    "pro repainted by the review": _chosen(_POOR, _GOOD, count=2, image_model="pro"),
    "grounded picture": Message(
        _WISH, [paint(_WISH, use_grounding=True)], [PictureAnswer(grounding=_GROUNDING)], {"allow_search": True}
    ),
    "without token details": Message(pictures=[PictureAnswer(has_details=False)]),
    "plan card": _chosen(confirm=True),
    "retry after a failure": Message(pictures=[HttpError(500, "An internal error has occurred."), PictureAnswer()]),
    "thinking": _chosen(text_model="thinking"),
    "after ten messages": Message(before=[_TALK] * 10),
}


async def run_path(path: str, home: Path, server: GeminiServer, seed: int) -> Paid:
    """Run a path in a conversation of its own."""
    server.count_as_recorded(seed)
    async with Studio(on_gemini(Settings(home=home), server.url)) as studio:
        conversation = await studio.conversations.create()
        for message in PATHS[path].before:
            await _say(studio, server, conversation.id, message)
        return await _say(studio, server, conversation.id, PATHS[path])


async def _say(studio: Studio, server: GeminiServer, key: str, message: Message) -> Paid:
    """Send a message with the maximum that the page shows for it, and press what the page then offers."""
    server.on_text(*message.answers)
    server.on_image(*message.pictures)
    conversation = await studio.conversations.get(key)
    sent, text = dict(message.sent), message.text
    if message.masked:
        picture = conversation.picture("#1").image
        mask = _mask(picture.width or 1, picture.height or 1)
        sent |= {"editing": "#1", "mask": [Mask(mask, handle) for handle in message.masked]}
    chosen = ChosenSettings.model_validate(message.chosen)
    beside = MessageFacts(
        characters=len(text) // 500 * 500,
        files=0,
        marked=len({sent.get("editing"), *sent.get("references", ())} - {None}),
        masks=len(message.masked) or int("expand" in sent),
        text=text,
    )
    told = chosen_estimate(studio.catalogue, "gemini", chosen, beside, conversation)
    request = TurnRequest(text=text, settings=chosen.turn_settings(), maximum_usd=told.most_usd, **sent)
    await send(studio, key, request)
    turn, more_usd = await newest(studio, key), 0.0
    if turn.state is TurnState.FAILED:
        # Try again tells how much more it may cost.
        more_usd = turn.maximum_usd or 0.0
        await retry(studio, key, turn.id)
    elif turn.state is TurnState.WAITING:
        # So does the plan's card, where that is beyond the maximum.
        [card] = [one for one in turn.components if isinstance(one, PlanCard)]
        caps = {cap for plan in card.plans for cap in plan.caps if cap.cap == "turn"}
        more_usd = sum(max(0.0, cap.over_usd) for cap in caps)
        await decide(studio, key, turn.id)
    turn = await newest(studio, key)
    assert turn.state is TurnState.DONE, turn.state
    return Paid(told.high_usd, told.most_usd + more_usd, turn.price_usd)


def _mask(width: int, height: int) -> bytes:
    mask = Image.new("L", (width, height), 0)
    ImageDraw.Draw(mask).ellipse((width // 3, height // 3, width // 2, height // 2), fill=255)
    return encoded(mask)


async def _measured(path: str, seed: int) -> Paid:
    with tempfile.TemporaryDirectory() as home, GeminiServer() as server:
        paid = await run_path(path, Path(home), server, seed)
        assert server.violations == []
        return paid


def _report(runs: int) -> str:
    found = {path: [asyncio.run(_measured(path, seed)) for seed in range(runs)] for path in PATHS}
    amounts = ("estimate_usd", "maximum_usd", "paid_usd")
    rows = [
        (path, *(_spread(paid, amount, "$", 4) for amount in amounts), _spread(paid, "ratio", "", 2))
        for path, paid in found.items()
    ]
    every = [one for paid in found.values() for one in paid]
    beyond = sum(one.paid_usd > one.maximum_usd for one in every)
    middle = statistics.median(one.ratio for one in every)
    told = f"Paid above the maximum: {beyond} of {len(every)}. Median of maximum / paid: {middle:.2f}."
    return f"{table('path | estimate | maximum | paid | maximum / paid', rows)}\n\n{told}"


def _spread(paid: Sequence[Paid], what: str, unit: str, digits: int) -> str:
    values = [getattr(one, what) for one in paid]
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{unit}{middle} ({low} to {high})"


if __name__ == "__main__":
    command("Prices", _report, runs=5)
