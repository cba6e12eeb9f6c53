"""The gallery searched by meaning as the page does it: the visitor's model is asked, and what it costs is on record."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from agent import (
    ErrorCode,
    GalleryFoundBy,
    GalleryItem,
    GalleryPage,
    GalleryQuery,
    NetworkFailure,
    Preferences,
    Settings,
    Studio,
    TurnRequest,
)
from tests.adapters.models import ModelRole, calls, load_catalogue
from tests.agent.workflow.test_prompt_expansion import ToyEmbedder, embedded
from tests.support.gemini import KEY, draw, on_gemini
from tests.support.scenes import Scene, generate, picture, run
from tests.support.turns import send
from tests.wire_server import GeminiServer

PRICE_A_TOKEN = load_catalogue().model(ModelRole.EMBEDDING, "gemini").prices[0].prompt / 1e6
# Not a word of it is found in the picture's texts but those that every text is full of; its vector is much the same.
MEANS_THE_KITTEN = GalleryQuery(words="the the the beside")


@pytest.fixture
async def studio(settings: Settings, server: GeminiServer) -> AsyncIterator[Studio]:
    async with Studio(on_gemini(settings, server.url)) as one:
        yield one


async def searched(studio: Studio, query: GalleryQuery, owner: str = "local") -> GalleryPage:
    """Search once more when everything is read that the first search began to read."""
    await studio.gallery.page(owner, query)
    await studio.gallery.settled()
    return await studio.gallery.page(owner, query)


def why(items: tuple[GalleryItem, ...]) -> list[tuple[str, tuple[GalleryFoundBy, ...]]]:
    return [(item.picture.handle, item.match.found_by if item.match else ()) for item in items]


def tokens(asked: list[list[str]]) -> int:
    """Return what the server says it has counted."""
    return sum(len(text) // 4 + 1 for texts in asked for text in texts)


async def test_words_find_what_means_the_same_once_for_all_and_the_day_knows_what_it_cost(
    server: GeminiServer, studio: Studio
) -> None:
    conversation = await studio.conversations.create()
    await draw(server, studio, conversation.id, "the kitten")
    await draw(server, studio, conversation.id, "mountain lake")
    before, turns = await studio.spend.day("local"), await studio.spend.conversation(conversation.id, "local")
    page = await searched(studio, MEANS_THE_KITTEN)
    assert why(page.items) == [("#1", (GalleryFoundBy.MEANING,))]
    asked = embedded(server)
    assert asked[-1] == [MEANS_THE_KITTEN.words], "the pictures are read first, then the words are asked once"
    assert sum(texts == [MEANS_THE_KITTEN.words] for texts in asked) == 1
    after = await studio.spend.day("local")
    assert after.total_tokens - before.total_tokens == tokens(asked)
    assert after.price_usd - before.price_usd == pytest.approx(tokens(asked) * PRICE_A_TOKEN)
    assert (await studio.spend.month("local")).price_usd == pytest.approx(after.price_usd)
    assert await studio.spend.conversation(conversation.id, "local") == turns
    # The same words are paid for once.
    await searched(studio, MEANS_THE_KITTEN)
    assert (embedded(server), await studio.spend.day("local")) == (asked, after)
    assert server.violations == []


@pytest.mark.parametrize(
    ("left_usd", "calls", "found_by"),
    [
        (0, 0, (GalleryFoundBy.WORDS,)),
        # The first call, by which unlike is measured, costs more than is left; none is made after it.
        (PRICE_A_TOKEN, 1, (GalleryFoundBy.WORDS,)),
        (1, 3, (GalleryFoundBy.WORDS, GalleryFoundBy.MEANING)),
    ],
)
async def test_nothing_is_asked_when_the_days_cap_is_used_up_and_reading_stops_where_it_is_reached(
    server: GeminiServer, studio: Studio, left_usd: float, calls: int, found_by: tuple[GalleryFoundBy, ...]
) -> None:
    query = GalleryQuery(words="kitten")
    await draw(server, studio, (await studio.conversations.create()).id, "the kitten")
    spent_usd = (await studio.spend.day("local")).price_usd
    await studio.preferences.keep("local", Preferences(cap_day_usd=spent_usd))
    assert (why((await searched(studio, query)).items), embedded(server)) == ([("#1", (GalleryFoundBy.WORDS,))], [])
    await studio.preferences.keep("local", Preferences(cap_day_usd=spent_usd + left_usd))
    assert why((await searched(studio, query)).items) == [("#1", found_by)]
    assert len(embedded(server)) == calls


async def test_each_visitor_asks_with_their_own_key_and_pays_for_it(settings: Settings, server: GeminiServer) -> None:
    async with Studio(on_gemini(settings, server.url).model_copy(update={"gemini_api_key": None})) as studio:
        query, key = GalleryQuery(words="fox"), SecretStr(KEY)
        for owner in ("ann", "bob"):
            conversation = await studio.conversations.create(owner)
            await send(studio, conversation.id, TurnRequest(text="draw a red fox"), owner)
        await studio.gallery.page("ann", query)
        await studio.gallery.settled()
        assert server.requests == [], "without a key nobody is asked"
        await studio.gallery.page("ann", query, key=key)
        await studio.gallery.settled()
        spent = [await studio.spend.day(owner) for owner in ("ann", "bob")]
    assert [one.total_tokens - one.usage.total_tokens for one in spent] == [tokens(embedded(server)), 0]
    assert server.violations == []


async def test_without_a_key_words_alone_are_gone_by(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "draw a red fox")
        page = await studio.gallery.page("local", GalleryQuery(words="fox"))
        assert why(page.items) == [("#1", (GalleryFoundBy.WORDS,))]
        assert not (settings.home / "gallery").exists()


async def test_a_model_that_failed_in_turns_again_and_again_is_not_asked_by_a_search(settings: Settings) -> None:
    failing = settings.model_copy(update={"reuse_plans": False})
    story = Scene(failing, text=lambda _: calls(generate(style="wet asphalt and a hat")), pictures=lambda _: picture())
    toy = ToyEmbedder()
    toy.failure = NetworkFailure(ErrorCode.CONNECTION_FAILED, service="Google")
    async with story.studio() as studio:
        story.provider.embeds = toy
        for _ in range(6):
            await run(studio, (await studio.conversations.create()).id, "a red fox")
        asked = len(toy.asked)
        page = await searched(studio, GalleryQuery(words="fox"))
    assert len(page.items) == 6
    assert len(toy.asked) == asked > 0
