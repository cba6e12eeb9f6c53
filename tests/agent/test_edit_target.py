"""Which picture the next words change, as the turns of a conversation made it so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from agent import (
    AgentMessage,
    Component,
    Conversation,
    EditRecord,
    ImageOrigin,
    ImagePart,
    Picture,
    Review,
    SmartCanvas,
    TargetChanged,
    TargetMove,
    TargetNote,
    Turn,
    TurnSettings,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def part(handle: str, origin: ImageOrigin = ImageOrigin.GENERATED) -> ImagePart:
    return ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=origin, handle=handle)


def made(handle: str, turn: str, *, base: str = "", at: int = 0, **more: object) -> Picture:
    origin = ImageOrigin.EDITED if base else ImageOrigin.GENERATED
    values = {
        "handle": handle,
        "image": part(handle, origin),
        "turn_id": turn,
        "created_at": START + timedelta(minutes=at),
        "parents": (base,) if base else (),
        **more,
    }
    return Picture.model_validate(values)


def uploaded(handle: str, turn: str) -> Picture:
    return made(handle, turn).model_copy(update={"image": part(handle, ImageOrigin.UPLOADED)})


def turn(turn_id: str, *components: Component, at: int = 0) -> Turn:
    begun = START + timedelta(minutes=at)
    return Turn(id=turn_id, text="x", settings=TurnSettings(), started_at=begun, components=components)


def canvas(*handles: str, earlier: tuple[str, ...] = ()) -> SmartCanvas:
    return SmartCanvas(handles=handles, earlier=earlier)


def went(move: TargetMove, handle: str, before: str, steps: int = 1) -> TargetNote:
    return TargetNote(change=TargetChanged(move=move, handle=handle, before=before, steps=steps))


def talk(*turns: Turn, pictures: tuple[Picture, ...]) -> Conversation:
    return Conversation(
        id="c", owner="local", title="", created_at=START, updated_at=START, turns=turns, pictures=pictures
    )


CHAIN = (made("#1", "a"), made("#1b", "b", base="#1"), made("#1c", "c", base="#1b"))
TURNS = (turn("a", canvas("#1")), turn("b", canvas("#1b")), turn("c", canvas("#1c")))


def test_it_is_the_newest_picture_whatever_is_said_after_it() -> None:
    hello = AgentMessage(text="Hello.")
    assert talk(turn("a", hello), pictures=()).edit_target is None
    assert talk(*TURNS, pictures=CHAIN).edit_target == "#1c"
    assert talk(*TURNS, turn("d", hello), pictures=CHAIN).edit_target == "#1c"
    # An upload is the one to change until something is made of it.
    pictures = (*CHAIN, uploaded("#2", "d"))
    assert talk(*TURNS, turn("d"), pictures=pictures).edit_target == "#2"
    with_edit = (*pictures, made("#2b", "d", base="#2"))
    assert talk(*TURNS, turn("d", canvas("#2b")), pictures=with_edit).edit_target == "#2b"


def test_of_several_it_is_the_best_reviewed_else_the_newest() -> None:
    four = tuple(made(f"#{number}", "a") for number in range(1, 5))
    shown = turn("a", canvas("#1", "#2", "#3", "#4"))
    assert talk(shown, pictures=four).edit_target == "#4"
    reviewed = (four[0].model_copy(update={"review": Review(score=0.9)}), *four[1:])
    assert talk(shown, pictures=reviewed).edit_target == "#1"


def test_an_attempt_that_a_review_sent_back_and_a_picture_that_was_not_pasted_are_not_the_one() -> None:
    pictures = (made("#1", "a"), made("#2", "a"))
    assert talk(turn("a", canvas("#1", earlier=("#2",))), pictures=pictures).edit_target == "#1"
    record = EditRecord(kind="mask", verdict="refused", reason="", base=part("#1"), mask=part("m"), raw=part("#1b"))
    refused = made("#1b", "b", base="#1", edit=record)
    assert talk(*TURNS[:2], pictures=(CHAIN[0], refused)).edit_target == "#1"


def test_a_part_kept_by_hand_later_is_the_one_though_it_belongs_to_an_older_turn() -> None:
    record = EditRecord(
        kind="kept_part", verdict="good", reason="", base=part("#1"), mask=part("m"), raw=part("#1b"), grown_from="#1b"
    )
    later = made("#1d", "b", base="#1", at=30, edit=record)
    turns = (turn("a", canvas("#1")), turn("b", canvas("#1b"), canvas("#1d"), at=5), turn("c", canvas("#1c"), at=10))
    assert talk(*turns, pictures=(*CHAIN, later)).edit_target == "#1d"
    early = later.model_copy(update={"created_at": START + timedelta(minutes=7)})
    assert talk(*turns, pictures=(*CHAIN, early)).edit_target == "#1c"


def test_going_back_makes_the_earlier_picture_the_one_until_something_new_is_made() -> None:
    undone = turn("d", went("undo", "#1b", "#1c"))
    history = talk(*TURNS, undone, pictures=CHAIN).edit_history
    assert (history.target, history.redone().target, history.undone().target) == ("#1b", "#1c", "#1")
    pictures = (*CHAIN, made("#1d", "e", base="#1b"))
    history = talk(*TURNS, undone, turn("e", canvas("#1d")), pictures=pictures).edit_history
    assert [state.handle for state in history.states] == ["#1", "#1b", "#1d"]
    assert history.redone().target == "#1d"
    # Going back to a picture can be undone itself.
    history = talk(*TURNS, turn("d", went("back_to", "#1", "#1c")), pictures=CHAIN).edit_history
    assert (history.target, history.undone().target) == ("#1", "#1c")


def test_a_change_of_an_older_picture_leads_back_to_that_one() -> None:
    pictures = (made("#1", "a"), made("#2", "b"), made("#1b", "c", base="#1"))
    turns = (turn("a", canvas("#1")), turn("b", canvas("#2")), turn("c", canvas("#1b")))
    history = talk(*turns, pictures=pictures).edit_history
    assert [history.target, history.undone().target, history.undone(2).target] == ["#1b", "#1", "#2"]


def test_a_deleted_picture_is_passed_by() -> None:
    turns = (*TURNS, turn("d", went("undo", "#1b", "#1c")))
    assert talk(*turns, pictures=(CHAIN[0], CHAIN[2])).edit_target == "#1c"
    assert talk(*TURNS, pictures=CHAIN[:2]).edit_target == "#1b"


def test_last_generated_passes_an_upload_by_unless_the_person_went_back_to_it() -> None:
    pictures = (uploaded("#1", "a"), made("#1b", "a", base="#1"))
    back = talk(turn("a", canvas("#1b")), turn("b", went("undo", "#1", "#1b")), pictures=pictures)
    assert (back.edit_target, back.edit_history.last_generated) == ("#1", "#1")
    with_upload = talk(turn("a", canvas("#1b")), turn("b"), pictures=(*pictures, uploaded("#2", "b")))
    assert (with_upload.edit_target, with_upload.edit_history.last_generated) == ("#2", "#1b")
