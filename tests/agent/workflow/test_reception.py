"""What is asked back before any model is called, and what never is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import AskBack, ImageOrigin, ImagePart, Picture, PromptMessage, Question, QuestionAsked, Role, TextPart
from tests.adapters.language import after_unsure, asked_back, names_a_picture, question_before
from tests.support.tables import table


def picture(number: int) -> Picture:
    image = ImagePart(
        digest=f"{number:064x}", md5=f"{number:032x}", mime_type="image/png", size_bytes=1, origin=ImageOrigin.GENERATED
    )
    return Picture(handle=f"#{number}", image=image, turn_id="before", created_at=datetime(2026, 1, 1, tzinfo=UTC))


ONE = (picture(1),)
SEVERAL = (picture(1), picture(2), picture(3))


def asked(
    text: str,
    pictures: tuple[Picture, ...] = SEVERAL,
    *,
    has_uploads: bool = False,
    editing: str | None = None,
    references: tuple[str, ...] = (),
    has_area: bool = False,
) -> Question | None:
    return question_before(
        text, has_uploads=has_uploads, editing=editing, references=references, has_area=has_area, pictures=pictures
    )


def wrongly_asked(expected: Question | None, texts: Iterable[str], **more: Any) -> dict[str, Question | None]:
    """Return the texts for which something else is asked back, and what is."""
    return {text: question for text in texts if (question := asked(text, **more)) != expected}


BLANK = ["", " \n\t", "🦊", "🦊❤️", "👩‍👩‍👧 🇨🇳", "3️⃣", "ℹ️", "…?!", "。。。", "---", "\u3164"]

POINTING = table("questions")["pointing"]
ORDINARY = table("questions")["ordinary"]
OF_A_MASK = table("questions")["of_a_mask"]
NOT_OF_A_MASK = table("questions")["not_of_a_mask"]


def test_an_emoji_space_or_punctuation_alone_is_answered_with_a_friendly_question() -> None:
    assert wrongly_asked("empty", BLANK) == {}
    assert wrongly_asked("empty", BLANK, pictures=()) == {}


def assert_enough_is_said_beside(texts: Sequence[str]) -> None:
    """Check that a picture sent or marked, or an area painted over, leaves nothing to ask."""
    assert wrongly_asked(None, texts, has_uploads=True) == {}
    assert wrongly_asked(None, texts, editing="#1") == {}
    assert wrongly_asked(None, texts, references=("#1",)) == {}
    assert wrongly_asked(None, texts, has_area=True) == {}


def test_what_was_sent_or_marked_beside_an_emoji_is_said_enough() -> None:
    assert_enough_is_said_beside(["", "🦊", "…"])


def test_a_single_word_is_no_emptiness() -> None:
    assert wrongly_asked(None, ["🦊 fox", "狐", "3", "#3", "ok"]) == {}


def test_a_part_that_is_only_pointed_at_is_asked_for() -> None:
    assert wrongly_asked("which_part", POINTING) == {}
    assert wrongly_asked("which_part", map(str.upper, POINTING), pictures=ONE) == {}


def test_an_ordinary_wish_is_never_held_up() -> None:
    for pictures in (SEVERAL, ONE, ()):
        assert wrongly_asked(None, ORDINARY, pictures=pictures) == {}


def test_the_list_of_sentences_is_long_enough_in_both_languages() -> None:
    for sentences in (POINTING, ORDINARY):
        assert len(set(sentences)) == len(sentences)
        assert sum(any("\u4e00" <= sign <= "\u9fff" for sign in text) for text in sentences) >= 25
        assert sum(text.isascii() for text in sentences) >= 35
    assert len(POINTING) + len(ORDINARY) >= 80


def test_a_mask_a_marked_picture_or_an_upload_says_which_part_or_picture() -> None:
    assert_enough_is_said_beside(POINTING)


def test_a_part_of_something_named_is_clear_where_there_is_only_one_picture() -> None:
    texts = ["change this part of the sky to red", "fix that area of her dress", "把天空的这部分改成红色"]
    assert wrongly_asked(None, texts, pictures=ONE) == {}
    assert wrongly_asked("which_part", texts) == {}


def test_a_picture_is_named_by_its_handle_or_by_which_of_them_it_is() -> None:
    english = ["#3", "the last picture", "my photo", "picture 2", "the picture of the fox"]
    named = [*english, "把#3调亮", "上一张", "第二张图", "狐狸的那张"]
    not_named = ["this picture", "the picture", "a picture", "这张图", "最后把它调亮"]
    assert [text for text in named if not names_a_picture(text)] == []
    assert [text for text in not_named if names_a_picture(text)] == []


def test_words_of_a_mask_without_one_are_asked_about() -> None:
    assert wrongly_asked("no_mask", OF_A_MASK) == {}
    assert wrongly_asked("no_mask", OF_A_MASK, pictures=()) == {}
    assert wrongly_asked("no_mask", map(str.upper, OF_A_MASK), editing="#1", references=("#2",)) == {}


def test_an_upload_is_no_mask() -> None:
    assert wrongly_asked("no_mask", OF_A_MASK, has_uploads=True) == {}


def test_with_a_mask_or_an_expansion_its_words_need_no_question() -> None:
    assert wrongly_asked(None, OF_A_MASK, has_area=True) == {}


def test_a_mask_that_is_a_thing_and_a_mark_that_is_in_the_picture_hold_nothing_up() -> None:
    assert wrongly_asked(None, NOT_OF_A_MASK) == {}
    assert wrongly_asked(None, NOT_OF_A_MASK, has_uploads=True) == {}


def test_a_long_message_is_never_held_up() -> None:
    assert asked("change this part to red, please " * 10) is None


@given(st.text(max_size=400))
def test_whatever_is_written_gets_an_answer(text: str) -> None:
    assert asked(text) in {None, "empty", "which_part"}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("empty", "[The studio asked back: what shall be painted?]"),
        ("which_part", "[The studio asked back: which part of which picture shall change?]"),
        ("unsure", "[The studio asked back: what exactly is wanted?]"),
    ],
)
def test_a_question_is_shown_to_the_person_and_told_to_the_model(question: Question, said: str) -> None:
    update, told = asked_back(question, "a fox")
    assert told == [QuestionAsked(question=question, subject="a fox")]
    assert update["components"] == [AskBack(question=question, subject="a fox")]
    assert update["messages"] == [PromptMessage(role=Role.MODEL, parts=(TextPart(text=said),))]


@pytest.mark.parametrize(
    ("calls_so_far", "said_something", "target"),
    [(0, False, "planner"), (1, False, "ask"), (2, False, "ask"), (0, True, "presenter"), (1, True, "presenter")],
)
def test_an_unsure_call_goes_back_once_then_the_page_asks_and_words_of_its_own_end_the_turn(
    calls_so_far: int, said_something: bool, target: str
) -> None:
    assert after_unsure(calls_so_far, said_something) == target
