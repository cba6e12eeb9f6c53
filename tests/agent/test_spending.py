"""Prices before anything is done: held against sums made by hand, and against what the strict server then counts."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from agent import (
    CapPassed,
    Estimate,
    OpenAISettings,
    PartKind,
    SearchPolicy,
    Settings,
    Studio,
    TurnDone,
    TurnSettings,
    picture_price,
    review_price,
)
from agent.spending import Caps, SoFar, estimate, passed, used_up
from tests.adapters.models import Catalogue, ModelRole, Prices, load_catalogue
from tests.support.cases import each_case
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import only, run
from tests.wire_server import GeminiServer, PictureAnswer, Text

DAY = date(2026, 11, 20)
CATALOGUE = load_catalogue()
OWN = OpenAISettings(base_url="http://127.0.0.1:1/v1", text_model="gemma3")


def price_of(guess: Estimate, kind: PartKind) -> tuple[float, float]:
    return next(((one.low_usd, one.high_usd) for one in guess.parts if one.kind is kind), (0.0, 0.0))


def guessed(catalogue: Catalogue = CATALOGUE, provider: str = "gemini", **chosen: object) -> Estimate:
    return estimate(catalogue, provider, TurnSettings.model_validate(chosen), DAY)


# By hand: 300 tokens of prompt, 200 of thoughts, and the picture's own, at the prices of the catalogue.
@each_case(
    ("role", "resolution", "dollars"),
    [
        (ModelRole.IMAGE_FLASH, "1K", (300 * 1.5 + 200 * 7.5 + 1120 * 30) / 1e6),
        (ModelRole.IMAGE_FLASH, "2K", (300 * 1.5 + 200 * 7.5 + 1680 * 30) / 1e6),
        (ModelRole.IMAGE_FLASH, "4K", (300 * 1.5 + 200 * 7.5 + 2520 * 30) / 1e6),
        (ModelRole.IMAGE_FLASH, None, (300 * 1.5 + 200 * 7.5 + 1120 * 30) / 1e6),
        (ModelRole.IMAGE_PRO, "1K", (300 * 2 + 200 * 12 + 1120 * 120) / 1e6),
        (ModelRole.IMAGE_PRO, "2K", (300 * 2 + 200 * 12 + 1120 * 120) / 1e6),
        (ModelRole.IMAGE_PRO, "4K", (300 * 2 + 200 * 12 + 2000 * 120) / 1e6),
    ],
)
def test_a_picture_costs_what_its_size_counts_for(role: ModelRole, resolution: str | None, dollars: float) -> None:
    model = CATALOGUE.model(role, "gemini")
    assert picture_price(model, resolution, DAY) == pytest.approx(dollars)
    shown = picture_price(model, resolution, DAY, shown=2)
    assert shown - dollars == pytest.approx(2 * 1120 * model.prices[0].prompt / 1e6)
    assert picture_price(model, resolution, DAY, is_grounded=True) - dollars == pytest.approx(0.014)


def test_a_sketch_costs_nothing_whatever_is_chosen() -> None:
    guess = guessed(provider="sketch", image_model="pro", review="always", number_of_images=4, text_model="thinking")
    assert (guess.is_free, guess.parts, guess.unpriced) == (True, (), ())


def test_what_is_locked_has_one_price_and_its_parts_add_up() -> None:
    guess = guessed(image_model="pro", resolution="4K", number_of_images=3, review="always")
    picture = (300 * 2 + 200 * 12 + 2000 * 120) / 1e6
    look = (1900 * 0.75 + 350 * 3.75) / 1e6
    words = (1900 * 0.75 + 200 * 3.75) / 1e6
    thoughts = 150 * 3.75 / 1e6
    assert price_of(guess, PartKind.PICTURES) == pytest.approx((3 * picture, 3 * picture))
    assert price_of(guess, PartKind.REVIEW) == pytest.approx((3 * look, 3 * look))
    assert price_of(guess, PartKind.TEXT) == pytest.approx((words, words))
    assert price_of(guess, PartKind.THINKING) == pytest.approx((thoughts, thoughts))
    assert guess.low_usd == guess.high_usd == pytest.approx(3 * picture + 3 * look + words + thoughts)
    [pictures] = [one for one in guess.parts if one.kind is PartKind.PICTURES]
    assert (pictures.label, pictures.count, pictures.resolution) == ("Pro", 3, "4K")


def test_what_is_left_to_the_agent_costs_what_flash_does_since_it_asks_before_the_dearer_model_paints() -> None:
    guess, flash = guessed(), guessed(image_model="flash")
    assert (guess.low_usd, guess.high_usd, guess.most_usd) == (flash.low_usd, flash.high_usd, flash.most_usd)
    painters: dict[str, Any] = {"allow_search": True, "search_policy": SearchPolicy.IMAGE_ONLY}
    assert guessed(**painters).most_usd == guessed(image_model="pro", **painters).most_usd


def test_the_maximum_holds_as_many_pictures_as_the_words_name_and_a_repaint_where_a_review_is_due() -> None:
    def most(text: str, **chosen: object) -> float:
        return estimate(CATALOGUE, "gemini", TurnSettings.model_validate(chosen), DAY, text=text).most_usd

    one = most("a red fox")
    assert 3 < most("four red foxes") / one < 4
    assert most("a red fox", image_model="pro") > 2 * most("a red fox", image_model="pro", review="off")
    assert most("a poster that says “SLOW”") > 1.9 * most("a poster that says “SLOW”", review="off")
    assert most("a red fox", review="on") == one


def test_both_models_cost_what_each_does() -> None:
    flash, pro, both = (guessed(image_model=name, review="off") for name in ("flash", "pro", "both"))
    sums = [price_of(one, PartKind.PICTURES)[1] for one in (flash, pro)]
    assert price_of(both, PartKind.PICTURES)[1] == pytest.approx(sum(sums))


def test_a_lock_that_one_model_alone_obeys_leaves_that_one() -> None:
    guess = guessed(aspect_ratio="1:8", review="off")
    assert guess.low_usd == guess.high_usd == pytest.approx(guessed(image_model="flash", review="off").high_usd)


@pytest.mark.parametrize(
    ("chosen", "low", "high"),
    [
        ({"review": "off", "image_model": "pro"}, 0, 0),
        ({"review": "on", "image_model": "pro"}, 1, 1),
        ({"review": "on", "image_model": "flash"}, 0, 1),
        ({"review": "on", "image_model": "both"}, 2, 2),
        ({"review": "always", "image_model": "flash", "number_of_images": 4}, 4, 4),
    ],
)
def test_a_review_counts_where_it_is_due(chosen: dict[str, Any], low: int, high: int) -> None:
    look = review_price(CATALOGUE.model(ModelRole.FLASH, "gemini"), DAY)
    assert price_of(guessed(**chosen), PartKind.REVIEW) == pytest.approx((low * look, high * look))


@pytest.mark.parametrize(
    ("policy", "agents", "painters"),
    [(SearchPolicy.LLM_ONLY, 1, 0), (SearchPolicy.IMAGE_ONLY, 0, 1), (SearchPolicy.BOTH, 1, 1)],
)
def test_a_search_may_cost_something_where_it_is_permitted(policy: SearchPolicy, agents: int, painters: int) -> None:
    plain = guessed(image_model="pro")
    guess = guessed(image_model="pro", allow_search=True, search_policy=policy)
    low, high = price_of(guess, PartKind.SEARCH)
    assert low == 0
    assert (high > 2 * 0.014) is bool(agents)
    more = price_of(guess, PartKind.PICTURES)[1] - price_of(plain, PartKind.PICTURES)[1]
    assert more == pytest.approx(painters * 0.014)
    assert guess.low_usd == pytest.approx(plain.low_usd)


def test_words_pictures_and_a_mask_make_it_dearer() -> None:
    settings = TurnSettings(image_model="flash", review="off", resolution="4K")
    plain = estimate(CATALOGUE, "gemini", settings, DAY)
    assert estimate(CATALOGUE, "gemini", settings, DAY, characters=4000).low_usd - plain.low_usd == pytest.approx(
        1000 * (0.75 + 1.5) / 1e6
    )
    shown = estimate(CATALOGUE, "gemini", settings, DAY, shown=1)
    assert shown.low_usd - plain.low_usd == pytest.approx(1120 * (0.75 + 1.5) / 1e6)
    masked = estimate(CATALOGUE, "gemini", settings, DAY, masks=1)
    assert masked.low_usd < plain.low_usd, "a part has the size of its frame, not the one chosen for whole pictures"


def test_thinking_costs_more_and_the_prices_are_those_of_the_day() -> None:
    assert guessed(text_model="thinking").low_usd > guessed().low_usd
    settings = TurnSettings(image_model="flash", review="off")
    later = estimate(CATALOGUE, "gemini", settings, date(2027, 1, 1))
    assert price_of(later, PartKind.TEXT)[0] == pytest.approx(2 * price_of(guessed(), PartKind.TEXT)[0])


def test_models_whose_prices_nobody_knows_are_named() -> None:
    everything = load_catalogue(openai=OWN.model_copy(update={"image_model": "flux"}))
    guess = guessed(everything, "openai")
    assert (guess.unpriced, guess.is_free) == (("gemma3", "flux"), False)
    words_alone = guessed(load_catalogue(openai=OWN), "openai")
    assert words_alone.unpriced == ("gemma3",), "sketches are free, and that is known"
    priced = guessed(load_catalogue(openai=OWN.model_copy(update={"text_model": "deepseek-flash"})), "openai")
    assert priced.unpriced == ()
    assert 0 < priced.high_usd < 0.01


def test_a_server_whose_operator_says_it_is_free_is_free() -> None:
    catalogue = load_catalogue(openai=OWN)
    free = tuple(
        one.model_copy(update={"prices": (Prices(since=DAY),)}) if one.provider == "openai" else one
        for one in catalogue.entries
    )
    assert guessed(Catalogue(entries=free), "openai").is_free


# Caps.


@each_case(
    ("cap", "spent", "price", "over"),
    [
        (1.0, 0.5, 0.4, None),
        (1.0, 0.9, 0.1, None),
        (1.0, 0.1 + 0.2, 0.7, None),
        (1.0, 0.9, 0.1001, 0.0001),
        (1.0, 1.5, 0.1, 0.6),
        (0.0, 0.0, 0.0001, 0.0001),
        (0.0, 0.0, 0.0, None),
        (1.0, 2.0, 0.0, None),
        (None, 1e9, 1e9, None),
    ],
)
def test_a_cap_is_passed_by_what_goes_beyond_it(
    cap: float | None, spent: float, price: float, over: float | None
) -> None:
    for caps, so_far in (
        (Caps(day_usd=cap), SoFar(day_usd=spent)),
        (Caps(conversation_usd=cap), SoFar(conversation_usd=spent)),
    ):
        found = passed(caps, so_far, price)
        assert [one.over_usd for one in found] == ([] if over is None else [pytest.approx(over)])


def test_both_caps_are_told_of() -> None:
    found = passed(Caps(conversation_usd=0.1, day_usd=0.2), SoFar(conversation_usd=0.1, day_usd=0.15), 0.1)
    assert [one.cap for one in found] == ["conversation", "day"]
    assert found[1] == CapPassed(cap="day", cap_usd=0.2, spent_usd=0.15, price_usd=0.1)


@pytest.mark.parametrize(
    ("spent", "is_used_up"), [(0.0, False), (0.99, False), (0.1 + 0.2 + 0.7, True), (1.0, True), (2.0, True)]
)
def test_a_cap_is_used_up_when_nothing_of_it_is_left(spent: float, is_used_up: bool) -> None:
    assert (used_up(Caps(day_usd=1.0), SoFar(day_usd=spent)) is not None) is is_used_up
    assert used_up(Caps(), SoFar(day_usd=spent)) is None
    assert used_up(Caps(day_usd=0.0), SoFar()) is not None


# Against what is then counted.


@pytest.mark.parametrize(
    ("resolution", "image_model", "review"),
    [("1K", "flash", "off"), ("2K", "flash", "always"), ("4K", "pro", "always")],
)
async def test_an_estimate_is_near_what_the_strict_server_then_counts(
    settings: Settings, server: GeminiServer, resolution: str, image_model: str, review: str
) -> None:
    wish = "a red fox in the snow, watercolour, soft morning light"
    server.on_text(paint(wish, resolution=resolution))
    server.on_image(PictureAnswer())
    if review == "always":
        server.on_text(Text('{"lettering": "", "checklist": [], "score": 0.9, "feedback": "Good.", "suggestions": []}'))
    chosen: dict[str, Any] = {"image_model": image_model, "resolution": resolution, "review": review}
    async with Studio(on_gemini(settings, server.url)) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, wish, **chosen)
        guess = estimate(
            studio.catalogue, "gemini", TurnSettings.model_validate(chosen), conversation.created_at.date()
        )
    real = only(events, TurnDone).price_usd
    assert server.violations == []
    assert guess.low_usd == guess.high_usd
    assert real / 1.5 < guess.high_usd < real * 1.5
