"""A tool is declared by its signature and its docstring, and is only run with arguments that fit."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import Field, JsonValue

from agent import ToolArgumentError
from tests.adapters.tools import TOOLS, ToolAnswer, ToolContext, tool
from tests.support.cases import each_case


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


def test_it_is_declared_by_its_name_its_docstring_and_its_parameters_without_the_context() -> None:
    sides = {"type": "integer", "minimum": 2, "maximum": 100, "description": "How many sides a die has."}
    kind = {"type": "string", "enum": ["fair", "loaded"], "default": "fair", "description": "Which kind of die."}
    told = roll_dice.declaration
    assert (roll_dice.name, told.description) == (
        "roll_dice",
        "Roll a die and tell its number.\n\nUse it for games only.",
    )
    assert told.parameters == {
        **{"type": "object", "properties": {"sides": sides, "kind": kind}, "required": ["sides"]},
        "additionalProperties": False,
    }


@each_case(
    ("arguments", "named"),
    [
        ({}, "sides: Field required"),
        ({"sides": 1}, "sides: Input should be greater than or equal to 2"),
        ({"sides": "many"}, "sides: Input should be a valid integer"),
        ({"sides": 6, "kind": "round"}, "kind: Input should be 'fair' or 'loaded'"),
        ({"sides": 6, "colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
async def test_arguments_that_do_not_fit_are_named_and_what_was_left_out_is_filled_in(
    arguments: dict[str, JsonValue], named: str
) -> None:
    nowhere = object.__new__(ToolContext)
    with pytest.raises(ToolArgumentError) as refused:
        await roll_dice.answer(arguments, nowhere)
    assert named in str(refused.value)
    assert (await roll_dice.answer({"sides": 6}, nowhere)).content == {"sides": 6, "kind": "fair"}


def test_every_tool_of_the_registry_says_what_it_and_each_of_its_arguments_is_for() -> None:
    for name, one in TOOLS.items():
        properties = one.declaration.parameters["properties"]
        assert isinstance(properties, dict)
        assert len(one.declaration.description) > 20, name
        assert all(isinstance(about, dict) and about.get("description") for about in properties.values()), name
