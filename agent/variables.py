"""The operator's environment variables: what each is called, how it is written, what holds without it, what it is for.

`Settings.from_env` reads them from here, and the configuration reference is made from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from agent.errors import SettingsError

ProviderChoice = Literal["gemini", "openai", "sketch"]

CALLER_NAME = "[a-z][a-z0-9_-]{0,31}"
"""What the name of a token of the HTTP API looks like, as a pattern."""
MODEL_PREFIX = "AIVISTA_MODEL_"
"""What the variable of every role begins with; the rest is the role in capitals."""
_SHORTEST_TOKEN = 16
_MB = 1 << 20
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

T = TypeVar("T")
Read_co = TypeVar("Read_co", covariant=True)


@dataclass(frozen=True)
class Kind(Generic[Read_co]):
    """How a value is written, in words, and how it is read: `read` is given the variable's name and what it holds,
    stripped and not empty, and raises SettingsError where that cannot be read."""

    words: str
    read: Callable[[str, str], Read_co]


@dataclass(frozen=True)
class Variable(Generic[T]):
    """One environment variable. Unset, empty and blank are the same: then `default` holds, which `otherwise` says in
    words where the value itself does not."""

    name: str
    kind: Kind[T]
    default: T
    meaning: str
    otherwise: str = ""

    def of(self, environ: Mapping[str, str]) -> T:
        """Return the value in this environment. Raises SettingsError naming the variable."""
        raw = environ.get(self.name, "").strip()
        return self.kind.read(self.name, raw) if raw else self.default


def _text(_name: str, raw: str) -> str:
    return raw


def _path(_name: str, raw: str) -> Path:
    return Path(raw).expanduser().absolute()


def _number(name: str, raw: str, problem: str) -> float:
    try:
        return float(raw)
    except ValueError:
        raise SettingsError(name, raw, problem) from None


def _positive(name: str, raw: str) -> float:
    value = _number(name, raw, "it must be a number")
    if not 0 < value < float("inf"):
        raise SettingsError(name, raw, "it must be greater than zero")
    return value


def _seconds_or_none(name: str, raw: str) -> float:
    value = _number(name, raw, "it must be a number")
    if not 0 <= value < float("inf"):
        raise SettingsError(name, raw, "it must be zero or more")
    return value


def _count(name: str, raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and int(raw) > 0):
        raise SettingsError(name, raw, "it must be a whole number greater than zero")
    return int(raw)


def _bytes_of_megabytes(name: str, raw: str) -> int:
    return int(_positive(name, raw) * _MB)


def _dollars(name: str, raw: str) -> float:
    value = _number(name, raw, "it must be a number of US dollars, such as 2.50")
    if not 0 <= value < float("inf"):
        raise SettingsError(name, raw, "it must be zero or more")
    return value


def _switch(name: str, raw: str) -> bool:
    if raw.lower() not in (*_ON, *_OFF):
        raise SettingsError(name, raw, "it must be on or off")
    return raw.lower() in _ON


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


def _provider(name: str, raw: str) -> ProviderChoice:
    match raw.lower():
        case "gemini" | "openai" | "sketch" as chosen:
            return chosen
        case _:
            raise SettingsError(name, raw, "it must be gemini, openai or sketch")


def _tokens(name: str, raw: str) -> Mapping[str, SecretStr]:
    """Return the tokens by name. None of them is ever quoted."""
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


TEXT = Kind("text", _text)
PATH = Kind("a path; `~` is your own folder", _path)
SECONDS = Kind("seconds, more than 0", _positive)
SECONDS_OR_NONE = Kind("seconds, 0 or more", _seconds_or_none)
RATE = Kind("a number, more than 0", _positive)
COUNT = Kind("a whole number, more than 0", _count)
MEGABYTES = Kind("megabytes, more than 0", _bytes_of_megabytes)
DOLLARS = Kind("US dollars, 0 or more", _dollars)
SWITCH = Kind("`on` or `off`", _switch)
KEY = Kind("a key", _secret)
# What Google's keys may hold is Google's business, and the key is tried where it is typed in.
GOOGLE_KEY: Kind[SecretStr] = Kind("a key", lambda _name, raw: SecretStr(raw))
ADDRESS = Kind("an `http` or `https` address without name, password, query or fragment", _address)
PROVIDER = Kind("`gemini`, `openai` or `sketch`", _provider)
TOKENS = Kind("`name:token` pairs with commas between them; a token has 16 characters or more", _tokens)

HOME: Variable[Path | None] = Variable(
    "AIVISTA_HOME",
    PATH,
    None,
    "The folder for everything that is kept. The flag `--home` wins.",
    "the platform's user-data folder, on Linux `~/.local/share/aivista`",
)

GEMINI_KEY: Variable[SecretStr | None] = Variable(
    "GEMINI_API_KEY", GOOGLE_KEY, None, "Your Gemini key, for everybody who reaches the page and has typed in none."
)
GOOGLE_API_KEY: Variable[SecretStr | None] = Variable(
    "GOOGLE_API_KEY", GOOGLE_KEY, None, "The same; it wins over `GEMINI_API_KEY`, as in Google's SDK."
)
GEMINI_BASE_URL: Variable[str | None] = Variable(
    "GOOGLE_GEMINI_BASE_URL",
    TEXT,
    None,
    "Another address of the Gemini API, of a gateway for instance; `http` or `https`.",
    "Google's",
)
GEMINI_API_VERSION = Variable("AIVISTA_GEMINI_API_VERSION", TEXT, "v1beta", "The version of the Gemini API.")
CHOSEN_PROVIDER: Variable[ProviderChoice | None] = Variable(
    "AIVISTA_PROVIDER",
    PROVIDER,
    None,
    "Whose models work, whatever else is set.",
    "Gemini where there is a key, else your own server, else sketch",
)
CATALOGUE: Variable[Path | None] = Variable(
    "AIVISTA_CATALOGUE",
    PATH,
    None,
    "A file about models of your own, in the form of the built-in catalogue.",
)

OPENAI_BASE_URL: Variable[str | None] = Variable(
    "AIVISTA_OPENAI_BASE_URL", ADDRESS, None, "A server that speaks OpenAI's API; it takes Gemini's place."
)
OPENAI_TEXT_MODEL: Variable[str | None] = Variable(
    "AIVISTA_OPENAI_TEXT_MODEL", TEXT, None, "Its model for words; needed with the address."
)
OPENAI_KEY: Variable[SecretStr | None] = Variable(
    "AIVISTA_OPENAI_API_KEY", KEY, None, "Its key; it goes to no other server.", "no key is sent"
)
OPENAI_IMAGE_MODEL: Variable[str | None] = Variable(
    "AIVISTA_OPENAI_IMAGE_MODEL", TEXT, None, "Its model for pictures.", "the sketch model paints"
)
OPENAI_IMAGE_BASE_URL: Variable[str | None] = Variable(
    "AIVISTA_OPENAI_IMAGE_BASE_URL", ADDRESS, None, "Another server for pictures.", "the same server"
)
OPENAI_IMAGE_KEY: Variable[SecretStr | None] = Variable(
    "AIVISTA_OPENAI_IMAGE_API_KEY",
    KEY,
    None,
    "The key of the server for pictures.",
    "the other key, at the same server only",
)

TEXT_TIMEOUT_S = Variable(
    "AIVISTA_TEXT_TIMEOUT_S", SECONDS, 60.0, "How long to wait for the next piece of an answer in words."
)
IMAGE_TIMEOUT_S = Variable(
    "AIVISTA_IMAGE_TIMEOUT_S", SECONDS, 300.0, "How long to wait for the next piece of a picture."
)
TEXT_DEADLINE_S = Variable(
    "AIVISTA_TEXT_DEADLINE_S", SECONDS, 300.0, "How long an answer in words may take in all, even if it keeps coming."
)
IMAGE_DEADLINE_S = Variable(
    "AIVISTA_IMAGE_DEADLINE_S", SECONDS, 600.0, "How long a picture may take in all, even if it keeps coming."
)
PLANNER_TIMEOUT_S = Variable(
    "AIVISTA_PLANNER_TIMEOUT_S", SECONDS, 60.0, "How long planning may give no sign of life before the turn fails."
)
SEARCHER_TIMEOUT_S = Variable(
    "AIVISTA_SEARCHER_TIMEOUT_S", SECONDS, 60.0, "How long a search may give no sign of life before the turn fails."
)
RETRIEVER_TIMEOUT_S = Variable(
    "AIVISTA_RETRIEVER_TIMEOUT_S", SECONDS, 5.0, "How long a turn waits for styles; then it goes on without."
)
CRITIC_TIMEOUT_S = Variable(
    "AIVISTA_CRITIC_TIMEOUT_S",
    SECONDS,
    30.0,
    "How long a review may give no sign of life; then the picture passes unreviewed.",
)
RETRY_BUDGET_S = Variable(
    "AIVISTA_RETRY_BUDGET_S",
    SECONDS,
    60.0,
    "How long one call may wait in all to be tried again when the model is busy.",
)
SHUTDOWN_GRACE_S: Variable[float | None] = Variable(
    "AIVISTA_SHUTDOWN_GRACE_S",
    SECONDS_OR_NONE,
    None,
    "How long turns that are at work may go on when the studio is told to end; a second signal ends the wait. What is "
    "not done by then goes on at the next start.",
    "`20` where others come, `0` on your own machine",
)

CAP_DAY_USD: Variable[float | None] = Variable(
    "AIVISTA_CAP_DAY_USD",
    DOLLARS,
    None,
    "What a person may spend a day before being asked, for whoever has chosen nothing else on the page.",
    "no limit",
)
CAP_CONVERSATION_USD: Variable[float | None] = Variable(
    "AIVISTA_CAP_CONVERSATION_USD", DOLLARS, None, "The same for one conversation.", "no limit"
)
REUSE_PLANS = Variable(
    "AIVISTA_REUSE_PLANS",
    SWITCH,
    False,
    "The very same request to the model for words within an hour is answered from disk and not paid again.",
)

PUBLIC = Variable(
    "AIVISTA_PUBLIC",
    SWITCH,
    False,
    "Others than you reach the studio, by a proxy for instance: it then uses no MCP server of its own machine, and "
    "its HTTP API asks for a token. `--share`, and a `--host` other than this machine, say so by themselves.",
)
API_TOKENS: Variable[Mapping[str, SecretStr]] = Variable(
    "AIVISTA_API_TOKENS",
    TOKENS,
    {},
    "Tokens of the HTTP API, beside those made with `aivista token`.",
    "none is needed on your own machine",
)
API_REQUESTS_PER_MINUTE = Variable(
    "AIVISTA_API_REQUESTS_PER_MINUTE", RATE, 600.0, "How often the owner of a token may ask the HTTP API."
)
API_TURNS_PER_MINUTE = Variable(
    "AIVISTA_API_TURNS_PER_MINUTE", RATE, 60.0, "How often the owner of a token may begin a turn."
)
BEHIND_PROXY = Variable(
    "AIVISTA_BEHIND_PROXY",
    SWITCH,
    False,
    "Visitors come through a proxy of yours: its `X-Forwarded-For` says who asks, by which rates are counted. Only "
    "where nobody can come past it.",
)
MCP_CONFIG_FILE: Variable[Path | None] = Variable(
    "AIVISTA_MCP_CONFIG",
    PATH,
    None,
    "The file that lists MCP servers whose tools the agent may call.",
    "`mcp.toml` in the home folder, where there is one",
)

HISTORY_CACHE_TTL_S = Variable(
    "AIVISTA_HISTORY_CACHE_TTL_S", SECONDS, 7200.0, "How long an earlier picture is cached since it was last used."
)
HISTORY_CACHE_BYTES = Variable(
    "AIVISTA_HISTORY_CACHE_MB", MEGABYTES, 1024 * _MB, "How much room the cache of earlier pictures may take.", "`1024`"
)
TRACE_BYTES = Variable(
    "AIVISTA_TRACE_MB",
    MEGABYTES,
    200 * _MB,
    "How much room the traces of all turns may take; the oldest are let go.",
    "`200`",
)
VISITOR_BYTES = Variable(
    "AIVISTA_VISITOR_MB",
    MEGABYTES,
    1024 * _MB,
    "How much each visitor may keep, trash included: pictures, files and words. The operator may keep as much as the "
    "disk holds.",
    "`1024`",
)
VISITOR_PICTURES = Variable(
    "AIVISTA_VISITOR_PICTURES", COUNT, 2000, "How many pictures each visitor may keep, trash included."
)

OTEL: Variable[bool | None] = Variable(
    "AIVISTA_OTEL",
    SWITCH,
    None,
    "The trace as OpenTelemetry spans (needs the extra `opentelemetry`).",
    "on where an endpoint is set; `on` without one means a collector at `http://localhost:4318`",
)
OTEL_CONTENTS = Variable(
    "AIVISTA_OTEL_CONTENTS", SWITCH, False, "The words of prompts and answers go along with the spans."
)
OTEL_ENDPOINT: Variable[str | None] = Variable(
    "OTEL_EXPORTER_OTLP_ENDPOINT", TEXT, None, "The collector, as in OpenTelemetry's SDK; `/v1/traces` is added."
)
OTEL_TRACES_ENDPOINT: Variable[str | None] = Variable(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", TEXT, None, "The collector's whole address for traces; it wins."
)
OTEL_DISABLED: Variable[str | None] = Variable(
    "OTEL_SDK_DISABLED", TEXT, None, "`true` turns spans off, whatever else is set, as in OpenTelemetry's SDK."
)
OTEL_SERVICE_NAME = Variable("OTEL_SERVICE_NAME", TEXT, "aivista", "What the studio is called in its spans.")

AnyVariable: TypeAlias = Variable[Any]
VARIABLES: Mapping[str, tuple[AnyVariable, ...]] = {
    "What is kept": (HOME, HISTORY_CACHE_TTL_S, HISTORY_CACHE_BYTES, TRACE_BYTES, VISITOR_BYTES, VISITOR_PICTURES),
    "Gemini": (GEMINI_KEY, GOOGLE_API_KEY, GEMINI_BASE_URL, GEMINI_API_VERSION),
    "Models": (CHOSEN_PROVIDER, CATALOGUE),
    "A server that speaks OpenAI's API": (
        *(OPENAI_BASE_URL, OPENAI_TEXT_MODEL, OPENAI_KEY),
        *(OPENAI_IMAGE_MODEL, OPENAI_IMAGE_BASE_URL, OPENAI_IMAGE_KEY),
    ),
    "Money": (CAP_DAY_USD, CAP_CONVERSATION_USD, REUSE_PLANS),
    "Patience": (
        *(TEXT_TIMEOUT_S, IMAGE_TIMEOUT_S, TEXT_DEADLINE_S, IMAGE_DEADLINE_S),
        *(PLANNER_TIMEOUT_S, SEARCHER_TIMEOUT_S),
        *(RETRIEVER_TIMEOUT_S, CRITIC_TIMEOUT_S, RETRY_BUDGET_S, SHUTDOWN_GRACE_S),
    ),
    "Who reaches the studio": (
        PUBLIC,
        API_TOKENS,
        API_REQUESTS_PER_MINUTE,
        API_TURNS_PER_MINUTE,
        BEHIND_PROXY,
        MCP_CONFIG_FILE,
    ),
    "OpenTelemetry": (
        *(OTEL, OTEL_CONTENTS, OTEL_ENDPOINT, OTEL_TRACES_ENDPOINT),
        *(OTEL_DISABLED, OTEL_SERVICE_NAME),
    ),
}
"""Every variable by what it is about, but for those of `MODEL_PREFIX`, of which there is one for each role."""
