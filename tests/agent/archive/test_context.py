"""A context that was told becomes a conversation like any other: read, exported, taken in again."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import ErrorCode, RequestRefused, Role, Settings, Studio, TurnState
from tests.adapters.archives import ContextMessage
from tests.support.galleries import png

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
