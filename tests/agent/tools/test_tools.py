"""Tools: what the model is told of each and by each, and what waits for the person's click."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from PIL import Image
from pydantic import Field, JsonValue

from agent import AivistaError, ErrorCode, ImageOrigin, ImagePart, Settings, ToolArgumentError, TurnRequest
from tests.adapters.fetcher import Fetcher, PageExtraction, PageReader, ReadingLimits
from tests.adapters.models import calls, says
from tests.adapters.tools import (
    TOOLS,
    Reason,
    Sandbox,
    Tool,
    ToolAnswer,
    ToolContext,
    Trust,
    WorkspaceLimits,
    delete_file,
    list_files,
    overwrites,
    read_file,
    read_url,
    run_javascript,
    tool,
    tool_context,
    write_file,
)
from tests.support.cases import each_case
from tests.support.pixels import encoded
from tests.support.refusals import refusal
from tests.support.scenes import Scene, generate, picture, run
from tests.support.tool_calls import call, results
from tests.support.web import web


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[ToolContext]:
    async with tool_context(tmp_path) as one:
        yield one


def tainted(context: ToolContext) -> ToolContext:
    """Return the same within a turn that has something from outside in it."""
    return replace(context, trust=Trust(is_tainted=True))


async def use(context: ToolContext, tool: Tool, **arguments: JsonValue) -> ToolAnswer:
    return await tool.answer(arguments, context)


async def program(context: ToolContext, code: str) -> dict[str, Any]:
    return dict((await run_javascript.answer({"code": code}, context)).content)


# What is declared


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


# Programs


async def test_the_model_is_told_the_result_of_its_program_or_where_it_failed(context: ToolContext) -> None:
    assert await program(context, "[1, 2].map((n) => n * n)") == {"result": [1, 4]}
    told = await program(context, "console.log('a', 1); console.warn('b')")
    assert told == {"result": None, "console": ["a 1", "[warn] b"]}
    assert (await program(context, "'x'.repeat(60000)"))["is_truncated"] is True
    answer = await use(context, run_javascript, code="console.log('before')\nwriteFile('a.txt', 'x')\nmissing()")
    assert answer.is_error
    assert answer.content == {"error": "ReferenceError: missing is not defined (line 3)", "console": ["before"]}
    assert await context.workspace.all_texts() == {}
    stopped = await use(replace(context, sandbox=Sandbox(cpu_s=0.1, wall_s=30.0)), run_javascript, code="while (1);")
    assert stopped.is_error
    assert "it may compute for 0.1 s" in str(stopped.content["error"])
    description = run_javascript.declaration.description
    assert all(word in description for word in ("ES2023", "await", "writeFile", "2.5 seconds", "64 MB"))


async def test_a_program_reads_and_writes_files_and_one_that_does_not_fit_is_told(tmp_path: Path) -> None:
    async with tool_context(tmp_path, WorkspaceLimits(files=4, file_bytes=1000, total_bytes=3000)) as context:
        await context.workspace.write("in.csv", "n\n1\n2\n", by="person")
        await context.workspace.write("picture.bin", b"\xff", by="person")
        code = "const rows = files['in.csv'].trim().split('\\n').slice(1); writeFile('sum', `${eval(rows.join('+'))}`);"
        told = await program(context, f"{code} Object.keys(files)")
        assert told == {"result": ["in.csv"], "written": ["sum"]}
        [written] = [one for one in await context.workspace.list() if one.name == "sum"]
        assert (written.written_by, written.is_untrusted) == ("agent", False)
        code = "writeFile('../up.txt', 'x'); writeFile('big', 'x'.repeat(1001)); writeFile('in.csv', readFile('sum'))"
        told = await program(context, code)
        assert (told["written"], set(told["not_written"])) == (["in.csv"], {"../up.txt", "big"})
        assert await context.workspace.all_texts() == {"in.csv": "3", "sum": "3"}


SOURCES = {
    "files['mine.md']": "",
    "'page.md' in files": "",
    "readFile('page.md').slice(7, 11)": "file:page.md",
    "Object.values(files).length": "file:page.md",
    "Object.keys(files)": "files",
    "try { readFile('none') } catch (error) { error.message }": "files",
    "console.log(files['page.md']); null.x": "file:page.md",
}


async def test_what_a_program_makes_of_a_file_from_outside_is_from_outside_and_overwrites_nothing(
    context: ToolContext,
) -> None:
    await context.workspace.write("page.md", "from the web", by="agent", is_untrusted=True)
    await context.workspace.write("mine.md", "ours", by="person")
    assert {code: (await use(context, run_javascript, code=code)).source for code in SOURCES} == SOURCES
    told = await program(context, "for (const name of ['mine.md', 'new.md']) writeFile(name, files['page.md'])")
    assert told["written"] == ["new.md"]
    assert "use write_file" in str(told["not_written"]["mine.md"])
    told = await program(tainted(context), "writeFile('MINE.md', 'theirs'); writeFile('too.md', 'x')")
    assert told["written"] == ["too.md"]
    outside = {one.name for one in await context.workspace.list() if one.is_untrusted}
    assert outside == {"page.md", "new.md", "too.md"}
    assert await context.workspace.read_text("mine.md") == "ours"


# Files


async def test_a_file_is_written_read_listed_and_deleted(context: ToolContext) -> None:
    written = await use(context, write_file, name="plans/狐.md", content="# Fuchs\n\nrot\n")
    assert written == ToolAnswer({"name": "plans/狐.md", "size_bytes": 13})
    read = await use(context, read_file, name="plans/狐.md")
    assert read == ToolAnswer({"name": "plans/狐.md", "lines": 3, "from_line": 1, "text": "# Fuchs\n\nrot\n"})
    await context.workspace.write("mine.bin", b"\xff", by="person")
    rows: list[JsonValue] = [
        {"name": "mine.bin", "size_bytes": 1, "written_by": "person"},
        {"name": "plans/狐.md", "size_bytes": 13, "written_by": "agent"},
    ]
    assert await use(context, list_files) == ToolAnswer({"files": rows})
    assert await use(context, delete_file, name="plans/狐.md") == ToolAnswer({"deleted": "plans/狐.md"})
    refused: list[tuple[Tool, dict[str, JsonValue], ErrorCode]] = [
        (read_file, {"name": "nowhere.md"}, ErrorCode.FILE_NOT_FOUND),
        (read_file, {"name": "mine.bin"}, ErrorCode.FILE_NOT_TEXT),
        (read_file, {"name": "mine.bin", "from_line": 0}, ErrorCode.BAD_TOOL_ARGUMENTS),
        (write_file, {"name": "/etc/passwd", "content": "x"}, ErrorCode.FILE_NAME_INVALID),
        (write_file, {"name": "a", "content": "x" * (1 << 20) + "x"}, ErrorCode.FILE_TOO_LARGE),
        (delete_file, {"name": "nowhere.md"}, ErrorCode.FILE_NOT_FOUND),
    ]
    for refusing, arguments, code in refused:
        assert await refusal(use(context, refusing, **arguments), AivistaError) is code, arguments
    assert [one.name for one in await context.workspace.list()] == ["mine.bin"]


LINES: list[tuple[dict[str, JsonValue], str]] = [
    ({}, "one\ntwo\r\nthree\u2028still three"),
    ({"from_line": 2}, "two\r\nthree\u2028still three"),
    ({"from_line": 2, "to_line": 2}, "two\r\n"),
    ({"to_line": 1}, "one\n"),
    ({"from_line": 3, "to_line": 99}, "three\u2028still three"),
]


async def test_a_file_is_read_by_lines_as_editors_count_them_and_a_long_one_in_pieces(context: ToolContext) -> None:
    long = "".join(f"{number:06d} {'x' * (number % 90)}\n" for number in range(4000))
    for name, text in {"a": LINES[0][1], "empty": "", "long": long, "json": "x" * 100_000 + "\nlast"}.items():
        await context.workspace.write(name, text, by="person")
    for lines, text in LINES:
        read = await use(context, read_file, name="a", **lines)
        assert read.content == {"name": "a", "lines": 3, "from_line": lines.get("from_line", 1), "text": text}
    for wrong in ({"from_line": 4}, {"from_line": 3, "to_line": 2}):
        read = await use(context, read_file, name="a", **wrong)
        assert read.is_error
        assert "a has 3 lines" in str(read.content["error"])
    assert (await use(context, read_file, name="empty")).content["text"] == ""
    pieces: list[str] = []
    following: JsonValue = 1
    while following is not None:
        told = (await use(context, read_file, name="long", from_line=following)).content
        pieces.append(str(told["text"]))
        following = told.get("next_line")
    assert ("".join(pieces), len(pieces) > 4, max(map(len, pieces)) <= 40_000) == (long, True, True)
    first = (await use(context, read_file, name="json")).content
    assert first["text"] == "x" * 40_000 + "… (this line is longer)"
    assert (await use(context, read_file, name="json", from_line=first["next_line"])).content["text"] == "last"


async def test_what_a_tainted_turn_writes_is_from_outside_and_overwriting_waits_for_a_click_in_it_alone(
    context: ToolContext,
) -> None:
    await use(tainted(context), write_file, name="a.md", content="buy now")
    await use(context, write_file, name="b.md", content="my own")
    for _ in range(2):
        assert (await use(context, read_file, name="a.md")).source == "file:a.md"
        await context.workspace.write("a.md", "buy later", by="person")
    assert ((await use(context, read_file, name="b.md")).source, (await use(context, list_files)).source) == (
        "",
        "files",
    )
    await use(context, write_file, name="a.md", content="my own, too")
    assert (await use(context, read_file, name="a.md")).source == (await use(context, list_files)).source == ""
    assert [await overwrites(context, name) for name in ("a.md", "A.MD", "c.md")] == [True, True, False]
    content: dict[str, JsonValue] = {"content": "x"}
    for rule, more, reason in ((write_file.rule, content, "overwrites"), (delete_file.rule, {}, "deletes")):
        for name, expected in (("A.md", reason), ("new.md", None)):
            assert rule is not None
            assert await rule({"name": name, **more}, tainted(context)) == expected
            assert await rule({"name": name, **more}, context) is None
    assert (read_file.rule, list_files.rule) == (None, None)


# Pictures


async def look(settings: Settings, **arguments: JsonValue) -> tuple[dict[str, JsonValue], Image.Image | None]:
    """Return what the model is told and shown when it looks at an upload of this very turn."""
    scene = Scene(settings, text=[calls(call("view_image", **arguments)), says("I see.")])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        picture = Image.new("RGB", (400, 200), "red")
        picture.paste(Image.new("RGB", (200, 100), "blue"), (200, 0))
        await run(studio, conversation.id, "look closely", encoded(picture))
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


# Pages


async def test_a_page_is_told_with_where_it_was_found_and_where_it_leads_or_why_it_cannot_be_read(
    context: ToolContext,
) -> None:
    article = "<p>" + "The red fox lives in <a href='forest#a'>forests</a> and eats mice. " * 6
    page = f"<html><title>Foxes</title><nav><a href='/other'>Other animals</a></nav><article>{article}</article>"
    unreadable = {
        "http://127.0.0.1/": "its address is not public",
        "http://nowhere.test/": "nobody answers",
        "http://site.test/missing": "HTTP 404",
        "http://site.test/picture": "not text but image",
        "site.test": "does not begin with http",
    }
    async with web() as served:
        served.redirect("/", "/wiki/fox")
        served.page("/wiki/fox", page.encode())
        served.page("/plain", b"Just words.", "text/plain")
        served.page("/picture", b"\x89PNG", "image/png")
        reader = PageReader(Fetcher(served.guard), PageExtraction(ReadingLimits(child_s=20)))
        here = replace(context, fetcher=reader)
        answer = await use(here, read_url, url="http://site.test/")
        plain = await use(here, read_url, url="http://site.test/plain")
        for url, sentence in unreadable.items():
            refused = await use(here, read_url, url=url)
            assert (refused.is_error, refused.source) == (True, "")
            assert sentence in str(refused.content["error"])
    assert answer.source == answer.content["url"] == "http://site.test/wiki/fox"
    assert answer.content["title"] == "Foxes"
    assert "lives in [forests](http://site.test/wiki/forest#a) and" in str(answer.content["text"])
    assert answer.content["further_links"] == [{"text": "Other animals", "url": "http://site.test/other"}]
    assert plain.content == {"url": "http://site.test/plain", "title": "", "text": "Just words."}


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
    assert read_url.rule is not None
    trust = Trust(urls=frozenset({"http://said.test/", "http://site.test/named?a=b"}), is_tainted=is_tainted)
    assert await read_url.rule({"url": url}, replace(context, trust=trust)) == expected
