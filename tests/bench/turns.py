"""Turns beside the same calls made bare with the SDK, in one process, against a server that answers at once."""

from __future__ import annotations

import asyncio
import io
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from google import genai
from google.genai import types
from PIL import Image
from pydantic import SecretStr

from agent import Settings, Studio, TextDelta, TurnDone, TurnEvent, TurnFailed, TurnRequest
from agent.imaging.contract import declaration
from agent.prompts import prompt
from agent.providers.catalogue import load_catalogue
from agent.tools.registry import TOOLS
from tests.bench.measuring import Figure, compared, in_turn, spread, timed
from tests.wire_server import GeminiProcess

MODEL = "gemini-3.8-flash"


@dataclass(frozen=True)
class Ways:
    """A kind of turn, bare and ours: the latter in the conversation of that id."""

    name: str
    bare: Callable[[], Awaitable[object]]
    ours: Callable[[Studio, str], Awaitable[object]]
    target: str


def bare_client(url: str) -> genai.Client:
    """Return the SDK as one would use it: its async client on httpx2, API version pinned."""
    options = types.HttpOptions(base_url=url, api_version="v1beta", httpx_async_client=httpx2.AsyncClient(timeout=60))
    return genai.Client(api_key="AIzaBench", http_options=options)


def studio_settings(home: Path, url: str) -> Settings:
    """Return settings that lead to the test server."""
    return Settings(home=home, gemini_api_key=SecretStr("AIzaBench"), gemini_base_url=url)


def bare_config() -> types.GenerateContentConfig:
    """Return the same instructions and functions that the planner's call carries."""
    tools = [declaration(load_catalogue(), "gemini"), *(one.declaration for one in TOOLS.values() if one.is_offered)]
    functions = [
        types.FunctionDeclaration(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in tools
    ]
    return types.GenerateContentConfig(
        system_instruction=prompt("planner"),
        tools=[types.Tool(function_declarations=functions)],
        thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


async def bare_turn(client: genai.Client, contents: list[Any], config: types.GenerateContentConfig) -> float:
    """Stream one answer, calling the tool when asked to; return the seconds to the first token."""
    started_s, first_s, call = time.perf_counter(), 0.0, None
    async for chunk in await client.aio.models.generate_content_stream(model=MODEL, contents=contents, config=config):
        for part in chunk.parts or ():
            first_s = first_s or time.perf_counter() - started_s
            call = part if part.function_call else call
    if call is not None and call.function_call is not None:
        response = types.Part.from_function_response(name=call.function_call.name or "", response={"error": "unknown"})
        await bare_turn(
            client,
            [*contents, types.Content(role="model", parts=[call]), types.Content(role="user", parts=[response])],
            config,
        )
    return first_s


async def our_turn(studio: Studio, conversation_id: str, text: str, *images: bytes) -> float:
    """Run one turn; return the seconds to the first token."""
    started_s, first_s = time.perf_counter(), 0.0
    last: TurnEvent | None = None
    async for event in studio.run_turn(conversation_id, TurnRequest(text=text, images=images)):
        if isinstance(event, TextDelta):
            first_s = first_s or time.perf_counter() - started_s
        last = event
    if not isinstance(last, TurnDone):
        raise RuntimeError(last.error.message if isinstance(last, TurnFailed) else f"the turn ended with {last}")
    return first_s


async def turn_figures(home: Path, url: str, runs: int) -> list[Figure]:
    """Return first token, whole text turn and tool turn."""
    client, config = bare_client(url), bare_config()
    async with Studio(studio_settings(home, url)) as studio:

        async def ours(text: str) -> float:
            conversation = await studio.conversations.create()
            return await our_turn(studio, conversation.id, text)

        async def whole(text: str) -> tuple[list[float], list[float]]:
            return await in_turn(
                lambda: timed(lambda: bare_turn(client, [text], config)), lambda: timed(lambda: ours(text)), runs, 5
            )

        first = await in_turn(lambda: bare_turn(client, ["tell me"], config), lambda: ours("tell me"), runs, 20)
        text, tool = await whole("tell me"), await whole("use the tool")
    return [
        compared("first token of a text turn", *first, "≤ 2x", 1000, " ms"),
        compared("a whole text turn, 50 chunks", *text, "≤ 1.7x", 1000, " ms"),
        compared("a tool turn", *tool, "≤ 2x", 1000, " ms"),
    ]


async def growth_figure(home: Path, url: str, turns: int) -> Figure:
    """Return the first token at the start of a long conversation beside that at its end."""
    async with Studio(studio_settings(home, url)) as studio:
        conversation = await studio.conversations.create()
        times = [await our_turn(studio, conversation.id, f"turn {number}") for number in range(turns)]
    # The window of fifty messages is full after 25 turns: from there on nothing may grow.
    early, late = times[30:60], times[-30:]
    ratio = sorted(late)[15] / sorted(early)[15]
    name = f"first token, turns 30 to 60 beside the last 30 of {turns}"
    return Figure(name, spread(early, 1000, " ms"), spread(late, 1000, " ms"), f"{ratio:.2f}x", "no growth")


def text_ways(url: str) -> Ways:
    """Return both ways of a turn of words."""
    client, config = bare_client(url), bare_config()
    return Ways(
        "text turns",
        lambda: bare_turn(client, ["tell me"], config),
        lambda studio, conversation_id: our_turn(studio, conversation_id, "tell me"),
        "≥ 0.8x",
    )


async def crowd_figure(home: Path, url: str, ways: Ways, people: int, rounds: int) -> Figure:
    """Return turns a second with many conversations at once."""
    async with Studio(studio_settings(home, url)) as studio:
        await studio.styles.warm_up()
        conversations = [(await studio.conversations.create()).id for _ in range(people)]

        async def bare_round() -> float:
            return await _rate(people, lambda number: ways.bare())

        async def our_round() -> float:
            return await _rate(people, lambda number: ways.ours(studio, conversations[number]))

        bare, ours = await in_turn(bare_round, our_round, rounds, 2)
    return compared(f"{people} conversations at once, {ways.name} a second", bare, ours, ways.target, 1, "")


async def _rate(people: int, turn: Callable[[int], Awaitable[object]]) -> float:
    return people / await timed(lambda: asyncio.gather(*(turn(number) for number in range(people))))


async def upload_figure(home: Path, server: GeminiProcess) -> Figure:
    """Return the bytes sent in twenty turns of which the first ten bring a picture of a megabyte each."""
    server.control(clear=True)
    pictures = [noise_picture(number) for number in range(10)]
    async with Studio(studio_settings(home, server.url)) as studio:
        conversation = await studio.conversations.create()
        for number in range(20):
            await our_turn(studio, conversation.id, f"look at this, turn {number}", *pictures[number : number + 1])
    sizes = [request["size_bytes"] for request in server.read("requests")]
    bare = sum((20 - number) * len(picture) * 4 / 3 for number, picture in enumerate(pictures))
    return Figure(
        f"20 turns, ten pictures of {len(pictures[0]) / 1e6:.2f} MB: all requests (the last one)",
        f"{bare / 1e6:.0f} MB, computed: every picture in every later request",
        f"{sum(sizes) / 1e6:.1f} MB ({sizes[-1] / 1e6:.3f} MB)",
        f"{sum(sizes) / bare:.2f}x",
        "≤ 16 MB (≤ 0.1 MB)",
    )


def noise_picture(seed: int) -> bytes:
    """Return a picture of about a megabyte whose pixels are noise, so that it stays as large when it is taken in."""
    noise = random.Random(seed).randbytes(577 * 577 * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", (577, 577), noise).save(out, "PNG")
    return out.getvalue()
