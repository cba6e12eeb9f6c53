"""Records that break while a studio runs: every address says so in a sentence, and all work once they are back."""

from __future__ import annotations

import re
from pathlib import Path

import httpx

from tests.adapters.models import calls, says
from tests.support.api import begun, served
from tests.support.broken_records import broken_records
from tests.support.scenes import generate, picture

# What these addresses take.
BODIES: dict[str, dict[str, object]] = {
    "turns": {"text": "a fox"},
    "decision": {"run": True},
    "chat": {"messages": [{"role": "user", "content": "a fox"}]},
    "generations": {"prompt": "a fox"},
}
SENTENCE = "The studio's records cannot be read or written"


async def addresses(client: httpx.AsyncClient, conversation: str) -> list[tuple[str, str]]:
    """Return every method and address that the API describes, with the conversation's id and some names in place."""
    described = (await client.get("/api/v1/openapi.json")).json()["paths"]
    values = {"conversation_id": conversation, "handle": "1", "name": "a.txt", "turn_id": "0" * 32}
    return [
        (method.upper(), re.sub(r"\{(\w+)[^}]*\}", lambda found: values.get(found[1], "1"), path))
        for path, methods in described.items()
        for method in methods
    ]


async def test_every_address_answers_with_a_sentence_and_works_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    script = [calls(generate()), says("Well.")]
    async with served(home, text=script, pictures=[picture()]) as studio, studio.client() as client:
        conversation = await begun(client)
        turns = f"/api/v1/conversations/{conversation}/turns"
        assert '"state":"done"' in (await client.post(turns, json={"text": "a red fox"})).text
        asked = await addresses(client, conversation)
        with broken_records(home):
            told = {
                one: await client.request(*one, json=BODIES.get(one[1].rpartition("/")[2], {"title": "Foxes"}))
                for one in asked
            }
        assert '"state":"done"' in (await client.post(turns, json={"text": "how are you?"})).text
        kept = (await client.get(f"/api/v1/conversations/{conversation}")).json()
    assert [turn["text"] for turn in kept["turns"]] == ["a red fox", "how are you?"]
    failed = {one for one, answer in told.items() if answer.status_code >= 500}
    assert {one: told[one].text for one in failed if SENTENCE not in told[one].text} == {}
    # What needs no records answers as ever.
    others = {address.removeprefix("/api").split("/")[2] for _, address in set(told) - failed}
    assert others <= {"styles", "uploads", "models", "images"}
