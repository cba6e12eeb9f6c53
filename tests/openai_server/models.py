"""The models of the server: together they are as different as the servers behind this API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.tables import table


@dataclass(frozen=True)
class ServedModel:
    """What a model takes. `json_mode` is `schema` or `object`; a thinking one wants its thoughts back with calls.

    Pictures to be changed come under `image_field` of a form; `wants_pictures` is said where there are none. The size
    comes under `size_field`; what is said of other fields is `unknown`.
    """

    name: str
    paints: bool = False
    has_vision: bool = False
    has_tools: bool = True
    json_mode: str = "schema"
    wants_thoughts: bool = False
    has_stream_usage: bool = True
    limit_field: str = "max_tokens"
    has_edits: bool = True
    has_response_format: bool = True
    image_field: str = "image[]"
    wants_pictures: str = "Missing required parameter: 'image'."
    size_field: str = "size"
    unknown: str = "Unknown parameter: '{}'."
    sizes: Sequence[str] = ("1024x1024", "1024x1536", "1536x1024")


MODELS = {name: ServedModel(name, **fields) for name, fields in table("openai_rules")["models"].items()}
