"""What the way in means for the studio behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import Headers

from agent.settings import Settings
from tests.support.cases import each_case
from tests.support.children import run_child
from webui.app import LaunchOptions, as_reached, host_rules
from webui.space.place import Place, place_of_visitors
from webui.space.spacefile import Pays


def place(**chosen: Any) -> Place | None:
    """Return what flags make of a studio on one's own machine."""
    told: dict[str, Any] = {"is_public": False, "is_single_user": False, "visitors_spend_usd": None, **chosen}
    return place_of_visitors(told.pop("host", "127.0.0.1"), **told)


VISITED = place(is_public=True)


@each_case(
    ("options", "is_public"),
    [
        (LaunchOptions(), False),
        (LaunchOptions(host="localhost"), False),
        (LaunchOptions(host="::1"), False),
        (LaunchOptions(host="0.0.0.0"), True),
        (LaunchOptions(host="192.168.1.5"), True),
        (LaunchOptions(is_shared=True, place=VISITED), True),
        (LaunchOptions(names=frozenset({"studio.example.org"})), True),
    ],
)
def test_whoever_can_be_reached_by_others_is_public(options: LaunchOptions, is_public: bool) -> None:
    assert as_reached(Settings(home=Path("home")), options).is_public is is_public


def test_an_operator_who_says_so_is_public_behind_a_proxy_as_well() -> None:
    settings = Settings.from_env({"AIVISTA_PUBLIC": "on"}, home=Path("home"))
    assert as_reached(settings, LaunchOptions()).is_public


def test_others_come_by_a_link_or_an_address_of_theirs_unless_all_of_them_are_the_operator() -> None:
    assert place() is None
    assert place(is_single_user=True, host="0.0.0.0") is None
    assert place(is_single_user=True, is_public=True) is None
    for visited in (place(is_public=True), place(host="0.0.0.0")):
        assert visited is not None
        assert visited.pays == Pays()


def test_visitors_bring_their_own_key_unless_the_operator_allows_theirs_up_to_a_cap() -> None:
    settings = Settings(home=Path("home"))
    assert not as_reached(settings, LaunchOptions(place=place(is_public=True))).lends_keys
    generous = place(is_public=True, visitors_spend_usd=0.2)
    assert generous is not None
    assert generous.pays == Pays(who="owner", cap_day_usd=0.2, cap_turn_usd=0.2)
    assert as_reached(settings, LaunchOptions(place=generous)).lends_keys
    assert as_reached(settings, LaunchOptions(host="0.0.0.0")).lends_keys


@each_case("listens_on", ["0.0.0.0", "::", "192.168.1.5"])
@each_case(
    ("host", "is_allowed"),
    [
        ("localhost:7860", True),
        ("127.0.0.1:7860", True),
        ("192.168.1.5:7860", True),
        ("[fd00::7]:7860", True),
        ("studio.example.org", True),
        ("evil.test:7860", False),
        ("192.168.1.5.evil.test", False),
        ("studio.example.org.evil.test", False),
        ("", False),
    ],
)
def test_where_all_are_the_operator_a_name_that_merely_points_at_the_studio_opens_nothing(
    listens_on: str, host: str, is_allowed: bool
) -> None:
    rules = host_rules(LaunchOptions(host=listens_on, names=frozenset({"studio.example.org"})))
    assert rules.allows_host(host) is is_allowed


def test_a_studio_that_listens_on_a_name_answers_to_it() -> None:
    rules = host_rules(LaunchOptions(host="Studio.lan"))
    assert rules.allows_host("studio.lan:7860")
    assert not rules.allows_host("other.lan:7860")


def test_another_server_on_the_address_where_all_are_the_operator_cannot_write() -> None:
    rules = host_rules(LaunchOptions(host="192.168.1.5"))
    asked = Headers({"host": "192.168.1.5:7860"})
    assert rules.allows_origin("http://192.168.1.5:7860", asked)
    assert not rules.allows_origin("http://192.168.1.5:9999", asked)


def test_a_studio_for_one_on_this_machine_answers_to_its_domain_and_to_no_address_of_the_network() -> None:
    rules = host_rules(LaunchOptions(names=frozenset({"studio.example.org"})))
    assert rules.allows_host("studio.example.org")
    assert not rules.allows_host("192.168.1.5:7860")


def test_where_others_have_spaces_of_their_own_a_studio_without_a_name_answers_to_any() -> None:
    assert host_rules(LaunchOptions(host="0.0.0.0", place=VISITED)).allows_host("studio.lan")


def test_what_a_start_does_not_need_is_not_loaded_for_it() -> None:
    heavy = (
        "langgraph langchain_core langsmith lancedb cv2 sqlalchemy alembic diskcache trafilatura google.genai openai"
    )
    code = f"""
import sys
sys.modules["mcp"] = None  # as the command does
import webui.app
wanted = "{heavy} agent.providers.sketch".split()
print(sorted(name for name in wanted if name in sys.modules))
"""
    child = run_child(code)
    assert child.stdout.strip() == "[]", child.stderr
