"""Conversations read in pages of turns, or made of a context that was told: whole, and nobody else's."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent import ErrorCode, Picture, RequestRefused, Role, Settings, Studio, Turn, TurnsPage, TurnState
from tests.adapters.archives import ContextMessage
from tests.adapters.records import keep
from tests.support.galleries import png
from tests.support.histories import begun_turn, finished, picture

Told = Sequence[tuple[Turn, Sequence[Picture]]]


# Each reads its signature from the disk.
SIGNATURE = b"signed"


def turns(count: int, *, after: str | None = None, first: int = 1) -> Iterator[tuple[Turn, list[Picture]]]:
    """Yield turns one after the other: each names pictures 1 and 2, shows its own and has it on record."""
    for number in range(first, first + count):
        turn = finished(begun_turn(f"t{number}", f"words {number}", parent=after), f"#{number}", SIGNATURE)
        yield turn, [picture(f"#{number}", turn.id, signature=SIGNATURE)]
        after = turn.id


async def pages(studio: Studio, conversation_id: str, limit: int) -> list[TurnsPage]:
    found: list[TurnsPage] = []
    while not found or found[-1].earlier is not None:
        before = found[-1].earlier if found else None
        found.append(await studio.conversations.turns_page(conversation_id, before=before, limit=limit))
    return found


async def refusal(studio: Studio, conversation_id: str, owner: str = "local", before: str | None = None) -> ErrorCode:
    with pytest.raises(RequestRefused) as refused:
        await studio.conversations.turns_page(conversation_id, owner, before=before)
    return refused.value.code


async def test_the_pages_of_120_turns_join_to_the_whole(tmp_path: Path) -> None:
    [made] = await keep(tmp_path, "local", list(turns(120)))
    async with Studio(Settings(home=tmp_path)) as studio:
        whole = await studio.conversations.get(made)
        assert len(whole.turns) == len(whole.pictures) == 120
        for limit, sizes in ((50, [50, 50, 20]), (60, [60, 60]), (500, [120])):
            found = await pages(studio, made, limit)
            assert [len(page.turns) for page in found] == sizes
            assert tuple(turn for page in reversed(found) for turn in page.turns) == whole.turns
            assert {one.handle: one for page in found for one in page.pictures} == {
                one.handle: one for one in whole.pictures
            }
        newest = await studio.conversations.turns_page(made, limit=3)
        assert ([one.id for one in newest.turns], newest.earlier) == (["t118", "t119", "t120"], "t118")
        # Its turns name the first two.
        assert [one.handle for one in newest.pictures] == ["#1", "#2", "#118", "#119", "#120"]
        assert len((await studio.conversations.turns_page(made)).turns) == 50
        assert len((await studio.conversations.turns_page(made, limit=0)).turns) == 1


async def test_only_the_turns_of_the_page_are_read(tmp_path: Path) -> None:
    [made] = await keep(tmp_path, "local", list(turns(5)))
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db")) as database, database:
        database.execute("UPDATE turns SET messages = 'none that can be read' WHERE id = 't2'")
    async with Studio(Settings(home=tmp_path)) as studio:
        page = await studio.conversations.turns_page(made, limit=3)
        assert [one.id for one in page.turns] == ["t3", "t4", "t5"]


async def test_of_a_branch_the_turns_that_are_shown_are_told_and_what_stands_beside_them(tmp_path: Path) -> None:
    told = [*turns(4), *turns(2, after="t2", first=5)]
    [made] = await keep(tmp_path, "local", told)
    async with Studio(Settings(home=tmp_path)) as studio:
        for leaf, path in ((None, ["t1", "t2", "t5", "t6"]), ("t3", ["t1", "t2", "t3", "t4"])):
            if leaf is not None:
                await studio.conversations.switch_branch(made, leaf)
            whole, found = await studio.conversations.get(made), await pages(studio, made, 3)
            assert [turn.id for page in reversed(found) for turn in page.turns] == path
            forks = {one: beside for page in found for one, beside in page.forks.items()}
            assert forks == whole.forks == {path[2]: ("t3", "t5")}
            assert {one.handle for page in found for one in page.pictures} == {one.handle for one in whole.pictures}
        assert await refusal(studio, made, before="t5") is ErrorCode.TURN_NOT_FOUND


async def test_what_is_not_there_or_not_theirs_is_refused(tmp_path: Path) -> None:
    [made, empty] = await keep(tmp_path, "local", list(turns(2)), [])
    async with Studio(Settings(home=tmp_path)) as studio:
        assert await studio.conversations.turns_page(empty) == TurnsPage()
        assert await studio.conversations.turns_page(made, before="t1") == TurnsPage()
        for before in ("", "t3", "t1' OR 1"):
            assert await refusal(studio, made, before=before) is ErrorCode.TURN_NOT_FOUND
        assert await refusal(studio, made, "bob") is ErrorCode.CONVERSATION_NOT_FOUND
        assert await refusal(studio, "nothing") is ErrorCode.CONVERSATION_NOT_FOUND
        await studio.conversations.delete(made)
        assert await refusal(studio, made) is ErrorCode.CONVERSATION_NOT_FOUND


CONTEXT = (
    ContextMessage(True, "my cat", (("cat.png", png("grey")), ("", png("white")))),
    ContextMessage(False, "Here is a dog.", (("", png("brown")),)),
    ContextMessage(False, "And another word."),
    ContextMessage(True, "and a hat?"),
    ContextMessage(False, ""),
    ContextMessage(True, ""),
)


async def test_each_message_of_the_persons_is_a_turn_with_what_was_answered(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        made = await studio.archive.take_context(CONTEXT, "anna")
        kept = await studio.conversations.get(made.id, "anna")
        assert [turn.text for turn in kept.turns] == ["my cat", "and a hat?", ""]
        assert {turn.state for turn in kept.turns} == {TurnState.DONE}
        assert [turn.parent for turn in kept.turns] == [None, *(turn.id for turn in kept.turns[:-1])]
        assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL, Role.MODEL, Role.PROMPT]
        assert [(one.handle, one.image.origin.value) for one in kept.pictures] == [
            ("#1", "uploaded"),
            ("#2", "uploaded"),
            ("#3", "generated"),
        ]
        assert (kept.title, kept.price_usd) == ("my cat", 0)
        assert (await studio.picture(made.id, "#3", "anna")).picture.image.width == 64


async def test_it_is_exported_and_taken_in_again_as_it_is(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        made = await studio.archive.take_context(CONTEXT, "anna")
        exported = await studio.archive.export_conversation(made.id, "anna")
        report = await studio.archive.import_archive(exported.path, "ben")
        [one] = report.conversations
        again = await studio.conversations.get(one.id, "ben")
        assert [turn.messages for turn in again.turns] == [turn.messages for turn in made.turns]
        assert [turn.components for turn in again.turns] == [turn.components for turn in made.turns]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (ContextMessage(True, "x", (("a.txt", b"no picture"),)), ErrorCode.PICTURE_UNREADABLE),
        (ContextMessage(False, "x", (("", b"<svg></svg>"),)), ErrorCode.PICTURE_IS_SVG),
        (ContextMessage(False, "x" * 100_001), ErrorCode.TEXT_TOO_LONG),
        (ContextMessage(True, "x", (("", png("red")),) * 17), ErrorCode.TOO_MANY_PICTURES),
    ],
)
async def test_of_a_context_with_a_message_that_cannot_be_nothing_is_kept(
    bad: ContextMessage, code: ErrorCode, tmp_path: Path
) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        with pytest.raises(RequestRefused) as caught:
            await studio.archive.take_context((*CONTEXT, bad), "anna")
        assert caught.value.code is code
        assert await studio.conversations.list("anna") == []
    assert not (tmp_path / "pictures").exists()
