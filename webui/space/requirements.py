"""What a Space installs: the lock file's versions of what the studio runs on, and whether its SDK allows them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from webui.space.spacefile import SpaceProblem

LOCK = "requirements.lock"
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+)(?:\s*;\s*(.+))?")
_VIA = re.compile(r"\s+#\s+(?:via\b)?\s*(\S.*)?")


@dataclass(frozen=True)
class Pin:
    """A line of the lock file: a version, for some platforms or all, and which packages wanted it."""

    name: str
    version: str
    marker: str
    wanted_by: frozenset[str]

    @property
    def line(self) -> str:
        """The line as pip reads it."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")


def read_lock(text: str) -> list[Pin]:
    """Return the pins of a lock file as uv writes it, with its comments. Raises SpaceProblem on any other line."""
    pins: list[Pin] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and (via := _VIA.fullmatch(line)) and pins:
            wanted = {via[1]} if via[1] else set()
            pins[-1] = Pin(pins[-1].name, pins[-1].version, pins[-1].marker, pins[-1].wanted_by | wanted)
        elif pinned := _PINNED.fullmatch(line):
            pins.append(Pin(canonicalize_name(pinned[1]), pinned[2], pinned[3] or "", frozenset()))
        else:
            raise SpaceProblem(f"line {number} of {LOCK} pins no version; make it anew as .ci/check says.")
    return pins


def pinned_requirements(lock: str, pyproject: str, extras: Collection[str] = ()) -> list[Pin]:
    """Return the pins of what the project and these extras of it run on, without the tools of its developers.

    Raises SpaceProblem for an extra that the project does not have, and for a dependency that is not in the lock file.
    """
    pins, project = read_lock(lock), tomllib.loads(pyproject)["project"]
    roots = set(_direct(project, extras))
    if missing := sorted(roots - {pin.name for pin in pins}):
        raise SpaceProblem(f"{missing[0]} is not in {LOCK}; make it anew as .ci/check says.")
    chosen = set(roots)
    while more := {pin.name for pin in pins if pin.wanted_by & chosen} - chosen:
        chosen |= more
    return [pin for pin in pins if pin.name in chosen]


def _direct(project: dict[str, object], extras: Collection[str]) -> Iterator[str]:
    lines = project["dependencies"]
    assert isinstance(lines, list)
    optional = project.get("optional-dependencies", {})
    assert isinstance(optional, dict)
    for extra in extras:
        if extra not in optional:
            raise SpaceProblem(f"Spacefile: runs_on.extras names {extra}, which {', '.join(sorted(optional))} are not.")
        lines = [*lines, *optional[extra]]
    for line in lines:
        yield canonicalize_name(Requirement(line).name)


def added_by_gradio_sdk(version: str) -> list[str]:
    """Return what a Space with Gradio's SDK installs in the same breath as the requirements."""
    return [f"gradio[oauth,mcp]=={version}", "uvicorn>=0.14.0", "websockets>=10.4", "spaces"]


def refused_by_gradio_sdk(pins: Sequence[Pin]) -> list[str]:
    """Return why Gradio's SDK cannot install these pins: it adds the extras `oauth` and `mcp`, with their bounds."""
    versions: dict[str, list[str]] = {}
    for pin in pins:
        versions.setdefault(pin.name, []).append(pin.version)
    return [
        f"{wanted.name}{wanted.specifier} against {wanted.name}=={version}"
        for wanted in _wishes_of_gradios_extras()
        for version in versions.get(canonicalize_name(wanted.name), ())
        if not wanted.specifier.contains(version, prereleases=True)
    ]


def _wishes_of_gradios_extras() -> Iterator[Requirement]:
    for line in metadata.requires("gradio") or ():
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if wanted.marker and any(wanted.marker.evaluate({"extra": extra}) for extra in ("oauth", "mcp")):
            yield wanted
