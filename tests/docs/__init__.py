"""The pages of the docs that are made from the code: `python -m tests.docs` writes them."""

from __future__ import annotations

from tests.docs import archive_format, configuration, python_api, readme, turn_graph

PAGES = (turn_graph, configuration, python_api, archive_format, readme.ENGLISH, readme.CHINESE)
