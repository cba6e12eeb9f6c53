"""The test server's models as an operator declares them, and settings that point to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from agent import OpenAISettings, Settings
from tests.openai_server import OpenAIServer

CATALOGUE = """
[[model]]
id = "seer"
role = "flash"
provider = "openai"
label = "Seer"
thinking_levels = ["low", "high"]

[[model]]
id = "simple"
role = "flash"
provider = "openai"
label = "Simple"
has_vision = false
has_tools = false
json_mode = "none"

[[model]]
id = "sign-painter"
role = "image_flash"
provider = "openai"
label = "Sign painter"
sizes = { "1K" = { "1:1" = [1024, 1024] } }
aspect_ratios = ["1:1"]
max_references = 4
has_edits = false
"""


def own_catalogue(folder: Path) -> Path:
    """Return a file that declares what the bundled catalogue does not know."""
    path = folder / "models.toml"
    path.write_text(CATALOGUE, "utf-8")
    return path


def openai_settings(server: OpenAIServer, *, key: str | None = None, **fields: Any) -> OpenAISettings:
    """Return settings for the server: its talker talks and its painter paints unless `fields` say otherwise."""
    usual: dict[str, Any] = {"base_url": server.url, "text_model": "talker", "image_model": "painter"}
    return OpenAISettings(**usual | {"api_key": SecretStr(key) if key else None} | fields)


def with_openai(settings: Settings, server: OpenAIServer, folder: Path, **fields: Any) -> Settings:
    """Return the settings of a studio that talks and paints with the server."""
    update = {"openai": openai_settings(server, **fields), "catalogue_file": own_catalogue(folder)}
    return settings.model_copy(update=update)
