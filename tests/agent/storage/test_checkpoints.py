"""Where turns stand: kept for those that may go on, gone with the others, and never a reason not to open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, empty_checkpoint

from agent.components import PlanCard
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, StorageFailure
from agent.events import TurnDone, TurnFailed
from agent.messages import Value
from agent.plans import Plan
from agent.providers.scripted import Line, calls, says
from agent.settings import Settings, TurnSettings
from agent.storage.checkpoints import NAME, Checkpoints
from agent.storage.private_files import storage_failure
from agent.workflow.checkpointed import VALUES
from agent.workflow.state import Spend
from tests.support.scenes import Scene, generate, only, picture, run, words
from tests.support.turns import decide, newest, retry, rows, started
from tests.support.waiting import until

REFUSED = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
AT_A_NODE: CheckpointMetadata = {"source": "loop", "step": 1}


def stored(home: Path) -> set[str]:
    """Return the turns that have a checkpoint on disk."""
    return {row["thread_id"] for row in rows(home / NAME, "SELECT DISTINCT thread_id FROM checkpoints")}


def config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def standing_at(node: str, **values: Any) -> Checkpoint:
    """Return the checkpoint of a turn whose next node is this one."""
    return {**empty_checkpoint(), "channel_values": {f"branch:to:{node}": None, **values}}


async def read(checkpoints: Checkpoints, thread_id: str) -> dict[str, Any] | None:
    found = await checkpoints.aget_tuple(config(thread_id))
    return None if found is None else found.checkpoint["channel_values"]


@pytest.fixture
async def checkpoints(tmp_path: Path) -> AsyncIterator[Checkpoints]:
    opened = await Checkpoints.opened(tmp_path, VALUES)
    yield opened
    await opened.aclose()


# Of whole turns.


async def test_a_turn_of_words_that_is_over_leaves_no_checkpoint(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Hello."), says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello there")
    scene.text = [says("Still here.")]
    async with scene.studio() as studio:
        await run(studio, conversation.id, "are you there?")
        [first, second] = [turn.id for turn in (await studio.conversation(conversation.id)).turns]
    assert first not in stored(settings.home)
    scene.text = []
    async with scene.studio() as studio:
        await run(studio, conversation.id, "")
    assert stored(settings.home) & {first, second} == set()


async def test_many_turns_that_are_over_are_let_go_together_without_a_restart(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: says("Hello."))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        for number in range(40):
            await run(studio, conversation.id, f"hello number {number}")
    assert len(stored(settings.home)) < 10


async def test_waiting_and_failed_turns_keep_their_checkpoints_through_restarts(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), calls(generate())], pictures=[REFUSED])
    async with scene.studio() as studio:
        waits, fails = await studio.new_conversation(), await studio.new_conversation()
        waiting = started(await run(studio, waits.id, "a fox", confirm=True))
        failed = started(await run(studio, fails.id, "a fox"))
    for _ in range(2):
        scene.text = [says("Hello.")]
        async with scene.studio() as studio:
            await run(studio, (await studio.new_conversation()).id, "hello there")
        assert {waiting, failed} <= stored(settings.home)


async def test_a_turn_that_waited_and_was_left_behind_keeps_nothing(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Something else, then.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox", confirm=True)
        await run(studio, conversation.id, "no, tell me a joke")
    scene.text = [says("Hello.")]
    async with scene.studio() as studio:
        last = started(await run(studio, (await studio.new_conversation()).id, "hello there"))
    assert stored(settings.home) <= {last}


@pytest.mark.parametrize("rubbish", [b"this was a database once " * 400, b"SQLite format 3\0" + b"\xff" * 9000])
async def test_a_damaged_file_is_made_anew_and_every_conversation_still_opens(
    settings: Settings, rubbish: bytes
) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Something else.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))
    for ending in ("-wal", "-shm"):
        (settings.home / (NAME + ending)).unlink(missing_ok=True)
    (settings.home / NAME).write_bytes(rubbish)
    scene.text = [says("Something else.")]
    async with scene.studio() as studio:
        assert (await newest(studio, conversation.id)).state is TurnState.WAITING
        gone = await decide(studio, conversation.id, turn_id)
        assert only(gone, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert (await newest(studio, conversation.id)).state is TurnState.WAITING
        events = await run(studio, conversation.id, "something else")
    assert words(events) == "Something else."
    assert (settings.home / NAME).stat().st_mode & 0o777 == 0o600
    assert scene.provider.asked[-1].request is None


async def test_a_failed_turn_whose_checkpoint_was_lost_goes_on_from_its_beginning(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox"))
    for ending in ("", "-wal", "-shm"):
        (settings.home / (NAME + ending)).unlink(missing_ok=True)
    scene.text, scene.pictures = [], [picture()]
    async with scene.studio() as studio:
        events = await retry(studio, conversation.id, turn_id)
        assert isinstance(events[-1], TurnDone)
        assert [one.request is None for one in scene.provider.asked] == [False], "the planner's answer is known"
        assert (await newest(studio, conversation.id)).state is TurnState.DONE


# By themselves.


async def test_what_was_put_is_read_back_as_it_was(checkpoints: Checkpoints) -> None:
    plan = Plan(call=0, prompt="狐", model="pro", model_label="Pro", aspect_ratio="16:9", references=("#2",))
    values = {"plan": PlanCard(plans=(plan,)), "spend": Spend(price_usd=0.1 + 0.2), "settings": TurnSettings()}
    await checkpoints.aput(config("t1"), standing_at("decision", **values), AT_A_NODE, {})
    found = await read(checkpoints, "t1")
    assert found is not None
    assert {name: found[name] for name in values} == values


class ForeignValue(Value):
    """Something that a checkpoint of ours never holds; `made` tells of every one that was."""

    made: ClassVar[list[str]] = []

    text: str

    def model_post_init(self, context: Any) -> None:
        """Note that there is one more."""
        self.made.append(self.text)


async def test_nothing_is_made_of_a_type_that_is_not_ours(tmp_path: Path) -> None:
    generous = await Checkpoints.opened(tmp_path, (*VALUES, ForeignValue))
    foreign = ForeignValue(text="rm -rf")
    await generous.aput(config("t1"), standing_at("executor", foreign=foreign), AT_A_NODE, {})
    assert await read(generous, "t1") == {"branch:to:executor": None, "foreign": foreign}
    await generous.aclose()
    ForeignValue.made.clear()
    strict = await Checkpoints.opened(tmp_path, VALUES)
    found = await read(strict, "t1")
    await strict.aclose()
    assert ForeignValue.made == []
    assert not isinstance((found or {}).get("foreign"), ForeignValue)


async def test_keep_only_removes_the_others(checkpoints: Checkpoints, tmp_path: Path) -> None:
    for thread_id in ("t1", "t2", "t3"):
        await checkpoints.aput(config(thread_id), standing_at("executor"), AT_A_NODE, {})
    kept = {"t2", "never there"}

    async def may_go_on(turn_ids: Sequence[str]) -> set[str]:
        return kept & set(turn_ids)

    await checkpoints.keep_only(may_go_on)
    assert stored(tmp_path) == {"t2"}
    kept.clear()
    await checkpoints.keep_only(may_go_on)
    assert stored(tmp_path) == set()


async def test_a_turn_in_which_nothing_was_done_or_nothing_is_left_is_not_kept(
    checkpoints: Checkpoints, tmp_path: Path
) -> None:
    await checkpoints.aput(config("t1"), standing_at("planner"), {"source": "input", "step": -1}, {})
    await checkpoints.aput(config("t2"), empty_checkpoint(), AT_A_NODE, {})
    await checkpoints.aput(config("t3"), standing_at("presenter"), AT_A_NODE, {})
    await checkpoints.written()
    assert stored(tmp_path) == {"t3"}
    assert await read(checkpoints, "t1") is None


async def test_the_newest_of_a_turn_is_the_one_that_counts(checkpoints: Checkpoints) -> None:
    for node in ("retriever", "executor", "critic"):
        await checkpoints.aput(config("t1"), standing_at(node), AT_A_NODE, {})
        # Their names grow with time, a millisecond at a time.
        await asyncio.sleep(0.002)
    assert await read(checkpoints, "t1") == {"branch:to:critic": None}


async def test_a_checkpoint_is_written_by_itself_unless_the_next_one_comes_first(
    checkpoints: Checkpoints, tmp_path: Path
) -> None:
    for node in ("retriever", "executor"):
        await checkpoints.aput(config("t1"), standing_at(node), AT_A_NODE, {})
    await until(lambda: stored(tmp_path) == {"t1"})
    await checkpoints.aput(config("t1"), standing_at("critic"), AT_A_NODE, {})
    assert len([one async for one in checkpoints.alist(config("t1"))]) == 2


async def test_a_turn_that_was_over_at_once_is_never_written(checkpoints: Checkpoints, tmp_path: Path) -> None:
    await checkpoints.aput(config("t1"), standing_at("executor"), AT_A_NODE, {})
    checkpoints.forget("t1")
    await checkpoints.written()
    assert stored(tmp_path) == set()


async def test_what_was_handed_over_is_on_disk_when_it_is_closed(tmp_path: Path) -> None:
    checkpoints = await Checkpoints.opened(tmp_path, VALUES)
    for number in range(20):
        await checkpoints.aput(config(f"t{number}"), standing_at("executor"), AT_A_NODE, {})
    await checkpoints.aclose()
    assert len(stored(tmp_path)) == 20


async def test_a_home_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(StorageFailure) as failure:
        await Checkpoints.opened(tmp_path / "home", VALUES)
    assert failure.value.code is storage_failure(NotADirectoryError()).code


async def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(StorageFailure):
        await Checkpoints.opened(tmp_path, VALUES)
