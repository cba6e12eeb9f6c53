"""The archive format, version 4: its files, their names and limits, and the schema of its JSON.

Also the refusals of invalid archives, and the conversion of a whole conversation to the archive's model and back.

Turns, pictures and everything in them use the models of the records, which also read all their older forms. A change of
the schema requires a new VERSION; `docs/archive-format.md` contains the schema, and a test compares them. Version 1
had no `more_masks`, version 2 no effects and sizes in an `Adjustment`; up to version 3, large signatures, stars and
tags were stored elsewhere (`from_version_3`).
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
from agent.storage.workspace import FileInfo, shown_name

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
    """The limits of an archive, in bytes and counts; exports keep them too.

    An incompressible picture of 64 megapixels with alpha, or of 32 with 16 bits, has slightly over 256 MB. All files
    together may be `ratio` times as large as the archive; up to `ratio_from_bytes` is always allowed.
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
        """The limits for a visitor's archive: parsing its JSON blocks all other requests, so the JSON is smaller."""
        return replace(self, json_bytes=min(self.json_bytes, 16 << 20), json_values=min(self.json_values, 400_000))


def is_file_name(name: str) -> bool:
    """Return whether an archive may contain a file with this name."""
    return _ANY_FILE.fullmatch(name) is not None


def is_folder_name(name: str) -> bool:
    """Return whether this is a folder of an archive; programs that repack an archive may add entries for folders."""
    return _ANY_FOLDER.fullmatch(name) is not None


def is_moment(moment: datetime) -> bool:
    """Return whether a time has a time zone and a plausible year, so that it is valid in every time zone."""
    return moment.tzinfo is not None and _FIRST_YEAR < moment.year < _LAST_YEAR


def _in_utc(moment: datetime) -> datetime:
    if not is_moment(moment):
        raise ValueError("not a moment of ours")
    return moment.astimezone(UTC)


Moment: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count: TypeAlias = Annotated[int, Field(ge=0)]


class ArchivedFile(Value):
    """A file of the archive: its name, its size in bytes and the SHA-256 of its content."""

    name: str
    size_bytes: Count
    sha256: Digest


class ListedConversation(Value):
    """A conversation of the archive and its folder."""

    folder: Annotated[str, StringConstraints(pattern=rf"^{_CONVERSATION}$")]
    title: str
    created_at: Moment
    updated_at: Moment
    turn_count: Count
    picture_count: Count
    file_count: Count


class Manifest(Value):
    """`manifest.json`: a description of the archive and a list of all its other files.

    `created_at` is the time of the newest change in the archive, None when it is empty: two archives of the same
    content have the same bytes. `lost` are the digests of pictures that are referred to but whose file was missing when
    the archive was made.
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
    """A file of the conversation's workspace; its content is in `files/<digest>`.

    `name` is its path in the workspace; no file of the archive has that name.
    """

    digest: Digest


class ArchivedConversation(Value):
    """`conversation.json`: a conversation with every branch, like `agent.conversation.WholeConversation`.

    Every turn comes after its `parent`; its `request_id`, `maximum_usd` and `is_imported` are left out. A picture's
    bytes are in `pictures/<digest>.<suffix>`, at full size and bit depth and without metadata. The uploaded file is
    described (`original`), but neither the file nor its digest is exported. A large signature is in
    `blobs/<signature_digest>`.
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


# These are only valid in the studio of origin: `request_id` prevents a request from being paid twice, and
# `maximum_usd` limited the price of its turn. An import sets `is_imported` itself.
STAY_HOME = frozenset({"request_id", "maximum_usd", "is_imported"})
_NOT_TOLD: Any = {"turns": {"__all__": STAY_HOME}}


def conversation_json(archived: ArchivedConversation) -> bytes:
    """Return `conversation.json`."""
    return archived.model_dump_json(indent=1, exclude=_NOT_TOLD).encode()


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of both JSON files of an archive, in `$defs` as `Manifest` and `ArchivedConversation`."""
    _, schema = models_json_schema([(Manifest, "validation"), (ArchivedConversation, "validation")])
    return {"title": f"{FORMAT} {VERSION}", **_untitled(schema)}


def _untitled(schema: Any) -> Any:
    """Return the schema without Pydantic's titles, which only repeat the names, and without fields of STAY_HOME."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: one for key, one in schema.items() if key != "title" or isinstance(one, dict)}
    return {key: _untitled(one) for key, one in kept.items() if key not in STAY_HOME}


def unreadable(detail: str = "") -> RequestRefused:
    """Return the refusal of a file that is not an archive of ours, or cannot be opened."""
    return RequestRefused(ErrorCode.ARCHIVE_UNREADABLE, provider_detail=detail[:200])


def unsafe(name: str) -> RequestRefused:
    """Return the refusal of an archive that contains an entry with this forbidden name."""
    return RequestRefused(ErrorCode.ARCHIVE_UNSAFE, name=shown_name(name))


def archive_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal of an archive that is too large, or contains a file that is."""
    return RequestRefused(ErrorCode.ARCHIVE_TOO_LARGE, limit=limit_bytes >> 20)


def damaged(name: str, detail: str = "") -> RequestRefused:
    """Return the refusal of an archive in which this file is missing, unlisted, or different from the manifest."""
    return RequestRefused(ErrorCode.ARCHIVE_DAMAGED, name=shown_name(name), provider_detail=detail[:200])


def inconsistent(name: str, detail: str) -> RequestRefused:
    """Return the refusal of an archive in which the content of this file violates the format."""
    return RequestRefused(ErrorCode.ARCHIVE_INCONSISTENT, name=shown_name(name), provider_detail=detail[:200])


def not_a_picture(name: str) -> RequestRefused:
    """Return the refusal of an archive in which this file is not a readable picture."""
    return RequestRefused(ErrorCode.ARCHIVE_PICTURE_UNREADABLE, name=shown_name(name))


def export_too_large(limit_bytes: int) -> RequestRefused:
    """Return the refusal to make an archive that would be too large to import."""
    return RequestRefused(ErrorCode.EXPORT_TOO_LARGE, limit=limit_bytes >> 20)


Model = TypeVar("Model", bound=BaseModel)
Part = TypeVar("Part", bound=BaseModel)


def models_in(value: object) -> Iterator[BaseModel]:
    """Yield the value and every model inside it, in the order of the fields. Plain JSON contains none."""
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
    """Return the value with every model of a kind inside it changed; without any, the same object is returned."""
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
    """Return the conversation in its archive form. A part whose large signature is in `lost` gets no signature."""
    if lost:
        whole = changed(whole, SignedPart, lambda part: part.unsigned() if part.signature_digest in lost else part)
    # The uploaded file may contain the place where it was taken, and the archive may be given to other people.
    fields: dict[str, Any] = dict(changed(whole, OriginalFile, lambda file: file.model_copy(update={"digest": ""})))
    fields["files"] = tuple(
        ArchivedWorkspaceFile(
            digest=hashlib.sha256(file.content).hexdigest(), size_bytes=file.size_bytes, **_without(file, "content")
        )
        for file in whole.files
    )
    return ArchivedConversation(**fields)


def unpacked(archived: ArchivedConversation, read: Callable[[str], bytes]) -> WholeConversation:
    """Return the conversation of an archive, with its workspace files; `read` returns a file of the archive by name."""
    fields: dict[str, Any] = dict(archived)
    fields["files"] = tuple(
        WorkspaceFile(content=read(f"files/{file.digest}"), **_without(file, "digest", "size_bytes"))
        for file in archived.files
    )
    return WholeConversation(**fields)


def _without(file: BaseModel, *names: str) -> dict[str, Any]:
    return {name: one for name, one in file if name not in names}


def from_version_3(data: Any) -> Any:
    """Return a `conversation.json` of versions 1 to 3 in the current form.

    There, the positions of large signatures were beside a turn's messages and a picture's answer, stars and tags were
    in each picture, and there were node timings and a mark that are no longer used. Raises AttributeError, LookupError,
    TypeError or ValueError for JSON of another shape.
    """
    pictures = data["pictures"]
    of_pictures = [(one, [one["answer"]]) for one in pictures]
    for owner, messages in [*((one, one["messages"]) for one in data["turns"]), *of_pictures]:
        for gone in ("timings", "is_marked"):
            owner.pop(gone, None)
        for place in owner.pop("signatures"):
            if min(place["message"], place["part"]) < 0:
                raise LookupError("a place before the first")
            messages[place["message"]]["parts"][place["part"]]["signature_digest"] = place["digest"]
    starred = [one["handle"] for one in pictures if one.pop("is_starred")]
    tags = {one["handle"]: names for one in pictures if (names := one.pop("tags"))}
    return {**data, "starred": starred, "tags": tags}


def signatures_in(value: object) -> tuple[str, ...]:
    """Return the digests of the large signatures that the value's parts refer to, without duplicates, in order."""
    parts = (one for one in models_in(value) if isinstance(one, SignedPart))
    return tuple(dict.fromkeys(one.signature_digest for one in parts if one.signature_digest))
