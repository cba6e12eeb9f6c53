"""The templates of the features. What people, models and files say is escaped; only templates write markup."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from webui.cards import button, tag, thumbs
from webui.icons import icon
from webui.words import Words


def render(template: str, words: Words, **values: object) -> str:
    """Return a template's HTML: `styles/card.html` lies in the folder of the feature `styles`. `t` are the words."""
    return _environment().get_template(template).render(t=words, **values).strip()


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("webui", one) for one in ("features", "shell")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update({make.__name__: _markup(make) for make in (icon, button, tag, thumbs)})
    return made


def _markup(make: Callable[..., str]) -> Callable[..., Markup]:
    """Return a function of ours for templates: what it returns is HTML, in which all that was said is escaped."""

    def made(*args: Any, **options: Any) -> Markup:
        return Markup(make(*args, **options))  # noqa: S704

    return made
