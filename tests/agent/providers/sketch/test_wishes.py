"""What the planner understands of a whole picture and of a part of it, in both languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.adapters.language import Adjustment
from tests.adapters.sketch import (
    AddText,
    AskBack,
    Draw,
    Edit,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    Position,
    Reason,
    Recolour,
    ResizeBy,
    ResizeTo,
    Retake,
    RetakeKind,
    Talk,
    Topic,
    find_colours,
    read_area_wish,
    understand,
)
from tests.bench import adjustments as bench
from tests.support.cases import each_case
from tests.support.tables import table

WISHES = table("sketch_wishes")
Answers = AskBack | Talk


def adjust(**amounts: object) -> Adjustment:
    return Adjustment.model_validate(amounts)


def operation(written: dict[str, Any]) -> Operation:
    """Return the operation that a table writes down."""
    match written:
        case {"effect": kind, "amount": amount}:
            return Effect(EffectKind(kind), amount)
        case {"text": text, "position": position, **rest}:
            return AddText(text, Position(position), tuple(rest["ink"]) if rest else None)
        case {"factor": factor}:
            return ResizeBy(factor)
        case {"colour": colour}:
            return Recolour(tuple(colour))
        case {"width": _} | {"height": _}:
            return ResizeTo(written.get("width"), written.get("height"))
    return Adjustment.model_validate(written)


def edits(name: str) -> list[tuple[str, object]]:
    return [(wish, Edit(tuple(map(operation, written)))) for wish, written in WISHES[name]]


def answers(name: str) -> list[tuple[str, Answers]]:
    reasons = set(Reason)
    return [(wish, AskBack(Reason(said)) if said in reasons else Talk(Topic(said))) for wish, said in WISHES[name]]


def whole(wish: str) -> object:
    return understand(wish, has_pictures=True)


def without_pictures(wish: str) -> object:
    return understand(wish, has_pictures=False)


def misunderstood(expected: Iterable[tuple[str, object]], read: Callable[[str], object] = whole) -> dict[str, object]:
    """Return the wishes that are not understood as expected, and how they are; handles are another matter."""
    return {wish: found for wish, meant in expected if bare(found := read(wish)) != meant}


def bare(found: object) -> object:
    return Edit(found.operations, left_out=found.left_out) if isinstance(found, Edit) else found


def test_a_wish_for_a_picture_is_drawn() -> None:
    wrong = []
    for wish, *expected in WISHES["drawn"]:
        draw = understand(wish, has_pictures=False)
        assert isinstance(draw, Draw), wish
        if [draw.subject, draw.aspect_ratio or "", draw.number_of_images or 0, draw.style] != expected:
            wrong.append((wish, draw))
    assert wrong == []


def test_a_wish_for_a_change_gives_its_operations_in_order_also_beside_other_wishes() -> None:
    assert misunderstood(edits("edited")) == {}
    assert misunderstood(edits("mixed")) == {}


def test_what_is_neither_is_answered_in_words() -> None:
    assert misunderstood(answers("answered")) == {}
    assert misunderstood(answers("answered_inside"), read_area_wish) == {}


def test_without_any_picture_a_change_asks_for_one_and_once_more_asks_what_to_paint() -> None:
    changes = ("make it brighter", "再亮一点", "crop it", "remove the background")
    again = ("再来一张", "paint it again", "vary it")
    for wishes, reason in ((changes, Reason.NO_PICTURE), (again, Reason.NO_SUBJECT)):
        assert misunderstood(((wish, AskBack(reason)) for wish in wishes), without_pictures) == {}


@each_case(
    ("wish", "handles"),
    [
        ("make #3 darker", ("#3",)),
        ("把 #2b 变暗一些", ("#2b",)),
        ("把＃4变暗一些", ("#4",)),
        ("make #3 and #1 darker, #3 first", ("#3", "#1")),
        ("make it brighter", ()),
        # A colour code is no handle.
        ("draw a circle in #ff0000 and #123456", ()),
    ],
)
def test_handles_named_in_words_are_found(wish: str, handles: tuple[str, ...]) -> None:
    understood = whole(wish)
    assert isinstance(understood, Draw if "draw" in wish else Edit)
    assert understood.handles == handles


def test_what_needs_eyes_is_left_out_of_an_edit_and_named() -> None:
    understood = whole("make the photo brighter, blur the background")
    assert understood == Edit((adjust(brightness=30),), left_out=("blur the background",))


def test_more_than_four_pictures_are_four_and_a_very_long_wish_keeps_a_short_subject() -> None:
    long = "draw a cat " + "with a very long tail " * 9000
    wishes = ("draw nine pictures of a cat", "draw 9 pictures of a cat", long)
    nine, four, cat = (understand(wish, has_pictures=False) for wish in wishes)
    assert isinstance(nine, Draw)
    assert isinstance(four, Draw)
    assert isinstance(cat, Draw)
    assert (nine.number_of_images, four.number_of_images) == (None, 4)
    assert len(cat.subject) <= 160


def test_a_turn_leaves_no_ratio_to_ask_for() -> None:
    assert whole("crop to 16:9 and rotate right") == Edit((adjust(rotate=90, crop="9:16"),))


def retakes(wishes: Iterable[str]) -> dict[str, Retake | None]:
    """Return each wish with the retake it is understood as, or none."""
    return {wish: found if isinstance(found := whole(wish), Retake) else None for wish in wishes}


def test_the_same_wish_once_more_and_a_variation_are_understood_and_what_is_neither() -> None:
    expected = {wish: (RetakeKind.AGAIN, ("#3",) if "3" in wish else ()) for wish in WISHES["again"]}
    assert {wish: (one.kind, one.handles) for wish, one in retakes(WISHES["again"]).items() if one} == expected
    found = retakes(WISHES["variations"])
    assert {wish: one for wish, one in found.items() if one is None or one.kind is not RetakeKind.VARIATION} == {}
    assert {wish: one for wish, one in retakes(WISHES["neither_again_nor_variation"]).items() if one} == {}
    counts = {"make three variations of this picture": 3, "再画两张": 2, "another take": None}
    assert {wish: one.number_of_images for wish, one in retakes(counts).items() if one} == counts


def test_what_is_no_wish_for_the_whole_picture_changes_none() -> None:
    assert [wish for wish in WISHES["unchanged"] if isinstance(whole(wish), Edit)] == []


def test_nearly_all_phrases_of_the_benchmark_are_understood_and_none_exactly_wrong() -> None:
    outcomes = bench.measured()
    for way, most_wrong in (("exactly", 0), ("without a key", 0)):
        assert sum(one.is_wrong for one in outcomes[way]) <= most_wrong, way
        wishes = [one for one in outcomes[way] if not one.is_trap]
        assert sum(one.is_understood for one in wishes) >= 0.95 * len(wishes), way


# Inside a mask.


def test_what_can_be_done_inside_a_mask_is_understood() -> None:
    wishes = [(wish, written) for wish, written in WISHES["inside"] if "fill" not in written[0]]
    assert misunderstood(((wish, Edit(tuple(map(operation, ops)))) for wish, ops in wishes), read_area_wish) == {}
    assert misunderstood(((wish, Edit((Erase(),))) for wish in WISHES["erased"]), read_area_wish) == {}


def test_patterns_inside_a_mask_are_understood() -> None:
    for wish, (written, *_) in WISHES["inside"]:
        if "fill" in written:
            understood = read_area_wish(wish)
            assert isinstance(understood, Edit), wish
            (fill,) = understood.operations
            assert isinstance(fill, Fill), wish
            colours = tuple(written.get("colour", fill.colour)), tuple(written.get("ground", fill.ground))
            assert (fill.kind, (fill.colour, fill.ground), understood.left_out) == (written["fill"], colours, ()), wish
            assert (fill.colour == fill.ground) is (written["fill"] == "plain"), wish


def test_a_thing_beside_what_can_be_done_is_left_out_and_named() -> None:
    assert read_area_wish("remove the hat and add a cap") == Edit((Erase(),), left_out=("add a cap",))


@each_case(
    ("words", "count"),
    [("deep red and pale blue", 2), ("深红", 1), ("黑白", 2), ("#abc", 0), ("bored", 0), ("#0a0b0c", 1)],
)
def test_colours_are_found_by_name_and_code(words: str, count: int) -> None:
    assert len(find_colours(words)) == count


def test_light_and_dark_of_a_colour_differ_from_it() -> None:
    light, plain, dark = (sum(find_colours(words)[0]) for words in ("light green", "green", "深绿"))
    assert light > plain > dark
