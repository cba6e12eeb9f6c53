"""What other programs write of how they made a picture, read into a prompt and the few settings that they share.

Every text is somebody's data: sizes, depths and cycles are bounded, nothing raises, and what cannot be read stands in
`raw` alone. Formats, as their programs write them:

* AUTOMATIC1111 and Forge: `parameters`, a prompt, `Negative prompt:` and a line of pairs.
* ComfyUI: `prompt`, the graph as it ran, or `workflow`, the graph as it was drawn.
* Fooocus and SwarmUI: `parameters` in JSON. InvokeAI: `invokeai_metadata` in JSON.
* NovelAI: `Description` and a `Comment` in JSON. Draw Things: a comment in JSON with `c` and `uc`.
* Midjourney: `Description`, the prompt with its switches (`--ar 3:2`) and a job's number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agent.imaging.provenance import comfyui
from agent.imaging.provenance.recipe import RAW_TEXT_CHARACTERS, ForeignRecipe, ForeignTool

# The keywords of PNG texts that programs write these things under.
KEYWORDS = frozenset({"prompt", "workflow", "invokeai_metadata", "Comment", "Description", "Software"})

_NEGATIVE = "Negative prompt:"
_PAIR = re.compile(r"(?:^|,)\s{0,4}([A-Za-z][\w ]{0,40}):\s?(\"(?:\\.|[^\"\\]){0,2000}\"|[^,\n]{0,2000})")
_MIN_PAIRS = 3
_JOB = "Job ID:"
_JOB_NUMBER = re.compile(r"[0-9a-fA-F-]{8,40}")
_SWITCH = re.compile(r"(?<!\S)--([A-Za-z]{1,12})(?!\S)([^-]{0,500})")


def foreign_recipe(parameters: str, texts: Mapping[str, str]) -> ForeignRecipe | None:
    """Return what these texts of another program say, None when they say nothing of the kind.

    `parameters` is the text under that name, or a comment; `texts` are the others by their keyword.
    """
    if parameters.strip():
        return _of_json(parameters) or _of_lines(parameters[:RAW_TEXT_CHARACTERS])
    for keyword in ("prompt", "workflow"):
        found = _of_graph(texts.get(keyword, ""), texts)
        if found is not None:
            return found
    if "invokeai_metadata" in texts and (found := _of_json(texts["invokeai_metadata"])) is not None:
        return found
    if texts.get("Software", "").strip() == "NovelAI" and (found := _of_json(texts.get("Comment", ""))) is not None:
        description = texts.get("Description", "").strip()
        return found if found.prompt else found.model_copy(update={"prompt": description})
    return _of_midjourney(texts.get("Description", ""))


def _of_graph(text: str, texts: Mapping[str, str]) -> ForeignRecipe | None:
    if not (text.lstrip().startswith("{") and ('"class_type"' in text or '"nodes"' in text)):
        return None
    read = comfyui.read_graph(text)
    # The graph as it ran may have lost what the drawn one still says, and the other way round.
    if not read.get("prompt") and text == texts.get("prompt") and texts.get("workflow"):
        read = comfyui.read_graph(texts["workflow"]) | {name: value for name, value in read.items() if value}
    return _recipe(ForeignTool.COMFYUI, text, read)


def _of_lines(text: str) -> ForeignRecipe:
    lines = text.strip().replace("\r\n", "\n").split("\n")
    details = lines.pop() if len(lines) > 1 and _is_details(lines[-1]) else ""
    start = next((number for number, line in enumerate(lines) if line.startswith(_NEGATIVE)), len(lines))
    pairs = {name.strip().casefold(): _unquoted(value.strip()) for name, value in _PAIR.findall(details)}
    return _recipe(
        ForeignTool.PARAMETERS,
        text,
        {
            "prompt": "\n".join(lines[:start]).strip(),
            "negative_prompt": "\n".join(lines[start:]).removeprefix(_NEGATIVE).strip(),
            **{name: pairs.get(key, "") for name, key in _PAIRS.items()},
        },
    )


_PAIRS = {
    "seed": "seed",
    "steps": "steps",
    "cfg_scale": "cfg scale",
    "sampler": "sampler",
    "model": "model",
    "size": "size",
}


def _is_details(line: str) -> bool:
    return line.startswith("Steps:") or sum(1 for _ in _PAIR.finditer(line)) >= _MIN_PAIRS


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value


def _of_json(text: str) -> ForeignRecipe | None:
    """Return what a text in JSON says, None for one of a program that is not known."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    # Brackets may be nested without end, numbers have no end of digits.
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    for is_of, tool, names in _JSON_FORMATS:
        if is_of(value):
            inner = value.get("sui_image_params", value)
            return _recipe(tool, text, _picked(inner if isinstance(inner, dict) else {}, names))
    return None


_Names = Mapping[str, tuple[str, ...]]
_INVOKEAI: _Names = {
    "prompt": ("positive_prompt",),
    "negative_prompt": ("negative_prompt",),
    "seed": ("seed",),
    "steps": ("steps",),
    "cfg_scale": ("cfg_scale", "guidance"),
    "sampler": ("scheduler",),
    "model": ("model",),
}
_SWARM: _Names = {
    "prompt": ("prompt",),
    "negative_prompt": ("negativeprompt",),
    "seed": ("seed",),
    "steps": ("steps",),
    "cfg_scale": ("cfgscale",),
    "sampler": ("sampler",),
    "model": ("model",),
}
_FOOOCUS: _Names = {
    "prompt": ("prompt",),
    "negative_prompt": ("negative_prompt",),
    "seed": ("seed",),
    "steps": ("steps",),
    "cfg_scale": ("guidance_scale",),
    "sampler": ("sampler",),
    "model": ("base_model",),
    "size": ("resolution",),
}
_NOVELAI: _Names = {
    "prompt": ("prompt",),
    "negative_prompt": ("uc",),
    "seed": ("seed",),
    "steps": ("steps",),
    "cfg_scale": ("scale",),
    "sampler": ("sampler",),
}
_DRAW_THINGS: _Names = {**_NOVELAI, "prompt": ("c",), "model": ("model",), "size": ("size",)}
_JSON_FORMATS: tuple[tuple[Callable[[dict[str, Any]], bool], ForeignTool, _Names], ...] = (
    (lambda value: "sui_image_params" in value, ForeignTool.SWARMUI, _SWARM),
    (lambda value: "positive_prompt" in value, ForeignTool.INVOKEAI, _INVOKEAI),
    (lambda value: "c" in value and "uc" in value, ForeignTool.DRAW_THINGS, _DRAW_THINGS),
    (lambda value: "prompt" in value and "base_model" in value, ForeignTool.FOOOCUS, _FOOOCUS),
    (lambda value: "prompt" in value and "uc" in value, ForeignTool.NOVELAI, _NOVELAI),
)


def _picked(value: Mapping[str, Any], names: _Names) -> dict[str, str]:
    read = {name: next((text for key in keys if (text := _text(value.get(key)))), "") for name, keys in names.items()}
    width, height = _text(value.get("width")), _text(value.get("height"))
    if not read.get("size") and width and height:
        read["size"] = f"{width}x{height}"
    return read


def _text(value: object) -> str:
    if isinstance(value, dict):
        # InvokeAI tells a model by a small table.
        value = value.get("name", value.get("model_name", ""))
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    return ""


def _of_midjourney(text: str) -> ForeignRecipe | None:
    said, mark, job = text.rpartition(_JOB)
    if not mark or _JOB_NUMBER.fullmatch(job.strip()) is None:
        return None
    said = said[:RAW_TEXT_CHARACTERS].strip()
    first = _SWITCH.search(said)
    switches = {name.lower(): value.strip() for name, value in _SWITCH.findall(said)}
    version = switches.get("v") or switches.get("version") or ""
    read = {
        "prompt": said[: first.start()].strip() if first else said,
        "negative_prompt": switches.get("no", ""),
        "seed": switches.get("seed", ""),
        "model": f"Midjourney {version}".strip() if version else "",
        "size": switches.get("ar") or switches.get("aspect") or "",
    }
    return _recipe(ForeignTool.MIDJOURNEY, text, read)


def _recipe(tool: ForeignTool, raw: str, read: Mapping[str, str]) -> ForeignRecipe:
    return ForeignRecipe(tool=tool, raw=raw, **read)
