"""What the person chose for a turn, and what the operator chose for the studio."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from agent import variables
from agent.errors import SettingsError
from agent.mcp_config import INHERITED, MCP_CONFIG, McpServer, read_mcp_config
from agent.messages import whole_characters, without_nulls
from agent.variables import CALLER_NAME, ProviderChoice

__all__ = [
    "CALLER_NAME",
    "OPERATOR",
    "ImageModelChoice",
    "OpenAISettings",
    "Patiences",
    "ProviderChoice",
    "ReferenceMode",
    "ReviewChoice",
    "SearchPolicy",
    "Settings",
    "TelemetrySettings",
    "TextModelChoice",
    "TurnSettings",
]

TextModelChoice = Literal["flash", "thinking"]
ImageModelChoice = Literal["auto", "flash", "pro", "both"]
ReviewChoice = Literal["off", "on", "always"]

OPERATOR = "local"
"""The owner of what is made on one's own machine, where nobody signs in."""

_PUBLIC_GRACE_S = 20.0


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


MAX_NEGATIVE_CHARACTERS = 1000
MAX_REFERENCE_COUNT = 16


class TurnSettings(BaseModel):
    """What the person chose for one turn. A lock that is `None` (or `auto`) leaves the choice to the agent.

    `image_model` may be `both`: the same request is painted by Flash and by Pro, to be seen side by side.

    `review` is when the agent looks at what it painted: `on` for the best model and for lettering, `always`, or `off`;
    `review_rounds` counts the first picture and what is painted again after a poor review. With `confirm` nothing is
    painted before the person has seen the plan. `negative_prompt` is what pictures must not show, in place of the
    agent's own; `reference_mode` says which pictures the image model is shown (`LAST_N`: the newest
    `reference_count`), and a picture that the agent names counts only as the one to be changed. `budget_usd` is the
    most that one turn may cost. Before pictures pass `cap_conversation_usd` or `cap_day_usd` (None is no cap, zero asks
    before every cent) the person is asked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text_model: TextModelChoice = "flash"
    image_model: ImageModelChoice = "auto"
    allow_search: bool = False
    search_policy: SearchPolicy = SearchPolicy.LLM_ONLY
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)
    negative_prompt: str | None = Field(default=None, max_length=MAX_NEGATIVE_CHARACTERS)
    reference_mode: ReferenceMode | None = None
    reference_count: int | None = Field(default=None, ge=1, le=MAX_REFERENCE_COUNT)
    review: ReviewChoice = "on"
    review_rounds: int = Field(default=2, ge=1, le=3)
    confirm: bool = False
    budget_usd: float | None = Field(default=None, gt=0)
    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _is_told(cls, told: Any) -> Any:
        return without_nulls(cls, told)

    @field_validator("negative_prompt", mode="before")
    @classmethod
    def _of_whole_characters(cls, value: object) -> object:
        return whole_characters(value) if isinstance(value, str) else value

    @field_validator("negative_prompt")
    @classmethod
    def _without_blanks(cls, value: str | None) -> str | None:
        return (value or "").strip() or None

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

    The retriever's is for all of it. A picture's limit is `Settings.image_deadline_s`.
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
    all turns may take; those of the oldest are let go. `visitor_limit_bytes` and `visitor_limit_pictures` are what each
    owner but `OPERATOR` may keep. `shutdown_grace_s` is as `grace_s` says.

    `is_public` says that people may come who are not the operator; without `lends_keys` the keys here pay for nobody
    but the owner `OPERATOR`. Where it `is_behind_proxy` that one's word counts for who asks. `mcp_servers` are the
    servers that give their tools, by name, and `mcp_inherited` is what their programs get of the operator's
    environment. `api_tokens` are those of the HTTP API by the name of who has them, beside those that are kept in the
    home; the two rates are for each of them.
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
    text_deadline_s: float = Field(default=300.0, gt=0)
    image_deadline_s: float = Field(default=600.0, gt=0)
    patiences: Patiences = Patiences()
    retry_budget_s: float = Field(default=60.0, ge=0)
    shutdown_grace_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    reuse_plans: bool = False
    history_cache_ttl_s: float = Field(default=7200.0, gt=0)
    history_cache_limit_bytes: int = Field(default=1 << 30, gt=0)
    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    trace_limit_bytes: int = Field(default=200 << 20, gt=0)
    visitor_limit_bytes: int = Field(default=1 << 30, gt=0)
    visitor_limit_pictures: int = Field(default=2000, gt=0)
    telemetry: TelemetrySettings | None = None
    is_public: bool = False
    is_behind_proxy: bool = False
    lends_keys: bool = True
    mcp_servers: Mapping[str, McpServer] = Field(default_factory=dict)
    mcp_inherited: Mapping[str, str] = Field(default_factory=dict)
    api_tokens: Mapping[str, SecretStr] = Field(default_factory=dict)
    api_requests_per_minute: float = Field(default=600.0, gt=0)
    api_turns_per_minute: float = Field(default=60.0, gt=0)

    def lent_key(self, owner: str) -> SecretStr | None:
        """Return the operator's Gemini key, where it pays for what this owner does."""
        return self.gemini_api_key if self.lends_keys or owner == OPERATOR else None

    @property
    def grace_s(self) -> float:
        """How long turns at work may go on when the studio is told to end, in seconds.

        Nobody waits long for what they end themselves; who comes from elsewhere knows nothing of it.
        """
        if self.shutdown_grace_s is not None:
            return self.shutdown_grace_s
        return _PUBLIC_GRACE_S if self.is_public else 0.0

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
        home = _home(environ, home)
        openai = _openai(environ)
        provider = variables.CHOSEN_PROVIDER.of(environ)
        if provider == "openai" and openai is None:
            name = variables.OPENAI_BASE_URL.name
            raise SettingsError(name, "", f"{variables.CHOSEN_PROVIDER.name} is openai, so say where its server is")
        return cls(
            home=home,
            gemini_api_key=variables.GOOGLE_API_KEY.of(environ) or variables.GEMINI_KEY.of(environ),
            gemini_base_url=variables.GEMINI_BASE_URL.of(environ),
            gemini_api_version=variables.GEMINI_API_VERSION.of(environ),
            provider=provider,
            openai=openai,
            catalogue_file=variables.CATALOGUE.of(environ),
            model_overrides=_model_overrides(environ),
            text_timeout_s=variables.TEXT_TIMEOUT_S.of(environ),
            image_timeout_s=variables.IMAGE_TIMEOUT_S.of(environ),
            text_deadline_s=variables.TEXT_DEADLINE_S.of(environ),
            image_deadline_s=variables.IMAGE_DEADLINE_S.of(environ),
            patiences=Patiences(
                planner_s=variables.PLANNER_TIMEOUT_S.of(environ),
                searcher_s=variables.SEARCHER_TIMEOUT_S.of(environ),
                retriever_s=variables.RETRIEVER_TIMEOUT_S.of(environ),
                critic_s=variables.CRITIC_TIMEOUT_S.of(environ),
            ),
            reuse_plans=variables.REUSE_PLANS.of(environ),
            retry_budget_s=variables.RETRY_BUDGET_S.of(environ),
            shutdown_grace_s=variables.SHUTDOWN_GRACE_S.of(environ),
            history_cache_ttl_s=variables.HISTORY_CACHE_TTL_S.of(environ),
            history_cache_limit_bytes=variables.HISTORY_CACHE_BYTES.of(environ),
            cap_conversation_usd=variables.CAP_CONVERSATION_USD.of(environ),
            cap_day_usd=variables.CAP_DAY_USD.of(environ),
            trace_limit_bytes=variables.TRACE_BYTES.of(environ),
            visitor_limit_bytes=variables.VISITOR_BYTES.of(environ),
            visitor_limit_pictures=variables.VISITOR_PICTURES.of(environ),
            telemetry=_telemetry(environ),
            is_public=variables.PUBLIC.of(environ),
            is_behind_proxy=variables.BEHIND_PROXY.of(environ),
            mcp_servers=_mcp_servers(environ, home),
            mcp_inherited={name: environ[name] for name in INHERITED if name in environ},
            api_tokens=variables.API_TOKENS.of(environ),
            api_requests_per_minute=variables.API_REQUESTS_PER_MINUTE.of(environ),
            api_turns_per_minute=variables.API_TURNS_PER_MINUTE.of(environ),
        )


def _home(environ: Mapping[str, str], given: Path | None) -> Path:
    home = given or variables.HOME.of(environ) or user_data_path("aivista", appauthor=False).absolute()
    file = next((place for place in (home, *home.parents) if os.path.isfile(place)), None)
    if file is not None:
        name = "home" if given is not None else variables.HOME.name
        raise SettingsError(name, home, f"{'it' if file == home else file} is a file; name a folder")
    return home


def _model_overrides(environ: Mapping[str, str]) -> dict[str, str]:
    prefix = variables.MODEL_PREFIX
    return {
        name.removeprefix(prefix).lower(): value for name, value in environ.items() if name.startswith(prefix) and value
    }


def _openai(environ: Mapping[str, str]) -> OpenAISettings | None:
    base_url = variables.OPENAI_BASE_URL.of(environ)
    if base_url is None:
        return None
    text_model = variables.OPENAI_TEXT_MODEL.of(environ)
    if text_model is None:
        raise SettingsError(variables.OPENAI_TEXT_MODEL.name, "", f"say which model of {base_url} shall answer")
    image_model = variables.OPENAI_IMAGE_MODEL.of(environ)
    image_base_url = variables.OPENAI_IMAGE_BASE_URL.of(environ)
    if image_base_url is not None and image_model is None:
        raise SettingsError(variables.OPENAI_IMAGE_MODEL.name, "", f"say which model of {image_base_url} shall paint")
    return OpenAISettings(
        base_url=base_url,
        text_model=text_model,
        api_key=variables.OPENAI_KEY.of(environ),
        image_model=image_model,
        image_base_url=image_base_url,
        image_api_key=variables.OPENAI_IMAGE_KEY.of(environ),
    )


def _mcp_servers(environ: Mapping[str, str], home: Path) -> dict[str, McpServer]:
    chosen = variables.MCP_CONFIG_FILE.of(environ)
    return read_mcp_config(chosen or home / MCP_CONFIG, is_required=chosen is not None)


def _telemetry(environ: Mapping[str, str]) -> TelemetrySettings | None:
    """Return where spans go; `AIVISTA_OTEL` turns them off, or on for a collector on this machine."""
    wish = variables.OTEL.of(environ)
    base = variables.OTEL_ENDPOINT.of(environ)
    endpoint = variables.OTEL_TRACES_ENDPOINT.of(environ)
    is_off = (variables.OTEL_DISABLED.of(environ) or "").lower() == "true"
    if is_off or wish is False or not (wish or base or endpoint):
        return None
    return TelemetrySettings(
        endpoint=endpoint or f"{(base or 'http://localhost:4318').rstrip('/')}/v1/traces",
        with_contents=variables.OTEL_CONTENTS.of(environ),
        service_name=variables.OTEL_SERVICE_NAME.of(environ),
    )
