"""The one list of tools that the planner may call; a new tool is one file and one line here."""

from __future__ import annotations

from agent.tools.base import Tool
from agent.tools.files import delete_file, list_files, read_file, run_javascript, write_file
from agent.tools.look import get_history_image, go_back_to, read_url, view_image

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
