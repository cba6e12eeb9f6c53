"""The addresses of pictures and receipts as MCP resources."""

from __future__ import annotations

import re
from dataclasses import dataclass

PICTURES = "aivista://conversations/{conversation_id}/pictures/{handle}"
RECEIPTS = f"{PICTURES}/receipt"
_ADDRESS = re.compile(r"aivista://conversations/([0-9A-Za-z_-]{1,64})/pictures/([0-9]{1,6}[a-z]{0,3})(/receipt)?")


@dataclass(frozen=True)
class Address:
    """Which picture an address means, and whether its receipt is meant."""

    conversation_id: str
    handle: str
    is_receipt: bool


def picture_uri(conversation_id: str, handle: str) -> str:
    """Return where a picture's original is."""
    return PICTURES.format(conversation_id=conversation_id, handle=handle.lstrip("#"))


def receipt_uri(conversation_id: str, handle: str) -> str:
    """Return where a picture's receipt is."""
    return RECEIPTS.format(conversation_id=conversation_id, handle=handle.lstrip("#"))


def read_uri(uri: str) -> Address | None:
    """Return what an address means, None for one that is none of ours."""
    found = _ADDRESS.fullmatch(uri)
    return Address(found[1], found[2], found[3] is not None) if found else None
