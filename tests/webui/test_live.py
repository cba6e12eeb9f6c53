"""The events of a turn, one after another, as the page sees them."""

from __future__ import annotations

from datetime import UTC, datetime

from agent.components import AgentMessage, SearchNote
from agent.errors import ErrorCode, ErrorInfo
from agent.events import (
    PaintingStarted,
    PictureFailed,
    PictureReady,
    SearchFound,
    Step,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnFailed,
    TurnStarted,
)
from agent.messages import ImageOrigin, ImagePart, Source, TokenUsage
from agent.pictures import Picture
from webui.live import LiveTurn, Painting, advance, advance_all

SAID = LiveTurn("a fox")


def picture(handle: str) -> Picture:
    image = ImagePart(
        digest="0" * 64, md5="1" * 32, mime_type="image/png", size_bytes=9, origin=ImageOrigin.GENERATED, handle=handle
    )
    return Picture(handle=handle, image=image, turn_id="t", created_at=datetime(2026, 11, 1, tzinfo=UTC))


def test_a_turn_is_on_record_from_its_first_event() -> None:
    assert not SAID.is_on_record
    assert advance(SAID, TurnStarted(turn_id="t1")).is_on_record


def test_words_grow_in_one_block_until_something_else_comes_between() -> None:
    found = SearchFound(sources=(Source(title="a", url="https://a.test"),))
    turn = advance_all(SAID, [TextDelta(text="a"), TextDelta(text="b"), found, TextDelta(text="c")])
    assert turn.blocks == (AgentMessage(text="ab"), SearchNote(sources=found.sources), AgentMessage(text="c"))


def test_each_picture_lands_in_its_own_frame_in_whatever_order_they_come() -> None:
    asked = PaintingStarted(count=3, width=16, height=9, model_label="Pro")
    refused = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "SAFETY"})
    turn = advance_all(
        SAID,
        [asked, PictureReady(index=2, picture=picture("#3")), PictureFailed(index=0, error=refused)],
    )
    assert turn.blocks == (Painting(asked, (refused, None, picture("#3"))),)
    assert [one.handle for one in turn.pictures] == ["#3"]


def test_more_pictures_than_announced_get_frames_too() -> None:
    asked = PaintingStarted(count=1, width=1, height=1, model_label="Flash")
    turn = advance_all(SAID, [asked, PictureReady(index=2, picture=picture("#3"))])
    assert turn.blocks == (Painting(asked, (None, None, picture("#3"))),)


def test_the_newest_painting_gets_the_picture() -> None:
    first = PaintingStarted(count=1, width=1, height=1, model_label="Flash")
    second = PaintingStarted(count=1, width=4, height=3, model_label="Flash")
    turn = advance_all(SAID, [first, second, PictureReady(index=0, picture=picture("#1"))])
    assert turn.blocks == (Painting(first, (None,)), Painting(second, (picture("#1"),)))


def test_a_step_is_shown_until_the_turn_ends() -> None:
    step = ThoughtLog(step=Step.THINKING)
    done = TurnDone(turn_id="t", usage=TokenUsage(), price_usd=0, seconds=1)
    assert advance(SAID, step).step == step
    assert advance_all(SAID, [step, done]).step is None
    failed = TurnFailed(error=ErrorInfo(code=ErrorCode.NOTHING_SENT))
    assert advance_all(SAID, [step, failed]).ending == failed


def test_a_painting_is_under_way_until_its_last_frame_is_filled() -> None:
    asked = PaintingStarted(count=2, width=16, height=9, model_label="Pro")
    turn = advance_all(SAID, [asked, PictureReady(index=0, picture=picture("#1"))])
    assert turn.painting is not None
    refused = ErrorInfo(code=ErrorCode.PICTURE_BLOCKED)
    assert advance(turn, PictureFailed(index=1, error=refused)).painting is None
    assert SAID.painting is None
