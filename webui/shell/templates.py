"""The templates of the features, and the changes that an answer makes to the page: elements by id, one sentence, and
events for scripts. Texts of users, models and files are escaped; only templates write markup."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup
from pydantic import Field, JsonValue

from agent import Value
from webui.words import Words

# The package has no types.
_lucide = import_module("lucide")


@cache
def icon(name: str, size_px: int = 16) -> Markup:
    """Return an icon as inline SVG in the colour of the text around it, hidden from screen readers."""
    found = re.search(r"<svg[^>]*>(.*)</svg>", _lucide.lucide_icon(name), re.DOTALL)
    shapes = found[1].strip() if found else ""
    return Markup(  # noqa: S704  nothing that anybody said is in it
        f'<svg class="i" width="{size_px}" height="{size_px}" viewBox="0 0 24 24" fill="none" stroke="currentColor" '
        f'stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">{shapes}</svg>'
    )


def render(template: str, words: Words, /, **values: object) -> Markup:
    """Return the HTML of a template: `styles/card.html` lies in the folder of the feature `styles`. `t` translates."""
    shown = environment().get_template(template).render(t=words, **values)
    return Markup(shown.strip())  # noqa: S704  all that was said is escaped in it


@cache
def environment() -> jinja2.Environment:
    """Return the templates of this process; each is compiled when it is first used."""
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("webui", one) for one in ("features", "shell")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    tests: dict[str, Any] = {"web_address": lambda address: _parts(address)[0] in ("http", "https")}
    made.tests.update(tests)
    names: dict[str, Any] = {"icon": icon, "host": lambda address: _parts(address)[1]}
    made.globals.update(names)
    parts = made.get_template("parts.html").module
    macros = ("button", "tool", "menu_item", "tag", "thumbs", "source_links", "moment")
    made.globals.update({name: getattr(parts, name) for name in macros})
    return made


def _parts(address: str) -> tuple[str, str]:
    """Return the scheme and the host of a URL; both empty for an invalid one."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    return parts.scheme, parts.hostname or ""


class Patch(Value):
    """HTML for the element with this id. It replaces the element if it exists; else it is inserted into the element
    `parent`, or the body: before the element with the id `before`, or last. Without HTML the element is removed."""

    id: str
    html: str | None = None
    parent: str = ""
    before: str = ""


class Undo(Value):
    """The action that undoes what was just done, and its arguments."""

    action: str
    args: dict[str, JsonValue]


class Toast(Value):
    """One sentence about what was done, with an undo button if it can be undone, or about why it failed."""

    text: str
    is_problem: bool = False
    undo: Undo | None = None


class Reply(Value):
    """What the page does in answer to an action: patches of HTML, a toast, and events for scripts."""

    patches: tuple[Patch, ...] = ()
    toast: Toast | None = None
    events: dict[str, JsonValue] = Field(default_factory=dict)

    def written(self, words: Words) -> dict[str, Any]:
        """Return the reply as JSON; the toast becomes a patch like the others."""
        patches = self.patches
        if self.toast is not None:
            patches += (Patch(id="toast", html=render("toast.html", words, toast=self.toast)),)
        return {"patches": [one.model_dump(exclude_defaults=True) for one in patches], "events": self.events}
