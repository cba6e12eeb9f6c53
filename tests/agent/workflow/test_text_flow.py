"""Streamed words on their way to the listeners."""

from __future__ import annotations

import asyncio

from agent.workflow.text_flow import TextFlow


async def test_the_first_words_go_at_once_and_the_rest_together() -> None:
    heard: list[str] = []
    async with TextFlow(lambda text, _: heard.append(text)) as flow:
        await flow.take("One ")
        assert heard == ["One "]
        await flow.take("two ")
        await flow.take("three.")
        assert heard == ["One "]
    assert heard == ["One ", "two three."]


async def test_words_do_not_wait_for_the_ones_after_them() -> None:
    arrived = asyncio.Event()
    heard: list[str] = []

    def listen(text: str, _: bool) -> None:
        heard.append(text)
        if len(heard) == 2:
            arrived.set()

    async with TextFlow(listen) as flow:
        await flow.take("One ")
        await flow.take("two")
        await arrived.wait()
    assert heard == ["One ", "two"]


async def test_nothing_said_is_nothing_heard() -> None:
    heard: list[str] = []
    async with TextFlow(lambda text, _: heard.append(text)):
        pass
    assert heard == []


async def test_thoughts_and_words_are_handed_on_apart() -> None:
    heard: list[tuple[str, bool]] = []
    async with TextFlow(lambda text, is_thought: heard.append((text, is_thought))) as flow:
        for text, is_thought in (("I ", True), ("weigh it.", True), ("Yes", False), (".", False)):
            await flow.take(text, is_thought)
    assert heard == [("I ", True), ("weigh it.", True), ("Yes.", False)]
