"""What the agent does, in sentences: the live line while it works, and the folded record of a finished turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import assert_never
from urllib.parse import urlsplit

from agent import Outcome, Step, ThoughtLog
from webui.icons import icon
from webui.markdown import markdown_html
from webui.usual_times import Usual
from webui.words import Words

_COUNTED = (Step.WAITING, Step.PAINTING, Step.PAINTED, Step.REVIEWING)
_STEP_ICONS = {
    Step.WAITING: "clock",
    Step.IN_LINE: "clock",
    Step.NEARLY_FULL: "circle-alert",
    Step.THINKING: "list-checks",
    Step.REUSED: "repeat",
    Step.UNDERSTOOD: "message-circle",
    Step.SEARCHING: "globe",
    Step.SEARCHED: "globe",
    Step.TOOL: "wrench",
    Step.STYLES: "palette",
    Step.STYLE_MISSING: "palette",
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
    "go_back_to": "step.going_back",
}
# Work takes time; every other line says what came of the work before it. Most work has a line that says it is done.
_WORK: dict[Step, tuple[Step, ...]] = {
    Step.THINKING: (),
    Step.SEARCHING: (Step.SEARCHED,),
    Step.TOOL: (),
    Step.ADJUSTING: (Step.ADJUSTED,),
    Step.PAINTING: (Step.PAINTED,),
    Step.REVIEWING: (Step.REVIEWED, Step.NOT_REVIEWED),
    Step.REWORDING: (),
}
_LONGEST_THOUGHT = 120
# Stands for the seconds until they are put in as an element; no sentence holds it.
_SECONDS = "\x00"


def step_sentence(words: Words, line: ThoughtLog) -> str:
    """Return what the agent is doing, in a sentence."""
    key = f"step.{line.step.value}"
    if line.step in _COUNTED:
        parameters = dict(line.parameters)
        return words.counted(key, int(parameters.pop("count", 1) or 1), **parameters)
    match line.step:
        case Step.TOOL if "server" in line.parameters:
            return words("step.mcp_tool", **line.parameters)
        case Step.TOOL:
            name, thing = (str(line.parameters.get(one, "")) for one in ("name", "object"))
            return tool_sentence(words, name, thing)
        case Step.SEARCHED:
            facts, sources = (int(line.parameters.get(one, 0) or 0) for one in ("facts", "sources"))
            found = words.counted("step.facts", facts) if facts else words("step.no_facts")
            return words(key, facts=found, sources=words.counted("step.sources", sources))
        case Step.REVIEWED:
            return _reviewed(words, line)
        case _:
            return words(key, **line.parameters)


def tool_sentence(words: Words, name: str, thing: str) -> str:
    """Return which tool is at work, and on what; a web address is named by its host."""
    key = _TOOLS.get(name)
    if key is None:
        return words("step.tool", name=name)
    if name == "read_url":
        thing = urlsplit(thing).netloc or thing
    return " ".join(words(key, object=thing).split())


def _reviewed(words: Words, line: ThoughtLog) -> str:
    """Return what a look came to; the first records hold a score, which says nothing, instead of counts."""
    count, feedback = int(line.parameters.get("count", 0) or 0), str(line.parameters.get("feedback", ""))
    if count:
        return words("step.reviewed", met=line.parameters.get("met", 0), count=count, feedback=feedback)
    return words("step.reviewed_bare", feedback=feedback)


def live_line(
    words: Words,
    line: ThoughtLog | None,
    seconds: float,
    tools_done: int = 0,
    usual: Usual | None = None,
    thoughts: str = "",
) -> str:
    """Return the line that says what is being done now, for how long the turn has run, and how long is usual; while the
    model thinks, below it what it said last of its thinking.

    By `tools_done`, the calls of tools that have ended, the page sees that the agent may have written a file.
    """
    is_thinking = line is None or line.step is Step.THINKING
    newest = newest_thought(thoughts) if is_thinking else ""
    thought = f'<p class="thought" aria-hidden="true">{escape(newest)}</p>' if newest else ""
    sentence = escape(step_sentence(words, line)) if line else escape(words("step.thinking"))
    if line is not None and line.step is Step.RETRYING:
        sentence = _countdown(words, line)
    expected = _usual(words, usual) if usual else ""
    return (
        f'<div class="live" data-tools="{tools_done}"><i></i><span>{sentence}</span>'
        f'<time data-s="{int(seconds)}">{_seconds(words, f"{int(seconds)}")}</time>{expected}</div>{thought}'
    )


def newest_thought(thoughts: str) -> str:
    """Return what a model said last of its thinking, in a line: its newest heading, else its newest sentence."""
    lines = [one.strip() for one in thoughts.splitlines() if one.strip()]
    headings = [one.strip("*# ") for one in lines if one.startswith(("**", "#"))]
    newest = headings[-1] if headings else lines[-1] if lines else ""
    return newest if len(newest) <= _LONGEST_THOUGHT else f"{newest[:_LONGEST_THOUGHT]}…"


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


@dataclass(frozen=True)
class StepRow:
    """A line of the record: what was done, and how long the work took (None for a line that is no work of its own).

    `ending` is how the work ended. `asked` is the line that began it, where `line` is the one that ended it.
    """

    line: ThoughtLog
    seconds: float | None = None
    ending: Outcome = "done"
    asked: ThoughtLog | None = None


def step_rows(lines: Sequence[ThoughtLog], seconds: float, outcome: Outcome = "done") -> list[StepRow]:
    """Return the record of a turn that took so long and ended so, in order.

    Each piece of work takes until the next one begins, so the times add up to the turn's; of tools that began together
    the last one has it. Records in which the clock began anew in the middle have no times.
    """
    starts = [place for place, line in enumerate(lines) if line.step in _WORK]
    has_times = all(one.at_s <= other.at_s for one, other in pairwise(lines))
    rows = [StepRow(line) for line in lines[: starts[0] if starts else None]]
    for place, end in pairwise([*starts, len(lines)]):
        work, said = lines[place], lines[place + 1 : end]
        is_last = end == len(lines)
        begins_s = 0.0 if place == starts[0] else work.at_s
        ends_s = max(seconds, begins_s) if is_last else lines[end].at_s
        time_s = ends_s - begins_s if has_times and (ends_s > begins_s or is_last) else None
        done = next((line for line in said if line.step in _WORK[work.step]), None)
        if done is not None:
            rows.append(StepRow(done, time_s, "done", work))
        else:
            # Other work came after it, so what does not say that it is done was not.
            ending: Outcome = outcome if is_last else "failed" if _WORK[work.step] else "done"
            rows.append(StepRow(work, time_s, ending))
        rows += [StepRow(line) for line in said if line is not done]
    return rows


def steps(
    words: Words, lines: Sequence[ThoughtLog], seconds: float, outcome: Outcome = "done", thoughts: str = ""
) -> str:
    """Return the folded record of what the agent did in a turn that took so long and ended so, and of what the model
    said of its thinking."""
    rows = step_rows(lines, seconds, outcome)
    head = words("did.join").join(dict.fromkeys(_did(words, row) for row in rows))
    items = "".join(_row(words, row) for row in rows)
    return (
        f'<details class="steps"><summary>{icon("chevron-right", 15)}<span>{escape(head[:1].upper() + head[1:])}</span>'
        f"<time>{_seconds(words, f'{seconds:.0f}')}</time></summary><ol>{items}</ol>{folded_thoughts(words, thoughts)}"
        "</details>"
    )


def folded_thoughts(words: Words, thoughts: str) -> str:
    """Return what the model said of its thinking, folded; nothing where it said nothing."""
    if not thoughts.strip():
        return ""
    said = markdown_html(thoughts, copy=words("builtin.copy_code"))
    return (
        f'<details class="steps thoughts"><summary>{icon("chevron-right", 15)}'
        f"<span>{escape(words('step.thoughts'))}</span>"
        f'</summary><div class="md">{said}</div></details>'
    )


def _row(words: Words, row: StepRow) -> str:
    time = f"<time>{_seconds(words, f'{row.seconds:.1f}')}</time>" if row.seconds is not None else ""
    return f"<li>{icon(_STEP_ICONS[row.line.step], 15)}<span>{escape(_row_sentence(words, row))}</span>{time}</li>"


def _did(words: Words, row: StepRow) -> str:
    name = row.line.step.value
    match row.ending:
        case "done":
            return words(f"did.{name}")
        case "failed":
            return words(f"undone.{name}")
        case "stopped":
            return words(f"halted.{name}")
        case _:
            assert_never(row.ending)


def _row_sentence(words: Words, row: StepRow) -> str:
    """Return what a finished row says: work that did not come to its end says so."""
    line = row.line
    if row.ending != "done":
        said = _did(words, row)
        return said[:1].upper() + said[1:]
    if line.step is Step.PAINTED and row.asked is not None:
        asked, made = (int(one.parameters.get("count", 1) or 1) for one in (row.asked, line))
        if made < asked:
            return words("step.painted_some", count=made, asked=asked)
    if line.step in (Step.THINKING, Step.REWORDING, Step.REPAINTING):
        said = words(f"did.{line.step.value}")
        return said[:1].upper() + said[1:]
    return step_sentence(words, line).removesuffix("…")
