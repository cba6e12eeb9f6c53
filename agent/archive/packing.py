"""A whole conversation as the archive's values, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from agent.archive.format import (
    ArchivedConversation,
    ArchivedPicture,
    ArchivedTurn,
    ArchivedWorkspaceFile,
    SignaturePlace,
)
from agent.conversation import Turn, WholeConversation, WorkspaceFile
from agent.messages import PromptMessage
from agent.pictures import OriginalFile, Picture
from agent.storage.signatures import Place, large_signatures, put_back, take_out

_OF_A_TURN = tuple(ArchivedTurn.model_fields.keys() - {"messages", "signatures"})
_OF_A_PICTURE = tuple(ArchivedPicture.model_fields.keys() - {"answer", "signatures", "is_starred", "tags"})
_OF_A_FILE = tuple(ArchivedWorkspaceFile.model_fields.keys() - {"digest", "size_bytes"})
_OF_ALL = tuple(ArchivedConversation.model_fields.keys() - {"turns", "pictures", "files"})


def packed(whole: WholeConversation) -> tuple[ArchivedConversation, Mapping[str, bytes]]:
    """Return the conversation as an archive holds it, and its large signatures by their digests, in order."""
    blobs: dict[str, bytes] = {}
    turns = tuple(_packed_turn(turn, blobs) for turn in whole.turns)
    starred = frozenset(whole.starred)
    pictures = tuple(
        _packed_picture(picture, blobs, picture.handle in starred, whole.tags.get(picture.handle, ()))
        for picture in whole.pictures
    )
    files = tuple(map(_packed_file, whole.files))
    return ArchivedConversation(**_fields(whole, _OF_ALL), turns=turns, pictures=pictures, files=files), blobs


def unpacked(
    archived: ArchivedConversation, read_blob: Callable[[str], bytes], read_file: Callable[[str], bytes]
) -> WholeConversation:
    """Return the conversation of an archive, its signatures whole again, with what its files hold. `read_blob` and
    `read_file` are given their digests."""
    turns = tuple(
        Turn(**_fields(turn, _OF_A_TURN), messages=_whole(turn.messages, turn.signatures, read_blob))
        for turn in archived.turns
    )
    pictures = tuple(_unpacked_picture(picture, read_blob) for picture in archived.pictures)
    files = tuple(WorkspaceFile(**_fields(one, _OF_A_FILE), content=read_file(one.digest)) for one in archived.files)
    return WholeConversation(
        **_fields(archived, _OF_ALL),
        turns=turns,
        pictures=pictures,
        starred=tuple(one.handle for one in archived.pictures if one.is_starred),
        tags={one.handle: one.tags for one in archived.pictures if one.tags},
        files=files,
    )


def _packed_turn(turn: Turn, blobs: dict[str, bytes]) -> ArchivedTurn:
    messages, places = _light(turn.messages, blobs)
    return ArchivedTurn(**_fields(turn, _OF_A_TURN), messages=messages, signatures=places)


def _packed_picture(
    picture: Picture, blobs: dict[str, bytes], is_starred: bool, tags: tuple[str, ...]
) -> ArchivedPicture:
    answer, places = _light((picture.answer,) if picture.answer else (), blobs)
    if picture.original is not None:
        # It may say where it was taken, and the archive may be given to somebody.
        picture = picture.model_copy(update={"original": without_file(picture.original)})
    return ArchivedPicture(
        **_fields(picture, _OF_A_PICTURE),
        answer=answer[0] if answer else None,
        signatures=places,
        is_starred=is_starred,
        tags=tags,
    )


def without_file(original: OriginalFile) -> OriginalFile:
    """Return what is known of the file that an upload was, where the file itself is not."""
    return original.model_copy(update={"digest": ""})


def _packed_file(file: WorkspaceFile) -> ArchivedWorkspaceFile:
    digest = hashlib.sha256(file.content).hexdigest()
    return ArchivedWorkspaceFile(**_fields(file, _OF_A_FILE), digest=digest, size_bytes=file.size_bytes)


def _unpacked_picture(picture: ArchivedPicture, read_blob: Callable[[str], bytes]) -> Picture:
    answer = _whole((picture.answer,) if picture.answer else (), picture.signatures, read_blob)
    return Picture(**_fields(picture, _OF_A_PICTURE), answer=answer[0] if answer else None)


def _light(
    messages: tuple[PromptMessage, ...], blobs: dict[str, bytes]
) -> tuple[tuple[PromptMessage, ...], tuple[SignaturePlace, ...]]:
    large = large_signatures(messages)
    if not large:
        return messages, ()
    digests = [hashlib.sha256(signature).hexdigest() for signature in large]
    blobs.update(zip(digests, large, strict=True))
    light, places = take_out(messages, digests)
    return light, tuple(SignaturePlace(**place.model_dump()) for place in places)


def _whole(
    messages: Sequence[PromptMessage], places: Sequence[SignaturePlace], read_blob: Callable[[str], bytes]
) -> tuple[PromptMessage, ...]:
    return put_back(messages, [Place(**place.model_dump()) for place in places], read_blob)


def _fields(value: BaseModel, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}
