"""Presets are their owner's alone, survive a restart, and a name stands for one of them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.settings import Settings, TurnSettings
from agent.storage.preferences import Preferences, PreferenceStore
from agent.storage.presets import MAX_NAME_CHARACTERS, MOST_PRESETS, PresetStore

POSTER = TurnSettings(image_model="pro", aspect_ratio="3:4", resolution="4K", number_of_images=2)
QUICK = TurnSettings(number_of_images=4, review="off")


async def names(store: PresetStore, owner: str = "ann") -> list[str]:
    return [one.name for one in await store.of(owner)]


async def test_a_preset_survives_a_restart_and_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    store = PreferenceStore(Settings(home=tmp_path))
    saved = await store.presets.save("ann", "  Poster \n print ", POSTER)
    assert (saved.name, saved.settings) == ("Poster print", POSTER)
    again = PresetStore(tmp_path)
    assert await again.of("ann") == (saved,)
    assert await again.of("bob") == ()
    with pytest.raises(RequestRefused) as refused:
        await again.find("bob", saved.id)
    assert refused.value.code is ErrorCode.PRESET_NOT_FOUND
    assert os.stat(tmp_path / "presets.json").st_mode & 0o777 == 0o600


async def test_presets_and_preferences_leave_each_other_alone(tmp_path: Path) -> None:
    store = PreferenceStore(Settings(home=tmp_path))
    await store.presets.save("ann", "Poster", POSTER)
    await store.keep("ann", Preferences(cap_day_usd=2.0))
    assert await names(store.presets) == ["Poster"]
    assert await store.of("ann") == Preferences(cap_day_usd=2.0)


async def test_saving_under_a_name_that_is_there_changes_that_preset_in_its_place(tmp_path: Path) -> None:
    store = PresetStore(tmp_path)
    first = await store.save("ann", "Poster", POSTER)
    await store.save("ann", "Quick", QUICK)
    changed = await store.save("ann", "poster", QUICK)
    assert changed.id == first.id
    assert [(one.name, one.settings) for one in await store.of("ann")] == [("poster", QUICK), ("Quick", QUICK)]


async def test_a_preset_is_renamed_but_not_to_the_name_of_another(tmp_path: Path) -> None:
    store = PresetStore(tmp_path)
    poster, _ = await store.save("ann", "Poster", POSTER), await store.save("ann", "Quick", QUICK)
    assert (await store.rename("ann", poster.id, "POSTER")).name == "POSTER"
    with pytest.raises(RequestRefused) as refused:
        await store.rename("ann", poster.id, "quick")
    assert refused.value.code is ErrorCode.PRESET_NAME_TAKEN
    assert await names(store) == ["POSTER", "Quick"]


async def test_a_deleted_preset_comes_back_once(tmp_path: Path) -> None:
    store = PresetStore(tmp_path)
    poster = await store.save("ann", "Poster", POSTER)
    gone = await store.delete("ann", poster.id)
    assert gone == poster
    assert await store.of("ann") == ()
    await store.restore("ann", gone)
    assert await store.of("ann") == (poster,)
    with pytest.raises(RequestRefused):
        await store.restore("ann", gone)
    with pytest.raises(RequestRefused):
        await store.delete("ann", "never-was")


@pytest.mark.parametrize("name", ["", "   ", "x" * (MAX_NAME_CHARACTERS + 1), "a\x00b", "a\u202eb"])
async def test_a_name_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    store = PresetStore(tmp_path)
    with pytest.raises(RequestRefused) as refused:
        await store.save("ann", name, POSTER)
    assert refused.value.code is ErrorCode.PRESET_NAME_INVALID
    assert not (tmp_path / "presets.json").exists()


async def test_there_are_not_more_presets_than_a_menu_can_show(tmp_path: Path) -> None:
    store = PresetStore(tmp_path)
    for number in range(MOST_PRESETS):
        last = await store.save("ann", f"No {number}", QUICK)
    with pytest.raises(RequestRefused) as refused:
        await store.save("ann", "One more", QUICK)
    assert refused.value.code is ErrorCode.TOO_MANY_PRESETS
    assert (await store.save("ann", last.name, POSTER)).settings == POSTER, "one that is there can still be changed"
    await store.save("bob", "Another's", QUICK)


async def test_two_tabs_that_save_at_once_are_both_kept(tmp_path: Path) -> None:
    store, other = PresetStore(tmp_path), PresetStore(tmp_path)
    await asyncio.gather(*(store.save("ann", f"No {number}", QUICK) for number in range(6)))
    await other.save("ann", "From elsewhere", POSTER)
    await store.save("ann", "Last", QUICK)
    assert len(await store.of("ann")) == 8


async def test_a_preset_that_cannot_be_read_takes_no_other_with_it(tmp_path: Path) -> None:
    store = PresetStore(tmp_path)
    await store.save("ann", "Poster", POSTER)
    kept = json.loads((tmp_path / "presets.json").read_text())
    kept["ann"].append({"id": "b", "name": "Of a later version", "settings": {"image_model": "holographic"}})
    kept["bob"] = ["nonsense", None]
    (tmp_path / "presets.json").write_text(json.dumps(kept))
    again = PresetStore(tmp_path)
    assert await names(again) == ["Poster"]
    assert await again.of("bob") == ()


async def test_where_nothing_can_be_written_the_operator_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(StorageFailure):
        await PresetStore(tmp_path / "home").save("ann", "Poster", POSTER)
