"""The sketch model as the studio sees it: what it understands, what it says and calls for, and what it stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from PIL import Image, ImageStat
from pydantic import JsonValue

from agent import (
    CompletionChunk,
    ErrorCode,
    ImageOrigin,
    ImagePart,
    Margins,
    PanelAction,
    Picture,
    PictureReady,
    PromptMessage,
    RequestRefused,
    Role,
    Studio,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.adapters.language import Adjustment
from tests.adapters.models import (
    ChatOptions,
    ImageRequest,
    ModelRole,
    ToolDeclaration,
    declaration,
    expansion_note,
    load_catalogue,
    mask_note,
)
from tests.adapters.pixels import apply_adjustment
from tests.adapters.sketch import (
    AddText,
    AskBack,
    Draw,
    Edit,
    Erase,
    Fill,
    Operation,
    Position,
    Reason,
    Recolour,
    Retake,
    RetakeKind,
    SketchProvider,
    Talk,
    Topic,
    read_area_intent,
    understand,
)
from tests.adapters.webui import LANGUAGES, PanelAmounts, PanelPress, amounts_sentence, load_words, pressed_sentence
from tests.bench import adjustments as bench
from tests.support.cases import each_case
from tests.support.prompts import arguments_of, said, words_of
from tests.support.refusals import refusal
from tests.support.scenes import only, run
from tests.support.shelf import Shelf
from tests.support.tables import table

WISHES = table("sketch_wishes")


def operation(written: dict[str, Any]) -> Operation:
    """Return the operation that a table writes down."""
    match written:
        case {"text": text, "position": position, **rest}:
            return AddText(text, Position(position), tuple(rest["ink"]) if rest else None)
        case {"colour": colour}:
            return Recolour(tuple(colour))
    return Adjustment.model_validate(written)


def edits(name: str) -> list[tuple[str, object]]:
    """Return the wishes of a table and the changes that they mean; patterns are another matter."""
    return [(wish, Edit(tuple(map(operation, does)))) for wish, does in WISHES[name] if "fill" not in does[0]]


def answers(name: str) -> list[tuple[str, object]]:
    reasons = set(Reason)
    return [(wish, AskBack(Reason(said)) if said in reasons else Talk(Topic(said))) for wish, said in WISHES[name]]


def whole(wish: str) -> object:
    return understand(wish, has_pictures=True)


def without_pictures(wish: str) -> object:
    return understand(wish, has_pictures=False)


def misunderstood(expected: Iterable[tuple[str, object]], read: Callable[[str], object] = whole) -> dict[str, object]:
    """Return the wishes that are not understood as expected, and how they are; handles are another matter."""

    def bare(found: object) -> object:
        return Edit(found.operations, left_out=found.left_out) if isinstance(found, Edit) else found

    return {wish: found for wish, meant in expected if bare(found := read(wish)) != meant}


def test_a_wish_for_a_picture_is_drawn() -> None:
    wrong = []
    for wish, *expected in WISHES["drawn"]:
        draw = understand(wish, has_pictures=False)
        assert isinstance(draw, Draw), wish
        if [draw.subject, draw.aspect_ratio or "", draw.number_of_images or 0, draw.style] != expected:
            wrong.append((wish, draw))
    assert wrong == []


def test_a_wish_for_a_change_gives_its_operations_in_order_and_what_is_neither_is_answered_in_words() -> None:
    assert misunderstood(edits("edited") + edits("mixed") + answers("answered")) == {}
    inside = [*edits("inside"), *answers("answered_inside"), *((wish, Edit((Erase(),))) for wish in WISHES["erased"])]
    assert misunderstood(inside, read_area_intent) == {}
    assert [wish for wish in WISHES["unchanged"] if isinstance(whole(wish), Edit)] == []
    # What needs eyes or a painter is left out and named.
    brighter = Edit((Adjustment(brightness=30),), left_out=("blur the background",))
    assert whole("make the photo brighter, blur the background") == brighter
    assert read_area_intent("remove the hat and add a cap") == Edit((Erase(),), left_out=("add a cap",))


def test_without_any_picture_a_change_asks_for_one_and_once_more_asks_what_to_paint() -> None:
    changes = ("make it brighter", "再亮一点", "crop it", "remove the background")
    again = ("再来一张", "paint it again", "vary it")
    for wishes, reason in ((changes, Reason.NO_PICTURE), (again, Reason.NO_SUBJECT)):
        assert misunderstood(((wish, AskBack(reason)) for wish in wishes), without_pictures) == {}


def retakes(wishes: Iterable[str]) -> dict[str, Retake | None]:
    """Return each wish with the retake it is understood as, or none."""
    return {wish: found if isinstance(found := whole(wish), Retake) else None for wish in wishes}


def test_the_same_wish_once_more_and_a_variation_are_understood_and_what_is_neither() -> None:
    expected = {wish: (RetakeKind.AGAIN, ("#3",) if "3" in wish else ()) for wish in WISHES["again"]}
    assert {wish: (one.kind, one.handles) for wish, one in retakes(WISHES["again"]).items() if one} == expected
    found = retakes(WISHES["variations"])
    assert {wish: one for wish, one in found.items() if one is None or one.kind is not RetakeKind.VARIATION} == {}
    assert {wish: one for wish, one in retakes(WISHES["neither_again_nor_variation"]).items() if one} == {}
    counts = {"make three variations of this picture": 3, "再画两张": 2, "another take": None}
    assert {wish: one.number_of_images for wish, one in retakes(counts).items() if one} == counts
    assert [one.handles for one in retakes(["paint #1aa again"]).values() if one] == [("#1aa",)]


def test_nearly_all_phrases_of_the_benchmark_are_understood_and_none_exactly_wrong() -> None:
    outcomes = bench.measured()
    for way in ("exactly", "without a key"):
        assert not any(one.is_wrong for one in outcomes[way]), way
        wishes = [one for one in outcomes[way] if not one.is_trap]
        assert sum(one.is_understood for one in wishes) >= 0.95 * len(wishes), way


def test_patterns_inside_a_mask_are_understood() -> None:
    for wish, (written, *_) in WISHES["inside"]:
        if "fill" in written:
            understood = read_area_intent(wish)
            assert isinstance(understood, Edit), wish
            (fill,) = understood.operations
            assert isinstance(fill, Fill), wish
            colours = tuple(written.get("colour", fill.colour)), tuple(written.get("ground", fill.ground))
            assert (fill.kind, (fill.colour, fill.ground), understood.left_out) == (written["fill"], colours, ()), wish
            assert (fill.colour == fill.ground) is (written["fill"] == "plain"), wish


TONES = ("brightness", "contrast", "saturation", "warmth", "sharpness")
FOX = {"en": "draw a red fox in the snow", "zh-CN": "画一只雪中的红狐"}
AMOUNTS = PanelAmounts(handle="#1", brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)
ADJUSTED = Adjustment(brightness=20, contrast=-10, saturation=5, warmth=-35, sharpness=100)


def pressed(action: PanelAction, language: str) -> str:
    return pressed_sentence(load_words(language), PanelPress(handle="#1", action=action))


async def made(studio: Studio, conversation_id: str, text: str, editing: str | None = None) -> Picture:
    """Run a turn that makes one picture."""
    return only(await run(studio, conversation_id, text, editing=editing), PictureReady).picture


def prompt_of(picture: Picture) -> str:
    assert picture.receipt is not None
    return picture.receipt.prompt


@each_case("language", LANGUAGES)
def test_each_slider_and_button_of_the_page_alone_is_read_as_what_it_says(language: str) -> None:
    moved = [{tone: amount} for tone in TONES for amount in (-100, -5, 5, 100)]
    sentences = [
        amounts_sentence(load_words(language), PanelAmounts.model_validate({"handle": "#1", **one})) for one in moved
    ]
    meant = [Edit((Adjustment.model_validate(one),)) for one in moved]
    assert misunderstood(zip(sentences, meant, strict=True)) == {}
    buttons: tuple[tuple[PanelAction, str], ...] = (("more_contrast", "contrast"), ("warmer", "warmth"))
    for action, tone in buttons:
        amount = 15 if "一点" in pressed(action, language) else 30
        assert whole(pressed(action, language)) == Edit((Adjustment.model_validate({tone: amount}),))


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_marked_picture_is_painted_again_and_adjusted_by_these_amounts(studio: Studio, language: str) -> None:
    conversation = await studio.conversations.create()
    first = await made(studio, conversation.id, FOX[language])
    await made(studio, conversation.id, "draw a lighthouse")
    wish = prompt_of(first)
    again = await made(studio, conversation.id, pressed("regenerate", language), editing="#1")
    variation = await made(studio, conversation.id, pressed("vary", language), editing="#1")
    later = await made(studio, conversation.id, pressed("regenerate", language), editing=again.handle)
    assert [prompt_of(one) for one in (again, variation, later)] == [
        f"{wish} [take 2]", f"{wish} [variation 3]", f"{wish} [take 4]",
    ]  # fmt: skip
    assert {one.alt for one in (again, variation, later)} == {first.alt}
    assert len({one.image.digest for one in (first, again, variation, later)}) == 4
    assert (again.image.width, again.image.height) == (first.image.width, first.image.height)
    # Sliders adjust the marked picture itself.
    adjusted = await made(studio, conversation.id, amounts_sentence(load_words(language), AMOUNTS), editing="#1")
    original, changed = [(await studio.picture(conversation.id, handle)).data for handle in ("#1", adjusted.handle)]
    assert (adjusted.handle, changed) == ("#1e", apply_adjustment(original, ADJUSTED).data)
    mirrored = await made(studio, conversation.id, "flip it, crop it to a square and add the text “Hi”", editing="#1")
    assert (mirrored.handle, mirrored.alt) == ("#1f", first.alt), "what it shows is the same"


_CATALOGUE = load_catalogue()
_TEXT_MODEL = _CATALOGUE.model(ModelRole.FLASH, "sketch")
_IMAGE_MODEL = _CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch")


async def _stream(
    *messages: PromptMessage, tools: Sequence[ToolDeclaration] | None = None, options: ChatOptions | None = None
) -> list[CompletionChunk]:
    provider = SketchProvider(Shelf())
    chosen = [declaration(_CATALOGUE, "sketch")] if tools is None else tools
    return [chunk async for chunk in provider.stream(_TEXT_MODEL, messages, chosen, options or ChatOptions())]


async def _make(shelf: Shelf, *messages: PromptMessage, ratio: str | None = None, **fields: Any) -> ImagePart:
    request = ImageRequest(model=_IMAGE_MODEL, messages=messages, aspect_ratio=ratio, **fields)
    chunks = [chunk async for chunk in SketchProvider(shelf).generate(request)]
    assert chunks[-1].finish_reason == "STOP"
    assert chunks[-1].usage is not None
    (part,) = [chunk.part for chunk in chunks if isinstance(chunk.part, ImagePart)]
    return part


async def _made_inside(shelf: Shelf, wish: str, image: Image.Image, mask: Image.Image) -> ImagePart:
    """Return what comes of a wish for the part of a picture that a mask covers."""
    return await _make(shelf, said(wish, await shelf.upload(image)), ratio="1:1", mask=await shelf.upload(mask))


def _gradient(size: tuple[int, int] = (120, 80)) -> Image.Image:
    ramp = Image.linear_gradient("L").resize(size)
    return Image.merge("RGB", (ramp, ramp.transpose(Image.Transpose.FLIP_TOP_BOTTOM), ramp))


async def test_words_stream_in_several_chunks_then_the_call_then_usage() -> None:
    chunks = await _stream(said("draw a red fox in the snow"))
    kinds = [type(chunk.part).__name__ for chunk in chunks]
    assert (kinds.count("TextPart") >= 5, kinds[-2:]) == (True, ["ToolCallPart", "NoneType"])
    assert words_of(chunks) == "Here comes a sketch: a red fox in the snow."
    assert (chunks[-1].finish_reason, chunks[-1].usage is not None) == ("STOP", True)


async def test_a_drawing_is_called_for_with_the_whole_wish_and_with_nothing_undeclared() -> None:
    wish = said("Paint three pictures of a lighthouse, watercolour, 4:3")
    assert arguments_of(await _stream(wish)) == [
        {
            **{"action": "generate_image", "subject": "a lighthouse, watercolour", "style": "watercolour"},
            **{"confidence": 0.9, "prompt": "a lighthouse, watercolour", "aspect_ratio": "4:3", "number_of_images": 3},
        }
    ]
    assert arguments_of(await _stream(wish, tools=[])) == []


async def test_an_edit_says_which_pictures_it_is_for() -> None:
    upload = await Shelf().upload(_gradient())
    cat, hello = said("draw a cat"), said("hello", "[Picture:history_0123abcd] (#1, uploaded)")
    made = [said("[Picture:history_0123abcd] (#1, generated)", role=role) for role in (Role.MODEL, Role.TOOL)]
    result = PromptMessage(role=Role.TOOL, parts=(ToolResultPart(name="generate_image", images=(upload,)),))
    for messages, mode, handles in (
        ([said(upload, "make it a bit brighter")], "USER_UPLOADED_ONLY", None),
        ([cat, made[0], said("再亮一点")], "LAST_GENERATED", None),
        ([cat, made[1], said("再亮一点")], "LAST_GENERATED", None),
        ([hello, said("Hello!", role=Role.MODEL), said("make it darker")], "USER_UPLOADED_ONLY", None),
        ([cat, result, said("make it darker")], "LAST_GENERATED", None),
        ([said("make #3 darker")], "LAST_GENERATED", ["#3"]),
    ):
        (call,) = arguments_of(await _stream(*messages))
        wish = messages[-1].text
        assert (call["action"], call["prompt"], call.get("reference_mode"), call.get("handles")) == (
            *("adjust_parameters", wish, mode), handles,
        ), wish  # fmt: skip


async def test_only_declared_arguments_and_legal_values_are_sent() -> None:
    properties: dict[str, JsonValue] = {"prompt": {"type": "string"}, "aspect_ratio": {"enum": ["1:1"]}}
    declared: dict[str, JsonValue] = {"properties": properties | {"action": {"enum": ["generate", "adjust"]}}}
    bare = ToolDeclaration(name="generate_image", description="", parameters=declared)
    (call,) = arguments_of(await _stream(said("draw a cat, 16:9"), tools=[bare]))
    assert call == {"action": "generate", "prompt": "a cat"}


@each_case(
    ("wish", "expected"),
    [
        ("", "What would you like to see?"),
        ("make it brighter", "Please add one"),
        ("what can you do?", "Gemini key"),
        ("search the web for the Eiffel tower", "needs a Gemini key"),
        ("搜索一下最新的手机", "需要 Gemini 密钥"),
        ("你能做什么？", "内置的草图模型"),
        ("再亮一点", "添加一张"),
    ],
)
async def test_what_cannot_be_painted_is_answered_in_words_alone(wish: str, expected: str) -> None:
    chunks = await _stream(said(wish))
    assert expected in words_of(chunks)
    assert arguments_of(chunks) == []


async def test_an_edit_says_what_it_does() -> None:
    chunks = await _stream(said("make #2 much warmer, rotate left, crop to square, add the text “Hi”, blur the sky"))
    assert words_of(chunks) == (
        "Changing #2: much warmer, rotated 90° to the left, cropped to 1:1, with the words “Hi”."
        " I leave out “blur the sky”: that needs a Gemini key."
    )


@each_case(
    ("wish", "content", "expected"),
    [
        ("画一只猫", {"pictures": [{"handle": "#1"}]}, "好了。想再改哪里，直接告诉我。"),
        ("make #9 darker", {"error": "There is no picture #9."}, "That did not work: There is no picture #9."),
        ("darker", {"pictures": [], "failed": ["There is none."]}, "That did not work: There is none."),
    ],
)
async def test_after_a_tools_answer_the_turn_is_closed(wish: str, content: dict[str, JsonValue], expected: str) -> None:
    result = ToolResultPart(name="generate_image", content=content, is_error="handle" not in str(content))
    chunks = await _stream(said(wish), PromptMessage(role=Role.TOOL, parts=(result,)))
    assert (words_of(chunks), arguments_of(chunks)) == (expected, [])


async def test_a_form_is_answered_as_json_that_fits() -> None:
    properties: dict[str, JsonValue] = {
        **{"title": {"type": "string", "maxLength": 8}, "advice": {"type": "string"}, "is_good": {"type": "boolean"}},
        **{"score": {"type": "INTEGER", "minimum": 1}, "kind": {"enum": ["photo", "sketch"]}},
        **{"facts": {"type": "array"}, "note": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
        "pair": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/Point"}},
    }
    point: dict[str, JsonValue] = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema: dict[str, JsonValue] = {"type": "object", "properties": properties, "$defs": {"Point": point}}
    chunks = await _stream(said("draw a red fox"), tools=[], options=ChatOptions(response_schema=schema))
    assert json.loads(words_of(chunks)) == {
        **{"title": "draw a r", "advice": "", "score": 1, "is_good": False, "kind": "photo", "facts": []},
        **{"pair": [{"x": 0}, {"x": 0}], "note": None},
    }


async def test_a_mark_behind_a_prompt_is_another_take_and_neither_it_nor_facts_stand_in_the_caption() -> None:
    shelf = Shelf()
    base = await shelf.upload(_gradient(), "#1")
    facts = "a lighthouse\n\n[FACTS]\n- It is striped. (example.org)\n[/FACTS]"
    wishes = ("a lighthouse", "a lighthouse [take 1]", facts, "a lighthouse [take 2]", "a lighthouse [variation 2]")
    first, same, with_facts, second, varied = [await _make(shelf, said(base, wish)) for wish in wishes]
    assert first.digest == same.digest == with_facts.digest
    assert len({first.digest, second.digest, varied.digest}) == 3
    strips = {shelf.image(one).crop((0, 690, 700, 768)).tobytes() for one in (second, varied)}
    assert len(strips) == 1


async def test_facts_legends_and_what_to_avoid_do_not_confuse_an_edit() -> None:
    shelf = Shelf()
    base = await shelf.upload(_gradient())
    prompt = (
        "flip it\n\nAvoid: blur, sepia\n\n[FACTS]\n- make it darker (example.org)\n[/FACTS]"
        "\n\n[IMAGES]\nImage 1 is #3.\nImage 2 is #4.\n[/IMAGES]"
    )
    part = await _make(shelf, said("Picture #3:", base, prompt))
    assert shelf.image(part).tobytes() == _gradient().transpose(Image.Transpose.FLIP_LEFT_RIGHT).tobytes()


async def test_the_base_is_the_first_the_named_or_the_newest_picture() -> None:
    shelf = Shelf()
    wide, tall = await shelf.upload(_gradient((60, 40)), "#1"), await shelf.upload(_gradient((30, 90)), "#2")
    for messages, size in (
        ([said(wide, tall, "make it brighter")], (60, 40)),
        ([said(wide, tall, "make #2 brighter")], (30, 90)),
        ([said(wide, "a cat"), said(tall, role=Role.MODEL), said("make it brighter")], (30, 90)),
    ):
        part = await _make(shelf, *messages)
        light = ImageStat.Stat(shelf.image(part)).mean[0]
        assert (part.origin, shelf.image(part).size) == (ImageOrigin.EDITED, size)
        assert light > ImageStat.Stat(_gradient(size)).mean[0] + 10


@each_case(
    ("ratio", "with_a_picture", "size"),
    [(None, False, (1376, 768)), ("9:16", False, (768, 1376)), ("1:1", True, (1024, 1024))],
)
async def test_a_sketch_is_a_png_of_the_asked_pixels_and_stored(
    ratio: str | None, with_a_picture: bool, size: tuple[int, int]
) -> None:
    shelf = Shelf()
    shown = [await shelf.upload(_gradient())] if with_a_picture else []
    part = await _make(shelf, said(*shown, "draw a lighthouse"), ratio=ratio, resolution="1K")
    picture = shelf.image(part)
    assert (part.mime_type, part.origin) == ("image/png", ImageOrigin.GENERATED)
    assert (picture.size, picture.format, picture.info) == (size, "PNG", {})


async def test_a_base_picture_that_is_gone_or_cannot_be_read_is_refused_in_a_sentence() -> None:
    shelf = Shelf()
    gone = await Shelf().upload(_gradient(), "#1")
    broken = await shelf.write(b"not a picture", "image/png", ImageOrigin.UPLOADED)
    for base, code in ((gone, ErrorCode.PICTURE_NOT_FOUND), (broken, ErrorCode.PICTURE_UNREADABLE)):
        assert await refusal(_make(shelf, said(base, "make it brighter"))) is code


@each_case(
    ("size", "ratio", "wish", "expected"),
    [
        ((120, 80), "3:2", "make it brighter", (120, 80)),
        ((125, 80), "3:2", "make it brighter", (125, 80)),
        ((120, 80), "1:1", "make it brighter", (80, 80)),
        ((120, 80), "1:1", "crop to square", (80, 80)),
        ((120, 80), "3:2", "crop to square", (80, 80)),
        ((120, 80), "16:9", "crop to square", (120, 68)),
        ((120, 80), "3:2", "rotate left", (80, 120)),
    ],
)
async def test_a_ratio_that_is_not_the_pictures_own_is_a_lock_and_wins(
    size: tuple[int, int], ratio: str, wish: str, expected: tuple[int, int]
) -> None:
    shelf = Shelf()
    base = await shelf.upload(_gradient(size))
    assert shelf.image(await _make(shelf, said(base, wish), ratio=ratio)).size == expected


@each_case("wish", ["make it blue", "改成蓝色", "#3: make it blue\n\nAvoid: red"])
async def test_with_a_mask_only_what_it_covers_changes_and_the_whole_comes_back(wish: str) -> None:
    shelf, picture, mask = Shelf(), _gradient((90, 60)), Image.new("L", (90, 60), 0)
    mask.paste(255, (30, 20, 60, 40))
    part = await _made_inside(shelf, wish, picture, mask)
    result = shelf.image(part).convert("RGB")
    assert part.origin is ImageOrigin.EDITED
    assert result.size == picture.size
    red, _, blue = ImageStat.Stat(result.crop((30, 20, 60, 40))).mean
    assert blue > red + 60
    result.paste(picture.crop((30, 20, 60, 40)), (30, 20))
    assert result.tobytes() == picture.tobytes()


@each_case("wish", ["put a cat here", "放一只猫", "hello", "extend it with a beach"])
async def test_with_a_mask_nothing_is_painted_that_was_not_understood(wish: str) -> None:
    shelf = Shelf()
    with pytest.raises(RequestRefused) as refused:
        await _made_inside(shelf, wish, _gradient(), Image.new("L", (120, 80), 255))
    assert refused.value.code is ErrorCode.PART_NOT_SUPPORTED
    assert len(shelf.held) == 2


# What the person marked in the page beside their words: it decides which picture, and ends in nothing that is said.

MARKED = "[The person marked #3 as the picture to change.]"
ANEW = "[The person marked no picture to change: what they ask for is a new one, unless they name another.]"
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


@each_case("notes", [(MARKED,), (REFERENCES,), (ANEW,), (MARKED, REFERENCES)])
async def test_a_note_ends_in_no_subject_and_no_prompt(notes: tuple[str, ...]) -> None:
    (call,) = arguments_of(await _stream(said("draw a red fox", *notes)))
    assert (call["subject"], call["prompt"]) == ("a red fox", "a red fox")
    assert "handles" not in call


@each_case("note", [MARKED, REFERENCES, MASK, EMPTY])
async def test_a_note_ends_in_no_title(note: str) -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"title": {"type": "string"}}}
    chunks = await _stream(said("draw a red fox", note), tools=[], options=ChatOptions(response_schema=schema))
    assert json.loads(words_of(chunks)) == {"title": "draw a red fox"}


@each_case(
    ("note", "wish", "told"),
    [
        *((note, "make it a bit warmer", "Changing #3: a little warmer.") for note in (MARKED, MASK)),
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
async def test_the_marked_picture_is_the_one_to_be_changed(note: str, wish: str, told: str) -> None:
    chunks = await _stream(said(wish, note))
    (call,) = arguments_of(chunks)
    assert words_of(chunks) == told
    assert (call["handles"], call["prompt"]) == (["#3"], wish)


@each_case(("wish", "prompt"), [("", "extend it"), ("extend it", "extend it"), ("向外延伸", "向外延伸")])
async def test_a_picture_can_grow_by_what_it_shows(wish: str, prompt: str) -> None:
    (call,) = arguments_of(await _stream(said(wish or EMPTY, LARGER)))
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
    note: str, wishes: list[str], told: str
) -> None:
    for wish in wishes:
        chunks = await _stream(said(wish, note))
        assert told in words_of(chunks)
        assert arguments_of(chunks) == []


async def test_once_more_carries_over_what_the_first_call_said() -> None:
    first = painted("#3", "a fox, watercolour", subject="a fox", style="watercolour", aspect_ratio="4:3")
    chunks = await _stream(said("draw a fox"), *first, said("paint it again", MARKED))
    (call,) = arguments_of(chunks)
    assert words_of(chunks) == "Here comes another take of #3: a fox."
    assert call == {
        **{"action": "generate_image", "subject": "a fox", "style": "watercolour", "confidence": 0.9},
        **{"prompt": "a fox, watercolour [take 2]", "aspect_ratio": "4:3"},
    }


async def test_an_edit_leads_back_to_what_was_painted_first() -> None:
    edit = painted("#1b", "make it warmer", action="adjust_parameters")
    chunks = await _stream(said("draw"), *painted("#1", "a fox"), said("warmer"), *edit, said("再画一次"))
    (call,) = arguments_of(chunks)
    assert call["prompt"] == "a fox [take 2]"
    assert words_of(chunks) == "好的，我来画 #1b 的一个新画法：a fox。从最初的描述重新画起，后来的调整不带过来。"


@each_case("wish", ["paint it again", "再画一次", "vary it", "给这张图做一个变体"])
async def test_a_picture_without_a_wish_is_answered_in_words(wish: str) -> None:
    upload = said("[Picture:history_0123abcd] (#3, uploaded by the user)", "hello")
    for history in ([upload], [upload, *painted("#3b", "make it warmer", action="adjust_parameters")]):
        chunks = await _stream(*history, said(wish, MARKED))
        assert ("I cannot paint this picture once more" in words_of(chunks)) or ("没法再画一次" in words_of(chunks))
        assert arguments_of(chunks) == []
