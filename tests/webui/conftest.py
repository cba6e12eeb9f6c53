"""The page as a real process: one whose Gemini is the strict server, and one that others reach."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from tests.page import PageProcess
from tests.support.small_frames import small_frames
from tests.webui.hostile import SECRET
from tests.webui.people import Person
from tests.wire_server import GeminiProcess

# Not of the documentation's addresses, which are not public.
_ADDRESSES = (f"93.185.{high}.{low}" for high in range(200, 240) for low in range(1, 255))


@pytest.fixture(scope="module")
def gemini() -> Iterator[GeminiProcess]:
    with GeminiProcess() as server:
        yield server


@pytest.fixture(scope="module")
def gemini_studio(gemini: GeminiProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess(home=tmp_path_factory.mktemp("home"), environment=environment) as page:
        yield page


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """A studio of a single person on this machine; beside its home lies a secret. Of Gradio's own variables none
    holds: by the first it would show any file, by the other it would never end."""
    place = tmp_path_factory.mktemp("own")
    (place / "notes.txt").write_text(SECRET)
    chosen = {"AIVISTA_CATALOGUE": str(small_frames(place, 4)), "GRADIO_ALLOWED_PATHS": "/", "GRADIO_DEBUG": "1"}
    with PageProcess(home=place / "home", environment=chosen) as page:
        yield page
        assert page.end(signal.SIGTERM) == 0
        assert "Traceback" not in page.errors


@pytest.fixture(scope="session")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    home = tmp_path_factory.mktemp("home")
    chosen = {"AIVISTA_BEHIND_PROXY": "on", "AIVISTA_CATALOGUE": str(small_frames(home, 4))}
    with PageProcess("--host", "0.0.0.0", home=home, environment=chosen) as page:
        yield page
        assert "Traceback" not in page.errors


@pytest.fixture(scope="session")
def operator(public: PageProcess) -> Iterator[Person]:
    """Whoever runs the public studio: no limit of visitors' holds them."""
    one = Person(public.url, headers={"X-Forwarded-For": next(_ADDRESSES)})
    assert one.http.get(public.read_line().rpartition(" ")[2]).status_code == 303
    yield one
    one.close()


@pytest.fixture
def person(public: PageProcess) -> Iterator[Callable[..., Person]]:
    came: list[Person] = []

    def come(**headers: str) -> Person:
        came.append(Person(public.url, headers={"X-Forwarded-For": next(_ADDRESSES), **headers}))
        return came[-1]

    yield come
    for one in came:
        one.close()


@pytest.fixture
def ann(person: Callable[..., Person]) -> Person:
    return person()


@pytest.fixture
def ben(person: Callable[..., Person]) -> Person:
    return person()
