"""The agent's steps in sentences: the live line with the usual time, and the folded record of a finished turn. Also
what the page says when a turn did not end well or the agent asks back: calm where the user can act."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median
from typing import assert_never
from urllib.parse import urlsplit

from markupsafe import Markup

from agent import (
    Actor,
    AivistaError,
    Catalogue,
    Charge,
    ErrorCode,
    ErrorInfo,
    Gallery,
    GalleryQuery,
    Outcome,
    PaintingStarted,
    Question,
    Receipt,
    Step,
    TargetChanged,
    ThoughtLog,
)
from webui.features.thread.markdown import markdown_html
from webui.shell.templates import render
from webui.view import View
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
# Steps that take time. Every other step reports the result of the one before it; most have a step that says they are
# done.
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
# The newest pictures to look at, and how many of the right size count: models get faster and slower.
_LOOKED_AT = 40
_MOST_COUNTED = 12
# Sizes such as 1K and 2K differ by a factor of four in pixels.
_SAME_SIZE = log(2)
# Below that nobody waits.
LEAST_S = 3.0
# A placeholder for the element that shows the seconds; no sentence contains it.
_SECONDS = "\x00"
_HEAD_ICONS = {
    Actor.POLICY: "shield-alert",
    Actor.KEY: "key-round",
    Actor.NETWORK: "wifi-off",
    Actor.YOU: "circle-alert",
}
# Actors to whom a failed model call may belong: for those it is said whether the call was charged.
_OF_A_CALL = frozenset({Actor.KEY, Actor.POLICY, Actor.PROVIDER, Actor.NETWORK})
# The provider's reasons, as readable sentences.
_REASONS = {
    "SAFETY": "reason.safety",
    "IMAGE_SAFETY": "reason.safety",
    "PROHIBITED_CONTENT": "reason.prohibited",
    "IMAGE_PROHIBITED_CONTENT": "reason.prohibited",
    "BLOCKLIST": "reason.blocklist",
    "SPII": "reason.personal",
    "RECITATION": "reason.recitation",
    "IMAGE_RECITATION": "reason.recitation",
    "JAILBREAK": "reason.jailbreak",
    "NO_IMAGE": "reason.no_image",
    "IMAGE_OTHER": "reason.other",
    "OTHER": "reason.other",
}
KEYS_PAGE = "aistudio.google.com/apikey"
_BILLING = "ai.studio/projects"
_CREDENTIALS = "console.cloud.google.com/apis/credentials"
# Where the user can solve a problem with their key.
_PLACES = {
    ErrorCode.KEY_INVALID: KEYS_PAGE,
    ErrorCode.KEY_MISSING: KEYS_PAGE,
    ErrorCode.KEY_EXPIRED: KEYS_PAGE,
    ErrorCode.KEY_LEAKED: KEYS_PAGE,
    ErrorCode.KEY_SUSPENDED: KEYS_PAGE,
    ErrorCode.ACCOUNT_LIMITED: KEYS_PAGE,
    ErrorCode.KEY_FORBIDDEN: KEYS_PAGE,
    ErrorCode.BILLING_REQUIRED: _BILLING,
    ErrorCode.CREDITS_USED_UP: _BILLING,
    ErrorCode.QUOTA_EXHAUSTED: "ai.dev/rate-limit",
    ErrorCode.KEY_RESTRICTED: _CREDENTIALS,
    ErrorCode.KEY_WITHOUT_API: _CREDENTIALS,
    ErrorCode.API_DISABLED: "console.cloud.google.com/apis/library/generativelanguage.googleapis.com",
    ErrorCode.REGION_UNSUPPORTED: "ai.google.dev/gemini-api/docs/available-regions",
    ErrorCode.MODEL_NOT_OFFERED: "ai.google.dev/gemini-api/docs/models",
}
_EXAMPLES = ("example.fox_text", "example.poster_text", "example.city_text")


@dataclass(frozen=True)
class Usual:
    """The usual time in seconds: of the whole turn when known from the user's own pictures (`is_own`), else of one
    picture by the catalogue, counted from second `begun_s` of the turn on."""

    seconds: float
    is_own: bool
    begun_s: float = 0.0


def step_sentence(words: Words, line: ThoughtLog) -> str:
    """Return a step as a sentence."""
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
    """Return a tool call as a sentence with its object; a web address is named by its host."""
    key = _TOOLS.get(name)
    if key is None:
        return words("step.tool", name=name)
    if name == "read_url":
        # A model can write what is no address.
        with suppress(ValueError):
            thing = urlsplit(thing).netloc or thing
    return " ".join(words(key, object=thing).split())


def _reviewed(words: Words, line: ThoughtLog) -> str:
    """Return the result of a review as a sentence; the first records hold a meaningless score instead of counts."""
    count, feedback = int(line.parameters.get("count", 0) or 0), str(line.parameters.get("feedback", ""))
    if count:
        return words("step.reviewed", met=line.parameters.get("met", 0), count=count, feedback=feedback)
    return words("step.reviewed_bare", feedback=feedback)


def live_line(
    words: Words,
    line: ThoughtLog | None,
    seconds: float,
    tools_done: int,
    usual: Usual | None,
    thoughts: str,
    *,
    has_blocks: bool,
) -> Markup:
    """Return the live line: the current step, how long the turn has run, and the usual time; below it, while the model
    thinks, its newest thought. The page counts down a waiting time by itself.

    `tools_done`, the number of completed tool calls, tells the page that the agent may have written a file. Without a
    `line`, the turn has just begun or, when it `has_blocks` and no longer thinks, the agent is answering.
    """
    sentence, waits = words("step.answering" if has_blocks and not thoughts else "step.thinking"), None
    if line is not None and line.step is Step.RETRYING:
        given = line.parameters.get("seconds", 0)
        waits = max(0, round(given)) if isinstance(given, int | float) else 0
        sentence = words("step.retrying", **{**line.parameters, "seconds": _SECONDS})
    elif line is not None:
        sentence = step_sentence(words, line)
    is_thinking = line is None or line.step is Step.THINKING
    return render(
        "thread/live.html",
        words,
        sentence=sentence.split(_SECONDS),
        waits=waits,
        at_s=line.at_s if line is not None else 0,
        seconds=int(seconds),
        tools_done=tools_done,
        usual=usual,
        thought=newest_thought(thoughts) if is_thinking else "",
    )


def newest_thought(thoughts: str) -> str:
    """Return the newest thought in one line: its last heading, else its last sentence."""
    lines = [one.strip() for one in thoughts.splitlines() if one.strip()]
    headings = [one.strip("*# ") for one in lines if one.startswith(("**", "#"))]
    newest = headings[-1] if headings else lines[-1] if lines else ""
    return newest if len(newest) <= _LONGEST_THOUGHT else f"{newest[:_LONGEST_THOUGHT]}…"


@dataclass(frozen=True)
class StepRow:
    """A line of the record: what was done, and how long it took (None for a line that is no work of its own).

    `ending` is how the work ended. `asked` is the line that began it, where `line` is the one that ended it.
    """

    line: ThoughtLog
    seconds: float | None = None
    ending: Outcome = "done"
    asked: ThoughtLog | None = None


def step_rows(lines: Sequence[ThoughtLog], seconds: float, outcome: Outcome) -> list[StepRow]:
    """Return the record of a turn that took `seconds` and ended with `outcome`, in order.

    Each piece of work lasts until the next one begins, so the times add up to the turn's; of tools that began together,
    the last one has the time. Records whose clock restarted in the middle have no times.
    """
    starts = [place for place, line in enumerate(lines) if line.step in _WORK]
    has_times = all(one.at_s <= other.at_s for one, other in pairwise(lines))
    rows = [StepRow(line) for line in lines[: starts[0] if starts else None]]
    for place, end in pairwise([*starts, len(lines)]):
        work, reported = lines[place], lines[place + 1 : end]
        is_last = end == len(lines)
        begins_s = 0.0 if place == starts[0] else work.at_s
        ends_s = max(seconds, begins_s) if is_last else lines[end].at_s
        time_s = ends_s - begins_s if has_times and (ends_s > begins_s or is_last) else None
        done = next((line for line in reported if line.step in _WORK[work.step]), None)
        if done is not None:
            rows.append(StepRow(done, time_s, "done", work))
        else:
            # Other work came after it: if nothing says that it is done, it was not completed.
            ending: Outcome = outcome if is_last else "failed" if _WORK[work.step] else "done"
            rows.append(StepRow(work, time_s, ending))
        rows += [StepRow(line) for line in reported if line is not done]
    return rows


def steps(words: Words, lines: Sequence[ThoughtLog], seconds: float, outcome: Outcome, thoughts: str) -> Markup:
    """Return the folded record of the agent's steps, with the model's thoughts."""
    rows = step_rows(lines, seconds, outcome)
    head = words("did.join").join(dict.fromkeys(_did(words, row) for row in rows))
    shown = [(_STEP_ICONS[row.line.step], _row_sentence(words, row), row.seconds) for row in rows]
    return render(
        "thread/steps.html",
        words,
        head=_capital(head),
        seconds=seconds,
        rows=shown,
        thoughts=_thoughts(words, thoughts),
    )


def folded_thoughts(words: Words, thoughts: str) -> Markup:
    """Return the model's thoughts, folded; empty without any."""
    return render("thread/thoughts.html", words, thoughts=_thoughts(words, thoughts))


def _thoughts(words: Words, thoughts: str) -> Markup:
    return markdown_html(thoughts, copy=words("builtin.copy_code")) if thoughts.strip() else Markup()


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


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
    """Return the sentence of a finished row; work that was not completed says so."""
    line = row.line
    if row.ending != "done":
        return _capital(_did(words, row))
    if line.step is Step.PAINTED and row.asked is not None:
        asked, made = (int(one.parameters.get("count", 1) or 1) for one in (row.asked, line))
        if made < asked:
            return words("step.painted_some", count=made, asked=asked)
    if line.step in (Step.THINKING, Step.REWORDING, Step.REPAINTING):
        return _capital(words(f"did.{line.step.value}"))
    return step_sentence(words, line).removesuffix("…")


async def usual_time(
    gallery: Gallery,
    catalogue: Catalogue,
    owner: str,
    provider: str,
    asked: PaintingStarted,
    elapsed_s: float,
    turn_id: str,
) -> Usual | None:
    """Return when the requested pictures can be expected; None where nothing is known, or the wait is too short to
    mention.

    Of several models the slowest counts, because they paint side by side. Pictures of the turn `turn_id` do not count:
    the first of several may come much sooner than the others.
    """
    labels = asked.model_label.split(" + ")
    own = [await _own_s(gallery, owner, label, asked.width * asked.height, turn_id) for label in labels]
    known = [seconds for seconds in own if seconds is not None]
    if len(known) == len(labels):
        usual = Usual(elapsed_s + max(known), is_own=True)
        return usual if usual.seconds >= LEAST_S else None
    painters = (one for one in catalogue.entries if one.provider == provider and one.aspect_ratios)
    typical_s = {one.label: one.typical_seconds for one in painters}
    published = max(typical_s.get(label, 0.0) for label in labels)
    return Usual(published, is_own=False, begun_s=elapsed_s) if published >= LEAST_S else None


async def _own_s(gallery: Gallery, owner: str, label: str, pixels: int, turn_id: str) -> float | None:
    """Return the median of how long the owner's newest pictures with about that many pixels took."""
    receipts: Sequence[Receipt] = ()
    # Without the time nothing is said about it; the picture comes all the same.
    with suppress(AivistaError):
        page = await gallery.page(owner, GalleryQuery(model=label, limit=_LOOKED_AT))
        earlier = [one.picture for one in page.items if one.picture.turn_id != turn_id]
        receipts = [one.receipt for one in earlier if one.receipt is not None]
    fitting = [one.seconds for one in receipts if one.seconds > 0 and _is_alike(one.width * one.height, pixels)]
    return median(fitting[:_MOST_COUNTED]) if fitting else None


def _is_alike(pixels: int, others: int) -> bool:
    return min(pixels, others) > 0 and abs(log(pixels / others)) < _SAME_SIZE


# A turn that did not end well, or in which the agent asks back, and the ways to continue


def next_step(words: Words, code: ErrorCode) -> Markup:
    """Return a link to where the user can act, with its address as its text; empty where there is no such place."""
    return place_link(words, _PLACES[code]) if code in _PLACES else Markup()


def place_link(words: Words, place: str) -> Markup:
    """Return a link to an address that is written without its scheme."""
    return render("thread/place.html", words, place=place)


def failure(view: View, error: ErrorInfo, turn_id: str, rewordings: Sequence[str] = ()) -> Markup:
    """Return the card of a failed turn: who refused, who must act, why, whether a retry can help, and the ways to
    continue.

    `rewordings` are other prompts; a click puts one into the composer. Without `turn_id` nothing was stored: the
    message is back in the composer and there is nothing to retry.
    """
    words, is_unknown, is_key = view.words, error.code is ErrorCode.CALL_UNKNOWN, error.actor is Actor.KEY
    # Where an answer never came, nobody failed: the user decides whether to ask again.
    actor = error.code.value if is_unknown else error.actor.value
    refused_by = words(f"failure.refused_{error.refused}", **error.sentence_parameters) if error.refused else ""
    is_charge_told = error.actor in _OF_A_CALL or error.charged is not Charge.NO
    again = ""
    if turn_id and not is_unknown:
        # Whether sending the same message again can help.
        again = "failure.again_refused" if error.refused else "failure.again_same"
        again = "failure.again_helps" if error.can_retry else again
    return view.render(
        "thread/failure.html",
        error=error,
        turn_id=turn_id,
        rewordings=rewordings,
        who=words(f"failure.who_{actor}"),
        head_icon=_HEAD_ICONS.get(error.actor, "circle-alert"),
        title=words(f"failure.title_refused_{error.refused}" if error.refused else f"failure.title_{actor}"),
        refused=refused_by,
        why=_why(words, error),
        place=next_step(words, error.code),
        again=again,
        charged=words(f"failure.charged_{error.charged.value}") if is_charge_told else "",
        is_calm=is_unknown or error.actor in (Actor.YOU, Actor.KEY),
        is_key=is_key,
        download=_picture_to_keep(view, error),
        # The most likely way to continue comes first, and filled.
        retry_style="solid" if error.can_retry and not rewordings and not is_key else "line",
    )


def question_sentence(words: Words, question: Question, subject: str) -> str:
    """Return the question as a sentence."""
    match question:
        case "unsure" | "which_part" if subject:
            return words(f"question.{question}_of", subject=subject)
        case _:
            return words(f"question.{question}")


def target_sentence(words: Words, change: TargetChanged) -> str:
    """Return which picture the next prompt changes, after the user went back or forward."""
    if change.missing:
        return words("target.missing", name=change.missing, handle=change.handle or "–")
    if not change.handle:
        return words("target.none")
    if not change.has_moved:
        return words(f"target.{change.move}_nothing", handle=change.handle)
    return words(f"target.{change.move}", handle=change.handle)


def asked(view: View, question: Question, subject: str, newest: str) -> Markup:
    """Return the question with ways to answer it: examples that fill the composer, or buttons.

    `newest` is the handle of the conversation's newest picture, empty without one.
    """
    picture = subject if newest and subject.startswith("#") else newest
    sentence = question_sentence(view.words, question, subject)
    return view.render(
        "thread/question.html", question=question, sentence=sentence, picture=picture, examples=_EXAMPLES
    )


def _why(words: Words, error: ErrorInfo) -> str:
    """Return the sentence of a failure, with the provider's reason in words beside its code."""
    reason = str(error.parameters.get("reason", ""))
    if reason not in _REASONS:
        return words.error(error)
    with_code = words("reason.with_code", reason=words(_REASONS[reason]), code=reason)
    return words.error(error.model_copy(update={"parameters": {**error.parameters, "reason": with_code}}))


def _picture_to_keep(view: View, error: ErrorInfo) -> str:
    """Return the URL of a paid picture that does not fit on the full disk."""
    digest, handle = error.parameters.get("digest"), error.parameters.get("handle")
    if error.code is ErrorCode.PICTURE_NOT_RECORDED and digest:
        return view.unrecorded_url(str(digest))
    if error.code is ErrorCode.PICTURE_NOT_SAVED and handle:
        return view.url(str(handle), is_download=True, kind="clean")
    return ""
