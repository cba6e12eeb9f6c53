"""The command as a person meets it: real processes, their exit codes and sentences."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import zipfile
from ast import literal_eval
from pathlib import Path

import httpx
import pytest

from tests.page import PageProcess, clean_environment, free_port, run_command
from tests.page.process import start
from tests.support.commands import refused
from tests.support.lines import read_line
from tests.support.tables import table


def test_the_version_is_one_line() -> None:
    ended = run_command("--version")
    assert (ended.returncode, ended.stdout.startswith("aivista "), ended.stderr) == (0, True, "")


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for flags in table("doors")["bad_flags"]:
        refused(*flags)
    home, file = ("--home", str(tmp_path)), tmp_path / "file"
    file.write_text("x")
    assert "192.0.2.1" in refused("--host", "192.0.2.1", *home)
    assert "host a..b is not an address" in refused("--host", "a..b", *home)
    assert f"home is '{file}': it is a file" in refused("--home", str(file))
    assert f"{file} is a file; name a folder" in refused("--home", str(file / "inside"))
    assert f"AIVISTA_HOME is '{file}': it is a file" in refused(AIVISTA_HOME=str(file))
    assert "/proc/aivista" in refused("--home", "/proc/aivista")
    assert "AIVISTA_TEXT_TIMEOUT_S" in refused(*home, AIVISTA_TEXT_TIMEOUT_S="soon")
    assert "AIVISTA_TEXT_TIMEOUT_S" in refused("gc", AIVISTA_TEXT_TIMEOUT_S="soon")
    assert "AIVISTA_MODEL_POET" in refused(*home, AIVISTA_MODEL_POET="x")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port}" in refused("--port", port, *home)
    (tmp_path / "aivista.db" / "inside").mkdir(parents=True)
    assert "records cannot be read or written" in refused(*home, "--port", str(free_port()))


# What its imports have to say is heard once.
@pytest.mark.parametrize(("how", "is_cold"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_the_studio_opens_and_ends_quietly_when_told_to(tmp_path: Path, how: signal.Signals, is_cold: bool) -> None:
    with PageProcess(home=tmp_path / "home", is_cold=is_cold) as page:
        assert page.said == f"Aivista is open at {page.url}"
        # An open page does not hold it up.
        with httpx.stream("GET", f"{page.url}/gradio_api/heartbeat/some-session", trust_env=False) as endless:
            assert endless.status_code == 200
            assert page.end(how) == 0
        assert page.errors == ""
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_records_that_take_long_to_open_hold_the_start_up_and_do_not_end_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(Path(__file__).parents[1] / "golden" / "homes" / "0006.zip") as of_an_earlier_version:
        of_an_earlier_version.extractall(tmp_path)
    # They are to be brought up to date, and another program is at work on them for longer than Gradio alone would wait.
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db", check_same_thread=False)) as records:
        records.execute("BEGIN IMMEDIATE")
        leaving = threading.Timer(8, records.rollback)
        leaving.start()
        with PageProcess(home=tmp_path) as page:
            kept = httpx.get(f"{page.url}/api/v1/conversations").json()["conversations"]
            assert [one["title"] for one in kept] == ["狐狸是什么？", "draw a red fox in the snow"]
        leaving.join()


_STUCK = """
import sys, threading
threading.Thread(target=threading.Event().wait).start()
from webui.cli import main
sys.exit(main(sys.argv[1:]))
"""


_FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from webui.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the limits of another process")
def test_a_start_with_few_open_files_allows_itself_more(tmp_path: Path) -> None:
    with tempfile.TemporaryFile("w+") as errors:
        flags = ["--home", str(tmp_path), "--port", str(free_port())]
        studio = start(flags, errors, environment=clean_environment(), code=_FEW_FILES, is_cold=True)
        assert isinstance(studio, subprocess.Popen)
        assert studio.stdout is not None
        with studio.stdout:
            read_line(studio, errors, 60)
        limits = Path(f"/proc/{studio.pid}/limits").read_text().partition("Max open files")[2]
        studio.send_signal(signal.SIGTERM)
        assert studio.wait(60) == 0
    assert int(limits.split()[0]) > 256


def test_a_thread_that_is_stuck_does_not_hold_the_studio_up(tmp_path: Path) -> None:
    with tempfile.TemporaryFile("w+") as errors:
        flags = ["--home", str(tmp_path), "--port", str(free_port())]
        studio = start(flags, errors, environment=clean_environment(), code=_STUCK)
        assert studio.stdout is not None
        with studio.stdout:
            assert read_line(studio, errors, 60).startswith("Aivista is open")
        studio.send_signal(signal.SIGTERM)
        assert studio.wait(60) == 0


def test_a_studio_for_one_on_the_network_answers_to_its_domain_and_to_no_other_name(tmp_path: Path) -> None:
    flags = ("--host", "0.0.0.0", "--domain", "studio.example.org")
    with PageProcess(*flags, home=tmp_path, environment={"AIVISTA_SINGLE_USER": "1"}) as page:
        for host, status in ("studio.example.org", 200), ("localhost", 200), ("evil.test", 403):
            assert httpx.get(page.url, headers={"Host": host}, trust_env=False).status_code == status


def _has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_the_studio_opens_at_an_address_of_ipv6(tmp_path: Path) -> None:
    with PageProcess("--host", "::1", home=tmp_path) as page:
        url = f"http://[::1]:{page.port}"
        assert page.said == f"Aivista is open at {url}"
        assert httpx.get(url, trust_env=False).status_code == 200


_PROXIES = {
    "ALL_PROXY": "socks5://me:hidden@127.0.0.1:7890",
    "https_proxy": "ftp://127.0.0.1",
    "NO_PROXY": "[::1], localhost:*,10.0.0.0/8,*:x",
}


def test_proxies_that_nobody_can_read_stop_no_start_and_a_password_closes_page_and_api(tmp_path: Path) -> None:
    with PageProcess("--password", "a red fox", home=tmp_path, environment=_PROXIES, is_cold=True) as page:
        for path in ("/", "/api/v1/conversations", "/v1/models"):
            assert httpx.get(page.url + path, trust_env=False).status_code == 401
        told = page.errors
    assert "ALL_PROXY is not used: for a SOCKS proxy the package socksio is missing" in told
    assert "https_proxy is not used: it is not the address" in told
    assert [word for word in ("Traceback", "hidden") if word in told] == []


def test_proxies_are_mended_with_the_first_import() -> None:
    code = f"import os, agent; print([os.environ.get(one) for one in {list(_PROXIES)}])"
    environment = {**os.environ, **_PROXIES}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert literal_eval(told.stdout) == [None, None, "::1,localhost,10.0.0.0/8"]
