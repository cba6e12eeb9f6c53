"""The MCP server of one studio: callers, tools and resources, and errors as one sentence.

It serves pipes or HTTP until the client leaves or the process is told to end.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
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
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agent import OPERATOR, AivistaError, ErrorCode, ErrorInfo, GalleryQuery, Settings, Studio, program_version
from webui.api.auth import Buckets, Caller, Callers, TokenFile
from webui.api.problems import Refused, answer_with, problem_of_refusal
from webui.http.hosts import LOOPBACK, HostRules
from webui.mcp_server.tools import PICTURE_URI, TOOLS, URI, WORDS, Call, picture_uri, refusal
from webui.whole_json import receiving_whole, whole_json

# Pictures of 20 MB arrive here as base64, with a mask.
_MOST_BYTES = 40 << 20
_PATH = "/mcp"
_LEAVING_S = 1
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
            uri_template=f"{PICTURE_URI}/receipt",
            mime_type=_JSON,
        ),
    ]
)

_Context = ServerRequestContext[dict[str, Any], Any]
_log = logging.getLogger(__name__)


def mcp_server(studio: Studio, turns: Buckets | None = None) -> Server[dict[str, Any]]:
    """Return the server; the studio must be open while it serves. `turns` limits how often an owner may begin a
    turn."""
    handlers = _Handlers(studio, turns)
    return Server(
        "aivista",
        title="Aivista",
        version=program_version(),
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
            # Progress must only grow; a client that did not ask for it gets none.
            await context.session.report_progress(float(next(steps)), None, sentence)

        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            caller = _caller(context)
            if self.turns is not None and tool.is_turn:
                self.turns.take_or_refuse(caller.owner)
            return await tool.run(Call(self.studio, caller, report), asked)
        except ValidationError as error:
            # The input is not repeated.
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
            # The last boundary: an unforeseen error is logged completely, and the caller gets one sentence.
            _log.exception("the tool %s failed", params.name)
            return refusal(WORDS.error(ErrorInfo(code=ErrorCode.INTERNAL)))

    async def list_resources(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return a page of the newest pictures of all conversations, each with its receipt."""
        query = GalleryQuery(after=params.cursor if params else None, limit=_ON_A_PAGE)
        page = await self.studio.gallery.page(_caller(context).owner, query)
        found = list[Resource]()
        for item in page.items:
            picture = item.picture
            uri = picture_uri(item.conversation_id, picture.handle)
            name = f"{item.conversation_title or 'Untitled'} {picture.handle}"
            found.append(
                Resource(
                    uri=uri,
                    name=name,
                    description=picture.alt or None,
                    mime_type=picture.image.mime_type,
                    size=picture.image.size_bytes,
                )
            )
            if picture.receipt is not None:
                found.append(Resource(uri=f"{uri}/receipt", name=f"{name}, receipt", mime_type=_JSON))
        return ListResourcesResult(resources=found, next_cursor=page.next)

    async def list_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return _TEMPLATES

    async def read_resource(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a picture's bytes, or its receipt. Raises MCPError for an unknown address."""
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
    """Return the caller: over HTTP as the gate authenticated this very request, else the operator."""
    if context.request is None:
        return Caller(OPERATOR, WORDS)
    caller = context.request.scope.get(_CALLER)
    if not isinstance(caller, Caller):
        raise MCPError(INVALID_PARAMS, "Nobody knows who calls.")
    return caller


@dataclass(frozen=True)
class Gate:
    """ASGI middleware: known hosts, no requests from other sites' pages, a token where one is needed.

    Each request is authenticated anew; a session's id proves nothing.
    """

    app: ASGIApp
    rules: HostRules
    callers: Callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its caller in the scope, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers, foreign = Headers(scope=scope), ""
        if not self.rules.allows_host(headers.get("host", "")):
            foreign = "This studio does not answer to that host name."
        # A page could read the answers as well: no method is safe.
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
        # The SDK lets only the user who opened a session use it.
        user = AuthenticatedUser(AccessToken(token="", client_id=caller.owner, scopes=[]))
        whole = receiving_whole(scope, receive, _MOST_BYTES)
        await self.app({**scope, "user": user, _CALLER: caller}, whole, send)


class TokenNeeded(Exception):
    """Others than the operator could come, and there is no token."""


async def serve_stdio(settings: Settings) -> None:
    """Serve the client at the other end of the pipes. Only the protocol is written to standard output.

    Raises AivistaError when the studio's records cannot be opened.
    """
    ended = _end_signal()
    async with Studio(settings) as studio:
        studio.start_housekeeping()
        serving, end = asyncio.create_task(_stdio(studio)), asyncio.create_task(ended.wait())
        await asyncio.wait({serving, end}, return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if not serving.done():
        # A thread waits for the client's next line, and nothing wakes it: everything is recorded, so it is abandoned.
        sys.stderr.flush()
        os._exit(0)
    await serving


async def serve_http(settings: Settings, host: str, port: int) -> None:
    """Serve streamable HTTP until the process is told to end. The address is printed once the server listens.

    Raises TokenNeeded, and AivistaError when the studio's records cannot be opened.
    """
    is_loopback = host in LOOPBACK
    is_open = is_loopback and not settings.is_public
    tokens = TokenFile(settings.home)
    if not is_open and not settings.api_tokens and not tokens.hashes():
        raise TokenNeeded(f"{host} can be reached by others, so a token is needed; make one: aivista token new NAME.")
    settings = settings if is_open else settings.model_copy(update={"is_public": True})
    ended = _end_signal()
    async with Studio(settings) as studio:
        studio.start_housekeeping()
        server = mcp_server(studio, Buckets(settings.api_turns_per_minute))
        app = Gate(
            server.streamable_http_app(host=host, streamable_http_path=_PATH, max_request_body_size=_MOST_BYTES),
            HostRules(is_loopback),
            Callers(tokens, settings.api_tokens, settings.api_requests_per_minute, is_open=is_open),
        )
        http = _Http(app, host, port)
        end = asyncio.create_task(http.end(ended, studio, settings.grace_s))
        try:
            await http.serve()
        finally:
            end.cancel()


async def _stdio(studio: Studio) -> None:
    server = mcp_server(studio)
    async with stdio_server() as (read_stream, write_stream):
        passing, passed = create_context_streams[SessionMessage | Exception](0)

        async def pass_on() -> None:
            async with passing:
                async for message in read_stream:
                    await passing.send(_made_whole(message))

        relay = asyncio.create_task(pass_on())
        await server.run(passed, write_stream, server.create_initialization_options())
        relay.cancel()


def _made_whole(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """Return a valid line for one that was invalid only because of half a surrogate pair."""
    if not isinstance(message, ValidationError):
        return message
    line = message.errors()[0]["input"]
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole_json(str(line)), by_name=False))
    except ValidationError:
        return message


class _Http(uvicorn.Server):
    """The HTTP server, which we end: uvicorn would raise the signal again before the studio is closed."""

    def __init__(self, app: Gate, host: str, port: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                log_config=None,
                access_log=False,
                ws="none",
                lifespan="on",
                timeout_graceful_shutdown=_LEAVING_S,
            )
        )
        self._url = f"http://{f'[{host}]' if ':' in host else host}:{port}{_PATH}"

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port, and print the address."""
        await super().startup(sockets)
        if self.started:
            print(f"Aivista's MCP server is open at {self._url}", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signal handling to us."""
        yield

    async def end(self, ended: asyncio.Event, studio: Studio, grace_s: float) -> None:
        """Once the event is set, wait for the running turns, then stop serving."""
        await ended.wait()
        # A second signal ends the waiting.
        ended.clear()
        winding, again = asyncio.create_task(studio.wind_down(grace_s)), asyncio.create_task(ended.wait())
        await asyncio.wait({winding, again}, return_when=asyncio.FIRST_COMPLETED)
        winding.cancel()
        again.cancel()
        # A client's open stream is cut, which would be logged as an error.
        logging.getLogger("uvicorn.error").disabled = True
        self.should_exit = True


def _end_signal() -> asyncio.Event:
    """Return an event that is set when the process is told to end."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def end(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(ended.set)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    return ended
