"""The API beside a real page: what the docs say runs as it stands, streams are not held back, tokens open the door."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.page import PageProcess, clean_environment
from tests.support import commands
from tests.support.api import png
from tests.test_readme import run_example

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
TOLD = "http://127.0.0.1:7860"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def run_shell(code: str, folder: Path) -> str:
    """Run a shell example as its reader would; return what it printed."""
    told: dict[str, Any] = {"cwd": folder, "env": clean_environment(NO_PROXY="*"), "timeout": 60, "encoding": "utf-8"}
    ended = subprocess.run(["sh", "-eu", "-c", code], capture_output=True, check=False, **told)
    assert ended.returncode == 0, ended.stderr
    return str(ended.stdout)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_with_curl_run_as_they_stand(own: PageProcess, tmp_path: Path) -> None:
    picture, direct, _ = [example.replace(TOLD, own.url) for example in examples("sh")]
    said = run_shell(picture, tmp_path)
    assert said.count("event: done") == 2
    assert '"user_text":"a red fox in the snow, watercolour"' in said
    with Image.open(tmp_path / "fox.png") as fox, Image.open(tmp_path / "fox.webp") as small:
        assert (fox.format, small.format, max(small.size)) == ("PNG", "WEBP", 256)
        assert abs(fox.width / fox.height - 1.5) < 0.02
    said = run_shell(direct, tmp_path)
    assert '"uploads":[]' in said
    assert '"state":"done"' in said


def test_the_examples_in_python_run_as_they_stand(own: PageProcess, tmp_path: Path) -> None:
    ours, openai = [example.replace(TOLD, own.url) for example in examples("python")]
    assert run_example(ours, tmp_path).splitlines()[-1] == "done done"
    with Image.open(tmp_path / "lighthouse.png") as picture:
        assert picture.format == "PNG"
    (tmp_path / "photo.png").write_bytes(png("steelblue", (96, 96)))
    mask = Image.new("RGBA", (96, 96), "black")
    mask.paste((0, 0, 0, 0), (32, 32, 64, 64))
    mask.save(tmp_path / "mask.png")
    assert run_example(openai, tmp_path).strip()
    with Image.open(tmp_path / "openai-fox.png") as picture:
        assert picture.width > picture.height


def test_the_docs_show_the_problem_that_comes_and_the_addresses_that_there_are(own: PageProcess) -> None:
    [shown] = map(json.loads, examples("json"))
    with httpx.Client(base_url=own.url) as client:
        client.get("/")
        conversation = client.post("/api/v1/conversations").json()["id"]
        assert client.get(f"/api/v1/conversations/{conversation}/pictures/9").json() == shown
        # The page and the API share what is on one's own machine.
        assert client.get(f"/aivista/trace/{conversation}.json").json()["steps"] == []
        found = client.get("/api/v1/openapi.json").json()
        assert client.get("/openapi.json").status_code in (404, 405)
    table = re.findall(r"^\| (`(?:GET|POST).*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    named = {last for row in table for last in re.findall(r"([a-z]+)(?:/\{\w+\})?`", row)}
    paths = [re.sub(r"/\{[^}]+\}$", "", path) for path in found["paths"] if path.startswith("/api/v1")]
    assert {path.rpartition("/")[2] for path in paths} - {"chat"} <= named


def test_a_stream_comes_as_it_is_told_whatever_encoding_the_client_takes(own: PageProcess) -> None:
    arrived: list[float] = []
    with httpx.Client(base_url=own.url, headers={"Accept-Encoding": "br, gzip, deflate"}, timeout=60) as client:
        conversation = client.post("/api/v1/conversations").json()["id"]
        body = {"text": "a red fox", "settings": {"review": "off"}}
        with client.stream("POST", f"/api/v1/conversations/{conversation}/turns", json=body) as answer:
            assert "content-encoding" not in answer.headers
            arrived.extend(time.monotonic() for line in answer.iter_lines() if line.startswith("id:"))
    # Held back, all of them would come at once.
    assert arrived[-1] > arrived[0]
    assert len(set(arrived)) > 3


def test_a_studio_that_others_can_reach_answers_to_tokens_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    token = commands.done("token", "new", "anna", "--home", str(home)).strip()
    assert token.startswith("aiv_")
    flags = ["--host", "0.0.0.0", "--api-token", "ben:ben-has-a-long-token"]
    with PageProcess(*flags, home=home) as running:

        def asked(bearer: str) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
            answer = httpx.get(f"{running.url}/api/v1/conversations", headers=headers)
            return {"status": answer.status_code, **answer.json()}

        assert asked("")["code"] == "unauthorized"
        assert asked(token) == {"status": 200, "conversations": []}
        assert asked("ben-has-a-long-token")["status"] == 200
        commands.done("token", "remove", "anna", "--home", str(home))
        assert asked(token)["status"] == 401
        assert token not in running.errors


def test_the_command_lists_tokens_and_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path))
    assert len({commands.done("token", "new", name, *home) for name in ("zoe", "anna")}) == 2
    assert commands.done("token", "list", *home).split() == ["anna", "zoe"]
    wrong = {("new",): "NAME", ("new", "../x"): "no name", ("new", "zoe"): "already", ("remove", "ben"): "ben"}
    for flags, why in wrong.items():
        assert why in commands.refused("token", *flags, *home)
