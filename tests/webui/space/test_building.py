"""`aivista space build`: a complete Space, whatever its Spacefile says, with nothing secret in it."""

from __future__ import annotations

import ast
import os
import re
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support import commands
from tests.webui.space.conftest import Clone
from webui.cli.parser import CommandFailed
from webui.cli.space.build import BuiltSpace, build, pinned_requirements, read_lock, refused_by_gradio_sdk
from webui.cli.space.spacefile import read_spacefile

yaml: Any = import_module("yaml")
ROOT = Path(__file__).parents[3]
PROJECT = '[project]\ndependencies = ["a[x]>=1"]\n[project.optional-dependencies]\nmore = ["C_c"]\ndev = ["tool"]\n'
LOCK = """\
# made by a tool
a==1.0
    # via aivista (pyproject.toml)
b==2.0 ; python_full_version < '3.12'
    # via
    #   a
    #   tool
b==2.1 ; python_full_version >= '3.12'
    # via a
c-c==3
    # via aivista (pyproject.toml)
d==4
    # via b
tool==5
    # via aivista (pyproject.toml)
toy==6
    # via tool
"""


def built(root: Path, out: Path, **environ: str) -> BuiltSpace:
    return build(root, out, environ)


def front_matter(space: BuiltSpace) -> dict[str, Any]:
    _, matter, _ = (space.folder / "README.md").read_text("utf-8").split("---\n", 2)
    fields: dict[str, Any] = yaml.safe_load(matter)
    return fields


def test_the_space_holds_what_its_spacefile_says_with_every_requirement_pinned(clone: Clone, tmp_path: Path) -> None:
    more = 'short_description = "draws: foxes"\n[runs_on]\nhardware = "cpu-upgrade"\npackages = ["fonts-noto-cjk"]\n'
    space = built(clone(more), tmp_path / "out")
    fields = front_matter(space)
    assert fields["title"] == "Foxes & Co: 狐"
    told = {"emoji": "🦊", "colorFrom": "red", "colorTo": "gray", "sdk": "docker", "app_port": 7860, "pinned": False}
    told |= {"fullWidth": True, "header": "mini", "license": "apache-2.0", "title": fields["title"]}
    assert fields == told | {"suggested_hardware": "cpu-upgrade", "short_description": "draws: foxes"}
    assert read_spacefile(space.folder / "Spacefile") == read_spacefile(tmp_path / "clone" / "Spacefile")
    lines = (space.folder / "requirements.txt").read_text("utf-8").splitlines()[1:]
    assert len(lines) > 80
    assert [line for line in lines if [one.operator for one in Requirement(line).specifier] != ["=="]] == []
    assert (space.folder / "packages.txt").read_text() == "fonts-noto-cjk\n"
    text = (space.folder / "Dockerfile").read_text("utf-8")
    assert text.index("xargs -a packages.txt apt-get install") < text.index("USER user")


def test_the_whole_program_is_in_it_and_knows_its_version(clone: Clone, tmp_path: Path) -> None:
    space = built(clone(is_small=False), tmp_path / "out")
    names = {file.as_posix() for file in space.files}
    assert {"app.py", "webui/locales/zh-CN.toml", "agent/prompts/planner.txt", "webui/shell/studio.js"} <= names
    assert [name for name in names if "__pycache__" in name or name.startswith((".", "tests"))] == []
    ast.parse((space.folder / "app.py").read_text("utf-8"))
    [found] = metadata.distributions(path=[str(space.folder)])
    assert (found.name, found.version) == ("aivista", metadata.version("aivista"))


def test_the_dockerfile_takes_the_spaces_python_user_and_port(clone: Clone, tmp_path: Path) -> None:
    text = (built(clone('[runs_on]\npython = "3.12"\n'), tmp_path / "out").folder / "Dockerfile").read_text("utf-8")
    assert text.startswith("FROM python:3.12-slim-bookworm\n")
    assert [one in text for one in ("--uid 1000 user", "EXPOSE 7860", "packages.txt")] == [True, True, False]


def test_gradios_sdk_is_refused_while_its_extras_do_not_go_with_the_lock_file(clone: Clone, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"sdk gradio cannot install .*mcp<2.* against mcp==2.*choose docker"):
        built(clone('[runs_on]\nsdk = "gradio"\n'), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_gradios_sdk_gets_its_version_and_python_where_they_go_together(clone: Clone, tmp_path: Path) -> None:
    root = clone('[runs_on]\nsdk = "gradio"\n')
    lock = (root / "requirements.lock").read_text("utf-8")
    (root / "requirements.lock").unlink()
    for name, version in (("mcp", "1.25.0"), ("pydantic", "2.12.5")):
        lock = re.sub(rf"^{name}==\S+", f"{name}=={version}", lock, flags=re.M)
    (root / "requirements.lock").write_text(lock, "utf-8")
    space = built(root, tmp_path / "out")
    fields = front_matter(space)
    assert (fields["sdk"], fields["app_file"], fields["python_version"]) == ("gradio", "app.py", "3.11")
    assert fields["sdk_version"] == metadata.version("gradio")
    assert not (space.folder / "Dockerfile").exists()


def test_it_is_built_anew_over_itself_and_over_nothing_else(clone: Clone, tmp_path: Path) -> None:
    out = tmp_path / "out"
    built(clone(), out)
    (out / "left-over.txt").write_text("x")
    assert Path("left-over.txt") not in built(clone(), out).files
    other = tmp_path / "other"
    other.mkdir()
    (other / "letters.txt").write_text("x")
    with pytest.raises(CommandFailed, match="holds other files"):
        built(clone(), other)
    assert [path.name for path in other.iterdir()] == ["letters.txt"]


def test_a_secret_in_a_file_or_a_variable_that_the_studio_cannot_read_stops_it(clone: Clone, tmp_path: Path) -> None:
    root = clone('secrets = ["SEARCH_TOKEN"]\n')
    (root / "webui" / "notes.txt").write_text("my token is s3cr3t-t0ken")
    with pytest.raises(CommandFailed, match=r"webui/notes\.txt holds the value of SEARCH_TOKEN") as caught:
        built(root, tmp_path / "out", SEARCH_TOKEN="s3cr3t-t0ken")
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(CommandFailed, match="variables: AIVISTA_TEXT_TIMEOUT_S is 'soon'"):
        built(clone('[variables]\nAIVISTA_TEXT_TIMEOUT_S = "soon"\n'), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_built_and_refuses_in_a_sentence(clone: Clone, tmp_path: Path) -> None:
    flags = ("space", "build", "--project", str(root := clone()))
    assert commands.done(*flags).startswith(f"Built {root / 'build' / 'space'}: ")
    assert (root / "build" / "space" / "app.py").exists()
    os.unlink(root / "requirements.lock")
    told = f"aivista: there is no requirements.lock in {root}; run this in a clone of the project.\n"
    assert commands.refused(*flags) == told


def pins_of(*extras: str) -> list[str]:
    return [pin.line for pin in pinned_requirements(LOCK, PROJECT, extras)]


def test_what_the_project_runs_on_is_pinned_with_all_that_it_needs() -> None:
    twice = ["b==2.0 ; python_full_version < '3.12'", "b==2.1 ; python_full_version >= '3.12'"]
    assert pins_of() == ["a==1.0", *twice, "d==4"]
    assert pins_of("more") == ["a==1.0", *twice, "c-c==3", "d==4"]


def test_what_the_lock_file_or_the_project_lacks_is_told_of() -> None:
    with pytest.raises(CommandFailed, match=r"runs_on\.extras names nothing"):
        pins_of("nothing")
    with pytest.raises(CommandFailed, match=r"a is not in requirements\.lock"):
        pinned_requirements("b==1\n", PROJECT)
    with pytest.raises(CommandFailed, match=r"line 2 of requirements\.lock"):
        read_lock("a==1\nb>=2\n")


def test_the_projects_own_lock_file_gives_what_is_installed_and_no_tool() -> None:
    pins = pinned_requirements(*((ROOT / name).read_text("utf-8") for name in ("requirements.lock", "pyproject.toml")))
    versions = {pin.name: pin.version for pin in pins}
    assert {"gradio", "google-genai", "mcp", "lancedb"} <= versions.keys()
    assert not {"pytest", "pyrefly", "ruff", "playwright", "openai", "aivista"} & versions.keys()
    assert metadata.version("gradio") == versions["gradio"]


def test_gradios_own_extras_are_held_against_the_pins() -> None:
    bounds = next(line for line in metadata.requires("gradio") or () if line.startswith("mcp"))
    assert "<2" in bounds
    assert any(one.endswith("against mcp==2.3.0") for one in refused_by_gradio_sdk(read_lock("mcp==2.3.0\n")))
    assert refused_by_gradio_sdk(read_lock("mcp==1.25.0\npydantic==2.12.5\n")) == []
