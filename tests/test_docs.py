"""The pages of the docs that are made from the code are those that the code makes now."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.turn_graph import COMMAND, PAGE, arrows, page, rests

DOCS = Path(__file__).parents[1] / "docs"


def test_the_drawing_of_the_graph_is_the_one_the_code_makes() -> None:
    assert PAGE.read_text("utf-8") == page(), f"the graph has changed: run `{COMMAND}`"


def test_the_drawing_shows_the_way_of_a_picture_and_none_of_langgraphs_own_nodes() -> None:
    known = {(source, target) for source, target, _ in arrows()}
    way = ["planner", "retriever", "executor", "critic", "presenter"]
    assert set(pairwise(way)) <= known
    assert "error_handler" not in page()


@pytest.mark.parametrize(("node", "is_resting"), [("decision", True), ("retrial", True), ("executor", False)])
def test_the_turn_rests_where_the_person_is_waited_for(node: str, is_resting: bool) -> None:
    assert rests(node) is is_resting
    assert (f"{node}[[{node}]]" in page()) is is_resting


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("*.md")))
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)", (DOCS / name).read_text("utf-8"))
    assert [one for one in targets if "://" not in one and not (DOCS / one).exists()] == []


def test_the_tree_of_the_architecture_names_every_leaf_and_every_file_of_the_workflow_and_no_other() -> None:
    [tree] = re.findall(r"```\n(agent/\n.*?)```", (DOCS / "architecture.md").read_text("utf-8"), re.DOTALL)
    named = set(re.findall(r"\w+\.py\b", tree))
    agent = DOCS.parent / "agent"
    assert named - {path.name for path in agent.rglob("*.py")} == set(), "these are gone"
    files = {path.name for folder in (agent, agent / "workflow") for path in folder.glob("*.py")}
    assert files - named - {"__init__.py"} == set(), "these are new"
