"""Pictures found by the digest of their file, as a recipe names them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, String, literal_column, select

from agent.storage.tables import CONVERSATIONS, PICTURES

_MOST_DIGESTS = 100
# Without an index: SQLite has one for the digest, which leaves a row or two, and no statistics to know it by.
_owner_unindexed = literal_column("+pictures.owner", String)


def find_picture(connection: Connection, owner: str, digests: Sequence[str]) -> tuple[str, str] | None:
    """Return conversation and handle of the owner's picture with the first of these digests that is known at all.

    Of several the newest. Pictures and conversations that are deleted are not there.
    """
    wanted = [digest for digest in dict.fromkeys(digests) if digest][:_MOST_DIGESTS]
    rows = connection.execute(
        select(PICTURES.c.digest, PICTURES.c.conversation_id, PICTURES.c.handle)
        .join(CONVERSATIONS, CONVERSATIONS.c.id == PICTURES.c.conversation_id)
        .where(PICTURES.c.digest.in_(wanted), _owner_unindexed == owner)
        .where(PICTURES.c.deleted_at.is_(None), CONVERSATIONS.c.deleted_at.is_(None))
        .order_by(PICTURES.c.created_at, PICTURES.c.id)
    )
    known = {row.digest: (row.conversation_id, row.handle) for row in rows}
    return next((known[digest] for digest in wanted if digest in known), None)
