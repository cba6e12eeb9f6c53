"""The text that other programs look for in a picture, `parameters`, in the way of AUTOMATIC1111's web UI.

The prompt, then perhaps `Negative prompt: …`, then one line of `Name: value` pairs; its readers take the last line for
that when it holds three of them. Ours names no steps, sampler or seed, since there are none to name.
"""

from __future__ import annotations

import json
import re

from agent.imaging.provenance.recipe import RAW_TEXT_CHARACTERS, ForeignRecipe, ForeignTool, Recipe

_SIGNATURE = "Version: Aivista"
# An EXIF comment has to fit into 64 KB of a JPEG, with up to four bytes a character.
_PROMPT_CHARACTERS = 12_000
_STYLES_CHARACTERS = 500
_NEGATIVE = "Negative prompt:"
_PAIR = re.compile(r"(?:^|,)\s{0,4}[A-Za-z][\w ]{0,40}:\s?\S")
_MIN_PAIRS = 3


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


def foreign_recipe(parameters: str, graph: str) -> ForeignRecipe | None:
    """Return what these texts of another program say: `parameters`, else ComfyUI's graph; None when neither does."""
    if parameters.strip():
        return _parsed(parameters[:RAW_TEXT_CHARACTERS])
    if graph.lstrip().startswith("{") and ('"class_type"' in graph or '"nodes"' in graph):
        return ForeignRecipe(tool=ForeignTool.COMFYUI, raw=graph)
    return None


def _parsed(text: str) -> ForeignRecipe:
    lines = text.strip().replace("\r\n", "\n").split("\n")
    if len(lines) > 1 and _is_details(lines[-1]):
        lines.pop()
    start = next((number for number, line in enumerate(lines) if line.startswith(_NEGATIVE)), len(lines))
    return ForeignRecipe(
        tool=ForeignTool.PARAMETERS,
        prompt="\n".join(lines[:start]).strip(),
        negative_prompt="\n".join(lines[start:]).removeprefix(_NEGATIVE).strip(),
        raw=text,
    )


def _is_details(line: str) -> bool:
    return line.startswith("Steps:") or sum(1 for _ in _PAIR.finditer(line)) >= _MIN_PAIRS


def _quoted(value: str) -> str:
    # As its readers undo it: a value with one of these signs stands there as JSON.
    return json.dumps(value, ensure_ascii=False) if re.search(r"[,\n:\"]", value) else value
