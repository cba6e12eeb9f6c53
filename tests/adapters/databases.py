"""The database of a home as each of two ways makes it: a first start, and all migrations one after the other."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import agent.storage
from agent.storage.database import HEAD, migrate, open_database


def first_start(home: Path) -> Path:
    """Return the database that a first start makes."""
    open_database(home)[0].dispose()
    return home / "aivista.db"


def migrated(path: Path) -> Path:
    """Return a database made by all migrations."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrate(connection, None)
    engine.dispose()
    return path


def is_newest() -> bool:
    """Return whether the revision that a first start writes is that of the last migration."""
    config = Config()
    config.set_main_option("script_location", str(Path(agent.storage.__path__[0]) / "migrations"))
    return ScriptDirectory.from_config(config).get_current_head() == HEAD
