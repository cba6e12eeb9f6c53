"""Wishes made fuller: written out by the model that is chosen or by rules, and with the styles that they name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent import (
    AivistaError,
    ErrorCode,
    MissingStyle,
    MissingStyleReason,
    NetworkFailure,
    Patiences,
    PictureReady,
    Preferences,
    PromptToExpand,
    Receipt,
    Settings,
    Step,
    Studio,
    ThoughtLog,
    TokenUsage,
    TurnDone,
    TurnEvent,
)
from agent.providers.base import Embedding
from agent.providers.sketch.intent import Draw, expand_description, understand
from agent.providers.sketch.painter import compose
from agent.workflow.prompt_expansion import MAX_CHARACTERS
from tests.adapters.models import ModelRole, calls, load_catalogue
from tests.support.cases import each_case
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.refusals import refusal
from tests.support.scenes import Scene, generate, of_type, only, picture, run
from tests.support.waiting import until
from tests.wire_server import Blocked, GeminiServer, HttpError, Text

FULL = "A red fox sits at the edge of a pine forest in fresh snow, low morning sun behind it, watercolour."


@pytest.fixture
async def studio(settings: Settings, server: GeminiServer) -> AsyncIterator[Studio]:
    async with Studio(on_gemini(settings, server.url)) as one:
        yield one


async def test_the_model_writes_the_wish_out_and_the_day_knows_what_it_cost(
    server: GeminiServer, studio: Studio
) -> None:
    server.on_text(Text(FULL))
    written = await studio.expand_prompt(PromptToExpand(text="  a red fox, watercolour "))
    assert (written.text, written.by) == (FULL, "model")
    assert written.price_usd > 0
    day = await studio.spend.day("local")
    assert day.price_usd == pytest.approx(written.price_usd)
    assert day.total_tokens > 0
    assert await studio.conversations.list() == [], "nothing is sent"
    [asked] = server.requests
    assert "[WISH]\na red fox, watercolour\n[/WISH]" in asked.text
    assert "{" not in asked.system
    assert "tools" not in asked.normal
    assert server.violations == []


async def test_the_chosen_model_writes_and_is_told_what_the_chips_say_and_whether_a_picture_changes(
    server: GeminiServer, studio: Studio
) -> None:
    server.on_text(*[Text("one")] * 3)
    await studio.expand_prompt(PromptToExpand(text="一只狐狸", aspect_ratio="21:9", number_of_images=3))
    await studio.expand_prompt(
        PromptToExpand.model_validate({"text": "darker", "pictures": "change", "text_model": "thinking"})
    )
    await studio.expand_prompt(PromptToExpand(text="a poster with this cup", pictures="beside"))
    new, change, beside = (asked.system for asked in server.requests)
    assert ("21:9" in new, "3 pictures" in new, "Chinese characters" in new) == (True, True, True)
    assert ("a wish for a new picture" in new, "a wish to change a picture" in new) == (True, False)
    assert ("a wish for a new picture" in change, "a wish to change a picture" in change) == (False, True)
    assert "90 words" in change
    assert "Pictures that you do not see go with it" in beside
    assert len({asked.model for asked in server.requests}) == 2


async def test_what_models_like_to_put_around_an_answer_is_taken_off(server: GeminiServer, studio: Studio) -> None:
    for answer in (
        f"“{FULL}”",
        f'"{FULL}"',
        f"```text\n{FULL}\n```",
        f"[WISH]\n{FULL}\n[/WISH]",
        "“Slow” beside “Fast”",
    ):
        server.on_text(Text(answer))
        shown = (await studio.expand_prompt(PromptToExpand(text="a fox"))).text
        assert shown == (FULL if FULL in answer else answer)


async def test_nothing_is_asked_when_the_days_cap_is_used_up(server: GeminiServer, studio: Studio) -> None:
    server.on_text(Text(FULL))
    first = await studio.expand_prompt(PromptToExpand(text="a fox"))
    await studio.preferences.keep("local", Preferences(cap_day_usd=first.price_usd))
    assert await refusal(studio.expand_prompt(PromptToExpand(text="a fox")), AivistaError) is ErrorCode.DAY_CAP_USED_UP
    assert len(server.requests) == 1
    assert (await studio.spend.day("local")).price_usd == pytest.approx(first.price_usd)


async def test_what_gives_no_wish_is_said(server: GeminiServer, studio: Studio) -> None:
    fox = PromptToExpand(text="a fox")
    server.on_text(
        Blocked(), HttpError(400, "API key not valid. Please pass a valid API key."), Text("[WISH]\n[/WISH]")
    )
    assert await refusal(studio.expand_prompt(fox), AivistaError) is ErrorCode.PROMPT_BLOCKED
    assert await refusal(studio.expand_prompt(fox), AivistaError) is ErrorCode.KEY_INVALID
    assert await refusal(studio.expand_prompt(fox), AivistaError) is ErrorCode.ANSWER_UNREADABLE
    assert await studio.conversations.list() == []
    # What is empty or too long costs nothing.
    asked = len(server.requests)
    assert await refusal(studio.expand_prompt(PromptToExpand(text=" \n ")), AivistaError) is ErrorCode.NOTHING_SENT
    assert (
        await refusal(studio.expand_prompt(PromptToExpand(text="x" * (MAX_CHARACTERS + 1))), AivistaError)
        is ErrorCode.WISH_TOO_LONG
    )
    assert len(server.requests) == asked


async def test_without_a_key_rules_write_it_for_nothing(settings: Settings) -> None:
    async with Studio(settings) as studio:
        written = await studio.expand_prompt(PromptToExpand(text="Draw a red fox"))
        assert (written.by, written.price_usd) == ("rules", 0.0)
        assert written.text.startswith("Draw a red fox, ")
        change = await studio.expand_prompt(PromptToExpand(text="Draw a red fox", pictures="change"))
        assert (change.text, change.by) == ("Draw a red fox", "nobody")
        assert (await studio.spend.day("local")).price_usd == 0.0


@each_case("wish", ["Draw a red fox", "a cup", "画一只猫", "画一艘船", "paint a robot, 16:9", "一位宇航员"])
def test_every_word_that_the_rules_add_is_one_that_the_sketch_obeys(wish: str) -> None:
    full = expand_description(wish)
    before, after = understand(wish, has_pictures=False), understand(full, has_pictures=False)
    assert isinstance(before, Draw)
    assert isinstance(after, Draw)
    old, new = compose(before.description, before.style), compose(after.description, after.style)
    assert new.figure == old.figure, "the thing that was wished for stays the same"
    assert (new.place, new.palette.moods) != (old.place, old.palette.moods)
    assert before.aspect_ratio == after.aspect_ratio
    assert expand_description(full) == full, "what says it all is left alone"


@each_case(
    "wish",
    [
        *("make it warmer", "把这张调亮一点", "hello", "Draw a fox in a forest at night", "画夜里的城市", ""),
        "what can you do?",
    ],
)
def test_the_rules_leave_alone_what_they_cannot_make_fuller(wish: str) -> None:
    assert expand_description(wish) == wish


# What a curated style looks like, in words that are none of its names.
NOIR = "Venetian blinds, wet asphalt and a hat"


class ToyEmbedder:
    """An embedding model to which all texts mean the same; it may wait, or fail."""

    model_id = load_catalogue().model(ModelRole.EMBEDDING, "gemini").id

    def __init__(self, dimension: int = 192) -> None:
        self.dimension = dimension
        self.asked: list[str] = []
        self.failure: AivistaError | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def embed(self, texts: Sequence[str]) -> Embedding:
        self.asked.extend(texts)
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        vector = [1.0, *[0.0] * (self.dimension - 1)]
        return Embedding([vector for _ in texts], TokenUsage(prompt_tokens=10 * len(texts)))


def scene(settings: Settings, *styles: str) -> Scene:
    """Return a scene whose planner asks for a fox in these styles, in every turn."""
    wanted = [generate("a red fox", **({"style": style} if style else {})) for style in styles]
    settings = settings.model_copy(update={"reuse_plans": False})
    return Scene(settings, text=lambda asked: calls(*wanted), pictures=lambda asked: picture())


@asynccontextmanager
async def reading(settings: Settings, *styles: str) -> AsyncIterator[tuple[Studio, ToyEmbedder]]:
    """Give a studio whose embedding model is a toy."""
    story, toy = scene(settings, *styles), ToyEmbedder()
    async with story.studio() as studio:
        story.provider.embeds = toy
        yield studio, toy


async def say(studio: Studio, text: str = "a red fox") -> list[TurnEvent]:
    """Run a turn in a conversation of its own, so that every one costs the same."""
    return await run(studio, (await studio.conversations.create()).id, text, budget_usd=1.0)


class OnVectors:
    """An embedding model as the style library asks it."""

    def __init__(self, embedder: ToyEmbedder) -> None:
        self._embedder = embedder
        self.model_id, self.dimension = embedder.model_id, embedder.dimension

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return (await self._embedder.embed(texts)).vectors


async def has_read(studio: Studio, toy: ToyEmbedder) -> None:
    """Wait until the embedding model has read the library."""
    await until(lambda: studio.styles.has_meaning(OnVectors(toy)))


def receipt_of(events: list[TurnEvent]) -> Receipt:
    receipt = only(events, PictureReady).picture.receipt
    assert receipt is not None
    return receipt


def names(events: list[TurnEvent]) -> list[str]:
    return [style.name for style in receipt_of(events).styles]


def missed(events: list[TurnEvent]) -> list[tuple[object, object]]:
    """Return each style that was told as missing, and why."""
    lines = [event for event in of_type(events, ThoughtLog) if event.step is Step.STYLE_MISSING]
    return [(line.parameters["style"], line.parameters["reason"]) for line in lines]


def told(events: list[TurnEvent]) -> list[str]:
    return [str(log.parameters["names"]) for log in of_type(events, ThoughtLog) if log.step is Step.STYLES]


def missing(events: list[TurnEvent]) -> MissingStyle:
    found = receipt_of(events).missing_style
    assert found is not None
    return found


async def test_a_style_that_is_named_is_found_and_told_and_asks_no_embedding_model(settings: Settings) -> None:
    async with reading(settings, "ukiyo-e") as (studio, toy):
        events = await say(studio)
    assert names(events)[0] == "Ukiyo-e woodblock print"
    assert "Style:\nUkiyo-e woodblock print: " in receipt_of(events).prompt
    assert told(events) == [", ".join(names(events))]
    assert toy.asked == []


@pytest.mark.parametrize(
    ("style", "said", "found"),
    [
        (NOIR, "a red fox", "Film noir"),
        # One word of the person is enough where the agent names no style.
        ("", "a red fox, noir", "Film noir"),
        # Of several guesses only the likeliest goes into the prompt.
        ("thin black lines with hatching for shadows, no colour", "a red fox", "Pen and ink drawing"),
    ],
)
async def test_without_an_embedding_model_a_style_is_found_by_how_people_describe_it(
    settings: Settings, style: str, said: str, found: str
) -> None:
    async with scene(settings, style).studio() as studio:
        events = await say(studio, said)
    assert names(events) == told(events) == [found]
    assert f"Style:\n{found}: " in receipt_of(events).prompt


async def test_a_style_that_the_library_has_not_goes_in_as_words_and_is_told(settings: Settings) -> None:
    async with scene(settings, "the school of Xyzzy").studio() as studio:
        events = await say(studio, "a fox in the style of the school of Xyzzy")
    unknown = MissingStyleReason.UNKNOWN
    assert receipt_of(events).styles == ()
    assert missing(events) == MissingStyle(requested="the school of Xyzzy", reason=unknown, is_asked_for=True)
    assert receipt_of(events).prompt.endswith("Style: the school of Xyzzy.")
    assert missed(events) == [("the school of Xyzzy", "unknown")]


async def test_a_model_that_fails_again_and_again_is_left_alone_for_a_while(settings: Settings) -> None:
    async with reading(settings, NOIR) as (studio, toy):
        await say(studio)
        await has_read(studio, toy)
        toy.failure, read = NetworkFailure(ErrorCode.CONNECTION_FAILED, service="Google"), len(toy.asked)
        for _ in range(8):
            assert isinstance((await say(studio))[-1], TurnDone)
    assert len(toy.asked) - read == 5


async def test_several_requests_each_get_their_own_styles_and_one_line_tells_of_all(settings: Settings) -> None:
    async with scene(settings, "ukiyo-e", "", "pixel art").studio() as studio:
        events = await say(studio)
    receipts = [ready.picture.receipt for ready in of_type(events, PictureReady)]
    firsts = sorted(receipt.styles[0].name if receipt and receipt.styles else "" for receipt in receipts)
    assert firsts == ["", "Pixel art", "Ukiyo-e woodblock print"]
    [line] = told(events)
    assert ("Pixel art" in line, "Ukiyo-e" in line) == (True, True)


async def test_a_sketch_is_drawn_in_the_style_with_plain_words_and_tells_of_one_that_it_has_not(
    settings: Settings,
) -> None:
    async with Studio(settings) as studio:
        drawn = await say(studio, "draw a red fox in the style of ukiyo-e")
        await studio.styles.add({"name": {"en": "Haiku moon"}, "phrases": ["pale moon over reeds"]})
        wishes = "draw a pond in haiku moon style", "draw a castle in the style of Xyzzy", "画一只猫，阿巴阿巴风格"
        lacking = [missing(await say(studio, wish)) for wish in wishes]
    assert names(drawn) == told(drawn) == ["Ukiyo-e woodblock print"]
    assert ("Style:" in receipt_of(drawn).prompt, receipt_of(drawn).missing_style) == (False, None)
    unknown = MissingStyleReason.UNKNOWN
    assert [(one.requested, one.reason) for one in lacking] == [
        ("Haiku moon", MissingStyleReason.NOT_DRAWN),
        ("Xyzzy", unknown),
        ("阿巴阿巴", unknown),
    ]
    assert [one.is_asked_for for one in lacking[1:]] == [True, True]


async def test_a_broken_library_and_one_that_takes_too_long_are_gone_without_and_the_log_says_so(
    settings: Settings, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    hurried = settings.model_copy(update={"home": tmp_path / "slow", "patiences": Patiences(retriever_s=0.3)})
    async with reading(hurried, NOIR) as (studio, toy):
        await studio.styles.learn_meaning(OnVectors(toy))
        toy.open.clear()
        late = await say(studio)
    assert (type(late[-1]), names(late)) == (TurnDone, [])
    assert (missing(late).requested, missing(late).reason) == (NOIR, MissingStyleReason.LATE)
    assert receipt_of(late).prompt.endswith(f"Style: {NOIR}.")
    assert "the style library failed, the prompt goes on without it" in caplog.text
    caplog.clear()
    settings.home.mkdir(parents=True)
    (settings.home / "styles").write_text("in the way of the folder")
    async with scene(settings, "ukiyo-e").studio() as studio:
        broken = await say(studio)
    assert receipt_of(broken).prompt.endswith("Style: ukiyo-e.")
    assert (missed(broken), missing(broken).reason) == ([("ukiyo-e", "failed")], MissingStyleReason.FAILED)
    assert "the style library failed, the prompt goes on without it" in caplog.text


def embedded(server: GeminiServer) -> list[list[str]]:
    """Return the texts of each call of the embedding model."""
    asked = [request.normal["requests"] for request in server.requests if request.method == "batchEmbedContents"]
    return [[entry["content"]["parts"][0]["text"] for entry in entries] for entries in asked]


async def test_over_http_the_wish_goes_to_gemini_and_its_tokens_to_the_turn(settings: Settings) -> None:
    with GeminiServer() as server:
        there = on_gemini(settings, server.url, reuse_plans=False)

        async def once(studio: Studio) -> TurnDone:
            server.on_text(paint("a red fox", style=NOIR))
            server.on_image(SMALL)
            return only(await say(studio), TurnDone)

        async with Studio(there) as studio:
            first = await once(studio)
            await has_read(studio, ToyEmbedder(768))
            read = embedded(server)
            second = await once(studio)
        assert len(read) == 3
        assert embedded(server)[3:] == [[NOIR]]
        assert second.usage.prompt_tokens - first.usage.prompt_tokens == len(NOIR) // 4 + 1
        assert server.violations == []
