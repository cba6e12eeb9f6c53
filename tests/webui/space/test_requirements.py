"""A Space installs the lock file's versions of what the studio runs on, and nothing of its developers' tools."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from webui.cli.parser import CommandFailed
from webui.cli.space.build import pinned_requirements, read_lock, refused_by_gradio_sdk

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


def lines(*extras: str) -> list[str]:
    return [pin.line for pin in pinned_requirements(LOCK, PROJECT, extras)]


def test_what_the_project_runs_on_is_pinned_with_all_that_it_needs() -> None:
    twice = ["b==2.0 ; python_full_version < '3.12'", "b==2.1 ; python_full_version >= '3.12'"]
    assert lines() == ["a==1.0", *twice, "d==4"]
    assert lines("more") == ["a==1.0", *twice, "c-c==3", "d==4"]


def test_what_the_lock_file_or_the_project_lacks_is_told_of() -> None:
    with pytest.raises(CommandFailed, match=r"runs_on\.extras names nothing"):
        lines("nothing")
    with pytest.raises(CommandFailed, match=r"a is not in requirements\.lock"):
        pinned_requirements("b==1\n", PROJECT)
    with pytest.raises(CommandFailed, match=r"line 2 of requirements\.lock"):
        read_lock("a==1\nb>=2\n")


def test_the_projects_own_lock_file_gives_what_is_installed_and_no_tool() -> None:
    pins = pinned_requirements(*((ROOT / name).read_text("utf-8") for name in ("requirements.lock", "pyproject.toml")))
    versions = {pin.name: pin.version for pin in pins}
    assert {"gradio", "google-genai", "mcp", "lancedb"} <= versions.keys()
    assert not {"pytest", "mypy", "ruff", "playwright", "openai", "aivista"} & versions.keys()
    assert metadata.version("gradio") == versions["gradio"]


def test_gradios_own_extras_are_held_against_the_pins() -> None:
    bounds = next(line for line in metadata.requires("gradio") or () if line.startswith("mcp"))
    assert "<2" in bounds
    assert any(one.endswith("against mcp==2.3.0") for one in refused_by_gradio_sdk(read_lock("mcp==2.3.0\n")))
    assert refused_by_gradio_sdk(read_lock("mcp==1.25.0\npydantic==2.12.5\n")) == []
