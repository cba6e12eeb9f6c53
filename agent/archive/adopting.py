"""A conversation from an archive, made one of ours: what only its first home could make good of stays behind.

* Turns get ids of our own: the journal of paid calls and the checkpoints go by them, and an archive could name
  somebody else's. That a turn which ran or waited is stopped, since it has neither here, is up to the records.
* What its files hold came from outside, whatever it says of them, as do its turns (`Turn.is_imported`).
* A provider's search suggestions are HTML, shown as they came; of an archive nobody can say where they came from.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Mapping

from agent.archive.consistency import Contents, PictureFacts
from agent.archive.kinds import MIME_OF_SUFFIX
from agent.archive.packing import without_file
from agent.archive.walking import with_images
from agent.conversation import Turn, WholeConversation
from agent.events import Component, SearchNote
from agent.messages import ImagePart
from agent.pictures import Picture

_KNOWN_TYPES = frozenset(MIME_OF_SUFFIX.values())


class Adoption:
    """What makes the conversations of one archive ours."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._secret = secrets.token_bytes(32)

    def adopted(self, whole: WholeConversation) -> WholeConversation:
        """Return the conversation as it goes on record."""
        ids = {turn.id: uuid.uuid4().hex for turn in whole.turns}
        whole = with_images(whole, self._image)
        turns = tuple(_adopted_turn(turn, ids) for turn in whole.turns)
        pictures = tuple(_adopted_picture(one, ids) for one in whole.pictures)
        head = ids[whole.head] if whole.head is not None else None
        files = tuple(one.model_copy(update={"is_untrusted": True}) for one in whole.files)
        return whole.model_copy(update={"turns": turns, "pictures": pictures, "head": head, "files": files})

    def _image(self, image: ImagePart) -> ImagePart:
        """Return the reference with the size and, where it claims none of ours, the type that its file has."""
        facts = self._contents.pictures.get(image.digest)
        if facts is None:
            # Somebody else's picture may have the digest of one that is said to be lost.
            digest = hashlib.sha256(self._secret + image.digest.encode()).hexdigest()
            return image.model_copy(update={"digest": digest, "mime_type": _known_type(image.mime_type)})
        update = _measured(image, facts)
        return image.model_copy(update=update) if update else image


def _measured(image: ImagePart, facts: PictureFacts) -> dict[str, object]:
    update: dict[str, object] = {}
    if image.width is not None and image.height is not None:
        if (image.width, image.height) != (facts.width, facts.height):
            update |= {"width": facts.width, "height": facts.height}
    elif image.width is not None or image.height is not None:
        update |= {"width": None, "height": None}
    if image.mime_type not in _KNOWN_TYPES:
        update["mime_type"] = facts.mime_type
    if image.bit_depth != facts.bit_depth:
        update["bit_depth"] = facts.bit_depth
    return update


def _known_type(mime_type: str) -> str:
    return mime_type if mime_type in _KNOWN_TYPES else "image/png"


def _adopted_picture(picture: Picture, ids: Mapping[str, str]) -> Picture:
    # An archive could name the file that somebody else has sent.
    original = without_file(picture.original) if picture.original is not None else None
    return picture.model_copy(update={"turn_id": ids[picture.turn_id], "original": original})


def _adopted_turn(turn: Turn, ids: Mapping[str, str]) -> Turn:
    components = tuple(map(_adopted_component, turn.components))
    parent = ids[turn.parent] if turn.parent is not None else None
    return turn.model_copy(update={"id": ids[turn.id], "parent": parent, "components": components})


def _adopted_component(component: Component) -> Component:
    return component.model_copy(update={"suggestions_html": ""}) if isinstance(component, SearchNote) else component
