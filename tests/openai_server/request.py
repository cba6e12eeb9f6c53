"""One request as the server took it: what a test asserts on and what a brain decides by; and what is refused."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from email import message_from_bytes
from typing import Any

from tests.wire_server import refusals
from tests.wire_server.refusals import Json


class Refused(refusals.Refused):
    """A request that some server of this API would not take."""

    def __init__(self, rule: str, message: str, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(rule, message, status)
        self.body = error_body(message, code=code)


def refuse(is_broken: object, rule: str, message: str, *, status: int = 400, code: str | None = None) -> None:
    """Raise Refused when the rule is broken."""
    if is_broken:
        raise Refused(rule, message, status=status, code=code)


def error_body(message: str, *, code: str | None = None, kind: str = "invalid_request_error") -> Json:
    """Return the API's JSON for an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@dataclass(frozen=True)
class FormFile:
    """A file of a form: the field it came under, its name, its type and its bytes."""

    field: str
    name: str
    mime_type: str
    data: bytes


def parse_form(body: bytes, content_type: str) -> tuple[dict[str, str], list[FormFile]]:
    """Return the fields and the files of a form, in order. Raises Refused when it is none."""
    is_form = re.fullmatch(r"multipart/form-data; boundary=[\w'()+,./:=?-]{1,70}", content_type)
    refuse(not is_form, "content_type", f"Unsupported content type: {content_type}", status=415)
    form = message_from_bytes(f"content-type: {content_type}\r\n\r\n".encode() + body)
    refuse(form.defects or not form.is_multipart(), "form", f"The form has no beginning or no end: {form.defects}")
    fields: dict[str, str] = {}
    files: list[FormFile] = []
    for part in form.walk():
        if part is form:
            continue
        name = str(part.get_param("name", "", "content-disposition"))
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        refuse(not name or name in fields, "form", f"A part of the form has no name of its own: {part.items()}")
        if (filename := part.get_filename()) is None:
            fields[name] = data.decode()
        else:
            files.append(FormFile(name, filename, part.get_content_type(), data))
    return fields, files


@dataclass(frozen=True)
class ChatRequest:
    """A call of `/chat/completions`. The key is in no header kept."""

    number: int
    headers: dict[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model asked."""
        return str(self.body.get("model"))

    @property
    def messages(self) -> list[Json]:
        """The conversation, oldest first, without the system's message."""
        return [message for message in self.body["messages"] if message["role"] != "system"]

    @property
    def roles(self) -> list[str]:
        """Who speaks, in order."""
        return [message["role"] for message in self.body["messages"]]

    @property
    def system(self) -> str:
        """The system's message."""
        return "".join(message["content"] for message in self.body["messages"] if message["role"] == "system")

    @property
    def prompt(self) -> str:
        """The words of the person's newest message."""
        mine = [text_of(message) for message in self.messages if message["role"] == "user"]
        return mine[-1] if mine else ""

    @property
    def text(self) -> str:
        """Every word of the conversation, a line each message."""
        return "\n".join(map(text_of, self.messages))

    @property
    def results(self) -> list[Any]:
        """What the tools answered at the end of the conversation; empty when the person speaks last."""
        found: list[Any] = []
        for message in reversed(self.messages):
            if message["role"] != "tool":
                break
            found.insert(0, json.loads(text_of(message)))
        return found

    @property
    def tool_names(self) -> list[str]:
        """The functions the model may call."""
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    @property
    def pictures(self) -> list[bytes]:
        """Every picture shown, in order."""
        return [data for _, data in self.placed_pictures]

    @property
    def placed_pictures(self) -> list[tuple[str, bytes]]:
        """Every picture shown with the role of its message."""
        found = []
        for message in self.messages:
            content = message["content"] if isinstance(message["content"], list) else []
            urls = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
            found += [(message["role"], base64.b64decode(url.partition(",")[2])) for url in urls]
        return found


@dataclass(frozen=True)
class PictureRequest:
    """A call of `/images/generations` or `/images/edits`; `files` are the pictures to be changed."""

    number: int
    headers: dict[str, str] = field(default_factory=dict)
    is_edit: bool = False
    fields: dict[str, str] = field(default_factory=dict)
    files: list[FormFile] = field(default_factory=list)

    @property
    def model(self) -> str:
        """The model asked."""
        return self.fields.get("model", "")

    @property
    def prompt(self) -> str:
        """The words."""
        return self.fields["prompt"]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height asked for; a square when nothing was."""
        width, _, height = self.fields.get("size", "1024x1024").partition("x")
        return int(width), int(height)


def text_of(message: Json) -> str:
    """Return the words of a message, joined."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")
