"""What pictures are compared by, which had a folder of its own; it is made anew when somebody searches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "picture_vectors",
        sa.Column("picture_id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(160), nullable=False),
        sa.Column("content", sa.LargeBinary(32), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("picture_id", "kind", name="pk_picture_vectors"),
        sa.ForeignKeyConstraint(
            ["picture_id"], ["pictures.id"], name="fk_picture_vectors_pictures", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "vector_kinds",
        sa.Column("kind", sa.String(160), nullable=False),
        sa.Column("background", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("kind", name="pk_vector_kinds"),
    )
