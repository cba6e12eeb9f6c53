"""What a reference is for: told to the image model in one sentence, on the receipt, and within the model's limits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent import ErrorCode, ImageOrigin, ImagePart, Picture, ReferenceRole, RequestRefused
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.language import ROLE_SENTENCES, ReferenceUse, compose, parse_arguments, without_legend
from tests.adapters.requests import check_limits, declaration, merged_roles, read_roles
from tests.support.cases import each_case

CATALOGUE = load_catalogue()
FLASH = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
PRO = CATALOGUE.model(ModelRole.IMAGE_PRO, "gemini")
SKETCH = CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch")


def known(handle: str) -> Picture:
    image = ImagePart(digest=handle, md5="m", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    return Picture(handle=handle, image=image, turn_id="t", created_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_every_role_has_one_sentence_of_its_own_and_the_planner_is_told_of_it() -> None:
    assert set(ROLE_SENTENCES) == set(ReferenceRole)
    assert len(set(ROLE_SENTENCES.values())) == len(ReferenceRole)
    assert all(sentence.startswith(f"{role.capitalize()}: ") for role, sentence in ROLE_SENTENCES.items())
    properties: Any = declaration(CATALOGUE, "gemini").parameters["properties"]
    roles = properties["reference_roles"]["items"]["properties"]["role"]["enum"]
    assert roles == [role.value for role in ReferenceRole]


def test_the_legend_says_what_each_picture_is_for_also_a_single_one() -> None:
    sent = compose("a castle", None, [], [known("#2"), known("#5")], {"#5": ReferenceRole.STYLE})
    line = "Image 2 is #5. Style: take only its colours and brushwork, not its content."
    assert sent.endswith(f"[IMAGES]\nImage 1 is #2.\n{line}\n[/IMAGES]")
    assert without_legend(sent) == "a castle"
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


def test_the_persons_word_counts_before_the_agents_and_a_role_there_is_not_is_refused() -> None:
    said = [ReferenceUse(handle="#2", role=ReferenceRole.POSE), ReferenceUse(handle="#3", role=ReferenceRole.FACE)]
    assert merged_roles({"#2": ReferenceRole.STYLE}, said) == {"#2": ReferenceRole.STYLE, "#3": ReferenceRole.FACE}
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


def test_subjects_and_products_count_together_and_styles_not_at_all_and_all_that_are_marked() -> None:
    subject, product, style = ReferenceRole.SUBJECT, ReferenceRole.PRODUCT, ReferenceRole.STYLE
    handles = [f"#{number}" for number in range(1, 16)]
    check_limits(PRO, (), [subject] * 3 + [product] * 3 + [style] * 8)
    check_limits(FLASH, handles[:14], ())
    check_limits(SKETCH, (), [ReferenceRole.FACE] * 12)  # It states no limit.
    with pytest.raises(RequestRefused):
        check_limits(PRO, (), [subject] * 4 + [product] * 3)
    with pytest.raises(RequestRefused) as refused:
        check_limits(FLASH, handles, ())
    assert refused.value.code is ErrorCode.TOO_MANY_REFERENCES
