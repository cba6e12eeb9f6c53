"""Whole turns on a server of OpenAI's API, and one history that moves between it and Gemini."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import (
    ErrorCode,
    PictureReady,
    Settings,
    Studio,
    TextDelta,
    ThoughtDelta,
    ToolCallPart,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnRequest,
    TurnState,
)
from tests import openai_server, wire_server
from tests.openai_server import ChatRequest, OpenAIServer, PictureRequest
from tests.support.clock import Clock
from tests.support.openai import with_openai
from tests.support.pixels import size_and_colours
from tests.support.scenes import of_type, only, png, run, words
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold

Calls, Call, Text = openai_server.Calls, openai_server.Call, openai_server.Text


def asks_for(prompt: str, **arguments: Any) -> openai_server.Answer:
    call = Call("generate_image", {"prompt": prompt, "confidence": 0.9, **arguments})
    return Calls([call], text_before="Here it comes.")


def pictures(events: list[TurnEvent]) -> list[str]:
    # They are told as they arrive; their handles are in the order of the request.
    return sorted(event.picture.handle for event in of_type(events, PictureReady))


async def test_turns_run_on_a_server_of_ones_own_without_a_key(settings: Settings, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        local = with_openai(settings, server, tmp_path, text_model="seer")
        async with Studio(local) as studio:
            assert studio.provider_name() == "openai"
            conversation = await studio.conversations.create()
            server.on_chat(Text("I paint what you say.", chunks=4))
            events = await run(studio, conversation.id, "Hello, what can you do?", allow_search=True)
            assert words(events) == "I paint what you say."
            assert len(of_type(events, TextDelta)) >= 1
            server.on_chat(asks_for("a red fox in the snow", aspect_ratio="3:2"))
            assert pictures(await run(studio, conversation.id, "Draw a red fox in the snow.")) == ["#1"]
            server.on_chat(asks_for("the same, darker", handles=["#1"]))
            assert pictures(await run(studio, conversation.id, "Make it dusk.")) == ["#1b"]
            server.on_chat(Text("A green field."))
            await run(studio, conversation.id, "What is on this photo?", png(80, 60, "green"))

            server.on_chat(asks_for("the fox on the field", handles=["#2", "#1b"], number_of_images=2))
            assert pictures(await run(studio, conversation.id, "Put the fox into my photo, twice.")) == ["#2b", "#2c"]

            server.on_chat(remembers)
            assert words(await run(studio, conversation.id, "Which colour had my photo?")) == "Green."
            assert [len(chat.pictures) for chat in server.chats[-2:]] == [0, 1]
            kept = await studio.conversations.get(conversation.id)
            photo, fox = await studio.picture(kept.id, "#2"), await studio.picture(kept.id, "#1b")
    assert server.violations == []
    assert {turn.state for turn in kept.turns} == {TurnState.DONE}
    assert all("web_search" not in chat.tool_names for chat in server.chats)
    _assert_pictures_were_asked_for_as_wished(server.pictures, [photo.data, fox.data])
    receipt = kept.picture("#1").receipt
    assert receipt is not None
    assert (receipt.model, receipt.width, receipt.height, receipt.shortfalls) == ("painter", 1536, 1024, ())
    assert (receipt.usage.total_tokens, receipt.is_sketch) == (0, False)


def remembers(request: ChatRequest) -> openai_server.Answer:
    """Look the photo up again, then answer."""
    if request.pictures:
        return Text("Green.")
    uploaded = [line for line in request.text.splitlines() if "uploaded" in line and "history_" in line]
    return Calls([Call("get_history_image", {"image_id": uploaded[-1].split("history_")[1][:32]}, id="h1")])


def _assert_pictures_were_asked_for_as_wished(sent: list[PictureRequest], sources: list[bytes]) -> None:
    assert [(request.is_edit, len(request.files)) for request in sent] == [(False, 0), (True, 1), (True, 2), (True, 2)]
    # A copy is sent where the file tells something beside its pixels.
    assert [size_and_colours(file.data) for file in sent[2].files] == [size_and_colours(source) for source in sources]
    assert sent[0].size == (1536, 1024)


async def test_a_model_that_is_still_being_loaded_is_waited_for_and_one_that_falls_silent_is_not(
    settings: Settings, tmp_path: Path, clock: Clock
) -> None:
    with OpenAIServer() as server:
        async with Studio(with_openai(settings, server, tmp_path)) as studio:
            conversation = await studio.conversations.create()
            server.on_chat(Hold(asks_for("a fox")))
            server.on_picture(Hold(openai_server.Picture()))
            turn = asyncio.create_task(run(studio, conversation.id, "Draw a fox."))
            await until(lambda: server.chats and server.held)
            await clock.move(settings.text_timeout_s + 1)
            server.release()
            # The picture is asked for at once: there may be no moment to see in which nothing is held.
            await until(lambda: server.pictures and server.held)
            await clock.move(settings.image_timeout_s + 1)
            server.release()
            assert pictures(await turn) == ["#1"]
            server.on_chat(Hold(Text("Here I am."), after_chunks=2))
            silent = list[TurnEvent]()
            async for event in studio.run_turn(conversation.id, TurnRequest(text="Still there?")):
                silent.append(event)
                if isinstance(event, TextDelta):
                    await clock.move(settings.patiences.planner_s + 1)
    assert only(silent, TurnFailed).error.code is ErrorCode.NODE_TIMEOUT


async def test_a_history_begun_on_gemini_goes_on_elsewhere_and_back(settings: Settings, tmp_path: Path) -> None:
    with GeminiServer() as google, OpenAIServer() as server:
        gemini = settings.model_copy(
            update={"gemini_api_key": SecretStr("AIzaBackAndForth"), "gemini_base_url": google.url}
        )
        local = with_openai(settings, server, tmp_path, text_model="deepseek-flash")
        async with Studio(gemini) as studio:
            conversation = await studio.conversations.create()
            google.on_text(wire_server.Call("generate_image", {"prompt": "a fox", "confidence": 0.9}))
            google.on_text(wire_server.Text("A green field."))
            assert pictures(await run(studio, conversation.id, "Draw a fox.")) == ["#1"]
            await run(studio, conversation.id, "What is on this photo?", png(80, 60, "green"))
        async with Studio(local) as studio:
            server.on_chat(
                Calls(
                    [Call("generate_image", {"prompt": "darker", "handles": ["#1"], "confidence": 0.9}, id="d1")],
                    thoughts="They want #1 darker.",
                ),
                Text("With pleasure."),
            )
            darker = await run(studio, conversation.id, "Make the fox darker.")
            assert pictures(darker) == ["#1b"]
            assert "".join(one.text for one in of_type(darker, ThoughtDelta)) == "They want #1 darker."
            await run(studio, conversation.id, "Thank you!")
        async with Studio(gemini) as studio:
            google.on_text(
                wire_server.Call("generate_image", {"prompt": "lighter", "handles": ["#1b"], "confidence": 0.9})
            )
            google.on_text(wire_server.Text("Gladly."))
            assert pictures(await run(studio, conversation.id, "Now at noon.")) == ["#1c"]
            await run(studio, conversation.id, "And thank you.")
        async with Studio(local) as studio:
            await run(studio, conversation.id, "Good night.")
            kept = await studio.conversations.get(conversation.id)
    assert google.violations == []
    assert server.violations == []
    assert {turn.state for turn in kept.turns} == {TurnState.DONE}
    last = server.chats[-1].messages
    sent = [call["id"] for message in last for call in message.get("tool_calls", [])]
    assert sent == ["call00000", "d1", "call00001"]  # Gemini gave no ids, the other server's own comes back
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == sent
    parts = [part for content in google.requests[-1].contents for part in content["parts"]]
    assert [part["functionCall"].get("id") for part in parts if "functionCall" in part] == [None, "d1", None]
    last = server.chats[-1].messages
    assert [m["reasoning_content"] for m in last if "reasoning_content" in m] == ["", "They want #1 darker.", ""]
    assert "darker." not in google.requests[-1].text.replace("Make the fox darker.", "")
    calls = [part for content in google.requests[-1].contents for part in content["parts"] if "functionCall" in part]
    assert all("thoughtSignature" in part for part in calls)
    # The picture of the other server stands in a prompt: only a model's own goes back in its turn.
    last_painting = [request for request in google.requests if request.kind == "image"][-1]
    assert {role for role, _ in last_painting.blobs} == {"user"}
    assert [kept.picture(handle).parents for handle in ("#1b", "#1c")] == [("#1",), ("#1b",)]


async def test_one_studio_serves_some_by_gemini_and_the_others_by_its_own_server(
    settings: Settings, tmp_path: Path
) -> None:
    with GeminiServer() as google, OpenAIServer() as server:
        local = with_openai(settings, server, tmp_path).model_copy(update={"gemini_base_url": google.url})
        key = SecretStr("AIzaOfAVisitor")
        async with Studio(local) as studio:
            assert (studio.provider_name(), studio.provider_name(key)) == ("openai", "gemini")
            await run(studio, (await studio.conversations.create()).id, "Hello")
            assert (await studio.keys.test(key)).is_whole
        async with Studio(local.model_copy(update={"provider": "openai"})) as studio:
            assert studio.provider_name(key) == "openai"
            assert (await studio.keys.test(key)).is_whole
    # Each test asks four models for a word.
    assert (len(server.chats), len(google.requests)) == (1, 8)
    assert (google.violations, server.violations) == ([], [])


@asynccontextmanager
async def local(settings: Settings, folder: Path, **fields: Any) -> AsyncIterator[tuple[OpenAIServer, Studio, str]]:
    """Give a server, a studio on it, and a conversation; no rule of the API is broken in the end."""
    with OpenAIServer() as server:
        async with Studio(with_openai(settings, server, folder, **fields)) as studio:
            yield server, studio, (await studio.conversations.create()).id
        assert server.violations == []


async def test_a_server_that_only_talks_leaves_the_painting_to_sketch(settings: Settings, tmp_path: Path) -> None:
    async with local(settings, tmp_path, image_model=None) as (server, studio, key):
        server.on_chat(asks_for("a red fox in the snow", aspect_ratio="16:9"))
        assert pictures(await run(studio, key, "Draw a red fox.")) == ["#1"]
        server.on_chat(asks_for("make it darker", handles=["#1"]))
        assert pictures(await run(studio, key, "At dusk.")) == ["#1b"]
        picture = await studio.picture(key, "#1")
        assert server.pictures == []
    assert picture.receipt is not None
    assert (picture.receipt.is_sketch, size_and_colours(picture.data)[0]) == (True, (1376, 768))


async def test_a_model_without_tools_paints_too(settings: Settings, tmp_path: Path) -> None:
    call = '{"name": "generate_image", "arguments": {"prompt": "a red fox", "confidence": 0.9}}'
    async with local(settings, tmp_path, text_model="simple") as (server, studio, key):
        server.on_chat(Text(f"Here it comes.\n<tool_call>{call}</tool_call>", chunks=9))
        events = await run(studio, key, "Draw a red fox.")
        assert (pictures(events), words(events).strip()) == (["#1"], "Here it comes.")
        await run(studio, key, "Thank you")
        kept = await studio.conversations.get(key)
    calls = [part for message in kept.messages for part in message.parts if isinstance(part, ToolCallPart)]
    assert [call.name for call in calls] == ["generate_image"]


@pytest.mark.parametrize("reply", [openai_server.HttpError(503), openai_server.Cut(2)])
async def test_a_turn_that_failed_leaves_a_history_that_goes_on(
    settings: Settings, tmp_path: Path, reply: openai_server.Answer
) -> None:
    async with local(settings, tmp_path) as (server, studio, key):
        server.on_chat(Text("Hello."), reply)
        await run(studio, key, "Hi")
        await run(studio, key, "Draw a fox")
        server.on_chat(Text("Here."))
        assert isinstance((await run(studio, key, "Once more"))[-1], TurnDone)


async def test_a_painter_that_cannot_change_pictures_says_so(settings: Settings, tmp_path: Path) -> None:
    async with local(settings, tmp_path, image_model="sign-painter") as (server, studio, key):
        server.on_chat(asks_for("a fox"), asks_for("darker", handles=["#1"]))
        assert pictures(await run(studio, key, "Draw a fox.")) == ["#1"]
        failed = only(await run(studio, key, "At dusk."), TurnFailed)
        assert (failed.error.code, len(server.pictures)) == (ErrorCode.TOO_MANY_REFERENCES, 1)
