"""Archives by an enemy's hand: each is refused as a whole, and nothing of it is left."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import random
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.messages import ImageOrigin
from tests.adapters.archives import Limits
from tests.agent.archive.forging import (
    CONVERSATION,
    Files,
    listed,
    packed,
    patched,
    with_conversation,
    with_file,
    with_manifest,
)
from tests.agent.archive.shelf import Place, contents, kept_turns, place
from tests.agent.archive.values import PNGS, png

SMALL = Limits(
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
Case = Callable[[Files], bytes]
UNREADABLE = ErrorCode.ARCHIVE_UNREADABLE
ENCRYPTED = ErrorCode.ARCHIVE_ENCRYPTED
UNSAFE = ErrorCode.ARCHIVE_UNSAFE
TOO_LARGE = ErrorCode.ARCHIVE_TOO_LARGE
NEWER = ErrorCode.ARCHIVE_NEWER
DAMAGED = ErrorCode.ARCHIVE_DAMAGED
NO_PICTURE = ErrorCode.ARCHIVE_PICTURE_UNREADABLE
INCONSISTENT = ErrorCode.ARCHIVE_INCONSISTENT


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


async def refusal(there: Place, data: bytes) -> RequestRefused:
    """Return why the archive was refused, when nothing is left of it."""
    before, kept = there.files(), dict(there.shelf.kept)
    with pytest.raises(RequestRefused) as refused:
        await there.archive.import_archive(io.BytesIO(data), "local")
    assert there.files() == before
    assert there.shelf.kept == kept
    return refused.value


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


def conversation(change: Callable[[Any], object]) -> Case:
    return lambda files: with_conversation(files, change)


def manifest(change: Callable[[Any], object]) -> Case:
    return lambda files: with_manifest(files, change)


def first_picture(files: Files) -> str:
    return next(name for name in files if name.startswith("pictures/"))


def without(name: str) -> Case:
    return lambda files: packed({key: data for key, data in files.items() if key != name})


def encrypted(files: Files) -> bytes:
    data = bytearray(packed(files))
    for signature, place_of_flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(signature)
        while at >= 0:
            data[at + place_of_flags] |= 1
            at = data.find(signature, at + 4)
    return bytes(data)


def prefixed(files: Files) -> bytes:
    return b"#!/bin/sh\n" + packed(files)


def with_many_files(files: Files) -> bytes:
    return packed({**files, **{f"conversations/{number:04d}/conversation.md": b"" for number in range(2, 80)}})


def lying_about_a_size(files: Files) -> bytes:
    """Return an archive whose list declares ten bytes for a page that unpacks to a million."""
    page = "conversations/0001/conversation.md"
    data = packed(listed({**files, page: b"\0" * 1_000_000}))
    told = json.loads(contents_of(data)["manifest.json"])
    for file in told["files"]:
        file["size_bytes"] = 10 if file["name"] == page else file["size_bytes"]
    data = packed({**contents_of(data), "manifest.json": json.dumps(told).encode()})
    return patched(data, struct.pack("<L", 1_000_000), struct.pack("<L", 10))


def contents_of(data: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_a_broken_stream(files: Files) -> bytes:
    data = packed(files)
    at = data.find(CONVERSATION.encode()) + len(CONVERSATION)
    return data[: at + 40] + bytes(200) + data[at + 240 :]


def unmentioned_picture(files: Files) -> bytes:
    name = first_picture(files)
    kept = {key: data for key, data in files.items() if key != name}
    return packed(listed(kept))


def altered_picture(files: Files) -> bytes:
    name = first_picture(files)
    return packed({**files, name: files[name][:-1] + b"!"})


def disguised(data: bytes, suffix: str = "png") -> Case:
    """Return the archive with a file of that content for a picture, under the digest it has."""
    return lambda files: with_file(files, f"pictures/{hashlib.sha256(data).hexdigest()}.{suffix}", data)


def bomb_of_a_picture() -> bytes:
    """Return a PNG that claims 3.6 gigapixels."""
    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def deep(files: Files) -> bytes:
    nested = b'{"a":' * 40 + b"1" + b"}" * 40
    return with_file(files, CONVERSATION, nested)


def turn(change: Callable[[Any], object], at: int = 0) -> Case:
    return conversation(lambda one: change(one["turns"][at]))


def kept_picture(change: Callable[[Any], object], at: int = 1) -> Case:
    return conversation(lambda one: change(one["pictures"][at]))


def file(at: int = 0, **fields: object) -> Case:
    """Return the archive with something else said of a file of the workspace."""
    return conversation(lambda one: one["files"][at].update(fields))


def with_too_many_files(one: Any) -> None:
    first = one["files"][0]
    one["files"] = [{**first, "name": f"{number}.md"} for number in range(201)]


def one_file_under_many_names(files: Files) -> bytes:
    """Return a small archive that would take a hundred times its size in a database."""
    data = random.Random(1).randbytes(10_000)
    digest = hashlib.sha256(data).hexdigest()

    def change(one: Any) -> None:
        first = {**one["files"][0], "digest": digest, "size_bytes": len(data)}
        one["files"] = [{**first, "name": f"{number}.bin"} for number in range(199)]

    return with_conversation({**files, f"files/{digest}": data}, change)


def asked(**fields: object) -> Case:
    """Return the archive with a call that waited for the person."""
    ask = {"call": 0, "tool": "write_file", "reason": "overwrites", "arguments": "{}", **fields}
    card = {"type": "consent_card", "asks": [ask], "state": "allowed"}
    return turn(lambda one: one["components"].append(card))


def first_file(files: Files) -> str:
    return next(name for name in files if name.startswith("files/"))


def altered_file(files: Files) -> bytes:
    name = first_file(files)
    return packed({**files, name: files[name][:-1] + b"!"})


def unmentioned_file(files: Files) -> bytes:
    name = first_file(files)
    return packed(listed({key: data for key, data in files.items() if key != name}))


def edit(**fields: object) -> dict[str, object]:
    part = json.loads(kept_turns().pictures[0].image.model_dump_json())
    record = {"kind": "mask", "verdict": "good", "reason": "same_picture", "base": part, "mask": part, "raw": part}
    return {**record, **fields}


def placement(**fields: object) -> dict[str, object]:
    good = {"box": [0, 0, 8, 8], "frame": [8, 8], "feather_px": 1.0, "work": [8, 8], "matrix": [1, 0, 0, 0, 1, 0]}
    return {**good, **fields}


CASES: dict[str, tuple[ErrorCode, Case]] = {
    "nothing at all": (UNREADABLE, lambda files: b""),
    "not a ZIP": (UNREADABLE, lambda files: png(1)),
    "only the beginning of a ZIP": (UNREADABLE, lambda files: packed(files)[:2000]),
    "something before the ZIP": (UNREADABLE, prefixed),
    "an empty ZIP": (UNREADABLE, lambda files: packed({})),
    "encrypted": (ENCRYPTED, encrypted),
    "a name that leads up": (UNSAFE, named("../evil.txt")),
    "a name that leads up inside": (UNSAFE, named("pictures/../../evil.txt")),
    "an absolute name": (UNSAFE, named("/etc/cron.d/evil")),
    "a drive": (UNSAFE, named("C:/evil.txt")),
    "backslashes": (UNSAFE, named("pictures\\..\\evil.txt")),
    "a NUL in a name": (UNSAFE, named("manifest.json\0.txt")),
    "digits of another script": (UNSAFE, named("conversations/٠٠٠١/conversation.json")),
    "a name of its own": (UNSAFE, named("run.exe")),
    "a workspace's file under its own name": (UNSAFE, named("files/notes.txt")),
    "a workspace's file that leads up": (UNSAFE, named("files/../../notes.txt")),
    "a symbolic link": (
        UNSAFE,
        named(f"blobs/{'a' * 64}", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16, create_system=3),
    ),
    "a device": (
        UNSAFE,
        named(f"blobs/{'a' * 64}", external_attr=(stat.S_IFCHR | 0o666) << 16, create_system=3),
    ),
    "a folder with something in it": (UNSAFE, named("pictures/", b"x")),
    "the same name twice": (UNSAFE, named(CONVERSATION)),
    "two manifests": (UNSAFE, named("manifest.json", b"{}")),
    "the same name in capitals": (UNSAFE, named("MANIFEST.json", b"{}")),
    "a list of files without end": (
        TOO_LARGE,
        named(f"blobs/{'a' * 64}", comment=b"x" * 60_000),
    ),
    "too many files": (TOO_LARGE, with_many_files),
    "a file too large": (
        TOO_LARGE,
        lambda files: with_file(files, "conversations/0001/conversation.md", bytes(2_200_000)),
    ),
    "many files that unpack to too much": (
        TOO_LARGE,
        lambda files: packed({**files, **{f"blobs/{n:064x}": bytes(1_500_000) for n in range(2)}}),
    ),
    "a ratio beyond belief": (
        TOO_LARGE,
        lambda files: packed({key: data if len(data) < 9 else bytes(999_999) for key, data in files.items()}),
    ),
    "more inside than declared": (DAMAGED, lying_about_a_size),
    "a stream that breaks": (DAMAGED, with_a_broken_stream),
    "packed in another way": (UNREADABLE, lambda files: packed(files, way=zipfile.ZIP_LZMA)),
    "no manifest": (UNREADABLE, without("manifest.json")),
    "another format": (UNREADABLE, manifest(lambda one: one.update(format="other"))),
    "a manifest that is a list": (
        UNREADABLE,
        lambda files: packed({**files, "manifest.json": b"[]"}),
    ),
    "a manifest that is no JSON": (
        UNREADABLE,
        lambda files: packed({**files, "manifest.json": b"{"}),
    ),
    "a newer version": (NEWER, manifest(lambda one: one.update(version=3, surprise=1))),
    "a version that is none": (INCONSISTENT, manifest(lambda one: one.update(version=0))),
    "a field nobody knows in the manifest": (
        INCONSISTENT,
        manifest(lambda one: one.update(surprise=1)),
    ),
    "another digest": (
        DAMAGED,
        lambda files: packed({**files, CONVERSATION: files[CONVERSATION][:-1] + b" "}),
    ),
    "another size": (
        DAMAGED,
        lambda files: packed({**files, CONVERSATION: files[CONVERSATION] + b" "}),
    ),
    "an altered picture": (DAMAGED, altered_picture),
    "a missing file": (DAMAGED, without(CONVERSATION)),
    "a missing page": (
        DAMAGED,
        lambda files: packed(listed({key: data for key, data in files.items() if key != "index.html"})),
    ),
    "a file that is not listed": (DAMAGED, named(f"blobs/{'a' * 64}")),
    "a file listed twice": (DAMAGED, manifest(lambda one: one["files"].append(one["files"][0]))),
    "a conversation listed twice": (
        DAMAGED,
        manifest(lambda one: one["conversations"].append(one["conversations"][0])),
    ),
    "a conversation that is not listed": (
        DAMAGED,
        manifest(lambda one: one.update(conversations=[])),
    ),
    "a picture under another digest": (
        DAMAGED,
        lambda files: with_file(files, f"pictures/{'a' * 64}.png", png(5)),
    ),
    "a picture that is none": (NO_PICTURE, disguised(b"<svg onload=alert(1)>")),
    "a picture that only begins as one": (
        NO_PICTURE,
        disguised(b"\x89PNG\r\n\x1a\n<script>alert(1)</script>"),
    ),
    "a picture of another kind": (NO_PICTURE, disguised(png(5), "jpg")),
    "a picture cut off": (NO_PICTURE, disguised(png(5)[:-30])),
    "a picture of too many pixels": (NO_PICTURE, disguised(bomb_of_a_picture())),
    "no JSON": (INCONSISTENT, lambda files: with_file(files, CONVERSATION, b"{")),
    "JSON too large": (
        TOO_LARGE,
        lambda files: with_file(files, CONVERSATION, json.dumps(random.Random(1).randbytes(600_000).hex()).encode()),
    ),
    "JSON of too many values": (
        INCONSISTENT,
        lambda files: with_file(files, CONVERSATION, b"[" + b"1," * 9000 + b"1]"),
    ),
    "JSON too deep": (INCONSISTENT, deep),
    "a surrogate alone": (
        INCONSISTENT,
        lambda files: with_file(files, CONVERSATION, files[CONVERSATION].replace(b"F\xc3\xbcchse", b"\\ud800")),
    ),
    "a field nobody knows": (INCONSISTENT, conversation(lambda one: one.update(surprise=1))),
    "a request's name": (INCONSISTENT, turn(lambda one: one.update(request_id="mine"))),
    "a component nobody knows": (
        INCONSISTENT,
        turn(lambda one: one["components"].append({"type": "html", "html": "<script>alert(1)</script>"})),
    ),
    "a component with more than it has": (
        INCONSISTENT,
        turn(lambda one: one["components"][1].update(url="https://evil.example/")),
    ),
    "a button that does something else": (
        INCONSISTENT,
        turn(
            lambda one: one["components"].append(
                {"type": "action_panel", "handle": "#2", "buttons": [{"action": "delete_all"}]}
            )
        ),
    ),
    "a moment beyond time": (
        INCONSISTENT,
        conversation(lambda one: one.update(created_at="0001-01-01T00:00:00+14:00")),
    ),
    "a moment of no zone": (
        INCONSISTENT,
        conversation(lambda one: one.update(created_at="2026-01-01T00:00:00")),
    ),
    "a handle twice": (INCONSISTENT, kept_picture(lambda one: one.update(handle="#1"))),
    "a handle that is none": (INCONSISTENT, kept_picture(lambda one: one.update(handle='#2"><b>'))),
    "a handle that is none in a message": (
        INCONSISTENT,
        turn(lambda one: one["messages"][3]["parts"][2].update(handle="../2")),
    ),
    "a title too long": (INCONSISTENT, conversation(lambda one: one.update(title="x" * 121))),
    "words too long": (INCONSISTENT, turn(lambda one: one.update(text="x" * 100_001))),
    "a turn twice": (INCONSISTENT, turn(lambda one: one.update(id="a"), 1)),
    "an unknown parent": (INCONSISTENT, turn(lambda one: one.update(parent="z"), 1)),
    "a turn after itself": (INCONSISTENT, turn(lambda one: one.update(parent="b"), 1)),
    "turns in a circle": (INCONSISTENT, turn(lambda one: one.update(parent="b"))),
    "an unknown head": (INCONSISTENT, conversation(lambda one: one.update(head="z"))),
    "a picture of an unknown turn": (INCONSISTENT, kept_picture(lambda one: one.update(turn_id="z"))),
    "a picture made from itself": (
        INCONSISTENT,
        kept_picture(lambda one: one.update(parents=["#2"])),
    ),
    "pictures made from each other": (
        INCONSISTENT,
        conversation(
            lambda one: [kept.update(parents=["#3" if kept["handle"] == "#2" else "#2"]) for kept in one["pictures"]]
        ),
    ),
    "a picture that is not there": (INCONSISTENT, unmentioned_picture),
    "a message that refers to nothing": (
        INCONSISTENT,
        turn(lambda one: one["messages"][3]["parts"][2].update(digest="0" * 64)),
    ),
    "a reference of another size": (
        INCONSISTENT,
        turn(lambda one: one["messages"][3]["parts"][2].update(size_bytes=7)),
    ),
    "a reference with somebody else's name in the cache": (
        INCONSISTENT,
        turn(lambda one: one["messages"][3]["parts"][2].update(md5="0" * 32)),
    ),
    "a signature that is not there": (
        INCONSISTENT,
        turn(lambda one: one["signatures"][0].update(digest="0" * 64)),
    ),
    "a signature of no part": (INCONSISTENT, turn(lambda one: one["signatures"][0].update(part=99))),
    "two signatures of one part": (
        INCONSISTENT,
        turn(lambda one: one["signatures"].append(one["signatures"][0])),
    ),
    "settings out of range": (
        INCONSISTENT,
        turn(lambda one: one["settings"].update(number_of_images=5000)),
    ),
    "a setting nobody knows": (
        INCONSISTENT,
        turn(lambda one: one["settings"].update(base_url="https://evil.example")),
    ),
    "a ratio that is none": (
        INCONSISTENT,
        turn(lambda one: one["settings"].update(aspect_ratio="<b>16:9</b>")),
    ),
    "a price below nothing": (INCONSISTENT, turn(lambda one: one.update(price_usd=-1))),
    "a price without end": (
        INCONSISTENT,
        lambda files: with_file(
            files, CONVERSATION, files[CONVERSATION].replace(b'"price_usd": 0.1', b'"price_usd": 1e999')
        ),
    ),
    "a count without end": (
        INCONSISTENT,
        turn(lambda one: one["usage"].update(prompt_tokens=10**30)),
    ),
    "a margin without end": (
        INCONSISTENT,
        turn(lambda one: one.update(margins={"left": 10**9, "top": 0, "right": 0, "bottom": 0})),
    ),
    "a frame without end": (
        INCONSISTENT,
        kept_picture(lambda one: one.update(edit=edit(placement=placement(work=[10**6, 10**6])))),
    ),
    "bends of another size": (
        INCONSISTENT,
        kept_picture(
            lambda one: one.update(edit=edit(placement=placement(bends="AAAA", bends_rows=9, bends_columns=9)))
        ),
    ),
    "a matrix too short": (
        INCONSISTENT,
        kept_picture(lambda one: one.update(edit=edit(placement=placement(matrix=[1])))),
    ),
    "a reason nobody knows": (
        INCONSISTENT,
        kept_picture(lambda one: one.update(edit=edit(reason="because"))),
    ),
    "a notice nobody knows": (
        INCONSISTENT,
        kept_picture(lambda one: one.update(edit=edit(notices=[{"code": "surprise"}]))),
    ),
    "a parameter that is a function's own": (
        INCONSISTENT,
        turn(lambda one: one["components"][0]["lines"][0]["parameters"].update(self=1)),
    ),
    "an altered file of a workspace": (DAMAGED, altered_file),
    "a workspace's file under another digest": (DAMAGED, lambda files: with_file(files, f"files/{'a' * 64}", b"x")),
    "a workspace's file that is not there": (INCONSISTENT, unmentioned_file),
    "a workspace's file of another size": (INCONSISTENT, file(size_bytes=7)),
    "a workspace's file too large": (INCONSISTENT, file(size_bytes=(1 << 20) + 1)),
    "a workspace too large": (INCONSISTENT, file(size_bytes=(10 << 20) + 1)),
    "a workspace of too many files": (INCONSISTENT, conversation(with_too_many_files)),
    "one file under many names": (TOO_LARGE, one_file_under_many_names),
    "a file's name that leads up": (INCONSISTENT, file(name="../../etc/passwd")),
    "a file's name from the root": (INCONSISTENT, file(name="/etc/passwd")),
    "a file's name with a drive": (INCONSISTENT, file(name="C:\\evil.txt")),
    "a file's name with markup": (INCONSISTENT, file(name="<img src=x>")),
    "a file's name that is none": (INCONSISTENT, file(name="")),
    "a file's name with what nobody sees": (INCONSISTENT, file(name="notes\u202etxt.md")),
    "a file's name twice": (INCONSISTENT, file(1, name="notizen/狐.MD")),
    "a file that is a folder": (INCONSISTENT, file(1, name="NOTIZEN")),
    "a file's version of nothing": (INCONSISTENT, file(version=0)),
    "a file's version without end": (INCONSISTENT, file(version=1 << 40)),
    "a file of nobody's": (INCONSISTENT, file(written_by="system")),
    "a file with its content inside": (INCONSISTENT, file(content="eA==")),
    "a tag twice": (INCONSISTENT, kept_picture(lambda one: one.update(tags=["fox", "FOX"]))),
    "a tag that is none": (INCONSISTENT, kept_picture(lambda one: one.update(tags=["fox", "  "]))),
    "a tag without end": (INCONSISTENT, kept_picture(lambda one: one.update(tags=["x" * 65]))),
    "a call that waited for a reason nobody knows": (INCONSISTENT, asked(reason="because")),
    "a call whose arguments are too deep": (INCONSISTENT, asked(arguments="[" * 10_000)),
    "a count that is none": (
        INCONSISTENT,
        turn(lambda one: one["components"][0]["lines"][0]["parameters"].update(count="many")),
    ),
}


# What is said for the debug report, where the code alone does not tell that it was refused for this very reason.
WHY = {
    "another digest": "another digest",
    "another size": "another size",
    "an altered picture": "another digest",
    "a missing file": "missing",
    "a missing page": "missing",
    "a file that is not listed": "not in the manifest",
    "a file listed twice": "listed twice",
    "a conversation listed twice": "a folder twice",
    "a conversation that is not listed": "of no conversation",
    "a picture under another digest": "another digest",
    "no manifest": "no manifest",
    "another format": "another format",
    "packed in another way": "packed in another way",
    "JSON of too many values": "too many values",
    "JSON too deep": "too deep",
    "a request's name": "turns.0.request_id",
    "a component nobody knows": "turns.0.components.6",
    "a button that does something else": "turns.0.components.6.action_panel.buttons.0",
    "a moment beyond time": "created_at",
    "a moment of no zone": "created_at",
    "a handle twice": "two pictures of one handle",
    "a handle that is none": "not a handle",
    "a handle that is none in a message": "not a handle",
    "a turn twice": "two turns of one id",
    "an unknown parent": "a turn without the one before it",
    "a turn after itself": "a turn without the one before it",
    "turns in a circle": "a turn without the one before it",
    "an unknown head": "a head that is no turn",
    "a picture of an unknown turn": "a picture of no turn",
    "a picture made from itself": "a picture that descends from itself",
    "pictures made from each other": "a picture that descends from itself",
    "a picture that is not there": "a picture that is not there",
    "a message that refers to nothing": "a picture that is not there",
    "a reference of another size": "a picture that is another",
    "a reference with somebody else's name in the cache": "a picture that is another",
    "a signature that is not there": "a signature that is not there",
    "a signature of no part": "a signature without its part",
    "two signatures of one part": "two signatures in one place",
    "settings out of range": "turns.0.settings.number_of_images",
    "a ratio that is none": "a setting out of range",
    "a price below nothing": "turns.0.price_usd",
    "a price without end": "a number out of range (price_usd)",
    "a count without end": "a number out of range (prompt_tokens)",
    "a margin without end": "margins out of range",
    "a frame without end": "a size out of range",
    "bends of another size": "bends of another size",
    "a matrix too short": "a matrix of another size",
    "a reason nobody knows": "a reason nobody knows",
    "a notice nobody knows": "a notice nobody knows",
    "a parameter that is a function's own": "a parameter nobody knows",
    "a count that is none": "a count that is none",
    "a call that waited for a reason nobody knows": "a reason nobody knows",
    "a call whose arguments are too deep": "arguments too deep",
    "an altered file of a workspace": "another digest",
    "a workspace's file under another digest": "another digest",
    "a workspace's file that is not there": "a file that is not there",
    "a workspace's file of another size": "a file of another size",
    "a workspace's file too large": "a file too large",
    "a workspace too large": "files too large together",
    "a workspace of too many files": "too many files",
    "a file's name that leads up": "not a file's name",
    "a file's name from the root": "not a file's name",
    "a file's name with a drive": "not a file's name",
    "a file's name with markup": "not a file's name",
    "a file's name that is none": "not a file's name",
    "a file's name with what nobody sees": "not a file's name",
    "a file's name twice": "two files of one name",
    "a file that is a folder": "a file that is a folder",
    "a file's version of nothing": "files.0.version",
    "a file's version without end": "files.0.version",
    "a file of nobody's": "files.0.written_by",
    "a file with its content inside": "files.0.content",
    "a tag twice": "a tag twice",
    "a tag that is none": "not a tag",
    "a tag without end": "not a tag",
}


@pytest.mark.parametrize("case", CASES)
async def test_it_is_refused_as_a_whole_and_nothing_is_left_of_it(case: str, good: Files, there: Place) -> None:
    code, make = CASES[case]
    refused = await refusal(there, make(good))
    assert refused.code is code
    assert refused.info.provider_detail.startswith(WHY.get(case, ""))


async def test_the_good_one_is_taken_in(good: Files, there: Place) -> None:
    await there.archive.import_archive(io.BytesIO(packed(good)), "local")
    assert [one.title for one in there.shelf.kept.values()] == ["Füchse"]


async def test_an_archive_that_was_unpacked_and_packed_again_is_taken_in(good: Files, there: Place) -> None:
    folders = {"conversations/": b"", "conversations/0001/": b"", "pictures/": b"", "blobs/": b""}
    await there.archive.import_archive(io.BytesIO(packed({**folders, **dict(sorted(good.items()))})), "local")
    assert len(there.shelf.kept) == 1


async def test_a_file_that_is_not_there_is_refused(there: Place) -> None:
    with pytest.raises(RequestRefused) as refused:
        await there.archive.import_archive(there.home / "nothing.zip", "local")
    assert refused.value.code is UNREADABLE


async def test_a_picture_that_nothing_speaks_of_is_not_kept(good: Files, there: Place) -> None:
    data = png(77)
    name = f"pictures/{hashlib.sha256(data).hexdigest()}.png"
    await there.archive.import_archive(io.BytesIO(with_file(good, name, data)), "local")
    assert not any(hashlib.sha256(data).hexdigest() in one for one in there.files())


@pytest.mark.parametrize("mime_type", ["text/html", "image/svg+xml", "image/png\r\nX-Evil: 1"])
async def test_a_type_that_is_none_of_a_picture_becomes_the_files_own(
    good: Files, there: Place, mime_type: str
) -> None:
    data = with_conversation(good, lambda one: one["pictures"][1]["image"].update(mime_type=mime_type))
    await there.archive.import_archive(io.BytesIO(data), "local")
    [whole] = there.shelf.kept.values()
    assert whole.pictures[1].image.mime_type == "image/png"


@pytest.mark.parametrize("size", [(-1, 5), (0, 0), (10**9, 10**9), (24, 17)])
async def test_a_size_that_is_not_the_pictures_becomes_its_own(
    good: Files, there: Place, size: tuple[int, int]
) -> None:
    update = dict(zip(("width", "height"), size, strict=True))
    data = with_conversation(good, lambda one: one["pictures"][1]["image"].update(update))
    await there.archive.import_archive(io.BytesIO(data), "local")
    [whole] = there.shelf.kept.values()
    assert (whole.pictures[1].image.width, whole.pictures[1].image.height) == (24, 16)


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


async def test_when_the_records_fail_what_was_taken_in_goes_again(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there", room=1)
    await here.keep(kept_turns("first"), kept_turns("second"))
    await there.images.write(PNGS[1], "image/png", ImageOrigin.UPLOADED)
    exported = await here.archive.export_library("local")
    before = there.files()
    with pytest.raises(StorageFailure):
        await there.archive.import_archive(exported.path, "local")
    assert there.files() == before
    assert there.shelf.kept == {}


async def test_when_whoever_asked_goes_away_what_was_taken_in_goes_again(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    await here.keep(kept_turns("first"), kept_turns("second"))
    exported = await here.archive.export_library("local")
    there.shelf.stops_after = 1
    importing = asyncio.create_task(there.archive.import_archive(exported.path, "local"))
    await there.shelf.has_stopped.wait()
    importing.cancel()
    await asyncio.sleep(0)
    there.shelf.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await importing
    assert there.files() == {}
    assert there.shelf.kept == {}
