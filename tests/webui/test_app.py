"""What the way in means for the studio behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.settings import Settings
from webui.app import LaunchOptions, as_reached


@pytest.mark.parametrize(
    ("options", "is_public"),
    [
        (LaunchOptions(), False),
        (LaunchOptions(host="localhost"), False),
        (LaunchOptions(host="::1"), False),
        (LaunchOptions(host="0.0.0.0"), True),
        (LaunchOptions(host="192.168.1.5"), True),
        (LaunchOptions(is_shared=True), True),
    ],
)
def test_whoever_can_be_reached_by_others_is_public(options: LaunchOptions, is_public: bool) -> None:
    assert as_reached(Settings(home=Path("home")), options).is_public is is_public


def test_an_operator_who_says_so_is_public_behind_a_proxy_as_well() -> None:
    settings = Settings.from_env({"AIVISTA_PUBLIC": "on"}, home=Path("home"))
    assert as_reached(settings, LaunchOptions()).is_public
