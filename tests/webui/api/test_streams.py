"""Streams that are cut go on exactly where they were, by whoever has the id of the last event; and end when stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import pytest

from agent import ErrorCode, ErrorInfo, TextPart, ToolAnswer, ToolContext, TurnRequest, tool
from agent.providers.scripted import Hold, Line, calls, says
from agent.tools.base import Arguments, Reason
from tests.support.api import Told, begun, names, painted, paints, sent, served, stream, told, words
from tests.support.tool_calls import call, results
from webui.api.events import Cursor
from webui.http.event_stream import with_heartbeats

TURNS = "/api/v1/conversations"


def held(go_on: asyncio.Event) -> Line:
    return Line((TextPart(text="One, "), TextPart(text="two, "), Hold(go_on), TextPart(text="three.")))


async def test_a_stream_that_was_cut_goes_on_after_the_last_event_while_the_turn_runs(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with served(tmp_path, text=[held(go_on)]) as one, one.client() as client:
        conversation = await begun(client)
        path = f"{TURNS}/{conversation}"
        seen: list[Told] = []
        async with client.stream("POST", f"{path}/turns", json={"text": "count"}) as answer:
            async for event in told(answer.aiter_lines()):
                seen.append(event)
                if words(seen) == "One, two, ":
                    break
        assert one.studio.turns.is_running(conversation)
        cut = {"Last-Event-ID": seen[-1].id}
        async with client.stream("GET", f"{path}/events", headers=cut) as answer:
            go_on.set()
            rest = [event async for event in told(answer.aiter_lines())]
        assert words(rest) == "three."
        assert names(rest)[-1] == "done"
        turn = f"{path}/turns/{seen[0].data['turn_id']}/events"
        whole = await stream(client, "GET", turn)
        assert whole == seen + rest
        for place in range(len(whole) - 1):
            assert await stream(client, "GET", turn, headers={"Last-Event-ID": whole[place].id}) == whole[place + 1 :]
        over = await client.get(turn, headers={"Last-Event-ID": whole[-1].id})
        assert (over.status_code, over.content) == (204, b"")


async def test_whoever_comes_without_an_id_hears_the_running_turn_from_its_first_event(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with served(tmp_path, text=[held(go_on)]) as one, one.client() as client:
        conversation = (await one.studio.conversations.create()).id
        # Begun by somebody else: the page.
        page = one.studio.run_turn(conversation, TurnRequest(text="count"))
        await anext(page)
        async with client.stream("GET", f"{TURNS}/{conversation}/events") as answer:
            go_on.set()
            events = [event async for event in told(answer.aiter_lines())]
        assert names(events)[0] == "started"
        assert (words(events), events[-1].data["state"]) == ("One, two, three.", "done")
        assert [event.type async for event in page][-1] == "turn_done"
        assert (await client.get(f"{TURNS}/{conversation}/events")).status_code == 204


async def test_a_turn_of_an_earlier_process_is_told_from_its_record(tmp_path: Path) -> None:
    lines = [paints(), says("Here it is.")]
    async with served(tmp_path, text=lines, pictures=[painted()]) as one, one.client() as client:
        conversation = await begun(client)
        first = await sent(client, conversation, "a fox", settings={"review": "off"})
    turn = f"{TURNS}/{conversation}/turns/{first[0].data['turn_id']}/events"
    async with served(tmp_path, text=[]) as one, one.client() as client:
        again = await stream(client, "GET", turn, headers={"Last-Event-ID": first[-1].id})
        assert (names(again)[0], names(again)[-1]) == ("started", "done")
        assert [event.data["handle"] for event in again if event.event == "image"] == ["#1"]
        assert again[-1].data["price_usd"] == first[-1].data["price_usd"]
        rest = await stream(client, "GET", turn, headers={"Last-Event-ID": again[0].id})
        assert rest == again[1:]
        assert (await client.get(turn, headers={"Last-Event-ID": again[-1].id})).status_code == 204


@pytest.mark.parametrize("is_alone", [False, True])
async def test_a_turn_is_stopped_and_keeps_what_was_said(tmp_path: Path, is_alone: bool) -> None:
    async with served(tmp_path, text=[held(asyncio.Event())]) as one, one.client() as client:
        conversation = await begun(client)
        path = f"{TURNS}/{conversation}"
        async with client.stream("POST", f"{path}/turns", json={"text": "count"}) as answer:
            events: list[Told] = []
            async for event in told(answer.aiter_lines()):
                events.append(event)
                if event.event == "text" and words(events) == "One, two, ":
                    other = await client.post(f"{path}/turns/{conversation}/cancel")
                    assert other.json() == {"stopped": False}
                    turn = f"{path}/turns/{events[0].data['turn_id']}"
                    stopped = await client.post(f"{turn if is_alone else path}/cancel")
                    assert stopped.json() == {"stopped": True}
        assert events[-1].data == {"state": "stopped"}
        assert (await client.get(f"{path}/turns/{events[0].data['turn_id']}")).json()["state"] == "stopped"
        assert (await client.post(f"{path}/cancel")).json() == {"stopped": False}


async def test_a_failure_says_who_must_act_in_the_callers_language_and_is_mended_by_retry(tmp_path: Path) -> None:
    lines = [Line(error=ErrorInfo(code=ErrorCode.KEY_INVALID)), says("Now it works.")]
    async with served(tmp_path, text=lines) as one, one.client(**{"Accept-Language": "zh-CN"}) as client:
        conversation = await begun(client)
        events = await sent(client, conversation, "hello")
        assert names(events)[-2:] == ["error", "done"]
        problem = events[-2].data
        assert (problem["code"], problem["status"], problem["is_end"]) == ("key_invalid", 403, True)
        assert "密钥" in problem["detail"]
        retry = f"{TURNS}/{conversation}/turns/{events[0].data['turn_id']}/retry"
        again = await stream(client, "POST", retry)
        assert (words(again), again[-1].data["state"]) == ("Now it works.", "done")
        turn = f"{TURNS}/{conversation}/turns/{events[0].data['turn_id']}/events"
        assert await stream(client, "GET", turn) == events + again
        assert await stream(client, "GET", turn, headers={"Last-Event-ID": events[-1].id}) == again


async def always(arguments: Arguments, context: ToolContext) -> Reason | None:
    return "may_change_something"


@tool(rule=always)
async def send_letter(context: ToolContext, words: Annotated[str, "What it says."]) -> ToolAnswer:
    """Send a letter to somebody."""
    return ToolAnswer({"sent": words})


@pytest.mark.parametrize("is_allowed", [True, False])
async def test_a_call_that_needs_consent_waits_for_it(is_allowed: bool, tmp_path: Path) -> None:
    letter = calls(call("send_letter", "s1", words="Hello"))
    async with served(tmp_path, text=[letter, says("Very well.")], tools=[send_letter]) as one, one.client() as client:
        conversation = await begun(client)
        events = await sent(client, conversation, "write to her")
        assert names(events)[-2:] == ["consent", "done"]
        [ask] = events[-2].data["asks"]
        assert (ask["tool"], json.loads(ask["arguments"])) == ("send_letter", {"words": "Hello"})
        decision = f"{TURNS}/{conversation}/turns/{events[0].data['turn_id']}/decision"
        went_on = await stream(client, "POST", decision, json={"run": is_allowed})
        assert words(went_on) == "Very well."
        assert one.provider is not None
        [result] = results(one.provider.asked[-1])
        assert (result.content.get("sent") == "Hello") is is_allowed


async def test_no_words_of_a_model_can_begin_another_event_and_the_same_request_twice_runs_once(tmp_path: Path) -> None:
    hostile = "\n\nevent: done\ndata: {}\n\r\n\u2028id: 7\n\n"
    async with served(tmp_path, text=[Line((TextPart(text=hostile),))]) as one, one.client() as client:
        conversation = await begun(client)
        first, second = [await sent(client, conversation, "hello", request_id="r1") for _ in range(2)]
        assert (words(first), words(second).strip()) == (hostile, hostile.strip())
        assert names(first).count("done") == 1
        assert first[0].data["turn_id"] == second[0].data["turn_id"]
        assert one.provider is not None
        assert len(one.provider.asked) == 1


def test_an_id_names_a_turn_and_a_number_and_one_that_is_none_of_ours_no_place() -> None:
    for cursor in (Cursor("0a1b", 12), Cursor("0a1b", 3, is_record=True)):
        assert Cursor.read(str(cursor)) == cursor
    foreign = ("", "x", "-", "a-b", "a-", "a-1.0", "a-１", "-0", "a-123456789")
    assert [one for one in foreign if Cursor.read(one) is not None] == []


async def test_a_turn_that_is_silent_sends_heartbeats_and_then_goes_on() -> None:
    silent = asyncio.Event()

    async def events() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        await silent.wait()
        yield b"data: 2\n\n"

    heard: list[bytes] = []
    async for one in with_heartbeats(events(), 0.01):
        heard.append(one)
        if len(heard) == 4:
            silent.set()
    assert (heard[0], heard[-1]) == (b"data: 1\n\n", b"data: 2\n\n")
    assert set(heard[1:-1]) == {b": still here\n\n"}


async def test_the_schema_describes_every_event_of_a_stream(tmp_path: Path) -> None:
    async with served(tmp_path) as one, one.client() as client:
        paths = (await client.get("/api/v1/openapi.json")).json()["paths"]
        answers = [
            answer["content"]["text/event-stream"]["schema"]
            for address, path in paths.items()
            for route in path.values()
            for answer in route["responses"].values()
            if address.startswith("/api/") and "text/event-stream" in answer.get("content", {})
        ]
        assert len(answers) > 3
        events = await sent(client, await begun(client), "a red fox")
        for schema in answers:
            assert set(schema["properties"]) == set(schema["required"]) == {"id", "event", "data"}
            assert {event.event for event in events} <= set(schema["properties"]["event"]["enum"])
