"""The generation data that other programs write into a picture, read into a prompt and the common settings.

Every text is untrusted: sizes, depths and cycles are bounded, nothing raises, and a part that cannot be read is only in
`raw`. The formats:

* AUTOMATIC1111 and Forge: `parameters`, a prompt, `Negative prompt:` and a line of pairs.
* ComfyUI: `prompt`, the executed graph: `{"3": {"class_type": "KSampler", "inputs": {"seed": 1, "positive":
  ["6", 0]}}}`, where a list names another node and the number of its output. Anybody can write a node, so unknown
  nodes are interpreted by their connections; every walk visits a node once and ends after a bounded number of steps.
* Fooocus and SwarmUI: `parameters` in JSON. InvokeAI: `invokeai_metadata` in JSON.
* NovelAI: `Description` and a `Comment` in JSON. Draw Things: a comment in JSON with `c` and `uc`.
* Midjourney: `Description`, the prompt with its switches (`--ar 3:2`) and a job ID.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agent.imaging.provenance.recipe import LONG_TEXT_CHARACTERS, RAW_TEXT_CHARACTERS, ForeignRecipe, ForeignTool

_MOST_BYTES = 4 << 20
_MOST_NODES = 5_000
_MOST_STEPS = 2_000

# The inputs in which nodes hold text, in the order in which the texts are joined.
_TEXT_INPUTS = (
    *("text", "text_g", "text_l", "clip_l", "clip_g", "t5xxl", "llama", "qwen25_7b", "prompt", "positive_prompt"),
    *("string", "value", "string_a", "string_b", "text1", "text2", "text_a", "text_b", "text_c", "text_d"),
    *("wildcard_text", "populated_text", "Text", "STRING", "multi_line_prompt", "string_field"),
)
_PROMPT_INPUTS = {"positive": ("positive", "conditioning"), "negative": ("negative",)}
_LATENTS = ("latent_image", "latent", "samples", "optional_latent")
_SEEDS = ("seed", "noise_seed")
_MODELS = ("ckpt_name", "unet_name", "model_name", "gguf_name", "checkpoint")
_OUTPUTS = ("SaveImage", "PreviewImage", "SaveImageWebsocket", "Image Save", "SaveAnimatedWEBP")


class _Node(NamedTuple):
    kind: str
    inputs: Mapping[str, Any]


def read_graph(text: str) -> dict[str, str]:
    """Return prompt, negative_prompt, seed, steps, cfg_scale, sampler, model and size; empty where the graph has none.

    Never raises: when the text is no graph with a sampler, the result is an empty dict.
    """
    graph = _Graph(_object(text) if len(text) <= _MOST_BYTES else {})
    sampler = graph.sampler()
    if sampler is None:
        return {}
    return {
        "prompt": graph.prompt(sampler, "positive"),
        "negative_prompt": graph.prompt(sampler, "negative"),
        "seed": graph.setting(sampler, _SEEDS, ("noise",)),
        "steps": graph.setting(sampler, ("steps",), ("sigmas", "scheduler")),
        "cfg_scale": graph.setting(sampler, ("cfg",), ("guider",)),
        "sampler": graph.setting(sampler, ("sampler_name",), ("sampler",)),
        "model": graph.setting(sampler, _MODELS, ("model", "guider")),
        "size": graph.size(sampler),
    }


def _object(text: str) -> dict[str, Any]:
    """Return the content of a JSON object; an empty dict for any other text."""
    try:
        value = json.loads(text)
    # Brackets may be nested too deeply, and numbers may have too many digits.
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


class _Graph:
    """The nodes of a graph by name. All walks together take a bounded number of steps."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._steps = 0
        self.nodes = {
            name: _Node(node["class_type"], node["inputs"])
            for name, node in list(value.items())[:_MOST_NODES]
            if isinstance(node, dict)
            and isinstance(node.get("class_type"), str)
            and isinstance(node.get("inputs"), dict)
        }

    def linked(self, value: object) -> tuple[str, int] | None:
        """Return the node and output that an input is linked to, or None when the input is a plain value."""
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | int):
            name = str(value[0])
            if name in self.nodes and isinstance(value[1], int):
                return name, value[1]
        return None

    def links(self, inputs: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, int]]:
        return [link for name in names if (link := self.linked(inputs.get(name))) is not None]

    def value(self, inputs: Mapping[str, Any], name: str) -> str:
        """Return the value of an input: its own, or that of the linked node, such as a primitive."""
        link = self.linked(inputs.get(name))
        if link is None:
            return _scalar(inputs.get(name))
        held = self.nodes[link[0]].inputs
        known = (*_SEEDS, *_MODELS, "value", "int", "float", "number", "text", "string")
        return next((text for key in known if (text := _scalar(held.get(key)))), "")

    def may_step(self) -> bool:
        self._steps += 1
        return self._steps <= _MOST_STEPS

    def upstream(self, start: str, ways: Sequence[str] | None = None) -> Iterator[str]:
        """Yield a node and all nodes it depends on, the nearest first; follow only the inputs in `ways` if given."""
        seen, waiting = {start}, [start]
        while waiting and self.may_step():
            name = waiting.pop(0)
            yield name
            inputs = self.nodes[name].inputs
            for link in self.links(inputs, list(inputs) if ways is None else ways):
                if link[0] not in seen:
                    seen.add(link[0])
                    waiting.append(link[0])

    def sampler(self) -> str | None:
        """Return the sampler of the saved picture; of several in a chain the first, because it has the prompt."""
        samplers = {
            name: None
            for name, node in self.nodes.items()
            if ("positive" in node.inputs or "guider" in node.inputs)
            and any(key in node.inputs for key in (*_SEEDS, "noise", "steps", *_LATENTS))
        }
        for name, node in self.nodes.items():
            if node.kind in _OUTPUTS and (
                met := [one for one in self.upstream(name) if one in samplers and one != name]
            ):
                return met[-1]
        return next(iter(samplers), None)

    def prompt(self, sampler: str, side: str) -> str:
        inputs = self.nodes[sampler].inputs
        waiting = self.links(inputs, (side,))
        if not waiting and (guider := self.links(inputs, ("guider",))):
            waiting = self.links(self.nodes[guider[0][0]].inputs, _PROMPT_INPUTS[side])[:1]
        seen: set[str] = set()
        texts: list[str] = []
        while waiting and self.may_step():
            name, slot = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            node = self.nodes[name]
            if node.kind == "ConditioningZeroOut":
                continue
            values = [value for key in _TEXT_INPUTS if isinstance(value := node.inputs.get(key), str)]
            words = [text.strip() for text in values if text.strip()]
            texts += words
            found = self.links(node.inputs, _TEXT_INPUTS)
            if not words and not found:
                found = self._passed_on(node, slot, side)
            waiting += reversed(found)
        return "\n".join(dict.fromkeys(texts))[:LONG_TEXT_CHARACTERS]

    def _passed_on(self, node: _Node, slot: int, side: str) -> list[tuple[str, int]]:
        """Return the links from which a node that changes a prompt, or only passes it on, gets it."""
        if "positive" in node.inputs and "negative" in node.inputs:
            return self.links(node.inputs, ("negative" if slot == 1 else "positive",))
        named = [
            name for name in node.inputs if name.startswith("conditioning") or name in ("", "any", "input", "*", side)
        ]
        return self.links(node.inputs, named) or self.links(node.inputs, list(node.inputs))[:1]

    def setting(self, start: str, names: Sequence[str], ways: Sequence[str]) -> str:
        """Return a setting of the sampler: its own, or that of the nodes connected to it through the inputs `ways`."""
        met = (self.value(self.nodes[node].inputs, name) for node in self.upstream(start, ways) for name in names)
        return next((text for text in met if text), "")

    def size(self, sampler: str) -> str:
        for start, _ in self.links(self.nodes[sampler].inputs, _LATENTS)[:1]:
            for name in self.upstream(start):
                sides = [self.value(self.nodes[name].inputs, side) for side in ("width", "height")]
                if all(side.isdigit() and len(side) <= 6 for side in sides):
                    return "x".join(sides)
        return ""


def _scalar(value: object) -> str:
    return value.strip()[:200] if isinstance(value, str) else _number(value)[:40]


def _number(value: object) -> str:
    # An integer may be too large for a float.
    if isinstance(value, float):
        return f"{value:.12g}" if math.isfinite(value) else ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


# The keywords of the PNG texts in which programs store this data.
KEYWORDS = frozenset({"prompt", "invokeai_metadata", "Comment", "Description", "Software"})

_NEGATIVE = "Negative prompt:"
_PAIR = re.compile(r"(?:^|,)\s{0,4}([A-Za-z][\w ]{0,40}):\s?(\"(?:\\.|[^\"\\]){0,2000}\"|[^,\n]{0,2000})")
_MIN_PAIRS = 3
_JOB = "Job ID:"
_JOB_NUMBER = re.compile(r"[0-9a-fA-F-]{8,40}")
_SWITCH = re.compile(r"(?<!\S)--([A-Za-z]{1,12})(?!\S)([^-]{0,500})")

_FIELDS = ("prompt", "negative_prompt", "seed", "steps", "cfg_scale", "sampler", "model", "size")
# The keys that identify a program's JSON, and its names of the fields; of several names, the first one present counts.
_JSON_FORMATS = (
    (
        ForeignTool.SWARMUI,
        {"sui_image_params"},
        ("prompt", "negativeprompt", "seed", "steps", "cfgscale", "sampler", "model", ""),
    ),
    (
        ForeignTool.INVOKEAI,
        {"positive_prompt"},
        ("positive_prompt", "negative_prompt", "seed", "steps", "cfg_scale guidance", "scheduler", "model", ""),
    ),
    (ForeignTool.DRAW_THINGS, {"c", "uc"}, ("c", "uc", "seed", "steps", "scale", "sampler", "model", "size")),
    (
        ForeignTool.FOOOCUS,
        {"prompt", "base_model"},
        ("prompt", "negative_prompt", "seed", "steps", "guidance_scale", "sampler", "base_model", "resolution"),
    ),
    (ForeignTool.NOVELAI, {"prompt", "uc"}, ("prompt", "uc", "seed", "steps", "scale", "sampler", "", "")),
)


def foreign_recipe(parameters: str, texts: Mapping[str, str]) -> ForeignRecipe | None:
    """Return the recipe in these texts of another program, or None when they contain none.

    `parameters` is the text with that keyword, or a comment; `texts` are the other texts by keyword.
    """
    if parameters.strip():
        return _of_json(parameters) or _of_lines(parameters[:RAW_TEXT_CHARACTERS])
    found = _of_graph(texts.get("prompt", "")) or _of_json(texts.get("invokeai_metadata", ""))
    if found is not None:
        return found
    if texts.get("Software", "").strip() == "NovelAI" and (found := _of_json(texts.get("Comment", ""))) is not None:
        description = texts.get("Description", "").strip()
        # Built anew, because a copy would take the text without cutting it to its limit.
        return found if found.prompt else ForeignRecipe(**{**dict(found), "prompt": description})
    return _of_midjourney(texts.get("Description", ""))


def _of_graph(text: str) -> ForeignRecipe | None:
    is_graph = text.lstrip().startswith("{") and '"class_type"' in text
    return ForeignRecipe(tool=ForeignTool.COMFYUI, raw=text, **read_graph(text)) if is_graph else None


def _of_lines(text: str) -> ForeignRecipe:
    lines = text.strip().replace("\r\n", "\n").split("\n")
    has_details = lines[-1].startswith("Steps:") or len(_PAIR.findall(lines[-1])) >= _MIN_PAIRS
    details = lines.pop() if len(lines) > 1 and has_details else ""
    start = next((number for number, line in enumerate(lines) if line.startswith(_NEGATIVE)), len(lines))
    pairs = {name.strip().casefold(): _unquoted(value.strip()) for name, value in _PAIR.findall(details)}
    return ForeignRecipe(
        tool=ForeignTool.PARAMETERS,
        raw=text,
        prompt="\n".join(lines[:start]).strip(),
        negative_prompt="\n".join(lines[start:]).removeprefix(_NEGATIVE).strip(),
        **{name: pairs.get(name.replace("_", " "), "") for name in _FIELDS[2:]},
    )


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        return value


def _of_json(text: str) -> ForeignRecipe | None:
    """Return the recipe in a JSON text, or None when its format is unknown."""
    value = _object(text)
    for tool, required, names in _JSON_FORMATS:
        if required <= value.keys():
            inner = value.get("sui_image_params", value)
            return ForeignRecipe(tool=tool, raw=text, **_picked(inner if isinstance(inner, dict) else {}, names))
    return None


def _picked(value: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    read = {
        name: next((text for key in keys.split() if (text := _text(value.get(key)))), "")
        for name, keys in zip(_FIELDS, names, strict=True)
    }
    width, height = _text(value.get("width")), _text(value.get("height"))
    if not read["size"] and width and height:
        read["size"] = f"{width}x{height}"
    return read


def _text(value: object) -> str:
    if isinstance(value, dict):
        # InvokeAI writes a model as a small object.
        value = value.get("name", value.get("model_name", ""))
    return value if isinstance(value, str) else _number(value)


def _of_midjourney(text: str) -> ForeignRecipe | None:
    prompt, mark, job = text.rpartition(_JOB)
    if not mark or _JOB_NUMBER.fullmatch(job.strip()) is None:
        return None
    prompt = prompt[:RAW_TEXT_CHARACTERS].strip()
    first = _SWITCH.search(prompt)
    switches = {name.lower(): value.strip() for name, value in _SWITCH.findall(prompt)}
    version = switches.get("v") or switches.get("version") or ""
    return ForeignRecipe(
        tool=ForeignTool.MIDJOURNEY,
        raw=text,
        prompt=prompt[: first.start()].strip() if first else prompt,
        negative_prompt=switches.get("no", ""),
        seed=switches.get("seed", ""),
        model=f"Midjourney {version}".strip() if version else "",
        size=switches.get("ar") or switches.get("aspect") or "",
    )
