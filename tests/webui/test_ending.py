"""Ctrl+C in the middle of a turn: the end is quick and the turn is on record."""

from __future__ import annotations

import signal
from importlib import import_module
from pathlib import Path
from typing import Any

from agent.settings import Settings
from agent.studio import Studio
from tests.page import PageProcess
from tests.wire_server import GeminiProcess

# The package brings no types.
gradio_client: Any = import_module("gradio_client")


async def test_a_turn_at_work_is_on_record_after_the_end(gemini: GeminiProcess, tmp_path: Path) -> None:
    gemini.control(
        clear=True, on_text=[{"kind": "Hold", "after_chunks": 2, "answer": {"kind": "Text", "text": "w " * 9}}]
    )
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    # The rest of the answer never comes, and the studio would listen for it longer than the test waits.
    environment |= {f"AIVISTA_{limit}_S": "600" for limit in ("TEXT_TIMEOUT", "TEXT_DEADLINE", "PLANNER_TIMEOUT")}
    with PageProcess(home=tmp_path, environment=environment) as page:
        client = gradio_client.Client(page.url, verbose=False)
        job = client.submit(message={"text": "a long story", "files": []}, api_name="/chat")
        first = next(answer for answer in job if answer["status"])
        assert first["done"] is False
        assert page.end(signal.SIGINT) == 0
    gemini.control(release=True)
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = await studio.conversation(first["conversation"])
    assert [turn.text for turn in conversation.turns] == ["a long story"]
