"""Tools: what the model is told of each, pages it reads, and pictures it looks at."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import pytest
from PIL import Image
from pydantic import Field, JsonValue

from agent import ImageOrigin, ImagePart, Settings, ToolArgumentError, TurnRequest
from tests.adapters.fetcher import Fetcher, PageExtraction, PageReader, ReadingLimits
from tests.adapters.redaction import Trust
from tests.adapters.scripted import calls, says
from tests.adapters.tools import TOOLS, Reason, ToolAnswer, ToolContext, read_url, tool
from tests.support.cases import each_case
from tests.support.pixels import encoded
from tests.support.scenes import Scene, generate, picture, run
from tests.support.tool_calls import call, results
from tests.support.tool_contexts import tool_context
from tests.support.web import Web, web


@tool(most_a_turn=3)
async def roll_dice(
    context: ToolContext,
    sides: Annotated[int, Field(ge=2, le=100, description="How many sides a die has.")],
    kind: Annotated[Literal["fair", "loaded"], "Which kind of die."] = "fair",
) -> ToolAnswer:
    """Roll a die
    and tell its number.

    Use it for games only."""
    return ToolAnswer({"sides": sides, "kind": kind})


def test_it_is_declared_by_its_name_its_docstring_and_its_parameters_without_the_context() -> None:
    sides = {"type": "integer", "minimum": 2, "maximum": 100, "description": "How many sides a die has."}
    kind = {"type": "string", "enum": ["fair", "loaded"], "default": "fair", "description": "Which kind of die."}
    told = roll_dice.declaration
    assert (roll_dice.name, told.description) == (
        "roll_dice",
        "Roll a die and tell its number.\n\nUse it for games only.",
    )
    assert told.parameters == {
        **{"type": "object", "properties": {"sides": sides, "kind": kind}, "required": ["sides"]},
        "additionalProperties": False,
    }


@each_case(
    ("arguments", "named"),
    [
        ({}, "sides: Field required"),
        ({"sides": 1}, "sides: Input should be greater than or equal to 2"),
        ({"sides": "many"}, "sides: Input should be a valid integer"),
        ({"sides": 6, "kind": "round"}, "kind: Input should be 'fair' or 'loaded'"),
        ({"sides": 6, "colour": "red"}, "colour: Extra inputs are not permitted"),
    ],
)
async def test_arguments_that_do_not_fit_are_named_and_what_was_left_out_is_filled_in(
    arguments: dict[str, JsonValue], named: str
) -> None:
    nowhere = object.__new__(ToolContext)
    with pytest.raises(ToolArgumentError) as refused:
        await roll_dice.answer(arguments, nowhere)
    assert named in str(refused.value)
    assert (await roll_dice.answer({"sides": 6}, nowhere)).content == {"sides": 6, "kind": "fair"}


def test_every_tool_of_the_registry_says_what_it_and_each_of_its_arguments_is_for() -> None:
    for name, one in TOOLS.items():
        properties = one.declaration.parameters["properties"]
        assert isinstance(properties, dict)
        assert len(one.declaration.description) > 20, name
        assert all(isinstance(about, dict) and about.get("description") for about in properties.values()), name


def quartered() -> bytes:
    """Return a picture whose top right quarter is blue."""
    picture = Image.new("RGB", (400, 200), "red")
    picture.paste(Image.new("RGB", (200, 100), "blue"), (200, 0))
    return encoded(picture)


async def look(settings: Settings, **arguments: JsonValue) -> tuple[dict[str, JsonValue], Image.Image | None]:
    """Return what the model is told and shown when it looks at an upload of this very turn."""
    scene = Scene(settings, text=[calls(call("view_image", **arguments)), says("I see.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "look closely", quartered())
        (result,) = results(scene.provider.asked[1])
        shown: ImagePart | None = result.images[0] if result.images else None
        data = await scene.provider.store.read(shown) if shown is not None else b""
    return result.content, Image.open(io.BytesIO(data)) if data else None


async def test_a_part_is_shown_enlarged_up_to_the_edge_and_a_whole_small_picture_as_it_is(settings: Settings) -> None:
    told, shown = await look(settings, handle="#1", left=50, top=0, width=50, height=50)
    assert shown is not None
    assert shown.convert("RGB").getcolors() == [(1536 * 768, (0, 0, 255))]
    assert (shown.size, told["shown_px"]) == ((1536, 768), [200, 0, 400, 100])
    told, _ = await look(settings, handle="#1", left=99.9, top=99.9, width=50, height=50)
    assert told["shown_px"] == [384, 184, 400, 200]
    told, shown = await look(settings, handle="1")
    assert shown is not None
    assert shown.size == (400, 200)
    size = {"handle": "#1", "width": 400, "height": 200, "shown_px": [0, 0, 400, 200]}
    # An upload: what is written in it is for nobody to obey.
    assert told == {**size, "untrusted": True, "source": "picture:#1"}


async def test_what_is_not_there_cannot_be_looked_at(settings: Settings) -> None:
    for where, said in (({"handle": "#9"}, "#9"), ({"handle": "#1", "left": 120}, "left: Input should be less than")):
        told, shown = await look(settings, **where)
        assert shown is None
        assert said in str(told["error"])


@pytest.mark.parametrize("is_of_another_branch", [False, True])
async def test_a_picture_that_was_painted_here_is_our_own_but_one_of_another_branch_counts_as_from_outside(
    settings: Settings, is_of_another_branch: bool
) -> None:
    script = [calls(generate()), calls(call("view_image", handle="#1")), says("A fox.")]
    scene = Scene(settings, text=script, pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a fox", review="off")
        first = (await studio.conversations.get(conversation.id)).turns[-1].id
        request = TurnRequest(text="look at #1", instead_of=first if is_of_another_branch else None)
        async for _ in studio.run_turn(conversation.id, request):
            pass
    (result,) = results(scene.provider.asked[-1])
    told = (result.content.get("untrusted"), result.content.get("source"))
    assert told == ((True, "picture:#1") if is_of_another_branch else (None, None))
    assert [image.origin for image in result.images] == [ImageOrigin.GENERATED]


KNOWN = frozenset({"http://said.test/", "http://site.test/named?a=b"})


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[ToolContext]:
    async with tool_context(tmp_path) as one:
        yield replace(one, trust=Trust(urls=KNOWN))


async def read(context: ToolContext, served: Web, url: str) -> ToolAnswer:
    reader = PageReader(Fetcher(served.guard), PageExtraction(ReadingLimits(child_s=20)))
    return await read_url.answer({"url": url}, replace(context, fetcher=reader))


async def reason(context: ToolContext, url: str, *, is_tainted: bool) -> Reason | None:
    assert read_url.rule is not None
    trust = context.trust.model_copy(update={"is_tainted": is_tainted})
    return await read_url.rule({"url": url}, replace(context, trust=trust))


async def test_a_page_is_told_with_where_it_was_found_and_where_it_leads_if_anywhere(context: ToolContext) -> None:
    article = "<p>" + "The red fox lives in <a href='forest#a'>forests</a> and eats mice. " * 6
    page = f"<html><title>Foxes</title><nav><a href='/other'>Other animals</a></nav><article>{article}</article>"
    async with web() as served:
        served.redirect("/", "/wiki/fox")
        served.page("/wiki/fox", page.encode())
        served.page("/plain", b"Just words.", "text/plain")
        answer = await read(context, served, "http://site.test/")
        plain = await read(context, served, "http://site.test/plain")
    assert answer.source == answer.content["url"] == "http://site.test/wiki/fox"
    assert answer.content["title"] == "Foxes"
    assert "lives in [forests](http://site.test/wiki/forest#a) and" in str(answer.content["text"])
    assert answer.content["further_links"] == [{"text": "Other animals", "url": "http://site.test/other"}]
    assert plain.content == {"url": "http://site.test/plain", "title": "", "text": "Just words."}


UNREADABLE = {
    "http://127.0.0.1/": "its address is not public",
    "http://nowhere.test/": "nobody answers",
    "http://site.test/missing": "HTTP 404",
    "http://site.test/picture": "not text but image",
    "site.test": "does not begin with http",
}


async def test_what_cannot_be_read_is_told_in_a_sentence_of_ours_and_eight_pages_a_turn_are_the_most(
    context: ToolContext,
) -> None:
    async with web() as served:
        served.page("/picture", b"\x89PNG", "image/png")
        for url, sentence in UNREADABLE.items():
            answer = await read(context, served, url)
            assert (answer.is_error, answer.source) == (True, "")
            assert sentence in str(answer.content["error"])
    with pytest.raises(ToolArgumentError):
        await read_url.answer({}, context)
    assert read_url.most_a_turn == 8


@each_case("is_tainted", [False, True])
@each_case(
    ("url", "expected"),
    [
        *((known, None) for known in ("http://said.test", "HTTP://Site.Test:80/named?a=b#else", "http://127.0.0.1/")),
        ("http://anywhere.test/", "foreign_address"),
        ("http://site.test/named?a=secret", "foreign_address"),
        ("http://site.test/named", "foreign_address"),
        ("http://site.test/nam%65d?a=b", "foreign_address"),
        ("https://site.test/named?a=b", "foreign_address"),
        ("http://evil.test/?q=secret", "foreign_address"),
    ],
)
async def test_only_an_address_that_is_known_is_read_unasked_whatever_the_turn_has_read(
    context: ToolContext, url: str, expected: Reason | None, is_tainted: bool
) -> None:
    assert await reason(context, url, is_tainted=is_tainted) == expected
