"""What came out without what differs from run to run: names that are drawn by lot, times, and the bytes of pictures."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

from PIL import Image, UnidentifiedImageError

_LOTS = re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?\b")
_LASTING = re.compile(r"(?:^|_)(?:s|ms|seconds)$|duration|elapsed|latency")
_PORT = re.compile(r"127\.0\.0\.1:\d+")


class Plain:
    """Makes values plain; what is drawn by lot is numbered in the order in which it comes, through all values."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, value: Any, name: str = "") -> Any:
        """Return the value as it is in every run; `name` is the field that it stands in."""
        match value:
            case Mapping():
                return {self._text(str(key)): self._field(value, str(key), one) for key, one in value.items()}
            case list() | tuple():
                return [self(one, name) for one in value]
            case str():
                return self._text(value)
            case bool():
                return value
            case int() | float() if _LASTING.search(name):
                return "<time>"
            # How well a file is packed is no matter of ours.
            case int() if name == "size_bytes":
                return "<bytes>"
            case float():
                return round(value, 4)
        return value

    def _field(self, within: Mapping[str, Any], name: str, value: Any) -> Any:
        if name == "data" and isinstance(value, str) and "mimeType" in within:
            return f"<{_size(value)}>"
        if name in {"thoughtSignature", "thought_signature"} and value:
            return "<signature>"
        return self(value, name)

    def _text(self, text: str) -> str:
        numbered: Callable[[re.Match[str]], str] = lambda found: f"<{self._number(found.group(0))}>"  # noqa: E731
        return _PORT.sub("<host>", _TIME.sub("<time>", _LOTS.sub(numbered, text)))

    def _number(self, drawn: str) -> int:
        return self._numbers.setdefault(drawn, len(self._numbers) + 1)


def _size(data: str) -> str:
    """Return the width and height of a picture in base64."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(data))) as opened:
            return f"{opened.format} {opened.width}x{opened.height}"
    except (UnidentifiedImageError, binascii.Error):
        return f"{len(data)} characters"
