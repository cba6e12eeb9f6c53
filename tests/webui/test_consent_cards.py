"""Calls that wait for the person: their exact arguments in sight, two buttons while they wait, a folded line after."""

from __future__ import annotations

import json

import pytest

from agent.components import ConsentCard
from agent.conversation import TurnState
from agent.events import ConsentAsked, TurnEvent, TurnPaused, TurnStarted
from agent.plans import Ask
from tests.support.page_values import VIEW, turn
from webui.cards import View
from webui.consent_cards import closed_consent, open_consent
from webui.live import LiveTurn, advance_all, resumed
from webui.render import Block, Card, render_live, render_turn
from webui.words import LANGUAGES, load_words

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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reason", ["foreign_address", "overwrites", "deletes", "may_change_something", "was_changed"])
def test_every_reason_is_a_sentence_in_every_language(reason: str, language: str) -> None:
    view = View(load_words(language), "c1")
    assert f"consent.{reason}" not in open_consent(view, [ASK.model_copy(update={"reason": reason})], "t1")


def test_arguments_that_were_cut_short_are_shown_as_they_are() -> None:
    cut = ASK.model_copy(update={"arguments": '{"text": "aaa'})
    assert "{&quot;text&quot;: &quot;aaa" in open_consent(VIEW, [cut], "t1")


def test_it_can_be_decided_about_once_it_is_on_record() -> None:
    asked: list[TurnEvent] = [TurnStarted(turn_id="t1"), ConsentAsked(asks=(ASK,))]
    at_work = html(render_live(VIEW, advance_all(LiveTurn("read it"), asked), 1.0))
    resting = html(render_live(VIEW, advance_all(LiveTurn("read it"), [*asked, TurnPaused(turn_id="t1")]), 1.0))
    assert at_work.count(" disabled>") >= 2
    assert 'data-act="allow_calls" data-arg="t1">' in resting


@pytest.mark.parametrize(("state", "said"), [("allowed", "You allowed it"), ("refused", "Not done")])
def test_what_was_decided_is_folded_and_can_be_read(state: str, said: str) -> None:
    shown = closed_consent(VIEW, ConsentCard.model_validate({"asks": (ASK,), "state": state}))
    assert shown.startswith("<details")
    assert said in shown
    assert "https://evil.example/" in shown
    assert "data-act" not in shown


def test_one_that_waits_has_its_buttons_after_a_reload_and_shows_the_decision_when_the_turn_goes_on() -> None:
    waiting = turn(ConsentCard(asks=(ASK,))).model_copy(update={"state": TurnState.WAITING})
    assert "allow_calls" in html(render_turn(VIEW, waiting, {}))
    going_on = resumed(waiting, ConsentCard(asks=(ASK,), state="allowed"))
    assert "You allowed it" in html(render_live(VIEW, going_on, 1.0))
