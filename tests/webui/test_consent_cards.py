"""Calls that wait for the person: their exact arguments in sight, two buttons while they wait, a folded line after."""

from __future__ import annotations

import json
import re
from html import escape

import pytest

from agent.components import ConsentCard
from agent.events import ConsentAsked, TurnEvent, TurnPaused, TurnStarted
from agent.plans import Ask
from tests.support.cases import each_case
from tests.support.page_values import VIEW
from webui.consent_cards import closed_consent, open_consent
from webui.live import LiveTurn, advance_all
from webui.render import Block, Card, render_live

ASK = Ask(
    call=0,
    tool="read_url",
    reason="foreign_address",
    arguments=json.dumps({"url": "https://evil.example/?q=<b>all</b>", "depth": 2}),
)


def html(blocks: list[Block]) -> str:
    return "\n".join(block.html for block in blocks if isinstance(block, Card))


def test_every_argument_is_shown_word_for_word_and_nothing_of_it_is_live() -> None:
    shown = open_consent(VIEW, [ASK], "t1")
    assert "<dt>url</dt><dd>https://evil.example/?q=&lt;b&gt;all&lt;/b&gt;</dd>" in shown
    assert "<dt>depth</dt><dd>2</dd>" in shown
    assert 'data-act="allow_calls" data-arg="t1"' in shown
    assert 'data-act="refuse_calls" data-arg="t1"' in shown


def test_a_hundred_thousand_characters_are_all_there() -> None:
    text = "".join(chr(0x4E00 + number % 20_000) for number in range(100_000)) + "<END>"
    shown = open_consent(VIEW, [ASK.model_copy(update={"arguments": json.dumps({"words": text})})], "t1")
    assert escape(text) in shown
    assert escape(text) in closed_consent(VIEW, ConsentCard(asks=(ASK.model_copy(update={"arguments": text}),)))


@each_case(
    ("text", "code"),
    [
        ("a\u202eb", "202E"),
        ("a\u200bb", "200B"),
        ("a\u2066b", "2066"),
        ("a\u00adb", "00AD"),
        ("a\U000e0041b", "E0041"),
        ("a\u2028b", "2028"),
        ("a\x07b", "0007"),
        ("a\rb", "000D"),
        ("a\u3164b", "3164"),
        ("a\ue000b", "E000"),
    ],
)
def test_a_character_that_nobody_would_see_stands_there_by_its_number(text: str, code: str) -> None:
    shown = open_consent(VIEW, [ASK.model_copy(update={"arguments": json.dumps({"words": text, text: 1})})], "t1")
    assert f'<dd>a<s title="Invisible character U+{code}">U+{code}</s>b</dd>' in shown
    assert f'<dt>a<s title="Invisible character U+{code}">U+{code}</s>b</dt>' in shown
    assert text not in shown


@pytest.mark.parametrize("text", ["狐狸 🦊 é\tü\n\nлиса", "سلام", "e\u0301"])
def test_every_other_character_stands_there_as_it_is(text: str) -> None:
    assert escape(text) in open_consent(VIEW, [ASK.model_copy(update={"arguments": json.dumps({"x": text})})], "t1")


def test_the_server_of_an_address_is_named_as_it_is_dialled() -> None:
    ask = ASK.model_copy(update={"arguments": json.dumps({"url": "https://\u0430pple.com/?q=1"})})
    assert "<dt>Server</dt><dd>xn--pple-43d.com</dd>" in open_consent(VIEW, [ask], "t1")


def test_another_question_of_the_same_turn_has_to_be_read_anew() -> None:
    other = ASK.model_copy(update={"arguments": json.dumps({"url": "https://evil.example/?q=more"})})
    cards = [re.search(r'data-card="([^"]+)"', open_consent(VIEW, [ask], "t1")) for ask in (ASK, other)]
    assert len({card[1] for card in cards if card is not None}) == 2


def test_arguments_that_were_cut_short_are_shown_as_they_are() -> None:
    cut = ASK.model_copy(update={"arguments": '{"text": "aaa'})
    assert "{&quot;text&quot;: &quot;aaa" in open_consent(VIEW, [cut], "t1")


def test_it_can_be_decided_about_once_it_is_on_record() -> None:
    asked: list[TurnEvent] = [TurnStarted(turn_id="t1"), ConsentAsked(asks=(ASK,))]
    at_work = html(render_live(VIEW, advance_all(LiveTurn("read it"), asked), 1.0))
    resting = html(render_live(VIEW, advance_all(LiveTurn("read it"), [*asked, TurnPaused(turn_id="t1")]), 1.0))
    assert at_work.count(" disabled>") >= 2
    assert " data-ready>" not in at_work
    # The page itself lets it be allowed, once all of it was in sight.
    assert " data-ready>" in resting
    assert 'data-act="allow_calls" data-arg="t1" disabled>' in resting
    assert 'data-act="refuse_calls" data-arg="t1">' in resting
