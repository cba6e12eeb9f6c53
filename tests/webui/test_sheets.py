"""Several pictures of one turn as a contact sheet, live and stored."""

from __future__ import annotations

import re

import pytest

from agent.components import SmartCanvas
from agent.errors import ErrorCode, ErrorInfo
from agent.events import PaintingStarted, PictureFailed, PictureReady, TurnEvent
from tests.support.page_values import VIEW, picture, turn
from webui.live import LiveTurn, advance_all
from webui.render import Block, Card, render_live, render_turn


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def stored(count: int) -> str:
    handles = tuple(f"#{number}" for number in range(1, count + 1))
    return html(render_turn(VIEW, turn(SmartCanvas(handles=handles)), {one: picture(one) for one in handles}))


def live(*events: TurnEvent, count: int) -> str:
    started = PaintingStarted(count=count, width=848, height=1264, model_label="Pro")
    return html(render_live(VIEW, advance_all(LiveTurn("foxes"), [started, *events]), 1))


def test_one_picture_is_no_sheet() -> None:
    assert "sheet" not in stored(1)
    assert 'tabindex="-1"' not in stored(1)


@pytest.mark.parametrize(
    ("count", "across", "on_phone"), [(2, 2, 2), (3, 3, 3), (4, 2, 2), (5, 3, 3), (6, 3, 3), (7, 4, 2), (8, 4, 2)]
)
def test_two_to_eight_pictures_lie_in_an_even_grid(count: int, across: int, on_phone: int) -> None:
    shown = stored(count)
    style = dict(re.findall(r"--([\w-]+):([\d/]+)", shown))
    assert style["ar"] == "1376/768"
    assert (style["across"], style["phone-across"]) == (str(across), str(on_phone))
    rows, phone_rows = int(style["below"]) - 1, int(style["phone-below"]) - 1
    assert across * (rows - 1) < count <= across * rows
    assert on_phone * (phone_rows - 1) < count <= on_phone * phone_rows
    assert shown.count('class="frame"') == count
    assert f'aria-label="{count} pictures"' in shown


@pytest.mark.parametrize("count", [2, 5, 8])
def test_every_frame_has_its_handle_and_one_is_at_hand(count: int) -> None:
    shown = stored(count)
    for number in range(1, count + 1):
        assert f'<span class="tag on-pic">#{number}</span>' in shown
        assert f'<figcaption><span class="tag">#{number}</span>' in shown
    assert shown.count('class="pic now"') == 1
    assert shown.count('tabindex="-1"') == count - 1
    assert shown.index('class="pic now"') < shown.index('tabindex="-1"')


def test_exactly_two_are_compared_with_each_other() -> None:
    shown = stored(2)
    assert shown.count("Compare these two") == 2
    assert shown.count('data-act="compare" data-arg="#1 #2"') == 2
    assert "Compare these two" not in stored(3)
    assert 'data-act="compare" data-arg="#3"' in stored(3)


def test_while_they_come_the_first_that_is_there_is_at_hand() -> None:
    shown = live(PictureReady(index=2, picture=picture("#1")), count=4)
    assert shown.count("frame pending") == 3
    assert shown.count('class="pic now"') == 1
    assert "--ar:848/1264" in shown
    both = live(PictureReady(index=1, picture=picture("#1")), PictureReady(index=0, picture=picture("#2")), count=2)
    assert both.count("Compare these two") == 2


def test_of_two_where_one_failed_nothing_is_compared_with_it() -> None:
    failed = PictureFailed(index=1, error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "SAFETY"}))
    shown = live(PictureReady(index=0, picture=picture("#1")), failed, count=2)
    assert "Compare these two" not in shown
    assert 'role="alert"' in shown
