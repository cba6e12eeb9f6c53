"""What the way in means for the studio behind it."""

from __future__ import annotations

from pathlib import Path

from starlette.datastructures import Headers

from agent import Settings, Sponsor
from tests.adapters.webui import read_flags
from tests.support.cases import each_case
from tests.support.children import run_child
from webui.app import LaunchOptions, as_reached, host_rules
from webui.cli.serve import deployment_of
from webui.deployment import Deployment


def place(*flags: str) -> Deployment | None:
    """Return what flags make of a studio on one's own machine."""
    return deployment_of(read_flags(flags), Settings(home=Path("home")))


PAID = place("--share", "--visitors-spend", "0.2")
NAMED = frozenset({"studio.example.org"})


@each_case(
    ("options", "is_public", "lends_keys"),
    [
        (LaunchOptions(), False, True),
        (LaunchOptions(host="localhost"), False, True),
        (LaunchOptions(host="::1"), False, True),
        (LaunchOptions(host="0.0.0.0"), True, True),
        (LaunchOptions(host="192.168.1.5"), True, True),
        (LaunchOptions(names=NAMED), True, True),
        # Visitors bring their own key, unless the operator allows theirs up to a cap.
        (LaunchOptions(is_shared=True, deployment=place("--share")), True, False),
        (LaunchOptions(deployment=place("--host", "0.0.0.0")), True, False),
        (LaunchOptions(deployment=PAID), True, True),
    ],
)
def test_whoever_can_be_reached_by_others_is_public_and_lends_its_key_to_nobody_unasked(
    options: LaunchOptions, is_public: bool, lends_keys: bool
) -> None:
    reached = as_reached(Settings(home=Path("home")), options)
    assert reached.is_public is is_public
    assert not is_public or reached.lends_keys is lends_keys


def test_others_come_by_a_link_or_an_address_and_spend_what_they_are_allowed() -> None:
    assert [place(), place("--host", "0.0.0.0", "--single-user"), place("--single-user", "--share")] == [None] * 3
    visited = place("--share")
    assert visited is not None
    assert PAID is not None
    assert (visited.sponsor, PAID.sponsor) == (None, Sponsor(cap_day_usd=0.2, cap_turn_usd=0.2))
    settings = Settings.from_env({"AIVISTA_PUBLIC": "on"}, home=Path("home"))
    assert as_reached(settings, LaunchOptions()).is_public


@each_case(
    ("options", "allowed", "refused"),
    [
        *(
            (
                LaunchOptions(host=listens_on, names=NAMED),
                ("localhost:7860", "127.0.0.1:7860", "192.168.1.5:7860", "[fd00::7]:7860", "studio.example.org"),
                ("evil.test:7860", "192.168.1.5.evil.test", "studio.example.org.evil.test", ""),
            )
            for listens_on in ("0.0.0.0", "::", "192.168.1.5")
        ),
        (LaunchOptions(), ("LOCALHOST", "[::1]:7860"), ("127.0.0.1.evil.test", "192.168.1.5:7860")),
        (LaunchOptions(host="Studio.lan"), ("studio.lan:7860",), ("other.lan:7860",)),
        (LaunchOptions(names=NAMED), ("studio.example.org",), ("192.168.1.5:7860",)),
        (LaunchOptions(host="0.0.0.0", deployment=place("--share")), ("studio.lan",), ()),
    ],
)
def test_where_all_are_the_operator_a_name_that_merely_points_at_the_studio_opens_nothing(
    options: LaunchOptions, allowed: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    rules = host_rules(options)
    assert [one for one in allowed if not rules.allows_host(one)] == []
    assert [one for one in refused if rules.allows_host(one)] == []


def test_another_server_on_the_same_address_cannot_write_and_the_page_behind_a_share_link_can() -> None:
    rules = host_rules(LaunchOptions(host="192.168.1.5"))
    asked = Headers({"host": "192.168.1.5:7860"})
    assert rules.allows_origin("http://192.168.1.5:7860", asked)
    assert not rules.allows_origin("http://192.168.1.5:9999", asked)
    rules.names.add("abc.gradio.live")
    assert rules.allows_host("abc.gradio.live")
    assert rules.allows_origin("https://abc.gradio.live", Headers({"host": "abc.gradio.live"}))


HEAVY = """
langgraph langchain_core langsmith lancedb cv2 diskcache trafilatura google.genai openai
agent.providers.sketch
"""


def test_what_a_start_does_not_need_is_not_loaded_for_it() -> None:
    code = "import sys; sys.modules['mcp'] = None; import webui.app"  # as the command does
    child = run_child(f"{code}; print(sorted(set({HEAVY.split()}) & set(sys.modules)))", is_cold=True)
    assert child.stdout.strip() == "[]", child.stderr


TURNS = """
import asyncio, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main(home):
    async with Studio(Settings(home=Path(home))) as studio:
        talk = await studio.conversations.create()
        for words in ("hello", "", "what can you do?"):
            async for event in studio.run_turn(talk.id, TurnRequest(text=words)):
                pass
            print(event.type, "langgraph" in sys.modules)

asyncio.run(main(sys.argv[1]))
"""


def test_what_turns_of_words_do_not_need_is_not_loaded_for_them(tmp_path: Path) -> None:
    child = run_child(TURNS, str(tmp_path), is_cold=True)
    assert child.stdout.splitlines() == ["turn_done False"] * 3, child.stderr
