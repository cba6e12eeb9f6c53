"""The tables of the records. A change here goes with a migration in `migrations/versions`."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import (
    Boolean,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, written and read in UTC; SQLite itself forgets the time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC, as the database takes it."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment with its time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# Text, not a JSON type: what was written must come back to the letter, and is parsed once, by pydantic.
JsonText = Text

METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

CONVERSATIONS = Table(
    "conversations",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("owner", String(128), nullable=False),
    Column("title", Text, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Index(None, "owner", "updated_at"),
)

TURNS = Table(
    "turns",
    METADATA,
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    # Who runs it: a sign of life of `liveness`, by which an abandoned turn is told from a running one.
    Column("runner", String(64), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("text", Text, nullable=False),
    Column("price_usd", Float, nullable=False),
    Column("messages", JsonText, nullable=False),
    Column("signatures", JsonText, nullable=False),
    Column("components", JsonText, nullable=False),
    # The rest of the turn: settings, uploads, editing, references, usage, seconds.
    Column("details", JsonText, nullable=False),
    # The same one twice is the same turn; most have none.
    Column("request_id", String(128)),
    Index(None, "conversation_id", "position"),
    UniqueConstraint("conversation_id", "request_id"),
)

# The journal of paid calls (`journal`).
CALLS = Table(
    "calls",
    METADATA,
    Column("turn_id", String(64), primary_key=True),
    Column("name", String(128), primary_key=True),
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("model", String(128), nullable=False),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("price_usd", Float, nullable=False),
    Column("error_code", String(64)),
    # What was answered, without its large signatures, until the turn is over; and where those belong.
    Column("answer", JsonText),
    Column("signatures", JsonText),
    Index(None, "conversation_id"),
)

PICTURES = Table(
    "pictures",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    Column("handle", String(32), nullable=False),
    Column("turn_id", String(64), nullable=False),
    Column("digest", String(64), nullable=False, index=True),
    Column("origin", String(16), nullable=False),
    Column("created_at", UtcDateTime, nullable=False, index=True),
    Column("is_marked", Boolean(create_constraint=False), nullable=False),
    Column("receipt", JsonText),
    # The rest of the picture: image, parents, alt, after_stop.
    Column("details", JsonText, nullable=False),
    # The image model's message without its signatures, and where those belong.
    Column("answer", JsonText),
    Column("signatures", JsonText, nullable=False),
    UniqueConstraint("conversation_id", "handle"),
)
