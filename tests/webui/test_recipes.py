"""What a file says of itself, as the page gets it, shows it and sends it back: somebody's data, never more."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from agent.imaging.provenance import (
    ForeignRecipe,
    ForeignTool,
    Found,
    Recipe,
    RecipeSettings,
    Refusal,
    RefusedRecipe,
    embed,
)
from agent.imaging.provenance.recipe import RecipeSource
from agent.settings import TurnSettings
from tests.page import PageProcess
from tests.support.cases import each_case
from webui.panels.composer import AUTO, Chosen
from webui.panels.recipes import card_html, recipe_html
from webui.recipe_wiring import read_recipe_click
from webui.recipes import MAX_FOUND_CHARACTERS, chosen_as, read_told, told
from webui.words import LANGUAGES, load_words

HOSTILE = '<img src=x onerror="alert(1)"><button data-recipe="restore">'
WORDS = load_words("en")
RECIPE = Recipe(
    words="a red fox",
    prompt="A red fox in snow",
    model="gemini-3-pro-image",
    model_label="Pro",
    asked_aspect_ratio="16:9",
    asked_resolution="2K",
    width=2752,
    height=1536,
    settings=RecipeSettings(image_model="pro", aspect_ratio="16:9", resolution="2K", number_of_images=2),
    created_at=datetime(2026, 11, 20, 12, tzinfo=UTC),
)
FOREIGN = ForeignRecipe(tool=ForeignTool.PARAMETERS, prompt="castle", negative_prompt="blur", raw="castle\nSteps: 20")
NEWER, DAMAGED = RefusedRecipe(reason=Refusal.NEWER, version=2), RefusedRecipe(reason=Refusal.DAMAGED)


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("found", [RECIPE, FOREIGN, NEWER, DAMAGED])
def test_what_was_found_survives_the_way_to_the_page_and_back(found: Found) -> None:
    kept = told(found)
    assert kept is not None
    assert read_told(kept.model_dump_json(exclude_none=True)) == found


@each_case(
    "text", ["", "null", "[]", "{", '{"recipe": {"version": 9}}', '{"recipe": {"evil": 1}}', '{"other": 1}', "x" * 10]
)
def test_what_the_page_made_up_is_nothing(text: str) -> None:
    assert read_told(text) is None


def test_more_than_a_recipe_may_have_is_not_read() -> None:
    assert read_told(" " * (MAX_FOUND_CHARACTERS + 1)) is None
    assert read_recipe_click({"act": "found", "told": " " * (MAX_FOUND_CHARACTERS + 1)}) is None


@pytest.mark.parametrize("data", [None, "x", {"act": 1}, {"act": "keep", "more": 1}, {"act": "keep", "arg": "#" * 65}])
def test_a_click_the_page_never_sends_is_ignored(data: object) -> None:
    assert read_recipe_click(data) is None


def test_the_card_says_in_a_sentence_what_the_picture_is_and_offers_three_ways() -> None:
    shown = card_html(WORDS, RECIPE)
    assert "This picture carries its recipe: “a red fox”, Pro, 16:9, 2K." in shown
    for act in ("restore", "branch", "read", "close"):
        assert f'data-recipe="{act}"' in shown
    assert WORDS("recipe.open_known") in card_html(WORDS, RECIPE, is_known=True)
    assert WORDS("recipe.open_known") not in shown


def test_what_another_program_wrote_can_be_read_and_its_prompt_taken_but_no_settings() -> None:
    shown = card_html(WORDS, FOREIGN)
    assert "castle" in shown
    assert 'data-recipe="take_prompt"' in shown
    assert 'data-recipe="restore"' not in shown
    graph = ForeignRecipe(tool=ForeignTool.COMFYUI, raw='{"nodes": []}')
    assert 'data-recipe="take_prompt"' not in card_html(WORDS, graph)


@pytest.mark.parametrize(("refused", "said"), [(NEWER, "newer Aivista"), (DAMAGED, "damaged")])
def test_a_recipe_that_is_not_read_is_told_in_a_sentence_and_offers_nothing(refused: RefusedRecipe, said: str) -> None:
    shown = card_html(WORDS, refused)
    assert said in shown
    assert shown.count("data-recipe=") == shown.count('data-recipe="close"') == 1
    assert recipe_html(WORDS, refused) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_a_file_says_becomes_markup(language: str) -> None:
    words = load_words(language)
    texts = ("words", "prompt", "model", "model_label", "conversation_title")
    ours = RECIPE.model_copy(
        update={
            **dict.fromkeys(texts, HOSTILE),
            "handle": HOSTILE[:40],
            "asked_aspect_ratio": HOSTILE[:40],
            "sources": (RecipeSource(title=HOSTILE, url="javascript:alert(1)"),),
        }
    )
    theirs = ForeignRecipe(tool=ForeignTool.PARAMETERS, prompt=HOSTILE, negative_prompt=HOSTILE, raw=HOSTILE)
    for found in (ours, theirs):
        for shown in (card_html(words, found), recipe_html(words, found)):
            assert "<img" not in shown
            assert "javascript:" not in shown
            assert "onerror=&quot;" in shown


def test_all_of_a_recipe_is_shown_to_be_read() -> None:
    shown = recipe_html(WORDS, RECIPE)
    for said in ("a red fox", "A red fox in snow", "Pro", "2K 16:9 → 2752×1536", "2026-11-20 12:00 UTC"):
        assert said in shown
    assert "castle\nSteps: 20" in recipe_html(WORDS, FOREIGN)


def test_settings_come_back_as_the_chips_were() -> None:
    chosen = chosen_as(RECIPE.settings, RECIPE, Chosen(review="always", confirm=True))
    assert (chosen.image_model, chosen.aspect_ratio, chosen.resolution) == ("pro", "16:9", "2K")
    assert (chosen.number_of_images, chosen.review, chosen.confirm) == ("2", "always", True)
    own = chosen_as(TurnSettings(review="off", allow_search=True), None, Chosen(confirm=True))
    assert (own.review, own.confirm, own.allow_search, own.aspect_ratio) == ("off", False, True, AUTO)
    assert own.turn_settings() == TurnSettings(review="off", allow_search=True)


def test_without_settings_on_record_what_was_asked_stands_in() -> None:
    bare = RECIPE.model_copy(update={"settings": None})
    assert chosen_as(None, bare, Chosen()).aspect_ratio == "16:9"
    assert chosen_as(None, None, Chosen()) == Chosen()


# Over the wire


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    with PageProcess(home=tmp_path_factory.mktemp("home")) as page:
        yield page


@pytest.fixture(scope="module")
def cookie(studio: PageProcess) -> str:
    with urllib.request.urlopen(studio.url) as answer:
        given: str = answer.headers["set-cookie"]
    return given.partition(";")[0]


def ask(studio: PageProcess, data: bytes, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(f"{studio.url}/aivista/recipe", data=data, headers=headers, method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_the_page_is_told_what_a_file_says(studio: PageProcess, cookie: str) -> None:
    status, said = ask(studio, embed(png(), "image/png", RECIPE), cookie=cookie)
    assert status == 200
    assert read_told(said.decode()) == RECIPE
    assert json.loads(said)["recipe"]["words"] == "a red fox"


def test_a_file_of_another_program_is_told_as_such(studio: PageProcess, cookie: str) -> None:
    info, out = PngInfo(), io.BytesIO()
    info.add_text("parameters", "castle\nNegative prompt: blur\nSteps: 20, Sampler: Euler a, Seed: 1")
    Image.new("RGB", (4, 4)).save(out, "PNG", pnginfo=info)
    found = read_told(ask(studio, out.getvalue(), cookie=cookie)[1].decode())
    assert isinstance(found, ForeignRecipe)
    assert found.prompt == "castle"


@pytest.mark.parametrize("data", [b"", b"no picture", png(), png()[:20]])
def test_a_file_that_says_nothing_is_told_nothing_of(studio: PageProcess, cookie: str, data: bytes) -> None:
    assert ask(studio, data, cookie=cookie) == (204, b"")


def test_only_the_page_may_ask_and_no_more_than_a_picture(studio: PageProcess, cookie: str) -> None:
    assert ask(studio, png())[0] == 403
    assert ask(studio, png(), cookie=cookie, origin="https://evil.test")[0] == 403
    assert ask(studio, bytes((160 << 20) + 1), cookie=cookie)[0] == 413
