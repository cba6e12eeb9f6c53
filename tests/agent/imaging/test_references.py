from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent import (
    ContentPart,
    Conversation,
    ImageOrigin,
    ImagePart,
    Picture,
    PromptMessage,
    Receipt,
    ReferenceMode,
    Role,
    TextPart,
    ToolArgumentError,
    Turn,
    TurnSettings,
)
from tests.adapters.catalogue import load_catalogue
from tests.adapters.language import ImageAction, compose
from tests.adapters.requests import (
    ResolvedReferences,
    build_image_messages,
    image_models,
    resolve_references,
    without_signatures,
)
from tests.support.cases import each_case

MODELS = image_models(load_catalogue(), "gemini")
FLASH, PRO = MODELS["flash"], MODELS["pro"]
NOW = datetime(2026, 11, 20, tzinfo=UTC)
UPLOADED, GENERATED = ImageOrigin.UPLOADED, ImageOrigin.GENERATED


def picture(
    handle: str,
    turn_id: str = "1",
    origin: ImageOrigin = UPLOADED,
    *,
    digest: str | None = None,
    is_marked: bool = False,
    prompt: str | None = None,
) -> Picture:
    kept = {"digest": digest or f"digest{handle}", "md5": "m", "mime_type": "image/png", "size_bytes": 1}
    image = ImagePart.model_validate({**kept, "origin": origin, "handle": handle})
    told = {"prompt": prompt, "user_text": "", "model": FLASH.id, "model_label": FLASH.label, "mime_type": "image/png"}
    size = {"asked_aspect_ratio": None, "asked_resolution": None, "width": 1, "height": 1}
    receipt = None if prompt is None else Receipt.model_validate({**told, **size})
    return Picture(handle=handle, image=image, turn_id=turn_id, created_at=NOW, is_marked=is_marked, receipt=receipt)


def resolved(
    mode: ReferenceMode | None,
    *pictures: Picture,
    turn_id: str = "now",
    named: tuple[str, ...] = (),
    count: int | None = None,
    limit: int = 14,
    action: ImageAction | None = None,
) -> ResolvedReferences:
    return resolve_references(
        mode,
        count,
        pictures=pictures,
        turn_id=turn_id,
        named=named,
        max_references=limit,
        action=action,
        history=before(pictures, turn_id).edit_history,
    )


def before(pictures: tuple[Picture, ...], turn_id: str) -> Conversation:
    """Return the conversation that the pictures of other turns make up."""
    past = tuple(one for one in pictures if one.turn_id != turn_id)
    turns = tuple(
        Turn(id=one, text="", settings=TurnSettings(), started_at=NOW) for one in dict.fromkeys(p.turn_id for p in past)
    )
    return Conversation(id="c", owner="local", title="", created_at=NOW, updated_at=NOW, turns=turns, pictures=past)


HISTORY = (
    picture("#1", "1"),
    picture("#2", "1"),
    picture("#3", "2", GENERATED),
    picture("#4", "3"),
    picture("#3b", "4", ImageOrigin.EDITED),
)


FIVE, NOW_TWO = picture("#5", "now"), (picture("#5", "now"), picture("#6", "now"))
SIX, SEVEN, EIGHT = (picture(handle, "5", GENERATED) for handle in ("#6", "#7", "#8"))
MARKED = SIX.model_copy(update={"is_marked": True})
SAME = (picture("#7", "5", GENERATED, digest="same"), picture("#8", "now", digest="same"))
UPLOADED_ONLY, LAST, ALL = (
    ReferenceMode.USER_UPLOADED_ONLY,
    ReferenceMode.LAST_GENERATED,
    ReferenceMode.ALL_USER_UPLOADED,
)
LAST_N, EDIT, ADJUST = ReferenceMode.LAST_N, ImageAction.EDIT, ImageAction.ADJUST


@each_case(
    ("mode", "pictures", "more", "handles", "base"),
    [
        # This turn's uploads, else those of the newest turn that had some.
        (UPLOADED_ONLY, (*HISTORY, FIVE), {}, "#5", "#5"),
        (UPLOADED_ONLY, HISTORY, {}, "#4", "#4"),
        (UPLOADED_ONLY, HISTORY[:3], {}, "#1 #2", ""),
        # The newest generated picture, of several the marked one, and this turn's uploads.
        (LAST, (*HISTORY, FIVE), {}, "#3b #5", "#3b"),
        (LAST, (*HISTORY, SIX, SEVEN, EIGHT), {}, "#8", "#8"),
        (LAST, (*HISTORY, MARKED, SEVEN, EIGHT), {}, "#6", "#6"),
        (LAST, (MARKED, picture("#7", "6", GENERATED)), {}, "#7", "#7"),
        (LAST, (picture("#1"), picture("#2", "now")), {}, "#2", "#2"),
        # The marked one of identical pictures keeps its own name.
        (LAST, (picture("#6", "5", GENERATED, digest="same", is_marked=True), *SAME), {}, "#6", "#6"),
        # Every upload, the oldest first; which of several is the base is left open.
        (ALL, (*HISTORY, FIVE), {}, "#1 #2 #4 #5", ""),
        (ALL, HISTORY, {}, "#1 #2 #4", ""),
        # The last of any origin, what is there twice once.
        (LAST_N, (*HISTORY, FIVE), {"count": 2}, "#3b #5", ""),
        (LAST_N, HISTORY, {"count": 99}, "#1 #2 #3 #4 #3b", ""),
        (LAST_N, (picture("#1"), picture("#2", digest="b"), picture("#3", digest="b")), {"count": 2}, "#1 #3", ""),
        # Without mode and handles this turn's uploads.
        (None, (*HISTORY, *NOW_TWO), {}, "#5 #6", ""),
        (None, HISTORY, {}, "", ""),
        (None, (), {}, "", ""),
        # A change that names nothing starts from this turn's upload, else from the newest picture.
        (None, (*HISTORY, FIVE), {"action": EDIT}, "#5", "#5"),
        (None, HISTORY, {"action": ADJUST}, "#3b", "#3b"),
        (None, HISTORY[:4], {"action": EDIT}, "#4", "#4"),
        # A new picture has no base, whatever it leans on.
        (None, HISTORY, {"named": ("#3",), "action": ImageAction.GENERATE}, "#3", ""),
        # Handles come before any mode and keep their order.
        *((mode, (*HISTORY, FIVE), {"named": ("#3b", "1", "#3B")}, "#3b #1", "#3b") for mode in (None, *ReferenceMode)),
    ],
)
def test_the_pictures_that_are_shown_are_those_of_the_mode_or_those_named(
    mode: ReferenceMode | None, pictures: tuple[Picture, ...], more: dict[str, Any], handles: str, base: str
) -> None:
    found = resolved(mode, *pictures, **more)
    assert " ".join(one.handle for one in found.pictures) == handles
    assert (found.base.handle if found.base else "") == base
    assert found.left_out == 0


def test_beyond_the_models_limit_the_oldest_are_left_out_and_counted_but_never_the_one_to_be_changed() -> None:
    references = resolved(ReferenceMode.ALL_USER_UPLOADED, *HISTORY, limit=2)
    assert ([one.handle for one in references.pictures], references.left_out) == (["#2", "#4"], 1)
    references = resolved(None, *HISTORY, named=("#1", "#4", "#2"), limit=2)
    assert ([one.handle for one in references.pictures], references.left_out) == (["#1", "#4"], 1)
    assert references.base == HISTORY[0]
    with pytest.raises(ToolArgumentError, match="no picture #9"):
        resolved(None, *HISTORY, named=("#1", "#9"))


def signed(handle: str, model: str = FLASH.id, signature: bytes | None = b"s") -> ImagePart:
    update = {"thought_signature": signature, "signed_by": model if signature else None}
    return picture(handle, origin=GENERATED).image.model_copy(update=update)


def answer(*parts: ContentPart) -> PromptMessage:
    return PromptMessage(role=Role.MODEL, parts=parts)


MADE = picture("#3", origin=GENERATED, prompt="a fox\n\n[IMAGES]\nImage 1 is #1.\nImage 2 is #2.\n[/IMAGES]")
OTHERS = (picture("#1"), picture("#4", origin=GENERATED))


def shown(*pictures: Picture) -> ResolvedReferences:
    return ResolvedReferences(pictures=pictures, base=pictures[0] if pictures else None)


@each_case(
    "stored",
    [
        pytest.param(None, id="no answer kept"),
        pytest.param(answer(signed("#3", signature=None)), id="signature lost"),
        pytest.param(answer(signed("#3", model=PRO.id)), id="another model's"),
        pytest.param(answer(signed("#8", signature=None), signed("#3")), id="one of two unsigned"),
        pytest.param(answer(signed("#8")), id="another picture's answer"),
        pytest.param(answer(signed("#3"), signed("#8")), id="not the answer's result"),
        pytest.param(answer(TextPart(text="Here."), signed("#3")), id="leading text unsigned"),
        pytest.param(answer(), id="empty answer"),
        pytest.param(PromptMessage(role=Role.PROMPT, parts=(signed("#3"),)), id="no model's turn"),
    ],
)
def test_a_base_that_may_not_go_back_as_the_models_stands_unsigned_in_the_prompt(stored: PromptMessage | None) -> None:
    messages = build_image_messages("bluer", shown(MADE, *OTHERS), stored, FLASH)
    assert [message.role for message in messages] == [Role.PROMPT]
    assert [image.handle for image in messages[0].images] == ["#3", "#1", "#4"]
    assert all(image.thought_signature is None and image.signed_by is None for image in messages[0].images)


some_parts = st.lists(
    st.one_of(
        st.builds(
            signed,
            st.sampled_from(["#3", "#8"]),
            st.sampled_from([FLASH.id, PRO.id]),
            st.sampled_from([None, b"", b"s"]),
        ),
        st.builds(
            TextPart,
            text=st.sampled_from(["", "Here."]),
            thought_signature=st.sampled_from([None, b"t"]),
            signed_by=st.sampled_from([None, FLASH.id, PRO.id]),
            is_thought=st.booleans(),
        ),
    ),
    max_size=4,
)


@given(
    some_parts, st.lists(st.sampled_from([*OTHERS, MADE]), unique=True), st.sampled_from([FLASH, PRO]), st.booleans()
)
def test_no_unsigned_picture_is_ever_the_models_own_and_roles_alternate(
    parts: list[ImagePart | TextPart], pictures: list[Picture], model: object, has_base: bool
) -> None:
    entry = FLASH if model == FLASH else PRO
    references = ResolvedReferences(pictures=tuple(pictures), base=pictures[0] if pictures and has_base else None)
    prompt = compose("bluer", None, (), references.pictures)
    for messages in (
        sent := build_image_messages(prompt, references, answer(*parts), entry),
        without_signatures(sent),
    ):
        roles = [message.role for message in messages]
        assert roles in ([Role.PROMPT], [Role.PROMPT, Role.MODEL, Role.PROMPT])
        assert messages[-1].text == prompt
        assert all(message.parts for message in messages)
        for image in (image for message in messages for image in message.images if message.role is Role.MODEL):
            assert image.thought_signature
            assert image.signed_by == entry.id
        for image in (image for message in messages for image in message.images if message.role is Role.PROMPT):
            assert image.thought_signature is None
