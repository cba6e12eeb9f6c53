"""The Spacefile is read strictly, and a Space is built of it and runs as it says, with nothing secret in it."""

from __future__ import annotations

import os
import re
import tomllib
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from pydantic import BaseModel
from starlette.datastructures import Headers

from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.tables import table
from tests.webui.space.conftest import ROOT, Clone
from webui.cli.parser import CommandFailed
from webui.cli.space.build import build, pinned_requirements
from webui.cli.space.check import space_environment
from webui.cli.space.run import EMBEDDERS, deployment_of, host_of, kept_home, port_of, settings_of
from webui.cli.space.spacefile import Spacefile, read_spacefile, spacefile_of
from webui.http.hosts import LOOPBACK, HostRules

yaml: Any = import_module("yaml")
LEAST: dict[str, Any] = {"title": "Foxes", "emoji": "🦊", "color_from": "red", "color_to": "gray"}
OWNER = 'secrets = ["GEMINI_API_KEY"]\n[pays]\nwho = "owner"\n'
KEYLESS = {"AIVISTA_OPENAI_BASE_URL": "https://models.example/v1", "AIVISTA_OPENAI_TEXT_MODEL": "m"}


def read(more: str) -> Spacefile:
    return spacefile_of(LEAST | tomllib.loads(more))


def test_the_projects_own_is_good_and_four_fields_are_enough_for_another() -> None:
    own, least, pays = read_spacefile(ROOT / "Spacefile"), read(""), read(f"{OWNER}cap_day_usd = 5").pays
    assert (own.title, own.pays.who, own.secrets) == ("Aivista", "visitors", [])
    assert (least.runs_on.sdk, least.runs_on.hardware, least.storage.bucket) == ("docker", "cpu-basic", None)
    assert (least.limits.turns_at_once, pays.cap_day_usd, pays.cap_turn_usd) == (8, 5, 0.5)


@each_case(("more", "field"), table("doors")["spacefiles"])
def test_what_cannot_be_used_is_named_in_one_sentence(more: str, field: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        read(more.replace("$owner", OWNER))
    said = str(caught.value)
    assert re.fullmatch(r"Spacefile: [^\n]+\.", said)
    assert said.removeprefix("Spacefile: ").startswith(field)
    assert "C4N4RY" not in said


def test_a_file_that_is_no_toml_or_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="there is no Spacefile in"):
        read_spacefile(tmp_path / "Spacefile")
    (tmp_path / "Spacefile").write_text("title: Foxes")
    with pytest.raises(CommandFailed, match="Spacefile is not TOML"):
        read_spacefile(tmp_path / "Spacefile")


def test_the_page_of_the_docs_names_every_field() -> None:
    told = (ROOT / "docs" / "space.md").read_text("utf-8")
    assert [name for name in fields_of(Spacefile) if f"`{name}`" not in told] == []


def fields_of(model: type[BaseModel], group: str = "") -> list[str]:
    """Return every field of a model by its whole name."""
    found: list[str] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found += fields_of(field.annotation, f"{name}.")
        else:
            found.append(group + name)
    return found


# What is built.


def test_the_space_holds_what_its_spacefile_says_with_every_requirement_pinned(clone: Clone, tmp_path: Path) -> None:
    runs_on = '[runs_on]\nhardware = "cpu-upgrade"\npackages = ["fonts-noto-cjk"]\npython = "3.12"\n'
    space = build(clone(f'short_description = "draws: foxes"\n{runs_on}'), tmp_path / "out", {}).folder
    told = {"emoji": "🦊", "colorFrom": "red", "colorTo": "gray", "sdk": "docker", "app_port": 7860, "pinned": False}
    told |= {"fullWidth": True, "header": "mini", "license": "apache-2.0", "title": "Foxes & Co: 狐"}
    told |= {"suggested_hardware": "cpu-upgrade", "short_description": "draws: foxes"}
    assert yaml.safe_load((space / "README.md").read_text("utf-8").split("---\n")[1]) == told
    assert read_spacefile(space / "Spacefile") == read_spacefile(tmp_path / "clone" / "Spacefile")
    lines = (space / "requirements.txt").read_text("utf-8").splitlines()[1:]
    assert len(lines) > 80
    assert [line for line in lines if [one.operator for one in Requirement(line).specifier] != ["=="]] == []
    assert (space / "packages.txt").read_text() == "fonts-noto-cjk\n"
    text = (space / "Dockerfile").read_text("utf-8")
    assert text.startswith("FROM python:3.12-slim-bookworm\n")
    assert text.index("xargs -a packages.txt apt-get install") < text.index("USER user")
    with pytest.raises(CommandFailed, match=r"sdk gradio cannot install .*mcp<2.* against mcp==2.*choose docker"):
        build(clone('[runs_on]\nsdk = "gradio"\n'), tmp_path / "another", {})


def test_the_projects_own_lock_file_gives_what_is_installed_and_no_tool() -> None:
    pins = pinned_requirements(*((ROOT / name).read_text("utf-8") for name in ("requirements.lock", "pyproject.toml")))
    versions = {pin.name: pin.version for pin in pins}
    assert {"gradio", "google-genai", "mcp", "lancedb"} <= versions.keys()
    assert not {"pytest", "pyrefly", "ruff", "playwright", "openai", "aivista"} & versions.keys()
    assert metadata.version("gradio") == versions["gradio"]


def test_it_is_built_anew_over_itself_and_over_nothing_else(clone: Clone, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    build(clone(), out, {})
    (out / "left-over.txt").write_text("x")
    assert Path("left-over.txt") not in build(clone(), out, {}).files
    other.mkdir()
    (other / "letters.txt").write_text("x")
    with pytest.raises(CommandFailed, match="holds other files"):
        build(clone(), other, {})
    assert [path.name for path in other.iterdir()] == ["letters.txt"]


def test_a_secret_in_a_file_or_a_variable_that_the_studio_cannot_read_stops_it(clone: Clone, tmp_path: Path) -> None:
    root = clone('secrets = ["SEARCH_TOKEN"]\n')
    (root / "webui" / "notes.txt").write_text("my token is s3cr3t-t0ken")
    with pytest.raises(CommandFailed, match=r"webui/notes\.txt holds the value of SEARCH_TOKEN") as caught:
        build(root, tmp_path / "out", {"SEARCH_TOKEN": "s3cr3t-t0ken"})
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(CommandFailed, match="variables: AIVISTA_TEXT_TIMEOUT_S is 'soon'"):
        build(clone('[variables]\nAIVISTA_TEXT_TIMEOUT_S = "soon"\n'), tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


# What a Space tells the studio, whose keys it uses, and where it keeps what is made.


@each_case(("environ", "host", "port"), table("doors")["spaces"])
def test_a_space_is_known_by_its_variables(environ: dict[str, str], host: str, port: int) -> None:
    assert (host_of(environ), port_of(environ)) == (host, port)


def test_a_checked_space_gets_its_variables_and_no_key_of_the_developer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-of-the-developer")
    variables = space_environment(read('[variables]\nA = "b"\n'), tmp_path, 7861)
    assert (variables["PORT"], variables["A"], "GEMINI_API_KEY" in variables) == ("7861", "b", False)


def test_storage_that_is_there_is_the_home_and_private_and_what_cannot_be_written_is_none(tmp_path: Path) -> None:
    home = tmp_path / "aivista"
    # Probed without a trace.
    assert [kept_home(tmp_path) for _ in range(2)] == [home, home]
    assert (home.stat().st_mode & 0o777, list(home.iterdir()), os.listdir(tmp_path)) == (0o700, [], ["aivista"])
    home.rmdir()
    home.write_text("a file")
    assert [kept_home(one) for one in (tmp_path, tmp_path / "nothing", Path("/proc"))] == [None] * 3


def test_the_owners_keys_are_left_out_where_visitors_pay_and_used_where_the_spacefile_says_so(tmp_path: Path) -> None:
    environ = {"GEMINI_API_KEY": "AIza-owners", **KEYLESS, "AIVISTA_OPENAI_API_KEY": "k-1"}
    settings = settings_of(read(""), {**environ, "AIVISTA_PROVIDER": "openai"}, tmp_path)
    assert (settings.gemini_api_key, settings.openai, settings.provider, settings.is_public) == (None, None, None, True)
    lent = settings_of(read(f"{OWNER}cap_day_usd = 5"), {"GEMINI_API_KEY": "AIza-owners"}, tmp_path)
    assert (lent.gemini_api_key is not None, lent.is_public) == (True, True)
    # A server that wants no key may serve everybody.
    assert settings_of(read(""), KEYLESS, tmp_path).openai is not None


def test_gradio_is_not_imported_before_its_environment_is_set() -> None:
    assert (
        run_child("import sys, webui.cli.space.run; print('gradio' in sys.modules)", is_cold=True).stdout == "False\n"
    )


def test_a_space_answers_to_its_names_and_only_its_own_page_may_write_to_it() -> None:
    place = deployment_of(read('domains = ["foxes.example.org"]'), {"SPACE_HOST": "ada-foxes.hf.space"}, is_kept=True)
    rules = HostRules(False, {*LOOPBACK, *place.names}, is_named=True, embedders=place.embedders)
    hosts, origins = table("doors")["names_of_a_space"], table("doors")["origins_of_a_space"]
    assert [[host, rules.allows_host(host)] for host, _ in hosts] == hosts
    headers = Headers({"host": "10.12.0.7:7860"})
    assert [[origin, rules.allows_origin(origin, headers)] for origin, _ in origins] == origins
    assert rules.page_policy.endswith(" ".join(["frame-ancestors 'self'", *EMBEDDERS]))
    assert HostRules(True).page_policy.endswith("frame-ancestors 'self'")
