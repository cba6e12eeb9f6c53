"""Turns a wish into the arguments of `generate_image`, with the names that its declaration has."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agent.messages import ToolCallPart
from agent.providers.base import ToolDeclaration
from agent.providers.sketch.operations import Restyle
from agent.providers.sketch.phrases import find_handles
from agent.providers.sketch.wishes import Draw, Edit
from agent.settings import ReferenceMode

GENERATE_IMAGE = "generate_image"
# What each kind of wish may be called in the declaration's `action`, the first that it knows.
DRAWING_ACTIONS = ("generate_image", "generate")
# The person may write more than a call may have.
_MOST_CHARACTERS, _FEW_CHARACTERS = {"prompt": 30_000}, 1_000
_ADJUSTING = ("adjust_parameters", "adjust", "edit")


def image_call(
    wish: Draw | Edit, text: str, tools: Sequence[ToolDeclaration], *, is_upload: bool
) -> ToolCallPart | None:
    """Return the call for a wish, or None when `generate_image` is not declared.

    `text` is the person's own sentence, which an edit carries so that the painter reads the same operations from it;
    `is_upload` says that the newest picture is one that the person added. Arguments that the declaration does not
    know, or whose value is not among its choices, are left out.
    """
    declared = next((tool for tool in tools if tool.name == GENERATE_IMAGE), None)
    if declared is None:
        return None
    arguments = _drawing(wish) if isinstance(wish, Draw) else _edit(wish, text, is_upload=is_upload)
    properties = declared.parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    kept = {
        name: value[: _MOST_CHARACTERS.get(name, _FEW_CHARACTERS)] if isinstance(value, str) else value
        for name, value in arguments.items()
        if name in known and _is_allowed(value, known[name])
    }
    action = _action(known.get("action"), DRAWING_ACTIONS if isinstance(wish, Draw) else _ADJUSTING)
    return ToolCallPart(name=GENERATE_IMAGE, arguments={**({"action": action} if action else {}), **kept})


def _drawing(wish: Draw) -> dict[str, JsonValue]:
    arguments: dict[str, JsonValue] = {
        "subject": wish.subject,
        "style": wish.style or None,
        "confidence": 0.9,
        "prompt": f"{wish.description} {wish.take.mark}".strip(),
        "aspect_ratio": wish.aspect_ratio,
        "number_of_images": wish.number_of_images,
        "handles": list(wish.handles) or None,
    }
    return _present(arguments)


def _edit(wish: Edit, text: str, *, is_upload: bool) -> dict[str, JsonValue]:
    mode = ReferenceMode.USER_UPLOADED_ONLY if is_upload else ReferenceMode.LAST_GENERATED
    arguments: dict[str, JsonValue] = {
        "subject": wish.handles[0] if wish.handles else "picture",
        "confidence": 0.95,
        "prompt": _naming_first(wish.handles, text),
        "style": next((one.name for one in wish.operations if isinstance(one, Restyle)), None),
        "aspect_ratio": wish.aspect_ratio,
        "number_of_images": wish.number_of_images,
        "reference_mode": mode.value,
        "handles": list(wish.handles) or None,
    }
    return _present(arguments)


def _naming_first(handles: Sequence[str], text: str) -> str:
    """Return the text such that the first picture it names is the one to be changed."""
    named = find_handles(text)
    return f"{handles[0]}: {text}" if handles and named and named[0] != handles[0] else text


def _action(schema: JsonValue, names: Sequence[str]) -> str | None:
    if not isinstance(schema, dict):
        return None
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return names[0]
    return next((name for name in names if name in choices), None)


def _present(arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in arguments.items() if value is not None}


def _is_allowed(value: JsonValue, schema: JsonValue) -> bool:
    choices = schema.get("enum") if isinstance(schema, dict) else None
    return not isinstance(choices, list) or value in choices
