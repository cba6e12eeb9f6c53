"""Conversations drawn by a studio without a page, in the home of one that has a page."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agent import Settings, Studio, TurnRequest
from tests.page.process import Wish


async def _drawn(home: Path, wishes: Sequence[Wish]) -> str:
    catalogue = os.environ.get("AIVISTA_CATALOGUE")
    settings = Settings(home=home, provider="sketch", catalogue_file=Path(catalogue) if catalogue else None)
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        for wish in wishes:
            words, editing = (wish, None) if isinstance(wish, str) else wish
            async for _ in studio.run_turn(conversation.id, TurnRequest(text=words, editing=editing)):
                pass
        return conversation.id


def main() -> None:
    """Take a home and a list of wishes; draw the wishes and print the id of the new conversation."""
    print(asyncio.run(_drawn(Path(sys.argv[1]), json.loads(sys.argv[2]))))
