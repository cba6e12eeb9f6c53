"""`aivista space check`: a Space that works is used once, and what is wrong with one that does not is said.

In the environment of the tests: the installation into a fresh one takes minutes, and is what the command does unasked.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.page import run_command
from tests.webui.space.conftest import Clone
from webui.space.building import build, open_project
from webui.space.checking import HOST, SpaceProcess, check, space_environment
from webui.space.driving import Fault, drive


def test_the_studio_works_as_a_space(clone: Clone, tmp_path: Path) -> None:
    root = clone(is_small=False)
    ended = run_command("space", "check", "--without-install", "--project", str(root), "--keep", str(tmp_path / "kept"))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    steps = [line.partition(":")[0] for line in ended.stdout.splitlines()]
    assert steps == ["build", "start", "use", "end"]
    assert "two strangers, a picture of" in ended.stdout
    # HOME cannot be written there: what it needs, it has elsewhere.
    assert list((tmp_path / "kept" / "home").iterdir()) == []


def test_a_space_that_does_not_start_says_why(clone: Clone, tmp_path: Path) -> None:
    said: list[str] = []
    root = clone()
    assert not check(open_project(root), tmp_path / "kept", is_installed_afresh=False, say=said.append)
    assert said[1].startswith("start: app.py ended: ModuleNotFoundError")


def test_a_requirement_that_cannot_be_had_is_named(clone: Clone, tmp_path: Path) -> None:
    root, said = clone(), list[str]()
    lock = (root / "requirements.lock").read_text("utf-8")
    (root / "requirements.lock").unlink()
    broken = lock.replace("aiosqlite==", "aiosqlite==0+not-there.")
    (root / "requirements.lock").write_text(broken, "utf-8")
    assert not check(open_project(root), tmp_path / "kept", is_installed_afresh=True, say=said.append)
    assert said[1].startswith("install: requirements.txt cannot be installed: ")


def test_what_is_wrong_with_a_running_page_is_said(clone: Clone, tmp_path: Path) -> None:
    project = open_project(clone())
    space = build(project, tmp_path / "space", {}).folder
    (space / "app.py").write_text(
        "import os, http.server as h\nh.test(h.SimpleHTTPRequestHandler, port=int(os.environ['PORT']))\n"
    )
    with SpaceProcess(Path(sys.executable), space, project.spacefile, tmp_path) as running:
        running.wait()
        with pytest.raises(Fault, match="the cookie is not marked HttpOnly"):
            drive(running.url, HOST, is_kept=False)


def test_a_python_that_is_not_here_is_told_of(clone: Clone) -> None:
    ended = run_command("space", "check", "--project", str(clone('[runs_on]\npython = "3.99"\n')))
    assert ended.returncode == 2
    assert ended.stderr == "aivista: the Space runs on Python 3.99, and there is no python3.99 here.\n"


def test_each_sdk_gets_its_own_variables(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-of-the-developer")
    for sdk, port_variable in (("docker", "PORT"), ("gradio", "GRADIO_SERVER_PORT")):
        spacefile = open_project(clone(f'[variables]\nA = "b"\n[runs_on]\nsdk = "{sdk}"\n')).spacefile
        told = space_environment(spacefile, tmp_path, 7861)
        assert (told[port_variable], told["SPACE_HOST"], told["A"]) == ("7861", HOST, "b")
        assert ("SYSTEM" in told, "GEMINI_API_KEY" in told) == (sdk == "gradio", False)
