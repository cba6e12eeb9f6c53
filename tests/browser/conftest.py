"""A real Chromium, and the page as a real process, with and without a key."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.support.small_frames import small_frames
from tests.support.turns import rows
from tests.support.waiting import wait_until
from tests.wire_server import GeminiProcess

expect.set_options(timeout=40_000)
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever leaves this machine fails, and is told of as that: to hear of each request takes a tenth of the time.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # No test runs long enough for what the optimizing compilers cost to come back.
    "--js-flags=--no-opt --no-maglev",
]


# The last requests of scripts, each with its status once it was answered: what a page that waits has asked for.
_REQUESTS = """
  const plain = window.fetch, asked = window.lastRequests = [];
  window.fetch = async (resource, init) => {
    const one = { address: String(resource.url ?? resource), at: Math.round(performance.now()), status: "open" };
    // What is asked each second would push out all else.
    if (!one.address.includes("aivista/version/")) asked.push(one);
    if (asked.length > 40) asked.shift();
    try { const answer = await plain(resource, init); one.status = answer.status; return answer; }
    catch (error) { one.status = error.name; throw error; }
  };
"""
# By how much what stands there was moved without a person's doing, since the page was opened. A row of a long thread
# that comes into sight was nowhere before.
_SHIFTS = """
  window.layoutShifted = 0;
  const hasMoved = one => !one.hadRecentInput && one.sources.some(({ previousRect }) => previousRect.width);
  new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (hasMoved(one)) window.layoutShifted += one.value;
  }).observe({ type: "layout-shift", buffered: true });
"""
_MOST_SHIFTED = 1.0
# What is said of every answer that a page waits for when it is left or its connection is gone.
_LOST = ("Failed to load resource", "AbortError", "Unexpected error", "network error", "Failed to fetch")
_console: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a test that failed what its pages show, wrote and asked for, and what its studios wrote."""
    report = yield
    if report.when == "call" and report.failed and isinstance(item, pytest.Function):
        evidence = [f"console: {line}" for line in _console]
        # A time limit leaves Playwright in the middle of a call: it takes no other.
        has_ended = "from pytest-timeout" in report.longreprtext
        for name, value in item.funcargs.items():
            if isinstance(value, Browser) and not has_ended:
                pages = [page for context in value.contexts for page in context.pages]
                evidence += [line for number, page in enumerate(pages) for line in _seen(page, number)]
            elif isinstance(value, PageProcess):
                evidence += [f"stderr of {name}:", value.errors[-4000:]]
        report.sections.append(("Evidence", "\n".join(evidence)))
    return report


def _seen(page: Page, number: int) -> Iterator[str]:
    picture = Path(tempfile.mkdtemp(prefix="aivista-page-")) / f"{number}.png"
    try:
        page.screenshot(path=picture, timeout=5000)
        yield f"page {number}: {page.url}, {picture}"
        for one in page.evaluate("window.lastRequests ?? []"):
            yield f"  {one['at']} ms {one['status']} {one['address']}"
    except PlaywrightError as error:
        yield f"page {number} cannot be seen: {error}"


# Not for the whole session: Playwright keeps an event loop running in this thread, where no asyncio test could run.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="package")
def studios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., PageProcess]]:
    """What starts a studio in an environment, and tells the same one when it is asked again."""
    with ExitStack() as running:

        @cache
        def studio(**environment: str) -> PageProcess:
            home = tmp_path_factory.mktemp("home")
            return running.enter_context(PageProcess(home=home, environment=environment))

        yield studio


@pytest.fixture(scope="module")
def studio(studios: Callable[..., PageProcess], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """A studio without a key: it sketches, in small frames. Each file finds it without any conversation."""
    yield from emptied(studios(AIVISTA_CATALOGUE=str(small_frames(tmp_path_factory.getbasetemp(), 4))))


@pytest.fixture(scope="module")
def whole_studio(studios: Callable[..., PageProcess]) -> Iterator[PageProcess]:
    """The same with pictures as large as its models make them."""
    yield from emptied(studios())


@pytest.fixture(scope="package")
def gemini() -> Iterator[GeminiProcess]:
    """The strict server, which each test finds as it was at first."""
    with GeminiProcess() as server:
        yield server


@pytest.fixture(scope="module")
def gemini_studio(gemini: GeminiProcess, studios: Callable[..., PageProcess]) -> Iterator[PageProcess]:
    """A studio with a key, whose Gemini is the strict server."""
    yield from emptied(studios(GEMINI_API_KEY="AIza-operators-own-0001", GOOGLE_GEMINI_BASE_URL=gemini.url))


def emptied(studio: PageProcess) -> Iterator[PageProcess]:
    """Lend the studio, and delete all conversations for good afterwards, and with them their pictures."""
    yield studio
    wait_until(studio.is_at_rest)
    with httpx.Client(base_url=studio.url) as visitor:
        visitor.get("/").raise_for_status()

        def act(name: str, **args: str) -> None:
            visitor.post(f"/aivista/act/conversations.{name}", json={"args": args}).raise_for_status()

        for one in rows(studio.home / "aivista.db", "SELECT id FROM conversations WHERE deleted_at IS NULL"):
            act("delete", id=one["id"])
        act("empty")


@pytest.fixture(autouse=True)
def _own_answers(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test scripts is for its own turns: all of them rest before the next test begins. None breaks a rule."""
    if "gemini" not in request.fixturenames:
        yield
        return
    server: GeminiProcess = request.getfixturevalue("gemini")
    # The tab is closed after this: a turn that was sent and has not begun is on the page alone.
    tabs: list[Page] = [request.getfixturevalue(name) for name in ("page", "phone") if name in request.fixturenames]
    server.control(clear=True)
    yield
    server.control(release=True)
    for tab in tabs:
        expect(tab.locator("#turn-now[data-sending], #chat .live")).to_have_count(0)
    if "gemini_studio" in request.fixturenames:
        wait_until(request.getfixturevalue("gemini_studio").is_at_rest)
    assert server.read("violations") == []


@pytest.fixture(scope="package")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile for all tests: what the page is made of is fetched and compiled once."""
    with _profile(browser, viewport={"width": 1280, "height": 860}, locale="en-US") as one:
        yield one


@pytest.fixture(scope="package")
def phone_profile(browser: Browser) -> Iterator[BrowserContext]:
    """The profile of a Chinese phone."""
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with _profile(browser, **phone, locale="zh-CN") as one:
        yield one


@contextmanager
def _profile(browser: Browser, **chosen: Any) -> Iterator[BrowserContext]:
    # What moves is drawn again sixty times a second.
    context = browser.new_context(**chosen, accept_downloads=True, reduced_motion="reduce")
    context.add_init_script(_REQUESTS)
    context.add_init_script(_SHIFTS)
    context.on("console", lambda message: _console.append(f"{message.type}: {message.text}"))
    yield context
    context.close()


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """A tab of somebody new; a script that fails, a request that leaves this machine, or a page that jumps about fails
    the test."""
    with _tab(profile) as one:
        yield one


@pytest.fixture
def phone(phone_profile: BrowserContext) -> Iterator[Page]:
    """A tab on a Chinese phone, which is as strict."""
    with _tab(phone_profile) as one:
        yield one


@contextmanager
def _tab(profile: BrowserContext) -> Iterator[Page]:
    _console.clear()
    tab = profile.new_page()
    faults: list[str] = []
    tab.on("console", lambda message: faults.append(f"console: {message.text}") if _is_fault(message) else None)
    tab.on("pageerror", lambda error: faults.append(f"script: {error}"))
    here = ("http://127.0.0.1:", "data:", "blob:")
    tab.on("requestfailed", lambda one: None if one.url.startswith(here) else faults.append(one.url))
    yield tab
    profile.set_offline(False)
    for one in profile.pages:
        # A page that is left keeps what is in its box: that would be the next one's draft.
        if one.url.startswith("http"):
            shifted = one.evaluate("localStorage.clear(); Storage.prototype.setItem = () => {}; window.layoutShifted")
            if shifted is not None and shifted > _MOST_SHIFTED:
                faults.append(f"what stood on the page moved by {shifted:.2f} in all")
        one.close()
    profile.clear_cookies()
    profile.clear_permissions()
    assert faults == []


def _is_fault(message: ConsoleMessage) -> bool:
    """Return whether anything but Gradio's own files complains, of more than an answer that did not come."""
    is_ours = "/assets/" not in message.location["url"]
    return message.type == "error" and is_ours and not any(lost in message.text for lost in _LOST)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    """A small photo with a colour gradient, as JPEG."""
    from PIL import Image

    path = tmp_path / "garden.jpg"
    ramp = Image.linear_gradient("L").resize((480, 320))
    Image.merge("RGB", (ramp, ramp.transpose(Image.Transpose.FLIP_TOP_BOTTOM), ramp.point(lambda v: v // 3))).save(path)
    return path
