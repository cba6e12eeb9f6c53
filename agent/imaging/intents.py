"""What a call of `generate_image` is for, whether the planner was sure enough of it to paint, and how many
pictures the person's own words ask for.

And whether a model's words claim a picture that no call made: "I've created a picture for you!", 图片已经画好了, a call
spelled out as text, or a link to a picture that is nowhere. They are read only where the person wished for something
and no picture came: talk about pictures that are there must not be taken for a claim, so a question is never answered
by one.
"""

from __future__ import annotations

import re

from agent.imaging.arguments import GenerateImageArgs, ImageAction
from agent.pictures import Margins

UNSURE_AT = 0.5
"""A call as sure as this or less is not painted."""

_QUESTION = re.compile(r"[?？]|[吗呢](?=[\s。.!！…~～]*$)", re.MULTILINE)
_MASK_NOTE = re.compile(r"\[The person painted a mask over #\d{1,6}[a-z]{0,3}\.\]")


def action_of(arguments: GenerateImageArgs, *, has_mask: bool, is_edit: bool) -> ImageAction:
    """Return what is to be done.

    A mask makes it INPAINT, whatever the agent says, and so does an expansion, whose mask is the new part. Where the
    agent says nothing, it is a change when there is a picture to change (`is_edit`) and a new picture otherwise.
    """
    if has_mask:
        return ImageAction.INPAINT
    if arguments.action is None:
        return ImageAction.EDIT if is_edit else ImageAction.GENERATE
    return arguments.action


def is_unsure(arguments: GenerateImageArgs, *, has_mask: bool = False) -> bool:
    """Return whether the person must be asked first; a call that says nothing about it is taken as sure.

    With a mask what is to be done is known, whatever the agent calls it.
    """
    is_doubtful = arguments.confidence is not None and arguments.confidence <= UNSURE_AT
    return is_doubtful or (arguments.action is ImageAction.UNKNOWN and not has_mask)


def holds_question(text: str) -> bool:
    """Return whether the planner's words ask something: those before a call often only say what will be painted."""
    return _QUESTION.search(text) is not None


def mask_note(handle: str) -> str:
    """Return how the person's message tells the planner of the mask they painted over a picture."""
    return f"[The person painted a mask over {handle}.]"


def expansion_note(handle: str, width: int, height: int, margins: Margins) -> str:
    """Return how the person's message tells the planner how far a picture of this size shall grow on each side."""
    sides = (
        ("left", margins.left / width),
        ("right", margins.right / width),
        ("top", margins.top / height),
        ("bottom", margins.bottom / height),
    )
    told = ", ".join(f"{share:.0%} at the {side}" for side, share in sides if share)
    stays = "What it shows stays as it is; only the new part is painted."
    return f"[The person marked {handle} to be made larger beyond its edges: {told}. {stays}]"


def is_mask_note(text: str) -> bool:
    """Return whether a part of the person's message is the note of a mask."""
    return _MASK_NOTE.fullmatch(text) is not None


_PICTURE = (
    r"(?:picture|image|photo(?:graph)?|pic|drawing|sketch|painting|illustration|portrait|poster|logo|icon|artwork|"
    r"render(?:ing)?|wallpaper|scene|comic|sticker|banner|cover|design|version|variation|edit)s?"
)
_MADE = (
    r"(?:created|made|painted|drawn|generated|designed|rendered|produced|prepared|crafted|sketched|illustrated|edited|"
    r"changed|updated|modified|adjusted|added|removed|replaced|turned)"
)
_JUST = r"(?:\s+(?:just|now|already|successfully|also|gone ahead and|finished))*"
_CLAIM_EN = re.compile(
    rf"\b(?:I|we)(?:['’]ve|\s+have)?{_JUST}\s+(?:{_MADE}|drew)\b(?!\s+(?:no|nothing|neither)\b)"
    rf"|\bhere(?:['’]s|\s+is|\s+are|\s+you\s+go\b|\s+it\s+is\b|\s+they\s+are\b)(?:[^.!?\n]{{0,80}}\b{_PICTURE}\b|\s*[:!.]|$)"
    rf"|\b(?:the|your|this|that|both|all)\b[^.!?\n]{{0,40}}\b{_PICTURE}\b[^.!?\n]{{0,60}}\b(?:is|are|has\s+been|have\s+been)\s+"
    rf"(?:now\s+|already\s+|successfully\s+)*(?:{_MADE}|ready|done|finished|complete[d]?)\b"
    rf"|\b(?:enjoy|take a look at|behold)\s+(?:your|the|this)\b[^.!?\n]{{0,40}}\b{_PICTURE}\b",
    re.IGNORECASE,
)
# "I have not made", "I couldn't create", "if I made": no claim.
_DENIED_EN = re.compile(
    r"\b(?:no|not|never|nothing|without|(?:could|ca|was|is|are|has|have|did|do)n['’]t|cannot|unable|if|"
    r"once|when|before|will|would|shall|should|can|may|ready to)\b",
    re.IGNORECASE,
)
_PICTURE_ZH = r"(?:图片|图像|图|画|照片|插画|海报|头像|壁纸|标志|作品|漫画|封面|版本)"
_CLAIM_ZH = re.compile(
    r"(?:已经?|刚刚?|成功)?(?:为|帮|给|替)?(?:您|你|大家)?"
    r"(?:画|绘制|生成|制作|创作|创建|设计|做|渲染|修改|调整|改|换|去掉|添加)(?:好|完|出|成|完成)?(?:了|好啦|完毕|完成)"
    r"|已经?(?:为你|为您|帮你|帮您|给你|给您)?(?:画|绘制|生成|制作|创作|完成)"
    rf"|{_PICTURE_ZH}[^。！？\n]{{0,20}}(?:已经?|都)?(?:画好|生成好|做好|完成|改好|准备好)了?"
    rf"|(?:这是|这就是|下面是|以下是|请看|请欣赏)[^。！？\n]{{0,30}}{_PICTURE_ZH}"
)
_DENIED_ZH = re.compile(r"没|未|不|无法|如果|要是|等|之后|以后|会|将|可以|能|别")
_SPELLED = re.compile(
    r"\bgenerate_image\b|<\s*/?\s*(?:tool_call|function_call|function|tool_code|invoke)\b|```\s*tool_(?:code|call)"
    r"|\bdefault_api\b|\[/?TOOL_CALLS?\]|\{\s*\"(?:name|action|tool|function|prompt)\"\s*:",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"!\[[^\]]*\]\([^)]+\)|\]\((?:sandbox|attachment):[^)]*\)|<img\b|https?://\S+\.(?:png|jpe?g|webp|gif)\b"
    r"|\[(?:image|picture|图片|图像)(?::[^\]]*)?\](?!\()",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^.!?。！？;；\n]+(?:[.!?。！？;；]+|$|(?=\n))")


def claims_a_picture(answer: str, wish: str) -> bool:
    """Return whether the answer to the wish says, or looks as though, a picture was made; a wish that asks something is
    answered in words, whatever these are."""
    if holds_question(wish):
        return False
    return bool(_SPELLED.search(answer) or _LINKED.search(answer)) or any(
        _is_claim(match[0]) for match in _CLAUSE.finditer(answer)
    )


def _is_claim(clause: str) -> bool:
    """Return whether a sentence claims a picture; what is denied, wished or to come before the claim is none."""
    for claim, denied in ((_CLAIM_EN, _DENIED_EN), (_CLAIM_ZH, _DENIED_ZH)):
        found = claim.search(clause)
        if found is not None and not denied.search(clause[: found.end()]):
            return True
    return False


_NUMBERS = {
    **dict.fromkeys(("two", "twice", "both", "couple", "pair", "两", "二", "俩"), 2),
    **dict.fromkeys(("three", "thrice", "三", "仨"), 3),
    **dict.fromkeys(("four", "四"), 4),
}
# Neither a ratio, a size, a handle nor a part of a longer number.
_NUMBER = re.compile(
    r"(?<![\w.,:#/×-])(?:([2-4])(?![\d.,:/×%a-z-])|(two|twice|both|couple|pair|three|thrice|four)\b)"
    r"|([二三四两俩仨])(?=[张幅个份种款组版次])",
    re.IGNORECASE,
)


def named_number(text: str) -> int:
    """Return the largest number of pictures, 1 to 4, that the person's own words can have meant."""
    found = (next(filter(None, match.groups())).lower() for match in _NUMBER.finditer(text))
    return max((int(one) if one.isdigit() else _NUMBERS[one] for one in found), default=1)
