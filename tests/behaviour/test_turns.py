"""Turns from the message to the picture: what the models receive, what the person hears, and what is kept."""

from __future__ import annotations

import json

import pytest

from agent import (
    ActionPanel,
    AgentMessage,
    AskBack,
    ErrorCode,
    QuestionAsked,
    RequestRefused,
    Role,
    SmartCanvas,
    TextDelta,
    TurnDone,
    TurnFailed,
    TurnStarted,
    TurnState,
)
from tests.behaviour.talk import Talk
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, png, words
from tests.wire_server import Answer, Call, CorruptPicture, Hold, HttpError, PictureAnswer, Text, WireRequest

REJECTED = HttpError(400, "Thought signature is not valid.")


def answered(request: WireRequest) -> str:
    """Return what the tools answered to the model, as one text."""
    return json.dumps(request.function_responses)


# ---- words


async def test_words_alone_are_streamed_and_kept(talk: Talk) -> None:
    turn = await talk.say("a forest", plan=Text("Which season shall it be?", chunks=2))
    assert (type(turn.events[0]), type(turn.events[-1])) == (TurnStarted, TurnDone)
    assert len(of_type(turn.events, TextDelta)) == 2
    assert turn.words == "Which season shall it be?"
    assert turn.components == (AgentMessage(text="Which season shall it be?"),)
    assert [message.role for message in (await talk.kept()).messages] == [Role.PROMPT, Role.MODEL]


async def test_only_the_call_makes_a_picture(talk: Talk) -> None:
    claimed = Text("Here is your picture: generate_image(prompt='a fox')")
    turn = await talk.say("a fox", plan=[claimed, Text("I did not paint.")])
    assert (turn.painted(), len(turn.requests)) == ([], 2)


@pytest.mark.parametrize("text", ["", "   ", "🦊🦊", "?!…"])
async def test_a_message_without_words_or_pictures_is_answered_without_a_call(talk: Talk, text: str) -> None:
    turn = await talk.say(text)
    assert turn.one(QuestionAsked).question == "empty"
    assert turn.components == (AskBack(question="empty"),)
    assert turn.requests == []


# ---- pictures


async def test_a_plain_picture_costs_one_text_call_and_one_image_call(talk: Talk) -> None:
    data = png(1376, 768)
    turn = await talk.say("a red fox", plan=paint(), image=PictureAnswer(data=data, mime="image/png"))
    assert len(turn.requests) == 2
    assert (await talk.studio.picture(talk.id, "#1", talk.owner)).data == data
    assert (turn.receipt.asked_aspect_ratio, turn.receipt.width, turn.receipt.height) == ("16:9", 1376, 768)
    assert turn.receipt.shortfalls == ()
    assert [type(one) for one in turn.components[-2:]] == [SmartCanvas, ActionPanel]
    kept = await talk.kept()
    assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL, Role.TOOL]


async def test_a_smaller_picture_than_asked_is_marked_in_its_receipt(talk: Talk) -> None:
    smaller = PictureAnswer(1376, 768)
    turn = await talk.say("a fox in 4K", plan=paint(), image=smaller, resolution="4K", aspect_ratio="16:9")
    assert (turn.receipt.asked_resolution, turn.receipt.shortfalls) == ("4K", ("resolution",))


async def test_locks_win_over_what_the_agent_chose(talk: Talk) -> None:
    wish = paint(aspect_ratio="21:9", resolution="1K", number_of_images=4, model="flash")
    locks = {"aspect_ratio": "1:1", "resolution": "2K", "number_of_images": 2, "image_model": "pro"}
    turn = await talk.say("a fox", plan=wish, image=[SMALL, SMALL], **locks)
    asked = [(one.model, one.config["imageConfig"]) for one in turn.painted()]
    assert asked == [("gemini-3-pro-image", {"aspectRatio": "1:1", "imageSize": "2K"})] * 2


async def test_a_broken_picture_is_refused_and_the_call_is_still_counted(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=CorruptPicture())
    assert turn.failure.code is ErrorCode.BROKEN_PICTURE
    assert turn.turn is not None
    assert turn.turn.usage.image_tokens > 0


async def test_the_next_sentence_edits_the_picture(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    turn = await talk.say("make it dusk", plan=paint("darker", reference_mode="LAST_GENERATED"), image=SMALL)
    assert (turn.picture.handle, turn.picture.parents) == ("#1b", ("#1",))
    # With the signature that it came with, or the server had refused it.
    assert [content["role"] for content in turn.painted()[0].contents] == ["user", "model", "user"]
    assert turn.painted()[0].config["imageConfig"]["aspectRatio"] == "16:9"


async def test_another_model_gets_the_picture_in_a_prompt_without_its_signature(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL, image_model="flash")
    darker = paint("darker", reference_mode="LAST_GENERATED")
    [request] = (await talk.say("at dusk", plan=darker, image=SMALL, image_model="pro")).painted()
    assert [content["role"] for content in request.contents] == ["user"]
    assert len(request.pictures) == 1
    assert "thoughtSignature" not in json.dumps(request.contents)


async def test_a_rejected_signature_is_retried_once_with_the_picture_in_a_prompt(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    darker = paint("darker", reference_mode="LAST_GENERATED")
    turn = await talk.say("at dusk", plan=[REJECTED, darker], image=[REJECTED, SMALL])
    roles = [[content["role"] for content in request.contents] for request in turn.painted()]
    assert roles == [["user", "model", "user"], ["user"]]
    assert turn.receipt.attempts == 2


async def test_a_signature_rejected_twice_is_told(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=[REJECTED, REJECTED])
    assert turn.failure.code is ErrorCode.SIGNATURE_REJECTED


async def test_the_picture_the_person_clicked_comes_before_what_the_agent_chose(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    await talk.say("a whale", plan=paint(), image=SMALL)
    turn = await talk.say("at dusk", plan=paint("darker", handles=["#2"]), image=SMALL, editing="#1")
    assert turn.picture.parents == ("#1", "#2")


async def test_a_clicked_handle_that_does_not_exist_is_refused(talk: Talk) -> None:
    turn = await talk.say("at dusk", editing="#5")
    assert (turn.failure.code, turn.requests) == (ErrorCode.PICTURE_NOT_FOUND, [])


# ---- what goes back to the model


async def test_an_unknown_handle_goes_back_to_the_model_which_mends_it(talk: Talk) -> None:
    turn = await talk.say("make it dusk", plan=[paint(handles=["#9"]), paint()], image=SMALL)
    assert "#9" in answered(turn.requests[1])
    assert turn.picture.handle == "#1"


@pytest.mark.parametrize("action", ["edit_image", "adjust_parameters"])
async def test_a_change_where_there_is_no_picture_goes_back_to_the_model_and_is_not_paid(
    talk: Talk, action: str
) -> None:
    turn = await talk.say("add a hat", plan=[paint("add a hat", action=action), Text("Which picture do you mean?")])
    assert action in answered(turn.requests[1])
    assert "none yet" in answered(turn.requests[1])
    assert (turn.painted(), (await talk.kept()).pictures) == ([], ())
    assert isinstance(turn.events[-1], TurnDone)


async def test_a_change_of_the_newest_painting_where_all_were_uploaded_names_what_there_is(talk: Talk) -> None:
    await talk.say("my cat", png(), plan=Text("Nice."))
    wrong = paint("add a hat", action="edit_image", reference_mode="LAST_GENERATED")
    right = paint("add a hat", action="edit_image", handles=["#1"])
    turn = await talk.say("add a hat", plan=[wrong, right], image=SMALL)
    assert "#1" in answered(turn.requests[1])
    assert turn.picture.parents == ("#1",)


@pytest.mark.parametrize("text", ["change only the masked area to grass", "把涂抹的地方去掉"])
@pytest.mark.parametrize("uploads", [(), (png(),)])
async def test_words_of_a_mask_without_one_are_asked_about_before_anything_is_paid(
    talk: Talk, text: str, uploads: tuple[bytes, ...]
) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    turn = await talk.say(text, *uploads)
    assert (turn.components, turn.requests) == ((AskBack(question="no_mask"),), [])
    assert turn.one(TurnDone).price_usd == 0.0


async def test_the_same_call_three_times_ends_the_turn(talk: Talk) -> None:
    turn = await talk.say("round and round", plan=lambda request: Call("list_files"))
    assert (turn.failure.code, len(turn.requests)) == (ErrorCode.TOO_MANY_STEPS, 3)
    assert (await talk.kept()).messages[-1].role is Role.TOOL


async def test_pictures_of_the_past_are_placeholders_for_the_text_model(talk: Talk) -> None:
    [first] = (await talk.say("look", png(), plan=Text("Nice."))).requests
    [second] = (await talk.say("what did I show you?", plan=Text("A red one."))).requests
    assert (len(first.pictures), len(second.pictures)) == (1, 0)
    assert "[Picture:history_" in second.text
    assert "#1" in second.text


async def test_the_list_of_pictures_goes_with_the_newest_message_alone_and_is_not_kept(talk: Talk) -> None:
    await talk.say("a red fox", plan=paint(subject="a red fox"), image=SMALL)
    turns = [await talk.say("look", png(), plan=Text("Seen.")), await talk.say("and now?", plan=Text("Still."))]
    for turn, listed in zip(turns, ("look", "and now?"), strict=True):
        [request] = turn.requests
        assert [listed in str(one) for one in request.contents if "[PICTURES]" in str(one)] == [True]
    assert turns[0].requests[0].last_text.startswith("lookPicture #2:[PICTURES]\n#1 (painted here; a red fox)")
    assert "[PICTURES]" not in "".join(message.text for message in (await talk.kept()).messages)


async def test_the_agent_can_look_at_a_picture_of_the_past_again(talk: Talk) -> None:
    def brain(request: WireRequest) -> Answer:
        if request.function_responses:
            return Text("It is red.")
        md5 = request.text.split("[Picture:history_")[1][:32]
        return Call("get_history_image", {"image_id": md5})

    await talk.say("look", png(), plan=Text("Nice."))
    turn = await talk.say("what colour was it?", plan=brain)
    assert len(turn.requests[-1].pictures) == 1
    assert turn.words == "It is red."


# ---- followed, twice at once


async def test_a_turn_goes_on_when_nobody_listens_and_can_be_followed_again(talk: Talk) -> None:
    talk.models.on_text(Hold(Text("One two.", chunks=2), after_chunks=1))
    async for event in talk.run("count"):
        if isinstance(event, TextDelta):
            break
    assert talk.studio.turns.is_running(talk.id, talk.owner)
    talk.models.release()
    followed = [event async for event in talk.studio.attach(talk.id, talk.owner)]
    assert isinstance(followed[0], TurnStarted)
    assert words(followed) == "One two."
    assert (await talk.kept()).turns[0].state is TurnState.DONE


async def test_a_stranger_can_neither_read_nor_use_a_conversation(talk: Talk) -> None:
    with pytest.raises(RequestRefused):
        await talk.studio.conversations.get(talk.id, owner="bob")
    stranger = Talk(talk.studio, talk.models, talk.id, "bob")
    events = [event async for event in stranger.run("hello there")]
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert talk.models.requests == []
