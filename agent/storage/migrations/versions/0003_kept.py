"""Branches, pins and deletions of conversations; what the gallery finds pictures by; tags; full text."""

from __future__ import annotations

from math import sqrt

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_NO = sa.text("0")
_NOTHING = sa.text("''")
_UNINDEXED = "indexed_at IS NULL OR indexed_at < updated_at"
_SHAPES = (*("1:8", "1:4", "9:16", "2:3", "3:4", "4:5", "1:1", "5:4", "4:3", "3:2", "16:9", "21:9", "4:1", "8:1"),)
# A conversation was a line so far; whom a picture belongs to, and how it came to be, stood in what its row says.
_FILL = (
    "UPDATE turns SET parent = (SELECT earlier.id FROM turns AS earlier WHERE earlier.conversation_id = "
    "turns.conversation_id AND earlier.position < turns.position ORDER BY earlier.position DESC LIMIT 1)",
    "UPDATE conversations SET head = (SELECT turns.id FROM turns WHERE turns.conversation_id = conversations.id "
    "ORDER BY turns.position DESC LIMIT 1)",
    "UPDATE pictures SET owner = (SELECT conversations.owner FROM conversations WHERE conversations.id = "
    "pictures.conversation_id), model = coalesce(json_extract(receipt, '$.model_label'), ''), source = CASE "
    "WHEN origin IN ('uploaded', 'edited') THEN origin ELSE 'made' END",
)
_SHAPED = (
    "UPDATE pictures SET shape = CASE "
    "WHERE json_extract(details, '$.image.width') > 0 AND json_extract(details, '$.image.height') > 0"
)
_FULL_TEXT = tuple(
    f"CREATE VIRTUAL TABLE {name} USING fts5(words, tokenize='unicode61 remove_diacritics 2', prefix='2 3')"
    for name in ("conversation_words", "picture_words")
)


def upgrade() -> None:
    """Add the columns and the tables, filled from what is there."""
    _add_columns()
    op.create_index("ix_conversations_unindexed", "conversations", ["id"], sqlite_where=sa.text(_UNINDEXED))
    pinned = sa.text("is_pinned = 1")
    op.create_index("ix_conversations_pinned", "conversations", ["owner", "updated_at"], sqlite_where=pinned)
    op.create_index("ix_conversations_word_id", "conversations", ["word_id"], unique=True)
    op.create_index("ix_turns_started_at", "turns", ["started_at"])
    for first in ("is_starred", "model", "shape", "source"):
        op.create_index(f"ix_pictures_owner_{first}", "pictures", ["owner", first, "created_at", "id"])
    op.create_index("ix_pictures_owner", "pictures", ["owner", "created_at", "id"])
    op.create_index("ix_pictures_unindexed", "pictures", ["id"], sqlite_where=sa.text("is_indexed = 0"))
    op.create_table(
        "picture_tags",
        sa.Column("picture_id", sa.Integer, nullable=False),
        sa.Column("tag", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("picture_id", "tag", name="pk_picture_tags"),
        sa.ForeignKeyConstraint(["picture_id"], ["pictures.id"], name="fk_picture_tags_pictures", ondelete="CASCADE"),
    )
    op.create_index("ix_picture_tags_tag", "picture_tags", ["tag"])
    op.create_table(
        "spend_days",
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("price_usd", sa.Float, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("owner", "day", name="pk_spend_days"),
    )
    for statement in (*_FILL, _shapes_filled(), *_FULL_TEXT):
        # As it stands: SQLAlchemy would look for parameters after the colons.
        op.get_bind().exec_driver_sql(statement)


def _add_columns() -> None:
    moment = sa.DateTime(timezone=True)
    columns = {
        "conversations": (
            sa.Column("head", sa.String(64), nullable=True),
            sa.Column("is_pinned", sa.Boolean, nullable=False, server_default=_NO),
            sa.Column("is_named", sa.Boolean, nullable=False, server_default=_NO),
            sa.Column("deleted_at", moment, nullable=True),
            sa.Column("indexed_at", moment, nullable=True),
            sa.Column("word_id", sa.Integer, nullable=True),
        ),
        "turns": (sa.Column("parent", sa.String(64), nullable=True),),
        "pictures": (
            sa.Column("owner", sa.String(128), nullable=False, server_default=_NOTHING),
            sa.Column("model", sa.String(128), nullable=False, server_default=_NOTHING),
            sa.Column("shape", sa.String(8), nullable=False, server_default=_NOTHING),
            sa.Column("source", sa.String(16), nullable=False, server_default=_NOTHING),
            sa.Column("is_starred", sa.Boolean, nullable=False, server_default=_NO),
            sa.Column("deleted_at", moment, nullable=True),
            sa.Column("is_indexed", sa.Boolean, nullable=False, server_default=_NO),
        ),
    }
    for table, added in columns.items():
        for column in added:
            op.add_column(table, column)


def _shapes_filled() -> str:
    """Return the statement that names each picture's ratio by the nearest common one."""
    ratios = [int(wide) / int(high) for wide, high in (shape.split(":") for shape in _SHAPES)]
    side = "CAST(json_extract(details, '$.image.width') AS REAL) / json_extract(details, '$.image.height')"
    whens = " ".join(
        f"WHEN {side} < {sqrt(ratio * following):.6f} THEN '{shape}'"
        for shape, ratio, following in zip(_SHAPES, ratios, ratios[1:], strict=False)
    )
    return _SHAPED.replace("CASE", f"CASE {whens} ELSE '{_SHAPES[-1]}' END")
