"""Prices and caps on the page: before Send, on a plan, at the rail's foot, in the dialog; in both languages."""

from __future__ import annotations

import re
from html import unescape

import pytest

from agent.plans import CapPassed
from agent.providers.catalogue import load_catalogue
from agent.settings import OpenAISettings
from agent.spending import Estimate, EstimatePart, PartKind
from agent.storage.preferences import Preferences
from agent.storage.spend import SpendSums
from tests.support.cases import each_case
from tests.support.page_values import PLAN, VIEW, WORDS
from webui.cards import View
from webui.panels.composer import Chosen
from webui.panels.settings import read_caps
from webui.plan_cards import closed_plan, open_plan
from webui.spend import (
    Beside,
    cap_sentence,
    chosen_estimate,
    dollars,
    estimate_html,
    read_beside,
    shown_maximum,
    sign_of,
    spend_html,
)
from webui.tabs import Tab
from webui.words import LANGUAGES, load_words

CATALOGUE = load_catalogue()
DAY_CAP = CapPassed(cap="day", cap_usd=1.0, spent_usd=0.98, price_usd=0.14)
HERE_CAP = CapPassed(cap="conversation", cap_usd=0.5, spent_usd=0.5, price_usd=0.003)


def guess(low: float, high: float, most: float) -> Estimate:
    part = EstimatePart(
        kind=PartKind.PICTURES, low_usd=low, high_usd=high, most_usd=most, label="Pro", count=2, resolution="2K"
    )
    return Estimate(parts=(part,))


def said(shown: str) -> str:
    """Return what can be read on the page, without tags and titles."""
    return unescape(re.sub("<[^>]*>", "", shown)).strip()


@each_case(
    ("amount", "shown"),
    [(0, "$0.00"), (0.00001, "$0.00"), (0.0027, "$0.0027"), (0.005, "$0.01"), (0.136, "$0.14"), (1234.5, "$1,234.50")],
)
def test_an_amount_has_whole_cents_and_more_digits_below_one(amount: float, shown: str) -> None:
    assert dollars(amount) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.136, 0.138, "≈ $0.14 · at most $0.30"),
        (0.04, 0.14, "$0.04–0.14 · at most $0.30"),
        (0.0, 0.003, "$0.00–0.0030 · at most $0.30"),
    ],
)
def test_the_price_before_send_is_about_one_or_a_range_and_has_a_maximum(low: float, high: float, shown: str) -> None:
    assert said(estimate_html(WORDS, guess(low, high, 0.2912))) == shown


def test_the_maximum_goes_with_the_message_for_the_chips_it_was_told_for() -> None:
    chosen, tab = Chosen(image_model="flash"), Tab()
    assert shown_maximum(tab, chosen) is None
    tab.told_maximum = (sign_of(chosen), 0.056)
    assert shown_maximum(tab, chosen) == 0.056
    assert shown_maximum(tab, Chosen(image_model="pro")) is None


def test_words_change_the_maximum_that_name_a_number_or_lettering_and_so_does_what_was_said_before() -> None:
    plain, four, lettering = (
        chosen_estimate(CATALOGUE, "gemini", Chosen(), Beside(text=text)).most_usd
        for text in ("a fox", "four foxes", "a poster that says “SLOW”")
    )
    assert plain * 3 < four
    assert plain * 1.5 < lettering


@pytest.mark.parametrize("language", LANGUAGES)
def test_whoever_points_at_the_price_reads_its_parts(language: str) -> None:
    words = load_words(language)
    parts = tuple(
        EstimatePart(
            kind=kind,
            low_usd=0.0 if kind is PartKind.SEARCH else 0.01,
            high_usd=0.01,
            most_usd=0.02,
            count=1,
            label="Pro",
        )
        for kind in PartKind
    )
    shown = estimate_html(words, Estimate(parts=parts))
    title = unescape(re.findall(r'title="([^"]*)"', shown)[0]).splitlines()
    assert title[0] == words("spend.title")
    assert len(title) == 1 + len(PartKind) + 2
    assert any("$0.00–0.01" in line for line in title)
    assert title[-2:] == [words("spend.again"), words("spend.most", amount="$0.10")]
    assert 'aria-label="' in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sketch_is_free_and_an_unknown_price_is_explained(language: str) -> None:
    words = load_words(language)
    assert said(estimate_html(words, chosen_estimate(CATALOGUE, "sketch", Chosen()))) == words("composer.free")
    own = OpenAISettings(base_url="http://127.0.0.1:1/v1", text_model='<b>"gemma"</b>')
    shown = estimate_html(words, chosen_estimate(load_catalogue(openai=own), "openai", Chosen()))
    assert said(shown) == "—"
    assert "AIVISTA_CATALOGUE" in shown
    assert "<b>" not in shown


def test_the_price_follows_the_chips() -> None:
    flash = chosen_estimate(CATALOGUE, "gemini", Chosen(image_model="flash", review="off"))
    four = chosen_estimate(CATALOGUE, "gemini", Chosen(image_model="flash", review="off", number_of_images="4"))
    dearest = chosen_estimate(CATALOGUE, "gemini", Chosen(image_model="pro", resolution="4K", review="always"))
    assert flash.high_usd < four.high_usd < dearest.high_usd
    assert re.fullmatch(r"≈ \$0\.04 · at most \$0\.0(6|5\d)", said(estimate_html(WORDS, flash)))
    with pytest.raises(ValueError, match="many"):
        chosen_estimate(CATALOGUE, "gemini", Chosen(number_of_images="many"))


@pytest.mark.parametrize(
    "more", [{"characters": 4000}, {"files": 1}, {"marked": 1}, {"masks": 1}], ids=lambda more: next(iter(more))
)
def test_the_price_follows_what_stands_beside_the_words(more: dict[str, object]) -> None:
    chosen, beside = Chosen(image_model="flash", review="off"), Beside.model_validate(more)
    plain, full = (chosen_estimate(CATALOGUE, "gemini", chosen, one) for one in (Beside(), beside))
    assert plain.high_usd < full.high_usd
    assert chosen_estimate(CATALOGUE, "gemini", chosen) == plain


def test_a_picture_that_is_sent_costs_what_one_that_is_marked_does() -> None:
    sent, marked = (
        chosen_estimate(CATALOGUE, "gemini", Chosen(), Beside(files=files, marked=2 - files)) for files in (2, 0)
    )
    assert sent == marked


def test_a_price_says_for_what_it_was_told_and_one_that_is_free_does_not() -> None:
    beside = '{"characters":0,"files":1,"marked":0,"masks":0}'
    shown = estimate_html(WORDS, chosen_estimate(CATALOGUE, "gemini", Chosen(), read_beside(beside)), beside)
    assert unescape(shown).count(f'data-beside="{beside}"') == 1
    assert 'data-beside=""' in estimate_html(WORDS, chosen_estimate(CATALOGUE, "gemini", Chosen()))
    assert "data-beside" not in estimate_html(WORDS, chosen_estimate(CATALOGUE, "sketch", Chosen()), beside)
    hostile = estimate_html(WORDS, chosen_estimate(CATALOGUE, "gemini", Chosen()), '"><script>')
    assert "<script>" not in hostile


@each_case("text", [None, "", "{}", "no JSON", "[]", '{"files": -1}', '{"files": 1e9}', '{"more": 1}'])
def test_what_the_page_never_writes_counts_as_nothing(text: str | None) -> None:
    assert read_beside(text) == Beside()


@pytest.mark.parametrize(
    ("language", "cap", "sentence"),
    [
        (
            "en",
            DAY_CAP,
            "This would pass your cap of $1.00 for today by about $0.12: $0.98 is spent, and it costs about $0.14.",
        ),
        (
            "en",
            HERE_CAP,
            "This would pass your cap of $0.50 for this conversation by about $0.0030: $0.50 is spent, and it costs "
            "about $0.0030.",
        ),
        ("zh-CN", DAY_CAP, "这将超出你今天 $1.00 的上限约 $0.12：已花费 $0.98，这次约 $0.14。"),
        ("zh-CN", HERE_CAP, "这将超出你为这个对话设定的 $0.50 上限约 $0.0030：已花费 $0.50，这次约 $0.0030。"),
    ],
)
def test_a_plan_says_which_cap_it_would_pass_and_by_how_much(language: str, cap: CapPassed, sentence: str) -> None:
    words = load_words(language)
    plans = [PLAN.model_copy(update={"caps": (cap,)}), PLAN.model_copy(update={"call": 1, "caps": (cap,)})]
    shown = open_plan(View(words, "c1", VIEW.offers), plans, "t1")
    assert unescape(shown).count(sentence) == 1
    assert cap_sentence(words, cap) == sentence
    assert shown.index("</fieldset>") < shown.index("edit-line") < shown.index("<footer>")
    assert sentence not in unescape(closed_plan(View(words, "c1"), plans, was_run=True))


def test_a_plan_within_its_caps_says_nothing_of_them() -> None:
    assert "edit-line" not in open_plan(VIEW, [PLAN], "t1")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rail_shows_the_month_and_with_a_cap_the_day(language: str) -> None:
    words, sums = load_words(language), SpendSums(month_usd=4.82, day_usd=0.5)
    plain = spend_html(words, sums, Preferences(cap_conversation_usd=1.0))
    assert said(plain) == f"{words('spend.month')}$4.82"
    shown = spend_html(words, sums, Preferences(cap_day_usd=2.0))
    assert said(shown) == f"{words('spend.month')}$4.82{words('spend.today')}$0.50/ $2.00"
    assert 'value="0.250"' in shown
    assert words("spend.of_cap", spent="$0.50", cap="$2.00") in unescape(shown)


@pytest.mark.parametrize(
    ("day_usd", "cap", "value", "is_full"),
    [(0.0, 2.0, "0.000", False), (2.0, 2.0, "1.000", True), (9.0, 2.0, "1.000", True), (0.0, 0.0, "1.000", True)],
)
def test_the_bar_is_never_longer_than_its_cap(day_usd: float, cap: float, value: str, is_full: bool) -> None:
    shown = spend_html(WORDS, SpendSums(day_usd=day_usd), Preferences(cap_day_usd=cap))
    assert f'value="{value}"' in shown
    assert ('class="spend full"' in shown) is is_full


@each_case(
    ("day", "conversation", "expected"),
    [
        (None, None, Preferences()),
        (2.5, None, Preferences(cap_day_usd=2.5)),
        (0, 1, Preferences(cap_day_usd=0.0, cap_conversation_usd=1.0)),
        (-1, None, None),
        (float("nan"), None, None),
        (None, float("inf"), None),
        ("2", None, None),
        (True, None, None),
        ([], None, None),
    ],
)
def test_caps_are_read_strictly(day: object, conversation: object, expected: Preferences | None) -> None:
    assert read_caps(day, conversation) == expected
