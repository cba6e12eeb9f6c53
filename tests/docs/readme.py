"""The table of settings in both READMEs: every flag, and every variable from where it is read.

All variables are shown but those that begin with `OTEL_`: they belong to OpenTelemetry's SDK. What no field says (the
flags, the words in Chinese) stands in `readme.toml` beside this file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agent import ModelRole, Variable, variables
from tests.adapters.models import override_variable
from tests.docs.configuration import HEADINGS, said

_ROOT = Path(__file__).parents[2]
_BEGIN, _END = "<!-- The settings, made by `python -m tests.docs`. -->", "<!-- The end of the settings. -->"
# The command reads these by a flag as well; the other flags have no field.
_FLAGS = {"AIVISTA_HOME": "--home", "AIVISTA_API_TOKENS": "--api-token"}
_LINKS = {
    "built-in catalogue": "agent/providers/catalogue.toml",
    "MCP servers": "docs/mcp.md",
    "HTTP API": "docs/api.md",
}


class Readme(NamedTuple):
    """One edition of the README, in the language that `readme.toml` names it by."""

    PAGE: Path
    language: str
    head: str
    comma: str
    words: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

    def page(self) -> str:
        """Return the whole README as it stands, with the table made anew."""
        text = self.PAGE.read_text("utf-8")
        table = "\n".join((self.head, "| --- | --- | --- | --- |", *self._rows()))
        made, count = re.subn(f"{_BEGIN}.*?{_END}", lambda _: f"{_BEGIN}\n\n{table}\n\n{_END}", text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"{self.PAGE.name} must hold {_BEGIN} … {_END} once")
        return made

    def _rows(self) -> Iterator[str]:
        for row in self.words["flags"]:
            yield self._row(row["flags"], [row["variable"]] if "variable" in row else [], *row[self.language])
        shown = [(one, default) for one, default in variables() if not one.name.startswith("OTEL_")]
        for heading in HEADINGS:
            for one, default in shown:
                if one.group == heading:
                    flag = [_FLAGS[one.name]] if one.name in _FLAGS else []
                    yield self._row(flag, [one.name], *self._told(one, said(default, one.kind.unit)))
            if heading == "Models":
                names = [override_variable(role) for role in ModelRole]
                first = names[0].rpartition("_")[0]
                yield self._row([], [names[0], *("…" + one.removeprefix(first) for one in names[1:])], *self._models())
        self._refuse_stale({one.name for one, _ in shown})

    def _row(self, flags: list[str], names: list[str], meaning: str, otherwise: str) -> str:
        cells = (self.comma.join(f"`{one}`" for one in cell) for cell in (flags, names))
        return re.sub(" +", " ", f"| {' | '.join((*cells, meaning, otherwise))} |")

    def _models(self) -> list[str]:
        told: list[str] = self.words["models"][self.language]
        return told

    def _told(self, one: Variable, default: str) -> tuple[str, str]:
        """Return what the variable is, and what holds without it."""
        unit = next((unit for ending, unit in {"_S": "s", "_MB": "MB"}.items() if one.name.endswith(ending)), "")
        otherwise = one.otherwise or f"{default} {unit}".strip()
        if self.language == "en":
            meaning = one.meaning
            for words, page in _LINKS.items():
                meaning = meaning.replace(words, f"[{words}]({page})")
            return meaning, otherwise
        is_a_value = not one.otherwise and default.startswith("`")
        return self._word(self.language, one.name), otherwise if is_a_value else self._word("otherwise", otherwise)

    def _word(self, table: str, key: str) -> str:
        words: dict[str, Any] = self.words[table]
        if key not in words:
            raise ValueError(f"readme.toml has no Chinese words for {key}: put them under [{table}]")
        return str(words[key])

    def _refuse_stale(self, names: set[str]) -> None:
        if stale := sorted(self.words.get(self.language, {}).keys() - names):
            raise ValueError(f"readme.toml has words for {', '.join(stale)}, which no field is read from")


ENGLISH = Readme(_ROOT / "README.md", "en", "| flag | variable | what it is | otherwise |", ", ")
CHINESE = Readme(_ROOT / "README.zh-CN.md", "zh-CN", "| 选项 | 环境变量 | 含义 | 默认 |", "、")
