"""A large signature is named by the part that carries it; its place stood in a column of its own."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_AT_ONCE = 500
_TABLES = (("turns", "messages"), ("pictures", "answer"), ("calls", "answer"))


def upgrade() -> None:
    """Write the digests into the parts."""
    connection = op.get_bind()
    for name, column in _TABLES:
        rows = sa.table(name, sa.column("_rowid_"), sa.column(column), sa.column("signatures"))
        number = rows.c["_rowid_"]
        signed = sa.select(rows).where(rows.c[column].is_not(None), rows.c.signatures != "[]").order_by(number)
        last = 0
        while some := connection.execute(signed.where(number > last).limit(_AT_ONCE)).all():
            for last, messages, places in some:
                named = {column: _named(messages, places)}
                connection.execute(sa.update(rows).where(number == last).values(named))
        op.drop_column(name, "signatures")


def _named(told: str, places: str) -> str:
    """Return messages, a message, or what was heard of one, with the digests of its large signatures; a row that is
    damaged stays as it is."""
    try:
        value = json.loads(told)
        messages: list[dict[str, Any]] = value if isinstance(value, list) else [value]
        for place in json.loads(places):
            messages[place["message"]]["parts"][place["part"]]["signature_digest"] = place["digest"]
    except (ValueError, LookupError, TypeError):
        return told
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
