"""The whole screen for a visitor and a conversation, as updates of the page's elements."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from markupsafe import Markup
from pydantic import JsonValue, SecretStr

from agent import (
    IMAGE_ROLES,
    OPERATOR,
    TEXT_ROLES,
    Catalogue,
    Conversation,
    ErrorInfo,
    KeyDiagnosis,
    ModelEntry,
    ModelRole,
    ReferenceRole,
    RequestRefused,
    Studio,
    Turn,
    TurnState,
    upload_limit_megabytes,
)
from webui.features import composer
from webui.features.composer import ChosenSettings, model_name
from webui.features.thread.live import ShownTurn, resumed
from webui.features.thread.render import (
    TURNS_AT_ONCE,
    Article,
    article_id,
    render_live,
    render_turns,
    thread_update,
    top_html,
    welcome_html,
)
from webui.features.thread.steps import next_step
from webui.features.viewer import opened_canvas_html
from webui.http.sessions import Sessions, Visitor
from webui.shell.templates import Patch, Reply, render
from webui.spend import button_prices, chosen_estimate, estimate_html, expand_price
from webui.view import IMAGE_MODEL_ROLES, Offer, View, image_offers
from webui.words import Words

Updates = dict[str, Any]
"""What changes on the page: HTML by the id of its box in `shell/document.html`, properties by the id of an input of
Gradio's."""
THREAD = "thread"
"""In updates: the thread, as `thread_update` gives it."""
WORDS = "words"
"""In updates: words for the composer, instead of those that stand there; what else is in the message stays."""
PAINTED = "painted"
"""In updates: what the painter gives to the next message, its `mask` and how it is to `expand`."""
OVER = "over"
"""In updates: what becomes of what Send took out of the composer: by the name of the request that it was sent with, how
its turn ended: `used`; `unused`, where no picture was changed and the mask is about the same part still; `failed`,
where all goes back; `refused`, where the words alone do."""
SENT = "sent"
"""In updates: the name of the request that they answer, which was sent from the composer."""
LISTED = "listed"
"""In updates: the list of conversations may be another one now; after a turn, how it `ended` (`done`, `failed`,
`waiting`, `stopped`) and which is the `newest` picture."""
_EVENTS = (THREAD, WORDS, PAINTED, OVER, SENT, LISTED)
# The names of settings by chip, and the role of the model behind each of their values.
_ROLES = {"text_model": {"flash": ModelRole.FLASH, "thinking": ModelRole.THINKING}, "image_model": IMAGE_MODEL_ROLES}
Limits = Mapping[str, Mapping[str, ErrorInfo]]
"""Why a value of a chip cannot be chosen, by chip and value."""


@dataclass(frozen=True)
class Screen:
    """Fills the page from the studio's data. Without `is_kept`, the first page warns that nothing survives a
    restart."""

    studio: Callable[[], Studio]
    sessions: Sessions
    is_kept: bool = True
    _button_prices: dict[tuple[str, date], dict[str, str]] = field(default_factory=dict)

    def planner(self, visitor: Visitor) -> ModelEntry:
        """Return the text model that plans this visitor's turns."""
        return self.studio().catalogue.model(ModelRole.FLASH, self.provider(visitor))

    def is_sketch(self, visitor: Visitor) -> bool:
        """Whether this visitor is served by the built-in model."""
        return self.planner(visitor).is_sketch

    def provider(self, visitor: Visitor) -> str:
        """Return which provider serves this visitor: `gemini`, `openai` or `sketch`."""
        return self.studio().provider_name(self.sessions.key(visitor), visitor.owner)

    def offers(self, visitor: Visitor) -> tuple[Offer, ...]:
        """Return the image models that serve this visitor, with what each accepts."""
        studio = self.studio()
        return image_offers(studio.catalogue, self.provider(visitor), self._diagnosis(visitor))

    def key_in_use(self, visitor: Visitor) -> SecretStr | None:
        """Return the Gemini key that serves this visitor: their own, else the studio's, if it is lent to them."""
        return self.sessions.key(visitor) or self.studio().settings.lent_key(visitor.owner)

    def key_to_test(self, visitor: Visitor) -> SecretStr | None:
        """Return that key where the visitor's provider can tell what it is able to do, else None."""
        return self.key_in_use(visitor) if self.planner(visitor).takes_keys else None

    def _diagnosis(self, visitor: Visitor) -> KeyDiagnosis | None:
        """Return what is known of the key."""
        return self.studio().keys.known(self.key_to_test(visitor))

    def limits(self, visitor: Visitor) -> Updates:
        """Return the note on the models that the key cannot use."""
        diagnosis = self._diagnosis(visitor)
        is_unknown = diagnosis is None and self.planner(visitor).takes_keys
        missing = limits_of(self.studio().catalogue, diagnosis)
        return {"models-note": limits_html(visitor.words, missing, is_unknown=is_unknown)}

    def record_key_failure(self, visitor: Visitor, error: ErrorInfo, node: str) -> Updates:
        """Record what a failed turn showed about the key, and return the note as it is then."""
        key, roles = self.key_to_test(visitor), IMAGE_ROLES if node == "executor" else TEXT_ROLES
        has_changed = key is not None and self.studio().keys.record_failure(key, error, roles)
        return self.limits(visitor) if has_changed else {}

    def clear_key_failure(self, visitor: Visitor, model_ids: Collection[str]) -> Updates:
        """Forget what was wrong with the key for models that have answered, and return the note as it is then."""
        key = self.key_to_test(visitor)
        return self.limits(visitor) if key is not None and self.studio().keys.clear(key, model_ids) else {}

    def view(self, visitor: Visitor, conversation_id: str) -> View:
        """Return the view of a conversation."""
        return View(visitor.words, conversation_id, self.offers(visitor), self._prices(visitor))

    def _prices(self, visitor: Visitor) -> dict[str, str]:
        """Return the maximum price of the buttons of a conversation, by what they ask for."""
        name = self.provider(visitor), datetime.now(UTC).date()
        if name not in self._button_prices:
            self._button_prices.clear()
            self._button_prices[name] = button_prices(self.studio().catalogue, name[0])
        return self._button_prices[name]

    async def conversation(self, visitor: Visitor, conversation_id: str) -> Conversation | None:
        """Return the conversation, if the visitor owns it."""
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

    def at_work(self, conversation: Conversation | None) -> ShownTurn | None:
        """Return the running turn as far as it is on record, in whichever process it runs; None without one."""
        if conversation is None:
            return None
        turn = next((one for one in reversed(conversation.turns) if one.state is TurnState.RUNNING), None)
        if turn is not None:
            return replace(resumed(turn), beside=conversation.forks.get(turn.id, ()))
        is_running = self.studio().turns.is_running(conversation.id, conversation.owner)
        return ShownTurn("") if is_running else None

    async def frame(self, visitor: Visitor, conversation: Conversation | None, *, opened_at: int = 0) -> Updates:
        """Return what surrounds the thread: the rail, the top bar, the first page, and the next edit target."""
        is_empty = conversation is None or not conversation.turns
        return {
            LISTED: {},
            "top": await self.top(visitor, conversation, opened_at=opened_at),
            "welcome": await self._welcome(visitor) if is_empty else "",
            **self.next_target(visitor, conversation),
        }

    def next_target(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the line that names the picture which the next prompt changes when nothing is marked; empty without a
        picture."""
        handle = conversation.edit_target if conversation is not None else None
        if conversation is None or handle is None:
            return {"ctx-next": ""}
        return {"ctx-next": self.view(visitor, conversation.id).render("composer/next.html", handle=handle)}

    async def _welcome(self, visitor: Visitor) -> str:
        # Only the operator can do anything about it.
        lost = await self.studio().lost_records() if visitor.owner == OPERATOR else None
        is_sketch, is_shared = self.is_sketch(visitor), self.sessions.is_shared
        return welcome_html(visitor.words, is_sketch=is_sketch, is_kept=self.is_kept, is_shared=is_shared, lost=lost)

    async def top(self, visitor: Visitor, conversation: Conversation | None, *, opened_at: int = 0) -> str:
        """Return the bar above the conversation, with the cost of all its branches."""
        spent_usd = 0.0
        if conversation is not None and conversation.turns:
            spent_usd = (await self.studio().spend.conversation(conversation.id, visitor.owner)).price_usd
        is_sketch = self.is_sketch(visitor)
        return top_html(visitor.words, conversation, is_sketch=is_sketch, spent_usd=spent_usd, opened_at=opened_at)

    async def opened(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the screen around the thread with a conversation open, or a new one, and nothing marked in the
        composer."""
        view = self.view(visitor, conversation.id if conversation else "")
        return {
            **await self.frame(visitor, conversation, opened_at=time.monotonic_ns()),
            "canvas": opened_canvas_html(view, conversation),
            composer.MESSAGE: {
                "label": visitor.words("builtin.message"),
                "placeholder": visitor.words("composer.placeholder"),
            },
            **self.context(view, "", ()),
            PAINTED: {"mask": "", "expand": ""},
        }

    def articles(
        self,
        visitor: Visitor,
        conversation: Conversation | None,
        live: ShownTurn | None = None,
        more: Article | None = None,
        *,
        turns: Sequence[Turn] | None = None,
    ) -> list[Article]:
        """Return turns of a conversation: of those on record `turns`, else the newest and at least one more than
        `newest` takes if there are more; and the running one as far as it has come.

        `live` is a turn that has just begun. `more` is shown below all of them, and is not recorded.
        """
        shown = list[Article]()
        if conversation is not None:
            view, live = self.view(visitor, conversation.id), live or self.at_work(conversation)
            without = live.turn_id if live is not None else ""
            turns = conversation.turns[-TURNS_AT_ONCE - 1 :] if turns is None else turns
            shown += render_turns(view, conversation, turns, without=without, is_busy=live is not None)
            if live is not None:
                pictures = {picture.handle: picture for picture in conversation.pictures}
                shown.append(render_live(view, live, 0, pictures))
        return [*shown, more] if more is not None else shown

    def thread(
        self,
        visitor: Visitor,
        conversation: Conversation | None,
        *,
        live: ShownTurn | None = None,
        more: Article | None = None,
        is_answer: bool = False,
    ) -> dict[str, JsonValue]:
        """Return the thread for the page's script; see `articles` and `thread_update`."""
        first = self.at_work(conversation) or live
        followed = article_id(first.turn_id) if first is not None else ""
        shown = self.articles(visitor, conversation, live, more)
        return thread_update(visitor.words, conversation, shown, followed=followed, is_answer=is_answer)

    def reply(self, updates: Updates) -> Reply:
        """Return the reply for updates: HTML for our own elements, and changed properties of Gradio's inputs, which
        a script sets."""
        events: dict[str, JsonValue] = {name: updates[name] for name in _EVENTS if name in updates}
        others = {part: update for part, update in updates.items() if part not in _EVENTS}
        inputs: dict[str, JsonValue] = {part: told for part, told in others.items() if isinstance(told, dict) and told}
        if inputs:
            events["inputs"] = inputs
        boxes = {part: html for part, html in others.items() if not isinstance(html, dict)}
        return Reply(patches=tuple(Patch(id=part, html=html) for part, html in boxes.items()), events=events)

    async def chips_of(self, visitor: Visitor, conversation: Conversation | None) -> Updates:
        """Return the settings of the newest message. A new conversation has the visitor's defaults, if they chose
        any, else the settings stay as they are."""
        if conversation is not None and conversation.turns:
            return self.chips(visitor, ChosenSettings.of(conversation.turns[-1].settings), conversation)
        defaults = await self.studio().preferences.defaults(visitor.owner)
        return self.chips(visitor, ChosenSettings.of(defaults)) if defaults is not None else {}

    def context(
        self, view: View, editing: str, references: tuple[str, ...], roles: Mapping[str, ReferenceRole] | None = None
    ) -> Updates:
        """Return the line that shows what the next message works on; with NO_PICTURE for `editing`, it makes a new
        picture. The page's state is read from it as well."""
        values = {"editing": editing, "references": references, "roles": roles or {}, "all_roles": list(ReferenceRole)}
        return {"ctx": view.render("composer/context.html", **values)}

    def wording(self, text: str) -> Updates:
        """Return text for the composer; an empty one changes nothing."""
        return {WORDS: text} if text else {}

    def chips(self, visitor: Visitor, chosen: ChosenSettings, conversation: Conversation | None = None) -> Updates:
        """Return the settings, limited to what the model in use accepts."""
        words, studio, provider = visitor.words, self.studio(), self.provider(visitor)
        updates = composer.chip_updates(words, studio.catalogue, provider, chosen)
        is_sketch, prices = self.is_sketch(visitor), self._prices(visitor)
        models = {
            "text-models": composer.models_html(words, "text_model", composer.TEXT_MODELS, prices),
            "image-models": composer.models_html(words, "image_model", composer.IMAGE_MODELS, prices),
        }
        return {
            **{composer.INPUTS[name]: update for name, update in updates.items()},
            **self.limits(visitor),
            **(dict.fromkeys(models, "") if is_sketch else models),
            "summary": composer.summary_html(words, needs_key=is_sketch),
            # The script knows which text model is chosen.
            "aids": render(
                "composer/aids.html",
                words,
                prices={
                    name: expand_price(words, studio.catalogue.model(ModelRole(name), provider))
                    for name in composer.TEXT_MODELS
                },
                limit_megabytes=upload_limit_megabytes(visitor.owner),
            ),
            "cost": estimate_html(words, chosen_estimate(studio.catalogue, provider, chosen, None, conversation)),
        }

    def narrowed(self, visitor: Visitor, sent: Mapping[str, Any], fixed: str = "") -> Updates:
        """Return the settings (`sent`), limited to what the model in use accepts; `fixed` names one that is set here.

        A value that stays the same is left out, because the user may have changed it since. So is an unchanged price.
        """
        updates = self.chips(visitor, ChosenSettings.model_validate(sent))
        del updates["cost"]
        for name, part in composer.INPUTS.items():
            if name != fixed and updates[part]["value"] == sent[name]:
                del updates[part]["value"]
        return updates


# The models that a key cannot use: greyed in the composer, with the reason. A chosen value stays chosen


def limits_of(catalogue: Catalogue, diagnosis: KeyDiagnosis | None) -> Limits:
    """Return the values of the chips `text_model` and `image_model` for which the key has no model. Both image
    models side by side need both."""
    if diagnosis is None:
        return {}
    found: dict[str, dict[str, ErrorInfo]] = {}
    for chip, roles in _ROLES.items():
        why = {value: diagnosis.why_not(catalogue.keyed(role).id) for value, role in roles.items()}
        if missing := {value: reason for value, reason in why.items() if reason is not None}:
            both = {"both": next(iter(missing.values()))} if chip == "image_model" else {}
            found[chip] = missing | both
    return found


def limits_html(words: Words, limits: Limits, *, is_unknown: bool) -> Markup:
    """Return one line on the greyed models and why they are greyed, with the reasons by shown name for the page's
    script.

    Empty when the key can use every model. When that is unknown (`is_unknown`), a marker that makes the script ask.
    """
    named = {
        chip: {
            model_name(words, value): words.error(_with_model(info, model_name(words, value)))
            for value, info in missing.items()
        }
        for chip, missing in limits.items()
    }
    by_code: dict[str, tuple[ErrorInfo, list[str]]] = {}
    for chip, missing in limits.items():
        for value, info in missing.items():
            if value != "both":
                name = words("limits.name", chip=words(f"limits.{chip}"), model=model_name(words, value))
                by_code.setdefault(info.code.value, (info, []))[1].append(name)
    lines = [
        (words.error(_with_model(info, words("did.join").join(names))), next_step(words, info.code))
        for info, names in by_code.values()
    ]
    return render("composer/limits.html", words, named=named, lines=lines, is_unknown=is_unknown)


def _with_model(info: ErrorInfo, model: str) -> ErrorInfo:
    return info.model_copy(update={"parameters": {**info.parameters, "model": model}})
