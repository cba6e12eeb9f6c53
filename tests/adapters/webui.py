"""What the page asks Python for, the sentences that its panel says for the person and how its tree and its
Markdown are drawn; the studio as an MCP server; the flags of its command, and what a visitor is known by."""

from __future__ import annotations

from webui.cli.parser import read_flags
from webui.features.all import FEATURES
from webui.features.thread.markdown import MOST_FORMATTED_CHARACTERS, markdown_html, own_words_html
from webui.features.tree.lineage import Kin, Lineage, lineage
from webui.features.viewer.actions import PanelAmounts, PanelPress, amounts_sentence, pressed_sentence
from webui.http.hosts import ALIVE
from webui.http.sessions import COOKIE
from webui.mcp_server.server import mcp_server


def actions() -> list[str]:
    """Return the names of all actions."""
    return [f"{feature.name}.{action}" for feature in FEATURES for action in feature.actions]
