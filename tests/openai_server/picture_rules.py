"""Rules of `/images/generations` and `/images/edits`."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from PIL import Image

from tests.openai_server.form import FormFile
from tests.openai_server.models import ServedModel
from tests.openai_server.refusals import Json, Refused

_FIELDS = frozenset(["model", "prompt", "n", "size", "response_format"])
_FORMAT = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}


def check_generation(body: Json, model: ServedModel) -> dict[str, str]:
    """Return the fields of a JSON body as text. Raises Refused when the model would not take it."""
    if not isinstance(body.get("n", 1), int):
        raise Refused("n", "n must be a number")
    fields = {name: _as_text(name, value) for name, value in body.items()}
    _check_fields(fields, model)
    return fields


def check_edit(fields: dict[str, str], files: list[FormFile], model: ServedModel) -> None:
    """Refuse a form that the model would not take."""
    if not model.has_edits:
        raise Refused("edits", f"{model.name} changes no pictures")
    _check_fields(fields, model)
    if not files:
        raise Refused("image", "Missing required parameter: 'image'.")
    for file in files:
        _check_file(file)


def _as_text(name: str, value: Any) -> str:
    if not isinstance(value, int if name == "n" else str):
        raise Refused("type", f"{name} is {type(value).__name__}")
    return str(value)


def _check_fields(fields: dict[str, str], model: ServedModel) -> None:
    if unknown := set(fields) - _FIELDS:
        raise Refused("unknown_field", f"Unknown parameter: '{min(unknown)}'.", code="unknown_parameter")
    if not fields.get("prompt", "").strip():
        raise Refused("prompt", "Missing required parameter: 'prompt'.")
    if fields.get("n", "1") != "1":
        raise Refused("n", "One picture at a time.")
    if "size" in fields and fields["size"] not in model.sizes:
        raise Refused("size", f"Invalid size '{fields['size']}'. Supported sizes are {', '.join(model.sizes)}.")
    if "response_format" in fields:
        if not model.has_response_format:
            raise Refused("unknown_field", "Unknown parameter: 'response_format'.", code="unknown_parameter")
        if fields["response_format"] not in ("b64_json", "url"):
            raise Refused("response_format", f"Invalid value: '{fields['response_format']}'.")


def _check_file(file: FormFile) -> None:
    if file.field != "image[]":
        raise Refused("image", f"Several pictures come under image[], not under {file.field}")
    if not file.name.endswith(_ENDINGS.get(file.mime_type, "no type")):
        raise Refused("image", f"{file.name} is said to be {file.mime_type or 'nothing'}")
    try:
        with Image.open(BytesIO(file.data)) as picture:
            picture.load()
            kind = picture.format
    except (OSError, SyntaxError, ValueError) as fault:
        raise Refused("image", f"{file.name} cannot be read: {fault}") from fault
    if _FORMAT[file.mime_type] != kind:
        raise Refused("image", f"{file.name} is {kind}, not {file.mime_type}")
