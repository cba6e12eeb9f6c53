"""A turn at work: its events one after another as the page sees them, and what it shows of them until it rests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent.components import ActionPanel, AgentMessage, PanelButton, PlanCard, SearchNote, SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo
from agent.events import (
    PaintingStarted,
    PictureFailed,
    PictureReady,
    PictureReviewed,
    PlanReady,
    SearchFound,
    Step,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from agent.messages import Source, TokenUsage
from tests.support.page_values import PLAN, REVIEW, VIEW, conversation, picture, turn
from webui.live import LiveTurn, Painting, advance, advance_all, resumed
from webui.render import Block, Card, render_conversation, render_live, render_turn

SAID = LiveTurn("a fox")


def test_a_turn_is_on_record_from_its_first_event() -> None:
    assert not SAID.is_on_record
    assert advance(SAID, TurnStarted(turn_id="t1")).is_on_record


def test_words_grow_in_one_block_until_something_else_comes_between() -> None:
    found = SearchFound(sources=(Source(title="a", url="https://a.test"),))
    live = advance_all(SAID, [TextDelta(text="a"), TextDelta(text="b"), found, TextDelta(text="c")])
    assert live.blocks == (AgentMessage(text="ab"), SearchNote(sources=found.sources), AgentMessage(text="c"))


def test_each_picture_lands_in_its_own_frame_in_whatever_order_they_come() -> None:
    asked = PaintingStarted(count=3, width=16, height=9, model_label="Pro")
    refused = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "SAFETY"})
    live = advance_all(
        SAID,
        [asked, PictureReady(index=2, picture=picture("#3")), PictureFailed(index=0, error=refused)],
    )
    assert live.blocks == (Painting(asked, (refused, None, picture("#3"))),)
    assert [one.handle for one in live.pictures] == ["#3"]


def test_more_pictures_than_announced_get_frames_too() -> None:
    asked = PaintingStarted(count=1, width=1, height=1, model_label="Flash")
    live = advance_all(SAID, [asked, PictureReady(index=2, picture=picture("#3"))])
    assert live.blocks == (Painting(asked, (None, None, picture("#3"))),)


def test_the_newest_painting_gets_the_picture() -> None:
    first = PaintingStarted(count=1, width=1, height=1, model_label="Flash")
    second = PaintingStarted(count=1, width=4, height=3, model_label="Flash")
    live = advance_all(SAID, [first, second, PictureReady(index=0, picture=picture("#1"))])
    assert live.blocks == (Painting(first, (None,)), Painting(second, (picture("#1"),)))


def test_a_step_is_shown_until_the_turn_ends() -> None:
    step = ThoughtLog(step=Step.THINKING)
    done = TurnDone(turn_id="t", usage=TokenUsage(), price_usd=0, seconds=1)
    assert advance(SAID, step).step == step
    assert advance_all(SAID, [step, done]).step is None
    failed = TurnFailed(error=ErrorInfo(code=ErrorCode.NOTHING_SENT))
    assert advance_all(SAID, [step, failed]).ending == failed


def test_a_painting_is_under_way_until_its_last_frame_is_filled() -> None:
    asked = PaintingStarted(count=2, width=16, height=9, model_label="Pro")
    live = advance_all(SAID, [asked, PictureReady(index=0, picture=picture("#1"))])
    assert live.painting is not None
    refused = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED)
    assert advance(live, PictureFailed(index=1, error=refused)).painting is None
    assert SAID.painting is None


# What is shown of it


def shown(blocks: Sequence[Block]) -> str:
    """Return the cards, without those beneath the person's own words."""
    return "\n".join(block.html for block in blocks if isinstance(block, Card) and block.role != "user")


def painting(*events: TurnEvent, count: int = 2) -> str:
    asked = PaintingStarted(count=count, width=848, height=1264, model_label="Pro")
    return shown(render_live(VIEW, advance_all(SAID, [TurnStarted(turn_id="t1"), asked, *events]), 8.7))


REFUSED = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "SAFETY"})


def test_a_running_turn_shows_what_is_done_now_and_frames_of_the_right_shape() -> None:
    step = ThoughtLog(step=Step.PAINTING, parameters={"count": 2, "model": "Pro"})
    html = painting(step, PictureReady(index=1, picture=picture("#2")))
    assert html.index("Painting 2 pictures with Pro…") < html.index("frame pending")
    assert "8 s" in html
    assert html.count("frame pending") == 1
    assert "aspect-ratio:848/1264" in html
    assert 'data-arg="#2"' in html


def test_one_picture_refused_of_several_gives_its_reason_in_its_place_and_nothing_is_compared_with_it() -> None:
    html = painting(PictureReady(index=0, picture=picture("#1")), PictureFailed(index=1, error=REFUSED))
    assert "Picture 2" in html
    assert "(SAFETY)" in html
    assert 'data-arg="#1"' in html
    assert "Compare these two" not in html


def test_while_pictures_come_the_first_that_is_there_is_at_hand() -> None:
    html = painting(PictureReady(index=2, picture=picture("#1")), count=4)
    assert html.count("frame pending") == 3
    assert html.count('class="pic now"') == 1
    both = (PictureReady(index=1, picture=picture("#1")), PictureReady(index=0, picture=picture("#2")))
    assert painting(*both).count("Compare these two") == 2


def test_a_review_shows_at_once_under_its_picture() -> None:
    came = (PictureReady(index=0, picture=picture("#1")), PictureReady(index=1, picture=picture("#2")))
    html = painting(*came, PictureReviewed(handle="#2", review=REVIEW))
    assert html.count("2 of 3</b>") == 1
    assert html.index("2 of 3") > html.index('data-arg="#2"')


def test_a_better_attempt_stands_beside_the_first_until_the_record_decides() -> None:
    asked = PaintingStarted(count=1, width=16, height=9, model_label="Pro")
    first: list[TurnEvent] = [
        asked,
        PictureReady(index=0, picture=picture("#1")),
        PictureReviewed(handle="#1", review=REVIEW),
    ]
    better = PictureReady(index=0, picture=picture("#1b"))
    for more in ([asked, better], [better]):
        assert [one.handle for one in advance_all(SAID, [*first, *more]).pictures] == ["#1", "#1b"]


def test_a_message_refused_before_it_was_stored_leaves_no_bubble_and_nothing_to_retry() -> None:
    live = advance_all(LiveTurn(""), [TurnFailed(error=ErrorInfo(code=ErrorCode.NOTHING_SENT))])
    [block] = render_live(VIEW, live, 0)
    assert "data-act" not in shown([block])
    assert "report" not in shown([block])


def test_a_stopped_turn_says_so() -> None:
    assert "Stopped." in shown(render_live(VIEW, advance_all(SAID, [TurnStarted(turn_id="t1"), TurnStopped()]), 3))


def test_the_running_turn_is_left_out_of_the_stored_thread_and_no_panel_is_unfolded_meanwhile() -> None:
    panel = ActionPanel(handle="#1", buttons=(PanelButton(action="vary"),))
    stored = conversation(turn(AgentMessage(text="a"), panel), pictures=(picture("#1"),))
    assert render_conversation(VIEW, stored, without="t1") == []
    assert '<details class="next-steps" open>' in shown(render_conversation(VIEW, stored))
    assert '<details class="next-steps" open>' not in shown(render_conversation(VIEW, stored, is_at_rest=False))


def test_while_a_turn_is_at_work_no_version_can_be_chosen_or_made_and_the_page_says_why() -> None:
    blocks = render_turn(VIEW, turn(), {}, beside=("t1", "t2"), is_busy=True)
    tools = "".join(block.html for block in blocks if isinstance(block, Card))
    assert tools.count('disabled title="A message is at work. Wait for it or stop it first."') == 3


def test_a_live_plan_can_be_decided_when_the_turn_rests_with_it() -> None:
    live = advance_all(SAID, [TurnStarted(turn_id="t1"), PlanReady(plans=(PLAN,))])
    assert shown(render_live(VIEW, live, 1)).count(" disabled>") == 2
    rests = shown(render_live(VIEW, advance_all(live, [TurnPaused(turn_id="t1")]), 1))
    assert " disabled>" not in rests
    assert 'class="live"' not in rests


def test_a_turn_that_goes_on_shows_the_plan_as_it_was_decided() -> None:
    waiting = turn(PlanCard(plans=(PLAN,)), state=TurnState.WAITING)
    changed = PLAN.model_copy(update={"aspect_ratio": "1:1"})
    html = shown(render_live(VIEW, resumed(waiting, PlanCard(plans=(changed,), state="run")), 0))
    assert "Pro · 1:1 · 2K · ×2" in html
    assert "<textarea" not in html


def test_two_to_eight_pictures_lie_in_an_even_grid() -> None:
    for count, across, on_phone in ((2, 2, 2), (3, 3, 3), (4, 2, 2), (5, 3, 3), (6, 3, 3), (7, 4, 2), (8, 4, 2)):
        handles = tuple(f"#{number}" for number in range(1, count + 1))
        html = shown(render_turn(VIEW, turn(SmartCanvas(handles=handles)), {one: picture(one) for one in handles}))
        style = dict(re.findall(r"--([\w-]+):([\d/]+)", html))
        assert (style["across"], style["phone-across"]) == (str(across), str(on_phone))
        rows, phone_rows = int(style["below"]) - 1, int(style["phone-below"]) - 1
        assert across * (rows - 1) < count <= across * rows
        assert on_phone * (phone_rows - 1) < count <= on_phone * phone_rows
        assert (html.count('class="pic now"'), html.count('tabindex="-1"')) == (1, count - 1)
