"""The Spacefile: the one description of the deployment, parsed strictly."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from webui.cli.parser import CommandFailed
from webui.deployment import CAP_TURN_USD, TURNS_AT_ONCE, TURNS_PER_VISITOR

SPACEFILE = "Spacefile"

Colour = Literal["red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"]

# Keys with which a studio spends money. Where visitors pay, none of these is put into the Space.
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "AIVISTA_OPENAI_API_KEY", "AIVISTA_OPENAI_IMAGE_API_KEY")

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")
# Set by the Space itself, or elsewhere in the Spacefile.
_TAKEN = re.compile(r"(SPACE_\w+|SYSTEM|PORT|HOME|PATH|PYTHON\w*|GRADIO_\w+|AIVISTA_(HOME|PUBLIC|CAP_\w+))")
_NO_PACKAGE = "must hold names of packages, and {!r} is none"
_NO_HOST = "must hold host names such as studio.example.org, and {!r} is none"
_SENTENCES = {"extra_forbidden": "is not a field of a Spacefile", "missing": "is missing"}


def _each(pattern: str, otherwise: str) -> AfterValidator:
    """Require each item of a list to match the pattern. `otherwise` is the sentence for one that does not."""

    def check(values: list[str]) -> list[str]:
        for value in values:
            if not re.fullmatch(pattern, value):
                raise ValueError(otherwise.format(value))
        return values

    return AfterValidator(check)


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class RunsOn(_Table):
    """What the Space runs on. `python` is `3.x` or `3.x.y`, from 3.11 to 3.14; `packages` are Debian's, `extras` the
    project's own.

    GPU hardware is not offered: the studio computes nothing there.
    """

    sdk: Literal["docker", "gradio"] = "docker"
    python: str = Field(default="3.11", pattern=r"^3\.1[1-4](\.[0-9]{1,2})?$")
    hardware: Literal["cpu-basic", "cpu-upgrade"] = "cpu-basic"
    sleep_after_s: int | None = Field(default=None, ge=60)
    packages: Annotated[list[str], _each(r"[a-z0-9][a-z0-9+.-]+", _NO_PACKAGE)] = Field(default_factory=list)
    extras: Annotated[list[str], _each(r"[a-z0-9][a-z0-9_-]*", _NO_PACKAGE)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _sleeps_where_it_may(self) -> Self:
        if self.sleep_after_s is not None and self.hardware == "cpu-basic":
            raise ValueError("cannot set sleep_after_s on cpu-basic, which sleeps when Hugging Face says so")
        return self


class Storage(_Table):
    """Where the Space stores its data: a Storage Bucket of the Space's owner, at /data; without one, nowhere."""

    bucket: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$")


class Pays(_Table):
    """Whose key is used. With `owner`, it is the Space's: up to `cap_day_usd` for all visitors together, and up to
    `cap_turn_usd` for each turn; visitors may also bring their own."""

    who: Literal["visitors", "owner"] = "visitors"
    cap_day_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, strict=False)
    cap_turn_usd: float = Field(default=CAP_TURN_USD, gt=0, allow_inf_nan=False, strict=False)

    @model_validator(mode="after")
    def _has_a_cap(self) -> Self:
        if self.who == "owner" and self.cap_day_usd is None:
            raise ValueError("needs cap_day_usd where the owner pays")
        if self.who == "visitors" and self.cap_day_usd is not None:
            raise ValueError("has a cap_day_usd, though visitors pay for themselves")
        if self.cap_day_usd is not None and self.cap_turn_usd > self.cap_day_usd:
            raise ValueError("has a cap_turn_usd above its cap_day_usd")
        return self


class Limits(_Table):
    """Limits: concurrent turns, and turns of one visitor within ten minutes."""

    turns_at_once: int = Field(default=TURNS_AT_ONCE, ge=1, le=64)
    turns_per_visitor: int = Field(default=TURNS_PER_VISITOR, ge=1, le=1000)


class Spacefile(_Table):
    """The whole description. Secrets are named without their values; variables are public, with theirs.

    With `sign_in`, visitors may sign in with Hugging Face, and find their data in every browser.
    """

    title: str = Field(min_length=1, max_length=100)
    emoji: str = Field(min_length=1, max_length=8)
    color_from: Colour
    color_to: Colour
    short_description: str = Field(default="", max_length=60)
    license: str = Field(default="apache-2.0", pattern=r"^[a-z0-9.-]+$")
    private: bool = False
    sign_in: bool = False
    domains: Annotated[list[str], _each(r"(?!-)[a-z0-9-]+(\.[a-z0-9-]+)+", _NO_HOST)] = Field(default_factory=list)
    secrets: list[str] = Field(default_factory=list)
    variables: dict[str, str] = Field(default_factory=dict)
    runs_on: RunsOn = RunsOn()
    storage: Storage = Storage()
    pays: Pays = Pays()
    limits: Limits = Limits()

    @field_validator("title", "short_description")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.isprintable() or value != value.strip():
            raise ValueError("must be one line without spaces at its ends")
        return value

    @field_validator("emoji")
    @classmethod
    def _an_emoji(cls, value: str) -> str:
        if any(sign.isalnum() or sign.isspace() or ord(sign) < 0x200D for sign in value):
            raise ValueError("must be an emoji")
        return value

    @field_validator("secrets")
    @classmethod
    def _secret_names(cls, value: list[str]) -> list[str]:
        for name in value:
            # Not quoted: it may be the secret itself.
            if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
                raise ValueError("must hold names of environment variables that are free, never values")
        if len(set(value)) < len(value):
            raise ValueError("names one twice")
        return value

    @field_validator("variables")
    @classmethod
    def _public_variables(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
                raise ValueError(f"cannot set {name[:40]!r}")
            if _SECRET_NAME.search(name):
                raise ValueError(f"are public, so {name} belongs to the secrets, by its name alone")
            if not text.isprintable():
                raise ValueError(f"give {name} more than one line")
        return value

    @model_validator(mode="after")
    def _keys_for_who_pays(self) -> Self:
        keys = [name for name in self.secrets if name in KEYS]
        if self.pays.who == "visitors" and keys:
            raise ValueError(f"secrets: {keys[0]} would be of no use, because pays.who is visitors")
        if self.pays.who == "owner" and not keys:
            raise ValueError(f"secrets: one of {', '.join(KEYS[:3])} is needed, because pays.who is owner")
        if both := set(self.secrets) & set(self.variables):
            raise ValueError(f"variables: {min(both)} is a secret as well")
        return self


def read_spacefile(path: Path) -> Spacefile:
    """Return the Spacefile. Raises CommandFailed naming the invalid field."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandFailed(f"there is no {path.name} in {path.parent}; run this in a clone of the project.") from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read ({error.strerror or error}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{path.name} is not TOML ({error}).") from None
    return spacefile_of(table)


def spacefile_of(table: Mapping[str, object]) -> Spacefile:
    """Return the Spacefile of a table. Raises CommandFailed naming the invalid field."""
    try:
        return Spacefile.model_validate(dict(table))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        sentence = _SENTENCES.get(first["type"]) or first["msg"].removeprefix("Value error, ")
        sentence = re.sub("^(Input|String|Value) should", "must", sentence)
        raise CommandFailed(f"Spacefile: {f'{field} ' if field else ''}{sentence}.") from None
