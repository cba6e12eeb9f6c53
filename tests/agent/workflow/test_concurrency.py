"""Who waits, where in the line, and who comes next."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from agent import ErrorCode, RequestRefused, Step, ThoughtLog
from agent.workflow.concurrency import ConcurrencyLimiter
from tests.support.waiting import until


class Guest:
    """One that wants a seat, and what it was told."""

    def __init__(self, room: ConcurrencyLimiter) -> None:
        self.told: list[ThoughtLog] = []
        self.is_seated = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.stay = asyncio.create_task(self._stay(room))

    async def _stay(self, room: ConcurrencyLimiter) -> None:
        async with room.slot(self.told.append):
            self.is_seated.set()
            await self.may_leave.wait()

    @property
    def places(self) -> list[int]:
        assert all(line.step is Step.IN_LINE for line in self.told)
        return [int(line.parameters["place"]) for line in self.told]


async def leave(guest: Guest) -> None:
    guest.may_leave.set()
    await guest.stay


async def test_the_first_come_sit_and_the_others_hear_their_place_until_it_is_their_turn() -> None:
    room = ConcurrencyLimiter(2)
    guests = [Guest(room) for _ in range(4)]
    await until(lambda: len(guests[3].told) == 1)
    assert [guest.is_seated.is_set() for guest in guests] == [True, True, False, False]
    assert [guest.places for guest in guests] == [[], [], [1], [2]]
    await leave(guests[1])
    await guests[2].is_seated.wait()
    assert guests[3].places == [2, 1]
    await leave(guests[0])
    await guests[3].is_seated.wait()
    for guest in guests[2:]:
        await leave(guest)


async def test_whoever_gives_up_waiting_lets_the_others_move_up() -> None:
    room = ConcurrencyLimiter(1)
    first, second, third = (Guest(room) for _ in range(3))
    await until(lambda: bool(third.told))
    second.stay.cancel()
    with suppress(asyncio.CancelledError):
        await second.stay
    assert third.places == [2, 1]
    await leave(first)
    await third.is_seated.wait()
    await leave(third)


async def test_a_seat_is_not_lost_with_one_that_is_stopped_as_it_is_called() -> None:
    room = ConcurrencyLimiter(1)
    first, second = Guest(room), Guest(room)
    await until(lambda: bool(second.told))
    first.may_leave.set()
    await until(first.stay.done)
    second.stay.cancel()
    with suppress(asyncio.CancelledError):
        await second.stay
    third = Guest(room)
    await third.is_seated.wait()
    assert third.places == []
    await leave(third)


async def test_nobody_joins_a_line_that_is_too_long() -> None:
    room = ConcurrencyLimiter(1)
    guests = [Guest(room) for _ in range(5)]
    await until(lambda: bool(guests[4].told))
    with pytest.raises(RequestRefused) as caught:
        async with room.slot(lambda _line: None):
            pass
    assert caught.value.code is ErrorCode.STUDIO_BUSY
    for guest in guests:
        await guest.is_seated.wait()
        await leave(guest)
