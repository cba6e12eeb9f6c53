"""`aivista space check`: a Space that works is used once, and what is wrong with one that does not is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.page import run_command
from tests.webui.space.conftest import Clone
from webui.cli.space.build import build
from webui.cli.space.check import check, space_environment
from webui.cli.space.spacefile import read_spacefile


def test_the_studio_works_as_a_space(clone: Clone) -> None:
    ended = run_command("space", "check", "--project", str(clone(is_small=False)))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert [line.partition(":")[0] for line in ended.stdout.splitlines()] == ["build", "start", "use", "end"]
    assert "a stranger, a picture of" in ended.stdout


def test_a_space_that_does_not_start_says_why(clone: Clone) -> None:
    ended = run_command("space", "check", "--project", str(clone()))
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines()[1].startswith("start: app.py ended: ModuleNotFoundError")


SERVER = "import os, http.server as h\n{first}\nh.test(h.SimpleHTTPRequestHandler, port=int(os.environ['PORT']))"


@pytest.mark.parametrize(
    ("first", "fault"),
    [("", "use: the cookie is not marked HttpOnly"), ("os._exit(3)", "start: app.py ended: exit code 3")],
)
def test_what_is_wrong_with_a_running_page_is_said(
    clone: Clone, tmp_path: Path, capsys: pytest.CaptureFixture[str], first: str, fault: str
) -> None:
    built = build(clone(), tmp_path / "space", {})
    (built.folder / "app.py").write_text(SERVER.format(first=first))
    assert not check(built, tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == fault


def test_each_sdk_gets_its_own_variables(clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-of-the-developer")
    for sdk, port_variable in (("docker", "PORT"), ("gradio", "GRADIO_SERVER_PORT")):
        root = clone(f'[variables]\nA = "b"\n[runs_on]\nsdk = "{sdk}"\n')
        variables = space_environment(read_spacefile(root / "Spacefile"), tmp_path, 7861)
        assert (variables[port_variable], variables["SPACE_HOST"]) == ("7861", "aivista-check-studio.hf.space")
        assert ("SYSTEM" in variables, "GEMINI_API_KEY" in variables, variables["A"]) == (sdk == "gradio", False, "b")
