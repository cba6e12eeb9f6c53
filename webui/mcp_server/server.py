"""The MCP server over one studio: who calls, its tools and resources, and what went wrong in a sentence."""

from __future__ import annotations

import base64
import logging
from dataclasses import dataclass
from importlib import metadata
from itertools import count
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import OPERATOR, AivistaError, ErrorCode, ErrorInfo, GalleryQuery, Studio
from webui.api.auth import Buckets, Caller, Callers
from webui.api.problems import Refused, answer_with, problem_of_refusal
from webui.guard import HostRules
from webui.mcp_server.results import PICTURE_URI, RECEIPT_URI, URI, WORDS, picture_uri, refusal
from webui.mcp_server.tools import TOOLS, Call
from webui.whole_json import receiving_whole

# Pictures of 20 MB travel here as base64, a mask beside them.
MOST_BYTES = 40 << 20
_ON_A_PAGE = 50
_JSON = "application/json"
_CALLER = "aivista.mcp.caller"
_INSTRUCTIONS = (
    "Aivista is a studio for pictures with an agent of its own: say what the picture shall be in the person's words, "
    "it writes the prompt. Pictures live in conversations and have short handles (#3). Go on in the same conversation "
    "to change a picture. An answer with state `needs_decision` waits for the person: ask them, then call `decide`."
)
_TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="picture",
            title="A picture as it was made",
            description="The original bytes of a picture; the handle is written without its #.",
            uri_template=PICTURE_URI,
        ),
        ResourceTemplate(
            name="receipt",
            title="The receipt of a picture",
            description="Asked against got: the prompt as sent, model, references, facts, tokens and price.",
            uri_template=RECEIPT_URI,
            mime_type=_JSON,
        ),
    ]
)

_Context = ServerRequestContext[dict[str, Any], Any]
_log = logging.getLogger(__name__)


def mcp_server(studio: Studio, turns: Buckets | None = None) -> Server[dict[str, Any]]:
    """Return the server; the studio must be open while it serves. `turns` limits how often an owner may begin one."""
    handlers = _Handlers(studio, turns)
    return Server(
        "aivista",
        title="Aivista",
        version=_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


@dataclass(frozen=True)
class _Handlers:
    studio: Studio
    turns: Buckets | None

    async def list_tools(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        sizes = self.studio.catalogue.resolutions
        return ListToolsResult(tools=[tool.declaration(sizes) for tool in TOOLS.values()])

    async def call_tool(self, context: _Context, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool named {params.name[:100]}.")
        steps = count(1)

        async def report(sentence: str) -> None:
            # Progress only ever grows; a client that did not ask hears nothing.
            await context.session.report_progress(float(next(steps)), None, sentence)

        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            caller = _caller(context)
            if self.turns is not None and tool.is_turn:
                self.turns.take_or_refuse(caller.owner)
            return await tool.run(Call(self.studio, caller, report), asked)
        except ValidationError as error:
            # What was sent is not said again.
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(step) for step in first["loc"])
            what = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
            return refusal(f"{params.name} cannot be called like this: {f'{where}: ' if where else ''}{what}.")
        except Refused as error:
            return refusal(problem_of_refusal(WORDS, error).detail)
        except AivistaError as error:
            return refusal(WORDS.error(error.info))
        except MCPError:
            raise
        except Exception:
            # The last boundary: what we did not foresee reaches the log whole and the caller as one sentence.
            _log.exception("the tool %s failed", params.name)
            return refusal(WORDS.error(ErrorInfo(code=ErrorCode.INTERNAL)))

    async def list_resources(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return a page of the newest pictures of all conversations, each with its receipt."""
        query = GalleryQuery(after=params.cursor if params else None, limit=_ON_A_PAGE)
        page = await self.studio.gallery.page(_caller(context).owner, query)
        found = list[Resource]()
        for item in page.items:
            picture, place = item.picture, item.conversation_id
            name = f"{item.conversation_title or 'Untitled'} {picture.handle}"
            found.append(
                Resource(
                    uri=picture_uri(place, picture.handle),
                    name=name,
                    description=picture.alt or None,
                    mime_type=picture.image.mime_type,
                    size=picture.image.size_bytes,
                )
            )
            if picture.receipt is not None:
                uri = picture_uri(place, picture.handle, RECEIPT_URI)
                found.append(Resource(uri=uri, name=f"{name}, receipt", mime_type=_JSON))
        return ListResourcesResult(resources=found, next_cursor=page.next)

    async def list_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return _TEMPLATES

    async def read_resource(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a picture's bytes, or its receipt. Raises MCPError for an address without one."""
        uri, owner = str(params.uri), _caller(context).owner
        address = URI.fullmatch(uri)
        if address is None:
            raise _missing(uri, "This is no address of a picture or a receipt.")
        conversation_id, handle, of_receipt = address.groups()
        try:
            if not of_receipt:
                stored = await self.studio.picture(conversation_id, handle, owner)
                blob = base64.b64encode(stored.data).decode("ascii")
                contents = BlobResourceContents(uri=uri, mime_type=stored.mime_type, blob=blob)
                return ReadResourceResult(contents=[contents])
            receipt = (await self.studio.conversations.get(conversation_id, owner)).picture(handle).receipt
        except AivistaError as error:
            raise _missing(uri, WORDS.error(error.info)) from error
        if receipt is None:
            raise _missing(uri, "This picture was not made here, so it has no receipt.")
        text = receipt.model_dump_json(indent=2)
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=text)])


def _missing(uri: str, sentence: str) -> MCPError:
    return MCPError(INVALID_PARAMS, sentence, {"uri": uri})


def _caller(context: _Context) -> Caller:
    """Return who calls: over HTTP as the gate found out for this very request, else the operator."""
    if context.request is None:
        return Caller(OPERATOR, WORDS)
    caller = context.request.scope.get(_CALLER)
    if not isinstance(caller, Caller):
        raise MCPError(INVALID_PARAMS, "Nobody knows who calls.")
    return caller


def _version() -> str:
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0"


@dataclass(frozen=True)
class Gate:
    """ASGI middleware: known hosts, no foreign pages, a token where one is needed.

    Who calls is found out for each request anew; a session's id proves nothing.
    """

    app: ASGIApp
    rules: HostRules
    callers: Callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its caller in the scope, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers, foreign = Headers(scope=scope), ""
        if not self.rules.allows_host(headers.get("host", "")):
            foreign = "This studio does not answer to that host name."
        # A page may read what it gets from here as well: no method is safe.
        elif not self.rules.allows_origin(headers.get("origin"), headers):
            foreign = "Another site may not use this studio."
        if foreign or scope["type"] != "http":
            await PlainTextResponse(foreign, status_code=403)(scope, receive, send)
            return
        try:
            caller = self.callers.caller(headers, WORDS)
        except Refused as refused:
            await answer_with(problem_of_refusal(WORDS, refused), scope["path"])(scope, receive, send)
            return
        # The SDK lets nobody use a session but the user who opened it.
        user = AuthenticatedUser(AccessToken(token="", client_id=caller.owner, scopes=[]))
        whole = receiving_whole(scope, receive, MOST_BYTES)
        await self.app({**scope, "user": user, _CALLER: caller}, whole, send)
