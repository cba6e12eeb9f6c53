"""Runs the studio in a Space, as called by its `app.py`: public, on the Space's port, by the Spacefile."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, closing
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path

from agent import Settings, Sponsor, TurnLimits
from webui.cli.parser import exit_code_of, read_flags
from webui.cli.serve import open_studio
from webui.cli.space.spacefile import Spacefile, read_spacefile
from webui.deployment import Deployment

EVERYWHERE = str(IPv4Address(0))
# Hugging Face embeds a Space in its own pages.
EMBEDDERS = ("https://huggingface.co", "https://*.huggingface.co", "https://hf.co")
_DATA = Path("/data")
_PORT = 7860


def start(path: Path) -> int:
    """Run the studio of a Spacefile until the Space is stopped; return the exit code: 0, or 2 when it cannot start."""
    return exit_code_of(lambda: _run(path))


def _run(path: Path) -> int:
    with ExitStack() as stack:
        kept = kept_home()
        home = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aivista-home-")))
        spacefile = read_spacefile(path)
        settings = settings_of(spacefile, os.environ, home)
        # With it, Gradio would accept changes of the program that are sent to a running Space.
        os.environ.pop("SYSTEM", None)
        flags = read_flags(["--host", EVERYWHERE, "--port", str(port_of(os.environ))])
        return open_studio(flags, settings, partial(deployment_of, spacefile, os.environ, is_kept=kept is not None))


def host_of(environ: Mapping[str, str]) -> str:
    """Return the host name of the Space, empty outside of one."""
    if host := environ.get("SPACE_HOST", "").strip().lower():
        return host
    name = re.sub(r"[^a-z0-9]+", "-", environ.get("SPACE_ID", "").lower()).strip("-")
    return f"{name}.hf.space" if name else ""


def port_of(environ: Mapping[str, str]) -> int:
    """Return the port that the Space must listen on."""
    ports = (environ.get(name, "").strip() for name in ("GRADIO_SERVER_PORT", "PORT"))
    return next((int(port) for port in ports if port.isdigit() and 0 < int(port) < 65536), _PORT)


def deployment_of(spacefile: Spacefile, environ: Mapping[str, str], *, is_kept: bool) -> Deployment:
    """Return the deployment: the Space's own host and the Spacefile's domains, embedded in Hugging Face's page."""
    # This imports Gradio, which reads the environment at that moment.
    from webui.http.sign_in import Issuer

    pays, sponsor = spacefile.pays, None
    if pays.cap_day_usd is not None:
        sponsor = Sponsor(cap_day_usd=pays.cap_day_usd, cap_turn_usd=pays.cap_turn_usd)
    return Deployment(
        names=frozenset({host_of(environ), *spacefile.domains} - {""}),
        limits=TurnLimits(**spacefile.limits.model_dump()),
        sponsor=sponsor,
        embedders=EMBEDDERS,
        is_kept=is_kept,
        issuer=Issuer.from_env(environ) if spacefile.sign_in else None,
    )


def settings_of(spacefile: Spacefile, environ: Mapping[str, str], home: Path) -> Settings:
    """Return the settings of a Space: public, and without the owner's keys where visitors pay.

    Raises SettingsError for an invalid variable.
    """
    settings = Settings.from_env(environ, home=home)
    # Requests reach a Space only through Hugging Face's own proxy.
    changed: dict[str, object] = {"is_public": True, "is_behind_proxy": True}
    if spacefile.pays.who == "visitors":
        changed["gemini_api_key"] = None
        if settings.openai is not None and settings.openai.has_key:
            changed |= {"openai": None, "provider": None}
    return settings.model_copy(update=changed)


def kept_home(data: Path = _DATA) -> Path | None:
    """Return the studio's folder on the Space's storage, or None where no storage can hold its records.

    A mounted bucket is no disk: SQLite must be able to lock and write there, or the records would be damaged.
    """
    if not data.is_dir():
        return None
    home = data / "aivista"
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".probe-", dir=home) as folder:
            _probe(os.path.join(folder, "probe.db"))
    except (OSError, sqlite3.Error):
        return None
    return home


def _probe(path: str) -> None:
    with closing(sqlite3.connect(path, timeout=1)) as writer, closing(sqlite3.connect(path, timeout=1)) as reader:
        if writer.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise sqlite3.OperationalError("no write-ahead log")
        writer.execute("CREATE TABLE probe (value)")
        writer.execute("INSERT INTO probe VALUES (1)")
        writer.commit()
        if reader.execute("SELECT value FROM probe").fetchone() != (1,):
            raise sqlite3.OperationalError("not read back")
