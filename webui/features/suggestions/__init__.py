"""Suggestions while the user types: after `#` or `@` pictures of the conversation, after `/` prompts and styles."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, NamedTuple

from pydantic import Field

from agent import Value
from webui.features.styles import found, title_of
from webui.features.tree import label
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply

suggestions = Feature("suggestions")
_MOST_PICTURES, _MOST_STYLES = 40, 8
_IMAGE_EDGE_PX = 96


class Sought(Value):
    """The text after the sign, and the matching prompts that the browser keeps."""

    query: str = Field(default="", max_length=60)
    prompts: Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=5)] = ()


class Option(NamedTuple):
    """A suggestion: the text to insert, its name, a description, and a picture or an icon."""

    insert: str
    name: str
    text: str = ""
    image: str = ""
    icon: str = ""


@suggestions.action
async def pictures(at: Context, sought: Sought) -> Reply:
    """Suggest pictures of the conversation, the newest first."""
    conversation, view, wanted = await at.conversation(), at.view, sought.query.casefold()
    newest = reversed(conversation.all_pictures if conversation is not None else ())
    described = ((one.handle, label(at.words, one)) for one in newest)
    options = (
        Option(handle, handle, text, view.url(handle, _IMAGE_EDGE_PX))
        for handle, text in described
        if handle.startswith(f"#{wanted}") or wanted in text.casefold()
    )
    return _offered(at, list(islice(options, _MOST_PICTURES)))


@suggestions.action
async def styles(at: Context, sought: Sought) -> Reply:
    """Suggest the matching prompts, then styles."""
    words, query = at.words, sought.query.strip()
    everything = await at.screen.studio().styles.all(at.visitor.owner)
    shown = [one.style for one in found(words, query, everything, ())] if query else everything
    kept = [Option("", one, icon="star") for one in sought.prompts]
    options = [
        Option(
            words("styles.try_words", title=title_of(words, style)),
            title_of(words, style),
            image="" if style.is_own else f"aivista/styles/{style.id}.webp",
            icon="palette",
        )
        for style in shown[:_MOST_STYLES]
    ]
    return _offered(at, [*kept, *options])


def _offered(at: Context, options: list[Option]) -> Reply:
    if not options:
        return Reply(patches=(Patch(id="suggestions"),))
    return Reply(patches=(at.fragment("suggestions", "suggestions/list.html", "context", options=options),))
