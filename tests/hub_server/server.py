"""The Hub's HTTP API in a thread of its own: what does not fit is refused as the Hub refuses it, and noted."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from tests.hub_server.spaces import HARDWARE, Refused, Space, check_front_matter
from tests.support.waiting import join

USER = "ada"
TOKEN = "hf_" + "t0ken" * 7
READ_TOKEN = "hf_" + "r3ad0nly" * 4
_SPACE = re.compile(r"/api/spaces/([\w.-]+/[\w.-]+)(?:/(.+))?")


class HubServer:
    """A Hub with one user, `ada`, for as long as a `with` block lasts.

    `writes` are the requests that change something, as method and path; `violations` what a client did that the Hub
    does not take.
    """

    def __init__(self) -> None:
        self.spaces: dict[str, Space] = {}
        self.buckets: set[str] = set()
        self.writes: list[str] = []
        self.violations: list[str] = []
        self.wants_payment = False

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"server_hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        join(self._thread)

    @property
    def url(self) -> str:
        """The address for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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
            if found[1] in self.buckets:
                raise Refused(409, "You already created this bucket", f"{self.url}/buckets/{found[1]}")
            if body != {"private": True} and body != {"visibility": "private"}:
                raise Refused(400, f"what was made is to be private: {body}")
            self.buckets.add(found[1])
            return {"url": f"{self.url}/buckets/{found[1]}"}
        if found := _SPACE.fullmatch(path):
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
                return space.tree()
            case ("POST", "secrets"):
                space.secrets[body["key"]] = body["value"]
                return {}
            case ("POST", "variables"):
                space.variables[body["key"]] = body["value"]
                return {name: {"value": value} for name, value in space.variables.items()}
            case ("POST", "hardware") if body["flavor"] in HARDWARE:
                space.hardware, space.sleep_s = body["flavor"], body.get("sleepTimeSeconds")
                return space.runtime()
            case ("POST", "sleeptime"):
                space.sleep_s = body["seconds"]
                return space.runtime()
            case ("PUT", "volumes"):
                self._check_volumes(body["volumes"])
                space.volumes = body["volumes"]
                return {}
            case ("POST", "preupload/main"):
                return {"files": [_mode(space, file) for file in body["files"]]}
            case ("POST", "commit/main"):
                oid = space.commit(body)
                return {"commitUrl": f"{self.url}/spaces/{repo_id}/commit/{oid}", "commitOid": oid}
        raise Refused(404, f"no such route: {method} {repo_id} {rest}")


def _mode(space: Space, file: dict[str, Any]) -> dict[str, Any]:
    if not 0 <= file["size"] < 10_000_000:
        raise Refused(400, f"{file['path']} is too large")
    return {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: ClassVar[HubServer]

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PUT(self) -> None:
        self._handle("PUT")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on the terminal."""

    def _handle(self, method: str) -> None:
        hub, url = self.server_hub, urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            self._authorize(method)
            changes = method != "GET" and not url.path.endswith(("validate-yaml", "preupload/main"))
            answer = hub.answer(method, url.path, parse_qs(url.query), self._read(content))
            if changes:
                hub.writes.append(f"{method} {url.path}")
        except Refused as refused:
            if refused.status in (400, 404) and "Repository not found" not in refused.reason:
                hub.violations.append(refused.reason)
            self._send(
                refused.status, {"error": refused.reason, "errors": [{"message": refused.reason}], "url": refused.url}
            )
        else:
            self._send(200, answer)

    def _authorize(self, method: str) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token not in (TOKEN, READ_TOKEN):
            raise Refused(401, "Invalid username or password.")
        if token == READ_TOKEN and method != "GET":
            raise Refused(403, "Forbidden: the token is for reading")

    def _read(self, content: bytes) -> Any:
        if "ndjson" in (self.headers.get("Content-Type") or ""):
            return [json.loads(line) for line in content.splitlines() if line]
        return json.loads(content) if content else {}

    def _send(self, status: int, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        self.wfile.write(body)
