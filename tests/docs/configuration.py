"""The configuration reference as a page: every variable from where it is read, every command as it explains itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent import ModelRole, Variable, variables
from tests.adapters.models import load_catalogue, override_variable
from tests.page import run_command

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
COMMANDS = (
    *((), ("check",), ("gc",), ("token",), ("mcp",)),
    *(("space",), ("space", "build"), ("space", "check"), ("space", "push")),
)
# The commands wrap what they say to the terminal's width.
_COLUMNS = "100"

_PAGE = """# Configuration

Made from the code by `{command}`; a test compares. The studio reads its environment once, when it starts. A variable
that is unset, empty or blank leaves things as they are; one that cannot be read ends the start with a sentence that
names it, and a secret is never quoted there. For `on` and `off` there may stand `1`, `true`, `yes` and `0`, `false`,
`no`. What each person chooses for themselves (models, review, caps, language, theme) stands on the page, not here.

A flag wins over its variable. From Python the same is `Settings.from_env(os.environ)`, or `Settings(home=…, …)` with
the fields of [the class](python-api.md#settings).

## Variables

{variables}

### Flags that a variable can stand for

| variable | flag |
| --- | --- |
{flags}

Proxies, certificates and the like are read by the libraries that use them, by the names that these give
(`HTTPS_PROXY`, `SSL_CERT_FILE`, `OTEL_EXPORTER_OTLP_HEADERS`). What a Space is told is in [space.md](space.md); a
Spacefile may not set what it says itself (`AIVISTA_HOME`, `AIVISTA_PUBLIC`, `AIVISTA_CAP_…`).

## Commands

`python -m webui` is the same as `aivista`.

{commands}
"""
# The command reads these by itself; what they mean is told with the flag.
_FLAGS = {
    "AIVISTA_PASSWORD": "--password",
    "AIVISTA_VISITORS_SPEND": "--visitors-spend",
    "AIVISTA_DOMAINS": "--domain",
    "AIVISTA_ROOT_PATH": "--root-path",
    "AIVISTA_SINGLE_USER": "--single-user",
}
_HEAD = ("| variable | value | otherwise | what it is |", "| --- | --- | --- | --- |")


def page() -> str:
    """Return the whole page."""
    flags = "\n".join(f"| `{name}` | `{flag}` |" for name, flag in _FLAGS.items())
    variables, commands = "\n\n".join(_sections()), "\n\n".join(_helps())
    return _PAGE.format(command="python -m tests.docs", variables=variables, flags=flags, commands=commands)


HEADINGS = (
    *("What is kept", "Gemini", "Models", "A server that speaks OpenAI's API", "Money", "Time limits"),
    *("Who reaches the studio", "OpenTelemetry"),
)


def _sections() -> Iterator[str]:
    for heading in HEADINGS:
        rows = [_row(one, default) for one, default in variables() if one.group == heading]
        if heading == "Models":
            rows += _roles()
        yield "\n".join((f"### {heading}\n", *_HEAD, *rows))


def _row(one: Variable, default: object) -> str:
    return f"| `{one.name}` | {one.kind.words} | {one.otherwise or said(default, one.kind.unit)} | {one.meaning} |"


def said(default: object, unit: int = 1) -> str:
    """Return what holds without a variable."""
    match default:
        case None:
            return "none"
        case bool():
            return "`on`" if default else "`off`"
        case float():
            return f"`{default:g}`"
        case int():
            return f"`{default // unit}`"
        case _:
            return f"`{default}`"


def _roles() -> Iterator[str]:
    catalogue = load_catalogue()
    for role in ModelRole:
        model = catalogue.model(role, "gemini")
        yield f"| `{override_variable(role)}` | a model's name | `{model.id}` | {_ROLES[role]} |"


_ROLES = {
    ModelRole.FLASH: "The model for words: plans, answers, reviews.",
    ModelRole.THINKING: "The model for words when “Thinking” is chosen.",
    ModelRole.IMAGE_FLASH: "The quick model for pictures.",
    ModelRole.IMAGE_PRO: "The best model for pictures.",
    ModelRole.EMBEDDING: "The model that finds styles and pictures by meaning.",
}


def _helps() -> Iterator[str]:
    for words in COMMANDS:
        said = run_command(*words, "--help", COLUMNS=_COLUMNS)
        if said.returncode != 0:
            raise ValueError(f"aivista {' '.join(words)} --help failed: {said.stderr}")
        yield f"### `{' '.join(('aivista', *words))}`\n\n```\n{said.stdout.strip()}\n```"
