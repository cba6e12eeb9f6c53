"""Every button that costs money says what it may cost at most, and no other one does."""

from __future__ import annotations

import re
from pathlib import Path

from agent.components import ActionPanel, PanelAction, PanelButton
from agent.errors import ErrorCode, ErrorInfo
from agent.plans import CapPassed, Plan
from agent.providers.catalogue import load_catalogue
from agent.storage.curated_styles import curated_styles
from tests.support.cases import each_case
from webui import notices
from webui.action_panels import action_panel
from webui.cards import View
from webui.panels.styles import list_html
from webui.plan_cards import open_plan
from webui.questions import asked
from webui.spend import button_prices
from webui.style_finding import Shown
from webui.words import load_words

WORDS = load_words("en")
PRICES = button_prices(load_catalogue(), "gemini")
WEBUI = Path(__file__).parents[2] / "webui"
# What a button sends when it has a model asked for something at once. Others fill the composer, which has its price,
# or do what costs nothing; `allow_calls` runs tools of the studio's, within the maximum of the turn.
PAYING = {"retry", "run_plan", "panel", "paint_now"}
FREE = {
    *("allow_calls", "refuse_calls", "drop_plan", "edit", "edit_words", "say", "settings", "panel_apply", "reference"),
    *(
        "grow_mask",
        "keep_only",
        "keep_transparency",
        "keep_edit",
        "discard_edit",
        "view",
        "compare",
        "drop",
        "open",
        "new",
        "role",
    ),
    *("language", "stage", "theme", "x"),
}


def shown(prices: dict[str, str]) -> str:
    """Return cards with the buttons that ask a model for something."""
    view = View(WORDS, "c", prices=prices)
    actions: list[PanelAction] = ["regenerate", "vary", "edit", "more_contrast", "warmer"]
    panel = ActionPanel(handle="#1", buttons=tuple(PanelButton(action=one) for one in actions))
    cap = CapPassed(cap="turn", cap_usd=0.06, spent_usd=0.01, price_usd=0.343)
    plan = Plan(call=0, prompt="a fox", model="pro", model_label="Pro", aspect_ratio="1:1", price_usd=0.15)
    return (
        action_panel(view, panel, is_open=True, painter="gemini-3-pro-image")
        + notices.failure(view, ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Flash"}), "t")
        + notices.interrupted(view, 0, "t")
        + asked(view, "not_painted", "", "")
        + open_plan(view, [plan], "a")
        + open_plan(view, [plan.model_copy(update={"caps": (cap,)})], "b")
    )


def prices_of(html: str) -> dict[str, str]:
    """Return the price on each button, by what it sends."""
    found = re.findall(r'data-act="(\w+)" data-arg="([^"]*)"[^>]*>(.*?)</button>', html, re.DOTALL)
    priced = {f"{act} {arg}": re.search(r"<small>≤ (\$[\d.]+)</small>", label) for act, arg, label in found}
    return {sent: price[1] if price else "" for sent, price in priced.items()}


def test_a_button_that_asks_a_model_has_a_price_and_one_that_does_not_has_none() -> None:
    told = prices_of(shown(PRICES))
    for sent, price in told.items():
        is_paying = sent.split()[0] in PAYING and not any(one in sent for one in ("more_contrast", "warmer"))
        assert bool(price) == is_paying, sent
    assert told["run_plan b"] == "$0.35", "what the plan may cost beyond the maximum"
    assert told["retry t"] == PRICES["turn"]
    assert [price for sent, price in told.items() if "regenerate" in sent] == [PRICES["gemini-3-pro-image"]]


def test_trying_a_style_has_a_price_where_it_costs_anything() -> None:
    shown = [Shown(style) for style in curated_styles()[:2]]
    assert list_html(WORDS, shown, "", "", PRICES["turn"]).count(f"<small>≤ {PRICES['turn']}</small>") == 2
    assert "<small>≤" not in list_html(WORDS, shown, "", "")


def test_on_the_sketch_model_no_button_has_a_price() -> None:
    told = prices_of(shown(button_prices(load_catalogue(), "sketch")))
    assert {price for sent, price in told.items() if not sent.startswith("run_plan")} == {""}


@each_case("path", sorted(WEBUI.rglob("*.py")))
def test_a_new_act_is_known_to_be_paying_or_free_and_a_paying_button_is_given_its_price(path: Path) -> None:
    source = path.read_text("utf-8")
    for found in re.finditer(r'(?<![\w_])button\(\s*"(\w+)",(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)', source):
        assert found[1] in PAYING | FREE, f"{found[1]}: does it cost anything?"
        assert found[1] not in PAYING or "price=" in found[0], found[0]
