"""The code stands as it was designed: arrows point down, SDKs stay behind their file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from tests.adapters.models import load_catalogue
from tests.support.cases import each_case
from tests.support.sources import nodes
from tests.support.tables import table

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for folder in ("agent", "webui") for path in (ROOT / folder).rglob("*.py"))
AGENT = [path for path in SOURCES if path.is_relative_to(ROOT / "agent")]

# What the catalogue calls a provider or a model.
NAMES = {name for one in load_catalogue().entries if not one.stands_for_any for name in (one.provider, one.id)}

LEAVES = """
adjusting cancellation child_process conversation errors events library locales mcp_config messages moved pictures
pixels prompts proxies requests redaction settings style_look style_rendering trace untrusted version wording
"""
# From the top down; a module may import from the floors below its own, and from its own room.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("webui",),
    ("agent", "agent.studio"),
    ("agent.conversations", "agent.turns"),
    ("agent.workflow", "agent.archive"),
    ("agent.mcp",),
    ("agent.spending",),
    ("agent.imaging", "agent.tools", "agent.history_images", "agent.report", "agent.telemetry", "agent.worst_case"),
    ("agent.fetching", "agent.providers", "agent.sandbox", "agent.storage"),
    tuple(f"agent.{name}" for name in LEAVES.split()),
)
# The door's name, `agent`, leads to the whole studio and mends the proxies, and the tool that fetches a history image
# leads to that file.
PASSAGES = {("agent", "agent.studio"), ("agent", "agent.proxies"), ("agent.tools", "agent.history_images")}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> list[str]:
    """Return every module a file imports, wherever in the file, as dotted names."""
    return list(imported_by(nodes(path), module_name(path), is_package=path.name == "__init__.py"))


def imported_by(source: Iterable[ast.AST], module: str, *, is_package: bool = False) -> Iterator[str]:
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in source:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def room(module: str) -> str | None:
    """Return the room of the house that a module or a name in it belongs to, or None outside of it."""
    if module.partition(".")[0] == "webui":
        return "webui"
    if module.partition(".")[0] != "agent":
        return None
    name = ".".join(module.split(".")[:2])
    return name if any(name in floor for floor in FLOORS) or is_module(name) else "agent"


def is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def floor_of(name: str) -> int | None:
    return next((number for number, floor in enumerate(FLOORS) if name in floor), None)


def test_every_room_has_its_floor() -> None:
    homeless = {name for path in SOURCES if (name := room(module_name(path))) and floor_of(name) is None}
    assert not homeless, "say in FLOORS where these belong"


def points_up(module: str, target: str) -> bool:
    """Return whether an import leads to a floor above, or to another room of the same floor (but for the leaves)."""
    here, there = room(module), room(target)
    if there in {None, here} or (here, there) in PASSAGES:
        return False
    floor, other = floor_of(here or ""), floor_of(there or "")
    return floor is None or other is None or other < floor or (other == floor and floor != (len(FLOORS) - 1))


def test_arrows_point_down() -> None:
    arrows = [(module_name(path), target) for path in SOURCES for target in imported(path)]
    assert len(arrows) > 100
    assert [f"{module} imports {target}" for module, target in arrows if points_up(module, target)] == []


@each_case(("module", "line", "is_wrong"), table("doors")["arrows"])
def test_the_rule_sees_which_arrows_point_up(module: str, line: str, is_wrong: bool) -> None:
    targets = list(imported_by(ast.walk(ast.parse(line)), module))
    assert targets
    assert any(points_up(module, target) for target in targets) is is_wrong


def test_the_agent_knows_no_screen() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {target}"
        for path in AGENT
        for target in imported(path)
        if target.partition(".")[0] in {"gradio", "gradio_client", "webui"}
    ]
    assert wrong == []


def test_all_above_the_agent_needs_one_import() -> None:
    above = [path for path in SOURCES if path not in AGENT]
    assert len(above) > 50
    inside = [
        f"{path.relative_to(ROOT)} imports {node.module}"
        for path in above
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agent.")
    ]
    assert inside == [], "list the name in `agent/__init__.pyi`"


def reads_of_the_environment(path: Path) -> Iterator[int]:
    for node in nodes(path):
        names = {"environ", "environb", "getenv", "getenvb"}
        if isinstance(node, ast.Attribute) and node.attr in names and ast.unparse(node.value) == "os":
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and node.module == "os" and names & {alias.name for alias in node.names}:
            yield node.lineno


def test_the_agent_reads_no_environment() -> None:
    # But for the proxies, which are mended before anything else is imported.
    reading = [path for path in AGENT if module_name(path) != "agent"]
    assert [f"{path.relative_to(ROOT)}:{line}" for path in reading for line in reads_of_the_environment(path)] == []


@each_case(
    ("sdk", "homes"),
    [
        (("google.genai", "google.api_core"), ("agent/providers/gemini",)),
        (("mcp", "mcp_types"), ("agent/mcp/", "webui/")),
    ],
)
def test_each_sdk_is_known_by_its_own_room_alone(sdk: tuple[str, ...], homes: tuple[str, ...]) -> None:
    knowing = {
        path.relative_to(ROOT).as_posix()
        for path in SOURCES
        for target in imported(path)
        if target in sdk or target.startswith(tuple(f"{one}." for one in sdk))
    }
    assert [name for name in knowing if name.startswith(homes[0])], "the rule has something to hold"
    assert [name for name in knowing if not name.startswith(homes)] == []


def compared(source: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield every text that something is compared with, by `==`, `in`, `match` or the start of a text, and its line."""
    for node in source:
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
            case ast.MatchValue():
                sides = [node.value]
            case ast.Call(func=ast.Attribute(attr="startswith" | "endswith" | "removeprefix")):
                sides = node.args
            case _:
                continue
        values = [ast.walk(side) if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side] for side in sides]
        yield from (
            (one.lineno, one.value)
            for one in chain.from_iterable(values)
            if isinstance(one, ast.Constant) and isinstance(one.value, str)
        )


@each_case(
    "line",
    [
        'provider == "sketch"',
        '"gemini" != provider',
        'provider in ("x", "openai")',
        'model.id.startswith("gemini-3")',
        'match provider:\n    case "x" | "sketch":\n        pass',
        'model == "gpt-image-2"',
    ],
)
def test_the_rule_sees_a_comparison_by_name(line: str) -> None:
    assert [text for _, text in compared(ast.walk(ast.parse(line))) if is_in_the_catalogue(text)]


def is_in_the_catalogue(text: str) -> bool:
    return text in NAMES or any(text.startswith(f"{name}-") for name in NAMES)


def test_no_provider_and_no_model_is_compared_by_name() -> None:
    """What differs between them is a fact of the catalogue."""
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{line} {text}"
        for path in SOURCES
        for line, text in compared(nodes(path))
        if is_in_the_catalogue(text)
    }
    assert not found, "ask the catalogue instead"


def test_no_file_is_named_after_everything() -> None:
    folders_and_files = [part for path in SOURCES for part in path.relative_to(ROOT).with_suffix("").parts]
    words = {word for part in folders_and_files for word in part.lower().split("_")}
    assert not words & {"utils", "util", "helpers", "helper", "common", "shared", "manager", "misc"}
