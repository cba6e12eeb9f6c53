"""Every value inside a value, whatever its type: a field that is new is walked through like the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from agent.messages import ImagePart

Model = TypeVar("Model", bound=BaseModel)


def models_in(value: object) -> Iterator[BaseModel]:
    """Yield the value and every model inside of it, in the order of their fields. Plain JSON holds none."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from models_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from models_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from models_in(one)


def images_in(value: object) -> Iterator[ImagePart]:
    """Yield every reference to a picture."""
    return (one for one in models_in(value) if isinstance(one, ImagePart))


def with_images(model: Model, change: Callable[[ImagePart], ImagePart]) -> Model:
    """Return the value with each of its references to a picture changed; what holds none is the very same object."""
    changed = _changed(model, change)
    if not isinstance(changed, type(model)):
        raise TypeError("a reference was changed into something else")
    return changed


def _changed(value: Any, change: Callable[[ImagePart], ImagePart]) -> Any:
    if isinstance(value, ImagePart):
        return change(value)
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        new = {name: _changed(one, change) for name, one in fields.items()}
        update = {name: one for name, one in new.items() if one is not fields[name]}
        return value.model_copy(update=update) if update else value
    if isinstance(value, tuple):
        items = tuple(_changed(one, change) for one in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
