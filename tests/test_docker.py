"""The image cannot be made where the tests run, so its Dockerfile is read: what it names is there, nothing leaks."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from tests.adapters.webui import ALIVE, read_flags

ROOT = Path(__file__).parents[1]


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, each on one line, without comments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for line in joined.splitlines() if line for name, _, rest in [line.partition(" ")]]


def arguments(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def test_every_stage_begins_with_one_pinned_python_that_the_project_takes() -> None:
    images = {rest.split()[0] for rest in arguments("FROM")}
    assert len(images) == 1
    image = re.fullmatch(r"python:(3\.11\.\d+)-slim-bookworm", images.pop())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert image is not None
    assert image[1] in SpecifierSet(project["requires-python"])


def test_what_is_copied_is_there_all_that_the_package_is_made_of_and_all_that_reaches_the_build() -> None:
    copied = {name for rest in arguments("COPY") if "--from" not in rest for name in rest.split()[:-1]}
    assert [name for name in copied if not (ROOT / name).exists()] == []
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = {*tables["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], "pyproject.toml"}
    needed |= {"requirements.image.lock", tables["project"]["readme"], *tables["project"]["license-files"]}
    assert needed <= copied
    rules = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert (rules[0], {rule[1:] for rule in rules if rule.startswith("!")}) == ("*", copied)


def test_packages_are_those_of_the_lock_file_by_their_digests_and_no_others() -> None:
    packages, studio = [rest for rest in arguments("RUN") if "pip install" in rest]
    assert "--no-deps --require-hashes -r requirements.image.lock" in packages
    assert "--no-deps ." in studio
    assert "--no-cache-dir" in packages
    assert "--no-cache-dir" in studio
    tested, shipped = ((ROOT / name).read_text("utf-8") for name in ("requirements.lock", "requirements.image.lock"))
    pinned = set(re.findall(r"^([\w.\[\]-]+==\S+)", tested, re.MULTILINE))
    wanted = set(re.findall(r"^([\w.\[\]-]+==\S+)", shipped, re.MULTILINE))
    assert wanted
    assert wanted <= pinned
    entries = re.split(r"^(?=[\w.\[\]-]+==)", shipped, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {re.split(r"[\[><=!~ ]", one)[0].lower() for one in project["dependencies"]}
    assert asked <= {re.split(r"[\[=]", one)[0] for one in wanted}


def test_it_runs_as_a_user_without_rights_keeps_all_in_the_volume_and_holds_no_secret() -> None:
    [user], [volume] = arguments("USER"), arguments("VOLUME")
    assert user != "root"
    assert any(f"--uid 1000 {user}" in rest for rest in arguments("RUN"))
    assert any(f"-o {user} " in rest and rest.endswith(volume) for rest in arguments("RUN"))
    [chosen] = arguments("ENV")
    assert f"AIVISTA_HOME={volume}" in chosen
    # Turns have less time to end than docker gives the container.
    [grace_s] = re.findall(r"AIVISTA_SHUTDOWN_GRACE_S=(\d+)", chosen)
    assert 0 < int(grace_s) < 10 - 1.5
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert not re.search(r"API_KEY|TOKEN|SECRET|PASSWORD|AIza|hf_", text)
    assert arguments("ARG") == []


def test_the_command_is_one_that_the_studio_knows_and_its_health_is_asked_by_a_program_that_compiles() -> None:
    [command] = map(json.loads, arguments("CMD"))
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert command[0] in scripts
    [port], flags = arguments("EXPOSE"), read_flags(command[1:])
    assert (flags.host, str(flags.port)) == ("0.0.0.0", port)
    [check] = arguments("HEALTHCHECK")
    program, _, code = json.loads(check.partition("CMD ")[2])
    assert program == "python"
    compile(code, "healthcheck", "exec")
    assert f"127.0.0.1:{port}{ALIVE}'" in code


@pytest.mark.parametrize("line", ["docker build -t aivista .", "docker run"])
def test_the_docs_show_how_it_is_run(line: str) -> None:
    shown = [one for one in (ROOT / "docs" / "space.md").read_text("utf-8").splitlines() if one.startswith(line)]
    [words] = map(shlex.split, shown)
    assert words[-1] in ("aivista", ".")
    if line == "docker run":
        assert "127.0.0.1:7860:7860" in words
