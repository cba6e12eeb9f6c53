"""What the Hub keeps of a Space, and the rules by which it takes changes."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

yaml: Any = import_module("yaml")

HARDWARE = frozenset({"cpu-basic", "cpu-upgrade", "t4-small"})
COLOURS = frozenset({"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"})
_TEXT = {"sdk", "title", "emoji", "colorFrom", "colorTo", "license", "short_description", "suggested_hardware"}
_FIELDS = _TEXT | {"app_port", "app_file", "sdk_version", "python_version", "pinned", "fullWidth", "header"}


class Refused(Exception):
    """The Hub says no: the status, the reason, and where that is which stands in the way."""

    def __init__(self, status: int, reason: str, url: str = "") -> None:
        super().__init__(reason)
        self.url = url
        self.status = status
        self.reason = reason


@dataclass
class Space:
    """A Space as the Hub holds it: its files by path, its secrets, variables, hardware and volumes."""

    sdk: str
    private: bool = False
    files: dict[str, bytes] = field(default_factory=lambda: {".gitattributes": b"*.bin filter=lfs\n"})
    secrets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    hardware: str = "cpu-basic"
    sleep_s: int | None = None
    volumes: list[dict[str, Any]] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    def runtime(self) -> dict[str, Any]:
        """Return the runtime as the Hub tells it."""
        return {
            "stage": "RUNNING",
            "hardware": {"current": self.hardware, "requested": self.hardware},
            "gcTimeout": self.sleep_s,
            "volumes": self.volumes or None,
        }

    def tree(self) -> list[dict[str, Any]]:
        """Return every file as the Hub lists it."""
        return [
            {"type": "file", "path": path, "oid": blob_id(content), "size": len(content)}
            for path, content in sorted(self.files.items())
        ]

    def commit(self, lines: list[dict[str, Any]]) -> str:
        """Make a commit of its lines; return its id. Raises Refused for one that does not fit."""
        header, *changes = lines
        if header["key"] != "header" or not header["value"]["summary"]:
            raise Refused(400, "a commit begins with its header")
        if not changes:
            raise Refused(400, "an empty commit")
        files = dict(self.files)
        for change in changes:
            path = change["value"]["path"]
            match change["key"]:
                case "file" if change["value"]["encoding"] == "base64":
                    files[path] = base64.b64decode(change["value"]["content"], validate=True)
                case "deletedFile" if path in files:
                    del files[path]
                case "deletedFile":
                    raise Refused(404, "A file with this name doesn't exist")
                case other:
                    raise Refused(400, f"no such change: {other}")
        check_front_matter(files.get("README.md", b"").decode())
        self.files = files
        self.commits.append(header["value"]["summary"])
        return hashlib.sha1(repr(sorted(files)).encode(), usedforsecurity=False).hexdigest()


def blob_id(content: bytes) -> str:
    """Return the name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def check_front_matter(readme: str) -> None:
    """Raise Refused where the README's front matter is not what the Hub takes."""
    before, _, rest = readme.partition("---\n")
    matter, mark, _ = rest.partition("\n---\n")
    if before or not mark:
        raise Refused(400, "the README has no front matter")
    fields = yaml.safe_load(matter)
    unknown = fields.keys() - _FIELDS
    wrong = [name for name in _TEXT & fields.keys() if not isinstance(fields[name], str)]
    if unknown or wrong:
        raise Refused(400, f"these fields are not taken: {sorted(unknown) + wrong}")
    if fields["sdk"] not in ("gradio", "docker") or not fields["title"]:
        raise Refused(400, '"sdk" must be one of [gradio, docker]')
    if fields["colorFrom"] not in COLOURS or fields["colorTo"] not in COLOURS:
        raise Refused(400, '"colorFrom" must be one of the colours')
    if len(fields.get("short_description", "")) > 60:
        raise Refused(400, '"short_description" length must be less than or equal to 60 characters long')
