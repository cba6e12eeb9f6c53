"""The one list of tools that the planner may call; a new tool is one file and one line here."""

from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.edit_target import go_back_to
from agent.tools.history_image import get_history_image
from agent.tools.read_url import read_url
from agent.tools.run_javascript import run_javascript
from agent.tools.view_image import view_image
from agent.tools.workspace import delete_file, list_files, read_file, write_file

TOOLS: dict[str, Tool] = {
    one.name: one
    for one in (
        view_image,
        get_history_image,
        go_back_to,
        read_url,
        run_javascript,
        write_file,
        read_file,
        list_files,
        delete_file,
    )
}
