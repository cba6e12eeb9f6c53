"""Archives as an enemy would make them, from a good one."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

CONVERSATION = "conversations/0001/conversation.json"
Files = dict[str, bytes]


def packed(files: Mapping[str, bytes], *, way: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP of these files, in this order."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", way) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def listed(files: Files) -> Files:
    """Return the files with a manifest that lists them as they are now."""
    manifest = json.loads(files["manifest.json"])
    manifest["files"] = [
        {"name": name, "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in files.items()
        if name != "manifest.json"
    ]
    return {**files, "manifest.json": json.dumps(manifest).encode()}


def with_manifest(files: Files, change: Callable[[Any], object]) -> bytes:
    """Return an archive whose manifest was changed."""
    manifest = json.loads(files["manifest.json"])
    change(manifest)
    return packed({**files, "manifest.json": json.dumps(manifest).encode()})


def with_conversation(files: Files, change: Callable[[Any], object]) -> bytes:
    """Return an archive whose conversation was changed, and whose manifest says so."""
    conversation = json.loads(files[CONVERSATION])
    change(conversation)
    return packed(listed({**files, CONVERSATION: json.dumps(conversation).encode()}))


def with_file(files: Files, name: str, data: bytes) -> bytes:
    """Return an archive with one more file, or another in its place, which the manifest lists."""
    return packed(listed({**files, name: data}))


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    """Return the bytes with every such run of them replaced by one of the same length."""
    if len(old) != len(new) or old not in data:
        raise ValueError("not there, or not of the same length")
    return data.replace(old, new)
