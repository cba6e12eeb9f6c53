"""The studio as an MCP server: real processes on pipes and on loopback, met by the official client."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from PIL import Image

from agent import Settings, Studio, ToolCallPart
from tests.adapters.models import calls, says
from tests.adapters.webui import mcp_server
from tests.page import free_port
from tests.support import commands
from tests.support.lines import read_line
from tests.support.mcp_pipes import on_pipes, serving
from tests.support.scenes import Scene, generate, picture, png
from tests.support.waiting import wait_until

ANNA, BEN = "anna-has-a-long-token", "ben-has-a-long-token"
PATIENCE_S = 60


@asynccontextmanager
async def bringing(token: str, url: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


# Hands shaken as it was done before 2026.
SHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HELLO = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": SHAKE})
HALF_A_CHARACTER = (
    r'{"jsonrpc":"2.0","id":2,"method":"tools/call",'
    r'"params":{"name":"list_conversations","arguments":{"query":"fox \ud83d"}}}'
)


def heads(token: str, session: str = "") -> dict[str, str]:
    known = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    known["Content-Type"] = "application/json"
    return {**known, "Mcp-Session-Id": session} if session else known


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, which must succeed; return its answer as data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    data: dict[str, Any] = result.structured_content
    return data


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool, which must refuse in one sentence; return the sentence."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    sentence = text_of(result)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def text_of(result: CallToolResult) -> str:
    return "\n".join(one.text for one in result.content if isinstance(one, TextContent))


def blob_of(contents: object) -> bytes:
    assert isinstance(contents, BlobResourceContents)
    return base64.b64decode(contents.blob)


async def test_a_wish_becomes_a_picture_with_preview_original_and_receipt(tmp_path: Path) -> None:
    steps: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        steps.append((progress, message))

    async with on_pipes(tmp_path, is_cold=True) as client:
        wish = {"wish": "Draw a red fox in the snow", "aspect_ratio": "3:2"}
        result = await client.call_tool("generate", wish, progress_callback=hear)
        assert not result.is_error
        answer = result.structured_content
        [picture] = answer["pictures"]
        assert (answer["state"], picture["handle"], picture["receipt"]["asked_aspect_ratio"]) == ("done", "#1", "3:2")
        assert answer["conversation_id"] in text_of(result)

        [preview] = [one for one in result.content if isinstance(one, ImageContent)]
        with Image.open(io.BytesIO(base64.b64decode(preview.data))) as small:
            assert max(small.size) == 768
        [link] = [one for one in result.content if isinstance(one, ResourceLink)]
        assert link.uri == picture["uri"]
        original = blob_of((await client.read_resource(link.uri)).contents[0])
        with Image.open(io.BytesIO(original)) as opened:
            assert opened.size == (picture["width"], picture["height"])
        assert len(original) == link.size
        [receipt] = (await client.read_resource(picture["receipt_uri"])).contents
        assert isinstance(receipt, TextResourceContents)
        assert json.loads(receipt.text)["user_text"] == wish["wish"]
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert listed == [picture["uri"], picture["receipt_uri"]]
    numbers = [number for number, _ in steps]
    assert numbers == sorted(set(numbers))
    assert any(message and "#1" in message for _, message in steps)


async def test_a_picture_of_ones_own_is_changed_in_a_box_and_nowhere_else(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio, Client(mcp_server(studio)) as client:
        box = {"left": 25, "top": 50, "width": 50, "height": 25}
        mine = base64.b64encode(png(400, 200, "red")).decode()
        first = await done(client, "masked_edit", picture=mine, box=box, wish="Fill it with blue")
        place, [edited] = first["conversation_id"], first["pictures"]
        assert edited["edit"]["changed_outside"] == 0
        assert edited["edit"]["outside"] == 400 * 200 - 200 * 50
        with Image.open(io.BytesIO(blob_of((await client.read_resource(edited["uri"])).contents[0]))) as opened:
            pixels = opened.convert("RGB")
            assert pixels.getpixel((99, 120)) == pixels.getpixel((200, 99)) == pixels.getpixel((0, 0)) == (255, 0, 0)
            assert pixels.getpixel((200, 125)) != (255, 0, 0)

        second = await done(client, "edit", conversation_id=place, handle=edited["handle"], wish="make it brighter")
        assert second["pictures"][0]["parents"][0] == edited["handle"]
        handles = [one["handle"] for one in (await done(client, "list_pictures", conversation_id=place))["pictures"]]
        assert handles == ["#1", edited["handle"], second["pictures"][0]["handle"]]
        seen = await done(client, "get_picture", conversation_id=place, handle="1", edge_px=512)
        assert (seen["picture"]["origin"], seen["picture"]["receipt"]) == ("uploaded", None)
        described = await done(client, "describe", conversation_id=place, handle="#1", question="Which colour is it?")
        assert (described["state"], described["pictures"]) == ("done", [])
        assert described["text"]


async def test_what_cannot_be_done_is_refused_in_a_sentence(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio, Client(mcp_server(studio)) as client:
        nulls = dict.fromkeys(("model", "confirm", "budget_usd", "aspect_ratio", "allow_search", "references"))
        drawn = await done(client, "generate", wish="A red fox", **nulls)
        assert drawn["state"] == "done", "null is the same as left out"
        assert "wish" in await refused(client, "generate")
        assert "extra" in (await refused(client, "generate", wish="A fox", colour="red")).lower()
        assert "one of the two" in await refused(client, "edit", wish="brighter")
        assert "base64" in await refused(client, "edit", wish="brighter", picture="?!")
        place = (await done(client, "new_conversation"))["conversation_id"]
        assert "#7" in await refused(client, "get_picture", conversation_id=place, handle="#7")
        await refused(client, "generate", wish="A fox", conversation_id="nowhere")
        await refused(client, "decide", conversation_id=place, turn_id="0", run=True)
        with pytest.raises(MCPError, match="no tool named"):
            await client.call_tool("paint_everything", {})
        for uri in (f"aivista://conversations/{place}/pictures/7", "aivista://../../etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_a_plan_waits_and_a_repeated_call_paints_nothing_more_even_after_a_restart(tmp_path: Path) -> None:
    async with on_pipes(tmp_path) as client:
        offered = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        reading = {name for name, one in offered.items() if one is not None and one.read_only_hint}
        assert reading == {"list_pictures", "get_picture", "list_conversations"}
        wish = {"wish": "Draw a lighthouse", "confirm": True, "request_id": "lighthouse-1"}
        planned = await done(client, "generate", **wish)
        assert planned["state"] == "needs_decision"
        assert planned["pictures"] == []
        assert f"turn_id={planned['turn_id']}" in planned["next"]
        place = {"conversation_id": planned["conversation_id"], "turn_id": planned["turn_id"]}
        edits = [{"call": planned["plans"][0]["call"], "aspect_ratio": "16:9"}]
        painted = await done(client, "decide", **place, run=True, edits=edits)
        assert [one["receipt"]["asked_aspect_ratio"] for one in painted["pictures"]] == ["16:9"]
        await refused(client, "decide", **place, run=True)
    async with on_pipes(tmp_path) as client:
        again = await done(client, "generate", **wish)
        assert again["conversation_id"] == planned["conversation_id"]
        assert [one["uri"] for one in again["pictures"]] == [one["uri"] for one in painted["pictures"]]
        [one] = (await done(client, "list_conversations", query="lighthouse"))["conversations"]
        assert (one["id"], one["picture_count"]) == (planned["conversation_id"], 1)


async def test_a_cap_and_a_picture_nobody_asked_for_wait_for_consent_or_are_dropped(tmp_path: Path) -> None:
    looked = calls(ToolCallPart(name="view_image", arguments={"handle": "#1"}))
    text = [calls(generate("a red fox")), looked, says("A plain red."), calls(generate("a blue cat"))]
    scene = Scene(Settings(home=tmp_path, cap_conversation_usd=0.03), text=text, pictures=[picture()])
    async with scene.studio() as studio, Client(mcp_server(studio)) as client:
        over = await client.call_tool("generate", {"wish": "A red fox"})
        waiting = over.structured_content
        assert waiting["state"] == "needs_decision"
        assert "your cap of $0.03 for this conversation" in text_of(over)
        place = waiting["conversation_id"]
        run = await done(client, "decide", conversation_id=place, turn_id=waiting["turn_id"], run=True)
        assert [one["handle"] for one in run["pictures"]] == ["#1"]
        paid = sum(asked.request is not None for asked in scene.provider.asked)

        look = {"conversation_id": place, "handle": "#1", "question": "Which colour is it?"}
        assert (await done(client, "describe", **look))["text"] == "A plain red."
        assert any("Which colour is it?" in str(one) for one in scene.provider.asked[-1].messages)
        dropped = await done(client, "describe", **look)
        assert "Nothing was painted" in dropped["text"]
        assert (dropped["state"], dropped["plans"]) == ("done", [])
        assert sum(asked.request is not None for asked in scene.provider.asked) == paid == 1


async def test_cancelling_a_call_stops_its_turn(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    # It takes every connection and answers none.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gemini = {"GEMINI_API_KEY": "AIza-operators-own-0001"}
        gemini["GOOGLE_GEMINI_BASE_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with on_pipes(tmp_path, "legacy", environment=gemini) as client:
            wish = {"wish": "A red fox", "request_id": "fox-1"}
            call = asyncio.create_task(client.call_tool("generate", wish, progress_callback=hear))
            async with asyncio.timeout(PATIENCE_S):
                await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            told = await client.call_tool("generate", wish)
            assert told.is_error
            assert told.structured_content["state"] == "stopped"


async def test_at_an_address_a_token_says_whose_things_they_are_and_foreign_pages_are_refused(tmp_path: Path) -> None:
    port = free_port()
    tokens = ["--api-token", f"anna:{ANNA}", "--api-token", f"ben:{BEN}"]
    with serving(tmp_path, "--http", f"127.0.0.1:{port}", before=tokens) as (process, errors):
        url = f"http://127.0.0.1:{port}/mcp"
        assert read_line(process, errors) == f"Aivista's MCP server is open at {url}"
        async with bringing(ANNA, url) as anna:
            made = await done(anna, "generate", wish="Draw a red fox")
            uri = made["pictures"][0]["uri"]
            assert blob_of((await anna.read_resource(uri)).contents[0])
        async with bringing(BEN, url, "legacy") as ben:
            await refused(ben, "list_pictures", conversation_id=made["conversation_id"])
            assert (await ben.list_resources()).resources == []
            with pytest.raises(MCPError):
                await ben.read_resource(uri)
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            nobody = await http.post(url, json=body)
            assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
            for foreign in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
                assert (await http.post(url, json=body, headers={**heads(ANNA), **foreign})).status_code == 403
            greeted = await http.post(url, content=HELLO, headers=heads(ANNA))
            hers = str(greeted.headers["mcp-session-id"])
            codes = [(await http.post(url, json=body, headers=heads(one, hers))).status_code for one in (ANNA, BEN)]
            assert codes == [200, 404]
            listed = await http.post(url, content=HALF_A_CHARACTER, headers=heads(ANNA, hers))
            assert (listed.status_code, "conversations" in listed.text) == (200, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        errors.seek(0)
        [line] = errors.read().splitlines()
        assert "credential does not match" in line


def test_half_a_character_is_no_obstacle_on_pipes(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, errors):
        assert process.stdin is not None
        for line, number in (HELLO, 1), (HALF_A_CHARACTER, 2):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            said = json.loads(read_line(process, errors))
            assert (said["id"], "result" in said) == (number, True)
        # It stays open as a studio does, and does by itself what one does.
        wait_until(lambda: list((tmp_path / "backups").glob("aivista-*.db")))


def test_the_commands_in_the_docs_are_there_and_an_open_address_without_a_token_is_refused(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp-server.md").read_text("utf-8")
    [config] = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    entry = json.loads(config)["mcpServers"]["aivista"]
    assert Path(sys.executable).with_name(entry["command"]).exists()
    [line] = re.findall(r"```sh\naivista (.*?)\n```", page)
    assert line.split()[0] == entry["args"][0] == "mcp"
    known = commands.done(*entry["args"], "--help")
    assert set(re.findall(r"--[a-z]+", line)) <= set(re.findall(r"--[a-z]+", known))
    for address, said in (("8790", "HOST:PORT"), (f"0.0.0.0:{free_port()}", "aivista token new")):
        assert said in commands.refused("mcp", "--home", str(tmp_path), "--http", address)
