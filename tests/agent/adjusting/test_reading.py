from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.adapters.language import Adjustment, read_adjustment
from tests.support.tables import table

READ = table("adjustments")["read"]
LEFT_ALONE = table("adjustments")["left_alone"]


def wrongly_read(expected: Iterable[tuple[str, dict[str, object] | None]]) -> dict[str, Adjustment | None]:
    """Return the words that are not read as expected, and as what they are read."""
    return {
        words: read
        for words, fields in expected
        if (read := read_adjustment(words)) != (None if fields is None else Adjustment.model_validate(fields))
    }


def test_a_wish_for_an_adjustment_alone_is_read_and_with_one_word_too_many_nothing() -> None:
    assert len(READ) + len(LEFT_ALONE) == len({words for words, _ in READ} | set(LEFT_ALONE)) >= 200
    assert wrongly_read(READ) == wrongly_read((words, None) for words in LEFT_ALONE) == {}
    english = ("and add a bird", "like in a film", "except the sky", "for the poster", "in Paris")
    more = (*english, "，加一只鸟", "的天空", "，除了天空")
    assert wrongly_read((f"{wish.rstrip('.。!?？')} {one}", None) for wish, _ in READ for one in more) == {}
    assert read_adjustment("please " * 20 + "brighter") is not None
    assert read_adjustment("please " * 40 + "brighter") is None


def test_politeness_and_a_handle_change_nothing() -> None:
    wishes = [(words, expected) for words, expected in READ if "#" not in words and "＃" not in words]
    assert wrongly_read((f"  {wish.upper()} ", expected) for wish, expected in wishes) == {}
    assert wrongly_read((f"#3: {wish}", expected) for wish, expected in wishes) == {}
    assert wrongly_read((f"Please, {wish}" if wish.isascii() else f"请{wish}", fields) for wish, fields in wishes) == {}


@settings(deadline=None)
@given(st.text(alphabet="brighte darkmo#3一点亮暗再,。+20% and", max_size=60))
def test_any_words_are_read_or_left_alone_but_never_fail(words: str) -> None:
    adjustment = read_adjustment(words)
    assert adjustment is None or not adjustment.is_identity
