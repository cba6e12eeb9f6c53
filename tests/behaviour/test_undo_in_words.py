"""Undo, redo and "back to #1" in words: no new picture, no call, and the next words change the earlier picture."""

from __future__ import annotations

import pytest

from agent import ActionPanel, AgentMessage, TargetChanged, TargetNote, TurnDone
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, png
from tests.wire_server import Call, Text


async def fox_with_a_hat(talk: Talk) -> None:
    """Have a fox painted, and a hat added to it."""
    await talk.say("a red fox", plan=paint(), image=SMALL)
    await talk.say("add a hat", plan=paint("add a hat", action="edit_image"), image=SMALL)


@pytest.mark.parametrize(
    "text", ["undo that", "put it back", "go back to #1", "use the first one again", "撤销", "恢复原来的", "回到第一张"]
)
async def test_the_earlier_picture_is_shown_and_nothing_is_asked_or_paid(talk: Talk, text: str) -> None:
    await fox_with_a_hat(talk)
    turn = await talk.say(text)
    kept = await talk.kept()
    change = turn.one(TargetChanged)
    assert (change.handle, change.before, change.has_moved) == ("#1", "#1b", True)
    assert (turn.requests, turn.one(TurnDone).price_usd) == ([], 0.0)
    assert ([one.handle for one in kept.pictures], kept.edit_target) == (["#1", "#1b"], "#1")
    note, panel = turn.components
    assert note == TargetNote(change=change)
    assert isinstance(panel, ActionPanel)
    assert panel.handle == "#1"
    after = await talk.say("make it warmer")
    assert (after.picture.parents, after.requests) == (("#1",), [])


@pytest.mark.parametrize(("back", "forward"), [("undo", "redo"), ("undo that", "undo the undo"), ("撤销", "重做")])
async def test_redo_and_the_undo_of_an_undo_go_forward_again(talk: Talk, back: str, forward: str) -> None:
    await talk.say("make it warmer", png())
    await talk.say(back)
    turn = await talk.say(forward)
    assert turn.one(TargetChanged).handle == (await talk.kept()).edit_target == "#1b"


async def test_undo_and_redo_go_one_step_further_each_time_and_say_when_nothing_is_left(talk: Talk) -> None:
    await talk.say("make it warmer", png())
    await talk.say("make it darker")
    for word, places in (("undo", ["#1b", "#1", "#1"]), ("redo", ["#1b", "#1c", "#1c"])):
        turns = [await talk.say(word) for _ in range(3)]
        moves = [turn.one(TargetChanged) for turn in turns]
        assert [(one.handle, one.has_moved) for one in moves] == list(zip(places, (True, True, False), strict=True))
        assert len(turns[-1].components) == 1


async def test_redo_where_nothing_was_undone_says_so(talk: Talk) -> None:
    await talk.say("make it warmer", png())
    change = (await talk.say("重做")).one(TargetChanged)
    assert (change.handle, change.has_moved) == ("#1b", False)


async def test_in_a_conversation_without_pictures_the_words_go_on_to_the_agent(talk: Talk) -> None:
    turn = await talk.say("undo that", plan=Text("There is nothing to undo yet."))
    assert turn.words == "There is nothing to undo yet."
    assert not of_type(turn.events, TargetChanged)


async def test_a_picture_that_is_not_there_is_named_and_nothing_is_changed(talk: Talk) -> None:
    await talk.say("make it warmer", png())
    turn = await talk.say("go back to #9 and make it darker")
    change = turn.one(TargetChanged)
    assert (change.missing, change.handle) == ("#9", "#1b")
    assert len((await talk.kept()).pictures) == 2
    assert talk.models.requests == []


@pytest.mark.parametrize(
    "text", ["undo that and make it darker", "撤销，再暗一些", "go back to #1, then make it darker"]
)
async def test_an_adjustment_asked_for_besides_starts_from_the_earlier_picture(talk: Talk, text: str) -> None:
    data = png(50, 40, "#4080c0")
    await talk.say("make it warmer", data)
    turn = await talk.say(text)
    assert turn.one(TargetChanged).handle == "#1"
    assert (turn.picture.handle, turn.picture.parents) == ("#1c", ("#1",))
    darker = await talk.say("make it darker", data)
    made, as_if_alone = [
        (await talk.studio.picture(talk.id, one.picture.handle, talk.owner)).data for one in (turn, darker)
    ]
    assert made == as_if_alone


async def test_a_change_by_a_model_asked_for_besides_starts_from_the_earlier_picture(talk: Talk) -> None:
    await fox_with_a_hat(talk)
    said = "No, undo that and add a scarf instead"
    turn = await talk.say(said, plan=paint("add a scarf", action="edit_image"), image=SMALL)
    assert turn.picture.parents == ("#1",)
    told = turn.requests[0].contents[-1]["parts"]
    assert told[0]["text"] == "add a scarf instead"
    assert told[1]["text"] == "[The person went back to #1 first: it is the picture to change.]"
    assert "When no picture is named, #1 is the one to change." in turn.requests[0].prompt
    kept = await talk.kept()
    assert kept.turns[-1].text == kept.turns[-1].messages[0].text == said
    assert kept.edit_target == "#1c"


async def test_the_planner_hears_in_later_turns_which_picture_is_the_one(talk: Talk) -> None:
    await fox_with_a_hat(talk)
    await talk.say("undo that")
    scarf = paint("add a scarf", action="edit_image", reference_mode="LAST_GENERATED")
    turn = await talk.say("add a scarf", plan=scarf, image=SMALL)
    planned = turn.requests[0]
    assert "When no picture is named, #1 is the one to change." in planned.prompt
    assert "went back one step: #1 is the picture to change now" in planned.text
    assert turn.picture.parents == ("#1",)


async def test_the_planner_can_go_back_by_itself(talk: Talk) -> None:
    await fox_with_a_hat(talk)
    plan = [Call("go_back_to", {"handle": "#1"}), Text("Here it is again.")]
    turn = await talk.say("hm, somehow I fancied the bareheaded one more", plan=plan)
    kept = await talk.kept()
    assert turn.one(TargetChanged).handle == kept.edit_target == "#1"
    shown = [component for component in turn.components if not isinstance(component, AgentMessage)]
    assert isinstance(shown[-1], TargetNote)
    assert len(kept.pictures) == 2


async def test_a_picture_that_the_planner_makes_up_goes_back_to_it_as_an_error(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(), image=SMALL)
    plan = [Call("go_back_to", {"handle": "#9"}), Text("There is no such picture.")]
    turn = await talk.say("hm, what about the other fox?", plan=plan)
    [answer] = turn.requests[-1].function_responses
    assert "error" in answer["response"]
    assert of_type(turn.events, TargetChanged) == []


async def test_sketch_mode_writes_on_the_earlier_picture(open_talk: OpenTalk) -> None:
    async with open_talk(provider="sketch") as talk:
        await talk.say("make it warmer", png(400, 300))
        turn = await talk.say("undo that and add the text “Hello”")
        assert (turn.picture.parents, turn.requests) == (("#1",), [])
        assert (await talk.say("undo")).one(TargetChanged).handle == "#1"


async def test_a_selected_picture_goes_back_to_the_one_it_was_made_from(talk: Talk) -> None:
    await talk.say("make it warmer", png())
    await talk.say("make it darker")
    assert (await talk.say("undo that", editing="#1b")).one(TargetChanged).handle == "#1"


async def test_words_beside_an_upload_are_about_the_upload(talk: Talk) -> None:
    turn = await talk.say("undo that", png(), plan=Text("What shall I do with it?"))
    assert of_type(turn.events, TargetChanged) == []
    assert len(turn.requests) == 1


async def test_it_holds_after_a_restart_and_on_each_branch(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("make it warmer", png())
        await talk.say("undo")
    async with open_talk(talk) as talk:
        assert (await talk.kept()).edit_target == "#1"
        assert (await talk.say("redo")).one(TargetChanged).handle == "#1b"
        await talk.say("make it darker", png(colour="blue"), instead_of=first.id)
        assert (await talk.say("undo")).one(TargetChanged).handle == "#2"
        shown = await talk.studio.conversations.switch_branch(talk.id, first.id, talk.owner)
    assert shown.edit_target == "#1b"
