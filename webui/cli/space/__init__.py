"""Aivista as a Hugging Face Space: described in the Spacefile, built, checked, pushed, and run there."""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from pathlib import Path

from webui.cli.parser import BUILT_SPACE


def run_command(flags: Namespace) -> int:
    """Run `aivista space build`, `check` or `push`; return the exit code, 1 when the check found a problem.

    Raises CommandFailed when it fails.
    """
    # Read when huggingface_hub is imported.
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_TELEMETRY="1")
    from webui.cli.space.build import build

    root = flags.project.absolute()
    if flags.space_command == "build":
        built = build(root, (flags.out or root / BUILT_SPACE).absolute(), os.environ)
        print(f"Built {built.folder}: {built}.")
        return 0
    with tempfile.TemporaryDirectory(prefix="aivista-space-") as folder:
        built = build(root, Path(folder) / "space", os.environ)
        if flags.space_command == "check":
            from webui.cli.space.check import check

            print(f"build: {built}", flush=True)
            return 0 if check(built, Path(folder)) else 1
        from webui.cli.space.hub import push

        push(built, os.environ, repo=flags.repo, is_dry_run=flags.dry_run)
    return 0
