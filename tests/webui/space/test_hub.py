"""`aivista space push` against a strict Hub: the real command, the real huggingface_hub, real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub_server import HubServer, Space
from tests.hub_server.server import READ_TOKEN, TOKEN
from tests.page import clean_environment
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


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server
        assert server.violations == []


class Pusher:
    """Runs the command in a clone, with a home of its own for huggingface_hub; keeps no token unless it is given."""

    def __init__(self, hub: HubServer, root: Path, tmp_path: Path) -> None:
        self.root = root
        self._environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HOME": str(tmp_path)}

    def run(self, *flags: str, token: str = TOKEN, **environment: str) -> tuple[int, str, str]:
        given = {"HF_TOKEN": token} if token else {}
        variables = {**self._environment, **given, **environment}
        ended = run_to_end(
            ("space", "push", "--project", str(self.root), *flags),
            environment=clean_environment(**variables),
            # What talks to the Hub reads its variables when it is imported.
            is_cold=True,
        )
        for value in (SECRET, TOKEN, READ_TOKEN):
            assert value not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended.returncode, ended.stdout, ended.stderr

    def push(self, *flags: str, **environment: str) -> list[str]:
        code, said, errors = self.run(*flags, **environment)
        assert (code, errors) == (0, "")
        return said.splitlines()

    def refused(self, *flags: str, token: str = TOKEN, **environment: str) -> str:
        code, said, errors = self.run(*flags, token=token, **environment)
        assert (code, said, len(errors.splitlines())) == (2, "", 1)
        return errors


@pytest.fixture
def pusher(hub: HubServer, clone: Clone, tmp_path: Path) -> Pusher:
    return Pusher(hub, clone(MORE), tmp_path)


def test_a_space_is_created_with_all_that_its_spacefile_says(hub: HubServer, pusher: Pusher) -> None:
    said = pusher.push(SEARCH_PASS=SECRET)
    space = hub.spaces[REPO]
    assert (space.sdk, space.private, space.hardware, space.sleep_s) == ("docker", True, "cpu-upgrade", 3600)
    assert (space.secrets, space.variables) == ({"SEARCH_PASS": SECRET}, {"AIVISTA_TEXT_TIMEOUT_S": "90"})
    assert [(one["type"], one["source"], one["mountPath"]) for one in space.volumes] == [
        ("bucket", "ada/foxes-data", "/data")
    ]
    assert {"app.py", "README.md", "requirements.txt", "Dockerfile", "webui/__init__.py"} <= space.files.keys()
    assert len(space.commits) == 1
    assert said[-1] == f"The Space is at {hub.url}/spaces/{REPO}"
    assert "with secret SEARCH_PASS, variable AIVISTA_TEXT_TIMEOUT_S, ada/foxes-data at /data" in said[1]


def test_a_dry_run_and_one_where_all_is_as_it_should_be_change_nothing(hub: HubServer, pusher: Pusher) -> None:
    told = pusher.push("--dry-run", SEARCH_PASS=SECRET)
    assert (hub.spaces, hub.buckets, hub.writes) == ({}, set(), [])
    done = pusher.push(SEARCH_PASS=SECRET)
    assert [line.removeprefix("would ") for line in told[:-1]] == done[:-1]
    assert all(line.startswith("would ") for line in told[:-1])
    writes = list(hub.writes)
    # A secret that is on the Space already need not be at hand.
    assert pusher.push() == ["everything is up to date", f"The Space is at {hub.url}/spaces/{REPO}"]
    pusher.root.joinpath("webui", "new.py").write_text('"""New."""\n')
    assert "would commit 1 changed file (webui/new.py)" in pusher.push("--dry-run")
    assert hub.writes == writes


def test_a_space_that_is_there_is_brought_up_to_date_in_one_commit(hub: HubServer, pusher: Pusher) -> None:
    pusher.push(SEARCH_PASS="an older one")
    space = hub.spaces[REPO]
    space.files["notes.txt"] = b"left over"
    space.variables = {"AIVISTA_TEXT_TIMEOUT_S": "60", "OF_THE_OWNER": "kept"}
    space.hardware, space.volumes = "t4-small", []
    (pusher.root / "agent" / "__init__.py").write_text('"""Changed."""\n')
    said = pusher.push(SEARCH_PASS=SECRET)
    assert said[:-1] == [
        "set secret SEARCH_PASS",
        "set variable AIVISTA_TEXT_TIMEOUT_S to 90",
        "change the hardware from t4-small to cpu-upgrade",
        "create the private bucket ada/foxes-data, unless it is there",
        "mount ada/foxes-data at /data",
        "commit 1 changed file (agent/__init__.py), removing notes.txt",
    ]
    assert space.secrets == {"SEARCH_PASS": SECRET}
    assert space.variables == {"AIVISTA_TEXT_TIMEOUT_S": "90", "OF_THE_OWNER": "kept"}
    assert (space.hardware, space.sleep_s, len(space.volumes)) == ("cpu-upgrade", 3600, 1)
    assert space.files["agent/__init__.py"] == b'"""Changed."""\n'
    assert ("notes.txt" in space.files, ".gitattributes" in space.files, len(space.commits)) == (False, True, 2)


@pytest.mark.parametrize(("flag", "repo_id"), [("studio", "ada/studio"), ("ada/atelier", "ada/atelier")])
def test_the_name_may_be_given(hub: HubServer, pusher: Pusher, flag: str, repo_id: str) -> None:
    pusher.push("--repo", flag, SEARCH_PASS=SECRET)
    assert list(hub.spaces) == [repo_id]


def test_a_key_that_is_of_no_use_on_the_space_is_told_of(hub: HubServer, clone: Clone, tmp_path: Path) -> None:
    hub.spaces[REPO] = Space("docker", secrets={"GEMINI_API_KEY": "AIza-old"})
    said = Pusher(hub, clone(), tmp_path).push()
    assert "still holds the secret GEMINI_API_KEY" in said[-2]


def test_what_is_missing_or_refused_is_said_in_a_sentence(hub: HubServer, pusher: Pusher, clone: Clone) -> None:
    assert "the secret SEARCH_PASS, which your environment does not hold" in pusher.refused()
    clone()
    for flags, token, said in (
        ([], "", "run `hf auth login`"),
        (["--dry-run"], "", "run `hf auth login`"),
        ([], "hf_unknown" * 4, "does not know the token"),
        ([], READ_TOKEN, "the token may not write to ada/foxes-co"),
        (["--repo", "bob/studio"], TOKEN, "the token may not write to bob/studio"),
        (["--repo", "a/b/c"], TOKEN, "a/b/c is no name for a Space"),
    ):
        assert said in pusher.refused(*flags, token=token)
    hub.wants_payment = True
    assert "wants the owner of ada/foxes-co to pay" in pusher.refused()
    assert "HF_HUB_OFFLINE is set" in pusher.refused(HF_HUB_OFFLINE="1")
    assert "the Hub cannot be reached" in pusher.refused(HF_ENDPOINT="http://127.0.0.1:9")
    assert (hub.spaces, hub.writes) == ({}, [])
