"""The operator's file of MCP servers: read strictly, or refused with one sentence that names the file and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import Settings, SettingsError
from tests.adapters.records import secrets_of
from tests.adapters.tools import HttpServer, StdioServer, read_mcp_config

WHOLE = """
[servers.files]
command = "npx"
args = ["-y", "server-files", "/srv/${HOME}"]
env = { FILES_TOKEN = "short", FILES_ROOT = "/srv/data1234567", FILES_ID = "a1b2c3d4e5f6", FILES_MODE = "everything" }
trusted = true
tools = ["read_file"]

[servers.far]
url = "https://mcp.example.org/mcp"
headers = { Authorization = "Bearer abc123def456", Accept-Language = "en" }
timeout_s = 5.0

[servers.near]
url = "http://localhost:8000/mcp"
allow_local = true
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mcp.toml"
    path.write_text(text, "utf-8")
    return path


def test_the_whole_file_is_read(tmp_path: Path) -> None:
    servers = read_mcp_config(written(tmp_path, WHOLE))
    assert list(servers) == ["files", "far", "near"]
    files, far, near = servers["files"], servers["far"], servers["near"]
    assert isinstance(files, StdioServer)
    # Nothing is filled in, here neither.
    assert (files.command, files.args[2], files.trusted, files.tools) == ("npx", "/srv/${HOME}", True, ("read_file",))
    assert isinstance(far, HttpServer)
    assert (far.timeout_s, far.trusted, far.allow_local, far.tools) == (5.0, False, False, None)
    assert isinstance(near, HttpServer)
    assert (near.url, near.local_address) == ("http://127.0.0.1:8000/mcp", "127.0.0.1")


def test_what_looks_like_a_secret_is_hidden_from_then_on_and_plain_words_are_not(tmp_path: Path) -> None:
    servers = read_mcp_config(written(tmp_path, WHOLE))
    hidden = {one.get_secret_value() for one in secrets_of(Settings(home=tmp_path, mcp_servers=servers))}
    assert hidden == {"short", "a1b2c3d4e5f6", "Bearer abc123def456", "abc123def456"}
    assert "abc123def456" not in repr(servers)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[servers.x", "it is not TOML"),
        ("[server.x]\ncommand = 'a'", "it must hold [servers.NAME] tables and nothing else"),
        ("servers = 3", "it must hold [servers.NAME] tables and nothing else"),
        ("[servers]\nx = 3", "mcp.toml, servers.x is '3': it must be a table."),
        ("[servers.1x]\ncommand = 'a'", "servers.1x is '1x': a name is a letter, then at most 31"),
        ("[servers.x]\ntrusted = true", "servers.x is 'trusted': it must have either a command or a url."),
        ("[servers.x]\ncommand = 'a'\nurl = 'b'", "it must have either a command or a url."),
        ("[servers.x]\ncommand = ''", "servers.x.command is ''"),
        ("[servers.x]\ncommand = 'a'\nargs = 'b'", "servers.x.args is 'b'"),
        ("[servers.x]\ncommand = 'a'\ncwd = 'b'", "servers.x.cwd is 'b': there is no such field."),
        ("[servers.x]\ncommand = 'a'\ntrusted = 'yes'", "servers.x.trusted is 'yes'"),
        ("[servers.x]\ncommand = 'a'\ntimeout_s = 31.0", "servers.x.timeout_s is '31.0'"),
        ("[servers.x]\ncommand = 'a'\nenv = { A = 12345 }", "servers.x.env.A is '…'"),
        ("[servers.x]\ncommand = 'a'\nenv = { 'A B' = 'c' }", "'A B' is no name of a variable"),
        ("[servers.x]\nurl = 'ftp://a.example/'", "servers.x.url is 'ftp://a.example/': it must be an address like"),
        ("[servers.x]\nurl = 'https://a:99999/'", "servers.x.url"),
        ("[servers.x]\nurl = 'https://me:pw@a.example/'", "it must hold no name or password"),
        ("[servers.x]\nurl = 'https://a.example/${KEY}'", "nothing is filled in here: write the address itself."),
        ("[servers.x]\nurl = 'https://a.example/'\nheaders = { A = '${KEY}' }", "servers.x.headers.A is '…': nothing"),
        ("[servers.x]\nurl = 'https://a.example/'\nheaders = { A = \"b\\r\\nC: d\" }", "no header can have"),
        ("[servers.x]\nurl = 'https://a.example/'\nheaders = { Host = 'b' }", "'Host' is no header that can be set"),
        ("[servers.x]\nurl = 'http://127.0.0.1/'", "say allow_local = true for that"),
        ("[servers.x]\nurl = 'http://192.168.1.5/'", "say allow_local = true for that"),
        ("[servers.x]\nurl = 'http://nas.example/'\nallow_local = true", "allow_local is for an address like"),
        ("[servers.x]\nurl = 'http://169.254.169.254/'\nallow_local = true", "allow_local is for an address like"),
        ("[servers.a]\ncommand = 'a'\n[servers.a-b]\ncommand = 'b'", "servers.a-b is 'a-b': its name begins like"),
        ("[servers.a-b]\ncommand = 'a'\n[servers.a_b]\ncommand = 'b'", "its name begins like that of"),
    ],
)
def test_what_cannot_be_used_is_refused_with_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_mcp_config(written(tmp_path, text))
    said = str(raised.value)
    assert sentence in said
    assert "mcp.toml" in said
    assert "\n" not in said.strip() or "TOML" in said
    assert "pw" not in said


def test_the_file_in_the_home_is_read_and_another_one_where_it_is_named(tmp_path: Path) -> None:
    written(tmp_path, "[servers.here]\ncommand = 'a'")
    other = tmp_path / "other.toml"
    other.write_text("[servers.there]\ncommand = 'b'", "utf-8")
    assert list(Settings.from_env({}, home=tmp_path).mcp_servers) == ["here"]
    assert list(Settings.from_env({"AIVISTA_MCP_CONFIG": str(other)}, home=tmp_path).mcp_servers) == ["there"]
    assert Settings.from_env({}, home=tmp_path / "empty").mcp_servers == {}


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"AIVISTA_MCP_CONFIG is .*there is no such file"):
        Settings.from_env({"AIVISTA_MCP_CONFIG": str(tmp_path / "none.toml")}, home=tmp_path)


def test_of_our_environment_a_program_gets_where_programs_and_its_user_are(tmp_path: Path) -> None:
    environ = {"PATH": "/bin", "HOME": "/home/me", "GEMINI_API_KEY": "AIzaCANARY", "SHELL": "/bin/sh"}
    assert Settings.from_env(environ, home=tmp_path).mcp_inherited == {"PATH": "/bin", "HOME": "/home/me"}
