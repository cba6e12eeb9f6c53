"""Other words for a refused wish: from the person's own, lawful, in their language, and never in the way of the end."""

from __future__ import annotations

import json

from agent import ErrorCode
from tests.adapters.language import read_rewordings, reworded_by_rule
from tests.support.cases import each_case

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
