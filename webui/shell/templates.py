"""The templates of the features. What people, models and files say is escaped; only templates write markup."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from webui.icons import icon
from webui.words import Words


def render(template: str, words: Words, /, **values: object) -> Markup:
    """Return a template's HTML: `styles/card.html` lies in the folder of the feature `styles`. `t` are the words."""
    shown = environment().get_template(template).render(t=words, **values)
    return Markup(shown.strip())  # noqa: S704  all that was said is escaped in it


@cache
def environment() -> jinja2.Environment:
    """Return the templates of this process; each is compiled when it is first shown."""
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
    made.globals.update({name: getattr(parts, name) for name in ("button", "tag", "thumbs", "source_links")})
    return made


def _parts(address: str) -> tuple[str, str]:
    """Return the scheme and the host of an address; both empty for what is none."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", ""
    return parts.scheme, parts.hostname or ""
