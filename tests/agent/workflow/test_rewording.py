"""Other words for a refused wish: from the person's own, lawful, in their language, and never in the way of the end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.components import FailureNote
from agent.errors import ErrorCode, ErrorInfo, NetworkFailure
from agent.events import Step, ThoughtLog, TurnFailed
from agent.plans import Decision
from agent.settings import Settings
from agent.studio import Studio
from tests.adapters.language import read_rewordings, reworded_by_rule
from tests.adapters.scripted import Asked, Line, calls, says
from tests.support.cases import each_case
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import Scene, generate, of_type, only, run
from tests.support.turns import newest, retry, started
from tests.wire_server import Blocked, Finish, GeminiServer, Text, TextOnly

BLOCKED = ErrorCode.PICTURE_BLOCKED
REFUSED = Line(error=ErrorInfo(code=BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
OFFERS = ("A fox as a paper cut-out", "The snow alone, with a fox's tracks")
REWORDED = says(json.dumps({"rewordings": OFFERS}))


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


@pytest.mark.parametrize("wish", ["a bloody mary on a bar", "a glue gun on a desk", "画一个投标枪的运动员"])
def test_a_harmless_thing_keeps_its_name(wish: str) -> None:
    name = {"a bloody mary on a bar": "bloody mary", "a glue gun on a desk": "glue gun"}.get(wish, "标枪")
    assert all(name in offer for offer in reworded_by_rule(wish, BLOCKED))


@pytest.mark.parametrize("wish", ["a knight who killed a dragon", "he is stabbed by a spy", "画一个被杀死的恶龙"])
def test_where_a_sentence_would_break_nothing_is_offered(wish: str) -> None:
    assert reworded_by_rule(wish, BLOCKED) == ()


@each_case("code", [BLOCKED, ErrorCode.PICTURE_RECITATION, ErrorCode.TEXT_INSTEAD_OF_PICTURE])
@each_case(("wish", "words"), [("a red fox in the snow", "red fox"), ("雪地里的红狐狸", "红狐狸")])
def test_every_offer_is_about_the_wish_and_in_its_language(code: ErrorCode, wish: str, words: str) -> None:
    offers = reworded_by_rule(wish, code)
    assert 2 <= len(offers) <= 3
    assert all(words in offer for offer in offers)
    assert all(offer.isascii() == wish.isascii() for offer in offers)


def test_another_refusal_gets_other_offers() -> None:
    assert set(reworded_by_rule("a fox", BLOCKED)).isdisjoint(reworded_by_rule("a fox", ErrorCode.PICTURE_RECITATION))


@each_case("wish", ["", "  ", "gun", "鲜血", "a nude girl", "sexy schoolgirl in a park", "性感的少女"])
def test_where_nothing_lawful_is_left_nothing_is_offered(wish: str) -> None:
    assert reworded_by_rule(wish, BLOCKED) == ()


# By the text model.


@each_case(
    ("text", "offers"),
    [
        (json.dumps({"rewordings": OFFERS}), OFFERS),
        (
            "Here:\n```json\n" + json.dumps({"rewordings": [*OFFERS, *OFFERS, "third one", "fourth one"]}) + "\n```",
            None,
        ),
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
    found = read_rewordings(text, "a fox")
    if text.startswith("Here"):
        assert found == (*OFFERS, "third one")
    else:
        assert found == offers


async def test_a_refused_picture_is_followed_by_other_words_that_are_paid_and_kept(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), REWORDED], pictures=[REFUSED, REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
        kept = await newest(studio, conversation.id)
        again = await retry(studio, conversation.id, started(events))
        after = await newest(studio, conversation.id)
    failed = only(events, TurnFailed)
    assert failed.rewordings == OFFERS
    assert [one.rewordings for one in kept.components if isinstance(one, FailureNote)] == [OFFERS]
    assert [one.step for one in of_type(events, ThoughtLog)][-1] is Step.REWORDING
    # What was found once is not paid for again.
    assert only(again, TurnFailed).rewordings == OFFERS
    assert [one.request is not None for one in scene.provider.asked] == [False, True, False, True]
    assert after.price_usd > kept.price_usd > 0
    [question] = [one for one in scene.provider.asked if one.options.system.startswith("An image model's policy")]
    assert question.tools == ()
    assert "a red fox" in question.messages[0].text
    assert "IMAGE_SAFETY" in question.messages[0].text


@pytest.mark.parametrize(
    "line", [Line(raises=NetworkFailure(ErrorCode.CONNECTION_FAILED)), says("No."), says('{"rewordings": ["a fox"]}')]
)
async def test_where_the_model_gives_none_the_rules_do(settings: Settings, line: Line) -> None:
    scene = Scene(settings, text=[calls(generate()), line], pictures=[REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = only(await run(studio, conversation.id, "a fox"), TurnFailed)
    assert failed.error.code is BLOCKED
    assert failed.rewordings == reworded_by_rule("a fox", BLOCKED)


async def test_a_fault_of_ours_on_the_way_does_not_hide_the_refusal(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    def text(asked: Asked) -> Line:
        if asked.options.response_schema is None:
            return calls(generate())
        raise RuntimeError("nobody foresaw this")

    scene = Scene(settings, text=text, pictures=[REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = only(await run(studio, conversation.id, "a fox"), TurnFailed)
    assert (failed.error.code, len(failed.rewordings)) == (BLOCKED, 3)
    assert "other words could not be asked for" in caplog.text


@pytest.mark.parametrize("limit", [{"cap_conversation_usd": 0.0001}])
async def test_where_no_money_is_left_the_rules_serve(settings: Settings, limit: dict[str, Any]) -> None:
    def text(asked: Asked) -> Line:
        assert asked.options.response_schema is None, "nothing more is asked of the model"
        return calls(generate())

    scene = Scene(settings, text=text, pictures=[REFUSED])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a fox", **limit)
        if not of_type(events, TurnFailed):  # the cap asks first, and the person agrees
            turn = await newest(studio, conversation.id)
            events = [one async for one in studio.decide(conversation.id, turn.id, Decision(run=True))]
    assert only(events, TurnFailed).rewordings == reworded_by_rule("a fox", BLOCKED)


async def test_words_that_the_text_model_refused_itself_are_not_sent_to_it_again(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(Blocked("SAFETY"))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            failed = only(await run(studio, conversation.id, "a soldier holding a gun"), TurnFailed)
        assert len(server.requests) == 1
    assert failed.error.refused == "input"
    assert failed.rewordings == reworded_by_rule("a soldier holding a gun", ErrorCode.PROMPT_BLOCKED)


async def test_on_the_real_wire_the_question_breaks_no_rule(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint(), Text(json.dumps({"rewordings": OFFERS})))
        server.on_image(Finish("IMAGE_SAFETY"))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            failed = only(await run(studio, conversation.id, "a fox"), TurnFailed)
        assert server.violations == []
    assert failed.error.refused == "output"
    assert failed.rewordings == OFFERS


async def test_a_refusal_in_words_gets_other_words_and_a_failure_of_the_network_none(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(TextOnly("I can't draw that."))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            failed = only(await run(studio, conversation.id, "a fox"), TurnFailed)
    assert (failed.error.code, len(failed.rewordings)) == (ErrorCode.TEXT_INSTEAD_OF_PICTURE, 3)
    broken = Line(raises=NetworkFailure(ErrorCode.STREAM_CUT))
    scene = Scene(settings, text=[calls(generate())], pictures=[broken])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = only(await run(studio, conversation.id, "a fox"), TurnFailed)
    assert failed.rewordings == ()
