"""What a reference is for: told to the image model in one sentence, on the receipt, and within the model's limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.errors import ErrorCode, RequestRefused
from agent.events import PictureReady, TurnFailed
from agent.messages import ImageOrigin, ImagePart
from agent.pictures import Picture, Reference, ReferenceRole
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.language import ROLE_SENTENCES, ReferenceUse, compose, parse_arguments, without_legend
from tests.adapters.requests import check_limits, declaration, merged_roles, read_roles
from tests.adapters.scripted import calls, says
from tests.support.cases import each_case
from tests.support.scenes import Scene, generate, only, picture, png
from tests.support.turns import send

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")
SKETCH = CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch")
COLOURS = ("red", "green", "blue", "white", "black", "orange", "purple", "teal")


def known(handle: str) -> Picture:
    image = ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    return Picture(handle=handle, image=image, turn_id="t", created_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_every_role_has_one_sentence_of_its_own() -> None:
    assert set(ROLE_SENTENCES) == set(ReferenceRole)
    assert len(set(ROLE_SENTENCES.values())) == len(ReferenceRole)
    for role, sentence in ROLE_SENTENCES.items():
        assert sentence.startswith(f"{role.capitalize()}: ")


def test_the_legend_says_what_each_picture_is_for() -> None:
    sent = compose("a castle", None, [], [known("#2"), known("#5")], {"#5": ReferenceRole.STYLE})
    assert sent.endswith(
        "[IMAGES]\nImage 1 is #2.\n"
        "Image 2 is #5. Style: take only its colours and brushwork, not its content.\n[/IMAGES]"
    )
    assert without_legend(sent) == "a castle"


def test_a_single_picture_with_a_role_has_its_line() -> None:
    assert "Image 1 is #5. Pose: " in compose("a dancer", None, [], [known("#5")], {"#5": ReferenceRole.POSE})
    assert compose("a dancer", None, [], [known("#5")], {"#9": ReferenceRole.POSE}) == "a dancer"


@each_case(
    ("written", "read"),
    [
        ([{"handle": "#2", "role": "style"}], (("#2", "style"),)),
        ([{"handle": "2B", "role": " Face "}], (("#2b", "face"),)),
        ({"handle": "#2", "role": "text"}, (("#2", "text"),)),
        ({"#2": "style", "#3": "pose"}, (("#2", "style"), ("#3", "pose"))),
        ([{"handle": "#2", "role": "mood"}, {"handle": "#3", "role": "pose"}], (("#3", "pose"),)),
        ([{"handle": "the fox", "role": "style"}, {"role": "style"}, "#2", 7], ()),
        ("style", ()),
        (None, ()),
    ],
)
def test_what_the_planner_says_of_roles_is_read_and_the_rest_left_out(
    written: Any, read: tuple[tuple[str, str], ...]
) -> None:
    arguments = parse_arguments({"prompt": "a castle", "reference_roles": written})
    assert tuple((use.handle, use.role.value) for use in arguments.reference_roles) == read


def test_the_planner_is_told_of_every_role() -> None:
    properties = declaration(CATALOGUE, "gemini").parameters["properties"]
    assert isinstance(properties, dict)
    roles: Any = properties["reference_roles"]
    assert roles["items"]["properties"]["role"]["enum"] == [role.value for role in ReferenceRole]


def test_the_persons_word_counts_before_the_agents() -> None:
    said = [ReferenceUse(handle="#2", role=ReferenceRole.POSE), ReferenceUse(handle="#3", role=ReferenceRole.FACE)]
    assert merged_roles({"#2": ReferenceRole.STYLE}, said) == {"#2": ReferenceRole.STYLE, "#3": ReferenceRole.FACE}


def test_a_role_there_is_not_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(RequestRefused, match="mood") as refused:
        read_roles({"#2": "mood"})
    assert refused.value.code is ErrorCode.SETTING_NOT_SUPPORTED
    assert "style" in str(refused.value)


@pytest.mark.parametrize(
    ("model", "role", "count", "code", "limit"),
    [
        (FLASH, ReferenceRole.FACE, 5, ErrorCode.TOO_MANY_FACES, 4),
        (PRO, ReferenceRole.FACE, 6, ErrorCode.TOO_MANY_FACES, 5),
        (FLASH, ReferenceRole.SUBJECT, 11, ErrorCode.TOO_MANY_OBJECTS, 10),
        (PRO, ReferenceRole.PRODUCT, 7, ErrorCode.TOO_MANY_OBJECTS, 6),
    ],
)
def test_more_of_a_kind_than_the_model_keeps_are_refused_naming_the_limit(
    model: Any, role: ReferenceRole, count: int, code: ErrorCode, limit: int
) -> None:
    check_limits(model, (), [role] * limit)
    with pytest.raises(RequestRefused, match=f"at most {limit} ") as refused:
        check_limits(model, (), [role] * count)
    assert refused.value.code is code
    assert model.label in str(refused.value)


def test_subjects_and_products_count_together_and_styles_not_at_all() -> None:
    styles = [ReferenceRole.STYLE] * 8
    check_limits(PRO, (), [*[ReferenceRole.SUBJECT] * 3, *[ReferenceRole.PRODUCT] * 3, *styles])
    with pytest.raises(RequestRefused):
        check_limits(PRO, (), [*[ReferenceRole.SUBJECT] * 4, *[ReferenceRole.PRODUCT] * 3])


def test_more_marked_references_than_the_model_is_shown_are_refused() -> None:
    handles = [f"#{number}" for number in range(1, 16)]
    check_limits(FLASH, handles[:14], ())
    with pytest.raises(RequestRefused) as refused:
        check_limits(FLASH, handles, ())
    assert refused.value.code is ErrorCode.TOO_MANY_REFERENCES


def test_a_model_that_states_no_limit_has_none() -> None:
    check_limits(SKETCH, (), [ReferenceRole.FACE] * 12)


async def seen(studio: Studio, conversation_id: str, count: int) -> None:
    """Put some uploads into the conversation."""
    images = [png(32, 32, colour) for colour in COLOURS[:count]]
    await send(studio, conversation_id, TurnRequest(text="look at these", images=images))


async def test_roles_reach_the_planner_the_image_model_and_the_receipt(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Noted."), calls(generate("a castle", action="generate_image"))])
    scene.pictures = [picture()]
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await seen(studio, conversation.id, 3)
        request = TurnRequest(text="a castle", references=("#2", "#3"), roles={"#2": "style", "#1": "palette"})
        events = await send(studio, conversation.id, request)
        kept = await studio.conversation(conversation.id)
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    assert receipt.references == (
        Reference(handle="#2", role="style"),
        Reference(handle="#3"),
        Reference(handle="#1", role="palette"),
    )
    assert "Image 1 is #2. Style: take only its colours and brushwork, not its content." in receipt.prompt
    turn = kept.turns[-1]
    assert turn.roles == {"#2": ReferenceRole.STYLE, "#1": ReferenceRole.PALETTE}
    assert "[The person marked as references: #2 (style), #3, #1 (palette).]" in turn.messages[0].text
    asked = scene.provider.asked[-1].request
    assert asked is not None
    assert [len(message.images) for message in asked.messages] == [3]


async def test_what_the_agent_says_a_picture_is_for_is_shown_with_it(settings: Settings) -> None:
    wish = generate("#1 in the style of #2", handles=["#1"], action="edit_image")
    wish.arguments["reference_roles"] = [{"handle": "#2", "role": "style"}, {"handle": "#1", "role": "subject"}]
    scene = Scene(settings, text=[says("Noted."), calls(wish)], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await seen(studio, conversation.id, 2)
        events = await send(studio, conversation.id, TurnRequest(text="#1 in the style of #2"))
    made = only(events, PictureReady).picture
    assert made.receipt is not None
    # The picture that is changed has no role: it is what becomes of it.
    assert made.receipt.references == (Reference(handle="#1"), Reference(handle="#2", role="style"))
    assert made.parents == ("#1", "#2")
    assert made.image.origin is ImageOrigin.EDITED


async def test_a_picture_shown_for_its_style_is_not_taken_for_the_one_to_change(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Noted."), calls(generate("a castle"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await seen(studio, conversation.id, 1)
        request = TurnRequest(text="a castle", references=("#1",), roles={"#1": "style"})
        events = await send(studio, conversation.id, request)
    assert only(events, PictureReady).picture.image.origin is ImageOrigin.GENERATED


async def test_too_many_faces_are_refused_before_the_image_model_is_asked(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Noted."), calls(generate("a group"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await seen(studio, conversation.id, 5)
        handles = tuple(f"#{number}" for number in range(1, 6))
        request = TurnRequest(
            text="a group",
            references=handles,
            roles=dict.fromkeys(handles, "face"),
            settings=TurnSettings(image_model="flash"),
        )
        events = await send(studio, conversation.id, request)
    failed = only(events, TurnFailed)
    assert failed.error.code is ErrorCode.TOO_MANY_FACES
    assert "Flash keeps at most 4 people" in failed.error.message
    assert not [one for one in scene.provider.asked if one.request]


@pytest.mark.parametrize(
    ("roles", "code"),
    [({"#9": "style"}, ErrorCode.PICTURE_NOT_FOUND), ({"#1": "mood"}, ErrorCode.SETTING_NOT_SUPPORTED)],
)
async def test_a_role_for_no_picture_or_of_no_kind_is_refused_at_once(
    settings: Settings, roles: dict[str, str], code: ErrorCode
) -> None:
    scene = Scene(settings, text=[says("Noted.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await seen(studio, conversation.id, 1)
        events = await send(studio, conversation.id, TurnRequest(text="a castle", roles=roles))
    assert only(events, TurnFailed).error.code is code
    assert len(scene.provider.asked) == 1
