"""What a turn tells while it runs (`TurnEvent`), and what it shows and keeps (`Component`).

Fronts match on the type of an event and end with `assert_never`. A turn's components, in order, are what the
conversation looks like when it is opened again; `component_events` tells them once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agent.errors import ErrorInfo
from agent.messages import ImagePart, Source, TokenUsage, Value
from agent.pictures import Picture, Review
from agent.trace import StepSummary

Question = Literal["empty", "unsure", "which_part", "no_mask", "not_painted"]


class ModelPrice(Value):
    """What one of the image models of a plan would cost, in US dollars."""

    model_label: str
    price_usd: float


class CapPassed(Value):
    """A cap that the pictures of a plan would pass: what is spent of it so far, and about what they cost, in US
    dollars. The conversation's counts every branch, the day's every conversation of the owner's. The turn's is the
    maximum that was told before it was sent: of that one `price_usd` is the most that the pictures can cost."""

    cap: Literal["conversation", "day", "turn"]
    cap_usd: float
    spent_usd: float
    price_usd: float

    @property
    def over_usd(self) -> float:
        """By how much it would be passed."""
        return self.spent_usd + self.price_usd - self.cap_usd


class Plan(Value):
    """One request for pictures as it would be sent. `call` is its place among those of the turn.

    `model` is the image model's name in the page, `flash`, `pro` or, one beside the other, `both`: then `prices` are
    those of each, and `number_of_images` counts those of each. `price_usd` an estimate for all its pictures, a
    review of each included. `notices` are what should be known of a masked edit before it is paid for; the page has a
    sentence for each under `notice.<code>`. `caps` are those that all plans shown with it would pass together: whoever
    runs it lets this turn go on beyond them.
    """

    call: int
    prompt: str
    model: str
    model_label: str
    aspect_ratio: str
    resolution: str | None = None
    number_of_images: int = 1
    references: tuple[str, ...] = ()
    editing: str | None = None
    price_usd: float = 0.0
    seconds: float = 0.0
    prices: tuple[ModelPrice, ...] = ()
    notices: tuple[str, ...] = ()
    caps: tuple[CapPassed, ...] = ()


class Ask(Value):
    """A call of a tool that waits for the person: its place among the turn's calls, why it waits, and its `arguments`
    word for word, as JSON. The page has a sentence for each reason under `consent.<reason>`."""

    call: int
    tool: str
    reason: str
    arguments: str


class Step(StrEnum):
    """What the agent can be busy with. The page has a sentence for each under `step.<name>`."""

    WAITING = "waiting"
    IN_LINE = "in_line"
    NEARLY_FULL = "nearly_full"
    THINKING = "thinking"
    REUSED = "reused"
    UNDERSTOOD = "understood"
    SEARCHING = "searching"
    SEARCHED = "searched"
    TOOL = "tool"
    STYLES = "styles"
    STYLE_MISSING = "style_missing"
    ADJUSTING = "adjusting"
    ADJUSTED = "adjusted"
    PAINTING = "painting"
    PAINTED = "painted"
    REVIEWING = "reviewing"
    REVIEWED = "reviewed"
    NOT_REVIEWED = "not_reviewed"
    REPAINTING = "repainting"
    RETRYING = "retrying"
    RESUMED = "resumed"
    REWORDING = "rewording"


class TurnStarted(Value):
    """The turn is on record: its id, and the uploads with the handles they were given."""

    type: Literal["turn_started"] = "turn_started"
    turn_id: str
    uploads: tuple[ImagePart, ...] = ()


class ThoughtLog(Value):
    """One line of what the agent is doing now; `parameters` fill the sentence of `step`."""

    type: Literal["thought_log"] = "thought_log"
    step: Step
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    at_s: float = 0.0


class TextDelta(Value):
    """More words of the agent's answer."""

    type: Literal["text_delta"] = "text_delta"
    text: str


class ThoughtDelta(Value):
    """More of what the model says of its thinking, as Markdown. It is no part of the answer, and not every model says
    any."""

    type: Literal["thought_delta"] = "thought_delta"
    text: str


class SearchFound(Value):
    """A search ended: its sources and the suggestions to show with them."""

    type: Literal["search_found"] = "search_found"
    sources: tuple[Source, ...]
    suggestions_html: str = ""


class PaintingStarted(Value):
    """Pictures are being made: how many, and the pixels of their frames."""

    type: Literal["painting_started"] = "painting_started"
    count: int
    width: int
    height: int
    model_label: str


class PictureReady(Value):
    """A picture is stored; `index` is its place among those asked for."""

    type: Literal["picture_ready"] = "picture_ready"
    index: int
    picture: Picture


class PictureFailed(Value):
    """One of the pictures asked for could not be made; the others go on."""

    type: Literal["picture_failed"] = "picture_failed"
    index: int
    error: ErrorInfo


class PictureReviewed(Value):
    """A picture of this turn was looked at."""

    type: Literal["picture_reviewed"] = "picture_reviewed"
    handle: str
    review: Review


class QuestionAsked(Value):
    """The agent asks back in the page's own words, without a model call."""

    type: Literal["question_asked"] = "question_asked"
    question: Question
    subject: str = ""


TargetMove = Literal["undo", "redo", "back_to"]


class TargetChanged(Value):
    """The person went back or forward among the pictures: `handle` is the one that their next words change.

    `before` was it until now; the same one when there was nothing to undo or to redo. Both are empty in a conversation
    without pictures. `steps` counts how many were undone or redone. `missing` is what the person named and is not
    there. Nothing was painted and nothing paid.
    """

    type: Literal["target_changed"] = "target_changed"
    move: TargetMove
    handle: str = ""
    before: str = ""
    steps: int = 1
    missing: str = ""

    @property
    def has_moved(self) -> bool:
        """Whether another picture is the one to change now."""
        return self.handle != self.before


class PlanReady(Value):
    """What would be painted, shown before it costs anything. TurnPaused follows."""

    type: Literal["plan_ready"] = "plan_ready"
    plans: tuple[Plan, ...]


class ConsentAsked(Value):
    """The agent wants to call tools that need the person's click. TurnPaused follows."""

    type: Literal["consent_asked"] = "consent_asked"
    asks: tuple[Ask, ...]


class StepTraced(Value):
    """A step of the turn has ended: a call of a model or a tool, or a node. All that was sent and answered is in the
    trace (`Studio.trace`)."""

    type: Literal["step_traced"] = "step_traced"
    step: StepSummary


class TurnPaused(Value):
    """The turn rests on record until the person decides about its plan or its calls; with `is_cut`, until the studio
    is started again, which ended under it. The last event of this part."""

    type: Literal["turn_paused"] = "turn_paused"
    turn_id: str
    is_cut: bool = False


class TurnFailed(Value):
    """The turn ended without what was asked; the words and pictures sent are kept. `rewordings` are other wishes that
    the policy which refused this one may allow."""

    type: Literal["turn_failed"] = "turn_failed"
    error: ErrorInfo
    node: str = ""
    rewordings: tuple[str, ...] = ()


class TurnStopped(Value):
    """The person pressed Stop and the turn is on record as far as it came."""

    type: Literal["turn_stopped"] = "turn_stopped"


class TurnDone(Value):
    """The agent rests. The last event, but for TurnFailed, TurnStopped and TurnPaused, which are last themselves."""

    type: Literal["turn_done"] = "turn_done"
    turn_id: str
    usage: TokenUsage
    price_usd: float
    seconds: float


TurnEvent: TypeAlias = (
    TurnStarted
    | ThoughtLog
    | TextDelta
    | ThoughtDelta
    | SearchFound
    | PaintingStarted
    | PictureReady
    | PictureFailed
    | PictureReviewed
    | QuestionAsked
    | TargetChanged
    | PlanReady
    | ConsentAsked
    | StepTraced
    | TurnPaused
    | TurnFailed
    | TurnStopped
    | TurnDone
)


PanelAction = Literal["regenerate", "vary", "edit", "more_contrast", "warmer"]
PanelSetting = Literal["brightness", "contrast", "saturation", "warmth", "sharpness"]
PlanState = Literal["pending", "run", "dropped"]
ConsentState = Literal["pending", "allowed", "refused"]
Outcome = Literal["done", "failed", "stopped"]


class AgentMessage(Value):
    """Words of the agent, as Markdown from a model: never trusted as HTML."""

    type: Literal["agent_message"] = "agent_message"
    text: str


class Steps(Value):
    """What the agent did, one line each, and how long it took in all.

    `outcome` is how the last of the work ended; the first records do not say it.
    """

    type: Literal["steps"] = "steps"
    lines: tuple[ThoughtLog, ...]
    seconds: float
    outcome: Outcome | None = None


class SmartCanvas(Value):
    """Pictures of one request, by handle, in the order they were asked for; `earlier` are attempts that a review sent
    back for a better one, best first."""

    type: Literal["smart_canvas"] = "smart_canvas"
    handles: tuple[str, ...]
    earlier: tuple[str, ...] = ()


class PanelButton(Value):
    """Something to do next with a picture: its name on the page is `panel.<action>`, and so is what it says for the
    person when it is pressed, `panel.<action>_said`."""

    action: PanelAction


class PanelSlider(Value):
    """How much of a setting a picture has, from -100 to 100, 0 for none. Its name on the page is `panel.<setting>`.

    `amount` is what the picture was adjusted by already, where the slider stands at first.
    """

    setting: PanelSetting
    amount: int = Field(default=0, ge=-100, le=100)


class ActionPanel(Value):
    """What can be done next with a picture. Using it is a turn like any other, with the picture marked."""

    type: Literal["action_panel"] = "action_panel"
    handle: str
    buttons: tuple[PanelButton, ...] = ()
    sliders: tuple[PanelSlider, ...] = ()


class PlanCard(Value):
    """What would be painted. While it is `pending` the person can run, edit or drop it."""

    type: Literal["plan_card"] = "plan_card"
    plans: tuple[Plan, ...]
    state: PlanState = "pending"


class ConsentCard(Value):
    """Calls of tools that the person is asked about. While it is `pending` nothing of it runs."""

    type: Literal["consent_card"] = "consent_card"
    asks: tuple[Ask, ...]
    state: ConsentState = "pending"

    @property
    def is_allowed(self) -> bool:
        """Whether the person let the calls run."""
        return self.state == "allowed"


class AskBack(Value):
    """A question of the agent in the page's own words, `question.<question>`, which may name the `subject`."""

    type: Literal["ask_back"] = "ask_back"
    question: Question
    subject: str = ""


class TargetNote(Value):
    """The person went back to an earlier picture, or forward again: which one their next words change since then."""

    type: Literal["target_note"] = "target_note"
    change: TargetChanged


class SearchNote(Value):
    """What a search rested on, and the provider's search suggestions exactly as given."""

    type: Literal["search_note"] = "search_note"
    sources: tuple[Source, ...]
    suggestions_html: str = ""


class FailureNote(Value):
    """A failure in its place in the thread; `node` names the step that failed, and `rewordings` are other wishes that
    the policy which refused this one may allow."""

    type: Literal["failure_note"] = "failure_note"
    error: ErrorInfo
    node: str = ""
    rewordings: tuple[str, ...] = ()


class InterruptedNote(Value):
    """The studio ended in the middle of the turn. `may_have_been_charged` counts calls that were sent and whose
    answer never came. The person can have the turn go on from where it was."""

    type: Literal["interrupted_note"] = "interrupted_note"
    may_have_been_charged: int = 0


class StoppedNote(Value):
    """The person pressed Stop; everything above it is kept."""

    type: Literal["stopped_note"] = "stopped_note"


Component: TypeAlias = Annotated[
    AgentMessage
    | Steps
    | SmartCanvas
    | ActionPanel
    | PlanCard
    | ConsentCard
    | AskBack
    | TargetNote
    | SearchNote
    | FailureNote
    | InterruptedNote
    | StoppedNote,
    Field(discriminator="type"),
]


def undecided(component: Component) -> Component:
    """Return a card that waits for the person as it stays when nobody decides about it any more; others as they are."""
    if isinstance(component, PlanCard) and component.state == "pending":
        return component.model_copy(update={"state": "dropped"})
    if isinstance(component, ConsentCard) and component.state == "pending":
        return component.model_copy(update={"state": "refused"})
    return component


def component_events(
    component: Component, pictures: Mapping[str, Picture] = MappingProxyType({})
) -> tuple[TurnEvent, ...]:
    """Return the events that tell what a component shows, but for a decision that was taken; none for what a turn
    shows only when it rests. `pictures` are those of the conversation by handle: of one that is gone nothing is told.
    """
    match component:
        case AgentMessage():
            return (TextDelta(text=component.text),)
        case AskBack():
            return (QuestionAsked(question=component.question, subject=component.subject),)
        case TargetNote():
            return (component.change,)
        case SearchNote():
            return (SearchFound(sources=component.sources, suggestions_html=component.suggestions_html),)
        case SmartCanvas():
            places = enumerate(component.handles)
            return tuple(PictureReady(index=n, picture=pictures[one]) for n, one in places if one in pictures)
        case PlanCard(state="pending"):
            return (PlanReady(plans=component.plans),)
        case ConsentCard(state="pending"):
            return (ConsentAsked(asks=component.asks),)
        case _:
            return ()
