"""The family tree of pictures: who descends from whom, and where each stands."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import ErrorCode, ImageOrigin, ImagePart, Picture, ToolArgumentError
from tests.adapters.language import Handle, allot_handle, handles_in, next_letter, next_number, parse_handle, resolve
from tests.adapters.webui import Lineage, PlacedPicture, lineage
from tests.support.cases import each_case
from tests.support.histories import NOW, image_part


def picture(handle: str) -> Picture:
    image = ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    return Picture(handle=handle, image=image, turn_id="t", created_at=datetime(2026, 11, 20, tzinfo=UTC))


@each_case("written", ["#7b", "7b", "#7B", " # 7b ", "＃７ｂ", "#07b"])
def test_a_handle_is_read_however_it_is_written(written: str) -> None:
    assert parse_handle(written) == Handle(7, "b")


@each_case("written", ["", "#", "b7", "#7a", "#7b2", "#7abcd", "seven", "#-1", "#7.5", "1234567"])
def test_what_is_no_handle_is_not_read_as_one(written: str) -> None:
    assert parse_handle(written) is None


@each_case(("taken", "free"), [([], "#1"), (["#1", "#2", "#2c"], "#3"), (["#9", "#10"], "#11"), (["#4"], "#5")])
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


def made(number: int, *parents: str, is_edit: bool = True, at: int | None = None) -> Picture:
    """Return picture `#number`: an upload without parents, else made from the first of them or leaning on all."""
    origin = ImageOrigin.UPLOADED
    if parents:
        origin = ImageOrigin.EDITED if is_edit else ImageOrigin.GENERATED
    return Picture(
        handle=f"#{number}",
        image=image_part(f"#{number}", origin),
        turn_id="t1",
        created_at=NOW + timedelta(seconds=number if at is None else at),
        parents=parents,
    )


def random_pictures(seed: int, count: int) -> list[Picture]:
    """Return pictures that are made from each other at random, with parents nobody knows among them."""
    chance, pictures = random.Random(seed), list[Picture]()
    for number in range(count):
        parents: tuple[str, ...] = ()
        if pictures and chance.random() < 0.8:
            known = [one.handle for one in pictures]
            parents = tuple(dict.fromkeys(chance.choices([*known, "#gone"], k=chance.randint(1, 4))))
        pictures.append(made(number, *parents, is_edit=chance.random() < 0.7))
    return pictures


def place(tree: Lineage) -> dict[str, tuple[int, int]]:
    return {one.handle: (one.column, one.row) for one in tree.placed}


def find(tree: Lineage, handle: str) -> PlacedPicture:
    found = tree.find(handle)
    assert found is not None
    return found


def test_a_picture_stands_above_the_middle_of_what_was_made_from_it() -> None:
    tree = lineage([made(1), made(2, "#1"), made(3, "#1"), made(4, "#1"), made(5, "#3")])
    assert place(tree) == {"#1": (2, 0), "#2": (0, 1), "#3": (2, 1), "#4": (4, 1), "#5": (2, 2)}
    assert (tree.columns, tree.rows) == (6, 3)


def test_what_was_made_from_a_picture_is_told_from_what_leaned_on_it() -> None:
    tree = lineage([made(1), made(2), made(3, "#1", "#2"), made(4, "#1", "#2", is_edit=False)])
    assert (find(tree, "#3").base, find(tree, "#3").references) == ("#1", ("#2",))
    assert (find(tree, "#4").base, find(tree, "#4").references) == ("", ("#1", "#2"))
    assert tree.children("#1") == ("#3",)
    assert find(tree, "#4").row == 1


def test_the_path_leads_from_the_first_picture_to_the_open_one() -> None:
    tree = lineage([made(1), made(2, "#1"), made(3, "#2"), made(4, "#1")])
    assert tree.path_to("#3") == ("#1", "#2", "#3")
    assert tree.path_to("#9") == ()


def test_a_branch_is_a_picture_and_all_made_from_it_but_not_what_leaned_on_it() -> None:
    pictures = [made(1), made(2, "#1"), made(3, "#2"), made(4, "#2", is_edit=False), made(5, "#3"), made(6, "#1")]
    tree = lineage(pictures)
    assert tree.branch_of("#2") == ("#2", "#3", "#5")
    assert tree.branch_of("#9") == ()


def test_pictures_that_have_nothing_in_common_fill_shelf_after_shelf() -> None:
    tree = lineage([made(number) for number in range(5)], shelf_columns=2)
    assert list(place(tree).values()) == [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2)]


def test_a_reference_stands_next_to_the_family_that_leans_on_it() -> None:
    tree = lineage([made(1), made(2), made(3), made(4, "#1", "#3")], shelf_columns=9)
    assert find(tree, "#3").column - find(tree, "#1").column == 2


def test_deleted_pictures_are_left_out_unless_another_was_made_from_them() -> None:
    pictures = [made(1), made(2, "#1"), made(3, "#2"), made(4, "#1"), made(5, "#4", is_edit=False)]
    tree = lineage(pictures, gone={"#2", "#4"})
    assert [one.handle for one in tree.placed if one.is_gone] == ["#2"]
    assert tree.find("#4") is None
    assert find(tree, "#5").references == ()
    assert find(lineage(pictures, gone={"#1", "#2", "#3", "#4"}), "#5").row == 0


@pytest.mark.parametrize(
    "pictures",
    [
        [made(1, "#1")],
        [made(1, "#2"), made(2, "#1")],
        [made(1, "#3"), made(2, "#1"), made(3, "#2"), made(4, "#3")],
        [made(1, "#9", "#8")],
    ],
    ids=["itself", "each-other", "a-ring", "nobody"],
)
def test_records_that_go_in_a_ring_or_nowhere_are_cut_open(pictures: list[Picture]) -> None:
    tree = lineage(pictures)
    assert {one.handle for one in tree.placed} == {one.handle for one in pictures}
    check(tree, pictures)


def test_a_clock_that_went_backwards_puts_nobody_above_their_parents() -> None:
    assert place(lineage([made(2, "#1", at=1), made(1, at=5)])) == {"#1": (0, 0), "#2": (0, 1)}


def test_a_conversation_without_pictures_has_an_empty_tree() -> None:
    assert lineage([]) == Lineage()


@each_case("seed", range(40))
def test_any_conversation_has_a_tree_in_which_everybody_has_their_own_place(seed: int) -> None:
    pictures = random_pictures(seed, 3 * seed)
    check(lineage(pictures), pictures)
    assert lineage(random.Random(seed).sample(pictures, len(pictures))) == lineage(pictures)


@each_case("seed", range(20))
def test_a_tree_without_the_deleted_is_sound_too(seed: int) -> None:
    pictures = random_pictures(seed, 60)
    gone = {one.handle for one in random.Random(seed).sample(pictures, 30)}
    tree = lineage(pictures, gone)
    assert {one.handle for one in tree.placed if not one.is_gone} == {one.handle for one in pictures} - gone
    assert all(
        any(not find(tree, child).is_gone for child in tree.branch_of(one.handle))
        for one in (one for one in tree.placed if one.is_gone)
    )
    check(tree, pictures)


def test_a_long_line_of_descent_is_placed_without_recursion() -> None:
    pictures = [made(0), *(made(number, f"#{number - 1}") for number in range(1, 3000))]
    tree = lineage(pictures)
    assert (tree.columns, tree.rows) == (2, 3000)
    assert len(tree.path_to("#2999")) == len(tree.branch_of("#0")) == 3000


def check(tree: Lineage, pictures: Sequence[Picture]) -> None:
    """Assert what holds in every tree: no two overlap, all stand below what they come from, no solid lines cross."""
    for one in tree.placed:
        assert 0 <= one.column <= tree.columns - 2
        assert 0 <= one.row < tree.rows
        for parent in (*filter(None, (one.base,)), *one.references):
            assert find(tree, parent).row < one.row
        assert set(one.references) <= set(one.picture.parents) - {one.base}
    by_row: dict[int, list[PlacedPicture]] = {}
    for one in tree.placed:
        by_row.setdefault(one.row, []).append(one)
    for row in by_row.values():
        assert all(left.column + 2 <= right.column for left, right in pairwise(row))
    lines = [(find(tree, one.base), one) for one in tree.placed if one.base]
    for base, one in lines:
        # A line runs down in its picture's own column: nobody stands in it between the two.
        between = (other for other in tree.placed if base.row < other.row < one.row)
        assert all(abs(other.column - one.column) >= 2 for other in between)
    for base, one in lines:
        for other_base, other in lines:
            if base.row == other_base.row and base.column < other_base.column:
                assert one.column < other.column
