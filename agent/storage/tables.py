"""The database tables. `upgrade` applies a change made here."""

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
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    column,
    table,
    text,
)


class UtcDateTime(TypeDecorator[datetime]):
    """A time, written and read in UTC; SQLite itself stores no time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time in UTC, for the database."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the time with its time zone."""
        return None if value is None else value.replace(tzinfo=UTC)


# Text, not a JSON type: it must come back unchanged, and pydantic parses it once.
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
    # The newest turn of the branch that is shown.
    Column("head", String(64)),
    Column("is_pinned", Boolean, nullable=False, server_default=text("0")),
    # The user gave the title: nothing else changes it any more.
    Column("is_named", Boolean, nullable=False, server_default=text("0")),
    # Soft-deleted.
    Column("deleted_at", UtcDateTime),
    # When its words were last indexed, and their row number in the full-text table.
    Column("indexed_at", UtcDateTime),
    Column("word_id", Integer),
    # The highest version of any file in its workspace.
    Column("file_version", Integer, nullable=False, server_default=text("0")),
    # Incremented by each change of what a `Conversation` holds, so that an outdated cached copy is noticed.
    Column("version", Integer, nullable=False, server_default=text("0")),
    # The request that created it; the same request finds it again.
    Column("request_id", String(128)),
    Index(None, "owner", "updated_at"),
    Index("ix_conversations_pinned", "owner", "updated_at", sqlite_where=text("is_pinned = 1")),
    Index("ix_conversations_word_id", "word_id", unique=True),
    Index("ix_conversations_unindexed", "id", sqlite_where=text("indexed_at IS NULL OR indexed_at < updated_at")),
    Index(
        "ix_conversations_request_id", "owner", "request_id", unique=True, sqlite_where=text("request_id IS NOT NULL")
    ),
)

TURNS = Table(
    "turns",
    METADATA,
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("state", String(16), nullable=False, index=True),
    # The process that runs it, by its lock file (`process_lock`), so that an abandoned turn is noticed.
    Column("runner", String(64), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("text", Text, nullable=False),
    Column("price_usd", Float, nullable=False),
    Column("messages", JsonText, nullable=False),
    Column("components", JsonText, nullable=False),
    # The rest of the turn: settings, uploads, editing, references, usage, seconds.
    Column("details", JsonText, nullable=False),
    # The same request id means the same turn; most have none.
    Column("request_id", String(128)),
    # The turn before it; turns with the same parent are branches.
    Column("parent", String(64)),
    # Imported from an archive: its cost was not spent here and counts for no day and no cap.
    Column("is_imported", Boolean, nullable=False, server_default=text("0")),
    # The most it may cost, reserved against the caps of other turns.
    Column("reserved_usd", Float, nullable=False, server_default=text("0")),
    # The user pressed Stop in another process than the one that runs it.
    Column("is_stop_requested", Boolean, nullable=False, server_default=text("0")),
    Index(None, "conversation_id", "position"),
    Index(None, "started_at"),
    # One running turn at a time: another one must wait.
    Index("ix_turns_running", "conversation_id", unique=True, sqlite_where=text("state = 'running'")),
    Index("ix_turns_stop_requested", "runner", sqlite_where=text("is_stop_requested = 1")),
    UniqueConstraint("conversation_id", "request_id"),
)

# Turns that wait until earlier ones of their conversation have ended; the lowest id is next.
TURN_QUEUE = Table(
    "turn_queue",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
    # The process that waits, as in `turns`.
    Column("runner", String(64), nullable=False),
    Column("request_id", String(128)),
    Index(None, "conversation_id", "id"),
    # Ids are never reused: a late removal from the queue must not remove another turn's entry.
    sqlite_autoincrement=True,
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
    # The answer, until the turn is over.
    Column("answer", JsonText),
    # The reserved handle and position of the picture; none when it never came and its turn is over.
    Column("handle", String(32)),
    Column("position", Integer),
    # The most it may cost while it is under way, counted against the caps of other turns.
    Column("reserved_usd", Float, nullable=False, server_default=text("0")),
    Index(None, "conversation_id"),
    Index("ix_calls_handle", "conversation_id", "handle", unique=True, sqlite_where=text("handle IS NOT NULL")),
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
    # Set by the first versions; no longer read.
    Column("is_marked", Boolean, nullable=False, default=False),
    Column("receipt", JsonText),
    # The rest of the picture: image, parents, alt, after_stop.
    Column("details", JsonText, nullable=False),
    # The image model's message.
    Column("answer", JsonText),
    # The gallery's filters: owner, model label (empty for an upload), nearest common ratio, and source (`made`,
    # `uploaded`, `edited`).
    Column("owner", String(128), nullable=False, server_default=text("''")),
    Column("model", String(128), nullable=False, server_default=text("''")),
    Column("shape", String(8), nullable=False, server_default=text("''")),
    Column("source", String(16), nullable=False, server_default=text("''")),
    Column("is_starred", Boolean, nullable=False, server_default=text("0")),
    Column("deleted_at", UtcDateTime),
    Column("is_indexed", Boolean, nullable=False, server_default=text("0")),
    # Its position among the pictures of its conversation: pictures of one request in the order of the request.
    Column("position", Integer, nullable=False, server_default=text("0")),
    # The paid call that produced it, by its name in the turn: a call produces one picture.
    Column("call", String(128), nullable=False, server_default=text("''")),
    UniqueConstraint("conversation_id", "handle"),
    Index(None, "conversation_id", "position"),
    Index("ix_pictures_call", "conversation_id", "turn_id", "call", unique=True, sqlite_where=text("call <> ''")),
    Index("ix_pictures_owner", "owner", "created_at", "id"),
    *(
        Index(f"ix_pictures_owner_{first}", "owner", first, "created_at", "id")
        for first in ("is_starred", "model", "shape", "source")
    ),
    Index("ix_pictures_unindexed", "id", sqlite_where=text("is_indexed = 0")),
    # All columns that `gallery_rows.facets` counts by, so that it need not read the rows.
    Index("ix_pictures_counted", "owner", "deleted_at", "model", "shape", "source", "is_starred", "created_at"),
)

PICTURE_TAGS = Table(
    "picture_tags",
    METADATA,
    Column("picture_id", Integer, ForeignKey("pictures.id", ondelete="CASCADE"), primary_key=True),
    Column("tag", String(64), primary_key=True),
    Index(None, "tag"),
)

# The vectors by which the gallery compares pictures (`gallery_vectors`). Bytes, not text: text columns are searched for
# the digests of pictures that are still needed.
PICTURE_VECTORS = Table(
    "picture_vectors",
    METADATA,
    Column("picture_id", Integer, ForeignKey("pictures.id", ondelete="CASCADE"), primary_key=True),
    Column("kind", String(160), primary_key=True),
    Column("content", LargeBinary(32), nullable=False),
    Column("vector", LargeBinary, nullable=False),
)

# For each kind of vectors, the cosine that unrelated things reach.
VECTOR_KINDS = Table(
    "vector_kinds", METADATA, Column("kind", String(160), primary_key=True), Column("background", Float, nullable=False)
)

# The files of each conversation's workspace, by case-folded name (`workspace.key_of`).
WORKSPACE_FILES = Table(
    "workspace_files",
    METADATA,
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("key", String(480), primary_key=True),
    Column("name", String(120), nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("written_by", String(16), nullable=False),
    Column("is_untrusted", Boolean, nullable=False),
    # Bytes, not text: text columns are searched for the digests of pictures that are still needed.
    Column("digest", LargeBinary(32), nullable=False),
    # The last column: SQLite reads a row only as far as needed.
    Column("content", LargeBinary, nullable=False),
)

# What each step of a turn sent and received (`traces`), compressed. Bytes, not text, as above.
TRACE_STEPS = Table(
    "trace_steps",
    METADATA,
    Column("conversation_id", String(64), ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True),
    Column("turn_id", String(64), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("began_at", UtcDateTime, nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("summary", LargeBinary, nullable=False),
    Column("contents", LargeBinary, nullable=False),
    # This index alone gives the total size and the oldest turns.
    Index(None, "turn_id", "began_at", "size_bytes"),
)

# Spend that no recorded turn contains, by day (`2026-01-31`): the cost of conversations removed for good, by UTC day,
# and the cost of gallery searches, by local day.
SPEND_DAYS = Table(
    "spend_days",
    METADATA,
    Column("owner", String(128), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("price_usd", Float, nullable=False),
    Column("tokens", Integer, nullable=False),
)

# The full text of conversations (by `word_id`) and pictures (by `id`), split by `word_index`. SQLAlchemy cannot declare
# such tables.
FULL_TEXT = tuple(
    f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} "
    "USING fts5(words, tokenize='unicode61 remove_diacritics 2', prefix='2 3')"
    for name in ("conversation_words", "picture_words")
)

# The checkpoints of turns (`checkpoints`): the tables of LangGraph's saver, exactly as it creates them.
CHECKPOINTS = (
    "CREATE TABLE IF NOT EXISTS checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
    "checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, "
    "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))",
    "CREATE TABLE IF NOT EXISTS writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
    "checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, "
    "channel TEXT NOT NULL, type TEXT, value BLOB, "
    "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))",
)
CHECKPOINT_TABLES = tuple(table(name, column("thread_id")) for name in ("checkpoints", "writes"))
