"""What other programs write of how they made a picture, read into a prompt and the few settings that they share.

Every text is somebody's data: sizes, depths and cycles are bounded, nothing raises, and what cannot be read stands in
`raw` alone. Formats, as their programs write them:

* AUTOMATIC1111 and Forge: `parameters`, a prompt, `Negative prompt:` and a line of pairs.
* ComfyUI: `prompt`, the graph as it ran: `{"3": {"class_type": "KSampler", "inputs": {"seed": 1, "positive":
  ["6", 0]}}}`, where a list names another node and the number of its output. Or `workflow`, the graph as it was drawn:
  `nodes` with positional `widgets_values`, and `links`. Anybody can write a node, so what is not known by name is read
  by what it is connected to; every walk visits a node once and ends after a bounded number of steps.
* Fooocus and SwarmUI: `parameters` in JSON. InvokeAI: `invokeai_metadata` in JSON.
* NovelAI: `Description` and a `Comment` in JSON. Draw Things: a comment in JSON with `c` and `uc`.
* Midjourney: `Description`, the prompt with its switches (`--ar 3:2`) and a job's number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.imaging.provenance.recipe import RAW_TEXT_CHARACTERS, ForeignRecipe, ForeignTool

_MOST_BYTES = 4 << 20
_MOST_NODES = 5_000
_MOST_STEPS = 2_000
_LONGEST_TEXT = 20_000

# Where nodes keep words, in the order in which they are joined.
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

# What the positional values of a drawn node are called; one that is not listed has its first text as its text.
_WIDGETS: Mapping[str, tuple[str, ...]] = {
    "KSampler": ("seed", "", "steps", "cfg", "sampler_name", "scheduler", "denoise"),
    "KSamplerAdvanced": ("", "noise_seed", "", "steps", "cfg", "sampler_name", "scheduler"),
    "SamplerCustom": ("", "noise_seed", "", "cfg"),
    "RandomNoise": ("noise_seed",),
    "KSamplerSelect": ("sampler_name",),
    "BasicScheduler": ("scheduler", "steps", "denoise"),
    "CFGGuider": ("cfg",),
    "FluxGuidance": ("guidance",),
    "CheckpointLoaderSimple": ("ckpt_name",),
    "UNETLoader": ("unet_name",),
    "EmptyLatentImage": ("width", "height"),
    "EmptySD3LatentImage": ("width", "height"),
    "CLIPTextEncode": ("text",),
    "CLIPTextEncodeSDXL": ("", "", "", "", "", "", "text_g", "text_l"),
    "CLIPTextEncodeFlux": ("clip_l", "t5xxl", "guidance"),
}


@dataclass(frozen=True)
class _Node:
    kind: str
    inputs: Mapping[str, Any]


@dataclass
class _Graph:
    nodes: Mapping[str, _Node]
    _steps: int = field(default=0)

    def linked(self, value: object) -> tuple[str, int] | None:
        """Return the node and output that the value of an input names, None where it is a value of its own."""
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str | int):
            name = str(value[0])
            if name in self.nodes and isinstance(value[1], int):
                return name, value[1]
        return None

    def may_step(self) -> bool:
        self._steps += 1
        return self._steps <= _MOST_STEPS


def read_graph(text: str) -> dict[str, str]:
    """Return prompt, negative_prompt, seed, steps, cfg_scale, sampler, model and size, as far as the graph says them.

    Never raises: of what is no graph, nothing is returned.
    """
    if len(text) > _MOST_BYTES:
        return {}
    try:
        value = json.loads(text)
    # Brackets may be nested without end, numbers have no end of digits.
    except (ValueError, RecursionError):
        return {}
    graph = _Graph(_nodes(value) if isinstance(value, dict) else {})
    sampler = _sampler(graph)
    if sampler is None:
        return {}
    return {
        "prompt": _prompt(graph, sampler, "positive"),
        "negative_prompt": _prompt(graph, sampler, "negative"),
        "seed": _setting(graph, sampler, _SEEDS, ("noise",)),
        "steps": _setting(graph, sampler, ("steps",), ("sigmas", "scheduler")),
        "cfg_scale": _setting(graph, sampler, ("cfg",), ("guider",)),
        "sampler": _setting(graph, sampler, ("sampler_name",), ("sampler",)),
        "model": _setting(graph, sampler, _MODELS, ("model", "guider")),
        "size": _size(graph, sampler),
    }


def _nodes(value: Mapping[str, Any]) -> dict[str, _Node]:
    drawn = value.get("nodes")
    if isinstance(drawn, list):
        return _drawn_nodes(drawn[:_MOST_NODES], value.get("links"))
    found = {}
    for name, node in list(value.items())[:_MOST_NODES]:
        if isinstance(node, dict) and isinstance(node.get("class_type"), str) and isinstance(node.get("inputs"), dict):
            found[name] = _Node(node["class_type"], node["inputs"])
    return found


def _drawn_nodes(drawn: list[Any], links: object) -> dict[str, _Node]:
    sources: dict[int, list[Any]] = {}
    for link in (links if isinstance(links, list) else [])[: 4 * _MOST_NODES]:
        if isinstance(link, list) and len(link) >= 3 and all(isinstance(part, int) for part in link[:3]):
            sources[link[0]] = [str(link[1]), link[2]]
    found = {}
    for node in drawn:
        if isinstance(node, dict) and isinstance(node.get("type"), str) and isinstance(node.get("id"), int):
            found[str(node["id"])] = _Node(node["type"], _drawn_inputs(node, sources))
    return found


def _drawn_inputs(node: Mapping[str, Any], sources: Mapping[int, list[Any]]) -> dict[str, Any]:
    values = node.get("widgets_values")
    inputs: dict[str, Any] = {}
    if isinstance(values, dict):
        inputs.update(values)
    elif isinstance(values, list):
        names = _WIDGETS.get(node["type"])
        if names is not None:
            inputs.update((name, value) for name, value in zip(names, values, strict=False) if name)
        else:
            inputs["text"] = next((value for value in values if isinstance(value, str)), "")
    for entry in node["inputs"] if isinstance(node.get("inputs"), list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get("link"), int):
            source = sources.get(entry["link"])
            if source is not None:
                inputs[entry["name"]] = source
    return inputs


def _sampler(graph: _Graph) -> str | None:
    """Return the sampler that the saved picture goes back to; of several in a row the first, which has the prompt."""
    samplers = [name for name, node in graph.nodes.items() if _is_sampler(node)]
    for name, node in graph.nodes.items():
        if node.kind in _OUTPUTS:
            met = [one for one in _upstream(graph, name) if _is_sampler(graph.nodes[one])]
            if met:
                return met[-1]
    return samplers[0] if samplers else None


def _is_sampler(node: _Node) -> bool:
    takes_prompts = "positive" in node.inputs or "guider" in node.inputs
    return takes_prompts and any(name in node.inputs for name in (*_SEEDS, "noise", "steps", *_LATENTS))


def _upstream(graph: _Graph, start: str) -> Iterator[str]:
    """Yield the nodes that this one is made from, the nearest first."""
    seen, waiting = {start}, [start]
    while waiting and graph.may_step():
        name = waiting.pop(0)
        if name != start:
            yield name
        for value in graph.nodes[name].inputs.values():
            link = graph.linked(value)
            if link is not None and link[0] not in seen:
                seen.add(link[0])
                waiting.append(link[0])


def _prompt(graph: _Graph, sampler: str, side: str) -> str:
    inputs = graph.nodes[sampler].inputs
    start = graph.linked(inputs.get(side))
    if start is None and (guider := graph.linked(inputs.get("guider"))) is not None:
        within = graph.nodes[guider[0]].inputs
        start = next((link for name in _PROMPT_INPUTS[side] if (link := graph.linked(within.get(name)))), None)
    texts: list[str] = []
    if start is not None:
        _gather(graph, start, side, set(), texts)
    return "\n".join(dict.fromkeys(text for text in texts if text))[:_LONGEST_TEXT]


def _gather(graph: _Graph, link: tuple[str, int], side: str, seen: set[str], texts: list[str]) -> None:
    """Add the words that an output leads back to, each node visited once."""
    waiting = [link]
    while waiting and graph.may_step():
        name, slot = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        node = graph.nodes[name]
        if node.kind == "ConditioningZeroOut":
            continue
        words, found = _words(graph, node)
        texts += words
        if not words and not found:
            found = _passed_on(graph, node, slot, side)
        waiting += reversed(found)


def _words(graph: _Graph, node: _Node) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the words that a node holds itself, and the nodes that it takes words from."""
    words, links = [], []
    for name in _TEXT_INPUTS:
        value = node.inputs.get(name)
        if isinstance(value, str) and value.strip():
            words.append(value.strip())
        elif (link := graph.linked(value)) is not None:
            links.append(link)
    return words, links


def _passed_on(graph: _Graph, node: _Node, slot: int, side: str) -> list[tuple[str, int]]:
    """Return where a node that changes a prompt, or only passes it on, has it from."""
    if "positive" in node.inputs and "negative" in node.inputs:
        own = graph.linked(node.inputs["negative" if slot == 1 else "positive"])
        return [own] if own is not None else []
    named = [
        link
        for name, value in node.inputs.items()
        if (name.startswith("conditioning") or name in ("", "any", "input", "*", side))
        and (link := graph.linked(value)) is not None
    ]
    return named or [link for value in node.inputs.values() if (link := graph.linked(value)) is not None][:1]


def _setting(graph: _Graph, start: str, names: tuple[str, ...], ways: tuple[str, ...]) -> str:
    """Return a setting of the sampler: its own, or that of the nodes it is connected to by these inputs."""
    seen, waiting = set(), [start]
    while waiting and graph.may_step():
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        inputs = graph.nodes[name].inputs
        for wanted in names:
            value = inputs.get(wanted)
            link = graph.linked(value)
            text = _value_of(graph, link[0]) if link is not None else _scalar(value)
            if text:
                return text
        waiting += [link[0] for way in ways if (link := graph.linked(inputs.get(way))) is not None]
    return ""


def _value_of(graph: _Graph, name: str) -> str:
    """Return what a node of one value holds, such as a primitive."""
    inputs = graph.nodes[name].inputs
    known = (*_SEEDS, *_MODELS, "value", "int", "float", "number", "text", "string")
    return next((text for key in known if (text := _scalar(inputs.get(key)))), "")


def _size(graph: _Graph, sampler: str) -> str:
    inputs = graph.nodes[sampler].inputs
    start = next((link for name in _LATENTS if (link := graph.linked(inputs.get(name)))), None)
    if start is None:
        return ""
    for name in (start[0], *_upstream(graph, start[0])):
        node = graph.nodes[name]
        sides = [_side(graph, node, side) for side in ("width", "height")]
        if all(sides):
            return "x".join(sides)
    return ""


def _side(graph: _Graph, node: _Node, name: str) -> str:
    value = node.inputs.get(name)
    link = graph.linked(value)
    text = _value_of(graph, link[0]) if link is not None else _scalar(value)
    return text if text.isdigit() and len(text) <= 6 else ""


def _scalar(value: object) -> str:
    if isinstance(value, str):
        return value.strip()[:200]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)[:40]


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
    read = read_graph(text)
    # The graph as it ran may have lost what the drawn one still says, and the other way round.
    if not read.get("prompt") and text == texts.get("prompt") and texts.get("workflow"):
        read = read_graph(texts["workflow"]) | {name: value for name, value in read.items() if value}
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
