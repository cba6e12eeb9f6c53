"""Presets at work: the settings saved under a name, taken up again, renamed and deleted, each visitor's own; and the
settings set by a click of a button beside them, or back to automatic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import AivistaError, PreferenceStore, Preset, PresetStore, Value
from webui.panels.composer import Chosen
from webui.panels.flat import flat
from webui.panels.presets import Typed, presets_html
from webui.screen import Screen, Updates
from webui.sessions import Visitor

_BUS = "window.aivistaPresets = { act: data => trigger('click', data) };"
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 32


class PresetClick(Value):
    """A click of the menu as the page sends it; anything else is ignored."""

    act: str
    id: str = Field(default="", max_length=64)
    name: str = Field(default="", max_length=400)


def read_preset_click(data: object) -> PresetClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return PresetClick.model_validate(data)
    except ValidationError:
        return None


@dataclass
class Shelf:
    """What one open tab deleted last."""

    deleted: Preset | None = None


@dataclass(frozen=True)
class Presets:
    """Answers the clicks of the menu. All that is read or changed is the visitor's own."""

    screen: Screen
    store: Callable[[], PreferenceStore]

    async def answer(self, visitor: Visitor, shelf: Shelf, click: PresetClick, chosen: Chosen) -> Updates:
        """Return what the click changes; what cannot be done is told in one sentence, and changes nothing."""
        presets, menu = self.store().presets, self.screen.panels.composer.presets
        try:
            if click.act == "use":
                preset = await presets.find(visitor.owner, click.id)
                return self.screen.chips(visitor, Chosen.of(preset.settings))
            if click.act == "reset":
                return self.screen.chips(visitor, Chosen(allow_search=chosen.allow_search))
            if click.act == "set":
                return self._set(visitor, chosen, click.id, click.name)
            said, undo = await self._change(visitor, shelf, click, chosen, presets)
        except AivistaError as error:
            kept = await presets.of(visitor.owner)
            said = visitor.words.error(error.info)
            typed = Typed(click.id, click.name) if click.act == "rename" else None
            return {menu: presets_html(visitor.words, kept, said=said, bad=True, typed=typed)}
        return {menu: presets_html(visitor.words, await presets.of(visitor.owner), said=said, undo=undo)}

    def _set(self, visitor: Visitor, chosen: Chosen, name: str, value: str) -> Updates:
        """Return one setting as a button beside it says; what no button says changes nothing."""
        try:
            changed = Chosen.model_validate({**chosen.model_dump(), name: value})
            changed.turn_settings()
        except ValueError:
            return {self.screen.panels.composer.presets: gr.skip()}
        return self.screen.narrowed(visitor, changed.model_dump(), fixed=name)

    async def _change(
        self, visitor: Visitor, shelf: Shelf, click: PresetClick, chosen: Chosen, presets: PresetStore
    ) -> tuple[str, bool]:
        """Do what the click says; return what to say of it, and whether it can be undone."""
        words, owner = visitor.words, visitor.owner
        match click.act:
            case "save":
                before = {one.id for one in await presets.of(owner)}
                preset = await presets.save(owner, click.name, chosen.turn_settings())
                key = "presets.changed" if preset.id in before else "presets.saved"
                return words(key, name=preset.name), False
            case "rename":
                await presets.rename(owner, click.id, click.name)
            case "delete":
                shelf.deleted = await presets.delete(owner, click.id)
                return words("presets.deleted", name=shelf.deleted.name), True
            case "undo" if shelf.deleted is not None:
                deleted, shelf.deleted = shelf.deleted, None
                await presets.restore(owner, deleted)
        return "", False


def wire_presets(screen: Screen, store: Callable[[], PreferenceStore]) -> None:
    """Let the menu of presets call its handlers."""
    composer, presets = screen.panels.composer, Presets(screen, store)
    bus, shelf = flat("presets-bus", js_on_load=_BUS), gr.State(Shelf())

    async def act(request: gr.Request, event: gr.EventData, shelf: Shelf, **chips: Any) -> Updates:
        click = read_preset_click(event._data)
        if click is None:
            return {composer.presets: gr.skip()}
        return await presets.answer(screen.sessions.visitor(request), shelf, click, Chosen.model_validate(chips))

    bus.click(
        act,
        None,
        [composer.presets, *composer.settings.values(), *composer.told],
        inputs_kwargs={"shelf": shelf, **composer.settings},
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )
