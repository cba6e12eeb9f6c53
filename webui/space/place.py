"""Where a Space runs: its names, its port, and whether what is made there is kept."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from webui.accounts import Issuer
from webui.guard import LOOPBACK
from webui.space.spacefile import Limits, Pays

DATA = Path("/data")
PORT = 7860
# Hugging Face shows a Space inside of its own pages.
EMBEDDERS = ("https://huggingface.co", "https://*.huggingface.co", "https://hf.co")


@dataclass(frozen=True)
class Place:
    """The place that a studio serves where others come: the host names it answers to, which sites may show it inside of
    theirs, whether what is made there outlives a restart, how much may be asked there, whose key it costs, and who
    knows the accounts of those who come, if anybody does."""

    names: frozenset[str]
    embedders: tuple[str, ...]
    is_kept: bool
    limits: Limits
    pays: Pays
    issuer: Issuer | None = None


def place_of_visitors(
    host: str,
    *,
    is_public: bool,
    is_single_user: bool,
    visitors_spend_usd: float | None,
    names: Sequence[str] = (),
) -> Place | None:
    """Return the place of a studio that others reach: by a link or a proxy (`is_public`), or because it listens on more
    than this machine; None where whoever comes is the operator.

    Without `visitors_spend_usd`, a day's cap, visitors bring keys of their own.
    """
    if is_single_user or (not is_public and host in LOOPBACK):
        return None
    pays = Pays()
    if visitors_spend_usd is not None:
        cap_turn_usd = min(Pays().cap_turn_usd, visitors_spend_usd)
        pays = Pays(who="owner", cap_day_usd=visitors_spend_usd, cap_turn_usd=cap_turn_usd)
    return Place(frozenset(names), (), is_kept=True, limits=Limits(), pays=pays)


@dataclass(frozen=True)
class SpaceRun:
    """What a Space tells the program that runs in it."""

    id: str
    host: str
    port: int

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> SpaceRun:
        """Read the variables that a Space sets; outside of one the names are empty."""
        space_id = environ.get("SPACE_ID", "").strip()
        host = environ.get("SPACE_HOST", "").strip().lower() or _host_of(space_id)
        wishes = (environ.get(name, "").strip() for name in ("GRADIO_SERVER_PORT", "PORT"))
        port = next((int(wish) for wish in wishes if wish.isdigit() and 0 < int(wish) < 65536), PORT)
        return cls(space_id, host, port)


def _host_of(space_id: str) -> str:
    if not space_id:
        return ""
    return f"{re.sub(r'[^a-z0-9]+', '-', space_id.lower()).strip('-')}.hf.space"


def kept_home(data: Path = DATA) -> Path | None:
    """Return the studio's folder on the Space's storage, or None where there is none that can hold its records.

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
