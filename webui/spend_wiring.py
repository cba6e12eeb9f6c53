"""The price before Send follows the chips and what stands beside the words; the dialog's caps are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.blocks import Block

from agent import PreferenceStore, StorageFailure
from webui.panels.composer import Chosen
from webui.panels.key_verdict import note_html, problem_html
from webui.panels.settings import cap_updates, read_caps
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.spend import chosen_estimate, estimate_html, read_beside, sign_of
from webui.tabs import Tab

_LONGEST_BESIDE = 6000
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}


@dataclass(frozen=True)
class Caps:
    """The dialog's caps, as each visitor has chosen them."""

    screen: Screen
    preferences: Callable[[], PreferenceStore]

    @property
    def filled(self) -> list[Block]:
        """What it fills: the fields, their button and their note."""
        dialog = self.screen.panels.settings
        return [dialog.cap_day, dialog.cap_conversation, dialog.caps_save, dialog.caps_note]

    async def shown(self, visitor: Visitor) -> Updates:
        """Return the fields in the visitor's words."""
        chosen = await self.preferences().of(visitor.owner)
        return cap_updates(visitor.words, self.screen.panels.settings, chosen)


def wire_spend(caps: Caps, tab: gr.State) -> None:
    """Let the chips and the dialog's caps call their handlers."""
    _wire_cost(caps.screen, tab)
    _wire_caps(caps)


def _wire_cost(screen: Screen, tab: gr.State) -> None:
    composer = screen.panels.composer

    async def price(request: gr.Request, tab: Tab, beside: str, conversation: str, **chips: Any) -> str:
        visitor, studio, chosen = screen.sessions.visitor(request), screen.studio(), Chosen.model_validate(chips)
        provider, shown = screen.provider(visitor), await screen.conversation(visitor, conversation)
        guess = chosen_estimate(studio.catalogue, provider, chosen, read_beside(beside), shown)
        tab.told_maximum = (sign_of(chosen), guess.most_usd) if guess.most_usd > 0 else None
        return estimate_html(visitor.words, guess, (beside or "")[:_LONGEST_BESIDE])

    given = {"tab": tab, "beside": composer.beside, "conversation": composer.conversation, **composer.settings}
    composer.cost_bus.click(price, None, composer.cost, inputs_kwargs=given, **_QUIET)


def _wire_caps(caps: Caps) -> None:
    screen, preferences = caps.screen, caps.preferences
    dialog, sessions = screen.panels.settings, screen.sessions
    fields: dict[str, Block] = {"cap_day": dialog.cap_day, "cap_conversation": dialog.cap_conversation}
    around = [screen.panels.rail.stamp, screen.panels.chat.top, screen.panels.chat.welcome]
    around.append(screen.panels.composer.next_target)

    async def save(
        request: gr.Request, cap_day: float | None, cap_conversation: float | None, conversation: str
    ) -> Updates:
        visitor = sessions.visitor(request)
        chosen = read_caps(cap_day, cap_conversation)
        if chosen is None:
            return {dialog.caps_note: problem_html(visitor.words("spend.caps_wrong"))}
        try:
            await preferences().keep(visitor.owner, chosen)
        except StorageFailure as error:
            return {dialog.caps_note: problem_html(visitor.words.error(error.info))}
        shown = await screen.conversation(visitor, conversation)
        return {
            dialog.caps_note: note_html(visitor.words, "spend.caps_saved"),
            **await screen.frame(visitor, shown),
        }

    inputs = {**fields, "conversation": screen.panels.composer.conversation}
    for event in (dialog.caps_save.click, dialog.cap_day.submit, dialog.cap_conversation.submit):
        event(save, None, [dialog.caps_note, *around], inputs_kwargs=inputs, **_QUIET)
