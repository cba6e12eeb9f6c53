"""What the person chose for a turn, and what the operator chose for the studio."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from agent.errors import SettingsError
from agent.mcp_config import INHERITED, MCP_CONFIG, McpServer, read_mcp_config

TextModelChoice = Literal["flash", "thinking"]
ImageModelChoice = Literal["auto", "flash", "pro", "both"]
ProviderChoice = Literal["gemini", "openai", "sketch"]
ReviewChoice = Literal["off", "on", "always"]

CALLER_NAME = "[a-z][a-z0-9_-]{0,31}"
"""What the name of a token of the HTTP API looks like, as a pattern."""
_API_TOKENS = "AIVISTA_API_TOKENS"
_SHORTEST_TOKEN = 16


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

    `image_model` may be `both`: the same request is painted by Flash and by Pro, to be seen side by side.

    `review` is when the agent looks at what it painted: `on` for the best model and for lettering, `always`, or `off`;
    `review_rounds` counts the first picture and what is painted again after a poor review. With `confirm` nothing is
    painted before the person has seen the plan. `budget_usd` is the most that one turn may cost. Before pictures pass
    `cap_conversation_usd` or `cap_day_usd` (None is no cap, zero asks before every cent) the person is asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text_model: TextModelChoice = "flash"
    image_model: ImageModelChoice = "auto"
    allow_search: bool = False
    search_policy: SearchPolicy = SearchPolicy.LLM_ONLY
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)
    review: ReviewChoice = "on"
    review_rounds: int = Field(default=2, ge=1, le=3)
    confirm: bool = False
    budget_usd: float | None = Field(default=None, gt=0)
    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @field_validator("review", mode="before")
    @classmethod
    def _review_of_the_first_records(cls, value: object) -> object:
        # Records of the first version hold a truth value that nothing read.
        return "off" if isinstance(value, bool) else value


class OpenAISettings(BaseModel):
    """A server that speaks OpenAI's API: for words, and for pictures there or at an address of their own.

    Without an `image_model` the sketch model paints. A key goes only to the server it was given for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str
    text_model: str
    api_key: SecretStr | None = None
    image_model: str | None = None
    image_base_url: str | None = None
    image_api_key: SecretStr | None = None


class Patiences(BaseModel):
    """How long a node of a turn may go without a sign of life, in seconds: a word, another try, a pause before it.

    The retriever's is for all of it. A picture's limit is `Settings.image_timeout_s`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    planner_s: float = Field(default=60.0, gt=0)
    searcher_s: float = Field(default=60.0, gt=0)
    retriever_s: float = Field(default=5.0, gt=0)
    critic_s: float = Field(default=30.0, gt=0)


class TelemetrySettings(BaseModel):
    """Where OpenTelemetry spans go: the whole address of a collector that takes them by OTLP over HTTP.

    The words of prompts and answers go along only `with_contents`. Headers, certificates, time limits and sampling are
    the SDK's own: it reads its variables itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: str
    with_contents: bool = False
    service_name: str = "aivista"


class Settings(BaseModel):
    """What the operator chose: where everything lives, keys, base URL, time limits. Unknown fields are refused.

    Times are in seconds, sizes in bytes. Without a `provider` it is Gemini where there is a key, else the `openai`
    server, else sketch. With `reuse_plans` the same request to the text model within an hour is answered from the
    cache. `catalogue_file` holds models of the operator's own, in the form of `catalogue.toml`. `cap_conversation_usd`
    and `cap_day_usd`, in US dollars, count for everyone who has chosen none. `trace_limit_bytes` is what the traces of
    all turns may take; those of the oldest are let go.

    `is_public` says that people may come who are not the operator. `mcp_servers` are the servers that give their tools,
    by name, and `mcp_inherited` is what their programs get of the operator's environment. `api_tokens` are those of the
    HTTP API by the name of who has them, beside those that are kept in the home; the two rates are for each of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    gemini_api_key: SecretStr | None = None
    gemini_base_url: str | None = None
    gemini_api_version: str = "v1beta"
    provider: ProviderChoice | None = None
    openai: OpenAISettings | None = None
    catalogue_file: Path | None = None
    model_overrides: Mapping[str, str] = Field(default_factory=dict)
    text_timeout_s: float = Field(default=60.0, gt=0)
    image_timeout_s: float = Field(default=300.0, gt=0)
    patiences: Patiences = Patiences()
    retry_budget_s: float = Field(default=60.0, ge=0)
    reuse_plans: bool = False
    history_cache_ttl_s: float = Field(default=7200.0, gt=0)
    history_cache_limit_bytes: int = Field(default=1 << 30, gt=0)
    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    trace_limit_bytes: int = Field(default=200 << 20, gt=0)
    telemetry: TelemetrySettings | None = None
    is_public: bool = False
    mcp_servers: Mapping[str, McpServer] = Field(default_factory=dict)
    mcp_inherited: Mapping[str, str] = Field(default_factory=dict)
    api_tokens: Mapping[str, SecretStr] = Field(default_factory=dict)
    api_requests_per_minute: float = Field(default=600.0, gt=0)
    api_turns_per_minute: float = Field(default=60.0, gt=0)

    @classmethod
    def from_env(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Settings:
        """Read the settings from environment variables; `home` wins over `AIVISTA_HOME`.

        `GOOGLE_API_KEY` wins over `GEMINI_API_KEY`, as in Google's SDK. A model is overridden by
        `AIVISTA_MODEL_<ROLE>`, for example `AIVISTA_MODEL_IMAGE_PRO`.

        `AIVISTA_OPENAI_BASE_URL` with `AIVISTA_OPENAI_TEXT_MODEL` names a server that speaks OpenAI's API.
        `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector of OpenTelemetry spans, as in its SDK.

        MCP servers are read from `AIVISTA_MCP_CONFIG`, else from `mcp.toml` in the home where there is one.

        Raises SettingsError naming the variable that cannot be read.
        """
        home = home or _home(environ)
        key = environ.get("GOOGLE_API_KEY") or environ.get("GEMINI_API_KEY")
        prefix = "AIVISTA_MODEL_"
        overrides = {
            name.removeprefix(prefix).lower(): value
            for name, value in environ.items()
            if name.startswith(prefix) and value
        }
        openai = _openai(environ)
        catalogue_file = environ.get("AIVISTA_CATALOGUE")
        return cls(
            home=home,
            gemini_api_key=SecretStr(key.strip()) if key and key.strip() else None,
            gemini_base_url=environ.get("GOOGLE_GEMINI_BASE_URL") or None,
            gemini_api_version=environ.get("AIVISTA_GEMINI_API_VERSION") or "v1beta",
            provider=_provider(environ, openai),
            openai=openai,
            catalogue_file=Path(catalogue_file).expanduser().absolute() if catalogue_file else None,
            model_overrides=overrides,
            text_timeout_s=_positive(environ, "AIVISTA_TEXT_TIMEOUT_S", 60.0),
            image_timeout_s=_positive(environ, "AIVISTA_IMAGE_TIMEOUT_S", 300.0),
            patiences=Patiences(
                planner_s=_positive(environ, "AIVISTA_PLANNER_TIMEOUT_S", 60.0),
                searcher_s=_positive(environ, "AIVISTA_SEARCHER_TIMEOUT_S", 60.0),
                retriever_s=_positive(environ, "AIVISTA_RETRIEVER_TIMEOUT_S", 5.0),
                critic_s=_positive(environ, "AIVISTA_CRITIC_TIMEOUT_S", 30.0),
            ),
            reuse_plans=_switch(environ, "AIVISTA_REUSE_PLANS"),
            retry_budget_s=_positive(environ, "AIVISTA_RETRY_BUDGET_S", 60.0),
            history_cache_ttl_s=_positive(environ, "AIVISTA_HISTORY_CACHE_TTL_S", 7200.0),
            history_cache_limit_bytes=int(_positive(environ, "AIVISTA_HISTORY_CACHE_MB", 1024.0) * (1 << 20)),
            cap_conversation_usd=_amount(environ, "AIVISTA_CAP_CONVERSATION_USD"),
            cap_day_usd=_amount(environ, "AIVISTA_CAP_DAY_USD"),
            trace_limit_bytes=int(_positive(environ, "AIVISTA_TRACE_MB", 200.0) * (1 << 20)),
            telemetry=_telemetry(environ),
            is_public=_switch(environ, "AIVISTA_PUBLIC"),
            mcp_servers=_mcp_servers(environ, home),
            mcp_inherited={name: environ[name] for name in INHERITED if name in environ},
            api_tokens=_api_tokens(environ),
            api_requests_per_minute=_positive(environ, "AIVISTA_API_REQUESTS_PER_MINUTE", 600.0),
            api_turns_per_minute=_positive(environ, "AIVISTA_API_TURNS_PER_MINUTE", 60.0),
        )


def _home(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("AIVISTA_HOME")
    path = Path(os.path.expanduser(chosen)) if chosen else user_data_path("aivista", appauthor=False)
    return path.absolute()


def _provider(environ: Mapping[str, str], openai: OpenAISettings | None) -> ProviderChoice | None:
    match chosen := environ.get("AIVISTA_PROVIDER", "").strip().lower():
        case "":
            return None
        case "openai" if openai is None:
            raise SettingsError("AIVISTA_OPENAI_BASE_URL", "", "AIVISTA_PROVIDER is openai, so say where its server is")
        case "gemini" | "openai" | "sketch":
            return chosen
        case _:
            raise SettingsError("AIVISTA_PROVIDER", chosen, "it must be gemini, openai or sketch")


def _openai(environ: Mapping[str, str]) -> OpenAISettings | None:
    base_url = _address(environ, "AIVISTA_OPENAI_BASE_URL")
    if base_url is None:
        return None
    text_model = environ.get("AIVISTA_OPENAI_TEXT_MODEL", "").strip()
    if not text_model:
        raise SettingsError("AIVISTA_OPENAI_TEXT_MODEL", "", f"say which model of {base_url} shall answer")
    image_model = environ.get("AIVISTA_OPENAI_IMAGE_MODEL", "").strip() or None
    image_base_url = _address(environ, "AIVISTA_OPENAI_IMAGE_BASE_URL")
    if image_base_url is not None and image_model is None:
        raise SettingsError("AIVISTA_OPENAI_IMAGE_MODEL", "", f"say which model of {image_base_url} shall paint")
    return OpenAISettings(
        base_url=base_url,
        text_model=text_model,
        api_key=_secret(environ, "AIVISTA_OPENAI_API_KEY"),
        image_model=image_model,
        image_base_url=image_base_url,
        image_api_key=_secret(environ, "AIVISTA_OPENAI_IMAGE_API_KEY"),
    )


def _mcp_servers(environ: Mapping[str, str], home: Path) -> dict[str, McpServer]:
    chosen = environ.get("AIVISTA_MCP_CONFIG", "").strip()
    path = Path(chosen).expanduser().absolute() if chosen else home / MCP_CONFIG
    return read_mcp_config(path, is_required=bool(chosen))


def _api_tokens(environ: Mapping[str, str]) -> dict[str, SecretStr]:
    """Return the tokens by name, from `name:token` pairs with commas between them. None of them is ever quoted."""
    found: dict[str, SecretStr] = {}
    for pair in filter(None, (one.strip() for one in environ.get(_API_TOKENS, "").split(","))):
        name, _, token = pair.partition(":")
        if not re.fullmatch(CALLER_NAME, name):
            raise SettingsError(
                _API_TOKENS, "…", "it must be name:token pairs; a name has small letters, digits, - or _"
            )
        if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
            raise SettingsError(_API_TOKENS, "…", f"a token needs at least {_SHORTEST_TOKEN} plain characters")
        if name in found:
            raise SettingsError(_API_TOKENS, "…", f"it names {name} twice")
        found[name] = SecretStr(token)
    return found


def _telemetry(environ: Mapping[str, str]) -> TelemetrySettings | None:
    """Return where spans go; `AIVISTA_OTEL` turns them off, or on for a collector on this machine."""
    wish = environ.get("AIVISTA_OTEL", "").strip()
    base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    is_off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_off or (wish and not _switch(environ, "AIVISTA_OTEL")) or not (wish or base or endpoint):
        return None
    return TelemetrySettings(
        endpoint=endpoint or f"{(base or 'http://localhost:4318').rstrip('/')}/v1/traces",
        with_contents=_switch(environ, "AIVISTA_OTEL_CONTENTS"),
        service_name=environ.get("OTEL_SERVICE_NAME", "").strip() or "aivista",
    )


def _address(environ: Mapping[str, str], name: str) -> str | None:
    raw = environ.get(name, "").strip()
    if not raw:
        return None
    try:
        url = urlsplit(raw)
        is_address = url.scheme in ("https", "http") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if "@" in raw:
        # Not quoted: it may hold a password.
        raise SettingsError(name, "…", "it must hold no name or password; give the key in a variable of its own")
    if not is_address or url.query or url.fragment:
        raise SettingsError(name, raw, "it must be an address like http://127.0.0.1:11434/v1")
    return raw.rstrip("/")


def _secret(environ: Mapping[str, str], name: str) -> SecretStr | None:
    raw = environ.get(name, "").strip()
    if not raw:
        return None
    if not (raw.isascii() and raw.isprintable()) or " " in raw:
        raise SettingsError(name, "…", "it holds characters that no key has")
    return SecretStr(raw)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    raw = environ.get(name, "").strip().lower()
    if raw not in ("", "0", "1", "false", "true", "no", "yes", "off", "on"):
        raise SettingsError(name, raw, "it must be on or off")
    return raw in ("1", "true", "yes", "on")


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


def _amount(environ: Mapping[str, str], name: str) -> float | None:
    raw = environ.get(name, "").strip()
    if not raw:
        return None
    try:
        value = float(raw)
    except ValueError:
        raise SettingsError(name, raw, "it must be a number of US dollars, such as 2.50") from None
    if not 0 <= value < float("inf"):
        raise SettingsError(name, raw, "it must be zero or more")
    return value
