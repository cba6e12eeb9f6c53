"""Where each cookie is its own owner, a browser without one sees nothing of others, and is told why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from webui.panels.chat import welcome_html
from webui.sessions import COOKIE, Sessions
from webui.words import load_words

PUBLIC = Sessions(b"s" * 32, is_shared=True)


@dataclass
class Asked:
    """A request, as far as sessions read it."""

    cookies: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def test_two_browsers_without_a_cookie_share_nothing() -> None:
    owners = {PUBLIC.visitor(Asked()).owner for _ in range(3)}
    assert len(owners) == 3


def test_a_browser_with_a_cookie_stays_who_it_was() -> None:
    asked = Asked({COOKIE: PUBLIC.new_cookie()})
    assert PUBLIC.visitor(asked) == PUBLIC.visitor(asked)


def test_on_ones_own_machine_everyone_is_the_owner() -> None:
    assert Sessions(b"s" * 32).visitor(Asked()).owner == "local"


def test_the_first_page_tells_what_is_not_kept_and_what_a_cookie_is_for() -> None:
    for language in ("en", "zh-CN"):
        words = load_words(language)
        assert words("welcome.unkept") in welcome_html(words, is_sketch=True, is_kept=False)
        without = welcome_html(words, is_sketch=True, has_cookie=False)
        assert words("welcome.no_cookie") in without
        assert 'href="./" target="_blank"' in without
        usual = welcome_html(words, is_sketch=True)
        assert words("welcome.unkept") not in usual
        assert words("welcome.no_cookie") not in usual
