"""How many pictures the words of a message ask for, which are painted without a question."""

from __future__ import annotations

from tests.adapters.language import named_number
from tests.support.cases import each_case


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
