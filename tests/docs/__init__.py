"""The pages of the docs that are made from the code: `python -m tests.docs` writes them."""

from __future__ import annotations

from tests.agent.archive import format_page
from tests.docs import configuration, python_api, readme, turn_graph

PAGES = (turn_graph, configuration, python_api, format_page, readme.ENGLISH, readme.CHINESE)
