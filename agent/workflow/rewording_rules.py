"""Other words for a wish that a policy refused, by rules alone: pure, from the person's own words, in their language.

What is most often refused is left out, nothing is disguised. Where nothing of the wish is left, there is nothing to
offer.
"""

from __future__ import annotations

import re

from agent.errors import ErrorCode
from agent.providers.sketch.phrases import is_chinese

_LONGEST_WISH = 300
_MOST = 3
_LEAST_LETTERS = 3

_SEXUAL = r"naked|nude|nudity|topless|undressed|sexy|sexual|sexually|erotic|porn\w*|lingerie|nsfw|seductive(?:ly)?"
_GORY = r"bloody(?! mary)|bloodied|bleeding|gory"
_THINGS = (
    r"blood|gore|corpses?|dead bod(?:y|ies)|wounds?|(?<!glue )guns?|rifles?|pistols?|weapons?|bombs?|grenades?"
    r"|explosives?|suicide|terrorists?|cocaine|heroin|drugs"
)
# Each deed as it is said of whoever does it now: those words have another in their place.
_DOING = r"(?:kill|murder|stabb|behead|tortur)ing"
_DOES = r"(?:kill|murder|stab|behead|torture)s"
_DO = r"kill|murder|stab|behead|torture"
_DONE_ENGLISH = re.compile(r"\b(?:killed|murdered|stabbed|beheaded|tortured)\b", re.IGNORECASE)
# A thing goes with the words that lead to it and to nothing else; a word that only describes one goes alone.
_LEAD = r"(?:\b(?:with|holding|carrying|covered in|full of|and|of)\s+)?(?:\b(?:a|an|the|his|her|their|some)\s+)?"
_ENGLISH = (
    (re.compile(rf"{_LEAD}\b(?:{_THINGS})\b", re.IGNORECASE), ""),
    (re.compile(rf"\b(?:{_SEXUAL}|{_GORY})\b", re.IGNORECASE), ""),
    (re.compile(rf"\b(?:{_DOING})\b", re.IGNORECASE), "facing"),
    (re.compile(rf"\b(?:{_DOES})\b", re.IGNORECASE), "faces"),
    (re.compile(rf"\b(?:{_DO})\b", re.IGNORECASE), "face"),
)
_SEXUAL_ENGLISH = re.compile(rf"\b(?:{_SEXUAL})\b", re.IGNORECASE)
_YOUNG_ENGLISH = re.compile(
    r"\b(?:child(?:ren)?|kids?|girls?|boys?|teens?|teenagers?|schoolgirls?|schoolboys?|toddlers?|bab(?:y|ies)|minors?"
    r"|underage)\b",
    re.IGNORECASE,
)
_SEXUAL_CHINESE = re.compile(r"裸体|裸露|全裸|半裸|赤裸|性感|色情|情色|诱惑|内衣")
_IN_CHINESE = (
    (
        re.compile(
            r"(?:拿着|握着|带着|举着)?(?:一把|一支|一颗)?"
            r"(?:手枪|步枪|枪支|(?<![标水焊胶])枪|武器|炸弹|手榴弹|炸药)的?"
        ),
        "",
    ),
    (
        re.compile(rf"(?:{_SEXUAL_CHINESE.pattern}|血腥|鲜血|流血|血迹|尸体|伤口|自杀|恐怖分子|可卡因|海洛因|毒品)的?"),
        "",
    ),
    (re.compile(r"杀死|杀害|谋杀|砍头|刺杀|折磨"), "面对"),
)
_DONE_CHINESE = re.compile(r"被[^，。；]{0,6}(?:杀死|杀害|谋杀|砍头|刺杀|折磨)")
_YOUNG_CHINESE = re.compile(r"儿童|孩子|小孩|女孩|男孩|少女|少年|幼女|学生妹|婴儿|未成年")
_ASKING = re.compile(r"^(?:please\s+)?(?:draw|paint|make|create|generate|show)(?:\s+me)?\s+", re.IGNORECASE)
_ASKING_CHINESE = re.compile(r"^(?:请)?(?:帮我)?(?:画|绘制|生成|做)(?:一张|一幅|一个)?")

_CALM = ("{wish}, peaceful and suitable for everyone", "{wish}，画面平和，适合所有人观看")
_INVENTED = ("{wish}, as an illustration with invented characters, nobody real", "{wish}，插画风格，人物全部虚构")
_PLACE = ("Only the place and the mood of this, without people: {wish}", "只画场景和气氛，不要人物：{wish}")
_OWN_STYLE = ("{wish}, in a style of its own that follows no known work", "{wish}，用全新的风格，不参照任何已有作品")
_OWN_CAST = (
    "{wish}, with characters, names and signs that are all newly invented",
    "{wish}，人物、名称和标志全部重新设计",
)
_OTHER_VIEW = ("{wish}, seen from an unusual side and composed anew", "{wish}，换一个少见的视角，重新构图")
_PLAINLY = ("Draw one picture, without any words in answer: {wish}", "直接画一张图，不用文字回答：{wish}")

_FORMS: dict[ErrorCode, tuple[tuple[str, str], ...]] = {
    ErrorCode.PICTURE_RECITATION: (_OWN_STYLE, _OWN_CAST, _OTHER_VIEW),
    ErrorCode.TEXT_INSTEAD_OF_PICTURE: (_PLAINLY, _CALM, _INVENTED),
}
_OTHERWISE = (_CALM, _INVENTED, _PLACE)


def reworded_by_rule(wish: str, code: ErrorCode) -> tuple[str, ...]:
    """Return two or three other wishes, or none where nothing is left that could be asked for, or a sentence would
    break: of what was done to somebody no single word can be exchanged."""
    said = " ".join(wish.split())[:_LONGEST_WISH].strip(" .,;:!?。，；：！？")
    if _is_beyond_rewording(said) or _DONE_ENGLISH.search(said) or _DONE_CHINESE.search(said):
        return ()
    core = _without_touchy(said)
    if sum(char.isalnum() for char in core) < _LEAST_LETTERS:
        return ()
    language = 1 if is_chinese(said) else 0
    asking = (_ASKING, _ASKING_CHINESE)[language]
    offers = []
    for form in _FORMS.get(code, _OTHERWISE):
        text = form[language]
        # A form that says what to draw itself does not repeat it.
        inner = core if text.startswith("{wish}") else asking.sub("", core)
        offers.append(text.format(wish=inner))
    return tuple(offers[:_MOST])


def _is_beyond_rewording(said: str) -> bool:
    """Return whether the wish brings the young and the sexual together: no other words of it are offered."""
    is_sexual = _SEXUAL_ENGLISH.search(said) or _SEXUAL_CHINESE.search(said)
    return bool(is_sexual and (_YOUNG_ENGLISH.search(said) or _YOUNG_CHINESE.search(said)))


def _without_touchy(said: str) -> str:
    text = said
    for pattern, instead in (*_ENGLISH, *_IN_CHINESE):
        text = pattern.sub(instead, text)
    text = re.sub(r"\s+([,.;:])", r"\1", " ".join(text.split()))
    text = re.sub(r"([,;，；])(?:\s*[,;，；])+", r"\1", text)
    return text.strip(" .,;:，；。：")
