"""What the sketch planner says, in English and Chinese, and how it fills a JSON form."""

from __future__ import annotations

from pydantic import JsonValue

from agent.adjusting import A_BIT, MUCH, PLAIN, AdjustmentChange, ChangeKind, describe
from agent.providers.sketch.operations import (
    AddText,
    Effect,
    EffectKind,
    Erase,
    Fill,
    Operation,
    PatternKind,
    Recolour,
    ResizeBy,
    ResizeTo,
    Restyle,
)
from agent.providers.sketch.wishes import AskBack, Draw, Edit, Reason, Talk, Topic, Wish

_ABILITIES = (
    "I am the built-in sketch model: no key, no network, all on this machine. I paint labelled sketches from your words"
    " (“draw a red fox in the snow, 16:9”), and I edit real pictures: brighter, darker, warmer, cooler, contrast,"
    " saturation, black and white, sepia, blur, sharpen, rotate, flip, crop, resize, invert, add text. Several at once"
    " are fine. Inside a mask that you paint I also recolour, erase, pixelate and fill with patterns."
    " For real pictures and real answers, add a Gemini key in Settings.",
    "我是内置的草图模型：不需要密钥，不联网，全部在本机完成。我可以按您的描述画带标注的草图（例如“画一只雪中的红狐，16:9”），"
    "也能真正地编辑图片：调亮、调暗、变暖、变冷、对比度、饱和度、黑白、怀旧、模糊、锐化、旋转、翻转、裁剪、缩放、反色、添加文字，"
    "一句话里可以同时提几项。在您涂出的蒙版里，我还能换颜色、擦除、打马赛克和填充图案。"
    "想要真实的图片和回答，请在设置中添加 Gemini 密钥。",
)
_TOPICS: dict[Topic, tuple[str, str]] = {
    Topic.GREETING: (
        "Hello! I am the built-in sketch model. Tell me what to draw, or add a picture and say what to change.",
        "你好！我是内置的草图模型。告诉我想画什么，或者添加一张图片并说说要怎么改。",
    ),
    Topic.THANKS: (
        "Glad to help. Tell me what to draw or change next.",
        "不客气。接下来想画什么或改什么，直接告诉我。",
    ),
    Topic.ABILITIES: _ABILITIES,
    Topic.QUESTION: (
        "I cannot answer questions: the built-in sketch model only draws sketches and edits pictures."
        " Add a Gemini key in Settings and the real model will answer.",
        "这个问题我答不了：内置的草图模型只会画草图和编辑图片。在设置中添加 Gemini 密钥后，真正的模型就能回答。",
    ),
    Topic.SEARCH: (
        "Searching the web needs a Gemini key: the built-in sketch model never uses the network."
        " Add one in Settings, or tell me what to draw and I will sketch it from your words.",
        "联网搜索需要 Gemini 密钥：内置的草图模型从不联网。"
        "请在设置中添加密钥，或者直接告诉我想画什么，我按您的描述画草图。",
    ),
    Topic.BEYOND: (
        "That change needs a model that sees: with a Gemini key in Settings it can be done."
        " I can change the whole picture: light, colour, sharpness, rotation, crop, size, added text.",
        "这样的修改需要能看懂图片的模型：在设置中添加 Gemini 密钥就可以。"
        "我能调整整张图片：明暗、色彩、清晰度、旋转、裁剪、尺寸和文字。",
    ),
    Topic.NEVER_PAINTED: (
        "I cannot paint this picture once more: I find no words here that it was painted from, and I cannot see what"
        " it shows. I can change it as it is (“warmer”, “more contrast”, “crop to square”), or tell me in words what to"
        " paint.",
        "这张图我没法再画一次：这里找不到画它时用的描述，而我又看不到图里有什么。"
        "我可以直接调整它（“暖一点”“对比度高一点”“裁成方形”），或者用文字告诉我想画什么。",
    ),
    Topic.MASK: (
        "Inside a mask I can recolour (“make it red”), erase (“remove this”), blur or pixelate, change light and"
        " colour, fill with stripes, dots or checks, and write words: painting something else there needs a model"
        " that sees, with a Gemini key in Settings.",
        "在蒙版里我可以换颜色（“改成蓝色”）、擦除（“去掉”）、模糊或打马赛克、调整明暗和色彩、填充条纹、波点或格子，以及写字："
        "要在里面画别的东西，需要能看懂图片的模型，请在设置中添加 Gemini 密钥。",
    ),
    Topic.BEYOND_EDGES: (
        "Beyond the edges I can only continue what is there (“extend it”): painting something new needs a model that"
        " sees, with a Gemini key in Settings.",
        "在边缘之外我只能延续已有的画面（“向外延伸”）："
        "要画新的内容，需要能看懂图片的模型，请在设置中添加 Gemini 密钥。",
    ),
}
_QUESTIONS: dict[Reason, tuple[str, str]] = {
    Reason.EMPTY: (
        "What would you like to see? For example: “draw a lighthouse at sunset”.",
        "想看到什么画面？例如：“画一座夕阳下的灯塔”。",
    ),
    Reason.PICTURE_ONLY: (
        "I have your picture. What shall I change? For example: “a bit brighter, then crop to square”.",
        "图片收到了。想怎么改？例如：“亮一点，再裁成方形”。",
    ),
    Reason.NO_PICTURE: (
        "Which picture? Please add one with the button, by drag and drop or by pasting, and I will change it.",
        "要改哪张图片？请用按钮、拖放或粘贴添加一张，我就可以开始改。",
    ),
    Reason.NO_SUBJECT: (
        "Gladly. What should the picture show? For example: “a red fox in the snow”.",
        "好的，想画什么？例如：“雪中的红狐”。",
    ),
    Reason.SHAPE: (
        "Which shape shall I crop it to: square, 16:9, 4:3 or another ratio?",
        "要裁成什么比例：方形、16:9、4:3，还是别的？",
    ),
    Reason.SIZE: (
        "To what size? For example: “800x600”, “50%” or “twice as large”.",
        "要改成多大？例如：“800×600”、“50%”或“放大两倍”。",
    ),
    Reason.TEXT: (
        "Which words shall I write? Please put them in quotation marks: add the text “Hello” at the top.",
        "要写什么字？请放在引号里，例如：在顶部加上文字“你好”。",
    ),
    Reason.UNCLEAR: (
        "I did not quite understand. Shall I draw something (“draw a cat on a roof”) or change a picture"
        " (“warmer, and crop to square”)?",
        "我没有完全明白。是要画一张图（“画一只屋顶上的猫”），还是修改图片（“暖一点，裁成方形”）？",
    ),
}
_CHANGES: dict[ChangeKind, tuple[str, str]] = {
    ChangeKind.BRIGHTER: ("brighter", "调亮"),
    ChangeKind.DARKER: ("darker", "调暗"),
    ChangeKind.WARMER: ("warmer", "变暖"),
    ChangeKind.COOLER: ("cooler", "变冷"),
    ChangeKind.MORE_CONTRAST: ("more contrast", "提高对比度"),
    ChangeKind.LESS_CONTRAST: ("less contrast", "降低对比度"),
    ChangeKind.MORE_SATURATION: ("more saturated", "提高饱和度"),
    ChangeKind.LESS_SATURATION: ("less saturated", "降低饱和度"),
    ChangeKind.BLACK_AND_WHITE: ("black and white", "转为黑白"),
    ChangeKind.SHARPER: ("sharper", "锐化"),
    ChangeKind.SOFTER: ("softer", "柔化"),
    ChangeKind.TURNED_RIGHT: ("rotated {amount:g}° to the right", "顺时针旋转 {amount:g}°"),
    ChangeKind.TURNED_LEFT: ("rotated {amount:g}° to the left", "逆时针旋转 {amount:g}°"),
    ChangeKind.FLIPPED_HORIZONTALLY: ("mirrored", "左右翻转"),
    ChangeKind.FLIPPED_VERTICALLY: ("flipped top to bottom", "上下翻转"),
    ChangeKind.CROPPED_TO_RATIO: ("cropped to {ratio}", "裁剪为 {ratio}"),
    ChangeKind.CROPPED: ("cropped", "裁剪"),
}
_EFFECTS: dict[EffectKind, tuple[str, str]] = {
    EffectKind.SEPIA: ("sepia", "怀旧色调"),
    EffectKind.INVERT: ("colours inverted", "反色"),
    EffectKind.BLUR: ("blurred", "模糊"),
    EffectKind.PIXELATE: ("pixelated", "打马赛克"),
}
_PATTERNS: dict[PatternKind, tuple[str, str]] = {
    PatternKind.PLAIN: ("filled with one colour", "填充纯色"),
    PatternKind.STRIPES: ("filled with stripes", "填充条纹"),
    PatternKind.ACROSS: ("filled with horizontal stripes", "填充横条纹"),
    PatternKind.UPRIGHT: ("filled with vertical stripes", "填充竖条纹"),
    PatternKind.DOTS: ("filled with dots", "填充波点"),
    PatternKind.CHECKS: ("filled with checks", "填充格子"),
}
_GRADED = frozenset({EffectKind.BLUR, EffectKind.PIXELATE})
_COUNTED = frozenset(
    {
        ChangeKind.BRIGHTER,
        ChangeKind.DARKER,
        ChangeKind.WARMER,
        ChangeKind.COOLER,
        ChangeKind.MORE_CONTRAST,
        ChangeKind.LESS_CONTRAST,
        ChangeKind.MORE_SATURATION,
        ChangeKind.LESS_SATURATION,
        ChangeKind.SHARPER,
        ChangeKind.SOFTER,
    }
)


def reply(wish: Wish, *, in_chinese: bool) -> str:
    """Return the planner's sentence for a wish."""
    language = int(in_chinese)
    match wish:
        case Talk(topic):
            return _TOPICS[topic][language]
        case AskBack(reason):
            return _QUESTIONS[reason][language]
        case Draw():
            return _about_drawing(wish, in_chinese=in_chinese)
        case Edit():
            return _about_edit(wish, in_chinese=in_chinese)


def closing(problem: str, *, in_chinese: bool) -> str:
    """Return what is said after a tool has answered; `problem` is its error, empty when all went well."""
    if problem:
        return f"这一步没有成功：{problem}" if in_chinese else f"That did not work: {problem}"
    return "好了。想再改哪里，直接告诉我。" if in_chinese else "Done. Tell me what to change next."


def _about_drawing(wish: Draw, *, in_chinese: bool) -> str:
    if wish.retaken:
        return _about_retake(wish, in_chinese=in_chinese)
    count = wish.number_of_images or 1
    if in_chinese:
        amount = f"{count} 张草图" if count > 1 else "一张草图"
        return f"好的，我来画{amount}：{wish.subject}。"
    amount = f"{count} sketches" if count > 1 else "a sketch"
    return f"Here comes {amount}: {wish.subject}."


def _about_retake(wish: Draw, *, in_chinese: bool) -> str:
    count = wish.number_of_images or 1
    if in_chinese:
        kind = "变体" if wish.take.is_variation else "新画法"
        said = f"好的，我来画 {wish.retaken} 的{f'{count} 个' if count > 1 else '一个'}{kind}：{wish.subject}。"
        return said + ("从最初的描述重新画起，后来的调整不带过来。" if wish.was_changed else "")
    kind = "variation" if wish.take.is_variation else "take"
    shown = f"{count} {kind}s" if count > 1 else f"{'a' if wish.take.is_variation else 'another'} {kind}"
    said = f"Here comes {shown} of {wish.retaken}: {wish.subject}."
    return said + (" It starts from the first wish, without the changes made since." if wish.was_changed else "")


def _about_edit(wish: Edit, *, in_chinese: bool) -> str:
    parts = [part for operation in wish.operations for part in _described(operation, in_chinese=in_chinese)]
    target = wish.handles[0] if wish.handles else ""
    if in_chinese:
        sentence = f"好的，正在修改{' ' + target if target else '图片'}：{'、'.join(parts)}。"
        return sentence + (f"“{wish.left_out[0]}”需要 Gemini 密钥，这次先不做。" if wish.left_out else "")
    sentence = f"Changing {target or 'the picture'}: {', '.join(parts)}."
    return sentence + (f" I leave out “{wish.left_out[0]}”: that needs a Gemini key." if wish.left_out else "")


def _described(operation: Operation, *, in_chinese: bool) -> list[str]:
    language = int(in_chinese)
    match operation:
        case Effect(kind, amount):
            words = _EFFECTS[kind][language]
            return [_degree(words, amount, in_chinese=in_chinese) if kind in _GRADED else words]
        case ResizeTo(wide, high):
            if wide and high:
                return [(f"resized to {wide}×{high}", f"尺寸改为 {wide}×{high}")[language]]
            side = ("wide", "宽度") if wide else ("high", "高度")
            return [(f"resized to {wide or high} px {side[0]}", f"{side[1]}改为 {wide or high} 像素")[language]]
        case ResizeBy(factor):
            return [(f"scaled to {factor * 100:.0f}%", f"缩放到 {factor * 100:.0f}%")[language]]
        case AddText(text):
            return [(f"with the words “{text}”", f"写上“{text}”")[language]]
        case Restyle(name, chinese_name):
            return [(f"drawn by rules in the look of “{name}”", f"按规则画成“{chinese_name}”的样子")[language]]
        case Recolour():
            return [("another colour", "换颜色")[language]]
        case Erase():
            return [("filled in from around it", "用周围的画面补上")[language]]
        case Fill(kind):
            return [_PATTERNS[kind][language]]
        case _:
            return [_changed(change, in_chinese=in_chinese) for change in describe(operation)]


def _changed(change: AdjustmentChange, *, in_chinese: bool) -> str:
    words = _CHANGES[change.kind][int(in_chinese)].format(amount=change.amount, ratio=change.ratio)
    if change.kind in _COUNTED:
        return _degree(words, round(change.amount), in_chinese=in_chinese)
    return f"{'旋转' if in_chinese else 'rotated'} 180°" if change.amount == 180 else words


def _degree(words: str, amount: int, *, in_chinese: bool) -> str:
    """Return the words with how much: as people say it where the amount is one of words, else as a number."""
    patterns = {PLAIN: ("{}", "{}"), A_BIT: ("a little {}", "{}一点"), MUCH: ("much {}", "{}很多")}
    english, chinese = patterns.get(amount, (f"{{}} by {amount}", f"{{}} {amount}"))
    return (chinese if in_chinese else english).format(words)


# ---- forms

_MAX_DEPTH = 12
_TITLES = {"title", "prompt", "prompt_draft", "subject", "query", "name", "summary"}
_MAX_TITLE_CHARACTERS = 60


def fill_form(schema: dict[str, JsonValue], text: str) -> JsonValue:
    """Return a value of the schema: `text` where a title or prompt is asked for, else the least that is allowed."""
    return _fill(schema, text, "", schema.get("$defs") or schema.get("definitions"), 0)


def _fill(schema: JsonValue, text: str, name: str, definitions: JsonValue, depth: int) -> JsonValue:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    chosen = _resolved(schema, definitions)
    if "const" in chosen:
        return chosen["const"]
    options = chosen.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = _kind(chosen)
    if kind == "object":
        return _fill_object(chosen, text, definitions, depth)
    if kind == "array":
        count = chosen.get("minItems")
        items = chosen.get("items")
        return [_fill(items, text, name, definitions, depth + 1) for _ in range(count if isinstance(count, int) else 0)]
    if kind in {"integer", "number"}:
        least = chosen.get("minimum")
        return least if isinstance(least, int | float) else 0
    return {"boolean": False, "null": None}.get(kind, _words(chosen, text, name))


def _fill_object(schema: dict[str, JsonValue], text: str, definitions: JsonValue, depth: int) -> JsonValue:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: _fill(inner, text, name, definitions, depth + 1) for name, inner in properties.items()}


def _words(schema: dict[str, JsonValue], text: str, name: str) -> str:
    words = " ".join(text.split())[:_MAX_TITLE_CHARACTERS] if name in _TITLES else ""
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if isinstance(longest, int):
        words = words[:longest]
    return words.ljust(shortest, "-") if isinstance(shortest, int) else words


def _resolved(schema: dict[str, JsonValue], definitions: JsonValue) -> dict[str, JsonValue]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, dict):
        found = definitions.get(reference.rsplit("/", 1)[-1])
        return found if isinstance(found, dict) else {}
    for word in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return _resolved(choices[0], definitions)
    return schema


def _kind(schema: dict[str, JsonValue]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if isinstance(kind, str):
        return kind.lower()
    return "object" if "properties" in schema else "string"
