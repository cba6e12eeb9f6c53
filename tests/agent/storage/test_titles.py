"""What a conversation is called: its first words, then the model's subject, then what the person says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import PromptMessage, Role, ToolCallPart
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.titles import checked_title, subject_title
from tests.support.histories import begun_turn


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    one = ConversationStore(tmp_path, ImageStore(tmp_path))
    await one.open()
    yield one
    await one.aclose()


def planned(*subjects: JsonValue, parent: str | None = None, state: TurnState = TurnState.DONE) -> Turn:
    """Return a turn whose model planned pictures of these subjects, one message each."""
    calls = (ToolCallPart(name="generate_image", arguments={"subject": one}) for one in subjects)
    messages = tuple(PromptMessage(role=Role.MODEL, parts=(call,)) for call in calls)
    return begun_turn(parent=parent).model_copy(update={"messages": messages, "state": state})


async def title_after(store: ConversationStore, key: str, turn: Turn) -> str:
    """Return what the conversation is called after the turn, in memory as on record."""
    await store.finish_turn(key, turn)
    [listed] = await store.list("local")
    assert (await store.get(key, "local")).title == listed.title
    return listed.title


@pytest.mark.parametrize(
    ("subject", "title"),
    [
        ("a red fox in the snow", "A red fox in the snow"),
        (" red\n fox. ", "Red fox"),
        ("iPhone on a desk", "iPhone on a desk"),
        ("NASA rocket", "NASA rocket"),
        ("élan", "Élan"),
        ("雪中的红狐。", "雪中的红狐"),
        ("word " * 40, "Word " + "word " * 7 + "word…"),
    ],
)
async def test_the_model_s_subject_becomes_the_title_when_the_first_turn_ends(
    store: ConversationStore, subject: str, title: str
) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    assert await title_after(store, conversation.id, planned(subject)) == title


@pytest.mark.parametrize("subject", ["", "  ", "none", "Auto", None, 7, ["fox"], "#2", "#7b"])
async def test_a_subject_that_says_nothing_leaves_the_first_words(store: ConversationStore, subject: JsonValue) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    assert await title_after(store, conversation.id, planned(subject)) == "draw a red fox"


def test_of_several_plans_the_newest_one_counts() -> None:
    assert subject_title(planned("a wolf", "a fox")) == "A fox"
    assert subject_title(planned("a wolf", "")) == "A wolf"


def test_a_later_turn_and_one_that_runs_give_no_title() -> None:
    assert subject_title(planned("a fox", parent="t0")) == ""
    assert subject_title(planned("a fox", state=TurnState.RUNNING)) == ""


async def test_what_the_person_called_it_stays(store: ConversationStore) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    await store.rename(conversation.id, "local", "  My\n foxes ")
    assert await title_after(store, conversation.id, planned("a red fox")) == "My foxes"
    await store.begin_turn(conversation.id, begun_turn("t2", "something else", parent="t1"))
    assert (await store.list("local"))[0].title == "My foxes"


async def test_a_conversation_that_was_created_with_a_title_keeps_it(store: ConversationStore) -> None:
    conversation = await store.create("local", "mine")
    await store.begin_turn(conversation.id, begun_turn())
    assert await title_after(store, conversation.id, planned("a red fox")) == "mine"


@pytest.mark.parametrize(
    ("title", "code"),
    [("", ErrorCode.TITLE_EMPTY), (" \n\0", ErrorCode.TITLE_EMPTY), ("x" * 121, ErrorCode.TITLE_TOO_LONG)],
)
async def test_an_empty_or_an_endless_title_is_refused(store: ConversationStore, title: str, code: ErrorCode) -> None:
    conversation = await store.create("local", "mine")
    with pytest.raises(RequestRefused) as refused:
        await store.rename(conversation.id, "local", title)
    assert refused.value.code is code
    assert (await store.get(conversation.id, "local")).title == "mine"


def test_a_title_of_120_characters_is_taken() -> None:
    assert checked_title("画" * 120) == "画" * 120


async def test_a_name_given_by_the_person_does_not_move_the_conversation_in_the_list(store: ConversationStore) -> None:
    older, newer = await store.create("local", "older"), await store.create("local", "newer")
    await store.rename(older.id, "local", "oldest")
    assert [one.id for one in await store.list("local")] == [newer.id, older.id]
