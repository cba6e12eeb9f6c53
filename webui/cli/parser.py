"""The flags of `aivista` and of its commands, and the one sentence with which a failed command ends."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from agent import program_version
from webui.http.root_path import ROOT_PATH

_LANGUAGES = ("en", "zh-CN")
BUILT_SPACE = Path("build") / "space"
# Each command in one line, and as its own help describes it.
_COMMANDS = (
    (
        "space",
        "put the studio on Hugging Face, as the Spacefile says",
        "Put the studio on Hugging Face, as the Spacefile of a clone of the project says. Exit code 0: done; 1: the "
        "check found something wrong; 2: it cannot run.",
    ),
    (
        "gc",
        "remove for good what was deleted 30 days ago, and files that nothing names",
        "Remove for good what was deleted 30 days ago, and files that nothing names. Safe while a studio runs. Exit "
        "code 0: done; 1: something could not be removed, or a dry run found something; 2: it cannot run.",
    ),
    (
        "check",
        "look for damage in what is kept, and change nothing",
        "Look for damage in what is kept, and change nothing: the database, every picture, the indexes. Exit code 0: "
        "all is well; 1: something is damaged or missing; 2: it cannot run.",
    ),
    (
        "backup",
        "back up the database, and verify the backup",
        "Back up the database, verify the backup, and remove old ones: the newest three stay, one for each of the last "
        "seven days and one for each of the last four weeks. Safe while a studio runs, which does the same once a day. "
        "Exit code 0: done; 2: it cannot be done.",
    ),
    (
        "restore",
        "list the backups, or go back to one",
        "List the backups, or go back to one. Pictures that only the newer database knows are kept; that database is "
        "set aside. End the studio first. Exit code 0: done; 2: it cannot be done.",
    ),
    (
        "token",
        "make, list or remove tokens of the HTTP API",
        "Make, list or remove tokens of the HTTP API. A new one is shown once; the studio keeps its hash. Exit code 0: "
        "done; 2: it cannot be done.",
    ),
    (
        "mcp",
        "serve other programs' agents, as an MCP server",
        "Serve the studio's tools and pictures to another program's agent by the Model Context Protocol: on its pipes, "
        "or with --http at an address. Exit code 0: done; 2: it cannot run.",
    ),
)
_SPACE_COMMANDS = (
    ("build", "write the Space's folder", "Write the Space's folder."),
    (
        "check",
        "build it, start it as a Space would, and use it once",
        "Build the Space, start it in this environment with a Space's variables, and use its page once.",
    ),
    (
        "push",
        "create the Space, or bring it up to date",
        "Create the Space, or bring it up to date: its files, secrets, variables, hardware and storage. The token is "
        "the one of `hf auth login`, or of HF_TOKEN.",
    ),
)


class CommandFailed(Exception):
    """Why a command failed, in one sentence for the user at the terminal."""


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; when it fails, print why in one sentence and return 2."""
    from agent import AivistaError

    try:
        return command()
    except (CommandFailed, AivistaError) as problem:
        print(f"aivista: {problem}", file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Print one sentence without the usage, and exit with 2."""
        self.exit(2, f"aivista: {message}. See aivista --help.\n")


def read_flags(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the flags; invalid ones end the program with one sentence."""
    parser = _Parser(prog="aivista", description="A chat studio for pictures: talk, and the picture comes.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=7860, type=_port, help="port to listen on (default: %(default)s)")
    parser.add_argument("--home", metavar="FOLDER", help="where everything is kept (default: your user-data folder)")
    parser.add_argument("--lang", choices=_LANGUAGES, help="language of the page (default: the browser's)")
    parser.add_argument("--share", action="store_true", help="open a public link, protected by a password")
    _add_visitors(parser)
    parser.add_argument(
        "--api-token",
        action="append",
        default=[],
        metavar="NAME:TOKEN",
        help="a token of the HTTP API and who has it; may be given several times (default: none is needed here)",
    )
    parser.add_argument("--version", action="version", version=f"aivista {program_version()}")
    _add_commands(parser)
    return parser.parse_args(argv)


def _add_visitors(parser: argparse.ArgumentParser) -> None:
    """Add the flags for visitors, who come by a public link or an address that is not this machine's own.

    Without the flag, its environment variable counts.
    """
    visitors = parser.add_argument_group("where others come")
    passwords = visitors.add_mutually_exclusive_group()
    passwords.add_argument(
        "--password",
        metavar="WORD",
        default=os.environ.get("AIVISTA_PASSWORD") or None,
        help="what everybody must know who comes in (default: with --share one is made up)",
    )
    passwords.add_argument(
        "--no-password", action="store_true", help="let in everybody who has the public link, without a password"
    )
    visitors.add_argument(
        "--visitors-spend",
        type=_dollars,
        metavar="USD",
        default=os.environ.get("AIVISTA_VISITORS_SPEND") or None,
        help="let visitors use your key, up to so many dollars a day for all of them (default: they bring their own)",
    )
    visitors.add_argument(
        "--domain",
        type=_host_names,
        metavar="NAME",
        default=os.environ.get("AIVISTA_DOMAINS", ""),
        help="the host name that leads here, by a proxy for instance; several with commas between them",
    )
    visitors.add_argument(
        "--root-path",
        type=_root_path,
        metavar="PATH",
        default=os.environ.get("AIVISTA_ROOT_PATH", ""),
        help="the path below which a proxy shows the studio, such as /studio (default: the root of its host)",
    )
    visitors.add_argument(
        "--single-user",
        action="store_true",
        default=os.environ.get("AIVISTA_SINGLE_USER", "").strip().lower() in ("1", "true", "yes", "on"),
        help="everybody who reaches the page is you, and sees all that is yours",
    )


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="instead of opening the studio")
    added = {name: commands.add_parser(name, help=brief, description=more) for name, brief, more in _COMMANDS}
    added["gc"].add_argument("--dry-run", action="store_true", help="tell what would be removed, and remove nothing")
    folder: dict[str, Any] = {"metavar": "FOLDER", "type": Path}
    added["backup"].add_argument("--to", **folder, help="another folder than backups in the studio's own")
    added["restore"].add_argument("name", nargs="?", help="the backup, as it is listed; without it they are listed")
    added["restore"].add_argument("--from", dest="folder", **folder, help="where the backups are")
    added["token"].add_argument("action", choices=("new", "list", "remove"))
    added["token"].add_argument("name", nargs="?", help="who has it; what is made with it belongs to that name")
    http = "serve streamable HTTP at http://HOST:PORT/mcp (default: standard input and output)"
    added["mcp"].add_argument("--http", type=_address, metavar="HOST:PORT", help=http)
    space = added.pop("space").add_subparsers(
        dest="space_command", metavar="COMMAND", required=True, title="what to do"
    )
    for command in added.values():
        # Given before the command, the flag belongs to the studio: the command's default must not overwrite it.
        command.add_argument("--home", metavar="FOLDER", default=argparse.SUPPRESS, help="where everything is kept")
    added = {name: space.add_parser(name, help=brief, description=more) for name, brief, more in _SPACE_COMMANDS}
    added["build"].add_argument("--out", metavar="DIR", type=Path, help=f"the folder (default: {BUILT_SPACE})")
    added["push"].add_argument("--repo", metavar="NAME", help="OWNER/NAME or NAME (default: yours, under the title)")
    added["push"].add_argument("--dry-run", action="store_true", help="tell what would be done, and change nothing")
    clone: dict[str, Any] = {"metavar": "DIR", "type": Path, "default": Path()}
    for command in added.values():
        command.add_argument("--project", **clone, help="the clone (default: this folder)")


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: use a number from 1 to 65535")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdigit() or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:8790")
    return host, int(port)


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 < amount < 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount: use dollars, such as 2.50")
    return amount


def _root_path(text: str) -> str:
    path = text.strip().rstrip("/")
    if path and not ROOT_PATH.fullmatch(path):
        raise argparse.ArgumentTypeError(f"{text!r} is no path: use one such as /studio")
    return path


def _host_names(text: str) -> list[str]:
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in names:
        if not re.fullmatch(r"[a-z0-9.-]{1,253}", name):
            raise argparse.ArgumentTypeError(f"{name!r} is no host name: use one such as studio.example.org")
    return names
