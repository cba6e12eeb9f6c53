"""The operator's configuration file of MCP servers, validated before any server is started or contacted.

The file has no environment variable substitution: all values are used literally.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    SecretStr,
    StrictBool,
    ValidationError,
    field_validator,
    model_validator,
)

from agent.errors import SettingsError
from agent.messages import Value

MCP_CONFIG = "mcp.toml"
CALL_S = 30.0

# The variables that a program needs to be found and to find its user's directories; it inherits no others.
INHERITED = ("PATH", "HOME", "SYSTEMROOT", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Headers that the HTTP client itself must set, for the connection and for the limits on responses.
_OUR_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "te"})
_SECRET_NAME = re.compile(r"key|token|secret|passw|auth|credential|cookie|(^|_)(pat|pwd|dsn)(_|$)", re.IGNORECASE)
_SECRET_LENGTH = 12
_SHOWN_CHARACTERS = 80


def _legible(value: SecretStr) -> SecretStr:
    if "\0" in value.get_secret_value():
        raise ValueError("it holds a character that no variable can have")
    return value


def _sendable(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("it holds a character that no header can have")
    if "${" in text:
        raise ValueError("nothing is filled in here: write the value itself")
    return value


class _Listed(Value):
    trusted: StrictBool = False
    tools: tuple[str, ...] | None = None
    timeout_s: float = Field(default=CALL_S, gt=0, le=CALL_S, strict=True)


class StdioServer(_Listed):
    """A program on this machine that speaks MCP over stdin and stdout.

    Its environment is `env` and the variables in `INHERITED`. `tools` are the tools to offer (None means all). Tools of
    a `trusted` server that declare themselves read-only need no consent. A call may take `timeout_s` seconds.
    """

    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    env: Mapping[str, Annotated[SecretStr, AfterValidator(_legible)]] = Field(default_factory=dict)

    @field_validator("env")
    @classmethod
    def _names_of_variables(cls, env: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        for name in env:
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable")
        return env

    @property
    def secrets(self) -> tuple[SecretStr, ...]:
        """The values that must never be shown: those with a name or a value that looks like a secret."""
        return tuple(value for name, value in self.env.items() if _is_secret(name, value.get_secret_value()))


class HttpServer(_Listed):
    """A server with MCP's streamable HTTP transport; see `StdioServer` for the common fields.

    Only with `allow_local` may the URL point to this machine or its network, and then it must be a numeric address.
    """

    url: str
    headers: Mapping[str, Annotated[SecretStr, AfterValidator(_sendable)]] = Field(default_factory=dict)
    allow_local: StrictBool = False

    @field_validator("headers")
    @classmethod
    def _names_of_headers(cls, headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
        for name in headers:
            if not _HEADER.fullmatch(name) or name.lower() in _OUR_HEADERS:
                raise ValueError(f"{name!r} is no header that can be set")
        return headers

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if "${" in url:
            raise ValueError("nothing is filled in here: write the address itself")
        parts = urlsplit(url)
        if "@" in parts.netloc:
            raise ValueError("it must hold no name or password; give those in headers")
        has_place = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        if not has_place or parts.fragment or not url.isprintable() or " " in url:
            raise ValueError("it must be an address like https://example.org/mcp")
        # The only host name for this machine: it is replaced here, so that no resolver can give another address.
        if parts.hostname == "localhost":
            return parts._replace(netloc=parts.netloc.lower().replace("localhost", "127.0.0.1", 1)).geturl()
        return url

    @model_validator(mode="after")
    def _local_when_allowed(self) -> HttpServer:
        if self.allow_local and self.local_address is None:
            raise ValueError("allow_local is for an address like http://127.0.0.1:8000/mcp")
        if self.local_address is not None and not self.allow_local:
            raise ValueError("url is an address of this machine or its network; say allow_local = true for that")
        return self

    @property
    def local_address(self) -> str | None:
        """The non-public address that the studio may connect to, None if the URL has none."""
        try:
            address = ipaddress.ip_address((urlsplit(self.url).hostname or "").strip("[]"))
        except ValueError:
            return None
        # Link-local addresses are excluded: cloud providers serve the credentials of their machines there.
        is_local = (address.is_loopback or address.is_private) and not address.is_link_local
        return str(address) if is_local and not address.is_unspecified else None

    @property
    def secrets(self) -> tuple[SecretStr, ...]:
        """The values that must never be shown: secret-looking headers, and the bare secret of one like `Bearer abc`.

        A header looks secret by its name or by its value."""
        found: list[SecretStr] = []
        for name, value in self.headers.items():
            text = value.get_secret_value()
            if _is_secret(name, text):
                found += [value, SecretStr(text.rpartition(" ")[2])]
        return tuple(found)


McpServer: TypeAlias = StdioServer | HttpServer

_KINDS: dict[str, type[StdioServer] | type[HttpServer]] = {"command": StdioServer, "url": HttpServer}


def read_mcp_config(path: Path, *, is_required: bool = False) -> dict[str, McpServer]:
    """Return the servers of a file by name, in its order; empty when the file does not exist and is not required.

    Raises SettingsError with one sentence that names the file and the field.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if not is_required:
            return {}
        raise SettingsError("AIVISTA_MCP_CONFIG", path, "there is no such file") from None
    except OSError as error:
        raise SettingsError("AIVISTA_MCP_CONFIG", path, f"it cannot be read ({error.strerror or error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError("AIVISTA_MCP_CONFIG", path, f"it is not TOML ({error})") from None
    listed = data.get("servers", {})
    if set(data) - {"servers"} or not isinstance(listed, dict):
        raise SettingsError(path.name, ", ".join(data), "it must hold [servers.NAME] tables and nothing else")
    servers = {name: _server(path.name, name, row) for name, row in listed.items()}
    _refuse_names_alike(path.name, servers)
    return servers


def secrets_of_servers(servers: Mapping[str, McpServer]) -> Iterator[SecretStr]:
    """Yield the values of the servers' variables and headers that must never be shown."""
    for server in servers.values():
        yield from server.secrets


def _server(file: str, name: str, row: Any) -> McpServer:
    place = f"{file}, servers.{name[:_SHOWN_CHARACTERS]}"
    if not _NAME.fullmatch(name):
        raise SettingsError(place, name, "a name is a letter, then at most 31 letters, digits, dashes and underscores")
    if not isinstance(row, dict):
        raise SettingsError(place, row, "it must be a table")
    kinds = [kind for kind in _KINDS if kind in row]
    if len(kinds) != 1:
        raise SettingsError(place, ", ".join(row), "it must have either a command or a url")
    try:
        return _KINDS[kinds[0]].model_validate(row)
    except ValidationError as error:
        raise _settings_error(place, error) from None


def _settings_error(place: str, error: ValidationError) -> SettingsError:
    first = error.errors(include_url=False)[0]
    where = [place, *(str(one) for one in first["loc"])]
    # Any value under these fields may be a secret, even an invalid one.
    is_secret = any(part in ("env", "headers") for part in first["loc"]) or "@" in str(first["input"])
    given = "…" if is_secret or isinstance(first["input"], dict | BaseModel) else str(first["input"])
    match first["type"]:
        case "extra_forbidden":
            problem = "there is no such field"
        case "missing":
            problem = "it is missing"
        case _:
            problem = first["msg"].removeprefix("Value error, ")
    return SettingsError(".".join(where), given[:_SHOWN_CHARACTERS], problem[:1].lower() + problem[1:])


def _refuse_names_alike(file: str, servers: Mapping[str, McpServer]) -> None:
    """Reject server names that could give two tools the same name: `a` with `b_c`, and `a_b` with `c`."""
    for one, other in permutations(servers, 2):
        first, second = (name.lower().replace("-", "_") for name in (one, other))
        if first == second or second.startswith(f"{first}_"):
            raise SettingsError(
                f"{file}, servers.{other}", other, f"its name begins like that of {one}; choose another"
            )


def _is_secret(name: str, value: str) -> bool:
    if _SECRET_NAME.search(name):
        return bool(value)
    has_both = any(one.isdigit() for one in value) and any(one.isalpha() for one in value)
    is_place = value.startswith(("/", "~", "http://", "https://")) and "@" not in value
    return len(value) >= _SECRET_LENGTH and has_both and not is_place and " " not in value
