"""What the docs say is so: pages made from the code are those it makes now, examples run, links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import agent
from agent import error_sentences
from tests.docs import PAGES, configuration, python_api
from tests.docs.readme import Readme
from tests.docs.turn_graph import arrows, page
from tests.support.cases import each_case
from tests.test_readme import run_example, variables_of_the_code

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAMES = sorted(path.name for path in DOCS.glob("*.md"))


def text_of(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


@pytest.mark.parametrize("made", PAGES, ids=lambda made: made.PAGE.stem)
def test_a_page_that_is_made_from_the_code_is_the_one_it_makes(made: ModuleType | Readme) -> None:
    assert made.PAGE.read_text("utf-8") == made.page(), "it has changed: run `python -m tests.docs`"


def test_the_drawing_shows_the_way_of_a_picture_and_where_it_rests() -> None:
    drawn = page()
    assert set(pairwise(("planner", "retriever", "executor", "critic", "presenter"))) <= set(arrows())
    for node, is_resting in (("decision", True), ("retrial", True), ("executor", False)):
        assert (f"{node}[[{node}]]" in drawn) == is_resting


def test_the_configuration_names_every_variable_of_the_code_and_no_other() -> None:
    rows = set(re.findall(r"^\| `([A-Z_]+)` \|", text_of(configuration.PAGE.name), re.MULTILINE))
    assert rows - {name for name in rows if name.startswith("OTEL_")} == variables_of_the_code()


def test_the_reference_has_every_name_of_the_package_and_every_event_of_a_turn() -> None:
    page = text_of(python_api.PAGE.name)
    assert len(agent.__all__) > 100
    assert [name for name in agent.__all__ if f"### {name}\n" not in page and f"| `{name}` |" not in page] == []


def test_the_tree_of_the_architecture_names_every_leaf_and_every_file_of_the_workflow_and_no_other() -> None:
    [tree] = re.findall(r"```\n(agent/\n.*?)```", text_of("architecture.md"), re.DOTALL)
    named = set(re.findall(r"\w+\.py\b", tree))
    agent_folder = ROOT / "agent"
    assert named - {path.name for path in agent_folder.rglob("*.py")} == set(), "these are gone"
    files = {path.name for folder in (agent_folder, agent_folder / "workflow") for path in folder.glob("*.py")}
    assert files - named - {"__init__.py"} == set(), "these are new"


@each_case("name", [*NAMES, "../README.md", "../README.zh-CN.md"])
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)", text_of(name)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (DOCS / name).parent / file if file else DOCS / name
        assert found.exists(), target
        if anchor:
            # As GitHub makes it of a heading.
            headings = re.findall(
                r"^#+ (.+)$", re.sub(r"```.*?```", "", found.read_text("utf-8"), flags=re.DOTALL), re.MULTILINE
            )
            plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
            assert anchor in {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}, target


def test_the_index_leads_to_every_page_and_there_are_examples_to_run() -> None:
    assert {name for name, _ in programs()} >= {"how-to.md", "python-api.md", "contributing.md"}
    assert {name for name in NAMES if f"]({name}" not in text_of("README.md")} == {"README.md"}


def sentences() -> list[re.Pattern[str]]:
    """Return every sentence that the studio says, as a pattern in which its parameters may be anything."""
    words = tomllib.loads((ROOT / "webui/locales/en.toml").read_text("utf-8"))
    said = [*error_sentences().values()]
    said += [sentence for group in words.values() for sentence in group.values()]
    for file in (ROOT / "webui/cli").rglob("*.py"):
        said += re.findall(r'CommandFailed\(\s*f?"([^"]+)"', file.read_text("utf-8"))
    return [re.compile(re.sub(r"\\{[^}]*\\}", ".+?", re.escape(one))) for one in said]


def test_every_sentence_of_the_troubleshooting_is_one_that_the_studio_says() -> None:
    known = sentences()
    cells = re.findall(r"^\| ([^|]+) \|", text_of("troubleshooting.md"), re.MULTILINE)
    quoted = [one for cell in cells for one in re.findall("“([^”]+)”", cell)]
    assert len(quoted) > 20
    # One that ends with an ellipsis stands for its first sentence.
    whole = [one for one in quoted if not one.endswith(" …")]
    assert [one for one in whole if not any(pattern.fullmatch(one) for pattern in known)] == []
    begun = [one.removesuffix(" …") for one in quoted if one.endswith(" …")]
    firsts = [re.compile(pattern.pattern.partition(r"\.\ ")[0] + r"\.") for pattern in known]
    assert [one for one in begun if not any(pattern.fullmatch(one) for pattern in firsts)] == []


# Examples: whole programs run as they stand. Those of the HTTP API are run in tests/webui/api.


def programs() -> Iterator[tuple[str, str]]:
    """Yield the page and the code of each Python example that is a whole program: it begins with what it imports."""
    for name in [one for one in NAMES if one != "api.md"]:
        for code in re.findall(r"^```python\n(.*?)^```", text_of(name), re.MULTILINE | re.DOTALL):
            if re.match(r"import |from ", code):
                yield name, code


@pytest.mark.parametrize(("name", "code"), list(programs()))
def test_a_program_of_the_docs_runs_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    assert run_example(code, tmp_path, AIVISTA_HOME=str(tmp_path / "home")), f"{name}: it shows nothing"
