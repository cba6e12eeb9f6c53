"""Servers of tools that an operator adds."""

from __future__ import annotations

from agent import ServerState
from agent.mcp.offers import offered_name
from agent.mcp.pins import Pins
from agent.mcp.schemas import UnusableSchema, reduced
from agent.mcp_config import HttpServer, McpServer, StdioServer, read_mcp_config
