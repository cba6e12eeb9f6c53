"""Whether a model's words claim a picture that no call made: "I've created a picture for you!", 图片已经画好了, a call
spelled out as text, or a link to a picture that is nowhere.

They are read only where the person wished for something and no picture came: talk about pictures that are there must
not be taken for a claim, so a question is never answered by one.
"""

from __future__ import annotations

import re

from agent.imaging.intents import holds_question

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
