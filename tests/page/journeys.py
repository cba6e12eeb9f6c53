"""A walk through the page in named steps, by what things are called there in whatever language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from playwright.sync_api import Locator, Page

from tests.adapters.webui import words_of


@contextmanager
def step(name: str) -> Iterator[None]:
    """Have a failure within say at which step of its journey it came."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"At the step: {name}")
        raise


@dataclass
class Called:
    """What is on the page, by role and by the key of its name: `called.button("plan.run")`.

    `within` is where it is looked for. A parameter that is not given stands for whatever is there.
    """

    within: Page | Locator
    language: str = "en"

    def words(self, key: str, **parameters: object) -> str:
        """Return the words of a key in the language of the page."""
        return words_of(self.language)[key].format_map(parameters)

    def button(self, key: str, **parameters: object) -> Locator:
        """Return the button of this name."""
        return self._role("button", key, parameters)

    def link(self, key: str, **parameters: object) -> Locator:
        """Return the link of this name."""
        return self._role("link", key, parameters)

    def tab(self, key: str) -> Locator:
        """Return the tab of this name."""
        return self._role("tab", key, {})

    def item(self, key: str, **parameters: object) -> Locator:
        """Return the item of a menu of this name."""
        return self._role("menuitem", key, parameters)

    def slider(self, key: str, **parameters: object) -> Locator:
        """Return the slider of this name."""
        return self._role("slider", key, parameters)

    def dialog(self, key: str) -> Locator:
        """Return the dialog of this name."""
        return self._role("dialog", key, {})

    def field(self, key: str, **parameters: object) -> Locator:
        """Return the field with this label."""
        return self.within.get_by_label(self._name(key, parameters))

    def text(self, key: str, **parameters: object) -> Locator:
        """Return what says these words."""
        return self.within.get_by_text(self._name(key, parameters))

    def _role(self, role: str, key: str, parameters: dict[str, object]) -> Locator:
        name = self._name(key, parameters)
        # Playwright's names of roles are literals.
        return self.within.get_by_role(role, name=name)  # type: ignore[arg-type]

    def _name(self, key: str, parameters: dict[str, object]) -> re.Pattern[str]:
        pieces = re.split(r"\{(\w+)\}", words_of(self.language)[key])
        known = [re.escape(str(parameters[one])) if one in parameters else ".+" for one in pieces[1::2]]
        text = "".join(map("".join, zip_longest(map(re.escape, pieces[::2]), known, fillvalue="")))
        # A button that costs something says about how much.
        return re.compile(rf"^\s*{text}(\s*[≈≤].*)?\s*$")


def on(within: Page | Locator, place: str = "") -> Called:
    """Return what is called on a page, a part of it or a place there, in the language the page says it is in."""
    page = within if isinstance(within, Page) else within.page
    return Called(within.locator(place) if place else within, page.locator("html").get_attribute("lang") or "")
