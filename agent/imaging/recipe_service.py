"""Pictures on their way out, with their recipe or without, and back from a recipe to the picture it tells of."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from agent.conversation import Turn
from agent.pictures import Picture
from agent.storage.gallery_rows import find_picture

if TYPE_CHECKING:
    from agent.imaging.provenance import Recipe
    from agent.storage.conversations import ConversationStore
    from agent.storage.images import ImageStore


@dataclass(frozen=True)
class PictureFile:
    """A picture as it is taken away: its file has the pixels that were shown, to the bit."""

    picture: Picture
    data: bytes


class RecipeService:
    """Hands out the pictures of every owner; nobody gets, or finds, those of another.

    `secrets` are never told in a recipe. Every call that names a picture raises RequestRefused when the owner has none
    of that handle, or its file is gone.
    """

    def __init__(self, records: ConversationStore, images: ImageStore, secrets: Sequence[SecretStr] = ()) -> None:
        self._records = records
        self._images = images
        self._secrets = tuple(secrets)

    async def original(self, conversation_id: str, handle: str, owner: str) -> PictureFile:
        """Return the picture's file as it came, or as it was stored."""
        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return PictureFile(picture, await self._images.read(picture.image))

    async def with_recipe(
        self, conversation_id: str, handle: str, owner: str, *, key: SecretStr | None = None
    ) -> PictureFile:
        """Return the file with the picture's recipe in it; one that cannot carry any comes as it is."""
        from agent.imaging.provenance import embed, recipe_of

        found = await self.original(conversation_id, handle, owner)
        conversation = await self._records.get(conversation_id, owner)
        turn = await self._records.turn(conversation.id, found.picture.turn_id)
        recipe = recipe_of(
            found.picture,
            turn.settings if turn else None,
            conversation.all_pictures,
            conversation_title=conversation.title,
            secrets=[*self._secrets, *([key] if key else [])],
        )
        data = await asyncio.to_thread(embed, found.data, found.picture.image.mime_type, recipe)
        return PictureFile(found.picture, data)

    async def clean(self, conversation_id: str, handle: str, owner: str) -> PictureFile:
        """Return the file with nothing in it but the picture. Raises RequestRefused(PICTURE_UNREADABLE) also for a
        file that cannot be taken apart."""
        from agent.imaging.provenance import clean

        found = await self.original(conversation_id, handle, owner)
        return PictureFile(found.picture, await asyncio.to_thread(clean, found.data, found.picture.image.mime_type))

    async def turn_of(self, conversation_id: str, handle: str, owner: str) -> Turn | None:
        """Return the turn that the picture came with, in whichever branch."""
        conversation = await self._records.get(conversation_id, owner)
        return await self._records.turn(conversation.id, conversation.picture(handle).turn_id)

    async def keep_shortfall(self, conversation_id: str, handle: str, owner: str) -> None:
        """Put on record that the person is content with a picture that is not as it was asked."""
        conversation = await self._records.get(conversation_id, owner)
        await self._records.update_picture(conversation.id, conversation.picture(handle).handle, shortfall_kept=True)

    async def find(self, owner: str, recipe: Recipe) -> tuple[str, str] | None:
        """Return conversation and handle of the owner's picture that the recipe tells of, or of the nearest one that
        it was made from; None when the owner has neither."""
        digests = [recipe.file_digest, *(parent.digest for parent in recipe.parents)]
        return await self._records.db.read(lambda connection: find_picture(connection, owner, digests))
