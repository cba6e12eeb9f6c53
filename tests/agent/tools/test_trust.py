"""What came from outside is framed as such; what the model has before it says what it may do unasked."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from agent import (
    Component,
    ContentPart,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Role,
    SearchNote,
    Source,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Turn,
    TurnSettings,
)
from tests.adapters.records import urls_in
from tests.adapters.tools import MOST_CHARACTERS, Trust, comparable, framed, trust_before, trust_of, uses_of_tools
from tests.support.cases import each_case
from tests.support.tables import table

PAGE = "http://news.test/story"
TABLE = table("trust")


def turn(
    text: str = "hello", *parts: ContentPart, shown: tuple[Component, ...] = (), is_imported: bool = False
) -> Turn:
    said = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=text), *parts))
    begun = Turn(id="t", text=text, settings=TurnSettings(), started_at=datetime.now(UTC))
    return begun.model_copy(update={"messages": (said,), "components": shown, "is_imported": is_imported})


def image(origin: ImageOrigin) -> ImagePart:
    return ImagePart(digest="d", md5="m", mime_type="image/png", size_bytes=1, origin=origin, handle="#1")


def result(name: str, content: dict[str, JsonValue], source: str = "", *, is_error: bool = False) -> ToolResultPart:
    return ToolResultPart(name=name, content=framed(content, source), is_error=is_error)


def page(url: str = PAGE, text: str = "", **more: JsonValue) -> ToolResultPart:
    return result("read_url", {"url": url, "title": "", "text": text, **more}, url)


def answer(*parts: ToolResultPart) -> PromptMessage:
    return PromptMessage(role=Role.TOOL, parts=parts)


def note(*urls: str) -> SearchNote:
    return SearchNote(sources=tuple(Source(title="x", url=url) for url in urls))


def now(*added: PromptMessage | ToolResultPart, past: tuple[Turn, ...] = (), text: str = "go on") -> Trust:
    return trust_of(trust_before(past), turn(text), added, ())


# What taints

OUTSIDE: dict[str, ContentPart] = {
    "a page": page(),
    "what a search found": result("web_search", {"facts": []}, "web_search"),
    "a file from outside": result("read_file", {"text": "x"}, "file:page.md"),
    "an answer of an MCP server": result("desk_open", {"text": "x"}, "mcp:desk"),
    "an error in a server's words": result("desk_open", {"error": "x"}, "mcp:desk", is_error=True),
    "an upload": image(ImageOrigin.UPLOADED),
    "an upload looked at": ToolResultPart(name="view_image", images=(image(ImageOrigin.UPLOADED),)),
}
OURS: dict[str, ContentPart] = {
    "words": TextPart(text="untrusted"),
    "a call": ToolCallPart(name="read_url", arguments={"untrusted": True}),
    "a file of the agent's own": result("read_file", {"text": "x"}),
    "a picture painted here": image(ImageOrigin.GENERATED),
    "a picture painted here, looked at": ToolResultPart(name="view_image", images=(image(ImageOrigin.EDITED),)),
    "a program": result("run_javascript", {"result": {"untrusted": True}}),
}


@each_case(("part", "is_tainted"), [(part, part in OUTSIDE.values()) for part in (*OUTSIDE.values(), *OURS.values())])
def test_what_came_from_outside_taints_its_turn_and_all_that_follow_it(part: ContentPart, is_tainted: bool) -> None:
    assert now(PromptMessage(role=Role.TOOL, parts=(part,))).is_tainted is is_tainted
    later = (turn("look", part), *(turn(f"turn {number}") for number in range(60)))
    assert now(past=later).is_tainted is is_tainted


def test_an_answer_taints_at_once_and_so_do_an_import_and_a_picture_painted_after_a_search() -> None:
    assert now(page()).is_tainted, "while other calls of the same step wait"
    assert now(past=(turn("hello", is_imported=True),)).is_tainted
    assert now(past=(turn("a bridge", shown=(note(),)),)).is_tainted


# What may be read without a click


@each_case(("said", "url"), TABLE["given"])
def test_an_address_the_person_gave_letter_for_letter_is_known_then_and_later(said: str, url: str) -> None:
    (spelled,) = comparable([url])
    assert spelled in now(text=said).urls
    assert spelled in now(past=(turn(said),)).urls


def test_an_address_is_not_known_that_the_person_did_not_give_as_none_in_an_import_was() -> None:
    assert [said for said, url in TABLE["not_given"] if set(comparable([url])) & now(text=said).urls] == []
    shown = turn("read http://a.example/", shown=(note("http://b.example/"),), is_imported=True)
    assert now(past=(shown,)).urls == frozenset()


def test_an_address_that_a_search_found_is_known_but_none_that_a_model_wrote_into_its_facts() -> None:
    facts: list[JsonValue] = [{"item": "x", "source": "http://evil.example/?q=all"}]
    found = turn("search", result("web_search", {"facts": facts}, "web_search"), shown=(note("https://found.example"),))
    assert now(past=(found,)).urls == {"https://found.example/"}
    assert trust_of(Trust(), turn("x"), found.messages, found.components).urls == {"https://found.example/"}


@each_case(("linked", "is_known"), TABLE["linked"])
def test_a_page_makes_known_what_it_names_of_its_own_site_and_nothing_else(linked: str, is_known: bool) -> None:
    for read in (page(text=f"See [next]({linked})."), page(further_links=[{"text": "next", "url": linked}])):
        assert (linked in now(answer(read)).urls) is is_known
        assert (linked in now(read).urls) is is_known


def test_what_a_page_named_is_known_in_the_turn_alone_that_read_it_and_not_from_a_file_or_a_failed_page() -> None:
    named = "http://news.test/next"
    read = page(text=f"See {named}")
    assert named in now(answer(read)).urls
    assert now(past=(turn("read", read),)).urls == frozenset()
    file = result("read_file", {"url": PAGE, "text": named}, "file:page.md")
    broken = result("read_url", {"url": PAGE, "error": named}, PAGE, is_error=True)
    assert now(answer(file, broken)).urls == frozenset()
    assert uses_of_tools([answer(page(), page()), answer(result("list_files", {}))]) == {"read_url": 2, "list_files": 1}


def test_addresses_are_found_without_what_ends_the_sentence_and_compared_with_every_letter_of_their_query() -> None:
    assert {text: list(urls_in(text)) for text in TABLE["found"]} == TABLE["found"]
    assert comparable(["HTTPS://A.example"]) == comparable(["https://a.example:443/"])
    assert comparable(["https://a.example/?q=1"]) != comparable(["https://a.example/?q=2"])


@pytest.mark.parametrize("said", ["a." * 50_000, "-a" * 50_000, "a" * 100_000, "http://" * 15_000, "a.bc " * 20_000])
def test_a_long_message_is_searched_for_addresses_in_no_time(said: str) -> None:
    now(text=said)


# How it is framed


def test_what_came_from_outside_is_marked_whatever_it_says_and_loses_what_nobody_sees_and_our_own_is_not() -> None:
    place = "https://a.example/"
    marked = {"untrusted": True, "source": place}
    assert framed({"handle": "#1", "width": 3}, "") == {"handle": "#1", "width": 3}
    smuggled = "fine\u200b \U000e0049\U000e0067nore\u202e"
    told = framed({"text": smuggled, "rows": [smuggled]}, place)
    assert told == {**marked, "text": "fine nore", "rows": ["fine nore"]}
    assert framed({"untrusted": False, "source": "you"}, place) == marked


def test_ten_megabytes_are_cut_and_the_cut_is_named() -> None:
    shown = framed({"text": "x" * 10_000_000, "more": "y" * 100}, "https://a.example/")
    assert len(str(shown)) < MOST_CHARACTERS + 500
    assert str(shown["text"]).endswith("[truncated]")
    deep = framed({"rows": [{"a": "z" * 1000} for _ in range(100_000)]}, "https://a.example/")
    assert len(str(deep)) < 2 * MOST_CHARACTERS
