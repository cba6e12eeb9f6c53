"""What counts as a claim of a picture where none was made, in both languages."""

from __future__ import annotations

import pytest

from tests.adapters.language import claims_a_picture
from tests.support.cases import each_case
from tests.support.tables import table

CLAIMS = table("picture_claims")["claims"]
TALK = table("picture_claims")["talk"]


@each_case("answer", CLAIMS)
def test_an_answer_claims_a_picture(answer: str) -> None:
    assert claims_a_picture(answer, "draw a red fox in the snow")


@each_case("answer", TALK)
def test_an_answer_claims_none(answer: str) -> None:
    assert not claims_a_picture(answer, "draw a red fox in the snow")


@pytest.mark.parametrize("wish", ["What did you paint first?", "你刚才画了什么？", "which one is the newest?"])
def test_a_question_is_answered_in_words(wish: str) -> None:
    assert not claims_a_picture("I painted a fox, and then I made the sky pink.", wish)
