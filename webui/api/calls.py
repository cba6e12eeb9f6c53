"""What every route works with: the caller, the pictures and masks that were uploaded before, and files of a form.

Uploads are kept in memory for an hour, for their owner alone.
"""

from __future__ import annotations

import base64
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
# The studio's owner may upload a whole message, others three pictures.
MOST_BYTES_OF_OPERATOR = MAX_MESSAGE_MEGABYTES << 20
MOST_BYTES_OF_ONE_OWNER = 64 << 20
MOST_BYTES = 512 << 20
_DATA_URL = re.compile(r"data:image/[a-z0-9.+-]{1,40}(?:;[a-z0-9=._-]{1,40})*;base64,", re.IGNORECASE)
_UPLOAD_ID = re.compile(r"up_[0-9a-f]{32}")


@dataclass(frozen=True)
class Api:
    """The parts that the application is built with; `language` is the default. `studio` exists once the server is
    open."""

    studio: Callable[[], Studio]
    sessions: Sessions
    callers: Callers
    turns: Buckets
    uploads: Uploads
    language: str | None = None

    def words(self, headers: Mapping[str, str]) -> Words:
        """Return the texts of the caller's language."""
        accepted = headers.get("accept-language", "")
        return load_words(choose_language(None if accepted else self.language, None, accepted))


@dataclass(frozen=True)
class Call:
    """One request: its caller, their language and their own key."""

    api: Api
    studio: Studio
    owner: str
    words: Words
    key: SecretStr | None = None


# Async, though it awaits nothing: FastAPI runs plain functions in threads, but the limits belong to the event loop.
async def _call(request: Request) -> Call:
    api, caller = cast("Api", request.app.state.api), cast("Caller", request.scope["aivista.caller"])
    return Call(api, api.studio(), caller.owner, caller.words, caller.key)


AnyCall = Annotated[Call, Depends(_call)]


async def _turn_call(call: AnyCall) -> Call:
    call.api.turns.take_or_refuse(call.owner)
    return call


# For a request that begins or resumes a turn, which has a limit of its own.
TurnCall = Annotated[Call, Depends(_turn_call)]


@dataclass(frozen=True)
class Upload:
    """An uploaded file."""

    owner: str
    name: str
    data: bytes
    until_s: float


@dataclass
class Uploads:
    """The uploads of every owner; without room, the owner's oldest are dropped. `clock` returns seconds."""

    clock: Callable[[], float] = time.time
    _kept: dict[str, Upload] = field(default_factory=dict)

    def put(self, owner: str, name: str, data: bytes) -> tuple[str, float]:
        """Return the id of the new upload, and when it expires, as a Unix time."""
        now = self.clock()
        self._kept = {one: kept for one, kept in self._kept.items() if kept.until_s > now}
        upload_id = f"up_{secrets.token_hex(16)}"
        self._kept[upload_id] = Upload(owner, name, data, now + KEPT_S)
        own = [one for one, kept in self._kept.items() if kept.owner == owner]
        self._make_room(own, MOST_BYTES_OF_OPERATOR if owner == OPERATOR else MOST_BYTES_OF_ONE_OWNER)
        self._make_room(list(self._kept), MOST_BYTES)
        return upload_id, now + KEPT_S

    def read(self, owner: str, written: str) -> tuple[str, bytes]:
        """Return name and bytes of an upload, or of a data URL, which has an empty name.

        Raises Refused: UPLOAD_GONE; DATA_URLS_ONLY for any other address, which is never fetched.
        """
        if not _UPLOAD_ID.fullmatch(written):
            return "", data_of(written)
        found = self._kept.get(written)
        if found is None or found.owner != owner or found.until_s <= self.clock():
            raise Refused(RefusalCode.UPLOAD_GONE, id=written)
        return found.name, found.data

    def _make_room(self, names: list[str], most_bytes: int) -> None:
        # The newest always stays: one file is smaller than the room.
        while len(names) > 1 and sum(len(self._kept[name].data) for name in names) > most_bytes:
            del self._kept[names.pop(0)]


def data_of(url: str) -> bytes:
    """Return the bytes of a picture's data URL. Raises Refused(DATA_URLS_ONLY)."""
    head = _DATA_URL.match(url)
    if head is None:
        raise Refused(RefusalCode.DATA_URLS_ONLY)
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except ValueError:
        raise Refused(RefusalCode.DATA_URLS_ONLY) from None


# Files of a form, in its schema.
FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}


def form_content(required: Sequence[str], properties: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema of a body that is a form."""
    schema = {"type": "object", "required": list(required), "properties": dict(properties)}
    return {"multipart/form-data": {"schema": schema}}


def is_form(request: Request) -> bool:
    """Return whether the body is a form that may hold files."""
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


async def files_of(form: FormData, *fields: str) -> list[tuple[str, bytes]]:
    """Return names and bytes of the files in these fields, without empty ones, as a browser sends for no file."""
    found = (one for field in fields for one in form.getlist(field) if isinstance(one, UploadFile))
    return [(one.filename or "", await one.read()) for one in found if one.filename or one.size]


def refuse_unknown(form: FormData, *, files: Collection[str], texts: Collection[str]) -> None:
    """Raise Refused for a file or text in an unknown field. Empty fields are ignored."""
    for name, value in form.multi_items():
        is_empty = not (value.filename or value.size) if isinstance(value, UploadFile) else not value
        if not is_empty and name not in (files if isinstance(value, UploadFile) else texts):
            raise Refused(RefusalCode.UNREADABLE, problem=f"{name[:40]}: Extra inputs are not permitted")
