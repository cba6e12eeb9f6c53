"""What an archive holds, version 2: its files, their names and limits, and the schema of its JSON.

The conversation's own values (messages, components, receipts) are those of the leaves: they are what the records hold,
too, and read every older form of themselves. A change of the schema is a new VERSION; `docs/archive-format.md` shows
it, and a test compares. Version 1 had no `more_masks`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints
from pydantic.json_schema import models_json_schema

from agent.conversation import MaskedPicture, Timing, TurnState, Writer
from agent.events import Component
from agent.messages import ImagePart, PromptMessage, TokenUsage, Value
from agent.pictures import Blank, DriftRecord, EditRecord, Margins, OriginalFile, Receipt, ReferenceRole, Review
from agent.settings import TurnSettings

FORMAT = "aivista-archive"
VERSION = 2
MANIFEST = "manifest.json"
INDEX = "index.html"
SUFFIXES = ("png", "jpg", "webp", "gif", "heic", "avif")

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


def conversation_folder(number: int) -> str:
    """Return the folder of the conversation of this number, the first is 1."""
    return f"conversations/{number:04d}"


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
    version: Literal[1, 2]
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
    """Return the schema without pydantic's titles, which say each name once more."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _untitled(one) for key, one in schema.items() if key != "title" or isinstance(one, dict)}
