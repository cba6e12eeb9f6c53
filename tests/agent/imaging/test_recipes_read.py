"""Recipes read from files: our own, those of other programs, and whatever a hostile file holds."""

from __future__ import annotations

import functools
import gc
import json
import random
import re
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import RequestRefused
from tests.adapters.recipes import (
    ForeignRecipe,
    ForeignTool,
    Recipe,
    RecipeRefusal,
    RefusedRecipe,
    clean,
    embed,
    exif_of,
    foreign_recipe,
    has_credentials,
    is_ours,
    parameters_text,
    read_exif,
    read_graph,
    read_recipe,
)
from tests.agent.imaging.recipe_samples import (
    FILES,
    JPEGS,
    PNGS,
    PROMPT,
    WEBPS,
    jpeg_segment,
    recipe,
    recipes,
    webp_chunks,
    webp_of,
    with_chunks,
)
from tests.support.cases import each_case
from tests.support.pixels import png_chunk
from tests.support.tables import table

A1111 = (
    "masterpiece, a quokka\nsecond line\nNegative prompt: blurry,\nlowres\n"
    "Steps: 20, Sampler: Euler a, CFG scale: 7, Seed: 42, Size: 512x768, Model: v1-5"
)

DAMAGED = RefusedRecipe(reason=RecipeRefusal.DAMAGED)


def png_of(*texts: tuple[bytes, bytes]) -> bytes:
    return with_chunks(PNGS["png"], *(png_chunk(kind, body) for kind, body in texts))


def ours(text: bytes) -> bytes:
    return png_of((b"iTXt", b"aivista\0\0\0\0\0" + text))


def with_packet(packet: bytes) -> bytes:
    return JPEGS["jpeg"][:2] + jpeg_segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet) + JPEGS["jpeg"][2:]


def exif(comment: bytes, order: str = "MM") -> bytes:
    big = order == "MM"
    form = ">" if big else "<"
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(f"{form}IH", 8, 1)
    first = struct.pack(f"{form}HHIII", 0x8769, 4, 1, 26, 0)
    return head + first + struct.pack(f"{form}HHHIII", 1, 0x9286, 7, len(comment), 44, 0) + comment


def peak_megabytes(action: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] / (1 << 20)
    finally:
        tracemalloc.stop()


NOTHING = [b"", b"x", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\0\0\0\0WEBP"]


@each_case("data", [*(data for _, data in FILES.values()), *NOTHING])
def test_a_file_that_says_nothing_or_is_no_picture_gives_nothing(data: bytes) -> None:
    assert read_recipe(data) is None


def test_a_recipe_in_xmp_alone_is_read() -> None:
    told = embed(PNGS["png"], "image/png", recipe())
    start = told.index(b"aivista\0") - 8
    length = int.from_bytes(told[start : start + 4], "big")
    assert read_recipe(told[:start] + told[start + 12 + length :]) == recipe()


def test_a_recipe_that_another_program_moved_into_an_attribute_is_read() -> None:
    packet = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<r:Description r:about="" xmlns:q="urn:aivista:recipe:1#" '
        'q:Recipe=\'{"version":1,"words":"a &gt; b","created_at":"2026-01-01T00:00:00Z"}\'/>'
        "</r:RDF></x:xmpmeta>"
    )
    found = read_recipe(with_packet(packet.encode()))
    assert isinstance(found, Recipe)
    assert found.words == "a > b"
    again = embed(with_packet(packet.encode()), "image/jpeg", recipe())
    assert read_recipe(again) == recipe()
    assert again.count(b":Recipe") == 2


def test_a_recipe_of_a_later_version_is_told_as_such() -> None:
    newer = ours(b'{"version":2,"words":"x","unheard_of":[1]}')
    assert read_recipe(newer) == RefusedRecipe(reason=RecipeRefusal.NEWER, version=2)
    with_theirs = with_chunks(newer, png_chunk(b"tEXt", b"parameters\0theirs"))
    assert read_recipe(with_theirs) == RefusedRecipe(reason=RecipeRefusal.NEWER, version=2)


BAD_RECIPES = {
    **{name: text.encode() for name, text in table("foreign_recipes")["damaged"].items()},
    "version beyond all bounds": b'{"version":1' + b"0" * 5000 + b"}",
    "invalid utf-8": b'{"version":1,"created_at":"2026-01-01T00:00:00Z","words":"\xff\xfe"}',
    "nested without end": b'{"version":1,"words":' + b"[" * 100_000,
    "too long": b'{"version":1,"created_at":"2026-01-01T00:00:00Z","words":"' + b"a" * (1 << 20) + b'"}',
}


@each_case("name", BAD_RECIPES)
def test_a_recipe_that_is_none_is_called_damaged(name: str) -> None:
    assert read_recipe(ours(BAD_RECIPES[name])) == DAMAGED


def test_an_address_that_is_none_of_the_web_is_left_out_and_half_a_sign_becomes_a_mark() -> None:
    begun = b'{"version":1,"created_at":"2026-01-01T00:00:00Z",'
    found = read_recipe(ours(begun + b'"sources":[{"title":"t","url":"javascript:alert(1)"}]}'))
    assert isinstance(found, Recipe)
    assert (found.sources[0].title, found.sources[0].url) == ("t", "")
    found = read_recipe(ours(begun + b'"words":"a\\ud800b\\u0000c\\uffffd"}'))
    assert isinstance(found, Recipe)
    assert found.words == "a\ufffdbc\ufffdd"
    assert read_recipe(embed(JPEGS["jpeg"], "image/jpeg", found)) == found


@each_case(
    "data",
    [
        png_of((b"tEXt", b"parameters\0" + A1111.encode())),
        png_of((b"zTXt", b"parameters\0\0" + zlib.compress(A1111.encode()))),
        png_of((b"iTXt", b"parameters\0\0\0en\0x\0" + A1111.encode())),
        png_of((b"iTXt", b"parameters\0\1\0\0\0" + zlib.compress(A1111.encode()))),
    ]
    + [
        JPEGS["jpeg"][:2] + jpeg_segment(0xE1, b"Exif\0\0" + exif(comment, order)) + JPEGS["jpeg"][2:]
        for order in ("MM", "II")
        for comment in (
            b"UNICODE\0" + A1111.encode("utf-16-be"),
            b"UNICODE\0" + A1111.encode("utf-16-le"),
            b"UNICODE\0" + A1111.encode("utf-16"),
            b"ASCII\0\0\0" + A1111.encode(),
            bytes(8) + A1111.encode(),
            A1111.encode(),
        )
    ]
    + [
        webp_of(*webp_chunks(WEBPS["webp with profile"]), (b"EXIF", prefix + exif(b"ASCII\0\0\0" + A1111.encode())))
        for prefix in (b"", b"Exif\0\0")
    ],
)
def test_what_another_program_wrote_is_read_from_wherever_it_writes(data: bytes) -> None:
    assert read_recipe(data) == ForeignRecipe(
        tool=ForeignTool.PARAMETERS,
        prompt="masterpiece, a quokka\nsecond line",
        negative_prompt="blurry,\nlowres",
        seed="42",
        steps="20",
        cfg_scale="7",
        sampler="Euler a",
        model="v1-5",
        size="512x768",
        raw=A1111,
    )


def test_a_chunk_with_a_wrong_sum_is_not_trusted() -> None:
    data = png_of((b"tEXt", b"parameters\0theirs"))
    assert read_recipe(data.replace(b"theirs", b"thejrs")) is None
    bare = embed(PNGS["png"], "image/png", recipe(prompt="", words=""))
    assert read_recipe(bare.replace(b"#3b", b"#4c")) == DAMAGED


def test_a_document_with_a_type_of_its_own_is_not_read_and_no_entity_is_expanded() -> None:
    laughs = b"".join(b'<!ENTITY a%d "%b">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 12))
    rdf = (
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:q="urn:aivista:recipe:1#">'
        b"<r:Description><q:Recipe>%b</q:Recipe></r:Description></r:RDF>"
    )
    bomb = b'<!DOCTYPE x [<!ENTITY a0 "ha">' + laughs + b"]>" + rdf % b"&a11;"
    assert peak_megabytes(lambda: read_recipe(with_packet(bomb))) < 5
    for packet in (bomb, b'<!DOCTYPE x SYSTEM "file:///etc/hostname"><x/>', b"<a>" * 20_000):
        assert read_recipe(with_packet(packet)) is None
    good = rdf % b'{"version":1,"created_at":"2026-01-01T00:00:00Z"}'
    assert isinstance(read_recipe(with_packet(good)), Recipe)
    for kind in (b"<!DOCTYPE x>", b'<!DOCTYPE x [<!ENTITY a "b">]>'):
        assert not isinstance(read_recipe(with_packet(kind + good)), Recipe)


@functools.cache
def _bomb() -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()


@each_case("kind", [b"zTXt", b"iTXt"])
@each_case("keyword", [b"aivista", b"parameters", b"XML:com.adobe.xmp", b"prompt"])
def test_a_compression_bomb_takes_no_memory(kind: bytes, keyword: bytes) -> None:
    head = keyword + (b"\0\0" if kind == b"zTXt" else b"\0\1\0\0\0")
    data = png_of((kind, head + _bomb()))
    found: list[object] = []
    assert peak_megabytes(lambda: found.append(read_recipe(data))) < 50
    assert found == [DAMAGED if keyword == b"aivista" else None]
    assert peak_megabytes(lambda: embed(data, "image/png", recipe())) < 50
    assert peak_megabytes(lambda: clean(data, "image/png")) < 50


@each_case(
    "data",
    [
        PNGS["png"][:33] + b"\xff\xff\xff\xf0tEXtparameters\0x",
        b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", bytes(13)) + png_chunk(b"tEXt", b"") * 50_000,
        b"\xff\xd8" + b"\xff" * 500_000,
        b"\xff\xd8" + jpeg_segment(0xE1, b"") * 100_000,
        b"\xff\xd8" + jpeg_segment(0xDA, b"") + b"\xff" * 500_000,
        JPEGS["jpeg"][:2] + jpeg_segment(0xE1, b"Exif\0\0MM\0*\0\0\0\x08\xff\xff") + JPEGS["jpeg"][2:],
        JPEGS["jpeg"][:2] + jpeg_segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff") + JPEGS["jpeg"][2:],
        b"RIFF\xff\xff\xff\xffWEBPVP8X\xff\xff\xff\xff",
        webp_of(*[(b"note", b"")] * 50_000),
        with_packet(b"<" * 60_000),
        with_packet(b'<a b="' + b"&lt;" * 15_000),
        png_of((b"tEXt", b"parameters\0" + b"word " * 100_000)),
        png_of((b"tEXt", b"parameters\0x\n" + b"a:" * 200_000)),
        png_of((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + b"<a/>" * 200_000)),
    ],
)
def test_an_absurd_file_is_read_in_little_memory_and_raises_nothing(data: bytes) -> None:
    assert peak_megabytes(lambda: read_recipe(data)) < 50
    for mime_type in ("image/png", "image/jpeg", "image/webp"):
        embed(data, mime_type, recipe())
    assert not has_credentials(data)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(sorted(FILES)), seed=st.integers(0, 1 << 32), cut=st.floats(0, 1), hits=st.integers(0, 12))
def test_a_damaged_or_truncated_file_raises_nothing_but_the_one_error(
    name: str, seed: int, cut: float, hits: int
) -> None:
    mime_type, data = FILES[name]
    broken = bytearray(embed(data, mime_type, recipe()))
    chance = random.Random(seed)
    for _ in range(hits):
        broken[chance.randrange(len(broken))] = chance.choice([0, 255, chance.randrange(256)])
    file = bytes(broken[: max(1, int(len(broken) * cut))] if cut < 0.9 else broken)
    assert isinstance(read_recipe(file), Recipe | ForeignRecipe | RefusedRecipe | None)
    assert isinstance(embed(file, mime_type, recipe()), bytes)
    try:
        bare = clean(file, mime_type)
    except RequestRefused:
        return
    assert read_recipe(bare) is None


HEADS = [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"RIFF\x60\0\0\0WEBP", b""]


@settings(max_examples=200)
@given(st.binary(max_size=400), st.sampled_from(HEADS), st.text(max_size=300))
def test_any_bytes_and_any_parameters_are_read_without_an_error(noise: bytes, head: bytes, text: str) -> None:
    assert isinstance(read_recipe(head + noise), Recipe | ForeignRecipe | RefusedRecipe | None)
    found = read_recipe(png_of((b"iTXt", b"parameters\0\0\0\0\0" + text.encode())))
    assert isinstance(found, ForeignRecipe) if text.strip() else found is None


# How the readers of this text take its last line apart.
PAIR = re.compile(r'\s*(\w[\w \-/]+):\s*("(?:\\.|[^\\"])+"|[^,]*)(?:,|$)')


def test_the_text_is_the_prompt_and_one_line_of_pairs() -> None:
    text = parameters_text(recipe(model_label="Gemini, Pro"))
    *prompt, line = text.split("\n")
    assert "\n".join(prompt) == PROMPT
    assert dict(PAIR.findall(line)) == {
        "Size": "48x32",
        "Model": '"Gemini, Pro"',
        "Aspect ratio": '"16:9"',
        "Resolution": "2K",
        "Styles": "Ukiyo-e",
        "Created Date": '"2026-11-20T09:30:05+00:00"',
        "Version": "Aivista",
    }


def test_the_persons_words_stand_for_a_prompt_that_was_not_sent_and_it_all_fits_into_a_segment_of_a_jpeg() -> None:
    assert parameters_text(recipe(prompt="", words="a bit brighter")).startswith("a bit brighter\n")
    assert parameters_text(recipe(prompt="", words=" ")) == ""
    long = "\U0001f998" * 999
    longest = recipe(prompt=long * 50, styles=[{"name": long}] * 99, model_label=long)
    assert len(exif_of(8, parameters_text(longest))) < 65_000


@given(recipes())
def test_our_own_text_is_known_again_also_in_exif_and_gives_back_its_prompt(told: Recipe) -> None:
    text = parameters_text(told)
    assert is_ours(text) or not text
    found = foreign_recipe(text, {})
    assert (found is None) is (not text)
    if found is not None and "Negative prompt:" not in told.prompt + told.words:
        assert found.tool is ForeignTool.PARAMETERS
        assert found.prompt == (told.prompt or told.words).strip().replace("\r\n", "\n")
    seen = read_exif(exif_of(5, text))
    assert (seen.orientation, seen.comment, seen.is_foreign) == (5, text, False)


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


def test_words_are_followed_through_reroutes_and_guiders() -> None:
    read = read_graph(json.dumps(simple_graph(**table("foreign_recipes")["followed"])))
    assert "a heron" in read["prompt"]
    assert "in the rain" in read["prompt"]
    assert read["negative_prompt"] == ""
    assert (read["seed"], read["steps"], read["model"]) == ("77", "4", "dream.safetensors")
    assert read_graph(json.dumps(table("foreign_recipes")["flux"])) == {
        **{"prompt": "a fox\na fox in the snow, soft light", "negative_prompt": "", "seed": "12", "steps": "20"},
        **{"cfg_scale": "", "sampler": "euler", "model": "flux1-dev.sft", "size": "1024x768"},
    }


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
    "a number without end": '{"1":{"class_type":"A","inputs":{"positive":1,"seed":' + "9" * 6000 + "}}}",
    "a number beyond any float": '{"1":{"class_type":"A","inputs":{"positive":1,"seed":' + "9" * 1000 + "}}}",
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


@each_case("tool", OTHERS)
def test_texts_in_json_of_other_programs_are_read(tool: ForeignTool) -> None:
    texts, said = OTHERS[tool]
    found = found_in(**texts)
    assert found.tool is tool
    assert (found.prompt, found.negative_prompt, found.seed, found.steps) == ("a fox", "text", "5", "30")
    assert {name: getattr(found, name) for name in said} == said


def test_a_description_in_the_place_of_a_prompt_is_cut_to_its_limit() -> None:
    found = found_in(Software="NovelAI", Comment='{"prompt": "", "uc": "text"}', Description="a\x01fox" * 10_000)
    assert found.prompt == ("afox" * 10_000)[:20_000]


def test_a_description_of_midjourney_is_parted_from_its_switches() -> None:
    found = found_in(
        Description="a fox, ink on paper --ar 3:2 --no text --v 6.1 --seed 12 Job ID: 1b2c3d4e-0000-4000-8000-123456789"
    )
    assert found.tool is ForeignTool.MIDJOURNEY
    assert (found.prompt, found.negative_prompt) == ("a fox, ink on paper", "text")
    assert (found.size, found.model, found.seed) == ("3:2", "Midjourney 6.1", "12")


@each_case(
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
