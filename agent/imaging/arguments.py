"""The arguments of a `generate_image` call: parsed leniently, and rejected with a one-sentence reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from agent.errors import ErrorCode, ToolArgumentError
from agent.messages import Value
from agent.pictures import AskedItem, AskedKind, ReferenceRole, parse_handle
from agent.settings import ReferenceMode

GENERATE_IMAGE = "generate_image"
MAX_IMAGES_PER_CALL = 4
MAX_HANDLES = 16
MAX_CHECKS = 10

_RATIO = re.compile(r"(\d{1,2})\s*[:x×/∶：]\s*(\d{1,2})", re.IGNORECASE)
_RESOLUTION = re.compile(r"(\d{1,2})\s*K", re.IGNORECASE)
_PIXELS = re.compile(r"[1-9]\d{3,4}")
_NO_CHOICE = frozenset({"", "auto", "default", "none", "null"})


class ImageAction(StrEnum):
    """The kind of work: make a new picture, change one, or adjust light, colour, effects or frame.

    Only the user decides whether just a part changes, by painting a mask. An `unknown` action is never painted.
    """

    GENERATE = "generate_image"
    EDIT = "edit_image"
    ADJUST = "adjust_parameters"
    UNKNOWN = "unknown"


def _left_open(value: object) -> object:
    """Return None for any of the values with which a model says that it makes no choice."""
    return None if isinstance(value, str) and value.strip().lower() in _NO_CHOICE else value


def _lower(value: object) -> object:
    value = _left_open(value)
    return value.strip().lower() if isinstance(value, str) else value


def _ratio(value: object) -> object:
    value = _left_open(value)
    if not isinstance(value, str):
        return value
    match = _RATIO.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"must be a ratio such as 16:9, not {value[:40]!r}")
    return f"{int(match[1])}:{int(match[2])}"


def _resolution(value: object) -> object:
    value = _left_open(str(value) if isinstance(value, int) else value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    match = _RESOLUTION.fullmatch(text)
    if match is not None:
        return f"{int(match[1])}K"
    thousands, rest = divmod(int(text), 1024) if _PIXELS.fullmatch(text) else (0, 1)
    if rest and text != "512":
        raise ValueError(f"must be a size such as 1K or 2K, not {value[:40]!r}")
    return text if rest else f"{thousands}K"


def _mode(value: object) -> object:
    value = _left_open(value)
    return re.sub(r"[\s-]+", "_", value.strip()).upper() if isinstance(value, str) else value


def _action(value: object) -> object:
    value = _lower(value)
    # Only a mask painted by the user makes an edit an inpainting; from the model it is an ordinary edit.
    value = ImageAction.EDIT if value == "inpainting" else value
    # The action is only a hint: an unknown value is dropped, and the call is not rejected for it.
    return value if isinstance(value, str) and value in set(ImageAction) else None


def _confidence(value: object) -> object:
    written = str(value).strip()
    try:
        number = float(written.removesuffix("%"))
    except ValueError:
        return None
    # "1" means certain, "1%" does not; a number above 1 is a percentage even without the sign.
    number = number / 100 if number > 1 or written.endswith("%") else number
    return number if 0 <= number <= 1 else None


def _handles(value: object) -> object:
    value = _left_open(value)
    if value is None:
        return ()
    listed = re.split(r"[,;、，\s]+", value.strip()) if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        listed = [listed]
    written = (str(one).strip() for one in listed)
    return tuple(dict.fromkeys(str(parse_handle(name) or name) for name in written if name))


class ReferenceUse(Value):
    """The role of a reference picture, as stated by the planner."""

    handle: str
    role: ReferenceRole


def _uses(value: object) -> object:
    """Return the readable uses; roles are optional help, so unreadable ones are dropped."""
    if isinstance(value, Mapping):
        value = [value] if "handle" in value else [{"handle": name, "role": role} for name, role in value.items()]
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    read = []
    for one in listed:
        named = one if isinstance(one, Mapping) else {}
        handle, role = parse_handle(str(named.get("handle", ""))), str(named.get("role", "")).strip().lower()
        if handle is not None and role in set(ReferenceRole):
            read.append({"handle": str(handle), "role": role})
    return tuple(read)


def _asked(value: object) -> object:
    """Return the readable items; the checklist is optional help, so unreadable items are dropped."""
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    read = []
    for one in listed:
        named = one if isinstance(one, Mapping) else {"quote": one}
        quote, kind = named.get("quote"), str(named.get("kind", "")).strip().lower()
        if isinstance(quote, str) and quote.strip():
            known = kind if kind in set(AskedKind) else AskedKind.ATTRIBUTE
            read.append({"quote": quote.strip(), "kind": known})
    return tuple(read[:MAX_CHECKS])


class GenerateImageArgs(BaseModel):
    """The parsed arguments. Only the prompt is required; unknown fields are ignored.

    `handles` names pictures, the one to change first; `reference_roles` gives the roles of some of them.
    `subject`, `style` and `confidence` describe the wish and do not change the request. Nor does `checklist`: the
    finished picture is checked against it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    prompt: Annotated[str, Field(min_length=1)]
    model: Annotated[Literal["flash", "pro"] | None, BeforeValidator(_lower)] = None
    aspect_ratio: Annotated[str | None, BeforeValidator(_ratio)] = None
    resolution: Annotated[str | None, BeforeValidator(_resolution)] = None
    use_grounding: Annotated[bool | None, BeforeValidator(_left_open)] = None
    number_of_images: Annotated[
        Annotated[int, Field(ge=1, le=MAX_IMAGES_PER_CALL)] | None, BeforeValidator(_left_open)
    ] = None
    negative_prompt: Annotated[str | None, BeforeValidator(_left_open)] = None
    reference_mode: Annotated[ReferenceMode | None, BeforeValidator(_mode)] = None
    reference_count: Annotated[Annotated[int, Field(ge=1)] | None, BeforeValidator(_left_open)] = None
    handles: Annotated[tuple[str, ...], Field(max_length=MAX_HANDLES), BeforeValidator(_handles)] = ()
    reference_roles: Annotated[tuple[ReferenceUse, ...], Field(max_length=MAX_HANDLES), BeforeValidator(_uses)] = ()
    action: Annotated[ImageAction | None, BeforeValidator(_action)] = None
    subject: Annotated[str | None, BeforeValidator(_left_open)] = None
    style: Annotated[str | None, BeforeValidator(_left_open)] = None
    confidence: Annotated[float | None, BeforeValidator(_confidence)] = None
    checklist: Annotated[tuple[AskedItem, ...], BeforeValidator(_asked)] = ()


def parse_arguments(arguments: Mapping[str, JsonValue]) -> GenerateImageArgs:
    """Return the arguments of a call; unambiguous variants are accepted ("2" for 2, "2k" for "2K", "16x9" for "16:9").

    Raises ToolArgumentError(BAD_TOOL_ARGUMENTS) with one sentence that lets the model correct its call.
    """
    prompt = arguments.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise _bad_arguments("prompt is missing, it must describe the picture in words")
    try:
        return GenerateImageArgs.model_validate({**arguments, "prompt": prompt.strip()})
    except ValidationError as error:
        first = error.errors()[0]
        place = str(first["loc"][0])
        problem = str(first["msg"]).removeprefix("Value error, ")
        # The problem becomes the predicate of the place: "resolution must be …".
        problem = re.sub(r"^input should", "must", problem[:1].lower() + problem[1:])
        raise _bad_arguments(f"{place} {problem}") from error


def _bad_arguments(problem: str) -> ToolArgumentError:
    return ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name=GENERATE_IMAGE, problem=problem)
