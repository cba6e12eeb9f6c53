"""Conversations as a whole: pinned, searched, thrown away and brought back, copied, and swept up for good."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from agent.components import AgentMessage, PlanCard, StoppedNote
from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.pictures import Picture
from agent.plans import Plan
from agent.reviews import Review
from agent.storage import gallery_rows
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.journal import CallRecord
from agent.storage.workspace import WorkspaceStore
from tests.support.histories import LARGE_SIGNATURE, begun_turn, finished, image_part, picture
from tests.support.turns import calls_on_disk, rows

LATER = datetime.now(UTC) + timedelta(days=1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    one = ConversationStore(tmp_path, ImageStore(tmp_path))
    await one.open()
    yield one
    await one.aclose()


async def said(store: ConversationStore, text: str, *answers: str, owner: str = "local") -> Conversation:
    """Return a conversation of one turn."""
    conversation = await store.create(owner)
    turn = begun_turn(f"t{conversation.id[:6]}", text)
    await store.begin_turn(conversation.id, turn)
    shown = tuple(AgentMessage(text=one) for one in answers)
    await store.finish_turn(conversation.id, turn.model_copy(update={"state": TurnState.DONE, "components": shown}))
    return conversation


async def branched(store: ConversationStore) -> Conversation:
    """Return a conversation with a branch beside the one that is shown: t1, then t2 or, shown, t3."""
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn("t1"), [picture("#1", "t1", is_generated=False)])
    await store.finish_turn(conversation.id, finished(begun_turn("t1")))
    for number, handle in ((2, "#2"), (3, "#3")):
        turn = begun_turn(f"t{number}", f"a wish of {number}", parent="t1")
        await store.begin_turn(conversation.id, turn)
        await store.add_picture(conversation.id, picture(handle, turn.id))
        await store.finish_turn(conversation.id, finished(turn, handle))
    await store.set_review(conversation.id, "#2", Review(score=0.5, model_label="M"))
    return await store.get(conversation.id, "local")


def found_by(found: Any) -> list[str]:
    return [one.info.id for one in found]


# Pins


async def test_the_pinned_come_first_and_then_the_newest(store: ConversationStore) -> None:
    first, second, third, fourth = [await store.create("local", name) for name in ("1", "2", "3", "4")]
    await store.pin(first.id, "local", True)
    await store.pin(third.id, "local", True)
    listed = await store.list("local")
    assert [one.id for one in listed] == [third.id, first.id, fourth.id, second.id]
    assert [one.is_pinned for one in listed] == [True, True, False, False]
    assert (await store.get(first.id, "local")).is_pinned
    await store.pin(third.id, "local", False)
    assert [one.id for one in await store.list("local")] == [first.id, fourth.id, third.id, second.id]


async def test_a_page_of_the_list_goes_on_where_the_one_before_ended(store: ConversationStore) -> None:
    kept = [await store.create("local", str(number)) for number in range(9)]
    for number in (0, 4, 8):
        await store.pin(kept[number].id, "local", True)
    whole = [one.id for one in await store.list("local")]
    assert [kept.index(next(k for k in kept if k.id == one)) for one in whole] == [8, 4, 0, 7, 6, 5, 3, 2, 1]
    for size in range(1, 11):
        pages = [await store.list("local", size, start) for start in range(0, 12, size)]
        assert [one.id for page in pages for one in page] == whole


# Search


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("heron", "said"),
        ("HERON lake", "said"),
        ("lak", "said"),
        ("鹭", "answered"),
        ("苍鹭", "answered"),
        ("站在水里", "answered"),
    ],
)
async def test_a_conversation_is_found_by_what_was_said_in_it(store: ConversationStore, query: str, place: str) -> None:
    wanted = await said(store, "draw a heron by the lake", "一只苍鹭站在水里。")
    await said(store, "draw a red fox", "一只红狐狸。")
    await store.rename(wanted.id, "local", "birds")
    [found] = await store.search("local", query)
    assert (found.info.id, found.info.title, found.place) == (wanted.id, "birds", place)
    assert found.turn_id == f"t{wanted.id[:6]}"
    marked = [found.excerpt[start:end].casefold() for start, end in found.marks]
    assert marked
    assert all(any(word.casefold() in one or one in word.casefold() for word in query.split()) for one in marked)


async def test_titles_prompts_and_other_branches_are_found_as_well(store: ConversationStore) -> None:
    kept = await branched(store)
    await store.rename(kept.id, "local", "My zoo")
    [by_title] = await store.search("local", "zoo")
    [by_prompt] = await store.search("local", "a fox 狐")
    [elsewhere] = await store.search("local", "wish 2")
    assert (by_title.place, by_title.turn_id, by_title.excerpt, by_title.marks) == ("title", None, "My zoo", ((3, 6),))
    assert (by_prompt.place, by_prompt.turn_id) == ("prompt", "t3")
    assert (elsewhere.place, elsewhere.turn_id) == ("said", "t2")
    assert "t2" not in {turn.id for turn in kept.turns}


async def test_a_plan_that_was_never_painted_is_found_by_its_prompt(store: ConversationStore) -> None:
    plan = Plan(call=0, prompt="a bergamot on a plate", model="flash", model_label="F", aspect_ratio="1:1")
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    update = {"state": TurnState.WAITING, "components": (PlanCard(plans=(plan,)),)}
    await store.finish_turn(conversation.id, begun_turn().model_copy(update=update))
    assert [one.place for one in await store.search("local", "bergamot")] == ["prompt"]


async def test_the_newest_are_found_first_and_as_many_as_asked_for(store: ConversationStore) -> None:
    kept = [await said(store, f"a fox, number {number}") for number in range(5)]
    await store.search("local", "fox")
    again = begun_turn("late", "and a hen", parent=f"t{kept[1].id[:6]}")
    await store.begin_turn(kept[1].id, again)
    expected = [kept[number].id for number in (1, 4, 3)]
    assert found_by(await store.search("local", "fox", limit=3)) == expected
    assert found_by(await store.search("local", "fox hen")) == [kept[1].id]


async def test_what_was_renamed_or_said_anew_is_found_by_that_alone(store: ConversationStore) -> None:
    conversation = await said(store, "a fox")
    assert found_by(await store.search("local", "fox")) == [conversation.id]
    await store.rename(conversation.id, "local", "lighthouse")
    assert found_by(await store.search("local", "lighthouse")) == [conversation.id]
    await store.rename(conversation.id, "local", "teapot")
    assert found_by(await store.search("local", "lighthouse")) == []
    assert found_by(await store.search("local", "teapot")) == [conversation.id]


async def test_nobody_finds_what_is_deleted_or_somebody_else_s(store: ConversationStore) -> None:
    mine, theirs = await said(store, "a fox"), await said(store, "a fox", owner="ann")
    await said(store, "nothing")
    assert found_by(await store.search("local", "fox")) == [mine.id]
    assert found_by(await store.search("ann", "fox")) == [theirs.id]
    await store.delete(mine.id, "local")
    assert await store.search("local", "fox") == []
    await store.undelete(mine.id, "local")
    assert found_by(await store.search("local", "fox")) == [mine.id]


@pytest.mark.parametrize("query", ["", "  ", "🦊", '"'])
async def test_a_search_for_no_word_finds_nothing(store: ConversationStore, query: str) -> None:
    await said(store, 'a 🦊 "fox"')
    assert await store.search("local", query) == []


async def test_many_conversations_are_all_put_into_the_full_text_and_only_once(
    store: ConversationStore, tmp_path: Path
) -> None:
    kept = [await said(store, f"a fox, number {number}") for number in range(70)]
    both = await asyncio.gather(*(store.search("local", "fox", 100) for _ in range(2)))
    assert [set(found_by(one)) for one in both] == [{one.id for one in kept}] * 2
    assert rows(tmp_path / "aivista.db", "SELECT count(*) AS n FROM conversation_words") == [{"n": 70}]
    stale = "SELECT count(*) AS n FROM conversations WHERE indexed_at IS NULL OR indexed_at < updated_at"
    assert rows(tmp_path / "aivista.db", stale) == [{"n": 0}]


async def test_what_is_stale_is_found_by_its_index(store: ConversationStore, tmp_path: Path) -> None:
    from sqlalchemy.dialects import sqlite

    from agent.storage.word_rows import STALE

    statement = str(STALE.compile(dialect=sqlite.dialect(paramstyle="named")))
    for name, value in ((":after", "''"), (":page", "5"), (":param_1", "0")):
        statement = statement.replace(name, value)
    plans = rows(tmp_path / "aivista.db", f"EXPLAIN QUERY PLAN {statement}")
    assert ["ix_conversations_unindexed" in plan["detail"] for plan in plans] == [True]


# Thrown away and brought back


async def test_what_is_deleted_is_not_there_until_it_is_brought_back(tmp_path: Path, store: ConversationStore) -> None:
    conversation = await branched(store)
    await store.delete(conversation.id, "local")
    await store.delete(conversation.id, "local")
    assert await store.list("local") == []
    for attempt in (
        store.get(conversation.id, "local"),
        store.begin_turn(conversation.id, begun_turn("t4", parent="t3")),
        store.rename(conversation.id, "local", "x"),
        store.pin(conversation.id, "local", True),
        store.switch_branch(conversation.id, "t2", "local"),
        store.whole(conversation.id, "local"),
        store.duplicate(conversation.id, "local"),
    ):
        with pytest.raises(RequestRefused) as refused:
            await attempt
        assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    back = await store.undelete(conversation.id, "local")
    assert back.version > conversation.version
    assert back.model_copy(update={"version": conversation.version}) == conversation
    assert [one.id for one in await store.list("local")] == [conversation.id]


async def test_a_picture_still_on_its_way_is_recorded_in_what_was_deleted_meanwhile(store: ConversationStore) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    await store.delete(conversation.id, "local")
    await store.add_picture(conversation.id, picture("#2", "t1"))
    await store.finish_turn(conversation.id, finished(begun_turn()))
    assert [one.handle for one in (await store.conversation_of_any_owner(conversation.id)).pictures] == ["#2"]
    with pytest.raises(RequestRefused):
        await store.get(conversation.id, "local")
    back = await store.undelete(conversation.id, "local")
    assert ([one.handle for one in back.pictures], back.turns[0].state) == (["#2"], TurnState.DONE)


@pytest.mark.parametrize("owner", ["ann", ""])
async def test_nobody_else_changes_copies_or_finds_a_conversation(store: ConversationStore, owner: str) -> None:
    conversation = await branched(store)
    for attempt in (
        store.pin(conversation.id, owner, True),
        store.rename(conversation.id, owner, "theirs"),
        store.delete(conversation.id, owner),
        store.undelete(conversation.id, owner),
        store.remove(conversation.id, owner),
        store.whole(conversation.id, owner),
        store.duplicate(conversation.id, owner),
        store.switch_branch(conversation.id, "t2", owner),
    ):
        with pytest.raises(RequestRefused) as refused:
            await attempt
        assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert await store.get(conversation.id, "local") == conversation


# Copies


def alike(turn: Turn) -> Turn:
    """Return the turn without what a copy has of its own."""
    from agent.messages import TokenUsage

    return turn.model_copy(update={"id": "", "parent": None, "price_usd": 0.0, "usage": TokenUsage()})


async def test_a_copy_has_every_branch_with_ids_of_its_own(store: ConversationStore) -> None:
    original = await branched(store)
    copy = await store.duplicate(original.id, "local", "the same again")
    whole, copied = await store.whole(original.id, "local"), await store.whole(copy.id, "local")
    ids = dict(zip((one.id for one in whole.turns), (one.id for one in copied.turns), strict=True))
    assert not set(ids) & set(ids.values())
    assert list(map(alike, copied.turns)) == list(map(alike, whole.turns))
    assert [one.parent for one in copied.turns] == [ids.get(one.parent or "") for one in whole.turns]
    assert copied.pictures == tuple(one.model_copy(update={"turn_id": ids[one.turn_id]}) for one in whole.pictures)
    assert copied.head == ids["t3"]
    assert (copy.title, original.title) == ("the same again", "draw a red fox")
    assert await store.get(original.id, "local") == original
    switched = await store.switch_branch(copy.id, ids["t2"], "local")
    assert [one.handle for one in switched.pictures] == ["#1", "#2"]


async def test_a_copy_s_pictures_keep_their_answers_signatures_and_reviews(store: ConversationStore) -> None:
    copy = await store.duplicate((await branched(store)).id, "local")
    assert await store.answer_of(copy.id, "#3") == picture("#3", "").answer
    assert copy.picture("#2").review == Review(score=0.5, model_label="M")
    assert LARGE_SIGNATURE in [getattr(part, "thought_signature", None) for m in copy.messages for part in m.parts]


async def test_a_copy_costs_nothing_and_has_no_calls(store: ConversationStore, tmp_path: Path) -> None:
    original = await branched(store)
    call = CallRecord(conversation_id=original.id, turn_id="t3", name="planner:1", model="m")
    await store.journal.send(call, is_new=True)
    copy = await store.duplicate(original.id, "local")
    prices = {one.id: one.price_usd for one in await store.list("local")}
    assert [prices[one.id] for one in (copy, original)] == pytest.approx([0.0, 0.3])
    assert {row["conversation_id"] for row in calls_on_disk(tmp_path).values()} == {original.id}
    assert copy.picture("#3").receipt == original.picture("#3").receipt


@pytest.mark.parametrize("state", [TurnState.RUNNING, TurnState.WAITING, TurnState.INTERRUPTED])
async def test_what_runs_or_waits_is_stopped_in_the_copy_and_goes_on_in_the_original(
    store: ConversationStore, state: TurnState
) -> None:
    plan = Plan(call=0, prompt="p", model="flash", model_label="F", aspect_ratio="1:1")
    conversation = await store.create("local")
    turn = begun_turn().model_copy(update={"request_id": "r1"})
    await store.begin_turn(conversation.id, turn)
    waits = turn.model_copy(update={"state": state, "components": (PlanCard(plans=(plan,)),)})
    await store.finish_turn(conversation.id, waits)
    [copied] = (await store.duplicate(conversation.id, "local")).turns
    assert (copied.state, copied.request_id) == (TurnState.STOPPED, None)
    assert copied.components == (PlanCard(plans=(plan,), state="dropped"), StoppedNote())
    assert (await store.get(conversation.id, "local")).turns == (waits,)


async def test_a_picture_that_was_thrown_away_does_not_come_back_in_a_copy(
    store: ConversationStore, tmp_path: Path
) -> None:
    original = await branched(store)
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db")) as database, database:
        database.execute("UPDATE pictures SET deleted_at = '2026-01-01 00:00:00' WHERE handle = '#2'")
    assert [one.handle for one in (await store.whole(original.id, "local")).pictures] == ["#1", "#3"]
    copy = await store.duplicate(original.id, "local")
    deleted = "SELECT conversation_id, handle, deleted_at FROM pictures WHERE deleted_at IS NOT NULL ORDER BY id"
    assert rows(tmp_path / "aivista.db", deleted) == [
        {"conversation_id": one.id, "handle": "#2", "deleted_at": "2026-01-01 00:00:00"} for one in (original, copy)
    ]
    assert {one.id: one.picture_count for one in await store.list("local")} == {original.id: 2, copy.id: 2}


async def test_a_whole_conversation_taken_in_elsewhere_is_the_same_there(
    tmp_path: Path, store: ConversationStore
) -> None:
    await store.pin((await filed(store)).id, "local", True)
    [info] = await store.list("local")
    whole = await store.whole(info.id, "local")
    other = ConversationStore(tmp_path / "other", ImageStore(tmp_path / "other"))
    await other.open()
    added = await other.add_whole("ann", whole)
    assert await other.whole(added.id, "ann") == whole.model_copy(
        update={"turns": tuple(one.model_copy(update={"request_id": None, "is_imported": True}) for one in whole.turns)}
    )
    assert (added.id != info.id, added.is_pinned) == (True, True)
    again = await other.add_whole("ann", whole)
    assert not {one.id for one in again.turns} & {one.id for one in added.turns}
    assert [one.turn_id for one in again.pictures] == [again.turns[0].id, again.turns[1].id]
    assert not await other.is_running(added.id)
    await other.aclose()


async def filed(store: ConversationStore) -> Conversation:
    """Return a conversation with files, a star and tags."""
    conversation = await branched(store)
    workspace = WorkspaceStore(store).of(conversation.id, "local")
    await workspace.write("notes/a.md", "狐", by="agent", is_untrusted=True)
    await workspace.write("b.bin", b"\0\xff", by="person")
    await workspace.write("notes/a.md", "狐 2", by="agent")

    def label(on: Connection) -> None:
        ids = gallery_rows.ids_of(on, "local")
        gallery_rows.star(on, "local", ids[:1], True)
        gallery_rows.tag(on, "local", ids[1:], "Poster")
        gallery_rows.tag(on, "local", ids, "fox")

    await store.in_transaction(label)
    return conversation


async def test_a_copy_has_the_files_the_stars_and_the_tags(store: ConversationStore) -> None:
    original = await filed(store)
    before = await store.whole(original.id, "local")
    copy = await store.duplicate(original.id, "local")
    whole = await store.whole(copy.id, "local")
    assert [(one.name, one.text, one.is_untrusted) for one in before.files] == [
        ("b.bin", None, False),
        ("notes/a.md", "狐 2", True),
    ]
    assert before.starred == ("#3",)
    assert before.tags == {"#1": ("Poster", "fox"), "#2": ("Poster", "fox"), "#3": ("fox",)}
    assert (whole.files, whole.starred, whole.tags) == (before.files, before.starred, before.tags)


async def test_a_copy_of_what_was_imported_is_known_to_be_imported_as_well(store: ConversationStore) -> None:
    plain = await filed(store)
    taken = await store.add_whole("local", await store.whole(plain.id, "local"))
    copy, own = await store.duplicate(taken.id, "local"), await store.duplicate(plain.id, "local")
    assert all(turn.is_imported for turn in (await store.whole(copy.id, "local")).turns)
    assert not any(turn.is_imported for turn in (await store.whole(own.id, "local")).turns)


async def test_the_files_of_a_copy_are_its_own(store: ConversationStore) -> None:
    original = await filed(store)
    copy = await store.duplicate(original.id, "local")
    here, there = (WorkspaceStore(store).of(one.id, "local") for one in (original, copy))
    written = await there.write("b.bin", "text now", by="person")
    await there.delete("notes/a.md")
    assert written.version == 4
    assert await here.all_texts() == {"notes/a.md": "狐 2"}
    assert await there.all_texts() == {"b.bin": "text now"}


async def test_a_copy_is_named_by_the_person_when_the_original_is_or_they_say_a_name(store: ConversationStore) -> None:
    plain = await branched(store)
    copy, named = await store.duplicate(plain.id, "local"), await store.duplicate(plain.id, "local", "mine")
    assert [(await store.whole(one.id, "local")).is_named for one in (plain, copy, named)] == [False, False, True]
    await store.rename(plain.id, "local", "ours")
    assert (await store.whole((await store.duplicate(plain.id, "local")).id, "local")).is_named


async def test_an_empty_conversation_is_taken_in_as_one(store: ConversationStore) -> None:
    empty = await store.create("local", "nothing yet")
    copy = await store.duplicate(empty.id, "local")
    assert (copy.title, copy.turns, copy.pictures) == ("nothing yet", (), ())


# Gone for good


async def test_only_what_was_deleted_before_the_moment_goes_for_good(store: ConversationStore, tmp_path: Path) -> None:
    kept, thrown_away = await said(store, "a fox"), await said(store, "a hen")
    await store.search("local", "fox")
    await store.delete(thrown_away.id, "local")
    assert await store.sweep(datetime.now(UTC) - timedelta(days=30)) == set()
    assert (await store.undelete(thrown_away.id, "local")).id == thrown_away.id
    assert await store.sweep(LATER) == set()
    await store.delete(thrown_away.id, "local")
    await store.sweep(LATER)
    with pytest.raises(RequestRefused):
        await store.undelete(thrown_away.id, "local")
    assert [one.id for one in await store.list("local")] == [kept.id]
    left = {name: rows(tmp_path / "aivista.db", f"SELECT * FROM {name}") for name in ("turns", "conversation_words")}
    assert {name: len(found) for name, found in left.items()} == {"turns": 1, "conversation_words": 1}
    assert found_by(await store.search("local", "fox")) == [kept.id]


async def test_what_it_had_cost_is_kept_by_owner_and_day(store: ConversationStore, tmp_path: Path) -> None:
    for owner, name in (("local", "a"), ("local", "b"), ("ann", "c")):
        conversation = await store.create(owner)
        for number, day in ((1, 20), (2, 21)):
            turn = finished(begun_turn(f"{name}{number}", parent=f"{name}1" if number == 2 else None), signature=b"s")
            moment = datetime(2026, 11, day, 23, 59, tzinfo=UTC)
            await store.begin_turn(conversation.id, turn.model_copy(update={"started_at": moment}))
            await store.finish_turn(conversation.id, turn.model_copy(update={"started_at": moment}))
        await store.delete(conversation.id, owner)
    await store.sweep(LATER)
    spent = rows(tmp_path / "aivista.db", "SELECT * FROM spend_days ORDER BY owner, day")
    assert [(row["owner"], row["day"], round(row["price_usd"], 6), row["tokens"]) for row in spent] == [
        ("ann", "2026-11-20", 0.1, 16),
        ("ann", "2026-11-21", 0.1, 16),
        ("local", "2026-11-20", 0.2, 32),
        ("local", "2026-11-21", 0.2, 32),
    ]


@pytest.mark.parametrize("way", ["removed at once", "swept"])
async def test_what_goes_for_good_takes_its_files_along(store: ConversationStore, tmp_path: Path, way: str) -> None:
    gone, kept = await filed(store), await store.create("local")
    await WorkspaceStore(store).of(kept.id, "local").write("a.md", "stays", by="person")
    await store.delete(gone.id, "local")
    left = "SELECT name FROM workspace_files ORDER BY name"
    assert [row["name"] for row in rows(tmp_path / "aivista.db", left)] == ["a.md", "b.bin", "notes/a.md"]
    if way == "swept":
        await store.sweep(LATER)
    else:
        await store.remove(gone.id, "local")
    assert [row["name"] for row in rows(tmp_path / "aivista.db", left)] == ["a.md"]


async def test_a_picture_that_only_a_file_s_text_speaks_of_is_not_kept_for_it(store: ConversationStore) -> None:
    conversation = await store.create("local")
    await WorkspaceStore(store).of(conversation.id, "local").write("a.md", "0" * 64, by="person")
    assert await store.named_digests() == set()


async def test_what_is_removed_at_once_leaves_no_spend(store: ConversationStore, tmp_path: Path) -> None:
    await store.remove((await branched(store)).id, "local")
    assert rows(tmp_path / "aivista.db", "SELECT * FROM spend_days") == []


async def test_the_sweep_names_the_files_that_nobody_names_any_more(store: ConversationStore) -> None:
    both = await branched(store)
    other = await store.create("local")
    await store.begin_turn(other.id, begun_turn("o1"), [picture("#1", "o1", is_generated=False)])
    named = await store.named_digests()
    signature = hashlib.sha256(LARGE_SIGNATURE).hexdigest()
    assert named == {signature, *(image_part(handle).digest for handle in ("#1", "#2", "#3"))}
    await store.delete(both.id, "local")
    assert await store.named_digests() == named
    assert await store.sweep(LATER) == named - {image_part("#1").digest}
    assert await store.named_digests() == {image_part("#1").digest}


async def test_every_picture_that_any_value_names_is_named(store: ConversationStore) -> None:
    from agent.pictures import DriftRecord, EditRecord

    parts = {name: image_part(name) for name in ("base", "mask", "raw", "grown", "before", "after", "drift", "mine")}
    edit = EditRecord(
        kind="mask",
        verdict="good",
        reason="",
        base=parts["base"],
        mask=parts["mask"],
        raw=parts["raw"],
        grown_mask=parts["grown"],
        before=parts["before"],
        after=parts["after"],
    )
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn().model_copy(update={"mask": parts["mine"]}))
    made: Picture = picture("#1", "t1", signature=b"s")
    await store.add_picture(conversation.id, made)
    await store.set_edit(conversation.id, "#1", edit)
    drift = DriftRecord(base="#1", is_comparable=True, changed=parts["drift"], changed_share=0.1)
    await store.set_drift(conversation.id, "#1", drift)
    assert {one.digest for one in parts.values()} <= await store.named_digests()


async def test_the_rows_are_read_to_the_last_however_many_there_are(store: ConversationStore) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    handles = [f"#{number}" for number in range(1, 1102)]
    made = [picture(handle, "t1", is_generated=False) for handle in handles]
    await store.begin_turn(conversation.id, begun_turn("t2", parent="t1"), made)
    assert {image_part(handle).digest for handle in handles} <= await store.named_digests()
