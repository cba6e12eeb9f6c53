"""How a Space's `app.py` starts the studio: for the public, on the Space's port, as the Spacefile says."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

from agent import Settings, SettingsError
from webui import cli
from webui.accounts import Issuer
from webui.space.place import EMBEDDERS, Place, SpaceRun, kept_home
from webui.space.spacefile import Spacefile, SpaceProblem, read_spacefile

EVERYWHERE = str(IPv4Address(0))


def start(path: Path) -> int:
    """Run the studio of a Spacefile until the Space is stopped; return the exit code: 0, or 2 when it cannot start."""
    try:
        with ExitStack() as until_the_end:
            kept = kept_home()
            home = kept or Path(until_the_end.enter_context(tempfile.TemporaryDirectory(prefix="aivista-home-")))
            return _open(read_spacefile(path), home, is_kept=kept is not None)
    except (SpaceProblem, SettingsError, cli.Unusable) as problem:
        print(f"aivista: {problem}", file=sys.stderr)
        return 2


def _open(spacefile: Spacefile, home: Path, *, is_kept: bool) -> int:
    run, settings = SpaceRun.from_env(os.environ), settings_of(spacefile, os.environ, home)
    # With it Gradio looks for changes of its program that are sent to a running Space, which is nobody's wish here.
    os.environ.pop("SYSTEM", None)
    flags = cli.read_flags(["--host", EVERYWHERE, "--port", str(run.port)])
    return cli.open_studio(flags, settings, place_of(spacefile, run, os.environ, is_kept=is_kept))


def place_of(spacefile: Spacefile, run: SpaceRun, environ: Mapping[str, str], *, is_kept: bool) -> Place:
    """Return where the studio is: at the Space's own host and the Spacefile's domains, inside Hugging Face's page."""
    names = {run.host, *spacefile.domains} - {""}
    issuer = Issuer.from_env(environ) if spacefile.sign_in else None
    return Place(frozenset(names), EMBEDDERS, is_kept, spacefile.limits, spacefile.pays, issuer)


def settings_of(spacefile: Spacefile, environ: Mapping[str, str], home: Path) -> Settings:
    """Return the settings of a Space: public, and without any key of the owner's where the visitors pay.

    Raises SettingsError for a variable that cannot be read.
    """
    # Nobody comes to a Space past Hugging Face's own proxy.
    reached = {"is_public": True, "is_behind_proxy": True}
    settings = Settings.from_env(environ, home=home).model_copy(update=reached)
    if spacefile.pays.who == "owner":
        return settings
    without_keys: dict[str, object] = {"gemini_api_key": None}
    if settings.openai is not None and settings.openai.has_key:
        without_keys |= {"openai": None, "provider": None}
    return settings.model_copy(update=without_keys)
