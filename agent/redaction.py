"""Redaction of secrets in text, JSON and log records: known values, and everything that looks like a secret.

It prefers to hide too much rather than too little. A secret becomes `[secret]`; redaction is idempotent.
"""

from __future__ import annotations

import json
import logging
import os
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from pydantic import JsonValue, SecretStr

from agent.mcp_config import secrets_of_servers
from agent.settings import Settings

HIDDEN = "[secret]"
TOO_DEEP = "[deeper levels left out]"
_MAX_DEPTH = 60
# A shorter secret is hidden only as a whole word: a local server accepts any word as a key.
_SURELY_A_SECRET = 6
# Characters that are not escaped in the path of a URL (RFC 3986, 3.3).
_PATH = "!$&'()*+,/:;=@~"

# The start of a word, also after `%3D` in a URL and after `\n` or `\u2014` in a quoted text.
_START = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt])|(?<=\\u[0-9a-f]{4}))"
_SHAPES = re.compile(
    r"AIza[\w-]{10,}|AQ\.[\w-]{16,}|ya29\.[\w-]{10,}|auth_tokens/[\w-]{8,}|eyJ[\w-]{10,512}\.[\w-]{10,4096}\.[\w-]{8,4096}"
    rf"|{_START}(?:(?:sk|gsk|pk|rk)-[\w-]{{8,}}|hf_\w{{20,}}|gh[opsru]_\w{{20,}})",
    re.ASCII,
)
_NOT_HIDDEN_YET = r"(?!\[secret\])"
_CHARACTER = r"[^\s\"'\\,;&<>]"
_TOKEN = rf"{_NOT_HIDDEN_YET}{_CHARACTER}+"
# `Bearer` as in a header; in lower case it is an ordinary word, so the text after it must be long.
_BEARER = re.compile(
    rf"(\b(?:Bearer|BEARER)(?:\s|%20|\+)++){_TOKEN}|(\bbearer(?:\s|%20|\+)++){_NOT_HIDDEN_YET}{_CHARACTER}{{16,}}"
)
# `name: value`, `name=value`, `"name": "value"` and `(b'name', b'value')`, quotes perhaps escaped.
_QUOTE = r"(?:b?\\*+[\"'])?+"
_BETWEEN = rf"(?:\\*+[\"']?\s*+[:=]\s*+{_QUOTE}|\\*+[\"']\s*+,\s*+{_QUOTE})"
_NAMED = re.compile(
    r"((?:x-goog-api-key|x-api-key|api[_-]?key|access[_-]?token|refresh[_-]?token|client[_-]?secret|password|passwd"
    rf"|authorization){_BETWEEN}(?:(?:bearer|basic|digest|token|apikey)\s++)?+){_TOKEN}",
    re.IGNORECASE,
)
_COOKIE = re.compile(rf"((?:set-)?cookie{_BETWEEN}){_NOT_HIDDEN_YET}[^\r\n\"'\\]+", re.IGNORECASE)
_QUERY = re.compile(
    r"((?:[?&;]|%3F|%26)(?:[\w-]{0,40}(?:key|token|secret|password|signature)|sig)(?:=|%3D))"
    rf"{_NOT_HIDDEN_YET}(?:(?!%26|%23)[^\s\"'\\<>&;#\[\]])+",
    re.IGNORECASE,
)
_USER = re.compile(r"(?<=://)(?:[^\s/?#@:\"'<>\\]*:[^\s/\"'<>\\]*|[^\s/?#@:\"'<>\\]+)@")
_GITHUB = ("gho_", "ghp_", "ghr_", "ghs_", "ghu_")
# Each rule: lower-case words of which every match contains one (most texts contain none), pattern, replacement.
_RULES = (
    (("aiza", "aq.", "ya29.", "auth_tokens/", "eyj", "sk-", "pk-", "rk-", "hf_", *_GITHUB), _SHAPES, HIDDEN),
    (("bearer",), _BEARER, rf"\g<1>\g<2>{HIDDEN}"),
    (("api", "token", "secret", "passw", "authorization"), _NAMED, rf"\g<1>{HIDDEN}"),
    (("cookie",), _COOKIE, rf"\g<1>{HIDDEN}"),
    (("=", "%3d"), _QUERY, rf"\g<1>{HIDDEN}"),
    (("://",), _USER, f"{HIDDEN}@"),
)
# In a short text one search for all the words is fastest; in a long text a search for each word is faster.
_HINT = re.compile("|".join(re.escape(hint) for hints, _, _ in _RULES for hint in hints))
_SHORT = 256
_SECRET_NAMES = re.compile(
    r"(?:[\w.-]*[_.-])?(?:api[_-]?key|access[_-]?token|refresh[_-]?token|client[_-]?secret|password|passwd|secret"
    r"|authorization|(?:set-)?cookie)|x-goog-api-key|apikey|token",
    re.IGNORECASE,
)
# Any user's home directory at the start of a path, but not inside a URL or a longer path.
_HOMES = re.compile(
    r"(?:(?<![\w.~/\\%-])|(?<=file://))(?:/home|/Users)/[^/\s\"'<>|:*?\\]{1,64}(?=[/\s\"'<>|:,;)\]}]|$)"
    r"|(?<![A-Za-z])[A-Za-z]:(?:\\{1,2}|/)Users(?:\\{1,2}|/)[^\\/:*?\"'<>|\r\n]{1,64}(?=[\\/]|[\"'\s]|$)"
)


def without_secrets(text: str, secrets: Sequence[SecretStr] = ()) -> str:
    """Return the text without these values, also in URL-encoded and quoted form, and without anything secret-looking.

    That is a key, a token, a header that contains one, or the user name and password of a URL."""
    return _hidden(text, _spellings(secrets))


def object_without_secrets(value: Mapping[str, JsonValue], secrets: Sequence[SecretStr] = ()) -> dict[str, JsonValue]:
    """Return the object with secrets hidden in keys and values at every depth.

    A string under a name like `api_key` or `authorization` is always hidden. Keys that become equal get a number.
    Levels deeper than 60 are left out.
    """
    return Redactor(secrets).hidden(value)


class Redactor:
    """Hides the same secrets in many values. It caches every text, so use it only for one task and then drop it."""

    def __init__(self, secrets: Sequence[SecretStr] = ()) -> None:
        self._spelled = _spellings(secrets)
        self._known: dict[str, str] = {}

    def hidden(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return the object as `object_without_secrets` does."""
        return _hidden_in_object(value, self, 0)

    def text(self, text: str) -> str:
        """Return the text as `without_secrets` does."""
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = _hidden(text, self._spelled)
        return found


def without_homes(text: str) -> str:
    """Return the text with home directories shortened to `~`: this process's own, and any that looks like one."""
    if "/" not in text and "\\" not in text:
        return text  # no path, as most of the thousands of texts in a report
    home = os.path.expanduser("~").rstrip("/\\")
    if len(home) > 1:
        text = re.sub(rf"(?:(?<![\w.~/\\%-])|(?<=file://)){re.escape(home)}(?![\w.-])", "~", text)
    return _HOMES.sub("~", text)


def secrets_of(settings: Settings) -> tuple[SecretStr, ...]:
    """Return every secret in the operator's settings."""
    keys = [settings.gemini_api_key]
    if settings.openai is not None:
        keys += [settings.openai.api_key, settings.openai.image_api_key]
    tokens = settings.api_tokens.values()
    return (*(key for key in keys if key is not None), *secrets_of_servers(settings.mcp_servers), *tokens)


class RedactingFilter(logging.Filter):
    """Hides secrets in every log record: message, arguments, traceback and stack. It drops no record.

    `secrets` is called for each record and returns the currently known values; it must not log anything itself.
    """

    def __init__(self, secrets: Callable[[], Iterable[SecretStr]] = tuple) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Redact the record and return True."""
        secrets = tuple(self._secrets())
        # The arguments first, one by one: some formatters, such as a web server's, read them directly.
        record.args = _clean_arguments(record.args, secrets)
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError, OverflowError):
            # The message cannot be formatted; logging would print the unredacted parts with an error.
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = message, None
        hidden = without_secrets(message, secrets)
        if hidden != message:
            record.msg, record.args = hidden, None
        if record.exc_info and not record.exc_text:
            record.exc_text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        if record.exc_text:
            hidden = without_secrets(record.exc_text, secrets)
            if hidden != record.exc_text:
                # `exc_info` is removed because third-party handlers format the traceback again from the exception.
                record.exc_text, record.exc_info = hidden, None
        if record.stack_info:
            record.stack_info = without_secrets(record.stack_info, secrets)
        return True


def _hidden(text: str, spellings: Sequence[str]) -> str:
    for value in spellings:
        if value in text:
            # Parts that are already hidden are skipped: a short key may be a part of the word `[secret]`.
            text = HIDDEN.join(_without(value, part) for part in text.split(HIDDEN))
    small = text.lower()
    if len(small) < _SHORT and not _HINT.search(small):
        return text
    for hints, pattern, replacement in _RULES:
        if any(hint in small for hint in hints):
            text = pattern.sub(replacement, text)
    return text


def _without(value: str, text: str) -> str:
    if len(value) >= _SURELY_A_SECRET:
        return text.replace(value, HIDDEN)
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)


def _spellings(secrets: Sequence[SecretStr]) -> list[str]:
    """Return the values in every form that URLs, JSON and quoted text use, the longest first."""
    found: set[str] = set()
    for secret in secrets:
        for value in {secret.get_secret_value(), secret.get_secret_value().strip()}:
            found |= {value, quote(value, safe=""), quote(value), quote(value, safe=_PATH), quote_plus(value)}
            found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
            found.add(repr(value.encode())[2:-1])
    return sorted(found - {""}, key=lambda value: (-len(value), value))


def _hidden_in(value: JsonValue, redactor: Redactor, depth: int) -> JsonValue:
    if isinstance(value, str):
        return redactor.text(value)
    if depth >= _MAX_DEPTH and isinstance(value, dict | list):
        return TOO_DEEP
    if isinstance(value, list):
        return [_hidden_in(one, redactor, depth + 1) for one in value]
    return _hidden_in_object(value, redactor, depth) if isinstance(value, dict) else value


def _hidden_in_object(value: Mapping[str, JsonValue], redactor: Redactor, depth: int) -> dict[str, JsonValue]:
    hidden: dict[str, JsonValue] = {}
    for key, one in value.items():
        name = _free_name(redactor.text(key), hidden)
        is_secret = isinstance(one, str) and one and _SECRET_NAMES.fullmatch(key)
        hidden[name] = HIDDEN if is_secret else _hidden_in(one, redactor, depth + 1)
    return hidden


def _free_name(name: str, taken: Mapping[str, JsonValue]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _clean_arguments(arguments: Any, secrets: Sequence[SecretStr]) -> Any:
    if isinstance(arguments, tuple):
        return tuple(_clean_argument(one, secrets) for one in arguments)
    if isinstance(arguments, Mapping):
        return {name: _clean_argument(one, secrets) for name, one in arguments.items()}
    return arguments


def _clean_argument(argument: object, secrets: Sequence[SecretStr]) -> object:
    """Return the argument unchanged unless its `str` or `repr` contains a secret or fails."""
    if argument is None or isinstance(argument, bool | int | float):
        return argument
    try:
        text, shown = str(argument), repr(argument)
    # logging catches errors of a formatter, but not those of a filter: they would reach whoever logs.
    except Exception:
        return f"<{type(argument).__name__}>"
    hidden = without_secrets(text, secrets)
    return argument if hidden == text and without_secrets(shown, secrets) == shown else hidden
