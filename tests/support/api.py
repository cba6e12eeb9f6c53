"""The HTTP API behind a real server in the test's own loop, so that streams come as they are sent and can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from PIL import Image
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent import Settings, Studio, Tool, ToolCallPart
from agent.providers.scripted import Line, Painting, Script, ScriptedProvider, calls, says
from tests.support.pixels import encoded
from tests.support.small_frames import small_frames
from webui.api import api_mounts
from webui.features.viewer.image_routes import media_routes
from webui.http.hosts import Guard, HostRules
from webui.http.sessions import Sessions

ANNA, BEN = "anna-has-a-long-token", "ben-has-a-long-token"
TOKENS = {"anna": SecretStr(ANNA), "ben": SecretStr(BEN)}


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to pytest."""
        yield


@dataclass(frozen=True)
class Served:
    """A studio whose API answers at `url`; `provider` is what it was scripted with, if it was."""

    studio: Studio
    url: str
    provider: ScriptedProvider | None

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        """Return a client, with a token when one is given."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30)


@asynccontextmanager
async def served(
    home: Path, *, text: Script | None = None, pictures: Script = (), tools: Sequence[Tool] = (), **chosen: Any
) -> AsyncIterator[Served]:
    """Serve a studio: sketch's without a script for the text model."""
    chosen.setdefault("catalogue_file", small_frames(home, 4))
    settings = Settings(home=home, **chosen)
    made: list[ScriptedProvider] = []

    def provider(store: Any) -> ScriptedProvider:
        made.append(ScriptedProvider(store, text or (), pictures))
        return made[-1]

    sessions = Sessions(b"s" * 32)
    async with Studio(settings, provider=provider if text is not None else None, tools=tools) as studio:
        app = Starlette(
            routes=[*media_routes(lambda: studio, sessions), *api_mounts(lambda: studio, sessions, settings)],
            middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)],
        )
        # With the protocol named, asyncio sends at once; it would wait 40 ms for each answer otherwise.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        # Whoever asks from another thread may come before the server has begun.
        listening.listen()
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        server = _Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield Served(studio, f"http://127.0.0.1:{listening.getsockname()[1]}", made[0] if made else None)
        finally:
            server.should_exit = server.force_exit = True
            await serving
            listening.close()


def png(colour: str = "red", size: tuple[int, int] = (64, 48), mode: str = "RGB") -> bytes:
    """Return a plain picture."""
    return encoded(Image.new(mode, size, colour))


def data_url(data: bytes) -> str:
    """Return a picture as the address that holds it."""
    import base64

    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def paints(prompt: str = "A red fox", said: str = "I paint it.", **arguments: Any) -> Line:
    """Return the line of a text model that asks for a picture."""
    call = ToolCallPart(name="generate_image", arguments={"prompt": prompt, "number_of_images": 1, **arguments})
    return calls(call, text=said)


def painted(colour: str = "red") -> Line:
    """Return the line of an image model that delivers one."""
    return Line((Painting(png(colour, (128, 128))),))


def talks(*lines: str) -> list[Line]:
    """Return lines of a text model that only talks."""
    return [says(line) for line in lines]


@dataclass(frozen=True)
class Told:
    """One Server-Sent Event as it came."""

    id: str
    event: str
    data: Mapping[str, Any]


async def told(lines: AsyncIterator[str]) -> AsyncIterator[Told]:
    """Stream the events of a stream's lines; comments are left out."""
    fields: dict[str, str] = {}
    async for line in lines:
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Told(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}


async def stream(client: httpx.AsyncClient, method: str, path: str, **more: Any) -> list[Told]:
    """Return every event of a stream, to its end."""
    async with client.stream(method, path, **more) as answer:
        if answer.status_code != 200:
            raise AssertionError((answer.status_code, await answer.aread()))
        assert answer.headers["content-type"].startswith("text/event-stream")
        return [one async for one in told(answer.aiter_lines())]


def names(events: Sequence[Told]) -> list[str]:
    """Return what the events are called."""
    return [one.event for one in events]


def words(events: Sequence[Told]) -> str:
    """Return the agent's words."""
    return "".join(one.data["text"] for one in events if one.event == "text")


async def begun(client: httpx.AsyncClient, title: str | None = None) -> str:
    """Return the id of a new conversation."""
    answer = await client.post("/api/v1/conversations", json={"title": title} if title else None)
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def sent(client: httpx.AsyncClient, conversation: str, text: str, **body: Any) -> list[Told]:
    """Return the events of a turn."""
    return await stream(client, "POST", f"/api/v1/conversations/{conversation}/turns", json={"text": text, **body})
