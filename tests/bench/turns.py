"""Turns beside the same calls made bare with the SDK, in one process, against a server that answers at once."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import os
import random
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
from google import genai
from google.genai import types
from PIL import Image
from pydantic import SecretStr

from agent import (
    ModelRole,
    PictureReady,
    PictureReviewed,
    Settings,
    Step,
    Studio,
    ThoughtLog,
    TurnDone,
    TurnRequest,
    TurnSettings,
)
from agent.imaging.contract import declaration
from agent.prompts import prompt
from agent.tools.registry import TOOLS
from agent.workflow.critic import REVIEW_SCHEMA
from tests.adapters.models import load_catalogue
from tests.bench.brains import STYLE
from tests.bench.measuring import BESIDE_BARE, Row, command, compared, in_turn, spread, table, timed, with_p95
from tests.support.pixels import encoded
from tests.support.turns import send
from tests.wire_server import GeminiProcess

_MODEL = "gemini-3.8-flash"
_PLAIN = "paint a red fox in the snow"
_KNOWN_STYLE = f"{_PLAIN}{STYLE}ukiyo-e"
_BRAINS = ("--sizes-only", "--text-brain", "tests.bench.brains:text", "--image-brain", "tests.bench.brains:image")


class Bare:
    """The calls of a turn as one would write them with the SDK alone: its async client, the API's version pinned."""

    def __init__(self, url: str) -> None:
        client = httpx2.AsyncClient(timeout=60)
        options = types.HttpOptions(base_url=url, api_version="v1beta", httpx_async_client=client)
        self._models = genai.Client(api_key="AIzaBench", http_options=options).aio.models
        thinking = types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW)
        tools = [
            declaration(load_catalogue(), "gemini"),
            *(one.declaration for one in TOOLS.values() if one.is_offered),
        ]
        functions = [
            types.FunctionDeclaration(name=one.name, description=one.description, parameters_json_schema=one.parameters)
            for one in tools
        ]
        self._plan = types.GenerateContentConfig(
            system_instruction=prompt("planner"),
            tools=[types.Tool(function_declarations=functions)],
            thinking_config=thinking,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        self._picture = types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"], image_config=types.ImageConfig(aspect_ratio="16:9", image_size="1K")
        )
        self._review = types.GenerateContentConfig(
            system_instruction=prompt("critic"),
            response_mime_type="application/json",
            response_json_schema=REVIEW_SCHEMA,
            thinking_config=thinking,
        )
        self._painter = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini").id

    async def turn(self, text: str) -> float:
        """Plan, paint and review; return the score."""
        plan = await self._parts(_MODEL, [text], self._plan)
        call = next(part.function_call for part in plan if part.function_call)
        wish = str((call.args or {})["prompt"])
        painted = await self._parts(self._painter, [wish], self._picture)
        picture = next(part for part in painted if part.inline_data)
        asked = f"The person's words: {text}\n\nThe prompt it was painted from: {wish}\n\nThe picture to judge:"
        look = types.Part(inline_data=picture.inline_data)
        said = await self._parts(_MODEL, [asked, look], self._review)
        return float(json.loads("".join(part.text or "" for part in said))["score"])

    async def _parts(self, model: str, contents: list[Any], config: types.GenerateContentConfig) -> list[types.Part]:
        stream = await self._models.generate_content_stream(model=model, contents=contents, config=config)
        return [part async for chunk in stream for part in chunk.parts or ()]


async def _rows(home: Path, server: GeminiProcess, runs: int) -> list[Row]:
    def studio(name: str) -> Studio:
        key = SecretStr("AIzaBench")
        return Studio(Settings(home=home / name, gemini_api_key=key, gemini_base_url=server.url))

    bare = Bare(server.url)
    # First, while nothing else is in this process's memory.
    grown = await _grown(studio("grown"))
    rows = [*await _whole(studio("whole"), bare, runs), *grown]
    crowds = [await _crowd(studio(f"crowd of {people}"), bare, people, max(3, runs // 20)) for people in (10, 50)]
    return [*rows, *crowds, await _sent(studio("sent"), server)]


async def our_turn(studio: Studio, text: str, conversation_id: str) -> None:
    """Run a whole turn, and see that nothing was left out that shall be measured."""
    request = TurnRequest(text=text, settings=TurnSettings(review="always"))
    events = await send(studio, conversation_id, request)
    scores = [event.review.score for event in events if isinstance(event, PictureReviewed)]
    pictures = sum(isinstance(event, PictureReady) for event in events)
    styles = sum(isinstance(event, ThoughtLog) and event.step is Step.STYLES for event in events)
    assert isinstance(events[-1], TurnDone), events[-1]
    assert (pictures, scores, styles) == (1, [0.9], STYLE in text), [event.type for event in events]


async def _whole(studio: Studio, bare: Bare, runs: int) -> list[Row]:
    number = itertools.count()
    wishes: dict[str, Callable[[], str]] = {
        "a whole turn: plan, picture, review": lambda: _PLAIN,
        "the same with a style found within the last minutes": lambda: _KNOWN_STYLE,
        "the same with a style looked up anew": lambda: f"{_KNOWN_STYLE} {next(number)}",
    }
    async with studio:
        await studio.styles.warm_up()
        return [
            compared(name, await _timed(studio, bare, wish, runs), "≤ 2.5x", 1000, " ms", with_p95)
            for name, wish in wishes.items()
        ]


async def _timed(studio: Studio, bare: Bare, wish: Callable[[], str], runs: int) -> list[tuple[float, float]]:
    async def ours() -> float:
        conversation = await studio.conversations.create()
        taken_s = await timed(lambda: our_turn(studio, wish(), conversation.id))
        # What the turn leaves to be written a little later must be over before the other way is measured.
        await asyncio.sleep(0.03)
        return taken_s

    return await in_turn(lambda: timed(lambda: bare.turn(wish())), ours, runs, warm_up=10)


async def _grown(studio: Studio) -> list[Row]:
    """Return the time and the memory of the whole turns of one long conversation."""
    seconds, megabytes = [], []
    async with studio:
        await studio.styles.warm_up()
        conversation = await studio.conversations.create()
        for number in range(1, 201):
            seconds.append(await timed(lambda: our_turn(studio, _KNOWN_STYLE, conversation.id)))
            if number in (100, 200):
                megabytes.append(_memory_mb())
    name = "whole turns 50 to 100 beside turns 150 to 200 of one conversation"
    early, late, (before, after) = seconds[50:100], seconds[150:], megabytes
    slower = f"{statistics.median(late) / statistics.median(early):.2f}x"
    memory = f"{before:.1f} MB", f"{after:.1f} MB", f"{after / before:.2f}x"
    return [
        (name, spread(early, 1000, " ms"), spread(late, 1000, " ms"), slower, "no growth"),
        ("memory of the process after turn 100 beside turn 200", *memory, "no growth"),
    ]


def _memory_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def _crowd(studio: Studio, bare: Bare, people: int, rounds: int) -> Row:
    """Return whole turns a second with many conversations at once."""
    async with studio:
        await studio.styles.warm_up()
        ids = [(await studio.conversations.create()).id for _ in range(people)]

        async def rate(turn: Callable[[str], Awaitable[object]]) -> float:
            return people / await timed(lambda: asyncio.gather(*map(turn, ids)))

        pairs = await in_turn(
            lambda: rate(lambda _: bare.turn(_KNOWN_STYLE)),
            lambda: rate(lambda one: our_turn(studio, _KNOWN_STYLE, one)),
            rounds,
            warm_up=2,
        )
    return compared(f"{people} conversations at once, whole turns a second", pairs, "≥ 0.4x", 1, "")


async def _sent(studio: Studio, server: GeminiProcess) -> Row:
    """Return the bytes sent in twenty turns of which the first ten bring a picture of a megabyte each."""
    server.control(clear=True)
    # Of about a megabyte, their pixels noise, so that they stay as large when they are taken in.
    noise = random.Random(0)
    pictures = tuple(encoded(Image.frombytes("RGB", (577, 577), noise.randbytes(577 * 577 * 3))) for _ in range(10))
    async with studio:
        conversation = await studio.conversations.create()
        for number in range(20):
            images = tuple(pictures[number : number + 1])
            events = await send(
                studio, conversation.id, TurnRequest(text=f"look at this, turn {number}", images=images)
            )
            assert isinstance(events[-1], TurnDone), events[-1]
    sizes = [request["size_bytes"] for request in server.read("requests")]
    bare = sum((20 - number) * len(picture) * 4 / 3 for number, picture in enumerate(pictures))
    return (
        f"20 turns, ten pictures of {len(pictures[0]) / 1e6:.2f} MB: all requests (the last one)",
        f"{bare / 1e6:.0f} MB, computed: every picture in every later request",
        f"{sum(sizes) / 1e6:.1f} MB ({sizes[-1] / 1e6:.3f} MB)",
        f"{sum(sizes) / bare:.2f}x",
        "≤ 16 MB (≤ 0.1 MB)",
    )


def _report(runs: int) -> str:
    with GeminiProcess(*_BRAINS) as server, tempfile.TemporaryDirectory() as home:
        return table(BESIDE_BARE, asyncio.run(_rows(Path(home), server, runs)))


if __name__ == "__main__":
    command("Turns", _report, runs=200)
