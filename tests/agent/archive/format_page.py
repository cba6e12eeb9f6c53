"""The page on the archive's format, its schema made from the code: `python -m tests.agent.archive.format_page`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.adapters.archives import FORMAT, VERSION, ArchiveLimits, json_schema
from tests.adapters.records import WorkspaceLimits

PAGE = Path(__file__).parents[3] / "docs" / "archive-format.md"
COMMAND = "python -m tests.agent.archive.format_page"

_PAGE = """# The archive format

`{format}`, version {version}. This page is made from the code by `{command}`; a test compares. Whoever changes the
schema raises the version.

An archive is a ZIP with one conversation or a whole library. People open `index.html` in the unpacked folder; programs
read `manifest.json` and each `conversation.json`.

| file | what it is |
| --- | --- |
| `manifest.json` | what the archive is, its conversations, and every other file with its size and SHA-256 |
| `index.html` | leads to the conversations |
| `conversations/0001/conversation.json` | a conversation with every branch, the oldest is `0001` |
| `conversations/0001/conversation.md`, `.html` | the same to read, without a script, nothing fetched |
| `pictures/<sha256>.<suffix>` | whatever is referred to by its `digest`, once: pictures, masks, earlier states |
| `blobs/<sha256>` | a signature of more than 4096 bytes |
| `files/<sha256>` | what a file of a workspace holds; its name is in `conversation.json` alone |

Pictures are {suffixes}.

* Text is UTF-8, moments are UTC, bytes in JSON are base64, prices are US dollars, times seconds.
* Pictures, blobs and files are stored, everything else is deflated. The same conversations give the same bytes:
  entries have a fixed order and the moment 1980-01-01, and `created_at` is the moment of the newest change in the
  archive.
* Every turn stands after its `parent`; `head` is the newest turn of the branch that is shown.
* `signatures` say where the signatures in `blobs/` belong, by the message's and the part's index; smaller ones stand in
  their part as `thought_signature`. They go back to the model that issued them, unread and unchanged.
* `files` are those of the conversation's workspace: at most {workspace_files}, {workspace_file_mb} MB each and
  {workspace_mb} MB in all.
* A picture whose file was gone when the archive was made is in the manifest's `lost`.
* API keys, the ids of requests, checkpoints and the journal of paid calls are never in an archive.

## What an import checks

An archive comes from anywhere, so it is read as if by an enemy's hand: it is taken in as a whole, or refused with one
sentence and nothing is left of it, neither a row nor a file.

* Only the names above, each once; no links, no encryption, no other packing than stored and deflated. The list of files
  is the manifest's, with their sizes and digests.
* At most {files:,} files, {file_mb} MB each, {archive_mb:,} MB in all, and no more than {ratio} times the size of the
  archive (or {from_mb} MB); a list of files of {directory_mb} MB; {json_mb} MB of JSON, {values:,} values in it,
  {depth} levels.
* Each picture is decoded, within the limits of an upload, and is of the kind that its suffix says.
* JSON by the schema, no field more. Handles and ids once, parents before their children, no picture that descends from
  itself, every digest there, every number within what it can be.
* The files of a workspace by its own rules: how many, how large, what they may be called, no two of one name.
* An export that would break these limits is refused, too.

What is taken over is the same as it was, but for this: conversations and turns get new ids; a turn that ran, waited or
was interrupted is stopped, for what it would go on from stayed at home; a provider's search suggestions, which are
HTML, are left out of what is shown; width, height and an unknown type of a picture are those of its file; a tag is
spelled as its new owner spells it. What the turns had cost is still what the conversation has cost, but counts on no
day, in no month and towards no cap.

## The schema

JSON Schema of `manifest.json` (`Manifest`) and `conversation.json` (`ArchivedConversation`):

```json
{schema}
```
"""
_COLUMNS = 110
_SUFFIXES = "`png`, `jpg`, `webp`, `gif`, `heic` or `avif`"


def page() -> str:
    """Return the whole page."""
    limits, workspace = ArchiveLimits(), WorkspaceLimits()
    return _PAGE.format(
        format=FORMAT,
        version=VERSION,
        command=COMMAND,
        suffixes=_SUFFIXES,
        files=limits.files,
        file_mb=limits.file_bytes >> 20,
        archive_mb=limits.archive_bytes >> 20,
        ratio=limits.ratio,
        from_mb=limits.ratio_from_bytes >> 20,
        directory_mb=limits.directory_bytes >> 20,
        json_mb=limits.json_bytes >> 20,
        values=limits.json_values,
        depth=limits.json_depth,
        workspace_files=workspace.files,
        workspace_file_mb=workspace.file_bytes >> 20,
        workspace_mb=workspace.total_bytes >> 20,
        schema=_written(json_schema()),
    )


def _written(value: Any, indent: str = "") -> str:
    """Return JSON in which whatever fits into a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _COLUMNS or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    items = (
        [f"{json.dumps(key)}: {_written(one, inner)}" for key, one in value.items()]
        if isinstance(value, dict)
        else [_written(one, inner) for one in value]
    )
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(f"{inner}{item}" for item in items) + f"\n{indent}{last}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
