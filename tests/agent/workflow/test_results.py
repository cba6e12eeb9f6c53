"""What came of the pictures: the best attempt first, every other one kept, each in its place."""

from __future__ import annotations

from agent.components import ActionPanel, Component, FailureNote, SmartCanvas
from agent.errors import ErrorCode, ErrorInfo
from agent.imaging.arguments import ImageAction
from agent.imaging.contract import GenerateImageArgs, normalize
from agent.providers.catalogue import load_catalogue
from agent.reviews import PASS_SCORE, Review
from agent.settings import TurnSettings
from agent.workflow.results import best_of, shown
from agent.workflow.state import Attempt, EnhancedPrompt, Intent, Work

BLOCKED = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"})
BUSY = ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "m"})


def work(*attempts: Attempt) -> Work:
    request = normalize(
        GenerateImageArgs(prompt="a fox"),
        TurnSettings(),
        load_catalogue(),
        "gemini",
        search_needed=False,
        search_requested_in_words=False,
        edited_pixels=None,
    )
    return Work(
        intent=Intent(action=ImageAction.GENERATE),
        prompt=EnhancedPrompt(original="a fox", final="a fox"),
        request=request,
        expected=(1376, 768),
        attempts=attempts,
    )


def came(handle: str, slot: int = 0, number: int = 1) -> Attempt:
    return Attempt(slot=slot, round=number, handle=handle)


def missed(error: ErrorInfo, slot: int = 0, number: int = 1) -> Attempt:
    return Attempt(slot=slot, round=number, error=error)


def scores(**by_handle: float | None) -> dict[str, Review]:
    """Return reviews by handle: `one=0.5` is that of `#one`."""
    return {f"#{name}": Review(score=score) for name, score in by_handle.items()}


def canvas(components: list[Component]) -> SmartCanvas:
    [found] = [one for one in components if isinstance(one, SmartCanvas)]
    return found


def test_the_best_attempt_is_shown_and_the_others_are_earlier_ones_best_first() -> None:
    tried = work(came("#a"), came("#b", number=2), came("#c", number=3))
    shown_now = canvas(shown(tried, scores(a=0.5, b=0.2, c=0.4)))
    assert (shown_now.handles, shown_now.earlier) == (("#a",), ("#c", "#b"))


def test_a_better_second_attempt_takes_the_first_one_s_place() -> None:
    tried = work(came("#a"), came("#b", number=2))
    shown_now = canvas(shown(tried, scores(a=0.5, b=0.9)))
    assert (shown_now.handles, shown_now.earlier) == (("#b",), ("#a",))


def test_of_two_as_good_as_each_other_the_newer_comes_first() -> None:
    tried = work(came("#a"), came("#b", number=2), came("#c", number=3))
    shown_now = canvas(shown(tried, scores(a=0.6, b=0.6, c=0.6)))
    assert (shown_now.handles, shown_now.earlier) == (("#c",), ("#b", "#a"))


def test_an_unreviewed_picture_stands_between_the_good_and_the_poor() -> None:
    unreviewed = came("#new", number=2)
    assert best_of(work(came("#good"), unreviewed), scores(good=0.95)) == ["#good"]
    assert best_of(work(came("#poor"), unreviewed), scores(poor=0.69)) == ["#new"]
    assert best_of(work(came("#poor"), unreviewed), scores(poor=0.69, new=None)) == ["#new"]


def test_an_unreviewed_picture_is_as_good_as_one_that_just_passes_and_the_newer_of_them_is_shown() -> None:
    assert best_of(work(came("#old"), came("#new", number=2)), scores(old=PASS_SCORE)) == ["#new"]
    assert best_of(work(came("#old"), came("#new", number=2)), scores(new=PASS_SCORE)) == ["#new"]


def test_each_picture_keeps_its_place_however_good_it_is() -> None:
    tried = work(came("#a"), came("#b", slot=1), came("#c", slot=2), came("#d", slot=1, number=2))
    shown_now = canvas(shown(tried, scores(a=0.7, b=0.1, c=0.99, d=0.8)))
    assert (shown_now.handles, shown_now.earlier) == (("#a", "#d", "#c"), ("#b",))


def test_places_are_kept_when_the_rounds_come_in_another_order() -> None:
    tried = work(came("#c", slot=2), came("#a"), came("#b", slot=1))
    assert best_of(tried, {}) == ["#a", "#b", "#c"]


def test_a_second_attempt_that_failed_leaves_the_first_one_shown_without_a_note() -> None:
    tried = work(came("#a"), missed(BUSY, number=2))
    components = shown(tried, scores(a=0.3))
    assert canvas(components) == SmartCanvas(handles=("#a",))
    assert not [one for one in components if isinstance(one, FailureNote)]


def test_a_place_where_nothing_came_has_its_newest_reason_and_the_others_are_shown() -> None:
    tried = work(came("#a"), missed(BUSY, slot=1), came("#c", slot=2), missed(BLOCKED, slot=1, number=2))
    components = shown(tried, {})
    assert canvas(components).handles == ("#a", "#c")
    assert [one for one in components if isinstance(one, FailureNote)] == [FailureNote(error=BLOCKED, node="executor")]


def test_what_can_be_done_next_is_offered_for_the_first_picture_shown() -> None:
    components = shown(work(came("#a"), came("#b", number=2)), scores(a=0.1, b=0.9))
    [panel] = [one for one in components if isinstance(one, ActionPanel)]
    assert panel.handle == "#b"
    assert [button.action for button in panel.buttons] == ["regenerate", "vary", "edit", "more_contrast", "warmer"]
    assert len(panel.sliders) == 5


def test_without_any_picture_there_is_nothing_to_do_next() -> None:
    components = shown(work(missed(BLOCKED), missed(BUSY, slot=1)), {})
    assert components == [FailureNote(error=BLOCKED, node="executor"), FailureNote(error=BUSY, node="executor")]
