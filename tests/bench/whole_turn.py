"""A turn with everything in it (plan, style, picture, review) beside the same three calls made bare with the SDK."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.genai import types

from agent import (
    ModelRole,
    PictureReady,
    PictureReviewed,
    Step,
    Studio,
    ThoughtLog,
    TurnDone,
    TurnRequest,
    TurnSettings,
)
from agent.prompts import prompt
from agent.providers.catalogue import load_catalogue
from agent.workflow.reviewing import REVIEW_SCHEMA
from tests.bench.brains import STYLE
from tests.bench.measuring import Figure, in_turn, resident_mb, spread, with_worst
from tests.bench.turns import MODEL, Ways, bare_client, bare_config, studio_settings

TURNS = 200
PLAIN = "paint a red fox in the snow"
KNOWN_STYLE = f"{PLAIN}{STYLE}ukiyo-e"
_SETTINGS = TurnSettings(review="always")
_TARGET = "≤ 2.5x"
# What a turn leaves to be written a little later must be over before the other way is measured.
_SETTLED_S = 0.03


@dataclass(frozen=True)
class Grown:
    """A long conversation: the seconds of each turn, and the process's megabytes after each fiftieth."""

    seconds: list[float]
    megabytes: list[float]


class Bare:
    """The three calls as one would write them with the SDK alone."""

    def __init__(self, url: str) -> None:
        self._models = bare_client(url).aio.models
        self._plan = bare_config()
        self._picture = types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"],
            image_config=types.ImageConfig(aspect_ratio="16:9", image_size="1K"),
        )
        self._review = types.GenerateContentConfig(
            system_instruction=prompt("critic"),
            response_mime_type="application/json",
            response_json_schema=REVIEW_SCHEMA,
            thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW),
        )
        self._painter = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini").id

    async def turn(self, text: str) -> float:
        """Plan, paint and review; return the score."""
        plan = await self._parts(MODEL, [text], self._plan)
        call = next(part.function_call for part in plan if part.function_call)
        wish = str((call.args or {})["prompt"])
        painted = await self._parts(self._painter, [wish], self._picture)
        picture = next(part for part in painted if part.inline_data)
        asked = f"The person's words: {text}\n\nThe prompt it was painted from: {wish}\n\nThe picture to judge:"
        look = types.Part(inline_data=picture.inline_data)
        said = await self._parts(MODEL, [asked, look], self._review)
        return float(json.loads("".join(part.text or "" for part in said))["score"])

    async def _parts(self, model: str, contents: list[Any], config: types.GenerateContentConfig) -> list[types.Part]:
        stream = await self._models.generate_content_stream(model=model, contents=contents, config=config)
        return [part async for chunk in stream for part in chunk.parts or ()]


async def our_turn(studio: Studio, conversation_id: str, text: str) -> None:
    """Run one turn to its end. Raises RuntimeError when anything that shall be measured was left out."""
    request = TurnRequest(text=text, settings=_SETTINGS)
    events = [event async for event in studio.run_turn(conversation_id, request)]
    scores = [event.review.score for event in events if isinstance(event, PictureReviewed)]
    pictures = sum(isinstance(event, PictureReady) for event in events)
    styles = sum(isinstance(event, ThoughtLog) and event.step is Step.STYLES for event in events)
    if not isinstance(events[-1], TurnDone) or pictures != 1 or scores != [0.9] or styles != (STYLE in text):
        raise RuntimeError(f"not a whole turn: {[event.type for event in events]}")


def whole_ways(url: str) -> Ways:
    """Return both ways of a whole turn, for a crowd."""
    bare = Bare(url)
    return Ways("whole turns", lambda: bare.turn(KNOWN_STYLE), lambda s, c: our_turn(s, c, KNOWN_STYLE), "≥ 0.4x")


async def whole_figures(home: Path, url: str, runs: int) -> list[Figure]:
    """Return the whole turn beside the bare calls: without a style, with one, and what the processor does for it."""
    number = itertools.count()
    wishes: dict[str, Callable[[], str]] = {
        "a whole turn: plan, picture, review": lambda: PLAIN,
        "the same with a style found within the last minutes": lambda: KNOWN_STYLE,
        "the same with a style looked up anew": lambda: f"{KNOWN_STYLE} {next(number)}",
    }
    figures = []
    async with Studio(studio_settings(home, url)) as studio:
        await studio.styles.warm_up()
        for name, wish in wishes.items():
            figures.append(_beside(name, *await _timed(studio, Bare(url), wish, runs, time.perf_counter)))
        bare, ours = await _timed(studio, Bare(url), lambda: KNOWN_STYLE, runs, _processor_s)
    return [*figures, _beside("processor time of the second of these, all threads", bare, ours, "")]


async def _timed(
    studio: Studio, bare: Bare, wish: Callable[[], str], runs: int, clock: Callable[[], float]
) -> tuple[list[float], list[float]]:
    async def ours() -> float:
        conversation = await studio.conversations.create()
        return await _alone(lambda: our_turn(studio, conversation.id, wish()), clock)

    return await in_turn(lambda: _alone(lambda: bare.turn(wish()), clock), ours, runs, warm_up=10)


async def _alone(way: Callable[[], Awaitable[object]], clock: Callable[[], float]) -> float:
    """Return what the clock shows for one run; processor time counts what is written after its end as well."""
    started_s = clock()
    await way()
    ended_s = clock()
    await asyncio.sleep(_SETTLED_S)
    return (clock() if clock is _processor_s else ended_s) - started_s


def _processor_s() -> float:
    return time.process_time()


def _beside(name: str, bare: Sequence[float], ours: Sequence[float], target: str = _TARGET) -> Figure:
    ratios = [mine / theirs for theirs, mine in zip(bare, ours, strict=True)]
    theirs_ms, ours_ms = with_worst(bare, 1000, " ms"), with_worst(ours, 1000, " ms")
    return Figure(name, theirs_ms, ours_ms, with_worst(ratios, 1.0, "x"), target)


async def whole_growth_figures(home: Path, url: str) -> list[Figure]:
    """Return the time and the memory of a long conversation's whole turns, in a process of their own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        grown = await asyncio.get_running_loop().run_in_executor(process, grow, home, url, TURNS)
    early, late = grown.seconds[50:100], grown.seconds[150:200]
    ratio = statistics.median(late) / statistics.median(early)
    before, after = grown.megabytes[1], grown.megabytes[3]
    return [
        Figure(
            f"whole turns 50 to 100 beside turns 150 to {TURNS} of one conversation",
            spread(early, 1000, " ms"),
            spread(late, 1000, " ms"),
            f"{ratio:.2f}x",
            "no growth",
        ),
        Figure(
            f"memory of its process after turn 100 beside turn {TURNS}",
            f"{before:.1f} MB",
            f"{after:.1f} MB",
            f"{after / before:.2f}x",
            "no growth",
        ),
    ]


def grow(home: Path, url: str, turns: int) -> Grown:
    """Run so many whole turns in one conversation."""
    return asyncio.run(_grow(home, url, turns))


async def _grow(home: Path, url: str, turns: int) -> Grown:
    seconds, megabytes = [], []
    async with Studio(studio_settings(home, url)) as studio:
        await studio.styles.warm_up()
        conversation = await studio.conversations.create()
        for number in range(1, turns + 1):
            started_s = time.perf_counter()
            await our_turn(studio, conversation.id, KNOWN_STYLE)
            seconds.append(time.perf_counter() - started_s)
            if number % 50 == 0:
                gc.collect()
                megabytes.append(resident_mb())
    return Grown(seconds, megabytes)
