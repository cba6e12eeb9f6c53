"""What a file of the workspace is on the page: text in some language, a picture, or bytes to take away. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from agent import WorkspaceFile

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


def language_of(name: str) -> str | None:
    """Return the language that a file of this name is coloured in, as `gr.Code` names it; None for plain text."""
    path = PurePosixPath(name.lower())
    return _NAMES.get(path.name) or _LANGUAGES.get(path.suffix.removeprefix("."))


def is_program(name: str) -> bool:
    """Return whether the sandbox can run a file of this name."""
    return PurePosixPath(name.lower()).suffix.removeprefix(".") in _PROGRAMS


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
