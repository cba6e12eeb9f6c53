"""Graphs and texts as the other programs write them, made by hand for these tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.recipes import ForeignRecipe, ForeignTool, read_graph, read_recipe
from tests.agent.imaging.provenance.samples import PNGS, png_chunk, with_chunks
from tests.support.cases import each_case
from tests.support.tables import table


def file_with(**texts: str) -> bytes:
    chunks = (
        png_chunk(b"iTXt", keyword.encode() + bytes(5) + text.encode("utf-8", "surrogatepass"))
        for keyword, text in texts.items()
    )
    return with_chunks(PNGS["png"], *chunks)


def found_in(**texts: str) -> ForeignRecipe:
    found = read_recipe(file_with(**texts))
    assert isinstance(found, ForeignRecipe)
    return found


def node(kind: str, **inputs: object) -> dict[str, object]:
    return {"class_type": kind, "inputs": inputs}


def simple_graph(**changes: object) -> dict[str, Any]:
    return {**table("foreign_recipes")["simple"], **changes}


def test_the_prompts_and_settings_of_a_graph_are_read_from_its_nodes() -> None:
    graph = json.dumps(simple_graph())
    assert found_in(prompt=graph) == ForeignRecipe(
        tool=ForeignTool.COMFYUI,
        prompt="a heron at dawn",
        negative_prompt="blurry, text",
        seed="815",
        steps="28",
        cfg_scale="6.5",
        sampler="dpmpp_2m",
        model="dream.safetensors",
        size="832x1216",
        raw=graph,
    )


def test_words_are_followed_through_reroutes_guiders_and_the_links_and_places_of_a_drawing() -> None:
    read = read_graph(json.dumps(simple_graph(**table("foreign_recipes")["followed"])))
    assert "a heron" in read["prompt"]
    assert "in the rain" in read["prompt"]
    assert read["negative_prompt"] == ""
    assert (read["seed"], read["steps"], read["model"]) == ("77", "4", "dream.safetensors")
    assert read_graph(json.dumps(table("foreign_recipes")["flux"])) == {
        **{"prompt": "a fox\na fox in the snow, soft light", "negative_prompt": "", "seed": "12", "steps": "20"},
        **{"cfg_scale": "", "sampler": "euler", "model": "flux1-dev.sft", "size": "1024x768"},
    }
    found = found_in(workflow=json.dumps(table("foreign_recipes")["drawn"]))
    assert (found.prompt, found.negative_prompt) == ("a heron", "blurry")
    assert (found.seed, found.steps, found.sampler) == ("815", "28", "euler")


HOSTILE_GRAPHS = {
    "a circle of nodes": json.dumps(
        simple_graph(**{"6": node("A", conditioning=["7", 0]), "7": node("B", conditioning=["6", 0])})
    ),
    "a node that is its own source": json.dumps(simple_graph(**{"6": node("CLIPTextEncode", text=["6", 0])})),
    "links to nowhere": json.dumps(simple_graph(**{"3": node("KSampler", seed=["99", 0], positive=["98", "x"])})),
    "ten thousand nodes in a row": json.dumps(
        simple_graph(**{str(n): node("A", conditioning=[str(n + 1), 0]) for n in range(100, 10_100)})
    ),
    "nested without end": '{"class_type":' + "[" * 200_000,
    "a number without end": '{"1":{"class_type":"KSampler","inputs":{"seed":' + "9" * 6000 + "}}}",
    "not a number": '{"1":{"class_type":"KSampler","inputs":{"seed":NaN,"positive":["1",0],"cfg":Infinity}}}',
    "lists for texts": json.dumps(simple_graph(**{"6": node("CLIPTextEncode", text=[[["x"]]])})),
    "no object": '["class_type"]',
    "an empty graph": '{"nodes": [], "class_type": null}',
    "half a letter": '{"1":{"class_type":"KSampler","inputs":{"seed":1,"positive":["2",0]}},'
    '"2":{"class_type":"T","inputs":{"text":"\\ud800 a fox"}}}',
}


@each_case("graph", HOSTILE_GRAPHS.values())
def test_a_hostile_graph_gives_what_can_be_read_and_never_an_error(graph: str) -> None:
    found = read_recipe(file_with(prompt=graph))
    assert found is None or (isinstance(found, ForeignRecipe) and len(found.prompt) <= 20_000)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["1", "2", "nodes", "links", "class_type", "inputs", "positive", "text", "seed", "guider"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=30,
    )
)
def test_no_graph_whatsoever_raises(value: object) -> None:
    read = read_graph(json.dumps(value))
    assert all(isinstance(text, str) for text in read.values())


def test_of_two_samplers_in_a_row_the_first_tells_the_prompt_and_a_long_one_is_cut() -> None:
    links = {"positive": ["31", 0], "negative": ["7", 0], "latent_image": ["32", 0], "model": ["4", 0]}
    second = {
        "30": node("KSampler", seed=1, steps=9, cfg=2, **links),
        "31": node("CLIPTextEncode", text="sharper"),
        "32": node("LatentUpscale", samples=["3", 0], width=1, height=1),
        "8": node("VAEDecode", samples=["30", 0]),
    }
    assert read_graph(json.dumps(simple_graph(**second)))["prompt"] == "a heron at dawn"
    long = simple_graph(**{"6": node("CLIPTextEncode", text="x" * 50_000)})
    assert len(found_in(prompt=json.dumps(long)).prompt) == 20_000


OTHERS = {ForeignTool(tool): (texts, said) for tool, texts, said in table("foreign_recipes")["others"]}


@pytest.mark.parametrize("tool", OTHERS)
def test_texts_in_json_of_other_programs_are_read(tool: ForeignTool) -> None:
    texts, said = OTHERS[tool]
    found = found_in(**texts)
    assert found.tool is tool
    assert (found.prompt, found.negative_prompt, found.seed, found.steps) == ("a fox", "text", "5", "30")
    assert {name: getattr(found, name) for name in said} == said


def test_a_description_of_midjourney_is_parted_from_its_switches() -> None:
    found = found_in(
        Description="a fox, ink on paper --ar 3:2 --no text --v 6.1 --seed 12 Job ID: 1b2c3d4e-0000-4000-8000-123456789"
    )
    assert found.tool is ForeignTool.MIDJOURNEY
    assert (found.prompt, found.negative_prompt) == ("a fox, ink on paper", "text")
    assert (found.size, found.model, found.seed) == ("3:2", "Midjourney 6.1", "12")


@pytest.mark.parametrize(
    "texts",
    [
        {"Description": "my holiday in Rome"},
        {"Comment": '{"prompt": "x", "uc": ""}'},
        {"Software": "GIMP", "Comment": "Created with GIMP"},
        {"prompt": "just words"},
        {"invokeai_metadata": "[]"},
    ],
)
def test_an_ordinary_text_is_no_recipe(texts: dict[str, str]) -> None:
    assert read_recipe(file_with(**texts)) is None
