"""Answers on disk: the same request is answered again for an hour, anything else never; whatever fails is a miss."""

from __future__ import annotations

import asyncio
import contextlib
import glob
import hashlib
import json
import logging
import os
import pickle
import shutil
import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, SecretStr

from agent.messages import ImageOrigin, PromptMessage, Role, TextPart, TokenUsage, ToolCallPart
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.storage.answer_cache import AnswerCache, fingerprint_of, heard_in, key_of, value_of
from agent.storage.journal import Heard
from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.histories import LARGE_SIGNATURE, SMALL_SIGNATURE, image_part

KEY, OTHER = "a" * 64, "b" * 64
VALUE: JsonValue = {"parts": [{"text": "狐 \u0000 fox", "n": [1, 2.5, None, True]}]}
LONG: JsonValue = {"text": "x" * 100_000}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_s: float = 1_800_000_000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@asynccontextmanager
async def opened(home: Path, **changes: Any) -> AsyncIterator[AnswerCache]:
    cache = AnswerCache(home, **{"free_space_floor_bytes": 0, **changes})
    try:
        yield cache
    finally:
        await cache.aclose()


def folder(home: Path) -> Path:
    return home / "cache" / "answers"


def change_rows(home: Path, statement: str, *values: object) -> None:
    """Do to the cache's database what somebody else could do."""
    with contextlib.closing(sqlite3.connect(folder(home) / "cache.db")) as database:
        database.execute(statement, values)
        database.commit()


def rows(home: Path) -> list[tuple[str, Any]]:
    with contextlib.closing(sqlite3.connect(folder(home) / "cache.db")) as database:
        return list(database.execute("SELECT key, value FROM Cache"))


def sealed(key: str, content: bytes) -> bytes:
    """Return content with a seal that fits, as somebody who knows how it is made could write it."""
    return b"b" + hashlib.sha256(key.encode() + content).digest() + content


# Keys


def request(**changes: Any) -> dict[str, Any]:
    said = PromptMessage(role=Role.PROMPT, parts=(image_part("#1"), TextPart(text="a fox")))
    asked: dict[str, Any] = {
        "model_id": "text-model",
        "messages": [said],
        "tools": [ToolDeclaration(name="generate_image", description="paints", parameters={"type": "object"})],
        "options": ChatOptions(system="You paint."),
        "owner": "visitor-1",
        "key_fingerprint": fingerprint_of("gemini", SecretStr("AIza-one")),
    }
    return {**asked, **changes}


def test_the_same_request_has_the_same_key_in_every_process() -> None:
    key = key_of(**request())
    assert key == key_of(**request())
    assert len(key) == 64
    assert set(key) <= set("0123456789abcdef")
    code = """
from tests.agent.storage.test_answer_cache import key_of, request
print(key_of(**request()))
"""
    assert run_child(code).stdout.strip() == key


def with_picture(**changes: Any) -> list[PromptMessage]:
    image = image_part("#1").model_copy(update=changes)
    return [PromptMessage(role=Role.PROMPT, parts=(image, TextPart(text="a fox")))]


def signed(signature: bytes) -> list[PromptMessage]:
    part = TextPart(text="", thought_signature=signature, signed_by="text-model")
    return [*request()["messages"], PromptMessage(role=Role.MODEL, parts=(part,))]


CHANGES: dict[str, dict[str, Any]] = {
    "another model": {"model_id": "text-model-2"},
    "another owner": {"owner": "visitor-2"},
    "another key": {"key_fingerprint": fingerprint_of("gemini", SecretStr("AIza-two"))},
    "another provider": {"key_fingerprint": fingerprint_of("openai", SecretStr("AIza-one"))},
    "no key": {"key_fingerprint": fingerprint_of("gemini")},
    "another picture": {"messages": with_picture(digest="0" * 64)},
    "another origin": {"messages": with_picture(origin=ImageOrigin.GENERATED)},
    "other words": {"messages": [PromptMessage(role=Role.PROMPT, parts=(TextPart(text="a fox"),))]},
    "one more message": {"messages": signed(b"1")},
    "another signature": {"messages": signed(b"2")},
    "no message": {"messages": []},
    "no tools": {"tools": []},
    "another tool": {"tools": [ToolDeclaration(name="t", description="", parameters={})]},
    "another system prompt": {"options": ChatOptions(system="You paint!")},
    "another thinking level": {"options": ChatOptions(system="You paint.", thinking_level="high")},
}


def test_whatever_changes_in_a_request_changes_its_key() -> None:
    keys = {name: key_of(**request(**change)) for name, change in CHANGES.items()}
    keys["as it is"] = key_of(**request())
    assert len(set(keys.values())) == len(CHANGES) + 1, keys


def test_the_order_of_a_calls_arguments_does_not_change_the_key() -> None:
    def messages(arguments: dict[str, JsonValue]) -> list[PromptMessage]:
        return [PromptMessage(role=Role.MODEL, parts=(ToolCallPart(name="t", arguments=arguments),))]

    one, other = messages({"a": 1, "b": {"c": 2, "d": 3}}), messages({"b": {"d": 3, "c": 2}, "a": 1})
    assert key_of(**request(messages=one)) == key_of(**request(messages=other))


def test_a_fingerprint_does_not_tell_the_key() -> None:
    assert "AIza" not in fingerprint_of("gemini", SecretStr("AIza-one"))
    assert fingerprint_of("a", SecretStr("bc")) != fingerprint_of("ab", SecretStr("c"))


# Answers


def test_an_answer_comes_back_exactly_signatures_included() -> None:
    parts = (
        TextPart(text="hm", is_thought=True),
        TextPart(text="", thought_signature=SMALL_SIGNATURE, signed_by="text-model"),
        ToolCallPart(name="generate_image", arguments={"prompt": "狐", "n": [1.5]}, thought_signature=LARGE_SIGNATURE),
        image_part("#1"),
    )
    heard = Heard(parts=parts, usage=TokenUsage(prompt_tokens=7), finish_reason="STOP")
    value = value_of(heard)
    assert heard_in(json.loads(json.dumps(value))) == heard


@each_case(
    "value",
    [
        None,
        "text",
        [],
        {},
        {"parts": []},
        {"parts": [{"type": "song", "text": "x"}]},
        {"parts": [{"type": "text", "text": "x", "thought_signature": "no base64!"}]},
        {"parts": [{"type": "text", "text": "x"}], "more": 1},
    ],
)
def test_what_is_no_whole_answer_is_none(value: JsonValue) -> None:
    assert heard_in(value) is None


# The cache


@pytest.mark.parametrize("value", [VALUE, LONG, "words", 0, False, [], {}], ids=lambda value: type(value).__name__)
async def test_a_value_comes_back_after_a_restart(tmp_path: Path, value: JsonValue) -> None:
    async with opened(tmp_path) as cache:
        assert await cache.get(KEY) is None
        assert await cache.put(KEY, value)
        assert await cache.get(KEY) == value
    async with opened(tmp_path) as cache:
        assert await cache.get(KEY) == value
        assert await cache.get(OTHER) is None


async def test_a_value_put_again_replaces_the_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(KEY, "first")
        await cache.put(KEY, "second")
        assert await cache.get(KEY) == "second"


async def test_the_folder_is_private_and_its_rows_name_only_the_digest(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(KEY, VALUE)
    assert os.stat(folder(tmp_path)).st_mode & 0o777 == 0o700
    assert [key for key, _ in rows(tmp_path)] == [f"aivista:cache:answer_{KEY}"]


async def test_a_value_lives_for_an_hour_after_it_was_put_however_often_it_is_read(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock) as cache:
        await cache.put(KEY, VALUE)
        for _ in range(3):
            clock.now_s += 1190
            assert await cache.get(KEY) == VALUE
        clock.now_s += 40
        assert await cache.get(KEY) is None
        assert rows(tmp_path) == []
    async with opened(tmp_path, clock=Clock()) as cache:
        assert await cache.get(KEY) is None


async def test_an_entry_from_the_future_is_not_believed(tmp_path: Path) -> None:
    clock = Clock()
    async with opened(tmp_path, clock=clock) as cache:
        await cache.put(KEY, VALUE)
        clock.now_s -= 1
        assert await cache.get(KEY) is None


@pytest.mark.parametrize("value", [None, float("nan"), {"deep": [float("inf")]}])
async def test_what_is_no_json_is_not_kept(tmp_path: Path, value: JsonValue) -> None:
    async with opened(tmp_path) as cache:
        assert not await cache.put(KEY, value)
        assert await cache.get(KEY) is None


async def test_a_value_too_large_is_not_kept_and_throws_nothing_out(tmp_path: Path) -> None:
    async with opened(tmp_path, limit_bytes=1_000_000) as cache:
        assert await cache.put(KEY, VALUE)
        assert not await cache.put(OTHER, "x" * 250_001)
        assert await cache.get(KEY) == VALUE


async def test_the_disk_keeps_to_its_limit(tmp_path: Path) -> None:
    async with opened(tmp_path, limit_bytes=4_000_000) as cache:
        for number in range(120):
            assert await cache.put(f"{number:064}", [number, "x" * 100_000])
        assert await cache.get(f"{119:064}") == [119, "x" * 100_000]
        files = glob.glob(f"{folder(tmp_path)}/*/*/*.val")
        assert 1_000_000 < sum(os.stat(path).st_size for path in files) <= 4_400_000


async def test_nothing_is_made_on_disk_before_the_first_use_and_nothing_happens_after_the_end(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, free_space_floor_bytes=0)
    await cache.aclose()
    await cache.aclose()
    assert not await cache.put(KEY, VALUE)
    assert await cache.get(KEY) is None
    assert os.listdir(tmp_path) == []


async def test_many_at_once_are_all_kept(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        assert all(await asyncio.gather(*(cache.put(f"{number:064}", number) for number in range(40))))
        assert await asyncio.gather(*(cache.get(f"{number:064}") for number in range(40))) == list(range(40))


# Damage


@pytest.mark.parametrize("value", [VALUE, LONG], ids=["in the row", "in a file"])
@pytest.mark.parametrize("damage", ["shorter", "one bit", "empty", "of another key"])
async def test_a_damaged_entry_is_a_miss_and_can_be_put_again(tmp_path: Path, value: JsonValue, damage: str) -> None:
    def damaged(data: bytes, other: bytes) -> bytes:
        flipped = data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]  # still JSON
        return {"shorter": data[:-9], "one bit": flipped, "empty": b"", "of another key": other}[damage]

    async with opened(tmp_path) as cache:
        await cache.put(KEY, value)
        (file,) = glob.glob(f"{folder(tmp_path)}/*/*/*.val") or [""]
        await cache.put(OTHER, value)
        if file:
            (second,) = set(glob.glob(f"{folder(tmp_path)}/*/*/*.val")) - {file}
            path, other = Path(file), await asyncio.to_thread(Path(second).read_bytes)
            await asyncio.to_thread(path.write_bytes, damaged(await asyncio.to_thread(path.read_bytes), other))
        else:
            stored = dict(rows(tmp_path))
            first, other = (stored[f"aivista:cache:answer_{key}"] for key in (KEY, OTHER))
            change_rows(tmp_path, "UPDATE Cache SET value = ? WHERE key LIKE '%a'", damaged(first, other))
        assert await cache.get(KEY) is None
        assert await cache.get(OTHER) == value, "the others are not touched"
        assert await cache.put(KEY, value)
        assert await cache.get(KEY) == value


class Poison:
    """Something that runs code when pickle reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.path),))


FOREIGN = {
    "no JSON": (1, b"j{{{{"),
    "a number": (1, b"j1"),
    "deep": (1, b"j" + b"[" * 100_000),
    "text": (3, "text"),
    "sealed rubbish": (1, sealed(KEY, b"\xff{")),
    "sealed list": (1, sealed(KEY, b"[1]")),
    "sealed without a time": (1, sealed(KEY, b'{"value": 1}')),
    "sealed with a time that is none": (1, sealed(KEY, b'{"at_s": "x", "value": 1}')),
    "sealed depth": (1, sealed(KEY, b'{"at_s": 1, "value": ' + b"[" * 100_000 + b"}")),
    "compressed": (1, zlib.compress(b"x")),
}


@pytest.mark.parametrize("case", FOREIGN)
async def test_a_row_that_somebody_else_wrote_is_a_miss(
    tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    mode, value = FOREIGN[case]
    async with opened(tmp_path) as cache:
        await cache.put(KEY, VALUE)
        change_rows(tmp_path, "UPDATE Cache SET mode = ?, value = ?", mode, value)
        assert await cache.get(KEY) is None
        assert await cache.put(KEY, VALUE)
        assert await cache.get(KEY) == VALUE
    assert caplog.records == []


async def test_a_poisoned_pickle_does_not_run(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        await cache.put(KEY, VALUE)
        poison = pickle.dumps(Poison(tmp_path / "it ran"))
        change_rows(tmp_path, "UPDATE Cache SET mode = 4, value = ?", poison)
        assert await cache.get(KEY) is None
        assert "it ran" not in os.listdir(tmp_path)


async def test_a_garbled_database_is_set_aside_and_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder(tmp_path).mkdir(parents=True)
    (folder(tmp_path) / "cache.db").write_bytes(b"no database at all " * 500)
    async with opened(tmp_path) as cache:
        with caplog.at_level(logging.WARNING):
            assert await cache.get(KEY) is None
        assert await cache.put(KEY, VALUE)
        assert await cache.get(KEY) == VALUE
    assert len(glob.glob(f"{tmp_path}/cache/answers.unreadable-*")) == 1
    assert "the cache answers was unreadable" in caplog.text
    assert "history" not in caplog.text


async def test_a_database_that_another_process_locks_is_a_miss_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(tmp_path) as cache:
        assert await cache.put(KEY, VALUE)
        with contextlib.closing(sqlite3.connect(folder(tmp_path) / "cache.db", isolation_level=None)) as database:
            database.execute("BEGIN EXCLUSIVE")
            with caplog.at_level(logging.WARNING):
                assert not await cache.put(OTHER, VALUE)
                assert await cache.get(KEY) is None
            database.execute("ROLLBACK")
    assert len(caplog.records) == 1
    async with opened(tmp_path) as cache:
        assert await cache.get(KEY) == VALUE


async def test_a_folder_that_cannot_be_made_is_a_miss(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    async with opened(tmp_path) as cache:
        assert not await cache.put(KEY, VALUE)
        assert await cache.get(KEY) is None


async def test_a_folder_deleted_while_running_is_a_miss(tmp_path: Path) -> None:
    async with opened(tmp_path) as cache:
        assert await cache.put(KEY, LONG)
        shutil.rmtree(folder(tmp_path))
        assert await cache.get(KEY) is None
        await cache.put(KEY, LONG)
    async with opened(tmp_path) as cache:
        assert await cache.put(KEY, LONG)
        assert await cache.get(KEY) == LONG


async def test_a_nearly_full_disk_is_left_alone(tmp_path: Path) -> None:
    async with opened(tmp_path, free_space_floor_bytes=1 << 60) as cache:
        assert not await cache.put(KEY, VALUE)
        assert await cache.get(KEY) is None


def test_a_disk_that_takes_no_more_is_a_miss(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.storage.answer_cache import AnswerCache

async def main():
    cache = AnswerCache(Path(sys.argv[1]), free_space_floor_bytes=0)
    print(await cache.put("a" * 64, "first"))
    print(await cache.put("b" * 64, "x" * 2_000_000))
    print(await cache.get("b" * 64))
    await cache.aclose()

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), max_file_bytes=1_000_000)
    assert child.stdout.split() == ["True", "False", "None"], child.stderr
    assert "answers are not kept for now" in child.stderr


def test_the_cache_is_not_on_the_path_to_the_first_page() -> None:
    code = "import sys; import agent.storage.answer_cache; print([n for n in sys.modules if 'diskcache' in n])"
    assert run_child(code).stdout.strip() == "[]"
