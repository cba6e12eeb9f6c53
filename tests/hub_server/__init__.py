"""A strict Hub on this machine: the part of Hugging Face's HTTP API that a Space is pushed through.

What does not fit is refused as the Hub refuses it, and noted.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.support.threaded_servers import Handler, ThreadedServer

yaml: Any = import_module("yaml")

USER = "ada"
TOKEN = "hf_" + "t0ken" * 7
READ_TOKEN = "hf_" + "r3ad0nly" * 4
HARDWARE = frozenset({"cpu-basic", "cpu-upgrade", "t4-small"})
COLOURS = frozenset({"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"})
_TEXT = {"sdk", "title", "emoji", "colorFrom", "colorTo", "license", "short_description", "suggested_hardware"}
_FIELDS = _TEXT | {"app_port", "app_file", "sdk_version", "python_version", "pinned", "fullWidth", "header"}


class Refused(Exception):
    """The Hub says no: the status, the reason, and where that is which stands in the way."""


@dataclass
class Space:
    """A Space as the Hub holds it: its files by path, its secrets, variables, hardware and volumes."""

    sdk: str
    private: bool = False
    files: dict[str, bytes] = field(default_factory=lambda: {".gitattributes": b"*.bin filter=lfs\n"})
    secrets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    hardware: str = "cpu-basic"
    sleep_s: int | None = None
    volumes: list[dict[str, Any]] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)

    def runtime(self) -> dict[str, Any]:
        """Return the runtime as the Hub tells it."""
        return {
            "stage": "RUNNING",
            "hardware": {"current": self.hardware, "requested": self.hardware},
            "gcTimeout": self.sleep_s,
            "volumes": self.volumes or None,
        }

    def tree(self) -> Iterator[dict[str, Any]]:
        """Yield every file as the Hub lists it, by the id that git gives to its content."""
        for path, content in sorted(self.files.items()):
            oid = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            yield {"type": "file", "path": path, "oid": oid, "size": len(content)}

    def commit(self, lines: list[dict[str, Any]]) -> None:
        """Make a commit of its lines. Raises Refused for one that does not fit."""
        header, *changes = lines
        if header["key"] != "header" or not header["value"]["summary"] or not changes:
            raise Refused(400, "a commit has a header and changes")
        files = dict(self.files)
        for change in changes:
            match change:
                case {"key": "file", "value": {"path": path, "encoding": "base64", "content": content}}:
                    files[path] = base64.b64decode(content, validate=True)
                case {"key": "deletedFile", "value": {"path": path}} if path in files:
                    del files[path]
                case other:
                    raise Refused(400, f"no such change: {other}")
        check_front_matter(files.get("README.md", b"").decode())
        self.files = files
        self.commits.append(header["value"]["summary"])


def check_front_matter(readme: str) -> None:
    """Raise Refused where the README's front matter is not what the Hub takes."""
    before, _, rest = readme.partition("---\n")
    matter, mark, _ = rest.partition("\n---\n")
    if before or not mark:
        raise Refused(400, "the README has no front matter")
    fields = yaml.safe_load(matter)
    unknown = fields.keys() - _FIELDS
    wrong = [name for name in _TEXT & fields.keys() if not isinstance(fields[name], str)]
    if unknown or wrong or fields["sdk"] not in ("gradio", "docker") or not fields["title"]:
        raise Refused(400, f"these fields are not taken: {sorted(unknown) + wrong}, or there is no sdk or title")
    if not {fields["colorFrom"], fields["colorTo"]} <= COLOURS or len(fields.get("short_description", "")) > 60:
        raise Refused(400, "a colour that is none, or a description of more than 60 characters")


class _Handler(Handler):
    owner: ClassVar[HubServer]

    def handle_any(self) -> None:
        hub, url, content, method = self.owner, urlsplit(self.path), self.body(), self.command
        try:
            self._authorize(method)
            is_lines = "ndjson" in self.headers.get("Content-Type", "")
            lines = [json.loads(line) for line in (content.splitlines() if is_lines else [content or b"{}"]) if line]
            answer = hub.answer(method, url.path, parse_qs(url.query), lines if is_lines else lines[0])
            if method != "GET" and not url.path.endswith(("validate-yaml", "preupload/main")):
                hub.writes.append(f"{method} {url.path}")
        except Refused as refused:
            status, reason, *where = refused.args
            if status in (400, 404) and reason != "Repository not found":
                hub.violations.append(reason)
            told = {"error": reason, "errors": [{"message": reason}], "url": "".join(where)}
            self.answer(status, told, **({"X_Error_Code": "RepoNotFound"} if status == 404 else {}))
        else:
            self.answer(200, answer)

    do_GET = do_POST = do_PUT = handle_any

    def _authorize(self, method: str) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in (TOKEN, READ_TOKEN):
            raise Refused(401, "Invalid username or password.")
        if token == READ_TOKEN and method != "GET":
            raise Refused(403, "Forbidden: the token is for reading")


class HubServer(ThreadedServer):
    """A Hub with one user, `ada`, for as long as a `with` block lasts; `url` is the address for HF_ENDPOINT.

    `writes` are the requests that change something, as method and path; `violations` what a client did that the Hub
    does not take.
    """

    handler = _Handler

    def __init__(self) -> None:
        self.spaces: dict[str, Space] = {}
        self.buckets: set[str] = set()
        self.writes: list[str] = []
        self.violations: list[str] = []
        self.wants_payment = False

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        """Return what the Hub answers. Raises Refused."""
        match (method, path):
            case ("GET", "/api/whoami-v2"):
                return {"type": "user", "name": USER, "orgs": [], "auth": {"accessToken": {"role": "write"}}}
            case ("POST", "/api/validate-yaml"):
                check_front_matter(body["content"])
                return {"errors": [], "warnings": []}
            case ("POST", "/api/repos/create"):
                return self._create(body)
        if method == "POST" and (found := re.fullmatch(r"/api/buckets/([\w.-]+/[\w.-]+)", path)):
            url = f"{self.url}/buckets/{found[1]}"
            if found[1] in self.buckets:
                raise Refused(409, "You already created this bucket", url)
            if body not in ({"private": True}, {"visibility": "private"}):
                raise Refused(400, f"what was made is to be private: {body}")
            self.buckets.add(found[1])
            return {"url": url}
        if found := re.fullmatch(r"/api/spaces/([\w.-]+/[\w.-]+)(?:/(.+))?", path):
            if found[1] not in self.spaces:
                raise Refused(404, "Repository not found")
            return self._of_space(method, found[1], found[2] or "", query, body)
        raise Refused(404, f"no such route: {method} {path}")

    def _create(self, body: dict[str, Any]) -> Any:
        repo_id = f"{body.pop('organization') or USER}/{body.pop('name')}"
        if self.wants_payment:
            raise Refused(402, "Payment required")
        if not repo_id.startswith(f"{USER}/"):
            raise Refused(403, "You don't have the rights to create a Space under this namespace")
        if repo_id in self.spaces:
            raise Refused(409, "You already created this space repo")
        if body.pop("type") != "space":
            raise Refused(400, "no Space")
        visibility = body.pop("visibility", "public")
        space = Space(body.pop("sdk"), private=visibility == "private")
        space.hardware = body.pop("hardware", "cpu-basic")
        space.sleep_s = body.pop("sleepTimeSeconds", None)
        space.secrets = {one["key"]: one["value"] for one in body.pop("secrets", [])}
        space.variables = {one["key"]: one["value"] for one in body.pop("variables", [])}
        space.volumes = body.pop("volumes", [])
        if body or space.hardware not in HARDWARE:
            raise Refused(400, f"these fields are not taken: {sorted(body)}, {space.hardware}")
        self._check_volumes(space.volumes)
        self.spaces[repo_id] = space
        return {"url": f"{self.url}/spaces/{repo_id}", "name": repo_id}

    def _check_volumes(self, volumes: list[dict[str, Any]]) -> None:
        for volume in volumes:
            if volume["type"] == "bucket" and volume["source"] not in self.buckets:
                raise Refused(404, f"no bucket {volume['source']}")

    def _of_space(self, method: str, repo_id: str, rest: str, query: dict[str, list[str]], body: Any) -> Any:
        space = self.spaces[repo_id]
        match (method, rest):
            case ("GET", ""):
                return {"id": repo_id, "sha": "0" * 40, "sdk": space.sdk, "private": space.private}
            case ("GET", "secrets"):
                return {name: {"updatedAt": "2026-01-01T00:00:00.000Z"} for name in space.secrets}
            case ("GET", "variables"):
                return {name: {"value": value} for name, value in space.variables.items()}
            case ("GET", "runtime"):
                return space.runtime()
            case ("GET", "tree/main") if query.get("recursive") == ["true"]:
                return list(space.tree())
            case ("POST", "secrets"):
                space.secrets[body["key"]] = body["value"]
                return {}
            case ("POST", "variables"):
                space.variables[body["key"]] = body["value"]
                return {}
            case ("POST", "hardware") if body["flavor"] in HARDWARE:
                space.hardware, space.sleep_s = body["flavor"], body.get("sleepTimeSeconds")
                return space.runtime()
            case ("PUT", "volumes"):
                self._check_volumes(body["volumes"])
                space.volumes = body["volumes"]
                return {}
            case ("POST", "preupload/main"):
                told = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
                return {"files": [{"path": file["path"], **told} for file in body["files"]]}
            case ("POST", "commit/main"):
                space.commit(body)
                return {"commitUrl": f"{self.url}/spaces/{repo_id}/commit/{'0' * 40}", "commitOid": "0" * 40}
        raise Refused(404, f"no such route: {method} {repo_id} {rest}")
