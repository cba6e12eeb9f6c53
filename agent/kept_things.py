"""What is kept, and needs no model to be looked at: conversations, pictures, files, styles, recipes, spend, traces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from agent.conversation import Conversation, ConversationInfo, DeletedConversation, TurnsPage
from agent.imaging.recipe_desk import RecipeService
from agent.messages import whole_characters
from agent.pictures import StoredPicture
from agent.redaction import secrets_of
from agent.settings import Settings
from agent.storage.conversations import ConversationStore
from agent.storage.gallery import Gallery
from agent.storage.images import ImageStore
from agent.storage.preferences import PreferenceStore
from agent.storage.quota import Quota
from agent.storage.spend import SpendBook
from agent.storage.styles import StyleLibrary
from agent.storage.traces import Traces
from agent.storage.workspace import Workspace, WorkspaceStore
from agent.trace import TraceStep

if TYPE_CHECKING:
    from agent.archive.archive import Archive
    from agent.storage.finding import ConversationHit


_MOST_REQUEST_CHARACTERS = 200


class LostRecords(NamedTuple):
    """A database that could not be read: its name in the home, and the backups that there are, with the newest's
    moment."""

    name: str
    backup_count: int
    newest_backup_at: datetime | None


class KeptThings:
    """All that a studio keeps below `settings.home`, by owner: nobody sees, or changes, what is another's.

    Every call may raise StorageFailure.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._images = ImageStore(settings.home)
        self._records = ConversationStore(settings.home, self._images, trace_limit_bytes=settings.trace_limit_bytes)
        self._quota = Quota(self._records, self._images, settings.visitor_limit_bytes, settings.visitor_limit_pictures)
        self._styles = StyleLibrary(settings.home)
        self._gallery = Gallery(settings.home, self._records, self._images)
        self._workspaces = WorkspaceStore(self._records, room=self._quota)
        self._spend = SpendBook(self._records)
        self._preferences = PreferenceStore(settings)
        self._recipes = RecipeService(self._records, self._images, secrets_of(settings))
        self._archive: Archive | None = None

    # Conversations

    async def new_conversation(self, owner: str = "local", request_id: str | None = None) -> Conversation:
        """Return a new, empty conversation; for a `request_id`, the one that the same request of the owner began.

        It is the same one in every process, also when several ask at once, and after a restart. One that was deleted
        since is not returned: a new one is begun, and the request is that one's from then on. Raises ValueError for a
        `request_id` that is not 1 to 200 characters long.
        """
        return await self._records.create(owner, request_id=_checked_request(request_id))

    async def conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a conversation. Raises RequestRefused when the owner has none of that id."""
        return await self._records.get(conversation_id, owner)

    async def turns_page(
        self, conversation_id: str, owner: str = "local", *, before: str | None = None, limit: int = 50
    ) -> TurnsPage:
        """Return a page of the turns of the branch that is shown, with the pictures that they show: the newest, or
        those before the turn `before`. No other turn is read.

        Raises RequestRefused when the owner has no such conversation, or no such turn is shown in it.
        """
        return await self._records.turns_page(conversation_id, owner, before, max(1, limit))

    async def conversations(self, owner: str = "local", limit: int = 50, offset: int = 0) -> list[ConversationInfo]:
        """Return the owner's conversations, the pinned first, then the newest; neither empty nor deleted ones."""
        return await self._records.list(owner, limit, offset)

    async def pinned_and_newest(self, owner: str = "local", count: int = 50) -> Sequence[ConversationInfo]:
        """Return all pinned conversations of the owner, then the `count` newest others; neither empty nor deleted."""
        return await self._records.pinned_and_newest(owner, count)

    async def newest_conversation(self, owner: str = "local") -> str | None:
        """Return the id of the owner's conversation that changed last, pinned or not; None where none has a title."""
        return await self._records.newest(owner)

    async def search_conversations(
        self, query: str, owner: str = "local", limit: int = 30
    ) -> Sequence[ConversationHit]:
        """Return the owner's conversations that hold every word of the query, the newest first, each with where."""
        return await self._records.search(owner, whole_characters(query), limit)

    async def rename_conversation(self, conversation_id: str, title: str, owner: str = "local") -> None:
        """Give a conversation a title for good. Raises RequestRefused for an empty or a too long one."""
        await self._records.rename(conversation_id, owner, whole_characters(title))

    async def pin_conversation(self, conversation_id: str, is_pinned: bool, owner: str = "local") -> None:
        """Have a conversation stand before the others in the list, or not any more."""
        await self._records.pin(conversation_id, owner, is_pinned)

    async def undelete_conversation(self, conversation_id: str, owner: str = "local") -> Conversation:
        """Return a deleted conversation, which is as it was before."""
        return await self._records.undelete(conversation_id, owner)

    async def trash(self, owner: str = "local", limit: int = 50, offset: int = 0) -> Sequence[DeletedConversation]:
        """Return the deleted conversations, the one that was deleted last first. Each is kept for 30 days at least."""
        return await self._records.trash(owner, limit, offset)

    async def delete_forever(self, conversation_id: str, owner: str = "local") -> None:
        """Remove a deleted conversation for good. Raises RequestRefused when there is none of that id in the trash."""
        await self._records.delete_forever(conversation_id, owner)

    async def empty_trash(self, owner: str = "local") -> int:
        """Remove all deleted conversations for good; return how many those were."""
        return await self._records.empty_trash(owner)

    async def duplicate_conversation(self, conversation_id: str, owner: str = "local", title: str = "") -> Conversation:
        """Return a copy of a conversation with every branch, under the same title unless one is given."""
        copied = await self._records.get(conversation_id, owner)
        await self._quota.check(
            owner,
            new_bytes=sum(picture.image.size_bytes for picture in copied.pictures),
            new_pictures=len(copied.pictures),
        )
        return await self._records.duplicate(conversation_id, owner, whole_characters(title))

    # Pictures

    async def picture(self, conversation_id: str, handle: str, owner: str = "local") -> StoredPicture:
        """Return a picture with its bytes. Raises RequestRefused when there is none of that handle."""
        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return StoredPicture(picture, await self._images.read(picture.image))

    async def unrecorded_picture(self, conversation_id: str, digest: str, owner: str = "local") -> tuple[bytes, str]:
        """Return bytes and type of a picture that came and that the full disk takes no record of.

        Raises RequestRefused when there is none of that digest.
        """
        await self._records.get(conversation_id, owner)
        image = self._images.offered(conversation_id, digest)
        return await self._images.read(image), image.mime_type

    async def thumbnail(
        self, conversation_id: str, handle: str, edge_px: int, owner: str = "local"
    ) -> tuple[bytes, str]:
        """Return a small version of a picture as WebP, its longer edge at most `edge_px`, and its type."""
        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return await self._images.thumbnail(picture.image.digest, edge_px, picture.handle), "image/webp"

    # Files

    def workspace(self, conversation_id: str, owner: str = "local") -> Workspace:
        """Return the files of a conversation; each call on them asks whether that is the owner's."""
        return self._workspaces.of(conversation_id, owner)

    # Libraries and books

    @property
    def styles(self) -> StyleLibrary:
        """The style library: curated styles, and each owner's own."""
        return self._styles

    @property
    def gallery(self) -> Gallery:
        """All pictures of an owner's conversations."""
        return self._gallery

    @property
    def recipes(self) -> RecipeService:
        """Pictures taken away with their recipe or without, and found again by one."""
        return self._recipes

    @property
    def spend(self) -> SpendBook:
        """What was spent, by conversation, day and month."""
        return self._spend

    @property
    def preferences(self) -> PreferenceStore:
        """What each owner chose for good: their caps."""
        return self._preferences

    @property
    def archive(self) -> Archive:
        """Conversations taken out as one file, and taken in again."""
        if self._archive is None:
            from agent.archive.archive import Archive

            self._archive = Archive(self._records, self._images, self.settings.home, room=self._quota)
        return self._archive

    async def lost_records(self) -> LostRecords | None:
        """Return what is known of records that could not be read and were set aside, until others are restored."""
        from agent.storage.backups import Backups

        def look() -> LostRecords | None:
            backups = Backups(self.settings.home)
            name = backups.unreadable()
            made = backups.all() if name is not None else []
            return LostRecords(name, len(made), made[0].made_at if made else None) if name is not None else None

        return await asyncio.to_thread(look)

    async def trace(
        self, conversation_id: str, turn_id: str | None = None, owner: str = "local"
    ) -> tuple[TraceStep, ...]:
        """Return the steps of a turn, or of all turns of every branch: what was sent, what came, how long, how much.

        Raises RequestRefused when the owner has no such conversation.
        """
        conversation = await self._records.get(conversation_id, owner)
        return await self.traces.steps(conversation.id, None if turn_id is None else [turn_id])

    @property
    def traces(self) -> Traces:
        """The steps of every turn, by conversation: whose that is, is for the caller to ask first."""
        return self._records.traces


def _checked_request(request_id: str | None) -> str | None:
    if request_id is None:
        return None
    if not 0 < len(request_id) <= _MOST_REQUEST_CHARACTERS:
        raise ValueError(f"a request id has 1 to {_MOST_REQUEST_CHARACTERS} characters, not {len(request_id)}")
    return whole_characters(request_id)
