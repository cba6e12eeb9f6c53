"""The studio as an MCP server."""

from __future__ import annotations

from webui.mcp_server.server import mcp_server
