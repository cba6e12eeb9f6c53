"""What the person chose for a turn, and what the operator chose for the studio."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from agent.errors import SettingsError

TextModelChoice = Literal["flash", "thinking"]
ImageModelChoice = Literal["auto", "flash", "pro"]


class SearchPolicy(StrEnum):
    """Who may search when the person permits it: the agent (default), the image model, or both one after the other."""

    LLM_ONLY = "llm_only"
    IMAGE_ONLY = "image_only"
    BOTH = "both"


class ReferenceMode(StrEnum):
    """Which pictures the image model is shown when no handle names them; see `agent.imaging.references`."""

    USER_UPLOADED_ONLY = "USER_UPLOADED_ONLY"
    LAST_GENERATED = "LAST_GENERATED"
    ALL_USER_UPLOADED = "ALL_USER_UPLOADED"
    LAST_N = "LAST_N"


class TurnSettings(BaseModel):
    """What the person chose for one turn. A lock that is `None` (or `auto`) leaves the choice to the agent.

    `budget_usd` is the most that one turn may cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text_model: TextModelChoice = "flash"
    image_model: ImageModelChoice = "auto"
    allow_search: bool = False
    search_policy: SearchPolicy = SearchPolicy.LLM_ONLY
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)
    review: bool = False
    confirm: bool = False
    budget_usd: float | None = Field(default=None, gt=0)


class Settings(BaseModel):
    """What the operator chose: where everything lives, keys, base URL, time limits. Unknown fields are refused.

    Times are in seconds, sizes in bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    gemini_api_key: SecretStr | None = None
    gemini_base_url: str | None = None
    gemini_api_version: str = "v1beta"
    model_overrides: Mapping[str, str] = Field(default_factory=dict)
    text_timeout_s: float = Field(default=60.0, gt=0)
    image_timeout_s: float = Field(default=300.0, gt=0)
    history_cache_ttl_s: float = Field(default=7200.0, gt=0)
    history_cache_limit_bytes: int = Field(default=1 << 30, gt=0)

    @classmethod
    def from_env(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Settings:
        """Read the settings from environment variables; `home` wins over `AIVISTA_HOME`.

        `GOOGLE_API_KEY` wins over `GEMINI_API_KEY`, as in Google's SDK. A model is overridden by
        `AIVISTA_MODEL_<ROLE>`, for example `AIVISTA_MODEL_IMAGE_PRO`.

        Raises SettingsError naming the variable that cannot be read.
        """
        key = environ.get("GOOGLE_API_KEY") or environ.get("GEMINI_API_KEY")
        prefix = "AIVISTA_MODEL_"
        overrides = {
            name.removeprefix(prefix).lower(): value
            for name, value in environ.items()
            if name.startswith(prefix) and value
        }
        return cls(
            home=home or _home(environ),
            gemini_api_key=SecretStr(key.strip()) if key and key.strip() else None,
            gemini_base_url=environ.get("GOOGLE_GEMINI_BASE_URL") or None,
            gemini_api_version=environ.get("AIVISTA_GEMINI_API_VERSION") or "v1beta",
            model_overrides=overrides,
            text_timeout_s=_positive(environ, "AIVISTA_TEXT_TIMEOUT_S", 60.0),
            image_timeout_s=_positive(environ, "AIVISTA_IMAGE_TIMEOUT_S", 300.0),
            history_cache_ttl_s=_positive(environ, "AIVISTA_HISTORY_CACHE_TTL_S", 7200.0),
            history_cache_limit_bytes=int(_positive(environ, "AIVISTA_HISTORY_CACHE_MB", 1024.0) * (1 << 20)),
        )


def _home(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("AIVISTA_HOME")
    path = Path(os.path.expanduser(chosen)) if chosen else user_data_path("aivista", appauthor=False)
    return path.absolute()


def _positive(environ: Mapping[str, str], name: str, default: float) -> float:
    raw = environ.get(name)
    if not raw:
        return default
    try:
        value = float(raw)
    except ValueError:
        raise SettingsError(name, raw, "it must be a number") from None
    if not 0 < value < float("inf"):
        raise SettingsError(name, raw, "it must be greater than zero")
    return value
