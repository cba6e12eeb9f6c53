"""The addresses of the files panel: what files there are, what they hold, changes to them, and running one."""

from __future__ import annotations

import asyncio
import io
import re
import secrets
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import (
    NEW_FILE,
    AivistaError,
    ErrorCode,
    FileInfo,
    RequestRefused,
    Studio,
    Value,
    Workspace,
    WorkspaceFile,
    checked_file_name,
)
from webui.file_kinds import is_program, kind_of, language_of, picture_type
from webui.panels.file_views import differences_html, run_html
from webui.sessions import COOKIE, Sessions, Visitor
from webui.whole_json import whole_body

# A file of 1 MB as JSON: a control character takes six bytes there.
_MOST_JSON_BYTES = 7 << 20
_MOST_UPLOAD_BYTES = 1 << 20
_MOST_KEPT = 200
_MOST_KEPT_BYTES = 32 << 20
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]
Version: TypeAlias = Annotated[int, Field(ge=NEW_FILE, lt=1 << 62)]


class Named(Value):
    """A file that is meant."""

    name: Name


class Written(Named):
    """A text to be saved; `version` is the one that the person saw, `None` whichever it is."""

    text: str
    version: Version | None = None


class Renamed(Named):
    """A file and its new name."""

    new_name: Name


class Deleted(Value):
    """Files to be deleted."""

    names: Annotated[tuple[Name, ...], Field(min_length=1, max_length=_MOST_KEPT)]


class Back(Value):
    """Files to be brought back, by what their deletion was answered with."""

    token: Annotated[str, Field(max_length=64)]


class Compared(Named):
    """A text that the person has not saved, to be compared with what is saved."""

    text: str


@dataclass(frozen=True)
class _Thrown:
    owner: str
    conversation_id: str
    files: tuple[WorkspaceFile, ...]


@dataclass
class Bin:
    """What was deleted last, for as long as there is room for it: it comes back as it was, marks and all."""

    _thrown: dict[str, _Thrown] = field(default_factory=dict)

    def put(self, owner: str, conversation_id: str, files: Sequence[WorkspaceFile]) -> str:
        """Return the name under which the owner takes the files back."""
        token = secrets.token_urlsafe(16)
        self._thrown[token] = _Thrown(owner, conversation_id, tuple(files))
        while len(self._thrown) > 1 and (len(self._thrown) > _MOST_KEPT or self._size() > _MOST_KEPT_BYTES):
            del self._thrown[next(iter(self._thrown))]
        return token

    def files(self, owner: str, conversation_id: str, token: str) -> tuple[WorkspaceFile, ...]:
        """Return the files. Raises RequestRefused(FILE_NOT_FOUND) when they are not there any more."""
        thrown = self._thrown.get(token)
        if thrown is None or (thrown.owner, thrown.conversation_id) != (owner, conversation_id):
            raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name="…")
        return thrown.files

    def forget(self, token: str) -> None:
        """Let go of files that are back."""
        self._thrown.pop(token, None)

    def _size(self) -> int:
        return sum(file.size_bytes for one in self._thrown.values() for file in one.files)


@dataclass(frozen=True)
class _Asked:
    """A request, by whom, and the files of the conversation that it names."""

    visitor: Visitor
    request: Request
    workspace: Workspace

    @property
    def conversation_id(self) -> str:
        return self.workspace.place.conversation_id

    @property
    def name(self) -> str:
        return self.request.query_params.get("name", "")


@dataclass(frozen=True)
class _Pages:
    studio: Callable[[], Studio]
    bin: Bin

    async def list(self, asked: _Asked) -> Response:
        """Answer with the files."""
        return _json({"files": [_told(one) for one in await asked.workspace.list()]})

    async def read(self, asked: _Asked) -> Response:
        """Answer with a file and, where it is one, with its text."""
        file = await asked.workspace.read(asked.name)
        kind = kind_of(file)
        text = file.text if kind in ("text", "long") else None
        return _json({"file": _told(_info(file)), "kind": kind, "text": text})

    async def raw(self, asked: _Asked) -> Response:
        """Answer with the bytes of a file: a picture to be shown, anything else (or with `download`) to be kept."""
        file = await asked.workspace.read(asked.name)
        shown = picture_type(file.content)
        if shown is not None and asked.request.query_params.get("download") != "1":
            return Response(file.content, media_type=shown, headers=_SAFE)
        headers = {**_SAFE, "Content-Disposition": _attachment(file.name.rpartition("/")[2])}
        return Response(file.content, media_type="application/octet-stream", headers=headers)

    async def pack(self, asked: _Asked) -> Response:
        """Answer with all files as a zip archive."""
        files = [await asked.workspace.read(one.name) for one in await asked.workspace.list()]
        packed = await asyncio.to_thread(_zip_of, files)
        plain = re.sub(r"[^\w-]", "", asked.conversation_id, flags=re.ASCII)[:64]
        headers = {**_SAFE, "Content-Disposition": _attachment(f"aivista-files-{plain}.zip")}
        return Response(packed, media_type="application/zip", headers=headers)

    async def write(self, asked: _Asked) -> Response:
        """Save a text."""
        new = Written.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        info = await asked.workspace.write(new.name, new.text, by="person", expected_version=new.version)
        return _json({"file": _told(info)})

    async def upload(self, asked: _Asked) -> Response:
        """Save what was sent under `name`: a new file, or with `replace` whatever is there."""
        # One byte more than a file may have is enough for the workspace to refuse it by name.
        data = (await _body(asked.request, _MOST_UPLOAD_BYTES))[: _MOST_UPLOAD_BYTES + 1]
        expected = None if asked.request.query_params.get("replace") == "1" else NEW_FILE
        # What a file from elsewhere says, nobody here has written.
        info = await asked.workspace.write(asked.name, data, by="person", expected_version=expected, is_untrusted=True)
        return _json({"file": _told(info)})

    async def rename(self, asked: _Asked) -> Response:
        """Give a file another name."""
        new = Renamed.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        return _json({"file": _told(await asked.workspace.rename(new.name, new.new_name))})

    async def delete(self, asked: _Asked) -> Response:
        """Delete files; answer with what brings them back."""
        meant = Deleted.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        gone = await _delete_all(asked.workspace, meant.names)
        token = self.bin.put(asked.visitor.owner, asked.conversation_id, gone)
        said = asked.visitor.words.counted("files.deleted", len(gone), name=gone[0].name)
        return _json({"token": token, "said": said})

    async def undelete(self, asked: _Asked) -> Response:
        """Bring files back that were deleted: those whose names nothing else has by now."""
        back = Back.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        for file in self.bin.files(asked.visitor.owner, asked.conversation_id, back.token):
            await asked.workspace.write(
                file.name, file.content, by=file.written_by, expected_version=NEW_FILE, is_untrusted=file.is_untrusted
            )
        self.bin.forget(back.token)
        return await self.list(asked)

    async def compare(self, asked: _Asked) -> Response:
        """Answer with how the person's text differs from what is saved."""
        mine = Compared.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        theirs = await asked.workspace.read_text(mine.name)
        html = await asyncio.to_thread(differences_html, asked.visitor.words, mine.text, theirs)
        return _json({"html": html})

    async def run(self, asked: _Asked) -> Response:
        """Run a file; answer with what came of it."""
        meant = Named.model_validate_json(await _body(asked.request, _MOST_JSON_BYTES))
        done = await self.studio().run_script(asked.conversation_id, meant.name, asked.visitor.owner)
        return _json({"html": run_html(asked.visitor.words, done)})


def file_routes(studio: Callable[[], Studio], sessions: Sessions, thrown: Bin | None = None) -> list[Route]:
    """Return the routes below `/aivista/files`: POST alone begins a conversation, called by the name of the file that
    it is for; of `{conversation}` GET `list`, `read`, `raw`, `zip`, POST `write`, `upload`, `rename`, `delete`,
    `undelete`, `compare`, `run`.

    Without our cookie they answer 403; what is refused 400, 404, 409 (it was changed, or its name is taken) or 413,
    with its `code`; 500 when the records fail. Always with one sentence under `error`.
    """
    pages = _Pages(studio, thrown or Bin())
    reads = {"list": pages.list, "read": pages.read, "raw": pages.raw, "zip": pages.pack}
    writes = {
        "write": pages.write,
        "upload": pages.upload,
        "rename": pages.rename,
        "delete": pages.delete,
        "undelete": pages.undelete,
        "compare": pages.compare,
        "run": pages.run,
    }

    async def begin(visitor: Visitor, request: Request) -> Response:
        name = checked_file_name(Named.model_validate_json(await _body(request, _MOST_JSON_BYTES)).name)
        conversation = await studio().conversations.create(visitor.owner)
        # Without a title it is not listed before a message was sent, and its files would be out of sight.
        await studio().conversations.rename(conversation.id, name.rpartition("/")[2], visitor.owner)
        return _json({"conversation": conversation.id})

    def within(work: Callable[[_Asked], Awaitable[Response]]) -> Callable[[Visitor, Request], Awaitable[Response]]:
        def answer(visitor: Visitor, request: Request) -> Awaitable[Response]:
            workspace = studio().files(request.path_params["conversation"], visitor.owner)
            return work(_Asked(visitor, request, workspace))

        return answer

    def route(path: str, how: str, work: Callable[[_Asked], Awaitable[Response]]) -> Route:
        return Route(f"/aivista/files/{{conversation}}/{path}", _guarded(sessions, within(work)), methods=[how])

    return [
        Route("/aivista/files", _guarded(sessions, begin), methods=["POST"]),
        *(route(path, "GET", work) for path, work in reads.items()),
        *(route(path, "POST", work) for path, work in writes.items()),
    ]


def _guarded(
    sessions: Sessions, work: Callable[[Visitor, Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if sessions.token_of(request.cookies.get(COOKIE)) is None:
            return _json({"error": sessions.visitor(request).words("route.not_yours")}, 403)
        visitor = sessions.visitor(request)
        try:
            return await work(visitor, request)
        except ValidationError:
            return _json({"error": visitor.words("files.unreadable")}, 400)
        except RequestRefused as error:
            told = {"error": visitor.words.error(error.info), "code": error.code.value}
            return _json(told, error.code.http_status)
        except AivistaError as error:
            return _json({"error": visitor.words.error(error.info)}, 500)

    return answer


async def _delete_all(workspace: Workspace, names: Sequence[str]) -> list[WorkspaceFile]:
    """Delete the files and return them as they were. One that is refused ends it; it is raised when it is the first."""
    gone: list[WorkspaceFile] = []
    for name in names:
        try:
            file = await workspace.read(name)
            await workspace.delete(name, expected_version=file.version)
        except RequestRefused:
            if not gone:
                raise
            break
        gone.append(file)
    return gone


async def _body(request: Request, most_bytes: int) -> bytes:
    """Return what was sent, cut a little beyond what may be sent."""
    found = bytearray()
    async for some in request.stream():
        found += some
        if len(found) > most_bytes:
            break
    return whole_body(bytes(found))


def _told(info: FileInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "size": info.size_bytes,
        "version": info.version,
        "by": info.written_by,
        "at": info.updated_at.isoformat(timespec="seconds"),
        "language": language_of(info.name),
        "isProgram": is_program(info.name),
        "untrusted": info.is_untrusted,
    }


def _info(file: WorkspaceFile) -> FileInfo:
    return FileInfo(size_bytes=file.size_bytes, **file.model_dump(exclude={"content"}))


def _attachment(name: str) -> str:
    plain = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"


def _zip_of(files: Sequence[WorkspaceFile]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, file.updated_at.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.content)
    return packed.getvalue()


def _json(content: Mapping[str, Any], status_code: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code, _SAFE)
