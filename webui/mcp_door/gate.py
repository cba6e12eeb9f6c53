"""What every HTTP request passes before the MCP server: known hosts, no foreign pages, a token where one is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webui.api.problems import RefusalCode, Refused, answer_with, problem_of_refusal
from webui.api.rates import Buckets
from webui.api.tokens import Tokens
from webui.guard import HostRules
from webui.mcp_door.callers import SCOPE_KEY, Caller
from webui.mcp_door.following import WORDS
from webui.whole_json import receiving_whole

# Pictures of 20 MB travel here as base64, a mask beside them.
MOST_BYTES = 40 << 20
KEY_HEADER = "X-Gemini-Api-Key"
_KEY = re.compile(r"[!-~]{1,400}")


@dataclass(frozen=True)
class Gate:
    """ASGI middleware. Who calls is found out for each request anew; a session's id proves nothing."""

    app: ASGIApp
    rules: HostRules
    tokens: Tokens
    requests: Buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its caller in the scope, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        foreign = self._foreign(headers)
        if foreign or scope["type"] != "http":
            await PlainTextResponse(foreign, status_code=403)(scope, receive, send)
            return
        try:
            caller = self._caller(headers)
        except Refused as refused:
            await answer_with(problem_of_refusal(WORDS, refused), scope["path"])(scope, receive, send)
            return
        # The SDK lets nobody use a session but the user who opened it.
        user = AuthenticatedUser(AccessToken(token="", client_id=caller.owner, scopes=[]))
        whole = receiving_whole(scope, receive, MOST_BYTES)
        await self.app({**scope, "user": user, SCOPE_KEY: caller}, whole, send)

    def _foreign(self, headers: Headers) -> str:
        if not self.rules.allows_host(headers.get("host", "")):
            return "This studio does not answer to that host name."
        # A page may read what it gets from here as well: no method is safe.
        if not self.rules.allows_origin(headers.get("origin"), headers):
            return "Another site may not use this studio."
        return ""

    def _caller(self, headers: Headers) -> Caller:
        owner = self.tokens.owner(headers.get("authorization", ""))
        if owner is None:
            raise Refused(RefusalCode.UNAUTHORIZED)
        wait_s = self.requests.take(owner)
        if wait_s > 0:
            raise Refused(RefusalCode.TOO_MANY_REQUESTS, seconds=ceil(wait_s))
        key = headers.get(KEY_HEADER, "").strip()
        if key and not _KEY.fullmatch(key):
            raise Refused(RefusalCode.UNREADABLE, problem=KEY_HEADER)
        return Caller(owner, SecretStr(key) if key else None)
