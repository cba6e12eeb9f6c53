"""What an archive holds, version 4: its files, their names and limits, and the schema of its JSON; the refusals of what
it may not hold; and a whole conversation as the archive's value, and back.

Turns, pictures and all they hold are those of the records, and read every older form of themselves. A change of the
schema is a new VERSION; `docs/archive-format.md` shows it, and a test compares. Version 1 had no `more_masks`, 2 no
effects and sizes of an `Adjustment`; up to 3 large signatures, stars and tags stood elsewhere (`from_version_3`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, StringConstraints
from pydantic.json_schema import models_json_schema

from agent.conversation import Turn, WholeConversation, WorkspaceFile
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ImagePart, SignedPart, Value
from agent.pictures import OriginalFile, Picture
from agent.storage.workspace import FileInfo

FORMAT = "aivista-archive"
VERSION = 4
MANIFEST = "manifest.json"
INDEX = "index.html"
MIME_OF_SUFFIX = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "avif": "image/avif",
}
SUFFIXES = tuple(MIME_OF_SUFFIX)
SUFFIX_OF_MIME = {mime_type: suffix for suffix, mime_type in MIME_OF_SUFFIX.items()}

ArchiveLanguage: TypeAlias = Literal["en", "zh-CN"]

_CONVERSATION = "conversations/[0-9]{4,5}"
_ANY_FILE = re.compile(
    rf"{re.escape(MANIFEST)}|{re.escape(INDEX)}|{_CONVERSATION}/conversation\.(?:json|md|html)"
    rf"|pictures/[0-9a-f]{{64}}\.(?:{'|'.join(SUFFIXES)})|(?:blobs|files)/[0-9a-f]{{64}}"
)
_ANY_FOLDER = re.compile(rf"conversations/|{_CONVERSATION}/|pictures/|blobs/|files/")
_FIRST_YEAR, _LAST_YEAR = 1970, 9000


@dataclass(frozen=True)
class ArchiveLimits:
    """What an archive may hold at most, in bytes and counts; one that is made keeps them, too.

    A picture of 64 megapixels with alpha, or of 32 with 16 bits, that cannot be compressed has 256 MB and a little. All
    files together may be `ratio` times as large as the archive, with `ratio_from_bytes` in any case.
    """

    archive_bytes: int = 4 << 30
    file_bytes: int = 264 << 20
    json_bytes: int = 64 << 20
    json_values: int = 2_000_000
    json_depth: int = 100
    files: int = 20_000
    directory_bytes: int = 4 << 20
    ratio: int = 100
    ratio_from_bytes: int = 64 << 20

    @property
    def of_visitors(self) -> ArchiveLimits:
        """The limits of an archive that a stranger sends: while its JSON is read, nobody else is answered."""
        return replace(self, json_bytes=min(self.json_bytes, 16 << 20), json_values=min(self.json_values, 400_000))


def is_file_name(name: str) -> bool:
    """Return whether an archive may hold a file of this name."""
    return _ANY_FILE.fullmatch(name) is not None


def is_folder_name(name: str) -> bool:
    """Return whether this is a folder of an archive, which a program that packs it again may name."""
    return _ANY_FOLDER.fullmatch(name) is not None


def is_moment(moment: datetime) -> bool:
    """Return whether something can have happened then, and wherever one is."""
    return moment.tzinfo is not None and _FIRST_YEAR < moment.year < _LAST_YEAR


def _in_utc(moment: datetime) -> datetime:
    if not is_moment(moment):
        raise ValueError("not a moment of ours")
    return moment.astimezone(UTC)


Moment: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count: TypeAlias = Annotated[int, Field(ge=0)]


class ArchivedFile(Value):
    """A file of the archive: its name, its size in bytes and the SHA-256 of what it holds."""

    name: str
    size_bytes: Count
    sha256: Digest


class ListedConversation(Value):
    """A conversation of the archive and the folder that it is in."""

    folder: Annotated[str, StringConstraints(pattern=rf"^{_CONVERSATION}$")]
    title: str
    created_at: Moment
    updated_at: Moment
    turn_count: Count
    picture_count: Count
    file_count: Count


class Manifest(Value):
    """`manifest.json`: what the archive is, and every other file of it.

    `created_at` is the moment of the newest change in it, none when it is empty: two archives of the same are the same
    bytes. `lost` are the digests of pictures that are spoken of and whose file was gone when the archive was made.
    """

    format: Literal["aivista-archive"]
    version: Literal[1, 2, 3, 4]
    app_version: str
    created_at: Moment | None
    language: ArchiveLanguage
    conversations: tuple[ListedConversation, ...]
    files: tuple[ArchivedFile, ...]
    lost: tuple[Digest, ...] = ()


class ArchivedWorkspaceFile(FileInfo):
    """A file of the conversation's workspace; what it holds is `files/<digest>`.

    `name` is what it is called in the workspace, folders and all: no file of the archive has that name.
    """

    digest: Digest


class ArchivedConversation(Value):
    """`conversation.json`: a conversation with every branch, as `agent.conversation.WholeConversation` tells it.

    Every turn stands after its `parent`; its `request_id`, `maximum_usd` and `is_imported` are not told. A picture's
    bytes are `pictures/<digest>.<suffix>`, at its own size and bit depth and without metadata; the file that an upload
    was is told (`original`), but stays at home, its digest with it. A large signature is `blobs/<signature_digest>`.
    """

    title: str
    created_at: Moment
    updated_at: Moment
    is_named: bool
    is_pinned: bool
    head: str | None
    turns: tuple[Turn, ...]
    pictures: tuple[Picture, ...]
    starred: tuple[str, ...]
    tags: dict[str, tuple[str, ...]]
    files: tuple[ArchivedWorkspaceFile, ...]


# `request_id` keeps a request from being paid twice at home, `maximum_usd` held its turn to a price there, and an
# import sets `is_imported` itself.
STAY_HOME = frozenset({"request_id", "maximum_usd", "is_imported"})
_NOT_TOLD: Any = {"turns": {"__all__": STAY_HOME}}


def conversation_json(archived: ArchivedConversation) -> bytes:
    """Return `conversation.json`."""
    return archived.model_dump_json(indent=1, exclude=_NOT_TOLD).encode()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of both kinds of JSON in an archive, under `$defs` as `Manifest` and
    `ArchivedConversation`."""
    _, schema = models_json_schema([(Manifest, "validation"), (ArchivedConversation, "validation")])
    return {"title": f"{FORMAT} {VERSION}", **_untitled(schema)}


def _untitled(schema: Any) -> Any:
    """Return the schema without pydantic's titles, which say each name once more, and without what is not told."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: one for key, one in schema.items() if key != "title" or isinstance(one, dict)}
    return {key: _untitled(one) for key, one in told.items() if key not in STAY_HOME}


_SHOWN_CHARACTERS = 60


def unreadable(detail: str = "") -> RequestRefused:
    """Return the refusal of what is no archive of ours, or is broken as a whole."""
    return RequestRefused(ErrorCode.ARCHIVE_UNREADABLE, provider_detail=detail[:200])


def unsafe(name: str) -> RequestRefused:
    """Return the refusal of an archive that holds a file of this name."""
    return RequestRefused(ErrorCode.ARCHIVE_UNSAFE, name=_shown(name))


def archive_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal of an archive, or of a file in it, that is larger than may be."""
    return RequestRefused(ErrorCode.ARCHIVE_TOO_LARGE, limit=limit_bytes >> 20)


def damaged(name: str, detail: str = "") -> RequestRefused:
    """Return the refusal of an archive in which this file is missing, too many, or not what the manifest says."""
    return RequestRefused(ErrorCode.ARCHIVE_DAMAGED, name=_shown(name), provider_detail=detail[:200])


def inconsistent(name: str, detail: str) -> RequestRefused:
    """Return the refusal of an archive in which this file does not hold what the format asks for."""
    return RequestRefused(ErrorCode.ARCHIVE_INCONSISTENT, name=_shown(name), provider_detail=detail[:200])


def not_a_picture(name: str) -> RequestRefused:
    """Return the refusal of an archive in which this file is no picture that can be read."""
    return RequestRefused(ErrorCode.ARCHIVE_PICTURE_UNREADABLE, name=_shown(name))


def export_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal to make an archive that could not be taken in again."""
    return RequestRefused(ErrorCode.EXPORT_TOO_LARGE, limit=limit_bytes >> 20)


def _shown(name: str) -> str:
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain if len(plain) <= _SHOWN_CHARACTERS else plain[: _SHOWN_CHARACTERS - 1] + "…"


Model = TypeVar("Model", bound=BaseModel)
Part = TypeVar("Part", bound=BaseModel)


def models_in(value: object) -> Iterator[BaseModel]:
    """Yield the value and every model inside of it, in the order of their fields. Plain JSON holds none."""
    if isinstance(value, BaseModel):
        yield value
        for name in type(value).model_fields:
            yield from models_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from models_in(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from models_in(one)


def images_in(value: object) -> Iterator[ImagePart]:
    """Yield every reference to a picture."""
    return (one for one in models_in(value) if isinstance(one, ImagePart))


def changed(value: Any, kind: type[Part], change: Callable[[Part], Part]) -> Any:
    """Return the value with each model of a kind inside of it changed; what holds none is the very same object."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, BaseModel):
        fields = dict(value)
        new = {name: changed(one, kind, change) for name, one in fields.items()}
        update = {name: one for name, one in new.items() if one is not fields[name]}
        return value.model_copy(update=update) if update else value
    if isinstance(value, tuple):
        items = tuple(changed(one, kind, change) for one in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def packed(whole: WholeConversation, lost: Collection[str] = ()) -> ArchivedConversation:
    """Return the conversation as an archive holds it. A part whose large signature is among the `lost` has none."""
    if lost:
        whole = changed(whole, SignedPart, lambda part: part.unsigned() if part.signature_digest in lost else part)
    # The file that was sent may say where it was taken, and the archive may be given to somebody.
    fields: dict[str, Any] = dict(changed(whole, OriginalFile, lambda file: file.model_copy(update={"digest": ""})))
    fields["files"] = tuple(
        ArchivedWorkspaceFile(
            digest=hashlib.sha256(file.content).hexdigest(), size_bytes=file.size_bytes, **_without(file, "content")
        )
        for file in whole.files
    )
    return ArchivedConversation(**fields)


def unpacked(archived: ArchivedConversation, read: Callable[[str], bytes]) -> WholeConversation:
    """Return the conversation of an archive, with what the files of its workspace hold. `read` is given the names of
    files of the archive."""
    fields: dict[str, Any] = dict(archived)
    fields["files"] = tuple(
        WorkspaceFile(content=read(f"files/{file.digest}"), **_without(file, "digest", "size_bytes"))
        for file in archived.files
    )
    return WholeConversation(**fields)


def _without(file: BaseModel, *names: str) -> dict[str, Any]:
    return {name: one for name, one in file if name not in names}


def from_version_3(told: Any) -> Any:
    """Return what `conversation.json` of the versions 1 to 3 told, as it is told now.

    Where a large signature belongs stood beside a turn's messages and a picture's answer, stars and tags with each
    picture; and there were the times of nodes and a mark that nothing sets any more. Raises what Python does for JSON
    of another shape: AttributeError, LookupError, TypeError, ValueError.
    """
    pictures = told["pictures"]
    of_pictures = [(one, [one["answer"]]) for one in pictures]
    for owner, messages in [*((one, one["messages"]) for one in told["turns"]), *of_pictures]:
        for gone in ("timings", "is_marked"):
            owner.pop(gone, None)
        for place in owner.pop("signatures"):
            if min(place["message"], place["part"]) < 0:
                raise LookupError("a place before the first")
            messages[place["message"]]["parts"][place["part"]]["signature_digest"] = place["digest"]
    starred = [one["handle"] for one in pictures if one.pop("is_starred")]
    tags = {one["handle"]: names for one in pictures if (names := one.pop("tags"))}
    return {**told, "starred": starred, "tags": tags}


def signatures_in(value: object) -> tuple[str, ...]:
    """Return the digests of the large signatures that its parts name, each once, in order."""
    parts = (one for one in models_in(value) if isinstance(one, SignedPart))
    return tuple(dict.fromkeys(one.signature_digest for one in parts if one.signature_digest))
