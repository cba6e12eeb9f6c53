"""The one list of tools that the planner may call; a new tool is one file and one line here."""

from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.history_image import GET_HISTORY_IMAGE

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (GET_HISTORY_IMAGE,)}
