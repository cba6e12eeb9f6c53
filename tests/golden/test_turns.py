"""Canonical turns: what the models received and what the HTTP API streamed, word for word."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from PIL import Image
from pydantic import SecretStr

from tests.golden.conftest import Golden
from tests.golden.plain import Plain
from tests.golden.prices import models_of_the_day
from tests.support.api import Told, begun, png, served, stream
from tests.support.gemini import KEY
from tests.wire_server import Blocked, Call, GeminiServer, HttpError, PictureAnswer, Search, Text
from tests.wire_server.request import WireRequest
from tests.wire_server.steps import Answer

Say: TypeAlias = Callable[..., Awaitable[list[Told]]]
Turn: TypeAlias = Callable[[GeminiServer, Say], Awaitable[None]]
SMALL = PictureAnswer(width=64, height=36)
PHOTO = Path(__file__).parents[1] / "data" / "photos" / "astronaut.webp"


def paint(prompt: str = "A red fox in the snow", **arguments: Any) -> Call:
    return Call("generate_image", {"prompt": prompt, "confidence": 0.9, **arguments}, text_before="Here it comes.")


def review(score: float, feedback: str) -> Text:
    return Text(f'{{"score": {score}, "feedback": "{feedback}"}}')


def url_of(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def photo() -> str:
    return url_of(PHOTO.read_bytes(), "image/webp")


def sent_back(request: WireRequest) -> Answer:
    """Answer with the first picture that was sent, as a model does that changes nothing."""
    parts = [part for content in request.contents for part in content["parts"] if "inlineData" in part]
    return PictureAnswer(data=base64.b64decode(parts[0]["inlineData"]["data"]), mime="image/png")


async def talk(server: GeminiServer, say: Say) -> None:
    server.on_text(Text("A fox is a small dog that thinks like a cat.", thoughts="They ask about foxes."))
    await say("What is a fox?")


async def picture(server: GeminiServer, say: Say) -> None:
    server.on_text(paint())
    server.on_image(SMALL)
    await say("draw a red fox in the snow", settings={"review": "off"})


async def everything_chosen(server: GeminiServer, say: Say) -> None:
    # Two pictures come in either order: one is enough.
    server.on_text(paint(number_of_images=2, aspect_ratio="1:1"))
    server.on_image(SMALL)
    chosen = {
        "text_model": "thinking",
        "image_model": "pro",
        "aspect_ratio": "16:9",
        "resolution": "2K",
        "number_of_images": 1,
        "negative_prompt": "people",
        "review": "off",
    }
    await say("a fox", settings=chosen)


async def edit_of_an_upload(server: GeminiServer, say: Say) -> None:
    server.on_text(paint("Make the sky pink", action="edit_image", handles=["#1"]))
    server.on_image(SMALL)
    await say("make the sky pink", images=[url_of(png("blue", (64, 36)))], settings={"review": "off"})


async def next_turn(server: GeminiServer, say: Say) -> None:
    server.on_text(paint(), paint("The same fox at night", action="edit_image", handles=["#1"]))
    server.on_image(SMALL, PictureAnswer(width=64, height=36, text_before="Night it is."))
    await say("draw a red fox", settings={"review": "off"})
    await say("now at night", settings={"review": "off"})


async def masked_edit(server: GeminiServer, say: Say) -> None:
    server.on_text(paint("A red helmet", handles=["#1"]))
    server.on_image(sent_back)
    mask = Image.new("L", (512, 512), 0)
    mask.paste(255, (100, 100, 300, 260))
    with_mask = {"handle": "upload:1", "image": url_of(_png_of(mask))}
    await say("a red helmet here", images=[photo()], mask=with_mask, settings={"review": "off"})


async def expansion(server: GeminiServer, say: Say) -> None:
    server.on_text(paint("More of the room", handles=["#1"]))
    server.on_image(sent_back)
    await say("", images=[photo()], expand={"handle": "upload:1", "left": 0.5}, settings={"review": "off"})


async def references(server: GeminiServer, say: Say) -> None:
    server.on_text(Text("I see three pictures."), paint("Both at one table", handles=["#1", "#2"]))
    server.on_image(SMALL)
    pictures = [url_of(png(colour)) for colour in ("red", "green", "blue")]
    await say("these are mine", images=pictures)
    await say(
        "put both at one table",
        references=["#1"],
        roles={"#2": "style"},
        settings={"review": "off", "reference_mode": "LAST_GENERATED"},
    )


async def search(server: GeminiServer, say: Say) -> None:
    fact = {"item": "The tower is 330 m high.", "source": "towers.example"}
    found = Search({"facts": [fact], "prompt_draft": ""}, sources=[("towers.example", "https://redirect.example/1")])
    server.on_text(Call("web_search", {"query": "How high is the tower?"}), found, Text("It is 330 m high."))
    await say("how high is the tower now?", settings={"allow_search": True})


async def tools(server: GeminiServer, say: Say) -> None:
    server.on_text(
        Call("write_file", {"name": "note.md", "content": "# Foxes\n"}),
        Call("run_javascript", {"code": "console.log(6 * 7)"}),
        Text("It is 42."),
    )
    await say("keep a note, and multiply 6 by 7")


async def poor_review(server: GeminiServer, say: Say) -> None:
    server.on_text(paint("A sign that reads OPEN"), review(0.3, "The sign reads OPNE."), review(0.9, "It reads OPEN."))
    server.on_image(SMALL, SMALL)
    await say('a sign that reads "OPEN"', settings={"review": "always"})


async def style(server: GeminiServer, say: Say) -> None:
    server.on_text(paint("A fox in the snow", style="ukiyo-e"))
    server.on_image(SMALL)
    await say("a fox in the style of ukiyo-e", settings={"review": "off"})


async def plan(server: GeminiServer, say: Say) -> None:
    server.on_text(paint(number_of_images=2))
    await say("two foxes", settings={"confirm": True})


async def refused_picture(server: GeminiServer, say: Say) -> None:
    server.on_text(paint())
    server.on_image(Blocked("PROHIBITED_CONTENT"))
    await say("a red fox", settings={"review": "off"})


async def busy_model(server: GeminiServer, say: Say) -> None:
    server.on_text(HttpError(503))
    await say("a red fox")


TURNS: tuple[Turn, ...] = (
    talk,
    picture,
    everything_chosen,
    edit_of_an_upload,
    next_turn,
    masked_edit,
    expansion,
    references,
    search,
    tools,
    poor_review,
    style,
    plan,
    refused_picture,
    busy_model,
)


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.__name__)
async def test_the_models_receive_and_a_client_is_told_what_is_on_record(
    turn: Turn, golden: Golden, tmp_path: Path
) -> None:
    plain = Plain()
    with GeminiServer() as server:
        chosen: dict[str, Any] = {"gemini_api_key": SecretStr(KEY), "gemini_base_url": server.url, "retry_budget_s": 0}
        chosen["catalogue_file"] = models_of_the_day(tmp_path)
        async with served(tmp_path, **chosen) as api, api.client() as client:
            told: list[Told] = []
            conversation = await begun(client)

            async def say(text: str, **body: Any) -> list[Told]:
                path = f"/api/v1/conversations/{conversation}/turns"
                events = await stream(client, "POST", path, json={"text": text, **body})
                told.extend(events)
                return events

            await turn(server, say)
            trace = (await client.get(f"/api/v1/conversations/{conversation}/trace")).json()
            report: dict[str, Any] = await api.studio.report(conversation, told[0].data["turn_id"])
        assert server.violations == []
        requests = [{"model": one.model, "method": one.method, "body": plain(one.body)} for one in server.requests]
    if turn is talk:
        golden("turns/instructions.json", named(requests[0]["body"]))
    for request in requests:
        request["body"] |= {name: digest_of(value) for name, value in named(request["body"]).items()}
    golden(f"turns/{turn.__name__}.json", {"stream": joined(plain, told), "requests": requests})
    if turn is picture:
        golden("trace.json", plain(trace))
    if turn is refused_picture:
        golden("report.json", plain({**report, "platform": "", "versions": sorted(report["versions"])}))


def named(body: dict[str, Any]) -> dict[str, Any]:
    """Return what nearly every request holds, and what one place is enough for."""
    return {name: body[name] for name in ("systemInstruction", "tools") if name in body}


def digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def joined(plain: Plain, told: list[Told]) -> list[Any]:
    """Return the events as lists of a name and the data; the pieces of a text as one, however they came."""
    events: list[Any] = []
    for one in told:
        data = plain(one.data)
        if events and one.event == events[-1][0] == "text":
            events[-1][1]["text"] += data["text"]
        else:
            events.append([one.event, data])
    return events


def _png_of(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()
