"""The style library at work: its clicks become changes of the visitor's own styles, and a style is tried in a turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import (
    MAX_STYLE_IMAGE_BYTES,
    AivistaError,
    ErrorCode,
    RequestRefused,
    Style,
    StyleDraft,
    StyleLibrary,
    StyleMatch,
    Value,
)
from webui.panels import styles as panel
from webui.panels.composer import Chosen
from webui.panels.styles import LONGEST_QUERY, StylesPanel
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.style_finding import Shown, found, in_family, title_of
from webui.style_forms import draft_fields, fields_of, refusal
from webui.tabs import Tab
from webui.turns import Turns

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64
_MOST_MATCHES = 24
# Nobody need wait longer for a first answer to what they typed.
_AT_ONCE_S = 0.25
# Whoever types into the box looks around: what a turn would leave aside is still worth showing.
_FLOOR = 0.35


class StyleClick(Value):
    """A click of the library as the page sends it; anything else is ignored."""

    act: str
    id: str = Field(default="", max_length=64)
    query: str = Field(default="", max_length=LONGEST_QUERY)
    family: str = Field(default="", max_length=40)
    fields: Mapping[str, Annotated[str, Field(max_length=5000)]] = Field(default_factory=dict)
    text: str = ""


def read_style_click(data: object) -> StyleClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return StyleClick.model_validate(data)
    except ValidationError:
        return None


@dataclass
class Shelf:
    """What one open tab looks at, what it deleted last, and whether it has just been told of a problem."""

    query: str = ""
    family: str = ""
    has_problem: bool = False
    deleted: StyleDraft | None = None


@dataclass(frozen=True)
class Styles:
    """Answers the clicks of the library with updates of it. All that is read or changed is the visitor's own."""

    screen: Screen
    panel: StylesPanel

    @property
    def library(self) -> StyleLibrary:
        """The studio's library."""
        return self.screen.studio().styles

    async def answer(self, visitor: Visitor, shelf: Shelf, click: StyleClick) -> AsyncIterator[Updates]:
        """Yield what the click changes; what cannot be done is told in one sentence, and changes nothing."""
        had_problem, shelf.has_problem = shelf.has_problem, False
        forgotten = {self.panel.note: ""} if had_problem else {}
        try:
            if click.act in ("open", "find"):
                async for updates in self._look(visitor, shelf, click):
                    yield {**forgotten, **updates}
            else:
                yield {**forgotten, **await self._answer(visitor, shelf, click)}
        except AivistaError as error:
            shelf.has_problem = True
            yield {self.panel.note: panel.note_html(refusal(visitor.words, error.info), is_problem=True)}

    async def _look(self, visitor: Visitor, shelf: Shelf, click: StyleClick) -> AsyncIterator[Updates]:
        """Yield the list; where the library takes its time, first what merely says the words."""
        shelf.query, shelf.family = click.query.strip(), click.family
        head: Updates = {}
        if click.act == "open":
            self.screen.studio().keep_alive(self._warm_up(visitor))
            head = {self.panel.head: panel.head_html(visitor.words), self.panel.note: ""}
        seen = replace(shelf)  # the next click may change it while this one waits
        finding = asyncio.create_task(self._list(visitor, seen))
        try:
            done, _ = await asyncio.wait([finding], timeout=_AT_ONCE_S)
            if not done:
                yield {**head, **self._listed(visitor, seen, await self.library.all(visitor.owner), ())}
            yield {**head, **await finding}
        finally:
            finding.cancel()

    async def _answer(self, visitor: Visitor, shelf: Shelf, click: StyleClick) -> Updates:
        match click.act:
            case "new" | "edit":
                style = await self._own(visitor, click.id) if click.act == "edit" else None
                form = panel.form_html(visitor.words, fields_of(style), style.id if style else "")
                return {self.panel.note: "", self.panel.form: form}
            case "cancel":
                return {self.panel.note: "", self.panel.form: ""}
            case _:
                return await self._change(visitor, shelf, click)

    async def _change(self, visitor: Visitor, shelf: Shelf, click: StyleClick) -> Updates:
        words, owner = visitor.words, visitor.owner
        match click.act:
            case "save":
                style = await self._save(visitor, click)
                said = panel.note_html(words("styles.saved", title=title_of(words, style)))
                return {self.panel.note: said, self.panel.form: "", **await self._list(visitor, shelf)}
            case "delete":
                style = await self._own(visitor, click.id)
                await self.library.delete(style.id, owner)
                shelf.deleted = style.draft
                said = words("styles.deleted", title=title_of(words, style))
                note = panel.note_html(said, undo=words("styles.undo"))
                return {self.panel.note: note, **await self._list(visitor, shelf)}
            case "undo" if shelf.deleted is not None:
                style = await self.library.add(shelf.deleted, owner)
                shelf.deleted = None
                said = panel.note_html(words("styles.restored", title=title_of(words, style)))
                return {self.panel.note: said, **await self._list(visitor, shelf)}
            case "import":
                # The page sends no more of a file than shows that it is too large.
                taken = await self.library.import_styles(click.text[: MAX_STYLE_IMAGE_BYTES + 1].encode(), owner)
                said = panel.note_html(words.counted("styles.imported", len(taken)))
                return {self.panel.note: said, **await self._list(visitor, shelf)}
            case "export":
                return {self.panel.note: await self._exported(visitor)}
            case _:
                return {}

    async def try_it(
        self, visitor: Visitor, tab: Tab, style_id: str, at: Mapping[str, Any], message: Mapping[str, Any] | None
    ) -> AsyncIterator[Updates]:
        """Repaint the picture at hand in a style, or put the style into the composer where there is no picture.

        At hand is the picture marked to be changed, else the newest of the conversation. `at` is the conversation,
        the picture marked, and the chips.
        """
        words, box = visitor.words, self.screen.panels.composer.message
        try:
            title = title_of(words, await self.library.get(style_id, visitor.owner))
        except AivistaError as error:
            yield {self.panel.note: panel.note_html(refusal(words, error.info), is_problem=True)}
            return
        conversation = await self.screen.conversation(visitor, at["conversation"])
        handles = [picture.handle for picture in conversation.pictures] if conversation else []
        if not handles:
            yield {box: gr.update(value=_with_style(words("styles.try_words", title=title), message))}
            return
        handle = at["editing"] if at["editing"] in handles else handles[-1]
        said = words("styles.try_said", title=title)
        async for updates in Turns(self.screen).say(
            visitor, tab, at["conversation"], said, handle, Chosen.model_validate(at["chips"])
        ):
            yield updates

    async def _list(self, visitor: Visitor, shelf: Shelf) -> Updates:
        styles, matches = await self.library.all(visitor.owner), []
        if shelf.query:
            matches = await self.library.search(shelf.query, _MOST_MATCHES, _FLOOR, owner=visitor.owner, is_style=True)
        return self._listed(visitor, shelf, styles, matches)

    def _listed(
        self, visitor: Visitor, shelf: Shelf, styles: Sequence[Style], matches: Sequence[StyleMatch]
    ) -> Updates:
        words, query = visitor.words, shelf.query
        shown = found(words, query, styles, matches) if query else [Shown(style) for style in styles]
        shown = [one for one in shown if in_family(one.style, shelf.family)]
        price = self.screen.view(visitor, "").turn_price
        return {self.panel.cards: panel.list_html(words, shown, query, shelf.family, price)}

    async def _own(self, visitor: Visitor, style_id: str) -> Style:
        """Return one of the visitor's own styles. Raises RequestRefused, also for a curated one."""
        style = await self.library.get(style_id, visitor.owner)
        if not style.is_own:
            raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
        return style

    async def _save(self, visitor: Visitor, click: StyleClick) -> Style:
        if not click.id:
            return await self.library.add(draft_fields(click.fields), visitor.owner)
        before = await self._own(visitor, click.id)
        return await self.library.edit(before.id, draft_fields(click.fields, before), visitor.owner)

    async def _exported(self, visitor: Visitor) -> str:
        own = [style for style in await self.library.all(visitor.owner) if style.is_own]
        if not own:
            return panel.note_html(visitor.words("styles.nothing_to_export"), is_problem=True)
        data = await self.library.export_styles(visitor.owner)
        return panel.download_html(visitor.words.counted("styles.exported", len(own)), data)

    async def _warm_up(self, visitor: Visitor) -> None:
        # LanceDB takes a second to load: while one looks at the list, and not when one first types. A search that
        # fails says so itself.
        with contextlib.suppress(AivistaError):
            await self.library.warm_up(visitor.owner)


def wire_styles(screen: Screen, library: StylesPanel, tab: gr.State) -> None:
    """Let the library's clicks call its handlers."""
    styles, composer, shelf = Styles(screen, library), screen.panels.composer, gr.State(Shelf())

    async def act(request: gr.Request, event: gr.EventData, shelf: Shelf) -> AsyncIterator[Updates]:
        click = read_style_click(event._data)
        if click is None:
            return
        async for updates in styles.answer(screen.sessions.visitor(request), shelf, click):
            yield updates or {library.note: gr.skip()}
        yield {library.note: gr.skip()}

    library.bus.click(
        act,
        None,
        library.outputs,
        inputs_kwargs={"shelf": shelf},
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )

    async def paint(
        request: gr.Request,
        event: gr.EventData,
        tab: Tab,
        message: dict[str, Any] | None,
        conversation: str,
        editing: str,
        **chips: Any,
    ) -> AsyncIterator[Updates]:
        click, at = read_style_click(event._data), {"conversation": conversation, "editing": editing, "chips": chips}
        if click is None:
            return
        async for updates in styles.try_it(screen.sessions.visitor(request), tab, click.id, at, message):
            yield updates
        yield screen.nothing()

    wires = {"conversation": composer.conversation, "editing": composer.editing, "message": composer.message}
    library.bus.submit(
        paint,
        None,
        [*screen.panels.outputs, library.note],
        inputs_kwargs={"tab": tab, **wires, **composer.settings},
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )


def _with_style(said: str, message: Mapping[str, Any] | None) -> dict[str, object]:
    """Return the composer's value with the style behind whatever is in it."""
    before = str((message or {}).get("text") or "").rstrip()
    return {"text": f"{before} {said}".strip(), "files": list((message or {}).get("files") or [])}
