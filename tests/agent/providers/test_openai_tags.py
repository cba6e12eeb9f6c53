"""Tags in a streamed text: found wherever the pieces are cut, and never held back for long."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.providers import TagSplitter, read_calls
from tests.support.cases import each_case

TOKENS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<", ">", "</", "thi", "nk>", "words", " ", "狐", "{}"]


def split(pieces: list[str]) -> list[tuple[str, str]]:
    splitter = TagSplitter("think", "tool_call")

    def found() -> Iterator[tuple[str, str]]:
        for piece in pieces:
            yield from splitter.feed(piece)
        yield from splitter.end()

    joined: list[tuple[str, str]] = []
    for tag, text in found():
        assert text
        if joined and joined[-1][0] == tag:
            joined[-1] = (tag, joined[-1][1] + text)
        else:
            joined.append((tag, text))
    return joined


@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_a_text_is_taken_apart_the_same_however_it_is_cut(tokens: list[str], sizes: list[int]) -> None:
    text = "".join(tokens)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[start : start + size])
        start += size
    assert split(pieces) == split([text])


@each_case(
    ("text", "names"),
    [
        ("", []),
        (' {"name": "look"} ', ["look"]),
        ('{"name": "look", "arguments": {"a": "x\ny"}}\n{"name": "go", "arguments": null}', ["look", "go"]),
        ("{", None),
        ("[]", None),
        ('{"name": ""}', None),
        ('{"name": "look", "arguments": [1]}', None),
        ('{"name": "look"} and so on', None),
    ],
)
def test_calls_in_words_are_read_or_refused(text: str, names: list[str] | None) -> None:
    calls = read_calls(text)
    assert (None if calls is None else [call.name for call in calls]) == names
