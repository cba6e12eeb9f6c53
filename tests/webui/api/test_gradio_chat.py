"""`/chat` as a script uses it, with the real gradio_client, and the pictures behind its links."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
from PIL import Image

from tests.page import PageProcess
from tests.support.cases import each_case
from tests.wire_server import GeminiProcess

# The package brings no types.
gradio_client: Any = import_module("gradio_client")
Client: TypeAlias = Any


@pytest.fixture(scope="module")
def client(gemini_studio: PageProcess) -> Iterator[Client]:
    script = gradio_client.Client(gemini_studio.url, verbose=False)
    yield script
    script.close()


@pytest.fixture(autouse=True)
def _clear(gemini: GeminiProcess) -> Iterator[None]:
    gemini.control(clear=True)
    yield
    assert gemini.read("violations") == []


def paint(count: int = 1) -> dict[str, Any]:
    arguments = {"prompt": "A red fox in snow", "aspect_ratio": "3:2", "number_of_images": count}
    return {"kind": "Call", "name": "generate_image", "args": arguments, "text_before": "I paint it now."}


def verdict(score: float) -> dict[str, Any]:
    return {"kind": "Text", "text": json.dumps({"score": score, "feedback": "A fox."})}


def chat(client: Client, text: str, *files: Path, **settings: Any) -> list[dict[str, Any]]:
    """Send a message and return every answer that streamed back."""
    message = {"text": text, "files": [gradio_client.handle_file(str(file)) for file in files]}
    job = client.submit(message=message, **settings, api_name="/chat")
    last = job.result(timeout=60)
    streamed = job.outputs()
    assert streamed[-1] == last
    return list(streamed)


def fetch(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, timeout=20, trust_env=False)


def test_a_turn_streams_and_its_picture_opens_by_a_signed_link_or_the_pages_cookie(
    client: Client, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[paint()])
    answers = chat(client, "draw a fox")
    last = answers[-1]
    assert [answer["done"] for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert (last["text"], last["error"]) == ("I paint it now.", None)
    (picture,) = last["pictures"]
    assert picture["handle"] == "#1"
    url = picture["url"]
    whole = fetch(url)
    assert whole.headers["content-type"].startswith("image/")
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["cache-control"].startswith("private")
    with Image.open(io.BytesIO(whole.content)) as image:
        assert image.size == (picture["width"], picture["height"])
    for nonsense in ("0", "-1", "999999", "big", ""):
        assert fetch(f"{url}&size={nonsense}").content == whole.content, nonsense

    bare = url.partition("?")[0]
    for forged in (bare, url.replace("sig=", "sig=0"), url.replace("/1?", "/2?")):
        assert fetch(forged).status_code == 403, forged
    assert fetch(bare, cookie="aivista_session=forged.00000000").status_code == 403
    cookie = fetch(gemini_studio.url).headers["set-cookie"].partition(";")[0]
    taken = fetch(f"{bare}?download=1", cookie=cookie)
    assert taken.headers["content-disposition"].startswith('attachment; filename="aivista-1-draw-a-fox.')
    with Image.open(io.BytesIO(fetch(f"{bare}?size=96", cookie=cookie).content)) as image:
        assert max(image.size) == 96
    for missing in (bare[:-1] + "99", f"{gemini_studio.url}/media/nowhere/1", bare[:-1] + "..%2f..%2fsecret"):
        assert fetch(missing, cookie=cookie).status_code == 404

    gemini.control(on_text=[paint()])
    second = chat(client, "warmer", conversation=last["conversation"])[-1]
    assert second["conversation"] == last["conversation"]
    assert second["pictures"][0]["handle"] != "#1"


def test_the_settings_go_by_name(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint()])
    chosen = {"text_model": "thinking", "image_model": "pro", "aspect_ratio": "4:5", "resolution": "1K"}
    last = chat(client, "draw a fox", allow_search=False, number_of_images="2", **chosen)[-1]
    assert [(one["width"], one["height"]) for one in last["pictures"]] == [(928, 1152)] * 2
    models = {request["kind"]: request["model"] for request in gemini.read("requests")}
    assert models == {"text": "gemini-4-argon", "image": "gemini-3-pro-image"}


def test_with_confirm_the_turn_rests_until_its_plan_is_run_or_dropped(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint(), paint(count=2)])
    rests = chat(client, "draw a fox", confirm=True)[-1]
    last = chat(client, "", conversation=rests["conversation"], decision="drop")[-1]
    assert (last["done"], last["error"], last["pictures"], last["plan"]) == (True, None, [], None)
    rests = chat(client, "draw a fox", confirm=True)[-1]
    assert (rests["done"], rests["error"], rests["pictures"]) == (True, None, [])
    (plan,) = rests["plan"]
    assert (plan["prompt"], plan["aspect_ratio"], plan["number_of_images"]) == ("A red fox in snow", "3:2", 2)
    assert [request for request in gemini.read("requests") if request["kind"] == "image"] == []
    last = chat(client, "", conversation=rests["conversation"], decision="run")[-1]
    assert last["plan"] is None
    assert {one["handle"] for one in last["pictures"]} == {"#1", "#2"}
    again = chat(client, "", conversation=rests["conversation"], decision="run")[-1]
    assert again["error"]["code"] == "plan_gone"


def test_a_picture_that_a_review_sent_back_is_not_among_the_last(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint(), verdict(0.2), verdict(0.9)])
    answers = chat(client, "draw a fox", review="always")
    assert len(answers[-1]["pictures"]) == 1
    assert answers[-1]["pictures"][0]["handle"] != "#1"


@each_case("text", ["", "🙂"])
def test_a_question_of_the_agent_is_part_of_its_words(client: Client, text: str) -> None:
    last = chat(client, text)[-1]
    assert ("What would you like to see?" in last["text"], last["error"]) == (True, None)


def test_an_upload_is_taken_in_and_no_picture_is_named(client: Client, gemini: GeminiProcess, tmp_path: Path) -> None:
    photo, fake = tmp_path / "photo.png", tmp_path / "holiday.png"
    Image.new("RGB", (64, 48), "teal").save(photo)
    gemini.control(on_text=[{"kind": "Text", "text": "A teal card."}])
    assert chat(client, "what is this?", photo)[-1]["text"] == "A teal card."
    fake.write_bytes(b"no picture")
    error = chat(client, "brighter", fake)[-1]["error"]
    assert (error["code"], "holiday.png" in error["message"]) == ("picture_unreadable", True)


@each_case(
    ("text", "settings", "code"),
    [
        ("x" * 200_000, {}, "text_too_long"),
        ("hello", {"conversation": "nowhere"}, "conversation_not_found"),
        ("", {"decision": "run"}, "plan_gone"),
        ("", {"decision": "perhaps"}, "plan_gone"),
        ("hello", {}, "overloaded"),
    ],
)
def test_a_failure_is_an_answer_and_no_exception(
    client: Client, gemini: GeminiProcess, text: str, settings: dict[str, str], code: str
) -> None:
    gemini.control(clear=True, on_text=[{"kind": "HttpError", "status": 503}])
    last = chat(client, text, **settings)[-1]
    assert (last["done"], last["error"]["code"], bool(last["error"]["message"])) == (True, code, True)
    assert last["error"]["can_retry"] is (code == "overloaded")
