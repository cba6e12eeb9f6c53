"""The text that other programs look for in a picture, `parameters`, in the way of AUTOMATIC1111's web UI.

The prompt, then perhaps `Negative prompt: …`, then one line of `Name: value` pairs; its readers take the last line for
that when it holds three of them. Ours names no steps, sampler or seed, since there are none to name.
"""

from __future__ import annotations

import json
import re

from agent.imaging.provenance.recipe import Recipe

_SIGNATURE = "Version: Aivista"
# An EXIF comment has to fit into 64 KB of a JPEG, with up to four bytes a character.
_PROMPT_CHARACTERS = 12_000
_STYLES_CHARACTERS = 500


def parameters_text(recipe: Recipe) -> str:
    """Return the text for this picture: its prompt, or the person's words where none was sent; empty without either."""
    prompt = (recipe.prompt or recipe.words).strip()
    if not prompt:
        return ""
    pairs = {
        "Size": f"{recipe.width}x{recipe.height}",
        "Model": recipe.model_label or recipe.model,
        "Aspect ratio": recipe.asked_aspect_ratio or "",
        "Resolution": recipe.asked_resolution or "",
        "Styles": ", ".join(style.name for style in recipe.styles)[:_STYLES_CHARACTERS],
        "Created Date": recipe.created_at.isoformat(timespec="seconds"),
    }
    told = [f"{name}: {_quoted(value)}" for name, value in pairs.items() if value]
    return "\n".join((prompt[:_PROMPT_CHARACTERS], ", ".join((*told, _SIGNATURE))))


def is_ours(text: str) -> bool:
    """Return whether the text was written by `parameters_text`."""
    return text.rstrip().endswith(f", {_SIGNATURE}")


def _quoted(value: str) -> str:
    # As its readers undo it: a value with one of these signs stands there as JSON.
    return json.dumps(value, ensure_ascii=False) if re.search(r"[,\n:\"]", value) else value
