"""The ledger of thought signatures: made up here, remembered with what they were on, demanded back unchanged."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache

import orjson

from tests.wire_server.refusals import Json, Refused

CALL_BYTES = 400
TEXT_BYTES = 300
PICTURE_BYTES = 2_000
# What the recordings show: 1.1 to 1.5 MB of base64 on an image part.
HUGE_BYTES = 900_000
DUMMIES = frozenset({b"skip_thought_signature_validator", b"context_engineering_is_the_way_to_go"})
CORRUPTED = "Corrupted thought signature."
INVALID = "Invalid thought signature."
_KEY_BYTES = 32
_TAIL = os.urandom(HUGE_BYTES)


@dataclass(frozen=True)
class Issued:
    """One signature and what it belongs to: the model, the part's content, its answer and place in that answer."""

    signature: bytes
    model: str
    content: str
    answer_id: str
    position: int


class Ledger:
    """Every signature this server gave out."""

    def __init__(self) -> None:
        self._issued: dict[bytes, Issued] = {}
        self._positions: dict[str, int] = {}

    def sign(self, part: Json, model: str, answer_id: str, size_bytes: int) -> Json:
        """Return the part with a new signature of this many bytes, remembered with the part's content."""
        signature = os.urandom(_KEY_BYTES) + _TAIL[: max(0, size_bytes - _KEY_BYTES)]
        position = self._positions[answer_id] = self._positions.get(answer_id, -1) + 1
        self._issued[signature[:_KEY_BYTES]] = Issued(signature, model, content_of(part), answer_id, position)
        return {**part, "thoughtSignature": base64.b64encode(signature).decode()}

    def check(self, part: Json, model: str, seen: set[bytes], places: dict[str, int]) -> None:
        """Refuse a signature that is not this model's own, on this very part, in its order, once.

        `seen` and `places` are the walk's memory over one request: the signatures met, and how far each answer's
        parts have come.
        """
        signature = decoded(part["thoughtSignature"])
        issued = self._issued.get(signature[:_KEY_BYTES]) if signature is not None else None
        if signature is None or issued is None or issued.signature != signature:
            raise Refused("signature_corrupted", CORRUPTED)
        if issued.model != model:
            raise Refused("signature_foreign", INVALID)
        if issued.content != content_of(part):
            raise Refused("signature_moved", CORRUPTED)
        key = signature[:_KEY_BYTES]
        if key in seen or places.get(issued.answer_id, -1) > issued.position:
            raise Refused("signature_moved", CORRUPTED)
        seen.add(key)
        places[issued.answer_id] = issued.position


def is_dummy(signature: str) -> bool:
    """Say whether this is one of the documented placeholders, bare or in base64."""
    return signature.encode() in DUMMIES or decoded(signature) in DUMMIES


def content_of(part: Json) -> str:
    """Return what a part says, in a form that does not depend on spelling: the order of arguments, the base64."""
    if "functionCall" in part:
        call = part["functionCall"]
        arguments = orjson.dumps(call.get("args") or {}, option=orjson.OPT_SORT_KEYS).decode()
        return f"call {call.get('name')} {arguments}"
    if "inlineData" in part:
        return f"picture {digest_of(part['inlineData'].get('data', ''))}"
    return f"text {part.get('text', '')}"


@lru_cache(maxsize=256)
def decoded(text: str) -> bytes | None:
    """Return the bytes of base64 in either alphabet, with or without padding; None when it is neither."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True)
    except (binascii.Error, ValueError):
        return None


@lru_cache(maxsize=256)
def digest_of(data: str) -> str:
    """Return the SHA-256 of the bytes behind the base64, empty when it is none."""
    raw = decoded(data)
    return hashlib.sha256(raw).hexdigest() if raw is not None else ""
