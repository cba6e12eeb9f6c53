"""Writes that are committed together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from agent.storage.writing import Writing


class Book:
    """A thread that writes lines, and how many transactions it took; `gate` holds the thread back."""

    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.gate = threading.Event()
        self.thread.submit(self.gate.wait)
        self.transactions = 0
        self.lines: list[str] = []
        self.remembered: list[str] = []
        self.writing = Writing(self.thread, self.together)

    @contextmanager
    def together(self) -> Iterator[None]:
        before = list(self.lines)
        self.transactions += 1
        try:
            yield
        except Exception:
            self.lines[:] = before
            raise

    async def write(self, line: str) -> None:
        def record() -> None:
            if line == "bad":
                raise ValueError(line)
            self.lines.append(line)

        def remember() -> None:
            if line == "forgotten":
                raise KeyError(line)
            self.remembered.append(line)

        await self.writing.write(record, remember)


async def written(book: Book, *lines: str) -> list[BaseException | None]:
    """Write the lines: the first alone, the others while it is written."""
    waiting = [asyncio.create_task(book.write(line)) for line in lines]
    await asyncio.sleep(0)
    book.gate.set()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    await book.writing.finish()
    book.thread.shutdown()
    return outcomes


async def test_what_waits_goes_into_one_transaction_and_in_order() -> None:
    book = Book()
    assert await written(book, "a", "b", "c", "d") == [None] * 4
    assert book.transactions <= 2
    assert book.lines == book.remembered == ["a", "b", "c", "d"]


async def test_a_bad_write_fails_alone_and_nothing_is_written_twice() -> None:
    book = Book()
    outcomes = await written(book, "a", "b", "bad", "d")
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), ValueError, type(None)]
    assert book.lines == book.remembered == ["a", "b", "d"]


async def test_one_that_cannot_be_remembered_leaves_nobody_waiting() -> None:
    book = Book()
    outcomes = await written(book, "a", "b", "forgotten", "d")
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), KeyError, type(None)]
    assert book.lines == ["a", "b", "forgotten", "d"]
    assert book.remembered == ["a", "b", "d"]


async def test_a_cancelled_writer_does_not_take_its_write_back() -> None:
    book = Book()
    writer = asyncio.create_task(book.write("a"))
    await asyncio.sleep(0)
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    book.gate.set()
    await book.writing.finish()
    book.thread.shutdown()
    assert book.lines == book.remembered == ["a"]
