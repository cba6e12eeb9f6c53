"""The price before Send follows the chips and what stands beside the words."""

from __future__ import annotations

from typing import Any

import gradio as gr

from webui.panels.composer import Chosen
from webui.screen import Screen
from webui.spend import chosen_estimate, estimate_html, read_beside, sign_of
from webui.tabs import Tab

_LONGEST_BESIDE = 6000
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}


def wire_spend(screen: Screen, tab: gr.State) -> None:
    """Let the chips ask for the price of what stands in the composer."""
    composer = screen.panels.composer

    async def price(request: gr.Request, tab: Tab, beside: str, conversation: str, **chips: Any) -> str:
        visitor, studio, chosen = screen.sessions.visitor(request), screen.studio(), Chosen.model_validate(chips)
        provider, shown = screen.provider(visitor), await screen.conversation(visitor, conversation)
        guess = chosen_estimate(studio.catalogue, provider, chosen, read_beside(beside), shown)
        tab.told_maximum = (sign_of(chosen), guess.most_usd) if guess.most_usd > 0 else None
        return estimate_html(visitor.words, guess, (beside or "")[:_LONGEST_BESIDE])

    given = {"tab": tab, "beside": composer.beside, "conversation": composer.conversation, **composer.settings}
    composer.cost_bus.click(price, None, composer.cost, inputs_kwargs=given, **_QUIET)
