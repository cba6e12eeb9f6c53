"""What the agent does, in sentences: the live line while it works, and the folded record of a finished turn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from agent.events import Step, ThoughtLog
from webui.icons import icon
from webui.usual_times import Usual
from webui.words import Words

_COUNTED = (Step.WAITING, Step.PAINTING, Step.PAINTED, Step.REVIEWING)
_STEP_ICONS = {
    Step.WAITING: "clock",
    Step.IN_LINE: "clock",
    Step.THINKING: "list-checks",
    Step.REUSED: "repeat",
    Step.UNDERSTOOD: "message-circle",
    Step.SEARCHING: "globe",
    Step.SEARCHED: "globe",
    Step.TOOL: "wrench",
    Step.STYLES: "palette",
    Step.ADJUSTING: "sliders-horizontal",
    Step.ADJUSTED: "sliders-horizontal",
    Step.PAINTING: "brush",
    Step.PAINTED: "brush",
    Step.REVIEWING: "scan-eye",
    Step.REVIEWED: "scan-eye",
    Step.NOT_REVIEWED: "scan-eye",
    Step.REPAINTING: "brush",
    Step.RETRYING: "rotate-ccw",
    Step.RESUMED: "redo-2",
    Step.REWORDING: "message-circle",
}
_TOOLS = {
    "read_url": "step.reading_page",
    "write_file": "step.writing_file",
    "read_file": "step.reading_file",
    "list_files": "step.listing_files",
    "delete_file": "step.deleting_file",
    "run_javascript": "step.running_script",
    "get_history_image": "step.looking_back",
    "view_image": "step.looking_at",
}
# Stands for the seconds until they are put in as an element; no sentence holds it.
_SECONDS = "\x00"


def step_sentence(words: Words, line: ThoughtLog) -> str:
    """Return what the agent is doing, in a sentence."""
    key = f"step.{line.step.value}"
    if line.step in _COUNTED:
        parameters = dict(line.parameters)
        return words.counted(key, int(parameters.pop("count", 1) or 1), **parameters)
    if line.step is Step.TOOL:
        if "server" in line.parameters:
            return words("step.mcp_tool", **line.parameters)
        name, thing = (str(line.parameters.get(one, "")) for one in ("name", "object"))
        return tool_sentence(words, name, thing)
    parameters = {**line.parameters, "score": score_text(line)} if line.step is Step.REVIEWED else line.parameters
    return words(key, **parameters)


def tool_sentence(words: Words, name: str, thing: str) -> str:
    """Return which tool is at work, and on what; a web address is named by its host."""
    key = _TOOLS.get(name)
    if key is None:
        return words("step.tool", name=name)
    if name == "read_url":
        thing = urlsplit(thing).netloc or thing
    return " ".join(words(key, object=thing).split())


def score_text(line: ThoughtLog) -> str:
    """Return the score of a review as everywhere on the page, in whole per cent."""
    try:
        return f"{float(line.parameters.get('score', '')):.0%}"
    except ValueError:
        return "?"


def live_line(
    words: Words, line: ThoughtLog | None, seconds: float, tools_done: int = 0, usual: Usual | None = None
) -> str:
    """Return the line that says what is being done now, for how long the turn has run, and how long is usual.

    By `tools_done`, the calls of tools that have ended, the page sees that the agent may have written a file.
    """
    sentence = escape(step_sentence(words, line)) if line else escape(words("step.thinking"))
    if line is not None and line.step is Step.RETRYING:
        sentence = _countdown(words, line)
    expected = _usual(words, usual) if usual else ""
    return (
        f'<div class="live" data-tools="{tools_done}"><i></i><span>{sentence}</span>'
        f'<time data-s="{int(seconds)}">{_seconds(words, f"{int(seconds)}")}</time>{expected}</div>'
    )


def _usual(words: Words, usual: Usual) -> str:
    """Return how long is usual; the page says instead that it takes longer, once it does."""
    count = round(usual.seconds)
    said = words("step.usual" if usual.is_own else "step.usual_catalogue", seconds=count)
    due = round(usual.begun_s + usual.seconds)
    return f'<small data-usual="{due}" data-late="{escape(words("step.late"))}">{escape(said)}</small>'


def _seconds(words: Words, count: str) -> str:
    return escape(words("receipt.seconds", seconds=count))


def _countdown(words: Words, line: ThoughtLog) -> str:
    """Return the sentence of a wait whose seconds the page counts down by itself; `data-at` tells two waits apart."""
    given = line.parameters.get("seconds", 0)
    seconds = max(0, round(given)) if isinstance(given, int | float) else 0
    number = f'<b class="down" aria-live="off" data-down="{seconds}" data-at="{line.at_s:.3f}">{seconds}</b>'
    sentence = words("step.retrying", **{**line.parameters, "seconds": _SECONDS})
    return escape(sentence).replace(_SECONDS, number)


def steps(words: Words, lines: Sequence[ThoughtLog], seconds: float) -> str:
    """Return the folded record of what the agent did."""
    done = list(dict.fromkeys(words(f"did.{line.step.value}") for line in lines))
    head = words("did.join").join(done)
    rows = "".join(
        f"<li>{icon(_STEP_ICONS[line.step], 15)}<span>{escape(step_sentence(words, line))}</span>"
        f"<time>{_seconds(words, f'{line.at_s:.1f}')}</time></li>"
        for line in lines
    )
    return (
        f'<details class="steps"><summary>{icon("chevron-right", 15)}<span>{escape(head[:1].upper() + head[1:])}</span>'
        f"<time>{_seconds(words, f'{seconds:.0f}')}</time></summary><ol>{rows}</ol></details>"
    )
