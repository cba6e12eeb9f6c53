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
    with PageProcess(home=tmp_path, environment=environment) as page:
        client = gradio_client.Client(page.url, verbose=False)
        job = client.submit(message={"text": "a long story", "files": []}, api_name="/chat")
        first = next(answer for answer in job if answer["status"])
        assert first["done"] is False
        assert page.end(signal.SIGINT, patience_s=6) == 0
    gemini.control(release=True)
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = await studio.conversation(first["conversation"])
    assert [turn.text for turn in conversation.turns] == ["a long story"]
