"""Turns that rest: what the person decides or has done again, and what a second reader finds on disk meanwhile."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent import Conversation, Decision, PlanEdit, Studio, Turn, TurnEvent, TurnRequest, TurnStarted, TurnState
from tests.support import waiting
from tests.wire_server import GeminiServer
from tests.wire_server.models import Kind

until = waiting.until
AT_WORK = frozenset({TurnState.RUNNING, TurnState.INTERRUPTED})


async def send(studio: Studio, conversation_id: str, request: TurnRequest, owner: str = "local") -> list[TurnEvent]:
    """Run a turn to its end or rest and return its events."""
    return [event async for event in studio.run_turn(conversation_id, request, owner=owner)]


async def decide(
    studio: Studio, conversation_id: str, turn_id: str, *edits: PlanEdit, run: bool = True, owner: str = "local"
) -> list[TurnEvent]:
    """Decide about the plan of a turn and return the events."""
    decision = Decision(run=run, edits=edits)
    return [event async for event in studio.decide(conversation_id, turn_id, decision, owner=owner)]


async def retry(studio: Studio, conversation_id: str, turn_id: str) -> list[TurnEvent]:
    """Have a turn go on and return the events."""
    return [event async for event in studio.retry(conversation_id, turn_id)]


async def newest(studio: Studio, conversation_id: str) -> Turn:
    """Return the newest turn on record."""
    return (await studio.conversations.get(conversation_id)).turns[-1]


async def kept_when(studio: Studio, conversation_id: str, is_so: Callable[[Conversation], bool]) -> Conversation:
    """Return the conversation on record once the claim holds of it."""

    async def kept() -> Conversation | None:
        conversation = await studio.conversations.get(conversation_id)
        return conversation if is_so(conversation) else None

    return await waiting.until(kept)


async def at_rest(studio: Studio, conversation_id: str) -> Conversation:
    """Return the conversation once nothing of it is at work, nor was left behind."""
    return await kept_when(
        studio,
        conversation_id,
        lambda kept: kept.turns[-1].state not in AT_WORK and not studio.turns.is_running(conversation_id),
    )


def started(events: list[TurnEvent]) -> str:
    """Return the id of the turn that the events tell of."""
    return next(event.turn_id for event in events if isinstance(event, TurnStarted))


def rows(path: Path, statement: str) -> list[dict[str, Any]]:
    """Return what another connection reads of a database; nothing when there is none yet."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(statement)]


def in_database(home: Path, statement: str, *values: object) -> None:
    """Change the records of a home behind its back."""
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        database.execute(statement, values)


def calls_on_disk(home: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the journal by the calls' names, the oldest first."""
    return {row["name"]: row for row in rows(home / "aivista.db", "SELECT * FROM calls ORDER BY created_at")}


def asked(server: GeminiServer, kind: Kind) -> int:
    """Return how many requests a kind of model has got."""
    return sum(request.kind is kind for request in server.requests)
