"""The searcher: a text call with Google's search as its only tool, whose answer is JSON with facts and sources."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agent.errors import ErrorCode, ErrorInfo
from agent.events import SearchNote, Step
from agent.messages import PromptMessage, Role, Source, TextPart, ToolCallPart, ToolResultPart, Value
from agent.pictures import Fact
from agent.prompts import prompt
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.tools.trust import framed
from agent.workflow.deps import Deps, say, show, today
from agent.workflow.model_answers import Answer, json_in
from agent.workflow.model_calls import ask_text
from agent.workflow.state import SEARCH, Next, TurnProgress, serving_node, settle

# Limits for the findings of a search, so that later requests do not grow without bound.
_MOST_FACTS = 40
_FACT_CHARACTERS, _SOURCE_CHARACTERS, _DRAFT_CHARACTERS = 1_000, 2_000, 8_000

WEB_SEARCH = ToolDeclaration(
    name=SEARCH,
    description=(
        "Search the web once for facts that the answer or the picture depends on. "
        "Ask for everything you need in one call; you get facts with their sources."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to find out, in full sentences, with names and dates."}
        },
        "required": ["query"],
    },
)

_FACT_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "source": {"type": "string"}},
    "required": ["item", "source"],
}
_FINDINGS_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": _FACT_SCHEMA}, "prompt_draft": {"type": "string"}},
    "required": ["facts", "prompt_draft"],
}


class Findings(Value):
    """The findings of a search."""

    facts: tuple[Fact, ...] = ()
    prompt_draft: str = ""


async def searcher(state: TurnProgress, deps: Deps) -> Next:
    """Search once for all search calls of the step; a later search in the turn returns the same facts."""
    calls = {i: call for i, call in enumerate(state["calls"]) if serving_node(call) == "searcher"}
    query = "\n".join(str(call.arguments.get("query") or deps.turn.text) for call in calls.values())
    if not deps.may_search:
        sentence = "The person has not permitted a search. Go on with what you know."
        return _answered(state, calls, {"error": sentence}, {})
    if state["has_searched"]:
        known: dict[str, JsonValue] = {"note": "Already searched.", "facts": [f.model_dump() for f in state["facts"]]}
        return _answered(state, calls, framed(known, SEARCH), {})
    say(deps, Step.SEARCHING, query=query[:200])
    name = f"searcher:{state['planner_steps']}"
    ask = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=f"{query}\n\nThe wish it is for: {deps.turn.text}"),))
    system = prompt("searcher").replace("{today}", today().isoformat())
    answer = await ask_text(deps, name, [ask], (), ChatOptions(system=system, google_search=True))
    findings = None if answer.error else await _read(deps, name, answer)
    if findings is None:
        for one in (name, f"{name}.repair"):
            deps.ledger.discard_answer(one, ErrorCode.SEARCH_UNREADABLE)
        error = answer.error or ErrorInfo(code=ErrorCode.SEARCH_UNREADABLE)
        return Next("failure", {"error": error, "failed_node": "searcher"})
    sources = answer.grounding.sources
    facts = [_with_source(fact, sources) for fact in findings.facts]
    note = show(deps, SearchNote(sources=sources, suggestions_html=answer.grounding.suggestions_html))
    say(deps, Step.SEARCHED, facts=len(facts), sources=len(sources))
    update: TurnProgress = {"components": [note], "facts": facts, "sources": list(sources), "has_searched": True}
    found: dict[str, JsonValue] = {
        "facts": [fact.model_dump() for fact in facts],
        "sources": [{"n": n, "title": one.title, "url": one.url} for n, one in enumerate(sources, 1)],
        "prompt_draft": findings.prompt_draft,
    }
    return _answered(state, calls, framed(found, SEARCH), update)


def _answered(
    state: TurnProgress, calls: dict[int, ToolCallPart], content: dict[str, JsonValue], update: TurnProgress
) -> Next:
    results = {
        i: ToolResultPart(name=c.name, call_id=c.call_id, content=content, is_error="error" in content)
        for i, c in calls.items()
    }
    target, settled = settle(state, results)
    return Next(target, {**update, **settled})


async def _read(deps: Deps, name: str, answer: Answer) -> Findings | None:
    """Return the findings of the answer, after at most one repair call."""
    findings = parse_findings(answer.text)
    if findings is not None or not answer.text:
        return findings
    ask = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=answer.text),))
    options = ChatOptions(system=prompt("search_repair"), response_schema=_FINDINGS_SCHEMA)
    mended = await ask_text(deps, f"{name}.repair", [ask], (), options)
    return parse_findings(mended.text)


def parse_findings(text: str) -> Findings | None:
    """Return the findings in a model's answer, ignoring text around the JSON, or None."""
    raw = json_in(text) or {}
    try:
        facts = tuple(
            Fact(item=row["item"][:_FACT_CHARACTERS], source=(row.get("source") or "")[:_SOURCE_CHARACTERS])
            for row in raw["facts"][:_MOST_FACTS]
        )
        return Findings(facts=facts, prompt_draft=(raw.get("prompt_draft") or "")[:_DRAFT_CHARACTERS])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _with_source(fact: Fact, sources: Sequence[Source]) -> Fact:
    """Return the fact with a URL as its source if the search's sources have a matching one."""
    named = fact.source.strip().lower()
    if named.startswith(("http://", "https://")):
        return fact
    for source in sources:
        title = source.title.lower()
        if named and (title in named or named in title):
            return fact.model_copy(update={"source": source.url})
    if not named and sources:
        return fact.model_copy(update={"source": sources[0].url})
    return fact
