"""Caps and presets: they survive a restart, belong to their owner alone, and never keep the studio from starting."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent import ErrorCode, RequestRefused, Settings, StorageFailure, Studio, TurnSettings

POSTER = TurnSettings(image_model="pro", aspect_ratio="3:4", resolution="4K", number_of_images=2)
QUICK = TurnSettings(number_of_images=4, review="off")
# Owners that are remembered, and presets that a menu can show.
MOST, MOST_PRESETS = 2000, 40
COUNT = 20


def of(home: Path, **settings: Any) -> Any:
    """Return the preferences of a studio that was just started."""
    return Studio(Settings(home=home, **settings)).preferences


async def choose(home: Path, owner: str, day_usd: float | None, **settings: Any) -> None:
    store = of(home, **settings)
    chosen = (await store.of(owner)).model_copy(update={"cap_day_usd": day_usd, "cap_conversation_usd": None})
    await store.keep(owner, chosen)


async def caps(home: Path, *owners: str, **settings: Any) -> list[float | None]:
    store = of(home, **settings)
    return [(await store.of(owner)).cap_day_usd for owner in owners]


async def names(home: Path, owner: str = "ann") -> list[str]:
    return [one.name for one in await of(home).presets.of(owner)]


def modes(home: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in home.glob("*.json")}


async def test_the_operators_caps_count_until_somebody_chooses_for_good_and_presets_stay_beside_it(
    tmp_path: Path,
) -> None:
    operator = {"cap_day_usd": 5.0}
    await of(tmp_path).presets.save("ann", "  Poster \n print ", POSTER)
    await choose(tmp_path, "ann", None, **operator)
    await choose(tmp_path, "cid", 2.5, **operator)
    assert await caps(tmp_path, "ann", "bob", "cid", **operator) == [None, 5.0, 2.5]
    [kept] = await of(tmp_path).presets.of("ann")
    assert (kept.name, kept.settings, await names(tmp_path, "bob")) == ("Poster print", POSTER, [])
    applied = of(tmp_path).applied
    assert await applied(TurnSettings(), "cid") == TurnSettings(cap_day_usd=2.5)
    assert await applied(TurnSettings(cap_day_usd=9.0), "cid") == TurnSettings(cap_day_usd=9.0)
    await of(tmp_path).keep_defaults("ann", QUICK)
    assert [await of(tmp_path).defaults(one) for one in ("ann", "bob")] == [QUICK, None]
    await of(tmp_path).keep_defaults("ann", None)
    assert await of(tmp_path).defaults("ann") is None
    assert modes(tmp_path) == dict.fromkeys(("defaults.json", "preferences.json", "presets.json"), 0o600)


async def test_a_cap_that_is_no_amount_is_refused_and_a_preset_that_cannot_be_read_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    for kind in (type(await of(tmp_path).of("ann")), TurnSettings):
        for name in ("cap_day_usd", "cap_conversation_usd"):
            for cap in (-0.01, float("nan"), float("inf"), float("-inf"), "much"):
                with pytest.raises(ValidationError):
                    kind.model_validate({name: cap})
    await of(tmp_path).presets.save("ann", "Poster", POSTER)
    kept = json.loads((tmp_path / "presets.json").read_text())
    kept["ann"].append({"id": "b", "name": "Of a later version", "settings": {"image_model": "holographic"}})
    kept["bob"] = ["nonsense", None]
    (tmp_path / "presets.json").write_text(json.dumps(kept))
    assert (await names(tmp_path), await names(tmp_path, "bob")) == (["Poster"], [])


@pytest.mark.parametrize(
    ("owners", "forgotten"),
    [
        ([f"v{n}" for n in range(MOST)], ["v0"]),
        # Whoever has an account, and the operator, outlast all visitors.
        (["local", "hf-ann", *(f"visitor-{n}" for n in range(MOST - 2))], ["visitor-0"]),
        (["local", *(f"hf-{n}" for n in range(MOST - 1))], ["hf-0"]),
    ],
)
async def test_the_file_does_not_grow_for_ever(tmp_path: Path, owners: list[str], forgotten: list[str]) -> None:
    (tmp_path / "preferences.json").write_text(json.dumps({name: {"cap_day_usd": 1.0} for name in owners}))
    await choose(tmp_path, "visitor-new", 2.5)
    kept = dict(zip(owners, await caps(tmp_path, *owners), strict=True))
    assert [name for name, cap in kept.items() if cap is None] == forgotten
    assert await caps(tmp_path, "visitor-new") == [2.5]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ann": 1}', '{"ann": {"cap_day_usd": -1}}', "\x00", "\ud7ff" * 3])
async def test_an_unreadable_file_counts_as_empty_and_is_put_aside(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "preferences.json").write_text(text)
    assert await caps(tmp_path, "ann", cap_day_usd=3.0) == [3.0]
    assert "preferences.json" in caplog.text
    await choose(tmp_path, "ann", 2.5)
    assert await caps(tmp_path, "ann") == [2.5]
    assert (tmp_path / "preferences.json.bad").read_text() == text


async def test_a_file_that_cannot_be_read_for_a_moment_is_not_written_over(tmp_path: Path) -> None:
    path, aside = tmp_path / "preferences.json", tmp_path / "aside"
    await choose(tmp_path, "local", 2.5)
    path.rename(aside)
    # It loops: nobody can open it, whoever they are, and a new file could be put in its place.
    path.symlink_to(path)
    assert await caps(tmp_path, "local") == [None]
    with pytest.raises(StorageFailure) as failed:
        await choose(tmp_path, "ann", None)
    assert failed.value.code is ErrorCode.STORAGE_BROKEN
    aside.replace(path)
    assert await caps(tmp_path, "local") == [2.5]


async def test_a_name_stands_for_one_preset_and_there_are_not_more_than_a_menu_can_show(tmp_path: Path) -> None:
    presets = of(tmp_path).presets
    for name in ("", "   ", "x" * 61, "a\x00b", "a\u202eb"):
        with pytest.raises(RequestRefused) as refused:
            await presets.save("ann", name, POSTER)
        assert refused.value.code is ErrorCode.PRESET_NAME_INVALID
    for number in range(MOST_PRESETS):
        last = await presets.save("ann", f"No {number}", QUICK)
    with pytest.raises(RequestRefused) as refused:
        await presets.save("ann", "One more", QUICK)
    assert refused.value.code is ErrorCode.TOO_MANY_PRESETS
    again = await presets.save("ann", last.name.upper(), POSTER)
    assert (again.id, again.settings) == (last.id, POSTER), "one that is there can still be changed"
    gone = await presets.delete("ann", last.id)
    await presets.restore("ann", gone)
    with pytest.raises(RequestRefused):
        await presets.restore("ann", gone)
    assert len(await names(tmp_path)) == MOST_PRESETS
    await presets.save("bob", "Another's", QUICK)


async def test_where_nothing_can_be_written_the_operator_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    for attempt in (choose(tmp_path / "home", "ann", 1.0), of(tmp_path / "home").presets.save("ann", "A", POSTER)):
        with pytest.raises(StorageFailure) as failed:
            await attempt
        assert failed.value.code is ErrorCode.STORAGE_BROKEN


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
    command = [sys.executable, "-c", _WRITING, str(home)]
    writers = [
        subprocess.Popen([*command, name, str(COUNT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=90)[0] for writer in writers] == ["", ""]
    assert [writer.returncode for writer in writers] == [0, 0]


@pytest.mark.process
async def test_two_processes_keep_each_others_presets_and_styles(tmp_path: Path) -> None:
    here = Studio(Settings(home=tmp_path))
    await here.preferences.presets.save("bob", "first", POSTER)
    await asyncio.to_thread(run_both, tmp_path)
    wanted = {f"{name} {at}" for name in ("left", "right") for at in range(COUNT)}
    assert {one.name for one in await here.preferences.presets.of("ann")} == wanted
    assert {one.title for one in await here.styles.all("ann") if one.is_own} == wanted
    assert await names(tmp_path, "bob") == ["first"]
    await here.styles.aclose()
