from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import ErrorCode, ImageOrigin, ImagePart, Picture, ToolArgumentError
from tests.adapters.language import Handle, allot_handle, handles_in, next_letter, next_number, parse_handle, resolve
from tests.support.cases import each_case


def picture(handle: str) -> Picture:
    image = ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    return Picture(handle=handle, image=image, turn_id="t", created_at=datetime(2026, 11, 20, tzinfo=UTC))


@each_case("written", ["#7b", "7b", "#7B", " # 7b ", "＃７ｂ", "#07b"])
def test_a_handle_is_read_however_it_is_written(written: str) -> None:
    assert parse_handle(written) == Handle(7, "b")


@each_case("written", ["", "#", "b7", "#7a", "#7b2", "#7abcd", "seven", "#-1", "#7.5", "1234567"])
def test_what_is_no_handle_is_not_read_as_one(written: str) -> None:
    assert parse_handle(written) is None


@each_case(
    ("taken", "free"),
    [([], "#1"), (["#1", "#2", "#2c"], "#3"), (["#9", "#10"], "#11"), (["#4"], "#5")],
)
def test_uploads_and_fresh_pictures_take_the_next_free_number(taken: list[str], free: str) -> None:
    assert next_number(taken) == allot_handle(taken, base=None) == free


@each_case(
    ("base", "taken", "free"),
    [
        ("#7", ["#7"], "#7b"),
        ("#7", ["#7", "#7b"], "#7c"),
        ("#7b", ["#7", "#7b", "#8", "#8f"], "#7c"),
        # After z come two letters, and a name in the middle is not given again.
        ("#7", ["#7", "#7z"], "#7aa"),
        ("#7", ["#7", "#7aa"], "#7ab"),
        ("#7", ["#7", "#7az"], "#7ba"),
        ("#7", ["#7", "#7d"], "#7e"),
    ],
)
def test_an_edit_stays_in_the_family_and_takes_the_next_letter(base: str, taken: list[str], free: str) -> None:
    assert next_letter(base, taken) == allot_handle(taken, base=base) == free


def test_a_base_that_is_no_handle_is_refused() -> None:
    with pytest.raises(ToolArgumentError, match="no picture the red one"):
        next_letter("the red one", ["#1"])


@given(st.lists(st.booleans(), min_size=1, max_size=120))
def test_allotted_handles_are_all_different_and_can_be_read_back(edits: list[bool]) -> None:
    handles: list[str] = []
    for is_edit in edits:
        handles.append(allot_handle(handles, base=handles[-1] if is_edit and handles else None))
    assert len(set(handles)) == len(handles)
    assert [str(parse_handle(handle)) for handle in handles] == handles


@each_case(
    ("text", "found"),
    [
        ("make #7b brighter, like #2.", ("#7b", "#2")),
        ("把#7B改成红色，参考＃2", ("#7b", "#2")),
        ("#3 and #3 again", ("#3",)),
        ("the colour #7b7b7b", ()),
        ("&#39; is an apostrophe", ()),
        ("# 1 is a heading, x#1 an anchor", ()),
        ("", ()),
    ],
)
def test_handles_are_found_in_words(text: str, found: tuple[str, ...]) -> None:
    assert handles_in(text) == found


@pytest.mark.parametrize("written", ["#2b", "2B", "＃2b"])
def test_a_known_handle_gives_its_picture(written: str) -> None:
    assert resolve(written, [picture("#1"), picture("#2b")]).handle == "#2b"


@each_case("written", ["#2", "#22b", "2c", "the last one", "", "x" * 500])
def test_an_unknown_handle_is_refused_with_the_known_ones_and_never_guessed(written: str) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        resolve(written, [picture("#1"), picture("#2b")])
    assert caught.value.code is ErrorCode.UNKNOWN_HANDLE
    assert "Known pictures: #1, #2b." in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_conversation_without_pictures_says_so() -> None:
    with pytest.raises(ToolArgumentError, match="Known pictures: none yet"):
        resolve("#1", [])
