"""What every route works with: who asks, the pictures and masks that were sent ahead, and the files of a form.

What is sent ahead is kept in memory, for an hour, for its owner alone.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from pydantic import SecretStr
from starlette.datastructures import FormData, UploadFile

from agent import MAX_MESSAGE_MEGABYTES, OPERATOR, Studio
from webui.api.auth import Buckets, Caller, Callers
from webui.api.problems import RefusalCode, Refused
from webui.http.sessions import Sessions
from webui.words import Words, choose_language, load_words

KEPT_S = 3600.0
# The studio's owner may send a whole message ahead, anybody else three pictures.
MOST_BYTES_OF_OPERATOR = MAX_MESSAGE_MEGABYTES << 20
MOST_BYTES_OF_ONE_OWNER = 64 << 20
MOST_BYTES = 512 << 20
_DATA_URL = re.compile(r"data:image/[a-z0-9.+-]{1,40}(?:;[a-z0-9=._-]{1,40})*;base64,", re.IGNORECASE)
_UPLOAD_ID = re.compile(r"up_[0-9a-f]{32}")


@dataclass(frozen=True)
class Api:
    """What the application is built with; `language` is that of callers who name none. `studio` is there once open."""

    studio: Callable[[], Studio]
    sessions: Sessions
    callers: Callers
    turns: Buckets
    uploads: Uploads
    language: str | None = None

    def words(self, headers: Mapping[str, str]) -> Words:
        """Return the words of the language that a caller asks for."""
        accepted = headers.get("accept-language", "")
        return load_words(choose_language(None if accepted else self.language, None, accepted))


@dataclass(frozen=True)
class Call:
    """One request: who asks, in which language, with which key of their own."""

    api: Api
    studio: Studio
    owner: str
    words: Words
    key: SecretStr | None = None


# Async, though it waits for nothing: FastAPI runs plain functions in threads, and the rates are the event loop's.
async def _call(request: Request) -> Call:
    api, caller = cast("Api", request.app.state.api), cast("Caller", request.scope["aivista.caller"])
    return Call(api, api.studio(), caller.owner, caller.words, caller.key)


async def _turn_call(request: Request) -> Call:
    call = await _call(request)
    call.api.turns.take_or_refuse(call.owner)
    return call


AnyCall = Annotated[Call, Depends(_call)]
# Of a request that begins a turn, or has one go on, which is counted by itself.
TurnCall = Annotated[Call, Depends(_turn_call)]


@dataclass(frozen=True)
class Upload:
    """A file that was sent ahead."""

    owner: str
    name: str
    data: bytes
    until_s: float


@dataclass
class Uploads:
    """The uploads of every owner; when there is no room, the owner's oldest go first. `clock` tells seconds."""

    clock: Callable[[], float] = time.time
    _kept: dict[str, Upload] = field(default_factory=dict)

    def put(self, owner: str, name: str, data: bytes) -> tuple[str, float]:
        """Return the id under which the owner names the file, and until when, as a Unix time."""
        now = self.clock()
        self._kept = {one: kept for one, kept in self._kept.items() if kept.until_s > now}
        upload_id = f"up_{secrets.token_hex(16)}"
        self._kept[upload_id] = Upload(owner, name, data, now + KEPT_S)
        own = [one for one, kept in self._kept.items() if kept.owner == owner]
        self._make_room(own, MOST_BYTES_OF_OPERATOR if owner == OPERATOR else MOST_BYTES_OF_ONE_OWNER)
        self._make_room(list(self._kept), MOST_BYTES)
        return upload_id, now + KEPT_S

    def read(self, owner: str, written: str) -> tuple[str, bytes]:
        """Return name and bytes of what a request names: an upload, or a data URL, whose name is empty.

        Raises Refused: UPLOAD_GONE; DATA_URLS_ONLY for any other address, which is never fetched.
        """
        if not _UPLOAD_ID.fullmatch(written):
            return "", data_of(written)
        found = self._kept.get(written)
        if found is None or found.owner != owner or found.until_s <= self.clock():
            raise Refused(RefusalCode.UPLOAD_GONE, id=written)
        return found.name, found.data

    def _make_room(self, names: list[str], most_bytes: int) -> None:
        # The newest stays whatever its size: one file is smaller than the room.
        while len(names) > 1 and sum(len(self._kept[name].data) for name in names) > most_bytes:
            del self._kept[names.pop(0)]


def data_of(url: str) -> bytes:
    """Return the bytes of a picture's data URL. Raises Refused(DATA_URLS_ONLY)."""
    head = _DATA_URL.match(url)
    if head is None:
        raise Refused(RefusalCode.DATA_URLS_ONLY)
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise Refused(RefusalCode.DATA_URLS_ONLY) from None


# Files of a form, in its schema.
FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}


def form_content(required: Sequence[str], properties: Mapping[str, object]) -> dict[str, Any]:
    """Return how the schema describes a body that is a form."""
    schema = {"type": "object", "required": list(required), "properties": dict(properties)}
    return {"multipart/form-data": {"schema": schema}}


def is_form(request: Request) -> bool:
    """Return whether the body is a form that may hold files."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def files_of(form: FormData, *fields: str) -> list[tuple[str, bytes]]:
    """Return names and bytes of the files of these fields. One without either, as a browser sends for none, is left
    out."""
    found = (one for field in fields for one in form.getlist(field) if isinstance(one, UploadFile))
    return [(one.filename or "", await one.read()) for one in found if one.filename or one.size]


def refuse_unknown(form: FormData, *, files: Collection[str], texts: Collection[str]) -> None:
    """Raise Refused for a file or a text in a field that takes none. Empty fields say nothing."""
    for name, value in form.multi_items():
        is_empty = not (value.filename or value.size) if isinstance(value, UploadFile) else not value
        if not is_empty and name not in (files if isinstance(value, UploadFile) else texts):
            raise Refused(RefusalCode.UNREADABLE, problem=f"{name[:40]}: Extra inputs are not permitted")
