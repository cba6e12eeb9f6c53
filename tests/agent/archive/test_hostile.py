"""Archives by an enemy's hand: each is refused as a whole, and nothing of it is left."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent import ErrorCode, ImageOrigin, RequestRefused, StorageFailure
from tests.adapters.archives import (
    MIME_OF_SUFFIX,
    SUFFIXES,
    ArchiveLimits,
    Manifest,
    check_json,
    is_file_name,
    is_folder_name,
    parsed,
)
from tests.agent.archive.shelf import Place, contents, kept_turns, place
from tests.agent.archive.values import PNGS, png
from tests.support.cases import each_case
from tests.support.pixels import png_with_header
from tests.support.refusals import refusal
from tests.support.tables import table

SMALL = ArchiveLimits(
    archive_bytes=3 << 20,
    file_bytes=2 << 20,
    json_bytes=1 << 20,
    json_values=5000,
    json_depth=30,
    files=60,
    directory_bytes=32 << 10,
    ratio=20,
    ratio_from_bytes=256 << 10,
)
CONVERSATION, PAGE = "conversations/0001/conversation.json", "conversations/0001/conversation.md"
BLOB = f"blobs/{'a' * 64}"
Files = dict[str, bytes]
Case = Callable[[Files], bytes]
UNREADABLE, UNSAFE = ErrorCode.ARCHIVE_UNREADABLE, ErrorCode.ARCHIVE_UNSAFE
TOO_LARGE, DAMAGED = ErrorCode.ARCHIVE_TOO_LARGE, ErrorCode.ARCHIVE_DAMAGED
INCONSISTENT, NO_PICTURE = ErrorCode.ARCHIVE_INCONSISTENT, ErrorCode.ARCHIVE_PICTURE_UNREADABLE


@pytest.fixture
async def good(tmp_path: Path) -> Files:
    here = place(tmp_path / "good")
    [key] = await here.keep(kept_turns(signature=bytes(range(250)) * 20))
    return contents((await here.archive.export_conversation(key, "local")).path)


@pytest.fixture
async def there(tmp_path: Path) -> Place:
    one = place(tmp_path / "there", SMALL)
    await one.images.write(png(99), "image/png", ImageOrigin.UPLOADED)
    return one


def packed(files: Mapping[str, bytes], *, way: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP of these files, in this order."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", way) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def listed(files: Files) -> Files:
    """Return the files with a manifest that lists them as they are now."""
    manifest = json.loads(files["manifest.json"])
    others = {name: data for name, data in files.items() if name != "manifest.json"}
    manifest["files"] = [{"name": name, "size_bytes": len(data), "sha256": sha(data)} for name, data in others.items()]
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def manifest(change: Callable[[Any], object]) -> Case:
    """Return an archive whose manifest was changed."""

    def make(files: Files) -> bytes:
        told = json.loads(files["manifest.json"])
        change(told)
        return packed({**files, "manifest.json": json.dumps(told).encode()})

    return make


def conversation(change: Callable[[Any], object]) -> Case:
    """Return an archive whose conversation was changed, and whose manifest says so."""

    def make(files: Files) -> bytes:
        told = json.loads(files[CONVERSATION])
        change(told)
        return packed(listed({**files, CONVERSATION: json.dumps(told).encode()}))

    return make


def unlisted(more: Files) -> Case:
    return lambda files: packed({**files, **more})


def more(name: str, data: bytes) -> Case:
    """Return an archive with one more file, or another in its place, which the manifest lists."""
    return lambda files: packed(listed({**files, name: data}))


def without(kind: str, *, is_listed: bool = False) -> Case:
    """Return an archive without its first file of this kind, which the manifest knows of or not."""

    def make(files: Files) -> bytes:
        kept = {key: data for key, data in files.items() if key != first(files, kind)}
        return packed(kept if is_listed else listed(kept))

    return make


def first(files: Files, kind: str) -> str:
    return next(name for name in files if name.startswith(kind))


def altered(kind: str) -> Case:
    return lambda files: packed({**files, first(files, kind): files[first(files, kind)][:-1] + b"!"})


def replaced(old: bytes, new: bytes) -> Case:
    return lambda files: more(CONVERSATION, files[CONVERSATION].replace(old, new))(files)


def named(name: str, data: bytes = b"x", **attributes: object) -> Case:
    """Return the archive with a further entry under a raw name."""

    def make(files: Files) -> bytes:
        sink = io.BytesIO(packed(files))
        with warnings.catch_warnings(), zipfile.ZipFile(sink, "a") as archive:
            warnings.simplefilter("ignore")
            entry = zipfile.ZipInfo("placeholder")
            entry.filename = name
            for key, value in attributes.items():
                setattr(entry, key, value)
            archive.writestr(entry, data)
        return sink.getvalue()

    return make


def linked(kind: int, data: bytes = b"x") -> Case:
    return named(BLOB, data, external_attr=(kind | 0o777) << 16, create_system=3)


def encrypted(files: Files) -> bytes:
    data = bytearray(packed(files))
    for signature, place_of_flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + place_of_flags] |= 1
            at = data.find(signature, at + 4)
    return bytes(data)


def lying_about_a_size(files: Files) -> bytes:
    """Return an archive whose list declares ten bytes for a page that unpacks to a million."""
    whole = listed({**files, PAGE: b"\0" * 1_000_000})
    told = json.loads(whole["manifest.json"])
    for file in told["files"]:
        file["size_bytes"] = 10 if file["name"] == PAGE else file["size_bytes"]
    data = packed({**whole, "manifest.json": json.dumps(told).encode()})
    assert struct.pack("<L", 1_000_000) in data
    return data.replace(struct.pack("<L", 1_000_000), struct.pack("<L", 10))


def with_a_broken_stream(files: Files) -> bytes:
    data = packed(files)
    at = data.find(CONVERSATION.encode()) + len(CONVERSATION)
    return data[: at + 40] + bytes(200) + data[at + 240 :]


def disguised(data: bytes, suffix: str = "png") -> Case:
    """Return the archive with a file of that content for a picture, under the digest it has."""
    return more(f"pictures/{sha(data)}.{suffix}", data)


def many_names(count: int, **fields: object) -> Case:
    """Return the archive with its first file of a workspace under many names."""

    def change(one: Any) -> None:
        one["files"] = [{**one["files"][0], **fields, "name": f"{number}.md"} for number in range(count)]

    return conversation(change)


def one_file_under_many_names(files: Files) -> bytes:
    """Return a small archive that would take a hundred times its size in a database."""
    data = random.Random(1).randbytes(10_000)
    fields = {"digest": sha(data), "size_bytes": len(data)}
    return many_names(199, **fields)({**files, f"files/{sha(data)}": data})


def edit() -> dict[str, object]:
    part = json.loads(kept_turns().pictures[0].image.model_dump_json())
    good = {"box": [0, 0, 8, 8], "frame": [8, 8], "feather_px": 1.0, "work": [8, 8], "matrix": [1, 0, 0, 0, 1, 0]}
    record = {"kind": "mask", "verdict": "good", "reason": "same_picture", "base": part, "mask": part, "raw": part}
    return {**record, "placement": good}


def put(where: str, value: object) -> Callable[[Any], None]:
    """Return a change of one place, its steps parted by dots; `+` is the end of a list."""

    def change(told: Any) -> None:
        if ".edit." in where:
            told["pictures"][1]["edit"] = edit()
        *steps, last = (int(step) if step.isdigit() else step for step in where.split("."))
        for step in steps:
            told = told[step]
        if last == "+":
            told.append(value)
        elif isinstance(value, dict) and isinstance(told.get(last), dict):
            told[last].update(value)
        else:
            told[last] = value

    return change


def twice(*steps: str | int) -> Callable[[Any], None]:
    """Return a change that has the first of a list stand there twice."""

    def change(told: Any) -> None:
        for step in steps:
            told = told[step]
        told.append(told[0])

    return change


def made_from_each_other(one: Any) -> None:
    for kept in one["pictures"]:
        kept["parents"] = ["#3" if kept["handle"] == "#2" else "#2"]


def waiting_for_what_is_too_deep(one: Any) -> None:
    ask = {"call": 0, "tool": "write_file", "reason": "overwrites", "arguments": "[" * 10_000}
    one["turns"][0]["components"].append({"type": "consent_card", "asks": [ask], "state": "allowed"})


def as_older(signatures: object, version: int = 3) -> Case:
    """Return an archive as versions 1 to 3 told it, with these signatures of its first turn."""

    def make(files: Files) -> bytes:
        told, head = json.loads(files[CONVERSATION]), json.loads(files["manifest.json"])
        del told["starred"], told["tags"]
        for one in (*told["turns"], *told["pictures"]):
            one["signatures"] = []
        for one in told["pictures"]:
            one |= {"is_starred": False, "tags": []}
        told["turns"][0]["signatures"] = signatures
        head = json.dumps({**head, "version": version}).encode()
        return packed(listed({**files, "manifest.json": head, CONVERSATION: json.dumps(told).encode()}))

    return make


OLD = "not as versions 1 to 3 told it"
# With what is said for the debug report, where the code alone does not tell that it was refused for this very reason.
CASES: dict[str, tuple[ErrorCode, str, Case]] = {
    **{case: (UNSAFE, "", named(name)) for case, name in table("archive_attacks")["names"]},
    **{
        case: (ErrorCode[f"ARCHIVE_{code}"], why, manifest(put(where, value)))
        for case, code, why, where, value in table("archive_attacks")["manifest"]
    },
    **{
        case: (INCONSISTENT, why, conversation(put(where, value)))
        for case, why, where, value in table("archive_attacks")["conversation"]
    },
    "nothing at all": (UNREADABLE, "", lambda files: b""),
    "not a ZIP": (UNREADABLE, "", lambda files: png(1)),
    "only the beginning of a ZIP": (UNREADABLE, "", lambda files: packed(files)[:2000]),
    "something before the ZIP": (UNREADABLE, "", lambda files: b"#!/bin/sh\n" + packed(files)),
    "an empty ZIP": (UNREADABLE, "", lambda files: packed({})),
    "encrypted": (ErrorCode.ARCHIVE_ENCRYPTED, "", encrypted),
    "a symbolic link": (UNSAFE, "", linked(stat.S_IFLNK, b"/etc/passwd")),
    "a device": (UNSAFE, "", linked(stat.S_IFCHR)),
    "a list of files without end": (TOO_LARGE, "", named(BLOB, comment=b"x" * 60_000)),
    "too many files": (TOO_LARGE, "", unlisted({PAGE.replace("0001", f"{n:04d}"): b"" for n in range(2, 80)})),
    "a file too large": (TOO_LARGE, "", more(PAGE, bytes(2_200_000))),
    "many files that unpack to too much": (
        TOO_LARGE,
        "",
        unlisted({f"blobs/{n:064x}": bytes(1_500_000) for n in range(2)}),
    ),
    "a ratio beyond belief": (TOO_LARGE, "", lambda files: packed(dict.fromkeys(files, bytes(999_999)))),
    "more inside than declared": (DAMAGED, "", lying_about_a_size),
    "a stream that breaks": (DAMAGED, "", with_a_broken_stream),
    "packed in another way": (UNREADABLE, "packed in another way", lambda files: packed(files, way=zipfile.ZIP_LZMA)),
    "no manifest": (UNREADABLE, "no manifest", without("manifest.json", is_listed=True)),
    "a manifest that is a list": (UNREADABLE, "", unlisted({"manifest.json": b"[]"})),
    "a manifest that is no JSON": (UNREADABLE, "", unlisted({"manifest.json": b"{"})),
    "another size": (
        DAMAGED,
        "another size",
        lambda files: unlisted({CONVERSATION: files[CONVERSATION] + b" "})(files),
    ),
    "another digest": (DAMAGED, "another digest", altered(CONVERSATION)),
    "an altered picture": (DAMAGED, "another digest", altered("pictures/")),
    "an altered file of a workspace": (DAMAGED, "another digest", altered("files/")),
    "a missing file": (DAMAGED, "missing", without(CONVERSATION, is_listed=True)),
    "a missing page": (DAMAGED, "missing", without("index.html")),
    "a file that is not listed": (DAMAGED, "not in the manifest", named(BLOB)),
    "a file listed twice": (DAMAGED, "listed twice", manifest(twice("files"))),
    "a conversation listed twice": (DAMAGED, "a folder twice", manifest(twice("conversations"))),
    "a picture under another digest": (DAMAGED, "another digest", more(f"pictures/{'a' * 64}.png", png(5))),
    "a workspace's file under another digest": (DAMAGED, "another digest", more(f"files/{'a' * 64}", b"x")),
    "a picture that is none": (NO_PICTURE, "", disguised(b"<svg onload=alert(1)>")),
    "a picture that only begins as one": (NO_PICTURE, "", disguised(b"\x89PNG\r\n\x1a\n<script>alert(1)</script>")),
    "a picture of another kind": (NO_PICTURE, "", disguised(png(5), "jpg")),
    "a picture cut off": (NO_PICTURE, "", disguised(png(5)[:-30])),
    "a picture of too many pixels": (NO_PICTURE, "", disguised(png_with_header(60_000, 60_000, 8, 2, bytes(1000)))),
    "no JSON": (INCONSISTENT, "", more(CONVERSATION, b"{")),
    "JSON too large": (TOO_LARGE, "", more(CONVERSATION, b'"%b"' % random.Random(1).randbytes(600_000).hex().encode())),
    "JSON of too many values": (INCONSISTENT, "too many values", more(CONVERSATION, b"[" + b"1," * 9000 + b"1]")),
    "JSON too deep": (INCONSISTENT, "too deep", more(CONVERSATION, b'{"a":' * 40 + b"1" + b"}" * 40)),
    "a surrogate alone": (INCONSISTENT, "", replaced(b"F\xc3\xbcchse", b"\\ud800")),
    "words too long": (INCONSISTENT, "", conversation(put("turns.0.text", "x" * 100_001))),
    "pictures made from each other": (
        INCONSISTENT,
        "a picture that descends from itself",
        conversation(made_from_each_other),
    ),
    "a picture that is not there": (INCONSISTENT, "a picture that is not there", without("pictures/")),
    "an older one without what it had": (INCONSISTENT, OLD, as_older(None)),
    "an older one with a signature of no part": (
        INCONSISTENT,
        OLD,
        as_older([{"message": 0, "part": 99, "digest": "0" * 64}]),
    ),
    "an older one with a signature before the first": (
        INCONSISTENT,
        OLD,
        as_older([{"message": -1, "part": 0, "digest": "0" * 64}]),
    ),
    "an older one with a signature that is not there": (
        INCONSISTENT,
        "a signature that is not there",
        as_older([{"message": 0, "part": 0, "digest": "0" * 64}]),
    ),
    "a newer one that tells as an older one did": (INCONSISTENT, "turns.0.signatures", as_older([], 4)),
    "a price without end": (
        INCONSISTENT,
        "a number out of range (price_usd)",
        replaced(b'"price_usd": 0.1', b'"price_usd": 1e999'),
    ),
    "a workspace's file that is not there": (INCONSISTENT, "a file that is not there", without("files/")),
    "a workspace of too many files": (INCONSISTENT, "too many files", many_names(201)),
    "one file under many names": (TOO_LARGE, "", one_file_under_many_names),
    "a call whose arguments are too deep": (
        INCONSISTENT,
        "arguments too deep",
        conversation(waiting_for_what_is_too_deep),
    ),
}


@each_case("case", CASES)
async def test_it_is_refused_as_a_whole_and_nothing_is_left_of_it(case: str, good: Files, there: Place) -> None:
    code, why, make = CASES[case]
    before, kept = there.files(), dict(there.shelf.kept)
    with pytest.raises(RequestRefused) as refused:
        await there.archive.import_archive(io.BytesIO(make(good)), "local")
    assert there.files() == before
    assert there.shelf.kept == kept
    assert refused.value.code is code
    assert refused.value.info.provider_detail.startswith(why)


async def test_an_archive_that_was_unpacked_and_packed_again_is_taken_in_without_what_nothing_speaks_of(
    good: Files, there: Place
) -> None:
    folders = {"conversations/": b"", "conversations/0001/": b"", "pictures/": b"", "blobs/": b""}
    await there.archive.import_archive(io.BytesIO(packed(good)), "local")
    await there.archive.import_archive(io.BytesIO(packed({**folders, **dict(sorted(good.items()))})), "local")
    await there.archive.import_archive(io.BytesIO(more(f"pictures/{sha(png(77))}.png", png(77))(good)), "local")
    assert [one.title for one in there.shelf.kept.values()] == ["Füchse"] * 3
    assert not any(sha(png(77)) in one for one in there.files())
    assert await refusal(there.archive.import_archive(there.home / "nothing.zip", "local")) is UNREADABLE


async def test_a_line_of_two_thousand_edits_is_taken_in(good: Files, tmp_path: Path) -> None:
    there = place(tmp_path / "roomy")

    def add_line(one: Any) -> None:
        line = (f"#{number}" for number in range(5, 2005))
        edited = one["pictures"][1] | {"call": "", "answer": None, "receipt": None, "review": None}
        one["pictures"] += [{**edited, "handle": new, "parents": [f"#{int(new[1:]) - 1}"]} for new in line]

    await there.archive.import_archive(io.BytesIO(conversation(add_line)(good)), "local")
    [whole] = there.shelf.kept.values()
    assert whole.pictures[-1].parents == ("#2003",)


@each_case(
    "update",
    [
        *({"mime_type": one} for one in ("text/html", "image/svg+xml", "image/png\r\nX-Evil: 1")),
        *({"width": one, "height": other} for one, other in ((-1, 5), (0, 0), (10**9, 10**9), (24, 17))),
    ],
)
async def test_a_type_or_a_size_that_is_not_the_pictures_becomes_its_own(
    good: Files, there: Place, update: dict[str, object]
) -> None:
    there.shelf.kept.clear()
    await there.archive.import_archive(io.BytesIO(conversation(put("pictures.1.image", update))(good)), "local")
    [whole] = there.shelf.kept.values()
    image = whole.pictures[1].image
    assert (image.mime_type, image.width, image.height) == ("image/png", 24, 16)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(at=st.floats(0, 1), new=st.binary(min_size=1, max_size=8), cut=st.booleans())
async def test_whatever_happens_to_its_bytes_it_is_taken_in_or_refused_in_a_sentence(
    good: Files, there: Place, at: float, new: bytes, cut: bool
) -> None:
    data = packed(good, way=zipfile.ZIP_STORED)
    place_of = int(at * (len(data) - 1))
    broken = data[:place_of] + new + (b"" if cut else data[place_of + len(new) :])
    before, kept = there.files(), dict(there.shelf.kept)
    try:
        await there.archive.import_archive(io.BytesIO(broken), "local")
    except RequestRefused:
        assert there.files() == before
        assert there.shelf.kept == kept


async def test_when_the_records_fail_or_whoever_asked_goes_away_what_was_taken_in_goes_again(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there", room=1)
    await here.keep(kept_turns("first"), kept_turns("second"))
    await there.images.write(PNGS[1], "image/png", ImageOrigin.UPLOADED)
    exported = await here.archive.export_library("local")
    before = there.files()
    with pytest.raises(StorageFailure):
        await there.archive.import_archive(exported.path, "local")
    assert (there.files(), there.shelf.kept) == (before, {})
    there.shelf.room, there.shelf.stops_after = 1000, 1
    importing = asyncio.create_task(there.archive.import_archive(exported.path, "local"))
    await there.shelf.has_stopped.wait()
    importing.cancel()
    await asyncio.sleep(0)
    there.shelf.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await importing
    assert (there.files(), there.shelf.kept) == (before, {})


# Names and JSON


@each_case(("name", "is_known"), table("archive_attacks")["file_names"])
def test_no_other_name_is_known_and_every_suffix_has_its_type(name: str, is_known: bool) -> None:
    assert is_file_name(name) is is_known
    assert not is_folder_name(name)
    assert tuple(MIME_OF_SUFFIX) == SUFFIXES


MEGABYTES = 20 << 20


@each_case(
    "data",
    [
        b'"' * MEGABYTES,
        b'"' + b'\\"' * (MEGABYTES // 2),
        b"\\" * MEGABYTES,
        b'["' + b"x" * MEGABYTES,
        b'["a",' * (MEGABYTES // 5),
        b"[" * MEGABYTES,
        b"[[]," * (MEGABYTES // 4),
        b'{"":' * (MEGABYTES // 4),
        b"1," * (MEGABYTES // 2),
    ],
)
def test_json_of_an_enemy_costs_little_memory_before_it_is_refused(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RequestRefused):
            parsed(data, Manifest, "manifest.json", ArchiveLimits(json_values=100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTES // 4


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_counted_as_it_is(value: object) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    deep = depth_of(value)
    check_json(data, "x", ArchiveLimits(json_depth=deep, json_values=signs_of(value)))
    for limits in (ArchiveLimits(json_depth=deep - 1), ArchiveLimits(json_values=signs_of(value) - 1)):
        if deep:
            with pytest.raises(RequestRefused):
                check_json(data, "x", limits)


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def signs_of(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(0, len(inner) - 1) + sum(map(signs_of, inner))
