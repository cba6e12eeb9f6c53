"""The whole screen for a visitor and a conversation, as updates of the page's components."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import gradio as gr
from gradio.data_classes import GradioModel, GradioRootModel
from pydantic import JsonValue, SecretStr

from agent import (
    IMAGE_ROLES,
    OPERATOR,
    TEXT_ROLES,
    Conversation,
    ErrorInfo,
    KeyDiagnosis,
    ModelEntry,
    ModelRole,
    ReferenceRole,
    RequestRefused,
    Studio,
    TurnState,
    upload_limit_megabytes,
)
from webui.cards import View
from webui.features.viewer import opened_canvas_html
from webui.live import LiveTurn, resumed
from webui.model_limits import Limits, limits_html, limits_of
from webui.offers import Offer, image_offers
from webui.panels import chat, composer, conversations
from webui.panels.aids import aids_html
from webui.panels.chat import ChatPanel, thread_told
from webui.panels.composer import Chosen, ComposerPanel
from webui.panels.conversations import RailPanel
from webui.render import Article, Block, article, article_id, render_conversation, render_live
from webui.roles import write_roles
from webui.sessions import Sessions, Visitor
from webui.shell.patches import Patch, Reply
from webui.spend import button_prices, chosen_estimate, estimate_html
from webui.tabs import Tab, Tabs
from webui.words import Words

Updates = dict[Any, Any]
THREAD = "thread"
"""In updates: the thread, as `thread_told` gives it."""


@dataclass(frozen=True)
class Panels:
    """Every component of the page that is filled."""

    rail: RailPanel
    chat: ChatPanel
    composer: ComposerPanel
    canvas: gr.HTML
    recipe: gr.HTML
    spoken: Mapping[gr.HTML, Callable[[Words], str]]
    """Those that need no more than the visitor's words."""


@dataclass(frozen=True)
class Screen:
    """Fills the panels from what the studio holds. Where that is not kept over a restart, the first page says so."""

    studio: Callable[[], Studio]
    sessions: Sessions
    panels: Panels
    is_kept: bool = True
    tabs: Tabs = field(default_factory=Tabs)
    _spoken: dict[str, Updates] = field(default_factory=dict)
    _button_prices: dict[tuple[str, date], dict[str, str]] = field(default_factory=dict)

    def spoken(self, words: Words) -> Updates:
        """Return what needs no more than the visitor's words."""
        if words.language not in self._spoken:
            self._spoken[words.language] = {part: html(words) for part, html in self.panels.spoken.items()}
        return self._spoken[words.language]

    def is_sketch(self, visitor: Visitor) -> bool:
        """Whether this visitor is served by the built-in model."""
        return self._planner(visitor).is_sketch

    def provider(self, visitor: Visitor) -> str:
        """Return which provider serves this visitor: `gemini`, `openai` or `sketch`."""
        return self.studio().provider_name(self.sessions.key(visitor), visitor.owner)

    def takes_keys(self, visitor: Visitor) -> bool:
        """Whether what serves this visitor answers to a key that they may bring and test."""
        return self._planner(visitor).takes_keys

    def _planner(self, visitor: Visitor) -> ModelEntry:
        return self.studio().catalogue.model(ModelRole.FLASH, self.provider(visitor))

    def offers(self, visitor: Visitor) -> tuple[Offer, ...]:
        """Return what the image models that serve this visitor offer."""
        studio = self.studio()
        return image_offers(studio.catalogue, self.provider(visitor), self._diagnosis(visitor))

    def key_in_use(self, visitor: Visitor) -> SecretStr | None:
        """Return the key of Gemini's that this visitor is served with: their own, else the studio's, if it is lent."""
        return self.sessions.key(visitor) or self.studio().settings.lent_key(visitor.owner)

    def _diagnosis(self, visitor: Visitor) -> KeyDiagnosis | None:
        """Return what is known of the key that serves this visitor."""
        return self.studio().keys.known(self.key_in_use(visitor)) if self.takes_keys(visitor) else None

    def _limits(self, visitor: Visitor) -> Limits:
        return limits_of(self.studio().catalogue, self._diagnosis(visitor))

    def limits(self, visitor: Visitor) -> Updates:
        """Return the note on the models that the key in use cannot use."""
        is_unknown = self.takes_keys(visitor) and self._diagnosis(visitor) is None
        note = limits_html(visitor.words, self._limits(visitor), is_unknown=is_unknown)
        return {self.panels.composer.models: note}

    def learn(self, visitor: Visitor, error: ErrorInfo, node: str) -> Updates:
        """Remember what a failed turn has shown of the key in use, and return the note as it is then."""
        key = self.key_in_use(visitor)
        if key is None or not self.takes_keys(visitor):
            return {}
        roles = IMAGE_ROLES if node == "executor" else TEXT_ROLES
        return self.limits(visitor) if self.studio().keys.record_failure(key, error, roles) else {}

    def unlearn(self, visitor: Visitor, model_ids: Collection[str]) -> Updates:
        """Forget what was wrong with the key in use for models that answered, and return the note as it is then."""
        key = self.key_in_use(visitor)
        if key is None or not self.takes_keys(visitor):
            return {}
        return self.limits(visitor) if self.studio().keys.clear(key, model_ids) else {}

    def view(self, visitor: Visitor, conversation_id: str) -> View:
        """Return what a conversation is shown with."""
        return View(visitor.words, conversation_id, self.offers(visitor), self._prices(visitor))

    def _prices(self, visitor: Visitor) -> dict[str, str]:
        """Return what buttons of a conversation may cost at most, by what they ask for."""
        name = self.provider(visitor), datetime.now(UTC).date()
        if name not in self._button_prices:
            self._button_prices.clear()
            self._button_prices[name] = button_prices(self.studio().catalogue, name[0])
        return self._button_prices[name]

    async def conversation(self, visitor: Visitor, conversation_id: str) -> Conversation | None:
        """Return the conversation if the visitor has it."""
        if not conversation_id:
            return None
        try:
            return await self.studio().conversations.get(conversation_id, visitor.owner)
        except RequestRefused:
            return None

    async def newest(self, visitor: Visitor) -> Conversation | None:
        """Return the visitor's conversation that changed last."""
        newest = await self.studio().conversations.newest(visitor.owner)
        return await self.conversation(visitor, newest) if newest else None

    def at_work(self, conversation: Conversation | None) -> LiveTurn | None:
        """Return the turn that is at work, as far as it is on record, if there is one: in whichever process."""
        if conversation is None:
            return None
        turn = next((one for one in reversed(conversation.turns) if one.state is TurnState.RUNNING), None)
        if turn is not None:
            return replace(resumed(turn), beside=conversation.forks.get(turn.id, ()))
        is_running = self.studio().turns.is_running(conversation.id, conversation.owner)
        return LiveTurn("") if is_running else None

    async def frame(self, visitor: Visitor, conversation: Conversation | None, *, opened_at: int = 0) -> Updates:
        """Return what stands around the thread: the rail, the top bar, the first page, what the next words change."""
        is_sketch = self.is_sketch(visitor)
        is_empty = conversation is None or not conversation.turns
        return {
            self.panels.rail.stamp: conversations.stamp_html(time.monotonic_ns()),
            self.panels.chat.top: await self.top(visitor, conversation, opened_at=opened_at),
            self.panels.chat.welcome: await self._welcome(visitor, is_sketch=is_sketch) if is_empty else "",
            **self.next_target(visitor, conversation),
        }

    def next_target(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the line of the picture that the next words change."""
        view = self.view(visitor, conversation.id if conversation else "")
        return {self.panels.composer.next_target: composer.next_target_html(view, conversation)}

    async def _welcome(self, visitor: Visitor, *, is_sketch: bool) -> str:
        has_cookie = visitor.token is not None or not self.sessions.is_shared
        # Only the operator can do anything about it.
        lost = await self.studio().lost_records() if visitor.owner == OPERATOR else None
        return chat.welcome_html(
            visitor.words, is_sketch=is_sketch, is_kept=self.is_kept, has_cookie=has_cookie, lost=lost
        )

    async def top(self, visitor: Visitor, conversation: Conversation | None, *, opened_at: int = 0) -> str:
        """Return the bar above the conversation, with what all its branches have cost."""
        spent_usd = 0.0
        if conversation is not None and conversation.turns:
            spent_usd = (await self.studio().spend.conversation(conversation.id, visitor.owner)).price_usd
        is_sketch = self.is_sketch(visitor)
        return chat.top_html(visitor.words, conversation, is_sketch=is_sketch, spent_usd=spent_usd, opened_at=opened_at)

    async def opened(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the screen with a conversation open, or a new one, and an empty composer context."""
        view = self.view(visitor, conversation.id if conversation else "")
        return {
            **await self.frame(visitor, conversation, opened_at=time.monotonic_ns()),
            THREAD: self.thread(visitor, conversation),
            self.panels.canvas: opened_canvas_html(view, conversation),
            self.panels.composer.message: gr.update(
                label=visitor.words("builtin.message"), placeholder=visitor.words("composer.placeholder")
            ),
            self.panels.composer.conversation: view.conversation_id,
            **self.context(view, "", ()),
            **self.unpainted(),
        }

    def articles(
        self,
        visitor: Visitor,
        conversation: Conversation | None,
        live: LiveTurn | None = None,
        more: Sequence[Block] = (),
    ) -> list[Article]:
        """Return the turns of a conversation: as they are on record, and the one at work as far as it is there.

        `live` is a turn that has just begun. `more` stands below all, and is on no record.
        """
        shown = list[Article]()
        if conversation is not None:
            view, live = self.view(visitor, conversation.id), live or self.at_work(conversation)
            without = live.turn_id if live is not None else ""
            shown += render_conversation(view, conversation, without=without, is_at_rest=live is None)
            if live is not None:
                pictures = {picture.handle: picture for picture in conversation.pictures}
                shown.append(article(live.turn_id, render_live(view, live, 0, pictures)))
        return [*shown, article("", more)] if more else shown

    def thread(
        self,
        visitor: Visitor,
        conversation: Conversation | None,
        *,
        live: LiveTurn | None = None,
        more: Sequence[Block] = (),
        is_answer: bool = False,
    ) -> dict[str, JsonValue]:
        """Return the thread for the page's script; see `articles` and `thread_told`."""
        first = self.at_work(conversation) or live
        followed = article_id(first.turn_id) if first is not None else ""
        shown = self.articles(visitor, conversation, live, more)
        key = conversation.id if conversation else ""
        return thread_told(visitor.words, key, shown, followed=followed, is_answer=is_answer)

    def reply(self, updates: Updates, tab: Tab) -> Reply:
        """Return what the page does for updates of its components: our own boxes get their HTML, Gradio's inputs what
        is other about them, by a script; and what was sent from this tab for nothing comes back."""
        events = dict[str, JsonValue]()
        inputs = {part.elem_id: properties(part, update) for part, update in updates.items() if _is_input(part)}
        if any(inputs.values()):
            events["inputs"] = {name: told for name, told in inputs.items() if told}
        if THREAD in updates:
            events["thread"] = updates[THREAD]
        if tab.returned is not None:
            returned, tab.returned = tab.returned, None
            message = properties(self.panels.composer.message, returned.value)["value"]
            events["returned"] = {"message": message, **returned.painted}
        boxes = {part: html for part, html in updates.items() if isinstance(part, gr.HTML) and isinstance(html, str)}
        return Reply(patches=tuple(Patch(id=part.elem_id, html=html) for part, html in boxes.items()), events=events)

    def chips_of(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the chips as they were for the newest message; a new conversation leaves them as they are."""
        if conversation is None or not conversation.turns:
            return {}
        return self.chips(visitor, Chosen.of(conversation.turns[-1].settings), conversation)

    def context(
        self,
        view: View,
        editing: str,
        references: tuple[str, ...],
        roles: Mapping[str, ReferenceRole] | None = None,
    ) -> Updates:
        """Return the line of what the next message works on, shown and remembered."""
        box, kept = self.panels.composer, {one: role for one, role in (roles or {}).items() if one in references}
        return {
            box.context: composer.context_html(view, editing, references, kept),
            box.roles: write_roles(kept),
            box.editing: editing,
            box.references: " ".join(references),
        }

    def unpainted(self) -> Updates:
        """Return the painter's fields emptied."""
        return {self.panels.composer.mask: "", self.panels.composer.expand: ""}

    def wording(self, text: str) -> Updates:
        """Return words for the composer, instead of those that stand there; without any, nothing changes."""
        return {self.panels.composer.wording: composer.wording_html(text, time.monotonic_ns())} if text else {}

    def chips(self, visitor: Visitor, chosen: Chosen, conversation: Conversation | None = None) -> Updates:
        """Return the settings for the model in use."""
        words, studio, provider = visitor.words, self.studio(), self.provider(visitor)
        updates = composer.chip_updates(words, studio.catalogue, provider, chosen)
        box, is_sketch, prices = self.panels.composer, self.is_sketch(visitor), self._prices(visitor)
        models = {
            box.text_models: composer.model_choices_html(words, "text_model", ("flash", "thinking"), prices),
            box.image_models: composer.model_choices_html(words, "image_model", ("auto", "flash", "pro"), prices),
        }
        return {
            **{component: updates[name] for name, component in box.settings.items()},
            **self.limits(visitor),
            **(dict.fromkeys(models, "") if is_sketch else models),
            box.summary: composer.summary_html(words, needs_key=is_sketch),
            box.aids: aids_html(
                words,
                studio.catalogue,
                provider,
                datetime.now(UTC).date(),
                upload_limit_megabytes=upload_limit_megabytes(visitor.owner),
            ),
            box.cost: estimate_html(words, chosen_estimate(studio.catalogue, provider, chosen, None, conversation)),
        }

    def narrowed(self, visitor: Visitor, sent: Mapping[str, Any], fixed: str = "") -> Updates:
        """Return the settings, sent as `sent`, for the model in use; `fixed` is the name of one that is set here.

        The value of one that stays as it was sent is left out: it may have been changed since. So is the price.
        """
        updates = self.chips(visitor, Chosen.model_validate(sent))
        del updates[self.panels.composer.cost]
        for name, chip in self.panels.composer.settings.items():
            if name != fixed and updates[chip].get("value") == sent[name]:
                del updates[chip]["value"]
        return updates


def _is_input(part: object) -> bool:
    return part != THREAD and not isinstance(part, gr.HTML)


def properties(component: Any, update: Any) -> dict[str, Any]:
    """Return the properties of a component that an update changes, as Gradio sends them."""
    is_partial = isinstance(update, dict) and update.get("__type__") == "update"
    changed = {**update} if is_partial else {"value": update}
    changed.pop("__type__", None)
    if "choices" in changed:
        changed["choices"] = [list(choice) for choice in changed["choices"]]
    if "value" in changed:
        value = component.postprocess(changed["value"])
        changed["value"] = value.model_dump() if isinstance(value, GradioModel | GradioRootModel) else value
    return changed
