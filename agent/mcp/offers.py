"""What a server lists, as it may be offered to a model: named by us, its words stripped and cut, its schema reduced."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mcp_types import Tool as ListedTool

from agent.mcp.schemas import UnusableSchema, reduced
from agent.providers.base import ToolDeclaration
from agent.untrusted import plain_text

MAX_NAME_CHARACTERS = 64
_LEGAL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_DIGEST_CHARACTERS = 8
_DESCRIPTION_CHARACTERS = 1200
_NAME_CHARACTERS = 256
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Offer:
    """A tool of a server: its name there, how the model knows it, and what it was when it was listed.

    `is_read_only` is the server's own word for it. `fingerprint` changes with all that the model, or the rule of what
    needs a click, goes by.
    """

    server: str
    tool: str
    declaration: ToolDeclaration
    is_read_only: bool
    fingerprint: str


def offers_of(
    server: str, listed: Sequence[ListedTool], wanted: Sequence[str] | None, taken: Collection[str]
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Return the tools that can be offered, in the server's order, and for the log which cannot, and why.

    `wanted` are the names that the operator chose, None for all; `taken` are names that no server's tool may have.
    """
    found: dict[str, Offer] = {}
    left_out: list[str] = []
    for one in listed:
        if wanted is not None and one.name not in wanted:
            continue
        try:
            offer = _offer(server, one, taken)
        except UnusableSchema as problem:
            left_out.append(f"{one.name[:_SHOWN_CHARACTERS]!r} ({problem})")
            continue
        if offer.declaration.name not in found:
            found[offer.declaration.name] = offer
    known = {one.name for one in listed}
    left_out += [f"{name!r} (it has none of that name)" for name in wanted or () if name not in known]
    return tuple(found.values()), tuple(left_out)


def _offer(server: str, listed: ListedTool, taken: Collection[str]) -> Offer:
    if not 0 < len(listed.name) <= _NAME_CHARACTERS or plain_text(listed.name) != listed.name:
        raise UnusableSchema("its name cannot be shown")
    told = plain_text(listed.description or "").strip()
    if len(told) > _DESCRIPTION_CHARACTERS:
        told = told[:_DESCRIPTION_CHARACTERS].rstrip() + "…"
    declaration = ToolDeclaration(
        name=offered_name(server, listed.name, taken),
        description=f"The tool {listed.name} of the server {server}. {told}".strip(),
        parameters=reduced(listed.input_schema),
    )
    is_read_only = listed.annotations is not None and listed.annotations.read_only_hint is True
    return Offer(server, listed.name, declaration, is_read_only, _fingerprint(listed, is_read_only))


def _fingerprint(listed: ListedTool, is_read_only: bool) -> str:
    # The hint as well: a tool that says from one day to the next that it only reads would ask no more.
    whole = [listed.name, listed.description, listed.input_schema, is_read_only]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


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
