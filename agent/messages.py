"""The values that all layers share: content parts, messages, chunks of a streamed answer, token counts.

All are frozen and round-trip through JSON exactly. They hold references and opaque signatures, never the bytes of a
picture: those are in the image store under the part's digest.
"""

from __future__ import annotations

import math
import unicodedata
from enum import StrEnum
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator

from agent.errors import ErrorInfo

# Hangul fillers and the empty Braille pattern: letters and symbols that take space but show nothing.
INVISIBLE_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


class Value(BaseModel):
    """A frozen value that rejects unknown fields and writes bytes as base64.

    Validation errors do not quote the input: it may be the user's text, and an error may reach a log.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, ser_json_bytes="base64", val_json_bytes="base64"
    )


class Asked(Value):
    """A value that a client program sends: null means the same as an omitted field."""

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, data: Any) -> Any:
        # Typed clients send nulls for optional fields.
        if not isinstance(data, dict):
            return data
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in data.items() if value is not None or name not in optional}


class Role(StrEnum):
    """The author of a message: the user, the model, or a tool that the model called."""

    PROMPT = "prompt"
    MODEL = "model"
    TOOL = "tool"


class ImageOrigin(StrEnum):
    """Where a picture came from."""

    UPLOADED = "uploaded"
    GENERATED = "generated"
    EDITED = "edited"


def whole_characters(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, which UTF-8 files cannot store."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_visible(text: str) -> bool:
    """Return whether the text has a visible character: not only spaces, line ends and invisible characters."""
    return any(unicodedata.category(sign)[0] not in "CZ" and sign not in INVISIBLE_LETTERS for sign in text)


def _writable(value: Any) -> Any:
    """Return text or JSON without what files and requests cannot hold: lone surrogates, NaN and infinite numbers.

    The JSON of a model or an MCP server can contain both; such a number becomes text.
    """
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case float():
            return value if math.isfinite(value) else str(value)
        case list():
            return [_writable(one) for one in value]
        case dict():
            return {_writable(key): _writable(one) for key, one in value.items()}
        case _:
            return value


Writable = AfterValidator(_writable)


class SignedPart(Value):
    """A model's part with an optional signature: opaque bytes that are sent back unchanged at the same position.

    A large signature, such as a picture's of 1.1-1.5 MB, is stored in the image store: `signature_digest`, the SHA-256
    of the bytes, is its key there, and `thought_signature` is None. `signed_by` names the model that issued the
    signature; another model rejects it.
    """

    thought_signature: bytes | None = None
    signature_digest: str | None = Field(default=None, exclude_if=lambda digest: digest is None)
    signed_by: str | None = None

    @property
    def is_signed(self) -> bool:
        """Whether the part has a signature, inline or in the image store."""
        return bool(self.thought_signature or self.signature_digest)

    def unsigned(self) -> Self:
        """Return the part without its signature."""
        return self.model_copy(update={"thought_signature": None, "signature_digest": None, "signed_by": None})


class TextPart(SignedPart):
    """Text. An empty text that carries a signature must be kept: dropping it breaks the next request."""

    type: Literal["text"] = "text"
    text: Annotated[str, Writable]
    is_thought: bool = False


class ImagePart(SignedPart):
    """A reference to a picture in the image store.

    `digest` is the SHA-256 of the stored bytes and `md5` their MD5, both hexadecimal; `width` and `height` are in
    pixels and unknown until the picture has been verified; `bit_depth` is that of each channel, 8 or 16; `handle` is
    its name in the conversation, such as `#7b`.
    """

    type: Literal["image"] = "image"
    digest: str
    md5: str
    mime_type: str
    size_bytes: int
    origin: ImageOrigin
    width: int | None = None
    height: int | None = None
    bit_depth: int = 8
    handle: str | None = None
    is_thought: bool = False


class ToolCallPart(SignedPart):
    """A tool call by the model. `call_id` is the provider's own, sent back when there was one."""

    type: Literal["tool_call"] = "tool_call"
    name: Annotated[str, Writable]
    arguments: Annotated[dict[str, JsonValue], Writable] = Field(default_factory=dict)
    call_id: str | None = None


class ToolResultPart(Value):
    """The result of a tool call, in the order of the calls; `images` are sent beside the JSON content."""

    type: Literal["tool_result"] = "tool_result"
    name: Annotated[str, Writable]
    content: Annotated[dict[str, JsonValue], Writable] = Field(default_factory=dict)
    images: tuple[ImagePart, ...] = ()
    call_id: str | None = None
    is_error: bool = False


class Source(Value):
    """A web page that a search used."""

    title: str
    url: str


class GroundingPart(Value):
    """The queries and sources of a search. Shown to the user, never sent back to a model.

    `suggestions_html` is Google's search suggestion, which Google's terms require to be shown unmodified beside the
    answer.
    """

    type: Literal["grounding"] = "grounding"
    queries: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    suggestions_html: str = ""


ContentPart: TypeAlias = Annotated[
    TextPart | ImagePart | ToolCallPart | ToolResultPart | GroundingPart, Field(discriminator="type")
]


class PromptMessage(Value):
    """One message of the conversation history: its author, and the parts in order."""

    role: Role
    parts: tuple[ContentPart, ...]

    @property
    def text(self) -> str:
        """The visible text of the message, joined without a separator."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart) and not part.is_thought)

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The pictures in the message itself (not those inside a tool's result)."""
        return tuple(part for part in self.parts if isinstance(part, ImagePart) and not part.is_thought)


class TokenUsage(Value):
    """Tokens of one or more calls by kind, as billed; `output_tokens` excludes thoughts and picture tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tool_tokens: int = 0
    output_tokens: int = 0
    thought_tokens: int = 0
    image_tokens: int = 0
    search_queries: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(**{name: getattr(self, name) + getattr(other, name) for name in TokenUsage.model_fields})

    @property
    def total_tokens(self) -> int:
        """All tokens of every kind; cached ones are part of the prompt."""
        return self.prompt_tokens + self.tool_tokens + self.output_tokens + self.thought_tokens + self.image_tokens


class CompletionChunk(Value):
    """One piece of a streamed answer.

    A transport failure raises an exception; a bad end by the model (blocked, empty, malformed) arrives as `error` on
    the last chunk, together with its `usage`, because it was billed. `usage` is the running total of the call, not a
    difference: the last one counts.
    """

    part: ContentPart | None = None
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    error: ErrorInfo | None = None
