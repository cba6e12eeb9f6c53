"""The models of the server: together they are as different as the servers behind this API."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServedModel:
    """What a model takes. `json_mode` is `schema` or `object`; a thinking one wants its thoughts back with calls."""

    name: str
    paints: bool = False
    has_vision: bool = False
    has_tools: bool = True
    json_mode: str = "schema"
    wants_thoughts: bool = False
    has_edits: bool = True
    has_response_format: bool = True
    sizes: tuple[str, ...] = ("1024x1024", "1024x1536", "1536x1024")


_ALL = (
    ServedModel("talker"),
    ServedModel("seer", has_vision=True),
    ServedModel("simple", has_tools=False),
    ServedModel("deepseek-flash", has_vision=True, json_mode="object", wants_thoughts=True),
    ServedModel("deepseek-v4-pro", json_mode="object", wants_thoughts=True),
    ServedModel("painter", paints=True),
    ServedModel("sign-painter", paints=True, has_edits=False),
    ServedModel("gpt-image-2", paints=True, has_response_format=False, sizes=("1024x1024", "1536x864", "2560x1440")),
)
MODELS = {model.name: model for model in _ALL}
