"""What earlier versions kept is read as it was: homes, archives, and the recipes in pictures."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent import PictureReady, TurnDone, TurnState
from tests.adapters.recipes import recipe_in
from tests.adapters.records import faults_in
from tests.golden.conftest import Golden
from tests.golden.plain import Plain
from tests.support.api import served
from tests.support.scenes import picture
from tests.support.turns import decide

FOLDER = Path(__file__).parent
PICTURES = sorted(path.name for path in (FOLDER / "pictures").iterdir() if path.suffix != ".json")


@pytest.mark.parametrize("version", sorted(path.stem for path in (FOLDER / "homes").glob("*.zip")))
async def test_a_home_of_an_earlier_version_shows_what_it_held(version: str, golden: Golden, tmp_path: Path) -> None:
    with zipfile.ZipFile(FOLDER / "homes" / f"{version}.zip") as packed:
        packed.extractall(tmp_path)
    async with served(tmp_path) as api, api.client() as client:
        golden(f"homes/{version}.json", await described(client))
    assert faults_in(tmp_path) == ()


async def test_a_plan_that_rests_since_an_earlier_version_is_painted(tmp_path: Path) -> None:
    with zipfile.ZipFile(FOLDER / "homes" / "0008.zip") as packed:
        packed.extractall(tmp_path)
    async with served(tmp_path, text=[], pictures=[picture()]) as api:
        turns = [
            (one.id, turn)
            for one in await api.studio.conversations.list()
            for turn in (await api.studio.conversations.get(one.id)).turns
            if turn.state is TurnState.WAITING
        ]
        [(conversation, turn)] = turns
        events = await decide(api.studio, conversation, turn.id)
    assert [type(one) for one in events if isinstance(one, PictureReady | TurnDone)] == [PictureReady, TurnDone]


@pytest.mark.parametrize("name", sorted(path.stem for path in (FOLDER / "archives").glob("*.zip")))
async def test_an_archive_of_an_earlier_version_brings_what_it_held(name: str, golden: Golden, tmp_path: Path) -> None:
    async with served(tmp_path) as api, api.client() as client:
        await api.studio.archive.import_archive(FOLDER / "archives" / f"{name}.zip", "local")
        golden(f"archives/{name}.json", await described(client))
    assert faults_in(tmp_path) == ()


@pytest.mark.parametrize("name", PICTURES)
def test_the_recipe_in_a_picture_of_an_earlier_version_is_read(name: str, golden: Golden) -> None:
    golden(f"pictures/{name}.json", Plain()(recipe_in((FOLDER / "pictures" / name).read_bytes())))


async def described(client: httpx.AsyncClient) -> Any:
    """Return all that the HTTP API tells of a home; of each picture's bytes the digest."""
    plain = Plain()

    async def got(path: str) -> Any:
        answer = await client.get(f"/api/v1{path}")
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    told: dict[str, Any] = {"conversations": await got("/conversations"), "trash": await got("/trash")}
    for number, row in enumerate(told["conversations"]["conversations"], 1):
        path = f"/conversations/{row['id']}"
        pictures = await got(f"{path}/pictures")
        told[f"conversation {number}"] = {
            "conversation": await got(path),
            "pictures": pictures,
            "files": await got(f"{path}/files"),
            "digests": {one["handle"]: await digest_of(client, one["url"]) for one in pictures["pictures"]},
        }
    told["gallery"] = await got("/gallery")
    told["own styles"] = [one for one in (await got("/styles"))["styles"] if one.get("is_own")]
    return plain(told)


async def digest_of(client: httpx.AsyncClient, url: str) -> str:
    answer = await client.get(url)
    return hashlib.sha256(answer.content).hexdigest()[:12] if answer.status_code == 200 else f"{answer.status_code}"
