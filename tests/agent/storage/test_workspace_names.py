"""What the files of a workspace may be called, and which names are those of one file."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ErrorCode, RequestRefused
from agent.storage.workspace_names import LONGEST_NAME, checked_name, is_in_the_way, is_name, key_of, shown
from tests.support.cases import each_case

GOOD = (
    "a",
    "notes.md",
    ".env",
    "folder/in a folder/data-1_2.csv",
    "Größe.txt",
    "狐狸/计划 2.md",
    "हिन्दी.txt",
    "ไฟล์.js",
    "قائمة.md",
    "x" * LONGEST_NAME,
)
BAD = (
    "",
    " ",
    ".",
    "..",
    "../a",
    "a/../b",
    "a..b",
    "...",
    "/etc/passwd",
    "a/",
    "a//b",
    "./a",
    "a/./b",
    " a",
    "a ",
    "a /b",
    "a/ b",
    "C:\\a",
    "C:a",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\tb",
    "a\u00a0b",
    "<b>",
    "a?b",
    "a*b",
    "a|b",
    'a"b',
    "~/a",
    "%2e%2e/a",
    "a\u200bb",
    "a\u202eb",
    "a\u3164b",
    "a\ufe0fb",
    "a\U000e0101b",
    "a\U000e0041b",
    "\ufeffa",
    "a\uff0fb",
    "\u2024\u2024/a",
    "\u0301a",
    "a/\u0301b",
    "😀",
    "\ud800",
    "x" * (LONGEST_NAME + 1),
    "x" * 1_000_000,
)


def test_a_name_of_letters_of_any_script_is_kept_as_it_is() -> None:
    assert [name for name in GOOD if checked_name(name) != name or not is_name(name)] == []


def test_a_name_that_leads_elsewhere_or_hides_something_is_refused() -> None:
    assert list(filter(is_name, BAD)) == []
    wrong = []
    for name in BAD:
        with pytest.raises(RequestRefused) as refused:
            checked_name(name)
        said = str(refused.value.info.parameters["name"])
        if refused.value.code is not ErrorCode.FILE_NAME_INVALID or not said.isprintable() or len(said) > 60:
            wrong.append((name, refused.value))
    assert wrong == []


def test_accents_are_kept_in_one_form() -> None:
    apart = "Gro\u0308sse.md"
    assert checked_name(apart) == "Grösse.md"
    assert not is_name(apart)
    assert key_of(apart) == key_of("Grösse.md")


@pytest.mark.parametrize(("one", "other"), [("Notes.MD", "notes.md"), ("ÜBER/狐", "über/狐"), ("ΟΔΟΣ", "οδος")])
def test_names_that_differ_in_their_case_alone_are_those_of_one_file(one: str, other: str) -> None:
    assert key_of(one) == key_of(other)


@each_case(
    ("name", "is_taken"),
    [("a", True), ("A", True), ("a/b/c", True), ("ab", False), ("a/c", False), ("b", False), ("a.b", False)],
)
def test_a_name_is_a_files_or_a_folders(name: str, is_taken: bool) -> None:
    assert is_in_the_way(key_of(name), [key_of("a/b")]) is is_taken


@given(name=st.text(max_size=130))
def test_whatever_is_accepted_stays_below_its_folder_and_is_itself(name: str) -> None:
    try:
        kept = checked_name(name)
    except RequestRefused:
        return
    assert checked_name(kept) == kept == unicodedata.normalize("NFC", name)
    assert all(one.strip(" ") == one != "" for one in kept.split("/"))
    assert not any(one in kept for one in ("..", "\\", "\0", "//", ":"))
    assert key_of(key_of(kept)) == key_of(kept)


def test_a_long_name_is_cut_for_a_sentence() -> None:
    assert shown("a\u202e" * 100) == "a?" * 29 + "a…"
