from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent import ErrorCode, ToolArgumentError
from tests.adapters.language import GenerateImageArgs, parse_arguments
from tests.support.cases import each_case
from tests.support.tables import table


def test_the_prompt_alone_is_enough_and_what_is_not_known_is_ignored() -> None:
    assert parse_arguments({"prompt": " a fox ", "seed": 7, "handles": None}) == GenerateImageArgs(prompt="a fox")


def test_a_full_call_is_read_as_it_stands() -> None:
    call: dict[str, JsonValue] = {
        **{"prompt": "a fox", "model": "pro", "aspect_ratio": "21:9", "resolution": "4K", "use_grounding": True},
        **{"number_of_images": 3, "negative_prompt": "people", "reference_mode": "LAST_N", "reference_count": 2},
        **{"handles": ["#7b", "#2"], "action": "edit_image", "subject": "fox", "style": "ink", "confidence": 0.8},
    }
    assert parse_arguments(call).model_dump(mode="json", exclude_defaults=True) == call


@each_case(("field", "said", "meant"), table("intents")["slips"])
def test_harmless_slips_are_read_as_meant(field: str, said: JsonValue, meant: object) -> None:
    read = parse_arguments({"prompt": "a fox", field: said}).model_dump(mode="json")[field]
    assert ("" if read is None else read) == meant


@each_case(
    ("arguments", "problem"),
    [
        ({}, "prompt is missing, it must describe the picture in words"),
        ({"prompt": "  "}, "prompt is missing, it must describe the picture in words"),
        ({"prompt": 7}, "prompt is missing, it must describe the picture in words"),
        ({"prompt": "x", "aspect_ratio": "wide"}, "aspect_ratio must be a ratio such as 16:9, not 'wide'"),
        ({"prompt": "x", "resolution": "huge"}, "resolution must be a size such as 1K or 2K, not 'huge'"),
        ({"prompt": "x", "number_of_images": 0}, "number_of_images must be greater than or equal to 1"),
        ({"prompt": "x", "number_of_images": 10}, "number_of_images must be less than or equal to 4"),
        ({"prompt": "x", "model": "dall-e"}, "model must be 'flash' or 'pro'"),
        (
            {"prompt": "x", "reference_mode": "ALL"},
            "reference_mode must be 'USER_UPLOADED_ONLY', 'LAST_GENERATED', 'ALL_USER_UPLOADED' or 'LAST_N'",
        ),
    ],
)
def test_what_cannot_be_meant_goes_back_in_one_sentence(arguments: dict[str, JsonValue], problem: str) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        parse_arguments(arguments)
    assert caught.value.code is ErrorCode.BAD_TOOL_ARGUMENTS
    assert str(caught.value) == f"The arguments of generate_image do not fit: {problem}."


anything: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*GenerateImageArgs.model_fields, "seed"]), anything))
def test_whatever_a_model_sends_is_read_or_goes_back_as_its_error(arguments: dict[str, JsonValue]) -> None:
    try:
        parsed = parse_arguments(arguments)
    except ToolArgumentError as error:
        sentence = str(error)
    else:
        sentence = str(parsed.prompt)
    assert sentence.strip()
    assert len(sentence) < 400
