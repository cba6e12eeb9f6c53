"""The user's settings for a turn, and the operator's settings for the studio with the environment variable of each."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import BaseModel, Field, SecretStr, field_validator

from agent.errors import SettingsError
from agent.mcp_config import INHERITED, MCP_CONFIG, McpServer, read_mcp_config
from agent.messages import Asked, Value, whole_characters

TextModelChoice = Literal["flash", "thinking"]
ImageModelChoice = Literal["auto", "flash", "pro", "both"]
ReviewChoice = Literal["off", "on", "always"]
ProviderChoice = Literal["gemini", "openai", "sketch"]
_WITH_OWN_SERVER: frozenset[ProviderChoice] = frozenset({"openai"})

OPERATOR = "local"
"""The owner of everything made on the operator's own machine, where nobody signs in."""


class SearchPolicy(StrEnum):
    """Who may search if the user allows it: the agent (default), the image model, or both one after the other."""

    LLM_ONLY = "llm_only"
    IMAGE_ONLY = "image_only"
    BOTH = "both"


class ReferenceMode(StrEnum):
    """Which pictures are sent to the image model when no handle names them; see `agent.imaging.references`."""

    USER_UPLOADED_ONLY = "USER_UPLOADED_ONLY"
    LAST_GENERATED = "LAST_GENERATED"
    ALL_USER_UPLOADED = "ALL_USER_UPLOADED"
    LAST_N = "LAST_N"


MAX_NEGATIVE_CHARACTERS = 1000
MAX_REFERENCE_COUNT = 16


class TurnSettings(Asked):
    """The user's settings for one turn. A lock that is `None` (or `auto`) leaves the choice to the agent.

    `image_model` may be `both`: Flash and Pro each generate the same request, for a comparison side by side.

    `review` is when the agent reviews its pictures: `on` for the best model and for lettering, `always`, or `off`;
    `review_rounds` counts the first attempt and the repaints after a poor review. With `confirm` no picture is
    generated before the user has seen the plan. `negative_prompt` is what pictures must not show, in place of the
    agent's own; `reference_mode` says which pictures are sent to the image model (`LAST_N`: the newest
    `reference_count`), and a picture that the agent names then counts only as the one to change. `budget_usd` is the
    maximum cost of one turn. The user is asked before pictures exceed `cap_conversation_usd` or `cap_day_usd` (None is
    no cap, zero asks before every cent).
    """

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
    budget_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)

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
        # Records of the first version have a boolean here, which nothing used.
        return "off" if isinstance(value, bool) else value


# ---- environment variables

CALLER_NAME = "[a-z][a-z0-9_-]{0,31}"
"""The pattern for names of HTTP API tokens."""
MODEL_PREFIX = "AIVISTA_MODEL_"
"""The prefix of the variable for each role; the rest of its name is the role in capitals."""
_SHORTEST_TOKEN = 16
_MB = 1 << 20
_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)
_PROVIDERS = {name: name for name in get_args(ProviderChoice)}


class Kind(NamedTuple):
    """The format of a value in words, and its parser.

    `read` takes the variable's name and its stripped, non-empty text, and raises SettingsError when that is invalid.
    `bounds` are pydantic's, for values given from Python, which are `unit` times as large."""

    words: str
    read: Callable[[str, str], object]
    bounds: Mapping[str, Any] = {}
    unit: int = 1


class Variable(NamedTuple):
    """The environment variable of a field, and its group in the reference.

    An unset, empty or blank variable selects the field's default; `otherwise` describes the default in words when the
    value itself does not explain it."""

    group: str
    name: str
    kind: Kind
    meaning: str
    otherwise: str = ""

    def of(self, environ: Mapping[str, str]) -> Any:
        """Return the value in this environment, or None. Raises SettingsError naming the variable."""
        raw = environ.get(self.name, "").strip()
        return self.kind.read(self.name, raw) if raw else None


def _number(name: str, raw: str, what: str, *, from_zero: bool) -> float:
    try:
        value = float(raw)
    except ValueError:
        raise SettingsError(name, raw, f"it must be {what}") from None
    if not (0 <= value < inf if from_zero else 0 < value < inf):
        raise SettingsError(name, raw, f"it must be {'zero or more' if from_zero else 'greater than zero'}")
    return value


_positive = partial(_number, what="a number", from_zero=False)


def _count(name: str, raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and int(raw) > 0):
        raise SettingsError(name, raw, "it must be a whole number greater than zero")
    return int(raw)


def _megabytes(name: str, raw: str) -> int:
    # Between one byte and an exabyte: SQLite holds no larger number.
    return max(1, int(min(_positive(name, raw), 1 << 40) * _MB))


def _choice(name: str, raw: str, choices: Mapping[str, object], problem: str) -> object:
    if raw.lower() not in choices:
        raise SettingsError(name, raw, problem)
    return choices[raw.lower()]


def _secret(name: str, raw: str) -> SecretStr:
    if not (raw.isascii() and raw.isprintable()) or " " in raw:
        raise SettingsError(name, "…", "it holds characters that no key has")
    return SecretStr(raw)


def _address(name: str, raw: str) -> str:
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


def _tokens(name: str, raw: str) -> Mapping[str, SecretStr]:
    """Return the tokens by name. Error messages never quote a token."""
    found: dict[str, SecretStr] = {}
    for pair in filter(None, (one.strip() for one in raw.split(","))):
        caller, _, token = pair.partition(":")
        if not re.fullmatch(CALLER_NAME, caller):
            raise SettingsError(name, "…", "it must be name:token pairs; a name has small letters, digits, - or _")
        if len(token) < _SHORTEST_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
            raise SettingsError(name, "…", f"a token needs at least {_SHORTEST_TOKEN} plain characters")
        if caller in found:
            raise SettingsError(name, "…", f"it names {caller} twice")
        found[caller] = SecretStr(token)
    return found


def _path(name: str, raw: str) -> Path:
    try:
        return Path(raw).expanduser().absolute()
    except RuntimeError:
        raise SettingsError(name, raw, "there is no such home folder; name a whole path") from None


_FROM_ZERO = {"ge": 0, "allow_inf_nan": False}
_TEXT = Kind("text", lambda _name, raw: raw)
_PATH = Kind("a path; `~` is your own folder", _path)
_SECONDS = Kind("seconds, more than 0", _positive, {"gt": 0})
_SECONDS_OR_NONE = Kind("seconds, 0 or more", partial(_number, what="a number", from_zero=True), _FROM_ZERO)
# From Python, the pause may also be 0.
_PAUSE = _SECONDS._replace(bounds={"ge": 0})
_RATE = Kind("a number, more than 0", _positive, {"gt": 0})
_COUNT = Kind("a whole number, more than 0", _count, {"gt": 0})
_MEGABYTES = Kind("megabytes, more than 0", _megabytes, {"gt": 0}, unit=_MB)
_DOLLARS = Kind(
    "US dollars, 0 or more", partial(_number, what="a number of US dollars, such as 2.50", from_zero=True), _FROM_ZERO
)
_SWITCH = Kind("`on` or `off`", partial(_choice, choices=_SWITCHES, problem="it must be on or off"))
_KEY = Kind("a key", _secret)
# The format of Google's keys is not checked: it is up to Google, and a key is tested where the user enters it.
_GOOGLE_KEY = Kind("a key", lambda _name, raw: SecretStr(raw))
_ADDRESS = Kind("an `http` or `https` address without name, password, query or fragment", _address)
_PROVIDER = Kind(
    "`gemini`, `openai` or `sketch`",
    partial(_choice, choices=_PROVIDERS, problem="it must be gemini, openai or sketch"),
)
_TOKENS = Kind("`name:token` pairs with commas between them; a token has 16 characters or more", _tokens)


def _field(group: str, kind: Kind, default: Any, name: str) -> Callable[..., Any]:
    """Return a function that makes a field from the text about its variable; the variable `also` takes precedence."""

    def field(meaning: str, otherwise: str = "", *, also: Variable | None = None) -> Any:
        extra: Any = {"variables": [Variable(group, name, kind, meaning, otherwise), *filter(None, [also])]}
        return Field(default, json_schema_extra=extra, **kind.bounds)

    return field


_kept = partial(_field, "What is kept")
_gemini = partial(_field, "Gemini")
_models = partial(_field, "Models")
_server = partial(_field, "A server that speaks OpenAI's API")
_money = partial(_field, "Money")
_time_limit = partial(_field, "Time limits", _SECONDS)
_reach = partial(_field, "Who reaches the studio")
_otel = partial(_field, "OpenTelemetry")


# ---- the operator's


class OpenAISettings(Value):
    """A server with OpenAI's API for text; images come from it too, or from a server with its own address.

    Without an `image_model` the sketch model makes the pictures. A key is sent only to the server it was set for.
    """

    base_url: str = _server(_ADDRESS, ..., "AIVISTA_OPENAI_BASE_URL")(
        "A server that speaks OpenAI's API; it takes Gemini's place."
    )
    text_model: str = _server(_TEXT, ..., "AIVISTA_OPENAI_TEXT_MODEL")("Its model for words; needed with the address.")
    api_key: SecretStr | None = _server(_KEY, None, "AIVISTA_OPENAI_API_KEY")(
        "Its key; it goes to no other server.", "no key is sent"
    )
    image_model: str | None = _server(_TEXT, None, "AIVISTA_OPENAI_IMAGE_MODEL")(
        "Its model for pictures.", "the sketch model paints"
    )
    image_base_url: str | None = _server(_ADDRESS, None, "AIVISTA_OPENAI_IMAGE_BASE_URL")(
        "Another server for pictures.", "the same server"
    )
    image_api_key: SecretStr | None = _server(_KEY, None, "AIVISTA_OPENAI_IMAGE_API_KEY")(
        "The key of the server for pictures.", "the other key, at the same server only"
    )

    @property
    def has_key(self) -> bool:
        """Whether the operator set a key."""
        return bool(self.api_key or self.image_api_key)


class Patiences(Value):
    """How long a call by a node of a turn may stream nothing (no text, no thought), in seconds.

    The operator's own server may be silent until its answer begins. The retriever's limit is for its whole duration. A
    picture's limit is `Settings.image_deadline_s`.
    """

    planner_s: float = _time_limit(60.0, "AIVISTA_PLANNER_TIMEOUT_S")(
        "How long planning may give no sign of life before the turn fails."
    )
    searcher_s: float = _time_limit(60.0, "AIVISTA_SEARCHER_TIMEOUT_S")(
        "How long a search may give no sign of life before the turn fails."
    )
    retriever_s: float = _time_limit(5.0, "AIVISTA_RETRIEVER_TIMEOUT_S")(
        "How long a turn waits for styles; then it goes on without."
    )
    critic_s: float = _time_limit(30.0, "AIVISTA_CRITIC_TIMEOUT_S")(
        "How long a review may give no sign of life; then the picture passes unreviewed."
    )

    def of_node(self, name: str) -> float | None:
        """Return the limit for model calls by the node of that name; None when there is no limit."""
        return {"planner": self.planner_s, "searcher": self.searcher_s, "critic": self.critic_s}.get(name)


class TelemetrySettings(Value):
    """Where OpenTelemetry spans are sent: the full address of a collector that accepts OTLP over HTTP.

    The text of prompts and answers is included only `with_contents`. Headers, certificates, timeouts and sampling are
    configured by the SDK, which reads its own environment variables.
    """

    endpoint: str = _otel(_TEXT, ..., "OTEL_EXPORTER_OTLP_ENDPOINT")(
        "The collector, as in OpenTelemetry's SDK; `/v1/traces` is added.",
        also=Variable(
            "OpenTelemetry",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            _TEXT,
            "The collector's whole address for traces; it wins.",
        ),
    )
    with_contents: bool = _otel(_SWITCH, False, "AIVISTA_OTEL_CONTENTS")(
        "The words of prompts and answers go along with the spans."
    )
    service_name: str = _otel(_TEXT, "aivista", "OTEL_SERVICE_NAME")("What the studio is called in its spans.")


class Settings(Value):
    """The operator's settings: home directory, keys, base URL, time limits. Unknown fields are rejected.

    Times are in seconds, sizes in bytes; each field is described at its variable. Without a `provider` it is Gemini if
    there is a key, else the `openai` server, else sketch. `model_overrides` are model names by role. Without
    `lends_keys` these keys pay only for the owner `OPERATOR`. `mcp_servers` are the servers whose tools the agent may
    call, by name; `mcp_inherited` is the part of the operator's environment that their programs inherit. `api_tokens`
    are tokens of the HTTP API by the name of their holder, in addition to those stored in the home.
    """

    home: Path = _kept(_PATH, ..., "AIVISTA_HOME")(
        "The folder for everything that is kept. The flag `--home` wins.",
        "the platform's user-data folder, on Linux `~/.local/share/aivista`",
    )
    history_cache_ttl_s: float = _kept(_SECONDS, 7200.0, "AIVISTA_HISTORY_CACHE_TTL_S")(
        "How long an earlier picture is cached since it was last used."
    )
    history_cache_limit_bytes: int = _kept(_MEGABYTES, 1024 * _MB, "AIVISTA_HISTORY_CACHE_MB")(
        "How much room the cache of earlier pictures may take."
    )
    trace_limit_bytes: int = _kept(_MEGABYTES, 200 * _MB, "AIVISTA_TRACE_MB")(
        "How much room the traces of all turns may take; the oldest are let go."
    )
    visitor_limit_bytes: int = _kept(_MEGABYTES, 1024 * _MB, "AIVISTA_VISITOR_MB")(
        "How much each visitor may keep, trash included: pictures, files and words. The operator may keep as "
        "much as the disk holds."
    )
    visitor_limit_pictures: int = _kept(_COUNT, 2000, "AIVISTA_VISITOR_PICTURES")(
        "How many pictures each visitor may keep, trash included."
    )

    gemini_api_key: SecretStr | None = _gemini(_GOOGLE_KEY, None, "GEMINI_API_KEY")(
        "Your Gemini key, for everybody who reaches the page and has typed in none.",
        also=Variable(
            "Gemini", "GOOGLE_API_KEY", _GOOGLE_KEY, "The same; it wins over `GEMINI_API_KEY`, as in Google's SDK."
        ),
    )
    gemini_base_url: str | None = _gemini(_TEXT, None, "GOOGLE_GEMINI_BASE_URL")(
        "Another address of the Gemini API, of a gateway for instance; `http` or `https`.", "Google's"
    )
    gemini_api_version: str = _gemini(_TEXT, "v1beta", "AIVISTA_GEMINI_API_VERSION")("The version of the Gemini API.")

    provider: ProviderChoice | None = _models(_PROVIDER, None, "AIVISTA_PROVIDER")(
        "Whose models work, whatever else is set.", "Gemini where there is a key, else your own server, else sketch"
    )
    catalogue_file: Path | None = _models(_PATH, None, "AIVISTA_CATALOGUE")(
        "A file about models of your own, in the form of the built-in catalogue."
    )
    model_overrides: Mapping[str, str] = Field(default_factory=dict)
    openai: OpenAISettings | None = None

    cap_day_usd: float | None = _money(_DOLLARS, None, "AIVISTA_CAP_DAY_USD")(
        "What a person may spend a day before being asked, for whoever has chosen nothing else on the page.", "no limit"
    )
    cap_conversation_usd: float | None = _money(_DOLLARS, None, "AIVISTA_CAP_CONVERSATION_USD")(
        "The same for one conversation.", "no limit"
    )
    reuse_plans: bool = _money(_SWITCH, False, "AIVISTA_REUSE_PLANS")(
        "The very same request to the model for words within an hour is answered from disk and not paid again."
    )

    text_timeout_s: float = _time_limit(60.0, "AIVISTA_TEXT_TIMEOUT_S")(
        "How long to wait for the next piece of an answer in words. A server of your own may take until the deadline: "
        "it loads its model first."
    )
    image_timeout_s: float = _time_limit(300.0, "AIVISTA_IMAGE_TIMEOUT_S")(
        "How long to wait for the next piece of a picture. A server of your own may take until the deadline."
    )
    text_deadline_s: float = _time_limit(300.0, "AIVISTA_TEXT_DEADLINE_S")(
        "How long an answer in words may take in all, even if it keeps coming."
    )
    image_deadline_s: float = _time_limit(600.0, "AIVISTA_IMAGE_DEADLINE_S")(
        "How long a picture may take in all, even if it keeps coming."
    )
    patiences: Patiences = Patiences()
    retry_budget_s: float = _field("Time limits", _PAUSE, 60.0, "AIVISTA_RETRY_BUDGET_S")(
        "How long one call may wait in all to be tried again when the model is busy."
    )
    shutdown_grace_s: float | None = _field("Time limits", _SECONDS_OR_NONE, None, "AIVISTA_SHUTDOWN_GRACE_S")(
        "How long turns that are at work may go on when the studio is told to end; a second signal ends the "
        "wait. What is not done by then goes on at the next start.",
        "`20` where others come, `0` on your own machine",
    )

    is_public: bool = _reach(_SWITCH, False, "AIVISTA_PUBLIC")(
        "Others than you reach the studio, by a proxy for instance: it then uses no MCP server of its own "
        "machine, and its HTTP API asks for a token. `--share`, and a `--host` other than this machine, say so "
        "by themselves."
    )
    api_tokens: Mapping[str, SecretStr] = _reach(_TOKENS, {}, "AIVISTA_API_TOKENS")(
        "Tokens of the HTTP API, beside those made with `aivista token`.", "none is needed on your own machine"
    )
    api_requests_per_minute: float = _reach(_RATE, 600.0, "AIVISTA_API_REQUESTS_PER_MINUTE")(
        "How often the owner of a token may ask the HTTP API."
    )
    api_turns_per_minute: float = _reach(_RATE, 60.0, "AIVISTA_API_TURNS_PER_MINUTE")(
        "How often the owner of a token may begin a turn."
    )
    is_behind_proxy: bool = _reach(_SWITCH, False, "AIVISTA_BEHIND_PROXY")(
        "Visitors come through a proxy of yours: its `X-Forwarded-For` says who asks, by which rates are "
        "counted. Only where nobody can come past it."
    )
    lends_keys: bool = True
    mcp_servers: Mapping[str, McpServer] = _reach(_PATH, {}, "AIVISTA_MCP_CONFIG")(
        "The file that lists MCP servers whose tools the agent may call.",
        "`mcp.toml` in the home folder, where there is one",
    )
    mcp_inherited: Mapping[str, str] = Field(default_factory=dict)

    telemetry: TelemetrySettings | None = _otel(_SWITCH, None, "AIVISTA_OTEL")(
        "The trace as OpenTelemetry spans (needs the extra `opentelemetry`).",
        "on where an endpoint is set; `on` without one means a collector at `http://localhost:4318`",
        also=Variable(
            "OpenTelemetry",
            "OTEL_SDK_DISABLED",
            _TEXT,
            "`true` turns spans off, whatever else is set, as in OpenTelemetry's SDK.",
        ),
    )

    def lent_key(self, owner: str) -> SecretStr | None:
        """Return the operator's Gemini key if it may be used for this owner, else None."""
        return self.gemini_api_key if self.lends_keys or owner == OPERATOR else None

    @property
    def grace_s(self) -> float:
        """How long running turns may continue after the studio is told to end, in seconds.

        The default is 0 for a local user, who ends the studio themselves, and 20 for a public studio, whose visitors do
        not expect the end.
        """
        if self.shutdown_grace_s is not None:
            return self.shutdown_grace_s
        return 20.0 if self.is_public else 0.0

    @classmethod
    def from_env(cls, environ: Mapping[str, str], *, home: Path | None = None) -> Settings:
        """Read the settings from environment variables; `home` overrides `AIVISTA_HOME`.

        `AIVISTA_MODEL_<ROLE>` overrides a model, for example `AIVISTA_MODEL_IMAGE_PRO`. MCP servers are read from the
        file `AIVISTA_MCP_CONFIG`, else from `mcp.toml` in the home if it exists.

        Raises SettingsError, which names the invalid variable.
        """
        fields = _fields_in(cls, environ)
        fields["home"] = home = _home(fields.get("home"), home)
        mcp_config = fields.get("mcp_servers")
        fields["mcp_servers"] = read_mcp_config(mcp_config or home / MCP_CONFIG, is_required=mcp_config is not None)
        return cls(
            **fields
            | {
                "openai": _openai(environ, fields.get("provider")),
                "patiences": Patiences(**_fields_in(Patiences, environ)),
                "telemetry": _telemetry(environ),
                "model_overrides": {
                    name.removeprefix(MODEL_PREFIX).lower(): model
                    for name, model in environ.items()
                    if name.startswith(MODEL_PREFIX) and model
                },
                "mcp_inherited": {name: environ[name] for name in INHERITED if name in environ},
            }
        )


def variables() -> Iterator[tuple[Variable, object]]:
    """Yield every variable with its default (None for a required field), without those of `MODEL_PREFIX`."""
    for cls in (Settings, OpenAISettings, Patiences, TelemetrySettings):
        for name, field in cls.model_fields.items():
            for variable in variables_of(cls, name):
                yield variable, None if field.is_required() else field.get_default(call_default_factory=True)


def variables_of(cls: type[BaseModel], field: str) -> list[Variable]:
    """Return the variables of a field; the last one that is set counts."""
    extra: Any = cls.model_fields[field].json_schema_extra
    return list(extra["variables"]) if extra else []


def _fields_in(cls: type[BaseModel], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are set in the environment."""
    # Of the variables of one field the last that is set counts: each replaces the one before.
    read = ((name, variable.of(environ)) for name in cls.model_fields for variable in variables_of(cls, name))
    return {name: value for name, value in read if value is not None}


def _home(chosen: Path | None, given: Path | None) -> Path:
    name = "home" if given is not None else variables_of(Settings, "home")[0].name
    try:
        home = _path(name, str(given)) if given else chosen or user_data_path("aivista", appauthor=False).absolute()
    except RuntimeError:
        # A container may run under a user id without an account, and so without a home directory.
        raise SettingsError(name, "", "this user has no home folder; name a whole path") from None
    file = next((place for place in (home, *home.parents) if os.path.isfile(place)), None)
    if file is not None:
        raise SettingsError(name, home, f"{'it' if file == home else file} is a file; name a folder")
    return home


def _openai(environ: Mapping[str, str], chosen: ProviderChoice | None) -> OpenAISettings | None:
    def missing(field: str, why: str) -> SettingsError:
        return SettingsError(variables_of(OpenAISettings, field)[0].name, "", why)

    fields = _fields_in(OpenAISettings, environ)
    if "base_url" not in fields:
        if chosen in _WITH_OWN_SERVER:
            name = variables_of(Settings, "provider")[0].name
            raise missing("base_url", f"{name} is {chosen}, so say where its server is")
        return None
    if "text_model" not in fields:
        raise missing("text_model", f"say which model of {fields['base_url']} shall answer")
    if "image_base_url" in fields and "image_model" not in fields:
        raise missing("image_model", f"say which model of {fields['image_base_url']} shall paint")
    return OpenAISettings(**fields)


def _telemetry(environ: Mapping[str, str]) -> TelemetrySettings | None:
    """Return the telemetry settings; `AIVISTA_OTEL` turns spans off, or on for a collector on this machine."""
    is_on, disabled = (one.of(environ) for one in variables_of(Settings, "telemetry"))
    base, endpoint = (one.of(environ) for one in variables_of(TelemetrySettings, "endpoint"))
    fields = _fields_in(TelemetrySettings, environ)
    if is_on is False or str(disabled).lower() == "true" or not (is_on or base or endpoint):
        return None
    fields["endpoint"] = endpoint or f"{(base or 'http://localhost:4318').rstrip('/')}/v1/traces"
    return TelemetrySettings(**fields)
