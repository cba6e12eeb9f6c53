"""Builds the folder of a Space from the Spacefile and a clone of the project: complete, pinned, without a secret."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agent import Settings, SettingsError
from webui.cli.parser import CommandFailed
from webui.cli.space.spacefile import SPACEFILE, Spacefile, read_spacefile

LOCK = "requirements.lock"
_PACKAGES = ("agent", "webui")
_MARK = "Made by `aivista space build`"
_PINNED = re.compile(r"([A-Za-z0-9._-]+)==(\S+)(?:\s*;.+)?")
_VIA = re.compile(r"\s+#\s+(?:via\b)?\s*(\S.*)?")
_APP = f'''\
"""Starts Aivista on this Space. {_MARK} from the Spacefile: change that one, and build again."""

from __future__ import annotations

import sys
from pathlib import Path

from webui.cli.space.run import start

if __name__ == "__main__":
    sys.exit(start(Path(__file__).with_name("Spacefile")))
'''
# The steps of Gradio's SDK, without its extras. A Space runs as user 1000 and waits for port 7860.
_DOCKERFILE = """\
FROM python:{python}-slim-bookworm
RUN useradd --create-home --uid 1000 user && install -d -o user -g user /home/user/app
WORKDIR /home/user/app
{packages}USER user
ENV HOME=/home/user PATH=/home/user/.local/bin:$PATH PYTHONUNBUFFERED=1
COPY --chown=user requirements.txt ./
RUN pip install --no-cache-dir --user -r requirements.txt
COPY --chown=user . .
EXPOSE 7860
CMD ["python", "app.py"]
"""
_INSTALL_PACKAGES = """\
COPY packages.txt ./
RUN apt-get update && xargs -a packages.txt apt-get install -y --no-install-recommends && rm -rf /var/lib/apt/lists/*
"""
_WHO_PAYS = {
    "visitors": "Bring your own Gemini key: it is typed into Settings and kept in memory, for you alone, until two "
    "hours after it was last used. Without a key the built-in sketch model draws.",
    "owner": "Pictures are painted with the key of this Space's owner, up to ${cap:g} a day for everybody together. "
    "With a key of your own, typed into Settings, you are not bound to that.",
}


@dataclass(frozen=True)
class BuiltSpace:
    """A Space's folder: its Spacefile, and the paths of its files, sorted."""

    spacefile: Spacefile
    folder: Path
    files: tuple[Path, ...]

    def __str__(self) -> str:
        size_bytes = sum((self.folder / file).stat().st_size for file in self.files)
        return f"{len(self.files)} files, {size_bytes / 1e6:.1f} MB"


@dataclass(frozen=True)
class Pin:
    """A version in the lock file, its line as pip reads it, and the packages that require it."""

    name: str
    version: str
    line: str
    wanted_by: set[str] = field(default_factory=set)


def build(root: Path, out: Path, environ: Mapping[str, str]) -> BuiltSpace:
    """Write the Space of a clone of the project into a folder; an earlier build there is replaced.

    `environ` is searched for the values of secrets, none of which may be in a file. Raises CommandFailed when `root` is
    no clone, its Spacefile is wrong, `out` holds something else, or the Space could not run.
    """
    spacefile = read_spacefile(root / SPACEFILE)
    for name in (LOCK, "pyproject.toml", *_PACKAGES):
        if not (root / name).exists():
            raise CommandFailed(f"there is no {name} in {root}; run this in a clone of the project.")
    files = _generated_files(root, spacefile)
    try:
        Settings.from_env(spacefile.variables, home=Path("/data"))
    except SettingsError as error:
        raise CommandFailed(f"Spacefile: variables: {error}") from None
    _make_empty(out)
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8", newline="\n")
    for path in (path for package in _PACKAGES for path in (root / package).rglob("*")):
        source = path.relative_to(root)
        is_left_out = any(part == "__pycache__" or part.startswith(".") for part in source.parts)
        if path.is_file() and not path.is_symlink() and not is_left_out:
            (out / source).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, out / source)
    written = tuple(sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file()))
    secrets = {name: environ.get(name, "").encode() for name in (*spacefile.secrets, "HF_TOKEN")}
    for file in written:
        content = (out / file).read_bytes()
        for name, value in secrets.items():
            if len(value) >= 8 and value in content:
                shutil.rmtree(out)
                raise CommandFailed(f"{file} holds the value of {name}; take it out before this is published.")
    return BuiltSpace(spacefile, out, written)


def pinned_requirements(lock: str, pyproject: str, extras: Collection[str] = ()) -> list[Pin]:
    """Return the pins of the project's dependencies, with those of the given extras and without development tools.

    Raises CommandFailed for an unknown extra, and for a dependency that is not in the lock file.
    """
    pins = read_lock(lock)
    project: dict[str, Any] = tomllib.loads(pyproject)["project"]
    lines: list[str] = list(project["dependencies"])
    optional: dict[str, list[str]] = project.get("optional-dependencies", {})
    for extra in sorted(extras):
        if extra not in optional:
            raise CommandFailed(
                f"Spacefile: runs_on.extras names {extra}, which {', '.join(sorted(optional))} are not."
            )
        lines += optional[extra]
    chosen: set[str] = {canonicalize_name(Requirement(line).name) for line in lines}
    if missing := sorted(chosen - {pin.name for pin in pins}):
        raise CommandFailed(f"{missing[0]} is not in {LOCK}; make it anew as .ci/check says.")
    while more := {pin.name for pin in pins if pin.wanted_by & chosen} - chosen:
        chosen |= more
    return [pin for pin in pins if pin.name in chosen]


def read_lock(text: str) -> list[Pin]:
    """Return the pins of a lock file with comments, as uv writes it. Raises CommandFailed on any other line."""
    pins: list[Pin] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and (via := _VIA.fullmatch(line)) and pins:
            pins[-1].wanted_by.update(filter(None, [via[1]]))
        elif pinned := _PINNED.fullmatch(line):
            pins.append(Pin(canonicalize_name(pinned[1]), pinned[2], line))
        else:
            raise CommandFailed(f"line {number} of {LOCK} pins no version; make it anew as .ci/check says.")
    return pins


def refused_by_gradio_sdk(pins: Sequence[Pin]) -> list[str]:
    """Return why Gradio's SDK cannot install these pins: it adds the extras `oauth` and `mcp`, with their bounds."""
    return [
        f"{wanted.name}{wanted.specifier} against {wanted.name}=={pin.version}"
        for wanted in map(Requirement, metadata.requires("gradio") or ())
        if wanted.marker and any(wanted.marker.evaluate({"extra": extra}) for extra in ("oauth", "mcp"))
        for pin in pins
        if pin.name == canonicalize_name(wanted.name) and not wanted.specifier.contains(pin.version, prereleases=True)
    ]


def _make_empty(out: Path) -> None:
    """Create the folder, or empty an earlier build. Raises CommandFailed for any other folder that is not empty."""
    if out.is_dir() and any(out.iterdir()):
        app = out / "app.py"
        if not app.is_file() or _MARK not in app.read_text(encoding="utf-8", errors="replace"):
            raise CommandFailed(f"{out} holds other files; name an empty folder with --out.")
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(f"{out} cannot be made ({error.strerror or error}).") from None


def _generated_files(root: Path, spacefile: Spacefile) -> dict[str, str]:
    """Return the generated files by name. Raises CommandFailed when the Space's SDK could not install the
    dependencies."""
    runs_on = spacefile.runs_on
    lock, pyproject, text = ((root / name).read_text("utf-8") for name in (LOCK, "pyproject.toml", SPACEFILE))
    pins = pinned_requirements(lock, pyproject, {*runs_on.extras, *(["accounts"] if spacefile.sign_in else [])})
    if runs_on.sdk == "gradio" and (refused := refused_by_gradio_sdk(pins)):
        raise CommandFailed(
            f"Spacefile: runs_on.sdk gradio cannot install {LOCK}, because it adds gradio[oauth,mcp] "
            f"({'; '.join(refused)}); choose docker."
        )
    version = tomllib.loads(pyproject)["project"]["version"]
    files = {
        SPACEFILE: text,
        "README.md": _readme(spacefile, next(pin.version for pin in pins if pin.name == "gradio")),
        "app.py": _APP,
        "packages.txt": "".join(f"{name}\n" for name in runs_on.packages),
        "requirements.txt": f"# {_MARK} from {LOCK}.\n" + "".join(f"{pin.line}\n" for pin in pins),
        # The sources lie beside app.py and are not installed; this tells them their version.
        f"aivista-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: aivista\nVersion: {version}\n",
    }
    if runs_on.sdk == "docker":
        packages = _INSTALL_PACKAGES if runs_on.packages else ""
        files["Dockerfile"] = _DOCKERFILE.format(python=runs_on.python, packages=packages)
    return files


def _readme(spacefile: Spacefile, gradio_version: str) -> str:
    """Return the Space's README, whose front matter Hugging Face reads."""
    runs_on = spacefile.runs_on
    fields: dict[str, str | bool | int] = {
        "title": spacefile.title,
        "emoji": spacefile.emoji,
        "colorFrom": spacefile.color_from,
        "colorTo": spacefile.color_to,
        "sdk": runs_on.sdk,
        "pinned": False,
        "fullWidth": True,
        "header": "mini",
        "license": spacefile.license,
        "suggested_hardware": runs_on.hardware,
    }
    if runs_on.sdk == "docker":
        fields["app_port"] = 7860
    else:
        fields |= {"sdk_version": gradio_version, "python_version": runs_on.python, "app_file": "app.py"}
    if spacefile.sign_in:
        # Asks for no permissions, only for the user's identity.
        fields |= {"hf_oauth": True, "hf_oauth_expiration_minutes": 60}
    if spacefile.short_description:
        fields["short_description"] = spacefile.short_description
    # JSON is YAML, whatever characters a title holds.
    matter = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    about = spacefile.short_description or "A chat studio for pictures"
    who_pays = _WHO_PAYS[spacefile.pays.who].format(cap=spacefile.pays.cap_day_usd or 0)
    return "\n".join(("---", *matter, "---", "", f"# {spacefile.title}", "", f"{about}.", "", who_pays, ""))
