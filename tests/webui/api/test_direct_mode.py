"""Direct mode: a context that is sent whole each time goes on where it was, and its pictures are recalled by id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent import ErrorCode, ErrorInfo, ImagePart, Role
from agent.history_images import TOOL_NAME
from agent.providers.scripted import Asked, Line, calls, says
from tests.support.api import (
    ANNA,
    BEN,
    TOKENS,
    Served,
    Told,
    data_url,
    painted,
    paints,
    png,
    served,
    stream,
    talks,
    words,
)
from tests.support.cases import each_case
from tests.support.tables import table
from tests.support.tool_calls import call, results
from webui.api.direct import ContextEnd, Contexts

Message = list[Any]
QUIET = {"review": "off"}


def picture(data: bytes) -> dict[str, Any]:
    return at(data_url(data))


def at(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


async def chat(client: httpx.AsyncClient, *messages: Message, **more: Any) -> list[Told]:
    body = {"messages": messages, "settings": QUIET, **more}
    return await stream(client, "POST", "/api/v1/chat", json=body)


def conversation_of(events: Sequence[Told]) -> str:
    found: str = events[0].data["conversation_id"]
    return found


def asked(one: Served) -> Asked:
    assert one.provider is not None
    return one.provider.asked[-1]


async def test_a_context_that_comes_again_with_its_answer_goes_on_in_its_conversation(tmp_path: Path) -> None:
    lines = talks("One.", "Two.", "Two, otherwise.", "Three.")
    async with served(tmp_path, text=lines) as one, one.client() as client:
        first: list[Message] = [["human", [text("count"), picture(png())]]]
        events, same = [await chat(client, *first, request_id="r") for _ in range(2)]
        assert (same[0].data, words(same)) == (events[0].data, "One."), "the same request runs once"
        second: list[Message] = [*first, ["assistant", words(events)], ["human", "go on"]]
        assert conversation_of(await chat(client, *second)) == conversation_of(events)
        # Told once more it is another conversation, in which the model is told the same.
        assert conversation_of(await chat(client, *second)) != conversation_of(events)
        assert one.provider is not None
        told = [[message.text for message in asked.messages] for asked in one.provider.asked[-2:]]
        assert told[0] == told[1]
        # Messages with a role and a content are the same context.
        spelled = [{"role": "user", "content": first[0][1]}, {"role": "assistant", "content": [text("One.")]}]
        spelled += [{"role": "user", "content": "go on"}, {"role": "assistant", "content": [text(" Two.\n")]}]
        body = {"messages": [*spelled, {"role": "user", "content": [text("and on")]}], "request_id": None}
        last = await stream(client, "POST", "/api/v1/chat", json=body | {"settings": {**QUIET, "image_model": None}})
        assert (words(last), conversation_of(last)) == ("Three.", conversation_of(events))
        assert len((await client.get("/api/v1/conversations")).json()["conversations"]) == 2
        assert [message.text for message in asked(one).messages if message.role == "model"] == ["One.", "Two."]


async def test_a_request_that_went_on_is_told_again_also_after_a_restart(tmp_path: Path) -> None:
    first: list[Message] = [["human", "count"]]
    async with served(tmp_path, text=talks("One.", "Two.")) as one, one.client() as client:
        began = await chat(client, *first, request_id="r1")
        second: list[Message] = [*first, ["assistant", words(began)], ["human", "go on"]]
        went_on = await chat(client, *second, request_id="r2")
    async with served(tmp_path, text=talks()) as one, one.client() as client:
        again = [await chat(client, *first, request_id="r1"), await chat(client, *second, request_id="r2")]
        assert [words(events) for events in again] == ["One.", "Two."]
        assert {conversation_of(events) for events in again} == {conversation_of(began), conversation_of(went_on)}
        assert len((await client.get("/api/v1/conversations")).json()["conversations"]) == 1


async def test_pictures_of_the_past_are_placeholders_and_are_recalled_by_their_id(tmp_path: Path) -> None:
    def script(said: Asked) -> Line:
        if said.messages[-1].role is Role.TOOL:
            return says("It is blue.")
        told = "".join(message.text for message in said.messages)
        return calls(call(TOOL_NAME, "c1", image_id=re.findall(r"\[Picture:history_[^\]]*", told)[0]))

    context: list[Message] = [["human", [text("keep this"), picture(png("blue"))]], ["assistant", "Kept."]]
    async with served(tmp_path, text=script) as one, one.client() as client:
        assert words(await chat(client, *context, ["human", "which colour was it?"])) == "It is blue."
        assert one.provider is not None
        first, second = one.provider.asked
        assert not any(isinstance(part, ImagePart) for message in first.messages for part in message.parts)
        [result] = results(second)
        assert [(image.handle, image.width) for image in result.images] == [("#1", 64)]


async def test_a_context_that_was_never_seen_becomes_a_conversation_with_handles(tmp_path: Path) -> None:
    context: list[Message] = [
        ["human", [text("my cat"), picture(png("grey")), picture(png("white"))]],
        ["assistant", [text("Here is a dog."), picture(png("brown"))]],
        ["human", "and a hat?"],
        ["assistant", ""],
    ]
    async with served(tmp_path, text=talks("A hat.")) as one, one.client() as client:
        events = await chat(client, *context, ["human", [text("yes"), picture(png("black"))]])
        assert events[0].data["uploads"] == ["#4"]
        whole = (await client.get(f"/api/v1/conversations/{conversation_of(events)}")).json()
        shown = [f"{one['handle']} {one['origin']}" for one in whole["pictures"]]
        assert shown == ["#1 uploaded", "#2 uploaded", "#3 generated", "#4 uploaded"]
        told = [(one["text"], one["answer"]) for one in whole["turns"]]
        assert told == [("my cat", "Here is a dog."), ("and a hat?", ""), ("yes", "A hat.")]
        assert (whole["title"], whole["price_usd"]) == ("my cat", events[-1].data["price_usd"])


async def test_what_was_painted_is_edited_by_the_next_call_that_sends_it_back(tmp_path: Path) -> None:
    lines = [paints(said="A fox."), paints("The fox at night", "At night.", reference_mode="LAST_GENERATED")]
    async with served(tmp_path, text=lines, pictures=[painted(), painted("navy")]) as one, one.client() as client:
        events = await chat(client, ["human", "a fox"])
        [made] = [event.data for event in events if event.event == "image"]
        data = (await client.get(made["url"])).content
        answer = ["assistant", [text(words(events)), picture(data)]]
        edited = await chat(client, ["human", "a fox"], answer, ["human", "make it night"])
        assert conversation_of(edited) == conversation_of(events)
        [image] = [event.data for event in edited if event.event == "image"]
        assert image["parents"] == ["#1"]


async def test_a_turn_that_failed_is_sent_again_in_its_place(tmp_path: Path) -> None:
    lines = [says("One."), Line(error=ErrorInfo(code=ErrorCode.KEY_INVALID)), says("Two.")]
    async with served(tmp_path, text=lines) as one, one.client() as client:
        first = await chat(client, ["human", "count"])
        context = [["human", "count"], ["assistant", "One."], ["human", "go on"]]
        failed = await chat(client, *context)
        assert failed[-1].data["state"] == "failed"
        again = await chat(client, *context)
        assert conversation_of(again) == conversation_of(failed) == conversation_of(first)
        turns = (await client.get(f"/api/v1/conversations/{conversation_of(again)}")).json()["turns"]
        assert [(one["text"], one["state"]) for one in turns] == [("count", "done"), ("go on", "done")]


async def test_a_plan_of_a_context_is_decided_in_its_conversation_and_the_context_goes_on(tmp_path: Path) -> None:
    lines = [paints(said="A fox."), *talks("You are welcome.")]
    async with served(tmp_path, text=lines, pictures=[painted()]) as one, one.client() as client:
        events = await chat(client, ["human", "a fox"], settings={**QUIET, "confirm": True})
        turn = f"/api/v1/conversations/{conversation_of(events)}/turns/{events[0].data['turn_id']}"
        run = await stream(client, "POST", f"{turn}/decision", json={"run": True})
        said = words(events) + words(run)
        thanks = await chat(client, ["human", "a fox"], ["assistant", said], ["human", "thanks"])
        assert conversation_of(thanks) == conversation_of(events)


async def test_nobody_goes_on_in_the_conversation_of_another(tmp_path: Path) -> None:
    lines = talks("One.", "Two.")
    async with served(tmp_path, text=lines, api_tokens=TOKENS) as one, one.client(ANNA) as anna, one.client(BEN) as ben:
        hers = await chat(anna, ["human", "count"])
        his = await chat(ben, ["human", "count"], ["assistant", "One."], ["human", "go on"])
        assert conversation_of(hers) != conversation_of(his)


BAD = [["human", [picture(b"\x89PNG bad")]], ["assistant", "x"], ["human", "y"]]
CONTEXTS = [*table("api_requests")["contexts"], (BAD, 422, "picture_unreadable")]
CONTEXTS += [([["human", [at(url)]]], *told) for url, *told in table("api_requests")["addresses"]]


@pytest.mark.asyncio(loop_scope="module")
@each_case(("messages", "status", "code"), CONTEXTS)
async def test_a_context_that_cannot_be_one_is_refused_in_a_sentence(
    messages: list[Any], status: int, code: str, quiet: httpx.AsyncClient
) -> None:
    answer = await quiet.post("/api/v1/chat", json={"messages": messages})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_of_the_places_the_oldest_are_forgotten_and_each_is_given_once() -> None:
    contexts = Contexts()
    for number in range(2001):
        contexts.keep("anna", [f"d{number}", f"e{number}"], ContextEnd(f"c{number}", None))
    asked_for = (("anna", "d0"), ("ben", "d2000"), ("anna", "e2000"), ("anna", "d2000"))
    assert [contexts.take(*one) for one in asked_for] == [None, None, ContextEnd("c2000", None), None]
