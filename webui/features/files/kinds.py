"""What a file of the workspace is on the page: a row of the tree; text in some language, a picture, or bytes to take
away; the lines in which two texts differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from agent import FileInfo, WorkspaceFile

Kind: TypeAlias = Literal["text", "long", "picture", "bytes"]
MOST_EDITED_BYTES = 256 << 10
"""Text beyond it is shown to be read: the editor goes through all of it with every key."""

# The endings of names, by the names that `gr.Code` has for languages.
_ENDINGS = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx",
    "json": "json jsonl ndjson geojson ipynb webmanifest",
    "html": "html htm xhtml xml svg vue",
    "css": "css scss less",
    "markdown": "md markdown mdx",
    "latex": "tex sty bib",
    "yaml": "yaml yml",
    "shell": "sh bash zsh ksh",
    "sql": "sql",
    "r": "r",
    "c": "c h",
    "cpp": "cpp cc cxx hpp hh java cs kt",
    "jinja2": "j2 jinja jinja2",
}
_LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_NAMES = {"dockerfile": "dockerfile", "containerfile": "dockerfile", ".bashrc": "shell", ".profile": "shell"}
_PROGRAMS = frozenset({"js", "mjs"})
_PICTURES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif"})
_AROUND, _MOST_LINES = 2, 2000


class Row(NamedTuple):
    """A row of the tree: a file, or without one a folder; its place among so many siblings."""

    path: str
    name: str
    level: int
    place: int
    siblings: int
    file: FileInfo | None = None

    @property
    def icon(self) -> str:
        """The icon of a file, by its name."""
        if _ending(self.path) in _PICTURES:
            return "image"
        return "file-text" if language_of(self.path) in (None, "markdown") else "file-code"

    @property
    def is_program(self) -> bool:
        """Whether it can be run."""
        return is_program(self.path)

    @property
    def size(self) -> str:
        """How much a file holds."""
        size = self.file.size_bytes if self.file is not None else 0
        if size < 1000:
            return f"{size} B"
        if size < 1e6:
            return f"{size / 1e3:.{int(size < 1e4)}f} KB"
        return f"{size / 1e6:.1f} MB"


def rows(infos: Sequence[FileInfo], folder: str = "", level: int = 1) -> Iterator[Row]:
    """Return the rows of a folder, each folder in it with its own behind it, then its files."""
    within = [(info.name[len(folder) :], info) for info in infos if info.name.startswith(folder)]
    folders = sorted({name.partition("/")[0] for name, _ in within if "/" in name}, key=_by_number)
    own = sorted((one for one in within if "/" not in one[0]), key=lambda one: _by_number(one[0]))
    count = len(folders) + len(own)
    for place, name in enumerate(folders, 1):
        yield Row(folder + name, name, level, place, count)
        yield from rows(infos, f"{folder}{name}/", level + 1)
    for place, (name, info) in enumerate(own, len(folders) + 1):
        yield Row(info.name, name, level, place, count, info)


def differences(mine: str, theirs: str) -> tuple[list[tuple[str, str]], bool]:
    """Return what only the person's text has ("−"), only the saved one ("+"), and around it ("="), line by line, each
    group behind the number of its first line ("@"); and whether there is more than is shown."""

    def lines() -> Iterator[tuple[str, str]]:
        old, new = mine.splitlines(), theirs.splitlines()
        for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
            yield "@", str(group[0][1] + 1)
            for kind, first, end, from_, to in group:
                yield from (("=" if kind == "equal" else "−", line) for line in old[first:end])
                if kind != "equal":
                    yield from (("+", line) for line in new[from_:to])

    found = list(islice(lines(), _MOST_LINES + 1))
    return found[:_MOST_LINES], len(found) > _MOST_LINES


def language_of(name: str) -> str | None:
    """Return the language that a file of this name is coloured in, as `gr.Code` names it; None for plain text."""
    return _NAMES.get(PurePosixPath(name.lower()).name) or _LANGUAGES.get(_ending(name))


def is_program(name: str) -> bool:
    """Return whether the sandbox can run a file of this name."""
    return _ending(name) in _PROGRAMS


def picture_type(content: bytes) -> str | None:
    """Return the type of a picture that a browser shows, by its first bytes and never by its name; None for others.

    An SVG is none: it is a document, which may hold scripts.
    """
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return "image/avif" if content[4:12] in (b"ftypavif", b"ftypavis") else None


def kind_of(file: WorkspaceFile) -> Kind:
    """Return how a file is shown."""
    if picture_type(file.content) is not None:
        return "picture"
    if file.text is None:
        return "bytes"
    return "text" if file.size_bytes <= MOST_EDITED_BYTES else "long"


def _ending(name: str) -> str:
    return PurePosixPath(name.lower()).suffix.removeprefix(".")


def _by_number(name: str) -> str:
    """Return what sorts "2.md" before "10.md"."""
    return re.sub(r"\d+", lambda found: found[0].zfill(20), name.casefold())
