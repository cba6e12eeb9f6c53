"""The page comes filled for its visitor, so that it need not ask; one that cannot be filled goes out as it is."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from agent.errors import ErrorCode, StorageFailure
from agent.settings import Settings
from agent.storage.preferences import PreferenceStore
from agent.studio import Studio, TurnRequest
from tests.page import PageProcess
from tests.webui.hostile import Stranger
from webui.opening import Opening
from webui.page import build_page
from webui.page_fill import PageFill, with_updates
from webui.sessions import Sessions, Visitor
from webui.spend_wiring import Caps
from webui.tabs import Tab
from webui.words import load_words

EN = load_words("en")
ANN = Visitor("ann", "ann", EN)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """A studio that others reach."""
    with PageProcess("--host", "0.0.0.0", home=tmp_path_factory.mktemp("shared")) as page:
        yield page
        assert "Traceback" not in page.errors


@pytest.fixture
async def studio(tmp_path: Path) -> AsyncIterator[Studio]:
    async with Studio(Settings(home=tmp_path)) as one:
        yield one


@pytest.fixture
async def opening(studio: Studio) -> Opening:
    return build_page(lambda: studio, studio.catalogue, Sessions(b"secret", is_shared=True)).opening


def configured(document: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the components that a page comes with, by element id, else by label."""
    text = document.partition("window.gradio_config = ")[2]
    config, _ = json.JSONDecoder().raw_decode(text)
    shown = (one["props"] for one in config["components"])
    return {props.get("elem_id") or props.get("label") or "": props for props in shown}


def say(visitor: Stranger, words: str) -> None:
    """Send words as the page does, and wait for the end of the turn."""
    send = visitor.number("send")
    data = visitor.plain(send)
    data[visitor.events[send].index("multimodaltextbox")] = {"text": words, "files": []}
    assert visitor.done(send, data)[-1]["success"]


async def told(studio: Studio, words: str) -> str:
    """Return the id of a conversation of Ann's in which these words were said."""
    conversation = await studio.new_conversation(ANN.owner)
    async for _ in studio.run_turn(conversation.id, TurnRequest(text=words), owner=ANN.owner):
        pass
    return conversation.id


async def filled(opening: Opening, sealed: str, name: str = "", tab: Tab | None = None) -> dict[Any, Any]:
    """Return all that the page is sent when it asks."""
    changed: dict[Any, Any] = {}
    async for updates in opening.fill(ANN, tab or Tab(), name, sealed):
        changed |= {part: one for part, one in updates.items() if one != gr.skip()}
    return changed


async def sealed(opening: Opening, name: str = "") -> str:
    """Return what the page says that it came with."""
    written = await opening.written(ANN, name)
    assert written is not None
    return str(written[opening.filled])


# What comes


def test_a_visitor_finds_their_newest_conversation_in_the_page_itself(shared: PageProcess) -> None:
    ann = Stranger(shared.url)
    say(ann, "draw a teapot")
    answer = ann.http.get("/")
    shown = configured(answer.text)
    assert "teapot" in shown["top"]["value"]
    assert "data-opened" in shown["top"]["value"]
    assert "teapot" in shown["rail-rows"]["value"]
    assert "teapot" in json.dumps(shown["chat"]["value"])
    assert shown["conversation"]["value"] in shown["filled"]["value"]
    assert shown["image-model"]["label"] == EN("composer.image_model")
    assert answer.headers["cache-control"] == "no-store"
    ann.close()


def test_its_address_may_ask_for_a_new_one_in_ones_own_language(shared: PageProcess) -> None:
    ann = Stranger(shared.url, headers={"Accept-Language": "zh-CN"})
    say(ann, "draw a teapot")
    shown = configured(ann.http.get("/?c=new").text)
    assert shown["conversation"]["value"] == ""
    assert load_words("zh-CN")("welcome.hello") in shown["welcome"]["value"]
    assert "teapot" not in shown["top"]["value"]
    ann.close()


def test_nobody_finds_what_is_anothers(shared: PageProcess) -> None:
    ann, ben = Stranger(shared.url), Stranger(shared.url)
    say(ann, "draw a teapot")
    name = configured(ann.http.get("/").text)["conversation"]["value"]
    for path in ("/", f"/?c={name}"):
        assert "teapot" not in ben.http.get(path).text
        assert "teapot" not in httpx.get(f"{shared.url}{path}").text
    assert "teapot" not in ann.http.get("/config").text
    ann.close()
    ben.close()


def test_the_first_visit_comes_before_the_cookie_and_its_page_asks(shared: PageProcess) -> None:
    shown = configured(httpx.get(shared.url).text)
    assert shown["filled"]["value"] == ""
    assert shown["top"]["value"] == ""


def test_the_length_that_is_told_is_that_of_what_is_sent(shared: PageProcess) -> None:
    ann = Stranger(shared.url)
    answer = ann.http.get("/", headers={"Accept-Encoding": "identity"})
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert ann.http.head("/").text == ""
    ann.close()


def test_to_who_comes_from_elsewhere_it_is_packed(shared: PageProcess) -> None:
    ann = Stranger(shared.url)
    near = ann.http.get("/")
    far = ann.http.get("/", headers={"Host": "studio.example.org"})
    plain = ann.http.get("/", headers={"Host": "studio.example.org", "Accept-Encoding": "identity"})
    assert "content-encoding" not in near.headers
    assert (far.headers["content-encoding"], far.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert int(far.headers["content-length"]) * 3 < len(near.content)
    assert len(far.content) == len(plain.content)
    assert configured(far.text)["rail-head"] == configured(near.text)["rail-head"]
    ann.close()


# What is asked for later


async def test_a_page_that_came_filled_is_sent_nothing(studio: Studio, opening: Opening) -> None:
    name = await told(studio, "draw a boat")
    assert await filled(opening, await sealed(opening, name), name) == {}
    assert await filled(opening, await sealed(opening, "new"), "new") == {}


async def test_a_page_that_came_unfilled_is_sent_all(studio: Studio, opening: Opening) -> None:
    await told(studio, "draw a boat")
    changed, panels = await filled(opening, ""), opening.screen.panels
    assert "boat" in changed[panels.chat.top]
    assert "boat" in changed[panels.rail.rows]
    assert set(changed) <= set(opening.outputs)


async def test_one_whose_conversation_has_gone_on_meanwhile_is_filled_anew(studio: Studio, opening: Opening) -> None:
    name = await told(studio, "draw a boat")
    before = await sealed(opening, name)
    async for _ in studio.run_turn(name, TurnRequest(text="draw a kettle"), owner=ANN.owner):
        pass
    assert "kettle" in str((await filled(opening, before, name))[opening.screen.panels.chat.thread])


async def test_one_that_came_with_the_first_page_shows_it_no_more_once_there_is_a_conversation(
    studio: Studio, opening: Opening
) -> None:
    before, panels = await sealed(opening), opening.screen.panels
    await told(studio, "draw a boat")
    changed = await filled(opening, before)
    assert changed[panels.chat.welcome] == "", "as the page was built, and not as it came"
    assert "boat" in changed[panels.chat.top]


async def test_one_in_which_something_was_sent_already_is_left_alone(studio: Studio, opening: Opening) -> None:
    before, tab = await sealed(opening), Tab()
    await told(studio, "draw a boat")
    tab.take_over()
    assert await filled(opening, before, tab=tab) == {}


async def test_while_a_turn_is_at_work_the_page_asks_and_follows_it(studio: Studio, opening: Opening) -> None:
    conversation = await studio.new_conversation(ANN.owner)
    events = studio.run_turn(conversation.id, TurnRequest(text="draw a boat"), owner=ANN.owner)
    await anext(events)
    assert await opening.written(ANN, conversation.id) is None
    assert "boat" in str((await filled(opening, "", conversation.id))[opening.screen.panels.chat.thread])
    async for _ in events:
        pass
    assert await opening.written(ANN, conversation.id) is not None


# What cannot be filled


async def sent_through(opening: Opening, document: str) -> str:
    """Return what becomes of a document on its way to a visitor."""

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(document)

    app = Starlette(routes=[Route("/", page)], middleware=[Middleware(PageFill, opening=opening)])
    cookies = {"aivista_session": opening.screen.sessions.new_cookie()}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", cookies=cookies) as client:
        answer = await client.get("/")
    assert answer.status_code == 200
    return answer.text


async def test_where_nothing_can_be_read_the_page_goes_out_as_it_is_and_asks(opening: Opening) -> None:
    def broken() -> PreferenceStore:
        raise StorageFailure(ErrorCode.STORAGE_BROKEN)

    unreadable = replace(opening, caps=Caps(opening.screen, broken))
    document = '<script>window.gradio_config = {"components": []};</script>'
    assert await sent_through(unreadable, document) == document


@pytest.mark.parametrize("document", ["<p>away</p>", "<script>window.gradio_config = {,};</script>"])
async def test_a_page_that_is_laid_out_otherwise_goes_out_as_it_is(opening: Opening, document: str) -> None:
    assert await sent_through(opening, document) == document


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--<script>", "a\u2028b\u2029c", "&'"])
async def test_no_words_end_the_script_that_they_stand_in(text: str) -> None:
    with gr.Blocks():
        box = gr.Textbox()
    config = {"components": [{"id": box._id, "props": {"value": ""}}]}
    document = f"<p><script>window.gradio_config = {json.dumps(config)};</script><b>after</b>".encode()
    written = with_updates(document, {box: text})
    inside = re.fullmatch(rb"<p><script>window\.gradio_config = (.*);</script><b>after</b>", written)
    assert inside is not None
    assert not re.search(r"[<>&'\u2028\u2029]", inside[1].decode())
    assert json.loads(inside[1])["components"][0]["props"]["value"] == text


async def test_a_part_of_what_a_component_shows_is_changed_alone() -> None:
    with gr.Blocks():
        chip = gr.Dropdown(["a", "b"], value="a", label="first")
    config = {"components": [{"id": chip._id, "props": {"value": "a", "label": "first", "scale": 3}}]}
    document = f"<script>window.gradio_config = {json.dumps(config)};</script>".encode()
    written = with_updates(document, {chip: gr.update(label="second", choices=[("B", "b")])}).decode()
    assert configured(written) == {"second": {"value": "a", "label": "second", "scale": 3, "choices": [["B", "b"]]}}
