"""What the agent can show: pieces of interface as data, rendered by whichever front is attached.

A turn's components, in order, are what the conversation looks like when it is opened again.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agent.errors import ErrorInfo
from agent.events import TargetChanged, ThoughtLog
from agent.messages import Source, Value
from agent.plans import Ask, Plan, Question

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
