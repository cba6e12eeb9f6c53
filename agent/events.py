"""The one union of events that a turn streams. Fronts match on the type and end with `assert_never`."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import Field

from agent.errors import ErrorInfo
from agent.messages import ImagePart, Source, TokenUsage, Value
from agent.pictures import Picture
from agent.plans import Ask, Plan, Question
from agent.reviews import Review
from agent.trace import StepSummary


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
