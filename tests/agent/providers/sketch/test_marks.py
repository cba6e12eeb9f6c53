"""What the person marked in the page beside their words: it decides which picture, and ends in nothing that is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from agent.messages import CompletionChunk, PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from agent.pictures import Margins
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.records import ImageStore
from tests.adapters.requests import declaration, expansion_note, mask_note
from tests.adapters.scripted import ChatOptions
from tests.adapters.sketch import SketchProvider
from tests.support.cases import each_case
from tests.support.prompts import arguments_of, said, words_of

CATALOGUE = load_catalogue()
MARKED = "[The person marked #3 as the picture to change.]"
REFERENCES = "[The person marked as references: #1, #2b.]"
EMPTY = "[The person sent an empty message.]"
MASK = mask_note("#3")
LARGER = expansion_note("#3", 400, 300, Margins(left=100, top=0, right=0, bottom=30))


def painted(handle: str, prompt: str, **arguments: JsonValue) -> list[PromptMessage]:
    """Return the messages by which a picture was asked for and came."""
    call = ToolCallPart(name="generate_image", arguments={"action": "generate_image", "prompt": prompt, **arguments})
    seen = [{"handle": handle, "width": 1376, "height": 768}, f"[Picture:history_0123abcd] ({handle}, generated)"]
    result = ToolResultPart(name="generate_image", content={"pictures": list(seen)})
    return [
        PromptMessage(role=Role.MODEL, parts=(TextPart(text="Here it comes."), call)),
        PromptMessage(role=Role.TOOL, parts=(result,)),
    ]


class Planner:
    """The built-in model with the studio's own declaration."""

    def __init__(self, home: Path) -> None:
        self._provider = SketchProvider(ImageStore(home))

    async def hear(self, *messages: PromptMessage, options: ChatOptions | None = None) -> list[CompletionChunk]:
        tools = () if options else (declaration(CATALOGUE, "sketch"),)
        model = CATALOGUE.model(ModelRole.FLASH, "sketch")
        return [chunk async for chunk in self._provider.stream(model, messages, tools, options or ChatOptions())]


@pytest.fixture
def planner(tmp_path: Path) -> Planner:
    return Planner(tmp_path)


@each_case("notes", [(MARKED,), (REFERENCES,), (MARKED, REFERENCES)])
async def test_a_note_ends_in_no_subject_and_no_prompt(planner: Planner, notes: tuple[str, ...]) -> None:
    (call,) = arguments_of(await planner.hear(said("draw a red fox", *notes)))
    assert (call["subject"], call["prompt"]) == ("a red fox", "a red fox")
    assert "handles" not in call


@each_case("note", [MARKED, REFERENCES, MASK, EMPTY])
async def test_a_note_ends_in_no_title(planner: Planner, note: str) -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"title": {"type": "string"}}}
    chunks = await planner.hear(said("draw a red fox", note), options=ChatOptions(response_schema=schema))
    assert json.loads(words_of(chunks)) == {"title": "draw a red fox"}


@each_case(
    ("note", "wish", "told"),
    [
        *((note, "make it a bit warmer", "Changing #3: a little warmer.") for note in (MARKED, MASK)),
        (MASK, "a bit brighter", "Changing #3: a little brighter."),
        (MASK, "sepia", "Changing #3: sepia."),
        (MASK, "blur it", "Changing #3: blurred."),
        (MASK, "make it red", "Changing #3: another colour."),
        (MASK, "remove this", "Changing #3: filled in from around it."),
        (MASK, "fill it with blue stripes", "Changing #3: filled with stripes."),
        (MASK, "add the text “Hi”", "Changing #3: with the words “Hi”."),
        (MASK, "调暖一点", "好的，正在修改 #3：变暖一点。"),
        (MASK, "改成蓝色", "好的，正在修改 #3：换颜色。"),
        (MASK, "擦掉", "好的，正在修改 #3：用周围的画面补上。"),
        (MASK, "填充波点", "好的，正在修改 #3：填充波点。"),
        (MASK, "打马赛克", "好的，正在修改 #3：打马赛克。"),
    ],
)
async def test_the_marked_picture_is_the_one_to_be_changed(planner: Planner, note: str, wish: str, told: str) -> None:
    chunks = await planner.hear(said(wish, note))
    (call,) = arguments_of(chunks)
    assert words_of(chunks) == told
    assert (call["handles"], call["subject"], call["prompt"]) == (["#3"], "#3", wish)


async def test_the_marked_picture_comes_before_those_named_in_words(planner: Planner) -> None:
    (call,) = arguments_of(await planner.hear(said("much brighter than #2", MARKED)))
    assert (call["handles"], call["prompt"]) == (["#3", "#2"], "#3: much brighter than #2")


@each_case(("wish", "prompt"), [("", "extend it"), ("extend it", "extend it"), ("向外延伸", "向外延伸")])
async def test_a_picture_can_grow_by_what_it_shows(planner: Planner, wish: str, prompt: str) -> None:
    (call,) = arguments_of(await planner.hear(said(wish or EMPTY, LARGER)))
    assert (call["handles"], call["prompt"]) == (["#3"], prompt)


@each_case(
    ("note", "wishes", "told"),
    [
        (LARGER, ["a beach", "make it red", "extend it with a beach"], "Beyond the edges"),
        (LARGER, ["画一片大海"], "在边缘之外"),
        (MASK, ["a red hat", "rotate left", "make it half the size", "put a cat here"], "Inside a mask"),
        (MASK, ["画一顶帽子", "放一只猫"], "在蒙版里"),
    ],
)
async def test_what_a_mask_or_a_wider_frame_cannot_hold_is_answered_in_words(
    planner: Planner, note: str, wishes: list[str], told: str
) -> None:
    for wish in wishes:
        chunks = await planner.hear(said(wish, note))
        assert told in words_of(chunks)
        assert arguments_of(chunks) == []


async def test_once_more_carries_over_what_the_first_call_said(planner: Planner) -> None:
    first = painted("#3", "a fox, watercolour", subject="a fox", style="watercolour", aspect_ratio="4:3")
    chunks = await planner.hear(said("draw a fox"), *first, said("paint it again", MARKED))
    (call,) = arguments_of(chunks)
    assert words_of(chunks) == "Here comes another take of #3: a fox."
    assert call == {
        **{"action": "generate_image", "subject": "a fox", "style": "watercolour", "confidence": 0.9},
        **{"prompt": "a fox, watercolour [take 2]", "aspect_ratio": "4:3"},
    }


async def test_a_picture_named_in_words_or_the_one_made_last_is_painted_once_more(planner: Planner) -> None:
    history = [said("draw"), *painted("#1", "a fox"), said("draw"), *painted("#2", "a lighthouse", number_of_images=2)]
    for wish, prompt in (("vary it", "a lighthouse [variation 3]"), ("paint #1 again", "a fox [take 2]")):
        assert [call["prompt"] for call in arguments_of(await planner.hear(*history, said(wish)))] == [prompt]


async def test_an_edit_leads_back_to_what_was_painted_first(planner: Planner) -> None:
    edit = painted("#1b", "make it warmer", action="adjust_parameters")
    chunks = await planner.hear(said("draw"), *painted("#1", "a fox"), said("warmer"), *edit, said("再画一次"))
    (call,) = arguments_of(chunks)
    assert call["prompt"] == "a fox [take 2]"
    assert words_of(chunks) == "好的，我来画 #1b 的一个新画法：a fox。从最初的描述重新画起，后来的调整不带过来。"


@each_case("wish", ["paint it again", "再画一次", "vary it", "给这张图做一个变体"])
async def test_a_picture_without_a_wish_is_answered_in_words(planner: Planner, wish: str) -> None:
    upload = said("[Picture:history_0123abcd] (#3, uploaded by the user)", "hello")
    for history in ([upload], [upload, *painted("#3b", "make it warmer", action="adjust_parameters")]):
        chunks = await planner.hear(*history, said(wish, MARKED))
        assert ("I cannot paint this picture once more" in words_of(chunks)) or ("没法再画一次" in words_of(chunks))
        assert arguments_of(chunks) == []


async def test_an_answer_to_another_call_beside_it_is_not_taken_for_the_pictures(planner: Planner) -> None:
    other = ToolCallPart(name="get_history_image", arguments={"image_id": "0" * 32})
    call = ToolCallPart(name="generate_image", arguments={"prompt": "a fox"})
    results = (
        ToolResultPart(name="get_history_image", content={"pictures": [{"handle": "#9"}]}),
        ToolResultPart(name="generate_image", content={"pictures": [{"handle": "#3"}, "[Picture:history_0] (#3)"]}),
    )
    history = [
        said("draw"),
        PromptMessage(role=Role.MODEL, parts=(other, call)),
        PromptMessage(role=Role.TOOL, parts=results),
    ]
    assert arguments_of(await planner.hear(*history, said("paint it again", MARKED)))[0]["prompt"] == "a fox [take 2]"
    assert arguments_of(await planner.hear(*history, said("paint #9 again"))) == []
