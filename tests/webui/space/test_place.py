"""What a Space tells the studio, whose keys it uses, and where it keeps what is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.tables import table
from webui.cli.space.run import EMBEDDERS, host_of, kept_home, place_of, port_of, settings_of
from webui.cli.space.spacefile import spacefile_of
from webui.http.hosts import LOOPBACK, HostRules

LEAST: dict[str, object] = {"title": "Foxes", "emoji": "🦊", "color_from": "red", "color_to": "gray"}
OWNER: dict[str, object] = {"secrets": ["GEMINI_API_KEY"], "pays": {"who": "owner", "cap_day_usd": 5.0}}
KEYED_SERVER = {
    "AIVISTA_OPENAI_BASE_URL": "https://models.example/v1",
    "AIVISTA_OPENAI_TEXT_MODEL": "m",
    "AIVISTA_OPENAI_API_KEY": "k-1",
}


@pytest.mark.parametrize(("environ", "host", "port"), table("doors")["spaces"])
def test_a_space_is_known_by_its_variables(environ: dict[str, str], host: str, port: int) -> None:
    assert (host_of(environ), port_of(environ)) == (host, port)


def test_storage_that_is_there_is_the_home_and_private_and_what_cannot_be_written_is_none(tmp_path: Path) -> None:
    home = tmp_path / "aivista"
    # Probed without a trace.
    assert [kept_home(tmp_path) for _ in range(2)] == [home, home]
    assert (home.stat().st_mode & 0o777, list(home.iterdir()), os.listdir(tmp_path)) == (0o700, [], ["aivista"])
    home.rmdir()
    home.write_text("a file")
    assert [kept_home(one) for one in (tmp_path, tmp_path / "nothing", Path("/proc"))] == [None] * 3


def test_the_owners_keys_are_left_out_where_visitors_pay_and_used_where_the_spacefile_says_so(tmp_path: Path) -> None:
    environ = {"GEMINI_API_KEY": "AIza-owners", **KEYED_SERVER, "AIVISTA_PROVIDER": "openai"}
    settings = settings_of(spacefile_of(LEAST), environ, tmp_path)
    assert (settings.gemini_api_key, settings.openai, settings.provider, settings.is_public) == (None, None, None, True)
    lent = settings_of(spacefile_of(LEAST | OWNER), {"GEMINI_API_KEY": "AIza-owners"}, tmp_path)
    assert (lent.gemini_api_key is not None, lent.is_public) == (True, True)
    # A server that wants no key may serve everybody.
    keyless = {name: value for name, value in KEYED_SERVER.items() if not name.endswith("KEY")}
    assert settings_of(spacefile_of(LEAST), keyless, tmp_path).openai is not None


def test_gradio_is_not_imported_before_its_environment_is_set() -> None:
    assert (
        run_child("import sys, webui.cli.space.run; print('gradio' in sys.modules)", is_cold=True).stdout == "False\n"
    )


def rules() -> HostRules:
    spacefile = spacefile_of({**LEAST, "domains": ["foxes.example.org"]})
    place = place_of(spacefile, {"SPACE_HOST": "ada-foxes.hf.space"}, is_kept=True)
    return HostRules(False, {*LOOPBACK, *place.names}, is_named=True, embedders=place.embedders)


@each_case(("host", "is_allowed"), table("doors")["names_of_a_space"])
def test_a_space_answers_to_its_names_and_to_bare_addresses(host: str, is_allowed: bool) -> None:
    assert rules().allows_host(host) is is_allowed


@pytest.mark.parametrize(("origin", "is_allowed"), table("doors")["origins_of_a_space"])
def test_only_a_spaces_own_page_may_write_to_it(origin: str, is_allowed: bool) -> None:
    assert rules().allows_origin(origin, Headers({"host": "10.12.0.7:7860"})) is is_allowed


def test_hugging_face_may_show_a_spaces_page_and_nobody_any_other() -> None:
    assert rules().page_policy.endswith(" ".join(["frame-ancestors 'self'", *EMBEDDERS]))
    assert HostRules(True).page_policy.endswith("frame-ancestors 'self'")
