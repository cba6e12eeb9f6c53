"""What a person chose for good survives a restart, belongs to them alone, and never keeps the studio from starting."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.errors import ErrorCode, StorageFailure
from agent.settings import Settings, TurnSettings
from agent.storage import preferences
from agent.storage.preferences import Preferences, PreferenceStore

CHOSEN = Preferences(cap_day_usd=2.5, cap_conversation_usd=0.0)


async def test_what_was_chosen_survives_a_restart(tmp_path: Path) -> None:
    await PreferenceStore(Settings(home=tmp_path)).keep("ann", CHOSEN)
    again = PreferenceStore(Settings(home=tmp_path))
    assert await again.of("ann") == CHOSEN
    assert await again.of("bob") == Preferences()
    assert os.stat(tmp_path / "preferences.json").st_mode & 0o777 == 0o600
    assert set(os.listdir(tmp_path)) == {"preferences.json", ".preferences.json.lock"}


async def test_the_operators_caps_count_until_somebody_chooses(tmp_path: Path) -> None:
    store = PreferenceStore(Settings(home=tmp_path, cap_day_usd=5.0))
    assert await store.of("ann") == Preferences(cap_day_usd=5.0)
    await store.keep("ann", Preferences())
    assert await store.of("ann") == Preferences(), "no cap is a choice, too"
    assert await store.of("bob") == Preferences(cap_day_usd=5.0)


async def test_a_turn_is_run_under_the_caps_it_names_or_else_its_owners(tmp_path: Path) -> None:
    store = PreferenceStore(Settings(home=tmp_path))
    plain = TurnSettings(image_model="pro")
    assert await store.applied(plain, "ann") is plain
    await store.keep("ann", CHOSEN)
    both = {"cap_day_usd": 2.5, "cap_conversation_usd": 0.0}
    assert await store.applied(plain, "ann") == plain.model_copy(update=both)
    named = TurnSettings(cap_day_usd=9.0)
    assert await store.applied(named, "ann") == TurnSettings(cap_day_usd=9.0, cap_conversation_usd=0.0)


async def test_two_who_choose_at_once_are_both_kept(tmp_path: Path) -> None:
    store, other = PreferenceStore(Settings(home=tmp_path)), PreferenceStore(Settings(home=tmp_path))
    await asyncio.gather(*(store.keep(f"visitor-{n}", Preferences(cap_day_usd=n)) for n in range(8)))
    await other.keep("ann", CHOSEN)
    kept = json.loads((tmp_path / "preferences.json").read_text())
    assert kept["visitor-7"]["cap_day_usd"] == 7
    assert len(kept) == 9


async def test_the_file_does_not_grow_for_ever(tmp_path: Path) -> None:
    most = preferences._MOST_OWNERS
    many = {f"v{n}": {"cap_day_usd": 1.0} for n in range(most)}
    (tmp_path / "preferences.json").write_text(json.dumps(many))
    store = PreferenceStore(Settings(home=tmp_path))
    await store.keep("ann", CHOSEN)
    assert await store.of("ann") == CHOSEN
    assert await store.of("v0") == Preferences()
    assert await store.of(f"v{most - 1}") == Preferences(cap_day_usd=1.0)


async def test_no_number_of_visitors_takes_away_what_the_operator_or_somebody_with_an_account_chose(
    tmp_path: Path,
) -> None:
    most = preferences._MOST_OWNERS
    visitors = [f"visitor-{n}" for n in range(most - 2)]
    many = {name: {"cap_day_usd": 1.0} for name in ("local", "hf-ann", *visitors)}
    (tmp_path / "preferences.json").write_text(json.dumps(many))
    store = PreferenceStore(Settings(home=tmp_path))
    for name in ("visitor-new", "visitor-newer"):
        await store.keep(name, CHOSEN)
    again = PreferenceStore(Settings(home=tmp_path))
    for name in ("local", "hf-ann", "visitor-2"):
        assert await again.of(name) == Preferences(cap_day_usd=1.0)
    for name in ("visitor-new", "visitor-newer"):
        assert await again.of(name) == CHOSEN
    for name in visitors[:2]:
        assert await again.of(name) == Preferences()


async def test_among_people_with_accounts_the_operators_choice_stays(tmp_path: Path) -> None:
    many = {name: {"cap_day_usd": 1.0} for name in ("local", *(f"hf-{n}" for n in range(preferences._MOST_OWNERS - 1)))}
    (tmp_path / "preferences.json").write_text(json.dumps(many))
    store = PreferenceStore(Settings(home=tmp_path))
    await store.keep("visitor-a", CHOSEN)
    assert await store.of("local") == Preferences(cap_day_usd=1.0)
    assert await store.of("hf-0") == Preferences()
    assert await store.of("visitor-a") == CHOSEN


async def test_a_file_that_cannot_be_read_for_a_moment_is_not_written_over(tmp_path: Path) -> None:
    path, aside = tmp_path / "preferences.json", tmp_path / "aside"
    await PreferenceStore(Settings(home=tmp_path)).keep("local", CHOSEN)
    store = PreferenceStore(Settings(home=tmp_path))
    path.rename(aside)
    # It loops: nobody can open it, whoever they are, and a new file could be put in its place.
    path.symlink_to(path)
    assert await store.of("local") == Preferences()
    with pytest.raises(StorageFailure) as failed:
        await store.keep("ann", Preferences())
    assert failed.value.code is ErrorCode.STORAGE_BROKEN
    aside.replace(path)
    assert await store.of("local") == CHOSEN


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ann": 1}', '{"ann": {"cap_day_usd": -1}}', "\x00", "\ud7ff" * 3])
async def test_an_unreadable_file_counts_as_empty_and_is_put_aside(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "preferences.json").write_text(text)
    store = PreferenceStore(Settings(home=tmp_path, cap_day_usd=3.0))
    with caplog.at_level(logging.WARNING):
        assert await store.of("ann") == Preferences(cap_day_usd=3.0)
    assert "preferences.json" in caplog.text
    await store.keep("ann", CHOSEN)
    assert await PreferenceStore(Settings(home=tmp_path)).of("ann") == CHOSEN
    assert (tmp_path / "preferences.json.bad").read_text() == text


async def test_where_nothing_can_be_written_the_operator_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    store = PreferenceStore(Settings(home=tmp_path / "home"))
    with pytest.raises(StorageFailure) as failed:
        await store.keep("ann", CHOSEN)
    assert failed.value.code is ErrorCode.STORAGE_BROKEN


@pytest.mark.parametrize("cap", [-0.01, float("nan"), float("inf"), float("-inf"), "much"])
def test_a_cap_that_is_no_amount_is_refused(cap: object) -> None:
    for name in ("cap_day_usd", "cap_conversation_usd"):
        for kind in (Preferences, TurnSettings):
            with pytest.raises(ValidationError):
                kind.model_validate({name: cap})
