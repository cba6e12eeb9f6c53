"""The trace's lines and what an opened step holds: figures that add up, trouble in words, nothing unescaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from agent.errors import ErrorCode, ErrorInfo
from agent.messages import TokenUsage
from agent.trace import Retry, StepKind, TraceStep
from tests.support.page_values import VIEW, WORDS, turn
from tests.support.traces import traced
from webui.panels.trace import TracedTurn, dollars, inside_html, took, trace_url, turn_html
from webui.trace_details import details_html

BUSY = ErrorInfo(code=ErrorCode.RATE_LIMITED, parameters={"seconds": 2}, provider_detail="quota <b>per</b> minute")
EVIL = '<img src=x onerror=alert(1)><script>alert(2)</script>"\'&data-act="send"'


def inside(*steps: TraceStep) -> str:
    return inside_html(WORDS, "c1", TracedTurn(turn(), 1, steps))


def opened(step: TraceStep, handles: dict[str, str] | None = None) -> str:
    return details_html(VIEW, step, handles or {})


def figures(html: str) -> list[str]:
    return re.findall(r"<dd>([^<]+)</dd>", html.partition('class="trc-acts"')[0])


class Tags(HTMLParser):
    """Every tag of a piece of HTML with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_figures_are_the_sums_of_the_lines() -> None:
    usage = TokenUsage(prompt_tokens=1000, output_tokens=100)
    html = inside(
        traced(1, kind=StepKind.NODE, name="planner", seconds=9.0),
        traced(2, within=1, usage=usage, price_usd=0.002),
        traced(3, within=1, usage=usage, price_usd=0.0005),
        traced(4, kind=StepKind.TOOL, within=1, name="read_url", price_usd=0.0),
    )
    # From the turn's beginning to the end of the step that ended last.
    assert figures(html) == ["10.0 s", "$0.003", "2,200", "3"]


def test_a_call_stands_below_its_node_and_says_how_it_went() -> None:
    html = inside(
        traced(1, kind=StepKind.NODE, name="planner", led_to="presenter"),
        traced(2, within=1, model_label="Flash", retries=(Retry(error=BUSY, pause_s=2.0),)),
        traced(3, within=1, model_label="Flash", error=BUSY, has_failed=True),
        traced(4, within=1, model_label="Flash", was_cancelled=True),
        traced(5, kind=StepKind.TOOL, within=1, name="read_url", has_failed=True),
        traced(6, within=1, model_label="Flash", source="journal"),
        traced(7, within=1, model_label="Flash", source="cache"),
    )
    lines = re.findall(r'<details class="trc-step (.*?)" data-number="\d">.*?<small>(.*?)</small>', html, re.DOTALL)
    told = [(kind, re.sub(r"<[^>]+>", "", line)) for kind, line in lines]
    assert told == [
        ("node", "next: Result"),
        ("call trouble mended", "1 retry · step 2"),
        ("call trouble", "Google asks us to slow down. Please try again in 2 s. · step 3"),
        ("call trouble", "Stopped · step 4"),
        ("call trouble", "It could not be done"),
        ("call", "Known already, nothing was sent · step 6"),
        ("call", "From the cache, nothing was sent · step 7"),
    ]


def test_a_turn_with_trouble_is_marked_for_the_filter() -> None:
    calm, troubled = traced(), traced(has_failed=True)
    for steps, is_marked in (((calm,), False), ((calm, troubled), True)):
        html = turn_html(WORDS, "c1", TracedTurn(turn(), 1, steps), is_open=False)
        assert html.startswith('<details class="trc-turn trouble"') is is_marked
        assert "data-lazy" in html
        assert "trc-step" not in html


def test_an_opened_step_tells_all_of_it() -> None:
    step = traced(
        model="gemini-flash",
        model_label="Flash",
        asks_for="words",
        attempts=2,
        retries=(Retry(error=BUSY, pause_s=2.0),),
        usage=TokenUsage(prompt_tokens=10, output_tokens=3, thought_tokens=4),
        price_usd=0.01,
        finish_reason="STOP",
        sent={
            "system": "Be kind.",
            "messages": [{"role": "prompt", "parts": [{"type": "text", "text": f"words {n}"}]} for n in range(5)],
            "tools": ["generate_image"],
            "thinking_level": "low",
        },
        came={"parts": [{"type": "text", "text": "Hm, a fox.", "is_thought": True}, {"type": "text", "text": "Yes."}]},
    )
    html = opened(step)
    for told in (
        "gemini-flash",
        "STOP",
        "10 in · 3 out · 4 thinking",
        "$0.010",
        "Waited 2.0 s.",
        "thinking_level: low",
    ):
        assert told in html
    assert "rate_limited" in html
    assert "3 earlier messages" in html
    # Thoughts, the system text and what was said before are folded, the newest messages are not.
    unfolded = re.sub(r'<details class="trc-fold">.*?</details>', "", html, flags=re.DOTALL)
    assert [word for word in ("Be kind.", "Hm, a fox.", "words 2") if word in unfolded] == []
    assert [word for word in ("words 3", "words 4", "Yes.") if word in unfolded] == ["words 3", "words 4", "Yes."]
    assert 'data-arg="aivista/trace/c1/t1/1.json"' in html


def test_a_long_text_shows_its_beginning_and_unfolds() -> None:
    html = opened(traced(came={"parts": [{"type": "text", "text": "x" * 700}]}))
    assert "Show all 700 characters" in html
    assert f"<pre>{'x' * 600}</pre>" in html
    assert f"<pre>{'x' * 700}</pre>" in html


def test_a_tool_a_painter_and_an_embedding_show_what_they_were_given() -> None:
    tool = traced(kind=StepKind.TOOL, name="t", sent={"arguments": {"url": "u"}}, came={"content": {"title": "Füchse"}})
    assert "&quot;url&quot;: &quot;u&quot;" in opened(tool)
    assert "Füchse" in opened(tool)
    sent: Any = {"messages": [{"role": "prompt", "parts": [{"type": "text", "text": "a fox"}]}], "aspect_ratio": "16:9"}
    mask = {"digest": "d" * 64, "mime_type": "image/png", "width": 64, "height": 36}
    painter = opened(traced(asks_for="picture", sent={**sent, "mask": mask}), {"d" * 64: "#4"})
    assert "aspect_ratio: 16:9" in painter
    assert "<h5>Prompt</h5>" in painter
    assert 'data-arg="#4"' in painter
    embedding = opened(traced(sent={"texts": ["noir"]}, came={"vectors": 1, "dimension": 768}))
    assert "1 vectors of 768 numbers" in embedding
    assert "noir" in embedding


def test_what_was_left_out_is_said() -> None:
    assert "contents of this step were not kept" in opened(traced(is_left_out=True, sent={}, came={}))
    assert "2 long texts were shortened." in opened(traced(cuts=2))


def parts_of(evil: str) -> list[Any]:
    return [
        {"type": "text", "text": evil},
        {"type": "text", "text": evil * 20},
        {"type": "text", "text": evil, "is_thought": True},
        {"type": "image", "digest": evil, "mime_type": evil, "width": 1, "height": 1},
        {"type": "tool_call", "name": evil, "arguments": {evil: [evil]}},
        {"type": "tool_result", "name": evil, "content": {evil: evil}, "images": [{"digest": evil, "mime_type": evil}]},
        {"type": "grounding", "queries": [evil], "sources": [{"title": evil, "url": f"https://evil.example/{evil}"}]},
        {"type": evil, evil: evil},
    ]


def test_nothing_that_came_from_elsewhere_becomes_a_tag_an_act_or_an_address() -> None:
    error = ErrorInfo(code=ErrorCode.REQUEST_REJECTED, parameters={"detail": EVIL}, provider_detail=EVIL)
    step = traced(
        model=EVIL,
        model_label=EVIL,
        name=EVIL,
        node=EVIL,
        finish_reason=EVIL,
        led_to=EVIL,
        error=error,
        has_failed=True,
        attempts=2,
        retries=(Retry(error=error, pause_s=1.0),),
        asks_for="words",
        sent={
            "system": EVIL,
            "messages": [{"role": EVIL, "parts": parts_of(EVIL)}],
            "tools": [EVIL],
            "thinking_level": EVIL,
            "arguments": {EVIL: EVIL},
            "texts": [EVIL],
        },
        came={"parts": parts_of(EVIL)},
    )
    said = turn(turn_id=EVIL, text=EVIL)
    line = turn_html(WORDS, "c1", TracedTurn(said, 1, [step]), is_open=True)
    for html in (line, opened(step), opened(step, {EVIL: EVIL})):
        for tag, attributes in Tags(html).found:
            assert tag not in ("script", "iframe", "a") or str(attributes["href"]).startswith("aivista/trace/")
            assert not [name for name in attributes if name.startswith("on")]
            assert not str(attributes.get("src", "media/")).startswith(("http", "//"))
            assert attributes.get("data-act") in (None, "copy_report", "view")


@pytest.mark.parametrize(
    ("price_usd", "shown"),
    [(0.0, "$0"), (0.000123, "$0.00012"), (0.0012, "$0.001"), (0.134, "$0.134"), (2.0, "$2.000")],
)
def test_small_prices_are_told_in_as_many_digits_as_they_need(price_usd: float, shown: str) -> None:
    assert dollars(price_usd) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, "<1 ms"), (0.0004, "<1 ms"), (0.042, "42 ms"), (0.2, "0.2 s")])
def test_times_are_told_as_one_reads_them(seconds: float, shown: str) -> None:
    assert took(WORDS, seconds) == shown


def test_addresses_are_quoted() -> None:
    assert trace_url("a/b", "c d", 3) == "aivista/trace/a%2Fb/c%20d/3.json"
    assert trace_url("c1") == "aivista/trace/c1.json"
