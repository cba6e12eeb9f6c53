"""Recipes in pictures: how a picture was made, as its file tells it."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python

from agent.imaging.provenance import reading


def recipe_in(data: bytes) -> Any:
    """Return what the file tells of how its picture was made, as what JSON can hold; None where it tells nothing."""
    return to_jsonable_python(reading.read(data))
