"""ListModels: what the key is offered, a page at a time."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence

from tests.wire_server.models import Kind, WireModel
from tests.wire_server.refusals import Json, Refused

_PAGE = 50
_MOST = 1000
_LIMITS = {Kind.TEXT: (1_048_576, 65_536), Kind.IMAGE: (131_072, 32_768), Kind.EMBEDDING: (8_192, 1)}


def page(models: Sequence[WireModel], query: Mapping[str, str]) -> Json:
    """Return the page that the query asks for, and the token of the next one while there is one."""
    size, start = _size(query.get("pageSize", "")), _start(query.get("pageToken", ""))
    if start >= len(models) > 0 and start:
        raise Refused("page_token", "Page token is invalid.")
    listed: Json = {"models": [described(model) for model in models[start : start + size]]}
    if start + size < len(models):
        listed["nextPageToken"] = base64.urlsafe_b64encode(f"models:{start + size}".encode()).decode()
    return listed


def described(model: WireModel) -> Json:
    """Return the model as the API describes it; one that embeds has no settings of sampling."""
    limits = _LIMITS[model.kind]
    told: Json = {
        "name": f"models/{model.name}",
        "version": "001",
        "displayName": model.name.replace("-", " ").title(),
        "description": f"Stable version of {model.name}.",
        "inputTokenLimit": limits[0],
        "outputTokenLimit": limits[1],
        "supportedGenerationMethods": list(model.methods),
    }
    if model.kind is not Kind.EMBEDDING:
        told |= {"temperature": 1, "topP": 0.95, "topK": 64, "maxTemperature": 2}
    if model.thinking_levels:
        told["thinking"] = True
    return told


def _size(written: str) -> int:
    if not written:
        return _PAGE
    if not written.isdigit():
        raise Refused("page_size", f"Invalid value at 'page_size' (TYPE_INT32), {written!r}")
    return min(int(written) or _PAGE, _MOST)


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        name, _, number = base64.urlsafe_b64decode(token).decode().partition(":")
        return int(number) if name == "models" else -1
    except ValueError:
        raise Refused("page_token", "Page token is invalid.") from None
