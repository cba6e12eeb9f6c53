"""The dialog's key: tested, kept as its person chooses, removed; and the models that it cannot use, greyed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import gradio as gr
from pydantic import SecretStr

from agent import OPERATOR, AivistaError
from webui.model_limits import BUS
from webui.panels.flat import flat
from webui.panels.key_verdict import note_html, problem_html, verdict_html
from webui.panels.settings import MACHINE, typed_key
from webui.screen import Screen, Updates
from webui.sessions import Visitor

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}


def wire_settings(screen: Screen) -> None:
    """Let the dialog's buttons call their handlers, and the page ask once what its key is good for."""
    dialog, composer, desk = screen.panels.settings, screen.panels.composer, KeyHandlers(screen)
    everything = {"conversation": composer.conversation, **composer.settings}
    typed = {"typed": dialog.key, "keep": dialog.keep}
    outputs = screen.panels.outputs
    dialog.test.click(desk.test, None, outputs, inputs_kwargs={"typed": dialog.key, **composer.settings}, **_QUIET)
    for event in (dialog.save.click, dialog.key.submit):
        event(desk.save, None, outputs, inputs_kwargs={**typed, **everything}, **_QUIET)
    dialog.remove.click(desk.remove, None, outputs, inputs_kwargs=everything, **_QUIET)
    asked = flat("models-bus", js_on_load=BUS)
    chips = [*composer.settings.values(), *composer.told]
    asked.click(desk.look, None, chips, inputs_kwargs=composer.settings, **_QUIET)


class KeyHandlers:
    """What the dialog's buttons do. No answer of theirs holds more of a key than its last four characters."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def test(self, request: gr.Request, typed: str, **chips: Any) -> AsyncIterator[Updates]:
        """Tell what the typed key can do, else the visitor's own; what that one cannot use is greyed from then on."""
        visitor = self._screen.sessions.visitor(request)
        key = typed_key(typed) or self._screen.sessions.key(visitor)
        if key is None and visitor.owner == OPERATOR:
            # A key that is lent is the operator's: nobody else learns of it, or spends its quota on tests.
            key = self._screen.key_in_use(visitor)
        async for updates in self._tested(visitor, key, chips):
            yield updates

    async def save(
        self, request: gr.Request, typed: str, keep: str, conversation: str, **chips: Any
    ) -> AsyncIterator[Updates]:
        """Keep the typed key where its person chose, and tell what it can do."""
        visitor, key = self._screen.sessions.visitor(request), typed_key(typed)
        verdict = self._screen.panels.settings.verdict
        try:
            is_kept = key is not None and self._keep(visitor, key, is_for_machine=keep == MACHINE)
        except AivistaError as error:
            yield {verdict: problem_html(visitor.words.error(error.info))}
            return
        if not is_kept:
            yield {verdict: note_html(visitor.words, "settings.empty")}
            return
        yield await self._changed(visitor, conversation, chips)
        async for updates in self._tested(visitor, key, chips, is_added=True):
            yield updates

    async def remove(self, request: gr.Request, conversation: str, **chips: Any) -> Updates:
        """Forget the key in use: that of the session first, then the one kept on this machine."""
        sessions = self._screen.sessions
        visitor = sessions.visitor(request)
        if sessions.session_key(visitor) is not None:
            sessions.hold_key(visitor, None)
        elif sessions.kept is not None:
            try:
                sessions.kept.remove()
            except AivistaError as error:
                return {self._screen.panels.settings.verdict: problem_html(visitor.words.error(error.info))}
        return await self._changed(visitor, conversation, chips)

    async def look(self, request: gr.Request, **chips: Any) -> Updates:
        """Return the chips as the key in use allows them: the list of what it is offered costs nothing."""
        visitor = self._screen.sessions.visitor(request)
        key = self._screen.key_in_use(visitor)
        if key is not None and self._screen.takes_keys(visitor):
            await self._screen.studio().keys.listed(key)
        return self._screen.narrowed(visitor, chips)

    async def _tested(
        self, visitor: Visitor, key: SecretStr | None, chips: dict[str, Any], *, is_added: bool = False
    ) -> AsyncIterator[Updates]:
        words, verdict = visitor.words, self._screen.panels.settings.verdict
        state = self._screen.key_state(visitor) if is_added else ""
        if key is None:
            yield {verdict: note_html(words, "settings.empty")}
            return
        yield {verdict: state + note_html(words, "settings.testing")}
        found = verdict_html(words, await self._screen.studio().keys.test(key))
        yield {verdict: state + found, **self._screen.narrowed(visitor, chips)}

    def _keep(self, visitor: Visitor, key: SecretStr, *, is_for_machine: bool) -> bool:
        """Return whether the key is kept. Raises StorageFailure."""
        sessions = self._screen.sessions
        if not is_for_machine or sessions.kept is None:
            return sessions.hold_key(visitor, key)
        sessions.kept.keep(key)
        # One that was typed before would go before the one that was just kept.
        sessions.hold_key(visitor, None)
        return True

    async def _changed(self, visitor: Visitor, conversation: str, chips: dict[str, Any]) -> Updates:
        shown = await self._screen.conversation(visitor, conversation)
        narrowed = self._screen.narrowed(visitor, chips)
        return {**self._screen.dialog(visitor), **narrowed, **await self._screen.frame(visitor, shown)}
