"""Names under which the tools of servers are offered: legal for every provider, and nobody else's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

MAX_NAME_CHARACTERS = 64
_LEGAL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_DIGEST_CHARACTERS = 8


def offered_name(server: str, tool: str, taken: Collection[str]) -> str:
    """Return `server_tool`, or where that is not legal or a name of the studio's own, one that ends in a digest.

    It depends on nothing but its arguments: a call that waited for the person for days means the same tool still,
    whichever other servers are there.
    """
    whole = f"{server.replace('-', '_')}_{tool}"
    if _LEGAL.fullmatch(whole) and whole not in taken:
        return whole
    digest = hashlib.sha256(f"{server}\n{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    stem = re.sub(r"[^a-zA-Z0-9]+", "_", whole)[: MAX_NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]
    return f"{stem.rstrip('_')}_{digest}"
