"""A tool is declared by its signature and its docstring, and is only run with arguments that fit."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, JsonValue

from agent.errors import ToolArgumentError
from tests.adapters.tools import TOOLS, ToolAnswer, ToolContext, tool


@tool(most_a_turn=3)
async def roll_dice(
    context: ToolContext,
    sides: Annotated[int, Field(ge=2, le=100, description="How many sides a die has.")],
    kind: Annotated[Literal["fair", "loaded"], "Which kind of die."] = "fair",
) -> ToolAnswer:
    """Roll a die
    and tell its number.

    Use it for games only."""
    return ToolAnswer({"sides": sides, "kind": kind})


def test_its_name_and_what_it_is_for_are_those_of_the_function() -> None:
    assert roll_dice.name == "roll_dice"
    assert roll_dice.declaration.description == "Roll a die and tell its number.\n\nUse it for games only."


def test_its_arguments_are_the_parameters_without_the_context() -> None:
    assert roll_dice.declaration.parameters == {
        "type": "object",
        "properties": {
            "sides": {"type": "integer", "minimum": 2, "maximum": 100, "description": "How many sides a die has."},
            "kind": {
                "type": "string",
                "enum": ["fair", "loaded"],
                "default": "fair",
                "description": "Which kind of die.",
            },
        },
        "required": ["sides"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "sides: Field required"),
        ({"sides": 1}, "sides: Input should be greater than or equal to 2"),
        ({"sides": "many"}, "sides: Input should be a valid integer"),
        ({"sides": 6, "kind": "round"}, "kind: Input should be 'fair' or 'loaded'"),
        ({"sides": 6, "colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
async def test_arguments_that_do_not_fit_are_named_one_by_one(arguments: dict[str, JsonValue], named: str) -> None:
    with pytest.raises(ToolArgumentError) as refused:
        await roll_dice.answer(arguments, object.__new__(ToolContext))
    assert named in str(refused.value)


async def test_what_was_left_out_is_filled_in() -> None:
    answer = await roll_dice.answer({"sides": 6}, object.__new__(ToolContext))
    assert answer.content == {"sides": 6, "kind": "fair"}


def test_every_tool_of_the_registry_says_what_it_and_each_of_its_arguments_is_for() -> None:
    for name, one in TOOLS.items():
        properties = one.declaration.parameters["properties"]
        assert isinstance(properties, dict)
        assert len(one.declaration.description) > 20, name
        assert all(isinstance(about, dict) and about.get("description") for about in properties.values()), name
