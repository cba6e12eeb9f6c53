"""`python -m tests.bench.prices`: what a message is said to cost at most, beside what it is charged in the end.

Every path runs on the strict test server, which counts tokens as recorded answers do. The estimate and the maximum are
those that the page shows before Send.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from agent import Decision, Estimate, Expansion, Mask, PlanCard, Settings, Studio, TurnRequest, TurnState
from tests.bench.measuring import machine
from tests.support.gemini import on_gemini, paint, search
from tests.wire_server import Call, Calls, GeminiServer, Grounding, HttpError, PictureAnswer, Search, Text
from webui.features.composer import Chosen
from webui.spend import Beside, chosen_estimate

_GOOD = '{"lettering": "", "checklist": [], "score": 0.9, "feedback": "Good.", "suggestions": []}'
_POOR = '{"lettering": "", "checklist": [], "score": 0.4, "feedback": "The fox has no hat.", "suggestions": ["a hat"]}'
_WISH = "a red fox in the snow, watercolour, soft morning light, seen from the side, with a small village behind it"


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


@dataclass
class Desk:
    """A studio on the server, as somebody sits before it: what was told before each message, and what was paid."""

    studio: Studio
    server: GeminiServer
    conversation_id: str = ""
    told: list[Estimate] = field(default_factory=list)
    more_usd: float = 0.0
    first: int = 0

    async def begin(self) -> None:
        """Open a new conversation."""
        self.conversation_id = (await self.studio.conversations.create()).id

    async def send(self, text: str, **sent: Any) -> None:
        """Send a message with the maximum that the page shows for it, and let the turn rest."""
        chosen = Chosen.model_validate(sent.pop("chosen", {}))
        conversation = await self.studio.conversations.get(self.conversation_id)
        beside = Beside(
            characters=len(text) // 500 * 500,
            files=len(sent.get("images", ())),
            marked=len({sent.get("editing"), *sent.get("references", ())} - {None}),
            masks=len(sent["mask"]) if "mask" in sent else int("expand" in sent),
            text=text,
        )
        guess = chosen_estimate(self.studio.catalogue, "gemini", chosen, beside, conversation)
        self.told.append(guess)
        request = TurnRequest(text=text, settings=chosen.turn_settings(), maximum_usd=guess.most_usd, **sent)
        async for _ in self.studio.run_turn(self.conversation_id, request):
            pass

    async def go_on(self) -> None:
        """Press Try again, which tells how much more it may cost."""
        turn = (await self.studio.conversations.get(self.conversation_id)).turns[-1]
        assert turn.state is TurnState.FAILED
        self.more_usd += turn.maximum_usd or 0.0
        async for _ in self.studio.retry(self.conversation_id, turn.id):
            pass

    async def run_plan(self) -> None:
        """Press Paint on the plan's card, which tells what it may cost where that is beyond the maximum."""
        turn = (await self.studio.conversations.get(self.conversation_id)).turns[-1]
        [card] = [one for one in turn.components if isinstance(one, PlanCard)]
        caps = {cap for plan in card.plans for cap in plan.caps if cap.cap == "turn"}
        for cap in caps:
            self.more_usd += max(0.0, cap.over_usd)
        async for _ in self.studio.decide(self.conversation_id, turn.id, Decision(run=True)):
            pass

    async def paid(self) -> Paid:
        """Return what the messages since the first that counts were told to cost, and cost."""
        turns = (await self.studio.conversations.get(self.conversation_id)).turns[self.first :]
        assert all(turn.state is TurnState.DONE for turn in turns), [turn.state for turn in turns]
        told = self.told[self.first :]
        maximum_usd = sum(one.most_usd for one in told) + self.more_usd
        return Paid(sum(one.high_usd for one in told), maximum_usd, sum(turn.price_usd for turn in turns))


Path_ = Callable[[Desk], Awaitable[None]]


def _paints(desk: Desk, count: int = 1, **arguments: Any) -> None:
    desk.server.on_text(paint(_WISH, **arguments))
    desk.server.on_image(*[PictureAnswer() for _ in range(count)])


def painted(
    wish: str = _WISH, *, count: int = 1, reviews: tuple[str, ...] = (), is_planned: bool = False, **more: Any
) -> Path_:
    """Return the path of a wish that is painted so often; `chosen` is what is set in the page, the rest is called."""
    chosen = more.pop("chosen", {})

    async def path(desk: Desk) -> None:
        _paints(desk, count, **more)
        desk.server.on_text(*map(Text, reviews))
        await desk.send(wish, chosen=chosen)
        if is_planned:
            await desk.run_plan()

    return path


async def _drawn(desk: Desk) -> None:
    """Have a picture in the conversation that does not count."""
    _paints(desk)
    await desk.send(_WISH)
    desk.first = 1


async def talk(desk: Desk) -> None:
    desk.server.on_text(Text("A watercolour lives from its paper: leave the white where the light falls. " * 6))
    await desk.send("What makes a good watercolour?")


async def talk_with_search(desk: Desk) -> None:
    facts = {"facts": [{"item": "The tower is 330 m high.", "source": "example.org"}], "prompt_draft": ""}
    desk.server.on_text(search(), Search(facts, queries=("height of the tower", "tower height 2026")))
    desk.server.on_text(Text("It is 330 metres high. " * 8))
    await desk.send("How high is the tower?", chosen={"allow_search": True})


async def grounded_picture(desk: Desk) -> None:
    found = Grounding(queries=("lantern festival", "lanterns at night"), image_queries=("lantern festival",))
    desk.server.on_text(paint(_WISH, use_grounding=True))
    desk.server.on_image(PictureAnswer(grounding=found))
    await desk.send(_WISH, chosen={"allow_search": True})


async def without_token_details(desk: Desk) -> None:
    desk.server.on_text(paint(_WISH))
    desk.server.on_image(PictureAnswer(has_details=False))
    await desk.send(_WISH)


async def edit_in_words(desk: Desk) -> None:
    await _drawn(desk)
    _paints(desk, action="edit_image", handles=["#1"])
    await desk.send("now in the rain, and everything else as it is")


async def masked_edit(desk: Desk) -> None:
    await _drawn(desk)
    _paints(desk, action="edit_image", handles=["#1"])
    await desk.send("a lantern here", editing="#1", mask=[Mask(await _mask_of(desk), "#1")])
    await _agree(desk)


async def masked_edits_of_two(desk: Desk) -> None:
    await _drawn(desk)
    await _drawn(desk)
    desk.first = 2
    arguments = {"prompt": _WISH, "confidence": 0.9, "action": "edit_image"}
    desk.server.on_text(Calls([Call("generate_image", {**arguments, "handles": [one]}) for one in ("#1", "#2")]))
    desk.server.on_image(PictureAnswer(), PictureAnswer())
    mask = await _mask_of(desk)
    await desk.send("a lantern in each", editing="#1", mask=[Mask(mask, "#1"), Mask(mask, "#2")])
    await _agree(desk)


async def expansion(desk: Desk) -> None:
    await _drawn(desk)
    _paints(desk, action="edit_image", handles=["#1"])
    await desk.send("more of the sky", editing="#1", expand=Expansion("#1", top=0.4))
    await _agree(desk)


async def _agree(desk: Desk) -> None:
    turn = (await desk.studio.conversations.get(desk.conversation_id)).turns[-1]
    if turn.state is TurnState.WAITING:
        await desk.run_plan()


async def _mask_of(desk: Desk) -> bytes:
    picture = (await desk.studio.conversations.get(desk.conversation_id)).picture("#1").image
    size = picture.width or 1, picture.height or 1
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).ellipse((size[0] // 3, size[1] // 3, size[0] // 2, size[1] // 2), fill=255)
    out = io.BytesIO()
    mask.save(out, "PNG")
    return out.getvalue()


async def reference(desk: Desk) -> None:
    await _drawn(desk)
    _paints(desk)
    await desk.send("an owl in the same style", references=("#1",))


async def retry_after_a_failure(desk: Desk) -> None:
    desk.server.on_text(paint(_WISH))
    desk.server.on_image(HttpError(500, "An internal error has occurred."), PictureAnswer())
    await desk.send(_WISH)
    await desk.go_on()


async def after_ten_messages(desk: Desk) -> None:
    for number in range(10):
        desk.server.on_text(Text("Leave the white where the light falls. " * 10))
        await desk.send(f"What else, for the {number}th time?")
    desk.first = 10
    _paints(desk)
    await desk.send(_WISH)


one_left_to_the_agent = painted()
one_of_flash = painted(chosen={"image_model": "flash"})
one_of_pro_unreviewed = painted(chosen={"image_model": "pro", "review": "off"})
one_of_pro_reviewed = painted(chosen={"image_model": "pro"}, reviews=(_GOOD,))
pro_chosen_by_the_agent = painted(f"{_WISH}, in the highest quality", model="pro", reviews=(_GOOD,), is_planned=True)
several_in_words = painted(f"four pictures of {_WISH}", count=4, number_of_images=4)
several_locked_2k = painted(count=3, chosen={"image_model": "flash", "number_of_images": "3", "resolution": "2K"})
both_models = painted(count=2, chosen={"image_model": "both", "review": "off"})
style = painted("a red fox as a ukiyo-e woodblock print", style="ukiyo-e")
always_reviewed = painted(chosen={"review": "always"}, reviews=(_GOOD,))
repainted_by_the_review = painted(count=2, chosen={"review": "always"}, reviews=(_POOR, _GOOD))
pro_repainted_by_the_review = painted(count=2, chosen={"image_model": "pro"}, reviews=(_POOR, _GOOD))
plan_card = painted(chosen={"confirm": True}, is_planned=True)
thinking = painted(chosen={"text_model": "thinking"})

_NAMES = """talk, talk_with_search, one_left_to_the_agent, one_of_flash, one_of_pro_unreviewed, one_of_pro_reviewed,
pro_chosen_by_the_agent, several_in_words, several_locked_2k, both_models, edit_in_words, masked_edit,
masked_edits_of_two, expansion, reference, style, always_reviewed, repainted_by_the_review,
pro_repainted_by_the_review, grounded_picture, without_token_details, plan_card, retry_after_a_failure, thinking,
after_ten_messages"""
PATHS: dict[str, Path_] = {name: globals()[name] for name in _NAMES.replace("\n", " ").split(", ")}


async def run_path(path: Path_, home: Path, server: GeminiServer, seed: int) -> Paid:
    """Run a path in a conversation of its own."""
    server.count_as_recorded(seed)
    async with Studio(on_gemini(Settings(home=home), server.url)) as studio:
        desk = Desk(studio, server)
        await desk.begin()
        await path(desk)
        return await desk.paid()


async def measured(paths: Mapping[str, Path_], seeds: Iterable[int]) -> dict[str, list[Paid]]:
    """Return what every path was told to cost and cost, once for each seed."""
    found: dict[str, list[Paid]] = {name: [] for name in paths}
    for seed in seeds:
        for name, path in paths.items():
            with tempfile.TemporaryDirectory() as home, GeminiServer() as server:
                found[name].append(await run_path(path, Path(home), server, seed))
                assert server.violations == []
    return found


def table(found: dict[str, list[Paid]]) -> str:
    """Return the figures as Markdown, and the two that count under it."""
    lines = ["| path | estimate | maximum | paid | maximum / paid |", "| --- | --- | --- | --- | --- |"]
    for name, runs in found.items():
        shown = (
            _spread([getattr(one, what) for one in runs], "$", 4)
            for what in ("estimate_usd", "maximum_usd", "paid_usd")
        )
        ratios = _spread([one.ratio for one in runs], "", 2)
        lines.append(f"| {name.replace('_', ' ')} | {' | '.join(shown)} | {ratios} |")
    runs = [one for each in found.values() for one in each]
    beyond = sum(one.paid_usd > one.maximum_usd for one in runs)
    middle = statistics.median(one.ratio for one in runs)
    lines += ["", f"Paid above the maximum: {beyond} of {len(runs)}. Median of maximum / paid: {middle:.2f}."]
    return "\n".join(lines)


def _spread(values: list[float], unit: str, digits: int) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{unit}{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prices", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how often each path runs")
    found = asyncio.run(measured(PATHS, range(parser.parse_args().seeds)))
    print(f"{machine()}\n\n{table(found)}")


if __name__ == "__main__":
    main()
