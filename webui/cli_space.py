"""`aivista space`: build, check and push the Hugging Face Space that the Spacefile describes."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from webui.space.building import BuiltSpace, Project

_BUILT = Path("build") / "space"


def add_commands(commands: Any) -> None:
    """Add `space` and its three commands to the parser of the command line."""
    space = commands.add_parser(
        "space",
        help="put the studio on Hugging Face, as the Spacefile says",
        description="Put the studio on Hugging Face, as the Spacefile of a clone of the project says. Exit code 0: "
        "done; 1: the check found something wrong; 2: it cannot run.",
    )
    ways = space.add_subparsers(dest="way", metavar="COMMAND", required=True, title="what to do")
    build = ways.add_parser("build", help="write the Space's folder", description="Write the Space's folder.")
    build.add_argument("--out", metavar="DIR", type=Path, help=f"the folder (default: {_BUILT})")
    check = ways.add_parser(
        "check",
        help="build it, install it as a Space would, start it and use it once",
        description="Build the Space, install it into a fresh environment as a Space would, start it with a Space's "
        "variables, and use its page once.",
    )
    check.add_argument("--without-install", action="store_true", help="use this environment instead of a fresh one")
    check.add_argument("--keep", metavar="DIR", type=Path, help="leave the folder and the environment here")
    push = ways.add_parser(
        "push",
        help="create the Space, or bring it up to date",
        description="Create the Space, or bring it up to date: its files, secrets, variables, hardware and storage. "
        "The token is the one of `hf auth login`, or of HF_TOKEN.",
    )
    push.add_argument("--repo", metavar="NAME", help="OWNER/NAME or NAME (default: yours, under the title)")
    push.add_argument("--dry-run", action="store_true", help="tell what would be done, and change nothing")
    for way in (build, check, push):
        way.add_argument("--project", metavar="DIR", type=Path, default=Path(), help="the clone (default: this folder)")


def run(flags: argparse.Namespace) -> int:
    """Do it and return the exit code: 0, or 1 when the check found something wrong.

    Raises SpaceProblem when it cannot be done.
    """
    from webui.space.building import open_project

    project = open_project(flags.project.absolute())
    match flags.way:
        case "build":
            return _build(project, flags.out)
        case "check":
            return _check(project, flags)
        case _:
            return _push(project, flags)


def _build(project: Project, out: Path | None) -> int:
    from webui.space.building import build

    print(_said(build(project, (out or project.root / _BUILT).absolute(), os.environ)))
    return 0


def _said(built: BuiltSpace) -> str:
    return f"Built {built.folder}: {len(built.files)} files, {built.size_bytes / 1e6:.1f} MB."


def _check(project: Project, flags: argparse.Namespace) -> int:
    from webui.space.checking import check

    with tempfile.TemporaryDirectory(prefix="aivista-space-") as temporary:
        folder = flags.keep.absolute() if flags.keep else Path(temporary)
        return 0 if check(project, folder, is_installed_afresh=not flags.without_install, say=_say) else 1


def _push(project: Project, flags: argparse.Namespace) -> int:
    # Read when huggingface_hub is imported.
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_TELEMETRY="1")
    from webui.space.building import build
    from webui.space.hub import push

    with tempfile.TemporaryDirectory(prefix="aivista-space-") as temporary:
        built = build(project, Path(temporary) / "space", os.environ)
        push(project.spacefile, built, os.environ, repo=flags.repo, is_dry_run=flags.dry_run, say=_say)
    return 0


def _say(line: str) -> None:
    print(line, flush=True, file=sys.stdout)
