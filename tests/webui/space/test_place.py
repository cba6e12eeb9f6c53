"""What a Space tells the studio, whose keys it uses, and where it keeps what is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from tests.support.cases import each_case
from webui.guard import LOOPBACK, HostRules
from webui.space.place import EMBEDDERS, SpaceRun, kept_home
from webui.space.spacefile import spacefile_of
from webui.space.starting import place_of, settings_of

LEAST: dict[str, object] = {"title": "Foxes", "emoji": "🦊", "color_from": "red", "color_to": "gray"}
OWNER: dict[str, object] = {"secrets": ["GEMINI_API_KEY"], "pays": {"who": "owner", "cap_day_usd": 5.0}}
KEYED_SERVER = {
    "AIVISTA_OPENAI_BASE_URL": "https://models.example/v1",
    "AIVISTA_OPENAI_TEXT_MODEL": "m",
    "AIVISTA_OPENAI_API_KEY": "k-1",
}


@pytest.mark.parametrize(
    ("environ", "host", "port"),
    [
        ({"SPACE_ID": "Ada/My_Foxes", "SPACE_HOST": "Ada-My-Foxes.hf.space"}, "ada-my-foxes.hf.space", 7860),
        ({"SPACE_ID": "Ada/My_Foxes"}, "ada-my-foxes.hf.space", 7860),
        ({"GRADIO_SERVER_PORT": "9000", "PORT": "9001"}, "", 9000),
        ({"PORT": "9001"}, "", 9001),
        ({"PORT": "tcp://10.0.0.1:80"}, "", 7860),
    ],
)
def test_a_space_is_known_by_its_variables(environ: dict[str, str], host: str, port: int) -> None:
    run = SpaceRun.from_env(environ)
    assert (run.host, run.port) == (host, port)


def test_storage_that_is_there_is_the_home_and_private(tmp_path: Path) -> None:
    home = kept_home(tmp_path)
    assert home == tmp_path / "aivista"
    assert (home.stat().st_mode & 0o777, list(home.iterdir())) == (0o700, [])


def test_storage_that_is_not_there_or_cannot_be_written_is_none(tmp_path: Path) -> None:
    assert kept_home(tmp_path / "nothing") is None
    (tmp_path / "aivista").write_text("a file")
    assert kept_home(tmp_path) is None
    assert kept_home(Path("/proc")) is None


def test_the_owners_keys_are_left_out_where_visitors_pay(tmp_path: Path) -> None:
    environ = {"GEMINI_API_KEY": "AIza-owners", **KEYED_SERVER, "AIVISTA_PROVIDER": "openai"}
    settings = settings_of(spacefile_of(LEAST), environ, tmp_path)
    assert (settings.gemini_api_key, settings.openai, settings.provider, settings.is_public) == (None, None, None, True)


def test_a_server_that_wants_no_key_may_serve_everybody(tmp_path: Path) -> None:
    environ = {name: value for name, value in KEYED_SERVER.items() if not name.endswith("KEY")}
    assert settings_of(spacefile_of(LEAST), environ, tmp_path).openai is not None


def test_the_owners_key_is_used_where_the_spacefile_says_so(tmp_path: Path) -> None:
    settings = settings_of(spacefile_of(LEAST | OWNER), {"GEMINI_API_KEY": "AIza-owners"}, tmp_path)
    assert settings.gemini_api_key is not None
    assert settings.is_public


def rules() -> HostRules:
    spacefile = spacefile_of({**LEAST, "domains": ["foxes.example.org"]})
    run = SpaceRun("ada/foxes", "ada-foxes.hf.space", 7860)
    place = place_of(spacefile, run, {}, is_kept=True)
    return HostRules(False, {*LOOPBACK, *place.names}, is_named=True, embedders=place.embedders)


@each_case(
    ("host", "is_allowed"),
    [
        ("ada-foxes.hf.space", True),
        ("ADA-foxes.hf.space:443", True),
        ("foxes.example.org", True),
        ("10.12.0.7:7860", True),
        ("[fd00::7]:7860", True),
        ("127.0.0.1:7860", True),
        ("evil-foxes.hf.space", False),
        ("ada-foxes.hf.space.evil.example", False),
        ("10.12.0.7.evil.example", False),
        ("", False),
    ],
)
def test_a_space_answers_to_its_names_and_to_bare_addresses(host: str, is_allowed: bool) -> None:
    assert rules().allows_host(host) is is_allowed


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("https://ada-foxes.hf.space", True),
        ("https://foxes.example.org", True),
        ("https://huggingface.co", False),
        ("https://other.hf.space", False),
        ("null", False),
    ],
)
def test_only_a_spaces_own_page_may_write_to_it(origin: str, is_allowed: bool) -> None:
    assert rules().allows_origin(origin, Headers({"host": "10.12.0.7:7860"})) is is_allowed


def test_hugging_face_may_show_a_spaces_page_and_nobody_any_other() -> None:
    assert rules().page_policy.endswith(" ".join(["frame-ancestors 'self'", *EMBEDDERS]))
    assert HostRules(True).page_policy.endswith("frame-ancestors 'self'")


def test_a_home_that_is_full_of_nothing_is_probed_without_a_trace(tmp_path: Path) -> None:
    assert kept_home(tmp_path) == kept_home(tmp_path)
    assert os.listdir(tmp_path) == ["aivista"]
