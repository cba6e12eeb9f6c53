"""Cost estimates: of a turn before it is sent, of a picture before it is generated, and the checks against caps.

Pure functions, except that the planner's instructions are read to count their tokens. Token numbers are those that the
API counts for such calls; prices come from the catalogue. A receipt has the real price.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Literal

from agent.adjusting import read_adjustment
from agent.conversation import Conversation
from agent.events import CapPassed
from agent.imaging.contract import declaration
from agent.imaging.lettering import wants_lettering
from agent.library import SoFar
from agent.messages import TokenUsage, Value
from agent.pictures import handles_in
from agent.prompts import prompt
from agent.providers.catalogue import IMAGE_ROLES, Catalogue, ModelEntry, ModelRole
from agent.settings import SearchPolicy, TurnSettings
from agent.tools.base import Tool
from agent.wording.requests import named_number, read_undo
from agent.worst_case import (
    MOST_QUERIES,
    SHOWN_PICTURE_TOKENS,
    declared_tokens,
    message_tokens,
    text_tokens,
    worst_picture_usd,
)

# The tolerance for sums of float prices: spending that equals a cap to the cent does not exceed it.
A_TRIFLE_USD = 1e-9

_PROMPT_TOKENS = 300
_PAINTERS_THOUGHT_TOKENS = 200
_REVIEW = TokenUsage(prompt_tokens=1900, output_tokens=350)
# The prompt has the planner's instructions and the functions it may call; the output its text and one image call.
_PLANNER_PROMPT_TOKENS = 1900
_PLANNER_OUTPUT_TOKENS = 200
_THOUGHT_TOKENS = {ModelRole.FLASH: 150, ModelRole.THINKING: 1000}
_SEARCH = TokenUsage(prompt_tokens=300, tool_tokens=150, output_tokens=400, search_queries=2)
_FOUND_TOKENS = 400
# Limits for the maximum: text and thoughts of one answer, search results, a fetched page, one review.
_MOST_OUTPUT_TOKENS = {ModelRole.FLASH: 1000, ModelRole.THINKING: 5000}
_MOST_FOUND_TOKENS = 3000
_MOST_PAGE_TOKENS = 10_000
_MOST_REVIEW_PROMPT_TOKENS = 3500
_MOST_ADVICE_CHARACTERS = 700
_LINK = re.compile(r"https?://", re.IGNORECASE)
_CHARACTERS_A_TOKEN = 4
# A masked edit sends two pictures: the part as it is, and the part with the mask marked in it.
_MASK_PICTURES = 2
# Prompt expansion: its instructions, and the expanded prompt.
_WISH_PROMPT_TOKENS = 450
_WISH_OUTPUT_TOKENS = 160
# An earlier picture is one line of text in the history, and another one in the list of all pictures.
_LINE_TOKENS = 60
# The number of messages in the history window; each turn has at least one message.
_MOST_MESSAGES = 50
# The declared functions that are not tools, and all tools of the studio when they are not loaded yet.
_SEARCH_TOKENS, _TOOLS_TOKENS = 200, 1900
_RULES = ("planner", "search_allowed", "search_both", "search_by_painter")


class PartKind(StrEnum):
    """The kinds of costs in a turn."""

    TEXT = "text"
    THINKING = "thinking"
    SEARCH = "search"
    PICTURES = "pictures"
    REVIEW = "review"


class EstimatePart(Value):
    """One part of an estimate, in US dollars: the likely minimum and maximum, and the highest possible cost.

    `label` names the model or models; `count` and `resolution` apply to pictures.
    """

    kind: PartKind
    low_usd: float
    high_usd: float
    most_usd: float = 0.0
    label: str = ""
    count: int = 0
    resolution: str = ""


class Estimate(Value):
    """The likely cost of a turn that generates pictures. `unpriced` names the models without a known price."""

    parts: tuple[EstimatePart, ...] = ()
    unpriced: tuple[str, ...] = ()

    @property
    def low_usd(self) -> float:
        """The likely minimum: without optional steps, and with the cheaper image model."""
        return sum(part.low_usd for part in self.parts)

    @property
    def high_usd(self) -> float:
        """The likely maximum, without a second round after a poor review."""
        return sum(part.high_usd for part in self.parts)

    @property
    def most_usd(self) -> float:
        """The maximum: the turn asks before it exceeds that. It includes repaints if a review may be due."""
        return sum(part.most_usd for part in self.parts)

    @property
    def is_free(self) -> bool:
        """Whether the turn certainly costs nothing."""
        return not self.unpriced and self.high_usd <= 0


def format_usd(amount: float) -> str:
    """Return US dollars as text without the `$`: two decimals, or four for amounts below one cent."""
    return f"{amount:.4f}" if 0.00005 <= amount < 0.01 else f"{amount:,.2f}"


def picture_usage(
    model: ModelEntry, resolution: str | None, *, shown: int = 0, characters: int = 0, is_grounded: bool = False
) -> TokenUsage:
    """Return the approximate usage for one picture; `shown` is the number of pictures sent to the model."""
    return TokenUsage(
        prompt_tokens=_PROMPT_TOKENS + characters // _CHARACTERS_A_TOKEN + shown * SHOWN_PICTURE_TOKENS,
        thought_tokens=_PAINTERS_THOUGHT_TOKENS,
        image_tokens=model.tokens_of_picture(resolution),
        search_queries=1 if is_grounded else 0,
    )


def picture_price(
    model: ModelEntry, resolution: str | None, on: date, *, shown: int = 0, is_grounded: bool = False
) -> float:
    """Return the approximate price of a picture, in US dollars."""
    return model.price_usd(picture_usage(model, resolution, shown=shown, is_grounded=is_grounded), on)


def review_price(text_model: ModelEntry, on: date) -> float:
    """Return the approximate price of reviewing one picture, in US dollars; 0 for a model without vision."""
    return text_model.price_usd(_REVIEW, on) if text_model.has_vision else 0.0


def most_review_tokens(text_model: ModelEntry) -> int:
    """Return the output limit of one review in tokens, thoughts included."""
    return 2 * _MOST_OUTPUT_TOKENS[text_model.role]


def worst_review_usd(text_model: ModelEntry, on: date) -> float:
    """Return the maximum price of reviewing one picture, in US dollars."""
    if not text_model.has_vision:
        return 0.0
    pictures = _MASK_PICTURES * SHOWN_PICTURE_TOKENS
    usage = TokenUsage(
        prompt_tokens=_MOST_REVIEW_PROMPT_TOKENS + pictures, output_tokens=most_review_tokens(text_model)
    )
    return text_model.price_usd(usage, on)


def answer_price(settings: TurnSettings, text_model: ModelEntry, on: date, *, characters: int, shown: int) -> float:
    """Return the approximate price of one answer of the text model, thoughts included, in US dollars."""
    return sum(part.high_usd for part in _Turn(settings, text_model, on, shown).planner(characters))


def expand_prompt_price(text_model: ModelEntry, on: date) -> float:
    """Return the approximate price of expanding a short prompt, in US dollars."""
    thoughts = _THOUGHT_TOKENS[text_model.role] if text_model.thinking_levels else 0
    usage = TokenUsage(prompt_tokens=_WISH_PROMPT_TOKENS, output_tokens=_WISH_OUTPUT_TOKENS, thought_tokens=thoughts)
    return text_model.price_usd(usage, on)


def estimate(
    catalogue: Catalogue,
    provider: str,
    settings: TurnSettings,
    on: date,
    *,
    characters: int = 0,
    shown: int = 0,
    shown_unmarked: int = 0,
    masks: int = 0,
    text: str = "",
    context_tokens: int = 0,
) -> Estimate:
    """Return the likely cost of a turn with these settings if it makes pictures, and its maximum without asking.

    `characters` is the length of the message, `shown` the number of marked pictures, `masks` the number of masked
    ones. `text` is the known part of the message: it tells how many pictures are requested and whether a review is due.
    `shown_unmarked` counts further pictures that may be sent to the image model. `context_tokens` is the maximum for
    instructions, functions and history. Decisions that are left to the agent make a range: whether it searches, and
    which image model it uses if that depends on the search.
    """
    text_model = catalogue.model(ModelRole(settings.text_model), provider)
    if masks:
        settings, shown = settings.model_copy(update={"resolution": None, "aspect_ratio": None}), shown + _MASK_PICTURES
    if settings.number_of_images is None:
        settings = settings.model_copy(update={"number_of_images": named_number(text)})
    if masks > 1:
        settings = settings.model_copy(update={"number_of_images": masks * (settings.number_of_images or 1)})
    outcomes = _painters(catalogue, provider, settings)
    turn = _Turn(settings, text_model, on, shown, text, context_tokens, shown_unmarked)
    models = [text_model, *(model for outcome in outcomes for model in outcome)]
    unpriced = [one.label for one in models if not (one.prices or one.is_free)]
    parts = [*turn.planner(characters), turn.search(), turn.pictures(outcomes, characters), turn.review(outcomes)]
    return Estimate(parts=tuple(part for part in parts if part.high_usd > 0), unpriced=tuple(dict.fromkeys(unpriced)))


def turn_estimate(
    catalogue: Catalogue,
    provider: str,
    tools: Iterable[Tool] | None,
    conversation: Conversation | None,
    settings: TurnSettings,
    on: date,
    *,
    text: str,
    characters: int,
    pictures: int,
    masks: int,
) -> Estimate:
    """Return the likely cost of a turn of the conversation, and its maximum.

    `pictures` counts the uploaded and the marked pictures; without any, a picture of the conversation may be sent to
    the image model unmarked. Without `tools` the studio's own are counted.
    """
    may_show = 1 if conversation is not None and conversation.pictures and not pictures else 0
    return estimate(
        catalogue,
        provider,
        settings,
        on,
        characters=characters,
        shown=pictures,
        shown_unmarked=2 * may_show,
        masks=masks,
        text=text,
        context_tokens=_context_tokens(catalogue, provider, tools, conversation),
    )


def needs_no_model(text: str, about: Literal["target", "picture", "part"]) -> bool:
    """Return whether the text can be carried out exactly and free without a model: an adjustment, or an undo.

    The text is about the edit target (`target`), a single uploaded picture (`picture`), or a part of either (`part`).
    False for a text that names another picture.
    """
    undo = read_undo(text) if about == "target" else None
    if undo is not None:
        return not (undo.rest or undo.is_doubtful)
    found = read_adjustment(text, of_part=about == "part")
    return found is not None and not handles_in(text) and not (about == "part" and found.has_frame)


def _context_tokens(
    catalogue: Catalogue, provider: str, tools: Iterable[Tool] | None, conversation: Conversation | None
) -> int:
    """Return the maximum tokens of the planner's input beside the message: instructions, functions, and history."""
    declared = [declaration(catalogue, provider, may_ground=True)]
    declared += [tool.declaration for tool in tools or () if tool.is_offered]
    tokens = (
        declared_tokens("".join(map(prompt, _RULES)), declared)
        + _SEARCH_TOKENS
        + (_TOOLS_TOKENS if tools is None else 0)
    )
    if conversation is None:
        return tokens
    messages = [message for turn in conversation.turns[-_MOST_MESSAGES:] for message in turn.messages]
    history = message_tokens(messages[-_MOST_MESSAGES:], _LINE_TOKENS)
    return tokens + history + _LINE_TOKENS * len(conversation.pictures)


Outcome = tuple[ModelEntry, ...]


def _painters(catalogue: Catalogue, provider: str, settings: TurnSettings) -> list[Outcome]:
    """Return the possible sets of image models: one set if the user chose, else the first model that can obey.

    If the agent chooses, that is Flash: the user is asked before the more expensive model is used instead.
    """
    flash, pro = (catalogue.model(role, provider) for role in IMAGE_ROLES)
    match settings.image_model:
        case "flash":
            return [(flash,)]
        case "pro":
            return [(pro,)]
        case "both" if flash.id != pro.id:
            return [(flash, pro)]
        case _:
            either = [flash] if flash.id == pro.id else [flash, pro]
            obeying: list[Outcome] = [(one,) for one in either if _obeys(one, settings)] or [(flash,)]
            # If the image model itself may search, the best model may be used.
            may_be_best = settings.allow_search and settings.search_policy == SearchPolicy.IMAGE_ONLY
            return obeying if may_be_best else obeying[:1]


def _obeys(model: ModelEntry, settings: TurnSettings) -> bool:
    ratio, size = settings.aspect_ratio, settings.resolution
    return (ratio is None or ratio in model.aspect_ratios) and (size is None or size in model.resolutions)


@dataclass(frozen=True)
class _Turn:
    """A turn before it is sent, with `shown` pictures; `words` is the known part of its text."""

    settings: TurnSettings
    text_model: ModelEntry
    on: date
    shown: int
    words: str = ""
    context_tokens: int = 0
    shown_unmarked: int = 0

    def planner(self, characters: int) -> Iterable[EstimatePart]:
        """Yield the planner's cost for text and for thoughts; a link in the text adds a page to the maximum."""
        prompt = _PLANNER_PROMPT_TOKENS + characters // _CHARACTERS_A_TOKEN + self.shown * SHOWN_PICTURE_TOKENS
        spent = TokenUsage(prompt_tokens=prompt, output_tokens=_PLANNER_OUTPUT_TOKENS)
        most = max(text_tokens(self.words), characters // 2) + self.shown * SHOWN_PICTURE_TOKENS
        usage = self._answer(most)
        if _LINK.search(self.words):
            usage += self._answer(most + _MOST_PAGE_TOKENS)
        yield self._about(PartKind.TEXT, spent, usage)
        yield self._about(PartKind.THINKING, self._thoughts())

    def _answer(self, tokens: int) -> TokenUsage:
        """Return the maximum usage of one answer of the planner, for an input of `tokens` beside the context."""
        output = _MOST_OUTPUT_TOKENS[self.text_model.role]
        return TokenUsage(prompt_tokens=self.context_tokens + tokens, output_tokens=output)

    def search(self) -> EstimatePart:
        """Return the cost of a search by the agent and of the following call; the minimum is 0: it may not search."""
        settings = self.settings
        may = settings.allow_search and settings.search_policy != SearchPolicy.IMAGE_ONLY
        if not may or not self.text_model.has_grounding:
            return EstimatePart(kind=PartKind.SEARCH, low_usd=0.0, high_usd=0.0)
        again = TokenUsage(prompt_tokens=_PLANNER_PROMPT_TOKENS + _FOUND_TOKENS, output_tokens=_PLANNER_OUTPUT_TOKENS)
        searched = TokenUsage(
            prompt_tokens=text_tokens(self.words) + _MOST_FOUND_TOKENS,
            tool_tokens=_MOST_FOUND_TOKENS,
            output_tokens=2 * _MOST_OUTPUT_TOKENS[self.text_model.role],
            search_queries=MOST_QUERIES,
        )
        most = searched + self._answer(_MOST_FOUND_TOKENS)
        found = self._about(PartKind.SEARCH, _SEARCH + self._thoughts() + again + self._thoughts(), most)
        return found.model_copy(update={"low_usd": 0.0})

    def pictures(self, outcomes: Sequence[Outcome], characters: int) -> EstimatePart:
        """Return the cost of the pictures, from the cheapest outcome to the most expensive one."""
        settings, count = self.settings, self.settings.number_of_images or 1

        def each(outcome: Outcome, *, is_grounded: bool) -> float:
            return sum(
                model.price_usd(
                    picture_usage(
                        model,
                        settings.resolution,
                        shown=self.shown,
                        characters=characters,
                        is_grounded=is_grounded and model.has_grounding,
                    ),
                    self.on,
                )
                for model in outcome
            )

        worst = max(sum(self.worst_picture_usd(one, characters) for one in outcome) for outcome in outcomes)
        models = list(dict.fromkeys(model.label for outcome in outcomes for model in outcome))
        return EstimatePart(
            kind=PartKind.PICTURES,
            low_usd=count * min(each(one, is_grounded=False) for one in outcomes),
            high_usd=count * max(each(one, is_grounded=self._may_ground) for one in outcomes),
            most_usd=count * worst * (settings.review_rounds if self._is_reviewed(outcomes) else 1),
            label=(" + " if settings.image_model == "both" else " / ").join(models),
            count=count * max(map(len, outcomes)),
            resolution=settings.resolution or outcomes[0][0].default_resolution or "",
        )

    def review(self, outcomes: Sequence[Outcome]) -> EstimatePart:
        """Return the cost of the reviews; it is in the minimum if a review is due with every outcome."""
        setting, count = self.settings.review, self.settings.number_of_images or 1
        price = review_price(self.text_model, self.on)
        paid = [[one for one in outcome if one.is_reviewed] for outcome in outcomes]
        is_due = self._is_reviewed(outcomes)
        counts = [count * len(one) for one in paid] if setting != "off" else [0]
        is_sure = setting == "always" or self._has_lettering or all(map(_has_best, outcomes))
        worst_usd = worst_review_usd(self.text_model, self.on) if is_due else 0.0
        return EstimatePart(
            kind=PartKind.REVIEW,
            low_usd=min(counts) * price if is_sure else 0.0,
            high_usd=max(counts) * price,
            most_usd=max(counts) * worst_usd * self.settings.review_rounds,
            label=self.text_model.label,
        )

    def worst_picture_usd(self, model: ModelEntry, characters: int) -> float:
        """Return the maximum price of one picture by the model."""
        # The planner expands the user's prompt.
        prompt = 2 * _PROMPT_TOKENS + max(text_tokens(self.words), characters // 2) + _MOST_ADVICE_CHARACTERS // 2
        prompt += (self.shown + self.shown_unmarked) * SHOWN_PICTURE_TOKENS
        grounded = self._may_ground and model.has_grounding
        return worst_picture_usd(model, self.settings.resolution, prompt, self.on, is_grounded=grounded)

    @property
    def _may_ground(self) -> bool:
        """Whether the image model itself may search."""
        return self.settings.allow_search and self.settings.search_policy != SearchPolicy.LLM_ONLY

    @property
    def _has_lettering(self) -> bool:
        return self.settings.review == "on" and wants_lettering(self.words)

    def _is_reviewed(self, outcomes: Sequence[Outcome]) -> bool:
        """Return whether a review may be due: always, or when the best model is used or lettering is requested."""
        setting = self.settings.review
        if setting == "off" or not self.text_model.has_vision:
            return False
        return setting == "always" or self._has_lettering or any(map(_has_best, outcomes))

    def _thoughts(self) -> TokenUsage:
        # A model without thinking levels does not think.
        does = bool(self.text_model.thinking_levels)
        return TokenUsage(thought_tokens=_THOUGHT_TOKENS[self.text_model.role] if does else 0)

    def _about(self, kind: PartKind, usage: TokenUsage, most: TokenUsage | None = None) -> EstimatePart:
        price = self.text_model.price_usd(usage, self.on)
        most_usd = self.text_model.price_usd(most, self.on) if most else 0.0
        return EstimatePart(kind=kind, low_usd=price, high_usd=price, most_usd=most_usd, label=self.text_model.label)


def _has_best(outcome: Outcome) -> bool:
    return any(model.role is ModelRole.IMAGE_PRO and model.is_reviewed for model in outcome)


# Caps


class Caps(Value):
    """The spending limits at which the user is asked, in US dollars; None is no cap, zero asks before every cent."""

    conversation_usd: float | None = None
    day_usd: float | None = None

    def __bool__(self) -> bool:
        """Whether any cap is set."""
        return self.conversation_usd is not None or self.day_usd is not None


def caps_of(settings: TurnSettings) -> Caps:
    """Return the caps of a turn."""
    return Caps(conversation_usd=settings.cap_conversation_usd, day_usd=settings.cap_day_usd)


def passed(caps: Caps, so_far: SoFar, price_usd: float) -> tuple[CapPassed, ...]:
    """Return the caps that spending this price would exceed; a cap that is reached exactly is not exceeded."""
    return tuple(one for one in _each(caps, so_far, price_usd) if price_usd > 0 and one.over_usd > A_TRIFLE_USD)


def used_up(caps: Caps, so_far: SoFar) -> CapPassed | None:
    """Return the first cap that is used up, if there is one."""
    return next((one for one in _each(caps, so_far, 0.0) if one.over_usd >= -A_TRIFLE_USD), None)


def left_usd(caps: Caps, so_far: SoFar) -> float:
    """Return the smallest remaining amount of the caps, plus A_TRIFLE_USD; infinity without caps."""
    rests = (one.cap_usd - one.spent_usd + A_TRIFLE_USD for one in _each(caps, so_far, 0.0))
    return min(rests, default=float("inf"))


def _each(caps: Caps, so_far: SoFar, price_usd: float) -> Iterable[CapPassed]:
    if caps.conversation_usd is not None:
        spent = so_far.conversation_usd
        yield CapPassed(cap="conversation", cap_usd=caps.conversation_usd, spent_usd=spent, price_usd=price_usd)
    if caps.day_usd is not None:
        yield CapPassed(cap="day", cap_usd=caps.day_usd, spent_usd=so_far.day_usd, price_usd=price_usd)
