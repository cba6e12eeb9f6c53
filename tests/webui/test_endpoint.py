"""`/chat` as a script uses it, with the real gradio_client, and the pictures behind its links."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from PIL import Image

from tests.page import PageProcess
from tests.wire_server import GeminiProcess

Answer = dict[str, Any]
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


def chat(client: Client, text: str, *files: Path, **settings: Any) -> list[Answer]:
    """Send a message and return every answer that streamed back."""
    message = {"text": text, "files": [gradio_client.handle_file(str(file)) for file in files]}
    job = client.submit(message=message, **settings, api_name="/chat")
    last = job.result(timeout=60)
    streamed = job.outputs()
    assert streamed[-1] == last
    return list(streamed)


def fetch(url: str, **headers: str) -> tuple[int, bytes, Message]:
    """Return status, body and headers of a GET."""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def painted(client: Client, gemini: GeminiProcess) -> Answer:
    """Have one picture painted; return the last answer."""
    gemini.control(on_text=[paint()])
    return chat(client, "draw a fox")[-1]


def test_a_turn_streams_and_ends_with_its_picture(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint()])
    answers = chat(client, "draw a fox")
    last = answers[-1]
    assert [answer["done"] for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert last["text"] == "I paint it now."
    assert last["error"] is None
    (picture,) = last["pictures"]
    assert picture["handle"] == "#1"
    status, data, headers = fetch(picture["url"])
    assert status == 200
    assert headers["content-type"].startswith("image/")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"].startswith("private")
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (picture["width"], picture["height"])


def test_a_conversation_goes_on_where_it_was(client: Client, gemini: GeminiProcess) -> None:
    first = painted(client, gemini)
    gemini.control(on_text=[paint()])
    second = chat(client, "warmer", conversation=first["conversation"])[-1]
    assert second["conversation"] == first["conversation"]
    assert second["pictures"][0]["handle"] != first["pictures"][0]["handle"]


def test_the_settings_go_by_name(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint()])
    last = chat(
        client,
        "draw a fox",
        text_model="thinking",
        image_model="pro",
        allow_search=False,
        aspect_ratio="4:5",
        resolution="1K",
        number_of_images="2",
    )[-1]
    assert [(one["width"], one["height"]) for one in last["pictures"]] == [(928, 1152)] * 2
    models = {request["kind"]: request["model"] for request in gemini.read("requests")}
    assert models == {"text": "gemini-4-argon", "image": "gemini-3-pro-image"}


def test_with_confirm_the_turn_rests_with_its_plan_until_it_is_run(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint(count=2)])
    rests = chat(client, "draw a fox", confirm=True)[-1]
    assert (rests["done"], rests["error"], rests["pictures"]) == (True, None, [])
    (plan,) = rests["plan"]
    assert (plan["prompt"], plan["aspect_ratio"], plan["number_of_images"]) == ("A red fox in snow", "3:2", 2)
    last = chat(client, "", conversation=rests["conversation"], decision="run")[-1]
    assert last["plan"] is None
    assert {one["handle"] for one in last["pictures"]} == {"#1", "#2"}
    again = chat(client, "", conversation=rests["conversation"], decision="run")[-1]
    assert again["error"]["code"] == "plan_gone"


def test_a_plan_that_is_dropped_paints_nothing(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint()])
    rests = chat(client, "draw a fox", confirm=True)[-1]
    last = chat(client, "", conversation=rests["conversation"], decision="drop")[-1]
    assert (last["done"], last["error"], last["pictures"], last["plan"]) == (True, None, [], None)
    assert [request for request in gemini.read("requests") if request["kind"] == "image"] == []


@pytest.mark.parametrize("decision", ["run", "perhaps"])
def test_a_decision_about_nothing_is_refused(client: Client, decision: str) -> None:
    assert chat(client, "", decision=decision)[-1]["error"]["code"] == "plan_gone"


def test_a_picture_that_a_review_sent_back_is_not_among_the_last(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[paint(), verdict(0.2), verdict(0.9)])
    answers = chat(client, "draw a fox", review="always")
    assert len(answers[-1]["pictures"]) == 1
    assert answers[-1]["pictures"][0]["handle"] != "#1"


@pytest.mark.parametrize("text", ["", "🙂"])
def test_a_question_of_the_agent_is_part_of_its_words(client: Client, text: str) -> None:
    last = chat(client, text)[-1]
    assert "What would you like to see?" in last["text"]
    assert last["error"] is None


def test_an_upload_is_taken_in(client: Client, gemini: GeminiProcess, tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    Image.new("RGB", (64, 48), "teal").save(photo)
    gemini.control(on_text=[{"kind": "Text", "text": "A teal card."}])
    last = chat(client, "what is this?", photo)[-1]
    assert last["text"] == "A teal card."
    status, _, _ = fetch(last["pictures"][0]["url"] if last["pictures"] else f"{client.src}config")
    assert status == 200


def test_bad_input_is_an_answer_not_an_exception(client: Client) -> None:
    last = chat(client, "x" * 200_000)[-1]
    assert last["done"] is True
    assert last["error"]["code"] == "text_too_long"
    assert last["error"]["message"]


def test_a_file_that_is_no_picture_is_named(client: Client, tmp_path: Path) -> None:
    fake = tmp_path / "holiday.png"
    fake.write_bytes(b"no picture")
    last = chat(client, "brighter", fake)[-1]
    assert last["error"]["code"] == "picture_unreadable"
    assert "holiday.png" in last["error"]["message"]


def test_a_conversation_that_is_not_there_is_refused(client: Client) -> None:
    assert chat(client, "hello", conversation="nowhere")[-1]["error"]["code"] == "conversation_not_found"


def test_a_failure_of_the_provider_is_told(client: Client, gemini: GeminiProcess) -> None:
    gemini.control(on_text=[{"kind": "HttpError", "status": 503}])
    last = chat(client, "hello")[-1]
    assert last["error"]["code"] == "overloaded"
    assert last["error"]["can_retry"] is True


def test_a_picture_needs_a_cookie_or_a_signed_link(client: Client, gemini: GeminiProcess) -> None:
    url = painted(client, gemini)["pictures"][0]["url"]
    bare = url.partition("?")[0]
    assert fetch(bare)[0] == 403
    assert fetch(url.replace("sig=", "sig=0"))[0] == 403
    assert fetch(bare, cookie="aivista_session=forged.00000000")[0] == 403
    assert fetch(url.replace("/1?", "/2?"))[0] == 403


def test_with_the_pages_cookie_the_picture_opens_downloads_and_shrinks(
    client: Client, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    bare = painted(client, gemini)["pictures"][0]["url"].partition("?")[0]
    cookie = fetch(gemini_studio.url)[2]["set-cookie"].partition(";")[0]
    assert fetch(bare, cookie=cookie)[0] == 200
    _, _, headers = fetch(f"{bare}?download=1", cookie=cookie)
    assert headers["content-disposition"].startswith('attachment; filename="aivista-1-draw-a-fox.')
    _, small, _ = fetch(f"{bare}?size=96", cookie=cookie)
    with Image.open(io.BytesIO(small)) as image:
        assert max(image.size) == 96
    for missing in (bare[:-1] + "99", f"{gemini_studio.url}/media/nowhere/1", bare[:-1] + "..%2f..%2fsecret"):
        assert fetch(missing, cookie=cookie)[0] == 404


@pytest.mark.parametrize("size", ["0", "-1", "999999", "big", ""])
def test_a_size_that_makes_no_sense_gives_the_whole_picture(client: Client, gemini: GeminiProcess, size: str) -> None:
    url = painted(client, gemini)["pictures"][0]["url"]
    assert fetch(f"{url}&size={size}")[1] == fetch(url)[1]


def test_nothing_of_the_home_folder_is_served(client: Client, gemini_studio: PageProcess) -> None:
    for path in (gemini_studio.home / "session.secret", Path("/etc/passwd"), Path("/proc/self/environ")):
        assert fetch(f"{gemini_studio.url}/gradio_api/file={path}")[0] in (403, 404)


def test_a_forged_file_path_is_not_read(gemini_studio: PageProcess, client: Client) -> None:
    secret = gemini_studio.home / "session.secret"
    forged = {"path": str(secret), "meta": {"_type": "gradio.FileData"}}
    job = client.submit(message={"text": "read this", "files": [forged]}, api_name="/chat")
    assert job.exception(timeout=60) is not None
