"""The files of a conversation: written, found, limited, and never a name of theirs on the disk."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent import ErrorCode, RequestRefused, Settings, Studio, Writer
from tests.support.refusals import refusal

FILE_BYTES, TOTAL_BYTES, FILES = 1 << 20, 10 << 20, 200
# The version that is expected of a file which must not be there yet.
NEW = 0


@pytest.fixture
async def files(studio: Studio) -> Any:
    """The files of a new conversation."""
    return studio.files((await studio.conversations.create()).id)


async def names(files: Any) -> list[str]:
    return [one.name for one in await files.list()]


async def test_what_is_written_is_read_to_the_byte_also_after_a_restart(settings: Settings) -> None:
    data, texts = b"\xff\x00\r\nfox", {"a.txt": "\ufeff狐\r\n  🦊\n", "b/c.md": "a?!"}
    async with Studio(settings) as studio:
        key = (await studio.conversations.create()).id
        files = studio.files(key)
        assert (await files.list(), await files.all_texts(), await files.size()) == ((), {}, 0)
        info = await files.write("bin/passwd.bin", data, by="person")
        await files.write("a.txt", texts["a.txt"], by="agent")
        await files.write("b/c.md", "a\ud83d!", by="agent")
    async with Studio(settings) as studio:
        files = studio.files(key)
        assert ((await files.read("bin/passwd.bin")).content, (await files.list())[2]) == (data, info)
        assert await files.all_texts() == texts
        assert (await files.read("a.txt")).content == texts["a.txt"].encode()
        for no_text in (b"\xff\xfe", b"a\0b", b"\xed\xa0\x80"):
            await files.write("no text", no_text, by="person")
            assert await refusal(files.read_text("no text")) is ErrorCode.FILE_NOT_TEXT


async def test_a_file_is_one_whatever_the_case_of_its_name_and_stays_what_it_was_under_another(files: Any) -> None:
    for name in ("b.md", "Über.md", "a/z.md"):
        before = await files.write(name, "1", by="person")
    again = await files.write("u\u0308BER.MD", "2", by="agent")
    assert (again.name, again.written_by, await names(files)) == ("Über.md", "agent", ["a/z.md", "b.md", "Über.md"])
    taken = [files.rename("b.md", name) for name in ("A/Z.md", "a", "a/z.md/d")]
    for attempt in (*taken, files.write("a", "3", by="person"), files.write("B.md/x", "3", by="person")):
        assert await refusal(attempt) is ErrorCode.FILE_NAME_TAKEN
    for name, new_name in (("a/z.md", "A/z.md"), ("A/z.md", "a/z.md/b"), ("a/z.md/b", "x/y.md")):
        assert await files.rename(name, new_name) == before.model_copy(update={"name": new_name})
    await files.delete("ÜBER.md")
    gone = "über.md"
    for attempt in (files.read(gone), files.read_text(gone), files.rename(gone, "c"), files.delete(gone)):
        assert await refusal(attempt) is ErrorCode.FILE_NOT_FOUND
    assert await files.all_texts() == {"b.md": "1", "x/y.md": "1"}
    said: tuple[tuple[Writer, bool | None], ...]
    said = (("agent", None), ("agent", True), ("person", None), ("agent", False), ("person", None))
    flags = [(await files.write("a", "x", by=by, is_untrusted=flag)).is_untrusted for by, flag in said]
    assert flags == [False, True, True, False, False], "it is from outside until something else is said"


async def test_a_file_that_was_changed_deleted_or_made_meanwhile_is_not_overwritten(files: Any) -> None:
    versions = [(await files.write(name, "x", by="person")).version for name in ("a", "b", "a")]
    assert versions == [1, 2, 3], "none is given twice in a conversation"

    async def is_stale(version: int) -> None:
        stale = files.write("a", "mine", by="person", expected_version=version)
        assert await refusal(stale) is ErrorCode.FILE_CHANGED

    await is_stale(1)
    assert await refusal(files.delete("a", expected_version=1)) is ErrorCode.FILE_CHANGED
    await is_stale(NEW)
    await files.delete("a", expected_version=3)
    await is_stale(3)
    seen = await files.write("a", "anew", by="agent", expected_version=NEW)
    await is_stale(3)
    outcomes = await asyncio.gather(
        *(files.write("a", str(at), by="person", expected_version=seen.version) for at in range(1, 6)),
        return_exceptions=True,
    )
    assert [isinstance(one, RequestRefused) for one in outcomes] == [False, True, True, True, True]
    assert await files.read_text("a") == "1"


async def test_no_more_files_none_larger_and_no_more_in_all_than_may_be(studio: Studio, files: Any) -> None:
    for number in range(FILES):
        await files.write(str(number), "x", by="person")
    assert await refusal(files.write("more", "x", by="person")) is ErrorCode.TOO_MANY_FILES
    await files.write("0", "y", by="person")
    await files.delete("1")
    await files.write("more", "x", by="person")
    full = studio.files((await studio.conversations.create()).id)
    for number in range(10):
        await full.write(f"{number}.bin", bytes(FILE_BYTES), by="person")
    assert await full.size() == TOTAL_BYTES
    with pytest.raises(RequestRefused, match="1 MB"):
        await full.write("0.bin", bytes(FILE_BYTES + 1), by="person")
    with pytest.raises(RequestRefused, match="10 MB"):
        await full.write("more", b"x", by="person")
    await full.write("0.bin", b"x", by="person")
    await full.write("more", b"x", by="person")
    assert await full.size() == TOTAL_BYTES - FILE_BYTES + 2


LONGEST = 120
GOOD = (
    *("a", "notes.md", ".env", "folder/in a folder/data-1_2.csv", "Größe.txt", "狐狸/计划 2.md"),
    *("हिन्दी.txt", "ไฟล์.js", "قائمة.md", "x" * LONGEST),
)
BAD = (
    *("", " ", ".", "..", "../a", "a/../b", "a..b", "...", "/etc/passwd", "a/", "a//b", "./a", "a/./b", " a", "a "),
    *("a /b", "a/ b", "C:\\a", "C:a", "a\\b", "a\0b", "a\nb", "a\tb", "a\u00a0b", "<b>", "a?b", "a*b", "a|b", 'a"b'),
    *("~/a", "%2e%2e/a", "a\u200bb", "a\u202eb", "a\u3164b", "a\ufe0fb", "a\U000e0101b", "a\U000e0041b", "\ufeffa"),
    *("a\uff0fb", "\u2024\u2024/a", "\u0301a", "a/\u0301b", "😀", "\ud800", "x" * (LONGEST + 1), "x" * 1_000_000),
)


async def test_a_name_that_leads_elsewhere_or_hides_something_is_refused_by_every_call(files: Any) -> None:
    for name in GOOD:
        await files.write(name, "x", by="agent")
    assert sorted(await names(files)) == sorted(GOOD)
    for name in BAD:
        changes = files.rename(name, "b"), files.rename("a", name), files.write(name, "x", by="agent")
        for attempt in (files.read(name), files.read_text(name), *changes, files.delete(name)):
            with pytest.raises(RequestRefused) as refused:
                await attempt
            assert refused.value.code is ErrorCode.FILE_NAME_INVALID, name
            said = str(refused.value.info.parameters["name"])
            assert said.isprintable(), name
            assert len(said) <= 60
    assert sorted(await names(files)) == sorted(GOOD)
