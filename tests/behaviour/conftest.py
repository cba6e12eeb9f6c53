"""One server of models and one studio for each file, a conversation of a new owner for each test.

Whatever a test leaves behind would be the next one's: the fixture of the conversation waits until it rests, and fails
where an answer was not asked for, or where a request broke a rule of Gemini's. An asynchronous fixture of a file names
the loop of the studio, `loop_scope="module"`: in a loop of its own it would use connections of another one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agent import Settings, Studio
from tests.behaviour.talk import Talk
from tests.support.clock import Clock
from tests.support.gemini import on_gemini
from tests.support.masking_scenes import photo, stored
from tests.support.small_frames import small_frames
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Text

OpenTalk = Callable[..., AbstractAsyncContextManager[Talk]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a file in one event loop: their studio lives in it."""
    for item in items:
        assert isinstance(item, pytest.Function)
        if item.path.is_relative_to(Path(__file__).parent) and iscoroutinefunction(item.function):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


def settings_in(home: Path, models: GeminiServer, **changes: Any) -> Settings:
    """Return the settings of a studio that asks nothing twice, on the database that the environment names."""
    address = os.environ.get("AIVISTA_TEST_DATABASE_URL")
    chosen: dict[str, Any] = {"database_url": address} if address else {}
    return on_gemini(Settings(home=home, retry_budget_s=0, **chosen), models.url, **changes)


@pytest.fixture(scope="module")
def models() -> Iterator[GeminiServer]:
    """The models, strict: whatever breaks a rule of theirs is refused and on record."""
    with GeminiServer() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def studio(models: GeminiServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Studio]:
    """The studio of the file."""
    async with Studio(settings_in(tmp_path_factory.mktemp("home"), models)) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def talk(studio: Studio, models: GeminiServer) -> AsyncIterator[Talk]:
    """A conversation of a new owner."""
    made = await _begun(studio, models)
    yield made
    await _ended(made)


@pytest.fixture
def open_talk(models: GeminiServer, tmp_path: Path) -> OpenTalk:
    """Open a studio of the test's own, with what is to be different in its settings, and a conversation in it.

    Opened with the talk of an earlier one, it goes on with that conversation, as after a restart.
    """

    @asynccontextmanager
    async def opened(earlier: Talk | None = None, **changes: Any) -> AsyncIterator[Talk]:
        async with Studio(settings_in(tmp_path / "home", models, **changes)) as made:
            talk = await _begun(made, models) if earlier is None else replace(earlier, studio=made)
            yield talk
            await _ended(talk)

    return opened


@pytest_asyncio.fixture(loop_scope="module")
async def sketch(open_talk: OpenTalk, tmp_path: Path) -> AsyncIterator[Talk]:
    """A conversation in which the built-in models draw, small, and nobody else is asked."""
    async with open_talk(provider="sketch", catalogue_file=small_frames(tmp_path)) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def shown(talk: Talk) -> Talk:
    """A conversation with a photograph, #1."""
    await talk.say("Look.", stored(photo()), plan=Text("I see."))
    return talk


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which patience runs out."""
    return Clock(monkeypatch)


async def _begun(studio: Studio, models: GeminiServer) -> Talk:
    owner = f"owner-{uuid.uuid4().hex}"
    return Talk(studio, models, (await studio.conversations.create(owner)).id, owner)


async def _ended(talk: Talk) -> None:
    models = talk.models
    if models.held:
        models.release()
    await talk.rests()
    await until(lambda: not models.held)
    left, broken = models.remaining, list(models.violations)
    models.clear()
    assert (left, broken) == (0, [])
