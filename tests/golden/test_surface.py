"""The public surface: what programs and people call the program by. The Python API and the variables have pages of
their own that are made from the code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from agent import ErrorCode, Settings, Studio, error_sentences
from tests.adapters.webui import mcp_server
from tests.golden.conftest import Golden
from tests.page import PageProcess, run_command

COMMANDS = ("", "gc", "check", "backup", "restore", "token", "mcp", "space", "space build", "space check", "space push")


# Each Python lays out its help in its own way.
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="recorded with Python 3.11")
def test_the_command_and_its_flags_are_on_record(golden: Golden) -> None:
    told = []
    for command in COMMANDS:
        words = [*command.split(), "--help"]
        answer = run_command(*words, COLUMNS="100")
        assert (answer.returncode, answer.stderr) == (0, "")
        told.append(f"$ aivista {' '.join(words)}\n{answer.stdout}")
    golden("surface/help.txt", "\n".join(told))


def test_the_http_api_and_what_gradio_calls_chat_are_on_record(golden: Golden, tmp_path: Path) -> None:
    with PageProcess(home=tmp_path) as page, httpx.Client(base_url=page.url) as client:
        golden("surface/openapi.json", client.get("/api/v1/openapi.json").json())
        endpoints = client.get("/gradio_api/info").json()["named_endpoints"]
    for one in endpoints.values():
        # They name the port.
        one.pop("code_snippets", None)
    golden("surface/chat.json", endpoints)


async def test_the_mcp_server_offers_what_is_on_record(golden: Golden, tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio, Client(mcp_server(studio)) as client:
        tools = [tool.model_dump(mode="json", exclude_none=True) for tool in (await client.list_tools()).tools]
        places = (await client.list_resource_templates()).model_dump(mode="json", exclude_none=True)
    golden("surface/mcp.json", {"tools": tools, "resources": places})


def test_every_failure_has_the_code_the_actor_and_the_charge_that_are_on_record(golden: Golden) -> None:
    sentences = {language: error_sentences(language) for language in ("en", "zh-CN")}
    told: dict[str, Any] = {
        code.value: {"actor": code.actor.value, "can_retry": code.can_retry, "charged": code.charge.value}
        | {language: said[code.value] for language, said in sentences.items()}
        for code in ErrorCode
    }
    golden("surface/errors.json", told)
