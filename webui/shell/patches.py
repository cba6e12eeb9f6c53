"""What an answer changes on the page: elements by their ids, one sentence, and what only a script can do."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue

from agent import Value
from webui.shell.templates import render
from webui.words import Words


class Patch(Value):
    """HTML of the element with this id: it takes the place of the one that is there, else it comes into the element
    `parent`, or into the body: before the element with the id `before`, or last. Without HTML the element goes."""

    id: str
    html: str | None = None
    parent: str = ""
    before: str = ""


class Undo(Value):
    """The action that takes back what was just done, and its arguments."""

    action: str
    args: dict[str, JsonValue]


class Toast(Value):
    """One sentence about what was done, with the way back if there is one, or about why it was not."""

    text: str
    is_problem: bool = False
    undo: Undo | None = None


class Reply(Value):
    """What the page does: change its HTML, say a sentence, and by name what only a script can do."""

    patches: tuple[Patch, ...] = ()
    toast: Toast | None = None
    events: dict[str, JsonValue] = Field(default_factory=dict)

    def written(self, words: Words) -> dict[str, Any]:
        """Return the reply as JSON: what it says is an element like the others."""
        patches = self.patches
        if self.toast is not None:
            patches += (Patch(id="toast", html=render("toast.html", words, toast=self.toast)),)
        return {"patches": [one.model_dump(exclude_defaults=True) for one in patches], "events": self.events}
