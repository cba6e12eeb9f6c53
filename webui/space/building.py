"""From the Spacefile and a clone of the project to the folder of a Space: complete, pinned, without a secret."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent import Settings, SettingsError
from webui.space.image import dockerfile
from webui.space.requirements import LOCK, Pin, pinned_requirements, refused_by_gradio_sdk
from webui.space.spacefile import SPACEFILE, Spacefile, SpaceProblem, read_spacefile

PACKAGES = ("agent", "webui")
_MARK = "Made by `aivista space build`"
_LEFT_OUT = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")
_APP = f'''\
"""Starts Aivista on this Space. {_MARK} from the Spacefile: change that one, and build again."""

from __future__ import annotations

import sys
from pathlib import Path

from webui.space.starting import start

if __name__ == "__main__":
    sys.exit(start(Path(__file__).with_name("Spacefile")))
'''


@dataclass(frozen=True)
class Project:
    """A clone of the project, and what its Spacefile says."""

    root: Path
    spacefile: Spacefile
    version: str


@dataclass(frozen=True)
class BuiltSpace:
    """A Space's folder: its files, as paths under it in the order of their names."""

    folder: Path
    files: tuple[Path, ...]

    @property
    def size_bytes(self) -> int:
        """What all files take together."""
        return sum((self.folder / file).stat().st_size for file in self.files)


def open_project(root: Path) -> Project:
    """Return the project in a folder. Raises SpaceProblem when that is no clone of it, or its Spacefile is wrong."""
    spacefile = read_spacefile(root / SPACEFILE)
    for name in (LOCK, "pyproject.toml", *PACKAGES):
        if not (root / name).exists():
            raise SpaceProblem(f"there is no {name} in {root}; run this in a clone of the project.")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return Project(root, spacefile, project["version"])


def build(project: Project, out: Path, environ: Mapping[str, str]) -> BuiltSpace:
    """Write the Space's folder and return it; a folder that was built before is made anew.

    `environ` is looked at for the values of secrets, none of which may be in a file. Raises SpaceProblem when the
    folder holds something else, or the Space could not run.
    """
    pins = _requirements(project)
    _check_variables(project.spacefile)
    _make_room(out)
    for name, text in _written(project, pins).items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    for file in _sources(project.root):
        target = out / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project.root / file, target)
    built = BuiltSpace(out, tuple(sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())))
    _check_for_secrets(built, project.spacefile, environ)
    return built


def _requirements(project: Project) -> list[Pin]:
    lock, pyproject = ((project.root / name).read_text(encoding="utf-8") for name in (LOCK, "pyproject.toml"))
    extras = {*project.spacefile.runs_on.extras, *(("accounts",) if project.spacefile.sign_in else ())}
    pins = pinned_requirements(lock, pyproject, sorted(extras))
    if project.spacefile.runs_on.sdk == "gradio" and (refused := refused_by_gradio_sdk(pins)):
        raise SpaceProblem(
            f"Spacefile: runs_on.sdk gradio cannot install {LOCK}, because it adds gradio[oauth,mcp] "
            f"({'; '.join(refused)}); choose docker."
        )
    return pins


def _check_variables(spacefile: Spacefile) -> None:
    try:
        Settings.from_env(spacefile.variables, home=Path("/data"))
    except SettingsError as error:
        raise SpaceProblem(f"Spacefile: variables: {error}") from None


def _make_room(out: Path) -> None:
    """Empty a folder that was built here before. Raises SpaceProblem for any other that holds something."""
    if out.is_dir() and any(out.iterdir()):
        app = out / "app.py"
        if not app.is_file() or _MARK not in app.read_text(encoding="utf-8", errors="replace"):
            raise SpaceProblem(f"{out} holds other files; name an empty folder with --out.")
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpaceProblem(f"{out} cannot be made ({error.strerror or error}).") from None


def _written(project: Project, pins: Iterable[Pin]) -> dict[str, str]:
    """Return the files that are no copies, by name."""
    spacefile = project.spacefile
    files = {
        SPACEFILE: (project.root / SPACEFILE).read_text(encoding="utf-8"),
        "README.md": _readme(spacefile, next(pin.version for pin in pins if pin.name == "gradio")),
        "app.py": _APP,
        "packages.txt": "".join(f"{name}\n" for name in spacefile.runs_on.packages),
        "requirements.txt": f"# {_MARK} from {LOCK}.\n" + "".join(f"{pin.line}\n" for pin in pins),
        # The sources lie beside app.py and are not installed; this tells them their version.
        f"aivista-{project.version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: aivista\nVersion: {project.version}\n"
        ),
    }
    if spacefile.runs_on.sdk == "docker":
        files["Dockerfile"] = dockerfile(spacefile)
    return files


def front_matter(spacefile: Spacefile, gradio_version: str) -> dict[str, str | bool | int]:
    """Return what Hugging Face reads at the top of the Space's README."""
    runs_on = spacefile.runs_on
    if runs_on.sdk == "docker":
        sdk: dict[str, str | bool | int] = {"sdk": "docker", "app_port": 7860}
    else:
        sdk = {"sdk": "gradio", "sdk_version": gradio_version, "python_version": runs_on.python, "app_file": "app.py"}
    fields: dict[str, str | bool | int] = {
        "title": spacefile.title,
        "emoji": spacefile.emoji,
        "colorFrom": spacefile.color_from,
        "colorTo": spacefile.color_to,
        **sdk,
        "pinned": False,
        "fullWidth": True,
        "header": "mini",
        "license": spacefile.license,
        "suggested_hardware": runs_on.hardware,
    }
    if spacefile.sign_in:
        # Asks for nobody's rights: who somebody is, no more.
        fields |= {"hf_oauth": True, "hf_oauth_expiration_minutes": 60}
    if spacefile.short_description:
        fields["short_description"] = spacefile.short_description
    return fields


_PAYS = {
    "visitors": "Bring your own Gemini key: it is typed into Settings and kept in memory, for you alone, until two "
    "hours after it was last used. Without a key the built-in sketch model draws.",
    "owner": "Pictures are painted with the key of this Space's owner, up to ${cap:g} a day for everybody together. "
    "With a key of your own, typed into Settings, you are not bound to that.",
}


def _readme(spacefile: Spacefile, gradio_version: str) -> str:
    # JSON is YAML, whatever signs a title holds.
    fields = (
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in front_matter(spacefile, gradio_version).items()
    )
    pays = _PAYS[spacefile.pays.who].format(cap=spacefile.pays.cap_day_usd or 0)
    about = spacefile.short_description or "A chat studio for pictures"
    return "\n".join(("---", *fields, "---", "", f"# {spacefile.title}", "", f"{about}.", "", pays, ""))


def _sources(root: Path) -> Iterator[Path]:
    for package in PACKAGES:
        for path in (root / package).rglob("*"):
            file = path.relative_to(root)
            is_left_out = any(part in _LEFT_OUT or part.startswith(".") for part in file.parts)
            if path.is_file() and not path.is_symlink() and not is_left_out:
                yield file


def _check_for_secrets(built: BuiltSpace, spacefile: Spacefile, environ: Mapping[str, str]) -> None:
    secrets = {name: environ.get(name, "") for name in (*spacefile.secrets, "HF_TOKEN")}
    held = {name: value.encode() for name, value in secrets.items() if len(value) >= 8}
    for file in built.files:
        content = (built.folder / file).read_bytes()
        for name, value in held.items():
            if value in content:
                shutil.rmtree(built.folder)
                raise SpaceProblem(f"{file} holds the value of {name}; take it out before this is published.")
