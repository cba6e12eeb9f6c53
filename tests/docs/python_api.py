"""The reference of what scripts use, as a page: each name with its signature and what it says about itself."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

import agent
from agent import (
    Actor,
    AivistaError,
    Archive,
    Ask,
    Component,
    Conversation,
    ConversationInfo,
    Conversations,
    Decision,
    DriftRecord,
    EditRecord,
    ErrorInfo,
    Expansion,
    ExportedArchive,
    Fact,
    Gallery,
    GalleryItem,
    GalleryMatch,
    GalleryPage,
    GalleryQuery,
    ImageModelChoice,
    ImagePart,
    ImportReport,
    LaterEdits,
    LiveTurn,
    Mask,
    OpenAISettings,
    Patiences,
    Picture,
    PictureFile,
    Plan,
    PlanEdit,
    Preferences,
    PreferenceStore,
    ProviderChoice,
    RateLimited,
    Receipt,
    RecipeService,
    Reference,
    ReferenceRole,
    Review,
    ReviewChoice,
    SearchPolicy,
    Settings,
    Source,
    SpendBook,
    Spent,
    Sponsor,
    Step,
    StepSummary,
    StoredPicture,
    Studio,
    Style,
    StyleDraft,
    StyleLibrary,
    StyleUse,
    TelemetrySettings,
    TextModelChoice,
    TokenUsage,
    Traces,
    TraceStep,
    Turn,
    TurnEvent,
    TurnLimits,
    TurnRequest,
    Turns,
    TurnSettings,
    TurnState,
    Workspace,
    variables_of,
)

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
COMMAND = "python -m tests.docs"

SECTIONS: dict[str, tuple[type, ...]] = {
    "The door": (Studio, Conversations, Turns, LiveTurn, LaterEdits, TurnLimits, Sponsor),
    "What is sent": (TurnRequest, TurnSettings, SearchPolicy, Mask, Expansion, ReferenceRole, Decision, PlanEdit),
    "What happens": (*get_args(TurnEvent), Step, Plan, Ask, Review, StepSummary, TraceStep),
    "Pictures": (StoredPicture, Picture, Receipt, Reference, StyleUse, Fact, Source, EditRecord, DriftRecord),
    "Conversations": (Conversation, ConversationInfo, Turn, TurnState, ImagePart, TokenUsage),
    "What a turn shows": get_args(get_args(Component)[0]) or get_args(Component),
    "The gallery": (Gallery, GalleryQuery, GalleryPage, GalleryItem, GalleryMatch),
    "Files, styles and money": (
        *(Workspace, StyleLibrary, Style, StyleDraft),
        *(SpendBook, Spent, PreferenceStore, Preferences, Traces),
    ),
    "Taking along": (Archive, ExportedArchive, ImportReport, RecipeService, PictureFile),
    "Settings of the operator": (Settings, OpenAISettings, Patiences, TelemetrySettings),
    "Errors": (AivistaError, RateLimited, ErrorInfo, Actor),
}
CHOICES = {
    "TextModelChoice": TextModelChoice,
    "ImageModelChoice": ImageModelChoice,
    "ReviewChoice": ReviewChoice,
    "ProviderChoice": ProviderChoice,
}

_PAGE = """# The Python API

Made from the code by `{command}`; a test compares. `Studio` is the whole program without a screen: the page, the
[HTTP API](api.md) and the [MCP server](mcp-server.md) go through it as well. Every name below is imported from `agent`;
a module is loaded when one of its names is first asked for.

```python
import asyncio
import os

from agent import PictureReady, Settings, Studio, TextDelta, TurnFailed, TurnRequest, TurnSettings


async def main() -> None:
    async with Studio(Settings.from_env(os.environ)) as studio:
        conversation = await studio.conversations.create()
        wide = TurnSettings(aspect_ratio="16:9", review="off")
        async for event in studio.run_turn(conversation.id, TurnRequest(text="draw a lighthouse", settings=wide)):
            match event:
                case TextDelta():
                    print(event.text, end="")
                case PictureReady():
                    print(event.picture.handle, event.picture.receipt.model_label)
                case TurnFailed():
                    print(event.error.message)
        async for _ in studio.run_turn(conversation.id, TurnRequest(text="make it warmer", editing="#1")):
            pass
        picture = await studio.picture(conversation.id, "#1b")
        print(picture.picture.parents, picture.mime_type, len(picture.data) > 0)


asyncio.run(main())
```

* A turn that ends badly ends with an event, `TurnFailed`; a method that is asked for something that is not there raises
  one of the [errors](#errors).
* Values are frozen pydantic models: `.model_dump_json()` writes one, `.model_copy(update=…)` makes another.
* Moments are UTC, times seconds, prices US dollars, sizes bytes or pixels, as their names say. A handle is a picture's
  short name in its conversation, such as `#7b`.
* `owner` is whose it is. Everything of a studio without visitors belongs to `local`.
* Choices: {choices}.

{sections}

## The other names

| name | what it is |
| --- | --- |
{others}
"""


def page() -> str:
    """Return the whole page."""
    sections = (f"## {heading}\n\n" + "\n\n".join(map(_entry, names)) for heading, names in SECTIONS.items())
    choices = (f"`{name}` is {_alternatives(get_args(choice))}" for name, choice in CHOICES.items())
    return _PAGE.format(command=COMMAND, choices="; ".join(choices), sections="\n\n".join(sections), others=_others())


def _alternatives(values: Sequence[str]) -> str:
    *first, last = (f"`{value}`" for value in values)
    return f"{', '.join(first)} or {last}"


def _entry(cls: type) -> str:
    parts = [f"### {cls.__name__}", _said(cls), _outline(cls)]
    return "\n\n".join(filter(None, parts))


def _others() -> str:
    """Return a row for each public name that has no entry of its own, with the first sentence it says of itself."""
    shown = {cls.__name__ for names in SECTIONS.values() for cls in names}
    others = (
        (name, getattr(agent, name))
        for name in sorted({*agent.__all__} - shown, key=lambda name: (name.casefold(), name))
    )
    return "\n".join(f"| `{name}` | {_in_short(other)} |" for name, other in others)


def _in_short(other: object) -> str:
    if alternatives := get_args(other):
        are_words = all(isinstance(one, str) for one in alternatives)
        return _alternatives(alternatives) if are_words else "one of several types"
    if isinstance(other, type) or callable(other):
        return inspect.cleandoc(other.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    return ", ".join(f"`{one}`" for one in other) if isinstance(other, tuple) else f"`{other!r}`"


def _said(cls: type) -> str:
    """Return the docstring as Markdown; one that a library wrote says nothing of the class."""
    said = cls.__dict__.get("__doc__") or ""
    return "" if said.startswith(f"{cls.__name__}(") else inspect.cleandoc(said)


def _outline(cls: type) -> str:
    """Return the class as a stub: its fields as they are written, each public method with what it says about itself."""
    if issubclass(cls, Enum):
        return " · ".join(f"`{member.value}`" for member in cls)
    source = textwrap.dedent(inspect.getsource(cls))
    [definition] = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    lines = source.splitlines()
    shown = [block for node in definition.body if (block := _member(node, lines, cls))]
    # A method stands apart from what is before it.
    body = "\n".join(f"\n{block}" if '"""' in block and number else block for number, block in enumerate(shown))
    return f"```python\nclass {cls.__name__}:\n{body}\n```" if shown else ""


def _member(node: ast.stmt, lines: Sequence[str], cls: type) -> str:
    """Return a field, or a method up to the end of its docstring; nothing for what is private or of a library's."""
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) if issubclass(cls, BaseModel) and variables_of(cls, name):
            default = (
                ""
                if cls.model_fields[name].is_required()
                else f" = {cls.model_fields[name].default!r}".replace("'", '"')
            )
            read_from = ", ".join(one.name for one in variables_of(cls, name))
            return f"    {name}: {ast.unparse(node.annotation)}{default}  # {read_from}"
        case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_") and name != "model_config":
            return "\n".join(lines[node.lineno - 1 : node.end_lineno])
        case ast.FunctionDef(name="__init__") if cls is Studio:
            return "\n".join(lines[node.lineno - 1 : node.body[0].lineno - 1]) + " ..."
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if not name.startswith("_"):
            if ast.get_docstring(node) is None or any("validator" in ast.unparse(one) for one in node.decorator_list):
                return ""
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(lines[first - 1 : node.body[0].end_lineno])
        case _:
            return ""
