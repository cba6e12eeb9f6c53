"""Whether words ask to go back to an earlier picture, or forward again: "undo that", "back to #1, but warmer", 撤销.

The whole message has to be such a request, or begin with one: what is asked for besides it is returned as it was
written. "Put it back on the shelf", "redo the sky" and "back to school" are other requests, and left alone.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from agent.events import TargetMove
from agent.pictures import parse_handle

_MOST_CHARACTERS = 2000


@dataclass(frozen=True)
class UndoWish:
    """What is asked for, and what of the message is left (`rest`).

    Of `back_to` one of `handle`, `place` (from 1) and neither, for the original, says where to. `is_doubtful` when the
    words mean it only where there is something to redo: "redo it" is otherwise a picture painted once more.
    """

    move: TargetMove
    steps: int = 1
    handle: str = ""
    place: int = 0
    rest: str = ""
    is_doubtful: bool = False


# English

_LEAD = (
    r"(?:(?:no|nope|nah|oops|ups|hm+|ok(?:ay)?|wait|actually|please|pls|sorry|hey|well|and|now|then|just|maybe|better"
    r"|ugh|(?:can|could|would|will) (?:you|we)|let'?s|let us|i want to|i'?d like to|i would like to|on second thought"
    r")[\s,.!]+)*"
)
_PICTURE = r"(?:picture|image|photo|pic|version|one|variant|result|drawing|sketch|painting|state|step|attempt|upload)"
_CHANGE = r"(?:change|edit|step|thing|adjustment|move|action|modification|operation|one)"
_COUNTS = {"one": 1, "a": 1, "once": 1, "two": 2, "twice": 2, "three": 3, "four": 4, "five": 5}
_COUNT = r"(?:\d|one|two|three|four|five)"
_HOW_IT_WAS = r"(?:how|the way|as|like|what) it (?:was|looked|used to be)(?: like)?(?: before)?"
_UNDO = (
    rf"(?:undo|revert|cancel)(?: (?:it|this|that)| (?:that|the|my|your)(?: last| latest| previous)? {_CHANGE}"
    r"| what (?:you|i|we) (?:just )?did)?(?: (?P<times>once|twice))?"
    rf"|undo (?:the last )?(?P<count>{_COUNT}) (?:{_CHANGE}s?|times?)"
    rf"|(?:go |step |move )?back (?P<back>a|{_COUNT}) (?:steps?|times?|versions?)"
    rf"|(?:go )?(?P<ago>a|{_COUNT}) steps? back"
    rf"|(?:put|take|change|turn|switch|roll|bring|set) (?:it|that|this|everything) back(?: (?:to )?{_HOW_IT_WAS})?"
    rf"|roll back|take back|(?:go |step )?back|(?:make|leave) it {_HOW_IT_WAS}"
    rf"|(?:go |change it |put it )?back to {_HOW_IT_WAS}"
    r"|(?:(?:go|get|switch|return|revert|change|roll) )?(?:it )?(?:back )?to (?:the )?(?:previous|prior|last|earlier)"
    rf" {_PICTURE}"
    r"|(?:use|take|show(?: me)?|give me|restore|i (?:prefer|preferred|like|liked)) the (?:previous|prior|earlier)"
    rf" {_PICTURE}"
    r"|i (?:liked|preferred) (?:it|the one) (?:better |more )?before|it was better before"
    r"|the (?:previous|prior) (?:one|version|picture)(?: was better)?|the one before(?: (?:that|this))?(?: was better)?"
    r"|(?:ctrl|cmd|control|command) ?[+-]? ?z"
)
_REDO = (
    rf"redo(?: (?:the|my|that)(?: last)? {_CHANGE}| what (?:you|i|we) (?:just )?undid)?(?: (?P<redo_times>once|twice))?"
    r"|(?:undo|revert|cancel) (?:the|that|this|my|your)(?: last)? (?:undo|undoing)|un-?undo(?: it| that)?"
    r"|(?:go|step) forward(?: again)?(?: (?:a|one) step)?|(?:a|one) step forward"
    r"|(?:reapply|re-apply) (?:it|that|the(?: last)? change)|(?:put|bring) (?:the|that) change back(?: in)?"
    r"|(?:ctrl|cmd|control|command) ?[+-]? ?y"
    r"|(?P<doubtful>redo (?:it|this|that)|bring (?:it|that) back)"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDINAL = rf"(?:{'|'.join(_ORDINALS)}|\d{{1,2}}(?:st|nd|rd|th))"
_ORIGINAL = (
    rf"(?:the |my )?(?:very )?(?:original|initial|uploaded|untouched|unedited)(?: {_PICTURE})?|the (?:start|beginning)"
    rf"|the {_PICTURE} (?:that )?i (?:uploaded|sent|added)|my (?:own )?(?:photo|picture|upload|image)"
    r"|(?:how|the way|what) it (?:was|looked)(?: like)?"
    r" (?:originally|at first|initially|(?:in|at) the (?:start|beginning))"
)
_NAMED = (
    r"(?:(?:(?:the )?(?:picture|image|photo|number|version|no\.?) ?)?(?P<handle>#\d{1,6}[a-z]{0,3})"
    r"|(?:the )?(?:picture|image|photo|number|no\.?) (?P<number>\d{1,6}[a-z]{0,2})"
    rf"|(?:the )?(?:very )?(?P<ordinal>{_ORDINAL})(?: {_PICTURE})?|(?P<original>{_ORIGINAL}))"
)
_BACK_TO = (
    r"(?:(?:(?:go|switch|jump|get|return|revert|reset|roll|change|move|step|put|set|turn|bring|take)(?: it| me| us)? )?"
    rf"(?:all the way )?back to|(?:switch|return|revert|jump|go|reset|restore)(?: it)? to) {_NAMED}"
)
_USE = (
    r"(?:(?:use|take|pick|choose|select|restore|try|continue (?:with|from)|go on (?:with|from)|carry on (?:with|from)"
    r"|work (?:on|with|from)|start (?:again |over )?(?:from|with)|i (?:prefer|preferred))"
    rf" {_NAMED.replace('?P<', '?P<use_')}"
    rf"|{_NAMED.replace('?P<', '?P<again_')} (?:again|was better)|i liked {_NAMED.replace('?P<', '?P<liked_')} better"
    r"|(?P<all>(?:undo|revert|reset|discard|remove) (?:everything|all(?: (?:of )?(?:the|my|your|it))?"
    r"(?: (?:changes|edits|adjustments))?)))"
)
_TAIL = r"(?:[\s,]*(?:again|instead|now|please|pls|after all|back|for me|thanks?|thank you|then))*[\s.!?…]*"
_THEN = r"(?:\s*[,.;:!]\s*|\s*-+\s+|\s+(?=(?:and|then|but)\b))(?:(?:and|then|but|now|instead|also)\s+)*"
_REST = rf"(?:{_THEN}(?P<rest>(?!(?:on|in|into|onto|at|under|off|to)\b|and #)\w.*))?"
_ENGLISH = tuple(
    (move, re.compile(rf"{_LEAD}(?:{words}){_TAIL}{_REST}", re.IGNORECASE | re.DOTALL))
    for move, words in (("undo", _UNDO), ("redo", _REDO), ("back_to", _BACK_TO), ("back_to", _USE))
)

# Chinese

_LEAD_ZH = (
    "(?:(?:不对|不好|不行|算了|哎呀|等等|等一下|嗯+|好的?|那么?|还是|请你?|麻烦你?|帮我|给我|能不能|可以|能|我想要?|我要|就|先|快|你|把它|把图片?"
    "|把这张图?|把这个)[\\s,。!]*)*"
)
_JUST_ZH = (
    "(?:刚才|刚刚|上一?次|上一步|上一个|最后一?步?|这次|那次|这一步|这个|那个|最近)?做?(?:的|那个|那步|那次|那一步)*"
)
_CHANGE_ZH = "(?:修改|改动|操作|更改|编辑|调整|变化|步骤|一步|效果)"
_NUMERALS = "一二三四五六七八九十"
_COUNT_ZH = f"(?:[{_NUMERALS}两]|\\d)"
_STATE_ZH = "(?:的?(?:样子|状态|那张|那个|那版|版本|图片?|照片|时候|那样))?"
_UNDO_ZH = (
    f"(?:撤销|撤消|撤回|回退|回撤|还原)(?:掉|一下)?{_JUST_ZH}{_CHANGE_ZH}?|取消{_JUST_ZH}{_CHANGE_ZH}"
    f"|(?:撤销|撤消|撤回|回退|退回?|返回|后退|倒退)(?P<count>{_COUNT_ZH})(?:步|次|下)"
    f"|(?:返回|回到|退回?到?|恢复到?|还原到?|切回|用回?|换回)?(?:上|前)一?(?:步|个?版本?|个状态)|"
    f"(?:返回|回到|退回?到?|恢复到?|还原到?|切回|用回?|换回)(?:上|前)一?[张幅]{_STATE_ZH}"
    f"|(?:改|变|换|弄|调|退|撤|放)回(?:去|来|之前|原样|刚才){_STATE_ZH}|恢复(?:成|为|到)?(?:之前|刚才|修改前|改之前|原样){_STATE_ZH}"
    f"|(?:回到|返回|退回到?|变回|改回)(?:之前|刚才|修改前|改之前){_STATE_ZH}"
    f"|(?<=还是)用?(?:之前|刚才|改之前|上一张|前一张){_STATE_ZH}的?(?:比较|更)?(?:好看?|吧)|(?:不要|取消)这[个次]?{_CHANGE_ZH}"
)
_REDO_ZH = (
    f"重做(?:一下|一步|上一步)?{_JUST_ZH}{_CHANGE_ZH}?|恢复{_JUST_ZH}(?:撤销|撤回|取消)(?:掉)?的?{_CHANGE_ZH}?"
    f"|(?:撤销|取消|撤回){_JUST_ZH}(?:撤销|撤回|还原)(?:操作)?|(?:前进|向前)一步"
)
_ORIGINAL_ZH = (
    f"(?:原图|原片|原来{_STATE_ZH}(?:的)?|原始(?:的)?(?:图片?|版本|照片|状态)?|最(?:初|开始|早){_STATE_ZH}(?:的)?|一开始{_STATE_ZH}(?:的)?"
    "|我(?:上传|发|传)的(?:那张)?(?:图片?|照片|原图)?|原状|原样)"
)
_NAMED_ZH = (
    f"(?:(?:图片?|照片)? ?(?P<handle>#\\d{{1,6}}[a-z]{{0,3}})|(?:图片?|照片)(?P<number>\\d{{1,6}}[a-z]{{0,2}})"
    f"|第(?P<ordinal>[{_NUMERALS}]|\\d{{1,2}})[张幅个版]|(?P<original>{_ORIGINAL_ZH}))"
)
_BACK_TO_ZH = (
    "(?:(?:[返退换改切跳变倒撤]?回|恢复|还原|切换|跳|回退|撤销)(?:到|成|为)?|用回|(?:重新|继续|改|再)?用|选|从)(?:一下)?"
    f"{_NAMED_ZH}{_STATE_ZH}(?:重新|继续|接着)?(?:开始|修改|改|来改|来)?"
    f"|{_NAMED_ZH.replace('?P<', '?P<liked_')}{_STATE_ZH}(?:比较|更)好(?:看)?"
    f"|(?P<all>(?:撤销|取消|还原|去掉)(?:所有|全部|一切)的?{_CHANGE_ZH})"
)
_TAIL_ZH = "(?:[\\s,]*(?:一下|吧|了|好了|好吗|可以吗|行吗|谢谢你?|谢啦|啊|呀|哦))*[\\s。.!?~…]*"
_THEN_ZH = "(?:[\\s,。;、!]+(?:然后|接着|并且|并|同时|但是?)?|(?=再|但)|(?:然后|接着|并且|并|同时))"
_CHINESE = tuple(
    (move, re.compile(f"{_LEAD_ZH}(?:{words}){_TAIL_ZH}(?:{_THEN_ZH}(?P<rest>\\S.*))?", re.IGNORECASE | re.DOTALL))
    for move, words in (("redo", _REDO_ZH), ("undo", _UNDO_ZH), ("back_to", _BACK_TO_ZH))
)

_SIGNS = str.maketrans({"，": ",", "；": ";", "’": "'", "！": "!", "？": "?"})
_POLITE_ONLY = re.compile(
    r"(?:please|pls|thanks?|thank you|thx|ok(?:ay)?|谢谢你?|多谢|拜托|麻烦了?|好吗|吧|[\s,.!?。~…])*", re.IGNORECASE
)


def read_undo(text: str) -> UndoWish | None:
    """Return what the words ask to go back or forward to, and what else they ask for; None for any other request."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS).strip()
    if not plain or len(plain) > _MOST_CHARACTERS:
        return None
    for move, pattern in (*_ENGLISH, *_CHINESE):
        match = pattern.fullmatch(plain)
        if match is not None:
            return _wish(move, match)
    return None


def _wish(move: str, match: re.Match[str]) -> UndoWish | None:
    groups = {name: value for name, value in match.groupdict().items() if value}
    rest = groups.pop("rest", "").strip()
    rest = "" if _POLITE_ONLY.fullmatch(rest) else rest
    named = {name.rpartition("_")[2]: value for name, value in groups.items()}
    match move:
        case "undo":
            counted = next((named[name] for name in ("times", "count", "back", "ago") if name in named), "one")
            return UndoWish("undo", steps=_count(counted), rest=rest)
        case "redo":
            return UndoWish("redo", steps=_count(named.get("times", "one")), rest=rest, is_doubtful="doubtful" in named)
        case _:
            return _back_to(named, rest)


def _back_to(named: dict[str, str], rest: str) -> UndoWish | None:
    if "handle" in named or "number" in named:
        handle = parse_handle(named.get("handle") or named["number"])
        return UndoWish("back_to", handle=str(handle), rest=rest) if handle else None
    if "ordinal" in named:
        return UndoWish("back_to", place=_place(named["ordinal"].lower()), rest=rest)
    return UndoWish("back_to", rest=rest)


def _count(word: str) -> int:
    word = word.lower()
    if word.isdigit():
        return max(1, int(word))
    return 2 if word == "两" else _COUNTS.get(word) or _NUMERALS.find(word) + 1 or 1


def _place(word: str) -> int:
    digits = re.match(r"\d+", word)
    if digits:
        return int(digits[0])
    return _ORDINALS.index(word) + 1 if word in _ORDINALS else _NUMERALS.index(word) + 1
