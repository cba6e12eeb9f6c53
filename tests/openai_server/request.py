"""One request as the server took it: what a test asserts on and what a brain decides by."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from tests.openai_server.form import FormFile
from tests.openai_server.refusals import Json


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
