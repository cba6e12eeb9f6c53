"""One request as the server took it: what a test asserts on and what a brain decides by."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.wire_server.models import MODELS, Kind, WireModel, text_of
from tests.wire_server.refusals import Json
from tests.wire_server.signatures import decoded


@dataclass(frozen=True)
class WireRequest:
    """A request: `body` as it was sent, `normal` with every name in camelCase. The key is in no header kept."""

    number: int
    model: str
    method: str
    headers: dict[str, str] = field(default_factory=dict)
    size_bytes: int = 0
    body: Json = field(default_factory=dict)
    normal: Json = field(default_factory=dict)

    @property
    def known_model(self) -> WireModel:
        """The server's entry of the model."""
        return MODELS[self.model]

    @property
    def kind(self) -> Kind:
        """Whether a text, an image or an embedding model was asked."""
        return self.known_model.kind

    @property
    def contents(self) -> list[Json]:
        """The conversation, oldest first."""
        contents: list[Json] = self.normal.get("contents", [])
        return contents

    @property
    def config(self) -> Json:
        """The generationConfig."""
        config: Json = self.normal.get("generationConfig", {})
        return config

    @property
    def system(self) -> str:
        """The system instruction's text."""
        return text_of(self.normal.get("systemInstruction", {}))

    @property
    def text(self) -> str:
        """Every text of the conversation, a line each."""
        return "\n".join(text for text in map(text_of, self.contents) if text)

    @property
    def last_text(self) -> str:
        """The text of the newest content."""
        return text_of(self.contents[-1]) if self.contents else ""

    @property
    def prompt(self) -> str:
        """The text of the newest user content that has any."""
        mine = (text_of(content) for content in reversed(self.contents) if content.get("role") == "user")
        return next((text for text in mine if text), "")

    @property
    def function_responses(self) -> list[Json]:
        """The function responses the newest content brings; empty when the person speaks."""
        parts = self.contents[-1].get("parts", []) if self.contents else []
        return [part["functionResponse"] for part in parts if "functionResponse" in part]

    @property
    def function_names(self) -> list[str]:
        """The functions the model may call."""
        tools = self.normal.get("tools", [])
        return [declared["name"] for tool in tools for declared in tool.get("functionDeclarations", [])]

    @property
    def has_search(self) -> bool:
        """Whether Google's search is among the tools."""
        return any("googleSearch" in tool for tool in self.normal.get("tools", []))

    @property
    def shows_thoughts(self) -> bool:
        """Whether thoughts were asked for."""
        return bool(self.config.get("thinkingConfig", {}).get("includeThoughts"))

    @property
    def pictures(self) -> list[bytes]:
        """Every picture sent, in order, those in function responses too."""
        return [decoded(blob["data"]) or b"" for _, blob in self.blobs if blob.get("mimeType", "").startswith("image/")]

    @property
    def blobs(self) -> list[tuple[str, Json]]:
        """Every inline data with the role of its content, in order."""
        found: list[tuple[str, Json]] = []
        for content in self.contents:
            for part in content.get("parts", []):
                if "inlineData" in part:
                    found.append((content["role"], part["inlineData"]))
                answers = part.get("functionResponse", {}).get("parts", [])
                found.extend((content["role"], answer["inlineData"]) for answer in answers if "inlineData" in answer)
        return found
