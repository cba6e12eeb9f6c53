"""Turns through the whole graph, on scripted models and the real records."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent.components import ActionPanel, AgentMessage, AskBack, FailureNote, SearchNote, SmartCanvas, StoppedNote
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, NetworkFailure, ProviderFailure, RequestRefused
from agent.events import (
    PaintingStarted,
    PictureFailed,
    PictureReady,
    QuestionAsked,
    SearchFound,
    Step,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    TurnStopped,
)
from agent.messages import GroundingPart, ImagePart, Role, Source, TextPart, ToolCallPart, ToolResultPart
from agent.pictures import MissingStyleReason
from agent.providers.scripted import Asked, Hold, Line, Painting, calls, finds, says
from agent.settings import SearchPolicy, Settings
from agent.studio import TurnRequest
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, stop_at, words

FACTS = '{"facts": [{"item": "The tower is 330 m high.", "source": "toureiffel.example"}], "prompt_draft": "a tower"}'
GROUNDED = GroundingPart(
    queries=("tower height",),
    sources=(Source(title="toureiffel.example", url="https://redirect.example/1"),),
    suggestions_html="<div>Search</div>",
)
SEARCH = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})


async def test_words_alone_are_streamed_and_kept(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Which season shall it be?")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a forest")
        kept = await studio.conversation(conversation.id)
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnDone)
    assert [event.text for event in of_type(events, TextDelta)] == ["Which ", "season shall it be?"]
    assert words(events) == "Which season shall it be?"
    assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL]
    assert kept.turns[0].components == (AgentMessage(text="Which season shall it be?"),)


async def test_only_the_call_makes_a_picture(settings: Settings) -> None:
    scene = Scene(
        settings, text=[says("Here is your picture: generate_image(prompt='a fox')"), says("I did not paint.")]
    )
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox")
    assert not of_type(events, PaintingStarted)
    assert [one.request for one in scene.provider.asked] == [None, None]


async def test_a_plain_picture_costs_one_text_call_and_one_image_call(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(), text="A fox it is.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
        kept = await studio.conversation(conversation.id)
        stored = await studio.picture(conversation.id, "#1")
    assert len(scene.provider.asked) == 2
    ready = only(events, PictureReady)
    assert ready.picture.handle == "#1"
    assert stored.data == png(1376, 768)
    assert stored.receipt is not None
    assert stored.receipt.asked_aspect_ratio == "16:9"
    assert (stored.receipt.width, stored.receipt.height) == (1376, 768)
    assert stored.receipt.shortfalls == ()
    assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL, Role.TOOL]
    assert [type(one) for one in kept.turns[0].components[-2:]] == [SmartCanvas, ActionPanel]


async def test_a_smaller_picture_than_asked_is_marked_in_its_receipt(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture(1376, 768)])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox in 4K", resolution="4K", aspect_ratio="16:9")
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.asked_resolution == "4K"
    assert receipt.shortfalls == ("resolution",)


async def test_locks_win_over_what_the_agent_chose(settings: Settings) -> None:
    wish = generate(aspect_ratio="21:9", resolution="1K", number_of_images=4, model="flash")
    scene = Scene(settings, text=[calls(wish)], pictures=[picture(1024, 1024), picture(1024, 1024)])
    locks: dict[str, Any] = {"aspect_ratio": "1:1", "resolution": "2K", "number_of_images": 2, "image_model": "pro"}
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox", **locks)
    asked = [one.request for one in scene.provider.asked if one.request]
    assert len(asked) == 2
    assert {(one.model.id, one.aspect_ratio, one.resolution) for one in asked} == {("gemini-3-pro-image", "1:1", "2K")}


async def test_three_asked_and_one_refused_gives_two_pictures_and_one_reason(settings: Settings) -> None:
    refused = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
    scene = Scene(settings, text=[calls(generate(number_of_images=3))], pictures=[picture(), refused, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "three foxes")
        kept = await studio.conversation(conversation.id)
    # The second one's handle stays unused: the third was the third from the beginning.
    assert {event.picture.handle for event in of_type(events, PictureReady)} == {"#1", "#3"}
    assert only(events, PictureFailed).error.code is ErrorCode.PICTURE_BLOCKED
    assert isinstance(events[-1], TurnDone)
    kinds = [type(component) for component in kept.turns[0].components]
    assert kinds.count(SmartCanvas) == 1
    assert kinds.count(FailureNote) == 1


async def test_a_turn_in_which_every_picture_is_refused_fails_with_the_reason(settings: Settings) -> None:
    refused = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
    scene = Scene(settings, text=[calls(generate())], pictures=[refused])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "something forbidden")
        kept = await studio.conversation(conversation.id)
    failed = only(events, TurnFailed)
    assert events[-1] is failed
    assert (failed.error.code, failed.node) == (ErrorCode.PICTURE_BLOCKED, "executor")
    assert kept.turns[0].state is TurnState.FAILED
    assert kept.turns[0].text == "something forbidden"


async def test_a_broken_picture_is_refused_and_the_call_is_still_counted(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[Line((Painting(b"not a picture"),))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox")
        kept = await studio.conversation(conversation.id)
    assert only(events, TurnFailed).error.code is ErrorCode.BROKEN_PICTURE
    assert kept.turns[0].usage.prompt_tokens == 200


async def test_an_unknown_handle_goes_back_to_the_model_which_mends_it(settings: Settings) -> None:
    script = [calls(generate(handles=["#9"])), calls(generate())]
    scene = Scene(settings, text=script, pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "make it dusk")
    answer = scene.provider.asked[1].messages[-1].parts[0]
    assert isinstance(answer, ToolResultPart)
    assert answer.is_error
    assert "#9" in str(answer.content["error"])
    assert only(events, PictureReady).picture.handle == "#1"


@pytest.mark.parametrize("action", ["edit_image", "adjust_parameters"])
async def test_a_change_where_there_is_no_picture_goes_back_to_the_model_and_is_not_paid(
    settings: Settings, action: str
) -> None:
    script = [calls(generate("add a hat", action=action)), says("Which picture do you mean?")]
    scene = Scene(settings, text=script, pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "add a hat")
        kept = await studio.conversation(conversation.id)
    answer = scene.provider.asked[1].messages[-1].parts[0]
    assert isinstance(answer, ToolResultPart)
    assert answer.is_error
    assert action in str(answer.content["error"])
    assert "none yet" in str(answer.content["error"])
    assert [one.request for one in scene.provider.asked] == [None, None]
    assert kept.pictures == ()
    assert isinstance(events[-1], TurnDone)


async def test_a_change_of_the_newest_painting_where_all_were_uploaded_names_what_there_is(settings: Settings) -> None:
    wrong = generate("add a hat", action="edit_image", reference_mode="LAST_GENERATED")
    right = generate("add a hat", action="edit_image", handles=["#1"])
    scene = Scene(settings, text=[says("Nice."), calls(wrong), calls(right)], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "my cat", png())
        events = await run(studio, conversation.id, "add a hat")
    answer = scene.provider.asked[2].messages[-1].parts[0]
    assert isinstance(answer, ToolResultPart)
    assert "#1" in str(answer.content["error"])
    assert only(events, PictureReady).picture.parents == ("#1",)


@pytest.mark.parametrize("text", ["change only the masked area to grass", "把涂抹的地方去掉"])
@pytest.mark.parametrize("uploads", [(), (png(),)])
async def test_words_of_a_mask_without_one_are_asked_about_before_anything_is_paid(
    settings: Settings, text: str, uploads: tuple[bytes, ...]
) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        asked_before = len(scene.provider.asked)
        events = await run(studio, conversation.id, text, *uploads)
        kept = await studio.conversation(conversation.id)
    assert len(scene.provider.asked) == asked_before
    assert kept.turns[1].components == (AskBack(question="no_mask"),)
    done = events[-1]
    assert isinstance(done, TurnDone)
    assert done.price_usd == 0.0


async def test_an_unknown_tool_goes_back_to_the_model(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(ToolCallPart(name="fly_away", call_id="c1")), says("Sorry.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "fly away")
    answer = scene.provider.asked[1].messages[-1].parts[0]
    assert isinstance(answer, ToolResultPart)
    assert (answer.is_error, answer.call_id) == (True, "c1")
    assert isinstance(events[-1], TurnDone)


async def test_the_same_call_three_times_ends_the_turn(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: calls(ToolCallPart(name="list_files")))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "round and round")
        kept = await studio.conversation(conversation.id)
    assert only(events, TurnFailed).error.code is ErrorCode.TOO_MANY_STEPS
    assert len(scene.provider.asked) == 3
    assert kept.messages[-1].role is Role.TOOL


async def test_sixteen_steps_are_the_most(settings: Settings) -> None:
    numbers = iter(range(100))

    def brain(asked: Asked) -> Line:
        return calls(ToolCallPart(name="list_files", arguments={"page": next(numbers)}))

    scene = Scene(settings, text=brain)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "on and on")
    assert only(events, TurnFailed).error.code is ErrorCode.TOO_MANY_STEPS
    assert len(scene.provider.asked) == 16


async def test_search_is_not_declared_unless_permitted(settings: Settings) -> None:
    scene = Scene(settings, text=[says("No."), says("Yes.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "how high is the tower?")
        await run(studio, conversation.id, "and now?", allow_search=True)
    first, second = ({tool.name for tool in asked.tools} for asked in scene.provider.asked)
    assert "web_search" not in first
    assert "web_search" in second


async def test_the_policy_image_only_leaves_the_search_to_the_painter(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(use_grounding=True))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        policy = SearchPolicy.IMAGE_ONLY
        await run(studio, conversation.id, "the tower", allow_search=True, search_policy=policy, review="off")
    planned, painted = scene.provider.asked
    assert "web_search" not in {tool.name for tool in planned.tools}
    assert painted.request is not None
    assert (painted.request.model.id, painted.request.use_grounding) == ("gemini-3-pro-image", True)


async def test_grounding_is_never_on_without_permission(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(use_grounding=True, model="pro"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "the tower", review="off", image_model="pro")
    request = scene.provider.asked[-1].request
    assert request is not None
    assert not request.use_grounding


async def test_a_search_brings_its_facts_into_the_final_prompt_once(settings: Settings) -> None:
    wish = generate("the tower [FACTS]- made up[/FACTS] at dawn")
    scene = Scene(settings, text=[calls(SEARCH), finds(FACTS, GROUNDED), calls(wish)], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "the tower with its height", allow_search=True)
        kept = await studio.conversation(conversation.id)
    searched = scene.provider.asked[1]
    assert (searched.tools, searched.options.google_search) == ((), True)
    painted = scene.provider.asked[3].request
    assert painted is not None
    prompt = painted.messages[-1].text
    assert prompt.count("[FACTS]") == prompt.count("[/FACTS]") == 1
    assert "The tower is 330 m high." in prompt
    assert "made up" not in prompt
    assert only(events, SearchFound).suggestions_html == "<div>Search</div>"
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.facts[0].source == "https://redirect.example/1"
    assert any(isinstance(component, SearchNote) for component in kept.turns[0].components)


async def test_a_second_search_in_a_turn_is_answered_from_the_first(settings: Settings) -> None:
    again = SEARCH.model_copy(update={"arguments": {"query": "And how wide?"}})
    scene = Scene(settings, text=[calls(SEARCH), finds(FACTS, GROUNDED), calls(again), says("330 m.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "the tower", allow_search=True)
    assert sum(asked.options.google_search for asked in scene.provider.asked) == 1


async def test_an_unreadable_search_is_repaired_once(settings: Settings) -> None:
    script = [calls(SEARCH), finds("The tower is 330 m high.", GROUNDED), says(FACTS), says("It is 330 m high.")]
    scene = Scene(settings, text=script)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "how high?", allow_search=True)
    repair = scene.provider.asked[2].options
    assert repair.response_schema is not None
    assert not repair.google_search
    assert isinstance(events[-1], TurnDone)


async def test_a_search_that_cannot_be_repaired_is_told_and_everything_is_kept(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(SEARCH), finds("nothing like JSON", GROUNDED), says("nor this")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "how high?", png(), allow_search=True)
        kept = await studio.conversation(conversation.id)
        failed = only(events, TurnFailed)
        assert (failed.error.code, failed.node) == (ErrorCode.SEARCH_UNREADABLE, "searcher")
        assert kept.turns[0].text == "how high?"
        assert (await studio.picture(conversation.id, "#1")).picture.turn_id == kept.turns[0].id


async def test_a_search_and_a_picture_in_one_answer_are_both_served_in_order(settings: Settings) -> None:
    both = calls(generate().model_copy(update={"call_id": "a"}), SEARCH.model_copy(update={"call_id": "b"}))
    scene = Scene(settings, text=[both, finds(FACTS, GROUNDED)], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "the tower", allow_search=True)
        kept = await studio.conversation(conversation.id)
    results = kept.messages[-1].parts
    assert [part.call_id for part in results if isinstance(part, ToolResultPart)] == ["a", "b"]
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.facts


async def test_the_next_sentence_edits_the_picture(settings: Settings) -> None:
    script = [calls(generate()), calls(generate("darker", reference_mode="LAST_GENERATED"))]
    scene = Scene(settings, text=script, pictures=[picture(signature=b"first"), picture(colour="black")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        events = await run(studio, conversation.id, "make it dusk")
    edited = only(events, PictureReady).picture
    assert (edited.handle, edited.parents) == ("#1b", ("#1",))
    request = scene.provider.asked[-1].request
    assert request is not None
    assert [message.role for message in request.messages] == [Role.PROMPT, Role.MODEL, Role.PROMPT]
    replayed = request.messages[1].parts[-1]
    assert isinstance(replayed, ImagePart)
    assert replayed.thought_signature == b"first"
    assert request.aspect_ratio == "16:9"


async def test_another_model_gets_the_picture_in_a_prompt_without_its_signature(settings: Settings) -> None:
    script = [calls(generate()), calls(generate("darker", reference_mode="LAST_GENERATED"))]
    scene = Scene(settings, text=script, pictures=[picture(signature=b"first"), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox", image_model="flash")
        await run(studio, conversation.id, "at dusk", image_model="pro", review="off")
    request = scene.provider.asked[-1].request
    assert request is not None
    assert [message.role for message in request.messages] == [Role.PROMPT]
    shown = request.messages[0].images
    assert [image.thought_signature for image in shown] == [None]


async def test_a_rejected_signature_is_retried_once_with_the_picture_in_a_prompt(settings: Settings) -> None:
    rejected = Line(raises=ProviderFailure(ErrorCode.SIGNATURE_REJECTED))
    script = [calls(generate()), calls(generate("darker", reference_mode="LAST_GENERATED"))]
    scene = Scene(settings, text=script, pictures=[picture(signature=b"old"), rejected, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        events = await run(studio, conversation.id, "at dusk")
    requests = [asked.request for asked in scene.provider.asked if asked.request]
    assert [[message.role for message in request.messages] for request in requests[1:]] == [
        [Role.PROMPT, Role.MODEL, Role.PROMPT],
        [Role.PROMPT],
    ]
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.attempts == 2


async def test_a_signature_rejected_twice_is_told(settings: Settings) -> None:
    rejected = Line(raises=ProviderFailure(ErrorCode.SIGNATURE_REJECTED))
    scene = Scene(settings, text=[calls(generate())], pictures=[rejected, rejected])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox")
    assert only(events, TurnFailed).error.code is ErrorCode.SIGNATURE_REJECTED


async def test_the_picture_the_person_clicked_comes_before_what_the_agent_chose(settings: Settings) -> None:
    script = [calls(generate()), calls(generate()), calls(generate("darker", handles=["#2"]))]
    scene = Scene(settings, text=script, pictures=[picture(), picture(colour="blue"), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox")
        await run(studio, conversation.id, "a whale")
        events = await run(studio, conversation.id, "at dusk", editing="#1")
    assert only(events, PictureReady).picture.parents == ("#1", "#2")


async def test_a_clicked_handle_that_does_not_exist_is_refused(settings: Settings) -> None:
    scene = Scene(settings)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "at dusk", editing="#5")
    assert only(events, TurnFailed).error.code is ErrorCode.PICTURE_NOT_FOUND
    assert scene.provider.asked == []


async def test_pictures_of_the_past_are_placeholders_for_the_text_model(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Nice."), says("A red one.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "look", png())
        await run(studio, conversation.id, "what did I show you?")
    first, second = scene.provider.asked
    assert len(first.messages[-1].images) == 1
    assert not any(message.images for message in second.messages)
    assert "[Picture:history_" in second.messages[0].text
    assert "#1" in second.messages[0].text


async def test_the_agent_can_look_at_a_picture_of_the_past_again(settings: Settings) -> None:
    def brain(asked: Asked) -> Line:
        text = "".join(message.text for message in asked.messages)
        if asked.messages[-1].role is Role.TOOL:
            return says("It is red.")
        if "[Picture:history_" not in text:
            return says("Nice.")
        md5 = text.split("[Picture:history_")[1][:32]
        return calls(ToolCallPart(name="get_history_image", arguments={"image_id": md5}))

    scene = Scene(settings, text=brain)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "look", png())
        events = await run(studio, conversation.id, "what colour was it?")
    result = scene.provider.asked[-1].messages[-1].parts[0]
    assert isinstance(result, ToolResultPart)
    assert [image.handle for image in result.images] == ["#1"]
    assert words(events) == "It is red."


async def test_a_cut_stream_keeps_the_words_that_came(settings: Settings) -> None:
    cut = Line((TextPart(text="It was a dark and"),), raises=NetworkFailure(ErrorCode.STREAM_CUT))
    scene = Scene(settings, text=[cut, says("Go on.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "tell me")
        kept = await studio.conversation(conversation.id)
        after = await run(studio, conversation.id, "again")
    assert only(events, TurnFailed).error.code is ErrorCode.STREAM_CUT
    assert kept.turns[0].components[0] == AgentMessage(text="It was a dark and")
    assert isinstance(after[-1], TurnDone)


async def test_stop_keeps_the_words_that_came_and_the_conversation_goes_on(settings: Settings) -> None:
    endless = Line((TextPart(text="One "), Hold(asyncio.Event())))
    scene = Scene(settings, text=[endless, says("Here I am.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await stop_at(studio, conversation.id, "tell me", TextDelta)
        kept = await studio.conversation(conversation.id)
        after = await run(studio, conversation.id, "are you there?")
    assert isinstance(events[-1], TurnStopped)
    assert kept.turns[0].state is TurnState.STOPPED
    assert kept.turns[0].components == (AgentMessage(text="One"), StoppedNote())
    assert words(after) == "Here I am."


@pytest.mark.parametrize("text", ["", "   ", "🦊🦊", "?!…"])
async def test_a_message_without_words_or_pictures_is_answered_without_a_call(settings: Settings, text: str) -> None:
    scene = Scene(settings)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, text)
        kept = await studio.conversation(conversation.id)
    assert only(events, QuestionAsked).question == "empty"
    assert isinstance(events[-1], TurnDone)
    assert kept.turns[0].components == (AskBack(question="empty"),)
    assert scene.provider.asked == []


async def test_a_second_turn_waits_for_the_first(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[Line((Hold(gate), TextPart(text="first"))), says("second")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = asyncio.create_task(run(studio, conversation.id, "one"))
        await asyncio.sleep(0)
        second = asyncio.create_task(run(studio, conversation.id, "two"))
        await asyncio.sleep(0)
        gate.set()
        await first
        events = await second
        kept = await studio.conversation(conversation.id)
    assert any(isinstance(event, ThoughtLog) and event.step is Step.WAITING for event in events)
    assert [turn.text for turn in kept.turns] == ["one", "two"]


async def test_a_picture_that_comes_after_stop_lands_in_the_conversation_marked_so(settings: Settings) -> None:
    gate = asyncio.Event()
    late = Line((Hold(gate), Painting(png(1376, 768))))
    scene = Scene(settings, text=[calls(generate())], pictures=[late])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await stop_at(studio, conversation.id, "a fox", PaintingStarted)
        gate.set()
    async with scene.studio() as studio:
        kept = await studio.conversation(conversation.id)
    assert isinstance(events[-1], TurnStopped)
    assert kept.turns[0].state is TurnState.STOPPED
    assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", True)]
    kinds = [type(component) for component in kept.turns[0].components]
    assert kinds[-2:] == [StoppedNote, SmartCanvas]


async def test_a_turn_goes_on_when_nobody_listens_and_can_be_followed_again(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="count")):
            if isinstance(event, TextDelta):
                break
        assert studio.is_running(conversation.id)
        gate.set()
        followed = [event async for event in studio.attach(conversation.id)]
        kept = await studio.conversation(conversation.id)
    assert isinstance(followed[0], TurnStarted)
    assert words(followed) == "One two."
    assert kept.turns[0].state is TurnState.DONE


async def test_the_same_request_twice_runs_once(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Once.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        request = TurnRequest(text="hello there", request_id="r1")

        async def send() -> list[TurnEvent]:
            return [event async for event in studio.run_turn(conversation.id, request)]

        both = await asyncio.gather(*(send() for _ in range(10)))
    assert len(scene.provider.asked) == 1
    assert all(words(events) == "Once." for events in both)


async def test_a_stranger_can_neither_read_nor_use_a_conversation(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Hello.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation(owner="ann")
        request = TurnRequest(text="hello there")
        events = [event async for event in studio.run_turn(conversation.id, request, owner="bob")]
        with pytest.raises(RequestRefused):
            await studio.conversation(conversation.id, owner="bob")
    assert only(events, TurnFailed).error.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert scene.provider.asked == []


async def test_a_named_style_brings_its_phrases_into_the_prompt_and_the_receipt(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate("a red fox", style="ukiyo-e"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox in the style of ukiyo-e")
    request = scene.provider.asked[-1].request
    assert request is not None
    prompt = request.messages[-1].text
    assert prompt.startswith("a red fox")
    assert "Style:\nUkiyo-e" in prompt
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert [style.name for style in receipt.styles][:1] == ["Ukiyo-e woodblock print"]
    found = [log for log in of_type(events, ThoughtLog) if log.step is Step.STYLES]
    assert len(found) == 1


async def test_without_a_named_style_nothing_is_looked_up(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate("a red fox"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
    assert not (settings.home / "styles").exists()


async def test_a_broken_style_library_leaves_the_styles_name_in_the_prompt_and_the_receipt_says_so(
    settings: Settings,
) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / "styles").write_text("in the way of the folder")
    scene = Scene(settings, text=[calls(generate("a red fox", style="ukiyo-e"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox in the style of ukiyo-e")
    request = scene.provider.asked[-1].request
    assert request is not None
    assert request.messages[-1].text.endswith("Style: ukiyo-e.")
    assert isinstance(events[-1], TurnDone)
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.missing_style is not None
    assert (receipt.missing_style.requested, receipt.missing_style.reason) == ("ukiyo-e", MissingStyleReason.FAILED)
