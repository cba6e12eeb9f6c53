"""Canonical turns: what the models received and what the HTTP API streamed, word for word."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pydantic import SecretStr

from tests.golden.conftest import Golden
from tests.golden.plain import Plain
from tests.golden.prices import models_of_the_day
from tests.support.api import Told, begun, png, served, stream
from tests.support.gemini import KEY
from tests.support.tables import filled, table
from tests.wire_server import Call, GeminiServer, PictureAnswer, Text
from tests.wire_server.answers import Answer
from tests.wire_server.control import answer_from_json
from tests.wire_server.request import WireRequest

SMALL = PictureAnswer(width=64, height=36)
PHOTO = Path(__file__).parents[1] / "data" / "photos" / "astronaut.webp"


def paint(prompt: str = "A red fox in the snow", **arguments: Any) -> Call:
    return Call("generate_image", {"prompt": prompt, "confidence": 0.9, **arguments}, text_before="Here it comes.")


def review(score: float, feedback: str) -> Text:
    return Text(f'{{"score": {score}, "feedback": "{feedback}"}}')


def url_of(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def sent_back(request: WireRequest) -> Answer:
    """Answer with the first picture that was sent, as a model does that changes nothing."""
    parts = [part for content in request.contents for part in content["parts"] if "inlineData" in part]
    return PictureAnswer(data=base64.b64decode(parts[0]["inlineData"]["data"]), mime="image/png")


def mask() -> str:
    image, sink = Image.new("L", (512, 512), 0), io.BytesIO()
    image.paste(255, (100, 100, 300, 260))
    image.save(sink, "PNG")
    return url_of(sink.getvalue())


def answer(told: Any) -> Any:
    """Return an answer of the table, which names a picture, a review or any answer of the wire server."""
    if isinstance(told, str):
        return SMALL if told == "small" else sent_back
    if "prompt" in told:
        return paint(**told)
    return review(**told) if "score" in told else answer_from_json(told)


PICTURES = {f"${colour}": url_of(png(colour)) for colour in ("red", "green", "blue")}
PICTURES |= {"$photo": url_of(PHOTO.read_bytes(), "image/webp"), "$mask": mask()}
PICTURES["$sea"] = url_of(png("blue", (64, 36)))


@pytest.mark.parametrize("name", table("golden_turns"))
async def test_models_receive_and_a_client_is_told_what_is_on_record(name: str, golden: Golden, tmp_path: Path) -> None:
    plain, turn = Plain(), filled(table("golden_turns")[name], PICTURES)
    with GeminiServer() as server:
        chosen: dict[str, Any] = {"gemini_api_key": SecretStr(KEY), "gemini_base_url": server.url, "retry_budget_s": 0}
        chosen["catalogue_file"] = models_of_the_day(tmp_path)
        async with served(tmp_path, **chosen) as api, api.client() as client:
            told: list[Told] = []
            conversation = await begun(client)
            server.on_text(*map(answer, turn["text"]))
            server.on_image(*map(answer, turn.get("image", [])))
            for body in turn["say"]:
                told += await stream(client, "POST", f"/api/v1/conversations/{conversation}/turns", json=body)
            trace = (await client.get(f"/api/v1/conversations/{conversation}/trace")).json()
            report: dict[str, Any] = await api.studio.turns.report(conversation, told[0].data["turn_id"])
        assert server.violations == []
        requests = [{"model": one.model, "method": one.method, "body": plain(one.body)} for one in server.requests]
    if name == "talk":
        golden("turns/instructions.json", named(requests[0]["body"]))
    for request in requests:
        request["body"] |= {name: digest_of(value) for name, value in named(request["body"]).items()}
    golden(f"turns/{name}.json", {"stream": joined(plain, told), "requests": requests})
    if name == "picture":
        golden("trace.json", plain(trace))
    if name == "refused_picture":
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
