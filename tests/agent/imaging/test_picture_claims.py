"""What counts as a claim of a picture where none was made, in both languages."""

from __future__ import annotations

from tests.adapters.language import claims_a_picture
from tests.support.tables import table

WISH = "draw a red fox in the snow"
QUESTIONS = ("What did you paint first?", "你刚才画了什么？", "which one is the newest?")


def test_an_answer_claims_a_picture_but_to_a_question() -> None:
    told = table("picture_claims")
    assert [answer for answer in told["claims"] if not claims_a_picture(answer, WISH)] == []
    assert [answer for answer in told["talk"] if claims_a_picture(answer, WISH)] == []
    painted = "I painted a fox, and then I made the sky pink."
    assert [question for question in QUESTIONS if claims_a_picture(painted, question)] == []
