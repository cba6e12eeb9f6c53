"""Caps and presets: they survive a restart, belong to their owner alone, and never keep the studio from starting."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent import ErrorCode, Preferences, Settings, StorageFailure, Studio, TurnSettings
from tests.support.cases import each_case
from tests.support.refusals import refusal

POSTER = TurnSettings(image_model="pro", aspect_ratio="3:4", resolution="4K", number_of_images=2)
QUICK = TurnSettings(number_of_images=4, review="off")
# Owners that are remembered, and presets that a menu can show.
MOST, MOST_PRESETS = 2000, 40
COUNT = 20


def of(home: Path, **settings: Any) -> Any:
    """Return the preferences of a studio that was just started."""
    return Studio(Settings(home=home, **settings)).preferences


async def choose(home: Path, owner: str, day_usd: float | None) -> None:
    chosen = (await of(home).of(owner)).model_copy(update={"cap_day_usd": day_usd})
    await of(home).keep(owner, chosen)


async def caps(home: Path, *owners: str, **settings: Any) -> list[float | None]:
    return [(await of(home, **settings).of(owner)).cap_day_usd for owner in owners]


def modes(home: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in home.glob("*.json")}


async def test_the_operators_caps_count_until_somebody_chooses_for_good_and_other_choices_stay_beside_it(
    tmp_path: Path,
) -> None:
    await of(tmp_path).presets.save("ann", "  Poster \n print ", POSTER)
    await of(tmp_path).keep_defaults("ann", QUICK)
    await choose(tmp_path, "ann", None)
    await choose(tmp_path, "cid", 2.5)
    assert await caps(tmp_path, "ann", "bob", "cid", cap_day_usd=5.0) == [None, 5.0, 2.5]
    for cap in (None, 9.0):
        told = await of(tmp_path).applied(TurnSettings(cap_day_usd=cap), "cid")
        assert told == TurnSettings(cap_day_usd=cap or 2.5)
    for owner, names, defaults in (("ann", [("Poster print", POSTER)], QUICK), ("bob", [], None)):
        assert [(one.name, one.settings) for one in await of(tmp_path).presets.of(owner)] == names
        assert await of(tmp_path).defaults(owner) == defaults
    assert modes(tmp_path) == dict.fromkeys(("defaults.json", "preferences.json", "presets.json"), 0o600)


async def test_a_cap_that_is_no_amount_is_refused_and_a_preset_that_cannot_be_read_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    for kind, name in product((Preferences, TurnSettings), ("cap_day_usd", "cap_conversation_usd")):
        for cap in (-0.01, float("nan"), float("inf"), float("-inf"), "much"):
            with pytest.raises(ValidationError):
                kind.model_validate({name: cap})
    presets = of(tmp_path).presets
    for number in range(MOST_PRESETS):
        last = await presets.save("ann", f"No {number}", QUICK)
    assert await refusal(presets.save("ann", "One more", QUICK)) is ErrorCode.TOO_MANY_PRESETS
    assert (await presets.save("ann", last.name.upper(), POSTER)).id == last.id, "one that is there can be changed"
    for name in ("", "x" * 61, "a\x00b", "a\u202eb"):
        assert await refusal(presets.save("bob", name, POSTER)) is ErrorCode.PRESET_NAME_INVALID
    kept = json.loads((tmp_path / "presets.json").read_text())
    kept["ann"].append({"id": "b", "name": "Of a later version", "settings": {"image_model": "holographic"}})
    (tmp_path / "presets.json").write_text(json.dumps(kept | {"bob": ["nonsense", None]}))
    assert [len(await of(tmp_path).presets.of(owner)) for owner in ("ann", "bob")] == [MOST_PRESETS, 0]


@each_case(
    ("owners", "forgotten"),
    [
        ([f"v{n}" for n in range(MOST)], "v0"),
        # Whoever has an account, and the operator, outlast all visitors.
        (["local", "hf-ann", *(f"visitor-{n}" for n in range(MOST - 2))], "visitor-0"),
        (["local", *(f"hf-{n}" for n in range(MOST - 1))], "hf-0"),
    ],
)
async def test_the_file_does_not_grow_for_ever(tmp_path: Path, owners: list[str], forgotten: str) -> None:
    path = tmp_path / "preferences.json"
    path.write_text(json.dumps({name: {"cap_day_usd": 1.0} for name in owners}))
    await choose(tmp_path, "visitor-new", 2.5)
    assert {*owners, "visitor-new"} - json.loads(path.read_text()).keys() == {forgotten}
    assert await caps(tmp_path, owners[0], forgotten, "visitor-new") == [None if forgotten == "v0" else 1.0, None, 2.5]


@each_case("text", ["", "{", "[]", '{"ann": 1}', '{"ann": {"cap_day_usd": -1}}', "\x00", "\ud7ff" * 3])
async def test_an_unreadable_file_counts_as_empty_and_is_put_aside(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    (tmp_path / "preferences.json").write_text(text)
    assert await caps(tmp_path, "ann", cap_day_usd=3.0) == [3.0]
    assert "preferences.json" in caplog.text
    await choose(tmp_path, "ann", 2.5)
    assert await caps(tmp_path, "ann") == [2.5]
    assert (tmp_path / "preferences.json.bad").read_text() == text


async def test_a_file_that_cannot_be_read_for_a_moment_is_not_written_over_and_the_operator_is_told(
    tmp_path: Path,
) -> None:
    path, aside = tmp_path / "preferences.json", tmp_path / "aside"
    await choose(tmp_path, "local", 2.5)
    path.rename(aside)
    # It loops: nobody can open it, whoever they are, and a new file could be put in its place.
    path.symlink_to(path)
    assert await caps(tmp_path, "local") == [None]
    (tmp_path / "home").write_text("a file where the folder should be")
    nowhere = of(tmp_path / "home").presets.save("ann", "A", POSTER)
    for attempt in (choose(tmp_path, "ann", None), choose(tmp_path / "home", "ann", 1.0), nowhere):
        assert await refusal(attempt, StorageFailure) is ErrorCode.STORAGE_BROKEN
    aside.replace(path)
    assert await caps(tmp_path, "local") == [2.5]


_WRITING = """
import asyncio, sys
from pathlib import Path
from agent import Settings, Studio, TurnSettings

async def main(home, name, count):
    studio = Studio(Settings(home=home))
    print("ready", flush=True)
    sys.stdin.readline()
    for at in range(count):
        await studio.preferences.presets.save("ann", f"{name} {at}", TurnSettings())
        await studio.styles.add({"name": {"en": f"{name} {at}"}, "phrases": ["soft light"]}, "ann")
    await studio.styles.aclose()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


def run_both(home: Path) -> None:
    """Let two processes write at once, to their ends."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", _WRITING, str(home)]
    writers: list[Any] = [subprocess.Popen([*command, name, str(COUNT)], **pipes) for name in ("left", "right")]
    assert [writer.stdout.readline() for writer in writers] == ["ready\n"] * 2
    assert [(writer.communicate("go\n", timeout=90)[0], writer.returncode) for writer in writers] == [("", 0)] * 2


@pytest.mark.process
async def test_two_processes_keep_each_others_presets_and_styles(tmp_path: Path) -> None:
    here = Studio(Settings(home=tmp_path))
    await here.preferences.presets.save("bob", "first", POSTER)
    await asyncio.to_thread(run_both, tmp_path)
    wanted = {f"{name} {at}" for name in ("left", "right") for at in range(COUNT)}
    assert {one.name for one in await here.preferences.presets.of("ann")} == wanted
    assert {one.title for one in await here.styles.all("ann") if one.is_own} == wanted
    assert [one.name for one in await of(tmp_path).presets.of("bob")] == ["first"]
    await here.styles.aclose()
