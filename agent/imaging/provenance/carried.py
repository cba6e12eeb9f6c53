"""What a file carries beside its pixels, and what a kind of file must offer to be written into and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent.imaging.provenance.recipe import Recipe

# No honest file holds as many parts; a hostile one would only keep us busy.
MAX_PARTS = 50_000


class Malformed(ValueError):
    """The file is not built as its kind is, or was cut off."""


@dataclass(frozen=True)
class Carried:
    """The texts found in a file, not judged yet: our JSON, the XMP packet, `parameters`, and what other programs write
    under keywords of their own (`foreign.KEYWORDS`).

    `has_credentials` when it holds content credentials (C2PA).
    """

    recipe: bytes | None = None
    xmp: bytes = b""
    parameters: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    has_credentials: bool = False


class PictureFormat(Protocol):
    """A kind of file. Nothing here decodes a pixel."""

    SIGNATURE: bytes

    def carried(self, data: bytes) -> Carried:
        """Return what the file carries; of a damaged one, what stands before the damage. Never raises."""
        ...

    def embedded(self, data: bytes, recipe: Recipe) -> bytes:
        """Return the file with the recipe in place of an older one. Raises Malformed."""
        ...

    def cleaned(self, data: bytes) -> bytes:
        """Return the file with nothing but its pixels, their colours and which way up they are. Raises Malformed."""
        ...
