"""The templates of the features. What people, models and files say is escaped; only templates write markup."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from webui.cards import button, tag
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
    made.globals["icon"] = lambda name, size_px=16: Markup(icon(name, size_px))  # noqa: S704  our own drawing
    # What these write is escaped.
    made.globals["button"] = lambda *told, **more: Markup(button(*told, **more))  # noqa: S704
    made.globals["tag"] = lambda *told, **more: Markup(tag(*told, **more))  # noqa: S704
    return made
