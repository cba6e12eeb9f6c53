"""Export of pictures with or without their recipe, and search for the picture that a recipe describes."""

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
    """A picture and its file for download; the pixels are identical to those shown."""

    picture: Picture
    data: bytes


class RecipeService:
    """A service that returns picture files; an owner can get and find only their own pictures.

    A recipe never contains any of the `secrets`. Every method that takes a handle raises RequestRefused when the owner
    has no such picture; those that read the file raise it also when the file is gone.
    """

    def __init__(self, records: ConversationStore, images: ImageStore, secrets: Sequence[SecretStr] = ()) -> None:
        self._records = records
        self._images = images
        self._secrets = tuple(secrets)

    async def original(self, conversation_id: str, handle: str, owner: str) -> PictureFile:
        """Return the picture's stored file, unchanged."""
        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        return PictureFile(picture, await self._images.read(picture.image))

    async def with_recipe(
        self, conversation_id: str, handle: str, owner: str, *, key: SecretStr | None = None
    ) -> PictureFile:
        """Return the file with the picture's recipe embedded; a file that cannot carry one is returned unchanged."""
        from agent.imaging.provenance import embed, recipe_of

        conversation = await self._records.get(conversation_id, owner)
        picture = conversation.picture(handle)
        data = await self._images.read(picture.image)
        turn = await self._records.turn(conversation.id, picture.turn_id)
        recipe = recipe_of(
            picture,
            turn.settings if turn else None,
            conversation.all_pictures,
            conversation_title=conversation.title,
            secrets=[*self._secrets, *([key] if key else [])],
        )
        return PictureFile(picture, await asyncio.to_thread(embed, data, picture.image.mime_type, recipe))

    async def clean(self, conversation_id: str, handle: str, owner: str) -> PictureFile:
        """Return the file with nothing but the picture.

        Raises RequestRefused(PICTURE_UNREADABLE) also when the file cannot be parsed.
        """
        from agent.imaging.provenance import clean

        found = await self.original(conversation_id, handle, owner)
        return PictureFile(found.picture, await asyncio.to_thread(clean, found.data, found.picture.image.mime_type))

    async def turn_of(self, conversation_id: str, handle: str, owner: str) -> Turn | None:
        """Return the turn that the picture belongs to, in any branch."""
        conversation = await self._records.get(conversation_id, owner)
        return await self._records.turn(conversation.id, conversation.picture(handle).turn_id)

    async def keep_shortfall(self, conversation_id: str, handle: str, owner: str) -> None:
        """Record that the user accepts a picture that does not fully match the request."""
        conversation = await self._records.get(conversation_id, owner)
        await self._records.update_picture(conversation.id, conversation.picture(handle).handle, shortfall_kept=True)

    async def find(self, owner: str, recipe: Recipe) -> tuple[str, str] | None:
        """Return conversation and handle of the owner's picture that the recipe describes.

        Else those of its nearest source picture that the owner has; None when the owner has neither.
        """
        digests = [recipe.file_digest, *(parent.digest for parent in recipe.parents)]
        return await self._records.db.read(lambda connection: find_picture(connection, owner, digests))
