"""`editing="none"`: the words make a new picture, and lean on no earlier one that they do not name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from agent import ErrorCode, Mask, ReferenceMode, TurnFailed, TurnRequest, TurnSettings
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, png
from tests.wire_server import Finish, Text

TARGET = "is the one to change"
ANEW = "[The person marked no picture to change"


@pytest_asyncio.fixture(loop_scope="module")
async def fox(talk: Talk) -> Talk:
    await talk.say("a fox", plan=paint(), image=SMALL)
    return talk


async def owl(talk: Talk, said: str = "an owl", plan: dict[str, Any] | None = None, **chosen: Any) -> TurnResult:
    return await talk.say(said, editing="none", plan=paint("an owl", **(plan or {})), image=SMALL, **chosen)


async def test_the_planner_is_told_of_no_target_and_the_picture_has_no_parent(fox: Talk) -> None:
    assert (await fox.kept()).edit_target == "#1"
    made = await owl(fox)
    planned, painted = made.requests
    assert TARGET not in planned.text
    assert ANEW in planned.last_text
    assert "#1 (painted here" in planned.last_text
    assert "inlineData" not in str(painted.contents)
    assert (made.picture.handle, made.picture.parents, made.receipt.references) == ("#2", (), ())
    assert (made.record.editing, made.record.asked_editing) == ("", "none")
    after = await fox.say("what is it like?", plan=Text("Yes."))
    assert f"#2 {TARGET}" in after.requests[0].text, "it holds for one turn"
    assert (after.record.editing, after.record.asked_editing) == (None, None)


@pytest.mark.parametrize(
    "plan", [{"reference_mode": "LAST_GENERATED"}, {"reference_mode": "LAST_N", "reference_count": 1}]
)
async def test_no_rule_of_references_leans_on_the_last_picture(fox: Talk, plan: dict[str, Any]) -> None:
    assert (await owl(fox, plan=plan)).receipt.references == ()
    fixed = await owl(fox, reference_mode=ReferenceMode(plan["reference_mode"]))
    assert fixed.receipt.references == (), "nor where the person fixed the rule"


async def test_a_change_of_no_picture_is_given_back_to_the_agent(fox: Talk) -> None:
    change = paint("a warmer fox", action="edit_image")
    made = await fox.say("make it", editing="none", plan=[change, paint("an owl")], image=SMALL)
    assert len(made.requests) == 3
    assert made.picture.parents == ()


async def test_words_that_the_page_carries_out_by_itself_are_for_the_agent_then(fox: Talk) -> None:
    for words in ("brightness +20", "extend it to 16:9"):
        made = await owl(fox, words)
        assert (made.picture.parents, made.record.margins) == ((), None)


async def test_a_picture_that_is_named_or_sent_can_be_changed_all_the_same(fox: Talk) -> None:
    named = await owl(fox, "make #1 an owl", {"action": "edit_image", "handles": ["#1"]})
    assert named.picture.parents == ("#1",)
    sent = await fox.say("an owl", png(), editing="none", plan=paint("an owl", action="edit_image"), image=SMALL)
    assert ANEW not in sent.requests[0].last_text
    assert sent.picture.parents == (sent.record.uploads[0].handle,)


async def test_it_is_carried_along_when_the_turn_is_retried_and_said_otherwise(fox: Talk) -> None:
    failed = await fox.say("an owl", editing="none", plan=paint("an owl"), image=Finish("IMAGE_SAFETY"))
    assert (await fox.retry(failed, image=SMALL)).picture.parents == ()
    request = await fox.studio.turns.request_of(fox.id, failed.id, fox.owner)
    assert (request.editing, request.marked) == ("none", ())
    otherwise = await fox.send(replace(request, text="a hen", instead_of=failed.id), paint("a hen"), SMALL)
    assert (otherwise.record.asked_editing, TARGET in otherwise.requests[0].text) == ("none", False)
    once_more = await fox.studio.turns.repeated(fox.id, otherwise.picture.handle, fox.owner)
    assert once_more is not None
    assert (once_more.editing, (await fox.send(once_more, image=SMALL)).picture.parents) == ("none", ())


async def test_it_stays_on_record_over_restarts_and_archives(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await talk.say("a fox", plan=paint(), image=SMALL)
        await owl(talk)
    async with open_talk(talk) as talk:
        exported = await talk.studio.archive.export_conversation(talk.id, talk.owner)
        report = await talk.studio.archive.import_archive(exported.path, talk.owner)
        [taken] = report.conversations
        taken_in = await talk.studio.conversations.get(taken.id, talk.owner)
        for kept in (await talk.kept(), taken_in):
            assert [turn.asked_editing for turn in kept.turns] == [None, "none"]


async def test_an_empty_editing_is_none_at_all_and_a_mask_needs_a_picture(fox: Talk) -> None:
    plain = await fox.send(
        TurnRequest("what is it like?", editing="", settings=TurnSettings(review="off")), Text("Yes.")
    )
    assert f"#1 {TARGET}" in plain.requests[0].text
    refused = await fox.say("warmer", editing="none", mask=Mask(png(), "#1"))
    assert of_type(refused.events, TurnFailed)[0].error.code is ErrorCode.MASK_OF_ANOTHER_PICTURE
