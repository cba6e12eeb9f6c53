"""A request of the planner made ready: what the person locked, marked and changed, and what it may lean on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.conversation import Conversation
from agent.errors import ErrorCode, RequestRefused, ToolArgumentError
from agent.imaging.arguments import ImageAction
from agent.imaging.contract import parse_arguments
from agent.messages import PromptMessage, Role, Source, TextPart, ToolCallPart
from agent.pictures import Fact
from agent.plans import Decision, PlanEdit
from agent.providers.catalogue import load_catalogue
from agent.providers.scripted import ScriptedProvider
from agent.settings import TurnSettings
from agent.storage.cache import HistoryImageCache
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.style_values import MatchKind, MatchReason, Style, StyleMatch, StyleName
from agent.storage.styles import StyleLibrary
from agent.workflow.commissions import Commission, commission, intent, locks, without_own
from agent.workflow.deps import Deps
from agent.workflow.ledger import Ledger
from agent.workflow.state import TurnProgress, first_progress
from tests.support.histories import NOW, begun_turn
from tests.support.histories import picture as recorded
from tests.support.scenes import generate

EVERYTHING = PlanEdit(prompt="a whale", model="pro", aspect_ratio="1:1", resolution="2K", number_of_images=3)


@pytest.fixture
async def deps(tmp_path: Path) -> AsyncIterator[Deps]:
    """The surroundings of a turn `t2` whose conversation has a picture made and one uploaded in `t1`."""
    images = ImageStore(tmp_path)
    records = ConversationStore(tmp_path, images)
    cache, styles = HistoryImageCache(tmp_path), StyleLibrary(tmp_path)
    await records.open()
    conversation = await records.create("local")
    await records.begin_turn(conversation.id, begun_turn("t1"), [recorded("#1", "t1", is_generated=False)])
    await records.add_picture(conversation.id, recorded("#2", "t1"))
    turn = begun_turn("t2", parent="t1").model_copy(
        update={"settings": TurnSettings(), "editing": None, "references": ()}
    )
    await records.begin_turn(conversation.id, turn)
    yield Deps(
        conversation=await records.get(conversation.id, "local"),
        turn=turn,
        provider=ScriptedProvider(images),
        provider_name="gemini",
        catalogue=load_catalogue(),
        images=images,
        records=records,
        cache=cache,
        styles=styles,
        publish=lambda event: None,
        keep_alive=asyncio.create_task,
        ledger=Ledger(records.journal, conversation.id, turn.id),
    )
    await styles.aclose()
    await cache.aclose()
    await records.aclose()


def marked(deps: Deps, **update: Any) -> Deps:
    """Return the surroundings of the same turn with something else marked or chosen in it."""
    return replace(deps, turn=deps.turn.model_copy(update=update))


def state(call: ToolCallPart, **values: Any) -> TurnProgress:
    message = PromptMessage(role=Role.PROMPT, parts=(TextPart(text="draw"),))
    progress: Any = {**first_progress(message), "calls": [call], **values}
    found: TurnProgress = progress
    return found


async def ordered(deps: Deps, call: ToolCallPart, **values: Any) -> Commission:
    return await commission(state(call, **values), deps, 0)


def decided(*edits: PlanEdit) -> Decision:
    return Decision(run=True, edits=edits)


# The person's changes.


def test_without_a_change_the_settings_are_the_locks() -> None:
    settings = TurnSettings(aspect_ratio="1:1", budget_usd=1.0)
    assert locks(settings, None) is settings
    assert locks(settings, PlanEdit(prompt="only other words")) == settings


def test_a_change_locks_what_it_names_and_leaves_the_rest() -> None:
    settings = TurnSettings(aspect_ratio="1:1", resolution="1K", allow_search=True)
    assert locks(settings, PlanEdit(resolution="2K", model="pro")) == settings.model_copy(
        update={"resolution": "2K", "image_model": "pro"}
    )


async def test_what_was_changed_is_what_is_ordered(deps: Deps) -> None:
    wish = generate("a fox", model="flash", aspect_ratio="16:9", resolution="1K", number_of_images=1)
    order = await ordered(deps, wish, decision=decided(EVERYTHING))
    request = order.request
    assert (order.arguments.prompt, order.prompt, request.prompt) == ("a whale",) * 3
    assert (request.model.id, request.aspect_ratio, request.resolution) == ("gemini-3-pro-image", "1:1", "2K")
    assert request.number_of_images == 3
    assert {request.filled[name] for name in ("model", "aspect_ratio", "resolution", "number_of_images")} == {"locked"}


async def test_a_change_of_another_call_changes_nothing_here(deps: Deps) -> None:
    other = EVERYTHING.model_copy(update={"call": 1})
    assert await ordered(deps, generate(), decision=decided(other)) == await ordered(deps, generate())


async def test_a_change_that_no_model_obeys_is_refused(deps: Deps) -> None:
    with pytest.raises(RequestRefused) as refusal:
        await ordered(deps, generate(), decision=decided(PlanEdit(model="pro", aspect_ratio="1:8")))
    assert refusal.value.code is ErrorCode.SETTING_NOT_SUPPORTED


# What it leans on.


async def test_a_new_picture_leans_on_nothing(deps: Deps) -> None:
    order = await ordered(deps, generate())
    assert (order.references.pictures, order.references.base, order.replay) == ((), None, None)
    assert (order.request.aspect_ratio, order.expected_pixels) == ("16:9", (1376, 768))
    assert order.intent.action is ImageAction.GENERATE


async def test_a_change_starts_from_the_picture_it_names_with_the_model_s_own_answer(deps: Deps) -> None:
    order = await ordered(deps, generate("darker", handles=["#2"]))
    assert order.references.base is not None
    assert order.references.base.handle == "#2"
    assert order.replay == await deps.records.answer_of(deps.conversation.id, "#2")
    assert order.intent.action is ImageAction.EDIT


async def test_what_the_person_marked_comes_first_and_then_the_agent_s_and_the_references(deps: Deps) -> None:
    on_record = marked(deps, editing="#1", references=("#1", "#2"))
    order = await ordered(on_record, generate("darker", handles=["#2"]))
    assert [picture.handle for picture in order.references.pictures] == ["#1", "#2"]
    assert order.references.base is not None
    assert order.references.base.handle == "#1"


async def test_a_marked_picture_is_changed_even_when_the_agent_calls_it_a_new_one(deps: Deps) -> None:
    wish = generate("darker", action="generate_image")
    assert (await ordered(marked(deps, editing="#2"), wish)).references.base is not None
    named = generate("like it", action="generate_image", handles=["#2"])
    assert (await ordered(deps, named)).references.base is None


async def test_an_attempt_of_the_same_turn_is_no_reference_for_the_next(deps: Deps) -> None:
    await deps.records.add_picture(deps.conversation.id, recorded("#3", "t2"))
    order = await ordered(deps, generate("darker", reference_mode="LAST_GENERATED"))
    assert [picture.handle for picture in order.references.pictures] == ["#2"]


async def test_a_handle_that_does_not_exist_is_the_planner_s_to_mend(deps: Deps) -> None:
    with pytest.raises(ToolArgumentError) as refusal:
        await ordered(deps, generate(handles=["#9"]))
    assert refusal.value.code is ErrorCode.UNKNOWN_HANDLE


def test_a_turn_leans_on_its_uploads_but_not_on_what_it_made() -> None:
    pictures = (recorded("#1", "t1"), recorded("#2", "t2", is_generated=False), recorded("#3", "t2"))
    conversation = Conversation(id="c1", owner="local", title="", created_at=NOW, updated_at=NOW, pictures=pictures)
    assert [one.handle for one in without_own(conversation, "t2")] == ["#1", "#2"]


# What is sent.


async def test_facts_and_styles_go_into_the_prompt_and_not_into_the_plan_s_words(deps: Deps) -> None:
    fact, source = Fact(item="330 m high", source="page"), Source(title="page", url="https://example.org/1")
    name = StyleName(en="Ukiyo-e woodblock print")
    style = Style(id="ukiyo-e", name=name, phrases=("flat colours",), negative=("gloss",))
    match = StyleMatch(style=style, similarity=1.0, reason=MatchReason(kind=MatchKind.NAME, text=name.en))
    order = await ordered(deps, generate("the tower"), facts=[fact], sources=[source], styles={0: [match]})
    assert order.arguments.prompt == "the tower"
    assert order.prompt.startswith("the tower")
    assert all(words in order.prompt for words in ("330 m high", "flat colours", "gloss"))
    assert (order.facts, order.sources) == ((fact,), (source,))
    assert [(one.name, one.similarity) for one in order.styles] == [("Ukiyo-e woodblock print", 1.0)]


async def test_the_advice_of_a_review_follows_the_prompt_and_leaves_it_as_it_was(deps: Deps) -> None:
    order = await ordered(deps, generate("a fox"))
    assert order.prompt_with("") == order.prompt == "a fox"
    assert order.prompt_with("Add snow.").startswith("a fox\n\n")
    assert order.prompt_with("Add snow.").endswith("Add snow.")
    assert order.messages("Add snow.")[-1].text == order.prompt_with("Add snow.")


async def test_the_work_begins_without_attempts_and_knows_what_was_asked(deps: Deps) -> None:
    order = await ordered(deps, generate("a fox", subject="a fox", confidence=0.8))
    work = order.work()
    assert (work.attempts, work.advice, work.expected) == ((), {}, order.expected_pixels)
    assert (work.prompt.original, work.prompt.final) == ("a fox", order.prompt)
    assert (work.intent.subject, work.intent.confidence) == ("a fox", 0.8)


def test_what_was_understood_is_kept_as_the_planner_said_it() -> None:
    arguments = parse_arguments({"prompt": "a fox", "subject": "fox", "style": "ink", "confidence": 0.7})
    understood = intent(arguments, is_edit=True)
    assert (understood.action, understood.subject, understood.style) == (ImageAction.EDIT, "fox", "ink")
    assert intent(arguments, is_edit=False).action is ImageAction.GENERATE
