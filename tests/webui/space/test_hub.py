"""`aivista space check`, and `space push` against a strict Hub: the real command and huggingface_hub, real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hub_server import READ_TOKEN, TOKEN, HubServer
from tests.page import clean_environment, run_command
from tests.page.process import run_to_end
from tests.webui.space.conftest import Clone

SECRET = "s3cr3t-of-the-owner"
MORE = """\
private = true
secrets = ["SEARCH_PASS"]
[variables]
AIVISTA_TEXT_TIMEOUT_S = "90"
[runs_on]
hardware = "cpu-upgrade"
sleep_after_s = 3600
[storage]
bucket = "foxes-data"
"""
REPO = "ada/foxes-co"
Push = Callable[..., list[str]]


def test_a_space_that_does_not_start_says_why(clone: Clone) -> None:
    ended = run_command("space", "check", "--project", str(clone()))
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines()[1].startswith("start: app.py ended: ModuleNotFoundError")


def test_the_studio_works_as_a_space(clone: Clone) -> None:
    ended = run_command("space", "check", "--project", str(clone(is_small=False)))
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert [line.partition(":")[0] for line in ended.stdout.splitlines()] == ["build", "start", "use", "end"]
    assert "a stranger, a picture of" in ended.stdout


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server
        assert server.violations == []


@pytest.fixture
def push(hub: HubServer, clone: Clone, tmp_path: Path) -> Push:
    """Runs the command with a home of its own for huggingface_hub; returns its lines, or the one of a refusal."""
    root = clone(MORE)

    def run(*flags: str, token: str = TOKEN, ends_with: int = 0, **given: str) -> list[str]:
        homes = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HOME": str(tmp_path)}
        variables = homes | ({"HF_TOKEN": token} if token else {}) | given
        command, environment = ("space", "push", "--project", str(root), *flags), clean_environment(**variables)
        # What talks to the Hub reads its variables when it is imported.
        ended = run_to_end(command, environment=environment, is_cold=True)
        assert [value for value in (SECRET, TOKEN, READ_TOKEN) if value in ended.stdout + ended.stderr] == []
        assert (ended.returncode, bool(ended.stderr), bool(ended.stdout)) == (ends_with, ends_with > 0, ends_with == 0)
        return (ended.stdout or ended.stderr).splitlines()

    return run


def test_a_space_is_created_as_a_dry_run_tells_and_pushed_again_unchanged(hub: HubServer, push: Push) -> None:
    told = push("--dry-run", SEARCH_PASS=SECRET)
    assert (hub.spaces, hub.buckets, hub.writes) == ({}, set(), [])
    said = push(SEARCH_PASS=SECRET)
    assert told[:-1] == [f"would {line}" for line in said[:-1]]
    space = hub.spaces[REPO]
    assert (space.sdk, space.private, space.hardware, space.sleep_s) == ("docker", True, "cpu-upgrade", 3600)
    assert (space.secrets, space.variables) == ({"SEARCH_PASS": SECRET}, {"AIVISTA_TEXT_TIMEOUT_S": "90"})
    assert [(one["source"], one["mountPath"]) for one in space.volumes] == [("ada/foxes-data", "/data")]
    assert {"app.py", "README.md", "requirements.txt", "Dockerfile", "webui/__init__.py"} <= space.files.keys()
    assert said[-1] == f"The Space is at {hub.url}/spaces/{REPO}"
    assert "with secret SEARCH_PASS, variable AIVISTA_TEXT_TIMEOUT_S, ada/foxes-data at /data" in said[1]
    writes = list(hub.writes)
    # A secret that is on the Space already need not be at hand.
    assert push() == ["everything is up to date", said[-1]]
    assert (hub.writes, len(space.commits)) == (writes, 1)


def test_a_space_that_is_there_is_brought_up_to_date_in_one_commit(hub: HubServer, push: Push, tmp_path: Path) -> None:
    push("--repo", REPO, SEARCH_PASS="an older one")
    space = hub.spaces[REPO]
    space.files["notes.txt"] = b"left over"
    space.variables = {"AIVISTA_TEXT_TIMEOUT_S": "60", "OF_THE_OWNER": "kept"}
    space.secrets["GEMINI_API_KEY"] = "AIza-old"
    space.hardware, space.volumes = "t4-small", []
    (tmp_path / "clone" / "agent" / "__init__.py").write_text('"""Changed."""\n')
    *said, warned, _ = push(SEARCH_PASS=SECRET)
    assert said == [
        "set secret SEARCH_PASS",
        "set variable AIVISTA_TEXT_TIMEOUT_S to 90",
        "change the hardware from t4-small to cpu-upgrade",
        "create the private bucket ada/foxes-data, unless it is there",
        "mount ada/foxes-data at /data",
        "commit 1 changed file (agent/__init__.py), removing notes.txt",
    ]
    assert "still holds the secret GEMINI_API_KEY" in warned
    assert space.secrets["SEARCH_PASS"] == SECRET
    assert space.variables == {"AIVISTA_TEXT_TIMEOUT_S": "90", "OF_THE_OWNER": "kept"}
    assert (space.hardware, space.sleep_s, len(space.volumes)) == ("cpu-upgrade", 3600, 1)
    assert space.files["agent/__init__.py"] == b'"""Changed."""\n'
    assert ("notes.txt" in space.files, ".gitattributes" in space.files, len(space.commits)) == (False, True, 2)


def test_what_is_missing_or_refused_is_said_in_a_sentence(hub: HubServer, push: Push, clone: Clone) -> None:
    assert "the secret SEARCH_PASS, which your environment does not hold" in push(ends_with=2)[0]
    clone()
    for flags, token, said in (
        ([], "", "run `hf auth login`"),
        ([], "hf_unknown" * 4, "does not know the token"),
        ([], READ_TOKEN, "the token may not write to ada/foxes-co"),
        (["--repo", "bob/studio"], TOKEN, "the token may not write to bob/studio"),
    ):
        [refused] = push(*flags, token=token, ends_with=2)
        assert said in refused
    assert "the Hub cannot be reached" in push(ends_with=2, HF_ENDPOINT="http://127.0.0.1:9")[0]
    hub.wants_payment = True
    assert "wants the owner of ada/foxes-co to pay" in push(ends_with=2)[0]
    assert (hub.spaces, hub.writes) == ({}, [])
