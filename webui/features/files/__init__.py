"""The files of a conversation: their tree, an editor, and the console of a program.

Only the page knows which files are open and what is unsaved: it sends that with each action, and the answer updates
what has changed since. A file that somebody else changed is shown anew, unless the user changed it as well: then the
user is asked.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import secrets
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import gradio as gr
from pydantic import Field
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
    mime_type_of,
)
from webui.http.sessions import NO_STORE, Visitor, Work, as_json, attachment, body_of, visitor_route
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply, Toast
from webui.words import Words

# A file of 1 MB as JSON: a control character takes six bytes there.
files = Feature("files", routes=lambda screen: file_routes(screen), most_bytes=7 << 20)
_MOST_FILES = 200
_MOST_DELETED_BYTES = 32 << 20

Key: TypeAlias = Annotated[str, Field(pattern=r"^fi-[0-9]{1,9}$")]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000)]
Version: TypeAlias = Annotated[int, Field(ge=NEW_FILE, lt=1 << 62)]
Kind: TypeAlias = Literal["text", "long", "picture", "bytes"]
MOST_EDITED_BYTES = 256 << 10
"""Text beyond it is shown to be read: the editor goes through all of it with every key."""

# File extensions, by the names that `gr.Code` has for languages.
_ENDINGS = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx",
    "json": "json jsonl ndjson geojson ipynb webmanifest",
    "html": "html htm xhtml xml svg vue",
    "css": "css scss less",
    "markdown": "md markdown mdx",
    "latex": "tex sty bib",
    "yaml": "yaml yml",
    "shell": "sh bash zsh ksh",
    "sql": "sql",
    "r": "r",
    "c": "c h",
    "cpp": "cpp cc cxx hpp hh java cs kt",
    "jinja2": "j2 jinja jinja2",
}
_LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings.split()}
_NAMES = {"dockerfile": "dockerfile", "containerfile": "dockerfile", ".bashrc": "shell", ".profile": "shell"}
_PROGRAMS = frozenset({"js", "mjs"})
_PICTURES = frozenset({"png", "jpg", "jpeg", "gif", "webp", "avif"})
_AROUND, _MOST_LINES = 2, 2000
_MOST_UPLOAD_BYTES = 1 << 20


class OpenFile(Value):
    """A file that is open in the page: the id of its element, the version that is shown, and the version that the
    user is asked about."""

    key: Key
    name: Name
    version: Version = NEW_FILE
    is_dirty: bool = False
    asked: Version | None = None


class OpenFiles(Value):
    """A conversation (empty for a new one), its open files, and whether the pane was shown before."""

    conversation: str = Field(default="", max_length=64)
    docs: tuple[OpenFile, ...] = Field(default=(), max_length=_MOST_FILES)
    is_begun: bool = True


class Named(OpenFiles):
    """A file, or a folder with all its files."""

    name: Name
    is_folder: bool = False


class Opened(OpenFiles):
    """A file, and the id of its element in the page."""

    key: Key
    name: Name


class Text(Opened):
    """An unsaved text, and the version of the file that it replaces."""

    text: str
    version: Version | None = None


class Renamed(Named):
    """A file or folder, and its new name."""

    new_name: Name


class Back(OpenFiles):
    """Deleted files to restore, by the token that their deletion returned."""

    token: str = Field(max_length=64)


@dataclass
class DeletedFiles:
    """The newest deletions, as long as there is room for them. A restored file keeps its marks."""

    _kept: dict[str, tuple[Workspace, tuple[WorkspaceFile, ...]]] = field(default_factory=dict)

    def put(self, workspace: Workspace, deleted: Sequence[WorkspaceFile]) -> str:
        """Keep deleted files; return the token by which their owner restores them."""
        token = secrets.token_urlsafe(16)
        self._kept[token] = workspace, tuple(deleted)
        while len(self._kept) > 1 and (len(self._kept) > _MOST_FILES or self._size() > _MOST_DELETED_BYTES):
            del self._kept[next(iter(self._kept))]
        return token

    async def restore(self, workspace: Workspace, token: str) -> tuple[dict[str, FileInfo], list[str]]:
        """Restore files; return them by name, and the names that are taken by now. Raises RequestRefused."""
        origin, deleted = self._kept.get(token, (None, ()))
        if origin != workspace:
            raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name="…")
        back, taken = dict[str, FileInfo](), list[str]()
        for one in deleted:
            marks: dict[str, Any] = {"by": one.written_by, "is_untrusted": one.is_untrusted}
            try:
                back[one.name] = await workspace.write(one.name, one.content, expected_version=NEW_FILE, **marks)
            except RequestRefused as error:
                if error.code not in (ErrorCode.FILE_CHANGED, ErrorCode.FILE_NAME_TAKEN):
                    raise
                taken.append(one.name)
        self._kept.pop(token, None)
        return back, taken

    def _size(self) -> int:
        return sum(file.size_bytes for _, deleted in self._kept.values() for file in deleted)


_bin = DeletedFiles()


def build_editor() -> gr.Code:
    """Return Gradio's code editor, which is loaded when it is first needed; the page's script moves it into the
    pane."""
    looks: dict[str, Any] = {"show_label": False, "container": False, "buttons": [], "wrap_lines": True, "lines": 1}
    return gr.Code(elem_id="fi-code", interactive=True, visible=False, **looks)


@files.action
async def show(at: Context, seen: OpenFiles) -> Reply:
    """Show the tree, and what has changed in the open files; the first time with the pane's frame."""
    reply = await _shown(at, seen)
    if seen.is_begun:
        return reply
    frame = at.fragment("fi-frame", "files/frame.html", "fi-pane", language=at.words.language)
    return reply.model_copy(update={"patches": (frame, *reply.patches)})


@files.action
async def open(at: Context, opened: Opened) -> Reply:
    """Show a file as it is now."""
    file = await _workspace(at, opened).read(opened.name)
    version = next((doc.version for doc in opened.docs if doc.key == opened.key), NEW_FILE)
    return await _shown(at, _with(opened, OpenFile(key=opened.key, name=file.name, version=version)))


@files.action
async def create(at: Context, opened: Opened) -> Reply:
    """Create a file, and a conversation where there is none; show it."""
    conversation = opened.conversation or await begun(at.screen.studio(), at.visitor.owner, opened.name)
    seen = opened.model_copy(update={"conversation": conversation})
    events = {} if opened.conversation else {"begun": conversation}
    try:
        info = await _workspace(at, seen).write(opened.name, "", by="person", expected_version=NEW_FILE)
    except RequestRefused as error:
        is_there = error.code is ErrorCode.FILE_CHANGED
        sentence = at.words("files.exists", names=opened.name) if is_there else at.words.error(error.info)
        return await _shown(at, seen, Toast(text=sentence, is_problem=True), events)
    return await _shown(at, _with(seen, OpenFile(key=opened.key, name=info.name)), events=events)


@files.action
async def save(at: Context, saved: Text) -> Reply:
    """Save a text. If the file was changed meanwhile, save nothing and ask the user."""
    try:
        info = await _workspace(at, saved).write(saved.name, saved.text, by="person", expected_version=saved.version)
    except RequestRefused as error:
        if error.code is not ErrorCode.FILE_CHANGED:
            raise
        return await _shown(at, saved)
    return await _shown(at, _with(saved, OpenFile(key=saved.key, name=info.name, version=info.version)))


@files.action
async def compare(at: Context, mine: Text) -> Reply:
    """Show the differences between a text and the saved file, line by line."""
    theirs = await _workspace(at, mine).read_text(mine.name)
    lines, is_cut = await asyncio.to_thread(differences, mine.text, theirs)
    shown = at.fragment(
        f"{mine.key}-diff", "files/differences.html", f"{mine.key}-main", key=mine.key, lines=lines, is_cut=is_cut
    )
    return Reply(patches=(shown,))


@files.action
async def rename(at: Context, renamed: Renamed) -> Reply:
    """Rename a file or a folder. Stops at the first file that is refused; those before it keep their new names."""
    workspace, docs, toast, moved = _workspace(at, renamed), list(renamed.docs), None, set[str]()
    for name in await _meant(workspace, renamed):
        wanted = renamed.new_name + name[len(renamed.name) :] if renamed.is_folder else renamed.new_name
        try:
            info = await workspace.rename(name, wanted)
        except RequestRefused as error:
            toast = Toast(text=at.words.error(error.info), is_problem=True)
            break
        moved.add(info.name)
        called = {"name": info.name, "version": info.version}
        docs = [doc.model_copy(update=called) if doc.name == name else doc for doc in docs]
    return await _shown(at, renamed.model_copy(update={"docs": tuple(docs)}), toast, moved=moved)


@files.action
async def delete(at: Context, named: Named) -> Reply:
    """Delete a file, or a folder with all its files. Stops at the first that cannot be deleted."""
    workspace, gone = _workspace(at, named), list[WorkspaceFile]()
    for name in await _meant(workspace, named):
        try:
            file = await workspace.read(name)
            await workspace.delete(name, expected_version=file.version)
        except AivistaError:
            if not gone:
                raise
            break
        gone.append(file)
    if not gone:
        raise RequestRefused(ErrorCode.FILE_NOT_FOUND, name=named.name)
    token, names = _bin.put(workspace, gone), [file.name for file in gone]
    sentence = at.words.counted("files.deleted", len(gone), name=names[0])
    undo = files.undo(undelete, {"conversation": named.conversation, "token": token})
    left = named.model_copy(update={"docs": tuple(doc for doc in named.docs if doc.name not in names)})
    return await _shown(at, left, Toast(text=sentence, undo=undo), {"deleted": {"token": token, "names": names}})


@files.action
async def undelete(at: Context, back: Back) -> Reply:
    """Restore deleted files, and say which names are taken by now."""
    restored, taken = await _bin.restore(_workspace(at, back), back.token)
    versions: dict[str, Any] = {name: info.version for name, info in restored.items()}
    toast = Toast(text=at.words("files.exists", names=", ".join(taken)), is_problem=True) if taken else None
    return Reply(toast=toast, events={"undeleted": {"token": back.token, "versions": versions}})


@files.action
async def run(at: Context, opened: Opened) -> Reply:
    """Run a program, and show its console, its result or error, and which of its files were written."""
    done = await at.screen.studio().run_script(opened.conversation, opened.name, at.visitor.owner)
    result = None if done.run.result is None else json.dumps(done.run.result, ensure_ascii=False, indent=2)
    console = at.fragment(
        f"{opened.key}-out", "files/console.html", f"{opened.key}-run", key=opened.key, done=done, result=result
    )
    return Reply(patches=(console,))


def _workspace(at: Context, seen: OpenFiles) -> Workspace:
    return at.screen.studio().files(seen.conversation, at.visitor.owner)


def _with(seen: OpenFiles, doc: OpenFile) -> OpenFiles:
    others = tuple(one for one in seen.docs if one.key != doc.key)
    return seen.model_copy(update={"docs": (*others, doc)})


async def _meant(workspace: Workspace, named: Named) -> list[str]:
    if not named.is_folder:
        return [named.name]
    return [info.name for info in await workspace.list() if info.name.startswith(f"{named.name}/")]


async def _shown(
    at: Context,
    seen: OpenFiles,
    toast: Toast | None = None,
    events: Mapping[str, Any] | None = None,
    *,
    moved: Collection[str] = (),
) -> Reply:
    """Return the tree and the changes of the open files; `moved` are those with a new name.

    The event `files` says by key what each file is now, with its text where the page has another version. A file that
    is gone maps to null, and a file that both somebody else and the user changed is left out.
    """
    workspace = _workspace(at, seen)
    infos = await workspace.list() if seen.conversation else ()
    bar = at.fragment("fi-bar", "files/bar.html", count=len(infos), conversation=seen.conversation)
    patches = [bar, at.fragment("fi-tree", "files/tree.html", rows=list(rows(infos)))]
    changes, named = dict[str, Any](), {one.name: one for one in infos}
    for doc in seen.docs:
        info, notice = named.get(doc.name), f"{doc.key}-notice"
        if doc.is_dirty and (info is None or info.version != doc.version):
            version = info.version if info is not None else NEW_FILE
            # What is shown already is not sent again.
            if doc.asked != version:
                asked = {"key": doc.key, "info": info, "version": version}
                patches.append(at.fragment(notice, "files/notice.html", f"{doc.key}-note", **asked))
            continue
        if info is None:
            patches.append(Patch(id=doc.key))
            changes[doc.key] = None
            continue
        patches.append(Patch(id=notice))
        changes[doc.key] = _file_facts(at.words, info)
        if info.version != doc.version or doc.name in moved:
            file = await workspace.read(doc.name)
            kind, text = kind_of(file), file.text
            shown = {"key": doc.key, "file": info, "kind": kind, "is_program": is_program(info.name)}
            shown |= {"conversation": seen.conversation, "text": text if kind == "long" else ""}
            is_new = doc.version == NEW_FILE
            template, parent = ("files/file.html", "fi-files") if is_new else ("files/main.html", doc.key)
            patches.append(at.fragment(doc.key if is_new else f"{doc.key}-main", template, parent, **shown))
            if info.version != doc.version:
                changes[doc.key] |= {"kind": kind, "text": text if kind == "text" else ""}
    return Reply(patches=tuple(patches), toast=toast, events={**(events or {}), "files": changes})


def _file_facts(words: Words, info: FileInfo) -> dict[str, Any]:
    by = words("files.by_agent" if info.written_by == "agent" else "files.by_person", time="{time}")
    return {
        "name": info.name,
        "version": info.version,
        "said": f"{by} · {words('files.untrusted')}" if info.is_untrusted else by,
        "at": info.updated_at.isoformat(timespec="seconds"),
        "language": language_of(info.name),
        "isProgram": is_program(info.name),
    }


# What a file is on the page: a row of the tree; text in some language, a picture, or bytes to download


class Row(NamedTuple):
    """A row of the tree: a file, or a folder without one; and its position among its siblings."""

    path: str
    name: str
    level: int
    place: int
    siblings: int
    file: FileInfo | None = None

    @property
    def icon(self) -> str:
        """The icon of a file, by its name."""
        if _ending(self.path) in _PICTURES:
            return "image"
        return "file-text" if language_of(self.path) in (None, "markdown") else "file-code"

    @property
    def is_program(self) -> bool:
        """Whether it can be run."""
        return is_program(self.path)

    @property
    def size(self) -> str:
        """The size of the file."""
        size = self.file.size_bytes if self.file is not None else 0
        if size < 1000:
            return f"{size} B"
        if size < 1e6:
            return f"{size / 1e3:.{int(size < 1e4)}f} kB"
        return f"{size / 1e6:.1f} MB"


def rows(infos: Sequence[FileInfo], folder: str = "", level: int = 1) -> Iterator[Row]:
    """Return the rows of a folder: its folders, each followed by its own rows, then its files."""
    within = [(info.name[len(folder) :], info) for info in infos if info.name.startswith(folder)]
    folders = sorted({name.partition("/")[0] for name, _ in within if "/" in name}, key=_by_number)
    own = sorted((one for one in within if "/" not in one[0]), key=lambda one: _by_number(one[0]))
    count = len(folders) + len(own)
    for place, name in enumerate(folders, 1):
        yield Row(folder + name, name, level, place, count)
        yield from rows(infos, f"{folder}{name}/", level + 1)
    for place, (name, info) in enumerate(own, len(folders) + 1):
        yield Row(info.name, name, level, place, count, info)


def differences(mine: str, theirs: str) -> tuple[list[tuple[str, str]], bool]:
    """Return the lines that only the user's text has ("−"), only the saved one ("+"), and around them ("="), each
    group after the number of its first line ("@"); and whether there are more than are shown."""

    def lines() -> Iterator[tuple[str, str]]:
        old, new = mine.splitlines(), theirs.splitlines()
        for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_AROUND):
            yield "@", str(group[0][1] + 1)
            for kind, first, end, from_, to in group:
                yield from (("=" if kind == "equal" else "−", line) for line in old[first:end])
                if kind != "equal":
                    yield from (("+", line) for line in new[from_:to])

    found = list(islice(lines(), _MOST_LINES + 1))
    return found[:_MOST_LINES], len(found) > _MOST_LINES


def language_of(name: str) -> str | None:
    """Return the language for syntax colouring, as `gr.Code` names it; None for plain text."""
    return _NAMES.get(PurePosixPath(name.lower()).name) or _LANGUAGES.get(_ending(name))


def is_program(name: str) -> bool:
    """Return whether the sandbox can run a file of this name."""
    return _ending(name) in _PROGRAMS


def picture_type(content: bytes) -> str | None:
    """Return the media type of a picture that browsers show, by its first bytes and never by its name; None for
    others."""
    found = mime_type_of(content)
    return None if found == "image/heic" else found


def kind_of(file: WorkspaceFile) -> Kind:
    """Return how a file is shown."""
    if picture_type(file.content) is not None:
        return "picture"
    if file.text is None:
        return "bytes"
    return "text" if file.size_bytes <= MOST_EDITED_BYTES else "long"


def _ending(name: str) -> str:
    return PurePosixPath(name.lower()).suffix.removeprefix(".")


def _by_number(name: str) -> str:
    """Return a sort key that puts "2.md" before "10.md"."""
    return re.sub(r"\d+", lambda found: found[0].zfill(20), name.casefold())


# Files uploaded and downloaded as they are: the routes beside the actions


def file_routes(screen: Screen) -> Sequence[Route]:
    """Return the routes below `/aivista/files/{conversation}`: GET `raw` and `zip`, and POST `upload`, which begins a
    conversation for `new`.

    A refusal is JSON with its `code` and one sentence under `error`: 404, 409 (the name is taken), 413 or 422.
    """

    def workspace(visitor: Visitor, conversation: str) -> Workspace:
        return screen.studio().files(conversation, visitor.owner)

    async def raw(request: Request, visitor: Visitor) -> Response:
        """Answer with a file: a picture to show, or anything else (or with `download`) to save."""
        conversation = request.path_params["conversation"]
        file = await workspace(visitor, conversation).read(request.query_params.get("name", ""))
        shown = picture_type(file.content)
        if shown is not None and request.query_params.get("download") != "1":
            return Response(file.content, media_type=shown, headers=NO_STORE)
        return _kept(file.content, file.name.rpartition("/")[2], "application/octet-stream")

    async def pack(request: Request, visitor: Visitor) -> Response:
        """Answer with all files as a ZIP archive."""
        conversation = request.path_params["conversation"]
        source = workspace(visitor, conversation)
        found = [await source.read(one.name) for one in await source.list()]
        plain = re.sub(r"[^\w-]", "", conversation, flags=re.ASCII)[:64]
        return _kept(await asyncio.to_thread(_zip_of, found), f"aivista-files-{plain}.zip", "application/zip")

    async def upload(request: Request, visitor: Visitor) -> Response:
        """Save the body under `name`: as a new file, or with `replace` over an existing one."""
        conversation, query = request.path_params["conversation"], request.query_params
        name, data, is_new = query.get("name", ""), await body_of(request, _MOST_UPLOAD_BYTES), conversation == "new"
        if data is None:
            # One byte more than a file may have makes the workspace refuse it by name.
            data = bytes(_MOST_UPLOAD_BYTES + 1)
        if is_new:
            conversation = await begun(screen.studio(), visitor.owner, name)
        version = None if query.get("replace") == "1" else NEW_FILE
        try:
            # The content of an uploaded file was written by somebody else.
            info = await workspace(visitor, conversation).write(
                name, data, by="person", expected_version=version, is_untrusted=True
            )
        except AivistaError:
            if is_new:
                await screen.studio().conversations.delete(conversation, visitor.owner)
                await screen.studio().conversations.delete_forever(conversation, visitor.owner)
            raise
        return JSONResponse({"conversation": conversation, "name": info.name}, headers=NO_STORE)

    routes: list[tuple[str, str, Work]] = [("raw", "GET", raw), ("zip", "GET", pack), ("upload", "POST", upload)]
    return [
        visitor_route(f"/aivista/files/{{conversation}}/{name}", screen.sessions, work, method=method, refusal=as_json)
        for name, method, work in routes
    ]


async def begun(studio: Studio, owner: str, name: str) -> str:
    """Return a new conversation for a file of this name."""
    title = checked_file_name(name).rpartition("/")[2]
    conversation = await studio.conversations.create(owner)
    # Without a title, the conversation would not be listed before its first message, and its files would be out of
    # reach.
    await studio.conversations.rename(conversation.id, title, owner)
    return conversation.id


def _kept(content: bytes, name: str, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers={**NO_STORE, **attachment(name)})


def _zip_of(files: Sequence[WorkspaceFile]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.name, file.updated_at.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, file.content)
    return packed.getvalue()
