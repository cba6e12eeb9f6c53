"""The events that a turn emits while it runs (`TurnEvent`), and the components that it shows and stores (`Component`).

User interfaces match on the type of an event and end with `assert_never`. A turn's components, in order, are what the
reopened conversation shows; `component_events` converts them back into events.
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
    """The price of a plan with one of its image models, in US dollars."""

    model_label: str
    price_usd: float


class CapPassed(Value):
    """A cap that the pictures of a plan would exceed; all amounts in US dollars.

    The conversation cap counts every branch, the day cap all conversations of the owner. The turn cap is the maximum
    shown before sending. `spent_usd` is the spending so far, `price_usd` the estimated price of the pictures; for the
    turn cap it is the highest possible price."""

    cap: Literal["conversation", "day", "turn"]
    cap_usd: float
    spent_usd: float
    price_usd: float

    @property
    def over_usd(self) -> float:
        """The amount by which the cap would be exceeded."""
        return self.spent_usd + self.price_usd - self.cap_usd


class Plan(Value):
    """One image request as it would be sent. `call` is its index among the turn's calls.

    `model` is the image model's name on the page: `flash`, `pro`, or `both` for a comparison; with `both`, `prices`
    holds the price of each model, and `number_of_images` counts per model. `price_usd` is an estimate for all pictures
    including a review of each. `notices` are warnings about a masked edit before it is paid for; the page has a
    sentence for each under `notice.<code>`. `caps` are the caps that all plans shown together would exceed: running the
    plan lets this turn exceed them.
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
    """A tool call that waits for the user's consent: its index among the turn's calls, the reason, and its arguments.

    `arguments` is their exact JSON. The page has a sentence for each reason under `consent.<reason>`."""

    call: int
    tool: str
    reason: str
    arguments: str


class Step(StrEnum):
    """A step of the agent's work. The page has a sentence for each under `step.<name>`."""

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
    """The turn is recorded: its id, and the uploads with their assigned handles."""

    type: Literal["turn_started"] = "turn_started"
    turn_id: str
    uploads: tuple[ImagePart, ...] = ()


class ThoughtLog(Value):
    """One line about what the agent is doing now; `parameters` fill the sentence of `step`."""

    type: Literal["thought_log"] = "thought_log"
    step: Step
    parameters: dict[str, str | int | float] = Field(default_factory=dict)
    at_s: float = 0.0


class TextDelta(Value):
    """More text of the agent's answer."""

    type: Literal["text_delta"] = "text_delta"
    text: str


class ThoughtDelta(Value):
    """More of the model's thought summary, as Markdown. It is not part of the answer; some models send none."""

    type: Literal["thought_delta"] = "thought_delta"
    text: str


class SearchFound(Value):
    """A search ended: its sources and the suggestions to show with them."""

    type: Literal["search_found"] = "search_found"
    sources: tuple[Source, ...]
    suggestions_html: str = ""


class PaintingStarted(Value):
    """Image generation started: the number of pictures, and their placeholder size in pixels."""

    type: Literal["painting_started"] = "painting_started"
    count: int
    width: int
    height: int
    model_label: str


class PictureReady(Value):
    """A picture is stored; `index` is its position among the requested pictures."""

    type: Literal["picture_ready"] = "picture_ready"
    index: int
    picture: Picture


class PictureFailed(Value):
    """One of the requested pictures could not be generated; the others continue."""

    type: Literal["picture_failed"] = "picture_failed"
    index: int
    error: ErrorInfo


class PictureReviewed(Value):
    """A picture of this turn was reviewed."""

    type: Literal["picture_reviewed"] = "picture_reviewed"
    handle: str
    review: Review


class QuestionAsked(Value):
    """The agent asks a question with one of the page's sentences, without a model call."""

    type: Literal["question_asked"] = "question_asked"
    question: Question
    subject: str = ""


TargetMove = Literal["undo", "redo", "back_to"]


class TargetChanged(Value):
    """The user moved the edit target by undo, redo or going back: `handle` is the picture that the next turn changes.

    `before` is the previous target; it equals `handle` when there was nothing to undo or redo. Both are empty in a
    conversation without pictures. `steps` is the number of undone or redone steps. `missing` is a picture that the user
    named and that does not exist. Nothing was generated and nothing paid.
    """

    type: Literal["target_changed"] = "target_changed"
    move: TargetMove
    handle: str = ""
    before: str = ""
    steps: int = 1
    missing: str = ""

    @property
    def has_moved(self) -> bool:
        """Whether the edit target changed."""
        return self.handle != self.before


class PlanReady(Value):
    """The plans, shown before anything is paid. TurnPaused follows."""

    type: Literal["plan_ready"] = "plan_ready"
    plans: tuple[Plan, ...]


class ConsentAsked(Value):
    """The agent wants to call tools that need the user's consent. TurnPaused follows."""

    type: Literal["consent_asked"] = "consent_asked"
    asks: tuple[Ask, ...]


class StepTraced(Value):
    """A step of the turn ended: a model call, a tool call, or a node.

    The trace (`Studio.trace`) has the full request and answer."""

    type: Literal["step_traced"] = "step_traced"
    step: StepSummary


class TurnPaused(Value):
    """The turn pauses until the user decides about its plan or its calls; it is the last event until the turn resumes.

    With `is_cut` the studio closed during the turn, and its next start resumes it. The pause is recorded."""

    type: Literal["turn_paused"] = "turn_paused"
    turn_id: str
    is_cut: bool = False


class TurnFailed(Value):
    """The turn ended without the requested result; the sent text and pictures are kept.

    `rewordings` are alternative prompts that the content policy may allow after it refused this one."""

    type: Literal["turn_failed"] = "turn_failed"
    error: ErrorInfo
    node: str = ""
    rewordings: tuple[str, ...] = ()


class TurnStopped(Value):
    """The user cancelled the turn; its progress is recorded."""

    type: Literal["turn_stopped"] = "turn_stopped"


class TurnDone(Value):
    """The turn succeeded. The last event of a turn is this one, TurnFailed, TurnStopped or TurnPaused."""

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
Outcome = Literal["done", "failed", "stopped"]


class AgentMessage(Value):
    """Text of the agent, as Markdown from a model: never trusted as HTML."""

    type: Literal["agent_message"] = "agent_message"
    text: str


class Steps(Value):
    """What the agent did, one line per step, and the total duration.

    `outcome` is how the last step ended; the oldest records do not have it.
    """

    type: Literal["steps"] = "steps"
    lines: tuple[ThoughtLog, ...]
    seconds: float
    outcome: Outcome | None = None


class SmartCanvas(Value):
    """The pictures of one image request, by handle, in the requested order.

    `earlier` are attempts that a review rejected and that a later attempt replaced, best first."""

    type: Literal["smart_canvas"] = "smart_canvas"
    handles: tuple[str, ...]
    earlier: tuple[str, ...] = ()


class PanelButton(Value):
    """A follow-up action on a picture.

    Its label on the page is `panel.<action>`; the message that it sends for the user is `panel.<action>_said`."""

    action: PanelAction


class PanelSlider(Value):
    """A slider for one adjustment of a picture, from -100 to 100, 0 for none. Its page label is `panel.<setting>`.

    `amount` is the adjustment that the picture already has: the slider's initial position.
    """

    setting: PanelSetting
    amount: int = Field(default=0, ge=-100, le=100)


class ActionPanel(Value):
    """The follow-up actions for a picture. Using one starts a normal turn with the picture marked."""

    type: Literal["action_panel"] = "action_panel"
    handle: str
    buttons: tuple[PanelButton, ...] = ()
    sliders: tuple[PanelSlider, ...] = ()


class PlanCard(Value):
    """The plans of a turn. While the card is `pending` the user can run, edit or drop them."""

    type: Literal["plan_card"] = "plan_card"
    plans: tuple[Plan, ...]
    state: Literal["pending", "run", "dropped"] = "pending"


class ConsentCard(Value):
    """Tool calls that need the user's consent. While the card is `pending` none of them runs."""

    type: Literal["consent_card"] = "consent_card"
    asks: tuple[Ask, ...]
    state: Literal["pending", "allowed", "refused"] = "pending"

    @property
    def is_allowed(self) -> bool:
        """Whether the user allowed the calls."""
        return self.state == "allowed"


class AskBack(Value):
    """A question of the agent: the page's sentence `question.<question>`, which may name the `subject`."""

    type: Literal["ask_back"] = "ask_back"
    question: Question
    subject: str = ""


class TargetNote(Value):
    """The user moved the edit target by undo, redo or going back; `change` has the new target."""

    type: Literal["target_note"] = "target_note"
    change: TargetChanged


class SearchNote(Value):
    """The sources of a search, and the provider's search suggestions exactly as received."""

    type: Literal["search_note"] = "search_note"
    sources: tuple[Source, ...]
    suggestions_html: str = ""


class FailureNote(Value):
    """A failure at its position in the conversation; `node` names the failed step.

    `rewordings` are alternative prompts that the content policy may allow after it refused this one."""

    type: Literal["failure_note"] = "failure_note"
    error: ErrorInfo
    node: str = ""
    rewordings: tuple[str, ...] = ()


class InterruptedNote(Value):
    """The studio ended during the turn, which the user can resume.

    `may_have_been_charged` counts calls that were sent and never answered."""

    type: Literal["interrupted_note"] = "interrupted_note"
    may_have_been_charged: int = 0


class StoppedNote(Value):
    """The user cancelled the turn; everything above this note is kept."""

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
    """Return a pending card as dropped or refused, for when no decision is possible any more; others unchanged."""
    if isinstance(component, PlanCard) and component.state == "pending":
        return component.model_copy(update={"state": "dropped"})
    if isinstance(component, ConsentCard) and component.state == "pending":
        return component.model_copy(update={"state": "refused"})
    return component


def component_events(
    component: Component, pictures: Mapping[str, Picture] = MappingProxyType({})
) -> tuple[TurnEvent, ...]:
    """Return the events of a component's content; none for decided cards and components without an event.

    `pictures` are those of the conversation by handle; a deleted picture yields no event.
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
