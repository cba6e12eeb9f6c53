"""Presets: each visitor's named settings of a message; saved, renamed, deleted and restored.

The action `page.use_preset` applies one.
"""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from agent import MAX_PRESET_NAME_CHARACTERS, AivistaError, Preset, Value
from webui.features.composer import ChosenSettings, fixed
from webui.shell.actions import Context, Feature
from webui.shell.templates import Reply, Undo

presets = Feature("presets")
_EDGE_PX = 14
# A thinner frame would look like a line.
_LEAST_PX = 4


class MenuState(Value):
    """Whether the menu was shown before."""

    is_begun: bool


class Saved(Value):
    """A name, and the settings as the page sends them."""

    name: str = Field(max_length=400)
    settings: ChosenSettings

    @field_validator("settings")
    @classmethod
    def _are_offered(cls, settings: ChosenSettings) -> ChosenSettings:
        settings.turn_settings()
        return settings


class OfPreset(Value):
    """A preset."""

    id: str = Field(max_length=64)


class Renamed(OfPreset):
    """A preset and its new name."""

    name: str = Field(max_length=400)


class Deleted(Value):
    """A preset as it was when it was deleted."""

    preset: Preset


@presets.action
async def show(at: Context, seen: MenuState) -> Reply:
    """Show the presets, the first time with the menu around them and the field for a new name."""
    return await _listed(at, is_begun=seen.is_begun)


@presets.action
async def save(at: Context, saved: Saved) -> Reply:
    """Save the settings under a name."""
    kept, owner = at.screen.studio().preferences.presets, at.visitor.owner
    try:
        before = {one.id for one in await kept.of(owner)}
        preset = await kept.save(owner, saved.name, saved.settings.turn_settings())
    except AivistaError as error:
        return await _refused(at, error)
    return await _listed(at, at.words("presets.changed" if preset.id in before else "presets.saved", name=preset.name))


@presets.action
async def rename(at: Context, renamed: Renamed) -> Reply:
    """Give a preset another name."""
    try:
        await at.screen.studio().preferences.presets.rename(at.visitor.owner, renamed.id, renamed.name)
    except AivistaError as error:
        return await _refused(at, error)
    return await _listed(at)


@presets.action
async def delete(at: Context, deleted: OfPreset) -> Reply:
    """Delete a preset."""
    try:
        gone = await at.screen.studio().preferences.presets.delete(at.visitor.owner, deleted.id)
    except AivistaError as error:
        return await _refused(at, error)
    undo = presets.undo(restore, {"preset": gone.model_dump(mode="json")})
    return await _listed(at, at.words("presets.deleted", name=gone.name), undo)


@presets.action
async def restore(at: Context, deleted: Deleted) -> Reply:
    """Restore a deleted preset."""
    try:
        await at.screen.studio().preferences.presets.restore(at.visitor.owner, deleted.preset)
    except AivistaError as error:
        return await _refused(at, error)
    return await _listed(at)


async def _refused(at: Context, error: AivistaError) -> Reply:
    """Show the refusal in the menu, which may cover a toast."""
    return await _listed(at, at.words.error(error.info), is_problem=True)


async def _listed(
    at: Context, said: str = "", undo: Undo | None = None, *, is_problem: bool = False, is_begun: bool = True
) -> Reply:
    """Return the list of presets, with one sentence about what was just done."""
    kept = await at.screen.studio().preferences.presets.of(at.visitor.owner)
    rows = [(one, fixed(at.words, ChosenSettings.of(one.settings))) for one in kept]
    values = {"rows": rows, "said": said, "undo": undo, "is_problem": is_problem, "shape": shape_size}
    if is_begun:
        return Reply(patches=(at.fragment("presets-rows", "presets/rows.html", "presets", **values),))
    longest = MAX_PRESET_NAME_CHARACTERS
    return Reply(patches=(at.fragment("presets", "presets/menu.html", "context", longest=longest, **values),))


def shape_size(ratio: str) -> tuple[int, int] | None:
    """Return width and height in pixels of a small frame with the ratio `W:H`; None for anything else."""
    found = re.fullmatch(r"([1-9]\d*):([1-9]\d*)", ratio)
    if found is None:
        return None
    width, height = int(found[1]), int(found[2])
    longer = max(width, height)
    return max(_LEAST_PX, round(_EDGE_PX * width / longer)), max(_LEAST_PX, round(_EDGE_PX * height / longer))
