"""What is read from the answers of models that review, search or reword."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agent import PASS_SCORE, AskedItem, AskedKind, ChecklistItem, ErrorCode, Fact, Review
from tests.adapters.language import parse_findings, read_review, read_rewordings, reworded_by_rule
from tests.support.cases import each_case

FOX: dict[str, Any] = {
    "lettering": "",
    "checklist": [
        {"asked": "a red fox", "is_met": "yes", "seen": "a red fox stands in the middle"},
        {"asked": "snow", "is_met": "no", "seen": "the ground is green"},
    ],
    "score": 0.5,
    "feedback": "The snow is missing.",
    "suggestions": ["Cover the ground with snow."],
}


GOOD = json.dumps(FOX)


SAID = ("A red fox in deep snow, please.",)


def asked(*quotes: str, kind: AskedKind = AskedKind.ATTRIBUTE) -> list[AskedItem]:
    return [AskedItem(quote=quote, kind=kind) for quote in quotes]


def found(text: str, *arguments: Any, **more: Any) -> Review:
    review = read_review(text, *arguments, **more)
    assert review is not None
    return review


def read(
    items: Sequence[AskedItem] = (), said: Sequence[str] = SAID, in_chinese: bool = False, **changed: Any
) -> Review:
    """Return what is read from the review of the fox with these changes."""
    return found(json.dumps({**FOX, **changed}), items, said, in_chinese=in_chinese)


def met(review: Review) -> list[tuple[str, bool | None]]:
    return [(item.wish, item.is_met) for item in review.checklist]


@each_case("text", [GOOD, f"```json\n{GOOD}\n```", f"Here it is:\n{GOOD}\nDone.", json.dumps(FOX, indent=2)])
def test_a_review_is_found_with_or_without_what_a_model_puts_around_it(text: str) -> None:
    review = found(text, (), SAID)
    assert review.checklist == (
        ChecklistItem(wish="a red fox", is_met=True, why="a red fox stands in the middle"),
        ChecklistItem(wish="snow", is_met=False, why="the ground is green"),
    )
    assert (review.score, review.feedback) == (0.5, "The snow is missing.")
    assert review.suggestions == ("Cover the ground with snow.",)


@each_case(
    ("written", "score"),
    [
        *((0, 0.0), (0.7, 0.7), (1, 1.0), ("0.8", 0.8), ("0,8", 0.8), ("8/10", 0.8), ("7/10", 0.7), ("4 / 5", 0.8)),
        *((8, 0.8), (10, 1.0), (80, 0.8), ("80", 0.8), ("70%", 0.7), ("85 %", 0.85), ("Score: 9 of 10", 0.9)),
        *((1.05, 1.0), (250, 1.0), (-3, 0.0), ("12/10", 1.0)),
        # Without a score the share of met wishes is one.
        *((None, 0.5), (True, 0.5), ("good", 0.5), ("", 0.5), ([], 0.5), ("8/0", 0.5)),
        *((float("nan"), 0.5), (float("inf"), 0.5)),
    ],
)
def test_a_score_is_read_however_it_is_written(written: object, score: float) -> None:
    review = found(json.dumps({**FOX, "score": written}))
    assert review.score == pytest.approx(score, abs=1e-12)
    assert review.has_passed is (score >= PASS_SCORE)


@each_case(
    "text",
    [
        *("", "A fine picture, 9 of 10.", "{", "{}", "[]", '{"score": "good"}', '{"score": 0.5', '{"score": 0.5,}'),
        '{"score": null, "checklist": [{"wish": "x"}, "y", {"is_met": true}]}',
        "[" * 100_000 + "{" + "[" * 100_000 + "}",
    ],
)
def test_what_is_no_review_is_none(text: str) -> None:
    assert read_review(text) is None


def test_fields_that_are_missing_or_of_another_kind_are_empty_and_an_endless_answer_is_cut() -> None:
    bare = found('{"score": 0.9}')
    assert (bare.checklist, bare.lettering, bare.feedback, bare.suggestions) == ((), "", "", ())
    rows = [{"wish": "light", "is_met": "yes"}, {"wish": "dark", "is_met": "partly", "why": None}, 3]
    changed: dict[str, Any] = {"lettering": ["SLOW", "MORNINGS"], "feedback": 3, "suggestions": "More light."}
    odd = read(said=("light and dark",), checklist=rows, **changed)
    assert (odd.lettering, odd.suggestions) == ("SLOW\nMORNINGS", ("More light.",))
    assert met(odd) == [("light", True), ("dark", False)]
    rows = [{"asked": "w" * 5000, "is_met": "yes", "seen": "y" * 5000}] * 200
    long = read(said=("w" * 300,), checklist=rows, suggestions=["s" * 5000] * 50)
    assert (len(long.checklist), len(long.suggestions)) == (12, 5)
    assert max(len(item.wish) for item in long.checklist) == 300


# What was asked for, and what was looked at.
def test_only_what_the_person_asked_for_is_listed_and_what_nobody_looked_at_is_not_met() -> None:
    fox = {"asked": "a red fox", "is_met": "yes", "seen": "it sits"}
    ratio = {"asked": "aspect ratio 16:9", "is_met": "yes", "seen": "1376 × 768"}
    light = {"asked": "soft golden light", "is_met": "yes", "seen": "warm"}
    assert met(read(checklist=[fox, ratio, light])) == [("a red fox", True)]
    unseen = {"asked": "deep snow", "is_met": "cannot_tell", "seen": "the ground is not in the frame"}
    review = read(asked("a red fox", "deep snow", "please"), checklist=[fox, unseen], score=0.9)
    assert met(review) == [("a red fox", True), ("deep snow", None), ("please", None)]
    assert len(review.looked_at) == 1


def test_an_item_is_found_again_when_the_reviewer_writes_more_than_its_words() -> None:
    rows = [{"asked": "The fox wears a “straw hat”", "is_met": "no", "seen": "no hat"}]
    review = read(asked("straw hat"), ("a fox with a straw hat",), checklist=rows)
    assert (met(review), review.checklist[0].why) == ([("straw hat", False)], "no hat")
    assert review.has_shortcomings


# Lettering.
SLOW = asked("Slow mornings", kind=AskedKind.TEXT)


def test_words_that_read_differently_are_below_the_bar_whatever_the_model_thinks() -> None:
    review = read(SLOW, (), score=0.95, lettering="SLOW MORNIGNS", feedback="Perfect.", checklist=[])
    why = "It reads “SLOW MORNIGNS”"
    assert (review.score, review.has_passed) == (0.6, False)
    assert review.checklist == (ChecklistItem(wish="Slow mornings", kind=AskedKind.TEXT, is_met=False, why=why),)
    assert review.feedback == "The picture does not read “Slow mornings”."
    assert review.suggestions[0] == "The lettering must read exactly “Slow mornings”."
    # What the picture reads counts more than what the model says of it.
    said = [{"asked": "headline “Slow Mornings”", "is_met": "yes", "seen": "it is there"}]
    review = read(SLOW, (), checklist=said, score=1)
    assert [(item.is_met, item.why) for item in review.checklist] == [(False, "No text")]


def test_a_reason_the_model_gave_itself_is_kept() -> None:
    said = [{"asked": "慢下来", "is_met": "no", "seen": "写成了“漫下来”"}]
    changed: dict[str, Any] = {"checklist": said, "score": 0.4, "lettering": "漫下来", "feedback": "标题写错了。"}
    review = found(json.dumps({**FOX, **changed}), asked("慢下来", kind=AskedKind.TEXT), in_chinese=True)
    assert (review.score, review.feedback, review.checklist[0].why) == (0.4, "标题写错了。", "写成了“漫下来”")
    assert review.suggestions[0] == "文字必须逐字写成“慢下来”。"


def test_words_that_read_as_asked_are_met_and_a_model_that_says_nothing_of_them_is_not_held_to_it() -> None:
    for reads in ("SLOW\nMORNINGS\nsince 1987", "slow mornings"):
        review = read(SLOW, (), score=0.9, lettering=reads, checklist=[])
        assert (review.score, review.checklist[0].is_met) == (0.9, True)
    silent = {name: value for name, value in FOX.items() if name != "lettering"} | {"score": 0.9}
    review = found(json.dumps(silent), SLOW)
    assert (review.score, review.checklist[0].is_met) == (0.9, None)


FOUND = '{"facts": [{"item": "It is 330 m high.", "source": "tower.example"}], "prompt_draft": "a tower"}'


@pytest.mark.parametrize("text", [FOUND, f"```json\n{FOUND}\n```", f"Here you are: {FOUND} That is all."])
def test_json_is_found_with_or_without_what_a_model_puts_around_it(text: str) -> None:
    findings = parse_findings(text)
    assert findings is not None
    assert findings.facts == (Fact(item="It is 330 m high.", source="tower.example"),)
    assert findings.prompt_draft == "a tower"


def test_fields_that_nobody_asked_for_are_ignored_and_a_missing_source_is_empty() -> None:
    findings = parse_findings('{"facts": [{"item": "x", "date": "2026"}], "mood": "calm"}')
    assert findings is not None
    assert findings.facts == (Fact(item="x", source=""),)


@each_case(
    "text", ["", "It is 330 m high.", "{", "{}", '{"facts": 3}', '{"facts": [{"source": "s"}]}', '{"facts": ["x"]}']
)
def test_what_is_no_findings_is_none(text: str) -> None:
    assert parse_findings(text) is None


BLOCKED = ErrorCode.PICTURE_BLOCKED


OFFERS = ("A fox as a paper cut-out", "The snow alone, with a fox's tracks")


SIX = json.dumps({"rewordings": [*OFFERS, *OFFERS, "third one", "fourth one"]})


# By rules.
@each_case(
    ("wish", "kept", "gone"),
    [
        ("Draw a man with a bloody knife in a kitchen", "a man with a knife in a kitchen", "bloody"),
        ("a soldier holding a gun in the snow", "a soldier in the snow", "gun"),
        ("a knight killing a dragon, oil painting", "a knight facing a dragon, oil painting", "kill"),
        ("a knight who kills a dragon", "a knight who faces a dragon", "kill"),
        ("A naked woman on a beach", "A woman on a beach", "naked"),
        ("画一个拿着手枪的侦探，雨夜", "画一个侦探，雨夜", "手枪"),
        ("画一只雪地里的红狐狸，水彩风格。", "画一只雪地里的红狐狸，水彩风格", "。，"),
    ],
)
def test_what_is_most_often_refused_is_left_out_and_the_rest_is_kept(wish: str, kept: str, gone: str) -> None:
    offers = reworded_by_rule(wish, BLOCKED)
    assert len(set(offers)) == 3
    assert kept in offers[0]
    assert all(gone not in offer for offer in offers)
    assert all(offer != wish for offer in offers)


@each_case(
    ("wish", "name"),
    [("a bloody mary on a bar", "bloody mary"), ("a glue gun on a desk", "glue gun"), ("画一个投标枪的运动员", "标枪")],
)
def test_a_harmless_thing_keeps_its_name(wish: str, name: str) -> None:
    assert all(name in offer for offer in reworded_by_rule(wish, BLOCKED))


@each_case("code", [BLOCKED, ErrorCode.PICTURE_RECITATION, ErrorCode.TEXT_INSTEAD_OF_PICTURE])
@each_case(("wish", "words"), [("a red fox in the snow", "red fox"), ("雪地里的红狐狸", "红狐狸")])
def test_every_offer_is_about_the_wish_and_in_its_language(code: ErrorCode, wish: str, words: str) -> None:
    offers = reworded_by_rule(wish, code)
    assert 2 <= len(offers) <= 3
    assert all(words in offer for offer in offers)
    assert all(offer.isascii() == wish.isascii() for offer in offers)


def test_another_refusal_gets_other_offers() -> None:
    assert set(reworded_by_rule("a fox", BLOCKED)).isdisjoint(reworded_by_rule("a fox", ErrorCode.PICTURE_RECITATION))


@each_case(
    "wish",
    [
        *("a knight who killed a dragon", "he is stabbed by a spy", "画一个被杀死的恶龙"),
        *("", "  ", "gun", "鲜血", "a nude girl", "sexy schoolgirl in a park", "性感的少女"),
    ],
)
def test_where_nothing_lawful_is_left_or_a_sentence_would_break_nothing_is_offered(wish: str) -> None:
    assert reworded_by_rule(wish, BLOCKED) == ()


# By the text model.
@each_case(
    ("text", "offers"),
    [
        (json.dumps({"rewordings": OFFERS}), OFFERS),
        (f"Here:\n```json\n{SIX}\n```", (*OFFERS, "third one")),
        ('{"rewordings": []}', ()),
        ('{"rewordings": ["A FOX", "  a   fox "]}', None),
        ('{"rewordings": [7, null, "x"]}', None),
        ('{"rewordings": "a fox"}', None),
        ('{"other": []}', None),
        ("I cannot help with that.", None),
        ("[" * 100_000, None),
    ],
)
def test_an_answer_is_read_leniently_and_never_offers_the_same_again(text: str, offers: tuple[str, ...] | None) -> None:
    assert read_rewordings(text, "a fox") == offers
