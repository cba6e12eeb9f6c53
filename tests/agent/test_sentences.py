"""What the studio hears in the words of a person or a model, in both languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import ImageOrigin, ImagePart, Picture, Question
from tests.adapters.language import (
    Adjustment,
    UndoRequest,
    asked_lettering,
    claims_a_picture,
    named_number,
    names_a_picture,
    question_before,
    read_adjustment,
    read_expansion,
    read_undo,
    reads_as,
    requested_search_in_words,
    wants_lettering,
)
from tests.adapters.models import declaration, holds_question, is_unsure, load_catalogue, parse_arguments
from tests.adapters.sketch import Draw, Edit, image_call, understand
from tests.support.cases import each_case
from tests.support.tables import table

# Lettering


LETTERING = table("lettering")


def test_a_wish_for_words_in_the_picture_is_heard_and_no_other() -> None:
    assert [text for text in LETTERING["wanted"] if not wants_lettering(text)] == []
    assert [text for text in LETTERING["not_wanted"] if wants_lettering(text)] == []
    assert wants_lettering("a café poster", "A poster of a red cup. The headline reads “SLOW”.")
    assert not wants_lettering()
    facts = "a tower\n\n[FACTS]\n- The sign says “CLOSED” (a.example)\n[/FACTS]"
    assert (wants_lettering(facts), asked_lettering(facts)) == (False, ())


def test_the_words_asked_for_stand_beside_a_word_that_asks_and_are_read_whatever_their_case_and_width() -> None:
    asked = {text: tuple(words) for text, words in LETTERING["asked"]}
    assert {text: asked_lettering(text) for text in asked} == asked
    assert [(asked, read) for asked, read in LETTERING["same"] if not reads_as(asked, read)] == []
    assert [(asked, read) for asked, read in LETTERING["others"] if reads_as(asked, read)] == []


@each_case(
    "piece",
    ["no a, ", "no a and ", "“", "'a", "不要", 'replace "x" ', "write a ", "no text, ", "无", "a or ", "remove "],
)
def test_a_long_text_made_to_be_slow_is_read_to_its_end(piece: str) -> None:
    # A pattern that tries every way would not come back from this.
    text = f"the sign says “OPEN”. {piece * 20_000}"
    assert wants_lettering(text)
    assert asked_lettering(text)[0] == "OPEN"


# Searches


def test_words_that_ask_for_search_and_verification_are_heard_and_no_others() -> None:
    wishes = table("search_wishes")
    assert [text for text in wishes["asked"] if not requested_search_in_words(text)] == []
    assert [text for text in wishes["not_asked"] if requested_search_in_words(text)] == []


# Claims of a picture where none was made


WISH = "draw a red fox in the snow"


QUESTIONS = ("What did you paint first?", "你刚才画了什么？", "which one is the newest?")


def test_an_answer_claims_a_picture_but_to_a_question() -> None:
    told = table("picture_claims")
    assert [answer for answer in told["claims"] if not claims_a_picture(answer, WISH)] == []
    assert [answer for answer in told["talk"] if claims_a_picture(answer, WISH)] == []
    painted = "I painted a fox, and then I made the sky pink."
    assert [question for question in QUESTIONS if claims_a_picture(painted, question)] == []


# Going back and forward


def test_going_back_or_forward_is_understood_with_what_else_is_asked_for_and_nothing_that_only_sounds_like_it() -> None:
    wishes = [(read_undo(text), (text, move, rest)) for text, move, rest in table("undo")["read"]]
    assert [said for wish, said in wishes if wish is None or (wish.move, wish.rest) != said[1:]] == []
    assert [text for text in table("undo")["left_alone"] if read_undo(text) is not None] == []


def test_how_far_and_where_to_is_understood() -> None:
    wishes = [
        ("undo the last two changes", UndoRequest("undo", steps=2)),
        ("undo twice", UndoRequest("undo", steps=2)),
        ("go back 3 steps", UndoRequest("undo", steps=3)),
        ("撤销两步", UndoRequest("undo", steps=2)),
        ("回退3步", UndoRequest("undo", steps=3)),
        ("go back to #12b", UndoRequest("back_to", handle="#12b")),
        ("回到＃１", UndoRequest("back_to", handle="#1")),
        ("go back to picture 2", UndoRequest("back_to", handle="#2")),
        ("use the third one again", UndoRequest("back_to", place=3)),
        ("回到第二张", UndoRequest("back_to", place=2)),
        ("back to the 2nd version", UndoRequest("back_to", place=2)),
        ("restore the original", UndoRequest("back_to")),
        ("redo it", UndoRequest("redo", is_doubtful=True)),
        ("redo", UndoRequest("redo")),
    ]
    assert {text: read for text, wish in wishes if (read := read_undo(text)) != wish} == {}


@given(st.text(max_size=300))
def test_any_words_go_back_or_do_not(text: str) -> None:
    wish = read_undo(text)
    assert wish is None or wish.steps >= 1


# Adjustments


ADJUSTMENTS = table("adjustments")["read"]


def wrongly_read(expected: Iterable[tuple[str, dict[str, object] | None]]) -> dict[str, Adjustment | None]:
    """Return the words that are not read as expected, and as what they are read."""
    return {
        words: read
        for words, fields in expected
        if (read := read_adjustment(words)) != (None if fields is None else Adjustment.model_validate(fields))
    }


def test_a_wish_for_an_adjustment_alone_is_read_and_with_one_word_too_many_nothing() -> None:
    assert wrongly_read(ADJUSTMENTS) == {}
    assert wrongly_read((words, None) for words in table("adjustments")["left_alone"]) == {}
    english = ("and add a bird", "like in a film", "except the sky", "for the poster", "in Paris")
    more = (*english, "，加一只鸟", "的天空", "，除了天空")
    assert wrongly_read((f"{wish.rstrip('.。!?？')} {one}", None) for wish, _ in ADJUSTMENTS for one in more) == {}
    assert read_adjustment("please " * 20 + "brighter") is not None
    assert read_adjustment("please " * 40 + "brighter") is None


def test_politeness_and_a_handle_change_nothing() -> None:
    wishes = [(words, expected) for words, expected in ADJUSTMENTS if "#" not in words and "＃" not in words]
    assert wrongly_read((f"  {wish.upper()} ", expected) for wish, expected in wishes) == {}
    assert wrongly_read((f"#3: {wish}", expected) for wish, expected in wishes) == {}
    assert wrongly_read((f"Please, {wish}" if wish.isascii() else f"请{wish}", fields) for wish, fields in wishes) == {}


@settings(deadline=None)
@given(st.text(alphabet="brighte darkmo#3一点亮暗再,。+20% and", max_size=60))
def test_any_words_are_read_or_left_alone_but_never_fail(words: str) -> None:
    adjustment = read_adjustment(words)
    assert adjustment is None or not adjustment.is_identity


# More around a picture


ALL = "bottom left right top"


@each_case(
    ("text", "ratio", "sides"),
    [
        ("outpaint to 16:9", 16 / 9, ALL),
        ("please extend the picture to 21:9", 21 / 9, ALL),
        ("Expand it to 4:3.", 4 / 3, ALL),
        ("uncrop", None, ALL),
        ("zoom out a bit", None, ALL),
        ("show more around it", None, ALL),
        ("show me more of the surroundings around it", None, ALL),
        ("extend it to the left", None, "left"),
        ("expand the canvas on the right side", None, "right"),
        ("outpaint the image upwards", None, "top"),
        ("show more on the left", None, "left"),
        ("show more to the right", None, "right"),
        ("can you extend the photo on all sides?", None, ALL),
        ("扩展画面到16:9", 16 / 9, ALL),
        ("把画面扩展成4:3", 4 / 3, ALL),
        ("扩图", None, ALL),
        ("把画面往左边扩一点", None, "left"),
        ("向右扩展", None, "right"),
        ("往四周扩展一些", None, ALL),
        ("左右扩展画面", None, "left right"),
        ("请把照片外扩到16：9", 16 / 9, ALL),
    ],
)
def test_more_around_a_picture_is_understood(text: str, ratio: float | None, sides: str) -> None:
    wish = read_expansion(text)
    assert wish is not None
    assert (wish.ratio, wish.rest) == (None if ratio is None else pytest.approx(ratio), "")
    assert " ".join(sorted(wish.sides)) == sides


@pytest.mark.parametrize(
    ("text", "rest"),
    [("outpaint to 16:9 with more forest", "more forest"), ("扩展画面到16:9，右边加一棵树", "右边加一棵树")],
)
def test_what_shall_be_there_is_told_apart(text: str, rest: str) -> None:
    wish = read_expansion(text)
    assert wish is not None
    assert wish.rest == rest


@each_case(
    "text",
    [
        *("crop to 16:9", "make it 16:9", "extend the fence", "expand the list of names", "zoom in"),
        *("extend the deadline to 5:30", "a cat that extends its paws", "draw more cats", "show more detail"),
        *("enlarge to 2048 wide", "add more contrast", "make it wider", "expanding universe, oil painting"),
        *("outpainting explained", "show the left hand", "裁剪到16:9", "放大一倍", "扩音器的海报", "延伸的铁轨"),
        *("扩散的墨水", "画一条延伸到远方的路", "更多对比度", ""),
    ],
)
def test_other_requests_are_left_alone(text: str) -> None:
    assert read_expansion(text) is None


def test_a_ratio_grows_two_sides_and_one_that_is_there_grows_none() -> None:
    wish = read_expansion("outpaint to 16:9")
    assert wish is not None
    assert wish.shares(480, 480) == pytest.approx((7 / 18, 0, 7 / 18, 0))
    assert wish.shares(1000, 300) == pytest.approx((0, 0.4375, 0, 0.4375))
    assert wish.shares(1600, 900) == (0, 0, 0, 0)


# How many pictures


@each_case(
    ("text", "number"),
    [
        ("two cups", 2),
        ("paint 4 pictures", 4),
        ("给我画四张", 4),
        ("3张", 3),
        ("put it there, twice", 2),
        ("2 or 3 of them", 3),
        ("a fox", 1),
        ("12 foxes", 1),
        ("in 4:3, 4K, 2.5 times as large as #3, 4x4", 1),
        ("twofold", 1),
    ],
)
def test_a_number_in_the_persons_words_is_how_many_pictures_they_can_have_meant(text: str, number: int) -> None:
    assert named_number(text) == number


# What is asked back before any model is called


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
        assert wrongly_asked(None, table("questions")["ordinary"], pictures=pictures) == {}


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


# What a call is for, and when it is too unsure to be painted


ACTIONS = [
    *((None, None), ("repaint", None), ("generate_image", "generate_image"), ("edit_image", "edit_image")),
    *(("adjust_parameters", "adjust_parameters"), ("Inpainting", "edit_image"), ("unknown", "unknown")),
]


@each_case(("said", "action"), ACTIONS)
def test_the_agents_word_for_what_is_to_be_done_counts_where_it_is_one(said: str | None, action: str | None) -> None:
    assert parse_arguments({"prompt": "a fox", "action": said}).action == action


@each_case(("arguments", "unsure"), table("intents")["unsure"])
def test_half_sure_or_less_and_an_unknown_action_are_unsure(arguments: dict[str, Any], unsure: bool) -> None:
    assert is_unsure(parse_arguments({"prompt": "a fox", **arguments})) is unsure


def test_words_that_ask_are_told_from_words_that_announce() -> None:
    assert [text for text, asks in table("intents")["asks"] if holds_question(text) is not asks] == []


@each_case(("text", "action"), table("intents")["actions"])
def test_the_built_in_model_is_sure_of_every_wish_that_it_understands(text: str, action: str) -> None:
    wish = understand(text, True)
    assert isinstance(wish, Draw | Edit)
    call = image_call(wish, text, [declaration(load_catalogue(), "sketch")], is_upload=False)
    assert call is not None
    arguments = parse_arguments(call.arguments)
    assert not is_unsure(arguments)
    assert arguments.confidence is not None
    assert arguments.action == action
