"""Reading of an untrusted archive: nothing is extracted to a path from the archive, and everything is validated.

Only the names of the format are allowed, so no name can lead out of a folder. Sizes are compared with the declared ones
before anything is decompressed, and again during decompression. Calls block: run them in a thread.

The size, depth and number of values of JSON are checked before it is parsed. Then each conversation is checked for
consistency: everything it refers to exists, and its numbers are plausible. The page and the masked edits trust the
records, so the content is checked here, once.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import BinaryIO, get_args

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from agent.archive.format import (
    FORMAT,
    INDEX,
    MANIFEST,
    STAY_HOME,
    VERSION,
    ArchivedConversation,
    ArchivedFile,
    ArchivedWorkspaceFile,
    ArchiveLimits,
    Manifest,
    Model,
    archive_too_large,
    damaged,
    from_version_3,
    inconsistent,
    is_file_name,
    is_folder_name,
    is_moment,
    models_in,
    unreadable,
    unsafe,
)
from agent.conversation import Turn
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import Ask, PlanCard, ThoughtLog
from agent.imaging.intake import MAX_TEXT_CHARACTERS
from agent.imaging.masking import Notice, Reason
from agent.library import plain_tag
from agent.messages import ImagePart, SignedPart
from agent.pictures import (
    MAX_MEGAPIXELS,
    MAX_SIDE_PX,
    EditNotice,
    EditRecord,
    Margins,
    OriginalFile,
    Placement,
    parse_handle,
)
from agent.settings import TurnSettings
from agent.storage.titles import MAX_TITLE_CHARACTERS
from agent.storage.workspace import Limits as WorkspaceLimits
from agent.storage.workspace import is_in_the_way, is_name, key_of
from agent.tools.base import Reason as AskReason

# The errors that Python's zipfile raises for hostile bytes, found by fuzzing.
_BROKEN = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ArithmeticError, LookupError, RuntimeError, ValueError),
)
_ENCRYPTED = 0x1 | 0x40
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE_BYTES = 1 << 20


class _Head(BaseModel):
    """The fields of a manifest that are checked first, for any version."""

    model_config = ConfigDict(extra="ignore")

    format: JsonValue = None
    version: JsonValue = None


class ArchiveReader:
    """An open archive whose files match its manifest. The caller must close it.

    The constructor and every call may raise RequestRefused, with a message that the sender of the archive may see.
    """

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._limits = limits
        file.seek(0, io.SEEK_END)
        size_bytes = file.tell()
        if size_bytes > limits.archive_bytes:
            raise archive_too_large(limits.archive_bytes)
        file.seek(0)
        if file.read(2) != b"PK":
            raise unreadable("not a ZIP")
        try:
            self._zip = zipfile.ZipFile(_LimitedFile(file, limits))
        except _BROKEN as error:
            raise unreadable(str(error)) from error
        # The limit of the decompressed size of all files together.
        self.most_bytes = min(limits.archive_bytes, max(limits.ratio_from_bytes, limits.ratio * size_bytes))
        self._entries = self._checked_entries()
        self.manifest = self._read_manifest()
        self.files = self._checked_files()

    def close(self) -> None:
        """Close the archive; the caller closes the file."""
        self._zip.close()

    def read(self, name: str) -> bytes:
        """Return the content of a file of the manifest, checked against its size and digest."""
        file = self.files[name]
        data = self._unpacked(name)
        if hashlib.sha256(data).hexdigest() != file.sha256:
            raise damaged(name, "another digest")
        return data

    def conversation(self, folder: str) -> ArchivedConversation:
        """Return the conversation of a folder; its consistency is not checked here."""
        name = f"{folder}/conversation.json"
        data = self.read(name)
        if self.manifest.version <= 3:
            check_json(data, name, self._limits)
            try:
                data = json.dumps(from_version_3(json.loads(data))).encode()
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise inconsistent(name, "not as versions 1 to 3 told it") from error
        return parsed(data, ArchivedConversation, name, self._limits)

    @property
    def pictures(self) -> dict[str, str]:
        """The names of the picture files by digest."""
        return {one.sha256: one.name for one in self.files.values() if one.name.startswith("pictures/")}

    @property
    def blobs(self) -> frozenset[str]:
        """The digests of the large signatures."""
        return frozenset(one.sha256 for one in self.files.values() if one.name.startswith("blobs/"))

    @property
    def workspace_files(self) -> dict[str, int]:
        """The sizes in bytes of the workspace files, by digest."""
        return {one.sha256: one.size_bytes for one in self.files.values() if one.name.startswith("files/")}

    def _checked_entries(self) -> dict[str, zipfile.ZipInfo]:
        limits, entries = self._limits, self._zip.infolist()
        if len(entries) > limits.files:
            raise archive_too_large(limits.archive_bytes)
        files = {}
        for entry in entries:
            _check_entry(entry)
            if entry.is_dir():
                continue
            if entry.filename in files:
                raise unsafe(entry.filename)
            if entry.file_size > limits.file_bytes:
                raise archive_too_large(limits.file_bytes)
            files[entry.filename] = entry
        if sum(entry.file_size for entry in files.values()) > self.most_bytes:
            raise archive_too_large(self.most_bytes)
        return files

    def _read_manifest(self) -> Manifest:
        if MANIFEST not in self._entries:
            raise unreadable("no manifest")
        data = self._unpacked(MANIFEST)
        try:
            head = parsed(data, _Head, MANIFEST, self._limits)
        except RequestRefused as error:
            raise unreadable(error.info.provider_detail) from error
        if head.format != FORMAT:
            raise unreadable("another format")
        if isinstance(head.version, int) and head.version > VERSION:
            raise RequestRefused(ErrorCode.ARCHIVE_NEWER)
        return parsed(data, Manifest, MANIFEST, self._limits)

    def _checked_files(self) -> dict[str, ArchivedFile]:
        listed: dict[str, ArchivedFile] = {}
        for file in self.manifest.files:
            if file.name in listed or file.name == MANIFEST:
                raise damaged(file.name, "listed twice")
            if file.name not in self._entries:
                raise damaged(file.name, "missing")
            if file.size_bytes != self._entries[file.name].file_size:
                raise damaged(file.name, "another size")
            if file.name.startswith(("pictures/", "blobs/", "files/")) and file.sha256 not in file.name:
                raise damaged(file.name, "another digest")
            listed[file.name] = file
        for name in self._entries:
            if name not in listed and name != MANIFEST:
                raise damaged(name, "not in the manifest")
        # One folder for each conversation, and no file of a conversation that is not listed.
        folders = [one.folder for one in self.manifest.conversations]
        if len(set(folders)) != len(folders):
            raise damaged(MANIFEST, "a folder twice")
        needed = [f"{folder}/conversation.{ending}" for folder in folders for ending in ("json", "md", "html")]
        for name in (*needed, INDEX):
            if name not in listed:
                raise damaged(name, "missing")
        known = frozenset(needed)
        for name in listed:
            if name.startswith("conversations/") and name not in known:
                raise damaged(name, "of no conversation")
        return listed

    def _unpacked(self, name: str) -> bytes:
        entry = self._entries[name]
        data = bytearray()
        try:
            with self._zip.open(entry) as file:
                while piece := file.read(_PIECE_BYTES):
                    data += piece
                    if len(data) > entry.file_size:
                        break
        except _BROKEN as error:
            raise damaged(name, str(error)) from error
        if len(data) != entry.file_size:
            raise damaged(name, "another size")
        return bytes(data)


class _LimitedFile(io.BufferedIOBase):
    """A file for zipfile with a limited `read`: zipfile reads the whole directory at once, with any declared size."""

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._file = file
        self._limits = limits

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most `size` bytes, or all to the end. Raises RequestRefused above the limit of the directory."""
        most = self._limits.directory_bytes
        data = self._file.read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise archive_too_large(self._limits.archive_bytes)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    # zipfile cuts a name at a NUL and recognises folders by a trailing slash.
    is_known = is_folder_name(name) and not entry.file_size if entry.is_dir() else is_file_name(name)
    if entry.orig_filename != name or not is_known:
        raise unsafe(entry.orig_filename)
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFDIR if entry.is_dir() else stat.S_IFREG):
        raise unsafe(name)
    if entry.flag_bits & _ENCRYPTED:
        raise RequestRefused(ErrorCode.ARCHIVE_ENCRYPTED)
    if entry.compress_type not in _PACKINGS:
        raise unreadable("packed in another way")


# One structural character and everything before it. Possessive quantifiers, so that there is no backtracking.
_NEXT_SIGN = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"|[^"\[\]{},]++)*+([\[\]{},])', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b",": 0}


def parsed(data: bytes, model: type[Model], name: str, limits: ArchiveLimits) -> Model:
    """Return the value of a JSON file of an archive; `name` is used in the error message.

    Raises RequestRefused when it is too large, too deep, or does not match the model.
    """
    check_json(data, name, limits)
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise inconsistent(name, f"{place}: {first['msg']}") from error


def check_json(data: bytes, name: str, limits: ArchiveLimits) -> None:
    """Check that the JSON can be parsed without exhausting the memory. Raises RequestRefused otherwise."""
    if len(data) > limits.json_bytes:
        raise archive_too_large(limits.json_bytes)
    depth = values = place = 0
    # After an unterminated string there is no next character to find; the parser reports the error.
    while sign := _NEXT_SIGN.match(data, place):
        step = _STEPS[sign[1]]
        place, depth, values = sign.end(), depth + step, values + (step >= 0)
        if depth > limits.json_depth:
            raise inconsistent(name, "too deep")
        if values > limits.json_values:
            raise inconsistent(name, "too many values")


# The largest integer that every JSON reader represents exactly; no real count comes near it.
_LARGEST = float(1 << 53)
# The limits of: characters of one text, which may be a file that a tool read or a long answer; entries of one list;
# messages, and components, of one turn.
_LONGEST = 1_000_000
_MOST = 20_000
_MOST_OF_A_TURN = 2_000
_LONGEST_ID = 64
_MOST_VERSIONS = 1 << 31
_MATRIX_VALUES = 6
_LARGEST_SHIFT = 1e6
_BYTES_OF_A_BEND = 4
_CHOICE = re.compile(r"[\w:×. -]{0,32}")
_PARAMETER = re.compile(r"[a-z][a-z_0-9]{0,39}")
# Names that the parameters of a message cannot have: the functions that fill in messages have parameters of these
# names.
_TAKEN = frozenset({"key", "self", "count"})


@dataclass(frozen=True)
class PictureFacts:
    """The measured facts about a picture's file in the archive."""

    md5: str
    mime_type: str
    size_bytes: int
    width: int
    height: int
    bit_depth: int = 8


@dataclass(frozen=True)
class Contents:
    """The content of an archive apart from the conversations.

    `pictures` and `blobs` (large signatures) are by digest; `lost` are the digests of pictures that were lost before
    the archive was made; `files` are the sizes of the workspace files, by digest.
    """

    pictures: Mapping[str, PictureFacts]
    blobs: frozenset[str]
    lost: frozenset[str]
    files: Mapping[str, int]


class _Inconsistent(Exception):
    """An inconsistency, described for the debug report."""


def check_conversation(conversation: ArchivedConversation, contents: Contents, name: str) -> None:
    """Check that the conversation is consistent, in itself and with the archive's files.

    Raises RequestRefused(ARCHIVE_INCONSISTENT); `name` is the file's name for the error message.
    """
    try:
        _check_turns(conversation)
        _check_pictures(conversation)
        _check_files(conversation.files, contents.files)
        for value in models_in(conversation):
            _check_value(value, contents)
        _require(len(conversation.title) <= MAX_TITLE_CHARACTERS, "a title too long")
    except _Inconsistent as wrong:
        raise inconsistent(name, str(wrong)) from wrong


def _check_turns(conversation: ArchivedConversation) -> None:
    known: set[str] = set()
    for turn in conversation.turns:
        _require(0 < len(turn.id) <= _LONGEST_ID, "not a turn's id")
        _require(turn.id not in known, "two turns of one id")
        # Every parent comes before its children, so there can be no cycle.
        _require(turn.parent is None or turn.parent in known, "a turn without the one before it")
        known.add(turn.id)
    _require(conversation.head is None or conversation.head in known, "a head that is no turn")


def _check_pictures(conversation: ArchivedConversation) -> None:
    turns = {turn.id for turn in conversation.turns}
    handles = [picture.handle for picture in conversation.pictures]
    known = frozenset(handles)
    _require(len(known) == len(handles), "two pictures of one handle")
    for picture in conversation.pictures:
        _require(_is_handle(picture.handle), "not a handle")
        _require(picture.turn_id in turns, "a picture of no turn")
        _require(picture.round >= 1, "a round that is none")
    _require(known.issuperset(conversation.starred), "a star of no picture")
    for handle, tags in conversation.tags.items():
        _require(handle in known, "a tag of no picture")
        _require(all(tag and tag == plain_tag(tag) for tag in tags), "not a tag")
        _require(len({tag.casefold() for tag in tags}) == len(tags), "a tag twice")
    # No picture may descend from itself, whatever their order.
    try:
        TopologicalSorter({picture.handle: picture.parents for picture in conversation.pictures}).prepare()
    except CycleError as error:
        raise _Inconsistent("a picture that descends from itself") from error


def _check_files(files: Sequence[ArchivedWorkspaceFile], sizes: Mapping[str, int]) -> None:
    """Check the files of a workspace against the workspace's rules, as if each had been written here."""
    limits = WorkspaceLimits()
    _require(len(files) <= limits.files, "too many files")
    _require(sum(file.size_bytes for file in files) <= limits.total_bytes, "files too large together")
    for file in files:
        _require(is_name(file.name), "not a file's name")
        _require(file.size_bytes <= limits.file_bytes, "a file too large")
        _require(0 < file.version <= _MOST_VERSIONS, "a version out of range")
        _require(file.digest in sizes, "a file that is not there")
        _require(sizes[file.digest] == file.size_bytes, "a file of another size")
    keys = [key_of(file.name) for file in files]
    _require(len(set(keys)) == len(keys), "two files of one name")
    _require(not any(is_in_the_way(key, keys) for key in keys), "a file that is a folder")


def _check_image(image: ImagePart, contents: Contents) -> None:
    _require(image.handle is None or _is_handle(image.handle), "not a handle")
    if image.digest in contents.lost:
        return
    facts = contents.pictures.get(image.digest)
    if facts is None:
        raise _Inconsistent("a picture that is not there")
    _require((image.md5, image.size_bytes) == (facts.md5, facts.size_bytes), "a picture that is another")


def _check_value(value: BaseModel, contents: Contents) -> None:
    for name, found in value:
        for number in found if isinstance(found, tuple) else (found,):
            if isinstance(number, int | float):
                _require(math.isfinite(number) and abs(number) <= _LARGEST, f"a number out of range ({name})")
        if isinstance(found, datetime):
            _require(is_moment(found), f"a moment out of range ({name})")
        _require(_is_short(found), f"a text too long ({name})")
    if isinstance(value, SignedPart) and value.signature_digest is not None:
        # Otherwise the archive could refer to another user's signature.
        _require(value.signature_digest in contents.blobs, "a signature that is not there")
        _require(value.thought_signature is None, "two signatures of one part")
    match value:
        case TurnSettings():
            for choice in (value.aspect_ratio, value.resolution):
                _require(choice is None or _CHOICE.fullmatch(choice) is not None, "a setting out of range")
        case ImagePart():
            _check_image(value, contents)
        case OriginalFile():
            # Otherwise the archive could refer to another user's uploaded file.
            _require(not value.digest, "a file that stays at home")
        case Turn():
            _require(not value.model_fields_set & STAY_HOME, "what stays at home")
            _require(min(value.price_usd, value.seconds) >= 0, "less than nothing")
            _require(len(value.text) <= MAX_TEXT_CHARACTERS, "words too long")
            _require(max(len(value.messages), len(value.components)) <= _MOST_OF_A_TURN, "a turn too long")
            feathers = [value.feather_px, *(one.feather_px for one in value.more_masks)]
            _require(all(one is None or 0 <= one <= MAX_SIDE_PX for one in feathers), "a feather out of range")
        case Margins():
            sides = (value.left, value.top, value.right, value.bottom)
            _require(all(0 <= side <= MAX_SIDE_PX for side in sides), "margins out of range")
        case EditRecord():
            _require(value.reason in set(Reason), "a reason nobody knows")
        case Placement():
            _check_placement(value)
        case EditNotice():
            _require(value.code in set(Notice), "a notice nobody knows")
            _check_parameters(value.parameters)
        case PlanCard():
            _require(all(code in set(Notice) for plan in value.plans for code in plan.notices), "a notice nobody knows")
            _require(bool(value.plans), "a plan of nothing")
        case Ask():
            # The page shows why a call waited, and its arguments, which are JSON and may be cut off.
            _require(value.reason in get_args(AskReason), "a reason nobody knows")
            try:
                check_json(value.arguments.encode(), "", ArchiveLimits())
            except RequestRefused as refused:
                raise _Inconsistent("arguments too deep") from refused
        case ThoughtLog():
            _require(isinstance(value.parameters.get("count", 1), int), "a count that is none")
            _check_parameters({name: one for name, one in value.parameters.items() if name != "count"})
        case ErrorInfo():
            _check_parameters({name: one for name, one in value.parameters.items() if name != "count"})


def _is_short(value: object) -> bool:
    if isinstance(value, str | bytes):
        return len(value) <= _LONGEST
    if isinstance(value, tuple | list):
        return len(value) <= _MOST and all(map(_is_short, value))
    if isinstance(value, dict):
        return len(value) <= _MOST and all(_is_short(key) and _is_short(one) for key, one in value.items())
    return True


def _check_placement(placement: Placement) -> None:
    """Check the sizes from which masked edits allocate memory."""
    left, top, width, height = placement.box
    for across, down in ((width, height), placement.frame, placement.work):
        _require(min(across, down) >= 1 and max(across, down) <= MAX_SIDE_PX, "a size out of range")
        _require(across * down <= MAX_MEGAPIXELS * 1_000_000, "a size out of range")
    _require(max(abs(left), abs(top)) <= MAX_SIDE_PX, "a place out of range")
    _require(0 <= placement.feather_px <= MAX_SIDE_PX, "a feather out of range")
    _require(len(placement.matrix) == _MATRIX_VALUES, "a matrix of another size")
    _require(all(abs(value) <= _LARGEST_SHIFT for value in placement.matrix), "a matrix out of range")
    bends = placement.bends_rows * placement.bends_columns * _BYTES_OF_A_BEND
    _require(min(placement.bends_rows, placement.bends_columns) >= 0, "bends out of range")
    _require(len(placement.bends) == bends or not placement.bends, "bends of another size")


def _check_parameters(parameters: Mapping[str, float | str]) -> None:
    for name, value in parameters.items():
        _require(_PARAMETER.fullmatch(name) is not None and name not in _TAKEN, "a parameter nobody knows")
        _require(isinstance(value, str) or math.isfinite(value), "a number out of range")


def _is_handle(name: str) -> bool:
    handle = parse_handle(name)
    return handle is not None and str(handle) == name


def _require(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise _Inconsistent(otherwise)
