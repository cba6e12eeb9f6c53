"""What an archive holds, version 3: its files, their names and limits, and the schema of its JSON; the refusals of what
it may not hold; and a whole conversation as the archive's values, and back.

The conversation's own values (messages, components, receipts) are those of the leaves: they are what the records hold,
too, and read every older form of themselves. A change of the schema is a new VERSION; `docs/archive-format.md` shows
it, and a test compares. Version 1 had no `more_masks`, version 2 no effects and sizes of an `Adjustment`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, StringConstraints
from pydantic.json_schema import models_json_schema

from agent.conversation import MaskedPicture, Timing, Turn, TurnState, WholeConversation, WorkspaceFile, Writer
from agent.errors import ErrorCode, RequestRefused
from agent.events import Component
from agent.messages import ImagePart, PromptMessage, SignedPart, TokenUsage, Value
from agent.pictures import (
    Blank,
    DriftRecord,
    EditRecord,
    Margins,
    OriginalFile,
    Picture,
    Receipt,
    ReferenceRole,
    Review,
)
from agent.settings import TurnSettings

FORMAT = "aivista-archive"
VERSION = 3
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
_MOST_VERSIONS = 1 << 31


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


def _in_utc(moment: datetime) -> datetime:
    if not _FIRST_YEAR < moment.year < _LAST_YEAR:
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
    version: Literal[1, 2, 3]
    app_version: str
    created_at: Moment | None
    language: ArchiveLanguage
    conversations: tuple[ListedConversation, ...]
    files: tuple[ArchivedFile, ...]
    lost: tuple[Digest, ...] = ()


class SignaturePlace(Value):
    """Where a signature of more than 4096 bytes belongs: the message's and the part's index, from 0; the signature is
    the file `blobs/<digest>`."""

    message: Count
    part: Count
    digest: Digest


class ArchivedTurn(Value):
    """A turn. `parent` is the id of the turn before it, none for a first one; every parent stands before its children.

    `messages` come without their large `signatures`; smaller ones stand in them as base64. What `agent.conversation`
    says of a turn holds here, but for the `request_id`, which stays at home: it is what keeps a request from being
    paid twice there. So does `maximum_usd`, by which it was held to a price.
    """

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    parent: str | None
    text: str
    settings: TurnSettings
    started_at: Moment
    provider: str
    uploads: tuple[ImagePart, ...]
    editing: str | None
    references: tuple[str, ...]
    roles: dict[str, ReferenceRole]
    mask: ImagePart | None
    feather_px: int | None
    margins: Margins | None
    more_masks: tuple[MaskedPicture, ...] = ()
    state: TurnState
    messages: tuple[PromptMessage, ...]
    signatures: tuple[SignaturePlace, ...]
    components: tuple[Component, ...]
    usage: TokenUsage
    price_usd: Annotated[float, Field(ge=0)]
    seconds: Annotated[float, Field(ge=0)]
    timings: tuple[Timing, ...]


class ArchivedPicture(Value):
    """A picture of the conversation, whatever its branch; `answer` comes without its large `signatures`.

    What `agent.pictures` says of a picture holds here. Its bytes are `pictures/<digest>.<suffix>`, at the picture's own
    size and bit depth and without metadata; the file that an upload was is told (`original`), but stays at home, its
    digest with it. The person starred it when it `is_starred`, and gave it its `tags`.
    """

    handle: str
    image: ImagePart
    turn_id: str
    created_at: Moment
    parents: tuple[str, ...]
    answer: PromptMessage | None
    signatures: tuple[SignaturePlace, ...]
    receipt: Receipt | None
    alt: str
    after_stop: bool
    is_marked: bool
    review: Review | None
    round: int
    call: str
    edit: EditRecord | None
    drift: DriftRecord | None
    shortfall_kept: bool
    blank: Blank | None = None
    original: OriginalFile | None = None
    is_starred: bool
    tags: tuple[str, ...]


class ArchivedWorkspaceFile(Value):
    """A file of the conversation's workspace; what it holds is `files/<digest>`.

    `name` is what it is called in the workspace, folders and all: no file of the archive has that name. What
    `agent.conversation` says of such a file holds here.
    """

    name: str
    digest: Digest
    size_bytes: Count
    version: Annotated[int, Field(ge=1, le=_MOST_VERSIONS)]
    updated_at: Moment
    written_by: Writer
    is_untrusted: bool


class ArchivedConversation(Value):
    """`conversation.json`: a conversation with every branch. `head` is the newest turn of the branch that is shown; the
    title `is_named` when the person gave it."""

    title: str
    created_at: Moment
    updated_at: Moment
    is_named: bool
    is_pinned: bool
    head: str | None
    turns: tuple[ArchivedTurn, ...]
    pictures: tuple[ArchivedPicture, ...]
    files: tuple[ArchivedWorkspaceFile, ...]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of both kinds of JSON in an archive, under `$defs` as `Manifest` and
    `ArchivedConversation`."""
    _, schema = models_json_schema([(Manifest, "validation"), (ArchivedConversation, "validation")])
    return {"title": f"{FORMAT} {VERSION}", **_untitled(schema)}


def _untitled(schema: Any) -> Any:
    """Return the schema without pydantic's titles, which say each name once more, and without the digests by which
    parts name their signatures: in an archive their `signatures` do."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: one for key, one in schema.items() if key != "title" or isinstance(one, dict)}
    return {key: _untitled(one) for key, one in told.items() if key != "signature_digest"}


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


def with_images(model: Model, change: Callable[[ImagePart], ImagePart]) -> Model:
    """Return the value with each of its references to a picture changed; what holds none is the very same object."""
    changed = _changed(model, change)
    if not isinstance(changed, type(model)):
        raise TypeError("a reference was changed into something else")
    return changed


def _changed(value: Any, change: Callable[[ImagePart], ImagePart]) -> Any:
    if isinstance(value, ImagePart):
        return change(value)
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        new = {name: _changed(one, change) for name, one in fields.items()}
        update = {name: one for name, one in new.items() if one is not fields[name]}
        return value.model_copy(update=update) if update else value
    if isinstance(value, tuple):
        items = tuple(_changed(one, change) for one in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


_OF_A_TURN = tuple(ArchivedTurn.model_fields.keys() - {"messages", "signatures"})
_OF_A_PICTURE = tuple(ArchivedPicture.model_fields.keys() - {"original", "answer", "signatures", "is_starred", "tags"})
_OF_A_FILE = tuple(ArchivedWorkspaceFile.model_fields.keys() - {"digest", "size_bytes"})
_OF_ALL = tuple(ArchivedConversation.model_fields.keys() - {"turns", "pictures", "files"})


def packed(whole: WholeConversation, lost: Collection[str] = ()) -> ArchivedConversation:
    """Return the conversation as an archive holds it. A part whose large signature is among the `lost` has none."""
    turns: list[ArchivedTurn] = []
    for turn in whole.turns:
        messages, places = _placed(turn.messages, lost)
        turns.append(ArchivedTurn(**_fields(turn, _OF_A_TURN), messages=messages, signatures=places))
    starred = frozenset(whole.starred)
    pictures: list[ArchivedPicture] = []
    for picture in whole.pictures:
        answer, places = _placed((picture.answer,) if picture.answer else (), lost)
        light = ArchivedPicture(
            **_fields(picture, _OF_A_PICTURE),
            # The file that was sent may say where it was taken, and the archive may be given to somebody.
            original=_without_file(picture.original),
            answer=answer[0] if answer else None,
            signatures=places,
            is_starred=picture.handle in starred,
            tags=whole.tags.get(picture.handle, ()),
        )
        pictures.append(light)
    files = tuple(
        ArchivedWorkspaceFile(
            **_fields(file, _OF_A_FILE), digest=hashlib.sha256(file.content).hexdigest(), size_bytes=file.size_bytes
        )
        for file in whole.files
    )
    return ArchivedConversation(**_fields(whole, _OF_ALL), turns=tuple(turns), pictures=tuple(pictures), files=files)


def unpacked(archived: ArchivedConversation, read: Callable[[str], bytes]) -> WholeConversation:
    """Return the conversation of an archive, with what the files of its workspace hold. `read` is given the names of
    files of the archive."""
    turns = tuple(
        Turn(**_fields(turn, _OF_A_TURN), messages=_named(turn.messages, turn.signatures)) for turn in archived.turns
    )
    pictures: list[Picture] = []
    for one in archived.pictures:
        answer = _named((one.answer,) if one.answer else (), one.signatures)
        picture = Picture(
            **_fields(one, _OF_A_PICTURE),
            # An archive could name the file that somebody else has sent.
            original=_without_file(one.original),
            answer=answer[0] if answer else None,
        )
        pictures.append(picture)
    return WholeConversation(
        **_fields(archived, _OF_ALL),
        turns=turns,
        pictures=tuple(pictures),
        starred=tuple(one.handle for one in archived.pictures if one.is_starred),
        tags={one.handle: one.tags for one in archived.pictures if one.tags},
        files=tuple(
            WorkspaceFile(**_fields(one, _OF_A_FILE), content=read(f"files/{one.digest}")) for one in archived.files
        ),
    )


def _without_file(original: OriginalFile | None) -> OriginalFile | None:
    """Return what is known of the file that an upload was, where the file itself is not."""
    return original.model_copy(update={"digest": ""}) if original is not None else None


def signatures_in(value: object) -> tuple[str, ...]:
    """Return the digests of the large signatures that its parts name, each once, in order."""
    parts = (one for one in models_in(value) if isinstance(one, SignedPart))
    return tuple(dict.fromkeys(one.signature_digest for one in parts if one.signature_digest))


def _placed(
    messages: Sequence[PromptMessage], lost: Collection[str]
) -> tuple[tuple[PromptMessage, ...], tuple[SignaturePlace, ...]]:
    """Return the messages without the names of their large signatures, and where those belong."""
    places: list[SignaturePlace] = []
    light: list[PromptMessage] = []
    for m, message in enumerate(messages):
        parts = list(message.parts)
        for p, part in enumerate(parts):
            if not isinstance(part, SignedPart) or part.signature_digest is None:
                continue
            if part.signature_digest in lost:
                parts[p] = part.unsigned()
                continue
            places.append(SignaturePlace(message=m, part=p, digest=part.signature_digest))
            parts[p] = part.model_copy(update={"signature_digest": None})
        light.append(message.model_copy(update={"parts": tuple(parts)}))
    return tuple(light), tuple(places)


def _named(messages: Sequence[PromptMessage], places: Sequence[SignaturePlace]) -> tuple[PromptMessage, ...]:
    """Return the messages, whose parts name their large signatures again."""
    named = list(messages)
    for place in places:
        parts = list(named[place.message].parts)
        parts[place.part] = parts[place.part].model_copy(update={"signature_digest": place.digest})
        named[place.message] = named[place.message].model_copy(update={"parts": tuple(parts)})
    return tuple(named)


def _fields(value: BaseModel, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}
