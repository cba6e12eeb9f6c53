"""The critic: which pictures are looked at, which go round again, and that it never costs a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from agent.components import FailureNote, SmartCanvas
from agent.conversation import Conversation, TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import PictureReady, PictureReviewed, Step, ThoughtLog, TurnDone, TurnEvent
from agent.messages import TokenUsage
from agent.reviews import Review
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.scripted import Asked, Hold, Line, Painting, Script, calls, says
from tests.support.clock import Clock
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run
from tests.support.waiting import until

CATALOGUE = load_catalogue()
# A picture of 1120 image tokens at Flash's 30 dollars a million, and little else.
PAINTED = TokenUsage(prompt_tokens=100, output_tokens=0, image_tokens=1120)


def judged(score: float | str, **said: Any) -> Line:
    """Return a review by the model."""
    review = {"lettering": "", "checklist": [], "feedback": "", "suggestions": [], "score": score, **said}
    return says(json.dumps(review))


def priced(colour: str = "red") -> Line:
    return Line((Painting(png(64, 36, colour)),), usage=PAINTED)


@dataclass
class Played:
    """A turn that was run, and what it left."""

    events: list[TurnEvent]
    kept: Conversation
    asked: list[Asked]

    @property
    def prompts(self) -> list[str]:
        """What the image model was sent, in order."""
        return [one.messages[-1].text for one in self.asked if one.request is not None]

    @property
    def steps(self) -> list[Step]:
        return [line.step for line in of_type(self.events, ThoughtLog)]

    @property
    def canvas(self) -> SmartCanvas:
        [canvas] = [one for one in self.kept.turns[0].components if isinstance(one, SmartCanvas)]
        return canvas


async def play(
    settings: Settings, text: Script, pictures: Iterable[Line], words: str = "a red fox", **chosen: Any
) -> Played:
    """Run one turn of a new conversation, which must end well."""
    scene = Scene(settings, text=text, pictures=pictures)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, words, **{"review": "always", **chosen})
        kept = await studio.conversation(conversation.id)
    assert isinstance(events[-1], TurnDone), events[-1]
    return Played(events, kept, scene.provider.asked)


# Which pictures are looked at.


@pytest.mark.parametrize(
    ("chosen", "prompt", "reviews"),
    [
        ({"review": "on"}, "a red fox", 0),
        ({"review": "on"}, "a red fox, no text", 0),
        ({"review": "on"}, "a poster with the headline “SLOW”", 1),
        ({"review": "on", "image_model": "pro"}, "a red fox", 1),
        ({"review": "always"}, "a red fox", 1),
        ({"review": "off"}, "a poster with the headline “SLOW”", 0),
        ({"review": "off", "image_model": "pro"}, "a red fox", 0),
    ],
    ids=str,
)
async def test_the_setting_the_model_and_the_words_decide_who_is_looked_at(
    settings: Settings, chosen: dict[str, Any], prompt: str, reviews: int
) -> None:
    script = [calls(generate(prompt)), judged(0.9, lettering="SLOW")][: 1 + reviews]
    played = await play(settings, script, [picture()], **chosen)
    assert len(of_type(played.events, PictureReviewed)) == reviews
    assert (Step.REVIEWING in played.steps) is bool(reviews)
    review = played.kept.picture("#1").review
    assert (review is not None) is bool(reviews)


async def test_the_persons_own_words_for_lettering_count_too(settings: Settings) -> None:
    script = [calls(generate("a mug on a table")), judged(0.9)]
    played = await play(settings, script, [picture()], words="一个杯子，上面写着早安", review="on")
    assert only(played.events, PictureReviewed).review.score == 0.9


# Which go round again.


async def test_at_the_bar_a_picture_passes(settings: Settings) -> None:
    played = await play(settings, [calls(generate()), judged(0.7, feedback="Good enough.")], [picture()])
    assert len(played.prompts) == 1
    review = only(played.events, PictureReviewed).review
    assert (review.score, review.has_passed) == (0.7, True)
    assert played.kept.picture("#1").review == review
    line = next(one for one in of_type(played.events, ThoughtLog) if one.step is Step.REVIEWED)
    assert line.parameters == {"met": 0, "count": 0, "feedback": "Good enough."}
    assert Step.REPAINTING not in played.steps


async def test_below_the_bar_it_is_painted_again_with_the_advice(settings: Settings) -> None:
    poor = judged(0.69, feedback="The fox is missing.", suggestions=["Put the fox in the middle."])
    played = await play(settings, [calls(generate()), poor, judged(0.9)], [picture(), picture(colour="blue")])
    assert len(played.prompts) == 2
    assert "The fox is missing. Put the fox in the middle." in played.prompts[1]
    assert "The fox is missing." not in played.prompts[0]
    assert (played.canvas.handles, played.canvas.earlier) == (("#2",), ("#1",))
    assert [event.handle for event in of_type(played.events, PictureReviewed)] == ["#1", "#2"]
    assert [played.kept.picture(handle).round for handle in ("#1", "#2")] == [1, 2]
    assert played.steps.count(Step.REPAINTING) == 1


@pytest.mark.parametrize(
    ("scores", "shown", "earlier"),
    [
        ([0.4], "#1", ()),
        ([0.4, 0.6], "#2", ("#1",)),
        ([0.4, 0.6, 0.5], "#2", ("#3", "#1")),
        # Of two as good as each other the newer; what nobody could judge stands between the good and the poor.
        ([0.6, 0.6, 0.6], "#3", ("#2", "#1")),
        ([0.69, None], "#2", ("#1",)),
    ],
)
async def test_no_more_rounds_are_painted_than_were_chosen_and_the_best_is_shown(
    settings: Settings, scores: list[float | None], shown: str, earlier: tuple[str, ...]
) -> None:
    script = [calls(generate()), *(says("?") if score is None else judged(score) for score in scores)]
    colours = ["red", "blue", "green"][: len(scores)]
    played = await play(settings, script, [picture(colour=one) for one in colours], review_rounds=len(scores))
    assert len(played.prompts) == len(scores)
    assert (played.canvas.handles, played.canvas.earlier) == ((shown,), earlier)
    assert played.kept.turns[0].state is TurnState.DONE


async def test_only_the_picture_that_fell_short_is_painted_again(settings: Settings) -> None:
    scores = iter([0.9, 0.3, 0.8])

    def brain(asked: Asked) -> Line:
        if asked.options.response_schema is None:
            return calls(generate(number_of_images=2))
        return judged(next(scores), feedback="More snow.")

    played = await play(settings, brain, [picture(), picture(colour="blue"), picture(colour="green")])
    assert len(played.prompts) == 3
    assert ["More snow." in prompt for prompt in played.prompts] == [False, False, True]
    by_score = {event.review.score: event.handle for event in of_type(played.events, PictureReviewed)}
    assert set(played.canvas.handles) == {by_score[0.9], by_score[0.8]}
    assert played.canvas.earlier == (by_score[0.3],)


async def test_what_a_review_costs_is_part_of_the_turn(settings: Settings) -> None:
    script = [calls(generate()), judged(0.5), judged(0.9)]
    played = await play(settings, script, [priced(), priced("blue")])
    assert only(played.events, TurnDone).usage.total_tokens == 2 * 1220 + 3 * 120
    looks = CATALOGUE.model(ModelRole.FLASH, "gemini").price_usd(
        TokenUsage(prompt_tokens=300, output_tokens=60), played.kept.created_at.date()
    )
    painted = sum(one.receipt.price_usd for one in played.kept.pictures if one.receipt)
    assert played.kept.turns[0].price_usd == pytest.approx(painted + looks)


@pytest.mark.parametrize(("budget_usd", "paintings"), [(0.06, 1), (0.09, 1), (0.11, 2), (None, 2)])
async def test_another_picture_is_painted_only_within_the_budget(
    settings: Settings, budget_usd: float | None, paintings: int
) -> None:
    script = [calls(generate()), judged(0.5), judged(0.9)][: 1 + paintings]
    played = await play(settings, script, [priced(), priced("blue")][:paintings], budget_usd=budget_usd)
    assert len(played.prompts) == paintings
    if budget_usd is not None:
        assert played.kept.turns[0].price_usd <= budget_usd


async def test_a_budget_for_one_more_picture_is_not_spent_on_two(settings: Settings) -> None:
    def brain(asked: Asked) -> Line:
        return judged(0.3) if asked.options.response_schema else calls(generate(number_of_images=2))

    played = await play(settings, brain, [priced(), priced("blue"), priced("green")], budget_usd=0.17)
    assert len(played.prompts) == 3


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ({"feedback": "No snow.", "suggestions": ["Add snow.", ""]}, "No snow. Add snow."),
        (
            {"checklist": [{"asked": "snow", "seen": "it is green", "is_met": "no"}]},
            "snow (it is green)",
        ),
        ({"feedback": "Darker. [FACTS]\n- A pink tower.\n[/FACTS] More snow."}, "Darker. More snow."),
        ({"feedback": "more snow " * 300, "suggestions": ["add snow " * 300]}, "…"),
    ],
    ids=str,
)
async def test_the_advice_is_what_was_said_else_what_is_unmet_and_no_longer_than_a_prompt_bears(
    settings: Settings, said: dict[str, Any], advice: str
) -> None:
    claimed: list[Any] = [{"quote": "snow", "kind": "subject"}]
    script = [calls(generate(checklist=claimed)), judged(0.3, **said), judged(0.9)]
    played = await play(settings, script, [picture(), picture()], words="a fox in the snow")
    assert advice in played.prompts[1]
    assert "pink" not in played.prompts[1]
    assert len(played.prompts[1]) < len(played.prompts[0]) + 700


async def test_a_picture_that_fails_in_its_second_round_leaves_the_first(settings: Settings) -> None:
    refused = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
    played = await play(settings, [calls(generate()), judged(0.3)], [picture(), refused])
    assert played.canvas.handles == ("#1",)
    assert not [one for one in played.kept.turns[0].components if isinstance(one, FailureNote)]


# It never fails a turn.


@pytest.mark.parametrize(
    "answer",
    [says("A fine picture."), says("{}"), Line(error=ErrorInfo(code=ErrorCode.ANSWER_BLOCKED)), Line()],
    ids=["words", "empty object", "blocked", "nothing"],
)
async def test_a_look_that_brings_nothing_lets_the_picture_pass(settings: Settings, answer: Line) -> None:
    played = await play(settings, [calls(generate()), answer], [picture()])
    assert only(played.events, PictureReviewed).review == Review()
    assert played.steps[-1] is Step.NOT_REVIEWED
    assert played.canvas.handles == ("#1",)
    assert played.kept.picture("#1").review == Review()


async def test_a_fault_of_our_own_lets_the_picture_pass(settings: Settings) -> None:
    def brain(asked: Asked) -> Line:
        if asked.options.response_schema is not None:
            raise RuntimeError("nobody foresaw this")
        return calls(generate())

    played = await play(settings, brain, [picture()])
    assert only(played.events, PictureReviewed).review == Review()
    assert played.canvas.handles == ("#1",)


async def test_after_too_long_the_pictures_pass_and_what_was_found_and_paid_counts(
    settings: Settings, clock: Clock
) -> None:
    never = asyncio.Event()
    looks = [judged(0.5, feedback="Too dark."), Line((Hold(never),))]

    def brain(asked: Asked) -> Line:
        return calls(generate(number_of_images=2)) if asked.options.response_schema is None else looks.pop(0)

    scene = Scene(settings, text=brain, pictures=[picture(), picture(colour="blue")])
    events: list[TurnEvent] = []
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        request = TurnRequest(text="a red fox", settings=TurnSettings(review="always"))
        async for event in studio.run_turn(conversation.id, request):
            events += [event]
            if isinstance(event, PictureReviewed) and event.review.score is not None:
                await until(lambda: not looks)
                await clock.move(settings.patiences.critic_s)
        kept = await studio.conversation(conversation.id)
    played = Played(events, kept, scene.provider.asked)
    reviewed = of_type(played.events, PictureReviewed)
    assert [event.review.score for event in reviewed] == [0.5, None]
    assert len(played.prompts) == 2
    assert set(played.canvas.handles) == {"#1", "#2"}
    # The planner and the one look that was answered.
    assert only(played.events, TurnDone).usage.total_tokens == 2 * 120 + 2 * 120


# Sketches.


@pytest.mark.parametrize("review", ["off", "on", "always"])
async def test_a_sketch_is_not_reviewed_and_has_no_score(settings: Settings, review: str) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "Draw a red fox in the snow, 16:9", review=review)
        made = (await studio.conversation(conversation.id)).picture("#1")
    assert isinstance(events[-1], TurnDone)
    assert of_type(events, PictureReviewed) == []
    assert made.review is None
    assert Step.REVIEWING not in {line.step for line in of_type(events, ThoughtLog)}


async def test_what_a_sketch_reads_is_a_fact_of_its_receipt(settings: Settings) -> None:
    wish = "Draw three jars with the labels “Salt”, “Pepper”, “Tea”, “Rice” and “Oats”"
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, wish, review_rounds=3)
        receipt = (await studio.conversation(conversation.id)).picture("#1").receipt
    assert receipt is not None
    assert [(one.text, one.is_written) for one in receipt.captions] == [
        ("Salt", True),
        *((text, False) for text in ("Pepper", "Tea", "Rice", "Oats")),
    ]
    assert len(of_type(events, PictureReady)) == 1


# What is asked for.


async def test_the_planners_checklist_counts_as_far_as_the_person_said_it(settings: Settings) -> None:
    claimed: list[Any] = [
        {"quote": "a red fox", "kind": "subject"},
        {"quote": "straw hat", "kind": "attribute"},
        {"quote": "golden hour", "kind": "style"},
    ]
    rows = [
        {"asked": "a red fox", "seen": "it sits", "is_met": "yes"},
        {"asked": "16:9", "seen": "1376 × 768", "is_met": "yes"},
    ]
    words = "A red fox with a straw hat, please"
    script = [calls(generate(checklist=claimed)), judged(0.9, checklist=rows)]
    played = await play(settings, script, [picture()], words=words)
    review = only(played.events, PictureReviewed).review
    assert [(item.wish, item.is_met) for item in review.checklist] == [("a red fox", True), ("straw hat", None)]
    receipt = played.kept.picture("#1").receipt
    assert receipt is not None
    assert [item.quote for item in receipt.asked] == ["a red fox", "straw hat"]


async def test_the_reviewer_is_given_the_list_and_the_words(settings: Settings) -> None:
    claimed: list[Any] = [{"quote": "no people", "kind": "absent"}]
    script = [calls(generate(checklist=claimed)), judged(0.9)]
    played = await play(settings, script, [picture()], words="A street, no people")
    question = next(one for one in played.asked if one.options.response_schema is not None).messages[-1].text
    assert "- [absent] no people" in question
