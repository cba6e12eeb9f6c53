"""What the sketch planner says, in English and Chinese."""

from __future__ import annotations

from agent.providers.sketch.operations import (
    NORMAL_AMOUNT,
    AddText,
    Axis,
    Crop,
    Flip,
    Operation,
    ResizeBy,
    ResizeTo,
    Rotate,
    Tone,
    ToneKind,
)
from agent.providers.sketch.wishes import AskBack, Draw, Edit, Reason, Talk, Topic, Wish

_ABILITIES = (
    "I am the built-in sketch model: no key, no network, all on this machine. I paint labelled sketches from your words"
    " (“draw a red fox in the snow, 16:9”), and I edit real pictures: brighter, darker, warmer, cooler, contrast,"
    " saturation, black and white, sepia, blur, sharpen, rotate, flip, crop, resize, invert, add text. Several at once"
    " are fine. For real pictures and real answers, add a Gemini key in Settings.",
    "我是内置的草图模型：不需要密钥，不联网，全部在本机完成。我可以按您的描述画带标注的草图（例如“画一只雪中的红狐，16:9”），"
    "也能真正地编辑图片：调亮、调暗、变暖、变冷、对比度、饱和度、黑白、怀旧、模糊、锐化、旋转、翻转、裁剪、缩放、反色、添加文字，"
    "一句话里可以同时提几项。想要真实的图片和回答，请在设置中添加 Gemini 密钥。",
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
_TONES: dict[ToneKind, tuple[str, str]] = {
    ToneKind.BRIGHTER: ("brighter", "调亮"),
    ToneKind.DARKER: ("darker", "调暗"),
    ToneKind.WARMER: ("warmer", "变暖"),
    ToneKind.COOLER: ("cooler", "变冷"),
    ToneKind.MORE_CONTRAST: ("more contrast", "提高对比度"),
    ToneKind.LESS_CONTRAST: ("less contrast", "降低对比度"),
    ToneKind.MORE_SATURATION: ("more saturated", "提高饱和度"),
    ToneKind.LESS_SATURATION: ("less saturated", "降低饱和度"),
    ToneKind.GRAYSCALE: ("black and white", "转为黑白"),
    ToneKind.SEPIA: ("sepia", "怀旧色调"),
    ToneKind.INVERT: ("colours inverted", "反色"),
    ToneKind.BLUR: ("blurred", "模糊"),
    ToneKind.SHARPEN: ("sharpened", "锐化"),
}
_WITHOUT_AMOUNT = {ToneKind.GRAYSCALE, ToneKind.SEPIA, ToneKind.INVERT}


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
    count = wish.number_of_images or 1
    if in_chinese:
        amount = f"{count} 张草图" if count > 1 else "一张草图"
        return f"好的，我来画{amount}：{wish.subject}。"
    amount = f"{count} sketches" if count > 1 else "a sketch"
    return f"Here comes {amount}: {wish.subject}."


def _about_edit(wish: Edit, *, in_chinese: bool) -> str:
    parts = [_describe(operation, in_chinese=in_chinese) for operation in wish.operations]
    target = wish.handles[0] if wish.handles else ""
    if in_chinese:
        sentence = f"好的，正在修改{' ' + target if target else '图片'}：{'、'.join(parts)}。"
        return sentence + (_left_out_zh(wish) if wish.left_out else "")
    sentence = f"Changing {target or 'the picture'}: {', '.join(parts)}."
    return sentence + (f" I leave out “{wish.left_out[0]}”: that needs a Gemini key." if wish.left_out else "")


def _left_out_zh(wish: Edit) -> str:
    return f"“{wish.left_out[0]}”需要 Gemini 密钥，这次先不做。"


def _describe(operation: Operation, *, in_chinese: bool) -> str:
    language = int(in_chinese)
    match operation:
        case Tone(kind, amount):
            return _amount(kind, amount, in_chinese=in_chinese)
        case Rotate(degrees):
            return _turned(degrees, in_chinese=in_chinese)
        case Flip(axis):
            is_horizontal = axis is Axis.HORIZONTAL
            return (("mirrored", "左右翻转") if is_horizontal else ("flipped top to bottom", "上下翻转"))[language]
        case Crop(width, height):
            return (f"cropped to {width}:{height}", f"裁剪为 {width}:{height}")[language]
        case ResizeTo(wide, high):
            size = f"{wide or '…'}×{high or '…'}"
            return (f"resized to {size}", f"尺寸改为 {size}")[language]
        case ResizeBy(factor):
            return (f"scaled to {factor * 100:.0f}%", f"缩放到 {factor * 100:.0f}%")[language]
        case AddText(text):
            return (f"with the words “{text}”", f"写上“{text}”")[language]


def _turned(degrees: float, *, in_chinese: bool) -> str:
    goes_left = degrees > 180
    shown = f"{360 - degrees if goes_left else degrees:g}°"
    if degrees == 180:
        return f"旋转 {shown}" if in_chinese else f"rotated {shown}"
    if in_chinese:
        return f"{'逆' if goes_left else '顺'}时针旋转 {shown}"
    return f"rotated {shown} to the {'left' if goes_left else 'right'}"


def _amount(kind: ToneKind, amount: float, *, in_chinese: bool) -> str:
    words = _TONES[kind][int(in_chinese)]
    if kind in _WITHOUT_AMOUNT or amount == NORMAL_AMOUNT:
        return words
    if in_chinese:
        return words + ("一点" if amount < NORMAL_AMOUNT else "很多")
    return ("a little " if amount < NORMAL_AMOUNT else "much ") + words
