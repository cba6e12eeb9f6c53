"""How the pictures of a conversation descend from each other."""

from __future__ import annotations

from webui.features.tree.lineage import Kin, Lineage, lineage
