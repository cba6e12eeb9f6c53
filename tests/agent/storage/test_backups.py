"""Backups: copies of the database made while it is used, verified, thinned out, and gone back to."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from agent import Settings, StorageFailure
from tests.adapters.house import Backup, Backups
from tests.adapters.scripted import calls, says
from tests.support.scenes import Scene, generate, picture, run

NOW = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


def scene(settings: Settings, words: int = 9) -> Scene:
    text = [calls(generate(f"a red fox {number}")) for number in range(words)]
    return Scene(settings, text=text, pictures=lambda _: picture(64, 36))


async def test_what_came_after_the_backup_is_taken_over_if_it_has_pictures(settings: Settings) -> None:
    backups = Backups(settings.home)
    async with Scene(
        settings,
        text=[calls(generate("a red fox")), calls(generate("a blue fox")), says("Hello."), calls(generate("a boat"))],
        pictures=lambda _: picture(64, 36),
    ).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        made = backups.make(NOW)
        await run(studio, conversation.id, "a blue fox")
        talk, other = await studio.conversations.create(), await studio.conversations.create()
        await run(studio, talk.id, "Hello")
        await run(studio, other.id, "a boat")
    assert ([one.name for one in backups.all()], made.path.stat().st_mode & 0o077) == (["20310514T120000Z"], 0)
    report = backups.restore(made.name, NOW + timedelta(hours=1))
    assert (report.kept_pictures, report.lost_turns, report.missing_files, report.is_whole) == (2, 1, 0, True)
    assert report.set_aside is not None
    assert report.set_aside.is_file()
    async with scene(settings).studio() as studio:
        kept = await studio.conversations.get(conversation.id)
        assert [one.text for one in kept.turns] == ["a red fox", "a blue fox"]
        assert [one.handle for one in kept.pictures] == ["#1", "#2"]
        assert len((await studio.conversations.get(other.id)).pictures) == 1
        assert {one.id for one in await studio.conversations.list()} == {conversation.id, other.id}
        await run(studio, conversation.id, "a third fox")
        assert len((await studio.conversations.get(conversation.id)).pictures) == 3


async def test_a_database_that_could_not_be_read_is_told_of_with_its_backups_until_one_is_restored(
    settings: Settings,
) -> None:
    backups, path = Backups(settings.home), settings.home / "aivista.db"
    async with scene(settings).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        made = backups.make(NOW)
        assert await studio.lost_records() is None
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    for _ in range(2):
        async with scene(settings).studio() as studio:
            lost = await studio.lost_records()
    assert lost is not None
    assert (lost.backup_count, lost.newest_backup_at) == (1, NOW)
    assert (settings.home / lost.name).exists()
    backups.restore(made.name, datetime.now(UTC))
    async with scene(settings).studio() as studio:
        assert await studio.lost_records() is None
    # Damaged in the middle: what can be read is kept.
    for beside in settings.home.glob("aivista.db-*"):
        beside.unlink()
    third = len(whole) // 3
    path.write_bytes(whole[:third] + b"\xff" * 20_000 + whole[third + 20_000 :])
    backups.restore(made.name, NOW)
    async with scene(settings).studio() as studio:
        assert len((await studio.conversations.get(conversation.id)).pictures) == 1


async def test_a_damaged_backup_is_not_gone_back_to_and_what_cannot_be_verified_is_not_kept(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
        made = Backups(settings.home).make(NOW)
    before = (settings.home / "aivista.db").read_bytes()
    made.path.write_bytes(made.path.read_bytes()[:5000])
    with pytest.raises(StorageFailure):
        Backups(settings.home).restore(made.name, NOW)
    assert (settings.home / "aivista.db").read_bytes() == before
    made.path.unlink()
    (settings.home / "aivista.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailure):
        Backups(settings.home).make(NOW)
    assert Backups(settings.home).all() == []
    assert os.listdir(settings.home / "backups") == []


async def test_old_backups_go_by_the_rule(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups, made = Backups(settings.home), list[Backup]()
    for hour in range(0, 60 * 24, 12):
        made.append(backups.make(NOW + timedelta(hours=hour)))
    # From noon of a Wednesday, one each noon and midnight; the last is of a Sunday's midnight.
    assert made[-1].name == "20310713T000000Z"
    days = ["0713T00", "0712T12", "0712T00", "0711T12", "0710T12", "0709T12", "0708T12", "0707T12"]
    assert [one.name[4:11] for one in backups.all()] == [*days, "0706T12", "0629T12", "0622T12"]


async def test_the_studio_makes_one_a_day_and_a_clock_that_was_ahead_hinders_none(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups = Backups(settings.home)
    assert backups.make_if_due(NOW) is not None
    assert backups.make_if_due(NOW + timedelta(hours=23)) is None
    assert backups.make_if_due(NOW + timedelta(hours=25)) is not None
    assert backups.make_if_due(NOW - timedelta(days=3)) is not None
