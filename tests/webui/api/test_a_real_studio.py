"""The API beside a real page: what the docs say runs as it stands, streams are not held back, tokens open the door."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.adapters.programs import main
from tests.page import PageProcess, clean_environment, run_command
from tests.support.api import png
from tests.test_readme import run_example

PAGE = Path(__file__).parents[3] / "docs" / "api.md"
TOLD = "http://127.0.0.1:7860"


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def run_shell(code: str, folder: Path) -> str:
    """Run a shell example as its reader would; return what it printed."""
    ended = subprocess.run(
        ["sh", "-eu", "-c", code],
        cwd=folder,
        env=clean_environment(NO_PROXY="*"),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


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


def test_the_problem_that_the_docs_show_is_the_one_that_comes(own: PageProcess) -> None:
    [shown] = map(json.loads, examples("json"))
    with httpx.Client(base_url=own.url) as client:
        conversation = client.post("/api/v1/conversations").json()["id"]
        answer = client.get(f"/api/v1/conversations/{conversation}/pictures/9")
    assert answer.json() == shown


def test_every_address_of_the_docs_is_a_route_and_the_schema_holds_no_other(own: PageProcess) -> None:
    with httpx.Client(base_url=own.url) as client:
        found = client.get("/api/v1/openapi.json").json()
        assert client.get("/openapi.json").status_code in (404, 405)
    table = re.findall(r"^\| (`(?:GET|POST).*?) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    named = {last for row in table for last in re.findall(r"([a-z]+)(?:/\{\w+\})?`", row)}
    paths = [re.sub(r"/\{[^}]+\}$", "", path) for path in found["paths"] if path.startswith("/api/v1")]
    assert {path.rpartition("/")[2] for path in paths} - {"chat"} <= named
    assert all(path.startswith(("/api/v1/", "/v1/")) for path in found["paths"])


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


def test_the_page_and_the_api_share_what_is_on_ones_own_machine(own: PageProcess) -> None:
    with urllib.request.urlopen(own.url, timeout=20) as answer:
        cookie = answer.headers["set-cookie"].partition(";")[0]
    with httpx.Client(base_url=own.url, headers={"Cookie": cookie}) as browser:
        conversation = browser.post("/api/v1/conversations").json()["id"]
        assert browser.get(f"/aivista/trace/{conversation}").json() == {"turns": [], "has_more": False}


def test_a_studio_that_others_can_reach_answers_to_tokens_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    made = run_command("token", "new", "anna", "--home", str(home))
    token = made.stdout.strip()
    assert (made.returncode, made.stderr, token.startswith("aiv_")) == (0, "", True)
    flags = ["--host", "0.0.0.0", "--api-token", "ben:ben-has-a-long-token"]
    with PageProcess(*flags, home=home) as running:

        def asked(bearer: str) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
            answer = httpx.get(f"{running.url}/api/v1/conversations", headers=headers)
            return {"status": answer.status_code, **answer.json()}

        assert asked("")["code"] == "unauthorized"
        assert asked(token) == {"status": 200, "conversations": []}
        assert asked("ben-has-a-long-token")["status"] == 200
        assert main(["token", "remove", "anna", "--home", str(home)]) == 0
        assert asked(token)["status"] == 401
        assert token not in running.errors


def test_the_command_lists_tokens_and_refuses_what_it_cannot_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ["--home", str(tmp_path)]
    assert main(["token", "new", "zoe", *home]) == main(["token", "new", "anna", *home]) == 0
    tokens = capsys.readouterr().out.split()
    assert len(set(tokens)) == 2
    assert main(["token", "list", *home]) == 0
    assert capsys.readouterr().out.split() == ["anna", "zoe"]
    for flags, why in (
        (["new"], "NAME"),
        (["new", "../x"], "no name"),
        (["new", "zoe"], "already"),
        (["remove", "ben"], "ben"),
    ):
        assert main(["token", *flags, *home]) == 2
        said = capsys.readouterr()
        assert (said.out, why in said.err, len(said.err.splitlines())) == ("", True, 1)
