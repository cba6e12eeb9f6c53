"""The MCP server over one studio: it knows who calls, reads the arguments, and says what went wrong in a sentence."""

from __future__ import annotations

import logging
from importlib import metadata
from itertools import count
from math import ceil
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)
from pydantic import ValidationError

from agent import AivistaError, ErrorCode, ErrorInfo, Studio
from webui.api.rates import Buckets
from webui.mcp_door import resources
from webui.mcp_door.callers import SCOPE_KEY, Call, Caller, CallRefused, Report
from webui.mcp_door.following import WORDS
from webui.mcp_door.telling import refusal
from webui.mcp_door.tools import TOOLS, DoorTool

_INSTRUCTIONS = (
    "Aivista is a studio for pictures with an agent of its own: say what the picture shall be in the person's words, "
    "it writes the prompt. Pictures live in conversations and have short handles (#3). Go on in the same conversation "
    "to change a picture. An answer with state `needs_decision` waits for the person: ask them, then call `decide`."
)

_Context = ServerRequestContext[dict[str, Any], Any]
_log = logging.getLogger(__name__)


def mcp_server(studio: Studio, turns: Buckets | None = None) -> Server[dict[str, Any]]:
    """Return the server; the studio must be open while it serves. `turns` limits how often an owner may begin one."""
    door = _Door(studio, turns)
    return Server(
        "aivista",
        title="Aivista",
        version=_version(),
        instructions=_INSTRUCTIONS,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
        on_list_resources=door.list_resources,
        on_list_resource_templates=door.list_templates,
        on_read_resource=door.read_resource,
    )


class _Door:
    """The handlers of the server."""

    def __init__(self, studio: Studio, turns: Buckets | None) -> None:
        self.studio = studio
        self.turns = turns
        self._tools = ListToolsResult(tools=[tool.declaration(studio.catalogue.resolutions) for tool in TOOLS.values()])

    async def list_tools(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return self._tools

    async def call_tool(self, context: _Context, params: CallToolRequestParams) -> CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool named {params.name[:100]}.")
        try:
            asked = tool.arguments.model_validate(params.arguments or {})
            caller = _caller(context)
            self._count(tool, caller)
            return await tool.run(Call(self.studio, caller, _report(context)), asked)
        except ValidationError as error:
            return refusal(_unfit(tool, error))
        except CallRefused as error:
            return refusal(str(error))
        except AivistaError as error:
            return refusal(WORDS.error(error.info))
        except MCPError:
            raise
        except Exception:
            # The last boundary: what we did not foresee reaches the log whole and the caller as one sentence.
            _log.exception("the tool %s failed", tool.name)
            return refusal(WORDS.error(ErrorInfo(code=ErrorCode.INTERNAL)))

    async def list_resources(self, context: _Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await resources.listed(self.studio, _caller(context), params.cursor if params else None)

    async def list_templates(
        self, _context: _Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return resources.templates()

    async def read_resource(self, context: _Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await resources.read(self.studio, _caller(context), str(params.uri))

    def _count(self, tool: DoorTool, caller: Caller) -> None:
        wait_s = self.turns.take(caller.owner) if self.turns is not None and tool.is_turn else 0.0
        if wait_s > 0:
            raise CallRefused(WORDS("api.too_many_requests", seconds=ceil(wait_s)))


def _caller(context: _Context) -> Caller:
    """Return who calls: over HTTP as the gate found out for this very request, else the operator."""
    if context.request is None:
        return Caller()
    caller = context.request.scope.get(SCOPE_KEY)
    if not isinstance(caller, Caller):
        raise MCPError(INVALID_PARAMS, "Nobody knows who calls.")
    return caller


def _report(context: _Context) -> Report:
    """Return what tells the client of progress, which only ever grows; a client that did not ask hears nothing."""
    steps = count(1)

    async def report(sentence: str) -> None:
        await context.session.report_progress(float(next(steps)), None, sentence)

    return report


def _unfit(tool: DoorTool, error: ValidationError) -> str:
    """Return the first thing that does not fit, in a sentence; what was sent is not said again."""
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    what = str(first["msg"]).removeprefix("Value error, ").rstrip(".")
    return f"{tool.name} cannot be called like this: {f'{where}: ' if where else ''}{what}."


def _version() -> str:
    try:
        return metadata.version("aivista")
    except metadata.PackageNotFoundError:
        return "0"
