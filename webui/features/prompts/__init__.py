"""The prompt gallery: example prompts in groups, and a search. Sent and starred prompts are known to the browser
alone."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from agent import Value
from webui.shell.actions import Context, Feature
from webui.shell.templates import Reply

prompts = Feature("prompts")
_BLANK = re.compile(r"\[([^\[\]]+)\]")


@prompts.action
async def open(at: Context) -> Reply:
    """Show the gallery."""
    return Reply(patches=(at.fragment("prompts", "prompts/dialog.html", groups=prompt_groups(at.words.language)),))


class Prompt(Value):
    """A prompt with its title in one language and its group; a placeholder stands in brackets."""

    group: str
    title: str
    text: str

    @property
    def plain(self) -> str:
        """The prompt without its brackets, ready to send."""
        return _BLANK.sub(r"\1", self.text)

    @property
    def blank(self) -> tuple[int, int] | None:
        """Start and end of the first placeholder in `plain`."""
        found = _BLANK.search(self.text)
        return (found.start(), found.end() - 2) if found else None


class PromptGroup(Value):
    """A group of prompts: its name in one language, and the name of its icon."""

    id: str
    name: str
    icon: str
    prompts: tuple[Prompt, ...]


@cache
def prompt_groups(language: str) -> tuple[PromptGroup, ...]:
    """Return the groups in order, in one of the page's languages."""
    book = tomllib.loads(resources.files("webui.features.prompts").joinpath("prompts.toml").read_text(encoding="utf-8"))
    field = "zh" if language.startswith("zh") else "en"
    groups = []
    for row in book["group"]:
        own = (one[field] for one in book["prompt"] if one["group"] == row["id"])
        listed = tuple(Prompt(group=row["id"], title=title, text=text) for title, text in own)
        groups.append(PromptGroup(id=row["id"], name=row[field], icon=row["icon"], prompts=listed))
    return tuple(groups)
