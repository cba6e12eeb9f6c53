"""A multipart form, taken apart without mercy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.openai_server.refusals import Refused

_DISPOSITION = re.compile(r'form-data; name="([^"]+)"(?:; filename="([^"]+)")?')


@dataclass(frozen=True)
class FormFile:
    """A file of a form: the field it came under, its name, its type and its bytes."""

    field: str
    name: str
    mime_type: str
    data: bytes


def parse_form(body: bytes, content_type: str) -> tuple[dict[str, str], list[FormFile]]:
    """Return the fields and the files of a form, in order. Raises Refused when it is none."""
    match = re.fullmatch(r"multipart/form-data; boundary=([\w'()+,./:=?-]{1,70})", content_type)
    if match is None:
        raise Refused("content_type", f"Unsupported content type: {content_type}", status=415)
    mark = b"--" + match[1].encode()
    head, *pieces = body.split(mark)
    if head or not pieces or pieces.pop().strip() != b"--":
        raise Refused("form", "The form does not begin and end with its boundary.")
    fields: dict[str, str] = {}
    files: list[FormFile] = []
    for piece in pieces:
        _take(piece, fields, files)
    return fields, files


def _take(piece: bytes, fields: dict[str, str], files: list[FormFile]) -> None:
    head, separator, data = piece.removeprefix(b"\r\n").partition(b"\r\n\r\n")
    if not separator or not data.endswith(b"\r\n"):
        raise Refused("form", "A part of the form has no end.")
    data = data[:-2]
    lines = [line.partition(":") for line in head.decode("utf-8").split("\r\n")]
    headers = {name.lower(): value.strip() for name, _, value in lines}
    match = _DISPOSITION.fullmatch(headers.get("content-disposition", ""))
    if match is None:
        raise Refused("form", f"A part of the form has no name: {headers}")
    name, filename = match[1], match[2]
    if filename is None:
        if name in fields:
            raise Refused("form", f"The field {name} stands twice in the form.")
        fields[name] = data.decode("utf-8")
    else:
        files.append(FormFile(name, filename, headers.get("content-type", ""), data))
